//! Lines that are JSON with something that cannot be represented: nested too deep, a number that is too
//! large, half a surrogate pair, too many values. The rest is read all the same, so that the client
//! learns which request it was.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Error, Map, Value};

use super::{Fault, InvalidRequest, bounded};

/// The fields of a request; those that cannot be represented are null.
pub(super) struct Partly {
    pub(super) fields: Map<String, Value>,
    pub(super) unread: Unread,
}

/// Where it is that something cannot be represented, and why.
pub(super) enum Unread {
    Params(String),
    Other(String),
}

/// Reads what can be represented of a text that as a whole cannot, for this reason.
///
/// # Errors
/// It is not JSON, or not an object.
pub(super) fn read(text: &str, why: &Error) -> Result<Partly, InvalidRequest> {
    // What is skipped takes no memory, however deep or long it is.
    if let Err(e) = serde_json::from_str::<IgnoredAny>(text) {
        return Err(InvalidRequest::new(None, Fault::PARSE, &e.to_string()));
    }
    let partly = Partly { fields: Map::new(), unread: Unread::Other(in_words(why)) };
    // JSON that is no object has no fields.
    let read = serde_json::Deserializer::from_str(text).deserialize_map(partly);
    read.map_err(|_| InvalidRequest::new(None, Fault::REQUEST, &in_words(why)))
}

/// Why something cannot be represented.
fn in_words(why: &Error) -> String {
    let problem = why.to_string();
    // The line is JSON, so nothing else can be wrong with an escape.
    if problem.contains("hex escape") {
        return format!("half of a surrogate pair, which no text can hold ({problem})");
    }
    problem
}

impl<'de> Visitor<'de> for Partly {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<Self, A::Error> {
        let mut problem = None;
        // If a field is there twice, the last one counts.
        while let Some((key, value)) = fields.next_entry::<&RawValue, &RawValue>()? {
            // A key that is no text is none of these.
            let key: String = serde_json::from_str(key.get()).unwrap_or_default();
            if !["id", "jsonrpc", "method", "params"].contains(&&*key) {
                continue;
            }
            // In brackets it is as deep as in the line.
            let read = bounded::from_str(&format!("[{}]", value.get()));
            if key == "params" {
                problem = read.as_ref().err().map(in_words);
            }
            self.fields.insert(key, read.map_or(Value::Null, |mut list| list[0].take()));
        }
        self.unread = problem.map_or(self.unread, Unread::Params);
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Fault, Method, read};

    fn refused(line: &str) -> (Option<u64>, i64, String) {
        let (id, fault) = match read(line.as_bytes()) {
            Err(refused) => (refused.id, refused.fault),
            Ok(request) => (request.id, Method::of(request).unwrap_err()),
        };
        (id, fault.code, fault.message)
    }

    fn deep(depth: usize) -> String {
        format!("{}{}", "[".repeat(depth), "]".repeat(depth))
    }

    /// Values that are JSON and cannot be held, and what is said of them.
    fn values() -> [(String, &'static str); 7] {
        [
            (deep(200), "recursion limit"),
            (deep(1_000_000), "recursion limit"),
            (format!("{}0{}", "{\"a\":".repeat(200), "}".repeat(200)), "recursion limit"),
            ("-1e400".to_owned(), "number out of range"),
            (r#""a\ud800b""#.to_owned(), "surrogate"),
            (r#"{"\udc00":0}"#.to_owned(), "surrogate"),
            (format!("[{}0]", "0,".repeat(3_000_000)), "more values"),
        ]
    }

    #[test]
    fn parameters_that_cannot_be_held_are_told_with_the_id() {
        for (value, told) in values() {
            for line in [
                format!(r#"{{"jsonrpc":"2.0","id":7,"method":"exec","params":{value}}}"#),
                format!(r#"{{"params":{{"cmd":{value}}},"method":"exec","jsonrpc":"2.0","id":7}}"#),
                // Of fields that stand twice the last counts, however they are spelt.
                format!(
                    r#"{{"id":6,"jsonrpc":"2.0","method":"ping","params":[{value}],"\u0069d":7}}"#
                ),
            ] {
                let (id, code, message) = refused(&line);
                assert_eq!((id, code), (Some(7), Fault::PARAMS), "{message}");
                assert!(message.starts_with("invalid params: "), "{message}");
                assert!(message.contains(told), "{message}");
            }
            let line = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"Exec","params":{value}}}"#);
            let told = (Some(7), Fault::METHOD, "method not found: Exec".to_owned());
            assert_eq!(refused(&line), told);
            let line = format!(r#"{{"jsonrpc":"2.0","method":"exec","params":{value}}}"#);
            assert_eq!(refused(&line).0, None);
        }
    }

    #[test]
    fn what_cannot_be_held_elsewhere_makes_it_no_request() {
        for (value, told) in values() {
            for (line, id) in [
                (format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","more":{value}}}"#), Some(7)),
                (value.clone(), None),
                (format!("[{value}]"), None),
            ] {
                let (found, code, message) = refused(&line);
                assert_eq!((found, code), (id, Fault::REQUEST), "{message}");
                assert!(message.starts_with("invalid request: "), "{message}");
                assert!(message.contains(told) || line.starts_with('{'), "{message}");
            }
            for (line, id, told) in [
                (format!(r#"{{"jsonrpc":"2.0","id":{value},"method":"ping"}}"#), None, "id must"),
                (format!(r#"{{"jsonrpc":{value},"id":7,"method":"ping"}}"#), Some(7), "jsonrpc"),
                (format!(r#"{{"jsonrpc":"2.0","id":7,"method":{value}}}"#), Some(7), "method must"),
                (format!(r#"{{"id":7,"params":{value}}}"#), Some(7), "jsonrpc must"),
            ] {
                let (found, code, message) = refused(&line);
                assert_eq!((found, code), (id, Fault::REQUEST), "{message}");
                assert!(message.contains(told), "{message}");
            }
        }
    }

    #[test]
    fn what_is_no_json_has_no_id_whatever_stands_in_it() {
        for (value, _) in values() {
            for line in [
                format!(r#"{{"jsonrpc":"2.0","id":7,"method":"exec","params":{value}"#),
                format!(r#"{{"jsonrpc":"2.0","id":7,"method":"exec","params":{value},}}"#),
                format!(r#"{{"jsonrpc":"2.0","id":7,"method":"exec","params":{value}}}}}"#),
            ] {
                let (id, code, message) = refused(&line);
                assert_eq!((id, code), (None, Fault::PARSE), "{message}");
                assert!(message.starts_with("parse error: "), "{message}");
            }
        }
    }

    #[test]
    fn as_deep_as_is_read_is_read_and_one_deeper_told() {
        let line = |depth: usize| {
            let params = deep(depth);
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{params}}}"#)
        };
        let most = (1..200).take_while(|depth| {
            read(line(*depth).as_bytes()).is_ok_and(|request| request.params.is_ok())
        });
        let most = most.last().unwrap();
        assert_eq!(most, 126);
        assert_eq!(refused(&line(most + 1)).1, Fault::PARAMS);
    }
}
