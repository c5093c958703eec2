//! The house kept tidy: imports go down only, files stay short, and what is documented exists.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use deaddrop::protocol::{Dialect, Kind, StepContent, operations, read, tags};

/// The layers, lowest first. A module may import what stands in lower layers, and its neighbours.
const LAYERS: [&[&str]; 11] = [
    &[
        "text", "terminal", "tokens", "error", "clock", "atomic", "settings", "program", "links",
        "lock", "blobs", "secrets",
    ],
    &["protocol"],
    &["workspace", "runner", "client", "clipboard", "policy", "machine", "session"],
    &["executor", "context"],
    &["admission", "event", "turn", "inbox", "outbox", "watch"],
    &["engine"],
    &["ipc", "space"],
    &["daemon", "rpc"],
    &["serve"],
    &["cli"],
    &["main"],
];
/// What a module may not import for other reasons than its layer.
const FORBIDDEN: [(&str, &str); 3] =
    [("workspace", "session"), ("runner", "session"), ("outbox", "turn")];
const LONGEST: usize = 800;
/// What tests, benches and fuzz targets may use of the library: parsers and what is pure. All else they ask of the
/// program.
const PUBLIC: [&str; 5] = ["protocol", "secrets", "text", "tokens", "Space"];
/// Those that use more, as long as nothing of the program can be asked for it. The list only gets shorter.
const INTERNAL: [&str; 19] = [
    "benches/command.rs",
    "benches/outbox.rs",
    "tests/it/outbox/budget.rs",
    "tests/it/sandbox/escapes.rs",
    "tests/it/sandbox/escapes/errands.rs",
    "tests/it/sandbox/escapes/here.rs",
    "tests/it/outbox/events.rs",
    "tests/it/guests/steps.rs",
    "tests/it/guests/homes.rs",
    "tests/it/daemon/work_done_once.rs",
    "tests/it/outbox/hostile_values.rs",
    "tests/it/security/protected/opened.rs",
    "tests/it/rpc/typed.rs",
    "tests/it/rpc/lost_steps.rs",
    "tests/it/rpc/methods.rs",
    "tests/it/rpc/methods/side_by_side.rs",
    "tests/it/rpc/steps.rs",
    "tests/it/sandbox/protected.rs",
    "tests/it/scene/actions.rs",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files below a folder, with their text; those that replies work on are material.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let scenarios = root().join("tests/scenarios");
    let is_material = |path: &Path| path.parent().is_some_and(|parent| parent == scenarios);
    let all = walkdir::WalkDir::new(root().join(folder)).into_iter();
    for entry in
        all.filter_entry(|entry| !(entry.file_type().is_dir() && is_material(entry.path())))
    {
        let path = entry.unwrap().into_path();
        if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path.strip_prefix(root()).unwrap().to_owned(), text));
        }
    }
    assert!(!found.is_empty(), "no sources in {folder}");
    found
}

