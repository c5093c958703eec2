//! The commands of the tag dialect: their names, attributes and correct forms, from `data/commands.toml`.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::protocol::Kind;

/// What there is to know about one command in order to read it.
#[derive(Debug, Deserialize)]
pub(super) struct Command {
    pub(super) kind: Kind,
    pub(super) name: &'static str,
    /// The closing tag of a command that has a body.
    pub(super) closing: Option<&'static str>,
    /// The attributes that it knows, in the order in which they are passed on.
    pub(super) attributes: Vec<Attribute>,
    /// How to write it, for error messages.
    pub(super) form: &'static str,
}

impl Command {
    /// The value of an attribute, of those that a tag gives, in the table's order.
    pub(super) fn value<'v>(&self, values: &'v [Option<String>], name: &str) -> Option<&'v str> {
        let at = self.attributes.iter().position(|known| known.name == name)?;
        values.get(at)?.as_deref()
    }
}

impl PartialEq for Command {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

/// One attribute of a command.
#[derive(Debug, Deserialize)]
pub(super) struct Attribute {
    pub(super) name: &'static str,
    /// Whether the command says nothing without it.
    #[serde(default)]
    pub(super) required: bool,
}

/// All commands. Whatever reads or writes tags uses this table.
pub(super) static COMMANDS: LazyLock<Vec<Command>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    #[serde(bound(deserialize = "'de: 'static"))]
    struct Table {
        command: Vec<Command>,
    }
    let table: Table =
        toml::from_str(include_str!("data/commands.toml")).expect("a constant table");
    table.command
});

/// The first command whose name is such a one.
pub(super) fn find_command(is_one: impl Fn(&str) -> bool) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| is_one(command.name))
}

/// How to change lines of a file by their numbers.
pub(super) const EDIT_BY_LINES: &str = "[EDIT_FILE path=\"relative/path\" start_line=\"3\" end_line=\"5\"], the new lines below, then [/EDIT_FILE] alone on a line";

/// How to ask for a part of a file.
pub(super) const PART_FORM: &str =
    "[READ_FILE path=\"relative/path\" start_line=\"3\" end_line=\"9\" numbered=\"true\"]";

/// How to end the session only if everything succeeded.
pub(super) const DONE_IF_OK: &str =
    "[DONE if=\"ok\"], a summary on the lines below, then [/DONE] alone on a line";

/// The name that this dialect gives to an operation: `CREATE_FILE` and so on.
pub fn name(kind: Kind) -> &'static str {
    COMMANDS.iter().find(|command| command.kind == kind).map_or("REPLY", |command| command.name)
}
