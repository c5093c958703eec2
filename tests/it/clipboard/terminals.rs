//! OSC 52: what reaches the terminal, by itself and through tmux.

use std::fs;
use std::process::{Child, Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{has, key_line, without_clipboard};
use crate::support::{ID, Project, program, wait_until};
use crate::tmux::Tmux;

/// What a terminal is sent for its clipboard.
fn sequence(text: &str) -> String {
    format!("\x1b]52;c;{}\x07", STANDARD.encode(text))
}

/// Runs `deaddrop` with these arguments at a terminal; gives all that it showed there.
fn at_terminal(base: &Project, term: &str, arguments: &str) -> Option<String> {
    if !has("script") {
        return None;
    }
    let line = format!("'{}' {arguments}", program().display());
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(base.path()).env("TERM", term);
    command.env("XDG_STATE_HOME", base.state());
    let output = without_clipboard(&mut command).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn without_a_display_the_terminal_takes_it() {
    let base = Project::with_session();
    let Some(shown) = at_terminal(&base, "xterm-256color", "show --copy") else { return };
    assert_eq!(shown.matches(&sequence(&base.outbox(1))).count(), 1, "{shown}");
    assert!(shown.contains("was sent to the terminal's clipboard (OSC 52); terminals do not"));
    // Also where results go elsewhere.
    let shown = at_terminal(&base, "xterm", "show --copy --json >told").unwrap();
    assert!(shown.contains(&sequence(&base.outbox(1))));
    assert!(base.read("told").contains("\"way\":\"osc52\""));
    // And where nothing goes to the terminal, nothing is sent there.
    let shown = at_terminal(&base, "xterm", "show --copy >told 2>&1").unwrap();
    assert_eq!(shown, "");
    assert!(base.read("told").contains("osc52: this does not run at a terminal"));
}

#[test]
fn a_terminal_without_a_clipboard_gets_nothing_and_one_with_no_more_than_it_takes() {
    let base = Project::with_session();
    for term in ["dumb", "linux"] {
        let Some(shown) = at_terminal(&base, term, "show --copy") else { return };
        assert!(!shown.contains("]52;"), "{shown}");
        assert!(shown.contains(&format!("a terminal of type '{term}' has no clipboard")));
        assert!(shown.contains(&format!("outbox/{ID}_seq0001.txt\r\n")), "{shown}");
    }
    let large = "A line of a large outbox\n".repeat(3_200);
    base.write(&format!("outbox/{ID}_seq0001.txt"), &large);
    let shown = at_terminal(&base, "xterm", "show --copy").unwrap();
    assert!(!shown.contains("]52;"), "{shown}");
    assert!(
        shown.contains("the text is 80000 bytes long") && shown.contains("--part 1"),
        "{shown}"
    );
    let shown = at_terminal(&base, "xterm", "show --copy --part 2").unwrap();
    assert!(
        shown
            .contains("then part 3 of 3: `deaddrop show 1 --session a1b2c3d4 --copy --part 3`\r\n"),
        "{shown}"
    );
    assert!(shown.contains("]52;"), "{shown}");
}

/// A tmux that has nobody's clipboard.
fn start_tmux(base: &Project) -> Option<Tmux> {
    Tmux::of(base, [90, 30], "sleep 600", |command| {
        without_clipboard(command).env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
        command.env("XDG_STATE_HOME", base.state());
    })
}

/// Runs `deaddrop show --copy` in a window; gives what it said.
fn copy_in(tmux: &Tmux, base: &Project) -> String {
    let script = format!(
        "cd '{}' && '{}' show --copy 2>said; mv said told; sleep 600",
        base.path().display(),
        program().display()
    );
    tmux.tell(&["new-window", &script]);
    wait_until("the end of copy", || base.exists("told"));
    base.read("told")
}

/// A program that is ended when this is dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn tmux_keeps_it_and_gives_it_to_its_terminal() {
    let base = Project::with_session();
    if !has("script") {
        return;
    }
    let Some(tmux) = start_tmux(&base) else { return };
    // The terminal that tmux is shown in.
    let shown = fs::File::create(base.at("shown")).unwrap();
    let mut client = Command::new("script");
    let attach = format!("tmux -S '{}' attach", tmux.socket().display());
    client.args(["-qefc", &attach, "/dev/null"]).env("TERM", "xterm-256color");
    client.env("LC_ALL", "C.UTF-8");
    // Its input stays open, or it would end.
    without_clipboard(&mut client).stdin(Stdio::piped()).stdout(shown).stderr(Stdio::null());
    let _client = Ended(client.spawn().unwrap());
    wait_until("a client of tmux", || !tmux.tell(&["list-clients"]).is_empty());
    let said = copy_in(&tmux, &base);
    assert!(said.contains("was sent to the terminal's clipboard, through tmux (load-"), "{said}");
    assert_eq!(tmux.tell(&["show-buffer"]).trim_end(), base.outbox(1).trim_end());
    let expected = STANDARD.encode(base.outbox(1));
    wait_until("the sequence at the terminal", || {
        let shown = fs::read(base.at("shown")).unwrap();
        String::from_utf8_lossy(&shown).contains(&expected)
    });
}

#[test]
fn over_ssh_a_turn_is_one_command_and_a_paste() {
    let base = Project::with_session();
    let Some(tmux) = start_tmux(&base) else { return };
    // A terminal that waits for whole lines cuts the longer ones.
    let long = "long ".repeat(5_000);
    for (sequence, marked) in [(1, true), (2, false)] {
        let script =
            format!("cd '{}'; '{}' next -; sleep 600", base.path().display(), program().display());
        tmux.tell(&["new-window", &script]);
        wait_until("the question", || {
            tmux.tell(&["capture-pane", "-p"]).contains("Paste the reply")
        });
        let line = key_line(&base, sequence);
        let name = format!("{sequence}.txt");
        let reply = format!("{line}\n[CREATE_FILE path=\"{name}\"]\n\t{long}\n☂\n[/CREATE_FILE]\n");
        let file = base.write("reply", reply).to_string_lossy().into_owned();
        tmux.tell(&["load-buffer", &file]);
        if marked {
            tmux.tell(&["paste-buffer", "-p"]);
        } else {
            tmux.tell(&["paste-buffer"]);
            tmux.tell(&["send-keys", "C-d"]);
        }
        let outbox = base.wait_for_outbox(sequence + 1);
        assert_eq!(base.read(&format!("workspace/{name}")), format!("\t{long}\n☂\n"));
        wait_until("the outbox in the buffer of tmux", || {
            tmux.tell(&["show-buffer"]).trim_end() == outbox.trim_end()
        });
    }
}

#[test]
fn a_paste_is_called_off_with_ctrl_c_and_leaves_the_terminal_as_it_was() {
    let base = Project::with_session();
    let Some(tmux) = start_tmux(&base) else { return };
    let script = format!(
        "cd '{}'; stty -a >before; '{}' apply -; echo $? >code; stty -a >after; sleep 600",
        base.path().display(),
        program().display()
    );
    tmux.tell(&["new-window", &script]);
    wait_until("the question", || tmux.tell(&["capture-pane", "-p"]).contains("Paste the reply"));
    tmux.tell(&["send-keys", "[DONE]", "C-c"]);
    wait_until("its end", || base.exists("after"));
    assert_eq!(base.read("code"), "130\n");
    wait_until("all of stty", || base.read("after") == base.read("before"));
    assert!(base.names("inbox/processed").is_empty());
}
