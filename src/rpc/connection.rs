//! One connection: a thread reads ahead, another carries out what was asked for, in order, and
//! answers. Only an interrupt overtakes. While the other has nothing to do, the thread that reads does
//! what is quickly done by itself (see [`super::desk`]): nobody is woken for it.

use std::io::{self, Read, Write};
use std::sync::Arc;

use super::budget::{Budget, Need, Share, need};
use super::desk::{Answers, Desk, Way, may_wait, quick};
use super::line::{Line, Lines};
use super::queue::Queue;
use super::{Given, Service};
use crate::protocol::jsonrpc::{self, LINE_LIMIT, Method, RpcError, connected, connects_to};

/// An interrupt that overtakes is no longer, in bytes: nobody looks through long lines twice. A
/// longer one comes in its order.
const INTERRUPT_LIMIT: usize = 4096;
const INTERRUPT: &[u8] = b"interrupt";

/// Reads ahead until the end of the input, until who wrote is gone, or until no more is wanted. At a
/// desk, what is quickly done is done on the way.
pub(super) fn read(
    input: impl Read,
    queue: &Queue,
    service: &dyn Service,
    mut desk: Option<Desk<'_>>,
) {
    let mut lines = Lines::new(input, LINE_LIMIT, &queue.budgets.lines);
    let mut first = true;
    loop {
        if let Some(desk) = &mut desk
            && !lines.has_next()
            && desk.hand_out().is_err()
        {
            return queue.close();
        }
        match lines.next() {
            Ok(None) => return queue.end(),
            // Nobody is there to be answered.
            Err(_) => return queue.close(),
            Ok(Some(line)) => {
                // Whoever carries it out looks for CONNECT in the first line, whatever that is.
                if let (false, Line::Whole(line)) = (first, &line) {
                    if jsonrpc::is_blank(line) {
                        continue;
                    }
                    if let Some(key) = interrupts(line) {
                        service.interrupt(&key);
                        continue;
                    }
                    match desk.as_mut().map(|desk| desk.take(line)) {
                        None | Some(Ok(Way::Queue)) => {}
                        Some(Ok(Way::Done)) => continue,
                        Some(Ok(Way::Over)) => return,
                        Some(Err(_)) => return queue.close(),
                    }
                }
                first = false;
                if !queue.push(line, lines.take_share()) {
                    return;
                }
            }
        }
    }
}

/// The key of the step that a notification wants ended.
fn interrupts(line: &[u8]) -> Option<String> {
    if line.len() > INTERRUPT_LIMIT || memchr::memmem::find(line, INTERRUPT).is_none() {
        return None;
    }
    let request = jsonrpc::read(line).ok().filter(|request| request.id.is_none())?;
    match Method::of(request) {
        Ok(Method::Interrupt(key)) => Some(key.key),
        _ => None,
    }
}

/// Carries out what was asked for and answers it, until there is no more. `within` is told true
/// before each call and false after it.
///
/// # Errors
/// Nobody reads the answers any more.
pub(super) fn work(
    queue: &Queue,
    mut output: impl Write,
    service: &dyn Service,
    within: &dyn Fn(bool),
) -> io::Result<()> {
    let mut first = true;
    let mut answers = Answers::default();
    while let Some(line) = queue.pop() {
        let port = match &line {
            Line::Whole(line) if first => connects_to(line),
            _ => None,
        };
        first = false;
        let plain = match &line {
            Line::Whole(line) => quick(line),
            _ => None,
        };
        if let Some((id, method)) = plain {
            let budget = &queue.budgets.answers;
            let mut share = match need(&method) {
                Need::Before(bytes) => Some(match budget.try_take(bytes) {
                    Some(share) => share,
                    None => {
                        put(&mut answers, &mut output)?;
                        budget.take(bytes)
                    }
                }),
                _ => None,
            };
            if may_wait(&method) {
                put(&mut answers, &mut output)?;
            }
            within(true);
            let given = service.call(method);
            within(false);
            answers.add(id, given.as_ref());
            drop(given);
            if let Some(share) = &mut share {
                share.keep(answers.len());
            }
            if answers.are_due() || !queue.has_many() {
                put(&mut answers, &mut output)?;
            }
            continue;
        }
        put(&mut answers, &mut output)?;
        let answer = match (port, line) {
            (Some(port), _) => Some((connected(port).into_bytes(), None)),
            (None, Line::TooLong) => {
                let told = format!(
                    "invalid request: the line is longer than {LINE_LIMIT} bytes (32 MiB), and nothing of it was kept"
                );
                Some((refusal(None, &RpcError::new(RpcError::REQUEST, told)).into_bytes(), None))
            }
            (None, Line::Answers(answers)) => Some((answers, None)),
            (None, Line::Whole(line)) if jsonrpc::is_blank(&line) => None,
            (None, Line::Whole(line)) => {
                let answered = answer(line, service, within, &queue.budgets.answers);
                // It may take long until somebody reads that.
                queue.release();
                answered
            }
        };
        if let Some((answer, _share)) = answer {
            output.write_all(&answer)?;
            output.flush()?;
        }
    }
    put(&mut answers, &mut output)
}

