//! What a plain agent's guest is: asked by one small script.

use super::super::{Guest, sane};
use crate::error::{Error, Result};
use crate::machine;
use crate::protocol::jsonrpc::{About, ExecResult};

/// The script, to be begun in the root. Each line that it writes begins with what it is.
fn script(root: &str) -> String {
    let tools = machine::script();
    format!(
        "cd {root} || exit 1
printf 'root %s\\n' \"$(pwd)\"
printf 'system %s\\n' \"$(sed -n 's/^PRETTY_NAME=//p' /etc/os-release 2>/dev/null | tr -d '\"')\"
printf 'kernel %s\\n' \"$(uname -srm)\"
{tools}"
    )
}

/// What the guest is.
pub(in super::super) fn about(guest: &Guest) -> Result<About> {
    let failed = |why: &str| {
        let what = match &guest.settings.root {
            Some(root) => format!("begun in '{}' (root of [guest])", sane::line(root)),
            None => "begun".to_owned(),
        };
        let why = format!("no command can be {what} there: {why}");
        Error::guest(&guest.label(), &why)
    };
    match guest.script(script(&guest.word_of("")), true)? {
        Ok(ExecResult { exit_code: 0, stdout, .. }) => Ok(read(&stdout)),
        Ok(ExecResult { exit_code, stderr, .. }) => {
            Err(failed(&format!("exit code {exit_code}: {}", sane::line(stderr.trim()))))
        }
        Err(fault) => Err(failed(&sane::line(&fault.message))),
    }
}

/// Reads what the script wrote.
pub(super) fn read(said: &str) -> About {
    let all = |what: &str| {
        let lines = said.lines().filter_map(|line| line.split_once(' '));
        lines.filter(|(is, _)| *is == what).map(|(_, told)| told.trim()).collect::<Vec<_>>()
    };
    let one = |what: &str| all(what).first().copied().unwrap_or_default().to_owned();
    let system = [one("system"), one("kernel")];
    let system = system.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    About {
        version: 0,
        program: "an agent that is no deaddrop".to_owned(),
        system: if system.is_empty() { "an unknown system".to_owned() } else { system },
        shell: "/bin/sh -c".to_owned(),
        sandbox: "none of deaddrop's: its agent has six methods only, and nothing confines commands but the guest itself. Text files only, writes are not atomic, nothing can be undone".to_owned(),
        network: "not known: commands have what the guest has".to_owned(),
        confined: false,
        guarded: false,
        protected: Vec::new(),
        offline: false,
        tools: machine::tools_in(said),
        root: one("root"),
        state: String::new(),
    }
}
