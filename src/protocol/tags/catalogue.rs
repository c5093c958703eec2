//! The commands of the tag dialect: their names, attributes and correct forms, from `data/commands.toml`.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::protocol::Kind;

/// The syntax of one command.
#[derive(Debug, Deserialize)]
pub(super) struct TagCommand {
    pub(super) kind: Kind,
    pub(super) name: &'static str,
    /// The closing tag, if the command has a body.
    pub(super) closing: Option<&'static str>,
    /// The attributes, in the order in which their values are passed on.
    pub(super) attributes: Vec<Attribute>,
    /// The correct form, for error messages.
    pub(super) form: &'static str,
}

impl TagCommand {
    /// The value of an attribute. `values` are the values of a tag, in the order of the table.
    pub(super) fn value<'v>(&self, values: &'v [Option<String>], name: &str) -> Option<&'v str> {
        let at = self.attributes.iter().position(|known| known.name == name)?;
        values.get(at)?.as_deref()
    }
}

impl PartialEq for TagCommand {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

/// One attribute of a command.
#[derive(Debug, Deserialize)]
pub(super) struct Attribute {
    pub(super) name: &'static str,
    /// Whether the command is invalid without this attribute.
    #[serde(default)]
    pub(super) required: bool,
}

/// All commands, for reading and writing tags.
pub(super) static COMMANDS: LazyLock<Vec<TagCommand>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    #[serde(bound(deserialize = "'de: 'static"))]
    struct Table {
        command: Vec<TagCommand>,
    }
    let table: Table =
        toml::from_str(include_str!("data/commands.toml")).expect("a constant table");
    table.command
});

/// The first command whose name matches.
pub(super) fn find_command(is_one: impl Fn(&str) -> bool) -> Option<&'static TagCommand> {
    COMMANDS.iter().find(|command| is_one(command.name))
}

/// The form of an edit by line numbers.
pub(super) const EDIT_BY_LINES: &str = "[EDIT_FILE path=\"relative/path\" start_line=\"3\" end_line=\"5\"], the new lines below, then [/EDIT_FILE] alone on a line";

/// The form of a request for a part of a file.
pub(super) const PART_FORM: &str =
    "[READ_FILE path=\"relative/path\" start_line=\"3\" end_line=\"9\" numbered=\"true\"]";

/// The form that ends the session only if everything succeeded.
pub(super) const DONE_IF_OK: &str =
    "[DONE if=\"ok\"], a summary on the lines below, then [/DONE] alone on a line";

/// The name of an operation in this dialect, such as `CREATE_FILE`.
pub fn name(kind: Kind) -> &'static str {
    COMMANDS.iter().find(|command| command.kind == kind).map_or("REPLY", |command| command.name)
}
