//! Sockets as servers: they accept, and answer correctly, late, wrongly or never.
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread::JoinHandle;

use super::*;

/// A server that accepts one connection.
struct Fake {
    _folder: tempfile::TempDir,
    socket: PathBuf,
    thread: JoinHandle<()>,
}

fn fake(serve: impl FnOnce(BufReader<UnixStream>) + Send + 'static) -> Fake {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let thread = std::thread::spawn(move || {
        let stream = listener.accept().unwrap().0;
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        serve(BufReader::new(stream));
    });
    Fake { _folder: folder, socket, thread }
}

impl Fake {
    fn client(&self) -> Client {
        Client::connect(&self.socket, None, LONG).unwrap()
    }

    fn refuses(&self, port: u32, patience: Duration) -> String {
        Client::connect(&self.socket, Some(port), patience).err().unwrap().reason
    }
}

fn hear(stream: &mut BufReader<UnixStream>) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    line
}

fn say(stream: &mut BufReader<UnixStream>, line: &str) {
    writeln!(stream.get_mut(), "{line}").unwrap();
}

#[test]
fn a_port_is_asked_for_first() {
    let fake = fake(|mut stream| {
        assert_eq!(hear(&mut stream), "CONNECT 52\n");
        say(&mut stream, "OK 1073741824\r");
        assert_eq!(hear(&mut stream), request(Some(1), "ping", &serde_json::json!({})));
        say(&mut stream, &pong(1));
        assert_eq!(hear(&mut stream), "");
    });
    let mut client = Client::connect(&fake.socket, Some(52), LONG).unwrap();
    assert_eq!(client.ping(LONG), Ok(Ok(Pong { pong: true })));
    drop(client);
    fake.thread.join().unwrap();
}

#[test]
fn who_does_not_let_in_is_told() {
    for (answer, told) in
        [("NO", "with 'NO' and not"), ("OK", "'OK'"), ("OK +1", "'OK +1'"), ("OK ", "'OK'")]
    {
        let fake = fake(move |mut stream| {
            hear(&mut stream);
            say(&mut stream, answer);
        });
        let reason = fake.refuses(52, LONG);
        assert!(reason.contains("answered CONNECT 52") && reason.contains(told), "{reason}");
    }
    let closed = fake(|mut stream| drop(hear(&mut stream))).refuses(7, LONG);
    assert!(closed.contains("is gone") && closed.contains("asked for port 7"), "{closed}");
    let silent = fake(|mut stream| drop(stream.read_to_end(&mut Vec::new()))).refuses(7, SHORT);
    assert!(silent.contains("did not answer 'CONNECT' within 1s"), "{silent}");
}

#[test]
fn nobody_there_is_told_with_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let none = folder.path().join("none.sock");
    let stale = folder.path().join("stale.sock");
    drop(UnixListener::bind(&stale).unwrap());
    for path in [none, stale] {
        let gone = Client::connect(&path, None, LONG).err().unwrap();
        assert!(gone.reason.contains(path.to_str().unwrap()), "{gone}");
        assert!(gone.reason.contains("cannot be reached: "), "{gone}");
    }
}

#[test]
fn nothing_is_asked_of_whoever_did_not_answer_in_time() {
    let fake = fake(move |mut stream| {
        hear(&mut stream);
        assert_eq!(hear(&mut stream), "");
    });
    let mut client = fake.client();
    let gone = client.ping(SHORT).unwrap_err();
    assert_eq!(read_file(&mut client, "b"), Err(gone));
    fake.thread.join().unwrap();
}

#[test]
fn a_fault_that_names_no_request_is_of_the_only_one() {
    let fault =
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"too long","data":null}}"#;
    let one = fake(move |mut stream| {
        hear(&mut stream);
        say(&mut stream, fault);
        hear(&mut stream);
        say(&mut stream, &pong(1));
    });
    let mut client = one.client();
    assert_eq!(client.ping(LONG), Ok(Err(RpcError::new(RpcError::REQUEST, "too long"))));
    let gone = client.ping(LONG).unwrap_err();
    assert!(gone.reason.contains("it answers 1 and not 2"), "{gone}");
}

#[test]
fn answers_come_in_pieces_and_of_any_kind() {
    let fake = fake(|mut stream| {
        hear(&mut stream);
        for byte in format!("\n \n{}\n", pong(1)).bytes() {
            stream.get_mut().write_all(&[byte]).unwrap();
        }
        hear(&mut stream);
        say(&mut stream, r#"{"jsonrpc":"2.0","id":2,"result":{"success":"yes"}}"#);
        stream.read_to_end(&mut Vec::new()).unwrap();
    });
    let mut client = fake.client();
    assert_eq!(client.ping(LONG), Ok(Ok(Pong { pong: true })));
    let gone = write_file(&mut client, "b", LONG).unwrap_err();
    assert!(gone.reason.contains("its result is not as it should be"), "{gone}");
    // The server notices the end at once, although the client still exists.
    fake.thread.join().unwrap();
}

#[test]
fn who_answers_before_it_has_heard_all_is_heard() {
    let fake = fake(|mut stream| {
        let mut some = [0; 1000];
        stream.read_exact(&mut some).unwrap();
        let fault = r#"{"id":null,"error":{"code":-32600,"message":"too long"}}"#;
        say(&mut stream, fault);
    });
    let mut client = fake.client();
    let said = write_file(&mut client, &"x".repeat(8 << 20), LONG);
    assert_eq!(said, Ok(Err(RpcError::new(RpcError::REQUEST, "too long"))));
    // Half a line has been sent.
    client.ping(LONG).unwrap_err();
}

#[test]
fn what_is_to_be_sent_meanwhile_is_sent_each_time() {
    let interrupt = request(None, "interrupt", &Key { key: "k".to_owned() });
    let expected = interrupt.clone();
    let fake = fake(move |mut stream| {
        hear(&mut stream);
        assert_eq!(hear(&mut stream), expected);
        // The first interrupt may have arrived before there was anything to interrupt.
        assert_eq!(hear(&mut stream), expected);
        say(&mut stream, &pong(1));
        assert_eq!(hear(&mut stream), "");
    });
    let mut client = fake.client();
    let mut asked = 0;
    let mut meanwhile = || {
        asked += 1;
        [3, 5].contains(&asked).then(|| interrupt.clone())
    };
    let said = client.call_while("ping", &serde_json::json!({}), LONG, Some(&mut meanwhile));
    assert_eq!(said, Ok(Ok(Pong { pong: true })));
    assert!(asked >= 5, "{asked}");
    drop(client);
    fake.thread.join().unwrap();
}

#[test]
fn what_is_to_be_sent_meanwhile_is_not_piled_up_where_nobody_reads() {
    let fake = fake(|mut stream| while stream.get_mut().write_all(b"\n").is_ok() {});
    let mut client = fake.client();
    let (line, mut asked) = ("x".repeat(1 << 20), 0);
    let mut meanwhile = || {
        asked += 1;
        Some(line.clone())
    };
    client
        .call_while::<Pong>("ping", &serde_json::json!({}), SHORT, Some(&mut meanwhile))
        .unwrap_err();
    assert!(asked > 20, "{asked}");
    drop(client);
    fake.thread.join().unwrap();
}
