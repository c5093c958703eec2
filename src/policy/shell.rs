//! The policy's decision on a command line: the strictest of the decisions on its commands.

use super::decision::{Ask, Grant, Verdict};
use super::git;
use super::patterns::{Match, allows, match_pattern};
use super::reading::{self, ParsedLine, Simple};
use crate::protocol::{ShellCommand, operations::NOT_ALLOWED};
use crate::settings::{Policy, ShellPolicy};
use crate::text::{first_of, visible_line};

pub(super) const ENABLED: &str = "shell.enabled";
pub(super) const BLOCKED: &str = "shell.blockedCommands";
pub(super) const APPROVAL: &str = "shell.approvalRequired";
pub(super) const ALLOWED: &str = "shell.allowedCommands";
pub(super) const UNREADABLE: &str = "shell.unreadable";
/// The rule that git needs approval to write to a repository.
pub const REPOSITORY: &str = "sandbox.repository";
/// What happens to a new repository that a command creates in the workspace.
pub const NEW_REPOSITORY: &str = "deaddrop moves it to quarantine after the command";

/// Builtins that start no other program. Like `if`, they need not be in the list of allowed commands.
const BUILTINS: [&str; 26] = [
    ":", "[", "[[", "break", "cd", "continue", "declare", "exec", "exit", "export", "false",
    "local", "popd", "pushd", "readonly", "return", "set", "shift", "test", "times", "true",
    "typeset", "ulimit", "umask", "unset", "wait",
];

/// The pattern in `blocked` or `approval` that matches every command.
pub(super) const EVERY: &str = "*";
/// The most variables of a command that a question lists.
const MAX_NAMES: usize = 10;

/// A decision and its explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The decision on the whole line.
    pub decision: Verdict,
    /// The commands in the line, each with its own decision.
    pub commands: Vec<(Simple, Verdict)>,
    /// What cannot be determined from the text.
    pub unreadable: Vec<String>,
}

/// Decides on a command line. `guarded` means that commands cannot write protected names, so git cannot write to its
/// repository without the person's approval.
pub fn command(policy: &Policy, command: &str, guarded: bool) -> Verdict {
    run(policy, &ShellCommand::new(command), guarded)
}

/// Decides on a command operation. A variable that changes the meaning of the line counts as if the line set it. A
/// question also mentions the folder and the variables.
pub fn run(policy: &Policy, run: &ShellCommand, guarded: bool) -> Verdict {
    match explain(policy, run, guarded).decision {
        Verdict::Ask(ask) => {
            Verdict::Ask(Ask { reason: ask.reason + &folder_and_variables(run), ..ask })
        }
        decision => decision,
    }
}

/// Describes the folder and variables of a command, unless they are the default.
fn folder_and_variables(run: &ShellCommand) -> String {
    let mut text = String::new();
    if let Some(cwd) = &run.cwd {
        text += &format!("; it runs in '{}'", visible_line(cwd.as_str()));
    }
    if !run.env.is_empty() {
        let names = run.env.keys().map(|name| visible_line(name));
        text += &format!("; it sets {}", first_of(names, MAX_NAMES, run.env.len()));
    }
    text
}

/// Decides on a command operation, and on each command in the line separately.
pub fn explain(policy: &Policy, run: &ShellCommand, guarded: bool) -> Explanation {
    let (shell, command) = (&policy.shell, &*run.command);
    let variables = run.env.keys().map(String::as_str);
    let ParsedLine { commands, unreadable, is_partial } = reading::read_with(command, variables);
    let judged = |simple: Simple| {
        let decision = decide_simple(shell, &simple);
        (simple, decision)
    };
    let commands: Vec<(Simple, Verdict)> = commands.into_iter().map(judged).collect();
    let decisions = commands.iter().map(|(_, decision)| decision.clone());
    let of_lists = decisions.fold(decide_texts(shell, command), Verdict::stricter);
    let unread = decide_unreadable(shell, unreadable.first(), is_partial);
    let mut decision = match decide_every(shell) {
        Verdict::Allow => of_lists.stricter(unread),
        // A line without a command can still write a file by redirection.
        Verdict::Ask(every) => unread.stricter(of_lists).stricter(Verdict::Ask(every)),
        denied @ Verdict::Deny(_) => denied,
    };
    if let Verdict::Ask(ask) = &mut decision {
        let may_last = |(_, one): &(Simple, Verdict)| one.rule().is_none_or(|it| it == APPROVAL);
        ask.always = unreadable.is_empty() && commands.iter().all(may_last);
    }
    let hidden = || (is_partial && git::may_write(command)).then_some("");
    let writes = || commands.iter().find_map(|(one, _)| git::writes(one)).or_else(hidden);
    if guarded && let Some(subcommand) = writes() {
        decision = ask_for_repository(decision, subcommand);
    }
    Explanation { decision, commands, unreadable }
}