/// The top module that a file of `src` belongs to.
fn module(path: &Path) -> String {
    let part = path.components().nth(1).unwrap().as_os_str().to_string_lossy().into_owned();
    part.trim_end_matches(".rs").to_owned()
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The modules of this crate that a source names, in code: comments do not count.
fn imports(text: &str) -> Vec<String> {
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let mut found = Vec::new();
    for prefix in ["crate::", "deaddrop::"] {
        for (at, _) in code.match_indices(prefix) {
            if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let rest = &code[at + prefix.len()..];
            match rest.strip_prefix('{') {
                Some(group) => found.extend(heads(group)),
                None => found.extend(word(rest)),
            }
        }
    }
    found
}

/// The first word of each item of a braced group.
fn heads(group: &str) -> Vec<String> {
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                found.extend(word(group[start..at].trim_start()));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    found
}

fn word(text: &str) -> Option<String> {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    (end > 0).then(|| text[..end].to_owned())
}

#[test]
fn imports_are_read_in_all_their_forms() {
    let text = "use crate::text;\nuse crate::{error::Error, executor::{Executor, LocalExecutor}, watch};\n// crate::cli\nlet x = crate::turn::y(); mycrate::engine::z(); deaddrop::runner::d();";
    assert_eq!(imports(text), ["text", "error", "executor", "watch", "turn", "runner"]);
}

#[test]
fn tests_use_what_is_public() {
    let all = ["tests", "benches", "fuzz/properties", "fuzz/fuzz_targets"].map(sources).concat();
    for (path, text) in all {
        // This file has names of modules in texts.
        let is_excused = INTERNAL.iter().any(|internal| path == Path::new(internal));
        if is_excused || path == Path::new("tests/tidy/sources.rs") {
            continue;
        }
        let used = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let used = used.flat_map(|line| line.split("deaddrop::").skip(1)).filter_map(word);
        for module in used {
            let is_public = PUBLIC.contains(&&*module);
            assert!(is_public, "{}: ask the program instead of {module}", path.display());
        }
    }
}

#[test]
fn every_module_has_its_layer() {
    for (path, _) in sources("src") {
        let module = module(&path);
        assert!(module == "lib" || layer(&module).is_some(), "{}: in no layer", path.display());
    }
}

#[test]
fn imports_go_down_only() {
    for (path, text) in sources("src") {
        let from = module(&path);
        // The list of modules imports nothing; its doc names them all.
        let Some(mine) = layer(&from) else { continue };
        for to in imports(&text) {
            let Some(theirs) = layer(&to) else {
                panic!("{}: crate::{to} is not a module with a layer", path.display());
            };
            assert!(theirs <= mine, "{}: {from} must not import {to}", path.display());
            assert!(
                from != "protocol" || ["protocol", "secrets", "text"].contains(&&*to),
                "{}: protocol imports {to}, but only secrets, text and itself are pure",
                path.display()
            );
            assert!(
                !FORBIDDEN.contains(&(&from, &to)),
                "{}: {from} must not import {to}",
                path.display()
            );
        }
    }
}

#[test]
fn only_the_page_has_a_runtime() {
    for (path, text) in sources("src") {
        let is_page = path.starts_with("src/serve");
        let is_used = |name: &&str| !is_page && text.contains(&format!("{name}::"));
        let found =
            ["axum", "futures_util", "hyper", "hyper_util", "tokio"].into_iter().find(is_used);
        assert_eq!(found, None, "{}", path.display());
    }
}

/// What a model or a file says is inserted as text, and nothing is loaded from elsewhere.
#[test]
fn the_page_has_no_markup_from_elsewhere() {
    const NEVER: [&str; 11] = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "createContextualFragment",
        "DOMParser",
        "eval(",
        "Function(",
        "style=\"",
        "setAttribute('style",
        "javascript:",
    ];
    for entry in fs::read_dir(root().join("src/serve/assets")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let found = NEVER.into_iter().find(|word| text.contains(word));
        assert_eq!(found, None, "{}", path.display());
        let elsewhere = text.replace("http://www.w3.org/2000/svg", "").contains("://");
        assert!(!elsewhere, "{}: a link to elsewhere", path.display());
    }
}

#[test]
fn no_source_is_long_and_each_says_what_it_is_for() {
    for (path, text) in ["src", "tests"].into_iter().flat_map(sources) {
        let lines = text.lines().count();
        assert!(lines <= LONGEST, "{}: {lines} lines, over {LONGEST}", path.display());
        assert!(text.starts_with("//! "), "{}: opens without `//! `", path.display());
    }
}

#[test]
fn the_sources_are_formatted() {
    let output = Command::new("cargo").args(["fmt", "--check"]).current_dir(root()).output();
    let Ok(output) = output else {
        eprintln!("SKIPPED: no cargo");
        return;
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    if ["no such command", "no such subcommand", "is not installed"]
        .iter()
        .any(|missing| stderr.contains(missing))
    {
        eprintln!("SKIPPED: no cargo-fmt: {stderr}");
        return;
    }
    assert!(output.status.success(), "{}{stderr}", String::from_utf8_lossy(&output.stdout));
}

/// The subcommands that `deaddrop --help` lists.
fn subcommands() -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_deaddrop")).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let names: Vec<String> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.trim().is_empty())
        // Descriptions that go on are indented further.
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect();
    assert!(names.len() >= 8, "{help}");
    names
}

#[test]
fn every_subcommand_is_documented() {
    let mut text = fs::read_to_string(root().join("README.md")).unwrap_or_default();
    for entry in walkdir::WalkDir::new(root().join("docs")).into_iter().flatten() {
        if entry.path().extension().is_some_and(|e| e == "md") {
            text.push_str(&fs::read_to_string(entry.path()).unwrap());
        }
    }
    if text.is_empty() {
        eprintln!("SKIPPED: there is neither README.md nor docs/");
        return;
    }
    for name in subcommands() {
        assert!(text.contains(&format!("deaddrop {name}")), "nothing tells of `deaddrop {name}`");
    }
}

