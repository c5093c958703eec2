//! What a command brought from among ignored files, and large files that were moved, in turns that are taken
//! back one by one and together.

use crate::support::{Base, Run};

fn command(script: &str) -> String {
    format!("[RUN_COMMAND]\n{script}\n[/RUN_COMMAND]\n")
}

fn moved(from: &str, to: &str) -> String {
    format!("[MOVE_FILE path=\"{from}\" to=\"{to}\"]\n")
}

#[track_caller]
fn tells(run: &Run, all: &[&str]) {
    for told in all {
        assert!(run.stderr.contains(told), "{told:?} is not in {}", run.stderr);
    }
}

/// A session where `.envx` is ignored, files beyond a kilobyte are not kept, and a turn did this.
fn scene(script: &str) -> Base {
    let base = Base::with_session();
    base.write("deaddrop.toml", "checkpoint_file_bytes = 1000\n");
    base.write("workspace/.gitignore", ".envx\n*.log\n");
    base.write("workspace/.envx", "secret\n");
    base.write("workspace/z.bin", "z".repeat(2000));
    base.write("workspace/a", "one\n");
    base.apply(&command(script));
    base
}

#[test]
fn a_large_file_that_was_moved_to_where_something_had_been_brought_is_not_lost() {
    let base = scene("mv .envx e");
    base.apply(&format!("[DELETE_FILE path=\"e\"]\n{}", moved("z.bin", "e")));
    let big = "z".repeat(2000);
    tells(&base.run(&["undo", "2"]).with_code(1), &["'e' (", "'z.bin' ("]);
    assert_eq!(base.read("workspace/e"), big);
    assert!(!base.exists("workspace/z.bin"));
    // By force it goes back, and what was brought is gone with it.
    base.run(&["undo", "2", "--force"]).ok();
    assert_eq!(base.read("workspace/z.bin"), big);
    assert!(!base.exists("workspace/e"));
    base.run(&["redo"]).ok();
    assert_eq!(base.read("workspace/e"), big);
}
