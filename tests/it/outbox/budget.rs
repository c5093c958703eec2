//! Outboxes of more than a chat takes: whatever the values, what is rendered fits, nothing is cut
//! within a line, and what is left out is told with a way to ask for it.

use std::time::Duration;

use deaddrop::context::Offered;
use deaddrop::outbox::{Environment, Files, RenderedOutbox, render};
use deaddrop::protocol::operations::{Encoding, parse_events_message};
use deaddrop::protocol::{
    Capture, CommandOutput, Detail, Dialect, Ending, Execution, Failure, Kind, Outcome, RelPath,
    SentValues,
};
use deaddrop::session::{ChangeKind, FileChange, Session, TurnChanges};
use deaddrop::text::visible;
use deaddrop::tokens;
use deaddrop::workspace::Contents;
use deaddrop::workspace::walk::Walk;
use proptest::prelude::*;
use proptest::sample::select;

pub(crate) fn environment(max_tokens: usize) -> Environment {
    let some = || "x".to_owned();
    Environment {
        system: some(),
        shell: some(),
        sandbox: some(),
        network: some(),
        protected: some(),
        policy: None,
        timeout: 30,
        longest: 30,
        output_limit: 4000,
        max_tokens,
        context_tokens: max_tokens,
        secrets: deaddrop::settings::Secrets::default(),
    }
}

fn session(task: &str, dialect: Dialect) -> Session {
    let now = "2025-01-15T10:30:00Z".parse().unwrap();
    let mut session = Session::new("a1b2c3d4".into(), task, vec![], now);
    session.dialect = dialect;
    session
}

pub(crate) fn contents(path: &str, text: &str) -> Contents {
    let (bytes, size) = (text.as_bytes().to_vec(), text.len() as u64);
    Contents { path: RelPath::parse(path).unwrap(), bytes, size, lines: None }
}

pub(crate) fn outcome(kind: Kind, detail: Detail) -> Outcome {
    Outcome { kind, line: 1, detail, warnings: vec![], asked: None, at: None }
}

pub(crate) fn ran(command: &str, output: &str, code: i32) -> Outcome {
    let capture = Capture { head: output.to_owned(), ..Capture::default() };
    let output = CommandOutput::Together(capture);
    let ending = Ending::Exited(code);
    let command = command.to_owned();
    let duration = Duration::ZERO;
    outcome(Kind::Run, Detail::Ran(Execution { command, ending, output, duration }))
}

/// A session at its second outbox, with files that its reply asked for.
pub(crate) fn asked_for(files: &[(&str, &str)], mut results: Vec<Outcome>) -> (Session, Files) {
    let mut session = session("A task", Dialect::Tags);
    for (path, _) in files {
        let path = RelPath::parse(path).unwrap();
        results.push(outcome(
            Kind::Read,
            Detail::ReadLater { path, part: deaddrop::protocol::Part::default() },
        ));
    }
    session.advance(results, session.updated_at);
    let requested = files.iter().map(|(path, text)| Ok(contents(path, text)));
    (session, Files { requested: requested.collect(), ..Files::default() })
}

pub(crate) fn rendered(session: &Session, files: &Files, max_tokens: usize) -> RenderedOutbox {
    let names: Vec<String> = (0..300).map(|n| format!("folder/file_{n}.py")).collect();
    let walk = Walk::of(names.iter().map(|name| (name.as_str(), 7)));
    render(session, &environment(max_tokens), &walk, files)
}

