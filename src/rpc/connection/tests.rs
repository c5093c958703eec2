//! How connections handle requests, with simple test services.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::event::Timespec;

use super::super::Service;
use super::super::budget::{ANSWERS, LINES};
use super::*;
use crate::protocol::jsonrpc::{FileContent, Pong, Written};
use crate::watch::Stop;

/// How long to wait for what must happen.
const PATIENCE: Duration = Duration::from_secs(20);
const PONG: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"pong\":true}}";
const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
const EXEC: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"exec\",\"params\":{\"cmd\":\"a\"}}";
#[cfg(target_os = "linux")]
const WRITTEN: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"success\":true}}";
const WRITE: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"write_file\",\"params\":{\"path\":\"a\",\"content\":\"\"}}";

/// Answers pings and writes. A command runs until it is interrupted.
#[derive(Default)]
struct Slow {
    interrupted: Mutex<Vec<String>>,
    changed: Condvar,
    /// The number of requests that were begun.
    begun: Mutex<usize>,
}

impl Service for Arc<Slow> {
    fn call(&self, method: Method) -> Result<Given, RpcError> {
        *self.begun.lock().unwrap() += 1;
        match method {
            Method::Exec { cmd } => {
                let goes_on = |keys: &mut Vec<String>| !keys.contains(&cmd);
                let keys = self.interrupted.lock().unwrap();
                let waited = self.changed.wait_timeout_while(keys, PATIENCE, goes_on).unwrap();
                assert!(!waited.1.timed_out(), "nobody interrupts {cmd}");
            }
            Method::Interrupt(key) => {
                self.interrupt(&key.key);
                return Ok(Given::Written(Written { success: true }));
            }
            Method::WriteFile { .. } => return Ok(Given::Written(Written { success: true })),
            _ => {}
        }
        Ok(Given::Pong(Pong { pong: true }))
    }

    fn interrupt(&self, key: &str) {
        self.interrupted.lock().unwrap().push(key.to_owned());
        self.changed.notify_all();
    }
}

/// A server with this service and these memory limits, in bytes.
fn server(service: impl Service + Send + 'static, lines: usize, answers: usize) -> Arc<Server> {
    let (stopping, stop) = io::pipe().unwrap();
    // Dropping it would tell the server to stop.
    std::mem::forget(stop);
    Arc::new(Server::new(service, Stop::default(), stopping, lines, answers))
}

/// Lets a server serve a connection.
fn connect(server: &Arc<Server>, input: impl Into<OwnedFd>, output: impl Into<OwnedFd>) {
    let [input, output] = [input.into(), output.into()].map(|fd| Arc::new(File::from(fd)));
    server.admit(input, output).unwrap();
}

/// Connects a new client to a server.
fn client(server: &Arc<Server>) -> UnixStream {
    let (ours, theirs) = UnixStream::pair().unwrap();
    connect(server, theirs.try_clone().unwrap(), theirs);
    ours
}

/// Waits until all connections are closed.
fn wait_for(server: &Server) {
    wait_until(|| server.connections.count() == 0);
}

/// The answers to an input, which then ends.
fn answers(input: &str) -> Vec<String> {
    let (reader, mut writer) = io::pipe().unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let server = server(Arc::new(Slow::default()), LINES, ANSWERS);
    connect(&server, reader, theirs);
    writer.write_all(input.as_bytes()).unwrap();
    drop(writer);
    let lines = BufReader::new(ours).lines().map(Result::unwrap).collect();
    wait_for(&server);
    lines
}

#[test]
fn connect_is_understood_as_the_first_line_only() {
    assert_eq!(answers("CONNECT 52\n"), ["OK 52"]);
    assert_eq!(answers(&format!("CONNECT 52\r\n{PING}")), ["OK 52", PONG]);
    for input in [format!("{PING}\nCONNECT 52\n"), format!("{PING}\n\nCONNECT 52")] {
        let told = answers(&input);
        assert_eq!(told[0], PONG);
        assert!(told.len() == 2 && told[1].contains("-32700"), "{told:?}");
    }
    assert!(answers("\nCONNECT 52\n")[0].contains("-32700"));
}

#[test]
fn a_line_that_is_too_long_is_refused_and_the_next_is_read() {
    let long = " ".repeat(LINE_LIMIT - PING.len());
    let told = answers(&format!("{long}{PING}\n{PING}\n{long} {PING}\n{PING}\n{long}  {PING}"));
    assert_eq!((&*told[0], &*told[1], &*told[3]), (PONG, PONG, PONG));
    assert!(told.len() == 5 && [2, 4].iter().all(|n| told[*n].contains("-32600")), "{told:?}");
}

