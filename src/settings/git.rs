//! Runs git safely, and finds the files that git reads and runs.
//!
//! The folder may come from anybody. So git runs with settings that prevent it from starting other programs, and bare
//! repositories do not count, since they may be among the files of another repository.
//!
//! Hooks, included settings, attributes and programs that git's settings name are found without git; conditions of
//! includes are ignored. Only regular files of at most a megabyte are opened. Command lines are not parsed: a file counts if
//! a command line contains the words of its name (see [`CommandTexts`]).

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::folded;
use crate::atomic::read_regular;
use crate::program::{self, Programs};

/// Facts about git, from `data/git.toml`.
static GIT: LazyLock<BTreeMap<String, Vec<String>>> =
    LazyLock::new(|| toml::from_str(include_str!("data/git.toml")).expect("a table in order"));

/// A repository can make git read forever.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Runs git in a folder and returns its output; None if git is not installed.
///
/// # Errors
/// Git fails or takes too long. The error is the first line of git's message.
pub fn run_git<T: AsRef<OsStr>>(
    programs: &Programs,
    folder: &Path,
    arguments: impl IntoIterator<Item = T>,
) -> Result<Option<Vec<u8>>, String> {
    // If a FIFO replaced one of git's files, git would wait forever.
    let tree = folder.ancestors().find(|above| above.join(".git").exists());
    let trees: Vec<PathBuf> = tree.into_iter().map(Path::to_owned).collect();
    if let Some(irregular) = git_references(&trees).irregular {
        return Err(format!("{} is not a regular file", irregular.display()));
    }
    let output = programs.command("git").and_then(|mut git| {
        git.args(GIT["overrides"].iter().flat_map(|setting| ["-c", setting]));
        git.args(["--no-optional-locks", "--no-pager", "-C"]).arg(folder).args(arguments);
        // Fetching missing objects could start a program.
        git.envs([
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_ALLOW_PROTOCOL", ""),
            ("GIT_TERMINAL_PROMPT", "0"),
        ]);
        program::output(git, "", TIME_LIMIT)
    });
    match output {
        Ok(output) if output.status.success() => Ok(Some(output.stdout)),
        Ok(output) => {
            let message = String::from_utf8_lossy(&output.stderr);
            Err(message.lines().next().unwrap_or_default().to_owned())
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e.to_string()),
    }
}

/// Why a folder cannot be the workspace: it is a git directory, or inside one.
pub fn problem_in_git_directory(folder: &Path) -> Option<String> {
    let git = git_directory(folder)?;
    let project = match git.parent() {
        Some(project) if git.ends_with(".git") => project.display().to_string(),
        _ => "a clone of it".to_owned(),
    };
    Some(format!(
        "it is a git directory, or in one, and git would run hooks that replies write there; choose the folder with the project's files: {project}"
    ))
}

/// Whether git could use a folder as a repository. `has` returns whether the folder contains a name. `HEAD` is needed,
/// with `objects` and `refs`, or with `commondir`, which refers to them. The contents of these files are ignored, since
/// they can change.
pub(crate) fn is_repository(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}

/// The git directory that is or contains a folder (a canonical path): a `.git`, or a bare repository. Git runs and
/// obeys its contents. None in a worktree.
fn git_directory(folder: &Path) -> Option<PathBuf> {
    let mut part: Option<&OsStr> = None;
    for place in folder.ancestors() {
        // This is a worktree, which may be inside a bare repository.
        if place.join(".git").symlink_metadata().is_ok() {
            return None;
        }
        let name = place.file_name();
        let is_one = || is_repository(|name| place.join(name).symlink_metadata().is_ok());
        let is_part = part.is_none_or(|part| GIT["folders"].iter().any(|known| part == &**known));
        if name.is_some_and(|name| name.eq_ignore_ascii_case(".git")) || (is_part && is_one()) {
            return Some(place.to_owned());
        }
        part = name;
    }
    None
}

/// The size of the largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// The most settings files that are read, and the most submodule folders that are searched per repository.
const MAX_FILES: usize = 1_000;

/// The files and commands that git's settings name.
#[derive(Debug, Default)]
pub struct GitReferences {
    /// Absolute paths of files and folders.
    pub places: BTreeSet<PathBuf>,
    /// Values that may be command lines.
    pub texts: CommandTexts,
    /// The first file that is not regular. Git could wait for it forever.
    pub irregular: Option<PathBuf>,
}

