//! HOME and `/tmp` of a session whose commands run in a guest: kept from turn to turn, though the
//! guest's server ends between them; of this session alone; gone with it.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use deaddrop::protocol::jsonrpc::{Key, Method, RpcError, StepParams};
use deaddrop::rpc::{Given, Served, Service};

use crate::guests::sessions::Pair;
use crate::guests::steps::{Guest, create, ended, run, step};
use crate::support::{ID, has_sandbox, wait_until};

const OTHER: &str = "00ff00ff";

/// The folders of sessions, and what is being removed, of those in deaddrop's own.
fn homes(names: Vec<String>) -> Vec<String> {
    let is_home = |name: &String| [".gone-", ".rpc-", "own_"].iter().any(|p| name.starts_with(p));
    names.into_iter().filter(is_home).collect()
}

/// A reply of one command.
fn command(command: &str) -> String {
    format!("[RUN_COMMAND]\n{command}\n[/RUN_COMMAND]\n")
}

#[test]
fn a_home_is_kept_from_turn_to_turn_and_gone_with_the_session() {
    if !has_sandbox("auto") {
        return;
    }
    let pair = Pair::with_session();
    pair.host.run(&["new", "--no-watch", "--id", OTHER, "Another"]).ok();
    let outbox = pair.host.apply(&command("echo mine > ~/f; echo temporary > $TMPDIR/f; ls -A"));
    assert!(outbox.contains("this session's own (kept from command to command"), "{outbox}");
    assert!(outbox.contains("(empty workspace)"), "{outbox}");
    let kept = homes(pair.guest.names("sessions"));
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(kept[0].starts_with(&format!("own_{ID}-")), "{kept:?}");
    let outbox = pair.host.apply(&command("cat ~/f $TMPDIR/f; ls ../sessions; echo looked"));
    assert!(outbox.contains("Output: mine\n  temporary\n"), "{outbox}");
    assert!(crate::scene::printed(&outbox, "looked") && !outbox.contains("own_"), "{outbox}");
    assert!(outbox.contains("(empty workspace)"), "{outbox}");
    assert_eq!(pair.guest.names("workspace"), [""; 0]);
    // Another session has another, and neither knows the name.
    let reply = command("cat ~/f || echo none");
    let told = pair.host.run_with(&["apply", "--session", OTHER, "-"], reply).ok().stdout;
    let outbox = pair.host.read(told.trim());
    assert!(crate::scene::printed(&outbox, "none") && !outbox.contains("mine\n"), "{outbox}");
    assert_eq!(homes(pair.guest.names("sessions")).len(), 2);
    // A run has one for itself, which goes with it.
    let message = r#"{"protocolVersion": "1.0", "operations": [{"type": "shell", "command": "ls -A ~; echo x > ~/f"}]}"#;
    let told = pair.host.run_with(&["ops", "run", "--policy", "permissive"], message).ok().stdout;
    assert!(told.contains("\"success\": true") || told.contains("\"success\":true"), "{told}");
    let only = |ids: &[&str]| {
        let homes = homes(pair.guest.names("sessions"));
        homes.len() == ids.len()
            && ids.iter().zip(&homes).all(|(id, home)| home.starts_with(&format!("own_{id}-")))
    };
    wait_until("the end of the run's", || only(&[OTHER, ID]));
    pair.host.run_with(&["apply", "--session", ID, "-"], "[DONE]\nall\n[/DONE]\n").ok();
    wait_until("the end of the session's", || only(&[OTHER]));
}

#[test]
fn a_daemon_whose_guest_rests_tells_it_over_the_next_connection() {
    if !has_sandbox("auto") {
        return;
    }
    let pair = Pair::with_session();
    pair.host.run(&["new", "--no-watch", "--id", OTHER, "Another"]).ok();
    let mut daemon = pair.host.serve(&["watch"]);
    pair.host.write(&format!("inbox/{ID}_1.txt"), command("echo mine > ~/f"));
    pair.host.wait_for_outbox(2);
    wait_until("its home", || homes(pair.guest.names("sessions")).len() == 1);
    pair.host.write(&format!("inbox/{ID}_2.txt"), "[DONE]\nall\n[/DONE]\n");
    let session = || pair.host.read(&format!("sessions/{ID}.json"));
    wait_until("the end of the session", || session().contains("\"isComplete\": true"));
    pair.host.write(&format!("inbox/{OTHER}_1.txt"), command("echo theirs > ~/f"));
    wait_until("the other outbox", || pair.host.exists(&format!("outbox/{OTHER}_seq0002.txt")));
    wait_until("the end of its home", || {
        let homes = homes(pair.guest.names("sessions"));
        homes.len() == 1 && homes[0].starts_with(&format!("own_{OTHER}-"))
    });
    daemon.signal("INT");
    daemon.wait();
}