#[test]
fn a_long_line_waits_for_those_before_it_and_as_much_is_read_as_may_wait() {
    let service = Arc::new(Slow::default());
    let server = server(Arc::clone(&service), LINES, ANSWERS);
    let ours = client(&server);
    let long = format!("{}{PING}\n", " ".repeat(1 << 20));
    let input = format!("{EXEC}\n{long}");
    thread::scope(|scope| {
        let mut writer = ours.try_clone().unwrap();
        scope.spawn(move || writer.write_all(input.as_bytes()).unwrap());
        wait_until(|| *service.begun.lock().unwrap() == 1);
        thread::sleep(Duration::from_millis(20));
        assert_eq!(server.lines.count(), 0, "nothing is held while it waits");
        service.interrupt("a");
        let mut lines = BufReader::new(ours.try_clone().unwrap()).lines();
        for _ in 0..2 {
            assert_eq!(lines.next().unwrap().unwrap(), PONG);
        }
    });
    wait_until(|| server.lines.count() == 0);
    assert_eq!(server.lines.most(), LINE_LIMIT);
    service.interrupted.lock().unwrap().clear();
    ours.set_nonblocking(true).unwrap();
    let many = format!("{EXEC}\n{}", format!("{PING}\n").repeat(200_000));
    let (mut sent, mut refused) = (0, 0);
    wait_until(|| {
        match (&ours).write(&many.as_bytes()[sent..]) {
            Ok(length) => (sent, refused) = (sent + length, 0),
            Err(_) => refused += 1,
        }
        thread::sleep(Duration::from_micros(200));
        sent >= AHEAD && refused > 100
    });
    assert!((AHEAD..AHEAD + (2 << 20)).contains(&sent), "{sent}");
    service.interrupt("a");
    ours.set_nonblocking(false).unwrap();
    drop(ours);
    wait_for(&server);
}

#[test]
fn blank_lines_and_notifications_have_no_answer() {
    assert_eq!(answers("\n \r\n\n"), [""; 0]);
    assert_eq!(answers(&format!("\n{PING}\n\t\n")), [PONG]);
    let notification = "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}";
    let unknown = "{\"jsonrpc\":\"2.0\",\"method\":\"unknown\"}";
    assert_eq!(answers(&format!("{notification}\n{unknown}\n{PING}")), [PONG]);
}

#[test]
fn an_interrupt_overtakes_and_with_an_id_comes_in_its_order() {
    let interrupt = "\"method\":\"interrupt\",\"params\":{\"key\":\"a\"}}";
    let told = answers(&format!(
        "{EXEC}\n{PING}\n{{\"jsonrpc\":\"2.0\",{interrupt}\n{{\"jsonrpc\":\"2.0\",\"id\":7,{interrupt}\n"
    ));
    assert_eq!(told, [PONG, PONG, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"success\":true}}"]);
}

#[test]
fn what_was_begun_is_carried_out_though_nobody_reads() {
    let service = Arc::new(Slow::default());
    let server = server(Arc::clone(&service), LINES, ANSWERS);
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    connect(&server, theirs.try_clone().unwrap(), theirs.try_clone().unwrap());
    ours.write_all(format!("{EXEC}\n{WRITE}\n").as_bytes()).unwrap();
    drop(ours);
    // A child that another test is just starting may have the connection open for a while.
    let is_closed = || {
        let mut polled = [PollFd::new(&theirs, PollFlags::empty())];
        poll(&mut polled, Some(&Timespec::default())).unwrap();
        polled[0].revents().contains(PollFlags::HUP)
    };
    wait_until(is_closed);
    service.interrupt("a");
    wait_for(&server);
    assert_eq!(*service.begun.lock().unwrap(), 1, "the second is not begun");
}

#[test]
fn what_is_cut_off_when_the_server_stops_is_not_carried_out() {
    let service = Arc::new(Slow::default());
    let (stopping, mut stopped) = io::pipe().unwrap();
    let stop = Stop::default();
    let server =
        Arc::new(Server::new(Arc::clone(&service), stop.clone(), stopping, LINES, ANSWERS));
    let (reader, mut writer) = io::pipe().unwrap();
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    connect(&server, reader.try_clone().unwrap(), theirs);
    writer.write_all(PING.as_bytes()).unwrap();
    wait_until(|| rustix::io::ioctl_fionread(&reader).unwrap() == 0);
    stop.ask();
    stopped.write_all(&[0]).unwrap();
    wait_for(&server);
    assert_eq!(ours.read_to_end(&mut Vec::new()).unwrap(), 0);
    assert_eq!(*service.begun.lock().unwrap(), 0);
}

