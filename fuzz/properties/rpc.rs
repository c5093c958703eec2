//! What holds of any bytes that are read as a line of JSON-RPC.

use deaddrop::protocol::jsonrpc::{
    Method, Pong, RpcError, answer, connects_to, is_blank, read, response,
};
use serde_json::Value;

/// Panics where something of it does not hold.
pub(crate) fn hold(line: &[u8]) {
    let _ = (is_blank(line), connects_to(line), response::<Pong>(line, 1));
    let (id, asked) = match read(line) {
        Ok(request) => (request.id, Method::of(request)),
        Err(refused) => (refused.id, Err(refused.fault)),
    };
    let answer = match &asked {
        Ok(_) => answer(id, Ok(&Pong { pong: true })),
        Err(fault) => answer::<()>(id, Err(fault)),
    };
    is_one_line(&answer);
    let told: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(told["jsonrpc"], "2.0");
    assert_eq!(told["id"].as_u64(), id);
    // Whoever asked reads what was answered.
    let told = response::<Pong>(answer.trim_end().as_bytes(), id.unwrap_or(7));
    match asked {
        Ok(_) if id.is_some() => assert_eq!(told, Ok(Ok(Pong { pong: true }))),
        Ok(_) => {}
        Err(fault) => {
            assert!((RpcError::PARSE..=RpcError::OTHER).contains(&fault.code), "{fault}");
            assert_eq!(told, Ok(Err(fault)));
        }
    }
}

fn is_one_line(line: &str) {
    let inner = line.strip_suffix('\n').unwrap();
    assert!(!inner.contains(['\n', '\r']), "{line:?}");
}
