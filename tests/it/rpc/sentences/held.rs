//! Lines that are JSON and hold what the server cannot: which request it was is told all the same.

use serde_json::Value;

use super::{Talk, assert_told, of_fault};

#[test]
fn what_is_json_and_cannot_be_held_is_told_with_its_id() {
    let mut talk = Talk::new(&[]);
    // The last are more than anybody means, which would take a hundred times their length in memory.
    let many = format!("[{}0]", "0,".repeat(3_000_000));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (value, why) in [
        ("1e400", "out of range"),
        ("\"\\ud800\"", "surrogate"),
        (&deep, "recursion limit"),
        (&many, "more values"),
    ] {
        let line = |method: &str, params: &str| {
            format!("{{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"{method}\",{params}}}")
        };
        for (line, code, holds) in [
            (line("write_file", &format!("\"params\":[\"made\",{value}]")), -32602, why),
            (line("nothing", &format!("\"params\":[{value}]")), -32601, "nothing"),
            (line("ping", &format!("\"more\":[{value}]")), -32600, why),
        ] {
            let answer = talk.line(line);
            assert_eq!(answer["id"], 5, "{answer}");
            assert_told(&of_fault(&answer), code, &[holds]);
        }
        let answer = talk.line(format!("[{value}]"));
        assert_eq!(answer["id"], Value::Null, "{answer}");
        assert_told(&of_fault(&answer), -32600, &["invalid request", why]);
        // A notification is not answered, also if it fails so.
        let notified =
            format!("{{\"jsonrpc\":\"2.0\",\"method\":\"exec\",\"params\":[{value}]}}\n");
        talk.client.send(notified);
        talk.client.pings(6);
    }
    assert!(!talk.base.exists("workspace/made"));
}
