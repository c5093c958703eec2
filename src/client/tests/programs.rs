//! Programs as servers: how they start, answer too much or too little, and end.
use super::*;
use crate::program::Programs;

fn sh(script: &str) -> Client {
    Client::spawn(&["sh", "-c", script].map(str::to_owned), &Programs::default()).unwrap()
}

/// Whether any process of this group is left.
fn group_is_there(id: u32) -> bool {
    let pid = rustix::process::Pid::from_raw(id.try_into().unwrap()).unwrap();
    rustix::process::test_kill_process_group(pid).is_ok()
}

fn id(client: &Client) -> u32 {
    client.program.as_ref().unwrap().id()
}

#[test]
fn a_program_is_asked_again_and_again_and_ends_with_the_client() {
    let script = r#"n=0; while read -r line; do n=$((n+1))
        echo "{\"jsonrpc\":\"2.0\",\"id\":$n,\"result\":{\"content\":\"$n\"}}"; done"#;
    let mut client = sh(script);
    for n in 1..=100 {
        assert_eq!(read_file(&mut client, "a"), Ok(Ok(n.to_string())));
    }
    let id = id(&client);
    let begun = Instant::now();
    drop(client);
    // The program ends when its input ends, so the client does not wait longer.
    assert!(begun.elapsed() < child::EXIT_TIMEOUT, "{:?}", begun.elapsed());
    assert!(!group_is_there(id));
}

#[test]
fn what_does_not_end_by_itself_is_ended_with_its_children() {
    let mut client = sh(&format!("sleep 1000 & echo '{}'; exec sleep 1000", pong(1)));
    assert_eq!(client.ping(LONG), Ok(Ok(Pong { pong: true })));
    let id = id(&client);
    assert!(group_is_there(id));
    drop(client);
    // Init reaps the other processes of the group, at any time.
    let begun = Instant::now();
    while group_is_there(id) {
        assert!(begun.elapsed() < LONG, "its group is there");
        std::thread::yield_now();
    }
}

#[test]
fn what_a_login_says_is_skipped_and_remembered() {
    let motd = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo motd $i; done";
    let mut client = sh(&format!("{motd}; echo; read line; echo '{}'", pong(1)));
    assert_eq!(client.ping(LONG), Ok(Ok(Pong { pong: true })));

    let mut client = sh(&format!("{motd}; echo one \u{1b}more; read line; echo '{}'", pong(1)));
    let Gone { reason, .. } = client.ping(LONG).unwrap_err();
    assert!(reason.contains("sent 21 lines that are no JSON, the last: 'one ␛more'"), "{reason}");

    let mut client = sh("echo motd; echo Password:; exit 3");
    let Gone { reason, .. } = client.ping(LONG).unwrap_err();
    assert!(reason.contains("it ended with exit code 3"), "{reason}");
    assert!(reason.ends_with("Before any answer it sent 'motd', 'Password:'"), "{reason}");

    let script = format!("read line; echo '{}'; read line; echo motd; read line", pong(1));
    let mut client = sh(&script);
    client.ping(LONG).unwrap().unwrap();
    let Gone { reason, .. } = client.ping(LONG).unwrap_err();
    assert!(reason.contains("sent 'motd': it is no answer"), "{reason}");
}

#[test]
fn who_dies_is_told_with_its_last_words_and_stays_dead() {
    let mut client =
        sh("read line; printf 'begun %04096d words' 0 >&2; printf '\\033no route' >&2; exit 255");
    let gone = client.ping(LONG).unwrap_err();
    let Gone { reason, .. } = &gone;
    assert!(reason.contains("is gone (it ended with exit code 255)"), "{reason}");
    assert!(
        reason.ends_with("0 words␛no route") && reason.matches("begun").count() == 1,
        "{reason}"
    );
    assert!(reason.split_once("wrote:\n  ").unwrap().1.chars().count() <= 501, "{reason}");
    assert_eq!(client.ping(LONG), Err(gone));

    let Gone { reason, .. } = sh("kill -9 $$").ping(LONG).unwrap_err();
    assert!(reason.contains("it ended with signal 9"), "{reason}");
    let Gone { reason, .. } = sh("read line; printf '{\"id\"'").ping(LONG).unwrap_err();
    assert!(reason.contains("is gone, after half a line: '{\"id\"'"), "{reason}");
}

#[test]
fn what_cannot_be_started_is_told() {
    let gone = Client::spawn(&["/nowhere/ssh".to_owned(), "box".to_owned()], &Programs::default())
        .err()
        .unwrap();
    assert!(gone.reason.starts_with("'/nowhere/ssh box' cannot be started: "), "{gone}");
    assert!(
        Client::spawn(&[], &Programs::default())
            .err()
            .unwrap()
            .reason
            .contains("no program is named")
    );
}

#[test]
fn who_never_reads_is_not_waited_for_without_end() {
    let mut client = sh("exec sleep 1000");
    let content = "x".repeat(8 << 20);
    let gone = write_file(&mut client, &content, SHORT).unwrap_err();
    assert!(gone.reason.contains("did not answer 'write_file' within 1s"), "{gone}");
    // The pipe contains half a line, which can never be completed, so nothing may follow it.
    assert_eq!(client.ping(LONG), Err(gone));
}

#[test]
fn who_reads_no_more_is_waited_for_no_longer_than_for_its_last_words() {
    let mut client = sh("exec 0<&-; exec sleep 1000");
    let begun = Instant::now();
    let gone = write_file(&mut client, &"x".repeat(8 << 20), LONG).unwrap_err();
    assert!(gone.reason.contains("cannot be written to: "), "{gone}");
    assert!(begun.elapsed() < LONG);
}

#[test]
fn lines_that_are_no_json_come_before_the_first_answer() {
    let mut client = sh(&format!("echo '{{ welcome }}'; read -r line; echo '{}'", pong(1)));
    assert_eq!(client.ping(LONG), Ok(Ok(Pong { pong: true })));
}

#[test]
fn who_writes_before_reading_is_read_meanwhile() {
    // Both sides write more than a pipe can contain.
    let script =
        format!("head -c 8000000 /dev/zero | tr '\\0' ' '; echo; read -r line; echo '{}'", pong(1));
    let mut client = sh(&script);
    let content = "x".repeat(1 << 20);
    let params = serde_json::json!({ "content": content });
    assert_eq!(client.call("ping", &params, LONG), Ok(Ok(Pong { pong: true })));
}

#[test]
fn a_line_without_end_is_not_held_in_memory() {
    let mut client = sh("read line; head -c 200000000 /dev/zero; read line");
    let gone = client.ping(LONG).unwrap_err();
    assert!(gone.reason.contains("sent a line of more than 128 MiB"), "{gone}");
}

#[test]
fn who_writes_or_complains_without_end_does_not_make_us_wait_without_end() {
    for script in ["while echo; do :; done", "yes >&2 & yes >&2 & exec sleep 100"] {
        let mut client = sh(script);
        let begun = Instant::now();
        let gone = client.ping(SHORT).unwrap_err();
        assert!(gone.reason.contains("did not answer 'ping' within 1s"), "{script}: {gone}");
        drop(client);
        assert!(begun.elapsed() < LONG, "{script}");
    }
}
