//! Properties that hold for any text: reading never panics, what is read can be printed and read
//! again, and nothing hostile stays hidden.

use crate::fuzz_corpus::tags::print::print;
use deaddrop::protocol::{Operation, RelPath, StepContent, Warning, WarningKind, tags};
use deaddrop::text::{visible, visible_line};
use proptest::prelude::*;
use proptest::sample::select;

/// Texts put together of these pieces.
fn pieces(of: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(select(of), 0..most).prop_map(|pieces| pieces.concat())
}

/// What replies are made of, in any disorder.
fn reply() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "[CREATE_FILE path=\"a\"]\n",
        "[/CREATE_FILE]\n",
        "[CREATE_FILE path=\"",
        "\"]",
        "]",
        "/]",
        "[EDIT_FILE path=\"b\" start_line=\"1\" end_line=\"2\"]\n",
        "[/EDIT_FILE]",
        "[EDIT_FILE ",
        "start_line=\"+3\" ",
        "end_line=\"0\" ",
        "path=\"./ x\"",
        "[READ_FILE path=\"./~/x\"]\n",
        "[READ_FILE path=\"./'a'\"]\n",
        "[READ_FILE path=\"path//to/x\"]\n",
        "path=\"..\\y/../é\" ",
        "[DELETE_FILE path=\"c d\"]\n",
        "[READ_FILE path=\"a/./b\"]\r\n",
        "[READ_FILE path=\"./c:x\"]\n",
        "[READ_FILE path=\"a\" start_line=\"2\" numbered=\"true\"]\n",
        "[MOVE_FILE path=\"a\" to=\"b/\"]\n",
        "[LIST_FILES path=\"./\"]\n",
        "[SEARCH pattern='a\"b\\(' path=\"x\"]\n",
        "[REPLY session=\"a1b2c3d4\" sequence=\"2\"]\n",
        "[EDIT_FILE path=\"b\"]\n<<<<<<< SEARCH\nx\n",
        "=======\n",
        ">>>>>>> REPLACE\n",
        "[CREATE_FILE path=\"a\" end=\"T1\"]\n",
        "[/CREATE_FILE end=\"T1\"]\n",
        "[DONE if=\"ok\"]\n",
        "[RUN_COMMAND]\n",
        "[/RUN_COMMAND]\n",
        "[RUN_COMMAND]ls[/RUN_COMMAND]\n",
        "[MESSAGE]",
        "[MESSAGE][/MESSAGE]",
        "[/MESSAGE]\n",
        "[DONE]\r\n",
        "[/DONE]",
        "\n",
        "\n",
        "\r\n",
        "\r",
        " ",
        "\t",
        "x",
        "[",
        "\"",
        "=",
        "\u{2003}",
        "\u{85}",
        "é",
        "\0",
        "````\n",
    ];
    pieces(PIECES, 32)
}

fn operations(text: &str) -> Vec<Operation> {
    let steps = tags::parse(text).steps.into_iter();
    steps
        .filter_map(|step| match step.asks {
            StepContent::Operation(operation) => Some(operation),
            StepContent::Invalid(_) => None,
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn reading_any_text_gives_steps_in_order(text in any::<String>()) {
        let reply = tags::parse(&text);
        prop_assert!(!reply.steps.is_empty());
    }

    #[test]
    fn reading_pieces_of_tags_gives_steps_in_order(text in reply()) {
        let reply = tags::parse(&text);
        prop_assert!(reply.steps.is_sorted_by(|a, b| a.line < b.line), "{:?}", reply);
        let last = reply.steps.last().unwrap().line;
        prop_assert!(last <= text.matches(['\n', '\r']).count() + 1);
    }

    #[test]
    fn what_is_read_and_printed_is_read_again(text in reply()) {
        let first = operations(&text);
        let printed = print(&first);
        let again = tags::parse(&printed);
        // What is odd in a body is so still.
        let is_of_tags = |warning: &Warning| {
            !matches!(
                warning.kind,
                WarningKind::FenceKept
                    | WarningKind::MarkersKept
                    | WarningKind::NumbersKept
                    | WarningKind::SignsKept
                    | WarningKind::StrangeCharacters
                    | WarningKind::CitationMark
                    | WarningKind::PageFurniture
                    | WarningKind::EntitiesOnly
            )
        };
        let mut warnings = again.steps.iter().flat_map(|step| &step.warnings);
        prop_assert!(!warnings.any(is_of_tags) || first.is_empty());
        prop_assert_eq!(operations(&printed), first, "{}", printed);
    }

    #[test]
    fn what_is_read_can_be_stored_and_loaded(text in reply()) {
        let steps = tags::parse(&text).steps;
        let json = serde_json::to_string(&steps).unwrap();
        let loaded: Vec<deaddrop::protocol::Step> = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(loaded, steps);
    }

    #[test]
    fn a_path_is_safe_and_read_again_the_same(
        text in pieces(&["a", "..", ".", "/", "/", "\\", "c:", " ", "é", "\n", "\u{202e}"], 9)
    ) {
        if let Ok(path) = RelPath::parse(&text) {
            prop_assert!(path.components().all(|part| !matches!(part, "" | "." | "..")));
            let forbidden = ['\\', '\n', '\u{202e}'];
            prop_assert!(!path.as_str().contains(forbidden));
            prop_assert_eq!(RelPath::parse(path.as_str()), Ok(path.clone()));
        }
    }

    #[test]
    fn visible_text_holds_no_controls(text in any::<String>(), n in any::<u32>()) {
        let text = text + &char::from_u32(n % 0x300).unwrap().to_string() + "\r\x1b\u{9b}\u{7f}\r\n";
        let shown = visible(&text);
        prop_assert!(!shown.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')), "{:?}", shown);
        prop_assert_eq!(visible(&shown), shown.as_ref());
        let line = visible_line(&text);
        prop_assert!(!line.chars().any(char::is_control), "{:?}", line);
    }
}
