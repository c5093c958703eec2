//! What an outbox is screened with: how, what is released, and what was found for the person.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Cut, Found, Known, Look, Screened, Sort, screened};
use crate::config::{Secrets, SecretsMode};
use crate::text::{count, visible_line};

/// The most sentences that are told; what is beyond them is counted.
const MOST_TOLD: usize = 20;

/// Screens what goes into one outbox, and keeps what a person is to be told of it.
///
/// # Examples
/// ```
/// use deaddrop::config::Secrets;
/// use deaddrop::secrets::Screen;
/// let mut screen = Screen::new(&Secrets::default());
/// let text = format!("key = {}{}\n", "AKIA", "Q3EGRAZBXS4JKTPN");
/// assert_eq!(screen.contents("src/x.py", &text), "key = [withheld: AWS key]\n");
/// assert_eq!(
///     screen.told(),
///     ["withheld from the outbox: AWS key in src/x.py line 1 (secrets = \"warn\" or secrets_allow = [\"src/x.py\"] releases it)"]
/// );
/// ```
#[derive(Debug, Clone)]
pub struct Screen {
    settings: Secrets,
    known: Known,
    found: Vec<(Place, Sort, Vec<usize>)>,
}

/// A line that is not shown as it is, both without their line ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// As it is.
    pub text: String,
    /// As it may be shown.
    pub shown: String,
    sort: Sort,
}

/// Where something was found.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    File(String),
    Output(String),
    Name(String),
    /// What the person wrote themselves.
    Words(&'static str),
}

impl Place {
    /// That of a line in a result; None where nobody knows the file.
    fn of(path: Option<&str>) -> Self {
        match path {
            Some(path) => Self::File(path.to_owned()),
            None => Self::Output("a result".to_owned()),
        }
    }
}

impl Screen {
    /// Nothing was found yet.
    pub fn new(settings: &Secrets) -> Self {
        Self { settings: settings.clone(), known: Known::default(), found: Vec::new() }
    }

