//! Handles everything that is not a proper block: stray closing tags, lines that look like tags, results that a reply
//! invented, the [REPLY …] line, and texts that are not a reply.

use memchr::memchr3;

use super::attributes::{self, brief};
use super::block::refused;
use super::catalogue::{COMMANDS, DONE_IF_OK};
use super::ends::advise_closing;
use super::lexer::{self, Decoration, Token, TokenKind};
use super::parser::{ItemKind, Parser, ReplyItem};
use crate::protocol::{Kind, Mistake, ReplyAddress, Step, Warning, WarningKind};
use crate::text::count;

const BEGINS_ITS_LINE: &str = "a command begins its line with its tag, with nothing before it";

impl Parser<'_> {
    /// Handles a closing tag for which no block is open.
    pub(super) fn stray_closing_tag(&mut self, token: &Token, by_word: bool) {
        let command = token.command();
        if command.closing.is_none() {
            return;
        }
        let (line, shown) = (self.line_number_at(token.line), self.quoted_line(token.line));
        if let Some(first) = self.first_item_of(token) {
            let why = format!("on line {line} a `{shown}` is left over");
            return self.refuse_from_first(first, &why);
        }
        // A decorated tag is text about the protocol. The commands before a stray closing tag of a summary still count.
        let is_words = if by_word {
            token.decoration.exceeds(Decoration::default())
        } else {
            !token.is_plain() || command.kind == Kind::Done
        };
        if is_words && self.items.iter().rev().any(ReplyItem::is_step) {
            let text = format!("the `{shown}` on line {line} closes nothing and was ignored");
            return self.note(token.line, Warning::new(WarningKind::StrayClosing, text));
        }
        // The items before this tag may be in the body that it closes.
        self.missed_command |= self.items.iter().any(ReplyItem::may_be_missed);
        self.items.retain(|item| !item.is_step());
        // The text after this tag may belong to that body, too.
        let text = format!(
            "Line {line}: `{shown}` closes a block whose opening tag is missing or does not begin its line, so neither it nor anything before or after it was carried out. Correct form: {}; {}",
            command.form,
            advise_closing(command)
        );
        self.end_reply(token, Mistake::OpeningMissing, text);
    }

    /// Refuses the first block of a kind and everything after it, because any of it may extend to a stray closing tag.
    pub(super) fn refuse_from_first(&mut self, first: usize, why: &str) {
        let item = self.items.swap_remove(first);
        self.items.truncate(first);
        let block = match item.kind {
            ItemKind::Block(found) => found.token,
            _ => Token::new(item.origin, item.origin, item.command),
        };
        self.refuse_unclear_end(&block, why);
    }

    /// The first item that has the same command as a tag.
    pub(super) fn first_item_of(&mut self, token: &Token) -> Option<usize> {
        let kind = token.command?.kind;
        let is_same = |item: &ReplyItem<'_>| item.command == token.command;
        let first =
            self.seen_kinds.contains(&kind).then(|| self.items.iter().position(is_same)).flatten();
        if first.is_none() {
            self.seen_kinds.remove(&kind);
        }
        first
    }

    /// Handles a line that looks like a tag but is not one. The lines that it encloses are not executed. If a tag with
    /// this name would have a body and nothing closes it, nothing after the line is executed.
    pub(super) fn lookalike(&mut self, token: &Token, if_closed: bool) -> bool {
        let is_bare = !self.text[token.at..].starts_with(['[', '<', '&', '［', '【']);
        if is_bare && !token.is_plain() {
            self.report_lookalike(
                token,
                "a command is a tag in square brackets, alone on its line",
            );
            return false;
        }
        let name = self.text[token.at..token.name_end].trim_start_matches('[');
        let rest = &self.text[token.name_end..self.end];
        let closes_itself = rest.rfind("[/").is_some_and(|at| {
            let end = lexer::lex(self.text, token.name_end + at, self.end).filter(Token::closes);
            end.is_some_and(|end| match token.command {
                Some(_) => end.command == token.command,
                None => self.text[end.at..end.name_end].ends_with(name),
            })
        });
        let next = self.next_of_lookalike(token);
        let end = next.filter(Token::closes);
        if if_closed && end.is_none() {
            return false;
        }
        let has_body = token.command.is_none_or(|command| command.closing.is_some());
        let mut ends = false;
        if let Some(end) = end.filter(|_| has_body && !closes_itself) {
            ends = end.decoration.exceeds(token.decoration);
            if !ends {
                self.skip(self.next_line(token.at)..self.next_line(end.at));
            }
        } else if has_body && token.command.is_some() && !closes_itself {
            ends = true;
            self.unclosed |= next.is_none();
        }
        let (number, shown) = (self.line_number_at(token.line), self.quoted_line(token.at));
        let after = if ends { ", and neither was anything after it" } else { "" };
        let text =
            format!("Line {number}: `{shown}` is not a command, so it was not carried out{after};");
        let meant = token.command.or_else(|| lexer::intended_command(name));
        let step = if let Some(command) = meant {
            let is_if = command.kind == Kind::Done && name.starts_with(command.name);
            let form = if is_if { DONE_IF_OK } else { command.form };
            let text = format!("{text} perhaps {} is meant. Correct form: {form}", command.name);
            refused(command, number, Mistake::LooksLikeTag, text)
        } else {
            let commands = COMMANDS.iter().filter(|command| command.kind != Kind::Reply);
            let names: Vec<&str> = commands.map(|command| command.name).collect();
            let text = format!("{text} the commands are {}, and no others", names.join(", "));
            Step::refused(number, Mistake::LooksLikeTag, text)
        };
        if ends {
            self.end_reply_with(step, token.line, None);
        } else {
            self.push(token.line, None, ItemKind::Step(Box::new(step)));
        }
        true
    }

    /// Skips a result in the form that outboxes use, with its output. Nothing in the output is a command.
    pub(super) fn result(&mut self, token: &Token) {
        let begin = self.next_line(self.end);
        let below = begin + shown_below(&self.text[begin..], &self.text[token.line..token.at]);
        let (line, shown) =
            (self.line_number_at(token.line), brief(&self.text[token.at..self.end]));
        let mut text = format!(
            "line {line} `{shown}` was ignored: results are written by the program that carries out the commands"
        );
        let mut tags = 0;
        let is_tag = |token: &Token| token.kind == TokenKind::Open;
        for tag in lexer::tokens(self.text, begin..below).filter(is_tag) {
            tags += 1;
            self.missed_command |= tag.may_be_missed();
        }
        if tags > 0 {
            text.push_str(&format!("; ignored with it: {}", count(tags, "tag")));
        }
        self.skip(begin..below);
        self.note(token.line, Warning::new(WarningKind::InventedResult, text));
    }

    /// Reads prose. It may contain a marker of an outbox, a tag that was cut off, or a tag after other text.
    pub(super) fn prose(&mut self, at: usize, end: usize) {
        let line = &self.text[at..end];
        // Most prose contains none of the searched characters.
        if memchr3(b'"', b'[', b'=', line.as_bytes()).is_none() {
            return;
        }
        if line.contains("\"operations\"") {
            self.count_message();
        }
        if !self.spans.is_empty() || self.cut_name(at, end) {
            return;
        }
        if line.contains("=== ") && is_of_outbox(line) {
            return self.refuse_pasted_outbox(at);
        }
        let Some(token) = self.tag_within(at, end) else { return };
        if token.command().kind == Kind::Reply {
            self.read_reply_line(&token, false);
        } else {
            self.report_lookalike(&token, BEGINS_ITS_LINE);
        }
    }

    /// A complete tag at the end of a line that begins with other text.
    fn tag_within(&self, at: usize, end: usize) -> Option<Token> {
        // The most attempts, because each reads the rest of the line.
        const MOST: usize = 4;
        let line = &self.text[at..end];
        let is_capital =
            |(n, _): &(usize, &str)| line.as_bytes().get(n + 1).is_some_and(u8::is_ascii_uppercase);
        line.match_indices('[').filter(is_capital).take(MOST).find_map(|(n, _)| {
            let mut token = lexer::lex(self.text, at + n, end)?;
            let rest = &self.text[token.name_end..end];
            let (tag, after) = rest.split_at(lexer::end_of_tag(rest)?);
            let before = line[..n].trim_end_matches(|c: char| "*_`~\"'“(<>$|".contains(c));
            // In a sentence, the tag is ordinary text.
            let sign = line[..n].trim_end().chars().next_back();
            let is_said = sign.is_some_and(|c| c.is_alphanumeric() || c == ',');
            let is_reply = token.command().kind == Kind::Reply;
            let is_bare =
                token.may_be_missed() && before.ends_with(char::is_whitespace) && tag == "]";
            let is_last =
                is_closed(after) || is_reply && (!is_said || after.trim_start().starts_with('['));
            let is_tag = token.kind == TokenKind::Open && token.at == at + n;
            (token.line, token.alone) = (at, true);
            (is_tag && (tag.contains('=') || is_bare) && is_last).then_some(token)
        })
    }

    /// Refuses the whole text, because it contains something that only an outbox contains.
    pub(super) fn refuse_pasted_outbox(&mut self, at: usize) {
        let (line, marker) = (self.line_number_at(at), self.quoted_line(at));
        let text = format!(
            "Nothing was carried out: line {line} is `{marker}`, so this is the message to the model, or the whole page of the chat, and its examples are not commands. Save only the model's reply; outside its commands, a reply contains no such line"
        );
        self.refuse_all(Mistake::Outbox, text, at);
        self.answers = None;
    }

    /// Refuses the whole reply.
    pub(super) fn refuse_all(&mut self, mistake: Mistake, text: String, at: usize) {
        let number = self.line_number_at(at);
        self.items.clear();
        self.spans.clear();
        self.at = self.text.len();
        self.add_body(0..self.at);
        self.push(at, None, ItemKind::Step(Box::new(Step::refused(number, mistake, text))));
    }

    /// Reads the [REPLY …] line, which names the outbox that the reply answers. `begins` is whether the tag begins its
    /// line. Returns whether it is such a line. The text after the tag is read as a line of its own.
    pub(super) fn read_reply_line(&mut self, token: &Token, begins: bool) -> bool {
        let rest = &self.text[token.name_end..self.end];
        let tag = attributes::read(token.command(), rest, &mut token.decoration.clone());
        if tag.is_err() && self.is_cut(token) {
            return true;
        }
        let (number, shown) = (self.line_number_at(token.line), self.quoted_line(token.line));
        let tag = tag.ok().and_then(|tag| Some((address(&tag.values)?, tag.after)));
        let Some((address, after)) = tag else {
            let pairs = attributes::pairs(rest).0;
            let names_one = pairs.iter().any(|(key, _)| key.eq_ignore_ascii_case("session"));
            if names_one && token.quote == 0 && (token.alone || !rest.contains(']')) {
                let text = format!(
                    "Nothing was carried out: line {number} `{shown}` cannot be read, so which message the reply answers is not known. Put that line first, as the newest message gives it, on one line and with nothing around it: [REPLY session=\"a1b2c3d4\" sequence=\"1\" key=\"…\"]; send the whole reply again"
                );
                self.refuse_all(Mistake::ReplyLineUnreadable, text, token.line);
                return true;
            }
            // A decorated tag is a word, or a button of a page.
            if token.is_plain() && begins {
                let text = format!(
                    "line {number} `{shown}` could not be read and was ignored; the form is [REPLY session=\"a1b2c3d4\" sequence=\"1\"], as the newest message gives it"
                );
                self.note(token.line, Warning::new(WarningKind::ReplyLineUnreadable, text));
            }
            let behind = token.name_end + lexer::end_of_tag(rest).unwrap_or(0);
            if begins && !self.markers(behind) {
                self.prose(behind, self.end);
            }
            return begins;
        };
        let mut behind = self.end - after.len();
        let closing = "[/REPLY]";
        behind += if after.starts_with(closing) { closing.len() } else { 0 };
        let after = self.text[behind..self.end].trim();
        let decorates = |c: char| c.is_whitespace() || "*_`~:;,.-–—".contains(c);
        if token.quote > 0 && !after.chars().all(decorates) {
            let why = "the line that says which message a reply answers has no words behind it";
            self.report_lookalike(token, why);
            return true;
        }
        if self.answers.as_ref().is_some_and(|other| *other != address) {
            let text = format!(
                "Nothing was carried out: line {number} `{shown}` and a line before it say that the reply answers two different messages. Send one reply to the newest message, with the [REPLY …] line that it gives"
            );
            self.answers = None;
            self.refuse_all(Mistake::ReplyLinesDiffer, text, token.line);
            return true;
        }
        // If the address is that of another outbox, the reply is held later.
        self.answers = Some(address);
        if let Some(first) = self.items.iter().find(|item| item.is_command()) {
            let origin = first.origin;
            let (line, tag) = (self.line_number_at(origin), self.quoted_line(origin));
            let text = format!(
                "Nothing was carried out: line {number} `{shown}` is behind a command, `{tag}` on line {line}, so what is before it may be an example, or these are two replies. Send one reply, with the [REPLY …] line once, before all commands"
            );
            self.refuse_all(Mistake::ReplyLineLate, text, token.line);
            return true;
        }
        let next =
            lexer::lex(self.text, behind, self.end).filter(|next| next.kind == TokenKind::Open);
        let is_decorated = after.chars().all(|c| c.is_whitespace() || "*_`~".contains(c));
        match next {
            Some(next) if !begins => self.report_lookalike(&next, BEGINS_ITS_LINE),
            _ if after.is_empty()
                || is_decorated && !token.is_plain()
                || !begins && is_closed(after) => {}
            _ => {
                let text =
                    format!("`{}` after the tag on line {number} is no part of it", brief(after));
                self.note(token.line, Warning::new(WarningKind::TextAfterTag, text));
            }
        }
        if begins && behind < self.end {
            self.at = behind;
        }
        true
    }
}

