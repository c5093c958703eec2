//! The day's commands as a person types them into a terminal: what they see of each, in a wide one and
//! in a narrow one.

mod agreeing;
mod played;

use std::cell::Cell;

use crate::support::{Project, has_full_sandbox};
use crate::tmux::{PROMPT, Tmux};

/// How wide the terminals are: as most begin, and one of two that share a screen.
const WIDTHS: [usize; 2] = [80, 50];

/// A person at a terminal in a project.
struct Person {
    tmux: Tmux,
    columns: usize,
    /// How many lines they have typed.
    typed: Cell<usize>,
}

impl Person {
    /// None, and said so, where there is no tmux. A project has one terminal.
    fn sits_down(base: &Project, columns: usize) -> Option<Self> {
        let tmux = Tmux::start(base, columns)?;
        Some(Self { tmux, columns, typed: Cell::new(0) })
    }

    /// Types a line on an empty screen; what it says is awaited.
    fn begins(&self, line: &str) {
        self.typed.set(self.typed.get() + 1);
        // The number in the end is another than what is typed.
        self.tmux.types(&format!("clear; {line}; echo \"[$?] {}\"", self.typed.get()));
    }

    /// Waits for its end; gives all that it showed, each row as it stands on the screen.
    #[track_caller]
    fn sees(&self, code: i32) -> String {
        let end = format!("[{code}] {}\n{PROMPT}", self.typed.get());
        let screen = self.tmux.wait_for(&end, |screen| screen.ends_with(&end));
        self.is_whole(&self.tmux.all());
        screen.strip_suffix(&end).unwrap().to_owned()
    }

    /// Types a line, and gives what it showed.
    #[track_caller]
    fn does(&self, line: &str, code: i32) -> String {
        self.begins(line);
        self.sees(code)
    }

    /// The same without where its rows end.
    #[track_caller]
    fn reads(&self, line: &str, code: i32) -> String {
        flat(&self.does(line, code))
    }

    /// The terminal has broken no line, but what has no blank; and nothing that is drawn in place is
    /// left. `all` has what was broken as one line.
    #[track_caller]
    fn is_whole(&self, all: &str) {
        for row in all.lines().filter(|row| !row.contains("clear; ")) {
            let is_long = row.chars().count() > self.columns;
            assert!(!is_long || !row.trim().contains(' '), "broken: '{row}' in\n{all}");
            let spins = ["  | ", "  / ", "  - ", "  \\ "].iter().any(|mark| {
                let rest = row.strip_prefix(mark).unwrap_or_default();
                rest.trim_start().starts_with(|c: char| c.is_ascii_digit())
            });
            // The line that says what is waited for, and not one that was printed.
            let waits =
                row.ends_with("Ctrl-C stops") || row.ends_with('…') && row.starts_with("Waiting");
            assert!(!spins && !waits, "left: '{row}' in\n{all}");
        }
    }
}

/// A text as one line.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn holds(told: &str, parts: &[&str]) {
    for part in parts {
        assert!(told.contains(part), "'{part}' in\n{told}");
    }
}

const REPLY: &str = "\
[CREATE_FILE path=\"src/greet.sh\"]
echo \"Hello, $1.\"
[/CREATE_FILE]
[RUN_COMMAND]
sh src/greet.sh Ada > out.txt; while ! [ -e go ]; do sleep 0.02; done; rm go
[/RUN_COMMAND]
";

#[test]
fn a_session_from_init_to_its_end_in_a_wide_terminal() {
    session(80);
}

#[test]
fn a_session_from_init_to_its_end_in_a_narrow_one() {
    session(50);
}

