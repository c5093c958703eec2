//! Every example of the three texts through the program: what it prints is compared with what the
//! text shows.
//!
//! Times, ids of runs, durations and counts of bytes are the run's own; all else is exact. Where a
//! text abbreviates, what it shows is exact, and what it leaves out is only what the interfaces
//! define. Its slips: `"operationId": null` (Example 1) is left out, as are all optional fields; the
//! policy is called `shell.approvalRequired` everywhere (as the reference and the guide have it);
//! "Command requires elevated permissions" ("Approval Flow") is elsewhere, for the same command,
//! "Destructive command requires approval". No example of an `error` comes of an operation: the
//! reference's is of Docker, which is not here.

use serde_json::json;

use super::{message, told};

use super::comparing::*;

#[test]
fn each_operation_of_the_specification_and_what_the_interfaces_define_of_it() {
    let space = Space::new();
    space.0.write("workspace/config/settings.json", "{}\n");
    space.0.write("workspace/temp/scratch.txt", "x");
    let content = example("protocol", "2. createFile", 0)["content"].as_str().unwrap().len();
    for (section, id, shown) in [
        ("1. message", "msg-1", json!({"success": true})),
        (
            "2. createFile",
            "file-1",
            json!({"path": "scripts/fetch-schedule.ts", "success": true, "bytesWritten": content}),
        ),
        (
            "3. readFile",
            "read-1",
            json!({"path": "config/settings.json", "success": true, "content": "{}\n",
                   "encoding": "utf-8", "size": 3}),
        ),
        (
            "4. editFile",
            "edit-1",
            json!({"path": "scripts/fetch-schedule.ts", "success": true, "editsApplied": 1}),
        ),
        ("5. deleteFile", "del-1", json!({"path": "temp/scratch.txt", "success": true})),
        (
            "6. shell",
            "shell-1",
            json!({"command": "bun run scripts/fetch-schedule.ts", "success": true, "exitCode": 0,
                   "stdout": "", "stderr": "", "durationMs": 1}),
        ),
    ] {
        let operation = example("protocol", section, 0);
        let mut shown = shown;
        shown["type"] = operation["type"].clone();
        shown["operationId"] = json!(id);
        shown["timestamp"] = json!("");
        let printed = space.only(&operation);
        same_event(&shown, &printed, Shown::All);
        if let Some(bytes) = printed.get("bytesWritten") {
            assert_eq!(bytes, content);
        }
    }
    let edited = space.0.read("workspace/scripts/fetch-schedule.ts");
    assert!(edited.ends_with("\nconsole.log(JSON.stringify(trips, null, 2));"), "{edited}");
}

#[test]
fn operations_are_executed_in_their_order() {
    let space = Space::new();
    let text = with_version(example("protocol", "Operation Ordering", 0));
    let printed = told(&space.run(&text).ok());
    // The third reads what the second made of what the first wrote.
    for (n, shown) in [
        json!({"type": "createFile", "path": "a.ts", "success": true, "bytesWritten": 3}),
        json!({"type": "shell", "command": "bun run a.ts", "success": true}),
        json!({"type": "readFile", "path": "output.txt", "success": true, "content": "..."}),
    ]
    .iter()
    .enumerate()
    {
        same_event(shown, &printed["events"][n], Shown::Some);
    }
    // As the text has it, without a version, it is no message.
    let text = example("protocol", "Operation Ordering", 0).to_string();
    let refused = told(&space.run(&text).with_code(1));
    assert_eq!(refused["status"], "error");
    assert_eq!(refused["events"][0]["category"], "validation");
}

#[test]
fn one_failed_operation_does_not_invalidate_the_batch() {
    let space = Space::new();
    let text = with_version(example("protocol", "Partial Failure Handling", 0));
    let run = space.run(&text).ok();
    same(&example("protocol", "Partial Failure Handling", 1), &run, Shown::Some);
}

#[test]
fn the_first_and_the_second_example() {
    for (name, edition) in [
        ("Example 1: Simple Script Execution", ""),
        ("Example 2: Train Schedule (From Original Essay)", "reminder.ts"),
    ] {
        let space = Space::new();
        let sent = example("protocol", &format!("{name}, Agent Operations"), 0);
        let run = space.run(&sent.to_string()).ok();
        same(&example("protocol", &format!("{name}, Runtime Events"), 0), &run, Shown::All);
        let content = sent["operations"][1]["content"].as_str().unwrap();
        assert_eq!(told(&run)["events"][1]["bytesWritten"], content.len());
        if edition.is_empty() {
            continue;
        }
        assert_eq!(space.0.read(&format!("workspace/{edition}")), content);
        let last = example("protocol", &format!("{name}, Agent Final Response"), 0);
        let run = space.run(&last.to_string()).ok();
        assert_eq!(told(&run)["status"], "completed");
        let shown = json!({"type": "message", "timestamp": "", "success": true});
        same_event(&shown, &told(&run)["events"][0], Shown::All);
    }
}

