//! Answers that decide more than one question, the policy that asks about every command, and replies that are shown
//! before they are carried out.

use serde_json::Value;

use crate::support::{Daemon, ID, Project};

/// A session that asks about every command.
fn scene() -> Project {
    let base = Project::new();
    base.run(&["new", "--no-watch", "--policy", "ask", "--id", ID, "A task"]).ok();
    base
}

fn runs(commands: &[&str]) -> String {
    commands.iter().map(|command| format!("[RUN_COMMAND]\n{command}\n[/RUN_COMMAND]\n")).collect()
}

/// Applies a reply that is asked about.
#[track_caller]
fn asks(base: &Project, reply: &str) -> Value {
    base.run_with(&["apply", "--again", "--session", ID, "-"], reply).with_code(3);
    base.waiting(ID)
}

#[test]
fn every_command_asks_and_files_do_not() {
    let base = scene();
    let reply = format!("[CREATE_FILE path=\".env\"]\nx\n[/CREATE_FILE]\n{}", runs(&["ls"]));
    let waiting = asks(&base, &reply);
    assert!(base.exists("workspace/.env"));
    assert_eq!(waiting["policy"], "shell.approvalRequired");
    assert_eq!(
        (&waiting["reason"], &waiting["always"]),
        (&"Every command requires approval".into(), &true.into())
    );
    base.run(&["approve"]).ok();
    assert_eq!(base.last_codes(), ["ok", "ok"]);
    // A redirection alone is a command, too.
    for line in ["> .env", "X=1", "true"] {
        assert_eq!(asks(&base, &runs(&[line]))["command"], line);
        base.run(&["deny"]).ok();
    }
}

#[test]
fn a_denial_of_the_rest_asks_nothing_more() {
    let base = scene();
    let reply = format!(
        "{}[CREATE_FILE path=\"a\"]\nx\n[/CREATE_FILE]\n{}",
        runs(&["touch 1", "touch 2"]),
        runs(&["touch 3"])
    );
    asks(&base, &reply);
    base.run(&["deny", "--rest", "--reason", "Use no commands"]).ok();
    assert_eq!(base.last_codes(), ["denied", "denied", "ok", "denied"]);
    let outbox = base.outbox(2);
    assert!(outbox.contains("The user denied 'touch 1': Use no commands"), "{outbox}");
    assert_eq!(
        outbox
            .matches("everything else in this reply that needs approval: Use no commands")
            .count(),
        2
    );
    assert_eq!(base.names("workspace"), ["a"]);
    // The next reply is asked about again.
    asks(&base, &runs(&["touch 4"]));
}

#[test]
fn what_is_approved_for_good_is_this_very_command() {
    let base = scene();
    base.write("workspace/src/a", "x\n");
    asks(&base, &runs(&["echo a >> log"]));
    base.run(&["approve", "--always"]).ok();
    base.apply(&runs(&["echo a >> log", "echo a >> log"]));
    assert_eq!(base.read("workspace/log"), "a\na\na\n");
    let listed = base.json(&["policy", "approved"]);
    assert_eq!((&listed["command"], &listed["guarded"]), (&"echo a >> log".into(), &true.into()));
    for other in
        ["echo a >> log ", "echo a  >> log", "echo a >> log; true", "cd src; echo a >> log"]
    {
        let reply = format!("[RUN_COMMAND]\n{other}\n[/RUN_COMMAND]\n");
        if other.trim_end() != "echo a >> log" {
            assert_eq!(asks(&base, &reply)["command"], other);
            base.run(&["deny"]).ok();
        }
    }
    base.run(&["check", "--policy", "ask"]);

    // The same line elsewhere, or with other variables.
    let run = |more: &str| {
        let message = format!(
            "{{\"protocolVersion\": \"1.0\", \"operations\": [{{\"type\": \"shell\", \"command\": \"echo a >> log\"{more}}}]}}"
        );
        base.run_with(&["ops", "run", "--policy", "ask"], message)
    };
    run("").ok();
    for more in [", \"cwd\": \"src\"", ", \"env\": {\"A\": \"1\"}"] {
        run(more).with_code(3);
        base.run(&["deny", "--all"]).ok();
    }

    base.run(&["policy", "forget", "2"]).with_code(2);
    base.run(&["policy", "forget", "1"]).ok();
    assert_eq!(base.run(&["policy", "approved"]).ok().stdout, "");
    asks(&base, &runs(&["echo a >> log"]));
}

#[test]
fn nothing_is_approved_for_good_that_opens_something_or_cannot_be_read() {
    let base = scene();
    base.sh("git init -q workspace");
    let create = "[CREATE_FILE path=\".envrc\"]\nx\n[/CREATE_FILE]\n".to_owned();
    for reply in [runs(&["git commit -m x"]), runs(&["eval ls"]), runs(&["PATH=. ls"]), create] {
        let waiting = asks(&base, &reply);
        assert_eq!(waiting["always"], false, "{waiting}");
        base.fails(&["approve", "--always"], "not-for-good").with_code(2);
        assert!(!base.waiting(ID).is_null());
        base.run(&["deny"]).ok();
    }
    assert_eq!(base.run(&["policy", "approved"]).ok().stdout, "");
}