fn session(columns: usize) {
    let base = Project::new();
    base.write("project/README.md", "# Greetings\n");
    if !crate::support::has_sandbox("auto") {
        return;
    }
    let Some(person) = Person::sits_down(&base, columns) else { return };
    person.does("cd project", 0);
    holds(
        &person.reads("deaddrop init", 0),
        &["is set up.", "Next: deaddrop new \"what is to be done\""],
    );
    let told =
        person.reads("deaddrop new --no-watch 'Write a script that greets people by name'", 0);
    holds(&told, &["begins: Write a script", " tokens), and save the reply as a .txt file in "]);
    assert!(told.ends_with("_seq0001.txt"), "{told}");

    base.write("project/reply.txt", REPLY);
    person.begins("deaddrop apply reply.txt");
    person.tmux.wait_for("a spinner", |screen| screen.contains(" s RUN_COMMAND"));
    base.write("project/go", "");
    let told = person.sees(0);
    assert!(told.starts_with("reply.txt, the reply to outbox 1 of "), "{told}");
    holds(&told, &["\n  ok    CREATE_FILE  Created 'src/greet.sh'\n"]);
    holds(
        &flat(&told),
        &[
            "2 files changed: new out.txt (+1), new src/greet.sh (+1)",
            "Next outbox, to paste into the chat (≈ ",
        ],
    );

    // Pasted into the terminal, which shows none of it.
    person.begins("deaddrop apply -");
    person.tmux.shows("Paste the reply here");
    for line in ["[CREATE_FILE path=\"b.txt\"]", "one", "[/CREATE_FILE]"] {
        person.tmux.types(line);
    }
    person.tmux.key("C-d");
    let told = person.sees(0);
    holds(
        &told,
        &["\n  ok    CREATE_FILE  Created 'b.txt'\n", "\n1 file changed: new b.txt (+1)\n"],
    );
    assert!(!told.contains("[CREATE_FILE path"), "{told}");

    let told = person.does("deaddrop diff", 0);
    holds(&told, &["--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+one\n"]);
    holds(
        &person.does("deaddrop diff 1 --stat", 0),
        &["new out.txt (+1)\nnew src/greet.sh (+1)\n"],
    );

    base.write("project/b.txt", "mine\n");
    let told = person.reads("deaddrop undo", 1);
    holds(
        &told,
        &[
            "error: 1 file was changed since, and nothing was touched: 'b.txt'. `--force` puts it back",
        ],
    );
    assert_eq!(base.read("project/b.txt"), "mine\n");
    holds(
        &person.reads("deaddrop undo --force", 0),
        &["Turn 2 undone in session ", "; 1 file changed: deleted b.txt"],
    );
    assert!(!base.exists("project/b.txt"));
    holds(
        &person.reads("deaddrop redo", 0),
        &[
            "warning: 'b.txt' still contains a later change",
            "Turn 2 put back in session ",
            ", but for 1 place (see above); 1 file changed: new b.txt (+1)",
        ],
    );
    assert_eq!(base.read("project/b.txt"), "mine\n");
    let told = person.reads("deaddrop redo", 1);
    holds(
        &told,
        &["error: there is nothing to redo in session ", "until a later turn changes files"],
    );
    let told = person.reads("deaddrop undo --last 2 --force", 0);
    holds(&told, &["Turns 1, 2 undone in session ", "; 3 files changed: "]);
    assert!(!base.exists("project/src/greet.sh") && !base.exists("project/b.txt"));

    let told = person.does("deaddrop log", 0);
    let turns: Vec<&str> =
        told.lines().filter(|row| row.starts_with("   ") && !row.starts_with("      ")).collect();
    assert_eq!(turns.len(), 5, "{told}");
    assert!(flat(&told).contains(", undone"), "{told}");
    holds(&flat(&told), &["undid 2 (undo)", "took undo 3 back (redo)", "undid 1, 2 (undo)"]);
    let listed = person.reads("deaddrop status", 0);
    let id = listed.split(' ').next().unwrap().to_owned();
    let told = person.reads(&format!("deaddrop status {}", &id[..4]), 0);
    holds(&told, &["open, waiting for a reply"]);
    if has_full_sandbox() {
        holds(&told, &["Sandbox: full: commands"]);
    }
    holds(&person.reads(&format!("deaddrop close {id} --delete"), 0), &["is removed."]);
    holds(&person.reads("deaddrop status", 0), &["There are no sessions here yet"]);
    assert!(
        base.exists("project/README.md")
            && !base.exists(&format!("project/.deaddrop/sessions/{id}.log"))
    );
}

