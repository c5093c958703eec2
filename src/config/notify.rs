//! How the person is told, away from the terminal's text, that a turn is done.

use super::Raw;
use crate::error::Result;

/// How the end of a turn is announced, as the person set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Notify {
    /// Not at all.
    #[default]
    Off,
    /// The terminal rings its bell.
    Bell,
    /// `notify-send` shows a message on the desktop.
    Desktop,
}

impl Notify {
    /// All of them, as a person writes them.
    pub(super) const ALL: [(&'static str, Self); 3] =
        [("off", Self::Off), ("bell", Self::Bell), ("desktop", Self::Desktop)];

    pub(super) fn resolve(raw: &Raw) -> Result<Self> {
        raw.setting("notify").notify()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::tests::{resolved, with_variable};

    fn notify(text: &str) -> Result<Notify> {
        let raw = Raw::from_text(text, Path::new("/base/deaddrop.toml"))?;
        resolved(&raw).map(|config| config.notify)
    }

    #[test]
    fn nobody_is_disturbed_who_has_not_asked_for_it() {
        assert_eq!(notify("").unwrap(), Notify::Off);
        assert_eq!(notify("notify = \"bell\"").unwrap(), Notify::Bell);
        assert_eq!(with_variable("DEADDROP_NOTIFY", "desktop").notify, Notify::Desktop);
        for (text, told) in [
            ("notify = \"beep\"", ":1: notify is 'beep' but must be one of off, bell, desktop"),
            ("notify = true", ":1: notify cannot be a boolean (true); it must be one of off"),
        ] {
            let error = notify(text).expect_err(text).to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
