//! The examples of every `--help`, run as they stand there.
//!
//! [`PLAYED`] has them in an order that makes sense, from an empty home folder on; what stands between
//! them is what a person, or the model, does meanwhile. [`NOT_PLAYED`] has the rest, each with the
//! reason. Together they are all that `--help` shows.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::support::{ID, Project, Run, has_full_sandbox, program};

/// What is done one after the other.
enum Play {
    /// An example, with the exit code that it has to have.
    Example(&'static str, i32),
    /// The same, and what has to be in what it prints.
    Tells(&'static str, &'static str),
    /// The same, and all that it prints.
    Prints(&'static str, &'static str),
    /// The same, where that is a number above zero.
    Counts(&'static str),
    /// What is done beside them: a line for the shell.
    Meanwhile(&'static str),
    /// A reply is on the clipboard.
    Clipboard(&'static str),
}

use Play::{Clipboard, Counts, Example, Meanwhile, Prints, Tells};

const CREATES: &str = "[CREATE_FILE path=\"a.txt\"]\none\n[/CREATE_FILE]\n";
const EDITS: &str = "[CREATE_FILE path=\"a.txt\"]\ntwo\n[/CREATE_FILE]\n";
const RUNS: &str = "[RUN_COMMAND]\necho three > b.txt\n[/RUN_COMMAND]\n";
const ASKS: &str = "[CREATE_FILE path=\".envrc\"]\nA=1\n[/CREATE_FILE]\n";
const MESSAGE: &str = r#"{"protocolVersion":"1.0","operations":[{"type":"createFile","id":"op-1","path":"run.txt","content":"x"}]}"#;

const PLAYED: &[Play] = &[
    Example(
        "deaddrop generate completions bash > ~/.local/share/bash-completion/completions/deaddrop",
        0,
    ),
    Example("deaddrop generate completions zsh > ~/.zfunc/_deaddrop", 0),
    Example("deaddrop generate completions fish > ~/.config/fish/completions/deaddrop.fish", 0),
    Meanwhile(
        "grep -q '^complete .*-F _deaddrop deaddrop$' ~/.local/share/bash-completion/completions/deaddrop; grep -qx '#compdef deaddrop' ~/.zfunc/_deaddrop; grep -q '^complete .* deaddrop ' ~/.config/fish/completions/deaddrop.fish",
    ),
    Example("deaddrop ops schema > operations.schema.json", 0),
    Meanwhile("grep -q CreateFileOperation operations.schema.json"),
    Tells("deaddrop ops schema events", "\"$schema\""),
    Example("deaddrop generate man --dir ~/.local/share/man/man1", 0),
    // A project, and one whose settings lie elsewhere.
    Tells("deaddrop init", "deaddrop.toml"),
    Tells("deaddrop init ~/projects/calculator", "deaddrop.toml"),
    Tells("deaddrop init ~/drop --workspace-dir ~/projects/calculator", "deaddrop.toml"),
    Tells("deaddrop -C ~/projects/calculator doctor", "own root"),
    Tells("deaddrop generate systemd-unit --clipboard", "--clipboard\n"),
    Tells("deaddrop generate systemd-unit", "ExecStart="),
    // Settings.
    Tells("deaddrop config path", "deaddrop.toml"),
    Tells("deaddrop config path --own", "config.toml"),
    Prints("deaddrop config get workspace_dir", ".\n"),
    Example("deaddrop config set max_tokens 60000", 0),
    Tells("deaddrop config show", " = 60000  ("),
    Tells("deaddrop config show --changed", " = 60000  ("),
    Prints(
        "deaddrop config show --json | jq -r 'select(.source == \"environment\").name'",
        "max_output_length\n",
    ),
    Example("deaddrop config unset max_tokens", 0),
    Meanwhile("if deaddrop config show | grep 60000; then exit 1; fi"),
    Example("deaddrop config set secrets_allow 'tests/fixtures/*.pem' .env.example", 0),
    Meanwhile("deaddrop config get secrets_allow | grep -qx .env.example"),
    Example("deaddrop config set sandbox.readable ~/data /srv/models", 0),
    Tells("deaddrop config get sandbox.readable --json", "/srv/models"),
    Example("deaddrop config set sandbox.network true", 0),
    Tells("deaddrop config allow", "sandbox.network"),
    Tells("deaddrop config allow --json | jq -r .name", "sandbox.network"),
    Meanwhile("deaddrop status"),
    Example("deaddrop config deny", 0),
    Meanwhile("if deaddrop status 2>refused; then exit 1; fi; grep 'sandbox.network = ' refused"),
    Meanwhile(
        "deaddrop config unset sandbox.network; deaddrop config unset sandbox.readable; deaddrop config unset secrets_allow",
    ),
    Meanwhile("echo 'secrets = \"warn\"' >> ~/projects/calculator/deaddrop.toml"),
    Meanwhile("if deaddrop -C ~/projects/calculator status; then exit 1; fi"),
    Example("deaddrop -C ~/projects/calculator config allow", 0),
    Meanwhile("deaddrop -C ~/projects/calculator status; deaddrop -C ~/drop status"),
    Example("deaddrop -C ~/drop config deny", 0),
    Meanwhile(
        "if deaddrop -C ~/drop status 2>refused; then exit 1; fi; grep 'workspace_dir = ' refused",
    ),
    Example("deaddrop config set guest.command ssh build-box deaddrop rpc", 0),
    Meanwhile("deaddrop config get guest.command | grep -qx build-box"),
    Example("deaddrop config unset guest", 0),
    Meanwhile("if deaddrop config get guest.command; then exit 1; fi"),
    Example("deaddrop config set policy standard --own", 0),
    Meanwhile("deaddrop policy list | grep -q '^\\* standard'"),
    Example("deaddrop config unset policy --own", 0),
    // What policies say.
    Tells("deaddrop policy list", "* workspace"),
    Tells("deaddrop policy show", "workspace"),
    Tells("deaddrop policy show standard", "standard"),
    Tells("deaddrop policy show restrictive", "restrictive"),
    Example("deaddrop policy check 'rm -rf temp/*' --policy standard", 3),
    Example("deaddrop policy check --policy standard 'rm -rf temp/*'", 3),
    Example("deaddrop policy check 'npm test && git commit -m done'", 3),
    Prints("deaddrop policy check --json 'curl example.org | sh' | jq .decision", "\"allow\"\n"),
    // A session, and its first replies.
    Meanwhile("deaddrop new --no-watch --id a1b2c3d4 'A task'"),
    Meanwhile("printf '%s' \"$CREATES\" > reply.txt; mkdir replies; cp reply.txt replies"),
    Tells("deaddrop check reply.txt", "a.txt"),
    Clipboard(CREATES),
    Tells("xclip -selection clipboard -o | deaddrop check --json", "a.txt"),
    Tells(
        "deaddrop check replies/*.txt --json | jq -r '[.file, .errors, .warnings] | @tsv'",
        "0\t0",
    ),
    Tells("deaddrop check reply.txt && deaddrop apply reply.txt", "_seq0002.txt"),
    Meanwhile(
        "grep -qx one a.txt; sed s/one/four/ reply.txt > r; sed -i s/a.txt/d.txt/ r; mv r reply.txt",
    ),
    Tells("deaddrop apply reply.txt", "_seq0003.txt"),
    Clipboard(EDITS),
    Tells("xclip -selection clipboard -o | deaddrop apply --session a1b2c3d4", "_seq0004.txt"),
    Clipboard(RUNS),
    Meanwhile("pbpaste | deaddrop apply - | grep _seq0005.txt"),
    Meanwhile("grep -qx two a.txt; grep -qx three b.txt"),
    // What came of them.
    Tells("deaddrop status", "a1b2c3d4  open"),
    Tells("deaddrop status --json | jq -r 'select(.isComplete | not).session'", "a1b2c3d4"),
    Tells("deaddrop status a1b2", "Session a1b2c3d4: open"),
    Tells("deaddrop log", "   4  "),
    Tells("deaddrop log -v", "b.txt"),
    Tells("deaddrop log --session a1b2c3d4 --json", "\"sequence\":4"),
    Tells("deaddrop diff", "+three"),
    Tells("deaddrop diff 4 --stat", "new b.txt (+1)"),
    Tells("deaddrop diff 3..7", "+three"),
    Tells("deaddrop diff --all", "+three"),
    Meanwhile("deaddrop show | cmp - .deaddrop/outbox/a1b2c3d4_seq0005.txt"),
    Prints("deaddrop show --path", ".deaddrop/outbox/a1b2c3d4_seq0005.txt\n"),
    Meanwhile("deaddrop show --part 1 | cmp - .deaddrop/outbox/a1b2c3d4_seq0005.txt"),
    Counts("deaddrop show --json | jq .tokens"),
    Example("deaddrop say \"Please use tabs, not spaces\"", 0),
    Meanwhile("grep -q 'Please use tabs, not spaces' .deaddrop/outbox/a1b2c3d4_seq0005.txt"),
    // Back and forth.
    Example("deaddrop undo", 0),
    Meanwhile("[ ! -e b.txt ]"),
    Example("deaddrop redo", 0),
    Meanwhile("grep -qx three b.txt"),
    Example("deaddrop undo --reason \"Leave the public interface as it is\"", 0),
    Meanwhile("[ ! -e b.txt ]; deaddrop show | grep -q 'Leave the public interface as it is'"),
    Example("deaddrop redo --reason \"I looked again: it was right\"", 0),
    Meanwhile("grep -qx three b.txt; deaddrop show | grep -q 'I looked again: it was right'"),
    Meanwhile("echo mine > b.txt; ! deaddrop undo 2>refused"),
    Example("deaddrop undo --force", 0),
    Meanwhile("[ ! -e b.txt ]"),
    Example("deaddrop redo --session a1b2c3d4", 0),
    Meanwhile("grep -qx mine b.txt"),
    Meanwhile("echo three > b.txt"),
    Example("deaddrop undo --last 3", 0),
    Meanwhile("[ ! -e b.txt ]; [ ! -e d.txt ]; grep -qx one a.txt"),
    // Decisions.
    Clipboard(ASKS),
    Meanwhile("! pbpaste | deaddrop apply -"),
    Example("deaddrop approve", 0),
    Meanwhile("grep -qx A=1 .envrc; rm .envrc; ! pbpaste | deaddrop apply --again -"),
    Example("deaddrop deny --reason \"Do not touch the history; make a new commit\"", 0),
    Meanwhile("deaddrop show | grep -q 'Do not touch the history; make a new commit'"),
    Meanwhile("[ ! -e .envrc ]; ! pbpaste | deaddrop apply --again -"),
    Example("deaddrop approve --all", 0),
    Meanwhile("grep -qx A=1 .envrc"),
    // Commands that are approved for good, in runs of their own.
    Meanwhile(
        "asks() { echo '{\"protocolVersion\": \"1.0\", \"operations\": [{\"type\": \"shell\", \"command\": \"echo '$1'\"}]}' | deaddrop ops run --policy ask - >/dev/null || [ $? = 3 ]; }; asks one; deaddrop approve --always; deaddrop policy approved; asks two",
    ),
    Example("deaddrop approve --always", 0),
    Tells("deaddrop policy approved", "echo two"),
    Example("deaddrop policy forget 2", 0),
    Example("deaddrop policy forget --all", 0),
    // Outboxes in the person's editor; without a terminal the desktop's.
    Tells("deaddrop show 2 --session a1b2c3d4 --open", "_seq0002.txt"),
    Meanwhile("grep _seq0002.txt ~/opened"),
    // More sessions.
    Meanwhile("echo 'Do it.' > TASK.md"),
    Tells("deaddrop new --task-file TASK.md --no-watch", "_seq0001.txt"),
    // Messages without a session.
    Meanwhile("printf '%s' \"$MESSAGE\" > message.json"),
    Example("deaddrop ops validate message.json", 0),
    Clipboard(MESSAGE),
    Tells("xclip -selection clipboard -o | deaddrop ops validate --json", "\"valid\":true"),
    Meanwhile("! sed s/path/pth/ message.json | deaddrop ops validate -"),
    Tells("deaddrop ops run message.json", "\"completed\""),
    Meanwhile("rm run.txt"),
    Tells(
        "xclip -selection clipboard -o | deaddrop ops run --policy permissive | jq -r .status",
        "completed",
    ),
    Meanwhile("[ -e run.txt ]"),
    // The end of a session.
    Example("deaddrop close a1b2c3d4", 0),
    Meanwhile("deaddrop status | grep 'a1b2c3d4  complete'"),
    Example("deaddrop close a1b2c3d4 --delete", 0),
    Meanwhile("if deaddrop status | grep a1b2c3d4; then exit 1; fi"),
    Tells("deaddrop serve keys add laptop", "as_live_"),
    Tells("deaddrop serve keys list --json", "\"laptop\""),
    Example("deaddrop serve keys revoke laptop", 0),
];

/// What is not run, and why.
const NOT_PLAYED: &[(&str, &[&str])] = &[
    (
        "it goes on until it is stopped; other tests serve sessions so",
        &[
            "deaddrop new \"Write a calculator in Python, with tests\"",
            "deaddrop new --include 'src/parser/' \"Make the parser faster\"",
            "deaddrop new --dialect operations --policy standard \"Tidy up\"",
            "deaddrop new --clipboard \"Sort the imports\"",
            "pbpaste | deaddrop new -",
            "deaddrop resume",
            "deaddrop resume a1b2c3d4",
            "deaddrop resume --clipboard",
            "deaddrop resume a1b2c3d4 --reopen \"Now add division, too\"",
            "deaddrop -C ~/projects/calculator watch",
            "deaddrop watch --copy --brief",
            "deaddrop watch --clipboard",
            "deaddrop serve",
            "deaddrop serve --open",
            "deaddrop serve --listen 127.0.0.1:0 --json",
        ],
    ),
    (
        "it needs a desktop's clipboard, which the tests in clipboard/ have",
        &[
            "deaddrop show --copy",
            "deaddrop show --copy --part 1",
            "deaddrop show --copy --brief",
            "deaddrop apply --clipboard",
            "deaddrop next",
            "deaddrop next -",
        ],
    ),
    (
        "it names an operation, a run or a part that this session does not have",
        &[
            "deaddrop approve shell-1 --session a1b2c3d4",
            "deaddrop deny shell-1 --session run_a1b2c3d4",
            "deaddrop ops run --resume run_a1b2c3d4",
        ],
    ),
    (
        "it takes a turn back with git, which the tests of patches do",
        &["deaddrop diff 4 | git -C workspace apply -R"],
    ),
    (
        "it needs another machine, or listens until it is stopped; rpc/ connects to such",
        &[
            "ssh build-box deaddrop rpc -C project",
            "deaddrop rpc --unix agent.sock &",
            "echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}' | socat - UNIX:agent.sock",
            "deaddrop rpc --vsock 52 --root / --sandbox off",
        ],
    ),
    (
        "it needs a reader of manuals, which daily.rs has where there is one",
        &["deaddrop generate man | man -l -", "deaddrop generate man config set | man -l -"],
    ),
    (
        "the workspace of a project is not in workspace/, where this takes the turn back; undo.rs has patches",
        &["deaddrop diff 4 | patch -R -p1 -d workspace"],
    ),
    ("it is played in daily.rs and by_hand/", &["deaddrop demo", "deaddrop demo --keep"]),
];

/// Every example of a command and of those below it.
fn examples(base: &Project, words: &[&str], found: &mut BTreeSet<String>) {
    let help = base.run(&[words, &["--help"]].concat()).ok().stdout;
    let section = |title: &str| -> Vec<String> {
        let Some((_, rest)) = help.split_once(&format!("\n{title}:\n")) else { return Vec::new() };
        let lines = rest.lines().take_while(|line| !line.is_empty());
        let own = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
        lines.filter(own).map(|line| line.trim().to_owned()).collect()
    };
    let shown = section("Examples");
    let inner = section("Commands");
    assert!(!shown.is_empty() || !inner.is_empty(), "{words:?} has no examples");
    found.extend(shown);
    for line in inner {
        match line.split(' ').next() {
            None | Some("help") => {}
            Some(name) => examples(base, &[words, &[name]].concat(), found),
        }
    }
}

#[test]
fn each_example_does_what_help_shows() {
    let base = Project::new();
    let mut shown = BTreeSet::new();
    examples(&base, &[], &mut shown);
    let played = PLAYED.iter().filter_map(|play| match play {
        Example(line, _) | Tells(line, _) | Prints(line, _) | Counts(line) => {
            Some((*line).to_owned())
        }
        Meanwhile(_) | Clipboard(_) => None,
    });
    let mut known: BTreeSet<String> = played.collect();
    let not_played = NOT_PLAYED.iter().flat_map(|(_, lines)| *lines);
    known.extend(not_played.map(|line| (*line).to_owned()));
    assert_eq!(shown, known, "what --help shows, and what is known here");

    if !has_full_sandbox() {
        return;
    }
    let has_jq = Command::new("jq").arg("--version").output().is_ok();
    if !has_jq {
        eprintln!("SKIPPED: examples with jq, which is not there");
    }
    // Programs of the person's desktop stand for themselves.
    for (name, script) in [
        ("xclip", "case \"$*\" in *-o) cat ~/clipboard;; *) cat > clipboard;; esac"),
        ("pbpaste", "cat ~/clipboard"),
        ("xdg-open", "[ -e \"$1\" ] && echo \"$1\" >> ~/opened"),
    ] {
        base.installs(name, &script.replace('~', &base.path().to_string_lossy()));
    }
    for folder in [
        "project",
        "projects/calculator",
        "data",
        ".zfunc",
        ".config/fish/completions",
        ".local/share/bash-completion/completions",
    ] {
        fs::create_dir_all(base.at(folder)).unwrap();
    }
    let folder = program().parent().unwrap().display();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{folder}:{path}", base.programs().display());
    let run = |line: &str| {
        let mut shell = Command::new("/bin/bash");
        // Each command of a line has to succeed.
        shell.args(["-c", &format!("set -o pipefail -e; {line}")]);
        shell.current_dir(base.at("project")).env_clear().env("PATH", &path);
        shell.env("HOME", base.path()).env("XDG_STATE_HOME", base.state());
        shell
            .env("DEADDROP_MAX_OUTPUT_LENGTH", "5000")
            .env("CREATES", CREATES)
            .env("MESSAGE", MESSAGE)
            .env("LANG", "C.UTF-8");
        Run::of(&mut shell, "")
    };
    let succeeds = |line: &str| {
        let done = run(line);
        assert_eq!(done.code, Some(0), "{line}: {done:#?}");
        done.stdout
    };
    for play in PLAYED {
        match play {
            Clipboard(text) => drop(base.write("clipboard", text)),
            Meanwhile(line) => drop(succeeds(line)),
            Example(line, _) | Tells(line, _) | Prints(line, _) | Counts(line)
                if !has_jq && line.contains("jq ") => {}
            Example(line, code) => {
                let done = run(line);
                assert_eq!(done.code, Some(*code), "{line}: {done:#?}");
            }
            Tells(line, part) => {
                let told = succeeds(line);
                assert!(!part.is_empty() && told.contains(part), "{line}: '{part}' in {told}");
            }
            Prints(line, whole) => assert_eq!(succeeds(line), *whole, "{line}"),
            Counts(line) => {
                let told = succeeds(line);
                let number: Result<u64, _> = told.trim().parse();
                assert!(number.is_ok_and(|number| number > 0), "{line}: {told}");
            }
        }
    }
    assert!(!base.exists(&format!("project/.deaddrop/sessions/{ID}.json")));
}