#[test]
fn a_command_that_reads_the_keyboard_says_so_and_how_to_end_it() {
    let base = Project::with_session();
    let Some(person) = Person::sits_down(&base, 80) else { return };
    for (line, says, code) in [
        ("deaddrop check", "Paste the reply here", 1),
        ("deaddrop apply -", "Paste the reply here", 0),
        ("deaddrop ops validate", "the message from the keyboard", 1),
    ] {
        person.begins(line);
        person.tmux.wait_for("how to end it", |screen| {
            let told = flat(screen);
            // What the command before it said stands there until the screen is cleared.
            told.contains(says) && told.contains("Ctrl-D") && !told.contains(PROMPT.trim())
        });
        person.tmux.types("Nothing to do");
        person.tmux.key("C-d");
        person.sees(code);
    }
}

#[test]
fn settings_the_doctor_and_an_editor() {
    for columns in WIDTHS {
        let base = Project::with_session();
        base.write("deaddrop.toml", "# Mine.\n");
        base.installs("editor", "echo \"editing ${1##*/}\"; read line; echo \"typed $line\"");
        let Some(person) = Person::sits_down(&base, columns) else { return };
        assert_eq!(person.does("deaddrop config get max_tokens", 0), "24000\n");
        let told = person.does("deaddrop config set max_tokens 30000", 0);
        holds(&flat(&told), &["deaddrop.toml is changed."]);
        assert_eq!(person.does("deaddrop config get max_tokens", 0), "30000\n");
        let told = person.reads("deaddrop config set max_tokns 1", 2);
        holds(&told, &["unknown setting 'max_tokns'; did you mean 'max_tokens'?"]);
        holds(&person.does("deaddrop config show --changed", 0), &["max_tokens = 30000"]);
        let told = person.does("deaddrop config unset max_tokens", 0);
        holds(&flat(&told), &["deaddrop.toml is changed."]);

        person.begins("deaddrop doctor");
        let end = format!("] {}\n{PROMPT}", person.typed.get());
        person.tmux.wait_for("the end of the doctor", |screen| screen.ends_with(&end));
        let all = person.tmux.all();
        person.is_whole(&all);
        for what in
            ["project folder  ", "commands  ", "clipboard  ", "git  ", "watching  ", "disk  "]
        {
            let found = all
                .lines()
                .any(|row| row.get(2..).is_some_and(|row| row.trim_start().starts_with(what)));
            assert!(found, "{what}: {all}");
        }

        base.write("path", base.path_with_programs());
        person.begins("PATH=$(cat path):$PATH EDITOR=editor deaddrop show --open");
        let screen = person.tmux.shows("editing ");
        holds(&screen, &["Opening outbox/a1b2c3d4_seq0001.txt with editor\n"]);
        person.tmux.types("words");
        holds(&person.sees(0), &["typed words\n", "outbox/a1b2c3d4_seq0001.txt\n"]);
    }
}

#[test]
fn an_undo_beside_a_deaddrop_that_serves_tells_what_it_left() {
    let base = Project::with_session();
    let Some(person) = Person::sits_down(&base, 80) else { return };
    let daemon = base.serve(&["watch"]);
    base.write("inbox/r.txt", "[CREATE_FILE path=\"new/a.txt\"]\n1\n[/CREATE_FILE]\n");
    base.wait_for_outbox(2);
    base.wait_for_archive(&["r.txt"]);
    base.sh("mkdir workspace/new/mine");
    let told = person.reads("deaddrop undo", 0);
    holds(
        &told,
        &[
            "warning: 'new' is left as it is: ",
            "Turn 1 undone in session a1b2c3d4, but for 1 place (see above); 1 file",
        ],
    );
    // Once each, here as there.
    assert_eq!(told.matches("is left as it is").count(), 1, "{told}");
    daemon.wait_for("'new' is left as it is");
}
