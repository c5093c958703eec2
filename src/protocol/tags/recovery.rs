//! What is no block in order: closing tags that are left over, lines that look like tags, results that
//! a reply made up, the line that says which outbox it answers, and texts that are no reply.

use super::attributes::{self, Opening, brief};
use super::block::{DONE_IF_OK, refused};
use super::catalogue::COMMANDS;
use super::ends::close_it;
use super::lexer::{self, Certainty, Decoration, Token, TokenKind};
use super::parser::{Item, ItemKind, NOTES, Parser};
use super::spans::tags_were;
use crate::protocol::{Address, Asks, Kind, Mistake, Step, Warning, WarningSort};

const BEGINS_ITS_LINE: &str = "a command begins its line with its tag, with nothing before it";

impl Parser<'_> {
    /// A closing tag for which there is no open block.
    pub(super) fn left_over(&mut self, token: &Token) {
        let command = token.command();
        if command.closing.is_none() {
            return;
        }
        let (line, shown) = (self.number(token.line), self.shown(token.at));
        let by_word = token.kind == TokenKind::CloseByWord;
        // Any block of its kind may be the one that goes on up to it.
        if let Some(first) = self.items.iter().position(|item| item.command == token.command) {
            let item = self.items.swap_remove(first);
            self.items.truncate(first);
            let (block, has_word) = match item.kind {
                ItemKind::Block(found) => (found.token, found.word.is_some()),
                _ => (Token { line: item.origin, at: item.origin, ..*token }, false),
            };
            let why = format!("on line {line} a `{shown}` is left over");
            return self.end_unclear(&block, &why, has_word || by_word);
        }
        let count = self.items.iter().filter(|item| is_step(item)).count();
        // Decorated it is words about the protocol; and before the end of a summary there are commands
        // that are meant.
        let is_words = if by_word {
            token.decoration.exceeds(Decoration::default())
        } else {
            !token.is_plain() || command.kind == Kind::Done
        };
        if count > 0 && is_words {
            let told = format!("the `{shown}` on line {line} closes nothing and was ignored");
            return self.note(token.line, Warning::new(WarningSort::StrayClosing, told));
        }
        // What stands before may be in its body.
        self.held |= self.items.iter().any(Item::may_be_missed);
        self.items.retain(|item| matches!(item.kind, ItemKind::Note(_)));
        self.items.truncate(NOTES);
        let before = match count {
            0 => "it was not carried out".to_owned(),
            1 => "neither it nor the block before it was carried out".to_owned(),
            _ => format!("neither it nor the {count} blocks before it were carried out"),
        };
        let after = if by_word { ", nor was anything after it" } else { "" };
        let mut told = format!(
            "Line {line}: `{shown}` closes a block whose opening tag is missing or does not begin its line; {before}{after}. Correct form: {}",
            command.form
        );
        if !by_word {
            let step = refused(command, line, Mistake::OpeningMissing, told);
            return self.push(token.line, None, ItemKind::Step(step));
        }
        told.push_str(&format!(
            "; where a body is to contain such a line, {}",
            close_it(command, true)
        ));
        // Its word says that a body holds tags: what follows may be of that, too.
        self.end_reply(token, Mistake::OpeningMissing, told);
    }

    /// A line that is written like a tag and is none. What it encloses is not executed, and where nothing
    /// closes one that would have a body, nothing after it is.
    pub(super) fn mistaken(&mut self, token: &Token, closes: bool, certainty: Certainty) -> bool {
        if closes {
            return false;
        }
        let is_bare = !self.text[token.at..].starts_with(['[', '<', '&', '［', '【']);
        if is_bare && !token.is_plain() {
            let why = "a command is a tag in square brackets, alone on its line";
            self.looks_like_tag(token, why);
            return false;
        }
        let end = self.line_end(token.at);
        let name = self.text[token.at..token.name_end].trim_start_matches('[');
        let closing = self.text[token.name_end..end].rfind("[/").map(|n| token.name_end + n);
        let closing = closing.and_then(|at| lexer::lex(self.text, at, end)).filter(is_closing);
        let closes_itself = closing.is_some_and(|end| match token.command {
            Some(_) => end.command == token.command,
            None => self.text[end.at..end.name_end].ends_with(name),
        });
        let (tags, last_end) = self.index().of_name(self.text, token);
        if certainty == Certainty::IfClosed && last_end <= token.at {
            return false;
        }
        let next = tags.first().copied();
        let is_named = token.command.is_none();
        let has_body = if is_named { !closes_itself } else { token.command().closing.is_some() };
        let end = if is_named {
            // Without one they are not looked through.
            let tags = if last_end > token.at { tags } else { &[] };
            tags.iter().find(|tag| is_closing(tag)).copied()
        } else {
            next.filter(is_closing)
        };
        let mut ends = false;
        if let Some(end) = end.filter(|_| has_body) {
            ends = end.decoration.exceeds(token.decoration);
            if !ends {
                let (from, to) = (self.next_line(token.at), self.next_line(end.at));
                self.skip(from..to);
            }
        } else if has_body && !is_named && !closes_itself {
            ends = true;
            self.unclosed |= next.is_none();
        }
        let (number, shown) = (self.number(token.line), self.shown(token.at));
        let meant = if is_named { lexer::meant(name) } else { Some(token.command()) };
        let after = if ends { ", and neither was anything after it" } else { "" };
        let told =
            format!("Line {number}: `{shown}` is no command, so it was not carried out{after};");
        let step = match meant {
            Some(command) => {
                let is_if = command.kind == Kind::Done && name.starts_with(command.name);
                let form = if is_if { DONE_IF_OK } else { command.form };
                let told =
                    format!("{told} perhaps {} is meant. Correct form: {form}", command.name);
                refused(command, number, Mistake::LooksLikeTag, told)
            }
            None => {
                let commands = COMMANDS.iter().filter(|command| command.kind != Kind::Reply);
                let names: Vec<&str> = commands.map(|command| command.name).collect();
                let told = format!("{told} the commands are {}, and no others", names.join(", "));
                Step::refused(number, Mistake::LooksLikeTag, told)
            }
        };
        if ends {
            self.end_with(step, token.line, None);
        } else {
            self.push(token.line, None, ItemKind::Step(step));
        }
        true
    }

    /// A result as an outbox tells it, with what it shows: what stands there is no command.
    pub(super) fn result(&mut self, token: &Token, end: usize) {
        let begin = (end + 1).min(self.text.len());
        let below = begin + shown_below(&self.text[begin..], &self.text[token.line..token.at]);
        let (line, mut told) = (self.number(token.line), brief(&self.text[token.at..end]));
        told = format!(
            "line {line} `{told}` was ignored: results are written by the program that carries out the commands"
        );
        let (mut tags, mut at) = (0, begin);
        while at < below {
            let end = self.line_end(at);
            let tag = lexer::lex(self.text, at, end);
            if let Some(tag) = tag.filter(|tag| tag.kind == TokenKind::Open) {
                tags += 1;
                self.holds(&tag);
            }
            at = end + 1;
        }
        if tags > 0 {
            told.push_str(&format!("; {} ignored with it, as what it shows", tags_were(tags)));
        }
        self.skip(begin..below.max(begin));
        self.note(token.line, Warning::new(WarningSort::InventedResult, told));
    }

    /// What is no token: the end of an outbox's section, a file that is shown, a tag behind something.
    pub(super) fn prose(&mut self, at: usize, end: usize) {
        if self.section(at, end) || self.spans.body > at {
            return;
        }
        let line = &self.text[at..end];
        if line.contains("\"operations\"") {
            self.push(at, None, ItemKind::Message);
        }
        if line.contains("=== ") && is_of_outbox(line) && self.spans.is_empty() {
            return self.outbox(at);
        }
        if let Some(token) = self.tag_within(at, end) {
            if token.command().kind == Kind::Reply {
                if self.spans.is_empty() {
                    let rest = &self.text[token.name_end..end];
                    let tag =
                        attributes::read(token.command(), rest, &mut Decoration::default()).ok();
                    let after = tag.as_ref().map_or("", |tag| tag.after);
                    let after = if is_closed(after) { "" } else { after };
                    self.addressed(&token, tag, after, true);
                }
                return;
            }
            self.looks_like_tag(&token, BEGINS_ITS_LINE);
        }
    }

    /// A whole tag on a line that does not begin with it, and that ends with it.
    fn tag_within(&self, at: usize, end: usize) -> Option<Token> {
        // Each costs the rest of the line.
        const MOST: usize = 4;
        let line = &self.text[at..end];
        let is_capital =
            |(n, _): &(usize, &str)| line.as_bytes().get(n + 1).is_some_and(u8::is_ascii_uppercase);
        line.match_indices('[').filter(is_capital).take(MOST).find_map(|(n, _)| {
            let mut token = lexer::lex(self.text, at + n, end)?;
            let rest = &self.text[token.name_end..end];
            let (tag, after) = rest.split_at(lexer::end_of_tag(rest)?);
            let before = line[..n].trim_end_matches(|c: char| "*_`~\"'“(<>$|".contains(c));
            // In a sentence it is words.
            let sign = line[..n].trim_end().chars().next_back();
            let is_said = sign.is_some_and(|c| c.is_alphanumeric() || c == ',');
            let is_reply = token.command().kind == Kind::Reply && !is_said;
            let does = !matches!(token.command().kind, Kind::Done | Kind::Message);
            let is_bare = does && before.ends_with(char::is_whitespace) && tag == "]";
            let is_whole = tag.contains('=') || is_bare;
            let is_last = is_closed(after)
                || is_reply
                || after.trim_start().starts_with('[') && token.command().kind == Kind::Reply;
            (token.line, token.alone) = (at, true);
            token.decoration.add(Decoration::EMPHASIS);
            let is_tag = token.kind == TokenKind::Open && token.at == at + n;
            (is_tag && is_whole && is_last).then_some(token)
        })
    }

    /// Something that only an outbox has: this is no reply.
    pub(super) fn outbox(&mut self, at: usize) {
        let (line, marker) = (self.number(at), self.shown(at));
        let told = format!(
            "Nothing was carried out: line {line} is `{marker}`, so this is the message to the model, or the whole page of the chat, and its examples are no commands. Save the model's reply alone; a reply holds no such line outside of its commands"
        );
        self.refuse_all(Mistake::Outbox, told, at);
        self.answers = None;
    }

    /// The whole text is no reply, or nobody can say what of it is.
    fn refuse_all(&mut self, mistake: Mistake, told: String, at: usize) {
        let number = self.number(at);
        self.items.clear();
        self.at = self.text.len();
        self.spans.add(0..self.at);
        self.push(at, None, ItemKind::Step(Step::refused(number, mistake, told)));
    }

    /// The line that says which outbox the reply answers; `tag` is None where it cannot be read, `after`
    /// what stands behind it: a tag there is read as one on a line of its own.
    pub(super) fn addressed(
        &mut self,
        token: &Token,
        tag: Option<Opening<'_>>,
        after: &str,
        is_led: bool,
    ) {
        if tag.is_none() && self.is_cut(token) {
            return;
        }
        let (number, shown) = (self.number(token.line), self.shown(token.at));
        let end = self.line_end(token.at);
        let rest = &self.text[token.name_end..end];
        let tag_end = lexer::end_of_tag(rest).unwrap_or(rest.len());
        let tag_end = tag.as_ref().map_or(tag_end, |tag| rest.len() - tag.after.len());
        let behind = token.name_end + tag_end;
        let closing = self.text[behind..end].strip_prefix("[/REPLY]");
        let behind = closing.map_or(behind, |behind| end - behind.len());
        let after = after.strip_prefix("[/REPLY]").unwrap_or(after).trim();
        let decorates = |c: char| c.is_whitespace() || "*_`~:;,.-–—".contains(c);
        let next = lexer::lex(self.text, behind, end).filter(|next| next.kind == TokenKind::Open);
        let names_one =
            attributes::pairs(rest).0.iter().any(|(key, _)| key.eq_ignore_ascii_case("session"));
        let Some(found) = tag.and_then(|tag| address(&tag.values)) else {
            let is_whole = token.alone || !rest.contains(']');
            if names_one && is_whole && token.quote == 0 {
                let told = format!(
                    "Nothing was carried out: line {number} `{shown}` cannot be read, so which message the reply answers is not known. Put that line first, as the newest message gives it, on one line and with nothing around it: [REPLY session=\"a1b2c3d4\" sequence=\"1\" key=\"…\"]; send the whole reply again"
                );
                return self.refuse_all(Mistake::ReplyLineUnreadable, told, token.line);
            }
            // Decorated it is a word, or a button of a page.
            if token.is_plain() {
                let told = format!(
                    "line {number} `{shown}` could not be read and was ignored; the form is [REPLY session=\"a1b2c3d4\" sequence=\"1\"], as the newest message gives it"
                );
                self.note(token.line, Warning::new(WarningSort::ReplyLineUnreadable, told));
            }
            match next {
                Some(next) if is_led => self.looks_like_tag(&next, BEGINS_ITS_LINE),
                _ if !is_led => self.at = behind,
                _ => {}
            }
            return;
        };
        if token.quote > 0 && !after.chars().all(decorates) {
            return self.looks_like_tag(
                token,
                "the line that says which message a reply answers has no words behind it",
            );
        }
        if self.answers.as_ref().is_some_and(|other| *other != found) {
            let told = format!(
                "Nothing was carried out: line {number} `{shown}` and a line before it say that the reply answers two different messages. Send one reply to the newest message, with the [REPLY …] line that it gives"
            );
            self.answers = None;
            return self.refuse_all(Mistake::ReplyLinesDiffer, told, token.line);
        }
        self.answers = Some(found);
        if let Some(first) = self.items.iter().find(|item| is_command(item)).map(|item| item.origin)
        {
            let (line, tag) = (self.number(first), self.shown(first));
            let told = format!(
                "Nothing was carried out: line {number} `{shown}` stands behind a command, `{tag}` on line {line}, so what is before it may be an example, or these are two replies. Send one reply, with the [REPLY …] line once, before all commands"
            );
            // Where it is for another message, it is held all the same.
            return self.refuse_all(Mistake::ReplyLineLate, told, token.line);
        }
        match next {
            Some(next) if is_led => self.looks_like_tag(&next, BEGINS_ITS_LINE),
            Some(_) => {
                let shown = brief(after);
                let told = format!(
                    "line {number}: `{shown}` behind the [REPLY …] line was read as a line of its own"
                );
                self.note(token.line, Warning::new(WarningSort::TagRepaired, told));
                self.at = behind;
            }
            None if after.is_empty() => {}
            None => {
                let told = format!("`{}` after the tag on line {number} was ignored", brief(after));
                self.note(token.line, Warning::new(WarningSort::TextAfterTag, told));
                if !is_led {
                    self.at = behind;
                }
            }
        }
    }
}

