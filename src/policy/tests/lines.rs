//! The texts of decisions on command lines, and the person's own lists.

use crate::policy::reading::{Simple, read};
use crate::policy::{Grant, NEW_REPOSITORY, Verdict, command, explain, run, summary};
use crate::protocol::{RelPath, ShellCommand};
use crate::settings::Policy;

fn standard() -> Policy {
    Policy::preset("standard").unwrap()
}

#[test]
fn words_of_decisions() {
    let deny = |line: &str| match command(&standard(), line, false) {
        Verdict::Deny(denial) => denial,
        other => panic!("{line}: {other:?}"),
    };
    let denial = deny("sudo apt install x");
    assert_eq!(denial.reason, "Command 'sudo' is blocked");
    assert_eq!(denial.suggestion.as_deref(), Some("Remove sudo from command"));
    assert_eq!(deny("rm -fr /").reason, "Command 'rm -rf /' is blocked");
    let denial = deny("python x.py");
    assert_eq!(denial.reason, "Command not in allowed list: python");
    let list =
        "Allowed commands: bun, node, npm, npx, cat, echo, ls, pwd, head, tail, grep, find, wc";
    assert_eq!(denial.suggestion.as_deref(), Some(list));
    let ask = |name: &str, line: &str| match command(&Policy::preset(name).unwrap(), line, true) {
        Verdict::Ask(ask) => ask,
        other => panic!("{line}: {other:?}"),
    };
    let asked = ask("standard", "rm -rf temp/*");
    assert_eq!(asked.reason, "Destructive command requires approval");
    assert_eq!(asked.policy, "shell.approvalRequired");
    assert_eq!(asked.opens, Grant::default());
    assert_eq!(ask("permissive", "chmod +x a").reason, "Command 'chmod' requires approval");
    let asked = ask("workspace", "git commit -m x");
    assert_eq!(asked.reason, "'git commit' writes to the repository");
    assert_eq!(asked.policy, "sandbox.repository");
    assert!(asked.opens.repository && !asked.opens.protected);
    let asked = ask("workspace", "git clone x");
    assert!(asked.reason.ends_with(NEW_REPOSITORY), "{}", asked.reason);
    let both = ask("permissive", "rm -r x; git commit -m y");
    assert!(both.opens.repository, "{both:?}");
    assert_eq!(
        both.reason,
        "Destructive command requires approval; 'git commit' writes to the repository"
    );
    assert_eq!(ask("standard", "$X").reason, "Command cannot be read: which command '$X' is");
    let workspace = Policy::preset("workspace").unwrap();
    assert_eq!(command(&workspace, "git commit", false), Verdict::Allow);
}

#[test]
fn patterns_of_ones_own() {
    let mut policy = Policy::preset("permissive").unwrap();
    let list = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect();
    policy.shell.blocked =
        list(&["npm publish", "git push --force", "docker run -v", "rm -rf dist"]);
    policy.shell.approval = list(&["git push", "env", "chmod -R"]);
    policy.shell.allowed = list(&["npm", "git", "docker", "rm", "cargo test", "chmod"]);
    let rule = |line: &str| {
        command(&policy, line, false)
            .rule()
            .and_then(|rule| rule.split('.').nth(1))
            .unwrap_or("-")
            .to_owned()
    };
    for (line, expected) in [
        ("npm publish", "blockedCommands"),
        ("npm --silent publish --tag x", "blockedCommands"),
        ("npm --prefix dir publish", "blockedCommands"),
        ("npm run publish", "-"),
        ("npm test", "-"),
        ("git push", "approvalRequired"),
        ("git -C x push origin", "approvalRequired"),
        ("git push origin --force", "blockedCommands"),
        ("git commit -m push", "-"),
        ("git log push", "-"),
        ("docker run -it -v a:b x", "blockedCommands"),
        ("docker run x", "-"),
        ("rm -rf dist", "blockedCommands"),
        ("rm -r -f ./dist/", "blockedCommands"),
        ("rm -rf a dist/*", "blockedCommands"),
        ("rm -rf src/../dist", "blockedCommands"),
        ("rm -rf dist2", "-"),
        ("cargo test --lib", "-"),
        ("cargo build", "allowedCommands"),
        ("cargo --quiet test", "allowedCommands"),
        ("env A=b npm test", "approvalRequired"),
        ("chmod --recursive 700 x", "approvalRequired"),
        ("chmod 700 x", "-"),
        ("python x", "allowedCommands"),
        ("NPM publish", "blockedCommands"),
    ] {
        assert_eq!(rule(line), expected, "{line}");
    }
}