/// Values of settings that may be command lines, without quotes and backslashes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandTexts(BTreeSet<String>);

impl CommandTexts {
    /// Returns a function that decides whether a text may name a file. The text must contain the words of the file's
    /// name, and one of these must be true: the file is at the top of a repository, where git runs commands (`is_top`);
    /// a text contains the words of its folder; or the text has characters from which the shell could build the folder.
    pub fn mentions(&self) -> impl Fn(&str, &str, bool) -> bool {
        let expands = |text: &str| text.contains(['$', '`', '*', '?', '[', '{']);
        let all = self.0.iter().map(|text| (words(text).collect::<HashSet<_>>(), expands(text)));
        let all: Vec<(HashSet<&str>, bool)> = all.collect();
        move |name, folder, is_top| {
            if all.is_empty() {
                return false;
            }
            let contains = |text: &HashSet<&str>, name: &str| {
                words(name).next().is_some() && words(name).all(|it| text.contains(it))
            };
            let (name, folder) = (plain_text(&folded(name), ""), folded(folder));
            let is_folder_named = || all.iter().any(|(text, _)| contains(text, &folder));
            all.iter().any(|(text, expands)| {
                contains(text, &name) && (is_top || *expands || is_folder_named())
            })
        }
    }

    fn add(&mut self, value: &str) {
        let line = value.trim_start_matches(|c: char| c == '!' || c.is_whitespace());
        for instead in ["", "/"] {
            let text = plain_text(line, instead).to_uppercase().to_lowercase();
            // Unless the first word is a path, it is a git command or a program in `PATH`.
            let rest = text.trim_start_matches(is_of_name);
            let is_program = rest.is_empty() || rest.starts_with(char::is_whitespace);
            self.0.insert(if is_program { rest.trim().to_owned() } else { text });
        }
        self.0.remove("");
    }
}

/// Removes quotes, and replaces backslashes by `instead`: they escape a character or separate folders.
fn plain_text(text: &str, instead: &str) -> String {
    text.replace(['\'', '"'], "").replace('\\', instead)
}

/// The words of a text, split at characters that end a name in a command line.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_of_name(c)).filter(|word| !word.is_empty())
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || "_-.+%@".contains(c) || !c.is_ascii()
}

/// Finds what git's settings name for these repositories: folders with a `.git`, or bare repositories.
pub fn git_references(tops: &[PathBuf]) -> GitReferences {
    let home = env::var_os("HOME").map(PathBuf::from);
    let mut reader =
        GitConfigReader { home, named: GitReferences::default(), read: BTreeSet::new() };
    for file in reader.global_files() {
        reader.read_file(&file, tops);
    }
    for top in tops {
        reader.read_repository(top);
    }
    reader.named
}

struct GitConfigReader {
    home: Option<PathBuf>,
    named: GitReferences,
    read: BTreeSet<PathBuf>,
}

impl GitConfigReader {
    /// The settings files of the machine and of the person.
    fn global_files(&mut self) -> Vec<PathBuf> {
        let given = |name| env::var_os(name).map(PathBuf::from);
        let own = given("XDG_CONFIG_HOME").filter(|own| !own.as_os_str().is_empty());
        let own = own.or_else(|| Some(self.home.as_ref()?.join(".config")));
        // Git obeys these files even if no setting names them.
        let own_attributes = own.as_ref().map(|own| own.join("git/attributes"));
        for file in own_attributes.into_iter().chain(["/etc/gitattributes".into()]) {
            self.check(&file);
            self.named.places.insert(file);
        }
        if let Some(own) = &own {
            self.check(&own.join("git/ignore"));
        }
        let mut files = match given("GIT_CONFIG_SYSTEM") {
            Some(file) => vec![file],
            None => ["/etc", "/usr/local/etc", "/opt/homebrew/etc"]
                .map(|folder| Path::new(folder).join("gitconfig"))
                .to_vec(),
        };
        if let Some(file) = given("GIT_CONFIG_GLOBAL") {
            files.push(file);
            return files;
        }
        files.extend(own.map(|own| own.join("git/config")));
        files.extend(self.home.as_ref().map(|home| home.join(".gitconfig")));
        files
    }

