//! Lowers messages to operations.

use super::*;
use crate::protocol::operations::receive;
use crate::protocol::tags;

fn asked_for(operations: &str, ends: bool) -> Vec<Step> {
    let text = format!("{{\"protocolVersion\": \"1.0\", \"operations\": [\n{operations}\n]}}");
    let received = receive(&text).unwrap();
    steps(Ok(received), ends)
}

fn lowered(operation: &str) -> Operation {
    let [step] = <[Step; 1]>::try_from(asked_for(operation, false)).unwrap();
    match step.asks {
        StepContent::Operation(meant) => meant,
        StepContent::Invalid(invalid) => panic!("{operation}: {invalid:?}"),
    }
}

#[test]
fn each_operation_means_what_it_says() {
    let path = |text| RelPath::parse(text).unwrap();
    assert_eq!(
        lowered(r#"{"type": "message", "content": "a\n\n"}"#),
        Operation::Message { text: "a\n".into() }
    );
    let create = |content, existing| Operation::Create { path: path("a/b"), content, existing };
    assert_eq!(
        lowered(r#"{"type": "createFile", "path": "./a/b", "content": "x\n"}"#),
        create(TextOrBytes::from("x\n"), Existing::Fail)
    );
    assert_eq!(
        lowered(
            r#"{"type": "createFile", "path": "a/b", "content": "AP8=", "encoding": "base64", "overwrite": true}"#
        ),
        create(TextOrBytes::Bytes { base64: vec![0, 255] }, Existing::Replace)
    );
    assert_eq!(
        lowered(r#"{"type": "readFile", "path": "a", "encoding": "base64"}"#),
        Operation::Read { path: path("a"), reading: Reading::Now(Encoding::Base64) }
    );
    assert_eq!(
        lowered(
            r#"{"type": "editFile", "path": "a", "edits": [{"oldContent": "x", "newContent": ""}]}"#
        ),
        Operation::Edit {
            path: path("a"),
            change: Change::First(vec![Replacement { old: "x".into(), new: String::new() }])
        }
    );
    assert_eq!(
        lowered(r#"{"type": "deleteFile", "path": "a"}"#),
        Operation::Delete { path: path("a") }
    );
    assert_eq!(
        lowered(
            r#"{"type": "shell", "command": "ls", "cwd": "src/", "timeout": 2000, "env": {"A": "b"}}"#
        ),
        Operation::Run(ShellCommand {
            cwd: Some(path("src")),
            timeout: Some(Duration::from_secs(2)),
            default_timeout: Some(DEFAULT_TIMEOUT),
            env: [("A".into(), "b".into())].into(),
            streams: Streams::Apart,
            ..ShellCommand::new("ls")
        })
    );
}

#[test]
fn the_root_has_many_names_as_a_folder() {
    for text in ["", ".", "./", "./.", ".\\"] {
        assert_eq!(lower_cwd(text), Ok(None), "{text}");
    }
    for text in ["src", "src/", "./src/.", "src\\", "src//"] {
        assert_eq!(lower_cwd(text), Ok(Some(RelPath::parse("src").unwrap())), "{text}");
    }
    for text in ["/", "\\", "C:\\", "a\nb", "//."] {
        assert!(lower_cwd(text).is_err(), "{text}");
    }
}

#[test]
fn what_names_no_file_is_rejected_with_its_id_and_path() {
    for path in ["C:\\\\x", "a\\u0007", "a/", ""] {
        let steps =
            asked_for(&format!(r#"{{"type": "deleteFile", "id": "d", "path": "{path}"}}"#), true);
        let StepContent::Invalid(invalid) = &steps[0].asks else { panic!("{path}") };
        assert!(invalid.rejected && invalid.kind == Kind::Delete, "{invalid:?}");
        assert!(!invalid.reason.contains("line"), "{invalid:?}");
        let asked = steps[0].asked.as_ref().unwrap();
        assert_eq!(asked.id.as_deref(), Some("d"));
        let sent: String = serde_json::from_str(&format!("\"{path}\"")).unwrap();
        assert_eq!(asked.about, sent);
    }
}

#[test]
fn a_malformed_operation_is_a_step_with_its_faults() {
    let steps = asked_for(
        "{\"type\": \"shell\", \"id\": \"s\", \"timeout\": 1},\n{\"type\": \"x\"}, 7",
        true,
    );
    let told: Vec<(Kind, &str)> = steps
        .iter()
        .map(|step| match &step.asks {
            StepContent::Invalid(Invalid { kind, rejected: false, reason, .. }) => {
                (*kind, &**reason)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told[0].0, Kind::Run);
    assert!(told[0].1.starts_with("$.operations[0].command: it is missing"));
    assert!(told[0].1.contains("\n$.operations[0].timeout: 1 is less"), "{told:?}");
    assert_eq!((told[1].0, told[2].0), (Kind::Reply, Kind::Reply));
    assert_eq!(steps[0].asked.as_ref().unwrap().id.as_deref(), Some("s"));
    assert!(steps.iter().all(|step| step.asked.is_some()));
}

#[test]
fn only_the_last_operation_ends_the_session() {
    const DONE: &str = r#"{"type": "message", "id": "done", "content": "x"}"#;
    let steps = asked_for(&format!("{DONE}, {DONE}"), true);
    let kinds: Vec<Kind> = steps.iter().map(Step::kind).collect();
    assert_eq!(kinds, [Kind::Message, Kind::Done]);
    assert!(steps[0].warnings[0].text.contains("did not end the session"));
    assert!(steps[1].warnings.is_empty());
    let steps = asked_for(&format!("{DONE}, 7"), true);
    assert_eq!(steps[0].kind(), Kind::Message);
    assert!(asked_for(DONE, false)[0].warnings.is_empty());
}

#[test]
fn each_operation_beyond_the_limit_is_a_step_with_its_id() {
    const DONE: &str = "{\"type\": \"message\", \"id\": \"done\", \"content\": \"x\"}";
    let steps = asked_for(&vec![DONE; 1005].join(",\n"), true);
    assert_eq!(steps.len(), 1005);
    assert!(steps.iter().all(|step| step.kind() == Kind::Message));
    for step in &steps[1000..] {
        let StepContent::Invalid(invalid) = &step.asks else { panic!("{step:?}") };
        assert_eq!(invalid.mistake, Mistake::TooMany);
        assert_eq!(step.asked.as_ref().unwrap().id.as_deref(), Some("done"));
    }
}

#[test]
fn names_that_are_placeholders_elsewhere_are_paths_here() {
    for path in ["path/to/x", "filename.ext", "~/x", "https:/x", "<path>", "your_file.py"] {
        let lowered = lowered(&format!(r#"{{"type": "deleteFile", "path": "{path}"}}"#));
        assert_eq!(lowered, Operation::Delete { path: RelPath::parse(path).unwrap() });
    }
    let [step] = <[Step; 1]>::try_from(asked_for(
        r#"{"type": "deleteFile", "path": "a【1†source】"}"#,
        false,
    ))
    .unwrap();
    assert!(matches!(
        step.asks,
        StepContent::Invalid(Invalid { mistake: Mistake::PathCitation, .. })
    ));
}

#[test]
fn a_command_without_a_timeout_has_the_default_of_the_specification() {
    let Operation::Run(run) = lowered(r#"{"type": "shell", "command": "ls"}"#) else { panic!() };
    assert_eq!((run.timeout, run.wanted_timeout()), (None, Some(Duration::from_secs(30))));
}

#[test]
fn a_fence_is_read_as_one_around_a_body_in_tags_is() {
    let create = |content: &str| {
        let content = serde_json::to_string(content).unwrap();
        let one = format!(r#"{{"type": "createFile", "path": "a.py", "content": {content}}}"#);
        let [step] = <[Step; 1]>::try_from(asked_for(&one, false)).unwrap();
        let in_tags = tags::parse(&format!(
            "[CREATE_FILE path=\"a.py\"]\n{}[/CREATE_FILE]\n",
            serde_json::from_str::<String>(&content).unwrap()
        ));
        let sorts = |step: &Step| step.warnings.iter().map(|told| told.kind).collect::<Vec<_>>();
        assert_eq!(sorts(&step), sorts(&in_tags.steps[0]), "{content}");
        match (&step.asks, &in_tags.steps[0].asks) {
            (StepContent::Invalid(one), StepContent::Invalid(other)) => {
                assert_eq!(one.mistake, other.mistake);
            }
            (
                StepContent::Operation(Operation::Create { content: one, .. }),
                StepContent::Operation(Operation::Create { content: other, .. }),
            ) => assert_eq!(one, other),
            other => panic!("{content}: {other:?}"),
        }
        step
    };
    assert_eq!(create("```python\nx\n```\n").warnings[0].kind, WarningKind::FenceTakenOff);
    assert_eq!(create("x\n```\n").warnings[0].kind, WarningKind::FenceKept);
    assert!(create("x\n").warnings.is_empty());
    let StepContent::Invalid(invalid) = create("```\nx\n```\ny\n```\n").asks else { panic!() };
    assert_eq!(invalid.mistake, Mistake::FenceUnclear);
    assert!(invalid.reason.starts_with("the content begins and ends with a fence"));

    let edit = |path: &str| {
        asked_for(
            &format!(
                r#"{{"type": "editFile", "path": "{path}", "edits": [{{"oldContent": "x", "newContent": "```\ny\n```"}}]}}"#
            ),
            false,
        )
    };
    let StepContent::Invalid(invalid) = &edit("a.py")[0].asks else { panic!() };
    assert_eq!(invalid.mistake, Mistake::FenceUnclear);
    assert!(matches!(edit("a.md")[0].asks, StepContent::Operation(_)));
}
