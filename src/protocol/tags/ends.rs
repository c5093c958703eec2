//! Finds the end of a block's body: its closing tag, or a damaged closing tag if only one is possible. If the end would
//! be a guess, the block is refused, and nothing after it is carried out.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use memchr::{memchr_iter, memmem, memrchr};
use regex::Regex;

use super::attributes::{self, brief};
use super::block::{refused, tag_fault};
use super::catalogue::{COMMANDS, TagCommand, find_command};
use super::lexer::{self, Decoration, Token, TokenKind, line_end};
use super::parser::{ItemKind, Parser, RawBlock};
use crate::protocol::content_checks::fence::{closes, fence_of};
use crate::protocol::{Kind, Mistake, Step};

/// The end of a body.
pub(super) struct BlockEnd {
    /// The byte range of the closing tag.
    pub(super) closing: Range<usize>,
    pub(super) decoration: Decoration,
    pub(super) quote: u8,
}

/// All tags of a text in order, including those in bodies. Built only for blocks with an end word and lookalikes.
#[derive(Default)]
pub(super) struct TagIndex {
    /// The tags of each command, except closing tags with an end word.
    of_command: HashMap<Kind, Vec<Token>>,
    /// Closing tags without an end word, by name.
    closing: HashMap<String, Vec<Token>>,
    /// Tags that are alone on their lines, by command, end word, and whether they are undecorated.
    with_word: HashMap<(Kind, String, bool), Vec<Token>>,
}

impl TagIndex {
    fn of(text: &str) -> Self {
        let mut index = Self::default();
        for tag in lexer::tokens(text, 0..text.len()) {
            if !tag.opens() && !tag.closes() {
                continue;
            }
            // A closing tag with an end word closes only a block with the same word.
            let by_word = tag.kind == (TokenKind::Close { by_word: true });
            if !by_word && tag.closes() {
                index.closing.entry(name_of(text, &tag).to_owned()).or_default().push(tag);
            }
            let Some(kind) = tag.command.map(|command| command.kind) else { continue };
            if !by_word {
                index.of_command.entry(kind).or_default().push(tag);
            }
            if tag.alone
                && (by_word || tag.kind == TokenKind::Open)
                && let Some(word) =
                    attributes::end_word(&text[tag.name_end..line_end(text, tag.at)])
            {
                for is_plain in [false, true].into_iter().filter(|plain| !plain || tag.is_plain()) {
                    let key = (kind, word.clone(), is_plain);
                    index.with_word.entry(key).or_default().push(tag);
                }
            }
        }
        index
    }
}

/// The name in a tag, without the bracket and slash.
fn name_of<'t>(text: &'t str, token: &Token) -> &'t str {
    text[token.at..token.name_end].trim_start_matches(['[', '/'])
}

