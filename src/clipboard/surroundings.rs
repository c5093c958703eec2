//! What this process can reach a clipboard by: displays, programs, a terminal.

use std::ffi::OsString;

use super::{Passed, Way, terminal, tools};
use crate::program::Programs;
use crate::terminal::Stream;

/// What helpers get of the environment: what leads to a display and to programs. Commands of a
/// session may be able to look at a helper, and keys of the person stand in the environment.
const HANDED_ON: [&str; 7] =
    ["PATH", "HOME", "DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "LANG"];

/// What there is around this process.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// Where the programs among the ways may be taken from.
    pub(super) programs: Programs,
    /// The variables that helpers get.
    variables: Vec<(&'static str, OsString)>,
    /// Whether standard output or standard error is a terminal.
    pub(super) terminal: bool,
    /// What the terminal says it is.
    pub(super) term: String,
    /// Whether it is tmux.
    pub(super) tmux: bool,
    /// Whether it is GNU screen.
    pub(super) screen: bool,
}

impl Surroundings {
    /// Those of this process, with programs from there.
    pub fn here(programs: Programs) -> Self {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let is_set = |name| variable(name).is_some();
        Self {
            variables: HANDED_ON
                .into_iter()
                .filter_map(|name| Some((name, variable(name)?)))
                .map(|(name, value)| match name {
                    // A helper is in another folder.
                    "XAUTHORITY" => match std::path::absolute(&value) {
                        Ok(path) => (name, path.into()),
                        Err(_) => (name, value),
                    },
                    // What a program starts in turn it finds there.
                    "PATH" => (name, programs.folders(&value)),
                    _ => (name, value),
                })
                .collect(),
            programs,
            terminal: Stream::Out.is_terminal() || Stream::Err.is_terminal(),
            term: variable("TERM").unwrap_or_default().to_string_lossy().into_owned(),
            tmux: is_set("TMUX"),
            screen: is_set("STY") && !is_set("TMUX"),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.variables.iter().any(|(known, _)| *known == name)
    }

    /// The ways to a display, or to a clipboard without one, in the order in which they are tried.
    pub fn ways(&self) -> Vec<Way> {
        let (wayland, x11) = (self.has("WAYLAND_DISPLAY"), self.has("DISPLAY"));
        let system = cfg!(any(target_os = "macos", windows));
        let tool = |way| tools::program(way, "hold").is_some_and(|name| self.finds(name));
        [
            (Way::System, system),
            (Way::Wayland, wayland && !system),
            (Way::X11, x11 && !system),
            (Way::WlCopy, wayland && tool(Way::WlCopy)),
            (Way::Xclip, x11 && tool(Way::Xclip)),
            (Way::Xsel, x11 && tool(Way::Xsel)),
        ]
        .into_iter()
        .filter_map(|(way, there)| there.then_some(way))
        .collect()
    }

    /// The programs that would be ways, too, if they were installed: their packages.
    pub fn lacks(&self) -> Vec<&'static str> {
        let none = |names: &[&str]| !names.iter().any(|name| self.finds(name));
        [
            ("wl-clipboard", "WAYLAND_DISPLAY", &["wl-copy"][..]),
            ("xclip", "DISPLAY", &["xclip", "xsel"]),
        ]
        .into_iter()
        .filter(|(_, display, names)| self.has(display) && none(names))
        .map(|(package, ..)| package)
        .collect()
    }

    /// How a text would be sent to the terminal where no other way takes it.
    ///
    /// # Errors
    /// There is no terminal, or it is one that has no clipboard.
    pub fn terminal(&self) -> Result<Way, String> {
        terminal::way(self)
    }

    /// Why there may be none of them.
    pub fn without_display() -> Passed {
        let why = "there is no display here (neither WAYLAND_DISPLAY nor DISPLAY is set)";
        Passed { way: None, why: why.to_owned() }
    }

    /// What a helper gets that goes this way: of two displays only the one that it is to use.
    pub(super) fn handed_on(&self, way: Way) -> impl Iterator<Item = (&'static str, &OsString)> {
        let other = match way {
            Way::Wayland | Way::WlCopy => "DISPLAY",
            _ => "WAYLAND_DISPLAY",
        };
        let variables = self.variables.iter().filter(move |(name, _)| *name != other);
        variables.map(|(name, value)| (*name, value))
    }

    /// Whether a program is there.
    fn finds(&self, name: &str) -> bool {
        self.programs.find(name).is_ok()
    }

    /// With these variables only, and no terminal.
    #[cfg(test)]
    pub(super) fn of(variables: &[(&'static str, &str)]) -> Self {
        Self {
            programs: Programs::in_folders(std::ffi::OsStr::new(
                variables.iter().find(|(name, _)| *name == "PATH").map_or("", |(_, path)| path),
            )),
            variables: variables.iter().map(|(name, value)| (*name, value.into())).collect(),
            terminal: false,
            term: String::new(),
            tmux: false,
            screen: false,
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn ways_are_tried_in_their_order_and_each_sees_its_own_display_only() {
        use std::os::unix::fs::PermissionsExt;
        // Not where everybody can write, as in `/tmp`.
        let program = std::env::current_exe().unwrap();
        let folder = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
        for (name, mode) in [("xclip", 0o755), ("wl-copy", 0o755), ("xsel", 0o644)] {
            let path = folder.path().join(name);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        }
        let path = ("PATH", folder.path().to_str().unwrap());
        let (x11, wayland) = (("DISPLAY", ":7"), ("WAYLAND_DISPLAY", "wayland-7"));
        let both = Surroundings::of(&[path, x11, wayland]);
        // xsel may not be run.
        assert_eq!(both.ways(), [Way::Wayland, Way::X11, Way::WlCopy, Way::Xclip]);
        assert_eq!(Surroundings::of(&[path, x11]).ways(), [Way::X11, Way::Xclip]);
        assert_eq!(Surroundings::of(&[wayland]).ways(), [Way::Wayland]);
        assert_eq!(Surroundings::of(&[path]).ways(), []);
        assert_eq!(both.lacks(), [""; 0]);
        assert_eq!(Surroundings::of(&[x11, wayland]).lacks(), ["wl-clipboard", "xclip"]);
        assert_eq!(Surroundings::of(&[wayland]).lacks(), ["wl-clipboard"]);
        assert!(both.terminal().unwrap_err().contains("not run at a terminal"));
        let seen = |way| both.handed_on(way).map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(seen(Way::X11), ["PATH", "DISPLAY"]);
        assert_eq!(seen(Way::WlCopy), ["PATH", "WAYLAND_DISPLAY"]);
    }
}
