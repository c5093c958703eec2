//! The session that README.md shows: played anew in a terminal, and compared.
//!
//! `README=overwrite cargo test --test it -- readme_session` writes what the program says now.

use std::fs;
use std::path::Path;

use regex::Regex;

use crate::support::{Project, has_sandbox};
use crate::tmux::{PROMPT, Tmux};

const BEGIN: &str = "<!-- recorded -->\n";
const END: &str = "<!-- end -->\n";
/// The id that stands for the one of this run.
const ID: &str = "a1b2c3d4";

const REPLY: &str = "\
[CREATE_FILE path=\"calc.sh\"]
echo $(($*))
[/CREATE_FILE]
[CREATE_FILE path=\"tests.sh\"]
echo 'ok 1: 2 + 2 is 4'
echo 'ok 2: 3 * 4 is 12'
while ! [ -e go ]; do sleep 0.02; done
rm go
echo 'not ok 3: 10 / 4 is 2, and not 2.5'
exit 1
[/CREATE_FILE]
[RUN_COMMAND]
sh tests.sh
[/RUN_COMMAND]
[CREATE_FILE path=\"../notes.txt\"]
Whole numbers only.
[/CREATE_FILE]
";

/// A screen without what is another each time it is played.
fn portable(screen: &str) -> String {
    let mut screen = screen.to_owned();
    for (changes, stays) in
        [(r"≈ [\d,]+ tokens", "≈ N tokens"), (r"(?m)^  [|/\\-] +\d+ s", "  | N s")]
    {
        screen = Regex::new(changes).unwrap().replace_all(&screen, stays).into_owned();
    }
    screen
}

#[test]
fn the_session_in_the_readme_is_what_the_program_shows() {
    let base = Project::new();
    if !has_sandbox("auto") {
        return;
    }
    let Some(tmux) = Tmux::start(&base, 100) else { return };
    tmux.types("deaddrop new 'Write a calculator as a shell script, with tests'");
    tmux.shows("Waiting for a reply");
    let id = base.names("sessions").into_iter().find_map(|name| {
        name.strip_suffix(".json").filter(|id| id.len() == ID.len()).map(str::to_owned)
    });
    base.write("inbox/reply.txt", REPLY);
    tmux.wait_for("a spinner", |screen| screen.contains(" s RUN_COMMAND  'sh tests.sh' · ok 2"));
    let running = tmux.all();
    base.write("workspace/go", "");
    tmux.shows("0002.txt\nWaiting for a reply");
    let done = tmux.all();
    let told = |text: &str| {
        let text = text.replace(&id.clone().unwrap(), ID).replace(PROMPT, "$ ");
        text.lines().map(|line| format!("{}\n", line.trim_end())).collect::<String>()
    };
    let (running, done) = (told(&running), told(&done));
    // The end of the turn, from the command on.
    let done = &done[done.find("FAILED").unwrap()..];
    let shown = format!("```text\n{running}```\n\n```text\n{done}```\n");

    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = fs::read_to_string(&readme).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the begin of the recorded session");
    let (recorded, after) = rest.split_once(END).expect("its end");
    if std::env::var("README").is_ok_and(|value| value == "overwrite") {
        fs::write(&readme, format!("{before}{BEGIN}{shown}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(portable(recorded), portable(&shown), "README=overwrite writes it anew");
}
