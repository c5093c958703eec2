//! The workspace listing as an outbox gives it: ignore files, build products, and many files.

use std::fs;

use crate::support::{ID, Project};

/// The lines of an outbox's listing.
fn listing(outbox: &str) -> Vec<String> {
    let (_, rest) = outbox.split_once("\n## Workspace Files\n").unwrap();
    rest.lines().take_while(|line| line.starts_with("  ")).map(str::to_owned).collect()
}

fn first(base: &Project) -> Vec<String> {
    base.run(&["new", "--no-watch", "--id", ID, "A task"]).ok();
    listing(&base.outbox(1))
}

#[test]
fn nested_ignore_files_have_the_usual_precedence() {
    let base = Project::new();
    for (path, text) in [
        (".gitignore", "*.log\n/data/\n!sub/deep/keep.log\n"),
        (".ignore", "!root.log\nnotes\n"),
        (".deaddropignore", "!notes\nsecret\n"),
        ("root.log", ""),
        ("notes", ""),
        ("secret", ""),
        ("other.log", "123"),
        ("data/x/y", "1234"),
        ("data/.gitignore", "!x\n"),
        ("sub/.gitignore", "!*.log\n"),
        ("sub/a.log", ""),
        ("sub/deep/.ignore", "*.log\n"),
        ("sub/deep/keep.log", "12"),
        ("sub/data/listed", ""),
    ] {
        base.write(&format!("workspace/{path}"), text);
    }
    // No git repository is needed, and what git keeps of its own is not looked at.
    base.write("workspace/.git/info/exclude", "sub\n");
    let rest = [
        "  notes (0 bytes)",
        "  root.log (0 bytes)",
        "  sub/.gitignore (7 bytes)",
        "  sub/a.log (0 bytes)",
        "  sub/data/listed (0 bytes)",
        "  sub/deep/.ignore (6 bytes)",
        "  … 5 ignored files, 12 bytes (not listed)",
    ];
    assert_eq!(first(&base)[3..], rest);
    // What is left out may be read.
    let second = base.apply("[READ_FILE path=\"data/x/y\"]\n[READ_FILE path=\"secret\"]\n");
    assert!(second.contains("--- data/x/y ---\n1234\n"));
    assert_eq!(listing(&second)[3..], rest);
}

#[cfg(unix)]
#[test]
fn an_ignore_file_that_is_none_does_no_harm() {
    let base = Project::new();
    base.write("rules", "*\n");
    base.write("workspace/inside", "kept\n");
    base.write("workspace/kept", "");
    fs::create_dir(base.at("workspace/folder")).unwrap();
    fs::create_dir(base.at("workspace/folder/.ignore")).unwrap();
    base.write("workspace/folder/x", "");
    let link = std::os::unix::fs::symlink::<&str, _>;
    link("../rules", base.at("workspace/.gitignore")).unwrap();
    link("inside", base.at("workspace/.ignore")).unwrap();
    let fifo = base.at("workspace/.deaddropignore");
    let made = std::process::Command::new("mkfifo").arg(fifo).status();
    let has_fifo = made.is_ok_and(|status| status.success());
    let listed = first(&base);
    let mut expected = vec![
        "  .gitignore (link)",
        "  .ignore (link)",
        "  folder/x (0 bytes)",
        "  inside (5 bytes)",
        "  kept (0 bytes)",
    ];
    if has_fifo {
        expected.insert(0, "  .deaddropignore (not a regular file)");
    } else {
        eprintln!("SKIPPED in part: there is no mkfifo");
    }
    assert_eq!(listed, expected);
}

#[test]
fn build_products_stand_in_one_line_and_what_was_just_written_beside_it() {
    let base = Project::new();
    base.write("workspace/.gitignore", "dist/\n");
    for n in 0..1234 {
        base.write(&format!("workspace/node_modules/m{}/f{n}.js", n % 7), "12345678901");
    }
    base.write("workspace/dist/app.js", "1");
    base.write("workspace/build/readme", "source");
    assert_eq!(
        first(&base),
        [
            "  .gitignore (6 bytes)",
            "  build/readme (6 bytes)",
            "  dist/ (build products: 1 file, 1 byte)",
            "  node_modules/ (build products: 1,234 files, 13 kB)",
        ]
    );
    let reply = "[CREATE_FILE path=\"dist/own.js\"]\none\n[/CREATE_FILE]\n\
                 [CREATE_FILE path=\"node_modules/m1/own.js\"]\ntwo two\n[/CREATE_FILE]\n";
    let outbox = base.apply(reply);
    let second = [
        "  dist/ (build products: 2 files, 5 bytes)",
        "  dist/own.js (4 bytes)",
        "  node_modules/ (build products: 1,235 files, 13 kB)",
        "  node_modules/m1/own.js (8 bytes)",
    ];
    assert_eq!(listing(&outbox)[2..], second);
    // In the next turn they are products like the others.
    let outbox = base.apply("[READ_FILE path=\"build/readme\"]\n");
    assert_eq!(listing(&outbox)[2..], [second[0], second[2]]);
}

