//! `deaddrop policy`: what a policy says of a command, and which there are.

use serde_json::{Value, json};

use crate::support::{Project, Run};

#[test]
fn a_decision_is_explained() {
    let base = Project::new();
    let run = base.run(&["policy", "check", "--policy", "standard", "cd a && rm -rf temp/*"]);
    let said = run.with_code(3).stdout;
    let (first, rest) = said.split_once('\n').unwrap();
    let asks = "Destructive command requires approval [shell.approvalRequired]";
    assert_eq!(first, format!("ask under 'standard': {asks}"), "{said}");
    assert!(format!("\n{rest}").contains("\n  allow  cd a\n"), "{said}");
    assert!(format!("\n{rest}").contains("\n  ask    rm -rf temp/*: "), "{said}");
    let denied = base.run(&["policy", "check", "--policy=standard", "echo a | sudo tee b"]);
    let said = denied.with_code(1).stdout;
    assert!(said.contains("Command 'sudo' is blocked [shell.blockedCommands]"), "{said}");
    assert!(said.contains("  Remove sudo from command\n"), "{said}");
    base.run(&["policy", "check", "--policy", "standard", "npm test"]).ok();
    let unread = base.run(&["policy", "check", "--policy", "standard", "source x"]).with_code(3);
    assert!(unread.stdout.contains("unknown: source runs a file"), "{unread:?}");
    // By itself the policy is that of sessions.
    base.run(&["policy", "check", "sudo rm -rf /"]).ok();
    let said = base.run(&["policy", "check", "git commit -m x"]).with_code(3).stdout;
    assert!(said.contains("[sandbox.repository]"), "{said}");
    assert_eq!(base.names("."), [] as [&str; 0], "nothing is made");
}

#[test]
fn a_decision_as_json() {
    let base = Project::new();
    let run = base.run(&["--json", "policy", "check", "--policy=standard", "time python x"]);
    let told: Value = serde_json::from_str(&run.with_code(1).stdout).unwrap();
    assert_eq!(told["decision"], "deny");
    assert_eq!(told["policy"], "shell.allowedCommands");
    assert_eq!(told["policyName"], "standard");
    assert_eq!(told["commands"][1]["command"], "python x");
    assert_eq!(told["commands"][1]["verdict"]["policy"], "shell.allowedCommands");
    assert_eq!(told["commands"][1]["verdict"]["reason"], "Command not in allowed list: python");
}

#[test]
fn policies_are_listed_and_shown() {
    let base = Project::new();
    base.write(
        "deaddrop.toml",
        "policy = \"mine\"\n[policies.mine]\npreset = \"standard\"\nshell.allowed = [\"cargo\"]\n",
    );
    let said = base.run(&["policy", "list"]).ok().stdout;
    assert_eq!(said, "  restrictive\n  standard\n  permissive\n  ask\n  workspace\n* mine\n");
    let said = base.run(&["policy", "show"]).ok().stdout;
    assert!(said.starts_with("[policies.mine]\npreset = \"workspace\"\n"), "{said}");
    assert!(said.contains("shell.allowed = [\"cargo\"]\n"), "{said}");
    base.run(&["policy", "check", "cargo test"]).ok();
    base.run(&["policy", "check", "npm test"]).with_code(1);
    let said = base.run(&["policy", "show", "restrictive"]).ok().stdout;
    assert!(said.contains("shell.enabled = false\n"), "{said}");
    let run = base.fails(&["policy", "show", "nope"], "invalid-setting").with_code(2);
    assert!(run.message().contains("there is no policy 'nope'"), "{run:?}");
}

#[test]
fn the_policy_is_a_setting_like_others() {
    let base = Project::new();
    let with =
        |value: &str| Run::of(base.command(&["policy", "list"]).env("DEADDROP_POLICY", value), "");
    assert!(with("permissive").ok().stdout.contains("* permissive\n"));
    let said = with("lax").with_code(2).stderr;
    assert!(
        said.contains("environment variable DEADDROP_POLICY: there is no policy 'lax'"),
        "{said}"
    );
    let run = base.fails(&["policy", "list", "--policy", "standrd"], "invalid-setting");
    let said = run.with_code(2).message();
    let told = "--policy: there is no policy 'standrd'; did you mean 'standard'?";
    assert!(said.starts_with(told), "{said}");
}

#[test]
fn variables_of_a_shell_operation_are_judged_as_those_in_a_line() {
    let base = Project::new();
    base.write("workspace/src/a", "x\n");
    let asked = |command: &str, variable: &str| {
        let operation = json!({"type": "shell", "command": command, "cwd": "src",
            "env": {"CI": "1", variable: "./bin"}});
        let text = json!({"protocolVersion": "1.0", "operations": [operation]}).to_string();
        let run = base.run_with(&["ops", "run"], &text).with_code(3);
        let told: Value = serde_json::from_str(&run.stdout).unwrap();
        let reason = told["events"][0]["reason"].as_str().unwrap().to_owned();
        let beside = format!("; it runs in 'src'; it sets CI, {variable}");
        reason.strip_suffix(&*beside).unwrap_or_else(|| panic!("{reason}")).to_owned()
    };
    // What cannot be read comes after what is on a list, which the specification has the words for.
    let listed = "Destructive command requires approval";
    let unread = "Command cannot be read: PATH is set, which changes what the line means";
    assert_eq!(asked("cat a", "PATH"), unread);
    assert_eq!(asked("rm -rf a", "PATH"), listed);
    assert_eq!(asked("rm -rf a", "DEBUG"), listed);
}
