//! The rows of a listing, and the folders that are shown as one row.

use super::*;
use crate::workspace::walk::LeftOut;

fn rows(walk: &Walk, touched: &[&str]) -> Vec<String> {
    let overview = Overview::of(walk, touched);
    (0..overview.len())
        .map(|n| match overview.row(n) {
            OverviewRow::File(file) => file.path.to_owned(),
            OverviewRow::Product(Product { folder, count }) => format!("{folder} {}", count.files),
        })
        .collect()
}

fn of(paths: &[&str]) -> Vec<String> {
    rows(&Walk::of(paths.iter().map(|path| (*path, 1))), &[])
}

#[test]
fn folders_of_build_products_stand_as_one() {
    for (paths, folder) in [
        (&["node_modules/a/b.js", "node_modules/c"][..], "node_modules/ 2"),
        (&["a/b/__pycache__/x.pyc"], "a/b/__pycache__/ 1"),
        (&["Cargo.toml", "target/debug/x"], "target/ 1"),
        (&["crates/x/Cargo.toml", "crates/x/target/x"], "crates/x/target/ 1"),
        (&["cache/CACHEDIR.TAG", "cache/x/y"], "cache/ 2"),
        (&["o/CMakeCache.txt", "o/x.o"], "o/ 2"),
        (&["myenv/pyvenv.cfg", "myenv/lib/x.py"], "myenv/ 2"),
        (&["app.csproj", "obj/x"], "obj/ 1"),
        (&["app.csproj", "bin/Debug/net8/x.dll"], "bin/ 1"),
        (&["build.gradle.kts", "build/x"], "build/ 1"),
        (&["build/bdist.linux/x", "setup.py"], "build/ 1"),
        (&["dist/x-1.0.whl", "pyproject.toml"], "dist/ 1"),
        (&["dist/main.js", "dist/main.js.map", "package.json"], "dist/ 2"),
        (&["src/x.egg-info/PKG-INFO"], "src/x.egg-info/ 1"),
    ] {
        let rows = of(paths);
        assert_eq!(rows.iter().filter(|row| row.ends_with(folder)).count(), 1, "{rows:?}");
        let (folder, _) = folder.split_once(' ').unwrap();
        assert_eq!(rows.iter().filter(|row| row.starts_with(folder)).count(), 1, "{rows:?}");
    }
}

#[test]
fn sources_in_folders_of_usual_names_are_listed() {
    for paths in [
        &["build/Dockerfile", "build/rules.mk", "src/a"][..],
        &["dist/build.sh", "dist/spec/x.spec", "x"],
        &["pack/dist/opt/a.vim", "pack/dist/opt/b.vim", "pack/dist/opt/tags"],
        &["dist/notes.md", "dist/readme.txt"],
        &["dist/app.js", "target/debug/app"],
        &["dist/__init__.py", "dist/a.js"],
        &["src/main/java/org/target/deep/Aim.class", "lib/dist/app.js"],
        &["target/Makefile", "target/linux/generic/config"],
        &["out/a.o", "out/make.py"],
        &["build/images/a.png", "build/images/b.png", "build/x.o"],
        &["coverage/report.txt", "obj/notes"],
        &["bin/run.sh", "app.csproj"],
        &["obj/teapot.obj"],
        &["src/target/mod.rs", "Cargo.toml"],
        &["target/practice.txt"],
        &["CMakeCache.txt", "a.c"],
        &["sub/CMakeCache.txt", "sub/CMakeLists.txt", "sub/a.c"],
        &["project/pyvenv.cfg", "project/a.py"],
        &["CACHEDIR.TAG", "a"],
        &["node_modules", "cache/CACHEDIR.TAGS"],
        &["build/CMakeFiles.txt"],
        &["app.csproj/x", "objx/y"],
    ] {
        let mut sorted = paths.to_vec();
        sorted.sort_unstable();
        assert_eq!(of(paths), sorted);
    }
}

#[test]
fn each_file_is_listed_or_ignored_or_in_one_product() {
    let left_out = |folder: &str| LeftOut {
        folder: folder.to_owned(),
        count: Count { files: 10, bytes: 100, is_whole: true },
    };
    let paths = [
        "a.rs",
        "node_modules/x/node_modules/y",
        "node_modules/x/z",
        "node_modules.txt",
        "node_modules/x/y",
        "z/a",
    ];
    let mut walk = Walk::of(paths.map(|path| (path, 1))).with_left_out(
        Count { files: 2, bytes: 3, is_whole: true },
        vec![left_out("z/dist/"), left_out("data/"), left_out("node_modules/x/out/")],
    );
    assert!(is_ignored_product_file(&walk, "z/dist/a/b"));
    for path in ["z/dist", "data/x", "node_modules/x/z", "y/dist/a"] {
        assert!(!is_ignored_product_file(&walk, path), "{path}");
    }
    walk.add_file("z/dist/mine", 7);
    let touched = ["node_modules/x/z", "node_modules/x/z", "node_modules/none", "z/a"];
    let all = ["a.rs", "node_modules.txt", "node_modules/ 13", "node_modules/x/z", "z/a"];
    assert_eq!(rows(&walk, &touched)[..5], all);
    assert_eq!(rows(&walk, &touched)[5..], ["z/dist/ 10", "z/dist/mine"]);
    let overview = Overview::of(&walk, &touched);
    assert_eq!(overview.ignored(), Count { files: 12, bytes: 103, is_whole: true });
    let files: Vec<_> = overview.files().map(|file| file.path).collect();
    assert_eq!(files, ["a.rs", "node_modules.txt", "node_modules/x/z", "z/a", "z/dist/mine"]);
    assert_eq!((overview.below("node_modules/"), overview.below("none/").len()), (3..4, 0));
    assert_eq!((overview.find("z/a"), overview.find("z")), (Some(4), None));
}

#[test]
fn paths_of_any_form_are_sorted_in() {
    for path in ["", "/", "//", "a//b", "/node_modules/x", "node_modules//x", "build//lib/x"] {
        let rows = of(&[path, "setup.py"]);
        assert_eq!(rows.len(), 2, "{rows:?}");
    }
}
