//! Documents: none is longer than a reader has patience for, and every link leads somewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// The most words of a page; of tasks any page in docs/ that is no reference.
const LONGEST: [(&str, usize); 2] = [("README.md", 900), ("ARCHITECTURE.md", 2500)];
const TASK: usize = 800;
const REFERENCE: [&str; 7] = [
    "docs/operations.md",
    "docs/replies.md",
    "docs/rpc.md",
    "docs/scripting.md",
    "docs/security.md",
    "docs/settings.md",
    "docs/tags.md",
];

fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = walkdir::WalkDir::new(root.join("docs")).sort_by_file_name().into_iter();
    let docs = docs.map(|entry| entry.unwrap().into_path());
    let top = ["README.md", "ARCHITECTURE.md"].map(|name| root.join(name));
    let pages =
        top.into_iter().chain(docs).filter(|path| path.extension().is_some_and(|e| e == "md"));
    pages
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            (path.strip_prefix(root).unwrap().to_owned(), text)
        })
        .collect()
}

#[test]
fn no_page_is_too_long() {
    for (path, text) in pages() {
        let name = path.to_str().unwrap();
        let longest = LONGEST.iter().find(|(page, _)| *page == name).map_or(TASK, |page| page.1);
        let words = text.split_whitespace().count();
        assert!(words <= longest || REFERENCE.contains(&name), "{name} has {words} words");
    }
}

/// The anchors of a page, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let titles = text.lines().filter(|line| line.starts_with('#'));
    titles
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

#[test]
fn every_link_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    for (path, text) in pages() {
        for found in link.captures_iter(&text) {
            let target = &found[1];
            if target.contains("://") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let folder = path.parent().unwrap();
            let file = if file.is_empty() { path.clone() } else { folder.join(file) };
            let there = root.join(&file);
            assert!(there.is_file(), "{} links to {target}", path.display());
            let is_known =
                anchor.is_empty() || anchors(&fs::read_to_string(&there).unwrap()).contains(anchor);
            assert!(is_known, "{} links to {target}", path.display());
        }
    }
}
