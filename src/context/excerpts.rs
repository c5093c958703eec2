//! Chooses the lines of ranked files that are shown. Pure.
//!
//! Candidates are small files, definitions, and the lines around words of the task. The chunks with the most value for
//! their tokens come first. Further lines of an already shown file count less.

use std::collections::BTreeMap;

use super::query::Query;
use super::ranking::ScannedFile;
use super::symbols::Text;
use crate::tokens;

/// Files and definitions with at most this many lines are shown completely. In larger ones, this many lines around each
/// word of the task are shown, and twice as many in the best files.
const FILE: usize = 60;
const BODY: usize = 50;
const AROUND: usize = 3;
const BEST: usize = 3;
/// How many of the first lines are shown of a file that the task names, and the factor for its other lines.
const HEAD: usize = 8;
const ANY: f32 = 0.1;
/// How many of the first lines of the changelog are shown, since many tasks end with a new line there.
const CHANGELOG: usize = 12;
/// The most lines of comments and attributes above a definition that are shown with it.
const ABOVE: usize = 3;

/// The most files that are considered.
pub(super) const FILES: usize = 60;

/// The value of a chunk depends on the file's score and the chunk's tokens, with these exponents.
const SCORE: f32 = 2.5;
const COST: f32 = 0.25;
/// The factors for the best chunk of a file and for each further chunk.
const FIRST: f32 = 3.0;
const FURTHER: f32 = 0.95;
/// The factor for repeated words of a chunk.
const REPEATED: f32 = 0.33;

/// The least value of a word that makes a line worth showing.
const LEAST: f32 = 0.2;

/// The numbers of tokens in the markers of a file, in a line number, and in a gap.
const MARKERS: usize = 24;
const NUMBER: usize = 2;
const LINES_LEFT_OUT: usize = 4;

/// Some lines of a file.
#[derive(Debug, Clone, Copy)]
struct Chunk {
    file: usize,
    first: usize,
    last: usize,
    value: f32,
    /// The approximate number of tokens.
    cost: usize,
}

/// For each file that is shown, the ranges of its shown lines, in order; None for all lines.
pub(super) type Excerpts = BTreeMap<usize, Option<Vec<(usize, usize)>>>;

/// Chooses about `room` tokens from these files, which are sorted by score.
pub(super) fn choose(
    files: &[ScannedFile],
    texts: &[&[u8]],
    scores: &[f32],
    rarity: &[f32],
    room: usize,
) -> Excerpts {
    let best = scores.first().copied().unwrap_or_default();
    let mut all = Vec::new();
    for file in (0..files.len()).filter(|file| scores[*file] > 0.0) {
        let mut chunks = chunks(file, &files[file], &Text::new(texts[file]), rarity);
        let factor = (scores[file] / best).powf(SCORE);
        for chunk in &mut chunks {
            chunk.value *= factor / (chunk.cost as f32).powf(COST);
        }
        chunks.sort_by(|a, b| b.value.total_cmp(&a.value));
        for (chunk, n) in chunks.iter_mut().zip(0..) {
            chunk.value *= if n == 0 { FIRST } else { FURTHER.powi(n) };
        }
        all.extend(chunks);
    }
    all.sort_by(|a, b| b.value.total_cmp(&a.value));
    if all.first().is_some_and(|chunk| chunk.value > 0.0) {
        // Files without a word of the task are only outlined.
        all.retain(|chunk| chunk.value > 0.0);
    }
    let changelog = files.iter().position(ScannedFile::is_changelog).map(|file| {
        let text = Text::new(texts[file]);
        let last = text.count().min(CHANGELOG);
        Chunk { file, first: 1, last, value: 0.0, cost: cost(&text, 1, last, false) }
    });
    let (mut room, mut chosen) = (room, BTreeMap::<usize, Vec<(usize, usize)>>::new());
    for Chunk { file, first, last, cost, .. } in changelog.into_iter().chain(all) {
        let markers = if chosen.contains_key(&file) { 0 } else { MARKERS };
        if let Some(rest) = room.checked_sub(cost + markers) {
            room = rest;
            chosen.entry(file).or_default().push((first, last));
        }
    }
    let ranges = chosen.into_iter().map(|(file, mut ranges)| {
        ranges.sort_unstable();
        let ranges = merged(&ranges);
        let all = (1, Text::new(texts[file]).count());
        (file, (ranges != [all]).then_some(ranges))
    });
    ranges.collect()
}

