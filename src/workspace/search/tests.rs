//! Listings and searches within their limits.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::protocol::FailureKind;

const TERMS: SearchOptions<'static> = SearchOptions::new(&|_, _| true, &|| false);

fn workspace(files: &[(&str, &str)]) -> (tempfile::TempDir, Workspace) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir(&root).unwrap();
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let workspace = Workspace::open(&root, &[root.join("state")], &[]).unwrap();
    (folder, workspace)
}

fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

#[track_caller]
fn found(workspace: &Workspace, pattern: &str, at: Option<&str>) -> (usize, usize, bool, String) {
    let at = at.map(path);
    let detail = workspace.search(pattern, at.as_ref(), &TERMS).unwrap().0;
    let shown = detail.listing().unwrap().0.into_owned();
    match detail {
        Detail::Found { lines, files, cut, .. } => (lines, files, cut, shown),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn listed(workspace: &Workspace, at: Option<&str>) -> (usize, String, Vec<Warning>) {
    let at = at.map(path);
    match workspace.list_below(at.as_ref(), &TERMS).unwrap() {
        (Detail::Listed { files, shown, .. }, told) => (files, shown, told),
        other => panic!("{other:?}"),
    }
}

const FILES: [(&str, &str); 8] = [
    (".gitignore", "target/\n*.log\n"),
    (".git/config", "needle in git\n"),
    ("src/a.rs", "fn one() {}\r\nlet needle = 1;\r\n"),
    ("src/b.rs", "no\nNEEDLE and needle\n"),
    ("src/x.log", "needle in a log\n"),
    ("target/out", "needle in a product\n"),
    ("binary", "needle\n\0\n"),
    ("state/journal", "needle of deaddrop's\n"),
];

#[test]
fn lists_hold_what_rules_leave_out_and_nothing_of_deaddrops() {
    let (folder, workspace) = workspace(&FILES);
    let root = folder.path().join("root");
    symlink("/etc", root.join("src/out")).unwrap();
    symlink("state", root.join("own")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("src/fifo"), 0o600.into()).unwrap();
    let (files, shown, told) = listed(&workspace, None);
    assert_eq!(
        shown,
        ".git/ … 1 file (14 bytes)\n.gitignore (14 bytes)\nbinary (9 bytes)\nown (link)\n\
         src/a.rs (30 bytes)\nsrc/b.rs (21 bytes)\nsrc/fifo (not a regular file)\nsrc/out (link)\n\
         src/x.log (16 bytes)\ntarget/out (20 bytes)\n"
    );
    assert_eq!((files, told), (10, Vec::new()));
    assert_eq!(listed(&workspace, Some("target")).1, "target/out (20 bytes)\n");
    assert_eq!(listed(&workspace, Some("src/b.rs")).1, "src/b.rs (21 bytes)\n");
    assert_eq!(listed(&workspace, Some(".git")).1, ".git/config (14 bytes)\n");
    for (at, why) in [
        ("state", "deaddrop's own state"),
        ("own", "deaddrop's own state"),
        ("src/out", "outside workspace"),
        ("a.rs", "File (or folder) 'a.rs' not found: did you mean 'src/a.rs'?"),
    ] {
        let failure = workspace.list_below(Some(&path(at)), &TERMS).unwrap_err();
        assert!(failure.reason.contains(why), "{at}: {failure:?}");
    }
}

#[test]
fn searches_look_at_text_that_no_rule_leaves_out() {
    let (folder, workspace) = workspace(&FILES);
    let root = folder.path().join("root");
    fs::write(folder.path().join("outside"), "needle outside\n").unwrap();
    symlink("../../outside", root.join("src/out")).unwrap();
    symlink("a.rs", root.join("src/link")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("src/fifo"), 0o600.into()).unwrap();
    let all = "src/a.rs:2:let needle = 1;\nsrc/b.rs:2:NEEDLE and needle\n";
    assert_eq!(found(&workspace, "needle", None), (2, 2, false, all.to_owned()));
    assert_eq!(found(&workspace, "needle = 1;$", None).0, 1);
    assert_eq!(found(&workspace, "(?i)^needle", None).3, "src/b.rs:2:NEEDLE and needle\n");
    assert_eq!(found(&workspace, "needle", Some("src/link")).3, "src/a.rs:2:let needle = 1;\n");
    // A path that a request names is searched even if rules ignore it.
    assert_eq!(found(&workspace, "needle", Some("target")).3, "target/out:1:needle in a product\n");
    assert_eq!(found(&workspace, "needle", Some("src/x.log")).0, 1);
    assert_eq!(found(&workspace, "needle", Some(".git")).0, 1);
    assert_eq!(found(&workspace, "nowhere", None), (0, 0, false, String::new()));
    for (at, why) in [
        ("state/journal", "deaddrop's own state"),
        ("src/out", "outside workspace"),
        ("src/fifo", "'src/fifo' is not a regular file"),
    ] {
        let failure = workspace.search("needle", Some(&path(at)), &TERMS).unwrap_err();
        assert!(failure.reason.contains(why), "{at}: {failure:?}");
        assert_eq!(failure.kind, FailureKind::Rejected);
    }
}

#[test]
fn a_line_has_two_ends_whatever_it_ends_in() {
    let (_folder, workspace) = workspace(&[
        ("crlf", "y=12\r\n\r\nx=1\r\n"),
        ("last", "y=12\n\nx=1"),
        ("lf", "y=12\n\nx=1\n"),
    ]);
    for (pattern, line) in [
        ("=1$", "3:x=1"),
        ("^x=1$", "3:x=1"),
        ("^$", "2:"),
        ("^x", "3:x=1"),
        (r"2$|\d2\b$", "1:y=12"),
    ] {
        for file in ["crlf", "last", "lf"] {
            let (lines, _, _, shown) = found(&workspace, pattern, Some(file));
            assert_eq!((lines, shown), (1, format!("{file}:{line}\n")), "{pattern}");
        }
    }
    for pattern in ["=2$", "^1", "^=", "x$", r"1\s$"] {
        assert_eq!(found(&workspace, pattern, None).0, 0, "{pattern}");
    }
}

#[test]
fn what_the_policy_keeps_back_is_counted() {
    let (_folder, workspace) = workspace(&FILES);
    let readable = |path: &RelPath, _| !path.as_str().ends_with("b.rs");
    let options = SearchOptions { readable: &readable, ..TERMS };
    let (detail, told) = workspace.search("needle", None, &options).unwrap();
    assert!(matches!(detail, Detail::Found { lines: 1, files: 1, .. }), "{detail:?}");
    let told: Vec<&str> = told.iter().map(|told| &*told.text).collect();
    assert_eq!(told, ["1 file not searched: the policy does not allow reading"]);
}

#[test]
fn a_search_is_bounded_in_all_that_it_shows() {
    let many: String = (0..COUNTED + 5).map(|n| format!("needle {n}\n")).collect();
    let long = format!("{}needle{}\n", "ä".repeat(1000), "\u{1b}".repeat(1000));
    let (_folder, workspace) = workspace(&[("a/many", &many), ("long", &long)]);
    let (lines, files, cut, shown) = found(&workspace, "needle", Some("a"));
    assert_eq!((lines, files, cut), (COUNTED, 1, true));
    assert_eq!(shown.lines().count(), SHOWN);
    assert!(shown.ends_with("a/many:200:needle 199\n"));
    let (_, _, _, shown) = found(&workspace, "needle", Some("long"));
    let line = shown.strip_prefix("long:1:…").unwrap().trim_end();
    assert!(line.starts_with(&"ä".repeat(60)) && line.contains("needle␛") && line.ends_with("␛…"));
    assert_eq!(line.chars().count(), 301);
}

#[test]
fn what_takes_too_long_or_is_stopped_is_told_so() {
    let (_folder, workspace) = workspace(&FILES);
    let options = SearchOptions { interrupted: &|| true, ..TERMS };
    let (detail, told) = workspace.search("needle", None, &options).unwrap();
    assert!(matches!(detail, Detail::Found { cut: true, lines: 0, .. }), "{detail:?}");
    assert_eq!(&*told[0].text, "the user stopped it, so the result is incomplete");
    assert_eq!(workspace.list_below(None, &options).unwrap().1.len(), 1);
}

#[test]
fn a_pattern_that_is_none_is_told_in_the_words_of_the_crate() {
    for (pattern, why) in [
        ("fn (", "unclosed group"),
        ("a{2000}{2000}", "size limit"),
        ("[z-a]", "invalid character class range"),
        ("\\w{1000}{1000}", "size limit"),
        (&("(".repeat(200) + &")".repeat(200)), "nest"),
        (&"x".repeat(5000), "it is 5000 bytes long"),
    ] {
        let failure = check_pattern(pattern).unwrap_err();
        assert!(failure.reason.contains(why), "{pattern:.20}: {failure:?}");
        assert!(!failure.reason.contains('\n') && failure.reason.contains("Correct form: [SEARCH"));
    }
    for pattern in ["\\bfn \\w+\\(", "^\\s*$", "(?i)é+", "[^a-z]{3,10}\\d"] {
        check_pattern(pattern).unwrap();
    }
}

/// A time check that reports that the time is over once it has been called `looks` times.
fn late_after(looks: &std::cell::Cell<usize>) -> impl Fn(Instant) -> bool {
    |_| {
        looks.set(looks.get().saturating_sub(1));
        looks.get() == 0
    }
}

#[test]
fn a_file_that_is_too_long_is_searched_in_its_beginning_and_named() {
    let long = format!("needle\n{}needle\n", "x\n".repeat(100));
    let (_folder, workspace) =
        workspace(&[("a/long.log", &*long), ("b.log", "needle\n"), ("c.log", "x\n")]);
    let options = SearchOptions { file_bytes: 50, ..TERMS };
    let (detail, told) = workspace.search("needle", None, &options).unwrap();
    let Detail::Found { lines, files, cut, .. } = detail else { panic!("{detail:?}") };
    assert_eq!((lines, files, cut), (2, 2, true));
    let told: Vec<&str> = told.iter().map(|told| told.text.as_str()).collect();
    assert_eq!(told, ["1 file searched only in the first 50 bytes: 'a/long.log'"]);
}

#[test]
fn a_search_ends_after_so_many_bytes_of_all_files() {
    let text = "needle\n".repeat(10);
    let files: Vec<(String, &str)> = (0..9).map(|n| (format!("{n}.txt"), &*text)).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, *text)).collect();
    let (_folder, workspace) = workspace(&files);
    for (all_bytes, lines, ends) in
        [(70, 10, true), (100, 14, true), (630, 90, true), (631, 90, false)]
    {
        let options = SearchOptions { all_bytes, ..TERMS };
        let (detail, told) = workspace.search("needle", None, &options).unwrap();
        let Detail::Found { lines: found, cut, .. } = detail else { panic!("{detail:?}") };
        // A line that the limit cuts may be counted if its beginning matches.
        assert!(found == lines || found == lines + 1, "{all_bytes}: {found}");
        assert_eq!(cut, ends, "{all_bytes}");
        let is_told = told
            .iter()
            .any(|told| told.text.starts_with(&format!("it stopped after {all_bytes} bytes, so")));
        assert_eq!(is_told, ends, "{all_bytes}: {told:?}");
    }
}