fn put(answers: &mut Answers, output: &mut impl Write) -> io::Result<()> {
    if answers.is_empty() {
        return Ok(());
    }
    answers.give(|lines| output.write_all(lines))?;
    output.flush()
}

/// Carries out a line; what it is answered with, if it is, and what that takes of the budget.
fn answer(
    line: Vec<u8>,
    service: &dyn Service,
    within: &dyn Fn(bool),
    budget: &Arc<Budget>,
) -> Option<(Vec<u8>, Option<Share>)> {
    let request = match jsonrpc::read(&line) {
        Ok(request) => request,
        Err(refused) => {
            return Some((refusal(refused.id, &refused.fault).into_bytes(), None));
        }
    };
    // It can be long, and what is asked for takes its time.
    drop(line);
    let id = request.id;
    let method = Method::of(request);
    let need = method.as_ref().map_or(Need::Nothing, need);
    let mut share = match need {
        Need::Before(bytes) => Some(budget.take(bytes)),
        Need::After(_) | Need::Nothing => None,
    };
    within(true);
    let given = method.and_then(|method| service.call(method));
    within(false);
    id?;
    if let Need::After(bytes) = need {
        share = Some(budget.take(bytes));
    }
    let answer = jsonrpc::answer(id, given.as_ref()).into_bytes();
    if let Some(share) = &mut share {
        share.keep(answer.len());
    }
    Some((answer, share))
}

