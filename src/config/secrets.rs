//! What is done about secrets in what an outbox shows, and which files are released.

use super::Raw;
use super::pattern;
use crate::error::Result;

/// How what an outbox shows is screened for secrets, as the person set it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Secrets {
    /// What is done with those that are found.
    pub mode: SecretsMode,
    /// Patterns of files whose contents are shown as they are, beneath the workspace.
    pub allow: Vec<String>,
}

/// What is done with a secret that is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SecretsMode {
    /// It is left out, and the person is told.
    #[default]
    Withhold,
    /// It is shown, and the person is told.
    Warn,
}

impl SecretsMode {
    /// All of them, as a person writes them.
    pub(super) const ALL: [(&'static str, Self); 2] =
        [("withhold", Self::Withhold), ("warn", Self::Warn)];
}

impl Secrets {
    pub(super) fn resolve(raw: &Raw) -> Result<Self> {
        Ok(Self {
            mode: raw.setting("secrets").secrets()?,
            allow: raw.setting("secrets_allow").patterns()?,
        })
    }

    /// Whether the file at `path` (relative to the workspace, with `/`) is released. Patterns are
    /// as those of policies: one without `/` means a name at any depth, `**` any number of folders.
    ///
    /// # Examples
    /// ```
    /// use deaddrop::config::Secrets;
    /// let allow = vec!["tests/fixtures/*.pem".to_owned()];
    /// let secrets = Secrets { allow, ..Secrets::default() };
    /// assert!(secrets.releases("tests/fixtures/server.pem"));
    /// assert!(!secrets.releases("server.pem"));
    /// ```
    pub fn releases(&self, path: &str) -> bool {
        self.allow.iter().any(|allowed| pattern::matches(allowed, path))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::tests::{resolved, with_variable};

    fn secrets(text: &str) -> Result<Secrets> {
        let raw = Raw::from_text(text, Path::new("/base/deaddrop.toml"))?;
        resolved(&raw).map(|config| config.secrets)
    }

    #[test]
    fn secrets_are_withheld_unless_the_person_says_otherwise() {
        assert_eq!(secrets("").unwrap(), Secrets { mode: SecretsMode::Withhold, allow: vec![] });
        let set =
            secrets("secrets = \"warn\"\nsecrets_allow = [\"a/*.pem\", \".env.ci\"]").unwrap();
        assert_eq!(set.mode, SecretsMode::Warn);
        assert_eq!(set.allow, ["a/*.pem", ".env.ci"]);
        assert_eq!(with_variable("DEADDROP_SECRETS", "warn").secrets.mode, SecretsMode::Warn);
        assert_eq!(with_variable("DEADDROP_SECRETS_ALLOW", "a, b/**").secrets.allow, ["a", "b/**"]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, told) in [
            ("secrets = \"off\"", ":1: secrets is 'off' but must be one of withhold, warn"),
            ("\nsecrets = true", ":2: secrets cannot be a boolean (true); it must be one of"),
            ("[secrets]\nx = 1", "secrets cannot be a table; it must be one of withhold, warn"),
            (
                "secrets_allow = \"a\"",
                "secrets_allow cannot be a string ('a'); it must be a list of patterns of files",
            ),
            ("secrets_allow = [1]", "secrets_allow holds an integer (1)"),
            ("secrets_allow = [\"\"]", "secrets_allow holds '', but each item must be"),
            ("secrets_allow = [\"/etc/x\"]", "secrets_allow holds '/etc/x', but each item must be"),
            ("secrets_allow = [\"a/../b\"]", "secrets_allow holds 'a/../b', but each item must be"),
            ("secret_allow = []", "did you mean 'secrets_allow'?"),
        ] {
            let error = secrets(text).expect_err(text).to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