#[test]
fn a_small_outbox_is_not_counted_and_a_large_one_is() {
    let before = tokens::exact_counts();
    let session = session("A task", Dialect::Tags);
    let walk = Walk::of([("a.py", 7)]);
    let offered = Offered::new("A task", vec![], vec![contents("a.py", "a = 1\n\n")], "", 1);
    let files = Files { offered, ..Files::default() };
    let small = render(&session, &environment(24_000), &walk, &files);
    assert_eq!(tokens::exact_counts(), before);
    assert!(small.text.contains("\n## Workspace File Contents\nEvery non-empty text file, in full (1 file).\n--- a.py ---\na = 1\n\n--- end a.py ---\n\n=== PROMPT ==="), "{}", small.text);
    assert_eq!(small.shown.len(), 1);
    let exactly = tokens::count(&small.text);
    assert!(small.tokens.abs_diff(exactly) * 100 < exactly * 15, "{} for {exactly}", small.tokens);

    // A later one has nothing to offer.
    let (before, mut later) = (tokens::exact_counts(), session.clone());
    later.sequence = 2;
    render(&later, &environment(24_000), &walk, &Files::default());
    assert_eq!(tokens::exact_counts(), before);

    let before = tokens::exact_counts();
    let large = rendered(&session, &Files::default(), 4_000);
    assert!(tokens::exact_counts() > before);
    // All who look at the text tell the same.
    assert_eq!(large.tokens, tokens::about(&large.text, 4_000));
    assert_eq!(rendered(&session, &Files::default(), 4_000), large);
}

#[test]
fn small_files_are_whole_and_large_ones_are_cut_at_a_line_that_can_be_asked_for() {
    let line = "    value = compute(value, other)\n";
    let (large, huge) = (line.repeat(3_000), line.repeat(20_000));
    let (session, files) =
        asked_for(&[("huge.py", &huge), ("small.py", "x = 1\n"), ("large.py", &large)], vec![]);
    let RenderedOutbox { text, tokens, shown, .. } = rendered(&session, &files, 24_000);
    assert!(tokens <= 24_000 && tokens > 21_000, "{tokens}");
    assert!(text.contains("--- small.py ---\nx = 1\n--- end small.py ---\n--- large.py ---\n"));
    let lines = |path: &str| {
        let (_, body) = text.split_once(&format!("--- {path} ---\n")).unwrap();
        let (body, after) = body.split_once(&format!("--- end {path} ---\n")).unwrap();
        assert_eq!(body, line.repeat(body.lines().count()));
        (body.lines().count(), after.lines().next().unwrap().to_owned())
    };
    let ((in_large, after_large), (in_huge, after_huge)) = (lines("large.py"), lines("huge.py"));
    assert!(in_large.abs_diff(in_huge) < 20, "{in_large} and {in_huge} lines");
    let next = in_large + 1;
    assert_eq!(
        after_large,
        format!(
            "... lines {next}-3000 are left out for room: [READ_FILE path=\"large.py\" start_line=\"{next}\"] shows them"
        )
    );
    assert!(after_huge.starts_with("... lines "), "{after_huge}");
    assert!(
        text.contains(&format!(
            "[OK] READ_FILE: 'large.py' is shown below (102000 bytes; lines 1-{in_large} of 3000)\n"
        )),
        "{text}"
    );
    assert_eq!(shown.iter().map(|file| file.whole).collect::<Vec<_>>(), [false, true, false]);
    // The listing keeps its least, and the rest of it is counted.
    let (_, listing) = text.split_once("## Workspace Files\n").unwrap();
    let (listing, _) = listing.split_once("\n## Previous").unwrap();
    assert!(listing.starts_with("  folder/ (300 files, 2,100 bytes"), "{listing}");
    assert!(listing.contains("[LIST_FILES path=\"FOLDER\"] lists one\n"), "{listing}");
}

