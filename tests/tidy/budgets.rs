//! The source tree against its rules: each module stays within its budget of lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

/// Lines that all modules together may have in the end, outside tests.
const TARGET: usize = 46_000;

/// A line of `budgets.txt`.
struct Module {
    name: &'static str,
    budget: usize,
    ceiling: usize,
    paths: Vec<&'static Path>,
}

fn modules() -> Vec<Module> {
    let rows = include_str!("budgets.txt").lines().filter(|line| !line.starts_with('#'));
    let module = |line: &'static str| {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap();
        let mut number = || words.next().unwrap().parse().unwrap();
        let (budget, ceiling) = (number(), number());
        Module { name, budget, ceiling, paths: words.map(Path::new).collect() }
    };
    rows.map(module).collect()
}

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Whether an attribute line makes the next item part of a test build only.
fn is_test_attribute(line: &str) -> bool {
    line.strip_prefix("#[cfg(").is_some_and(|condition| {
        condition.starts_with("test)") || condition.starts_with("all(test,")
    })
}

/// The lines of a source outside `#[cfg(test)]` items, and the modules that such items declare.
///
/// Relies on rustfmt: an item that begins at an indentation ends at the next line of that indentation
/// which closes it.
fn outside_tests(text: &str) -> (usize, Vec<String>) {
    let mut lines = text.lines();
    let (mut count, mut declared) = (0, Vec::new());
    while let Some(line) = lines.next() {
        if !is_test_attribute(line.trim_start()) {
            count += 1;
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let item = lines.by_ref().find(|line| !line.trim_start().starts_with("#["));
        let Some(item) = item else { break };
        let words = item.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        if let Some(name) = words.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
            declared.push(name.to_owned());
        }
        if !item.ends_with([';', '}', ',']) {
            let is_end = |line: &str| {
                line.strip_prefix(indent).is_some_and(|rest| rest.starts_with(['}', ')', ']']))
            };
            lines.by_ref().find(|line| is_end(line));
        }
    }
    (count, declared)
}

/// The lines of each file below `src`, outside tests.
fn sizes() -> BTreeMap<PathBuf, usize> {
    let (mut sizes, mut test_modules) = (BTreeMap::new(), BTreeSet::new());
    for entry in WalkDir::new(src()).into_iter().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let (lines, declared) = outside_tests(&fs::read_to_string(path).unwrap());
        let stem = path.file_stem().unwrap();
        let folder = path.parent().unwrap();
        let folder = if ["mod", "lib", "main"].iter().any(|name| stem == *name) {
            folder.to_owned()
        } else {
            folder.join(stem)
        };
        test_modules.extend(declared.iter().map(|name| folder.join(name)));
        sizes.insert(path.to_owned(), lines);
    }
    let root = src();
    let is_test = |path: &Path| {
        path.ancestors().take_while(|place| *place != root).any(|place| {
            test_modules.contains(&place.with_extension(""))
                || place.file_stem().is_some_and(|name| name == "tests")
        })
    };
    let outside = sizes.iter().filter(|(path, _)| !is_test(path));
    outside.map(|(path, lines)| (path.strip_prefix(&root).unwrap().to_owned(), *lines)).collect()
}

#[test]
fn items_of_tests_do_not_count() {
    let text = "fn a() {\n}\n\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\n\n#[cfg(all(test, unix))]\n#[path = \"x\"]\nmod apart;\n#[cfg(test)]\npub(crate) use a::b;\nfn c() {}\n";
    assert_eq!(outside_tests(text), (5, vec!["apart".to_owned()]));
}

#[test]
fn every_module_keeps_its_budget() {
    let modules = modules();
    let mut sums = vec![0; modules.len()];
    let mut without = Vec::new();
    for (path, lines) in sizes() {
        // The longest path counts: `workspace/protected` before `workspace`.
        let owners = modules.iter().enumerate().flat_map(|(at, module)| {
            let owned = module.paths.iter().filter(|owned| path.starts_with(owned));
            owned.map(move |owned| (owned.components().count(), at))
        });
        match owners.max() {
            Some((_, at)) => sums[at] += lines,
            None => without.push(path),
        }
    }
    println!("{:<12} {:>7} {:>7} {:>7}", "module", "lines", "budget", "ceiling");
    let mut over = Vec::new();
    for (Module { name, budget, ceiling, .. }, lines) in modules.iter().zip(&sums) {
        println!("{name:<12} {lines:>7} {budget:>7} {ceiling:>7}");
        if lines > ceiling {
            over.push(format!("{name}: {lines} lines, over {ceiling}"));
        }
    }
    println!("{:<12} {:>7} {TARGET:>7}", "all", sums.iter().sum::<usize>());
    assert!(without.is_empty(), "files in no module of tests/tidy/budgets.txt: {without:?}");
    assert!(over.is_empty(), "{over:#?}");
}
