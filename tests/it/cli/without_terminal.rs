//! Where nothing is drawn in place: no terminal, one that cannot, `--quiet` and `--json`; what is
//! done when the terminal goes away; and how the end of a turn is announced.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use crate::approvals::at_terminal::{AtTerminal, terminal};
use crate::support::{ID, Project, wait_until};

/// What runs for more than a second.
const SLOW: &str = "[RUN_COMMAND]\necho begun; sleep 1.3\n[/RUN_COMMAND]\n";
const ENDS: &str = "[DONE]\nAll is well.\n[/DONE]\n";

/// All that a session of two replies shows at such a terminal.
fn shown(term: &str, colors: bool, arguments: &[&str]) -> Option<(String, Project)> {
    let base = Project::with_session();
    let mut command = base.command(&[&["resume"], arguments].concat());
    command.env("TERM", term);
    if colors {
        command.env_remove("NO_COLOR");
    }
    base.write("inbox/1.txt", SLOW);
    let mut program = AtTerminal::begin(command)?;
    base.wait_for_outbox(2);
    base.write("inbox/2.txt", ENDS);
    assert_eq!(program.ends(), Some(0), "{}", program.shown());
    Some((program.shown(), base))
}

#[test]
fn nothing_acts_on_a_terminal_that_cannot_or_is_to_be_quiet() {
    for (term, arguments) in
        [("dumb", &[][..]), ("", &[]), ("xterm", &["--quiet"]), ("xterm", &["--json"])]
    {
        let Some((shown, _base)) = shown(term, false, arguments) else { return };
        assert!(!shown.contains(['\u{1b}', '\r', '\u{7}']), "{term} {arguments:?}: {shown:?}");
        assert_eq!(shown.contains("   ..   RUN_COMMAND  'echo begun"), arguments != ["--quiet"]);
    }
}

#[test]
fn colours_are_off_where_they_are_not_wanted_and_lines_are_drawn_all_the_same() {
    let Some((plain, _base)) = shown("xterm", false, &[]) else { return };
    let codes = |shown: &str| -> Vec<String> {
        let parts = shown.split('\u{1b}').skip(1);
        parts
            .map(|part| {
                part.split_inclusive(|c: char| c.is_alphabetic()).next().unwrap().to_owned()
            })
            .collect()
    };
    let mut all = codes(&plain);
    all.sort();
    all.dedup();
    assert_eq!(all, ["[?7h", "[?7l", "[J"], "{plain:?}");
    assert!(plain.contains(" s RUN_COMMAND  'echo begun; sleep 1.3' · begun"), "{plain:?}");
    let (colored, _base) = shown("xterm", true, &[]).unwrap();
    assert!(colored.contains("\u{1b}[2m") && colored.contains("\u{1b}[0m"), "{colored:?}");
}

#[test]
fn what_is_no_terminal_is_told_a_line_after_the_other() {
    let base = Project::with_session();
    let mut daemon = base.serve(&["resume"]);
    base.write("inbox/1.txt", SLOW);
    base.wait_for_outbox(2);
    base.write("inbox/2.txt", ENDS);
    assert_eq!(daemon.wait().code(), Some(0));
    let said = daemon.said();
    let said = regex::Regex::new(r" \(≈ [\d,]+ tokens\)").unwrap().replace_all(&said, "");
    assert_eq!(
        said,
        format!(
            "Session {ID} continues: A task
Paste this file into a chat window, and save the reply as a .txt file in inbox/:
outbox/{ID}_seq0001.txt
Waiting for replies in inbox/ (Ctrl-C stops, `deaddrop resume` continues)

1.txt, the reply to outbox 1 of session {ID}:
   ..   RUN_COMMAND  'echo begun; sleep 1.3'
  ok    RUN_COMMAND  Ran 'echo begun; sleep 1.3' (exit code 0)
Next outbox, to paste into the chat:
outbox/{ID}_seq0002.txt

2.txt, the reply to outbox 2 of session {ID}:
  ok    DONE         The session is complete
Done. Session {ID} is complete.
  All is well.
"
        )
    );
}

/// Starts `watch` at a terminal of its own that is hung up then, which it does not heed.
#[test]
#[allow(unsafe_code)]
fn a_terminal_that_goes_away_stops_nothing() {
    let base = Project::with_session();
    let Some((ours, theirs)) = terminal() else { return };
    let mut command = base.command(&["watch"]);
    let end = || Stdio::from(theirs.as_fd().try_clone_to_owned().unwrap());
    command.env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end());
    // SAFETY: plain system calls, and all that is done there. As nohup does, hanging up is ignored.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            libc::ioctl(0, libc::TIOCSCTTY, 0);
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
            Ok(())
        });
    }
    let mut child = command.spawn().unwrap();
    drop((command, theirs));
    base.write(
        "inbox/1.txt",
        "[RUN_COMMAND]\ntouch begun; while ! [ -e go ]; do sleep 0.02; done\n[/RUN_COMMAND]\n",
    );
    wait_until("the command", || base.exists("workspace/begun"));
    drop(ours);
    base.write("workspace/go", "");
    base.wait_for_outbox(2);
    base.write("inbox/2.txt", "[MESSAGE]\nHello\n[/MESSAGE]\n");
    base.wait_for_outbox(3);
    assert!(
        std::process::Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    let mut status = None;
    wait_until("its end", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(130));
}