fn is_step(item: &Item<'_>) -> bool {
    matches!(item.kind, ItemKind::Block(_) | ItemKind::Step(_))
}

/// Whether an item is more than the refusal of thoughts before it.
pub(super) fn is_command(item: &Item<'_>) -> bool {
    match &item.kind {
        ItemKind::Step(Step { asks: Asks::Invalid(invalid), .. }) => {
            invalid.sort != Mistake::ThoughtsUnopened
        }
        ItemKind::Block(_) | ItemKind::Step(_) => true,
        ItemKind::Tag { .. } | ItemKind::Message | ItemKind::Note(_) => false,
    }
}

fn is_closing(token: &Token) -> bool {
    match token.kind {
        TokenKind::Close | TokenKind::Mistaken { closes: true, .. } => true,
        TokenKind::Open
        | TokenKind::CloseByWord
        | TokenKind::Result
        | TokenKind::Mistaken { .. } => false,
    }
}

fn address(values: &[Option<String>]) -> Option<Address> {
    let [session, sequence, key] = values else { return None };
    let session = session.as_deref()?.trim().to_ascii_lowercase();
    let sequence = sequence.as_deref()?.trim().parse().ok()?;
    let key = key.as_deref().map(str::trim).filter(|key| !key.is_empty()).map(str::to_owned);
    (!session.is_empty() && sequence > 0).then_some(Address { session, sequence, key })
}

