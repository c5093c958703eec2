//! Lines that cannot be read: no JSON at all, or JSON with something that cannot be represented (nested
//! too deep, a number that is too large, half a surrogate pair, too many values). In the latter case
//! the ID is found all the same, so that the client learns which request it was.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Error;
use serde_json::value::RawValue;

use super::{Fault, Method, Refused, Request, bounded};

/// Returns the answer to a text that could not be read, for this reason.
pub(super) fn refused(text: &str, why: &Error) -> Refused {
    // What is skipped takes no memory, however deep or long it is.
    if let Err(e) = serde_json::from_str::<IgnoredAny>(text) {
        return Refused { id: None, fault: Fault::new(Fault::PARSE, format!("parse error: {e}")) };
    }
    // Only an object has an outline.
    let Ok(outline) = serde_json::from_str::<Outline>(text) else {
        return invalid(None, &in_words(why));
    };
    let id: Option<u64> = read(outline.id);
    if outline.id.is_some() && id.is_none() {
        return invalid(None, super::NO_ID);
    }
    if read::<String>(outline.jsonrpc).as_deref() != Some("2.0") {
        return invalid(id, super::NO_VERSION);
    }
    let Some(method) = read::<String>(outline.method) else { return invalid(id, super::NO_METHOD) };
    // In brackets it is as deep as in the line.
    let params = outline.params.map(|params| bounded::from_str(&format!("[{}]", params.get())));
    let Some(Err(e)) = params else { return invalid(id, &in_words(why)) };
    // A wrong method is worse than wrong parameters.
    let request = Request { id, method, params: serde_json::json!({}) };
    match Method::of(request) {
        Err(fault) if fault.code == Fault::METHOD => Refused { id, fault },
        _ => Refused { id, fault: Fault::params(in_words(&e)) },
    }
}

/// Why something cannot be represented.
fn in_words(why: &Error) -> String {
    let told = why.to_string();
    // The line is JSON, so nothing else can be wrong with an escape.
    if told.contains("hex escape") {
        return format!("half of a surrogate pair, which no text can hold ({told})");
    }
    told
}

fn invalid(id: Option<u64>, problem: &str) -> Refused {
    Refused { id, fault: Fault::new(Fault::REQUEST, format!("invalid request: {problem}")) }
}

/// The value of a field if it has that type.
fn read<T: DeserializeOwned>(field: Option<&RawValue>) -> Option<T> {
    serde_json::from_str(field?.get()).ok()
}

/// The fields of a request as they were written. If one is there twice, the last one counts.
#[derive(Default)]
struct Outline<'a> {
    id: Option<&'a RawValue>,
    jsonrpc: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Outline<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Outline<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Outline<'de>, A::Error> {
                let mut outline = Outline::default();
                while let Some((key, value)) = fields.next_entry::<&RawValue, &RawValue>()? {
                    // A key that is no text is none of these.
                    match &*read::<String>(Some(key)).unwrap_or_default() {
                        "id" => outline.id = Some(value),
                        "jsonrpc" => outline.jsonrpc = Some(value),
                        "method" => outline.method = Some(value),
                        "params" => outline.params = Some(value),
                        _ => {}
                    }
                }
                Ok(outline)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    fn refused(line: &str) -> (Option<u64>, i64, String) {
        let Refused { id, fault } = read(line.as_bytes()).unwrap_err();
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
        let most = (1..200).take_while(|depth| super::super::read(line(*depth).as_bytes()).is_ok());
        let most = most.last().unwrap();
        assert_eq!(most, 126);
        assert_eq!(refused(&line(most + 1)).1, Fault::PARAMS);
    }
}
