//! `policy`: lists policies and approved commands, and checks commands against a policy.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::json;

use super::{CliContext, EXIT_WAITS, output};
use crate::engine::{ApprovedCommand, ApprovedCommands};
use crate::error::{Error, Result};
use crate::policy::{self, Verdict};
use crate::settings::SESSION_POLICY;
use crate::text::{named, visible_line};

#[derive(Debug, Subcommand)]
pub(super) enum PolicyCommand {
    /// Check a command against the policy, without running it
    Check {
        /// The command line, as one argument
        #[arg(value_name = "COMMAND", allow_hyphen_values = true)]
        command: String,
    },
    /// Print a policy as a table of deaddrop.toml
    Show {
        /// The policy [default: the one in force]
        name: Option<String>,
    },
    /// List all policies; a star marks the one in force
    List,
    /// List the commands that always run without a question
    Approved,
    /// Ask about this command again
    Forget {
        /// Its number in `deaddrop policy approved`
        #[arg(required_unless_present = "all")]
        number: Option<usize>,
        /// All of them
        #[arg(long, conflicts_with = "number")]
        all: bool,
    },
}

pub(super) fn policy(context: &CliContext, arguments: &PolicyCommand) -> Result<ExitCode> {
    let in_force = context.config.policy.as_deref().unwrap_or(SESSION_POLICY);
    match arguments {
        PolicyCommand::Check { command } => return check(context, in_force, command),
        PolicyCommand::Show { name } => {
            let policy = context.config.policy(name.as_deref().unwrap_or(in_force))?;
            if output::wants_json() {
                output::json(&json!(policy));
            } else {
                output::data((policy.to_toml().trim_end().to_owned() + "\n").as_bytes());
            }
        }
        PolicyCommand::List => {
            for name in context.config.policy_names() {
                let is_in_force = name == in_force;
                output::print(json!({ "name": name, "inForce": is_in_force }), || {
                    format!("{} {name}", if is_in_force { '*' } else { ' ' })
                });
            }
        }
        PolicyCommand::Approved => approved(context),
        PolicyCommand::Forget { number, .. } => forget(context, *number)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn approved(context: &CliContext) {
    let all = ApprovedCommands::of(&context.config).list();
    if all.is_empty() {
        output::say("No command is approved for good.");
    }
    for (n, approved) in all.iter().enumerate() {
        let ApprovedCommand { command, cwd, env, place, guarded } = approved;
        output::print(json!(approved), || {
            let env = env.iter().map(|(name, value)| format!("with {name}={value}"));
            let cwd = cwd.iter().map(|cwd| format!("in the folder {cwd}"));
            let unconfined = (!guarded).then(|| "with your rights".to_owned());
            let place = [format!("in {place}")].into_iter().chain(cwd).chain(env).chain(unconfined);
            let place: String = place.map(|told| format!("\n   {}", visible_line(&told))).collect();
            format!("{}  {}{place}", n + 1, visible_line(command))
        });
    }
}

fn forget(context: &CliContext, number: Option<usize>) -> Result<()> {
    let commands = ApprovedCommands::of(&context.config);
    let all = commands.list();
    let chosen = match number {
        None => &all[..],
        Some(number) => {
            number.checked_sub(1).and_then(|at| all.get(at..number)).ok_or_else(|| {
                Error::usage(format!(
                    "there is no approved command {number}; `deaddrop policy approved` lists them"
                ))
            })?
        }
    };
    for command in chosen {
        commands.forget(command)?;
        output::say(format!("You will be asked about {} again.", named(&command.command)));
    }
    Ok(())
}

fn check(context: &CliContext, in_force: &str, command: &str) -> Result<ExitCode> {
    let policy = context.config.policy(in_force)?;
    // The same as in the sandbox. Without a sandbox, git can write to its repository.
    let guarded = context.config.sandbox.mode != crate::settings::SandboxMode::Off;
    let explained = policy::explain(&policy, &crate::protocol::ShellCommand::new(command), guarded);
    let decision = &explained.decision;
    if output::wants_json() {
        let commands: Vec<_> = explained
            .commands
            .iter()
            .map(|(simple, decision)| json!({ "command": simple.text(), "verdict": decision }))
            .collect();
        let mut whole = json!(decision);
        whole["policyName"] = json!(policy.name);
        whole["commands"] = json!(commands);
        whole["unreadable"] = json!(explained.unreadable);
        output::json(&whole);
    } else {
        let told = output::bold(verb(decision));
        output::result(told + format!(" under '{}'{}", policy.name, why(decision)));
        if let Verdict::Deny(denial) = decision
            && let Some(suggestion) = &denial.suggestion
        {
            output::result(format!("  {}", visible_line(suggestion)));
        }
        for (simple, decision) in &explained.commands {
            let text = simple.text();
            let note = if simple.wrapper && *decision == Verdict::Allow {
                " (looked through)"
            } else {
                ""
            };
            output::result(format!(
                "  {:<5}  {}{note}{}",
                verb(decision),
                visible_line(&text),
                why(decision)
            ));
        }
        for why in &explained.unreadable {
            output::result(format!("  unknown: {}", visible_line(why)));
        }
    }
    Ok(match decision {
        Verdict::Allow => ExitCode::SUCCESS,
        Verdict::Ask(_) => ExitCode::from(EXIT_WAITS),
        Verdict::Deny(_) => ExitCode::FAILURE,
    })
}

fn verb(decision: &Verdict) -> &'static str {
    match decision {
        Verdict::Allow => "allow",
        Verdict::Ask(_) => "ask",
        Verdict::Deny(_) => "deny",
    }
}

fn why(decision: &Verdict) -> String {
    match (decision.reason(), decision.rule()) {
        (Some(reason), Some(rule)) => format!(": {} [{rule}]", visible_line(reason)),
        _ => String::new(),
    }
}
