//! systemd: the unit of a service that does what `watch` does, and what systemd is told by one that it started.

use std::ffi::OsStr;
use std::path::Path;

use sd_notify::NotifyState;

use super::output::Terminal;
use crate::text::visible_line;

/// Starts a service when the person logs in, at the desktop or elsewhere.
const LOGIN: &str = "default.target";
/// Starts it with their desktop, where a clipboard is.
const DESKTOP: &str = "graphical-session.target";

/// Tells systemd, if it started this process, that it is ready or about to stop.
pub(super) fn notify(ui: &Terminal, state: &NotifyState<'_>) {
    if let Err(e) = sd_notify::notify(std::slice::from_ref(state)) {
        ui.warning(&format!("systemd's socket (NOTIFY_SOCKET) takes no message: {e}"));
    }
}

/// What a unit names.
#[derive(Clone, Copy)]
pub(super) struct Unit<'a> {
    pub(super) program: &'a Path,
    pub(super) project: &'a Path,
    /// PATH for commands: that of a service is another.
    pub(super) path: Option<&'a OsStr>,
    /// `XDG_STATE_HOME`, where it is set: there it is noted what the person has agreed to.
    pub(super) state: Option<&'a OsStr>,
    /// What is said to `watch`: only about the clipboard, and each a plain word.
    pub(super) flags: &'a [&'a str],
}

/// The name of the unit of a project: readable, and of no other one.
pub(super) fn name(project: &Path) -> String {
    let folder = project.file_name().unwrap_or_default().to_string_lossy();
    let words = folder.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let name: String = words.join("-").chars().take(40).collect();
    let hash = blake3::hash(project.as_os_str().as_encoded_bytes()).to_hex();
    let name = if name.is_empty() { String::new() } else { format!("{name}-") };
    format!("deaddrop-{name}{}.service", &hash[..8])
}

impl Unit<'_> {
    /// Its text, or why there can be none.
    pub(super) fn text(&self) -> Result<String, String> {
        let program = text(self.program.as_os_str())?;
        // What it does not take in the name of a program, however it is written.
        if program.contains(|c: char| c.is_control() || "\"'\\".contains(c)) {
            return Err(format!(
                "systemd runs no program whose path holds quotes, backslashes or control characters: {}",
                visible_line(program)
            ));
        }
        let project = text(self.project.as_os_str())?;
        // A value that is no text is left to systemd's own.
        let variable = |(name, value): (&str, Option<&OsStr>)| {
            let value = value.and_then(|value| text(value).ok())?;
            Some(format!("Environment={}\n", quoted(&format!("{name}={value}"))))
        };
        let variables = [("PATH", self.path), ("XDG_STATE_HOME", self.state)];
        let variables: String = variables.into_iter().filter_map(variable).collect();
        let target = if self.flags.is_empty() { LOGIN } else { DESKTOP };
        let desktop = if target == DESKTOP {
            // DISPLAY and the like are known to systemd by then, and go away with it.
            format!("PartOf={DESKTOP}\nAfter={DESKTOP}\n")
        } else {
            String::new()
        };
        let flags: String = self.flags.iter().map(|flag| format!(" {flag}")).collect();
        Ok(format!(
            "\
# Save this file as {name} in ~/.config/systemd/user/, then:
#   systemctl --user daemon-reload && systemctl --user enable --now {name}
[Unit]
Description=deaddrop in {description}
{desktop}
[Service]
Type=notify
NotifyAccess=main
ExecStart={program} -C {project} --color never watch{flags}
{variables}# What a hard stop left is finished first, commands included.
TimeoutStartSec=infinity
# deaddrop ends its commands itself.
KillMode=mixed
SuccessExitStatus=130
Restart=on-failure
RestartSec=5
# Wrong settings, or another deaddrop at work: neither goes away by itself.
RestartPreventExitStatus=2 4

# Nothing here confines deaddrop: its sandbox makes namespaces, which settings such as
# NoNewPrivileges= and RestrictNamespaces= could keep from it.

[Install]
WantedBy={target}
",
            name = name(self.project),
            description = visible_line(project).replace('%', "%%"),
            program = quoted(program),
            // Variables are put in for `$`, but in the name of the program.
            project = quoted(&project.replace('$', "$$")),
        ))
    }
}

fn text(value: &OsStr) -> Result<&str, String> {
    value
        .to_str()
        .ok_or_else(|| format!("{} is not valid UTF-8", visible_line(&value.to_string_lossy())))
}

/// A word as systemd reads it back: in quotes, with C's escapes, and `%` doubled.
fn quoted(word: &str) -> String {
    let mut out = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '%' => out.push_str("%%"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            // Whoever reads the unit should see it.
            c if visible_line(c.encode_utf8(&mut [0; 4])) != c.to_string() => {
                out.push_str(&format!("\\U{:08x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_has_a_name_of_its_own() {
        let one = name(Path::new("/home/me/My Project (1)"));
        assert!(one.starts_with("deaddrop-My-Project-1-") && one.ends_with(".service"), "{one}");
        assert_ne!(one, name(Path::new("/home/you/My Project (1)")));
        assert_eq!(one, name(Path::new("/home/me/My Project (1)")));
        let all = [Path::new("/"), Path::new("/ä%"), Path::new("/a/-")].map(name);
        let plain =
            |name: &String| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
        assert!(all.iter().all(plain), "{all:?}");
    }

    #[test]
    fn what_systemd_would_read_otherwise_is_escaped() {
        let unit = Unit {
            program: Path::new("/opt/50% off/$x/deaddrop"),
            project: Path::new("/home/me/a b\\%h/$HOME\n/é"),
            path: Some(OsStr::new("/bin:/50%")),
            state: Some(OsStr::new("/home/me/a b")),
            flags: &[],
        };
        let text = unit.text().unwrap();
        let line = r#"ExecStart="/opt/50%% off/$x/deaddrop" -C "/home/me/a b\\%%h/$$HOME\n/é" --color never watch"#;
        assert!(text.contains(&format!("\n{line}\n")), "{text}");
        let variables =
            "\nEnvironment=\"PATH=/bin:/50%%\"\nEnvironment=\"XDG_STATE_HOME=/home/me/a b\"\n";
        assert!(text.contains(variables), "{text}");
        assert!(text.contains("\nDescription=deaddrop in /home/me/a b\\%%h/$HOME"), "{text}");
        for odd in ["/a\nb", "/a\"b", "/a'b", "/a\\b"] {
            let told = Unit { program: Path::new(odd), ..unit }.text().unwrap_err();
            assert!(told.contains("quotes, backslashes or control"), "{told}");
        }
    }

    #[test]
    fn nothing_keeps_the_sandbox_from_what_it_needs() {
        let unit = Unit {
            program: Path::new("/d"),
            project: Path::new("/b"),
            path: None,
            state: None,
            flags: &["--clipboard"],
        };
        let text = unit.text().unwrap();
        let set: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| Some(line.split_once('=')?.0))
            .collect();
        for kept in [
            "NoNewPrivileges",
            "RestrictNamespaces",
            "ProtectSystem",
            "PrivateTmp",
            "SystemCallFilter",
            "PrivateUsers",
            "CapabilityBoundingSet",
        ] {
            assert!(!set.contains(&kept), "{kept}");
        }
        assert!(
            text.contains(" watch --clipboard\n")
                && text.contains("\nWantedBy=graphical-session.target\n"),
            "{text}"
        );
        assert!(set.contains(&"Type") && !set.contains(&"Environment"), "{set:?}");
    }
}
