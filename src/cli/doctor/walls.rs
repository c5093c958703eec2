//! What confines commands: the tier, each mechanism with yes or no, and what to do about each no.

use super::{Finding, finding, spare};
use crate::cli::Context;
use crate::runner::sandbox::{Confinement, Mechanism, Tier};

const NAMESPACES: &str = "needs user namespaces: on Debian set kernel.unprivileged_userns_clone=1; on Ubuntu from 23.10 on `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or an AppArmor profile with `userns,` for deaddrop (or for /usr/bin/bwrap: without one it fails too); in a container allow them (--security-opt seccomp=unconfined)";

/// One finding for the tier, then one for each mechanism.
pub(super) fn findings(context: &Context) -> Vec<Finding> {
    let confinement = match context.confinement() {
        Ok(confinement) => confinement,
        Err(told) => return vec![finding("commands", Err(told))],
    };
    let mut told = confinement.line();
    for reason in confinement.why() {
        told.push_str(&format!("\n                     not {reason}"));
    }
    // No other remedy would help.
    let is_whole = context.config.workspace.canonicalize().is_ok_and(|at| at.parent().is_none());
    if confinement.tier == Tier::None && is_whole {
        told.push_str("\n                     the workspace is /, to which nothing can be confined: use `deaddrop config set workspace_dir FOLDER`; in a virtual machine or container of its own, `--sandbox off` runs commands unconfined");
        return vec![finding("commands", Err(told))];
    }
    if confinement.tier == Tier::None {
        told.push_str(
            "\n                     `--sandbox off` (or sandbox = \"off\" in deaddrop.toml) runs commands unconfined",
        );
    }
    let well = confinement.tier != Tier::None;
    let mut findings = vec![Finding { well, spare: false, what: "commands", told }];
    if confinement.tier == Tier::None {
        findings.extend(ways_out(&confinement));
    } else {
        let asked = Mechanism::ALL.into_iter().filter(|m| concerns(*m, &confinement));
        findings.extend(asked.map(|mechanism| of(mechanism, &confinement)));
    }
    findings
}

/// Where there is no sandbox: what each kind that was tried stands on. Which of it is missing the
/// reasons say; none of it was found out by itself.
fn ways_out(confinement: &Confinement) -> Vec<Finding> {
    let tried = |tier: Tier| confinement.missing.iter().any(|(missing, _)| *missing == tier);
    let mut found = Vec::new();
    if tried(Tier::Full) || tried(Tier::FullBwrap) {
        found.push(spare("  for full", Err(NAMESPACES.to_owned())));
    }
    if tried(Tier::Partial) {
        let remedies = [Mechanism::Landlock, Mechanism::Seccomp, Mechanism::Hidden];
        let remedies = remedies.map(|mechanism| described(mechanism, Tier::Partial).2);
        found.push(spare("  for partial", Err(remedies.join("; and: "))));
    }
    found
}

/// Whether this tier has a use for a mechanism.
fn concerns(mechanism: Mechanism, confinement: &Confinement) -> bool {
    match (confinement.tier, mechanism) {
        (_, Mechanism::Subreaper) => !confinement.facts.has(Mechanism::PidNamespace),
        (Tier::Off, mechanism) => {
            matches!(mechanism, Mechanism::PidNamespace | Mechanism::Hidden)
        }
        (_, Mechanism::Network) => !confinement.network,
        _ => true,
    }
}

fn of(mechanism: Mechanism, confinement: &Confinement) -> Finding {
    let (what, holds, remedy) = described(mechanism, confinement.tier);
    let well = confinement.facts.has(mechanism);
    spare(what, if well { Ok(format!("yes: {holds}")) } else { Err(format!("no: {remedy}")) })
}

/// What a mechanism is called, what it holds, and what to do where it is not there.
fn described(mechanism: Mechanism, tier: Tier) -> (&'static str, &'static str, &'static str) {
    const OLD: &str = "this kernel refused; it is too old";
    match mechanism {
        Mechanism::PidNamespace => {
            ("  pid namespace", "everything that a command starts ends with it", NAMESPACES)
        }
        Mechanism::Subreaper => {
            ("  subreaper", "what a command leaves behind is adopted and ended", NAMESPACES)
        }
        Mechanism::Root => ("  own root", "a command sees only what it is given", NAMESPACES),
        Mechanism::Network => ("  network", "a command reaches only itself", NAMESPACES),
        Mechanism::Ipc => (
            "  ipc",
            "message queues and shared memory of the machine are out of reach",
            NAMESPACES,
        ),
        Mechanism::Capabilities => ("  capabilities", "a command has none, and can get none", OLD),
        Mechanism::NoNewPrivileges => {
            ("  no_new_privs", "no program that it starts gets more rights (sudo, su)", OLD)
        }
        Mechanism::Landlock => (
            "  Landlock",
            "the kernel checks each path again",
            "needs Linux 5.13 with Landlock switched on: add landlock to the boot parameter lsm=",
        ),
        Mechanism::LandlockScope => (
            "  Landlock scope",
            "signals and abstract sockets do not get out either",
            "needs Linux 6.12 with Landlock",
        ),
        Mechanism::Seccomp => (
            "  seccomp",
            "mounts, new namespaces, io_uring, bpf, VSOCK and others are refused",
            "needs a kernel with CONFIG_SECCOMP_FILTER on x86-64, ARM64 or RISC-V",
        ),
        Mechanism::Processes => (
            "  processes",
            "a fork bomb is bounded (sandbox.max_processes)",
            "applies to root only since Linux 6.14: run deaddrop as an ordinary user, or let one own the workspace",
        ),
        Mechanism::Hidden => (
            "  own files",
            "inbox, outbox and sessions are hidden, and deaddrop.toml cannot be written",
            if tier == Tier::Off {
                NAMESPACES
            } else {
                "keep them outside the workspace (`deaddrop init DIR --workspace-dir WORKSPACE`)"
            },
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::sandbox::Facts;

    #[test]
    fn where_there_is_no_sandbox_each_way_to_one_is_told_once() {
        let none = |missing: &[Tier]| Confinement {
            tier: Tier::None,
            facts: Facts::default(),
            missing: missing.iter().map(|tier| (*tier, String::new())).collect(),
            network: false,
        };
        let told = |missing: &[Tier]| -> Vec<String> {
            ways_out(&none(missing)).into_iter().map(|found| found.told).collect()
        };
        let all = told(&[Tier::Full, Tier::FullBwrap, Tier::Partial]);
        assert_eq!(all.len(), 2);
        assert!(all[0].contains("kernel.apparmor_restrict_unprivileged_userns=0"), "{all:?}");
        assert!(all[1].contains("lsm=") && !all[1].contains("userns"), "{all:?}");
        assert_eq!(told(&[Tier::FullBwrap]), all[..1]);
        assert_eq!(told(&[Tier::Partial]), all[1..]);
    }
}