#[test]
fn an_output_that_does_not_wait_is_waited_for() {
    let server = server(Arc::new(Long::default()), LINES, ANSWERS);
    let (ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    connect(&server, theirs.try_clone().unwrap(), theirs);
    (&ours).write_all(format!("{READ}\n").repeat(4).as_bytes()).unwrap();
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    let answers = BufReader::new(ours).lines().map(Result::unwrap);
    assert_eq!(answers.filter(|answer| answer.len() > 1 << 20).count(), 4);
}

/// The writes that answer an input, each as a text of its own.
#[cfg(target_os = "linux")]
fn writes(input: &str) -> Vec<String> {
    use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair};
    let (reader, mut writer) = io::pipe().unwrap();
    let kind = SocketType::SEQPACKET;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
    let server = server(Arc::new(Slow::default()), LINES, ANSWERS);
    connect(&server, reader, theirs);
    thread::scope(|scope| {
        scope.spawn(move || writer.write_all(input.as_bytes()).unwrap());
        let mut all = Vec::new();
        let mut bytes = vec![0; 1 << 20];
        while let Ok((_, length @ 1..)) = recv(&ours, &mut *bytes, RecvFlags::empty()) {
            all.push(String::from_utf8(bytes[..length].to_vec()).unwrap());
        }
        wait_for(&server);
        all
    })
}

#[test]
#[cfg(target_os = "linux")]
fn answers_are_written_together_and_before_what_may_take_long() {
    let interrupt = "{\"jsonrpc\":\"2.0\",\"method\":\"interrupt\",\"params\":{\"key\":\"a\"}}";
    let input = format!("{PING}\n{PING}\n{WRITE}\n{PING}\n{EXEC}\n{interrupt}\n");
    // On a slow machine the answers may be written one by one.
    let together = (0..200).any(|_| {
        let all = writes(&input);
        assert_eq!(all.concat(), format!("{PONG}\n{PONG}\n{WRITTEN}\n{PONG}\n{PONG}\n"));
        // The answer to the command comes last, in a write of its own.
        assert_eq!(all.last().unwrap(), &format!("{PONG}\n"));
        all == [format!("{PONG}\n{PONG}\n"), format!("{WRITTEN}\n{PONG}\n"), format!("{PONG}\n")]
    });
    assert!(together, "they are never together");
}

#[test]
#[cfg(target_os = "linux")]
fn a_long_queue_is_answered_in_few_writes() {
    let few = (0..20).any(|_| {
        let all = writes(&format!("{PING}\n").repeat(10_000));
        assert_eq!(all.concat(), format!("{PONG}\n").repeat(10_000));
        all.len() < 2_000
    });
    assert!(few, "each is written by itself");
}

/// Returns a megabyte for each file that is read, and counts the requests that were begun.
#[derive(Default)]
struct Long(Mutex<usize>);

impl Service for Arc<Long> {
    fn call(&self, method: Method) -> Result<Given, RpcError> {
        *self.0.lock().unwrap() += 1;
        let length = if matches!(method, Method::ReadFile { .. }) { 1 << 20 } else { 1 };
        Ok(Given::File(FileContent { content: "x".repeat(length) }))
    }
    fn interrupt(&self, _: &str) {}
}

const READ: &str =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"read_file\",\"params\":{\"path\":\"a\"}}";

/// A client that has requested a file and has not read the answer.
fn unread(server: &Arc<Server>) -> UnixStream {
    let mut ours = client(server);
    ours.write_all(format!("{READ}\n").as_bytes()).unwrap();
    wait_until(|| (1 << 20..2 << 20).contains(&server.answers.count()));
    ours
}

fn wait_until(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "it does not come");
        thread::yield_now();
    }
}

#[test]
fn who_vanishes_with_a_long_answer_unread_gives_back_what_was_held_for_it() {
    let service = Arc::new(Long::default());
    let server = server(Arc::clone(&service), LINES, ANSWERS);
    let mut ours = unread(&server);
    // A long line after the request takes no memory that others wait for.
    let long = format!("{WRITE}{}", " ".repeat(1 << 18));
    ours.write_all(long.as_bytes()).unwrap();
    thread::sleep(Duration::from_millis(10));
    assert_eq!(server.lines.count(), 0);
    drop(ours);
    wait_for(&server);
    wait_until(|| (server.lines.count(), server.answers.count()) == (0, 0));
    assert_eq!(*service.0.lock().unwrap(), 1);
}

