//! The dialect of a reply, and the form of its results.

use super::*;
use crate::protocol::{FailureKind, Invalid, Outcome};

const LS: &str =
    r#"{"protocolVersion": "1.0", "operations": [{"type": "shell", "command": "ls"}]}"#;
const RUN: &str = "[RUN_COMMAND]\nmake\n[/RUN_COMMAND]\n";
const BOTH: [Dialect; 2] = [Dialect::Tags, Dialect::Operations];

/// The kinds of the requested operations. `!` marks a step that is invalid.
fn kinds(reply: &Reply) -> Vec<String> {
    let shown = |step: &Step| match &step.asks {
        StepContent::Operation(operation) => format!("{:?}", operation.kind()),
        StepContent::Invalid(invalid) => format!("!{:?}", invalid.kind),
    };
    reply.steps.iter().map(shown).collect()
}

fn reason(step: &Step) -> &str {
    match &step.asks {
        StepContent::Invalid(Invalid { reason, .. }) => reason,
        StepContent::Operation(operation) => panic!("{operation:?}"),
    }
}

#[test]
fn the_session_decides_how_results_are_kept() {
    let text = r#"{"protocolVersion": "1.0", "operations": [
        {"type": "shell", "id": "s", "command": "ls"},
        {"type": "readFile", "path": "./a", "encoding": "base64"}
    ]}"#;
    let asked = |reply: &Reply, n: usize| reply.steps[n].asked.clone().unwrap();
    let reply = read(text, Dialect::Operations);
    assert_eq!(asked(&reply, 0), SentValues { id: Some("s".into()), about: "ls".into() });
    assert_eq!(asked(&reply, 1), SentValues { id: None, about: "./a".into() });
    let StepContent::Operation(Operation::Read { reading, .. }) = &reply.steps[1].asks else {
        panic!()
    };
    assert_eq!(*reading, Reading::Now(Encoding::Base64));

    let reply = read(text, Dialect::Tags);
    assert!(reply.steps.iter().all(|step| step.asked.is_none()));
    let StepContent::Operation(Operation::Run(run)) = &reply.steps[0].asks else { panic!() };
    assert_eq!(run.streams, Streams::Together);
    let StepContent::Operation(Operation::Read { reading, .. }) = &reply.steps[1].asks else {
        panic!()
    };
    assert_eq!(*reading, Reading::default());
    assert!(reply.steps[1].warnings[0].text.contains("base64 was ignored"));

    let tags = "[READ_FILE path=\"a\"]\n[RUN_COMMAND]\nls\n[/RUN_COMMAND]\n[DONE]\n[/DONE]\n[READ_FILE path=\"../x\"]\n[READ_FILE]\n";
    let reply = read(tags, Dialect::Operations);
    let about: Vec<String> = (0..5).map(|n| asked(&reply, n).about).collect();
    assert_eq!(about, ["a", "ls", "", "../x", ""]);
    let StepContent::Operation(Operation::Read { reading, .. }) = &reply.steps[0].asks else {
        panic!()
    };
    assert_eq!(*reading, Reading::Now(Encoding::Utf8));
    assert_eq!(read(tags, Dialect::Tags), tags::parse(tags));
}

#[test]
fn tags_that_are_in_order_come_first_and_the_message_is_told_of() {
    for dialect in BOTH {
        let reply = read(&format!("{LS}\n{RUN}{RUN}"), dialect);
        assert_eq!(kinds(&reply), ["Run", "Run"]);
        assert!(reply.steps[0].warnings.is_empty());
        let told = "the operations message on line 1 was not carried out: a reply contains either tags or an operations message";
        assert_eq!(reply.steps[1].warnings[0], Warning::new(WarningKind::OtherDialect, told));
        let reply =
            read(&format!("{RUN}{LS}\n{{\"protocolVersion\": 1, \"operations\": "), dialect);
        assert_eq!(kinds(&reply), ["Run"]);
        assert!(reply.steps[0].warnings[0].text.contains("on line 4"), "{reply:?}");
    }
}