    /// Reads the settings of a repository and its submodules, and records links in its git directory.
    fn read_repository(&mut self, top: &Path) {
        let git = top.join(".git");
        let git = match self.text(&git) {
            Some(text) => top.join(text.strip_prefix("gitdir:").unwrap_or_default().trim()),
            // This is a bare repository.
            None if !git.exists() => top.to_owned(),
            None => git,
        };
        let common = self.text(&git.join("commondir")).map(|common| git.join(common.trim()));
        let common = common.unwrap_or_else(|| git.clone());
        for file in [".gitignore", ".gitattributes", ".gitmodules"] {
            self.check(&top.join(file));
        }
        let mut folders: BTreeSet<PathBuf> =
            GIT["read"].iter().map(|part| common.join(part)).collect();
        folders.extend([git.clone(), git.join("info")]);
        for folder in folders {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let kind = entry.file_type();
                if kind.is_ok_and(|kind| !kind.is_file() && !kind.is_dir()) {
                    self.check(&entry.path());
                    if entry.path().is_symlink() {
                        self.named.places.insert(entry.path());
                    }
                }
            }
        }
        let tops = [top.to_owned()];
        self.read_file(&common.join("config"), &tops);
        self.read_file(&git.join("config.worktree"), &tops);
        let (mut folders, mut looked) = (vec![common.join("modules")], 0);
        while let Some(folder) = folders.pop().filter(|_| looked < MAX_FILES) {
            looked += 1;
            if folder.join("HEAD").exists() {
                self.read_file(&folder.join("config"), &tops);
                folders.push(folder.join("modules"));
                continue;
            }
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let is_folder =
                |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
            folders.extend(entries.filter(is_folder).map(|entry| entry.path()));
        }
    }

    /// Reads a settings file that applies to the repositories `tops`, and the files that it includes.
    fn read_file(&mut self, file: &Path, tops: &[PathBuf]) {
        if self.read.len() >= MAX_FILES || !self.read.insert(file.to_owned()) {
            return;
        }
        // A missing file also counts, since it may be created later.
        self.named.places.insert(file.to_owned());
        let Some(text) = self.text(file) else { return };
        for (section, key, value) in settings(&text) {
            let is_harmless =
                GIT["harmless_sections"].contains(&section) || GIT["harmless_keys"].contains(&key);
            if key == "excludesfile" {
                self.paths(tops, &value).iter().for_each(|path| self.check(path));
            }
            if is_harmless && !value.contains("::") {
                continue;
            }
            if section.starts_with("include") {
                for path in self.paths(file.parent().map(Path::to_owned).as_slice(), &value) {
                    self.read_file(&path, tops);
                }
            } else if GIT["paths"].iter().any(|end| key.ends_with(end)) {
                for path in self.paths(tops, &value) {
                    self.check(&path);
                    self.named.places.insert(path);
                }
            } else {
                // The walk that looks for file names in `texts` skips ignored files, so paths are recorded here.
                let words =
                    value.split(|c: char| c.is_whitespace() || "'\"!;|&()<>`=:".contains(c));
                for word in words.filter(|word| word.contains('/')) {
                    let paths = self.paths(tops, word).into_iter();
                    self.named.places.extend(paths.filter(|path| !path.is_dir()));
                }
                self.named.texts.add(&value);
            }
        }
    }

    /// Resolves a value as a path in each of these folders.
    fn paths(&self, folders: &[PathBuf], value: &str) -> Vec<PathBuf> {
        let at = |folder: &PathBuf| match value.strip_prefix("~/") {
            Some(rest) => Some(self.home.as_ref()?.join(rest)),
            None => Some(folder.join(value)).filter(|_| !value.is_empty()),
        };
        folders.iter().filter_map(at).collect()
    }

    fn text(&mut self, file: &Path) -> Option<String> {
        self.check(file);
        Some(String::from_utf8_lossy(&read_regular(file, MAX_FILE_BYTES).ok()?).into_owned())
    }

    /// Records a file that git could wait for forever. `/dev/null` is allowed: it means no settings.
    fn check(&mut self, file: &Path) {
        let is_irregular = |found: fs::Metadata| !found.is_file() && !found.is_dir();
        if file.metadata().is_ok_and(is_irregular)
            && fs::canonicalize(file).ok() != Some(PathBuf::from("/dev/null"))
        {
            self.named.irregular.get_or_insert_with(|| file.to_owned());
        }
    }
}

