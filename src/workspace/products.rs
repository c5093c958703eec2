//! Decides, based on names alone, which folders contain build products that tools made and can make again. Pure.
//!
//! Source files must never be hidden behind one line, so a folder counts as a build product only if
//! - only tools use its name ([`is_named_product`]): `node_modules`, `__pycache__`, …;
//! - an ignore file of the project names the folder, and its name is a usual one ([`is_ignored_product`]): `dist`,
//!   `build`, `target`, …;
//! - the folder contains a marker file of the tool ([`is_tool_marker`]), such as `CACHEDIR.TAG`; or
//! - its name is a usual one, and a file beside or in the folder is one that the tool needs or makes ([`markers`]):
//!   `target` beside `Cargo.toml`, `dist` beside `package.json`, `build` beside it with source maps in it.
//!
//! A folder for which only the name is usual counts as source.

use std::sync::LazyLock;

use serde::Deserialize;

use super::names::split;

/// The names, from `data/products.toml`.
static TABLE: LazyLock<ProductTable> = LazyLock::new(|| {
    toml::from_str(include_str!("data/products.toml")).expect("a table of this crate")
});

#[derive(Deserialize)]
struct ProductTable {
    named: Vec<String>,
    usual: Vec<String>,
    made_endings: Vec<String>,
    by_products: Vec<String>,
    by_product_endings: Vec<String>,
    sign: Vec<ProductMarker>,
}

/// Files that show that a tool made a folder with a usual name. A pattern is a name, or begins or ends with `*`.
#[derive(Deserialize)]
pub(crate) struct ProductMarker {
    folder: String,
    /// At least one of these files is beside the folder. An empty list is always satisfied.
    #[serde(default)]
    pub(crate) beside: Vec<String>,
    /// At least one of these files is in the folder. An empty list is always satisfied.
    #[serde(default)]
    pub(crate) within: Vec<String>,
}

fn is_one_of(names: &[String], name: &str) -> bool {
    names.iter().any(|one| one == name)
}

/// Whether only tools give a folder this name.
pub(crate) fn is_named_product(name: &str) -> bool {
    is_one_of(&TABLE.named, name) || name.strip_suffix(".egg-info").is_some_and(|of| !of.is_empty())
}

/// Whether checkpoints leave out entries with this name, regardless of ignore files, unless git tracks them: programs
/// create such files beside their sources when they run.
pub(crate) fn is_by_product(name: &str, is_folder: bool) -> bool {
    let ending = || name.rsplit_once('.').map_or("", |(_, ending)| ending);
    if is_folder {
        is_one_of(&TABLE.by_products, name)
    } else {
        is_one_of(&TABLE.by_product_endings, ending())
    }
}

/// Whether an ignored folder contains build products. The path may end in `/`.
pub(crate) fn is_ignored_product(path: &str) -> bool {
    let name = last(path);
    is_named_product(name) || is_one_of(&TABLE.usual, name) || name.starts_with("cmake-build-")
}

/// Whether an ignored entry is a build product: a folder for which [`is_ignored_product`] is true, a file that
/// compilers and packers make, or anything in a folder whose name only tools use. The path of a folder ends in `/`.
/// `env/.env` is not a build product: people use that folder name, too.
pub(crate) fn is_ignored_product_path(path: &str) -> bool {
    let (folders, name) = split(path.trim_end_matches('/'));
    folders.split('/').any(is_named_product)
        || if path.ends_with('/') { is_ignored_product(path) } else { is_made(name) }
}

/// Whether tools put a file with this name into the folders that they make.
pub(crate) fn is_tool_marker(name: &str) -> bool {
    matches!(name, "CACHEDIR.TAG" | "CMakeCache.txt" | "pyvenv.cfg")
}

/// Whether the file `marker` shows that a tool made the folder `path`. `has` reports whether the folder contains a
/// file.
pub(crate) fn is_marked(path: &str, marker: &str, has: impl Fn(&str) -> bool) -> bool {
    match marker {
        "CACHEDIR.TAG" => true,
        // Some projects build in the source folder, or have their virtual environment in it.
        "CMakeCache.txt" => !has("CMakeLists.txt"),
        "pyvenv.cfg" => last(path).contains("env"),
        _ => false,
    }
}

/// Whether files with this name are usually made by compilers and packers, and rarely by people. A name without an
/// extension could be a script.
fn is_made(name: &str) -> bool {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    name.ends_with(".min.js")
        || name.ends_with(".min.css")
        || is_one_of(&TABLE.made_endings, ending)
}

/// The markers for folders of this name.
pub(crate) fn markers(name: &str) -> impl Iterator<Item = &'static ProductMarker> {
    TABLE.sign.iter().filter(move |marker| marker.folder == name)
}

/// Whether a name matches a pattern of a [`ProductMarker`].
pub(crate) fn matches_pattern(name: &str, pattern: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => name.len() > end.len() && name.ends_with(end),
        (_, Some(start)) => name.starts_with(start),
        _ => name == pattern,
    }
}

fn last(path: &str) -> &str {
    split(path.trim_end_matches('/')).1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usual_name_alone_is_no_product() {
        for name in ["node_modules", "__pycache__", ".venv", "x.egg-info"] {
            assert!(is_named_product(name) && is_ignored_product(name), "{name}");
        }
        for name in ["dist", "build", "target", "bin", "obj", "out", "venv"] {
            assert!(!is_named_product(name), "{name}");
            assert!(is_ignored_product(&format!("a/{name}/")), "{name}");
        }
        for name in [".egg-info", "node_modules2", "Node_Modules", "src", "vendor", "data/x", ""] {
            assert!(!is_named_product(name) && !is_ignored_product(name), "{name}");
        }
        for place in ["target/", "a/x.o", "__pycache__/x", "node_modules/a/b.txt", "x.egg-info/"] {
            assert!(is_ignored_product_path(place), "{place}");
        }
        for place in ["env/.env", "x.log", "data/", "build/x", "a.o/", "src/.env.local"] {
            assert!(!is_ignored_product_path(place), "{place}");
        }
        assert!(is_ignored_product("a/cmake-build-debug/") && !is_ignored_product("target/src/"));
    }

    #[test]
    fn marks_do_not_hide_what_stands_beside_sources() {
        let none = |_: &str| false;
        assert!(is_marked("a/cache/", "CACHEDIR.TAG", none));
        assert!(is_marked("o/", "CMakeCache.txt", none));
        assert!(!is_marked("o/", "CMakeCache.txt", |name| name == "CMakeLists.txt"));
        assert!(is_marked("my-venv/", "pyvenv.cfg", none));
        assert!(!is_marked("project/", "pyvenv.cfg", none));
        assert!(!is_tool_marker("Makefile") && !is_marked("a", "Makefile", none));
    }

    #[test]
    fn patterns_have_one_star_at_most() {
        for (name, pattern, is) in [
            ("a.csproj", "*.csproj", true),
            (".csproj", "*.csproj", false),
            ("lib.linux", "lib.*", true),
            ("libs", "lib.*", false),
            ("libs", "lib", false),
        ] {
            assert_eq!(matches_pattern(name, pattern), is, "{name} {pattern}");
        }
        assert!(markers("src").next().is_none() && markers("build").count() == 5);
    }
}
