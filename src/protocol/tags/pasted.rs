//! Recognises the protocol prompt in a reply. The examples in the prompt are not commands.

use std::sync::LazyLock;

use memchr::memrchr;

use super::PROMPT;
use super::lexer::Token;

/// A sentence of the prompt, the tag of the example after it, and the next line.
type Example = [&'static str; 3];

static EXAMPLES: LazyLock<Vec<Example>> = LazyLock::new(|| {
    let lines: Vec<&str> = PROMPT.lines().collect();
    let leads = |lines: &&[&str]| lines[0].ends_with(':') && lines[1].starts_with('[');
    lines.windows(3).filter(leads).map(|lines| [lines[0], lines[1], lines[2]]).collect()
});

/// The offset of a prompt sentence directly above a plain tag, if the sentence's own example follows.
pub(super) fn prompt_sentence(text: &str, tag: &Token) -> Option<usize> {
    const LONGEST: usize = 200;
    let above = text[..tag.line].strip_suffix('\n').filter(|_| tag.is_plain())?;
    above.trim_end().ends_with(':').then_some(())?;
    let from = above.floor_char_boundary(above.len().saturating_sub(LONGEST));
    let begin = memrchr(b'\n', &above.as_bytes()[from..]).map(|n| from + n + 1);
    let begin = begin.or_else(|| (from == 0).then_some(0))?;
    let said = above[begin..].trim();
    let mut below = text[tag.line..].split('\n').map(str::trim);
    let [tag, next] = [below.next()?, below.next().unwrap_or_default()];
    let is_it = |example: &&Example| {
        example[0] == said && example[1] == tag && (next.is_empty() || example[2] == next)
    };
    EXAMPLES.iter().find(is_it).map(|_| begin)
}

#[cfg(test)]
mod tests {
    use super::super::lexer::{lex, line_end};
    use super::*;

    #[test]
    fn the_sentences_of_the_prompt_are_known() {
        assert!(EXAMPLES.len() >= 8, "{EXAMPLES:?}");
        for [said, tag, next] in EXAMPLES.iter() {
            let text = format!("x\n{said}\n{tag}\n{next}\n");
            let line = text.find(tag).unwrap();
            let of = |text: &str, line: usize| {
                prompt_sentence(text, &lex(text, line, line_end(text, line)).unwrap())
            };
            assert!(of(&text, line).is_some(), "{text}");
            let other = format!("{said}\n{tag}\nanother\n");
            assert!(of(&other, said.len() + 1).is_none());
        }
    }
}