/// The settings in a text, each with its section and key in lower case, without subsections. If the name of a
/// subsection contains `]`, a part of it becomes part of the key, which is then not harmless.
fn settings(text: &str) -> Vec<(String, String, String)> {
    let text = text.replace("\\\r\n", "").replace("\\\n", "");
    let (mut section, mut settings) = (String::new(), Vec::new());
    for line in text.lines() {
        let mut line = line.trim_start_matches('\u{feff}').trim_start();
        if let Some((name, after)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            let name = name.split(|c: char| c.is_whitespace() || ".\"".contains(c)).next();
            section = name.unwrap_or_default().to_lowercase();
            line = after;
        }
        if let Some((key, value)) = line.split_once('=') {
            settings.push((section.clone(), key.trim().to_lowercase(), plain(value.trim())));
        }
    }
    settings
}

/// A value without its quotes, escapes and comment.
fn plain(value: &str) -> String {
    let (mut text, mut quoted, mut chars) = (String::new(), false, value.chars());
    while let Some(c) = chars.next() {
        match c {
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => break,
            '\\' => text.extend(chars.next().map(|c| match c {
                'n' => '\n',
                't' => '\t',
                c => c,
            })),
            c => text.push(c),
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_git_directory_is_known_by_its_name_or_by_what_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let made = |path: &str| {
            fs::create_dir_all(top.join(path)).unwrap();
            top.join(path)
        };
        for path in ["p/.git/hooks", "bare/objects", "bare/refs/heads", "w/.git/worktrees/x/deep"] {
            made(path);
        }
        for path in ["bare/HEAD", "w/.git/worktrees/x/HEAD", "w/.git/worktrees/x/commondir"] {
            fs::write(top.join(path), "x").unwrap();
        }
        for (path, git) in [
            ("p/.git", "p/.git"),
            ("p/.git/hooks", "p/.git"),
            ("p/.git/new", "p/.git"),
            ("bare", "bare"),
            ("bare/refs/heads", "bare"),
            ("w/.git/worktrees/x/deep", "w/.git"),
        ] {
            assert_eq!(git_directory(&top.join(path)), Some(top.join(git)), "{path}");
        }
        fs::write(made("bare/main").join(".git"), "gitdir: x").unwrap();
        made("bare/main/src");
        for path in
            [".", "p", "p/src", "bare/main", "bare/main/src", "bare/workspace", "bare/new/x"]
        {
            assert_eq!(git_directory(&top.join(path)), None, "{path}");
        }
    }

    #[test]
    fn a_file_is_named_by_a_text_that_contains_its_name() {
        for (value, folder, name) in [
            ("python3 clean.py", "", "clean.py"),
            ("'tools/my x' %f", "tools", "my x"),
            ("tools/my\\ x", "tools", "my x"),
            ("tools\\x", "tools", "x"),
            ("!cd tools && ./x", "tools", "x"),
            ("!(cd tools;./x)", "tools", "X"),
            ("!sh<x", "", "x"),
            ("!$(git rev-parse --show-toplevel)/tools/x", "tools", "x"),
            ("!${GIT_PREFIX:-.}/x", "any", "x"),
            ("ext::tools/x", "tools", "x"),
            ("-c core.hooksPath=h/x commit", "h", "x"),
        ] {
            let mut texts = CommandTexts::default();
            texts.add(value);
            let mentions = texts.mentions();
            assert!(mentions(name, folder, folder.is_empty()), "{value}");
            assert!(!mentions("y", folder, true) && !mentions("x.py", folder, true), "{value}");
        }
        for (value, folder, name) in [
            ("vim", "", "vim"),
            ("log --graph", "", "log"),
            ("python3 clean.py", "", "python3"),
            ("node index.js", "src", "index.js"),
            ("git-lfs clean -- %f", "", "f"),
        ] {
            let mut texts = CommandTexts::default();
            texts.add(value);
            assert!(!texts.mentions()(name, folder, folder.is_empty()), "{value}");
        }
    }

    #[test]
    fn settings_are_read_as_git_reads_them() {
        let text = "[Core] hooksPath = a ; b\n\tpager=\"x # y\" # z\n[includeIf \"gitdir:~/a]b/\"]\npath = c\\\n/d\n[filter.lfs]\n  clean = \"a \\\"b\\\"\"\n# x = y\n[alias]\n bare\n";
        let found = settings(text);
        let found: Vec<_> = found.iter().map(|(s, k, v)| (&**s, &**k, &**v)).collect();
        assert_eq!(
            found,
            [
                ("core", "hookspath", "a"),
                ("core", "pager", "x # y"),
                ("includeif", "path", "c/d"),
                ("filter", "clean", "a \"b\""),
                ("filter", "# x", "y"),
            ]
        );
    }
}
