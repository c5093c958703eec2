//! Sanitizes the answers of a guest: they have the expected kind and a limited length, and contain no characters that
//! could mislead a reader.

use crate::protocol::jsonrpc::{About, Done, STREAM_LIMIT, WalkResult};
use crate::protocol::{
    Change, CommandOutput, Detail, Ending, Excerpt, Failure, FailureKind, Hit, LineRange,
    Operation, Part, Streams, WarningKind,
};
use crate::text::{count, visible_line};
use crate::workspace::edit::count_lines;
use crate::workspace::walk::Walk;

/// The maximum length of a line, in characters.
const MAX_LINE: usize = 2_000;
/// The maximum lines and bytes of a listing or search.
const SHOWN_LINES: usize = 1_001;
const SHOWN_BYTES: usize = 64 << 10;
/// The maximum number of warnings of one step.
const MAX_WARNINGS: usize = 100;
/// The maximum number of tools, and of protected names.
const MAX_ITEMS: usize = 100;
/// The maximum length of a path in a listing, in bytes: that of the system, with each byte shown as U+FFFD.
const MAX_PATH: usize = 3 * 4_096;
/// The maximum number of unreadable folders that are named.
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
    let WalkResult { mut files, mut unreadable, mut ignored_files, mut left_out } = result;
    let all = files.len();
    files.retain_mut(|(path, bytes, _)| {
        *bytes = size(*bytes);
        is_path(path)
    });
    let folders = unreadable.len().saturating_sub(MAX_FOLDERS);
    unreadable.truncate(MAX_FOLDERS);
    unreadable.iter_mut().for_each(|folder| *folder = line(folder));
    if folders > 0 {
        unreadable.push(format!("... and {}", count(folders, "more folder")));
    }
    if files.len() < all {
        let invalid = count(all - files.len(), "more file");
        unreadable.push(format!("... and {invalid} with invalid paths"));
    }
    left_out.retain(|one| one.folder.strip_suffix('/').is_some_and(is_path));
    let counts = left_out.iter_mut().map(|one| &mut one.count);
    for counted in counts.chain([&mut ignored_files]) {
        (counted.files, counted.bytes) = (size(counted.files), size(counted.bytes));
    }
    Walk::from_files(files, unreadable).with_left_out(ignored_files, left_out)
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
fn limit_hits(hits: &mut Vec<Hit>) {
    hits.truncate(SHOWN_LINES);
    let mut bytes = 0;
    hits.retain_mut(|hit| {
        hit.text = line(&hit.text);
        hit.start = hit.start.min(MAX_LINE);
        bytes += hit.path.len() + hit.text.len();
        is_path(&hit.path) && bytes <= 4 * SHOWN_BYTES
    });
}

/// Limits the output of a command to the setting of this side.
fn limit_output(output: &mut CommandOutput, streams: Streams, limit: usize) {
    let is_apart = matches!(output, CommandOutput::Apart { .. }) && streams != Streams::Together;
    *output = output.within(if is_apart { STREAM_LIMIT } else { limit });
}

pub(super) fn about(mut about: About) -> About {
    let About { program, system, shell, sandbox, network, protected, tools, root, state, .. } =
        &mut about;
    protected.truncate(MAX_ITEMS);
    tools.truncate(MAX_ITEMS);
    let texts = [program, system, shell, sandbox, network, root, state];
    let texts = texts.into_iter().chain(protected).chain(tools);
    texts.for_each(|text| *text = line(text));
    about
}

pub(super) fn failure(mut failure: Failure) -> Failure {
    failure.reason = line(&failure.reason);
    failure.suggestion = failure.suggestion.map(|text| line(&text));
    limit_excerpt(&mut failure.excerpt);
    failure
}

/// Limits an excerpt to the lines and lengths that deaddrop shows.
fn limit_excerpt(excerpt: &mut Excerpt) {
    excerpt.lines.truncate(Excerpt::LINES);
    for (_, text) in &mut excerpt.lines {
        // A note about the cut may follow the text.
        *text = text.chars().take(Excerpt::LENGTH + 40).collect();
    }
}

/// The result of an operation, with its warnings, if it is possible for that operation.
pub(super) fn done(mut done: Done, operation: &Operation, output_limit: usize) -> Done {
    // Only this side decides whether the end of a session counts.
    done.warnings.retain(|warning| warning.kind != WarningKind::Done);
    done.warnings.truncate(MAX_WARNINGS);
    done.warnings.iter_mut().for_each(|warning| warning.text = line(&warning.text));
    match (operation, &mut done.detail) {
        (_, Detail::Failed(failed)) => {
            // Only an edit by lines can fail because the file has changed.
            if !matches!(operation, Operation::Edit { change: Change::Lines { .. }, .. }) {
                failed.present_file = None;
            }
            *failed = failure(failed.clone());
        }
        (
            Operation::Edit { .. },
            Detail::Edited { revision, .. } | Detail::Replaced { revision, .. },
        ) => {
            if let Some(revision) = revision {
                limit_excerpt(&mut revision.excerpt);
                revision.fuzzy_matches.truncate(MAX_WARNINGS);
            }
        }
        (Operation::Create { .. }, Detail::Created { .. })
        | (Operation::Delete { .. }, Detail::Deleted { .. })
        | (Operation::Move { .. }, Detail::Moved { .. }) => {}
        (Operation::List { .. }, Detail::Listed { shown, .. }) => *shown = lines_shown(shown),
        (Operation::Search { pattern: asked, .. }, Detail::Found { pattern, hits, .. }) => {
            pattern.clone_from(asked);
            limit_hits(hits);
        }
        (Operation::Run(run), Detail::Ran(execution)) => {
            execution.command.clone_from(&run.command);
            limit_output(&mut execution.output, run.streams, output_limit);
            if let Ending::Stopped(why) | Ending::NotStarted(why) = &mut execution.ending {
                *why = line(why);
            }
        }
        _ => {
            done.detail = Failure::new(
                FailureKind::System,
                "the guest reports a result that this operation cannot have: check what it did",
            )
            .into();
        }
    }
    done
}
