//! The daemon's end, by a signal or worse, and how the next one goes on.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use crate::support::{Daemon, ID, Project, has_sandbox, set_time, wait_until};

/// One turn after another, each building on the one before.
const REPLIES: [&str; 4] = [
    "[CREATE_FILE path=\"a\"]\none\ntwo\n[/CREATE_FILE]\n",
    "[READ_FILE path=\"a\"]\n[MESSAGE]\nReading\n[/MESSAGE]\n",
    "[RUN_COMMAND]\ncat a; exit 3\n[/RUN_COMMAND]\n",
    "[DELETE_FILE path=\"a\"]\n[READ_FILE path=\"a\"]\n",
];

fn stop(mut daemon: Daemon, signal: &str) -> String {
    daemon.signal(signal);
    assert_eq!(daemon.wait().code(), Some(130));
    daemon.said()
}

/// All outboxes of a session of [`REPLIES`], with a stop before one of them.
fn outboxes(stop_before: Option<usize>, signal: &str) -> Vec<String> {
    let base = Project::with_session();
    let mut daemon = base.serve(&["resume"]);
    for (n, reply) in REPLIES.into_iter().enumerate() {
        let stops = stop_before == Some(n);
        if stops {
            let said = stop(daemon, signal);
            assert!(said.ends_with("Stopped. `deaddrop resume` continues.\n"));
            base.write("inbox/r.txt", reply);
            daemon = base.serve(&["resume"]);
        } else {
            base.write("inbox/r.txt", reply);
        }
        base.wait_for_outbox(u32::try_from(n).unwrap() + 2);
    }
    stop(daemon, signal);
    assert_eq!(base.names("inbox/processed").len(), REPLIES.len());
    base.names("outbox").iter().map(|name| base.read(&format!("outbox/{name}"))).collect()
}

#[test]
fn a_stop_between_two_turns_changes_nothing() {
    let expected = outboxes(None, "INT");
    assert_eq!(expected.len(), REPLIES.len() + 1);
    for n in 0..REPLIES.len() {
        let signal = ["INT", "TERM"][n % 2];
        assert_eq!(outboxes(Some(n), signal), expected, "{signal} before turn {}", n + 1);
    }
}

#[test]
fn replies_that_came_while_it_was_down_are_carried_out() {
    let base = Project::with_session();
    for (n, reply) in REPLIES.into_iter().enumerate() {
        let path = base.write(&format!("inbox/{}.txt", 9 - n), reply);
        set_time(&path, SystemTime::UNIX_EPOCH + Duration::from_secs(n as u64));
    }
    base.run(&["resume", "--no-watch"]).ok();
    assert_eq!(base.last_codes(), ["ok", "file-not-found"]);
}

#[test]
fn nothing_is_carried_out_after_done() {
    let base = Project::with_session();
    let done = base.write("inbox/1.txt", "[DONE]\nAll well\n[/DONE]\n");
    set_time(&done, SystemTime::UNIX_EPOCH);
    base.write("inbox/2.txt", REPLIES[0]);
    base.run(&["resume", "--no-watch"]).ok();
    assert!(base.exists("inbox/2.txt") && !base.exists("workspace/a"));
}

#[test]
fn resume_leaves_an_outbox_that_is_there() {
    let base = Project::with_session();
    let path = base.write(&format!("outbox/{ID}_seq0001.txt"), "what the person made of it");
    let before = path.metadata().unwrap().modified().unwrap();
    for command in [["resume", "--no-watch"], ["resume", ID]] {
        let daemon = base.start(&command);
        daemon.wait_for(" continues: ");
    }
    stop(base.serve(&["watch"]), "TERM");
    assert_eq!(base.outbox(1), "what the person made of it");
    assert_eq!(path.metadata().unwrap().modified().unwrap(), before);
}

#[test]
fn a_missing_outbox_is_written_again_as_it_was() {
    let base = Project::with_session();
    for (n, reply) in REPLIES.into_iter().enumerate() {
        base.apply(reply);
        let sequence = u32::try_from(n).unwrap() + 2;
        let written = base.outbox(sequence);
        fs::remove_file(base.at(&format!("outbox/{ID}_seq{sequence:04}.txt"))).unwrap();
        if n % 2 == 0 {
            let run = base.run(&["resume", "--no-watch"]).ok();
            assert!(run.stderr.contains("has been written again"), "{}", run.stderr);
        } else {
            stop(base.serve(&["watch"]), "INT");
        }
        assert_eq!(base.outbox(sequence), written);
    }
}