/// Whether nothing stands behind a tag but what closes something around it, or ends its sentence.
fn is_closed(after: &str) -> bool {
    let closes = |c: char| c.is_whitespace() || "*_`~\"'”’»›)$\\.,;".contains(c);
    let rest = after.trim_start_matches(closes);
    if rest.starts_with('|') {
        return true;
    }
    match rest.strip_prefix("</").and_then(|inner| inner.split_once('>')) {
        Some((_, behind)) => behind.trim_start_matches(closes).is_empty(),
        None => rest.is_empty(),
    }
}

/// Whether a line is a section marker of an outbox, or stands around a part of one.
pub(super) fn is_of_outbox(line: &str) -> bool {
    const SECTIONS: [&str; 4] =
        ["=== HEADER ===", "=== PROTOCOL ===", "=== CONTEXT ===", "=== PROMPT ==="];
    let Some(lead) = lexer::lead(line) else { return false };
    let shown = lexer::without_suffix(&line[lead.length..], lead.decoration);
    let part = ["=== PART ", "=== END OF PART "].iter().find_map(|sign| shown.strip_prefix(sign));
    let number = |text: &str| {
        let rest = text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        Some(text.len() - rest).filter(|length| (1..=9).contains(length))
    };
    let is_part = part.is_some_and(|part| {
        let of = number(part).and_then(|length| part[length..].strip_prefix(" of "));
        of.and_then(number).is_some() && shown.ends_with(" ===")
    });
    is_part || SECTIONS.contains(&shown)
}

