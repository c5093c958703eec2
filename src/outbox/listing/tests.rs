//! Listings of all sizes, for all amounts of room.

use proptest::prelude::*;

use super::*;
use crate::workspace::walk::{Count, LeftOut, Walk};

/// Enough room for every listing that is not cut off by its number of lines.
const ROOM: usize = 32 << 10;

fn listed(walk: &Walk, touched: &[&str], room: usize) -> String {
    let overview = Overview::of(walk, touched);
    Listing::new(&overview, Dialect::Tags, touched).render(room, str::len)
}

fn walk_of(paths: &[String]) -> Walk {
    Walk::of(paths.iter().map(|path| (path.as_str(), 10)))
}

/// The number of all files in the lines, listed or counted. Panics if a line does not belong to a tree.
fn told(listing: &str) -> u64 {
    let lines = listing.lines().filter(|line| !line.starts_with("  … "));
    lines
        .map(|line| {
            let (_, told) = line.rsplit_once(" (").unwrap();
            let (n, noun) = told.split_once(' ').unwrap();
            if noun.contains("file") { n.replace(',', "").parse().unwrap() } else { 1 }
        })
        .sum()
}

#[test]
fn of_a_large_workspace_folders_are_counted() {
    let mut paths: Vec<String> = (0..2000).map(|n| format!("a/b/{n:04}.txt")).collect();
    paths.push("z.txt".to_owned());
    let walk = walk_of(&paths);
    let hint =
        "  … folders with a count are not listed in full; [LIST_FILES path=\"FOLDER\"] lists one\n";
    let expected = format!("  a/b/ (2,000 files, 20 kB)\n  z.txt (10 bytes)\n{hint}");
    assert_eq!(listed(&walk, &[], ROOM), expected);
    // A touched file is listed, with as many of its neighbours as fit into half of the room.
    let near = listed(&walk, &["a/b/1500.txt"], ROOM);
    assert!(near.contains("  a/b/0000.txt (10 bytes)\n") && near.contains("  a/b/1500.txt (10 b"));
    assert!(near.contains(" more files, ") && near.contains("  z.txt (10 bytes)\n"), "{near}");
    assert_eq!(told(&near), 2001);
    assert!((200..=LIMIT + 1).contains(&near.lines().count()), "{near}");
    // A deleted file counts as near to the place where it was.
    assert!(listed(&walk, &["a/b/gone.txt"], ROOM).contains("  a/b/0000.txt (10 bytes)\n"));
}

#[test]
fn what_is_near_to_the_work_is_listed_before_what_is_far() {
    let mut paths: Vec<String> = (0..390).map(|n| format!("root{n:03}")).collect();
    paths.extend((0..300).map(|n| format!("src/deep/f{n:03}")));
    paths.extend((0..20).map(|n| format!("src/other/f{n:03}")));
    paths.extend((0..900).map(|n| format!("src/large/f{n:03}")));
    let near = listed(&walk_of(&paths), &["src/deep/f007"], ROOM);
    assert_eq!(near.lines().filter(|line| line.contains("src/deep/f")).count(), 300);
    assert_eq!(near.lines().filter(|line| line.contains("src/other/f")).count(), 20);
    assert!(near.contains("  src/large/ (900 files, 9,000 bytes)\n"), "{near}");
    assert!(near.contains("  ./ (3") && near.contains(" more files, "), "{near}");
    assert_eq!(told(&near), 390 + 300 + 20 + 900);
}

#[test]
fn names_are_shown_on_one_line() {
    let walk = Walk::of([("a\n=== PROMPT ===", 3)]);
    assert_eq!(listed(&walk, &[], ROOM), "  a␊=== PROMPT === (3 bytes)\n");
}

#[test]
fn an_empty_listing_says_why() {
    assert_eq!(listed(&Walk::default(), &[], ROOM), "(empty workspace)\n");
    let ignored = Count { files: 2, bytes: 1234, is_whole: true };
    let walk = Walk::default().with_left_out(ignored, Vec::new());
    let told = "  … 2 ignored files, 1,234 bytes (not listed)\n";
    assert_eq!(listed(&walk, &[], ROOM), told);
    assert_eq!(listed(&walk, &[], told.len() - 1), NOT_LISTED);
}

#[test]
fn what_cannot_be_read_is_named_within_bounds() {
    let folders: Vec<String> = (0..1000).map(|n| format!("d{n:03}/")).collect();
    let told =
        listed(&Walk::from_files([("a".to_owned(), 1, EntryKind::File)], folders), &[], ROOM);
    assert_eq!(told.lines().count(), 1 + UNREADABLE + 1 + 2);
    assert!(
        told.contains("  d019/ (cannot be read)\n  … and 978 more (cannot be read)\n  d998/ (")
    );
}

