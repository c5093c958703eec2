//! Finds files that contain credentials: by name and, for settings files in which people write tokens, by content.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;

use crate::atomic::read_regular;
use crate::secrets::is_secret_text_file;

/// The structure of `data/credentials.toml`: lists of names.
#[derive(Deserialize)]
struct CredentialLists {
    names: Vec<String>,
    endings: Vec<String>,
    large: Vec<String>,
    settings: Vec<String>,
    words: Vec<String>,
}

static LISTS: LazyLock<CredentialLists> = LazyLock::new(|| {
    toml::from_str(include_str!("../data/credentials.toml")).expect("a constant table")
});

/// How many levels of a tool's folder are searched, for example `versions/node/v22/etc/npmrc`.
const DEPTH: usize = 5;
/// Down to this level, a file counts as a secret if only its owner may read it. A file at a greater depth is private
/// because of a package, not because of a person.
const CLOSED_DEPTH: usize = 2;
/// The most entries of a tool that are read. Those nearest to the top are read first.
const MOST: usize = 20_000;
/// The largest file that is read, in bytes. A larger file counts as a secret.
const LONGEST: u64 = 4 << 20;

/// Whether outboxes would also withhold the contents of a file. Certificates are excluded: tools need them, and they
/// have the same file names as keys but are not secret.
fn is_secret(path: &Path, name: &OsStr) -> bool {
    let may_be_certificate = path
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("pem") || end.eq_ignore_ascii_case("key"));
    let is_certificate = || {
        read_regular(path, LONGEST).is_ok_and(|text| {
            let has = |part: &[u8]| memchr::memmem::find(&text, part).is_some();
            has(b"-----BEGIN ") && !has(b"PRIVATE KEY") && !has(b"SECRET KEY")
        })
    };
    name.to_str().is_some_and(is_secret_text_file) && !(may_be_certificate && is_certificate())
}

/// Whether files or folders with this name contain credentials.
pub(super) fn is_credential_name(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let is_in = |list: &[String], name: &str| list.iter().any(|one| one == name);
    is_in(&LISTS.names, name)
        || name.strip_prefix("credentials.").is_some_and(|end| is_in(&LISTS.endings, end))
}

/// Whether a settings file contains tokens, as some tools allow. Comments are ignored, because some only explain this.
pub(super) fn contains_tokens(file: &Path) -> bool {
    let is_comment = |line: &str| line.starts_with('#') || line.starts_with("--");
    let tells = |line: &str| {
        let line = line.to_ascii_lowercase();
        LISTS.words.iter().any(|word| line.contains(word)) || has_user(&line)
    };
    let path = file.as_os_str().as_encoded_bytes(); // Comparing bytes is ten times as fast.
    LISTS.settings.iter().any(|name| path.ends_with(name.as_bytes()) && file.ends_with(name))
        && file.is_file()
        && read_regular(file, LONGEST).map_or(true, |text| {
            String::from_utf8_lossy(&text)
                .lines()
                .map(str::trim_start)
                .any(|line| !is_comment(line) && tells(line))
        })
}

/// Whether a URL in this line contains a user and a password: `https://me:word@host/`.
fn has_user(line: &str) -> bool {
    line.split("://").skip(1).any(|rest| {
        let host = rest.split(['/', '"', '\'', ' ']).next().unwrap_or_default();
        host.split_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

/// The credentials in a tool's folder. The search is limited, because a tool may have 100,000 files. Caches are
/// skipped: the person did not put anything there.
pub(super) fn within(top: &Path, caches: &[String]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = VecDeque::from([(top.to_path_buf(), 1)]);
    let mut left = MOST;
    while let Some((folder, depth)) = folders.pop_front() {
        let open = is_open(&folder);
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            left = left.saturating_sub(1);
            if left == 0 {
                return found;
            }
            let (path, name) = (entry.path(), entry.file_name());
            let Ok(kind) = entry.file_type() else { continue };
            let is_skipped = || caches.iter().any(|cache| path == top.join(cache));
            if kind.is_symlink() || is_skipped() {
                continue;
            }
            let closed = || depth <= CLOSED_DEPTH && open && is_private_file(&path);
            let holds_secret = || is_secret(&path, &name) || contains_tokens(&path) || closed();
            if is_credential_name(&name) || (kind.is_file() && holds_secret()) {
                found.push(path);
            } else if kind.is_dir() && LISTS.large.iter().any(|large| name == **large) {
                // npm's own settings file, to which the person may have added tokens.
                found.extend(Some(path.join("npm/npmrc")).filter(|file| file.is_file()));
            } else if kind.is_dir() && depth < DEPTH {
                folders.push_back((path, depth + 1));
            }
        }
    }
    found
}

fn is_open(folder: &Path) -> bool {
    folder.metadata().is_ok_and(|found| found.mode() & 0o005 == 0o005)
}

/// Whether only the owner may read a file. This proves nothing in a private folder, where the umask may make all files
/// private, and nothing for programs.
fn is_private_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.mode() & 0o777 & !0o600 == 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn credentials_of_a_tool_are_found_and_its_programs_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, mode: u32, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        };
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let secrets = [
            ".condarc",
            "conda-meta/state",
            "credentials.toml",
            "envs/one/pip.conf",
            "private",
            "tools/x/uv-receipt.toml",
            "versions/node/v22/etc/npmrc",
            "versions/node/v22/lib/node_modules/npm/npmrc",
            "versions/one/.env",
            "versions/server.key",
        ];
        for name in secrets {
            file(name, 0o600, "index = \"https://me:word@host/\"\n");
        }
        for name in [
            "bin/private-program",
            "cache/private",
            "closed/by-umask",
            "config.toml",
            "lib/credentials.py",
            "one/two/three/private",
            "pkgs/x/npmrc",
            "uv-receipt.toml",
        ] {
            file(name, 0o600, "index = \"https://host/a@1:2\"\n");
        }
        file("bin/private-program", 0o700, "");
        file("ssl/roots.pem", 0o644, "-----BEGIN CERTIFICATE-----\nAA\n");
        file("config.toml", 0o644, "# A token has no place here.\n");
        file("uv-receipt.toml", 0o644, "index = \"https://host/a@1:2\"\n");
        file("lib/credentials.py", 0o644, "");
        let closed = fs::Permissions::from_mode(0o700);
        fs::set_permissions(folder.path().join("closed"), closed).unwrap();
        let mut found = within(folder.path(), &["cache".to_owned()]);
        found.sort();
        assert_eq!(found, secrets.map(|name| folder.path().join(name)));
    }
}
