//! Keys of the REST API, `as_live_…`. Each is shown once, and stored as a digest with a name.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::clock::Timestamp;
use crate::error::{Error, Result};

/// The beginning of every key.
const PREFIX: &str = "as_live_";
/// How many random characters of the alphabet follow.
const LENGTH: usize = 40;
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// The longest name, in bytes.
const LONGEST: usize = 100;

/// A stored key.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKey {
    /// The name that the person chose.
    pub name: String,
    /// When the key was created.
    pub created_at: Timestamp,
    /// The BLAKE3 digest of the key, in hexadecimal.
    pub digest: String,
}

/// The keys of a project.
#[derive(Debug, Clone)]
pub struct ApiKeys(PathBuf);

impl ApiKeys {
    /// The keys in the sessions folder.
    pub fn new(sessions: &Path) -> Self {
        Self(sessions.join("api-keys.json"))
    }

    /// All keys, the oldest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn list(&self) -> Result<Vec<ApiKey>> {
        let Self(path) = self;
        let bytes = match atomic::read_own(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            read => read.map_err(|e| Error::io("read", path, e))?,
        };
        serde_json::from_slice(&bytes).map_err(|e| {
            let path = path.display();
            Error::failed(format!("{path} is damaged ({e}); remove it, and add the keys again"))
        })
    }

    /// Checks the name of a key.
    ///
    /// # Errors
    /// It is empty, too long, or not on one line.
    pub fn check_name(name: &str) -> Result<()> {
        if name.is_empty() || name.len() > LONGEST || name.chars().any(char::is_control) {
            let problem = format!("a key's name must have 1 to {LONGEST} characters on one line");
            return Err(Error::usage(problem));
        }
        Ok(())
    }

    /// Adds a key with a name, and returns the key itself, which is not stored.
    ///
    /// # Errors
    /// The name is invalid or taken, or the file cannot be written.
    pub fn add(&self, name: &str, now: Timestamp) -> Result<String> {
        Self::check_name(name)?;
        let _lock = self.lock()?;
        let mut keys = self.list()?;
        if keys.iter().any(|key| key.name == name) {
            let problem =
                format!("there is a key '{name}' already; `deaddrop serve keys revoke` removes it");
            return Err(Error::usage(problem));
        }
        let random = || *uuid::Uuid::new_v4().as_bytes();
        // Some bits of a UUID are fixed, so hash several.
        let mut seed = blake3::Hasher::new();
        for _ in 0..3 {
            seed.update(&random());
        }
        let mut bytes = [0; LENGTH];
        seed.finalize_xof().fill(&mut bytes);
        let letters = bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)]));
        let key: String = PREFIX.chars().chain(letters).collect();
        keys.push(ApiKey { name: name.to_owned(), created_at: now, digest: digest(&key) });
        self.write(&keys)?;
        Ok(key)
    }

    /// Removes the key with this name. It is invalid from then on.
    ///
    /// # Errors
    /// There is none, or the file cannot be written.
    pub fn revoke(&self, name: &str) -> Result<()> {
        let is_it = |key: &ApiKey| key.name == name;
        // Without keys, do not create a lock file.
        if !self.list()?.iter().any(is_it) {
            let problem =
                format!("there is no key '{name}'; `deaddrop serve keys list` shows them");
            return Err(Error::usage(problem));
        }
        let _lock = self.lock()?;
        let mut keys = self.list()?;
        keys.retain(|key| !is_it(key));
        self.write(&keys)
    }

    /// The stored key that matches `given`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn find(&self, given: &str) -> Result<Option<ApiKey>> {
        let is_it = |stored: &ApiKey| {
            // Digests are compared in constant time.
            let stored = blake3::Hash::from_hex(&stored.digest);
            stored.is_ok_and(|stored| stored == blake3::hash(given.as_bytes()))
        };
        Ok(self.list()?.into_iter().find(is_it))
    }

    fn write(&self, keys: &[ApiKey]) -> Result<()> {
        let text = serde_json::to_vec_pretty(keys).expect("texts become JSON");
        atomic::write_private(&self.0, &text)
    }

    /// A lock for changes, so that a concurrent change cannot restore a revoked key.
    fn lock(&self) -> Result<File> {
        let path = self.0.with_extension("lock");
        let fail = |e| Error::io("lock", &path, e);
        let mut options = File::options();
        let file = atomic::open_own(options.write(true).create(true).truncate(false), &path);
        let file = file.map_err(fail)?;
        file.lock().map_err(fail)?;
        Ok(file)
    }
}

fn digest(key: &str) -> String {
    blake3::hash(key.as_bytes()).to_hex().to_string()
}
