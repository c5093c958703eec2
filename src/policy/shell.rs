//! What a policy says of a command line: the strictest of what it says of its commands.

use super::decision::{Ask, Decision, Opens};
use super::git;
use super::patterns::{Match, allows, means};
use super::reading::{self, Reading, Simple};
use crate::protocol::{ShellCommand, operations::NOT_ALLOWED};
use crate::settings::{Policy, ShellPolicy};
use crate::text::{first_of, visible_line};

pub(super) const ENABLED: &str = "shell.enabled";
pub(super) const BLOCKED: &str = "shell.blockedCommands";
pub(super) const APPROVAL: &str = "shell.approvalRequired";
pub(super) const ALLOWED: &str = "shell.allowedCommands";
pub(super) const UNREADABLE: &str = "shell.unreadable";
/// The rule that has git ask before it writes to a repository.
pub const REPOSITORY: &str = "sandbox.repository";
/// What happens to a repository that a command creates in the workspace.
pub const NEW_REPOSITORY: &str = "deaddrop moves it to quarantine after the command";

/// What the shell does by itself, as it does `if`: it starts nothing that the list could name.
const STEERING: [&str; 26] = [
    ":", "[", "[[", "break", "cd", "continue", "declare", "exec", "exit", "export", "false",
    "local", "popd", "pushd", "readonly", "return", "set", "shift", "test", "times", "true",
    "typeset", "ulimit", "umask", "unset", "wait",
];

/// The pattern that means every command, of those that are blocked or asked about.
pub(super) const EVERY: &str = "*";
/// How many variables of an operation are named to the person who is asked.
const NAMED: usize = 10;

/// A decision, and how it came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The decision on the whole line.
    pub decision: Decision,
    /// The commands in the line, each with the decision on it alone.
    pub commands: Vec<(Simple, Decision)>,
    /// What cannot be told from the text.
    pub unreadable: Vec<String>,
}

/// What the policy says of a command line. `guarded` says that commands are kept from protected
/// names, so that git cannot write to its repository unless the person opens it.
pub fn command(policy: &Policy, command: &str, guarded: bool) -> Decision {
    run(policy, &ShellCommand::new(command), guarded)
}

/// The same of a command with all that an operation says of it: variables that change what the line
/// means count as if they stood in it, and the person who is asked is told of what else there is.
pub fn run(policy: &Policy, run: &ShellCommand, guarded: bool) -> Decision {
    match explain(policy, run, guarded).decision {
        Decision::Ask(ask) => Decision::Ask(Ask { reason: ask.reason + &beside(run), ..ask }),
        decision => decision,
    }
}

/// Where a command is to run and with what variables, if that is not as always.
fn beside(run: &ShellCommand) -> String {
    let mut said = String::new();
    if let Some(cwd) = &run.cwd {
        said += &format!("; it runs in '{}'", visible_line(cwd.as_str()));
    }
    if !run.env.is_empty() {
        let names = run.env.keys().map(|name| visible_line(name));
        said += &format!("; it sets {}", first_of(names, NAMED, run.env.len()));
    }
    said
}

/// The same with what it says of each command in the line.
pub fn explain(policy: &Policy, run: &ShellCommand, guarded: bool) -> Explained {
    let (shell, command) = (&policy.shell, &*run.command);
    let variables = run.env.keys().map(String::as_str);
    let Reading { commands, unreadable, is_partial } = reading::read_with(command, variables);
    let judged = |simple: Simple| {
        let decision = of_simple(shell, &simple);
        (simple, decision)
    };
    let commands: Vec<(Simple, Decision)> = commands.into_iter().map(judged).collect();
    let decisions = commands.iter().map(|(_, decision)| decision.clone());
    let of_lists = decisions.fold(of_texts(shell, command), Decision::stricter);
    let unread = of_unread(shell, unreadable.first(), is_partial);
    let mut decision = match of_every(shell) {
        Decision::Allow => of_lists.stricter(unread),
        // Where there is no command, a redirection may still write a file.
        Decision::Ask(every) => unread.stricter(of_lists).stricter(Decision::Ask(every)),
        denied @ Decision::Deny(_) => denied,
    };
    if let Decision::Ask(ask) = &mut decision {
        let may_last = |(_, one): &(Simple, Decision)| one.rule().is_none_or(|it| it == APPROVAL);
        ask.always = unreadable.is_empty() && commands.iter().all(may_last);
    }
    let hidden = || (is_partial && git::may_write(command)).then_some("");
    let writes = || commands.iter().find_map(|(one, _)| git::writes(one)).or_else(hidden);
    if guarded && let Some(subcommand) = writes() {
        decision = opened(decision, subcommand);
    }
    Explained { decision, commands, unreadable }
}

