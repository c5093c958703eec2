//! What the shells make of the completions, each loaded into its shell as `--help` says.

use std::process::Command;

use crate::support::{ID, Project};
use crate::tmux::{PROMPT, Tmux};

/// Whether a shell is there; said where not.
fn has(shell: &str) -> bool {
    match Command::new(shell).arg("--version").output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            eprintln!("SKIPPED: completing in {shell}, which does not run: {output:?}");
            false
        }
        Err(e) => {
            eprintln!("SKIPPED: completing in {shell}, which is not there ({e})");
            false
        }
    }
}

/// Types the beginning of a line and the Tab key, waits for the end of it, and gives up the line.
#[track_caller]
fn completes(tmux: &Tmux, begin: &str, whole: &str) {
    // Keys by their names: the line is not to be ended.
    tmux.key(begin);
    tmux.key("Tab");
    tmux.shows(&format!("{PROMPT}{whole}"));
    tmux.key("C-u");
    tmux.wait_for("an empty line", |screen| screen.ends_with(PROMPT));
}

#[test]
fn bash_completes_commands_flags_values_and_files() {
    let base = Project::with_session();
    if !has("bash") {
        return;
    }
    let Some(tmux) = Tmux::start(&base, 80) else { return };
    base.write("reply-of-mine.txt", "");
    base.write("only/the reply.txt", "");
    base.write("deaddrop.toml", "[policies.mine]\npreset = \"standard\"\n");
    base.sh("mkdir only/folder");
    tmux.types("exec bash --norc --noprofile");
    tmux.wait_for("its prompt", |screen| screen.ends_with(['$', '#']));
    tmux.types(&format!("source <(deaddrop generate completions bash); PS1='{PROMPT}'; clear"));
    tmux.wait_for("an empty screen", |screen| screen == PROMPT);
    completes(&tmux, "deaddrop doc", "deaddrop doctor");
    completes(&tmux, "deaddrop config se", "deaddrop config set");
    completes(&tmux, "deaddrop new --task-f", "deaddrop new --task-file");
    completes(
        &tmux,
        "deaddrop new --task-file reply-o",
        "deaddrop new --task-file reply-of-mine.txt",
    );
    completes(&tmux, "deaddrop -C onl", "deaddrop -C only/");
    completes(&tmux, "deaddrop apply reply-o", "deaddrop apply reply-of-mine.txt");
    completes(&tmux, "deaddrop apply --for", "deaddrop apply --force");
    completes(&tmux, "deaddrop check --policy perm", "deaddrop check --policy permissive");
    completes(&tmux, "deaddrop new --policy perm", "deaddrop new --policy permissive");
    completes(&tmux, "deaddrop policy show perm", "deaddrop policy show permissive");
    completes(&tmux, "deaddrop policy show min", "deaddrop policy show mine");
    completes(&tmux, "deaddrop diff --session a1b", &format!("deaddrop diff --session {ID}"));
    completes(&tmux, "deaddrop status a1", &format!("deaddrop status {ID}"));
    completes(&tmux, "deaddrop doctor --sandbox bw", "deaddrop doctor --sandbox bwrap");
    completes(&tmux, "deaddrop config get max_t", "deaddrop config get max_tokens");
    completes(&tmux, "deaddrop config set sandbox.netw", "deaddrop config set sandbox.network");
    completes(&tmux, "deaddrop config unset gue", "deaddrop config unset guest");
    // Nothing is begun: what is offered by itself are files where one is taken, and no options.
    tmux.types("cd only; clear");
    tmux.wait_for("an empty screen", |screen| screen == PROMPT);
    completes(&tmux, "deaddrop init ", "deaddrop init folder/");
    base.sh("rmdir only/folder");
    completes(&tmux, "deaddrop apply ", "deaddrop apply the\\ reply.txt");
    completes(&tmux, "deaddrop check ", "deaddrop check the\\ reply.txt");
    for line in ["deaddrop undo ", "deaddrop config set max_tokens "] {
        tmux.key(line);
        // Had the first of them done anything, the second would stand behind that.
        tmux.key("Tab");
        tmux.key("x");
        tmux.shows(&format!("{PROMPT}{line}x"));
        tmux.key("C-u");
        tmux.wait_for("an empty line", |screen| screen.ends_with(PROMPT));
    }
}

