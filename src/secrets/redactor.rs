//! Redacts the texts of one outbox, and collects a report for the person.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::{
    CutEnds, MARK, Redacted, SecretFinding, SecretKind, SecretSnapshot, TextContext,
    is_secret_file, redact_part,
};
use crate::settings::{Secrets, SecretsMode};
use crate::text::{count, first_of, visible_line};

/// The most findings that are described. The others are counted.
const MAX_DESCRIBED: usize = 20;
/// The most line numbers that are listed for a finding.
const MAX_LINES: usize = 5;

/// Redacts the texts of an outbox according to the settings, and records the secrets that it found.
#[derive(Debug, Clone)]
pub struct Redactor {
    settings: Secrets,
    snapshot: SecretSnapshot,
    found: Vec<(FindingPlace, SecretKind, Vec<usize>)>,
    /// Files with lines that look like those of a private key.
    with_keys: BTreeSet<String>,
}

/// A line that contains a secret. Neither text has a line end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedactedLine {
    /// The line in the file.
    pub text: String,
    /// The line with the secret replaced.
    pub shown: String,
    kind: SecretKind,
}

/// Where a secret was found.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FindingPlace {
    File(String),
    Output(String),
    Name(String),
    /// Text that the person wrote.
    Words(&'static str),
}

impl Redactor {
    /// A redactor that has found nothing yet.
    pub fn new(settings: &Secrets) -> Self {
        Self::with_secrets_of(settings, [])
    }