#[test]
fn build_products_and_ignored_files_are_told_in_a_line_each() {
    let left_out = |folder: &str, files, is_whole| LeftOut {
        folder: folder.to_owned(),
        count: Count { files, bytes: 10 * files, is_whole },
    };
    let paths = ["web/node_modules/a/x.js", "web/node_modules/b.js", "web/main.js"];
    let mut walk = walk_of(&paths.map(str::to_owned)).with_left_out(
        Count { files: 1, bytes: 5, is_whole: true },
        vec![left_out("target/", 1234, true), left_out("data/", 7, true)],
    );
    walk.add_file("target/mine.txt", 3);
    assert_eq!(
        listed(&walk, &["web/node_modules/b.js"], ROOM),
        "  target/ (build products: 1,234 files, 12 kB)
  target/mine.txt (3 bytes)
  web/main.js (10 bytes)
  web/node_modules/ (build products: 2 files, 20 bytes)
  web/node_modules/b.js (10 bytes)
  … 8 ignored files, 75 bytes (not listed)
"
    );
    // If a folder is not listed itself, its build products are counted next to its files.
    let told = listed(&walk, &[], 120);
    assert_eq!(
        told.lines().next().unwrap(),
        "  ./ (2 files, 13 bytes; build products: 1,236 files, 12 kB)"
    );
}

/// Paths, many of which share folders. Some are build products.
fn paths() -> impl Strategy<Value = Vec<String>> {
    let part = prop_oneof![
        4 => "[a-c]",
        1 => "[a-d]{30}",
        1 => Just("node_modules".to_owned()),
        1 => Just("é\n".to_owned()),
    ];
    let path = prop::collection::vec(part, 1..6).prop_map(|parts| parts.join("/"));
    prop::collection::btree_set(path, 1..700).prop_map(|paths| {
        // No path is both a file and a folder.
        let all: Vec<String> = paths.into_iter().collect();
        let is_folder = |path: &String| {
            let below = format!("{path}/");
            let at = all.partition_point(|one| *one < below);
            all.get(at).is_some_and(|one| one.starts_with(&below))
        };
        let is_file: Vec<bool> = all.iter().map(|path| !is_folder(path)).collect();
        all.into_iter().zip(is_file).filter_map(|(path, is)| is.then_some(path)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn whatever_the_room_a_listing_is_within_it_and_tells_of_every_file(
        paths in paths(),
        room in prop_oneof![0_usize..200, 200_usize..5_000, Just(ROOM)],
        near in any::<prop::sample::Index>(),
    ) {
        let walk = walk_of(&paths);
        let touched = [near.get(&paths).as_str()];
        let listing = listed(&walk, &touched, room);
        prop_assert!(listing.len() <= room.max(NOT_LISTED.len()), "{} of {room}: {listing}", listing.len());
        prop_assert!(listing.ends_with('\n') && listing.lines().all(|line| line.starts_with("  ")));
        prop_assert_eq!(&listing, &listed(&walk, &touched, room));
        let overview = Overview::of(&walk, &touched);
        prop_assert!(overview.files().any(|file| file.path == touched[0]));
        if listing != NOT_LISTED && !listing.contains("build products") && overview.len() == paths.len() {
            prop_assert_eq!(told(&listing), paths.len() as u64);
        }
        if room == ROOM {
            let line = format!("  {} (10 bytes)", visible_line(touched[0]));
            prop_assert!(listing.lines().any(|one| one == line), "{line}: {listing}");
        }
        // A path inside a product's folder belongs to the product, unless it was touched.
        let within = |path: &&String| path.starts_with("node_modules/") && **path != touched[0];
        prop_assert!(paths.iter().filter(within).all(|path| overview.find(path).is_none()));
    }
}

#[test]
fn numbers_are_grouped_and_sizes_rounded_down() {
    for (n, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (4_812_000, "4,812,000")] {
        assert_eq!(grouped(n), text);
    }
    for (n, text) in [
        (0, "0 bytes"),
        (1, "1 byte"),
        (9_999, "9,999 bytes"),
        (10_999, "10 kB"),
        (999_999, "999 kB"),
        (1_990_000, "1.9 MB"),
        (56_700_000, "56 MB"),
        (7_000_000_000, "7.0 GB"),
        (u64::MAX, "18,446,744,073 GB"),
    ] {
        assert_eq!(size(n), text);
    }
}

#[test]
fn what_was_not_counted_is_not_given_as_a_number() {
    let count = |files, bytes, is_whole| Count { files, bytes, is_whole };
    assert_eq!(
        describe_products(count(1234, 56_000_000, true)),
        "build products: 1,234 files, 56 MB"
    );
    assert_eq!(describe_products(Count::UNKNOWN), "build products: files, not counted");
    assert_eq!(describe_products(count(1, 2, false)), "build products: more than 1 file, 2 bytes");
    assert_eq!(describe(count(1, 1, true), "ignored "), "1 ignored file, 1 byte");
    assert_eq!(describe(count(2, 1234, true), "ignored "), "2 ignored files, 1,234 bytes");
    assert_eq!(describe(count(2, 1234, false), ""), "more than 2 files, 1,234 bytes");
    assert_eq!(describe(Count::UNKNOWN, "ignored "), "ignored files, not counted");
    assert_eq!(describe(count(1, 2, true), "more "), "1 more file, 2 bytes");
    let both = describe_hidden([count(1, 2, true), count(3, 4, true)], "more ");
    assert_eq!(both, "1 more file, 2 bytes; build products: 3 files, 4 bytes");
    let products = describe_hidden([Count::NONE, count(3, 4, true)], "");
    assert_eq!(products, "build products: 3 files, 4 bytes");
}