#[test]
fn every_command_of_a_line_is_explained() {
    let line = ShellCommand::new("cd a && time rm -rf b | python c");
    let explained = explain(&standard(), &line, false);
    let found: Vec<(String, &str)> = explained
        .commands
        .iter()
        .map(|(simple, decision)| (simple.text(), decision.rule().unwrap_or("-")))
        .collect();
    assert_eq!(
        found,
        [
            ("cd a".to_owned(), "-"),
            ("time rm -rf b".to_owned(), "-"),
            ("rm -rf b".to_owned(), "shell.approvalRequired"),
            ("python c".to_owned(), "shell.allowedCommands"),
        ]
    );
    assert_eq!(explained.decision.rule(), Some("shell.allowedCommands"));
}

#[test]
fn variables_of_an_operation_count_as_those_in_its_line() {
    let said = |policy: &str, line: &str, variables: &[&str]| {
        let mut operation = ShellCommand::new(line);
        operation.env = variables.iter().map(|name| ((*name).to_owned(), "x".to_owned())).collect();
        let decision = run(&Policy::preset(policy).unwrap(), &operation, true);
        let reason = decision.reason().unwrap_or_default();
        format!("{} {reason}", decision.rule().unwrap_or("-"))
    };
    for name in
        ["PATH", "LD_PRELOAD", "NODE_OPTIONS", "IFS", "BASH_ENV", "PATH=./bin:", "BASH_FUNC_ls%%"]
    {
        for policy in ["standard", "permissive"] {
            let summary = said(policy, "ls", &["CI", name]);
            let shown = name.split('=').next().unwrap();
            let reason = format!("shell.unreadable Command cannot be read: {shown} is set, which");
            assert!(summary.starts_with(&reason), "{summary}");
        }
        assert_eq!(said("workspace", "ls", &[name]), "- ");
        assert!(said("restrictive", "ls", &[name]).starts_with("shell.enabled "));
        assert!(said("standard", "sudo ls", &[name]).starts_with("shell.blockedCommands "));
    }
    assert_eq!(said("standard", "npm test", &["CI", "DEBUG", "PATHS"]), "- ");
}

#[test]
fn who_is_asked_learns_where_a_command_runs_and_with_what() {
    let mut operation = ShellCommand::new("rm -rf build");
    let reason = |operation: &ShellCommand| match run(&standard(), operation, true) {
        Verdict::Ask(ask) => ask.reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(&operation), "Destructive command requires approval");
    operation.cwd = Some(RelPath::parse("src/a").unwrap());
    for name in ["B\nC", "A"] {
        operation.env.insert(name.to_owned(), "1".to_owned());
    }
    assert_eq!(
        reason(&operation),
        "Destructive command requires approval; it runs in 'src/a'; it sets A, B␊C"
    );
    for n in 0..20 {
        operation.env.insert(format!("A{n:02}"), String::new());
    }
    assert!(reason(&operation).ends_with("A08 and 12 more"), "{}", reason(&operation));
}

#[test]
fn a_line_is_read_as_its_commands() {
    let reading = read("cd src && env CI=1 npm test | tee \"$LOG\"");
    let found: Vec<String> = reading.commands.iter().map(Simple::text).collect();
    assert_eq!(found, ["cd src", "env CI=1 npm test", "npm test", "tee \"$LOG\""]);
    assert!(reading.unreadable.is_empty());
    assert!(!read("$EDITOR notes").unreadable.is_empty());
}

#[test]
fn a_policy_is_told_in_a_line() {
    let line = |name| summary(&Policy::preset(name).unwrap());
    assert_eq!(
        line("restrictive").unwrap(),
        "restrictive: files can only be read, up to 1048576 bytes, not `.*` `*.env` `*.key` `*.pem`; no commands"
    );
    assert_eq!(line("workspace"), None);
}
