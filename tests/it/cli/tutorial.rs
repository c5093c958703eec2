//! The commands of docs/start.md, typed one after the other as they stand there, and what they print held
//! against what it says that they print.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use regex::Regex;

use crate::clipboard::Desktop;
use crate::support::{ID, Project, Run, has_full_sandbox, has_git, program, wait_until};

const FIRST: &str = "[CREATE_FILE path=\"src/average.py\"]\nprint(2)\n[/CREATE_FILE]\n[RUN_COMMAND]\ntest -f src/average.py\n[/RUN_COMMAND]\n";
const SECOND: &str = "[CREATE_FILE path=\"src/other.py\"]\nprint(3)\n[/CREATE_FILE]\n";

/// The commands of its consoles, each with the lines that are shown below it.
fn shown() -> Vec<(String, Vec<String>)> {
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/start.md");
    let text = fs::read_to_string(text).unwrap();
    let mut typed: Vec<(String, Vec<String>)> = Vec::new();
    let mut within = false;
    for line in text.lines() {
        match (line.strip_prefix("```"), line.strip_prefix("$ ")) {
            (Some(kind), _) => within = kind == "console",
            (None, _) if !within => {}
            (None, Some(command)) => typed.push((command.to_owned(), Vec::new())),
            (None, None) => typed.last_mut().unwrap().1.push(line.to_owned()),
        }
    }
    typed
}

/// The person's home folder, with a project in it.
struct Home {
    base: Project,
    environment: Vec<(&'static str, OsString)>,
    /// What differs from one session to the next, and what the document has in its place.
    told: Vec<(Regex, &'static str)>,
}

impl Home {
    fn new() -> Self {
        let base = Project::that_nobody_agrees_to();
        base.sh("mkdir -p projects/calculator; cd projects/calculator; git init -q .; echo 'print(1)' > sum.py");
        let folder = program().parent().unwrap().display();
        let path = std::env::var("PATH").unwrap_or_default();
        let home = base.path().canonicalize().unwrap();
        let environment = vec![
            ("PATH", format!("{folder}:{path}").into()),
            ("HOME", home.clone().into_os_string()),
            ("XDG_STATE_HOME", base.state().as_os_str().to_owned()),
            ("LANG", "C.UTF-8".into()),
        ];
        let told = vec![
            (Regex::new(&regex::escape(&home.display().to_string())).unwrap(), "/home/me"),
            (Regex::new("≈ [0-9,]+ tokens").unwrap(), "≈ 1 tokens"),
        ];
        Self { base, environment, told }
    }

    /// A line as it is typed into a shell in the project.
    fn typed(&self, line: &str) -> Command {
        let mut shell = Command::new("/bin/bash");
        shell.args(["-ec", line]).current_dir(self.base.at("projects/calculator")).env_clear();
        shell.envs(self.environment.iter().map(|(name, value)| (name, value)));
        shell
    }

    fn told(&self, line: &str) -> String {
        let replaced =
            |line: String, (from, to): &(Regex, &str)| from.replace_all(&line, *to).into_owned();
        self.told.iter().fold(line.to_owned(), replaced)
    }

    /// Holds what is printed against what is shown, where `…` stands for more.
    fn prints(&self, printed: &str, shown: &[String]) {
        let mut printed = printed.lines().map(|line| self.told(line));
        for line in shown {
            let line = self.told(line);
            let found = match line.strip_suffix(" …") {
                Some(begin) => printed.any(|printed| printed.starts_with(begin)),
                None => printed.any(|printed| printed == line),
            };
            assert!(found, "docs/start.md shows {line:?}, which does not come there");
        }
    }
}

#[test]
fn the_first_ten_minutes_go_as_they_are_told() {
    let typed = shown();
    let lines: Vec<&str> =
        typed.iter().map(|(line, _)| line.split("  #").next().unwrap().trim()).collect();
    let [cd, init, new, check, paste, paste_here] = lines[..] else { panic!("{lines:#?}") };
    assert_eq!(
        (cd, init, check, paste, paste_here),
        (
            "cd ~/projects/calculator",
            "deaddrop init",
            "deaddrop check ~/reply.txt",
            "deaddrop apply --clipboard",
            "deaddrop apply -"
        )
    );
    assert!(new.starts_with("deaddrop new \""), "{new}");
    if !has_full_sandbox() || !has_git() {
        return;
    }
    let mut home = Home::new();
    let folder = Run::of(&mut home.typed(&format!("{cd}; pwd -P")), "").ok().stdout;
    assert_eq!(home.told(&folder), "/home/me/projects/calculator\n");
    let run = Run::of(&mut home.typed(init), "").ok();
    home.prints(&[run.stdout, run.stderr].concat(), &typed[1].1);

    let daemon = home.base.start_as(&mut home.typed(&format!("exec {new}")));
    daemon.wait_for("Waiting for replies");
    let project = "projects/calculator";
    let outboxes = home.base.names(&format!("{project}/.deaddrop/outbox"));
    let id = outboxes[0].split('_').next().unwrap().to_owned();
    home.told.push((Regex::new(&id).unwrap(), ID));
    let [begins @ .., waiting] = &*typed[2].1 else { panic!("{typed:?}") };
    home.prints(&daemon.said(), begins);
    assert!(waiting.starts_with("Waiting for a reply"), "what a terminal draws: {waiting}");

    home.base.write("reply.txt", FIRST);
    let run = Run::of(&mut home.typed(check), "").ok();
    assert!(run.stdout.contains("src/average.py"), "{run:?}");
    assert!(!home.base.exists("projects/calculator/src"), "check changes nothing");
    let outbox = |sequence: u32| {
        let path = format!("{project}/.deaddrop/outbox/{id}_seq{sequence:04}.txt");
        wait_until(&path, || home.base.exists(&path));
    };
    // Without a desktop it is pasted into the terminal, or comes the way that leads there.
    let mut typed = home.typed(paste);
    let desktop = Desktop::start();
    let _owner = if let Some(desktop) = &desktop {
        let seen = desktop.command(&home.base, &[]);
        typed.envs(seen.get_envs().filter_map(|(name, value)| Some((name, value?))));
        typed.envs(home.environment.iter().map(|(name, value)| (name, value)));
        Some(desktop.holds(FIRST))
    } else {
        eprintln!("SKIPPED: `{paste}`, which needs the clipboard of a desktop");
        typed = home.typed(paste_here);
        None
    };
    Run::of(&mut typed, FIRST).ok();
    outbox(2);
    assert_eq!(home.base.read("projects/calculator/src/average.py"), "print(2)\n");
    Run::of(&mut home.typed(paste_here), SECOND).ok();
    outbox(3);
    assert_eq!(home.base.read("projects/calculator/src/other.py"), "print(3)\n");
    daemon.wait_for("Created 'src/other.py'");
}
