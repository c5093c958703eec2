//! Determines the clipboard backends that this process can use.

use std::ffi::OsString;

use super::{ClipboardBackend, terminal};
use crate::program::Programs;
use crate::terminal::Stream;

/// The variables for reaching a display. A helper gets no other variables: commands of a reply may be able to inspect
/// it, and the environment may contain secrets.
const VARIABLES: [&str; 5] =
    ["HOME", "DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR"];

/// The facts that determine the backends of this process.
#[derive(Debug, Clone)]
pub struct ClipboardSetup {
    variables: Vec<(&'static str, OsString)>,
    terminal: Result<ClipboardBackend, String>,
    /// Finds tmux.
    pub(super) programs: Programs,
}

impl ClipboardSetup {
    /// Reads the environment of this process.
    pub fn current(programs: Programs) -> Self {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let is_terminal = Stream::Out.is_terminal() || Stream::Err.is_terminal();
        let variables = VARIABLES.into_iter().filter_map(|name| {
            let value = variable(name)?;
            // A helper changes its working directory, so the path must be absolute.
            let is_relative = name == "XAUTHORITY";
            let absolute = is_relative.then(|| std::path::absolute(&value).ok()).flatten();
            Some((name, absolute.map_or(value, OsString::from)))
        });
        Self {
            variables: variables.collect(),
            terminal: terminal::backend(is_terminal, variable),
            programs,
        }
    }

    /// The backends that need a helper, in the order of use.
    pub fn backends(&self) -> Vec<ClipboardBackend> {
        if cfg!(target_os = "macos") {
            return vec![ClipboardBackend::System];
        }
        let is_set = |name| self.variables.iter().any(|(known, _)| *known == name);
        let backends =
            [(ClipboardBackend::Wayland, "WAYLAND_DISPLAY"), (ClipboardBackend::X11, "DISPLAY")];
        backends.into_iter().filter(|(_, name)| is_set(*name)).map(|(backend, _)| backend).collect()
    }

    /// The terminal's backend. It is used if no helper can copy a text.
    ///
    /// # Errors
    /// There is no terminal, or it has no clipboard.
    pub fn terminal(&self) -> Result<ClipboardBackend, &str> {
        self.terminal.as_ref().copied().map_err(|why| &**why)
    }

    /// The variables for a helper of this backend. If there are two displays, it gets only the one that it must use.
    pub(super) fn variables(
        &self,
        backend: ClipboardBackend,
    ) -> impl Iterator<Item = (&'static str, &OsString)> {
        let other =
            if backend == ClipboardBackend::Wayland { "DISPLAY" } else { "WAYLAND_DISPLAY" };
        let variables = self.variables.iter().filter(move |(name, _)| *name != other);
        variables.map(|(name, value)| (*name, value))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn ways_are_tried_in_their_order_and_each_sees_its_own_display_only() {
        let with = |names: &[&'static str]| ClipboardSetup {
            variables: names.iter().map(|name| (*name, "7".into())).collect(),
            terminal: Ok(ClipboardBackend::Terminal),
            programs: Programs::default(),
        };
        let both = with(&["HOME", "DISPLAY", "WAYLAND_DISPLAY"]);
        assert_eq!(both.backends(), [ClipboardBackend::Wayland, ClipboardBackend::X11]);
        assert_eq!(with(&["DISPLAY"]).backends(), [ClipboardBackend::X11]);
        assert_eq!(with(&["WAYLAND_DISPLAY"]).backends(), [ClipboardBackend::Wayland]);
        assert_eq!(with(&["HOME"]).backends(), []);
        let seen = |backend| both.variables(backend).map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(seen(ClipboardBackend::X11), ["HOME", "DISPLAY"]);
        assert_eq!(seen(ClipboardBackend::Wayland), ["HOME", "WAYLAND_DISPLAY"]);
    }
}