#[test]
fn what_commands_wrote_is_shortened_evenly_and_leaves_room_for_what_was_asked_for() {
    let results =
        (0..1000).map(|n| ran("make", &format!("line of output {n}\n").repeat(200), n % 2));
    let (session, files) = asked_for(&[("a.py", &"a = 1\n".repeat(300))], results.collect());
    let RenderedOutbox { text, tokens, .. } = rendered(&session, &files, 40_000);
    assert!(tokens <= 40_000 && tokens > 33_000, "{tokens}");
    assert_eq!(text.matches("RUN_COMMAND: Ran 'make' (exit code ").count(), 1000);
    assert!(text.contains("characters left out ...]\n"));
    assert!(text.contains(&format!("--- a.py ---\n{}--- end a.py ---", "a = 1\n".repeat(300))));

    // Where even the lines are too many, failures come first, and the rest is counted.
    let text = rendered(&session, &files, 8_000).text;
    let told = text.lines().find(|line| line.starts_with("[... more results")).unwrap();
    assert!(told.starts_with("[... more results are left out for room: 50"), "{told}");
    assert!(
        text.matches("[FAILED] RUN_COMMAND").count() > 100 && !text.contains("[OK] RUN_COMMAND")
    );
}

#[test]
fn a_long_task_is_whole_in_the_first_prompt_and_shortened_in_headers() {
    let task: String = (0..1_500).map(|n| format!("Requirement {n}: do it well\n")).collect();
    let mut session = session(&task, Dialect::Tags);
    let RenderedOutbox { text, tokens, .. } = rendered(&session, &Files::default(), 24_000);
    assert!(tokens <= 24_000, "{tokens}");
    let (header, rest) = text.split_once("=== PROTOCOL ===").unwrap();
    assert!(header.contains("\nTask (its first "), "{header}");
    assert!(
        header.contains("; PROMPT contains all of it):\n  Requirement 0: do it well\n"),
        "{header}"
    );
    assert!(rest.contains(&format!("=== PROMPT ===\n{task}")));

    session.advance(vec![ran("make", "", 0)], session.updated_at);
    let later = rendered(&session, &Files::default(), 24_000);
    // Where there is room for it, it is whole there, too.
    let whole: String = task.lines().map(|line| format!("  {line}\n")).collect();
    assert!(later.tokens <= 24_000 && later.text.contains(&whole), "{}", later.tokens);
    assert!(!later.text.contains("the first message contained all of it"));

    session.advance(vec![ran("make", &"word ".repeat(20_000), 0)], session.updated_at);
    let later = rendered(&session, &Files::default(), 24_000);
    assert!(
        later.tokens <= 24_000
            && later.text.contains("; the first message contained all of it):\n")
    );
    assert!(later.text.contains("  Requirement 1000: do it well\n"));

    // What nobody may leave out can be too much: that is told by the number.
    let twice = self::session(&task.repeat(3), Dialect::Tags);
    let over = rendered(&twice, &Files::default(), 24_000);
    assert!(over.tokens > 24_000 && over.tokens == tokens::count(&over.text));
    assert!(over.text.contains(&task.repeat(3)));
}

#[test]
fn events_are_shortened_in_the_outbox_and_say_so() {
    let mut session = session("A task", Dialect::Operations);
    let path = RelPath::parse("big.py").unwrap();
    let content = "value = compute(value)\n".repeat(8_000);
    let size = content.len() as u64;
    let read = Detail::Read { path, content, encoding: Encoding::Utf8, size };
    let mut results = vec![outcome(Kind::Read, read)];
    for _ in 0..20 {
        results.push(ran("make", &"word ".repeat(800), 0));
    }
    for result in &mut results {
        result.asked = Some(SentValues { id: Some("i".into()), about: "big.py".into() });
    }
    session.advance(results, session.updated_at);
    let RenderedOutbox { text, tokens, shown, .. } = rendered(&session, &Files::default(), 12_000);
    assert!(tokens <= 12_000 && tokens > 9_500, "{tokens}");
    let (_, json) = text.split_once("## Events\n").unwrap();
    let (json, _) = json.split_once("\n\n=== PROMPT").unwrap();
    assert_eq!(parse_events_message(json).unwrap().events.len(), 22);
    let (_, told) = json.split_once("'big.py' is given in part (lines 1-").expect(json);
    let (lines, told) = told.split_once(' ').unwrap();
    let next = lines.parse::<usize>().unwrap() + 1;
    let (last, words) = (next + 399, "-8000 are left out for room: shell with sed -n");
    let expected = format!("of 8000): lines {next}{words} '{next},{last}p' 'big.py' shows more");
    assert!(told.starts_with(&expected), "{told}");
    assert!(!shown[0].whole && shown[0].version.is_some());
    assert_eq!((&*shown[0].lines, shown[0].cut), (&[(1, next - 1)][..], None));

    // So many that not all of them can be told.
    let many = session.last_results[1..].iter().cycle().take(1000).cloned().collect();
    session.advance(many, session.updated_at);
    let few = rendered(&session, &Files::default(), 12_000);
    assert!(few.tokens <= 12_000, "{}", few.tokens);
    assert!(
        few.text.contains("the events of more operations are left out for room: "),
        "{}",
        few.text
    );
}

