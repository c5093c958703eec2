//! The seeds of the fuzz targets, and many mutations of them, through what the targets assert: see
//! fuzz/README.md. The mutations are the same in every run.

#[path = "../../fuzz/properties/operations.rs"]
mod operations;
#[path = "../../fuzz/properties/rpc.rs"]
mod rpc;
#[path = "../../fuzz/properties/tags.rs"]
pub(crate) mod tags;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// So many mutations are made for each target.
const MUTATIONS: usize = 2_000;
/// No mutation is longer, in bytes.
const LONGEST: usize = 4_000;

/// Numbers that are as good as random (xorshift64*).
struct Numbers(u64);

impl Numbers {
    /// One below `end`, which is not 0.
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(number).unwrap() % end
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// A part of a text, of at most so many bytes.
    fn part<'a>(&mut self, text: &'a [u8], most: usize) -> &'a [u8] {
        let begin = self.below(text.len() + 1);
        let length = self.below(most).min(text.len() - begin);
        &text[begin..begin + length]
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The seeds of a target, in the order of their names.
fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let seed = |file: &std::path::PathBuf| {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        (name, fs::read(file).unwrap())
    };
    let seeds: Vec<_> = files.iter().map(seed).collect();
    assert!(seeds.len() >= 20, "{} seeds of {target}", seeds.len());
    seeds
}

/// A seed with some changes: parts of it gone, twice, moved or flipped, parts of others and words in
/// between.
fn mutated(seeds: &[(String, Vec<u8>)], words: &[&str], numbers: &mut Numbers) -> Vec<u8> {
    let mut text = numbers.one_of(seeds).1.clone();
    for _ in 0..=numbers.below(6) {
        let at = numbers.below(text.len() + 1);
        let end = (at + numbers.below(40)).min(text.len());
        match numbers.below(6) {
            0 => drop(text.drain(at..end)),
            1 => drop(text.splice(at..at, text[at..end].to_vec())),
            2 => {
                let moved: Vec<u8> = text.drain(at..end).collect();
                let to = numbers.below(text.len() + 1);
                drop(text.splice(to..to, moved));
            }
            3 => {
                let other = &numbers.one_of(seeds).1;
                let part = numbers.part(other, 200).to_vec();
                drop(text.splice(at..at, part));
            }
            4 => drop(text.splice(at..at, numbers.one_of(words).bytes())),
            _ if at < text.len() => text[at] ^= 1 << numbers.below(8),
            _ => {}
        }
    }
    text.truncate(LONGEST);
    text
}

/// Holds what a target asserts of each of its seeds, and of mutations of them.
fn all_hold(target: &str, words: &[&str], hold: fn(&[u8])) {
    let seeds = seeds(target);
    let check = |what: &str, bytes: &[u8]| {
        let holds = catch_unwind(AssertUnwindSafe(|| hold(bytes))).is_ok();
        assert!(holds, "{what} of {target}: {:?}", text(bytes));
    };
    seeds.iter().for_each(|(name, seed)| check(name, seed));
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    for n in 0..MUTATIONS {
        check(&format!("mutation {n}"), &mutated(&seeds, words, &mut numbers));
    }
}

#[test]
fn replies_in_tags_hold_what_is_fuzzed() {
    const WORDS: &[&str] = &[
        "[CREATE_FILE path=\"a\"]\n",
        "\n[/CREATE_FILE]\n",
        "[EDIT_FILE path=\"b\" start_line=\"1\" end_line=\"2\"]\n",
        "[/EDIT_FILE]\n",
        "[RUN_COMMAND]\n",
        "[/RUN_COMMAND]\n",
        "[MESSAGE]",
        "[/MESSAGE]",
        "[DONE]",
        "[/DONE]\n",
        "[READ_FILE path=\"c\"]\n",
        "[READ_FILE path=\"c\" start_line=\"2\" numbered=\"true\"]\n",
        "[SEARCH pattern=\"",
        "[SEARCH pattern='a\"b'",
        "[LIST_FILES]\n",
        "[MOVE_FILE path=\"a\" to=\"",
        " end=\"EOF1\"]\n",
        "\n[/CREATE_FILE end=\"EOF1\"]\n",
        "[EDIT_FILE path=\"b\"]\n<<<<<<< SEARCH\nx\n",
        "\n=======\n",
        "\n>>>>>>> REPLACE\n",
        "[DONE if=\"ok\"]\n",
        "[REPLY session=\"a1b2c3d4\" sequence=\"2\"]\n",
        "--- a ---\n",
        "--- end a ---\n",
        "<DONE>\n",
        "'",
        "’",
        "&amp;",
        "```\n",
        "> ",
        "**",
        "- ",
        "1| ",
        "\\",
        "&quot;",
        "<think>\n",
        "</think>\n",
        "=== PROTOCOL ===\n",
        "[OK] DONE: x\n",
        "\u{200b}",
        "\u{a0}",
        "\r\n",
        "\n",
        "{\"operations\": [",
    ];
    all_hold("tags", WORDS, |bytes| tags::hold(&text(bytes)));
}

#[test]
fn operations_hold_what_is_fuzzed() {
    const WORDS: &[&str] = &[
        "{\"protocolVersion\": \"1.0\", \"operations\": [",
        "{\"type\": \"shell\", \"command\": \"ls\"}",
        "\"id\": \"done\"",
        "\"type\": \"message\"",
        "\"encoding\": \"base64\"",
        "\"operations\"",
        "\"events\"",
        "\"path\": \"../a\"",
        "\\ud800",
        "\\u0000",
        "1e400",
        "-0",
        "null",
        "```json\n",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "\"",
        "\n",
        "[DONE]\n",
    ];
    all_hold("operations", WORDS, |bytes| operations::hold(&text(bytes)));
}

#[test]
fn some_seeds_are_valid() {
    use deaddrop::protocol::jsonrpc::{Method, read};
    use deaddrop::protocol::operations::{parse_events_message, parse_operations_message};
    let count = |target: &str, is_valid: fn(&[u8]) -> bool| {
        seeds(target).iter().filter(|(_, seed)| is_valid(seed)).count()
    };
    assert!(count("operations", |seed| parse_operations_message(&text(seed)).is_ok()) >= 2);
    assert!(count("operations", |seed| parse_events_message(&text(seed)).is_ok()) >= 2);
    let is_request = |seed: &[u8]| read(seed).is_ok_and(|asked| Method::of(asked).is_ok());
    assert!(count("rpc", is_request) >= 5);
}

#[test]
fn lines_of_json_rpc_hold_what_is_fuzzed() {
    const WORDS: &[&str] = &[
        "\"jsonrpc\":\"2.0\",",
        "\"id\":7,",
        "\"method\":\"exec\",",
        "\"params\":{\"cmd\":\"ls\"}",
        "\"params\":[",
        "\"path\":\"a\"",
        "\"$serde_json::private::RawValue\":",
        "18446744073709551616",
        "1e400",
        "null",
        "\\ud83d",
        "\\u2028",
        "\r",
        "[",
        "]",
        "{",
        "}",
        ",",
        "\"",
    ];
    all_hold("rpc", WORDS, rpc::hold);
}