#[test]
fn a_message_counts_beside_tags_that_are_not_in_order() {
    for dialect in BOTH {
        let reply = read(&format!("[READ_FILE]\n{LS}"), dialect);
        assert_eq!(kinds(&reply), ["Run"]);
        assert!(
            reply.steps[0].warnings[0].text.starts_with("the tags from line 1 on were ignored")
        );
    }
}

#[test]
fn content_is_never_carried_out() {
    for dialect in BOTH {
        // A message in the body of a file, even if the body never ends.
        let block = format!("[CREATE_FILE path=\"a\"]\n{LS}\n[/CREATE_FILE]\n");
        let reply = read(&block, dialect);
        assert_eq!(kinds(&reply), ["Create"]);
        let is_other = dialect != Dialect::Tags;
        assert_eq!(reply.steps[0].warnings.len(), usize::from(is_other), "the session's form");
        let reply = read(block.trim_end_matches("[/CREATE_FILE]\n"), dialect);
        assert!(reply.unclosed);
        assert_eq!(kinds(&reply), ["!Create"]);
        // Tags in the content of a file whose line breaks were not escaped.
        let broken =
            r#"{"protocolVersion": "1.0", "operations": [{"type": "createFile", "content": ""#;
        let reply = read(&format!("{broken}x\n{RUN}\"}}]}}"), dialect);
        assert_eq!(kinds(&reply), ["!Reply"]);
        assert!(reason(&reply.steps[0]).contains("line break"), "{reply:?}");
        // Tags in a place where JSON should be.
        let reply = read(&format!("{broken}\"}},\n{RUN}]}}"), dialect);
        assert_eq!(kinds(&reply), ["!Reply"]);
    }
}

#[test]
fn what_is_refused_as_a_whole_is_one_step_and_may_be_unclosed() {
    for dialect in BOTH {
        let reply = read(&LS.replace("1.0", "2.0"), dialect);
        assert_eq!(kinds(&reply), ["!Reply"]);
        let told = reason(&reply.steps[0]);
        assert!(told.starts_with("Nothing was carried out. $.protocolVersion: "), "{told}");
        assert!(!reply.unclosed && reply.steps[0].asked.is_none());
        let reply = read(&format!("So:\n{}", LS.replace("[{", "[\n{,")), dialect);
        let told = reason(&reply.steps[0]);
        assert!(
            told.starts_with("Nothing was carried out. Your reply is not valid JSON: "),
            "{told}"
        );
        assert_eq!((told.matches("ine ").count(), reply.steps[0].line), (1, 2), "{told}");
        assert!(read(&LS[..LS.len() - 1], dialect).unclosed);
        let twice = read(&format!("{LS}\n{LS}"), dialect);
        assert!(reason(&twice.steps[0]).contains("on lines 1 and 2"));
    }
}

#[test]
fn a_reply_of_nothing_is_shown_the_form_of_its_session() {
    for text in ["", "Done!", "{}", "[{\"type\": \"shell\", \"command\": \"ls\"}]"] {
        let reply = read(text, Dialect::Operations);
        let told = reason(&reply.steps[0]);
        assert!(told.contains("{\"protocolVersion\": \"1.0\", ") && !told.contains("[DONE]"));
        assert_eq!(read(text, Dialect::Tags), tags::parse(text));
    }
    // The form in the error message is valid.
    let (_, form) = FORM.split_once("object: ").unwrap();
    let (_, done) = END_FORM.split_once("session: ").unwrap();
    assert_eq!(kinds(&read(form, Dialect::Operations)), ["Run"]);
    assert_eq!(kinds(&read(done, Dialect::Operations)), ["Done"]);
}

#[test]
fn a_run_knows_no_end_of_a_session() {
    let done = r#"{"protocolVersion": "1.0", "operations": [{"type": "message", "id": "done", "content": "x"}]}"#;
    assert_eq!(kinds(&read_run(done)), ["Message"]);
    assert_eq!(kinds(&read(done, Dialect::Tags)), ["Done"]);
    let empty = r#"{"protocolVersion": "1.0", "operations": []}"#;
    assert!(read_run(empty).steps.is_empty());
    assert!(!reason(&read_run("Hello").steps[0]).contains("session"));
    let step = &read(empty, Dialect::Operations).steps[0];
    assert!(reason(step).contains("has no operations") && step.asked.is_some());
}

