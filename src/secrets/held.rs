//! What an outbox is screened with: how, what is released, and what was found for the person.

use std::borrow::Cow;

use super::{Found, Sort, keys, screen};
use crate::config::{Secrets, SecretsMode};
use crate::text::visible_line;

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
}

impl Screen {
    /// Nothing was found yet.
    pub fn new(settings: &Secrets) -> Self {
        Self { settings: settings.clone(), found: Vec::new() }
    }

    /// The whole contents of the file at `path` (relative, with `/`), as they may be shown. Cut them
    /// to a range of lines afterwards: they have as many lines as before.
    pub fn contents<'a>(&mut self, path: &str, text: &'a str) -> Cow<'a, str> {
        if self.settings.releases(path) {
            return Cow::Borrowed(text);
        }
        self.screened(&Place::File(path.to_owned()), text, Some(path))
    }

    /// The same of some of its lines, from `first` to `last` (from 1, both included); `text` is all of
    /// it. Only what is found in them is told.
    pub fn part(&mut self, path: &str, text: &str, first: usize, last: usize) -> Cow<'static, str> {
        let lines = |text: &str| {
            let lines = text.split_inclusive('\n').skip(first.saturating_sub(1));
            Cow::Owned(lines.take((last + 1).saturating_sub(first)).collect::<String>())
        };
        if self.settings.releases(path) {
            return lines(text);
        }
        let mut screened = screen(text, Some(path));
        screened.found.retain(|found| (first..=last).contains(&found.line));
        self.keep(&Place::File(path.to_owned()), &screened.found);
        match self.settings.mode {
            SecretsMode::Withhold => lines(&screened.text),
            SecretsMode::Warn => lines(text),
        }
    }

    /// A single line of a file, of which the rest is not known; None where the file is not, either.
    pub fn line<'a>(&mut self, path: Option<&str>, number: usize, text: &'a str) -> Cow<'a, str> {
        if path.is_some_and(|path| self.settings.releases(path)) {
            return Cow::Borrowed(text);
        }
        let place = match path {
            Some(path) => Place::File(path.to_owned()),
            None => Place::Output("a result".to_owned()),
        };
        let mut screened = screen(text, path);
        screened.found.iter_mut().for_each(|found| found.line = number);
        self.keep(&place, &screened.found);
        match self.settings.mode {
            SecretsMode::Withhold => screened.text,
            SecretsMode::Warn => Cow::Borrowed(text),
        }
    }

    /// The lines of a whole file that are not shown as they are; none where it is released.
    pub fn changed(&self, path: &str, text: &str) -> Vec<Changed> {
        if self.settings.releases(path) {
            return Vec::new();
        }
        let screened = screen(text, Some(path));
        let Some(first) = screened.found.first() else { return Vec::new() };
        let (mut sort, mut found) = (first.sort, screened.found.iter().peekable());
        let mut changed = Vec::new();
        for (number, (text, shown)) in (1..).zip(text.lines().zip(screened.text.lines())) {
            while let Some(next) = found.next_if(|found| found.line <= number) {
                sort = next.sort;
            }
            if text != shown {
                changed.push(Changed { text: text.to_owned(), shown: shown.to_owned(), sort });
            }
        }
        changed
    }

    /// Whether such a line is to be shown otherwise; that it stands there is kept.
    pub fn takes(&mut self, path: &str, number: usize, changed: &Changed) -> bool {
        let found = Found { sort: changed.sort, line: number };
        self.keep(&Place::File(path.to_owned()), &[found]);
        self.settings.mode == SecretsMode::Withhold
    }

    /// A single line of a file that nobody could look into: what could be of a private key goes, too.
    pub fn stray<'a>(&mut self, path: Option<&str>, number: usize, text: &'a str) -> Cow<'a, str> {
        let is_released = path.is_some_and(|path| self.settings.releases(path));
        if is_released || !keys::could_be_line(text) {
            return self.line(path, number, text);
        }
        let place = match path {
            Some(path) => Place::File(path.to_owned()),
            None => Place::Output("a result".to_owned()),
        };
        self.keep(&place, &[Found { sort: keys::KEY, line: number }]);
        match self.settings.mode {
            SecretsMode::Withhold => Cow::Owned(format!("[withheld: {}]", keys::KEY)),
            SecretsMode::Warn => Cow::Borrowed(text),
        }
    }

    /// A listing of files, with a name on each line.
    pub fn listing<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        // Few hold anything: then nothing is looked at line by line.
        if screen(text, None).found.is_empty() {
            return Cow::Borrowed(text);
        }
        let lines = text.split_inclusive('\n');
        Cow::Owned(lines.map(|line| self.name(line).into_owned()).collect())
    }

    /// What a command wrote, as it may be shown; `command` is how the person is told which. What was
    /// kept of it on both sides of a gap is screened in one piece or in two.
    pub fn output<'a>(&mut self, command: &str, text: &'a str) -> Cow<'a, str> {
        self.screened(&Place::Output(command.to_owned()), text, None)
    }

    /// The name of a file, for a listing. A released file has a released name.
    pub fn name<'a>(&mut self, path: &'a str) -> Cow<'a, str> {
        if self.settings.releases(path) {
            return Cow::Borrowed(path);
        }
        let shown = self.screened(&Place::Name(String::new()), path, None);
        // A place that names the secret would tell it.
        for (place, ..) in &mut self.found {
            if *place == Place::Name(String::new()) {
                *place = Place::Name(screen(path, None).text.into_owned());
            }
        }
        shown
    }

    fn screened<'a>(&mut self, place: &Place, text: &'a str, name: Option<&str>) -> Cow<'a, str> {
        let screened = screen(text, name);
        self.keep(place, &screened.found);
        match self.settings.mode {
            SecretsMode::Withhold => screened.text,
            SecretsMode::Warn => Cow::Borrowed(text),
        }
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
            told.push(format!("{did} secrets in {more} more places"));
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
                    screen(&visible_line(command), None).text,
                    told_lines(lines)
                )
            }
            Place::Name(shown) => format!("the name of a file ({})", visible_line(shown)),
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