/// Joins sorted ranges that touch or are one line apart: a gap marker would be as long as that line.
fn merged(ranges: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut merged: Vec<(usize, usize)> = Vec::new();
    for &(first, last) in ranges {
        match merged.last_mut() {
            Some(before) if first <= before.1 + 2 => before.1 = before.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    merged
}

/// The candidate chunks of a file.
fn chunks(n: usize, file: &ScannedFile, text: &Text<'_>, rarity: &[f32]) -> Vec<Chunk> {
    let all = text.count();
    let around = if n < BEST { 2 * AROUND } else { AROUND };
    // If the task names a file, any part of the file may matter.
    let named = if file.is_named { rarity[Query::PATH] * ANY } else { 0.0 };
    let chunk = |first, last, is_whole: bool| {
        let cost = cost(text, first, last, is_whole);
        Chunk { file: n, first, last, value: named + value(&file.hits, first, last, rarity), cost }
    };
    if all <= FILE {
        return if all == 0 { Vec::new() } else { vec![chunk(1, all, true)] };
    }
    let mut taken = vec![false; all + 2];
    let mut chunks = Vec::new();
    if file.is_named {
        // The beginning shows the columns or keys of data, and the marker shows the number of lines.
        chunks.push(Chunk { value: rarity[Query::PATH], ..chunk(1, all.min(HEAD), false) });
    }
    let mut end = 0;
    for definition in &file.definitions {
        let first = definition.start.max(definition.line.saturating_sub(ABOVE));
        let last = definition.end;
        // Only the outermost definition that is small enough is shown.
        if first > end && last - first < BODY {
            end = last;
            taken[first..=last].fill(true);
            chunks.push(chunk(first, last, false));
        }
    }
    chunks.retain(|chunk| chunk.value > 0.0);
    let mut hits: Vec<usize> =
        file.hits.iter().filter(|(_, term)| rarity[*term] > LEAST).map(|(line, _)| *line).collect();
    hits.retain(|line| !taken[*line]);
    let mut hits = hits.into_iter().peekable();
    while let Some(hit) = hits.next() {
        let back = (1..hit).rev().take(around).take_while(|line| !taken[*line]).count();
        let (first, mut anchor) = (hit - back, hit);
        while let Some(next) =
            hits.next_if(|next| next - first < BODY && next - anchor <= around + 1)
        {
            anchor = next;
        }
        let on = (anchor + 1..=all).take(around).take_while(|line| !taken[*line]).count();
        taken[first..=anchor + on].fill(true);
        chunks.push(chunk(first, anchor + on, false));
        while hits.next_if(|hit| *hit <= anchor + on).is_some() {}
    }
    if chunks.is_empty() {
        chunks.push(chunk(1, all.min(4 * around), false));
    }
    chunks
}

/// The approximate number of tokens of these lines, with line numbers unless the whole file is shown.
fn cost(text: &Text<'_>, first: usize, last: usize, is_whole: bool) -> usize {
    let numbers = if is_whole { 0 } else { NUMBER * (last + 1 - first) + LINES_LEFT_OUT };
    tokens::estimate(&String::from_utf8_lossy(text.range(first, last))).likely + numbers
}

/// The value of the terms in these lines.
pub(super) fn value(hits: &[(usize, usize)], first: usize, last: usize, rarity: &[f32]) -> f32 {
    let from = hits.partition_point(|(line, _)| *line < first);
    let here = hits[from..].iter().take_while(|(line, _)| *line <= last);
    let mut counts: BTreeMap<usize, f32> = BTreeMap::new();
    here.for_each(|(_, term)| *counts.entry(*term).or_default() += 1.0);
    counts.iter().map(|(term, count)| rarity[*term] * (1.0 + REPEATED * count.ln())).sum()
}

#[cfg(test)]
mod tests {
    use super::super::ranking::rank;
    use super::*;

    fn chosen(task: &str, text: &str, room: usize) -> Excerpts {
        let query = Query::new(task);
        let scans = [ScannedFile::new("a.py", text.as_bytes(), "", &query)];
        let texts = [text.as_bytes()];
        let (scores, rarity) = rank(&scans, &texts, &query);
        choose(&scans, &texts, &scores, &rarity, room)
    }

    /// A file of `n` functions of four lines each. The second last is named `encode`.
    fn functions(n: usize) -> String {
        let function = |number: usize| {
            if number + 2 == n {
                return "# Does it.\ndef encode():\n    return 1\n\n".to_owned();
            }
            format!("def other_{number}():\n    return 1\n\n\n")
        };
        (0..n).map(function).collect()
    }

    #[test]
    fn a_small_file_is_shown_whole_and_of_a_large_one_what_fits_the_task() {
        assert_eq!(chosen("Fix encode", &functions(10), 1_000), [(0, None)].into());
        assert_eq!(
            chosen("Fix encode", &functions(50), 1_000),
            [(0, Some(vec![(193, 195)]))].into()
        );
        assert_eq!(chosen("Fix encode", &functions(50), 20), [].into());
    }

    #[test]
    fn of_long_definitions_the_lines_around_words_are_shown() {
        let mut text = "def long():\n".to_owned() + &"    x = 1\n".repeat(200);
        text.push_str("    encode()\n");
        text += &"    x = 1\n".repeat(200);
        assert_eq!(chosen("Fix encode", &text, 1_000), [(0, Some(vec![(196, 208)]))].into());
    }

    #[test]
    fn ranges_are_joined_over_gaps_of_one_line() {
        assert_eq!(merged(&[(1, 3), (5, 6), (6, 9), (12, 12)]), [(1, 9), (12, 12)]);
    }
}
