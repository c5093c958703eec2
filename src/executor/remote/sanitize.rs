//! Sanitizes the answers of a guest: they have the expected kind and a limited length, and contain no characters that
//! could mislead a reader.

use crate::protocol::jsonrpc::{About, Done, STREAM_LIMIT, WalkResult};
use crate::protocol::{
    Capture, Change, CommandOutput, Detail, Ending, Excerpt, Failure, FailureKind, Hit, LineRange,
    Operation, Part, Revision, Streams, Warning, WarningKind,
};
use crate::text::{count, visible_line};
use crate::workspace::edit::count_lines;
use crate::workspace::walk::{Count, Walk};

/// The longest line, in characters.
const MAX_LINE: usize = 2_000;
/// The most lines and bytes of a listing or search.
const SHOWN_LINES: usize = 1_001;
const SHOWN_BYTES: usize = 64 << 10;
/// The most warnings of one step.
const MAX_WARNINGS: usize = 100;
/// The most tools, and the most protected names.
const MAX_ITEMS: usize = 100;
/// The longest path of a listing, in bytes: that of the system, with each byte shown as U+FFFD.
const MAX_PATH: usize = 3 * 4_096;
/// The most unreadable folders that are named.
const MAX_FOLDERS: usize = 1_000;

/// A line that can be shown.
pub(super) fn line(text: &str) -> String {
    let shown: String = text.chars().take(MAX_LINE).collect();
    visible_line(&shown).into_owned()
}

/// Limits a size, so that the sum of all sizes in one answer does not overflow.
pub(super) fn size(size: u64) -> u64 {
    size.min(1 << 40)
}

/// Corrects the line numbers of a part to match its bytes.
pub(super) fn lines(lines: LineRange, bytes: &[u8], part: Part) -> LineRange {
    let given = count_lines(bytes);
    let first = if given == 0 { 0 } else { part.start.unwrap_or(1) };
    let last = (first + given).saturating_sub(1);
    let total = lines.total.clamp(last, usize::MAX >> 1);
    let length = lines.length.map(size);
    LineRange { first, last, total, length, numbered: part.numbered, ..lines }
}

/// A listing without invalid paths, which are counted among the unreadable ones.
pub(super) fn walk(result: WalkResult) -> Walk {
    let WalkResult { mut files, mut unreadable, ignored_files, mut left_out } = result;
    let all = files.len();
    files.retain_mut(|(path, bytes, _)| {
        *bytes = size(*bytes);
        is_path(path)
    });
    let folders = unreadable.len();
    unreadable.truncate(MAX_FOLDERS);
    for folder in &mut unreadable {
        *folder = line(folder);
    }
    if folders > MAX_FOLDERS {
        unreadable.push(format!("... and {}", count(folders - MAX_FOLDERS, "more folder")));
    }
    if files.len() < all {
        let left_out = count(all - files.len(), "more file");
        unreadable.push(format!("... and {left_out} with invalid paths"));
    }
    let counted =
        |of: Count| Count { files: size(of.files), bytes: size(of.bytes), is_whole: of.is_whole };
    left_out.retain_mut(|one| {
        one.count = counted(one.count);
        one.folder.strip_suffix('/').is_some_and(is_path)
    });
    Walk::from_files(files, unreadable).with_left_out(counted(ignored_files), left_out)
}

