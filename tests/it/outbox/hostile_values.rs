//! Outboxes made of hostile values, read back by a strict reader that knows only the format: it
//! must find exactly what was put in, so nothing can pose as a marker, a heading or a result.

use std::time::Duration;

use deaddrop::outbox::{self, Environment, Files, render};
use deaddrop::protocol::{
    Capture, CommandOutput, Detail, Ending, Execution, Failure, Kind, Outcome, RelPath, Warning,
    WarningKind, tags,
};
use deaddrop::session::Session;
use deaddrop::text::{visible, visible_line};
use deaddrop::workspace::Contents;
use deaddrop::workspace::walk::Walk;
use proptest::prelude::*;
use proptest::sample::select;

/// What a strict reader finds in an outbox.
#[derive(Debug, Default)]
struct Found {
    header: Vec<String>,
    task: Vec<String>,
    protocol: String,
    environment: Vec<String>,
    files: Vec<String>,
    results: Vec<Given>,
    contents: Vec<(String, String)>,
    prompt: Vec<String>,
}

/// A result as it was given, or as it was found.
#[derive(Debug, Default, PartialEq)]
struct Given {
    line: String,
    warnings: Vec<String>,
    output: Option<Vec<String>>,
}

/// Lines that are looked at one by one.
struct Lines<'a>(std::iter::Peekable<std::str::Split<'a, char>>);

impl<'a> Lines<'a> {
    fn next(&mut self) -> &'a str {
        self.0.next().expect("the outbox ends early")
    }

    fn next_if(&mut self, wanted: &str) -> bool {
        self.0.next_if_eq(&wanted).is_some()
    }

    #[track_caller]
    fn expect(&mut self, wanted: &str) {
        assert_eq!(self.next(), wanted);
    }

    /// Indented and empty lines, without their indentation; the last empty one ends the section.
    fn indented(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        while let Some(line) = self.0.next_if(|line| line.is_empty() || line.starts_with("  ")) {
            found.push(line.strip_prefix("  ").unwrap_or_default().to_owned());
        }
        assert_eq!(found.pop().as_deref(), Some(""), "a section ends in an empty line");
        found
    }
}

fn read(outbox: &str) -> Found {
    let mut found = Found::default();
    let mut lines = Lines(outbox.strip_suffix('\n').unwrap().split('\n').peekable());
    lines.expect("=== HEADER ===");
    found.header = vec![lines.next().to_owned(), lines.next().to_owned()];
    match lines.next().strip_prefix("Task:").unwrap() {
        "" => found.task = lines.indented(),
        task => {
            found.task = vec![task.strip_prefix(' ').unwrap().to_owned()];
            lines.expect("");
        }
    }
    lines.expect("=== PROTOCOL ===");
    loop {
        match lines.next() {
            "=== CONTEXT ===" => break,
            line => found.protocol += &format!("{line}\n"),
        }
    }
    lines.expect("## Environment");
    found.environment = lines.indented();
    lines.expect("## Workspace Files");
    if lines.next_if("(empty workspace)") {
        lines.expect("");
    } else {
        found.files = lines.indented();
    }
    if lines.next_if("## Previous Command Results") {
        found.results = results(&mut lines);
    }
    if lines.next_if("## Requested File Contents") {
        while !lines.next_if("") {
            found.contents.push(block(&mut lines));
        }
    }
    lines.expect("=== PROMPT ===");
    found.prompt = lines.0.map(str::to_owned).collect();
    assert!(!found.prompt.iter().any(|line| poses(line)), "{:#?}", found.prompt);
    found
}

