//! Has the unit of a base directory written and removed. Where no systemd answers, nothing is left of
//! what was written, and what is there can be removed all the same.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use super::unit::{self, Unit};
use super::{Context, Service, talk};
use crate::atomic;
use crate::error::{Error, Result};
use crate::lock::Lock;
use crate::program::Programs;

impl Service<'_> {
    /// Writes the unit of a `watch` with these flags, and has it started at the next login; now, too, if
    /// `start` says so.
    pub(super) fn install(&self, start: bool, flags: &[&str]) -> Result<ExitCode> {
        let program = std::env::current_exe()
            .map_err(|e| Error::io("find", "deaddrop's own program".as_ref(), e))?;
        Programs::of(&self.context.config).find(&program).map_err(|e| {
            Error::usage(format!("no unit is written for {}: {e}", program.display()))
        })?;
        let base = &self.context.config.base;
        let (path, state) = (std::env::var_os("PATH"), std::env::var_os("XDG_STATE_HOME"));
        let (path, state) = (path.as_deref(), state.as_deref());
        let text = Unit { program: &program, base, path, state, flags }
            .text()
            .map_err(|why| Error::usage(format!("no unit can be written: {why}")))?;
        let before = self.before()?;
        let made = self.path.parent().map(atomic::make_folders).transpose()?.unwrap_or_default();
        atomic::write(&self.path, text.as_bytes())?;
        let enable: &[&str] = if start { &["enable", "--now"] } else { &["enable"] };
        let done = self.systemctl(&["daemon-reload"]).and_then(|_| {
            // It may have been wanted at another time before.
            self.forget(|target| target != unit::target(flags));
            self.systemctl(&[enable, &[self.name.as_str()]].concat())
        });
        let stays = done.as_ref().err().is_none_or(|e| e.is_of_the_service);
        let talk = &self.context.talk;
        if stays {
            talk.say(format!("{} says:\n\n{}", self.path.display(), text.trim_end()));
        } else {
            self.take_back(before.as_deref(), &made)?;
        }
        if self.context.json {
            Context::print_json(&json!({
                "unit": self.name,
                "path": stays.then(|| self.path.display().to_string()),
                "enabled": done.is_ok(),
                "started": start && done.is_ok(),
            }));
        } else if stays {
            talk::result(self.path.display().to_string());
        }
        match done {
            Ok(_) => {}
            Err(e) if stays => return Err(e.into()),
            Err(e) => {
                let left =
                    if before.is_some() { "the unit is as it was" } else { "no unit is left" };
                return Err(Error::failed(format!("{e}; {left}")));
            }
        }
        talk.hint(&format!(
            "\n{} {}{}.",
            self.name,
            self.begins(),
            if start { ", and runs now" } else { "; `deaddrop daemon start` starts it now" }
        ));
        Ok(ExitCode::SUCCESS)
    }

    /// Stops the service and removes its unit, also where no systemd answers.
    pub(super) fn uninstall(&self) -> Result<ExitCode> {
        let talk = &self.context.talk;
        if !self.path.exists() {
            talk.say(format!("{} is not there; nothing is removed.", self.path.display()));
            return Ok(ExitCode::SUCCESS);
        }
        // While it stands there: what is removed cannot be stopped by its name any more.
        let away = match self.systemctl(&["disable", "--now", &self.name]) {
            Ok(_) => None,
            Err(e) if e.is_of_the_service => return Err(e.into()),
            Err(e) => Some(e),
        };
        fs::remove_file(&self.path).map_err(|e| Error::io("remove", &self.path, e))?;
        let Some(away) = away else {
            self.systemctl(&["daemon-reload"])?;
            talk.say(format!("{} is stopped and removed.", self.name));
            return Ok(ExitCode::SUCCESS);
        };
        self.forget(|_| true);
        let serves = if Lock::holder_serves(&self.context.config) {
            "; the deaddrop that serves this base directory now goes on until it is stopped"
        } else {
            ""
        };
        talk.say(format!(
            "{} is removed, and starts no more. It was not stopped{serves}: {away}",
            self.path.display()
        ));
        Ok(ExitCode::SUCCESS)
    }

    /// When the service starts by itself, as its unit says.
    pub(super) fn begins(&self) -> &'static str {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        if text.lines().any(|line| line.strip_prefix("WantedBy=") == Some(unit::DESKTOP)) {
            "starts with your desktop"
        } else {
            "starts when you log in"
        }
    }

    /// The unit that stands there, if it is one of deaddrop's.
    fn before(&self) -> Result<Option<String>> {
        match fs::read_to_string(&self.path) {
            Ok(there) if !there.starts_with(unit::HEAD) => Err(Error::usage(format!(
                "{} is there already, and is none that deaddrop wrote; move it away",
                self.path.display()
            ))),
            Ok(there) => Ok(Some(there)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io("read", &self.path, e)),
        }
    }

    /// Puts things as they were before, the folders that were made for it included.
    fn take_back(&self, before: Option<&str>, made: &[PathBuf]) -> Result<()> {
        if let Some(before) = before {
            return atomic::write(&self.path, before.as_bytes());
        }
        fs::remove_file(&self.path).map_err(|e| Error::io("remove", &self.path, e))?;
        // One that somebody uses by now stays.
        made.iter().for_each(|folder| drop(fs::remove_dir(folder)));
        Ok(())
    }

    /// Removes what has it started with targets that are meant, as `disable` would.
    fn forget(&self, is_meant: impl Fn(&str) -> bool) {
        for target in [unit::LOGIN, unit::DESKTOP].into_iter().filter(|target| is_meant(target)) {
            let link = self.path.with_file_name(format!("{target}.wants")).join(&self.name);
            if link.is_symlink() {
                // One that stays leads to a unit that is not there, and starts nothing.
                let _ = fs::remove_file(link);
            }
        }
    }
}