#[test]
fn the_third_example_with_each_way_to_approve_and_to_deny() {
    let name = "Example 3: Sensitive Operation with Approval";
    let part = |part: &str| example("protocol", &format!("{name}, {part}"), 0);
    let said = "2. User Provides Approval Decision";
    let mut renamed = example("protocol", said, 1);
    renamed["approval"]["operationId"] = json!("cleanup-1");
    for approval in
        [None, Some(part("User Approval")), Some(example("protocol", said, 0)), Some(renamed)]
    {
        let space = Space::new();
        space.0.write("workspace/temp/a", "x");
        let run = space.run(&part("Agent Operations").to_string()).with_code(3);
        let id = same(&part("Runtime Events (Paused)"), &run, Shown::All);
        assert!(space.0.exists("workspace/temp/a"));
        match &approval {
            None => drop(space.deaddrop(&["approve", "cleanup-1"], "").ok()),
            Some(approval) => drop(space.0.write("approvals/a.json", approval.to_string())),
        }
        let run = space.deaddrop(&["ops", "run", "--resume", &id], "").ok();
        assert_eq!(same(&part("Runtime Resumes"), &run, Shown::All), id);
        assert_eq!(space.0.names("workspace/temp"), [""; 0]);
    }
    // "If denied: Return policyDenied event and continue".
    let space = Space::new();
    space.0.write("workspace/temp/a", "x");
    let mut sent = part("Agent Operations");
    sent["operations"].as_array_mut().unwrap().push(json!({"type": "message", "content": "x"}));
    let id = told(&space.run(&sent.to_string()).with_code(3))["runId"].as_str().unwrap().to_owned();
    space.deaddrop(&["deny", "cleanup-1"], "").ok();
    let printed = told(&space.deaddrop(&["ops", "run", "--resume", &id], "").ok());
    let shown =
        json!({"type": "policyDenied", "operationId": "cleanup-1", "operationType": "shell"});
    same_event(&shown, &printed["events"][0], Shown::Some);
    assert_eq!(printed["events"][1]["type"], "message");
    assert_eq!(printed["status"], "completed");
    assert!(space.0.exists("workspace/temp/a"));
}

#[test]
fn the_approval_flow() {
    let space = Space::new();
    let mut shown = example("protocol", "1. Runtime Pauses and Returns", 0);
    shown["events"][1]["reason"] = json!("Destructive command requires approval");
    let sent = message(&json!([
        {"type": "createFile", "path": "a.ts", "content": ""},
        {"type": "shell", "id": "shell-1", "command": "rm -rf temp/"},
        {"type": "message", "content": "after"},
    ]));
    let id = same(&shown, &space.run(&sent).with_code(3), Shown::Some);
    let approval = example("protocol", "2. User Provides Approval Decision", 1);
    space.0.write("approvals/a.json", approval.to_string());
    // "After approval, remaining operations continue."
    let printed = told(&space.deaddrop(&["ops", "run", "--resume", &id], "").ok());
    let shown = json!({"type": "shell", "operationId": "shell-1", "success": true});
    same_event(&shown, &printed["events"][0], Shown::Some);
    assert_eq!(printed["events"][1]["type"], "message");
}

#[test]
fn each_operation_of_the_reference_and_its_event() {
    let space = Space::new();
    space.0.write("workspace/config.json", "{\"key\": \"value\"}");
    space.0.write("workspace/src/app.ts", "const x = 1;\nconsole.log(x)\n");
    space.0.write("workspace/temp.txt", "x");
    for (operation, event) in [
        ("message", "message (acknowledgment)"),
        ("createFile", "createFile"),
        ("readFile", "readFile"),
        ("editFile", "editFile"),
        ("deleteFile", "deleteFile"),
        ("shell", "shell"),
    ] {
        // Both stand under the heading of that name, the operation first.
        let n = usize::from(operation == event);
        let printed = space.only(&example("reference", operation, 0));
        same_event(&example("reference", event, n), &printed, Shown::All);
        if operation == "createFile" {
            assert_eq!(printed["bytesWritten"], 31);
            let mut failed = space.only(&example("reference", operation, 0));
            assert_eq!(failed["operationId"], "file-1");
            failed.as_object_mut().unwrap().remove("operationId");
            same_event(&example("reference", "createFile, On failure", 0), &failed, Shown::Some);
        }
    }
}

