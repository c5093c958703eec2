//! Which folders hold build products: what tools have made and can make again, from names alone.
//! Pure.
//!
//! Sources must never be hidden behind one line, so a folder counts as made by a tool only where
//! - nobody but a tool gives that name ([`is_named_product`]): `node_modules`, `__pycache__`, …;
//! - the project itself says that it is no source, by an ignore file, and the name is a usual one
//!   ([`is_ignored_product`]): `dist`, `build`, `target`, …;
//! - a file in it is the tool's own mark ([`is_mark`]), as `CACHEDIR.TAG` is; or
//! - the name is a usual one and what stands beside it or in it is what the tool needs or makes
//!   ([`signs`]): `target` beside `Cargo.toml`, `dist` beside `package.json`, `build` beside it with source maps in it.
//!
//! A folder with nothing but a usual name is source.

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

/// What shows that a folder of a usual name is made by a tool. A pattern is a name, or begins or ends
/// with a `*`.
#[derive(Deserialize)]
pub(crate) struct ProductMarker {
    folder: String,
    /// One of these stands beside it; empty: whatever does.
    #[serde(default)]
    pub(crate) beside: Vec<String>,
    /// One of these stands in it; empty: whatever does.
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

/// Whether checkpoints leave out what has this name, whatever ignore files say, unless git tracks it: what programs
/// leave beside their sources while they only run.
pub(crate) fn is_by_product(name: &str, is_folder: bool) -> bool {
    let ending = || name.rsplit_once('.').map_or("", |(_, ending)| ending);
    if is_folder {
        is_one_of(&TABLE.by_products, name)
    } else {
        is_one_of(&TABLE.by_product_endings, ending())
    }
}

/// Whether a folder that an ignore file names holds build products; `path` is its path, with or
/// without a `/` at the end.
pub(crate) fn is_ignored_product(path: &str) -> bool {
    let name = last(path);
    is_named_product(name) || is_one_of(&TABLE.usual, name) || name.starts_with("cmake-build-")
}

/// Whether rules leave a build product out in that place, of a folder with a `/` at the end: such a folder
/// as [`is_ignored_product`] has it, what compilers and packers make, or anything in a folder whose name
/// only tools give. `env/.env` is none: people give that folder's name, too.
pub(crate) fn is_ignored_place(path: &str) -> bool {
    let (folders, name) = split(path.trim_end_matches('/'));
    folders.split('/').any(is_named_product)
        || if path.ends_with('/') { is_ignored_product(path) } else { is_made(name) }
}

/// Whether a file of this name can be a tool's own mark in what it makes.
pub(crate) fn is_mark(name: &str) -> bool {
    matches!(name, "CACHEDIR.TAG" | "CMakeCache.txt" | "pyvenv.cfg")
}

/// Whether the file `mark` shows that the folder `path` is a tool's; `has` says whether that is in it
/// too.
pub(crate) fn is_marked(path: &str, mark: &str, has: impl Fn(&str) -> bool) -> bool {
    match mark {
        "CACHEDIR.TAG" => true,
        // Some build beside the sources, and make the environment where the project is.
        "CMakeCache.txt" => !has("CMakeLists.txt"),
        "pyvenv.cfg" => last(path).contains("env"),
        _ => false,
    }
}

/// Whether compilers and packers make files of this name, and hardly anybody else. A name without an ending may
/// be a script's.
fn is_made(name: &str) -> bool {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    name.ends_with(".min.js")
        || name.ends_with(".min.css")
        || is_one_of(&TABLE.made_endings, ending)
}

/// The signs by which a folder of this name is known.
pub(crate) fn signs(name: &str) -> impl Iterator<Item = &'static ProductMarker> {
    TABLE.sign.iter().filter(move |sign| sign.folder == name)
}

/// Whether a name fits a pattern of a [`ProductMarker`].
pub(crate) fn fits(name: &str, pattern: &str) -> bool {
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
            assert!(is_ignored_place(place), "{place}");
        }
        for place in ["env/.env", "x.log", "data/", "build/x", "a.o/", "src/.env.local"] {
            assert!(!is_ignored_place(place), "{place}");
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
        assert!(!is_mark("Makefile") && !is_marked("a", "Makefile", none));
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
            assert_eq!(fits(name, pattern), is, "{name} {pattern}");
        }
        assert!(signs("src").next().is_none() && signs("build").count() == 5);
    }
}