impl Parser<'_> {
    /// Finds the end of the body that begins at `body_at`. If the end is unknown, refuses the block and returns None.
    pub(super) fn end_of_body(&mut self, found: &RawBlock<'_>, body_at: usize) -> Option<BlockEnd> {
        let token = &found.token;
        let end = match &found.word {
            Some(word) => self.end_by_word(found, body_at, word)?,
            None => self.end_without_word(found, body_at)?,
        };
        if self.signs.tags(body_at..end.closing.start).is_empty() {
            return Some(end);
        }
        let body = self.text.get(body_at..end.closing.start).unwrap_or_default();
        let word = found.word.as_deref();
        let Some(at) = closing_before_opening(body, token.command(), word) else {
            return Some(end);
        };
        let (line, shown) = (self.line_number_at(body_at + at), self.quoted_line(body_at + at));
        let why = format!("on line {line} `{shown}` closes it and opens another block");
        self.refuse_unclear_end(token, &why);
        None
    }

    /// The next tag, beginning at the start of a line, that can close a block without an end word or open another block
    /// inside it. With `is_plain`, only undecorated tags count.
    pub(super) fn next_without_word(
        &mut self,
        token: &Token,
        from: usize,
        is_plain: bool,
    ) -> Option<Token> {
        let key = (token.command?.kind, is_plain);
        // Each line is searched only once, which keeps this linear.
        if let Some((begin, known)) = self.next_tag_cache.get(&key)
            && *begin <= from
            && known.is_none_or(|known| known.line >= from)
        {
            return *known;
        }
        let is_one = |found: &Token| {
            matches!(found.kind, TokenKind::Open | TokenKind::Close { by_word: false })
        };
        let region = from..self.text.len();
        let next = if is_plain {
            self.plain_tags(token, region).find(is_one)
        } else {
            tags_of(self.text, token, region).find(is_one)
        };
        self.next_tag_cache.insert(key, (from, next));
        next
    }

    /// The undecorated tags of a command in a region, which must begin at the start of a line.
    fn plain_tags(&self, token: &Token, region: Range<usize>) -> impl Iterator<Item = Token> {
        let (text, command, mut next) = (self.text, token.command, region.start);
        let is_same =
            move |found: &Token| found.command == command && found.alone && found.is_plain();
        let name = token.command().name;
        self.signs.tags(region).iter().filter_map(move |at| {
            let inside = text[at + 1..].strip_prefix('/').unwrap_or(&text[at + 1..]);
            if *at < next || !inside.starts_with(name) {
                return None;
            }
            let begin = memrchr(b'\n', &text.as_bytes()[next..*at]).map_or(next, |n| next + n + 1);
            let end = line_end(text, *at);
            next = end + 1;
            lexer::lex(text, begin, end).filter(is_same)
        })
    }

    /// Like `next_without_word`, but for a block with an end word.
    fn next_with_word(
        &mut self,
        token: &Token,
        word: &str,
        from: usize,
        is_plain: bool,
    ) -> Option<Token> {
        let key = (token.command?.kind, word.to_owned(), is_plain);
        let tags = self.index().with_word.get(&key)?;
        tags.get(tags.partition_point(|tag| tag.line < from)).copied()
    }

    /// The next tag after a lookalike with the same command or, if its name is unknown, one that closes this name.
    pub(super) fn next_of_lookalike(&mut self, token: &Token) -> Option<Token> {
        let (text, index) = (self.text, self.index());
        let tags = match token.command {
            Some(command) => index.of_command.get(&command.kind)?,
            None => index.closing.get(name_of(text, token))?,
        };
        tags.get(tags.partition_point(|tag| tag.at <= token.at)).copied()
    }

    fn index(&mut self) -> &TagIndex {
        let text = self.text;
        self.index.get_or_insert_with(|| TagIndex::of(text))
    }

    /// The end of a draft (a block inside reasoning), if there is no doubt about it.
    pub(super) fn end_of_draft(&mut self, token: &Token) -> Option<usize> {
        let closing = token.command().closing?;
        let end = self.line_end(token.at);
        let rest = &self.text[token.name_end..end];
        if rest.contains(closing) {
            return None;
        }
        let word = attributes::end_word(rest).filter(|word| attributes::is_end_word(word));
        let from = self.next_line(token.at);
        let next = match word {
            Some(word) => self.next_with_word(token, &word, from, token.is_plain())?,
            None => self.next_without_word(token, from, token.is_plain())?,
        };
        next.closes().then(|| self.next_line(next.at))
    }

    fn end_without_word(&mut self, found: &RawBlock<'_>, body_at: usize) -> Option<BlockEnd> {
        let token = &found.token;
        let next = self.next_without_word(token, body_at, token.is_plain());
        if let Some(end) = next.filter(Token::closes) {
            return self.end_unless_ambiguous(token, body_at, &end);
        }
        let command = token.command();
        // A nested block of the same kind may be part of the body if it has its own closing tag or an end word.
        let has_word = next.is_some_and(|next| {
            attributes::end_word(&self.text[next.name_end..self.line_end(next.at)]).is_some()
        });
        let mut behind =
            |tag: Token| self.next_without_word(token, self.next_line(tag.at), token.is_plain());
        let closing = next.and_then(&mut behind).filter(Token::closes);
        let is_nest = closing
            .is_some_and(|closing| has_word || behind(closing).is_some_and(|tag| tag.closes()));
        let region_end = next.map_or(self.text.len(), |next| next.line);
        if !is_nest && let Some(end) = self.repaired_end(token, body_at, region_end) {
            return Some(end);
        }
        let wrong = self.near_miss_closing(body_at, region_end);
        let Some(next) = next.filter(|_| is_nest || !has_word) else {
            self.refuse_unclosed(found, &wrong);
            return None;
        };
        let line = self.line_number_at(next.line);
        // The next block of the same kind may also be in the body of another block.
        if is_nest || self.opens_within(body_at, region_end) {
            let why = format!(
                "it is not closed before line {line}, where another {} opens, which may belong to a body{wrong}",
                command.name
            );
            self.refuse_unclear_end(token, &why);
            return None;
        }
        let (number, shown) = (self.line_number_at(token.line), self.quoted_line(token.at));
        let step = match &found.tag {
            Err(fault) => Step::new(number, tag_fault(command, number, &shown, fault)),
            Ok(_) => {
                let sentence = format!(
                    "Line {number}: `{shown}` is never closed: the next block of its kind opens on line {line}{wrong}. It was not carried out; send this block again. Correct form: {}",
                    command.form
                );
                refused(command, number, Mistake::NotClosed, sentence)
            }
        };
        self.push(token.line, token.command, ItemKind::Step(Box::new(step)));
        // The lines in between were not a body, so they may contain reasoning.
        self.unclosed_block_to = region_end;
        self.skip(body_at..region_end);
        None
    }

    /// The end of a block with an end word, which is the first closing tag with this word.
    fn end_by_word(
        &mut self,
        found: &RawBlock<'_>,
        body_at: usize,
        word: &str,
    ) -> Option<BlockEnd> {
        let (token, command) = (&found.token, found.token.command());
        if !attributes::is_end_word(word) {
            let why = format!(
                "end=\"{}\" cannot close a block: use 1 to 64 letters, digits, - and _",
                brief(word)
            );
            self.refuse_unclear_end(token, &why);
            return None;
        }
        let plain =
            self.next_with_word(token, word, body_at, token.is_plain()).filter(Token::closes);
        let Some(end) = plain.or_else(|| self.next_with_word(token, word, body_at, false)) else {
            let wrong = self.near_miss_closing(body_at, self.text.len());
            self.refuse_unclosed(
                found,
                &format!("{wrong}: [/{} end=\"{word}\"] closes it", command.name),
            );
            return None;
        };
        let (line, shown) = (self.line_number_at(end.line), self.quoted_line(end.at));
        let next = self.next_with_word(token, word, self.next_line(end.at), false);
        if !end.closes() {
            let why = format!("on line {line} `{shown}` opens another of that word within it");
            self.refuse_unclear_end(token, &why);
        } else if next.is_some_and(|next| next.closes()) {
            let why = format!("after `{shown}` on line {line} there is a second one");
            match self.first_item_of(token) {
                Some(first) => self.refuse_from_first(first, &why),
                None => self.refuse_unclear_end(token, &why),
            }
        } else {
            return self.end_unless_ambiguous(token, body_at, &end);
        }
        None
    }

    /// Ends a block at a closing tag, unless this tag may belong to the body.
    fn end_unless_ambiguous(
        &mut self,
        token: &Token,
        body_at: usize,
        end: &Token,
    ) -> Option<BlockEnd> {
        if !self.is_of_a_fence(end, body_at) && !end.decoration.exceeds(token.decoration) {
            return Some(self.end_at(end));
        }
        let (line, shown) = (self.line_number_at(end.line), self.quoted_line(end.at));
        let why = format!(
            "the closing tag on line {line}, `{shown}`, has decoration that the opening one lacks"
        );
        self.refuse_unclear_end(token, &why);
        None
    }

    fn is_of_a_fence(&self, end: &Token, body_at: usize) -> bool {
        end.decoration.has(Decoration::FENCE) && is_in_a_fence(&self.text[body_at..end.line])
    }

    fn end_at(&self, token: &Token) -> BlockEnd {
        BlockEnd {
            closing: token.line..self.next_line(token.at),
            decoration: token.decoration,
            quote: token.quote,
        }
    }

    /// Ends a block at the only closing tag in a region, if the tag is decorated or follows other text on its line.
    fn repaired_end(&self, token: &Token, from: usize, to: usize) -> Option<BlockEnd> {
        let closing = token.command().closing?;
        let is_closing = |found: &Token| found.kind == TokenKind::Close { by_word: false };
        let mut decorated = tags_of(self.text, token, from..to).filter(is_closing);
        let one = decorated.next();
        if decorated.next().is_some() {
            return None;
        }
        let line = one.map_or(0..0, |one| one.line..self.next_line(one.at));
        let mut glued = memmem::find_iter(&self.text.as_bytes()[from..to], closing)
            .map(|at| from + at)
            .filter(|at| !line.contains(at));
        match (one, glued.next()) {
            // Otherwise the tag may be in a list of tags in a text that was cut off, or follow a fence of the body.
            (Some(one), None) => (!one.decoration.exceeds(token.decoration)
                && !self.is_of_a_fence(&one, from))
            .then(|| self.end_at(&one)),
            (None, Some(at)) if glued.next().is_none() => self.glued_end(token, from, at),
            _ => None,
        }
    }

    /// The end of a block whose closing tag follows other text on its line. Only another tag may come next.
    fn glued_end(&self, token: &Token, from: usize, at: usize) -> Option<BlockEnd> {
        let command = token.command();
        let after = &self.text[at + command.closing?.len()..self.line_end(at)];
        let is_fenced =
            lexer::without_fence(after.trim_end()).is_some_and(|rest| rest.trim().is_empty());
        let before = &self.text[self.line_begin(at).max(from)..at];
        // If a whole block is on that line, the closing tag is its own.
        let inner = before.trim_start().strip_prefix('[').unwrap_or_default();
        let opens = inner.trim_start_matches('/').starts_with(|c: char| c.is_ascii_uppercase())
            || lexer::read_name(inner).is_some();
        let next = self.next_line(at);
        let is_said = matches!(command.kind, Kind::Message | Kind::Done);
        // After a space, the tag may be part of a sentence about tags.
        let is_glued =
            is_said && self.text[next..].trim_start().is_empty() || !before.ends_with([' ', '\t']);
        let is_one = is_glued
            && !opens
            && (token.is_plain() || !is_said)
            && (after.trim().is_empty() || is_fenced && !is_in_a_fence(&self.text[from..at]))
            && self.only_a_tag_follows(next);
        let mut decoration = Decoration::GLUED;
        if is_fenced {
            decoration.add(Decoration::FENCE);
        }
        is_one.then_some(BlockEnd { closing: at..next, decoration, quote: token.quote })
    }

    /// Whether nothing but white space comes before a plain opening tag or the end of the text.
    fn only_a_tag_follows(&self, from: usize) -> bool {
        let at = self.text.len() - self.text[from..].trim_start().len();
        let token = || lexer::lex(self.text, self.line_begin(at), self.line_end(at));
        at == self.text.len()
            || token().is_some_and(|token| token.kind == TokenKind::Open && token.is_plain())
    }

    /// Whether a region contains an opening tag of a block with a body, or a plain [REPLY …] line.
    fn opens_within(&self, from: usize, to: usize) -> bool {
        let is_opening = |token: &Token| {
            let begins = token.command().kind == Kind::Reply && token.is_plain();
            let has_body = token.command.is_some_and(|command| command.closing.is_some());
            token.opens() && (has_body || begins)
        };
        lexer::tokens(self.text, from..to).any(|token| is_opening(&token))
    }

    /// A phrase about a near miss: the first closing tag in a region, which does not close the block.
    fn near_miss_closing(&mut self, from: usize, to: usize) -> String {
        let closes = |at: &&usize| self.text[**at..].starts_with("[/");
        let first = self.signs.tags(from..to).iter().find(closes).copied();
        first.map_or(String::new(), |at| {
            let (line, shown) = (self.line_number_at(at), self.quoted_line(at));
            format!(", and `{shown}` on line {line} does not close it")
        })
    }

    /// Refuses a block whose end would be a guess. Nothing after it is carried out.
    pub(super) fn refuse_unclear_end(&mut self, token: &Token, why: &str) {
        let how = advise_closing(token.command());
        let (number, shown) = (self.line_number_at(token.line), self.quoted_line(token.at));
        let text = format!(
            "Line {number}: where `{shown}` ends is not clear: {why}. So neither it nor anything after it was carried out. Send it again from there; {how}"
        );
        self.end_reply(token, Mistake::EndUnclear, text);
    }

    /// Refuses a block in whose body reasoning may end. Nothing before it is carried out either, because the block's
    /// tag may be part of that reasoning.
    pub(super) fn refuse_possible_draft(&mut self, token: &Token, stray: &Range<usize>) {
        let (line, shown) = (self.line_number_at(stray.start), brief(&self.text[stray.clone()]));
        let number = self.line_number_at(token.line);
        self.drop_items();
        self.add_body(0..stray.end);
        let text = format!(
            "Line {line}: `{shown}` may end thoughts whose beginning is missing, or belong to the block on line {number}, so nothing was carried out. Send the commands again without thoughts; {}",
            advise_closing(token.command())
        );
        let step = Step::refused(line, Mistake::ThoughtsUnopened, text);
        self.end_reply_with(step, stray.start, None);
        self.at = self.next_line(stray.start);
    }

    /// Refuses a block that is never closed. Nothing after it is carried out, because it may be the block's body.
    fn refuse_unclosed(&mut self, found: &RawBlock<'_>, wrong: &str) {
        let (token, command) = (&found.token, found.token.command());
        let (number, shown) = (self.line_number_at(token.line), self.quoted_line(token.at));
        let fault = found.tag.as_ref().err();
        let phrase = fault.map_or(String::new(), |fault| format!(" ({})", fault.phrase));
        let text = format!(
            "Line {number}: `{shown}`{phrase} is never closed (cut off?){wrong}, so neither it nor anything after it was carried out. Send this block again and what follows it. Correct form: {}",
            command.form
        );
        // If the problem is that the body was written as an attribute, the reply does not have to be cut off.
        let mistake = match fault {
            Some(fault) if fault.mistake == Mistake::BodyAsAttribute => fault.mistake,
            _ => Mistake::CutOff,
        };
        self.unclosed |= mistake == Mistake::CutOff;
        self.end_reply(token, mistake, text);
    }

    /// If the text ends with an unreadable tag that has no body, refuses the tag as cut off and returns true.
    pub(super) fn is_cut(&mut self, token: &Token) -> bool {
        let end = self.line_end(token.at);
        let (line, below) = (self.text[token.line..end].trim(), &self.text[end..]);
        if !token.is_plain() || line.ends_with(']') || !below.trim_start().is_empty() {
            return false;
        }
        let (number, shown) = (self.line_number_at(token.line), self.quoted_line(token.at));
        let text = format!(
            "Line {number}: the reply ends within `{shown}` (cut off?), so it was not carried out. Send this block again and what follows it. Correct form: {}",
            token.command().form
        );
        self.unclosed = true;
        self.end_reply(token, Mistake::CutOff, text);
        true
    }

    /// If the text ends with the beginning of a command's name, refuses it as cut off and returns true.
    pub(super) fn cut_name(&mut self, begin: usize, end: usize) -> bool {
        let word = self.text[begin..end].trim().strip_prefix('[');
        let word = word.filter(|word| !word.is_empty() || !self.items.is_empty());
        let Some(word) = word.filter(|_| self.text[end..].trim_start().is_empty()) else {
            return false;
        };
        let command = find_command(|name| name.starts_with(word));
        command.is_some() && self.is_cut(&Token::new(begin, begin, command))
    }
}

