//! Reads the fields of a JSON object: each is had, or a fault is noted, and the next is read.

use serde_json::{Map, Value};

use super::fault::{At, Faults, described};
use super::path::is_longer;

/// The largest whole number that JSON is read with everywhere (2^53 − 1), as the events' schema
/// has it.
pub(super) const LARGEST: i64 = (1 << 53) - 1;

/// An object, where it stands, and where its faults go.
pub(super) struct Fields<'a, 'f> {
    map: &'a Map<String, Value>,
    at: &'f At<'f>,
    faults: &'f mut Faults,
}

/// What a field is read to, or what is wrong with it.
pub(super) type Read<T> = Result<T, String>;

impl<'a, 'f> Fields<'a, 'f> {
    /// The fields of `value`, if it is an object; `form` says how it should look.
    pub(super) fn of(
        value: &'a Value,
        at: &'f At<'f>,
        faults: &'f mut Faults,
        form: &str,
    ) -> Option<Self> {
        match value {
            Value::Object(map) => Some(Self { map, at, faults }),
            other => {
                faults.add(at, wrong(other, "an object"), form);
                None
            }
        }
    }

    /// A field that must be there.
    pub(super) fn required<T>(
        &mut self,
        key: &str,
        form: &str,
        read: impl Fn(&'a Value) -> Read<T>,
    ) -> Option<T> {
        match self.map.get(key) {
            Some(value) => self.noted(key, form, read(value)),
            None => self.noted(key, form, Err("it is missing".to_owned())),
        }
    }

    /// A field that may be left out, but not be null.
    pub(super) fn optional<T>(
        &mut self,
        key: &str,
        form: &str,
        read: impl Fn(&'a Value) -> Read<T>,
    ) -> Option<T> {
        match self.map.get(key)? {
            Value::Null => {
                let problem = "it is null; a field without a value is left out".to_owned();
                self.noted(key, form, Err(problem))
            }
            value => self.noted(key, form, read(value)),
        }
    }

    /// The elements of a list that must be there.
    pub(super) fn list<T>(
        &mut self,
        key: &str,
        form: &str,
        read: impl Fn(&'a Value, &At, &mut Faults) -> Option<T>,
    ) -> Option<Vec<T>> {
        let elements = self
            .required(key, form, |value| value.as_array().ok_or_else(|| wrong(value, "a list")))?;
        let place = self.at.key(key);
        let each = elements.iter().enumerate();
        // All are looked at, whatever is wrong with one.
        let read: Vec<Option<T>> =
            each.map(|(n, value)| read(value, &place.index(n), self.faults)).collect();
        read.into_iter().collect()
    }

    /// A field of this object that is an object itself; `of` reads it.
    pub(super) fn inner<T>(
        &mut self,
        key: &str,
        form: &str,
        of: impl Fn(&mut Fields<'a, '_>) -> Option<T>,
    ) -> Option<T> {
        let value = self.required(key, form, Ok)?;
        of(&mut Fields::of(value, &self.at.key(key), self.faults, form)?)
    }

    /// Notes a fault of a field that was read.
    pub(super) fn fault(&mut self, key: &str, problem: impl Into<String>, form: &str) {
        self.faults.add(&self.at.key(key), problem, form);
    }

    fn noted<T>(&mut self, key: &str, form: &str, read: Read<T>) -> Option<T> {
        read.map_err(|problem| self.fault(key, problem, form)).ok()
    }
}

/// What is wrong with a value of another type.
pub(super) fn wrong(value: &Value, wanted: &str) -> String {
    format!("it is {}, not {wanted}", described(value))
}

/// A text.
pub(super) fn text(value: &Value) -> Read<&str> {
    value.as_str().ok_or_else(|| wrong(value, "a text"))
}

/// A text, as a value of its own.
pub(super) fn owned(value: &Value) -> Read<String> {
    text(value).map(str::to_owned)
}

/// A text of at most `limit` UTF-16 units.
pub(super) fn at_most(limit: usize) -> impl Fn(&Value) -> Read<String> {
    move |value| match text(value)? {
        long if is_longer(long, limit) => {
            let units = long.encode_utf16().count();
            Err(format!("it is {units} characters long, {} too many", units - limit))
        }
        text => Ok(text.to_owned()),
    }
}

/// `true` or `false`.
pub(super) fn boolean(value: &Value) -> Read<bool> {
    value.as_bool().ok_or_else(|| wrong(value, "true or false"))
}

/// A whole number within bounds, however it is written: `30000.0` and `3e4` are whole too.
pub(super) fn whole(least: i64, most: i64) -> impl Fn(&Value) -> Read<i64> {
    move |value| {
        let Value::Number(number) = value else { return Err(wrong(value, "a whole number")) };
        // Beyond the bounds it does not matter how exactly a number is known.
        #[expect(clippy::cast_precision_loss)]
        let beyond = number.as_f64().and_then(|float| match float {
            _ if float < least as f64 => Some(format!("{number} is less than {least}")),
            _ if float > most as f64 => Some(format!("{number} is more than {most}")),
            _ if float.fract() != 0.0 => Some(format!("{number} is not a whole number")),
            _ => None,
        });
        if let Some(problem) = beyond {
            return Err(problem);
        }
        #[expect(clippy::cast_possible_truncation, reason = "whole, and within bounds below 2^53")]
        let float = || number.as_f64().map(|float| float as i64);
        number.as_i64().or_else(float).ok_or_else(|| wrong(value, "a whole number"))
    }
}

/// A count: a whole number from 0.
pub(super) fn counted(value: &Value) -> Read<u64> {
    whole(0, LARGEST)(value).map(i64::unsigned_abs)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_numbers_are_read_however_they_are_written() {
        let read = whole(1000, 3_600_000);
        for (value, number) in
            [(json!(1000), 1000), (json!(3_600_000), 3_600_000), (json!(30000.0), 30000)]
        {
            assert_eq!(read(&value), Ok(number));
        }
        for (text, problem) in [
            ("999", "999 is less than 1000"),
            ("-1", "-1 is less than 1000"),
            ("3600001", "3600001 is more than 3600000"),
            ("1e99", "1e+99 is more than 3600000"),
            ("-1e99", "-1e+99 is less than 1000"),
            ("18446744073709551616", "18446744073709552000 is more than 3600000"),
            ("1000.5", "1000.5 is not a whole number"),
            ("\"1000\"", "it is the text \"1000\", not a whole number"),
            ("true", "it is true, not a whole number"),
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            let error = read(&value).unwrap_err();
            assert_eq!(error.replace("1.8446744073709552e+19", "18446744073709552000"), problem);
        }
        let counts = [json!(0), json!(-0.0), json!(LARGEST), json!(9_007_199_254_740_991.0)];
        assert_eq!(counts.map(|n| counted(&n).unwrap()), [0, 0, (1 << 53) - 1, (1 << 53) - 1]);
        assert!(counted(&json!(LARGEST + 1)).is_err() && counted(&json!(u64::MAX)).is_err());
    }
}
