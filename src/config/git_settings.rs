//! What git's settings name that git runs or obeys: hooks, further settings, attributes, programs. Read
//! without git, whatever conditions an include has. Only regular files are opened, of at most a megabyte.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::atomic::read_regular;

/// Longer settings are not read.
const LONGEST: u64 = 1 << 20;
/// So many files of settings are read.
const FILES: usize = 1_000;
/// Settings whose value is one path.
const PATHS: [(&str, &str); 9] = [
    ("core", "hookspath"),
    ("core", "attributesfile"),
    ("include", "path"),
    ("includeif", "path"),
    ("init", "templatedir"),
    ("browser", "path"),
    ("difftool", "path"),
    ("man", "path"),
    ("mergetool", "path"),
];
/// Sections all of whose values are commands, and keys whose value is one in whichever section.
const COMMANDS: ([&str; 2], [&str; 27]) = (
    ["alias", "pager"],
    [
        "alternaterefscommand",
        "askpass",
        "clean",
        "cmd",
        "command",
        "defaultkeycommand",
        "difffilter",
        "driver",
        "editor",
        "external",
        "fsmonitor",
        "gitproxy",
        "helper",
        "httpd",
        "packobjectshook",
        "pager",
        "process",
        "program",
        "receivepack",
        "recentobjectshook",
        "smtpserver",
        "smudge",
        "sshcommand",
        "textconv",
        "tunnel",
        "update",
        "uploadpack",
    ],
);

/// What git's settings name for these work trees, as absolute paths; and the first file that git would read
/// though it is not regular, so that git could wait for it for ever.
pub fn named_by_git(trees: &[PathBuf]) -> (BTreeSet<PathBuf>, Option<PathBuf>) {
    let home = env::var_os("HOME").map(PathBuf::from);
    let mut reading =
        Reading { trees, home, found: BTreeSet::new(), read: BTreeSet::new(), odd: None };
    for file in reading.everywhere() {
        reading.file(&file);
    }
    for tree in trees {
        reading.tree(tree);
    }
    (reading.found, reading.odd)
}

struct Reading<'a> {
    trees: &'a [PathBuf],
    home: Option<PathBuf>,
    found: BTreeSet<PathBuf>,
    read: BTreeSet<PathBuf>,
    odd: Option<PathBuf>,
}

impl Reading<'_> {
    /// The machine's settings and the person's.
    fn everywhere(&self) -> Vec<PathBuf> {
        let given = |name| env::var_os(name).map(PathBuf::from);
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
        let own = given("XDG_CONFIG_HOME").filter(|own| !own.as_os_str().is_empty());
        let own = own.or_else(|| Some(self.home.as_ref()?.join(".config")));
        files.extend(own.map(|own| own.join("git/config")));
        files.extend(self.home.as_ref().map(|home| home.join(".gitconfig")));
        files
    }

    /// The settings of a repository, and links that lead its hooks elsewhere.
    fn tree(&mut self, tree: &Path) {
        let git = tree.join(".git");
        let git = match self.text(&git) {
            Some(text) => tree.join(text.strip_prefix("gitdir:").unwrap_or_default().trim()),
            None => git,
        };
        let common = self.text(&git.join("commondir")).map(|common| git.join(common.trim()));
        let common = common.unwrap_or_else(|| git.clone());
        let own = ["HEAD", "index"].map(|name| git.join(name));
        let shared = ["packed-refs", "info/exclude"].map(|name| common.join(name));
        for file in own.iter().chain(&shared).chain([&tree.join(".gitignore")]) {
            self.check(file);
        }
        self.file(&common.join("config"));
        self.file(&git.join("config.worktree"));
        let hooks = fs::read_dir(common.join("hooks")).into_iter().flatten().flatten();
        let places = hooks.map(|entry| entry.path());
        let places = places.chain([common.join("hooks"), common.join("info/attributes")]);
        for place in places.filter(|place| place.is_symlink()) {
            self.found.insert(place);
        }
    }

    /// A file of settings, and those that it includes.
    fn file(&mut self, file: &Path) {
        if self.read.len() >= FILES || !self.read.insert(file.to_owned()) {
            return;
        }
        // Also one that is not there yet.
        self.found.insert(file.to_owned());
        let Some(text) = self.text(file) else { return };
        for (section, key, value) in settings(&text) {
            if PATHS.contains(&(&section, &key)) {
                let is_include = section.starts_with("include");
                let folders = if is_include {
                    file.parent().into_iter().map(Path::to_owned).collect()
                } else {
                    self.trees.to_vec()
                };
                let home = self.home.clone();
                for path in folders.iter().filter_map(|folder| at(home.as_ref(), folder, &value)) {
                    if is_include {
                        self.file(&path);
                    }
                    self.check(&path);
                    self.found.insert(path);
                }
            } else if COMMANDS.0.contains(&&*section) || COMMANDS.1.contains(&&*key) {
                self.command(&value);
            }
        }
    }

    /// The files that a command line names by a path with a folder: git looks up other names in `PATH`.
    fn command(&mut self, line: &str) {
        let words = line.split(|c: char| c.is_whitespace() || "'\"!;|&()<>`=".contains(c));
        for word in words.filter(|word| word.contains('/')) {
            let paths = self.trees.iter().filter_map(|tree| at(self.home.as_ref(), tree, word));
            self.found.extend(paths.filter(|path| !path.is_dir()));
        }
    }

    fn text(&mut self, file: &Path) -> Option<String> {
        self.check(file);
        Some(String::from_utf8_lossy(&read_regular(file, LONGEST).ok()?).into_owned())
    }

    /// Notes a file that git could wait for: no folder, and not `/dev/null`, which stands for no settings.
    fn check(&mut self, file: &Path) {
        let is_odd = |found: fs::Metadata| !found.is_file() && !found.is_dir();
        if file.metadata().is_ok_and(is_odd)
            && fs::canonicalize(file).ok() != Some(PathBuf::from("/dev/null"))
        {
            self.odd.get_or_insert_with(|| file.to_owned());
        }
    }
}

fn at(home: Option<&PathBuf>, folder: &Path, path: &str) -> Option<PathBuf> {
    match path.strip_prefix("~/") {
        Some(rest) => Some(home?.join(rest)),
        None => Some(folder.join(path)).filter(|_| !path.is_empty()),
    }
}

/// The settings in a text, each with its section and key in lower case, without subsections.
fn settings(text: &str) -> Vec<(String, String, String)> {
    let text = text.replace("\\\r\n", "").replace("\\\n", "");
    let (mut section, mut found) = (String::new(), Vec::new());
    for line in text.lines() {
        let mut line = line.trim_start_matches('\u{feff}').trim_start();
        if let Some(rest) = line.strip_prefix('[') {
            let (mut quoted, mut escaped) = (false, false);
            let end = rest.find(|c| {
                quoted ^= c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                c == ']' && !quoted
            });
            let Some(end) = end else { continue };
            let name = rest[..end].split(|c: char| c.is_whitespace() || ".\"".contains(c)).next();
            section = name.unwrap_or_default().to_lowercase();
            line = &rest[end + 1..];
        }
        if let Some((key, value)) = line.split_once('=') {
            found.push((section.clone(), key.trim().to_lowercase(), plain(value.trim())));
        }
    }
    found
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