/// For each command, a pattern that finds its name, however written, in lower-case text. Names that consist of one word
/// are found only after a bracket.
static TAGS: LazyLock<HashMap<Kind, Regex>> = LazyLock::new(|| {
    let pattern = |name: &str| {
        let joint = r"[\s\\_*`-]*";
        let letters = name.to_ascii_lowercase().replace('_', "");
        let letters: Vec<String> = letters.chars().map(String::from).collect();
        let before = if name.contains('_') { "" } else { r"[\[［【<‹({;&]" };
        Regex::new(&format!("{before}{joint}/?{joint}{}", letters.join(joint)))
    };
    let tags = COMMANDS.iter().map(|command| (command.kind, pattern(command.name)));
    tags.filter_map(|(kind, pattern)| Some((kind, pattern.ok()?))).collect()
});

/// Whether a text may contain a tag of a command.
pub(super) fn may_have_tag(text: &str, command: &TagCommand) -> bool {
    let folded = text.chars().map(lexer::fold_wide).filter(|c| !lexer::is_zero_width(*c));
    let folded: String = folded.map(|c| c.to_ascii_lowercase()).collect();
    TAGS.get(&command.kind).is_none_or(|tag| tag.is_match(&folded))
}

/// The tags of a command in a region, which must begin at the start of a line. Each tag is alone on its line.
fn tags_of(text: &str, token: &Token, region: Range<usize>) -> impl Iterator<Item = Token> {
    let command = token.command;
    lexer::tokens(text, region).filter(move |found| found.command == command && found.alone)
}