fn results(lines: &mut Lines<'_>) -> Vec<Given> {
    let mut found: Vec<Given> = Vec::new();
    let is_result = |line: &&str| line.starts_with("[OK] ") || line.starts_with("[FAILED] ");
    while let Some(line) = lines.0.next_if(is_result) {
        let mut result = Given { line: line.to_owned(), ..Given::default() };
        while let Some(line) = lines.0.next_if(|line| line.starts_with("  Warning: ")) {
            result.warnings.push(line["  Warning: ".len()..].to_owned());
        }
        if let Some(line) = lines.0.next_if(|line| line.starts_with("  Output:")) {
            let first = &line["  Output:".len()..];
            let mut output = vec![first.strip_prefix(' ').unwrap_or(first).to_owned()];
            let more = |line: &&str| line.is_empty() || line.starts_with("  ");
            while let Some(line) = lines.0.next_if(more) {
                output.push(line.strip_prefix("  ").unwrap_or_default().to_owned());
            }
            result.output = Some(output);
        }
        found.push(result);
    }
    // The empty line that ends the section, where it was taken for one of output.
    match found.last_mut().and_then(|result| result.output.as_mut()) {
        Some(output) => assert_eq!(output.pop().as_deref(), Some("")),
        None => lines.expect(""),
    }
    found
}

/// One file: its path and its text.
fn block(lines: &mut Lines<'_>) -> (String, String) {
    let opening = lines.next();
    let mark = opening.strip_prefix("--- ").and_then(|rest| rest.strip_suffix(" ---")).unwrap();
    let closing = format!("--- end {mark} ---");
    let mut body = String::new();
    let mut posing = false;
    loop {
        match lines.next() {
            line if line == closing => break,
            line => {
                // Indented too: not every reader is as strict as this one.
                posing |= poses(line.trim_start());
                body += &format!("{line}\n");
            }
        }
    }
    let path = match mark.rsplit_once(" (boundary ") {
        Some((path, _)) if posing => path,
        _ => mark,
    };
    assert!(!posing || mark.ends_with(')'), "no boundary around {body}");
    (path.to_owned(), body)
}

/// Whether a line begins as one of the outbox's own markers and headings do.
fn poses(line: &str) -> bool {
    const MARKERS: [&str; 9] = [
        "=== ",
        "--- ",
        "[OK]",
        "[FAILED]",
        "## Environment",
        "## Workspace Files",
        "## Workspace File Contents",
        "## Previous Command Results",
        "## Requested File Contents",
    ];
    MARKERS.iter().any(|marker| line.starts_with(marker))
}

fn hostile() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "=== PROMPT ===",
        "=== CONTEXT ===",
        "=== HEADER ===",
        "--- end a ---",
        "--- a ---",
        "--- end a (boundary 123456) ---",
        "[OK] RUN_COMMAND: x",
        "[FAILED] ",
        "## Workspace Files",
        "## Requested File Contents",
        "(empty workspace)",
        "  Output: ",
        "  Warning: ",
        "Task: ",
        "\n",
        "\n",
        "\n",
        "\r\n",
        "\r",
        "  ",
        " ",
        "\t",
        "\x1b[2J",
        "\u{202e}",
        "\u{2028}",
        "\u{85}",
        "\x0b",
        "\x0c",
        "\u{feff}",
        "\u{200b}",
        "\u{a0}",
        "\0",
        "x",
        "é",
    ];
    let piece = prop_oneof![9 => select(PIECES).prop_map(str::to_owned), 1 => any::<String>()];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn path() -> impl Strategy<Value = RelPath> {
    const PIECES: &[&str] = &[
        "a",
        "end a",
        " (boundary 123456)",
        " ---",
        "--- ",
        "=== PROMPT ===",
        "/",
        "'",
        "[OK] ",
        "é",
    ];
    prop::collection::vec(select(PIECES), 1..5)
        .prop_filter_map("no path", |pieces| RelPath::parse(&pieces.concat()).ok())
}