#[test]
fn what_takes_too_long_is_ended_and_told() {
    let files: Vec<(String, &str)> = (0..50).map(|n| (format!("{n:02}.txt"), "needle\n")).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, *text)).collect();
    let (_folder, workspace) = workspace(&files);
    let told_of = |told: &[Warning]| {
        told.iter().any(|told| told.text.starts_with("it stopped after 10 s, so"))
    };
    let looks = std::cell::Cell::new(20);
    let late = late_after(&looks);
    let options = SearchOptions { is_late: &late, ..TERMS };
    let (detail, told) = workspace.search("needle", None, &options).unwrap();
    let Detail::Found { files, cut, .. } = detail else { panic!("{detail:?}") };
    assert!((1..50).contains(&files) && cut && told_of(&told), "{files}: {told:?}");

    looks.set(7);
    let (detail, told) = workspace.list_below(None, &options).unwrap();
    let Detail::Listed { files, .. } = detail else { panic!("{detail:?}") };
    assert!(files == 7 && told_of(&told), "{files}: {told:?}");

    let options = SearchOptions { files: 9, ..TERMS };
    let (detail, told) = workspace.list_below(None, &options).unwrap();
    let Detail::Listed { files, .. } = detail else { panic!("{detail:?}") };
    assert_eq!(files, 9);
    assert!(told[0].text.starts_with("it stopped after 9 files"), "{told:?}");
}