#[test]
fn faults_stand_on_one_line_among_tags() {
    let text = LS.replace("\"command\"", "\"timeout\": 1, \"cmd\"");
    let told = |dialect| reason(&read(&text, dialect).steps[0]).to_owned();
    assert_eq!(told(Dialect::Operations).lines().count(), 2);
    assert_eq!(told(Dialect::Tags), told(Dialect::Operations).replace('\n', "; "));
    let step = &read(&text, Dialect::Tags).steps[0];
    let StepContent::Invalid(invalid) = &step.asks else { panic!() };
    let outcome = Outcome::invalid(step, invalid);
    let crate::protocol::Detail::Failed(failure) = outcome.detail else { panic!() };
    assert_eq!(failure.kind, FailureKind::Invalid);
}

#[test]
fn whatever_is_asked_of_a_letter_it_is_parsed_once() {
    for text in [
        "[REPLY session=\"a1b2c3d4\" sequence=\"3\" key=\"k\"]\n[RUN_COMMAND]\nls\n[/RUN_COMMAND]\n",
        "[REPLY session=\"a1b2c3d4\" sequence=\"3\"]\n[RUN_COMMAND]\nls\n",
        "{\"protocolVersion\": \"1.0\", \"operations\": [{\"type\": \"shell\", \"command\": \"ls\"}]}",
        "",
    ] {
        for dialect in [Dialect::Tags, Dialect::Operations] {
            let (before, mut letter) = (parsed(), ParsedReply::new(text.to_owned()));
            let early = letter.ends_early();
            let answers = letter.answers().cloned();
            let reply = letter.read_in(dialect, None);
            assert_eq!(parsed() - before, 1, "{text}");
            assert_eq!(early, reply.unclosed, "{text}");
            assert_eq!(reply, read(text, dialect));
            assert_eq!(answers, reply.answers);
            assert_eq!(letter.into_text(), text);
        }
    }
}

#[test]
fn an_absolute_path_in_the_workspace_is_the_relative_one() {
    let rejected = |path: &str| (path.to_owned(), None);
    for (given, (expected, warnings)) in [
        ("/home/u/ws/src/a.py", ("src/a.py".to_owned(), Some(1))),
        ("/home/./u//ws/a.py", rejected("outside")),
        ("`/home/u/ws//./b.py`", ("b.py".to_owned(), Some(1))),
        ("/home/u/ws/a/../b.py", rejected("outside")),
        ("/home/u/ws2/a.py", rejected("outside")),
        ("/home/u/ws/../ws2/a.py", rejected("outside")),
        ("/home/u/a.py", rejected("outside")),
        ("/home/u/ws", rejected("names no file")),
    ] {
        let text = format!("[READ_FILE path=\"{given}\"]\n[READ_FILE path=\"a\"]\n");
        let workspace = Some(Path::new("/home/u/ws"));
        let step = ParsedReply::new(text).read_in(Dialect::Tags, workspace).steps.remove(0);
        match (&step.asks, warnings) {
            (StepContent::Operation(operation), Some(count)) => {
                assert_eq!(operation.path().unwrap().as_str(), expected, "{given}");
                assert_eq!(step.warnings.len(), count, "{given}");
            }
            (StepContent::Invalid(invalid), None) => {
                assert!(invalid.rejected && invalid.reason.contains(&expected), "{invalid:?}");
            }
            _ => panic!("{step:?}"),
        }
    }
    let list = "[LIST_FILES path=\"/home/u/ws/\"]\n".to_owned();
    let mut list = ParsedReply::new(list);
    let steps = list.read_in(Dialect::Tags, Some(Path::new("/home/u/ws"))).steps;
    assert_eq!(steps[0].asks, StepContent::Operation(Operation::List { path: None }));
}

#[test]
fn what_names_no_session_is_not_parsed_for_its_address() {
    let before = parsed();
    assert_eq!(ParsedReply::new("[DONE]\nx\n[/DONE]\n".to_owned()).answers(), None);
    assert_eq!(parsed(), before);
}