#[test]
fn the_messages_of_the_reference() {
    let space = Space::new();
    let run = space.run(&example("reference", "Protocol Version", 0).to_string()).ok();
    same(&example("reference", "Events Message", 0), &run, Shown::All);
    let printed = told(&space.run(&example("reference", "Operations Message", 0).to_string()).ok());
    for (n, shown) in [
        json!({"type": "message", "timestamp": "", "success": true}),
        json!({"type": "createFile", "timestamp": "", "path": "app.ts", "success": true,
               "bytesWritten": 3}),
        json!({"type": "shell", "timestamp": "", "command": "bun run app.ts", "success": true,
               "exitCode": 0, "stdout": "", "stderr": "", "durationMs": 1}),
    ]
    .iter()
    .enumerate()
    {
        same_event(shown, &printed["events"][n], Shown::All);
    }
    // What asks and what is denied.
    let asked = space.only(&json!({"type": "shell", "id": "shell-1", "command": "rm -rf data/"}));
    same_event(&example("reference", "approvalRequired", 0), &asked, Shown::All);
    let denied = space.only(&json!({"type": "shell", "command": "sudo ls"}));
    same_event(&example("reference", "policyDenied", 0), &denied, Shown::All);
}

#[test]
fn each_operation_of_the_guide_and_its_event() {
    let space = Space::new();
    space.0.write("workspace/config.json", "{\"key\": \"value\"}");
    space.0.write("workspace/src/app.ts", "const x = 1;\nconsole.log(x)\n");
    space.0.write("workspace/temp/cache.json", "{}");
    let sections = ["CreateFile", "ReadFile", "EditFile", "DeleteFile", "Shell"];
    for (n, section) in sections.iter().enumerate() {
        let printed = space.only(&example("guide", &format!("{section} Operation"), 0));
        // All but the time is shown.
        let mut shown = example("guide", "Response Event", n);
        shown["timestamp"] = json!("");
        same_event(&shown, &printed, Shown::All);
    }
    assert_eq!(space.0.read("workspace/src/app.ts"), "const x = 42;\nconsole.log(\"Value:\", x)\n");
    let printed = space.only(&example("guide", "Message Operation", 0));
    let shown = json!({"type": "message", "timestamp": "", "success": true});
    same_event(&shown, &printed, Shown::All);
}

#[test]
fn special_events_of_the_guide() {
    let space = Space::new();
    let asked = space.only(&json!({"type": "shell", "id": "shell-1", "command": "rm -rf data/"}));
    let mut shown = example("guide", "Approval Required", 0);
    shown["timestamp"] = json!("");
    same_event(&shown, &asked, Shown::All);
    space.0.write(
        "deaddrop.toml",
        "[policies.standard]\nshell.allowed = [\"bun\", \"node\", \"npm\", \"npx\"]\n",
    );
    let denied = space.only(&json!({"type": "shell", "command": "python3 x.py"}));
    let mut shown = example("guide", "Policy Denied", 0);
    shown["timestamp"] = json!("");
    same_event(&shown, &denied, Shown::All);
}

#[test]
fn a_timeout_is_told_as_in_the_reference_and_the_guide() {
    let space = Space::new();
    for (text, section) in [("reference", "shell, On timeout"), ("guide", "Timeout Event")] {
        // The example's 30 seconds are the default; one is enough.
        let command = json!({"type": "shell", "command": "sleep 1000", "timeout": 1000});
        let sent = message(&json!([command]));
        let printed = told(&space.deaddrop(&["ops", "run", "--policy=workspace"], &sent).ok());
        same_event(&example(text, section, 0), &printed["events"][0], Shown::Some);
        let took = printed["events"][0]["durationMs"].as_u64().unwrap();
        assert!((1000..20_000).contains(&took), "{took}");
    }
}

#[test]
fn the_batch_of_the_guide() {
    let space = Space::new();
    let text = with_version(example("guide", "Batching Operations", 0));
    let run = space.run(&text).ok();
    let printed = told(&run);
    let events = printed["events"].as_array().unwrap();
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["message", "createFile", "message", "shell", "message"]);
    assert!(events.iter().all(|event| event["success"] == true), "{printed}");
}

#[test]
fn turns_are_complete_cycles() {
    let space = Space::new();
    // "Iterative Execution".
    for (n, (operations, types)) in [
        (
            json!([{"type": "createFile", "path": "a.ts", "content": "x"},
                   {"type": "shell", "command": "bun run a.ts"}]),
            &["createFile", "shell"][..],
        ),
        (
            json!([{"type": "readFile", "path": "output.txt"},
                   {"type": "editFile", "path": "a.ts",
                    "edits": [{"oldContent": "x", "newContent": "y"}]},
                   {"type": "message", "content": "Edited."}]),
            &["readFile", "editFile", "message"],
        ),
        (json!([{"type": "message", "content": "Done."}]), &["message"]),
    ]
    .into_iter()
    .enumerate()
    {
        let printed = told(&space.run(&message(&operations)).ok());
        let events = printed["events"].as_array().unwrap();
        let told: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(told, types, "turn {n}");
        assert!(events.iter().all(|event| event["success"] == true), "{printed}");
    }
}