#[test]
fn a_reader_that_goes_away_stops_nothing() {
    let base = Project::with_session();
    base.write("inbox/1.txt", "[MESSAGE]\nHello\n[/MESSAGE]\n");
    for (n, json) in [(2, &["resume", "--no-watch", "--json"][..]), (3, &["resume", "--no-watch"])]
    {
        let mut command = base.command(json);
        let (reader, writer) = std::io::pipe().unwrap();
        command.stdin(Stdio::null()).stdout(writer.try_clone().unwrap()).stderr(writer);
        let mut child = command.spawn().unwrap();
        drop((command, reader));
        assert_eq!(child.wait().unwrap().code(), Some(0));
        base.wait_for_outbox(n);
        base.write("inbox/2.txt", "[MESSAGE]\nHello again\n[/MESSAGE]\n");
    }
}

/// A folder with a `notify-send` that notes what it was given.
fn notifier(base: &Project) -> String {
    base.installs("notify-send", "printf '[%s]' \"$@\" >> \"$0.log\"; echo >> \"$0.log\"");
    base.path_with_programs()
}

#[test]
fn the_end_of_a_turn_is_shown_on_the_desktop_if_that_is_wanted() {
    let base = crate::approvals::asked::scene();
    base.write("deaddrop.toml", "notify = \"desktop\"\n");
    let path = notifier(&base);
    base.write("inbox/r.txt", crate::approvals::asked::ASKS);
    let mut resume = base.command(&["resume", "--no-watch", "--quiet"]);
    assert_eq!(resume.env("PATH", &path).output().unwrap().status.code(), Some(3));
    let told = || fs::read_to_string(base.programs().join("notify-send.log")).unwrap_or_default();
    let id = base.waiting(ID)["operation"].as_str().unwrap().to_owned();
    wait_until("a message", || told().ends_with('\n'));
    let asks =
        format!("[--app-name=deaddrop][--][deaddrop][{ID} waits for your decision about {id}]\n");
    assert_eq!(told(), asks);
    // Whoever decides looks on.
    base.command(&["deny"]).env("PATH", &path).output().unwrap();
    assert_eq!(told(), asks);
    base.write("inbox/2.txt", "[READ_FILE path=\"none\"]\n");
    let mut resume = base.command(&["resume", "--no-watch"]);
    assert!(resume.env("PATH", &path).output().unwrap().status.success());
    let more = format!(
        "[--app-name=deaddrop][--][deaddrop][1 failed. The next outbox is outbox/{ID}_seq0003.txt]\n"
    );
    wait_until("another message", || told() == format!("{asks}{more}"));
}

#[test]
fn where_no_message_can_be_shown_that_is_said_once() {
    let base = Project::with_session();
    base.write("deaddrop.toml", "notify = \"desktop\"\n");
    for n in 1..4 {
        base.write(&format!("inbox/{n}.txt"), format!("[MESSAGE]\n{n}\n[/MESSAGE]\n"));
    }
    let mut resume = base.command(&["resume", "--no-watch"]);
    let output = resume.env("PATH", base.at("none")).output().unwrap();
    assert!(output.status.success() && base.exists(&format!("outbox/{ID}_seq0004.txt")));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.matches("notify-send").count(), 1, "{said}");
    assert!(
        said.contains("warning: `notify = \"desktop\"` does not work, because notify-send"),
        "{said}"
    );
}

#[test]
fn the_bell_rings_once_a_turn_if_that_is_wanted() {
    let base = Project::with_session();
    base.write("deaddrop.toml", "notify = \"bell\"\n");
    base.write("inbox/1.txt", "[RUN_COMMAND]\nprintf '\\a'\n[/RUN_COMMAND]\n");
    let Some(mut program) = AtTerminal::start(&base, &["resume", "--verbose"]) else { return };
    base.wait_for_outbox(2);
    program.wait_for("\u{7}", 1);
    base.write("inbox/2.txt", ENDS);
    assert_eq!(program.ends(), Some(0));
    assert_eq!(program.shown().matches('\u{7}').count(), 2, "{:?}", program.shown());
    // Where there is no terminal, it has no bell.
    let base = Project::with_session();
    base.write("inbox/1.txt", ENDS);
    let run = base.run(&["resume", "--no-watch", "--quiet"]).ok();
    assert!(!run.stderr.contains('\u{7}') && !run.stdout.contains('\u{7}'), "{run:?}");
}