/// A command with a child of its own session; both show `mark` in their command lines.
fn lasting(mark: &str) -> String {
    format!(
        "[RUN_COMMAND]\ntouch {mark}\nsetsid tail -f {mark} &\ntail -f {mark}\n[/RUN_COMMAND]\n"
    )
}

/// How many processes of this machine show `mark` in their command lines.
fn processes(mark: &str) -> usize {
    let shows = |entry: &fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(mark)
    };
    fs::read_dir("/proc").unwrap().flatten().filter(shows).count()
}

/// A daemon in the midst of a command; with a mark of its processes.
fn in_a_command() -> Option<(Project, Daemon, String)> {
    if !std::path::Path::new("/proc/self/cmdline").exists() {
        eprintln!("SKIPPED: there is no /proc here");
        return None;
    }
    let base = Project::with_session();
    let mark =
        format!("mark-{}", base.path().file_name().unwrap().to_string_lossy().replace('.', ""));
    let daemon = base.serve(&["resume"]);
    let after = "[CREATE_FILE path=\"after\"]\nx\n[/CREATE_FILE]\n[RUN_COMMAND]\necho after\n[/RUN_COMMAND]\n[DONE]\nWell\n[/DONE]\n";
    base.write("inbox/r.txt", format!("{}{after}", lasting(&mark)));
    // Both tails, and the shell that waits for them.
    wait_until("the command's processes", || processes(&mark) >= 3);
    Some((base, daemon, mark))
}

#[test]
fn a_stop_ends_the_command_and_all_it_started_and_the_turn_is_told_whole() {
    for signal in ["INT", "TERM"] {
        let Some((base, daemon, mark)) = in_a_command() else { return };
        stop(daemon, signal);
        wait_until("the end of the command's processes", || processes(&mark) == 0);
        assert_eq!(base.last_codes(), ["interrupted", "not-run", "not-run", "not-run"]);
        let outbox = base.outbox(2);
        for told in [
            "[FAILED] RUN_COMMAND: Ran 'touch ",
            "interrupted by the user; it may have partly run",
            "[FAILED] CREATE_FILE: 'after' was not touched: the user stopped deaddrop\n",
            "[FAILED] RUN_COMMAND: 'echo after' was not run: the user stopped deaddrop\n",
            "[FAILED] DONE: Not carried out: the user stopped deaddrop\n",
        ] {
            assert!(outbox.contains(told), "{told} in {outbox}");
        }
        assert!(!base.exists("workspace/after"));
        assert_eq!(base.names("inbox/processed"), ["r.txt"]);
        let run = base.run(&["resume", "--no-watch"]).ok();
        assert!(run.stdout.ends_with("_seq0002.txt\n"), "{}", run.stdout);
    }
}

#[test]
fn a_stopped_apply_says_so() {
    let base = Project::with_session();
    base.write("r", "[RUN_COMMAND]\ntouch begun; sleep 300\n[/RUN_COMMAND]\n");
    let daemon = base.start(&["apply", "r"]);
    wait_until("the command", || base.exists("workspace/begun"));
    stop(daemon, "INT");
    assert_eq!(base.last_codes(), ["interrupted"]);
    assert!(base.outbox(2).contains("interrupted by the user"));
}

#[test]
fn an_apply_that_waits_for_its_input_is_in_nobodys_way() {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;
    // A shell has what it starts in the background ignore SIGINT, and all that this starts in turn.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    if ignored.is_some_and(|bits| bits & (1 << (libc::SIGINT - 1)) != 0) {
        eprintln!("SKIPPED: SIGINT is ignored here");
        return;
    }
    let base = Project::with_session();
    let mut waits = base.command(&["apply"]).stdin(Stdio::piped()).spawn().unwrap();
    let _daemon = base.serve(&["watch"]);
    wait_until("its end", || {
        base.sh(&format!("kill -s INT {} || true", waits.id()));
        let status = waits.try_wait().unwrap();
        status.inspect(|s| assert!(s.signal() == Some(2), "{s:?}")).is_some()
    });
}