/// Adds to a decision that git needs approval to write to its repository.
fn ask_for_repository(decision: Verdict, subcommand: &str) -> Verdict {
    let opens = Grant { repository: true, ..Grant::default() };
    let why = if subcommand.is_empty() {
        "a part of it that cannot be read may write to the repository".to_owned()
    } else if matches!(subcommand, "init" | "clone") {
        format!("'git {subcommand}' makes a repository: if new in the workspace, {NEW_REPOSITORY}")
    } else {
        format!("'git {subcommand}' writes to the repository")
    };
    let (reason, policy) = match decision {
        Verdict::Deny(_) => return decision,
        Verdict::Allow => (why, REPOSITORY.to_owned()),
        Verdict::Ask(ask) => (format!("{}; {why}", ask.reason), ask.policy),
    };
    Verdict::Ask(Ask { reason, policy, opens, always: false })
}

/// Decides on a line that cannot be read, for this reason. The unread part of a partial line may contain anything.
fn decide_unreadable(shell: &ShellPolicy, why: Option<&String>, is_partial: bool) -> Verdict {
    let Some(why) = why else { return Verdict::Allow };
    let reason = format!("Command cannot be read: {why}");
    let may_deny = !shell.allowed.is_empty() || !shell.blocked.is_empty();
    if is_partial && may_deny {
        let instead = "Use plain words, quotes and operators, or put it into a script";
        Verdict::deny(UNREADABLE, reason, Some(instead.to_owned()))
    } else if may_deny || !shell.approval.is_empty() {
        Verdict::ask(UNREADABLE, reason)
    } else {
        Verdict::Allow
    }
}

/// The decision that applies to every command, from `enabled` and the pattern `*`.
fn decide_every(shell: &ShellPolicy) -> Verdict {
    let has_every = |list: &[String]| list.iter().any(|pattern| pattern == EVERY);
    if !shell.enabled {
        Verdict::deny(ENABLED, "Shell commands are disabled", None)
    } else if has_every(&shell.blocked) {
        Verdict::deny(BLOCKED, "Every command is blocked", None)
    } else if has_every(&shell.approval) {
        Verdict::ask(APPROVAL, "Every command requires approval")
    } else {
        Verdict::Allow
    }
}

/// Decides on a line according to the texts in it.
fn decide_texts(shell: &ShellPolicy, line: &str) -> Verdict {
    let found = |list: &[String]| list.iter().find(|text| line.contains(&***text)).cloned();
    if let Some(text) = found(&shell.blocked_texts) {
        let suggestion = Some(format!("Remove {text} from command"));
        Verdict::deny(BLOCKED, format!("Command contains '{text}', which is blocked"), suggestion)
    } else if let Some(text) = found(&shell.approval_texts) {
        Verdict::ask(APPROVAL, format!("Command contains '{text}', which requires approval"))
    } else {
        Verdict::Allow
    }
}

/// Decides on one command according to the lists.
fn decide_simple(shell: &ShellPolicy, simple: &Simple) -> Verdict {
    let every = decide_every(shell);
    if matches!(every, Verdict::Deny(_)) {
        return every;
    }
    let best = |list: &[String]| {
        let found = list.iter().map(|pattern| (match_pattern(pattern, simple), pattern.clone()));
        // If several match equally well, the first one counts.
        found.reduce(|best, next| if next.0 > best.0 { next } else { best })
    };
    let blocked = best(&shell.blocked);
    if let Some((Match::Yes, pattern)) = &blocked {
        return Verdict::deny(
            BLOCKED,
            format!("Command '{pattern}' is blocked"),
            Some(format!("Remove {pattern} from command")),
        );
    }
    if let Some((Match::Yes | Match::Perhaps, pattern)) = best(&shell.approval) {
        let is_rm = pattern.split_whitespace().next() == Some("rm");
        return Verdict::ask(
            APPROVAL,
            if is_rm {
                "Destructive command requires approval".to_owned()
            } else {
                format!("Command '{pattern}' requires approval")
            },
        );
    }
    if let Some((Match::Perhaps, pattern)) = blocked {
        let reason = format!("Command cannot be read: it may be '{pattern}', which is blocked");
        return Verdict::ask(UNREADABLE, reason);
    }
    if every != Verdict::Allow {
        return every;
    }
    if simple.words[0].literal().is_none() {
        // Such a program is reported as unreadable.
        return Verdict::Allow;
    }
    decide_allowed(shell, simple)
}

fn decide_allowed(shell: &ShellPolicy, simple: &Simple) -> Verdict {
    let program = &*simple.words[0].text;
    if shell.allowed.is_empty()
        || simple.wrapper
        || BUILTINS.contains(&program)
        || shell.allowed.iter().any(|pattern| allows(pattern, simple))
    {
        return Verdict::Allow;
    }
    Verdict::deny(
        ALLOWED,
        format!("{NOT_ALLOWED}: {}", visible_line(program)),
        Some(format!("Allowed commands: {}", shell.allowed.join(", "))),
    )
}
