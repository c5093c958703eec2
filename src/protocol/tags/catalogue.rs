//! The commands of the tag dialect: their names, attributes and correct forms.

use crate::protocol::Kind;

/// How lines of a file are changed by their numbers; also the beginning of what is said of all edits.
macro_rules! edit_by_lines {
    () => {
        "[EDIT_FILE path=\"relative/path\" start_line=\"3\" end_line=\"5\"], the new lines below, then [/EDIT_FILE] alone on a line"
    };
}
pub(super) const EDIT_BY_LINES: &str = edit_by_lines!();

/// What there is to know about one command in order to read it.
pub(super) struct Command {
    pub(super) kind: Kind,
    pub(super) name: &'static str,
    /// The closing tag of a command that has a body.
    pub(super) closing: Option<&'static str>,
    /// The attributes that it knows, in the order in which they are given on.
    pub(super) attributes: &'static [Attribute],
    /// How to write it, for error messages.
    pub(super) form: &'static str,
}

/// One attribute of a command.
pub(super) struct Attribute {
    pub(super) name: &'static str,
    /// Whether the command says nothing without it.
    pub(super) required: bool,
}

const fn required(name: &'static str) -> Attribute {
    Attribute { name, required: true }
}

const fn optional(name: &'static str) -> Attribute {
    Attribute { name, required: false }
}

/// The commands that there are. Whatever reads or writes tags goes by this table.
pub(super) static COMMANDS: [Command; 11] = [
    Command {
        kind: Kind::Create,
        name: "CREATE_FILE",
        closing: Some("[/CREATE_FILE]"),
        attributes: &[required("path"), optional("end")],
        form: "[CREATE_FILE path=\"relative/path\"], the whole content on the lines below, then [/CREATE_FILE] alone on a line",
    },
    Command {
        kind: Kind::Edit,
        name: "EDIT_FILE",
        closing: Some("[/EDIT_FILE]"),
        attributes: &[
            required("path"),
            optional("start_line"),
            optional("end_line"),
            optional("end"),
        ],
        form: concat!(
            edit_by_lines!(),
            "; or no numbers, and <<<<<<< SEARCH, lines as they are, =======, new lines, >>>>>>> REPLACE, each alone on a line"
        ),
    },
    Command {
        kind: Kind::Delete,
        name: "DELETE_FILE",
        closing: None,
        attributes: &[required("path")],
        form: "[DELETE_FILE path=\"relative/path\"]",
    },
    Command {
        kind: Kind::Read,
        name: "READ_FILE",
        closing: None,
        attributes: &[
            required("path"),
            optional("start_line"),
            optional("end_line"),
            optional("numbered"),
        ],
        form: "[READ_FILE path=\"relative/path\"]",
    },
    Command {
        kind: Kind::List,
        name: "LIST_FILES",
        closing: None,
        attributes: &[optional("path")],
        form: "[LIST_FILES path=\"relative/folder\"]",
    },
    Command {
        kind: Kind::Search,
        name: "SEARCH",
        closing: None,
        attributes: &[required("pattern"), optional("path")],
        form: "[SEARCH pattern=\"regular expression\" path=\"relative/path\"]",
    },
    Command {
        kind: Kind::Move,
        name: "MOVE_FILE",
        closing: None,
        attributes: &[required("path"), required("to")],
        form: "[MOVE_FILE path=\"relative/path\" to=\"relative/path\"]",
    },
    Command {
        kind: Kind::Run,
        name: "RUN_COMMAND",
        closing: Some("[/RUN_COMMAND]"),
        attributes: &[optional("end")],
        form: "[RUN_COMMAND], the command on the lines below, then [/RUN_COMMAND] alone on a line",
    },
    Command {
        kind: Kind::Message,
        name: "MESSAGE",
        closing: Some("[/MESSAGE]"),
        attributes: &[optional("end")],
        form: "[MESSAGE], the text on the lines below, then [/MESSAGE] alone on a line",
    },
    Command {
        kind: Kind::Done,
        name: "DONE",
        closing: Some("[/DONE]"),
        attributes: &[optional("if"), optional("end")],
        form: "[DONE], a summary on the lines below, then [/DONE] alone on a line",
    },
    Command {
        kind: Kind::Reply,
        name: "REPLY",
        closing: None,
        attributes: &[required("session"), required("sequence"), optional("key")],
        form: "[REPLY session=\"a1b2c3d4\" sequence=\"1\"], as the newest message gives it",
    },
];

/// The name that this dialect gives to an operation: `CREATE_FILE` and so on.
pub fn name(kind: Kind) -> &'static str {
    COMMANDS.iter().find(|c| c.kind == kind).map_or("REPLY", |c| c.name)
}