/// How much of a text belongs to the result above it, before whose sign `lead` stands: lines that are
/// indented further, as an outbox shows output, and empty ones between them. A page may have taken the
/// indentation away: below `Output:` all belongs to it up to the first empty line.
fn shown_below(text: &str, lead: &str) -> usize {
    // How far a line is indented, in columns, behind the signs of a quotation.
    let indent = |line: &str| -> usize {
        let inner = line.trim_start_matches([' ', '\t', '>']);
        let lead = &line[..line.len() - inner.len()];
        let lead = lead
            .rsplit_once('>')
            .map_or(lead, |(_, behind)| behind.strip_prefix(' ').unwrap_or(behind));
        lead.bytes().map(|byte| if byte == b'\t' { 4 } else { 1 }).sum()
    };
    let (mut end, mut at, mut is_flat, mut shows) = (0, 0, true, false);
    for line in text.split_inclusive('\n') {
        at += line.len();
        let inner = line.trim_start_matches(['>', ' ', '\t']);
        if inner.trim().is_empty() {
            is_flat = false;
            continue;
        }
        let is_within = indent(line) >= indent(lead) + 2;
        shows |= is_flat && !is_within && inner.starts_with("Output:");
        if !(is_within || is_flat && shows) {
            break;
        }
        end = at;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::tags::parse;

    #[test]
    fn what_a_result_shows_is_indented_or_follows_its_output() {
        for (text, lead, belongs) in [
            ("  Output: x\n  [DONE]\n\n  y\nz\n", "", "  Output: x\n  [DONE]\n\n  y\n"),
            ("  a\n\n\n[DONE]\n", "", "  a\n"),
            ("[DONE]\n", "", ""),
            (" [DONE]\n", "", ""),
            ("  [DONE]\n", "  ", ""),
            ("    [DONE]\n  x\n", "  ", "    [DONE]\n"),
            ("\t[DONE]\n", "", "\t[DONE]\n"),
            (">   a\n> b\n", "> ", ">   a\n"),
            (">   a\n>\n>   b\nc\n", "> ", ">   a\n>\n>   b\n"),
            ("Output: x\n[DONE]\n\n[DONE]\n", "", "Output: x\n[DONE]\n"),
            ("Output:\n```\n[DONE]\n```\n\nx", "", "Output:\n```\n[DONE]\n```\n"),
            ("  Warning: w\nOutput: x\ny\n\nz", "", "  Warning: w\nOutput: x\ny\n"),
            ("\nOutput: x\n", "", ""),
            ("  Output: x\n[DONE]\n", "", "  Output: x\n"),
        ] {
            assert_eq!(&text[..shown_below(text, lead)], belongs, "{text}");
        }
    }

    #[test]
    fn the_line_is_read_before_the_first_command() {
        let run = "[RUN_COMMAND]\nls\n[/RUN_COMMAND]\n";
        let line = "[REPLY session=\"a1b2c3d4\" sequence=\"3\" key=\"k\"]\n";
        for text in [format!("{line}{run}"), format!("Hello.\n{line}{line}{run}")] {
            let reply = parse(&text);
            let answers = reply.answers.unwrap();
            assert_eq!((answers.session.as_str(), answers.sequence), ("a1b2c3d4", 3));
            assert_eq!(answers.key.as_deref(), Some("k"));
            assert_eq!(reply.steps.len(), 1);
            assert_eq!(reply.steps[0].kind(), Kind::Run);
            assert!(reply.steps[0].warnings.is_empty());
        }
        // Again behind a command it refuses the reply.
        let reply = parse(&format!("{line}{run}{line}"));
        let Asks::Invalid(invalid) = &reply.steps[0].asks else { panic!() };
        assert_eq!((reply.steps.len(), invalid.sort), (1, Mistake::ReplyLineLate));
        let within = format!("[MESSAGE]\n{line}[/MESSAGE]\n");
        assert_eq!(parse(&within).answers, None);
    }

    #[test]
    fn two_that_differ_refuse_the_reply_and_what_is_no_such_line_is_ignored() {
        let run = "[RUN_COMMAND]\nls\n[/RUN_COMMAND]\n";
        let of = |n: u32| format!("[REPLY session=\"a1b2c3d4\" sequence=\"{n}\"]\n");
        let reply = parse(&format!("{}Or:\n{}{run}", of(1), of(2)));
        assert_eq!(reply.steps.len(), 1);
        let Asks::Invalid(invalid) = &reply.steps[0].asks else { panic!() };
        assert!(invalid.reason.contains("two different messages"), "{}", invalid.reason);

        // Behind a command it refuses the reply, too: what stands before may be an example.
        for (before, answered, sort) in [
            (of(1), None, Mistake::ReplyLinesDiffer),
            (String::new(), Some(2), Mistake::ReplyLineLate),
        ] {
            let reply = parse(&format!("{before}{run}As I said:\n{}{run}", of(2)));
            assert_eq!(reply.answers.map(|answers| answers.sequence), answered);
            assert_eq!(reply.steps.len(), 1);
            let Asks::Invalid(invalid) = &reply.steps[0].asks else { panic!() };
            assert_eq!(invalid.sort, sort);
        }
        for (button, warnings) in
            [("[Reply]\n", 0), ("[reply all]\n", 0), ("[REPLY sequence=\"x\"]\n", 1)]
        {
            let reply = parse(&format!("{button}{run}"));
            assert_eq!((reply.steps.len(), reply.answers), (1, None), "{button}");
            assert_eq!(reply.steps[0].warnings.len(), warnings, "{button}");
        }
    }
}
