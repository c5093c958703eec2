//! `deaddrop policy`: what a policy says of a command, and which there are.

use serde_json::{Value, json};

use crate::support::{Base, Run};

#[test]
fn a_decision_is_explained() {
    let base = Base::new();
    let run = base.run(&["policy", "check", "--policy", "standard", "cd a && rm -rf temp/*"]);
    let said = run.with_code(3).stdout;
    assert!(
        said.starts_with(
            "ask under 'standard': Destructive command requires approval [shell.approvalRequired]\n"
        ),
        "{said}"
    );
    assert!(said.contains("\n  allow  cd a\n"), "{said}");
    assert!(said.contains("\n  ask    rm -rf temp/*: "), "{said}");
    let said = base.run(&["--policy=standard", "policy", "check", "echo a | sudo tee b"]);
    let said = said.with_code(1).stdout;
    assert!(said.contains("Command 'sudo' is blocked"), "{said}");
    assert!(said.contains("  Remove sudo from command\n"), "{said}");
    base.run(&["policy", "check", "--policy", "standard", "npm test"]).ok();
    let said =
        base.run(&["policy", "check", "--policy", "standard", "eval $X"]).with_code(3).stdout;
    assert!(said.contains("not told by the text: eval runs a text"), "{said}");
    // By itself the policy is that of sessions.
    base.run(&["policy", "check", "sudo rm -rf /"]).ok();
    let said = base.run(&["policy", "check", "git commit -m x"]).with_code(3).stdout;
    assert!(said.contains("[sandbox.repository]"), "{said}");
    assert_eq!(base.names("."), [] as [&str; 0], "nothing is made");
}

#[test]
fn a_decision_as_json() {
    let base = Base::new();
    let run = base.run(&["--json", "policy", "check", "--policy=standard", "time python x"]);
    let told: Value = serde_json::from_str(&run.with_code(1).stdout).unwrap();
    assert_eq!(told["decision"], "deny");
    assert_eq!(told["policy"], "shell.allowedCommands");
    assert_eq!(told["policyName"], "standard");
    assert_eq!(told["commands"][1]["command"], "python x");
    assert_eq!(told["commands"][1]["verdict"]["reason"], "Command not in allowed list: python");
}

#[test]
fn policies_are_listed_and_shown() {
    let base = Base::new();
    base.write(
        "deaddrop.toml",
        "policy = \"mine\"\n[policies.mine]\npreset = \"standard\"\nshell.allowed = [\"cargo\"]\n",
    );
    let said = base.run(&["policy", "list"]).ok().stdout;
    assert_eq!(said, "  restrictive\n  standard\n  permissive\n  workspace\n* mine\n");
    let said = base.run(&["policy", "show"]).ok().stdout;
    assert!(said.starts_with("[policies.mine]\npreset = \"workspace\"\n"), "{said}");
    assert!(said.contains("shell.allowed = [\"cargo\"]\n"), "{said}");
    base.run(&["policy", "check", "cargo test"]).ok();
    base.run(&["policy", "check", "npm test"]).with_code(1);
    let said = base.run(&["policy", "show", "restrictive"]).ok().stdout;
    assert!(said.contains("shell.enabled = false\n"), "{said}");
    let said = base.run(&["policy", "show", "nope"]).with_code(2).stderr;
    assert!(said.contains("there is no policy 'nope'"), "{said}");
}

#[test]
fn the_policy_is_a_setting_like_others() {
    let base = Base::new();
    let with =
        |value: &str| Run::of(base.command(&["policy", "list"]).env("DEADDROP_POLICY", value), "");
    assert!(with("permissive").ok().stdout.contains("* permissive\n"));
    let said = with("lax").with_code(2).stderr;
    assert!(
        said.contains("environment variable DEADDROP_POLICY: there is no policy 'lax'"),
        "{said}"
    );
    let said = base.run(&["policy", "list", "--policy", "standrd"]).with_code(2).stderr;
    assert!(
        said.contains("--policy: there is no policy 'standrd'; did you mean 'standard'?"),
        "{said}"
    );
}

#[test]
fn variables_of_a_shell_operation_are_judged_as_those_in_a_line() {
    let base = Base::new();
    base.write("workspace/src/a", "x\n");
    let asked = |command: &str, variable: &str| {
        let operation = json!({"type": "shell", "command": command, "cwd": "src",
            "env": {"CI": "1", variable: "./bin"}});
        let text = json!({"protocolVersion": "1.0", "operations": [operation]}).to_string();
        let run = base.run_with(&["run"], &text).with_code(3);
        let told: Value = serde_json::from_str(&run.stdout).unwrap();
        told["events"][0]["reason"].as_str().unwrap().to_owned()
    };
    let beside = "; it runs in 'src'; it sets CI, PATH";
    assert_eq!(
        asked("cat a", "PATH"),
        format!("Command cannot be read: PATH is set, which changes what the line means{beside}")
    );
    // What cannot be read comes after what is on a list.
    assert_eq!(asked("rm -rf a", "PATH"), format!("Destructive command requires approval{beside}"));
    assert_eq!(
        asked("rm -rf a", "DEBUG"),
        "Destructive command requires approval; it runs in 'src'; it sets CI, DEBUG"
    );
}