#[test]
fn zsh_completes_commands_flags_and_files() {
    let base = Project::with_session();
    if !has("zsh") {
        return;
    }
    let Some(tmux) = Tmux::start(&base, 80) else { return };
    // No file of the machine's own is read; what is set here would stand in `.zshrc`.
    base.write("reply-of-mine.txt", "");
    base.sh("mkdir .zfunc");
    tmux.types("deaddrop generate completions zsh > ~/.zfunc/_deaddrop; clear");
    tmux.wait_for("the script", |screen| screen == PROMPT);
    tmux.types("exec zsh -f");
    tmux.wait_for("its prompt", |screen| screen.ends_with(['%', '#']));
    tmux.types(&format!(
        "fpath=(~/.zfunc $fpath); autoload -U compinit; compinit -u -D; PS1='{PROMPT}'; clear"
    ));
    tmux.wait_for("an empty screen", |screen| screen == PROMPT);
    completes(&tmux, "deaddrop doc", "deaddrop doctor");
    completes(&tmux, "deaddrop config se", "deaddrop config set");
    completes(&tmux, "deaddrop new --task-f", "deaddrop new --task-file");
    completes(&tmux, "deaddrop apply reply-o", "deaddrop apply reply-of-mine.txt");
    completes(
        &tmux,
        "deaddrop generate completions po",
        "deaddrop generate completions powershell",
    );
    completes(&tmux, "deaddrop check --policy perm", "deaddrop check --policy permissive");
    completes(&tmux, "deaddrop config get max_t", "deaddrop config get max_tokens");
    completes(&tmux, "deaddrop config set sandbox.netw", "deaddrop config set sandbox.network");
    completes(&tmux, "deaddrop log --session a1b", &format!("deaddrop log --session {ID}"));
}

#[test]
fn fish_completes_commands_flags_and_files() {
    let base = Project::with_session();
    if !has("fish") {
        return;
    }
    base.write("reply-of-mine.txt", "");
    let script = base.run(&["generate", "completions", "fish"]).ok().stdout;
    base.write(".config/fish/completions/deaddrop.fish", script);
    let asks = |line: &str| {
        let mut fish = Command::new("fish");
        fish.args(["-c", &format!("complete -C '{line}'")]).current_dir(base.path());
        // Where it finds completions by itself.
        fish.env("HOME", base.path()).env("XDG_CONFIG_HOME", base.at(".config"));
        fish.env("XDG_DATA_HOME", base.at(".data"));
        let path = std::env::var("PATH").unwrap_or_default();
        let folder = crate::support::program().parent().unwrap();
        fish.env("PATH", format!("{}:{path}", folder.display()));
        let output = fish.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    // What it is for is told beside it.
    assert_eq!(
        asks("deaddrop doc"),
        "doctor\tCheck the project and this machine, and suggest fixes\n"
    );
    let found = asks("deaddrop config se");
    assert!(found.starts_with("set\t") && found.lines().count() == 1, "{found}");
    let found = asks("deaddrop new --task-f");
    assert!(found.starts_with("--task-file\t"), "{found}");
    let found = asks("deaddrop apply reply-o");
    assert!(found.lines().any(|line| line.trim() == "reply-of-mine.txt"), "{found}");
    let found = asks("deaddrop new --dialect op");
    assert!(found.trim() == "operations", "{found}");
    let found = asks("deaddrop new --policy perm");
    assert!(found.trim() == "permissive", "{found}");
    for verb in ["get", "set"] {
        let found = asks(&format!("deaddrop config {verb} max_t"));
        assert!(found.trim() == "max_tokens", "{found}");
    }
    assert!(asks("deaddrop policy show perm").trim() == "permissive");
    assert!(asks("deaddrop show --session ").trim() == ID);
}
