//! Decisions on file operations.

use crate::policy::{Access, Verdict, folder, may_search, path};
use crate::protocol::RelPath;
use crate::settings::Policy;

fn rule(policy: &Policy, access: Access, text: &str, size: Option<u64>) -> String {
    let path = path(policy, access, &RelPath::parse(text).unwrap(), size);
    path.rule().unwrap_or("-").to_owned()
}

#[test]
fn presets_on_files() {
    use Access::{Delete, Read, Write};
    const MIB: u64 = 1 << 20;
    for (name, access, text, size, expected) in [
        ("restrictive", Read, "src/a.ts", Some(MIB), "-"),
        ("restrictive", Read, "src/a.ts", Some(MIB + 1), "files.maxFileSize"),
        ("restrictive", Write, "src/a.ts", Some(1), "files.readOnly"),
        ("restrictive", Delete, ".env", None, "files.readOnly"),
        ("restrictive", Read, ".env", None, "files.blockedPaths"),
        ("restrictive", Read, "a/.git/config", None, "files.blockedPaths"),
        ("restrictive", Read, "node_modules/a", None, "-"),
        ("standard", Write, "src/a.ts", Some(10 * MIB), "-"),
        ("standard", Write, "./src/a.ts", None, "-"),
        ("standard", Write, "src/a.ts", Some(10 * MIB + 1), "files.maxFileSize"),
        ("standard", Delete, "src/a.ts", Some(100 * MIB), "-"),
        ("standard", Read, "node_modules/x/index.js", None, "files.blockedPaths"),
        ("standard", Read, "a/node_modules/x", None, "files.blockedPaths"),
        ("standard", Write, "my_node_modules/x", None, "-"),
        ("standard", Write, "prod.env", None, "files.blockedPaths"),
        ("standard", Write, "a/PROD.ENV", None, "files.blockedPaths"),
        ("standard", Write, "src/../.env", None, "files.blockedPaths"),
        ("standard", Write, "environment.ts", None, "-"),
        ("standard", Read, "tls/server.key", None, "files.blockedPaths"),
        ("standard", Read, "tls/server.pem/x", None, "files.blockedPaths"),
        ("standard", Read, "keys.ts", None, "-"),
        ("permissive", Write, ".env", Some(100 * MIB), "-"),
        ("permissive", Write, "a.key", None, "files.blockedPaths"),
        ("permissive", Write, "a", Some(100 * MIB + 1), "files.maxFileSize"),
        ("workspace", Write, ".env", Some(1 << 40), "-"),
        ("workspace", Delete, "a.pem", None, "-"),
    ] {
        let policy = Policy::preset(name).unwrap();
        assert_eq!(rule(&policy, access, text, size), expected, "{name} {access:?} {text}");
    }
}

#[test]
fn patterns_of_several_components() {
    let mut policy = Policy::preset("permissive").unwrap();
    policy.files.blocked =
        vec!["./src/gen/".into(), "a/**/z".into(), "*.lock".into(), "b/*/c".into()];
    policy.files.allowed = vec!["src".into(), "a".into(), "b".into(), "*.md".into()];
    for (text, expected) in [
        ("src/a.ts", "-"),
        ("src/gen/a.ts", "files.blockedPaths"),
        ("x/src/gen", "-"),
        ("src/generated", "-"),
        ("a/z", "files.blockedPaths"),
        ("a/b/c/z/d", "files.blockedPaths"),
        ("a/zz", "-"),
        ("b/x/c", "files.blockedPaths"),
        ("b/x/y/c", "-"),
        ("src/Cargo.lock", "files.blockedPaths"),
        ("docs/a.md", "-"),
        ("docs/a.txt", "files.allowedPaths"),
        ("SRC/q", "files.allowedPaths"),
    ] {
        assert_eq!(rule(&policy, Access::Write, text, None), expected, "{text}");
    }
    policy.files.enabled = false;
    assert_eq!(rule(&policy, Access::Read, "src/a.ts", None), "files.enabled");
}

#[test]
fn words_of_file_decisions() {
    let standard = Policy::preset("standard").unwrap();
    let Verdict::Deny(denial) =
        path(&standard, Access::Read, &RelPath::parse("a/.env").unwrap(), None)
    else {
        panic!()
    };
    assert_eq!(denial.reason, "Path 'a/.env' is blocked");
    assert_eq!(denial.suggestion.as_deref(), Some("Use a path that does not match .*"));
}

#[test]
fn searches_and_lists_are_judged_as_reads() {
    let mut policy = Policy::preset("standard").unwrap();
    let path = |text: &str| RelPath::parse(text).unwrap();
    let may = |policy: &Policy, text: &str| may_search(&policy.files)(&path(text), 10);
    assert!(may(&policy, "src/a.rs") && !may(&policy, "src/.env") && !may(&policy, "a/b.pem"));
    assert!(!may_search(&policy.files)(&path("a"), 100 << 20), "too large to be read");
    assert_eq!(folder(&policy, None), Verdict::Allow);
    assert!(matches!(folder(&policy, Some(&path("a/.git"))), Verdict::Deny(_)));
    // An allowed path may be inside a folder that is not allowed itself.
    policy.files.allowed = vec!["src/*.rs".to_owned()];
    assert_eq!(folder(&policy, Some(&path("src"))), Verdict::Allow);
    assert!(may(&policy, "src/a.rs") && !may(&policy, "src/a.txt") && !may(&policy, "doc"));
    policy.files.enabled = false;
    assert!(matches!(folder(&policy, None), Verdict::Deny(_)));
    assert!(!may(&policy, "src/a.rs"));
}