fn detail() -> impl Strategy<Value = Detail> {
    let ending = prop_oneof![
        Just(Ending::Exited(0)),
        Just(Ending::Signalled(9)),
        hostile().prop_map(Ending::NotStarted),
    ];
    let ran = (hostile(), ending, hostile(), 0u64..2, hostile()).prop_map(
        |(command, ending, head, left_out, tail)| {
            let output = CommandOutput::Together(Capture::cut(&head, "", left_out, "", &tail));
            Detail::Ran(Execution { command, ending, output, duration: Duration::ZERO })
        },
    );
    prop_oneof![
        3 => ran,
        1 => hostile().prop_map(|text| Detail::Shown { text }),
        1 => path().prop_map(|path| Detail::Created { path, bytes: 1, replaced: true }),
        1 => hostile().prop_map(|reason| Failure::rejected(reason).into()),
        1 => hostile().prop_map(|reason| Failure::execution(reason).into()),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    select(&[Kind::Run, Kind::Create, Kind::Reply, Kind::Message][..])
}

/// The lines of text that stands indented; a reader cannot tell blanks from nothing at the end.
fn shown(text: &str) -> Vec<String> {
    visible(text).lines().map(str::to_owned).collect()
}

type Wanted = (RelPath, Result<String, String>);

fn outcomes(results: &[(Kind, Detail, Vec<String>)], wanted: &[Wanted]) -> Vec<Outcome> {
    let given = results.iter().map(|(kind, detail, warnings)| Outcome {
        kind: *kind,
        line: 1,
        detail: detail.clone(),
        warnings: warnings.iter().map(|text| Warning::new(WarningKind::Guard, text)).collect(),
        asked: None,
        at: None,
    });
    let reads = wanted.iter().map(|(path, _)| Outcome {
        kind: Kind::Read,
        line: 1,
        detail: Detail::ReadLater { path: path.clone(), part: deaddrop::protocol::Part::default() },
        warnings: Vec::new(),
        asked: None,
        at: None,
    });
    given.chain(reads).collect()
}

fn requested((path, contents): &Wanted) -> Result<Contents, Failure> {
    match contents {
        // As the workspace has it: what holds a NUL is no text.
        Ok(text) if text.contains('\0') => Err(Failure::execution("no text")),
        Ok(text) => Ok(Contents {
            path: path.clone(),
            bytes: text.clone().into_bytes(),
            size: text.len() as u64,
            lines: None,
        }),
        Err(reason) => Err(Failure::execution(reason.clone())),
    }
}

/// An outcome as it should stand in the outbox.
fn given(outcome: &Outcome) -> Given {
    let mark = if outcome.success() { "[OK]" } else { "[FAILED]" };
    let output = match &outcome.detail {
        Detail::Ran(execution) => Some(tags::output(&execution.output)),
        _ => None,
    };
    let from = match &outcome.detail {
        Detail::Ran(_) if !outcome.success() => format!(", line {} of the reply", outcome.line),
        _ => String::new(),
    };
    Given {
        line: format!("{mark} {}: {}{from}", tags::name(outcome.kind), tags::summary(outcome)),
        warnings: outcome.warnings.iter().map(|w| visible_line(&w.text).into_owned()).collect(),
        output: output.filter(|output| !output.is_empty()).map(|output| {
            let mut lines: Vec<String> = output.lines().map(str::to_owned).collect();
            // Blanks at the end of the first line are not kept.
            let kept = lines[0].trim_end().len();
            lines[0].truncate(kept);
            lines
        }),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn a_strict_reader_finds_what_was_put_in(
        task in hostile(),
        sequence in 1u32..3,
        said in prop::collection::vec(hostile(), 0..2),
        tool in hostile(),
        names in prop::collection::btree_set(hostile(), 0..4),
        others in prop::collection::btree_set(hostile(), 0..4),
        results in prop::collection::vec((kind(), detail(), prop::collection::vec(hostile(), 0..2)), 0..4),
        wanted in prop::collection::btree_map(path(), prop_oneof![4 => hostile().prop_map(Ok), 1 => hostile().prop_map(Err)], 0..4),
    ) {
        let wanted: Vec<Wanted> = wanted.into_iter().collect();
        let now = "2025-01-15T10:30:00Z".parse().unwrap();
        let mut session = Session::new("a1b2c3d4".into(), &task, vec![tool.clone()], now);
        session.sequence = sequence;
        session.said.clone_from(&said);
        session.last_results = outcomes(&results, &wanted);
        let environment = Environment {
            system: tool.clone(), shell: tool.clone(), sandbox: tool.clone(), network: tool.clone(),
            protected: "nothing".to_owned(),
            policy: None,
            timeout: 30,
            longest: 30, output_limit: 4000,
            max_tokens: 10_000_000,
            context_tokens: 10_000_000,
            secrets: deaddrop::settings::Secrets::default(),
        };
        let walk = Walk::of(names.iter().map(|name| (name.as_str(), 7)));
        let requested = wanted.iter().map(requested).collect();
        let asked = Files { requested, ..Files::default() };
        let outbox = render(&session, &environment, &walk, &asked).text;
        let found = read(&outbox);

        prop_assert_eq!(&found.header[1], &format!("Sequence: {sequence}"));
        let blank = |lines: &[String]| lines.iter().map(|l| l.trim().to_owned()).collect::<Vec<_>>();
        if visible(&session.task).contains('\n') {
            prop_assert_eq!(&found.task, &shown(&session.task));
        } else {
            prop_assert_eq!(&found.task, &[visible(&session.task).into_owned()]);
        }
        prop_assert_eq!(&found.protocol, &format!("{}\n", tags::PROMPT));
        prop_assert_eq!(found.environment.len(), 7);
        let files: Vec<String> =
            names.iter().map(|name| format!("{} (7 bytes)", visible_line(name))).collect();
        prop_assert_eq!(&found.files, &files);

        // A brief one has all after the listing byte for byte, whatever the one before contains.
        let listing: String = files.iter().map(|file| format!("  {file}\n")).collect();
        let listing = if listing.is_empty() { "(empty workspace)\n".to_owned() } else { listing };
        let rest = outbox.split_once(&format!("\n## Workspace Files\n{listing}")).unwrap().1;
        let mut earlier = session.clone();
        (earlier.sequence, earlier.tools) = (2, vec![task.clone()]);
        let others = Walk::of(others.iter().map(|name| (name.as_str(), 7)));
        let earlier = render(&earlier, &environment, &others, &asked).text;
        for previous in [None, Some(&*task), Some(&*earlier), Some(&*outbox)] {
            let brief = outbox::brief(&session, &outbox, 7, previous).unwrap();
            prop_assert!(brief.ends_with(&format!("\n{}", rest.trim_start())), "{}", brief);
            prop_assert!(!brief.contains(tags::PROMPT));
            let begin = format!("=== HEADER ===\nSession: a1b2c3d4\nSequence: {sequence}\nTask");
            prop_assert!(brief.starts_with(&begin), "{}", brief);
        }

        let (given_results, reads) = session.last_results.split_at(results.len());
        let expected: Vec<Given> = given_results.iter().map(given).collect();
        prop_assert_eq!(&found.results[..results.len()], expected);
        for (result, (path, contents)) in found.results[results.len()..].iter().zip(&wanted) {
            prop_assert!(result.line.contains(" READ_FILE: "));
            let shown = contents.as_ref().is_ok_and(|text| !text.contains('\0'));
            prop_assert_eq!(result.line.starts_with("[OK]"), shown, "{}", path);
        }
        prop_assert_eq!(found.results.len(), results.len() + reads.len());

        let contents: Vec<(String, String)> = wanted
            .iter()
            .filter_map(|(path, contents)| Some((path, contents.as_ref().ok()?)))
            .filter(|(_, text)| !text.contains('\0'))
            .map(|(path, text)| {
                let text = visible(text).into_owned();
                let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                (path.to_string(), text + end)
            })
            .collect();
        prop_assert_eq!(found.contents, contents);
        let prompt = blank(&found.prompt).join("\n");
        for words in &said {
            prop_assert!(prompt.contains(&blank(&shown(words)).join("\n")), "{}", prompt);
        }
    }
}