/// Whether a fence is open at the end of a body. If so, a fence after the closing tag may belong to the body.
fn is_in_a_fence(body: &str) -> bool {
    let mut open: Option<&str> = None;
    for line in body.lines() {
        open = match open {
            Some(fence) if closes(fence, line) => None,
            Some(fence) => Some(fence),
            None => fence_of(line),
        };
    }
    open.is_some()
}

/// Finds a closing tag with this name and end word inside a body, at the start of a line or directly after text, with
/// only an opening tag after it. Tags in code spans do not count, because they are part of a sentence.
fn closing_before_opening(body: &str, command: &TagCommand, word: Option<&str>) -> Option<usize> {
    // The most attempts per line, because each may read the rest of the line.
    const MOST: usize = 16;
    let slash = command.closing?.strip_suffix(']')?;
    let (mut from, mut line, mut on_line) = (0, 0..0, 0);
    while let Some(at) = memmem::find(&body.as_bytes()[from..], slash.as_bytes()) {
        let at = from + at;
        if at >= line.end {
            let begin = memrchr(b'\n', &body.as_bytes()[line.end..at]);
            line = begin.map_or(line.end, |n| line.end + n + 1)..line_end(body, at);
            on_line = 0;
        }
        let end = line.end;
        from = at + slash.len();
        on_line += 1;
        if on_line > MOST {
            return Some(at);
        }
        let before = &body[line.start..at];
        let stands = before.trim().is_empty() || !before.ends_with([' ', '\t']);
        let Some(after) = after_closing_tag(&body[from..end], word).filter(|_| stands) else {
            continue;
        };
        let opening = after.trim_start_matches(|c: char| c.is_whitespace() || "*_`~".contains(c));
        let tag = opening.trim_end_matches(|c: char| c.is_whitespace() || "*_`~".contains(c));
        let token = tag.starts_with('[').then(|| lexer::lex(tag, 0, tag.len())).flatten();
        let opens = |token: Token| token.kind == TokenKind::Open && token.alone;
        if token.is_some_and(opens) && !is_in_code(before, opening) {
            return Some(at);
        }
    }
    None
}

