//! A fast path for plain requests, read in one pass without an intermediate value: with an ID, an
//! object for parameters, and nothing that the six methods do not know. All others go to
//! [`super::read`], which reads these in the same way.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

use super::{Exec, ExecCode, ListDir, Method, ReadFile, WriteFile};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plain<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    id: u64,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(default)]
    params: Option<Object<Params>>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Params {
    cmd: Option<String>,
    lang: Option<String>,
    code: Option<String>,
    path: Option<String>,
    content: Option<String>,
}

/// Reads a value from an object only; serde would also take a list.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields)).map(Object)
            }
        }
        deserializer.deserialize_map(Fields(PhantomData))
    }
}

/// Returns the ID and method of a plain request; None for any other line.
pub fn quick(line: &[u8]) -> Option<(u64, Method)> {
    let Object(Plain { jsonrpc, id, method, params }) = serde_json::from_slice(line).ok()?;
    if jsonrpc != "2.0" {
        return None;
    }
    let Params { cmd, lang, code, path, content } =
        params.map_or_else(Params::default, |all| all.0);
    let method = match &*method {
        "ping" => Method::Ping,
        "exec" => Method::Exec(Exec { cmd: cmd? }),
        "exec_code" => Method::ExecCode(ExecCode { lang: lang?, code: code? }),
        "read_file" => Method::ReadFile(ReadFile { path: path? }),
        "write_file" => Method::WriteFile(WriteFile { path: path?, content: content? }),
        "list_dir" => Method::ListDir(ListDir { path: path? }),
        _ => return None,
    };
    Some((id, method))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::jsonrpc::read;

    /// The same by the way that all lines can take.
    fn exactly(line: &[u8]) -> Option<(u64, Method)> {
        let request = read(line).ok()?;
        let id = request.id?;
        Method::of(request).ok().map(|method| (id, method))
    }

    #[test]
    fn what_clients_send_is_plain() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}"#,
            r#"{"method":"ping","params":null,"id":18446744073709551615,"jsonrpc":"2.0"}"#,
            "\t{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"exec\",\"params\":{\"cmd\":\"a\\nb\"}} \r",
            r#"{"jsonrpc":"2.0","id":1,"method":"exec_code","params":{"lang":"sh","code":"\u00e9"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"read_file","params":{"path":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"write_file","params":{"path":"a","content":""}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"list_dir","params":{"path":"é"}}"#,
        ] {
            let read = quick(line.as_bytes());
            assert!(read.is_some() && read == exactly(line.as_bytes()), "{line}: {read:?}");
        }
    }

    #[test]
    fn what_is_unusual_is_left_to_the_exact_reader() {
        for line in [
            r#"["2.0",1,"ping",{}]"#,
            r#"{"jsonrpc":"2.0","method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"exec","params":["a",null,null,null,null]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"exec","params":{"cmd":1}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"exec","params":{"$serde_json::private::RawValue":"{}"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"about"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}{}"#,
        ] {
            assert_eq!(quick(line.as_bytes()), None, "{line}");
        }
    }

    fn value() -> impl Strategy<Value = String> {
        let plain = prop::sample::select(vec![
            "\"a\"",
            "\"\"",
            "\"2.0\"",
            "\"\\ud83d\\ude00\"",
            "\"\\ud800\"",
            "\"\u{1}\"",
            "null",
            "1",
            "-0",
            "1.0",
            "1e400",
            "18446744073709551616",
            "true",
            "[]",
            "[\"a\"]",
            "[\"a\",\"b\"]",
            "{}",
            "{\"path\":\"b\"}",
            "\"ping\"",
            "\"exec\"",
            "",
        ]);
        plain.prop_map(str::to_owned)
    }

    fn object(names: &'static [&'static str]) -> impl Strategy<Value = String> {
        let names = prop::sample::select(names);
        prop::collection::vec((names, value()), 0..4).prop_map(|fields| {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
            format!("{{{}}}", fields.join(","))
        })
    }

    fn line() -> impl Strategy<Value = String> {
        let methods = prop::sample::select(vec![
            "ping",
            "exec",
            "exec_code",
            "read_file",
            "write_file",
            "list_dir",
            "p\\u0069ng",
            "walk",
        ]);
        let params = prop_oneof![
            4 => object(&["path", "content", "cmd", "lang", "code", "p\\u0061th", "more"]),
            1 => value(),
        ];
        let more = object(&["id", "jsonrpc", "method", "params", "x"]);
        (methods, params, more, prop::option::weighted(0.2, any::<prop::sample::Index>())).prop_map(
            |(method, params, more, cut)| {
                let more = more.trim_matches(['{', '}']);
                let comma = if more.is_empty() { "" } else { "," };
                let line = format!(
                    r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}{comma}{more}}}"#
                );
                // Without a character, too.
                match cut.map(|cut| cut.index(line.chars().count())) {
                    Some(cut) => {
                        line.chars().enumerate().filter(|(n, _)| *n != cut).map(|(_, c)| c).collect()
                    }
                    None => line,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn both_ways_read_the_same(line in line()) {
            if let Some(read) = quick(line.as_bytes()) {
                prop_assert_eq!(Some(read), exactly(line.as_bytes()));
            }
        }
    }
}
