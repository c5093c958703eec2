//! How requested files share the room of an outbox, with the real program.

use crate::support::{ID, Project};

/// The tokens of the outbox that answers requests of these files, and the line at which big.txt is cut.
fn asked(base: &Project, names: &[&str]) -> (usize, usize) {
    base.run(&["new", "--no-watch", "--no-contents", "--id", ID, "A task"]).ok();
    let reply: String =
        names.iter().map(|name| format!("[READ_FILE path=\"{name}.txt\"]\n")).collect();
    let outbox = base.apply(&reply);
    let cut = outbox.split_once("[READ_FILE path=\"big.txt\" start_line=\"");
    let cut = cut.map_or(0, |(_, rest)| rest.split_once('"').unwrap().0.parse().unwrap());
    (deaddrop::tokens::count(&outbox), cut)
}

#[test]
fn what_a_file_of_long_lines_cannot_use_of_its_share_goes_to_the_others() {
    let prepared = || {
        let base = Project::new();
        let line =
            "some words of a text that goes on for about ninety characters, as prose does, or so";
        let big: String = (0..5_000).map(|n| format!("{n:05} {line}\n")).collect();
        base.write("workspace/big.txt", &big);
        for name in ["one", "two", "three", "four"] {
            base.write(&format!("workspace/{name}.txt"), "q".repeat(500_000));
        }
        // Each line is more than half of the room.
        for name in ["a", "b"] {
            let line = " word".repeat(12_000) + "\n";
            base.write(&format!("workspace/{name}.txt"), line.repeat(2));
        }
        base
    };
    let (tokens, alone) = asked(&prepared(), &["big"]);
    assert!((23_500..=24_000).contains(&tokens) && alone > 500, "{tokens}, {alone}");
    for others in [&["one"][..], &["one", "two", "three", "four"]] {
        let names = [&["big"], others].concat();
        let (tokens, cut) = asked(&prepared(), &names);
        assert!((23_000..=24_000).contains(&tokens), "{names:?}: {tokens}");
        // Each of the others needs its beginning and a line about it, and no more.
        assert!(cut + 110 * others.len() > alone, "{names:?}: {cut} of {alone}");
    }
    // Where nobody else has use for it, it is enough for a line of one.
    let base = prepared();
    let (tokens, _) = asked(&base, &["a", "b"]);
    assert!((12_000..=24_000).contains(&tokens), "{tokens}");
    for shown in [
        "a.txt' is shown below (120002 bytes; line 1 of 2)",
        "b.txt' is shown below (120002 bytes; line 1 of 2, its first 4000 characters of 60000 bytes)",
    ] {
        assert!(base.outbox(2).contains(shown), "{shown}");
    }
}