#[test]
fn of_a_first_line_that_is_too_long_events_say_how_much_is_given() {
    let mut session = session("A task", Dialect::Operations);
    let (path, content) = (RelPath::parse("one.js").unwrap(), "q".repeat(90_000) + "\nlast\n");
    let size = content.len() as u64;
    let read = Detail::Read { path, content, encoding: Encoding::Utf8, size };
    session.advance(vec![outcome(Kind::Read, read)], session.updated_at);
    let RenderedOutbox { text, shown, .. } = rendered(&session, &Files::default(), 8_000);
    let told = "'one.js' is given in part (line 1 of 2, its first 4000 characters of 90000 bytes): the rest of line 1 is left out, as the line is too long to be shown whole: ";
    assert!(text.contains(told), "{text}");
    assert!(
        text.contains(
            "; line 2 is left out for room: shell with sed -n '2,2p' 'one.js' shows more"
        )
    );
    // Of line 1 only a part is shown.
    assert_eq!((shown[0].whole, shown[0].lines.last(), shown[0].cut), (false, None, Some(1)));
}

#[test]
fn lists_of_changed_files_are_shortened_too() {
    for dialect in [Dialect::Tags, Dialect::Operations] {
        let mut session = session("A task", dialect);
        session.advance(vec![ran("make", "", 0)], session.updated_at);
        let change = |n: u32| {
            let name: String =
                (0..20).map(|part| format!("q{}zx{}/", n * 7_919 + part, part * n)).collect();
            let path = format!("{n}/{name}").repeat(2)[..200].to_owned();
            let by_command = true;
            FileChange { path, from: None, how: ChangeKind::Changed, lines: None, by_command }
        };
        let named: Vec<FileChange> = (0..30).map(change).collect();
        let changed = TurnChanges { files: 30, by_commands: 30, named, ..TurnChanges::default() };
        session.changed = Some(Box::new(changed));
        let all = rendered(&session, &Files::default(), 24_000).text;
        assert!(all.matches("/q").count() > 300, "{all}");
        let few = rendered(&session, &Files::default(), 3_800);
        assert!(few.tokens <= 3_800, "{}", few.tokens);
        assert!(few.text.contains("\nCommands changed 30 files: "), "{}", few.text);
        assert!(few.text.contains(" more characters left out)\n"), "{}", few.text);
    }
}

