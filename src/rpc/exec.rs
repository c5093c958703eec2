//! Commands: `exec` and `exec_code`.

use super::Served;
use super::served::describe_failure;
use crate::policy::Grant;
use crate::protocol::jsonrpc::{self, Done, ExecResult, TRUNCATED, interpreter};
use crate::protocol::{
    Capture, CommandOutput, Detail, Ending, Execution, Operation, ShellCommand, Streams,
};
use crate::text::{shell_word, visible_line};

/// The exit code of a command that did not start or was ended by a signal.
const FAILED_CODE: i32 = -1;
/// The exit code of a command that timed out, as with timeout(1).
const TIMEOUT_CODE: i32 = 124;

impl Served {
    /// Runs a shell command.
    pub(super) fn exec(&self, command: String) -> ExecResult {
        if let Err(reason) = self.check_root() {
            return not_started(&reason);
        }
        let stopped = || self.serving.stop.is_asked();
        let given = |asked| Some(self.timeout(asked));
        let mut executor = self.executor(&stopped);
        executor.timeout = &given;
        executor.network = self.network(None);
        let timeout = Some(self.serving.timeout);
        let run = ShellCommand { timeout, streams: Streams::First, ..ShellCommand::new(command) };
        let done = self.perform(executor, &Operation::Run(run), Grant::default(), &mut |_| Ok(()));
        let Done { detail, warnings } = match done {
            Ok(done) => done,
            Err(e) => return not_started(&e.to_string()),
        };
        let mut result = match detail {
            Detail::Ran(execution) => exec_result(execution),
            Detail::Failed(failure) => not_started(&describe_failure(&failure)),
            other => not_started(&format!("it came to {other:?}")),
        };
        warnings.iter().for_each(|warning| append_message(&mut result.stderr, &warning.text));
        result
    }

    /// Runs code in a given language.
    pub(super) fn exec_code(&self, lang: &str, code: &str) -> ExecResult {
        let Some((program, flag)) = interpreter(lang) else {
            let stderr = jsonrpc::shortened(format!("unsupported language: {lang}"));
            return ExecResult { exit_code: FAILED_CODE, stdout: String::new(), stderr };
        };
        if code.contains('\0') {
            return not_started("the code holds a NUL character, which no program can be given");
        }
        // The shell would report this with an exit code that looks like the command's own.
        if self.serving.runner.program(program).is_none() {
            return not_started(&format!(
                "cannot start {program}: there is no such program on the PATH of commands"
            ));
        }
        self.exec(format!("exec {program} {flag} {}", shell_word(code)))
    }
}

fn not_started(reason: &str) -> ExecResult {
    let mut stderr = String::new();
    append_message(&mut stderr, reason);
    ExecResult { exit_code: FAILED_CODE, stdout: String::new(), stderr }
}

/// Converts the result of a command.
fn exec_result(execution: Execution) -> ExecResult {
    let Execution { ending, output, .. } = execution;
    let (stdout, mut stderr) = match output {
        CommandOutput::Apart { stdout, stderr } => (text(stdout), text(stderr)),
        CommandOutput::Together(capture) => (text(capture), String::new()),
    };
    let exit_code = match &ending {
        Ending::Exited(code) => *code,
        Ending::TimedOut(_) => TIMEOUT_CODE,
        _ => FAILED_CODE,
    };
    let message = match &ending {
        Ending::Interrupted => {
            Some("ended, since the server stops; it may have run in part".to_owned())
        }
        ending => ending.in_words(),
    };
    if let Some(message) = message {
        append_message(&mut stderr, &message);
    }
    ExecResult { exit_code, stdout, stderr }
}

/// The first megabyte of a stream, with a mark if more was left out.
fn text(capture: Capture) -> String {
    let Capture { mut head, left_out, .. } = capture;
    if left_out > 0 {
        head.push_str(TRUNCATED);
    }
    head
}

/// Appends a message of deaddrop to what a command wrote.
fn append_message(stderr: &mut String, message: &str) {
    if !stderr.is_empty() && !stderr.ends_with('\n') {
        stderr.push('\n');
    }
    stderr.push_str(&format!("deaddrop: {}\n", visible_line(message)));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn of(ending: Ending, stderr: &str) -> (i32, String) {
        let capture = |head: &str| Capture { head: head.to_owned(), ..Capture::default() };
        let output = CommandOutput::Apart { stdout: capture("out"), stderr: capture(stderr) };
        let duration = Duration::ZERO;
        let result = exec_result(Execution { command: String::new(), ending, output, duration });
        assert_eq!(result.stdout, "out");
        (result.exit_code, result.stderr)
    }

    #[test]
    fn every_end_has_its_exit_code_and_a_line_where_it_is_not_the_commands_own() {
        assert_eq!(of(Ending::Exited(0), ""), (0, String::new()));
        assert_eq!(of(Ending::Exited(255), "said"), (255, "said".to_owned()));
        let (code, told) = of(Ending::Signalled(9), "");
        assert_eq!((code, &*told), (-1, "deaddrop: ended by signal 9\n"));
        let (code, told) = of(Ending::TimedOut(Duration::from_millis(1_500)), "half a line");
        assert!(told.starts_with("half a line\ndeaddrop: timed out after 1.5 s;"), "{told}");
        assert_eq!((code, told.lines().count()), (124, 2));
        let (code, told) = of(Ending::Interrupted, "a line\n");
        assert!(told.starts_with("a line\ndeaddrop: ended, since the server stops;"), "{told}");
        assert_eq!(code, -1);
        for ending in
            [Ending::Lost, Ending::Stopped("x\ny".to_owned()), Ending::NotStarted("z".to_owned())]
        {
            let (code, told) = of(ending.clone(), "");
            assert!(told.starts_with("deaddrop: ") && told.lines().count() == 1, "{told}");
            assert_eq!(code, -1, "{ending:?}");
        }
    }

    #[test]
    fn a_cut_stream_ends_in_the_mark_and_lines_of_ours_come_after_it() {
        let cut = Capture { head: "x".to_owned(), left_out: 1, ..Capture::default() };
        assert_eq!(text(cut.clone()), "x\n... [output truncated]");
        let output = CommandOutput::Apart { stdout: cut.clone(), stderr: cut };
        let (command, ending) = (String::new(), Ending::Signalled(15));
        let result = exec_result(Execution { command, ending, output, duration: Duration::ZERO });
        let told = "x\n... [output truncated]\ndeaddrop: ended by signal 15\n";
        assert_eq!(result.stderr, told);
        assert_eq!(result.stdout, "x\n... [output truncated]");
    }
}
