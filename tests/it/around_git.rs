//! Where deaddrop meets git: git directories, projects where nobody ran `init`, and replies that would
//! make a repository.

use crate::support::{Base, ID, has_sandbox};

#[test]
fn making_a_repository_is_refused_at_once_and_writing_to_one_is_asked_about() {
    if !has_sandbox("auto") {
        eprintln!("SKIPPED: git that is kept from its repository, without a sandbox");
        return;
    }
    let reply = |command: &str| format!("[RUN_COMMAND]\n{command}\n[/RUN_COMMAND]\n");
    for command in ["git init", "git init -q . && git add -A", "mkdir sub && git init sub"] {
        let base = Base::with_session();
        base.run_with(&["apply", "-"], reply(command)).ok();
        let outbox = base.outbox(2);
        assert!(
            outbox.contains(
                "[FAILED] RUN_COMMAND: DENIED: Making a repository in the workspace is for the user"
            ),
            "{outbox}"
        );
        assert!(outbox.contains("Leave git init out, and ask the user to run it"), "{outbox}");
        assert!(!base.exists("workspace/.git") && !base.exists("workspace/sub"));
    }
    // One that is there stays in its place, and what is made elsewhere is nobody's concern.
    for (command, why) in [
        ("git init -q && git add -A", "a new one in the workspace is put\n"),
        ("cd /tmp && git init -q x", "a new one in the workspace is put\n"),
        ("git add -A", "'git add' writes to the repository"),
    ] {
        let base = Base::with_session();
        base.sh("git init -q workspace");
        let run = base.run_with(&["apply", "-"], reply(command)).with_code(3);
        assert!(run.stderr.contains(why), "{run:?}");
        assert!(base.waiting(ID)["command"] == command);
    }
}