#[test]
fn secrets_in_the_names_of_files_are_withheld_wherever_they_are_shown() {
    let key = ["AKIA", "Q3EGRAZBXS4JKTPN"].concat();
    let password = "hV83jsLq02xTz";
    let named = [format!("{key}.txt"), format!("dir/{password}.txt")];
    let secrets = vec![contents(".env", &format!("PASSWORD={password}\n"))];
    let is_clean = |rendered: &RenderedOutbox| {
        let text = &rendered.text;
        assert!(!text.contains(&key) && !text.contains(password), "{text}");
        assert!(text.contains("--- [withheld: ") && text.contains("--- dir/[withheld: "), "{text}");
        assert!(rendered.withheld.len() >= 2, "{:?}", rendered.withheld);
    };
    let files = named.iter().map(|path| contents(path, "text\n"));
    let offered = Offered::new("A task", vec![], files.collect(), "", 2);
    let first = Files { offered, secrets: secrets.clone(), ..Files::default() };
    is_clean(&rendered(&session("A task", Dialect::Tags), &first, 24_000));

    let paths = named.each_ref().map(|path| RelPath::parse(path).unwrap());
    let results = paths.iter().flat_map(|path| {
        let (path, to) = (path.clone(), path.clone());
        let created = Detail::Created { path: path.clone(), bytes: 5, replaced: false };
        let deleted = Detail::Deleted { path: path.clone() };
        let moved = Detail::Moved { path, to, files: None };
        [(Kind::Create, created), (Kind::Delete, deleted), (Kind::Move, moved)]
    });
    let results = results.map(|(kind, detail)| outcome(kind, detail)).collect();
    let asked: Vec<(&str, &str)> = named.iter().map(|path| (path.as_str(), "text\n")).collect();
    let (session, files) = asked_for(&asked, results);
    let rendered = rendered(&session, &Files { secrets, ..files }, 24_000);
    is_clean(&rendered);
    assert!(rendered.text.contains("[OK] MOVE_FILE: Moved 'dir/[withheld: "), "{}", rendered.text);
    // The model sees the files all the same.
    assert_eq!(rendered.shown[0].path, paths[0]);
}

#[test]
fn few_counts_are_enough_to_fit_an_outbox() {
    let texts = [1_000, 3_000, 90_000].map(|n| "    value = compute(value, other)\n".repeat(n));
    let files: Vec<(&str, &str)> =
        ["a", "b", "c"].into_iter().zip(texts.iter().map(String::as_str)).collect();
    let results = (0..100).map(|n| ran("make", &"line of output\n".repeat(200), n % 2));
    let (session, files) = asked_for(&files, results.collect());
    let before = tokens::exact_counts();
    let rendered = rendered(&session, &files, 24_000);
    let counted = tokens::exact_counts() - before;
    assert!(rendered.tokens <= 24_000 && rendered.tokens > 21_000, "{}", rendered.tokens);
    assert!(counted <= 30, "{counted} counts");
}

#[test]
fn events_say_that_prompt_contains_all_of_the_words_that_they_shorten() {
    let session = session(&"Do it well. ".repeat(1_500), Dialect::Operations);
    let RenderedOutbox { text, tokens, .. } = rendered(&session, &Files::default(), 12_000);
    assert!(tokens <= 12_000, "{tokens}");
    assert!(text.contains(" more characters left out) (PROMPT contains all of it)\""), "{text}");
}

#[test]
fn what_the_person_named_is_shown_whole_and_others_within_the_room_of_the_first_outbox() {
    let text = "    value = compute(value, other)\n".repeat(300);
    let shown = |is_included: bool| {
        let files = (0..20).map(|n| contents(&format!("f{n:02}.py"), &text)).collect();
        let (included, others) = if is_included { (files, vec![]) } else { (vec![], files) };
        let offered = Offered::new("A task: compute", included, others, "", 20);
        let files = Files { offered, ..Files::default() };
        let environment = Environment { context_tokens: 8_000, ..environment(24_000) };
        render(&session("A task", Dialect::Tags), &environment, &Walk::of([]), &files)
    };
    let named = shown(true);
    assert!((18_000..=24_000).contains(&named.tokens), "{}", named.tokens);
    assert!(named.shown.len() > 5 && named.shown.iter().all(|file| file.whole));
    let others = shown(false);
    assert!((4_000..=8_000).contains(&others.tokens), "{}", others.tokens);
    assert!(others.shown.iter().all(|file| !file.whole && !file.lines.is_empty()));
}