    /// The same, which also finds what is known from these files (each a path with `/`, and its whole
    /// text), but for those that are released.
    pub fn knowing<'a>(
        settings: &Secrets,
        files: impl IntoIterator<Item = (&'a str, Cow<'a, str>)>,
    ) -> Self {
        let held = files.into_iter().filter(|(path, _)| !settings.releases(path));
        Self { known: Known::of(held), ..Self::new(settings) }
    }

    fn see<'a>(&self, text: &'a str, name: Option<&str>, cut: Cut) -> Screened<'a> {
        screened(text, &Look { name, known: Some(&self.known), cut, alone: false })
    }

    /// The whole contents of the file at `path` (relative, with `/`), as they may be shown. Cut them
    /// to a range of lines afterwards: they have as many lines as before.
    pub fn contents<'a>(&mut self, path: &str, text: &'a str) -> Cow<'a, str> {
        self.of_file(Some(path), text, 1, Look::default())
    }

    /// Lines of a file that nobody could look into, the first of them with this number: what could be of a
    /// private key goes, too. No path stands for a file that is not known.
    pub fn stray<'a>(
        &mut self,
        path: Option<&str>,
        first: usize,
        text: &'a str,
        cut: Cut,
    ) -> Cow<'a, str> {
        self.of_file(path, text, first, Look { cut, alone: true, ..Look::default() })
    }

    fn of_file<'a>(
        &mut self,
        path: Option<&str>,
        text: &'a str,
        first: usize,
        look: Look,
    ) -> Cow<'a, str> {
        if path.is_some_and(|path| self.settings.releases(path)) {
            return Cow::Borrowed(text);
        }
        let mut screened = screened(text, &Look { name: path, known: Some(&self.known), ..look });
        screened.found.iter_mut().for_each(|found| found.line += first.saturating_sub(1));
        self.keep(&Place::of(path), &screened.found);
        self.shown(screened.text, text)
    }

    /// A whole file, looked at once for all that is shown of it by [`Self::part`] and
    /// [`Self::changed`]; None where it is released.
    pub fn look<'a>(&self, path: &str, text: &'a str) -> Option<Screened<'a>> {
        (!self.settings.releases(path)).then(|| self.see(text, Some(path), Cut::default()))
    }

    /// Some lines of a file that was looked at, from `first` to `last` (from 1, both included). Only
    /// what is found in them is told.
    pub fn part(&mut self, path: &str, whole: &Screened, first: usize, last: usize) -> String {
        let within = |found: &&Found| (first..=last).contains(&found.line);
        let found: Vec<Found> = whole.found.iter().filter(within).copied().collect();
        self.keep(&Place::File(path.to_owned()), &found);
        let lines = whole.text.split_inclusive('\n').skip(first.saturating_sub(1));
        lines.take((last + 1).saturating_sub(first)).collect()
    }

    /// The lines of a file that was looked at which are not shown as they are, by number.
    pub fn changed(text: &str, whole: &Screened) -> BTreeMap<usize, Changed> {
        let Some(first) = whole.found.first() else { return BTreeMap::new() };
        let (mut sort, mut found) = (first.sort, whole.found.iter().peekable());
        let mut changed = BTreeMap::new();
        for (number, (text, shown)) in (1..).zip(text.lines().zip(whole.text.lines())) {
            while let Some(next) = found.next_if(|found| found.line <= number) {
                sort = next.sort;
            }
            if text != shown {
                let line = Changed { text: text.to_owned(), shown: shown.to_owned(), sort };
                changed.insert(number, line);
            }
        }
        changed
    }

    /// Whether such a line is to be shown otherwise; that it stands there is kept.
    pub fn takes(&mut self, path: &str, number: usize, changed: &Changed) -> bool {
        let found = Found { sort: changed.sort, line: number };
        self.keep(&Place::File(path.to_owned()), &[found]);
        self.withholds()
    }

    /// A listing of files, with a name on each line, and what is told of it in brackets behind.
    pub fn listing<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        // Few hold anything: then nothing is looked at line by line.
        if self.see(text, None, Cut::default()).found.is_empty() {
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

    /// What a command wrote, as it may be shown; `command` is how the person is told which.
    pub fn output<'a>(&mut self, command: &str, text: &'a str) -> Cow<'a, str> {
        self.cut_output(command, text, Cut::default())
    }

    /// The same of what an operation tells of a file: nothing is left out of what is released.
    pub fn output_of<'a>(&mut self, name: &str, path: Option<&str>, text: &'a str) -> Cow<'a, str> {
        let is_released = path.is_some_and(|path| self.settings.releases(path));
        if is_released { Cow::Borrowed(text) } else { self.output(name, text) }
    }

    /// The same of a part of what it wrote: where it was cut, what is left of a secret goes too.
    pub fn cut_output<'a>(&mut self, command: &str, text: &'a str, cut: Cut) -> Cow<'a, str> {
        let screened = self.see(text, None, cut);
        self.keep(&Place::Output(command.to_owned()), &screened.found);
        self.shown(screened.text, text)
    }

    /// The name of a file, for a listing. A released file has a released name.
    pub fn name<'a>(&mut self, path: &'a str) -> Cow<'a, str> {
        if self.settings.releases(path) {
            return Cow::Borrowed(path);
        }
        let screened = self.see(path, None, Cut::default());
        // A place that names the secret would tell it.
        self.keep(&Place::Name(screened.text.clone().into_owned()), &screened.found);
        self.shown(screened.text, path)
    }

    /// Notes what a text of the person's own holds, by what that is called: it goes out as they wrote it.
    pub fn words(&mut self, what: &'static str, text: &str) {
        let screened = self.see(text, None, Cut::default());
        self.keep(&Place::Words(what), &screened.found);
    }

    /// Whether what is found is left out.
    pub fn withholds(&self) -> bool {
        self.settings.mode == SecretsMode::Withhold
    }

    fn shown<'a>(&self, screened: Cow<'a, str>, text: &'a str) -> Cow<'a, str> {
        if self.withholds() { screened } else { Cow::Borrowed(text) }
    }

    fn keep(&mut self, place: &Place, found: &[Found]) {
        for Found { sort, line } in found {
            let same =
                |(other, of, _): &&mut (Place, Sort, Vec<usize>)| other == place && of == sort;
            match self.found.iter_mut().rev().find(same) {
                Some((.., lines)) if lines.contains(line) => {}
                Some((.., lines)) => lines.push(*line),
                None => self.found.push((place.clone(), *sort, vec![*line])),
            }
        }
    }

    /// A sentence for each place and sort, in the order in which they were found.
    pub fn told(&self) -> Vec<String> {
        let mut told: Vec<String> = self
            .found
            .iter()
            .take(MOST_TOLD)
            .map(|(place, sort, lines)| self.sentence(place, *sort, lines))
            .collect();
        let more = self.found.len().saturating_sub(MOST_TOLD);
        if more > 0 {
            let did = self.did();
            told.push(format!("{did} secrets in {}", count(more, "more place")));
        }
        told
    }

    fn did(&self) -> &'static str {
        match self.settings.mode {
            SecretsMode::Withhold => "withheld from the outbox:",
            SecretsMode::Warn => "shown in the outbox (secrets = \"warn\"):",
        }
    }

    fn sentence(&self, place: &Place, sort: Sort, lines: &[usize]) -> String {
        let place_told = match place {
            Place::File(path) => format!("{} {}", visible_line(path), told_lines(lines)),
            Place::Output(command) => {
                format!(
                    "the output of {}, {}",
                    self.see(&visible_line(command), None, Cut::default()).text,
                    told_lines(lines)
                )
            }
            Place::Name(shown) => format!("the name of a file ({})", visible_line(shown)),
            Place::Words(what) => {
                let lines = told_lines(lines);
                return format!("shown in the outbox, as you wrote it: {sort} in {what}, {lines}");
            }
        };
        let did = self.did();
        let release = match (self.settings.mode, place) {
            (SecretsMode::Warn, _) => return format!("{did} {sort} in {place_told}"),
            (SecretsMode::Withhold, Place::File(path)) => {
                let path = visible_line(path).replace('\\', "\\\\").replace('"', "\\\"");
                format!("secrets = \"warn\" or secrets_allow = [\"{path}\"] releases it")
            }
            (SecretsMode::Withhold, _) => "secrets = \"warn\" releases it".to_owned(),
        };
        format!("{did} {sort} in {place_told} ({release})")
    }
}

fn told_lines(lines: &[usize]) -> String {
    let shown: Vec<String> = lines.iter().take(5).map(usize::to_string).collect();
    match (lines.len(), lines.len().saturating_sub(5)) {
        (1, _) => format!("line {}", shown[0]),
        (_, 0) => format!("lines {}", shown.join(", ")),
        (_, more) => format!("lines {} and {more} more", shown.join(", ")),
    }
}
