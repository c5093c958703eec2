//! Flags and variables whose paths a link that came with the folder leads elsewhere.

use std::os::unix::fs::symlink;

use crate::support::{ID, Project, Run};

#[test]
fn what_a_link_leads_out_of_the_folder_is_to_be_named_itself() {
    let (base, outside) = (Project::with_session(), Project::new());
    let outside = outside.path().canonicalize().unwrap();
    base.sh("mkdir -p real .vscode");
    for (name, to) in [("led", outside.as_path()), ("fine", "real".as_ref())] {
        symlink(to, base.at(name)).unwrap();
    }
    symlink(".vscode", base.at("editor")).unwrap();
    let told = format!("led leads through a link in the project to {}", outside.display());
    for flag in ["--inbox-dir", "--outbox-dir", "--workspace-dir"] {
        let run = base.run(&["status", flag, "led"]).with_code(2);
        assert!(run.stderr.contains(&told) && run.stderr.contains(flag), "{flag}: {run:?}");
    }
    let new = base.run(&["new", "--no-watch", "--inbox-dir", "led/x", "A task"]).with_code(2);
    assert!(new.stderr.contains("name it directly"), "{new:?}");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    let run = base.run(&["status", "--inbox-dir", "editor"]).with_code(2);
    assert!(run.stderr.contains("editor leads through a link"), "{run:?}");
    for (name, value) in [("INBOX_DIR", "led"), ("SANDBOX_WRITABLE", "led")] {
        let mut command = base.command(&["status", ID]);
        let run = Run::of(command.env(format!("DEADDROP_{name}"), value), "").with_code(2);
        assert!(run.stderr.contains(&format!("DEADDROP_{name}: ")), "{run:?}");
        assert!(run.stderr.contains(&told), "{run:?}");
    }
    // What is told and asked needs no word of it.
    let mut command = base.command(&["config", "show"]);
    Run::of(command.env("DEADDROP_INBOX_DIR", "led"), "").ok();
    // The place itself is, and what stays in the folder, be it by a link or by no link at all.
    for inbox in [outside.to_str().unwrap(), "fine", "real", "../elsewhere"] {
        base.run(&["status", ID, "--inbox-dir", inbox]).ok();
    }
}
