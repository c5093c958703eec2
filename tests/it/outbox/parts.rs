//! `deaddrop show --part`: an outbox for chats that take only so many characters at once.

use deaddrop::tokens;

use crate::support::{Project, Run};

/// What stands between the lines of the parts, one after another.
fn joined(parts: &[String]) -> String {
    let inner = parts.iter().map(|part| {
        let (_, rest) = part.split_once('\n').unwrap();
        &rest[..=rest.trim_end().rfind('\n').unwrap()]
    });
    inner.collect()
}

#[test]
fn parts_are_made_for_the_limit_that_is_set() {
    let base = Project::with_session();
    let outbox = base.outbox(1);
    let run = base.run(&["show", "--part", "1"]).ok();
    assert_eq!(run.stdout, outbox, "it fits into one message");
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    assert!(run.stderr.contains("it needs no parts"), "{run:?}");

    base.write("deaddrop.toml", "part_characters = 2000\n");
    let first = base.run(&["show", "--part", "1"]).ok();
    let of: usize = first
        .stderr
        .split_once("Part 1 of ")
        .unwrap()
        .1
        .split(',')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let told = base.run(&["show", "--part", "1", "--json"]).ok().stdout;
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&told["part"], &told["of"]), (&1.into(), &of.into()));
    assert_eq!(told["text"], first.stdout);
    assert!(of >= outbox.len() / 2_000, "{first:?}");
    let show = |part: usize| base.run(&["show", "--part", &part.to_string()]).ok().stdout;
    let parts: Vec<String> = (1..=of).map(show).collect();
    assert_eq!(joined(&parts), outbox);
    for (n, part) in (1..).zip(&parts) {
        assert!(part.encode_utf16().count() <= 2_000, "{part}");
        assert!(part.starts_with(&format!("=== PART {n} of {of} of one message: ")), "{part}");
    }
    assert!(parts[0].trim_end().ends_with(&format!("wait for part {of} before you answer ===")));
    assert!(parts[of - 1].ends_with("now answer ===\n"), "{parts:?}");

    let more = (of + 1).to_string();
    let run = base.run(&["show", "--part", &more]).with_code(2);
    assert!(run.stdout.is_empty() && run.stderr.contains(&format!("of {of}")), "{run:?}");
    for flags in [&["--part-characters=1000000"][..], &["--part-characters", "1000000", "--quiet"]]
    {
        let run = base.run(&[&["show", "--part", "1"][..], flags].concat()).ok();
        assert_eq!(run.stdout, outbox);
        assert_eq!(run.stderr.is_empty(), flags.contains(&"--quiet"), "{run:?}");
    }
    let mut command = base.command(&["show", "--part", "1"]);
    let run = Run::of(command.env("DEADDROP_PART_CHARACTERS", "1000000"), "").ok();
    assert_eq!(run.stdout, outbox);
    let run = base.run(&["show", "--part", "1", "--part-characters", "10"]).with_code(2);
    assert!(run.stderr.contains("--part-characters: part_characters is 10"), "{run:?}");
}

#[test]
fn so_many_parts_are_made_as_asked_for() {
    let base = Project::with_session();
    let outbox = base.outbox(1);
    let show = |part: usize| {
        let run = base.run(&["show", "--part", &format!("{part}/3")]).ok();
        assert!(run.stderr.contains(&format!("Part {part} of 3, ")), "{run:?}");
        run.stdout
    };
    let parts: Vec<String> = (1..=3).map(show).collect();
    assert_eq!(joined(&parts), outbox);
    let third = outbox.len() / 3;
    assert!(parts.iter().all(|part| (third / 2..third * 2).contains(&part.len())));
    for (asked, told) in [
        ("4/3", "there is no part 4 of 3"),
        ("0/3", "there is no part 0 of 3"),
        ("0", "there is no part 0 of 1"),
        ("1/1000", "which fit in fewer than 1000 parts"),
        ("x", "it is not K"),
        ("1/2/3", "it is not K"),
    ] {
        let run = base.run(&["show", "--part", asked]).with_code(2);
        assert!(run.stdout.is_empty() && run.stderr.contains(told), "{asked}: {run:?}");
    }
}

#[test]
fn a_turn_of_more_results_than_there_is_room_for_ends_in_an_outbox() {
    let base = Project::with_session();
    base.write("workspace/o/small.txt", "x\n");
    // Lines of digits that a search shows, which have more tokens than words do.
    let line = format!("{}\n", "7261940583".repeat(16));
    for name in ["a", "b", "c"] {
        base.write(&format!("workspace/{name}.txt"), line.repeat(190));
    }
    let searches =
        ["a", "b", "c"].map(|name| format!("[SEARCH pattern=\"7\" path=\"{name}.txt\"]\n"));
    let reply = "[LIST_FILES path=\"o\"]\n".repeat(850) + &searches.concat();
    let outbox = base.apply(&reply);
    assert!(tokens::count(&outbox) <= 24_000, "{}", tokens::count(&outbox));
    assert_eq!(base.last_codes(), vec!["ok"; 853]);
    assert_eq!(outbox.matches("[OK] LIST_FILES: ").count(), 850);
    // What is no longer than the line that would tell of it is there, and once in the listing.
    assert_eq!(outbox.matches("\n  o/small.txt").count(), 851);
    assert_eq!(outbox.matches("[OK] SEARCH: ").count(), 3);
    assert!(outbox.contains(" more lines left out for room ...]\n"), "{outbox}");
}
