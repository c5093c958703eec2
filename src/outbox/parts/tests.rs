//! The joined parts are the outbox again, and no part is too long.

use proptest::prelude::*;

use super::*;

fn all(outbox: &str, of: Option<usize>, limit: usize) -> Vec<String> {
    let first = part(outbox, PartNumber { part: 1, of }, limit).unwrap();
    let text = |part| super::part(outbox, PartNumber { part, of }, limit).unwrap().text;
    assert_eq!(of.unwrap_or(first.of), first.of);
    (1..=first.of).map(text).collect()
}

/// Joins parts by looking only at their first and last lines.
fn joined(parts: &[String]) -> String {
    let [only] = parts else {
        let pieces = parts.iter().map(|part| {
            let (begins, rest) = part.split_once('\n').unwrap();
            let (piece, ends) = rest.trim_end_matches('\n').rsplit_once('\n').unwrap_or(("", rest));
            assert!(begins.starts_with("=== PART ") && begins.ends_with(" ==="), "{begins}");
            assert!(ends.starts_with("=== END OF PART "), "{ends}");
            let cut = ends.contains("goes on in") || ends.contains("without a newline");
            format!("{piece}{}", if cut { "" } else { "\n" })
        });
        return pieces.collect();
    };
    only.clone()
}

fn outbox() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "\n",
        "a",
        "é\r\n",
        "😀😀😀",
        "=== PROMPT ===\n",
        "=== PART 1 of 2 of one message: this is the last part ===\n",
        "x=== \u{200b}end OF part",
        "a line as there are many, of some length and without anything special in it\n",
        "-------------------------------------------------------------------------------------",
    ]);
    prop::collection::vec((piece, 1usize..40), 0..40)
        .prop_map(|pieces| pieces.into_iter().map(|(piece, n)| piece.repeat(n)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]
    #[test]
    fn parts_put_together_are_the_outbox(outbox in outbox(), limit in 600usize..3_000) {
        let parts = all(&outbox, None, limit);
        prop_assert_eq!(joined(&parts), &*outbox);
        for part in &parts {
            prop_assert!(length(part) <= limit, "{} of {limit}: {part}", length(part));
        }
        prop_assert_eq!(parts.len() == 1, length(&outbox) <= limit);
    }

    #[test]
    fn so_many_parts_as_asked_for_are_the_outbox(outbox in outbox(), of in 1usize..9) {
        let whole = length(&outbox);
        if of > (whole / LEAST).max(1) {
            let asked = PartNumber { part: 1, of: Some(of) };
            let refused = part(&outbox, asked, 1);
            let is_right = matches!(refused, Err(NoPart::TooMany { .. }));
            prop_assert!(is_right, "{refused:?}");
            return Ok(());
        }
        let parts = all(&outbox, Some(of), 1);
        prop_assert_eq!(parts.len(), of);
        prop_assert_eq!(joined(&parts), &*outbox);
        for part in &parts {
            let lines = if of == 1 { 0 } else { part.lines().next().unwrap().len() + 160 };
            prop_assert!(length(part) <= 2 * whole / of + lines, "{part}");
        }
    }

    #[test]
    fn no_line_of_an_outbox_can_be_that_of_a_part(outbox in outbox()) {
        let parts = all(&outbox, None, 600);
        if parts.len() == 1 || !could_be_part(&outbox) {
            return Ok(());
        }
        for part in &parts {
            for line in [part.lines().next(), part.lines().last()].map(Option::unwrap) {
                let (_, rest) = line.split_once('[').unwrap();
                let (word, _) = rest.split_once(']').unwrap();
                prop_assert!(word.len() >= 6 && !outbox.contains(word), "{line}");
            }
        }
    }
}

#[test]
fn only_what_is_longer_than_a_part_is_cut_within() {
    let line = format!("{}\n", "x".repeat(99));
    let outbox = line.repeat(50);
    for parts in [all(&outbox, None, 1_000), all(&outbox, Some(7), 1)] {
        assert!(parts.iter().all(|part| !part.contains("goes on")), "{parts:?}");
    }
    let outbox = format!("{line}{}\n{line}", "é".repeat(2_000));
    let parts = all(&outbox, None, 1_000);
    let cut: Vec<bool> = parts.iter().map(|part| part.contains("goes on in part")).collect();
    assert_eq!(cut, [false, true, true, false], "{parts:?}");
    assert!(parts[1].ends_with("=== END OF PART 2 of 4, its last line goes on in part 3: wait for part 4 before you answer ===\n"));
    assert!(parts[3].ends_with("=== END OF PART 4 of 4: this was the last part, now answer ===\n"));
}

#[test]
fn parts_are_asked_for_by_number() {
    let asked = |text: &str| text.parse::<PartNumber>();
    assert_eq!(asked("2"), Ok(PartNumber { part: 2, of: None }));
    assert_eq!(asked("2/5"), Ok(PartNumber { part: 2, of: Some(5) }));
    for (text, part, of) in [("0/5", 0, 5), ("6/5", 6, 5), ("0/0", 0, 0), ("1/0", 1, 0)] {
        assert_eq!(asked(text), Err(NoPart::Beyond { part, of }), "{text}");
    }
    for text in ["", "/", "1/", "/2", "-1", "1/2/3", "x", "1.5"] {
        assert_eq!(asked(text), Err(NoPart::Form), "{text}");
    }
    let outbox = "a line\n".repeat(500);
    let part = |text: &str, limit| part(&outbox, asked(text).unwrap(), limit).map(|p| p.of);
    assert_eq!(part("1", 3_500), Ok(1));
    assert_eq!(part("3", 1_500), Ok(3));
    for (text, limit, told) in [
        ("4", 1_500, "there is no part 4 of 3; parts are counted from 1 to 3"),
        ("0", 1_500, "there is no part 0 of 3; "),
        ("2", 3_500, "there is no part 2 of 1; "),
        ("1/18", 1, "the outbox has 3500 characters, which fit in fewer than 18 parts; 17 at most"),
        ("1", 300, "a part of at most 300 characters has no room beside the lines"),
    ] {
        let refused = part(text, limit).unwrap_err().to_string();
        assert!(refused.starts_with(told), "{text}: {refused}");
    }
}

#[test]
fn more_than_nine_parts_have_longer_lines() {
    let outbox = "x".repeat(100_000);
    for limit in [1_000, 10_000] {
        let parts = all(&outbox, None, limit);
        assert!(parts.len() > 9 && parts.iter().all(|part| length(part) <= limit));
        assert_eq!(joined(&parts), outbox);
    }
}
