//! `completions`: what shells are told of the command line besides what it takes: which values there
//! are, and which words are paths. And what the generated scripts lack.

use std::fmt::Write;

use clap::builder::{PossibleValue, PossibleValuesParser, Str};
use clap::{Arg, Command, CommandFactory, ValueHint};
use clap_complete::Shell;

use super::arguments::Cli;
use crate::settings::{self, Policy, Setting};

/// What makes a shell complete deaddrop's command lines.
pub(super) fn script(shell: Shell) -> Vec<u8> {
    let mut command = hinted(Cli::command());
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "deaddrop", &mut script);
    let more = match shell {
        Shell::Bash => of_bash(&command),
        Shell::Fish => of_fish(&command),
        _ => String::new(),
    };
    script.extend(more.into_bytes());
    script
}

/// The command line with what completing needs to know. For reading one it is not said: a policy can be
/// the person's own, and a setting that is not known is answered in words.
fn hinted(command: Command) -> Command {
    let is_of_settings = matches!(command.get_name(), "get" | "set" | "unset");
    let is_policy =
        command.get_name() == "show" && command.get_arguments().any(|arg| arg.get_id() == "name");
    let name = command.get_name().to_owned();
    let command = command.mut_args(|arg| match arg.get_id().clone().as_str() {
        "key" if is_of_settings => among(arg, settings(&name)),
        "name" if is_policy => among(arg, Policy::PRESETS.to_vec()),
        id => {
            let flag = settings::find_setting(id).filter(|setting| setting.flag);
            let choices = flag.map(Setting::choices).unwrap_or_default();
            if !choices.is_empty() {
                return among(arg, choices);
            }
            let hint = hint(&arg);
            if takes_other(&arg) { arg.value_hint(hint) } else { arg }
        }
    });
    let inner: Vec<String> =
        command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    inner.into_iter().fold(command, |command, name| command.mut_subcommand(name, hinted))
}

fn among(arg: Arg, values: Vec<&'static str>) -> Arg {
    arg.value_parser(PossibleValuesParser::new(values))
}

fn settings(command: &str) -> Vec<&'static str> {
    let whole = ["guest"].into_iter().filter(|_| command == "unset");
    settings::names().chain(whole).collect()
}

/// Whether an argument takes a value that is not one of a few.
fn takes_other(arg: &Arg) -> bool {
    arg.get_action().takes_values() && arg.get_possible_values().is_empty()
}

/// What kind of word an argument is, by the name that `--help` gives it.
fn hint(arg: &Arg) -> ValueHint {
    let named = arg.get_value_names().and_then(<[_]>::first).map(Str::as_str);
    match (named, arg.get_value_hint()) {
        (Some("DIR"), _) => ValueHint::DirPath,
        (_, ValueHint::AnyPath | ValueHint::FilePath) => ValueHint::FilePath,
        // For operands zsh would show what they are for instead of completing options.
        (_, ValueHint::Unknown) if !arg.is_positional() => ValueHint::Other,
        (_, known) => known,
    }
}

/// What is generated for bash offers options wherever nothing is typed yet, and so never a file.
fn of_bash(command: &Command) -> String {
    let taking = |hint: ValueHint| -> String {
        let takes = |arg: &Arg| arg.get_value_hint() == hint;
        let takes = |command: &&Command| command.get_positionals().any(takes);
        let inner = command.get_subcommands().flat_map(Command::get_subcommands);
        let all = command.get_subcommands().chain(inner);
        let names: Vec<&str> = all.filter(takes).map(Command::get_name).collect();
        names.join("|")
    };
    format!(
        r#"
# Options are offered where one is begun, and files where one is taken.
_deaddrop_words() {{
    _deaddrop "$@"
    [[ "$2" == -* ]] && return 0
    local word kept=()
    for word in "${{COMPREPLY[@]}}"; do
        [[ "$word" == -?* ]] || kept+=("$word")
    done
    COMPREPLY=(${{kept[@]+"${{kept[@]}}"}})
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$word" in
            {files})
                return 0
                ;;
            {folders})
                compopt +o default +o bashdefault -o dirnames 2>/dev/null
                return 0
                ;;
        esac
    done
    [[ ${{#COMPREPLY[@]}} -eq 0 ]] && compopt +o default +o bashdefault 2>/dev/null
    return 0
}}

if [[ "${{BASH_VERSINFO[0]}}" -eq 4 && "${{BASH_VERSINFO[1]}}" -ge 4 || "${{BASH_VERSINFO[0]}}" -gt 4 ]]; then
    complete -F _deaddrop_words -o nosort -o bashdefault -o default deaddrop
else
    complete -F _deaddrop_words -o bashdefault -o default deaddrop
fi
"#,
        files = taking(ValueHint::FilePath),
        folders = taking(ValueHint::DirPath),
    )
}

/// What is generated for fish offers no values of operands.
fn of_fish(command: &Command) -> String {
    let mut lines = String::new();
    let mut add = |when: &str, command: &Command| {
        for arg in command.get_positionals() {
            let values = arg.get_possible_values();
            let values: Vec<&str> = values.iter().map(PossibleValue::get_name).collect();
            if !values.is_empty() {
                let values = values.join(" ");
                let _ = writeln!(lines, "complete -c deaddrop -n \"{when}\" -f -a \"{values}\"");
            }
        }
    };
    for outer in command.get_subcommands() {
        let when = format!("__fish_deaddrop_using_subcommand {}", outer.get_name());
        add(&when, outer);
        for inner in outer.get_subcommands() {
            add(&format!("{when}; and __fish_seen_subcommand_from {}", inner.get_name()), inner);
        }
    }
    lines
}
