//! Tests of the brief form.

use super::*;
use crate::clock::Timestamp;

/// An outbox with this Environment and listing.
fn outbox(environment: &str, listing: &str) -> String {
    format!(
        "=== HEADER ===\nSession: a1b2c3d4\nSequence: 3\nTask: x\n\n=== PROTOCOL ===\nthe protocol\n\n=== CONTEXT ===\n## Environment\n{environment}## Workspace Files\n{listing}\n=== PROMPT ===\nx\n"
    )
}

/// The CONTEXT section of the brief form.
fn context(before: &str, now: &str) -> String {
    let session = Session::new("a1b2c3d4".into(), "x", vec![], Timestamp::now());
    let brief = brief(&session, now, 2, Some(before)).unwrap();
    let (_, context) = brief.split_once("\n=== CONTEXT ===\nAs in message 2").unwrap();
    context.strip_suffix("\n=== PROMPT ===\nx\n").unwrap().to_owned()
}

const ENVIRONMENT: &str = "  Sandbox: bwrap\n  Network: none\n";

#[test]
fn what_changed_in_a_listing_is_shown() {
    let long = "  kept/a.rs (10 bytes)\n  kept/b.rs (10 bytes)\n  kept/c.rs (10 bytes)\n".repeat(9);
    for (before, now, shown) in [
        ("  a (1 byte)\n", "  a (1 byte)\n", ".\n"),
        (
            "  a (1 byte)\n",
            "  a (2 bytes)\n",
            ", except for these lines:\n## Workspace Files\n  a (2 bytes)\n",
        ),
        (
            "  a (1 byte)\n  b (x) (1 byte)\n",
            "  a (1 byte)\n  c (link)\n",
            ", except for these lines:\n## Workspace Files\n  c (link)\nNo longer listed:\n  b (x) (1 byte)\n",
        ),
        // The same files are listed in a different way.
        (
            "  src/a (1 byte)\n  src/b/c (1 byte)\n",
            "  src/ (2 files, 2 bytes)\n",
            ", except for these lines:\n## Workspace Files\n  src/ (2 files, 2 bytes)\n",
        ),
        (
            "  src/ (2 files, 2 bytes)\n  lib/ (1 file, 1 byte)\n",
            "  src/a (1 byte)\n  src/b/c (1 byte)\n",
            ", except for these lines:\n## Workspace Files\nNo longer listed:\n  lib/ (1 file, 1 byte)\n",
        ),
        // For the files of one line, only the number is compared. The rest belongs to the outermost folder.
        (
            "  src/a (1 byte)\n  src/ (2 more files, 9 bytes)\n  ./ (1,002 more files, 9 kB)\n",
            "  src/a (2 bytes)\n  src/b (9 bytes)\n  src/c/ (2 files, 3 bytes)\n  lib/ (1,000 files, 9 kB)\n  x (link)\n  y (link)\n",
            ", except for these lines:\n## Workspace Files\n  src/a (2 bytes)\n  src/ (2 files before, 3 now)\n",
        ),
        (
            "  src/a (1 byte)\n  src/ (2 more files, 9 bytes)\n",
            "  src/ (3 files, 10 bytes)\n",
            ".\n",
        ),
        (
            "  src/ (2 files, 2 bytes)\n",
            "  src/a (1 byte)\n  src/ (1 more file, 1 byte)\n  src/obj/ (build products: 3 files, 3 bytes)\n",
            ", except for these lines:\n## Workspace Files\n  src/obj/ (build products: 3 files, 3 bytes)\n",
        ),
        // A folder with the same line has the same files as before.
        (
            "  src/ (2 files, 2 bytes)\n",
            "  src/ (2 files, 2 bytes)\n  src/new (1 byte)\n",
            ", except for these lines:\n## Workspace Files\n  src/new (1 byte)\n",
        ),
        (
            "  a (1 byte)\n",
            "  ./ (9 files, 1 kB)\n",
            ", except for these lines:\n## Workspace Files\n  ./ (9 files, 1 kB)\n",
        ),
        (
            "  … 5 ignored files, 5 bytes (not listed)\n",
            "  … 6 ignored files, 6 bytes (not listed)\n",
            ", except for these lines:\n## Workspace Files\n  … 6 ignored files, 6 bytes (not listed)\n",
        ),
    ] {
        let [before, now] = [before, now].map(|end| outbox(ENVIRONMENT, &format!("{long}{end}")));
        assert_eq!(context(&before, &now), shown);
    }
}

#[test]
fn what_changed_in_the_environment_is_shown() {
    let list = "  a (1 byte)\n";
    let same = "  System: Linux, with a long description\n  Sandbox: bwrap: no network\n".repeat(2);
    let before = outbox(&format!("{same}  Network: none\n  Policy: asks: rm\n"), list);
    let now = outbox(&format!("{same}  Network: open\n"), list);
    assert_eq!(
        context(&before, &now),
        ", except for these lines:\n## Environment\n  Network: open\nNo longer listed:\n  Policy: asks: rm\n"
    );
}

#[test]
fn a_listing_that_changed_too_much_is_whole() {
    let before = outbox(ENVIRONMENT, "  a (1 byte)\n  b (1 byte)\n");
    for now in ["  c (1 byte)\n", "(empty workspace)\n", "  (not listed)\n"] {
        let shown = context(&before, &outbox(ENVIRONMENT, now));
        assert_eq!(shown, format!(", except for these lines:\n## Workspace Files\n{now}"));
    }
}

#[test]
fn another_protocol_is_repeated() {
    let session = Session::new("a1b2c3d4".into(), "x", vec![], Timestamp::now());
    let now = outbox(ENVIRONMENT, "  a (1 byte)\n");
    let before = now.replace("the protocol", "an earlier protocol");
    let repeated = brief(&session, &now, 2, Some(&before)).unwrap();
    assert!(
        repeated.contains("\n=== PROTOCOL ===\nthe protocol\n\n=== CONTEXT ===\n"),
        "{repeated}"
    );
    assert_eq!(brief(&session, "edited by hand\n", 2, Some(&now)), None);
}
