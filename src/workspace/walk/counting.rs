//! Counts the files in folders that a walk left out. It uses one thread, goes in the order of paths and stops at a
//! limit, so that the same files always give the same numbers.

use std::ops::ControlFlow;

use super::found::{Count, LeftOut, PlaceKind, Walk};
use crate::workspace::folder_cache::FolderCache;
use crate::workspace::list::{EntryFilter, Visited};
use crate::workspace::names::shown;
use crate::workspace::{Workspace, products};

/// The most entries, including folders, that are counted in the folders that a walk left out.
const MAX_ENTRIES: usize = 20_000;

impl Workspace {
    /// Counts the files in the folders that a walk left out, build products first, up to a limit.
    pub fn count_ignored(&self, walk: &mut Walk) {
        count_up_to(MAX_ENTRIES, self, walk);
    }
}

fn count_up_to(mut room: usize, workspace: &Workspace, walk: &mut Walk) {
    let mut folders = FolderCache::new(workspace);
    let mut left_out: Vec<LeftOut> = walk
        .places(PlaceKind::Ignored)
        .map(|folder| LeftOut { folder: shown(folder) + "/", count: Count::UNKNOWN })
        .collect();
    for is_product in [true, false] {
        for (exact, LeftOut { folder, count }) in walk.places(PlaceKind::Ignored).zip(&mut left_out)
        {
            if room == 0 || products::is_ignored_product(folder) != is_product {
                continue;
            }
            let Ok(opened) = folders.folder(exact) else { continue };
            *count = Count::NONE;
            workspace.visit_below(opened, folder, EntryFilter::WithoutGit, &mut |visited| {
                if room == 0 {
                    count.is_whole = false;
                    return ControlFlow::Break(());
                }
                room -= 1;
                match visited {
                    Visited::File(file) if file.name != b".gitkeep" => count.add_file(file.size),
                    Visited::Unreadable(_) => count.is_whole = false,
                    Visited::File(_) | Visited::Folder(_) | Visited::OwnState => {}
                }
                ControlFlow::Continue(())
            });
        }
    }
    left_out.sort_unstable_by(|a, b| a.folder.cmp(&b.folder));
    walk.left_out = left_out;
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;

    use super::*;

    fn counted(workspace: &Workspace, room: usize) -> Vec<(String, u64, u64, bool)> {
        let mut walk = workspace.walk().unwrap();
        count_up_to(room, workspace, &mut walk);
        let told = |one: &LeftOut| {
            let Count { files, bytes, is_whole } = one.count;
            (one.folder.clone(), files, bytes, is_whole)
        };
        walk.left_out().iter().map(told).collect()
    }

    #[test]
    fn what_is_left_out_is_counted_up_to_a_bound_products_first() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for (path, text) in [
            (".gitignore", "data/\ndist/\n*.log\n"),
            ("data/a/b", "12345"),
            ("data/c.log", "1"),
            ("data/state/secret", "1234567"),
            ("data/.git/config", "x"),
            ("sub/dist/o", "123"),
            ("sub/x.log", "1234"),
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        std::os::unix::fs::symlink("../sub", root.join("data/link")).unwrap();
        let workspace = Workspace::open(root, &[root.join("data/state")], &[]).unwrap();
        let link = 6;
        let of = |folder: &str, files, bytes, whole| (folder.to_owned(), files, bytes, whole);
        assert_eq!(
            counted(&workspace, 100),
            [of("data/", 3, 6 + link, true), of("sub/dist/", 1, 3, true)]
        );
        let few = counted(&workspace, 2);
        assert_eq!((few[1].clone(), few[0].3), (of("sub/dist/", 1, 3, true), false));
        assert_eq!(counted(&workspace, 1)[0], of("data/", 0, 0, false));
        let mut walk = workspace.walk().unwrap();
        assert_eq!(walk.ignored_files(), Count { files: 1, bytes: 4, is_whole: true });
        walk.add_file("sub/dist/o", 3);
        walk.add_file("sub/dist/o", 4);
        let files: Vec<_> = walk.files().map(|file| (file.path, file.size)).collect();
        assert_eq!(files, [(".gitignore", 18), ("sub/dist/o", 3)]);
    }

    #[test]
    fn a_folder_of_any_name_is_counted_and_a_link_in_its_place_is_not_followed() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let dir = tempfile::tempdir().unwrap();
        let (root, name) = (dir.path().join("w"), OsStr::from_bytes(b"o\xff%41"));
        fs::create_dir_all(root.join(name).join("in")).unwrap();
        fs::write(root.join(name).join("in/x"), "12").unwrap();
        fs::write(root.join(".ignore"), "o*/\n").unwrap();
        let workspace = Workspace::open(&root, &[], &[]).unwrap();
        assert_eq!(counted(&workspace, 9), [("o\u{fffd}%41/".to_owned(), 1, 2, true)]);
        let mut walk = workspace.walk().unwrap();
        fs::rename(root.join(name), dir.path().join("away")).unwrap();
        std::os::unix::fs::symlink("../away", root.join(name)).unwrap();
        workspace.count_ignored(&mut walk);
        assert_eq!(walk.left_out()[0].count, Count::UNKNOWN);
    }
}
