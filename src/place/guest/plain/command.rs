//! A command of a reply as a script for a plain agent, and what the agent's answer says of it.

use std::time::Duration;

use super::super::sane;
use crate::protocol::jsonrpc::{ExecResult, STREAM_LIMIT, TRUNCATED};
use crate::protocol::{
    Capture, Ending, Execution, Output, ShellCommand, Streams, Warning, WarningKind,
};
use crate::text::shell_word;

/// So long a command is waited for at least.
pub(super) const LEAST: Duration = Duration::from_secs(90);

/// The first line on standard error of a script that was begun.
const BEGUN: &str = "deaddrop: begun\n";
/// What `timeout` exits with where it ended a command: asked to, or killed.
const ENDED: [i32; 2] = [124, 137];

/// Why the shell can be given no variable of such a name.
pub(super) fn fault_of_names(run: &ShellCommand) -> Option<String> {
    let is_name = |name: &str| {
        !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let name = run.env.keys().find(|name| !is_name(name))?;
    Some(format!(
        "{} is no name of a variable that a shell takes, through which this guest gives them: letters, digits and '_'",
        crate::text::named(name)
    ))
}

/// What runs the command in that folder, a word of the shell. It gets `given` where the guest has a
/// `timeout`, and else what its agent gives.
pub(super) fn script(run: &ShellCommand, folder: &str, given: Duration) -> String {
    let env = run.env.iter().map(|(name, value)| format!("export {name}={}\n", shell_word(value)));
    format!(
        "exec </dev/null
cd {folder} || exit 1
printf '{}\\n' >&2
set -- /bin/sh -c {}
deaddrop_limit=$(command -v timeout) && \"$deaddrop_limit\" -k 1 1 true 2>/dev/null &&
  set -- \"$deaddrop_limit\" -k 1 {} \"$@\"
{}\"$@\"
exit $?
",
        BEGUN.trim_end(),
        shell_word(&run.command),
        // Some take whole seconds only, and 0 would be no end.
        given.as_secs_f64().ceil().max(1.0),
        env.collect::<String>(),
    )
}

/// What a command came to that was given and took so long, with what is to be told beside it.
pub(super) fn execution(
    run: &ShellCommand,
    ran: ExecResult,
    took: Duration,
    given: Duration,
    output_limit: usize,
) -> (Execution, Vec<Warning>) {
    let ExecResult { exit_code, stdout, stderr } = ran;
    let (begun, stderr) = match stderr.strip_prefix(BEGUN) {
        Some(rest) => (true, rest.to_owned()),
        None => (false, stderr),
    };
    let mut noticed = Vec::new();
    let mut notice = |told: String| noticed.push(Warning::new(WarningKind::Timeout, told));
    let (asked, given_s) = (run.timeout.filter(|asked| *asked > given), given.as_secs_f64());
    let ending = match exit_code {
        code if ENDED.contains(&code) && begun && took >= given => {
            notice("it was ended by the guest's `timeout`: what it put into a process group of its own may still run".to_owned());
            noticed.extend(asked.and_then(|asked| crate::place::shorter_than_asked(given, asked)));
            Ending::TimedOut(given)
        }
        ..0 if begun => {
            notice("the guest's agent gives no exit code for it: a signal ended it, or the agent's own deadline".to_owned());
            Ending::Lost
        }
        ..0 => Ending::NotStarted(match stderr.trim() {
            "" => "the guest's agent could not start it, and does not say why".to_owned(),
            said => format!("the guest's agent could not start it: {}", sane::line(said)),
        }),
        code => {
            if took > given + Duration::from_secs(2) {
                notice(format!(
                    "it had {given_s} s and took {:.1} s: the guest has no `timeout`, and its agent a deadline of its own",
                    took.as_secs_f64()
                ));
            }
            Ending::Exited(code)
        }
    };
    let output = output(run.streams, stdout, stderr, output_limit);
    (Execution { command: run.command.clone(), ending, output, duration: took }, noticed)
}

fn output(streams: Streams, mut stdout: String, stderr: String, limit: usize) -> Output {
    let whole = |head: String| Capture { head, ..Capture::default() };
    // An agent's own word on what it cut is not to fall to a cut here.
    let room = STREAM_LIMIT + TRUNCATED.len();
    let apart = |text: String| match streams {
        Streams::First => first(text, room),
        _ => whole(text).within(room),
    };
    match streams {
        Streams::Together => {
            if !stdout.is_empty() && !stdout.ends_with('\n') && !stderr.is_empty() {
                stdout.push('\n');
            }
            Output::Together(whole(stdout + &stderr).within(limit))
        }
        Streams::Apart | Streams::First => {
            Output::Apart { stdout: apart(stdout), stderr: apart(stderr) }
        }
    }
}

/// The first characters.
fn first(mut text: String, limit: usize) -> Capture {
    let Some((end, _)) = text.char_indices().nth(limit) else {
        return Capture { head: text, ..Capture::default() };
    };
    let left_out = text[end..].chars().count() as u64;
    text.truncate(end);
    Capture { head: text, left_out, ..Capture::default() }
}
