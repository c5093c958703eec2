//! Replies in which both dialects stand, in any disorder: read without a panic, in linear time, and
//! never so that content is carried out.

use std::time::{Duration, Instant};

use deaddrop::protocol::{
    Dialect, Operation, ParsedReply, Reading, StepContent, Streams, WarningKind, read, read_run,
};
use proptest::prelude::*;
use proptest::sample::select;

const MESSAGE: &str = r#"{"protocolVersion": "1.0", "operations": [{"type": "createFile", "path": "by-operations", "content": "x\n"}]}"#;

fn mixed() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        MESSAGE,
        "{\"protocolVersion\": \"1.0\", \"operations\": [",
        "{\"type\": \"message\", \"id\": \"done\", \"content\": \"x\"}",
        "{\"type\": \"readFile\", \"path\": \"C:\\\\x\"}",
        "]}",
        "\"",
        ",",
        "[RUN_COMMAND]\n",
        "ls\n",
        "[/RUN_COMMAND]\n",
        "[READ_FILE path=\"a\"]\n",
        "[READ_FILE]\n",
        "[CREATE_FILE path=\"a\"]\n",
        "[/CREATE_FILE]\n",
        "[DONE]x[/DONE]\n",
        "```json\n",
        "````\n",
        "\n",
        "\r\n",
        "é",
    ];
    prop::collection::vec(select(PIECES), 0..16).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn reading_any_text_gives_steps_of_one_dialect_kept_as_the_session_has_it(
        text in prop_oneof![3 => mixed(), 1 => any::<String>()]
    ) {
        let (tags, operations) = (read(&text, Dialect::Tags), read(&text, Dialect::Operations));
        prop_assert_eq!(tags.steps.len(), operations.steps.len());
        prop_assert!(!tags.steps.is_empty());
        prop_assert!(!tags.unclosed || ParsedReply::new(text.clone()).ends_early());
        prop_assert!(tags.steps.is_sorted_by(|a, b| a.line <= b.line), "{:?}", tags);
        let lines = text.matches(['\n', '\r']).count() + 1;
        prop_assert!(tags.steps.iter().all(|step| (1..=lines).contains(&step.line)), "{:?}", tags);
        for step in &tags.steps {
            prop_assert!(step.asked.is_none());
            match &step.asks {
                StepContent::Operation(Operation::Read { reading, .. }) => {
                    prop_assert_eq!(reading, &Reading::default());
                }
                StepContent::Operation(Operation::Run(run)) => {
                    prop_assert_eq!(run.streams, Streams::Together);
                }
                _ => {}
            }
        }
        for step in &operations.steps {
            match &step.asks {
                StepContent::Operation(Operation::Read { reading, .. }) => {
                    prop_assert!(matches!(reading, Reading::Now(_)));
                }
                StepContent::Operation(Operation::Run(run)) => {
                    prop_assert_eq!(run.streams, Streams::Apart);
                }
                _ => {}
            }
            if matches!(step.asks, StepContent::Operation(_)) {
                prop_assert!(step.asked.is_some());
            }
        }
        let run = read_run(&text);
        prop_assert!(run.steps.len() <= operations.steps.len());
    }

    #[test]
    fn what_stands_in_a_body_is_content(text in mixed()) {
        // But for the tags of its own name.
        let text = text.replace("[/CREATE_FILE]", "[/create]").replace("[CREATE_FILE", "[create");
        for end in ["\n[/CREATE_FILE]\n", ""] {
            let reply = format!("[CREATE_FILE path=\"a\"]\n{text}{end}");
            for dialect in [Dialect::Tags, Dialect::Operations] {
                let reply = read(&reply, dialect);
                prop_assert_eq!(reply.steps.len(), 1, "{:?}", reply);
                // What may be a fence of the chat's is told, and kept.
                let told = reply.steps[0].warnings.iter().map(|warning| warning.kind);
                let told: Vec<_> = told.filter(|kind| *kind != WarningKind::FenceKept).collect();
                let is_other = (dialect, reply.dialect) == (Dialect::Operations, Some(Dialect::Tags));
                let expected = if is_other { vec![WarningKind::OtherDialect] } else { vec![] };
                prop_assert_eq!(told, expected);
            }
        }
    }
}

#[test]
fn mixed_replies_take_linear_time() {
    let message = format!("{MESSAGE}\n");
    let broken = "{\"protocolVersion\": \"1.0\", \"operations\": [\n";
    let block = "[READ_FILE]\noperations\n[MESSAGE]\noperations\n[/MESSAGE]\n";
    for piece in [&*message, broken, block, "[DONE]\n{\"operations\": [", "operations {\n", "[[[{"]
    {
        for begin in ["", "[MESSAGE]\n[/MESSAGE]\n", "```json\n", broken] {
            let text = begin.to_owned() + &piece.repeat(1_000_000 / piece.len());
            let started = Instant::now();
            read(&text, Dialect::Operations);
            ParsedReply::new(text).ends_early();
            let took = started.elapsed();
            assert!(took < Duration::from_secs(20), "{took:?} for {begin}{piece}");
        }
    }
}