/// Whether a code span begins directly before a tag and ends at the end of the line.
fn is_in_code(before: &str, rest: &str) -> bool {
    let is_open = || memchr_iter(b'`', before.as_bytes()).count() % 2 == 1;
    before.ends_with('`') && !before.ends_with("``") && rest.trim_end().ends_with('`') && is_open()
}

/// The text after a closing tag with this end word. `rest` begins after the tag's name.
fn after_closing_tag<'a>(rest: &'a str, word: Option<&str>) -> Option<&'a str> {
    match word {
        None => rest.strip_prefix(']'),
        Some(word) => {
            let (given, after) = attributes::closing_word(rest, &mut Decoration::default())?;
            (given == word).then_some(after)
        }
    }
}

/// The closing tag of a block, with its end word if it has one.
pub(super) fn closing_tag(command: &TagCommand, word: Option<&str>) -> String {
    match word {
        Some(word) => format!("[/{} end=\"{word}\"]", command.name),
        None => command.closing.unwrap_or_default().to_owned(),
    }
}

/// Advice on how to end a block.
pub(super) fn advise_closing(command: &TagCommand) -> String {
    let (name, closing) = (command.name, command.closing.unwrap_or_default());
    let path = match command.kind {
        Kind::Create | Kind::Edit => " path=\"…\"",
        _ => "",
    };
    format!(
        "close it with {closing} alone on a line; where the body is to contain such a line, end the block by a word that the body does not contain, as in [{name}{path} end=\"EOF1\"] and [/{name} end=\"EOF1\"]"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{StepContent, tags::parse};

    #[test]
    fn a_closing_tag_and_an_opening_one_are_found_at_the_beginning_and_behind_a_text() {
        for line in [
            "[/CREATE_FILE] [CREATE_FILE path=\"b\"]",
            "[/CREATE_FILE][RUN_COMMAND]",
            "}[/CREATE_FILE] **[DONE]**",
            "x = `a`[/CREATE_FILE][DONE]",
            "\"\"\"[/CREATE_FILE] [DONE]",
        ] {
            assert!(
                closing_before_opening(&format!("x\n{line}\ny\n"), &COMMANDS[0], None).is_some(),
                "{line}"
            );
        }
        for line in [
            "[/CREATE_FILE] x",
            "[/CREATE_FILE] [x]",
            "[/CREATE_FILE] [/DONE]",
            "[/CREATE_FILE] [CREATE_FILE path=\"b\"] x",
            "then [/CREATE_FILE] [DONE]",
            "[/CREATE_FILE end=\"T\"] [DONE]",
            "End with `[/CREATE_FILE][DONE]`",
            "\"[/CREATE_FILE] [DONE]\"",
        ] {
            assert!(
                closing_before_opening(&format!("x\n{line}\ny\n"), &COMMANDS[0], None).is_none(),
                "{line}"
            );
        }
        let line = "[/CREATE_FILE end=\"T\"] [DONE]\n";
        assert_eq!(closing_before_opening(line, &COMMANDS[0], Some("T")), Some(0));
    }

    #[test]
    fn a_fence_behind_a_tag_is_told_from_one_of_its_body() {
        assert_eq!(lexer::without_fence("]````"), Some("]"));
        assert_eq!(lexer::without_fence("] ~~~"), Some("]"));
        for tail in ["]", "]``", "]```bash", "] `a` ```", "````x"] {
            assert_eq!(lexer::without_fence(tail), None, "{tail}");
        }
        for (body, is_open) in [
            ("```\nls\n", true),
            ("```sh\nls\n```\n", false),
            ("````\n```\nls\n```\n", true),
            ("~~~\n```\n~~~\n", false),
            ("ls ```\n", false),
            ("", false),
        ] {
            assert_eq!(is_in_a_fence(body), is_open, "{body}");
        }
    }

    #[test]
    fn whatever_is_left_over_nothing_behind_is_read() {
        const OPEN: &str = "[CREATE_FILE path=\"a\" end=\"T\"]\n";
        const CLOSE: &str = "[/CREATE_FILE end=\"T\"]\n";
        const DELETE: &str = "[DELETE_FILE path=\"b\"]\n";
        let curly = CLOSE.replace('"', "”");
        // The number of valid blocks, and whether the last block is refused together with everything after it.
        for (text, in_order, ends) in [
            (format!("{OPEN}{CLOSE}{OPEN}{CLOSE}{DELETE}"), 3, false),
            (format!("{OPEN}{curly}{OPEN}{curly}{DELETE}"), 3, false),
            (format!("{OPEN}{CLOSE}{OPEN}{CLOSE}{CLOSE}{DELETE}"), 0, true),
            (format!("{OPEN}{curly}{curly}{DELETE}"), 0, true),
            (format!("{OPEN}{CLOSE}{DELETE}{CLOSE}{OPEN}{CLOSE}"), 0, true),
            // Text in a path that looks like a closing tag is not one.
            (
                format!("{OPEN}{CLOSE}[CREATE_FILE path=\"b[/c\" end=\"T\"]\n{CLOSE}{DELETE}"),
                3,
                false,
            ),
            (format!("{OPEN}{OPEN}{CLOSE}{DELETE}"), 0, true),
            (format!("{DELETE}{OPEN}{OPEN}{CLOSE}{CLOSE}{DELETE}"), 1, true),
            (format!("{OPEN}{CLOSE}{}{DELETE}", "[/CREATE_FILE]\n"), 0, true),
            (format!("{DELETE}{CLOSE}{DELETE}"), 0, true),
            (format!("{OPEN}`{}`\n{CLOSE}{DELETE}", CLOSE.trim_end()), 2, false),
        ] {
            let reply = parse(&text);
            let good = |asks: &StepContent| matches!(asks, StepContent::Operation(_));
            let good = reply.steps.iter().filter(|step| good(&step.asks)).count();
            assert_eq!(good, in_order, "{text}");
            assert_eq!(reply.steps.last().unwrap().ends, ends, "{text}");
        }
    }

    #[test]
    fn what_nearly_closes_a_block_is_quoted() {
        for nearly in ["x[/CREATE_FILE end=\"T\"]", "[/CREATE_FILE end=\"T\"] y"] {
            let text =
                format!("[CREATE_FILE path=\"a\" end=\"T\"]\nT T\n{nearly}\nT\n[/CREATE_FILE]\n");
            let StepContent::Invalid(invalid) = &parse(&text).steps[0].asks else {
                panic!("{nearly}")
            };
            assert_eq!(invalid.mistake, Mistake::CutOff);
            let told = format!("`{nearly}` on line 3 does not close it");
            assert!(invalid.reason.contains(&told), "{}", invalid.reason);
        }
    }
}