/// The same decision where git would write to its repository.
fn opened(decision: Decision, subcommand: &str) -> Decision {
    let opens = Opens { repository: true, ..Opens::default() };
    let why = if subcommand.is_empty() {
        "a part of it that cannot be read may write to the repository".to_owned()
    } else if matches!(subcommand, "init" | "clone") {
        format!("'git {subcommand}' makes a repository: if new in the workspace, {NEW_REPOSITORY}")
    } else {
        format!("'git {subcommand}' writes to the repository")
    };
    let (reason, policy) = match decision {
        Decision::Deny(_) => return decision,
        Decision::Allow => (why, REPOSITORY.to_owned()),
        Decision::Ask(ask) => (format!("{}; {why}", ask.reason), ask.policy),
    };
    Decision::Ask(Ask { reason, policy, opens, always: false })
}

/// What the lists say of a line that cannot be read, for this reason. Anything may be in what is not read at all.
fn of_unread(shell: &ShellPolicy, why: Option<&String>, is_partial: bool) -> Decision {
    let Some(why) = why else { return Decision::Allow };
    let reason = format!("Command cannot be read: {why}");
    let may_deny = !shell.allowed.is_empty() || !shell.blocked.is_empty();
    if is_partial && may_deny {
        let instead = "Use plain words, quotes and operators, or put it into a script";
        Decision::deny(UNREADABLE, reason, Some(instead.to_owned()))
    } else if may_deny || !shell.approval.is_empty() {
        Decision::ask(UNREADABLE, reason)
    } else {
        Decision::Allow
    }
}

/// What is said of every command, by the lists' pattern `*`.
fn of_every(shell: &ShellPolicy) -> Decision {
    let holds = |list: &[String]| list.iter().any(|pattern| pattern == EVERY);
    if !shell.enabled {
        Decision::deny(ENABLED, "Shell commands are disabled", None)
    } else if holds(&shell.blocked) {
        Decision::deny(BLOCKED, "Every command is blocked", None)
    } else if holds(&shell.approval) {
        Decision::ask(APPROVAL, "Every command requires approval")
    } else {
        Decision::Allow
    }
}

/// What is said of a line by the texts that it contains.
fn of_texts(shell: &ShellPolicy, line: &str) -> Decision {
    let found = |list: &[String]| list.iter().find(|text| line.contains(&***text)).cloned();
    if let Some(text) = found(&shell.blocked_texts) {
        let suggestion = Some(format!("Remove {text} from command"));
        Decision::deny(BLOCKED, format!("Command contains '{text}', which is blocked"), suggestion)
    } else if let Some(text) = found(&shell.approval_texts) {
        Decision::ask(APPROVAL, format!("Command contains '{text}', which requires approval"))
    } else {
        Decision::Allow
    }
}

/// What the lists say of one command.
fn of_simple(shell: &ShellPolicy, simple: &Simple) -> Decision {
    let every = of_every(shell);
    if matches!(every, Decision::Deny(_)) {
        return every;
    }
    let best = |list: &[String]| {
        let found = list.iter().map(|pattern| (means(pattern, simple), pattern.clone()));
        // The first of those that fit best.
        found.reduce(|best, next| if next.0 > best.0 { next } else { best })
    };
    let blocked = best(&shell.blocked);
    if let Some((Match::Yes, pattern)) = &blocked {
        return Decision::deny(
            BLOCKED,
            format!("Command '{pattern}' is blocked"),
            Some(format!("Remove {pattern} from command")),
        );
    }
    if let Some((Match::Yes | Match::Perhaps, pattern)) = best(&shell.approval) {
        let is_rm = pattern.split_whitespace().next() == Some("rm");
        return Decision::ask(
            APPROVAL,
            if is_rm {
                "Destructive command requires approval".to_owned()
            } else {
                format!("Command '{pattern}' requires approval")
            },
        );
    }
    if let Some((Match::Perhaps, pattern)) = blocked {
        let reason = format!("Command cannot be read: whether it is '{pattern}', which is blocked");
        return Decision::ask(UNREADABLE, reason);
    }
    if every != Decision::Allow {
        return every;
    }
    if simple.words[0].literal().is_none() {
        // Told as what cannot be read.
        return Decision::Allow;
    }
    of_allowed(shell, simple)
}

fn of_allowed(shell: &ShellPolicy, simple: &Simple) -> Decision {
    let program = &*simple.words[0].text;
    if shell.allowed.is_empty()
        || simple.wrapper
        || STEERING.contains(&program)
        || shell.allowed.iter().any(|pattern| allows(pattern, simple))
    {
        return Decision::Allow;
    }
    Decision::deny(
        ALLOWED,
        format!("{NOT_ALLOWED}: {}", visible_line(program)),
        Some(format!("Allowed commands: {}", shell.allowed.join(", "))),
    )
}