#[test]
fn a_file_that_deaddrop_did_not_write_approves_nothing() {
    let base = scene();
    asks(&base, &runs(&["touch 1"]));
    base.run(&["approve", "--always"]).ok();
    let name = base.names("sessions/approved").remove(0);
    let path = format!("sessions/approved/{name}");
    let text = base.read(&path);
    // Under a name that is not its digest, as a link, and in a folder that is one.
    base.write(&path, text.replace("touch 1", "touch 2"));
    asks(&base, &runs(&["touch 2"]));
    base.run(&["deny"]).ok();
    base.write("elsewhere/x.json", &text);
    base.sh(&format!("rm {path}; ln -s ../../elsewhere/x.json {path}"));
    asks(&base, &runs(&["touch 1"]));
    base.run(&["deny"]).ok();
    base.sh(&format!("rm {path}; mv elsewhere/x.json elsewhere/{name}; rmdir sessions/approved; ln -s ../elsewhere sessions/approved"));
    asks(&base, &runs(&["touch 1"]));
    base.run(&["approve", "--always"]).with_code(1);
    base.run(&["deny"]).ok();
    // Neither a file operation nor a command gets there.
    let reply = format!(
        "[CREATE_FILE path=\"../sessions/approved/{name}\"]\n{text}\n[/CREATE_FILE]\n{}",
        runs(&["mkdir -p ../sessions/approved"])
    );
    base.sh("rm sessions/approved");
    asks(&base, &reply);
    base.run(&["approve"]).ok();
    assert!(!base.exists("sessions/approved"));
}

#[test]
fn what_came_with_a_clone_is_not_trusted() {
    let base = scene();
    asks(&base, &runs(&["touch 1"]));
    base.run(&["approve", "--always"]).ok();
    let clone = Project::that_nobody_agrees_to();
    let approved = base.at("sessions/approved").display().to_string();
    clone.sh(&format!("mkdir -p sessions; cp -r {approved} sessions/"));
    let run = clone.fails(&["new", "--no-watch", "--policy", "ask", "A task"], "consent-needed");
    assert!(run.message().contains("sessions (approved)"), "{run:?}");
}

#[test]
fn a_command_that_loses_its_walls_asks_again() {
    let base = scene();
    asks(&base, &runs(&["touch 1"]));
    base.run(&["approve", "--always"]).ok();
    let apply = ["apply", "--sandbox", "off", "--session", ID, "-"];
    base.run_with(&apply, format!("Again\n{}", runs(&["touch 1"]))).with_code(3);
}

#[test]
fn a_reply_is_shown_before_anything_of_it_is_done() {
    let base = scene();
    base.write("workspace/a", "one\n");
    let reply = format!("[CREATE_FILE path=\"a\"]\ntwo\n[/CREATE_FILE]\n{}", runs(&["touch 1"]));
    let review = ["apply", "--again", "--review", "reply", "--session", ID, "-"];
    let run = base.run_with(&review, &reply).with_code(3);
    for told in [": REPLY", "would", "replace 'a'", "| touch 1", "-one", "+two", "(review)"] {
        assert!(run.stderr.contains(told), "{told}: {run:?}");
    }
    assert_eq!(base.read("workspace/a"), "one\n");
    let waiting = base.waiting(ID);
    assert_eq!((&waiting["policy"], &waiting["always"]), (&"review".into(), &false.into()));
    assert_eq!(waiting["files"][0]["change"], "changed");
    // The yes answers no question of the policy.
    base.run(&["approve"]).with_code(3);
    assert_eq!(base.read("workspace/a"), "two\n");
    assert_eq!(base.waiting(ID)["command"], "touch 1");
    base.run(&["approve"]).ok();
    assert_eq!(base.last_codes(), ["ok", "ok"]);

    base.run_with(&review, "[CREATE_FILE path=\"b\"]\nx\n[/CREATE_FILE]\n[DONE]\nx\n[/DONE]\n")
        .with_code(3);
    base.run(&["deny", "--reason", "Not b"]).ok();
    assert_eq!(base.last_codes(), ["denied", "denied"]);
    assert!(
        base.outbox(3).contains("The user denied this reply: Not b") && !base.exists("workspace/b")
    );
    // There is nothing to see in words alone.
    base.run_with(&review, "Well.\n").ok();
}

#[test]
fn a_daemon_without_a_terminal_holds_a_reply_until_it_is_decided() {
    let base = scene();
    base.write("deaddrop.toml", "review = \"reply\"\n");
    let daemon: Daemon = base.serve(&["watch"]);
    base.write("inbox/r.txt", "[CREATE_FILE path=\"b\"]\nx\n[/CREATE_FILE]\n");
    daemon.wait_for("waits for your decision");
    assert!(daemon.said().contains("`deaddrop approve`") && !base.exists("workspace/b"));
    base.run(&["approve"]).ok();
    base.wait_for_outbox(2);
    assert!(base.exists("workspace/b"));
    daemon.stop();
}
