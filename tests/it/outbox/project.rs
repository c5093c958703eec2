//! What the first outbox says of the project: a repository or not, its tests, and tools that are missing.

use std::process::Command;

use crate::guests::sessions::Pair;
use crate::support::{ID, Project, has_sandbox};

/// The tools that are named and the line about the project.
fn told(base: &Project) -> (String, String) {
    base.run(&["new", "--no-watch", "--id", ID, "A task"]).ok();
    let outbox = base.outbox(1);
    let line = |name: &str| {
        let name = format!("  {name}: ");
        outbox.lines().find_map(|line| line.strip_prefix(&name)).unwrap().to_owned()
    };
    (line("Tools"), line("Project"))
}

/// The line that these tests and tools make where those tools are known that are named.
fn expected(is_repository: bool, tests: &str, tools: &[&str], known: &str) -> String {
    let mut line =
        if is_repository { "a git repository" } else { "not a git repository" }.to_owned();
    if !tests.is_empty() {
        line += &format!("; tests: {tests}");
    }
    let is_missing =
        |tool: &&&str| !known.split(", ").any(|known| known.split(' ').next() == Some(tool));
    tools.iter().filter(is_missing).for_each(|tool| line += &format!("; {tool}: not installed"));
    line
}

#[test]
fn the_first_outbox_names_what_is_evident_of_tests_and_missing_tools() {
    const PYTHON: &[&str] = &["pytest", "python3"];
    for (files, tests, tools) in [
        (&[("Cargo.toml", "[package]\n")][..], "cargo test", &["cargo"][..]),
        (&[("package.json", "{\"scripts\": {\"test\": \"jest\"}}")], "npm test", &["node", "npm"]),
        (&[("package.json", "{\"scripts\": {\"build\": \"x\"}, \"test\": 1}")], "", &[]),
        (&[("pyproject.toml", "[tool.pytest.ini_options]\n")], "pytest", PYTHON),
        (&[("requirements-dev.txt", "pytest>=8\n"), ("tests/test_a.py", "")], "pytest", PYTHON),
        (&[("requirements.txt", "# no pytest\nflask\n"), ("a/conftest.py", "")], "", &[]),
        (&[("conftest.py", "")], "pytest", PYTHON),
        (&[("go.mod", "module a\n")], "go test ./...", &["go"]),
        (&[("Makefile", "all:\n\ttrue\ntest: all\n\ttrue\n")], "make test", &["make"]),
        (&[("Makefile", "test := 1\ncontest:\n")], "", &[]),
        (&[("pom.xml", "<project/>")], "mvn test", &["java"]),
        (&[("build.gradle", ""), ("gradlew", "")], "gradle test", &["java"]),
        (
            &[
                ("go.mod", "module a\n"),
                ("Cargo.toml", ""),
                ("sub/package.json", "{\"scripts\":{\"test\":\"\"}}"),
            ],
            "cargo test, go test ./...",
            &["cargo", "go"],
        ),
    ] {
        let base = Project::new();
        for (path, text) in files {
            base.write(&format!("workspace/{path}"), text);
        }
        let (known, project) = told(&base);
        let project = project.split("; libraries").next().unwrap();
        assert_eq!(project, expected(false, tests, tools, &known), "{files:?}");
    }
}

#[test]
fn it_names_libraries_that_are_not_installed() {
    let python = Command::new("python3").args(["-c", "import tomllib"]).status();
    if !has_sandbox("auto") {
        return;
    }
    if !python.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: what needs Python 3.11");
        return;
    }
    for (files, missing) in [
        (
            &[(
                "requirements.txt",
                "no-such-one==1\n# no-such-two\n-r x\nsys-only; sys_platform\n",
            )][..],
            "no-such-one",
        ),
        (
            &[(
                "pyproject.toml",
                "[project]\nname = \"a\"\ndependencies = [\"no.such-one>=2\", \"python\"]\n\
                 [dependency-groups]\ntest = [\"no_such_two\", {include-group = \"x\"}]\nlint = [\"no-such-3\"]\n",
            )],
            "no.such-one, no_such_two",
        ),
        (&[("pyproject.toml", "[project\n"), ("requirements.txt", "no-such-one\n")], "no-such-one"),
        (&[("requirements.txt", "no-such-one\n"), (".venv/x", "")], ""),
        (&[("package.json", "{\"devDependencies\": {}}")], "node_modules"),
        (&[("package.json", "{}")], ""),
        (&[("package.json", "{\"dependencies\": {}}"), ("node_modules/x", "")], ""),
        (&[("composer.json", "{\"require\": {}}")], "vendor"),
    ] {
        let base = Project::new();
        for (path, text) in files {
            base.write(&format!("workspace/{path}"), text);
        }
        let told = told(&base).1;
        let named = told.split_once("libraries that are not installed: ").unwrap_or_default().1;
        assert_eq!(named, missing, "{files:?}: {told}");
    }
}

#[test]
fn it_is_judged_when_the_session_begins_and_rendered_the_same_again() {
    for git in [".git/HEAD", ".git"] {
        let base = Project::new();
        base.write(&format!("workspace/{git}"), "ref: refs/heads/main\n");
        base.write("workspace/Cargo.toml", "[package]\n");
        let (known, project) = told(&base);
        assert_eq!(project, expected(true, "cargo test", &["cargo", "git"], &known));
        let outbox = base.apply("[DELETE_FILE path=\"Cargo.toml\"]\n");
        assert!(outbox.contains(&format!("\n  Project: {project}\n")), "{outbox}");
    }
}

#[test]
fn of_a_guest_it_is_what_is_there() {
    let pair = Pair::new();
    pair.host.write("workspace/Cargo.toml", "[package]\n");
    pair.guest.write("workspace/go.mod", "module a\n");
    pair.guest.write("workspace/.git/HEAD", "ref: refs/heads/main\n");
    let (known, project) = told(&pair.host);
    assert_eq!(project, expected(true, "go test ./...", &["git", "go"], &known));
}