/// Whether a text can be the path of a file in a workspace. Any characters are allowed.
fn is_path(text: &str) -> bool {
    text.len() <= MAX_PATH && text.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Limits the lines of a listing.
fn lines_shown(shown: &str) -> String {
    let mut kept = String::new();
    for text in shown.lines().take(SHOWN_LINES) {
        let line = line(text) + "\n";
        if kept.len() + line.len() > SHOWN_BYTES {
            break;
        }
        kept.push_str(&line);
    }
    kept
}

/// Limits the lines of a search.
fn hits(hits: Vec<Hit>) -> Vec<Hit> {
    let mut bytes = 0;
    let hits = hits.into_iter().take(SHOWN_LINES).filter(|hit| is_path(&hit.path));
    let hits = hits.map(|hit| Hit { text: line(&hit.text), start: hit.start.min(MAX_LINE), ..hit });
    hits.take_while(|hit| {
        bytes += hit.path.len() + hit.text.len();
        bytes <= 4 * SHOWN_BYTES
    })
    .collect()
}

/// Limits the output of a command to the setting of this side.
fn output(mut output: CommandOutput, streams: Streams, limit: usize) -> CommandOutput {
    let counted = |capture: &mut Capture| capture.left_out = size(capture.left_out);
    match &mut output {
        CommandOutput::Together(capture) => counted(capture),
        CommandOutput::Apart { stdout, stderr } => {
            counted(stdout);
            counted(stderr);
        }
    }
    let is_apart = matches!(output, CommandOutput::Apart { .. });
    match streams {
        Streams::Apart | Streams::First if is_apart => output.within(STREAM_LIMIT),
        _ => output.within(limit),
    }
}

pub(super) fn about(about: About) -> About {
    let lines = |lines: Vec<String>| lines.iter().take(MAX_ITEMS).map(|text| line(text)).collect();
    About {
        program: line(&about.program),
        system: line(&about.system),
        shell: line(&about.shell),
        sandbox: line(&about.sandbox),
        network: line(&about.network),
        protected: lines(about.protected),
        tools: lines(about.tools),
        root: line(&about.root),
        state: line(&about.state),
        ..about
    }
}

pub(super) fn failure(failure: Failure) -> Failure {
    Failure {
        reason: line(&failure.reason),
        suggestion: failure.suggestion.map(|text| line(&text)),
        excerpt: excerpt(failure.excerpt),
        ..failure
    }
}

/// Limits an excerpt to the lines and lengths that deaddrop shows.
fn excerpt(excerpt: Excerpt) -> Excerpt {
    let lines = excerpt.lines.into_iter().take(Excerpt::LINES);
    // A note about the cut may follow the text.
    let cut = |text: String| text.chars().take(Excerpt::LENGTH + 40).collect();
    Excerpt { lines: lines.map(|(number, text)| (number, cut(text))).collect(), ..excerpt }
}

fn revision(revision: Option<Box<Revision>>) -> Option<Box<Revision>> {
    let mut revision = revision?;
    revision.excerpt = excerpt(revision.excerpt);
    revision.loosely.truncate(MAX_WARNINGS);
    Some(revision)
}

/// The result of an operation, with its warnings.
pub(super) fn done(done: Done, operation: &Operation, output_limit: usize) -> Done {
    // Only this side decides whether the end of a session counts.
    let is_allowed = |warning: &Warning| warning.kind != WarningKind::Done;
    let warnings = done.warnings.into_iter().filter(is_allowed).take(MAX_WARNINGS);
    let warnings = warnings.map(|warning| Warning::new(warning.kind, line(&warning.text)));
    Done { detail: detail(done.detail, operation, output_limit), warnings: warnings.collect() }
}

/// The result of an operation, if it is possible for that operation.
fn detail(detail: Detail, operation: &Operation, output_limit: usize) -> Detail {
    match (operation, detail) {
        (operation, Detail::Failed(failed)) => {
            let mut failure = self::failure(failed);
            // Only an edit by lines can fail because the file has changed.
            let by_lines =
                matches!(operation, Operation::Edit { change: Change::Lines { .. }, .. });
            failure.fresh = failure.fresh.filter(|_| by_lines);
            failure.into()
        }
        (Operation::Edit { .. }, Detail::Edited { path, lines, inserted, total, revision }) => {
            let revision = self::revision(revision);
            Detail::Edited { path, lines, inserted, total, revision }
        }
        (Operation::Edit { .. }, Detail::Replaced { path, edits, revision }) => {
            Detail::Replaced { path, edits, revision: self::revision(revision) }
        }
        (Operation::Create { .. }, detail @ Detail::Created { .. })
        | (Operation::Delete { .. }, detail @ Detail::Deleted { .. })
        | (Operation::Move { .. }, detail @ Detail::Moved { .. }) => detail,
        (Operation::List { .. }, Detail::Listed { path, files, shown }) => {
            Detail::Listed { path, files, shown: lines_shown(&shown) }
        }
        (Operation::Search { pattern, .. }, Detail::Found { lines, files, cut, hits, .. }) => {
            Detail::Found { pattern: pattern.clone(), lines, files, cut, hits: self::hits(hits) }
        }
        (Operation::Run(run), Detail::Ran(mut execution)) => {
            execution.command.clone_from(&run.command);
            execution.output = output(execution.output, run.streams, output_limit);
            match &mut execution.ending {
                Ending::Stopped(why) | Ending::NotStarted(why) => *why = line(why),
                _ => {}
            }
            Detail::Ran(execution)
        }
        _ => Failure::new(
            FailureKind::System,
            "the guest reports a result that this operation cannot have: check what it did",
        )
        .into(),
    }
}