#[cfg(unix)]
#[test]
fn a_guest_tells_what_it_leaves_out() {
    let pair = crate::guests::sessions::Pair::new();
    for (path, text) in [
        (".gitignore", "/build/\n/data/\n*.log\n"),
        ("a.log", "123"),
        ("build/x/y", "12345"),
        ("data/z", "12"),
        ("node_modules/m/i.js", "1"),
    ] {
        pair.guest.write(&format!("workspace/{path}"), text);
    }
    let rest = [
        "  node_modules/ (build products: 1 file, 1 byte)",
        "  … 2 ignored files, 5 bytes (not listed)",
    ];
    let listed = first(&pair.host);
    assert_eq!(listed[1], "  build/ (build products: 1 file, 5 bytes)");
    assert_eq!(listed[2..], rest);
    let reply = "[CREATE_FILE path=\"build/x/own\"]\n1\n[/CREATE_FILE]\n";
    let listed = listing(&pair.host.apply(reply));
    let build = ["  build/ (build products: 2 files, 7 bytes)", "  build/x/own (2 bytes)"];
    assert_eq!(
        (&listed[1..3], &listed[3..]),
        (&build.map(str::to_owned)[..], &rest.map(str::to_owned)[..])
    );
}

#[test]
fn many_files_are_a_tree_with_what_was_touched_in_full() {
    let base = Project::new();
    for n in 0..600 {
        base.write(&format!("workspace/src/vendor/v{n:03}.c"), "12345678901");
    }
    for n in 0..30 {
        base.write(&format!("workspace/src/part{}/f{n}.c", n % 3), "");
    }
    base.write("workspace/main.c", "");
    let task = "Look at part2/f5.c and v333.c.";
    base.run(&["new", "--no-watch", "--id", ID, task]).ok();
    let near = listing(&base.outbox(1));
    assert!(near.contains(&"  src/vendor/v333.c (11 bytes)".to_owned()), "{near:#?}");
    let more = near.iter().find(|line| line.contains(" more files, ")).unwrap();
    assert!(more.starts_with("  src/vendor/ ("), "{more}");

    let outbox = base.apply("[CREATE_FILE path=\"src/part1/new.c\"]\n[/CREATE_FILE]\n");
    let tree = listing(&outbox);
    let part = |n: u32| tree.iter().filter(|l| l.contains(&format!("src/part{n}/"))).count();
    assert_eq!([part(0), part(1), part(2)], [10, 11, 10], "{tree:#?}");
    assert!(tree.last().unwrap().contains("[LIST_FILES path=\"FOLDER\"]"), "{tree:#?}");
    assert!(tree.iter().any(|line| line == "  main.c (0 bytes)"));
    let bytes: usize = tree.iter().map(|line| line.len() + 1).sum();
    assert!(bytes <= 32 << 10, "{bytes}");
}

/// Build products, and folders of the same names that people keep.
#[test]
fn build_products_stand_in_one_line() {
    let base = Project::new();
    for path in [
        "Cargo.toml",
        "target/debug/app",
        "web/package.json",
        "web/dist/index.html",
        "web/dist/app.js",
        "py/__pycache__/a.pyc",
        "node_modules/m/index.js",
        "dist/app.js",
        "src/target/mod.rs",
        "tools/build/make.sh",
        "notes/dist/readme.md",
    ] {
        base.write(&format!("workspace/{path}"), "text\n");
    }
    let rest = [
        "  Cargo.toml (5 bytes)",
        "  dist/app.js (5 bytes)",
        "  node_modules/ (build products: 1 file, 5 bytes)",
        "  notes/dist/readme.md (5 bytes)",
        "  py/__pycache__/ (build products: 1 file, 5 bytes)",
        "  src/target/mod.rs (5 bytes)",
        "  target/ (build products: 1 file, 5 bytes)",
        "  tools/build/make.sh (5 bytes)",
        "  web/dist/ (build products: 2 files, 10 bytes)",
        "  web/package.json (5 bytes)",
    ];
    assert_eq!(first(&base), rest);
    // What stands in one line can be listed and read, and what is touched is listed beside it.
    let second =
        base.apply("[LIST_FILES path=\"web/dist\"]\n[READ_FILE path=\"target/debug/app\"]\n");
    assert!(second.contains("\n  web/dist/app.js (5 bytes)\n  web/dist/index.html"), "{second}");
    assert!(second.contains("--- target/debug/app ---\ntext\n--- end"), "{second}");
    assert!(listing(&second).contains(&"  target/debug/app (5 bytes)".to_owned()), "{second}");
}
