//! Finds a definition in a file by a name from a reply. Pure.

use super::symbols::{Definition, Text, definitions};
use crate::protocol::{Failure, Mistake, Part};
use crate::text::{count, first_of, named, nearest};
use crate::workspace::Contents;

/// The most definitions that are listed if the name is ambiguous.
const NAMED: usize = 10;

/// Returns the lines of the definition with this name and of the comments directly above it, with line numbers. The
/// names of enclosing definitions may precede the name: `Store.load`, `Store::load`.
///
/// # Errors
/// No definition has this name, or several have it.
pub fn find_definition(file: &Contents, name: &str) -> Result<Part, Failure> {
    let all = qualified(file.path.as_str(), &Text::new(&file.bytes));
    let wanted = name.replace("::", ".");
    let is_meant = |qualified: &str| {
        let outer = qualified.strip_suffix(&wanted);
        outer.is_some_and(|outer| outer.is_empty() || outer.ends_with('.'))
    };
    let found: Vec<_> = all.iter().filter(|(qualified, _)| is_meant(qualified)).collect();
    if let [(_, definition)] = found[..] {
        let (start, end) = (Some(definition.start), Some(definition.end));
        return Ok(Part { start, end, numbered: true });
    }
    let (path, name) = (&file.path, named(name));
    let read = match file.bytes.len() {
        read if (read as u64) < file.size => format!(" in its first {read} bytes"),
        _ => String::new(),
    };
    let (mistake, reason) = if found.is_empty() {
        let last = wanted.rsplit('.').next().unwrap_or_default();
        let near = nearest(last, all.iter().map(|(_, definition)| definition.name.as_str()));
        let is_near = |definition: &Definition| near.is_none_or(|near| definition.name == near);
        let others = list(all.iter().filter(|(_, definition)| is_near(definition)));
        let others = match near {
            _ if all.is_empty() => "no definitions were found there".to_owned(),
            Some(_) => format!("the nearest: {others}"),
            None => format!("it defines {others}"),
        };
        let reason = format!("'{path}' has no definition {name}{read}; {others}");
        (Mistake::NoSuchSymbol, reason)
    } else {
        let (all, found) = (list(found.iter().copied()), count(found.len(), "definition"));
        let reason = format!(
            "'{path}' has {found} {name}{read}: {all}; ask for one with start_line and end_line"
        );
        (Mistake::SymbolNotOnce, reason)
    };
    let of = Some(path.clone());
    Err(Failure { real_path: of, ..Failure::execution(reason).as_a(mistake) })
}

/// All definitions of a file with their qualified names: `Store.load`.
fn qualified(path: &str, text: &Text<'_>) -> Vec<(String, Definition)> {
    let mut around: Vec<(usize, String)> = Vec::new();
    let qualify = |definition: Definition| {
        while around.pop_if(|(end, _)| *end < definition.line).is_some() {}
        let own = definition.name.replace("::", ".");
        let name = around.last().map_or(own.clone(), |(_, outer)| format!("{outer}.{own}"));
        around.push((definition.end, name.clone()));
        (name, definition)
    };
    definitions(path, text).into_iter().map(qualify).collect()
}

/// Lists the first of these definitions with their lines.
fn list<'a>(definitions: impl Iterator<Item = &'a (String, Definition)>) -> String {
    let all: Vec<String> = definitions
        .map(|(name, Definition { start, end, .. })| format!("{name} (lines {start}-{end})"))
        .collect();
    first_of(&all, NAMED, all.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::RelPath;

    const PYTHON: &str = "class Store:\n    # Loads it.\n    def load(self):\n        pass\n\n    def save(self):\n        pass\n\n\ndef load():\n    pass\n";
    const RUST: &str = "struct Store;\n\nimpl Store {\n    fn load() {\n    }\n}\n";

    fn find(path: &str, text: &str, name: &str) -> Result<(usize, usize), String> {
        let path = RelPath::parse(path).unwrap();
        let file = Contents { path, bytes: text.into(), size: text.len() as u64, lines: None };
        match find_definition(&file, name) {
            Ok(part) => Ok((part.start.unwrap(), part.end.unwrap())),
            Err(failure) => Err(failure.reason),
        }
    }

    #[test]
    fn a_definition_is_found_by_its_names() {
        for name in ["Store.load", "Store::load"] {
            assert_eq!(find("a.py", PYTHON, name), Ok((2, 4)));
            assert_eq!(find("a.rs", RUST, name), Ok((4, 5)));
        }
        assert_eq!(find("a.py", PYTHON, "save"), Ok((6, 7)));
        assert_eq!(find("a.py", PYTHON, "Store"), Ok((1, 7)));
        assert_eq!(find("a.cc", "int Store::load() {\n}\n", "Store.load"), Ok((1, 2)));
        assert_eq!(find("a.md", "# A\n## B 1.2\nx\n## C\n", "A.B 1.2"), Ok((2, 3)));
    }

    #[test]
    fn what_is_not_clear_is_told_with_what_there_is() {
        let both = "Store.load (lines 2-4), load (lines 10-11)";
        for (path, text, name, reason) in [
            (
                "a.py",
                PYTHON,
                "load",
                format!("'a.py' has 2 definitions 'load': {both}; ask for one with start_line and end_line"),
            ),
            (
                "a.py",
                PYTHON,
                "Shop.laod",
                format!("'a.py' has no definition 'Shop.laod'; the nearest: {both}"),
            ),
            (
                "a.rs",
                RUST,
                "x",
                "'a.rs' has no definition 'x'; it defines Store (lines 1-1), Store (lines 3-6), Store.load (lines 4-5)".to_owned(),
            ),
            (
                "a.txt",
                "load\n",
                "load",
                "'a.txt' has no definition 'load'; no definitions were found there".to_owned(),
            ),
        ] {
            assert_eq!(find(path, text, name), Err(reason));
        }
        let many: String = (0..13).map(|n| format!("def f{n}():\n    pass\n")).collect();
        assert!(find("a.py", &many, "x").unwrap_err().ends_with("f9 (lines 19-20) and 3 more"));
    }
}