fn refusal(id: Option<u64>, fault: &RpcError) -> String {
    jsonrpc::answer::<Given>(id, Err(fault))
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};
    use std::thread;
    use std::time::Duration;

    use super::super::budget::Budgets;
    use super::*;
    use crate::protocol::jsonrpc::{FileContent, Pong, Written};

    /// So long somebody waits for what must happen.
    const LONG: Duration = Duration::from_secs(20);

    /// Answers pings; a command lasts until it is interrupted.
    #[derive(Default)]
    struct Slow {
        interrupted: Mutex<Vec<String>>,
        changed: Condvar,
    }

    impl Service for Slow {
        fn call(&self, method: Method) -> Result<Given, RpcError> {
            match method {
                Method::Exec(exec) => {
                    let goes_on = |keys: &mut Vec<String>| !keys.contains(&exec.cmd);
                    let keys = self.interrupted.lock().unwrap();
                    let waited = self.changed.wait_timeout_while(keys, LONG, goes_on).unwrap();
                    assert!(!waited.1.timed_out(), "nobody interrupts {}", exec.cmd);
                }
                Method::Interrupt(key) => {
                    self.interrupt(&key.key);
                    return Ok(Given::Written(Written { success: true }));
                }
                _ => {}
            }
            Ok(Given::Pong(Pong { pong: true }))
        }

        fn interrupt(&self, key: &str) {
            self.interrupted.lock().unwrap().push(key.to_owned());
            self.changed.notify_all();
        }
    }

    fn answers(input: &str) -> Vec<String> {
        let (service, queue, mut output) = (Slow::default(), Queue::default(), Vec::new());
        thread::scope(|scope| {
            scope.spawn(|| read(input.as_bytes(), &queue, &service, None));
            work(&queue, &mut output, &service, &|_| ()).unwrap();
        });
        String::from_utf8(output).unwrap().lines().map(str::to_owned).collect()
    }

    const PONG: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"pong\":true}}";
    const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";

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
    fn blank_lines_and_notifications_have_no_answer() {
        assert_eq!(answers("\n \r\n\n"), [""; 0]);
        assert_eq!(answers(&format!("\n{PING}\n\t\n")), [PONG]);
        let notification = "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}";
        let unknown = "{\"jsonrpc\":\"2.0\",\"method\":\"unknown\"}";
        assert_eq!(answers(&format!("{notification}\n{unknown}\n{PING}")), [PONG]);
    }

    #[test]
    fn an_interrupt_overtakes_and_with_an_id_comes_in_its_order() {
        let exec = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"exec\",\"params\":{\"cmd\":\"a\"}}";
        let interrupt = "\"method\":\"interrupt\",\"params\":{\"key\":\"a\"}}";
        let told = answers(&format!(
            "{exec}\n{PING}\n{{\"jsonrpc\":\"2.0\",{interrupt}\n{{\"jsonrpc\":\"2.0\",\"id\":7,{interrupt}\n"
        ));
        assert_eq!(
            told,
            [PONG, PONG, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"success\":true}}"]
        );
    }

    #[test]
    fn what_was_begun_is_carried_out_though_nobody_reads() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (service, queue) = (Slow::default(), Queue::default());
        let calls = Mutex::new(Vec::new());
        read(format!("{PING}\n{PING}\n").as_bytes(), &queue, &service, None);
        let told = work(&queue, Gone, &service, &|within| calls.lock().unwrap().push(within));
        assert_eq!(told.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(*calls.lock().unwrap(), [true, false], "the second is not begun");
    }

    #[test]
    fn a_long_queue_is_answered_in_few_writes() {
        #[derive(Default)]
        struct Counting(Vec<u8>, usize);
        impl Write for Counting {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.1 += 1;
                self.0.write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (service, queue, mut output) = (Slow::default(), Queue::default(), Counting::default());
        read(format!("{PING}\n").repeat(10_000).as_bytes(), &queue, &service, None);
        work(&queue, &mut output, &service, &|_| ()).unwrap();
        assert_eq!(output.0, format!("{PONG}\n").repeat(10_000).into_bytes());
        // On a slow machine one each millisecond.
        assert!(output.1 < 2_000, "{}", output.1);
    }

    #[test]
    fn what_is_long_is_held_within_what_there_is_for_all_and_all_get_through() {
        /// Gives a megabyte, whatever is asked for.
        struct Long;
        impl Service for Long {
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
        // The last of them is less than a single line or answer may need.
        for (lines, answers) in [(40 << 20, 80 << 20), (100 << 20, 200 << 20), (1, 1)] {
            let budgets = Budgets::new(lines, answers);
            thread::scope(|scope| {
                for _ in 0..6 {
                    scope.spawn(|| {
                        let (queue, mut output) = (Queue::of(budgets.clone()), Vec::new());
                        thread::scope(|scope| {
                            scope.spawn(|| read(input.as_bytes(), &queue, &Long, None));
                            work(&queue, &mut output, &Long, &|_| ()).unwrap();
                        });
                        let given = output.split_inclusive(|byte| *byte == b'\n');
                        assert_eq!(given.filter(|line| line.len() > 1 << 20).count(), 6);
                    });
                }
            });
            for (budget, total, alone) in
                [(&budgets.lines, lines, LINE_LIMIT), (&budgets.answers, answers, 72 << 20)]
            {
                assert!((alone..=total.max(alone)).contains(&budget.most()), "{}", budget.most());
                assert_eq!(budget.now(), (0, 0), "all is given back");
            }
        }
    }
}