/// What a model can send in tags.
const COMMANDS: [&str; 10] = [
    "CREATE_FILE",
    "EDIT_FILE",
    "DELETE_FILE",
    "MOVE_FILE",
    "READ_FILE",
    "LIST_FILES",
    "SEARCH",
    "RUN_COMMAND",
    "MESSAGE",
    "DONE",
];

#[test]
fn the_prompt_of_tags_is_short_and_names_every_command() {
    let encoding = tiktoken::get_encoding("o200k_base").unwrap();
    let tokens = encoding.encode(tags::PROMPT).len();
    assert!(tokens <= 900, "{tokens} tokens");
    for name in COMMANDS {
        assert!(tags::PROMPT.contains(&format!("\n[{name}")), "{name}");
    }
}

#[test]
fn the_prompt_of_tags_is_itself_a_reply_of_every_command() {
    // Below its own sentences examples are no commands.
    let line =
        |line: &str| if line.ends_with(':') { "So:\n".to_owned() } else { format!("{line}\n") };
    let examples: String = tags::PROMPT.lines().map(line).collect();
    let reply = tags::parse(&examples);
    let kinds: Vec<&str> = reply.steps.iter().map(|step| tags::name(step.kind())).collect();
    for name in COMMANDS {
        assert!(kinds.contains(&name), "{name}: {kinds:?}");
    }
    assert!(!reply.unclosed);
    assert!(reply.steps.iter().all(|step| step.warnings.is_empty()), "{:#?}", reply.steps);
    let whole = tags::parse(tags::PROMPT);
    assert!(
        matches!(whole.steps.as_slice(), [step] if matches!(step.asks, StepContent::Invalid(_))),
        "{:#?}",
        whole.steps
    );
}

#[test]
fn the_prompt_of_operations_is_short_and_is_itself_a_reply_of_every_operation() {
    let encoding = tiktoken::get_encoding("o200k_base").unwrap();
    let tokens = encoding.encode(operations::PROMPT).len();
    assert!(tokens < 1200, "{tokens} tokens");
    assert!(!operations::PROMPT.lines().any(|line| line.starts_with("===")));
    let received = operations::find(operations::PROMPT).unwrap().unwrap();
    assert!(received.entries.iter().all(|entry| entry.operation.is_ok()));
    let sent: Vec<_> = received.entries.iter().filter_map(|entry| entry.kind).collect();
    for (name, kind) in operations::OPERATION_TYPES {
        assert!(sent.contains(&kind), "{name}: {sent:?}");
        assert!(operations::PROMPT.contains(&format!("\n- {name}: ")), "{name} is not described");
    }
    // What it says of the end is what ends a session.
    let (_, end) = operations::PROMPT.split_once("let the last operation be ").unwrap();
    let (end, _) = end.split_once(". It counts").unwrap();
    let message = format!("{{\"protocolVersion\": \"1.0\", \"operations\": [{end}]}}");
    let reply = read(&message, Dialect::Operations);
    assert_eq!(reply.steps[0].kind(), Kind::Done);
}

/// What the top level holds: besides the folders of a base, what a Rust project has there.
const TOP: [&str; 25] = [
    ".cargo",
    ".ci",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "approvals",
    "benches",
    "clippy.toml",
    "deny.toml",
    "docs",
    "fuzz",
    "inbox",
    "outbox",
    "proptest-regressions",
    "protocol-prompt",
    "rustfmt.toml",
    "sessions",
    "src",
    "tests",
    "workspace",
];

#[test]
fn the_top_level_holds_nothing_left_over() {
    let listed =
        Command::new("git").args(["ls-tree", "--name-only", "HEAD"]).current_dir(root()).output();
    let Some(listed) = listed.ok().filter(|listed| listed.status.success()) else {
        return eprintln!("SKIPPED: this is no clone of a git repository, or there is no git");
    };
    let listed = String::from_utf8(listed.stdout).unwrap();
    let left: Vec<&str> = listed.lines().filter(|name| !TOP.contains(name)).collect();
    assert!(left.is_empty(), "these do not belong at the top level: {left:?}");
}