#[test]
fn a_command_dies_with_a_daemon_that_is_killed_and_is_not_run_again() {
    let Some((base, mut daemon, mark)) = in_a_command() else { return };
    daemon.signal("KILL");
    daemon.wait();
    wait_until("the end of the command's processes", || processes(&mark) == 0);
    let run = base.run(&["resume", "--no-watch", "--json"]).ok();
    let told = run.json_lines();
    assert!(told.iter().any(|event| event["recovered"] == true), "{told:?}");
    assert!(run.stderr.contains("stopped while it carried out r.txt"), "{}", run.stderr);
    assert!(run.stderr.contains("1 interrupted"), "{}", run.stderr);
    // What came after it was carried out, and the reply is where it belongs, once.
    assert_eq!(base.read("workspace/after"), "x\n");
    assert_eq!(base.names("inbox/.claimed"), Vec::<String>::new());
    assert_eq!(base.names("inbox/processed"), ["r.txt"]);
    assert_eq!(base.last_codes(), ["lost", "ok", "ok", "ok"]);
    let session = base.read("sessions/a1b2c3d4.json");
    assert!(session.contains("it may have run in part or as a whole"), "{session}");
    assert_eq!(processes(&mark), 0);
    let log = base.json(&["log", "--session", ID]);
    assert_eq!((&log["failed"], &log["interrupted"]), (&1.into(), &1.into()));
    assert_eq!((&log["isComplete"], &log["recovered"]), (&true.into(), &true.into()));
    let log = base.run(&["log", "--session", ID]).ok().stdout;
    let told = "1 failed (1 interrupted, may have run in part), done, recovered";
    assert!(log.contains(told), "{log}");
}

#[test]
fn a_second_daemon_is_told_of_the_first() {
    let base = Project::with_session();
    let daemon = base.serve(&["watch"]);
    base.write("r", REPLIES[0]);
    for command in [&["watch"][..], &["resume"]] {
        let run = base.fails(command, "locked").with_code(4);
        assert!(run.message().contains(&format!("process {}", daemon.pid())), "{run:?}");
        assert!(run.stdout.is_empty());
    }
    for command in [&["status"][..], &["status"], &["show"], &["check", "r"]] {
        base.run(command).ok();
    }
    assert_eq!(base.names("outbox").len(), 1);
}

#[test]
fn a_lock_dies_with_its_holder() {
    let base = Project::with_session();
    let mut daemon = base.serve(&["watch"]);
    daemon.signal("KILL");
    daemon.wait();
    stop(base.serve(&["watch"]), "INT");
}

