//! Reads JSON values within a memory limit.
//!
//! Plain `serde_json` needs gigabytes of memory for 32 MiB of `{"":0},`, because a small object takes a hundred times
//! as much as its text. It also reads an object with a certain private key as the JSON in its text.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Error, Map, Number, Value};

/// The largest total weight of a value: at worst 200 MB of memory. This is enough for 100,000 edits.
const WEIGHT_LIMIT: usize = 3_000_000;
/// The weights of a value, of an object in addition to its fields (it has room for eleven at first), and of a key.
const VALUE: usize = 1;
const OBJECT: usize = 20;
const KEY: usize = 2;

/// Parses a JSON text.
pub(in crate::protocol) fn from_str(text: &str) -> Result<Value, Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Weighed(&mut { WEIGHT_LIMIT }).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Reads a value. The number is the weight that is left for the rest of the text.
struct Weighed<'a>(&'a mut usize);

impl Weighed<'_> {
    fn weigh<E: serde::de::Error>(&mut self, weight: usize) -> Result<(), E> {
        let left = self.0.checked_sub(weight);
        *self.0 = left.ok_or_else(|| E::custom("it contains more values than are read"))?;
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Weighed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<Value, D::Error> {
        self.weigh(VALUE)?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Weighed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        // JSON has no other numbers.
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(Weighed(self.0))? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut object: A) -> Result<Value, A::Error> {
        self.weigh(OBJECT)?;
        let mut fields = Map::new();
        while let Some(key) = object.next_key::<String>()? {
            self.weigh(KEY)?;
            // If a key occurs several times, the last one counts.
            fields.insert(key, object.next_value_seed(Weighed(self.0))?);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_elsewhere() {
        for text in [
            "null",
            "true",
            "[]",
            "{}",
            "0",
            "-0",
            "-1",
            "18446744073709551615",
            "18446744073709551616",
            "1.5e3",
            "1e400",
            "\"\\u00e9\\ud83d\\ude00\"",
            "\"\\ud800\"",
            " {\"a\": [1, {\"b\": null}], \"a\": 2} ",
            "[1, ]",
            "{\"a\"}",
            "1 2",
            "",
        ] {
            let (read, elsewhere) = (from_str(text), serde_json::from_str::<Value>(text));
            let told = |e: Error| e.to_string();
            assert_eq!(read.map_err(told), elsewhere.map_err(told), "{text}");
        }
        assert!(from_str(&"[".repeat(10_000)).is_err());
    }

    #[test]
    fn a_name_private_to_the_reader_is_a_key_as_any() {
        let text = r#"{"$serde_json::private::RawValue": "{\"type\": \"shell\"}"}"#;
        let Value::Object(fields) = from_str(text).unwrap() else { panic!() };
        assert_eq!(fields["$serde_json::private::RawValue"], "{\"type\": \"shell\"}");
    }

    #[test]
    fn what_would_take_too_much_memory_is_refused() {
        let list = |piece: &str, n: usize| format!("[{}0]", format!("{piece},").repeat(n));
        for (piece, most) in [("0", 2_900_000), ("{\"\":0}", 120_000), ("[]", 2_900_000)] {
            assert!(from_str(&list(piece, most)).is_ok(), "{piece}");
            let error = from_str(&list(piece, most * 2)).unwrap_err().to_string();
            assert!(error.starts_with("it contains more values than are read"), "{error}");
        }
        assert!(from_str(&list(r#"{"oldContent":"","newContent":""}"#, 100_000)).is_ok());
    }
}
