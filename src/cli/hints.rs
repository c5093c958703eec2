//! The commands that a hint names, as they are to be typed: with the `-C` that the person gave. Without
//! it, what they type next would be about another project.

use std::borrow::Cow;
use std::path::Path;

use crate::text::shell_word;

/// How a command of deaddrop's begins where a text names one.
const BEGINS: &str = "`deaddrop ";
/// Those that are about no project, or take another place.
const ELSEWHERE: [&str; 7] = [
    "init ",
    "demo",
    "generate man",
    "generate completions",
    "ops schema",
    "ops validate",
    "rpc` of",
];

/// A folder as it is typed into a shell, in quotes where it needs them.
pub(super) fn typed(folder: &Path) -> String {
    let text = folder.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+~".contains(c);
    let plain = !text.is_empty() && !text.starts_with(['-', '~']) && text.chars().all(is_plain);
    if plain { text } else { shell_word(&text) }
}

/// A text with `-C` and this folder, as it is typed, in each command of deaddrop's that it names in
/// backquotes; as it is where none was given.
pub(super) fn in_base<'a>(text: &'a str, project: Option<&str>) -> Cow<'a, str> {
    let Some(project) = project.filter(|_| text.contains(BEGINS)) else { return text.into() };
    let mut pieces = text.split(BEGINS);
    let mut told = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        told.push_str(BEGINS);
        let is_command = piece.starts_with(|c: char| c.is_ascii_lowercase());
        if is_command && !ELSEWHERE.iter().any(|elsewhere| piece.starts_with(elsewhere)) {
            told.push_str(&format!("-C {project} "));
        }
        told.push_str(piece);
    }
    told.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_are_named_say_where() {
        let text =
            "`deaddrop init` makes one, `deaddrop new \"x\"` begins; deaddrop says, `ls` lists";
        let told = "`deaddrop -C p init` makes one, `deaddrop -C p new \"x\"` begins; deaddrop says, `ls` lists";
        assert_eq!(in_base(text, Some("p")), told);
        assert_eq!(in_base(text, None), text);
        for text in ["`deaddrop -C q log`", "`deaddrop init DIR`", "`deaddrop --help`"] {
            assert_eq!(in_base(text, Some("p")), text);
        }
    }

    #[test]
    fn a_folder_is_quoted_where_a_shell_would_take_it_apart() {
        for (folder, shown) in [("../a-b/c.d", "../a-b/c.d"), ("a b", "'a b'"), ("~", "'~'")] {
            assert_eq!(typed(Path::new(folder)), shown);
        }
    }
}