#[test]
fn a_daemon_that_waits_uses_no_time_of_the_processor() {
    let base = Project::with_session();
    let daemon = base.serve(&["watch"]);
    base.write("inbox/r.txt", REPLIES[0]);
    daemon.wait_for("_seq0002.txt");
    if !Path::new("/proc/self/stat").exists() {
        eprintln!("SKIPPED: there is no /proc here");
        return;
    }
    // Fields 14 and 15, counted from behind the name, which may hold anything.
    let ticks = |stat: &str| -> u64 {
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let used = || ticks(&fs::read_to_string(format!("/proc/{}/stat", daemon.pid())).unwrap());
    let seconds = |n| {
        let begun = Instant::now();
        wait_until("some seconds", || begun.elapsed() > Duration::from_secs(n));
    };
    // The turn has an end after its outbox.
    let mut before = used();
    wait_until("a daemon at rest", || {
        seconds(1);
        let was = std::mem::replace(&mut before, used());
        was == before
    });
    seconds(3);
    let after = used();
    assert!(after - before <= 2, "{before} {after}");
}

#[test]
fn what_a_person_wrote_before_the_first_command_began_stays() {
    if !has_sandbox("partial") {
        return;
    }
    let reply = "[RUN_COMMAND]\ntest -e go || { touch began; sleep 100; }\n[/RUN_COMMAND]\n";
    for begun in [true, false] {
        let base = Project::with_session();
        // Only the guard keeps commands from protected names.
        base.write("deaddrop.toml", "sandbox = \"partial\"\n");
        let mut daemon = base.serve(&["resume"]);
        base.write("inbox/r.txt", reply);
        wait_until("the command", || base.exists("workspace/began"));
        daemon.signal("KILL");
        daemon.wait();
        let mut journal = fs::read(base.at("sessions/journal")).unwrap();
        let used = journal.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        let last = journal[..used - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
        assert!(String::from_utf8_lossy(&journal[last..used]).contains("{\"intent\":"));
        if !begun {
            // It was stopped before this was on disk, when the guard had looked around.
            journal[last..used].fill(0);
            assert!(String::from_utf8_lossy(&journal).contains("{\"guard\":"));
            fs::write(base.at("sessions/journal"), journal).unwrap();
        }
        base.write("workspace/.vscode/tasks.json", "mine\n");
        base.write("workspace/go", "");
        let run = base.run(&["resume", "--no-watch"]).ok();
        let told = if begun { ", 1 interrupted" } else { "; 1 left to do now" };
        assert!(run.stderr.contains(told), "{run:?}");
        // Otherwise nobody knows that it was not the command's.
        assert_eq!(base.exists("workspace/.vscode/tasks.json"), !begun, "{run:?}");
        assert_eq!(base.exists("sessions/quarantine/a1b2c3d4_seq0001"), begun, "{run:?}");
        assert_eq!(base.outbox(2).contains("(exit code 0)"), !begun);
    }
}

#[test]
fn what_an_interrupted_write_left_among_the_claimed_is_no_reply() {
    let base = Project::with_session();
    base.write("inbox/.claimed/.tmpAbCdEf.tmp", "[DONE]\nx\n[/DONE]\n");
    base.write("inbox/processed/.tmpAbCdEf.tmp", "half");
    base.run(&["resume", "--no-watch"]).ok();
    assert_eq!(base.names("inbox"), [".claimed", "processed"]);
    assert_eq!(base.names("inbox/.claimed"), Vec::<String>::new());
    assert_eq!(base.names("inbox/processed"), Vec::<String>::new());
}

#[test]
fn a_reply_claimed_under_the_name_of_one_that_is_done_is_not_lost() {
    let base = Project::with_session();
    let mut daemon = base.serve(&["resume"]);
    base.write("inbox/reply.txt", "[MESSAGE]\nOne\n[/MESSAGE]\n");
    base.wait_for_outbox(2);
    wait_until("the archive", || base.exists("inbox/processed/reply.txt"));
    daemon.signal("KILL");
    daemon.wait();
    // A power loss: the end of the turn is not on disk, the next claim is.
    let mut journal = std::fs::read(base.at("sessions/journal")).unwrap();
    let used = journal.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let last = journal[..used - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    if journal[last..used].ends_with(b"\"end\"\n") {
        journal[last..used].fill(0);
    }
    std::fs::write(base.at("sessions/journal"), journal).unwrap();
    base.write("inbox/.claimed/reply.txt", "[RUN_COMMAND]\ntouch two\n[/RUN_COMMAND]\n");
    base.run(&["resume", "--no-watch"]).ok();
    assert!(base.exists("workspace/two"));
    assert_eq!(base.names("inbox/processed"), ["reply-2.txt", "reply.txt"]);
    assert_eq!(base.names("outbox").len(), 3);
}

#[test]
fn who_stops_is_told_what_goes_on() {
    let base = Project::with_session();
    let said = |base: &Project| stop(base.serve(&["watch"]), "INT");
    assert!(said(&base).ends_with("Stopped. `deaddrop watch` continues.\n"));
}

#[test]
fn a_project_that_was_moved_away_ends_the_daemon_and_is_not_made_anew() {
    let base = Project::new();
    base.run(&["init", "p"]).ok();
    let mut daemon = base.serve(&["-C", "p", "watch"]);
    base.sh("mv p q");
    assert_eq!(daemon.wait().code(), Some(1));
    assert!(daemon.said().contains("was moved or removed"), "{}", daemon.said());
    assert!(!base.exists("p"));
}