#[test]
fn who_does_not_read_for_a_while_gets_all_in_order_then() {
    let service = Arc::new(Long::default());
    let server = server(Arc::clone(&service), LINES, ANSWERS);
    let asked = |id| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"leave\",\"params\":{{\"key\":\"a\"}}}}\n"
        )
    };
    let more: String = (2..=100).map(asked).collect();
    let mut ours = unread(&server);
    ours.write_all(more.as_bytes()).unwrap();
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    thread::sleep(Duration::from_millis(10));
    assert_eq!(*service.0.lock().unwrap(), 1, "the next waits until the answer is read");
    let lines = BufReader::new(ours).lines().map(Result::unwrap);
    let answers: Vec<(u64, usize)> = lines
        .map(|line| {
            let answer: serde_json::Value = serde_json::from_str(&line).unwrap();
            (answer["id"].as_u64().unwrap(), answer["result"]["content"].as_str().unwrap().len())
        })
        .collect();
    let all: Vec<(u64, usize)> =
        (1..=100).map(|id| (id, if id == 1 { 1 << 20 } else { 1 })).collect();
    assert_eq!(answers, all);
    wait_for(&server);
    assert_eq!(server.answers.count(), 0);
}

#[test]
fn a_long_answer_has_its_share_before_it_is_there_and_a_commands_when_it_has_ended() {
    let ask = |method: &str, params: &str, id: &str| {
        let service = Arc::new(Long::default());
        let server = server(Arc::clone(&service), 1, 1);
        let taken = server.answers.take(1);
        let mut ours = client(&server);
        let line =
            format!("{{\"jsonrpc\":\"2.0\",{id}\"method\":\"{method}\",\"params\":{params}}}\n");
        ours.write_all(line.as_bytes()).unwrap();
        ours.shutdown(std::net::Shutdown::Write).unwrap();
        if id.is_empty() && method == "exec" {
            wait_for(&server);
            return *service.0.lock().unwrap();
        }
        wait_until(|| server.answers.waiting() == 1);
        let begun = *service.0.lock().unwrap();
        drop(taken);
        ours.read_to_end(&mut Vec::new()).unwrap();
        wait_for(&server);
        assert_eq!(*service.0.lock().unwrap(), 1);
        begun
    };
    let find = "{\"operation\":{\"type\":\"list\"}}";
    for id in ["\"id\":1,", ""] {
        assert_eq!(ask("find", find, id), 0);
        assert_eq!(ask("read_file", "{\"path\":\"a\"}", id), 0);
        assert_eq!(ask("exec", "{\"cmd\":\"a\"}", id), 1);
    }
}

#[test]
fn what_is_long_is_held_within_what_there_is_for_all_and_all_get_through() {
    /// Returns a megabyte for every request.
    struct Large;
    impl Service for Large {
        fn call(&self, _: Method) -> Result<Given, RpcError> {
            Ok(Given::File(FileContent { content: "x".repeat(1 << 20) }))
        }
        fn interrupt(&self, _: &str) {}
    }
    let asked = |method: &str, name: &str, length: usize| {
        let text = "y".repeat(length);
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{{\"{name}\":\"{text}\"}}}}\n"
        )
    };
    let long = asked("read_file", "path", 1 << 20) + &asked("exec", "cmd", 1 << 20);
    let input = (long + &asked("read_file", "path", 1)).repeat(2);
    // The last limits are smaller than a single line or answer.
    for (lines, answers) in [(40 << 20, 80 << 20), (100 << 20, 200 << 20), (1, 1)] {
        let server = server(Large, lines, answers);
        thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    let mut ours = client(&server);
                    let mut reader = ours.try_clone().unwrap();
                    let reading = thread::spawn(move || {
                        let mut output = Vec::new();
                        reader.read_to_end(&mut output).unwrap();
                        output
                    });
                    ours.write_all(input.as_bytes()).unwrap();
                    ours.shutdown(std::net::Shutdown::Write).unwrap();
                    let output = reading.join().unwrap();
                    let given = output.split_inclusive(|byte| *byte == b'\n');
                    assert_eq!(given.filter(|line| line.len() > 1 << 20).count(), 6);
                });
            }
        });
        wait_for(&server);
        for (pool, total, alone) in
            [(&server.lines, lines, LINE_LIMIT), (&server.answers, answers, 72 << 20)]
        {
            assert!((alone..=total.max(alone)).contains(&pool.most()), "{}", pool.most());
            assert_eq!(pool.count(), 0, "all is given back");
        }
    }
}