fn address(values: &[Option<String>]) -> Option<ReplyAddress> {
    let [session, sequence, key] = values else { return None };
    let session = session.as_deref()?.trim().to_ascii_lowercase();
    let sequence = sequence.as_deref()?.trim().parse().ok()?;
    let key = key.as_deref().map(str::trim).filter(|key| !key.is_empty()).map(str::to_owned);
    (!session.is_empty() && sequence > 0).then_some(ReplyAddress { session, sequence, key })
}

/// Whether the text after a tag only closes an enclosing pair of signs or ends a sentence.
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

/// Whether a line is a section marker of an outbox, or marks the beginning or end of a part of an outbox.
pub(super) fn is_of_outbox(line: &str) -> bool {
    const SECTIONS: [&str; 4] =
        ["=== HEADER ===", "=== PROTOCOL ===", "=== CONTEXT ===", "=== PROMPT ==="];
    let Some(lead) = lexer::leading_decoration(line) else { return false };
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

/// How many bytes of a text belong to the result above it. `lead` is the text before that result. Lines with more
/// indentation belong to it, as in an outbox, and so do empty lines between them. A page may have removed the
/// indentation, so everything after `Output:` up to the first empty line belongs to the result, too.
fn shown_below(text: &str, lead: &str) -> usize {
    let quotes = lead.matches('>').count();
    // The indentation of a line in columns, after as many `>` as there are before the result.
    let indent = |line: &str, is_blank: fn(char) -> bool| -> usize {
        let mut inner = line;
        for _ in 0..quotes {
            if let Some(behind) = inner.trim_start().strip_prefix('>') {
                inner = behind.strip_prefix(' ').unwrap_or(behind);
            }
        }
        let blanks = inner.chars().take_while(|c| is_blank(*c));
        blanks.map(|c| if c == '\t' { 4 } else { 1 }).sum()
    };
    // The width of other white space is unknown.
    let least = indent(lead, |c| matches!(c, ' ' | '\t')) + 2;
    let (mut end, mut at, mut is_flat, mut shows) = (0, 0, true, false);
    for line in text.split_inclusive('\n') {
        at += line.len();
        let inner = line.trim_start_matches(|c: char| c == '>' || c.is_whitespace());
        if inner.is_empty() {
            is_flat = false;
            continue;
        }
        let is_within = indent(line, char::is_whitespace) >= least;
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
    use crate::protocol::StepContent;
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
        // A second such line after a command refuses the reply.
        let reply = parse(&format!("{line}{run}{line}"));
        let StepContent::Invalid(invalid) = &reply.steps[0].asks else { panic!() };
        assert_eq!((reply.steps.len(), invalid.mistake), (1, Mistake::ReplyLineLate));
        let within = format!("[MESSAGE]\n{line}[/MESSAGE]\n");
        assert_eq!(parse(&within).answers, None);
    }

    #[test]
    fn two_that_differ_refuse_the_reply_and_what_is_no_such_line_is_ignored() {
        let run = "[RUN_COMMAND]\nls\n[/RUN_COMMAND]\n";
        let of = |n: u32| format!("[REPLY session=\"a1b2c3d4\" sequence=\"{n}\"]\n");
        let reply = parse(&format!("{}Or:\n{}{run}", of(1), of(2)));
        assert_eq!(reply.steps.len(), 1);
        let StepContent::Invalid(invalid) = &reply.steps[0].asks else { panic!() };
        assert!(invalid.reason.contains("two different messages"), "{}", invalid.reason);

        // Such a line after a command refuses the reply, too, because the commands before it may be an example.
        for (before, answered, sort) in [
            (of(1), None, Mistake::ReplyLinesDiffer),
            (String::new(), Some(2), Mistake::ReplyLineLate),
        ] {
            let reply = parse(&format!("{before}{run}As I said:\n{}{run}", of(2)));
            assert_eq!(reply.answers.map(|answers| answers.sequence), answered);
            assert_eq!(reply.steps.len(), 1);
            let StepContent::Invalid(invalid) = &reply.steps[0].asks else { panic!() };
            assert_eq!(invalid.mistake, sort);
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
