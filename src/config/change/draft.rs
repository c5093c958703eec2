//! The settings file of a base directory as it is to be, before it is written.

use std::path::{Path, PathBuf};

use super::{check, find, insert, lines, parse, place, put, read, unclear, value};
use crate::config::{Config, Consent, FILE, Layers, Raw};
use crate::error::Result;

/// The settings file of a base directory as it is to be.
#[derive(Debug)]
pub struct Draft {
    base: PathBuf,
    text: String,
}

impl Draft {
    /// Of the base directory with this path, links followed, which need not be there: these lines of
    /// comment, and these settings in their order.
    ///
    /// # Errors
    /// The settings would not be in order.
    pub fn new(base: &Path, note: &str, settings: &[(&str, &str)]) -> Result<Self> {
        Self::of(base, note, "", settings)
    }

    /// Of one that has a settings file: with those of these settings that it does not say.
    ///
    /// # Errors
    /// The settings would not be in order, or the file is written in a way that this cannot change.
    pub fn completed(base: &Path, settings: &[(&str, &str)]) -> Result<Self> {
        Self::of(base, "", &read(&base.join(FILE))?, settings)
    }

    fn of(base: &Path, note: &str, before: &str, settings: &[(&str, &str)]) -> Result<Self> {
        let (file, doing) = (base.join(FILE), format!("{FILE} for {}", base.display()));
        let mut document = parse(before, &file)?;
        for (name, word) in settings {
            let place = place(name, &doing)?;
            if find(&document, &place).is_some() {
                continue;
            }
            let value = value(name, &[(*word).to_owned()], &doing)?;
            insert(&mut document, &place, value).ok_or_else(|| unclear(&doing, &file))?;
        }
        let text = format!("{note}{}", lines::ended_as(before, &document.to_string()));
        check(Some(base), &file, &text, &doing)?;
        Ok(Self { base: base.to_owned(), text })
    }

    /// What would be in force with it, as [`Config::look`] tells it.
    ///
    /// # Errors
    /// The settings are wrong.
    pub fn look(&self) -> Result<(Config, Consent)> {
        let file = Raw::from_text(&self.text, &self.base.join(FILE))?;
        let layers = Layers { file, ..Layers::around_the_file(Raw::default())? };
        Config::looked(self.base.clone(), &layers)
    }

    /// Writes it.
    ///
    /// # Errors
    /// The disk.
    pub fn write(&self) -> Result<()> {
        put(&self.base.join(FILE), &self.text)
    }
}
