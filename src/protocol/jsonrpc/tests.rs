//! Reads received lines, and checks the resulting requests and errors.

use super::*;

fn refused(line: &str) -> (Option<u64>, i64) {
    let InvalidRequest { id, fault } = read(line.as_bytes()).unwrap_err();
    (id, fault.code)
}

#[test]
fn requests_are_read_with_or_without_an_id() {
    let line = br#" {"jsonrpc":"2.0","id":18446744073709551615,"method":"ping","params":{}} "#;
    let Request { id, method, params } = read(line).unwrap();
    assert_eq!((id, &*method, params), (Some(u64::MAX), "ping", Ok(json!({}))));
    let notified = read(br#"{"jsonrpc":"2.0","method":"exec","params":["x"]}"#).unwrap();
    assert_eq!(notified.id, None);
    let Ok(Method::Exec { cmd }) = Method::of(notified) else { panic!("it is an exec") };
    assert_eq!(cmd, "x");
}

#[test]
fn what_is_no_request_is_told_with_its_id_where_it_has_one() {
    for line in ["{", "x", "\"\u{1}\"", "{}{}", "{\"id\":1,}"] {
        assert_eq!(refused(line), (None, RpcError::PARSE), "{line}");
    }
    assert_eq!(read(b"\xff").unwrap_err().fault.code, RpcError::PARSE);
    for line in ["[]", "1", "null", "\"x\"", "{}", r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#]
    {
        assert_eq!(refused(line), (None, RpcError::REQUEST), "{line}");
    }
    for line in [
        r#"{"id":7}"#,
        r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#,
        r#"{"jsonrpc":2.0,"id":7,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":7}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":1}"#,
    ] {
        assert_eq!(refused(line), (Some(7), RpcError::REQUEST), "{line}");
    }
    for id in ["\"7\"", "-1", "1.5", "null", "[7]", "18446744073709551616"] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        assert_eq!(refused(&line), (None, RpcError::REQUEST), "{line}");
    }
}

#[test]
fn wrong_parameters_and_methods_have_codes_of_their_own() {
    let code = |method: &str, params: &str| {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        Method::of(read(line.as_bytes()).unwrap()).map_err(|fault| fault.code)
    };
    for (method, params) in [
        ("exec", "{}"),
        ("exec", "null"),
        ("exec", "5"),
        ("exec", "[]"),
        ("exec", r#"{"cmd":1}"#),
        ("exec", r#"{"cmd":null}"#),
        ("exec_code", r#"{"lang":"sh"}"#),
        ("write_file", r#"{"path":"a"}"#),
        ("read_file", r#"{"path":["a"]}"#),
        ("ping", "true"),
    ] {
        assert_eq!(code(method, params), Err(RpcError::PARAMS), "{method} {params}");
    }
    assert_eq!(code("ping", "null"), Ok(Method::Ping {}));
    assert_eq!(code("ping", r#"{"more":1}"#), Ok(Method::Ping {}));
    assert_eq!(code("ping", "[]"), Ok(Method::Ping {}));
    assert_eq!(code("walk", "[]"), Ok(Method::Walk {}));
    for (method, params) in [("ping", "[1]"), ("look", "{}"), ("interrupt", "[]")] {
        assert_eq!(code(method, params), Err(RpcError::PARAMS), "{method} {params}");
    }
    for method in ["Ping", "path_facts", "find ", ""] {
        assert_eq!(code(method, "{}"), Err(RpcError::METHOD), "{method}");
    }
    let both = Method::ListDir { path: "a".to_owned() };
    assert_eq!(code("list_dir", r#"{"path":"a","deep":true}"#), Ok(both));
}

#[test]
fn an_answer_has_either_a_result_or_an_error() {
    let fault = RpcError::new(RpcError::METHOD, "method not found: unknown");
    assert_eq!(
        answer::<()>(Some(7), Err(&fault)),
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32601,\"message\":\"method not found: unknown\"}}\n"
    );
    assert_eq!(
        answer(Some(1), Ok(&Pong { pong: true })),
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"pong\":true}}\n"
    );
    assert!(answer::<()>(None, Err(&fault)).contains("\"id\":null,"));
}

#[test]
fn what_is_asked_is_read_and_what_is_answered_too() {
    let line = request(Some(3), "exec", &json!({"cmd": "a\nb"}));
    assert!(line.ends_with('\n') && line.matches('\n').count() == 1);
    assert_eq!(read(line.trim_end().as_bytes()).unwrap().id, Some(3));
    let line = answer(Some(3), Ok(&Pong { pong: true }));
    assert_eq!(response::<Pong>(line.as_bytes(), 3), Ok(Ok(Pong { pong: true })));
    assert!(response::<Pong>(line.as_bytes(), 4).unwrap_err().contains("answers 3 and not 4"));
    assert!(response::<Written>(line.as_bytes(), 3).unwrap_err().contains("success"));
    let fault = RpcError::internal("x");
    let line = answer::<()>(Some(3), Err(&fault));
    assert_eq!(response::<Pong>(line.as_bytes(), 3), Ok(Err(fault.clone())));
    let line = answer::<()>(None, Err(&fault));
    assert_eq!(response::<Pong>(line.as_bytes(), 3), Ok(Err(fault)));
    assert!(response::<Pong>(b"{\"id\":3}", 3).is_err());
}

#[test]
fn a_host_may_ask_for_a_port_first() {
    assert_eq!(connects_to(b"CONNECT 52"), Some(52));
    assert_eq!(connects_to(b"CONNECT 52\r"), Some(52));
    for line in ["CONNECT", "CONNECT x", "CONNECT +1", "CONNECT 99999999999", "connect 52", "OK 52"]
    {
        assert_eq!(connects_to(line.as_bytes()), None, "{line}");
    }
    assert_eq!(connected(52), "OK 52\n");
}

#[test]
fn languages_have_their_interpreters_in_any_case() {
    for (language, program, flag) in [
        ("python", "python3", "-c"),
        ("PyThOn3", "python3", "-c"),
        ("node", "node", "-e"),
        ("JavaScript", "node", "-e"),
        ("JS", "node", "-e"),
        ("bash", "bash", "-c"),
        ("SH", "sh", "-c"),
    ] {
        assert_eq!(interpreter(language), Some((program, flag)), "{language}");
    }
    for language in ["cobol", "", "python2", " sh"] {
        assert_eq!(interpreter(language), None, "{language:?}");
    }
}

/// The ID and method of a request that has both; None for any other line.
fn method_in(line: &str) -> Option<(u64, Method)> {
    let request = read(line.as_bytes()).ok()?;
    Some((request.id?, Method::of(request).ok()?))
}

#[test]
fn what_clients_send_is_read_with_its_method() {
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
        assert!(method_in(line).is_some(), "{line}");
    }
    let exec = |cmd: &str| Method::Exec { cmd: cmd.into() };
    let code = Method::ExecCode { lang: "sh".into(), code: "é".into() };
    for (line, id, method) in [
        (
            "\t{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"exec\",\"params\":{\"cmd\":\"a\\nb\"}} \r",
            1,
            exec("a\nb"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"exec_code","params":{"lang":"sh","code":"\u00e9"}}"#,
            1,
            code,
        ),
        // If there are two IDs, the last one counts.
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, 2, Method::Ping {}),
    ] {
        assert_eq!(method_in(line), Some((id, method)), "{line}");
    }
    for line in [
        r#"["2.0",1,"ping",{}]"#,
        r#"{"jsonrpc":"2.0","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"exec","params":["a",null,null,null,null]}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"exec","params":{"cmd":1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"exec","params":{"$serde_json::private::RawValue":"{}"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"looks"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}{}"#,
    ] {
        assert_eq!(method_in(line), None, "{line}");
    }
    let many = br#"{"jsonrpc":"2.0","id":1,"method":"exec","params":["a",null,null,null,null]}"#;
    assert_eq!(Method::of(read(many).unwrap()).unwrap_err().code, RpcError::PARAMS);
}

/// Lines that are valid JSON but contain a value that cannot be represented.
mod not_representable {
    use super::super::{Method, RpcError, read};

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

    /// Valid JSON values that cannot be represented, and a part of the error message for each.
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
                // If a field occurs twice, the last one counts, even if its name is escaped.
                format!(
                    r#"{{"id":6,"jsonrpc":"2.0","method":"ping","params":[{value}],"\u0069d":7}}"#
                ),
            ] {
                let (id, code, message) = refused(&line);
                assert_eq!((id, code), (Some(7), RpcError::PARAMS), "{message}");
                assert!(message.starts_with("invalid params: "), "{message}");
                assert!(message.contains(told), "{message}");
            }
            let line = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"Exec","params":{value}}}"#);
            let told = (Some(7), RpcError::METHOD, "method not found: Exec".to_owned());
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
                assert_eq!((found, code), (id, RpcError::REQUEST), "{message}");
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
                assert_eq!((found, code), (id, RpcError::REQUEST), "{message}");
                assert!(message.contains(told), "{message}");
            }
        }
    }

    #[test]
    fn keys_that_cannot_be_held_make_it_no_request_but_leave_the_id() {
        let many = "\"\":0,".repeat(1_100_000);
        for (fields, told) in [("\"\\udc00\":0,", "surrogate"), (&many, "more values")] {
            let line = format!(r#"{{{fields}"jsonrpc":"2.0","id":7,"method":"ping"}}"#);
            let (id, code, message) = refused(&line);
            assert_eq!((id, code), (Some(7), RpcError::REQUEST), "{message}");
            assert!(message.contains(told), "{message}");
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
                assert_eq!((id, code), (None, RpcError::PARSE), "{message}");
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
        assert_eq!(refused(&line(most + 1)).1, RpcError::PARAMS);
    }
}
