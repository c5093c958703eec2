//! The commands of the tag dialect: their names, attributes and correct forms.

use crate::protocol::Kind;

/// What there is to know about one command in order to read it.
pub(super) struct Command {
    pub(super) kind: Kind,
    pub(super) name: &'static str,
    /// The closing tag of a command that has a body.
    pub(super) closing: Option<&'static str>,
    /// Its attributes; each is required.
    pub(super) attributes: &'static [&'static str],
    /// How to write it, for error messages.
    pub(super) form: &'static str,
}

const COMMANDS: [Command; 7] = [
    Command {
        kind: Kind::Create,
        name: "CREATE_FILE",
        closing: Some("[/CREATE_FILE]"),
        attributes: &["path"],
        form: "[CREATE_FILE path=\"relative/path\"], the whole content on the lines below, then [/CREATE_FILE] alone on a line",
    },
    Command {
        kind: Kind::Edit,
        name: "EDIT_FILE",
        closing: Some("[/EDIT_FILE]"),
        attributes: &["path", "start_line", "end_line"],
        form: "[EDIT_FILE path=\"relative/path\" start_line=\"3\" end_line=\"5\"], the new lines below, then [/EDIT_FILE] alone on a line",
    },
    Command {
        kind: Kind::Delete,
        name: "DELETE_FILE",
        closing: None,
        attributes: &["path"],
        form: "[DELETE_FILE path=\"relative/path\"]",
    },
    Command {
        kind: Kind::Read,
        name: "READ_FILE",
        closing: None,
        attributes: &["path"],
        form: "[READ_FILE path=\"relative/path\"]",
    },
    Command {
        kind: Kind::Run,
        name: "RUN_COMMAND",
        closing: Some("[/RUN_COMMAND]"),
        attributes: &[],
        form: "[RUN_COMMAND], the command on the lines below, then [/RUN_COMMAND] alone on a line",
    },
    Command {
        kind: Kind::Message,
        name: "MESSAGE",
        closing: Some("[/MESSAGE]"),
        attributes: &[],
        form: "[MESSAGE], the text on the lines below, then [/MESSAGE] alone on a line",
    },
    Command {
        kind: Kind::Done,
        name: "DONE",
        closing: Some("[/DONE]"),
        attributes: &[],
        form: "[DONE], a summary on the lines below, then [/DONE] alone on a line",
    },
];

/// The name that this dialect gives to an operation: `CREATE_FILE` and so on.
pub fn name(kind: Kind) -> &'static str {
    COMMANDS.iter().find(|c| c.kind == kind).map_or("REPLY", |c| c.name)
}

/// The command whose opening tag `line` (trimmed) begins with, and what follows its name.
pub(super) fn opened_by(line: &str) -> Option<(&'static Command, &str)> {
    let after = line.strip_prefix('[')?;
    COMMANDS.iter().find_map(|command| {
        let rest = after.strip_prefix(command.name)?;
        let ends = rest.is_empty()
            || rest.starts_with([']', '/'])
            || rest.starts_with(char::is_whitespace);
        ends.then_some((command, rest))
    })
}
