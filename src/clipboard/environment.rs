//! Which ways to a clipboard this process has.

use std::ffi::OsString;

use super::{ClipboardBackend, terminal};
use crate::program::Programs;
use crate::terminal::Stream;

/// The variables that lead to a display. Helpers get no others: commands of a reply may be able to look at a
/// helper, and the environment may contain secrets.
const VARIABLES: [&str; 5] =
    ["HOME", "DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR"];

/// The environment of this process as far as it matters here.
#[derive(Debug, Clone)]
pub struct ClipboardEnvironment {
    variables: Vec<(&'static str, OsString)>,
    terminal: Result<ClipboardBackend, String>,
    /// Where tmux may be taken from.
    pub(super) programs: Programs,
}

impl ClipboardEnvironment {
    /// That of this process.
    pub fn current(programs: Programs) -> Self {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let is_terminal = Stream::Out.is_terminal() || Stream::Err.is_terminal();
        let variables = VARIABLES.into_iter().filter_map(|name| {
            let value = variable(name)?;
            // A helper changes its folder.
            let is_relative = name == "XAUTHORITY";
            let absolute = is_relative.then(|| std::path::absolute(&value).ok()).flatten();
            Some((name, absolute.map_or(value, OsString::from)))
        });
        Self {
            variables: variables.collect(),
            terminal: terminal::way(is_terminal, variable),
            programs,
        }
    }

    /// The ways through a helper, in the order in which they are tried.
    pub fn backends(&self) -> Vec<ClipboardBackend> {
        if cfg!(target_os = "macos") {
            return vec![ClipboardBackend::System];
        }
        let is_set = |name| self.variables.iter().any(|(known, _)| *known == name);
        let ways =
            [(ClipboardBackend::Wayland, "WAYLAND_DISPLAY"), (ClipboardBackend::X11, "DISPLAY")];
        ways.into_iter().filter(|(_, name)| is_set(*name)).map(|(way, _)| way).collect()
    }

    /// How a text is sent to the terminal where no helper takes it.
    ///
    /// # Errors
    /// There is no terminal, or it has no clipboard.
    pub fn terminal(&self) -> Result<ClipboardBackend, &str> {
        self.terminal.as_ref().copied().map_err(|why| &**why)
    }

    /// What a helper gets that goes this way: of two displays only the one that it is to use.
    pub(super) fn variables(
        &self,
        way: ClipboardBackend,
    ) -> impl Iterator<Item = (&'static str, &OsString)> {
        let other = if way == ClipboardBackend::Wayland { "DISPLAY" } else { "WAYLAND_DISPLAY" };
        let variables = self.variables.iter().filter(move |(name, _)| *name != other);
        variables.map(|(name, value)| (*name, value))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn ways_are_tried_in_their_order_and_each_sees_its_own_display_only() {
        let with = |names: &[&'static str]| ClipboardEnvironment {
            variables: names.iter().map(|name| (*name, "7".into())).collect(),
            terminal: Ok(ClipboardBackend::Terminal),
            programs: Programs::default(),
        };
        let both = with(&["HOME", "DISPLAY", "WAYLAND_DISPLAY"]);
        assert_eq!(both.backends(), [ClipboardBackend::Wayland, ClipboardBackend::X11]);
        assert_eq!(with(&["DISPLAY"]).backends(), [ClipboardBackend::X11]);
        assert_eq!(with(&["WAYLAND_DISPLAY"]).backends(), [ClipboardBackend::Wayland]);
        assert_eq!(with(&["HOME"]).backends(), []);
        let seen = |way| both.variables(way).map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(seen(ClipboardBackend::X11), ["HOME", "DISPLAY"]);
        assert_eq!(seen(ClipboardBackend::Wayland), ["HOME", "WAYLAND_DISPLAY"]);
    }
}