fn of(own: &str, asked: StepParams) -> StepParams {
    StepParams { own: Some(own.to_owned()), ..asked }
}

fn leave(served: &Served, name: &str) -> Result<(), RpcError> {
    match served.call(Method::Leave(Key { key: name.to_owned() }))? {
        Given::Written(written) => {
            assert!(written.success);
            Ok(())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_but_a_home_can_be_named() {
    let guest = Guest::new();
    let served = guest.served();
    guest.base.write("state/other/file", "");
    guest.base.write("state/own_a.b/file", "");
    for name in ["", ".", "..", "/", "a/b", "../other", "x/../../other", "a.b", "ä", "a_b", "\0"] {
        let wrong = step(&served, of(name, run("k", "echo x > f"))).unwrap_err();
        assert_eq!(wrong.code, RpcError::PARAMS, "{name}: {wrong}");
        assert_eq!(leave(&served, name).unwrap_err().code, RpcError::PARAMS, "{name}");
    }
    assert_eq!(leave(&served, &"k".repeat(65)).unwrap_err().code, RpcError::PARAMS);
    leave(&served, "other").unwrap();
    leave(&served, "a").unwrap();
    assert!(guest.base.exists("state/other/file") && guest.base.exists("state/own_a.b/file"));
    assert!(!guest.base.exists("workspace/f"));
}

#[test]
fn what_nobody_has_used_for_a_month_goes_and_what_is_used_stays() {
    if !has_sandbox("auto") {
        return;
    }
    let guest = Guest::new();
    let days = |n: u64| SystemTime::now() - Duration::from_hours(n * 24);
    let touched = |name: &str, n: u64| {
        let folder = guest.base.at(&format!("state/own_{name}"));
        File::open(folder).unwrap().set_modified(days(n)).unwrap();
    };
    let served = guest.served();
    for name in ["old", "young", "used"] {
        ended(step(&served, of(name, run(name, "echo x > ~/f"))).unwrap());
    }
    touched("old", 31);
    touched("young", 29);
    touched("used", 29);
    guest.base.write("state/own_no-folder", "");
    // A step that is no command is one, too.
    step(&served, of("used", create("c", "a", ""))).unwrap();
    let age = |name: &str| {
        let found = fs::metadata(guest.base.at(&format!("state/own_{name}"))).unwrap();
        SystemTime::now().duration_since(found.modified().unwrap()).unwrap_or_default()
    };
    assert!(age("used") < Duration::from_mins(10) && age("young") > Duration::from_mins(10));
    assert!(guest.base.exists("state/own_old/home/f"), "it is looked at once in a process");
    step(&guest.served(), create("d", "b", "")).unwrap();
    wait_until("the old one", || {
        homes(guest.base.names("state")) == ["own_no-folder", "own_used", "own_young"]
    });
    // A file operation alone makes none.
    step(&served, of("none", create("e", "e", ""))).unwrap();
    assert!(!guest.base.exists("state/own_none"));
}

#[test]
fn a_home_is_not_left_while_a_command_uses_it() {
    if !has_sandbox("auto") {
        return;
    }
    let guest = Guest::new();
    let served = guest.served();
    let command =
        "echo kept > ~/f; echo x > begun; while test ! -e go; do sleep 0.02; done; cat ~/f";
    std::thread::scope(|scope| {
        let going = scope.spawn(|| step(&served, of("s", run("k", command))).unwrap());
        wait_until("the command", || guest.base.exists("workspace/begun"));
        let fault = leave(&served, "s");
        guest.base.write("workspace/go", "");
        let state = format!("{:?}", going.join().unwrap());
        let fault = fault.unwrap_err();
        assert_eq!(fault.code, RpcError::INTERNAL);
        assert!(fault.message.contains("own_s") && fault.message.contains("using it"), "{fault}");
        assert!(state.contains("kept"), "{state}");
    });
    leave(&served, "s").unwrap();
    wait_until("its end", || homes(guest.base.names("state")).iter().all(|name| name == "own"));
}
