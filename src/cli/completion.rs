//! Shell completions. The shell asks this program, because only it knows the existing sessions and policies.

use std::path::PathBuf;

use clap::builder::Str;
use clap::{Arg, Command, ValueHint};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};

use super::arguments::Cli;
use super::locate::Location;
use crate::session::store::SessionStore;
use crate::settings::{self, Config, Policy, Setting};

/// The environment variable with which a shell asks for completions.
const VARIABLE: &str = "_DEADDROP_COMPLETE";

/// Offers options only after a `-`. Uses `-o filenames`, the only way to quote file names with blanks.
const BASH_WRAPPER: &str = include_str!("data/completion.bash");

/// Answers a shell that asks for completions, and exits; otherwise returns. Call this before anything is written.
pub fn answer_shell() {
    CompleteEnv::with_factory(|| with_values(Cli::all())).var(VARIABLE).complete();
}

/// The script that makes a shell ask for completions.
pub(super) fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    let name = shell.to_string();
    if let Some(completer) = Shells::builtins().completer(&name) {
        // Writing to memory cannot fail.
        let _ =
            completer.write_registration(VARIABLE, "deaddrop", "deaddrop", "deaddrop", &mut script);
    }
    let more = match shell {
        Shell::Bash => BASH_WRAPPER,
        // If the first completion loads the script, the script must also answer that completion.
        Shell::Zsh => {
            "[[ $funcstack[1] != _deaddrop ]] || _clap_dynamic_completer_deaddrop \"$@\"\n"
        }
        _ => "",
    };
    script.extend(more.as_bytes());
    script
}

/// Adds the candidates for the values of a command's arguments.
fn with_values(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let is_of_policy = name == "show" && command.get_arguments().any(|arg| arg.get_id() == "name");
    let command = command.mut_args(|arg| match arg.get_id().as_str() {
        "session" => arg.add(ArgValueCandidates::new(sessions)),
        "id" if arg.is_positional() => arg.add(ArgValueCandidates::new(sessions)),
        "policy" => arg.add(ArgValueCandidates::new(policies)),
        "name" if is_of_policy => arg.add(ArgValueCandidates::new(policies)),
        "key" => {
            let whole = ["guest"].into_iter().filter(|_| name == "unset");
            among(arg, settings::names().chain(whole).collect())
        }
        id => {
            let setting = settings::find_setting(id).map(Setting::choices);
            match setting.filter(|choices| !choices.is_empty()) {
                Some(choices) => among(arg, choices),
                None if arg.get_action().takes_values() => {
                    let hint = hint(&arg);
                    arg.value_hint(hint)
                }
                None => arg,
            }
        }
    });
    command.mut_subcommands(with_values)
}

fn among(arg: Arg, values: Vec<&'static str>) -> Arg {
    arg.add(ArgValueCandidates::new(move || values.iter().map(CompletionCandidate::new).collect()))
}

/// The kind of value of an argument, according to its name in `--help`.
fn hint(arg: &Arg) -> ValueHint {
    let named = arg.get_value_names().and_then(<[_]>::first).map(Str::as_str);
    match (named, arg.get_value_hint()) {
        (Some("DIR"), _) => ValueHint::DirPath,
        (_, ValueHint::AnyPath | ValueHint::FilePath) => ValueHint::FilePath,
        _ => ValueHint::Other,
    }
}

/// The settings of the project that `-C` or the current folder selects. They are read without consent, and are not
/// acted on.
fn config() -> Option<Config> {
    let mut words = std::env::args_os().skip_while(|word| word != "-C").skip(1);
    let named = words.next().map(PathBuf::from);
    Config::load_untrusted(&Location::find(named).ok()?.project).ok()
}

/// The sessions and runs of the project.
fn sessions() -> Vec<CompletionCandidate> {
    let store = config().map(|config| SessionStore::new(&config.sessions));
    let stems = store.and_then(|store| Some([store.ids().ok()?, store.runs().ok()?].concat()));
    stems.unwrap_or_default().into_iter().map(CompletionCandidate::new).collect()
}

/// The policies of the project.
fn policies() -> Vec<CompletionCandidate> {
    match config() {
        Some(config) => config.policy_names().map(CompletionCandidate::new).collect(),
        None => Policy::PRESETS.into_iter().map(CompletionCandidate::new).collect(),
    }
}