    /// A redactor that also finds the secrets in these files (each a path with `/`, and its whole text), except for
    /// allowed files.
    pub fn with_secrets_of<'a>(
        settings: &Secrets,
        files: impl IntoIterator<Item = (&'a str, Cow<'a, str>)>,
    ) -> Self {
        let files = files.into_iter().filter(|(path, _)| !settings.allows(path));
        let (settings, snapshot) = (settings.clone(), SecretSnapshot::of(files));
        Self { settings, snapshot, found: Vec::new(), with_keys: BTreeSet::new() }
    }

    /// Redacts the whole content of a file (a relative path with `/`). The result has as many lines as the file, so
    /// shorten it afterwards.
    pub fn contents<'a>(&mut self, path: &str, text: &'a str) -> Cow<'a, str> {
        let Some(mut redacted) = self.redact_file(path, text) else { return Cow::Borrowed(text) };
        // Binary content, such as a key in DER, cannot be searched.
        let is_binary = text.contains(['\0', '\u{fffd}']);
        if is_binary && redacted.findings.is_empty() && is_secret_file(path) {
            let kind = SecretKind::SECRET_FILE;
            redacted.text = format!("{MARK}{kind}]{}", "\n".repeat(text.matches('\n').count()));
            redacted.findings.push(SecretFinding { kind, line: 1 });
        }
        self.keep(&FindingPlace::File(path.to_owned()), redacted, text)
    }

    /// Redacts lines of a file that cannot be read as a whole, from line `first` on. Possible parts of a private key or
    /// token are withheld as well, and more of them once the file is known to have a key. `path` is None for an unknown
    /// file.
    pub fn isolated_lines<'a>(
        &mut self,
        path: Option<&str>,
        first: usize,
        text: &'a str,
        cut: CutEnds,
    ) -> Cow<'a, str> {
        if path.is_some_and(|path| self.settings.allows(path)) {
            return Cow::Borrowed(text);
        }
        let has_key = path.is_some_and(|path| self.with_keys.contains(path));
        let snapshot = Some(&self.snapshot);
        let context = TextContext { file: path, isolated: Some(cut), snapshot, has_key };
        let mut redacted = redact_part(text, 0..text.len(), &context);
        if redacted.findings.iter().any(|finding| finding.kind == SecretKind::PRIVATE_KEY) {
            self.with_keys.extend(path.map(str::to_owned));
        }
        let more = first.saturating_sub(1);
        redacted.findings.iter_mut().for_each(|finding| finding.line += more);
        let unknown = || FindingPlace::Output("a result".to_owned());
        let place = path.map_or_else(unknown, |path| FindingPlace::File(path.to_owned()));
        self.keep(&place, redacted, text)
    }

    /// Redacts a whole file once, for [`Self::part`] and [`Self::changed`]; None for an allowed file.
    pub fn redact_file(&self, path: &str, text: &str) -> Option<Redacted> {
        (!self.settings.allows(path)).then(|| self.redact(text, Some(path)))
    }

    /// The lines `first` to `last` (from 1, inclusive) of a redacted file. Only findings in these lines are recorded.
    pub fn part(&mut self, path: &str, whole: &Redacted, first: usize, last: usize) -> String {
        let is_within = |finding: &&SecretFinding| (first..=last).contains(&finding.line);
        self.note(&FindingPlace::File(path.to_owned()), whole.findings.iter().filter(is_within));
        let lines = whole.text.split_inclusive('\n').skip(first.saturating_sub(1));
        lines.take((last + 1).saturating_sub(first)).collect()
    }

    /// The lines of a file that redaction changed, by line number.
    pub fn changed(text: &str, whole: &Redacted) -> BTreeMap<usize, RedactedLine> {
        let lines = (1..).zip(text.lines().zip(whole.text.lines()));
        let changed = lines.filter(|(_, (text, shown))| text != shown);
        let kinds = changed.filter_map(|(number, (text, shown))| {
            let found = whole.findings.partition_point(|finding| finding.line <= number);
            let SecretFinding { kind, .. } = whole.findings.get(found.saturating_sub(1))?;
            let (text, shown) = (text.to_owned(), shown.to_owned());
            Some((number, RedactedLine { text, shown, kind: *kind }))
        });
        kinds.collect()
    }

    /// Records that this line is shown, and returns whether it must be redacted.
    pub fn note_changed_line(&mut self, path: &str, number: usize, changed: &RedactedLine) -> bool {
        let finding = SecretFinding { kind: changed.kind, line: number };
        self.note(&FindingPlace::File(path.to_owned()), &[finding]);
        self.withholds()
    }

    /// Redacts a listing of files: one name per line, optionally followed by a remark in parentheses.
    pub fn listing<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        // Few listings contain secrets.
        if self.redact(text, None).findings.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut shown = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            let begin = line.len() - line.trim_start().len();
            let end = line.rfind(" (").unwrap_or(line.trim_end().len()).max(begin);
            shown.push_str(&line[..begin]);
            shown.push_str(&self.name(&line[begin..end]));
            shown.push_str(&line[end..]);
        }
        Cow::Owned(shown)
    }

    /// Redacts the output of an operation, perhaps about a file. `name` identifies the operation in the report.
    pub fn output<'a>(&mut self, name: &str, path: Option<&str>, text: &'a str) -> Cow<'a, str> {
        if path.is_some_and(|path| self.settings.allows(path)) {
            return Cow::Borrowed(text);
        }
        let redacted = self.redact(text, None);
        self.keep(&FindingPlace::Output(name.to_owned()), redacted, text)
    }

    /// Redacts a part of the output of a command, given the text before and after it.
    pub fn output_part(&mut self, command: &str, before: &str, text: &str, after: &str) -> String {
        let whole = [before, text, after].concat();
        let part = before.len()..before.len() + text.len();
        let context = TextContext { snapshot: Some(&self.snapshot), ..TextContext::default() };
        let redacted = redact_part(&whole, part, &context);
        self.keep(&FindingPlace::Output(command.to_owned()), redacted, text).into_owned()
    }

    /// Redacts the name of a file. The names of allowed files are shown.
    pub fn name<'a>(&mut self, path: &'a str) -> Cow<'a, str> {
        if self.settings.allows(path) {
            return Cow::Borrowed(path);
        }
        let redacted = self.redact(path, None);
        // The report must not contain the secret.
        self.keep(&FindingPlace::Name(redacted.text.clone()), redacted, path)
    }

    /// Records the secrets in text that the person wrote (`what` names it). Such text is shown unchanged.
    pub fn words(&mut self, what: &'static str, text: &str) {
        let redacted = self.redact(text, None);
        self.note(&FindingPlace::Words(what), &redacted.findings);
    }

    /// Whether secrets are withheld, or only reported.
    pub fn withholds(&self) -> bool {
        self.settings.mode == SecretsMode::Withhold
    }

    fn redact(&self, text: &str, file: Option<&str>) -> Redacted {
        let context =
            TextContext { file, snapshot: Some(&self.snapshot), ..TextContext::default() };
        redact_part(text, 0..text.len(), &context)
    }

    /// Records the findings, and returns the text to show.
    fn keep<'a>(
        &mut self,
        place: &FindingPlace,
        redacted: Redacted,
        text: &'a str,
    ) -> Cow<'a, str> {
        self.note(place, &redacted.findings);
        let is_changed = self.withholds() && redacted.text != text;
        if is_changed { Cow::Owned(redacted.text) } else { Cow::Borrowed(text) }
    }

    fn note<'f>(
        &mut self,
        place: &FindingPlace,
        findings: impl IntoIterator<Item = &'f SecretFinding>,
    ) {
        for SecretFinding { kind, line } in findings {
            let mut found = self.found.iter_mut().rev();
            match found.find(|(other, of, _)| other == place && of == kind) {
                Some((.., lines)) if lines.contains(line) => {}
                Some((.., lines)) => lines.push(*line),
                None => self.found.push((place.clone(), *kind, vec![*line])),
            }
        }
    }

    /// One sentence for each place and kind, in the order in which they were found.
    pub fn summaries(&self) -> Vec<String> {
        let described = self.found.iter().take(MAX_DESCRIBED);
        let mut told: Vec<String> =
            described.map(|(place, kind, lines)| self.describe(place, *kind, lines)).collect();
        let more = self.found.len().saturating_sub(MAX_DESCRIBED);
        if more > 0 {
            told.push(format!("{} secrets in {}", self.action(), count(more, "more place")));
        }
        told
    }

    fn action(&self) -> &'static str {
        match self.settings.mode {
            SecretsMode::Withhold => "withheld from the outbox:",
            SecretsMode::Warn => "shown in the outbox (secrets = \"warn\"):",
        }
    }

    fn describe(&self, place: &FindingPlace, kind: SecretKind, lines: &[usize]) -> String {
        let lines = describe_lines(lines);
        let mut release = "secrets = \"warn\"".to_owned();
        let place = match place {
            FindingPlace::File(path) => {
                let path = visible_line(path);
                let quoted = path.replace('\\', "\\\\").replace('"', "\\\"");
                release.push_str(&format!(" or secrets_allow = [\"{quoted}\"]"));
                format!("{path} {lines}")
            }
            FindingPlace::Output(command) => {
                let command = visible_line(command);
                format!("the output of {}, {lines}", self.redact(&command, None).text)
            }
            FindingPlace::Name(shown) => format!("the name of a file ({})", visible_line(shown)),
            FindingPlace::Words(what) => {
                return format!("shown in the outbox, as you wrote it: {kind} in {what}, {lines}");
            }
        };
        let told = format!("{} {kind} in {place}", self.action());
        if self.withholds() { format!("{told} ({release} releases it)") } else { told }
    }
}

fn describe_lines(lines: &[usize]) -> String {
    let named = first_of(lines.iter().map(usize::to_string), MAX_LINES, lines.len());
    format!("{} {named}", if lines.len() == 1 { "line" } else { "lines" })
}