/// Text of all sorts, up to some 60 kB.
fn text() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "    let value = compute(input);\n",
        "--- end a ---\n",
        "=== PROMPT ===\n",
        "\n",
        "QmFzZTY0IGRhdGE",
        "a1b2c3",
        "语言模型",
        "слово ",
        "\u{202e}",
        "\x1b[2J",
        "🦀",
        " ",
        "\t",
        "\r\n",
        "0123456789",
        "{\"key\": [1, 2.5, null]},",
        "xqzjk",
    ];
    let piece = prop_oneof![6 => select(PIECES).prop_map(str::to_owned), 1 => any::<String>()];
    let pieces = prop::collection::vec((piece, 1usize..20), 0..8);
    let block = pieces.prop_map(|pieces| {
        pieces.into_iter().map(|(piece, n)| piece.repeat(n)).collect::<String>()
    });
    (block, prop_oneof![3 => 0usize..3, 1 => 0usize..60]).prop_map(|(block, n)| block.repeat(n))
}

/// The blocks of an outbox: path, body, and the line after it.
fn blocks(outbox: &str) -> Vec<(&str, &str, &str)> {
    let (mut found, mut rest) = (Vec::new(), outbox);
    for heading in ["\n## Workspace File Contents\n", "\n## Requested File Contents\n"] {
        let Some((_, after)) = rest.split_once(heading) else { continue };
        let has_line = heading.contains("Workspace");
        rest = if has_line { after.split_once('\n').unwrap().1 } else { after };
        while let Some(block) = rest.strip_prefix("--- ") {
            let (mark, body) = block.split_once(" ---\n").unwrap();
            let closing = format!("--- end {mark} ---\n");
            let (body, after) = match body.strip_prefix(closing.as_str()) {
                Some(after) => ("", after),
                None => {
                    let at = body.find(&format!("\n{closing}")).expect(mark) + 1;
                    (&body[..at], &body[at + closing.len()..])
                }
            };
            let cut = after.starts_with("... ").then(|| after.split_once('\n').unwrap().0);
            rest = cut.map_or(after, |cut| &after[cut.len() + 1..]);
            let path = mark.split_once(" (").map_or(mark, |(path, _)| path);
            found.push((path, body, cut.unwrap_or_default()));
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn whatever_the_values_are_the_outbox_fits(
        task in text(),
        sequence in 1u32..3,
        said in prop::collection::vec(text(), 0..2),
        outputs in prop::collection::vec((text(), 0i32..2), 0..20),
        files in prop::collection::vec(text(), 0..6),
        operations in any::<bool>(),
        names in prop::collection::btree_set("[a-z/]{1,40}", 0..200),
        max_tokens in 4_000usize..20_000,
    ) {
        let dialect = if operations { Dialect::Operations } else { Dialect::Tags };
        let mut session = session(&task, dialect);
        let paths: Vec<String> = (0..files.len()).map(|n| format!("dir/f{n}.py")).collect();
        let all: Vec<Contents> =
            paths.iter().zip(&files).map(|(path, text)| contents(path, text)).collect();
        let mut given = Files::default();
        if sequence == 1 {
            let listed = all.len();
            given.offered = Offered::new(&task, vec![], all, "", listed);
        } else {
            session.said.clone_from(&said);
            let mut results: Vec<Outcome> =
                outputs.iter().map(|(text, code)| ran(text, text, *code)).collect();
            for file in all {
                let Contents { path, size, .. } = file.clone();
                results.push(outcome(Kind::Read, match dialect {
                    Dialect::Tags => Detail::ReadLater { path, part: deaddrop::protocol::Part::default() },
                    Dialect::Operations => {
                        let content = String::from_utf8(file.bytes.clone()).unwrap();
                        Detail::Read { path, content, encoding: Encoding::Utf8, size }
                    }
                }));
                if dialect == Dialect::Tags {
                    given.requested.push(Ok(file));
                }
            }
            results.push(outcome(Kind::Create, Failure::execution(task.clone()).into()));
            session.last_results = results;
            session.sequence = 2;
        }
        let walk = Walk::of(names.iter().map(|name| (name.as_str(), 1 << 20)));
        let environment = environment(max_tokens);
        let RenderedOutbox { text, tokens, shown, .. } = render(&session, &environment, &walk, &given);

        let exactly = tokens::count(&text);
        let never_left_out = tokens::count(&visible(&task)) * usize::from(sequence == 1)
            + session.said.iter().map(|words| tokens::count(&visible(words))).sum::<usize>() * 3 / 2;
        if never_left_out + 2_500 < max_tokens {
            prop_assert!(exactly <= max_tokens, "{exactly} of {max_tokens}");
        }
        prop_assert!(exactly <= max_tokens || tokens > max_tokens, "{exactly} of {max_tokens}, told {tokens}");
        let most = tokens::estimate(&text).most;
        prop_assert!(most + most / 20 >= exactly, "{most} for {exactly}");

        let found = blocks(&text);
        let asked = if dialect == Dialect::Tags || sequence == 1 { shown.len() } else { 0 };
        prop_assert_eq!(found.len(), asked);
        for ((path, body, cut), shown) in found.into_iter().zip(&shown) {
            prop_assert_eq!(path, shown.path.as_str());
            let n = paths.iter().position(|given| given == path).unwrap();
            let whole = visible(&files[n]).into_owned();
            let end = if whole.is_empty() || whole.ends_with('\n') { "" } else { "\n" };
            prop_assert_eq!(cut.is_empty(), shown.whole || sequence == 1);
            if shown.whole {
                prop_assert_eq!(body, whole + end);
            } else if sequence == 1 {
                let lines: Vec<&str> = whole.lines().collect();
                for line in body.lines().filter(|line| *line != "...") {
                    let (number, line) = line.split_once("| ").unwrap();
                    prop_assert_eq!(lines[number.parse::<usize>().unwrap() - 1], line);
                }
            } else {
                let (next, text) = (body.matches('\n').count() + 1, body.trim_end_matches('\n'));
                let told = [format!("... lines {next}-"), format!("... line {next} is "), "... the rest of line 1 is".into()];
                prop_assert!(whole.starts_with(text) && told.iter().any(|told| cut.starts_with(told)), "{}", cut);
                prop_assert_eq!(whole.starts_with(body), !cut.starts_with(&told[2]));
            }
        }
        if let Some((_, json)) = text.rsplit_once("\n## Events\n") {
            let (json, _) = json.split_once("\n\n=== PROMPT ===\n").unwrap();
            prop_assert!(parse_events_message(json).is_ok(), "{}", json);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn an_estimate_is_at_most_a_twentieth_less_than_what_it_is(text in text()) {
        let tokens::Estimate { most, .. } = tokens::estimate(&text);
        let exactly = tokens::count(&text);
        // What it is at most was measured, not proved.
        prop_assert!(most + most / 20 >= exactly, "{most} for {exactly}");
    }
}

#[test]
fn what_one_character_can_be_is_known_of_all() {
    // Of the large scripts a sample: it is their weight that could be wrong, not that of one of them.
    let all = (0x80..0x3100).chain((0x3100..=0x10_ffff).step_by(61));
    for c in all.filter_map(char::from_u32) {
        let text = c.to_string().repeat(8);
        let (most, exactly) = (tokens::estimate(&text).most - 8, tokens::count(&text));
        assert!(most + 1 >= exactly, "{most} for {exactly} of U+{:04X}", u32::from(c));
    }
}

#[test]
fn the_task_is_shown_however_many_results_there_are() {
    for dialect in [Dialect::Tags, Dialect::Operations] {
        let mut session = session("Make the program faster", dialect);
        session.sequence = 2;
        session.last_results = (0..2_000).map(|n| ran(&format!("echo {n}"), "x\n", 1)).collect();
        let walk = Walk::of([("a.py", 7)]);
        let rendered = render(&session, &environment(4_000), &walk, &Files::default());
        assert!(rendered.tokens <= 4_000, "{}", rendered.tokens);
        assert!(rendered.text.contains("Task: Make the program faster\n"), "{}", rendered.text);
    }
}
