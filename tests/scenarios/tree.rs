//! All that stands below a folder, as a value.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use libtest_mimic::Failed;
use similar::TextDiff;

/// How the names of files are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// As they are.
    Plain,
    /// With `%XX` for what a repository cannot or should not hold.
    Escaped,
}

#[derive(Clone, PartialEq, Eq)]
enum Entry {
    File {
        bytes: Vec<u8>,
        executable: bool,
    },
    Link(String),
    /// A folder that holds nothing.
    Empty,
    /// Neither of these.
    Other,
}

/// Paths from the folder, plain and with `/` between the names, and what stands there.
#[derive(Default)]
pub(crate) struct Tree(BTreeMap<String, Entry>);

/// Reads all that stands in `folder`; nothing where there is no such folder.
pub(crate) fn read(folder: &Path, names: Names) -> Result<Tree, Failed> {
    let mut tree = Tree::default();
    if folder.exists() {
        collect(folder, "", names, &mut tree.0)?;
    }
    Ok(tree)
}

fn collect(
    folder: &Path,
    prefix: &str,
    names: Names,
    found: &mut BTreeMap<String, Entry>,
) -> Result<(), Failed> {
    let mut empty = true;
    for entry in fs::read_dir(folder)? {
        empty = false;
        let entry = entry?;
        let name = entry
            .file_name()
            .into_string()
            .map_err(|name| format!("the name {}", name.display()))?;
        let name = if names == Names::Escaped { unescaped(&name)? } else { name };
        let path = format!("{prefix}{name}");
        let (at, metadata) = (entry.path(), entry.metadata()?);
        if metadata.is_dir() {
            collect(&at, &format!("{path}/"), names, found)?;
        } else if metadata.is_symlink() {
            let target = fs::read_link(at)?;
            found.insert(path, Entry::Link(target.to_string_lossy().into_owned()));
        } else if metadata.is_file() {
            let executable = is_executable(&metadata);
            found.insert(path, Entry::File { bytes: fs::read(at)?, executable });
        } else {
            found.insert(path, Entry::Other);
        }
    }
    if empty && !prefix.is_empty() {
        found.insert(prefix.trim_end_matches('/').to_owned(), Entry::Empty);
    }
    Ok(())
}

impl Tree {
    /// Puts everything into `folder`.
    pub(crate) fn write(&self, folder: &Path, names: Names) -> Result<(), Failed> {
        for (path, entry) in &self.0 {
            let path = if names == Names::Escaped { escaped(path) } else { path.clone() };
            let at = folder.join(path);
            fs::create_dir_all(at.parent().unwrap_or(folder))?;
            match entry {
                Entry::File { bytes, executable } => {
                    fs::write(&at, bytes)?;
                    if *executable {
                        make_executable(&at)?;
                    }
                }
                Entry::Link(target) => link(target, &at)?,
                Entry::Empty => fs::create_dir_all(&at)?,
                Entry::Other => return Err("not a regular file".into()),
            }
        }
        Ok(())
    }

    /// Takes what stands in the folder `name`, or is `name`, out of the tree.
    pub(crate) fn split_off(&mut self, name: &str) -> Self {
        let mut taken = Self::default();
        let folder = format!("{name}/");
        for (path, entry) in std::mem::take(&mut self.0) {
            if let Some(below) = path.strip_prefix(&folder) {
                taken.0.insert(below.to_owned(), entry);
            } else if path != name {
                self.0.insert(path, entry);
            }
        }
        taken
    }

    /// All but the empty folders.
    pub(crate) fn files(&self) -> Self {
        let files = self.0.iter().filter(|(_, entry)| **entry != Entry::Empty);
        Self(files.map(|(path, entry)| (path.clone(), entry.clone())).collect())
    }

    /// The empty folders, one a line.
    pub(crate) fn empty_folders(&self) -> String {
        let empty = self.0.iter().filter(|(_, entry)| **entry == Entry::Empty);
        empty.flat_map(|(path, _)| [escaped(path), "\n".to_owned()]).collect()
    }

    /// What is other in `actual`, a paragraph each.
    pub(crate) fn differences(&self, actual: &Self, title: &str) -> Vec<String> {
        let mut found = Vec::new();
        for (path, entry) in &self.0 {
            match (entry, actual.0.get(path)) {
                (_, None) => found.push(format!("{title}{path:?} is missing")),
                (expected, Some(actual)) if expected == actual => {}
                (Entry::File { bytes: old, .. }, Some(Entry::File { bytes: new, .. }))
                    if old != new =>
                {
                    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
                    let diff = TextDiff::from_lines(&*old, &*new);
                    let header = format!("{title}{path}");
                    found.push(diff.unified_diff().header(&header, "actual").to_string());
                }
                _ => found.push(format!("{title}{path:?} is of another kind, target or mode")),
            }
        }
        let unexpected = actual.0.keys().filter(|path| !self.0.contains_key(*path));
        found.extend(unexpected.map(|path| format!("{title}{path:?} should not be there")));
        found
    }
}

fn escaped(path: &str) -> String {
    let part = |part: &str| {
        let mut out = String::new();
        for (n, c) in part.char_indices() {
            if c.is_ascii_control()
                || matches!(c, '%' | '\\' | ':' | '"' | '*' | '?' | '<' | '>' | '|')
                || (n == 0 && part.starts_with(".git"))
            {
                out.push_str(&format!("%{:02X}", u32::from(c)));
            } else {
                out.push(c);
            }
        }
        out
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

fn unescaped(name: &str) -> Result<String, Failed> {
    let mut bytes = Vec::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let code = after.get(..2).ok_or_else(|| format!("no byte after % in {name:?}"))?;
        bytes.push(u8::from_str_radix(code, 16)?);
        rest = &after[2..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(String::from_utf8(bytes)?)
}

#[cfg(unix)]
fn is_executable(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &fs::Metadata) -> bool {
    false
}

#[cfg(unix)]
fn make_executable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn link(target: &str, at: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, at)
}

#[cfg(not(unix))]
fn link(_: &str, _: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}
