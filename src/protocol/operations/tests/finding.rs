//! Finds the message in a reply, and ignores everything that is not a message.

use super::super::{Received, RefusedMessage, ends_early, find};

const MESSAGE: &str = "{\"protocolVersion\": \"1.0\", \"operations\": [\n  {\"type\": \"shell\", \"command\": \"ls\"}\n]}";

fn found(reply: &str) -> Received {
    find(reply).unwrap_or_else(|| panic!("nothing in {reply}")).unwrap()
}

fn refused(reply: &str) -> RefusedMessage {
    find(reply).unwrap_or_else(|| panic!("nothing in {reply}")).unwrap_err()
}

#[test]
fn a_message_is_found_bare_or_fenced_with_anything_around_it() {
    for (reply, line) in [
        (MESSAGE.to_owned(), 1),
        (format!("\u{feff}{MESSAGE}"), 1),
        (format!("\n\n  {MESSAGE}\n\n"), 3),
        (format!("```json\n{MESSAGE}\n```"), 2),
        (format!("```\n{MESSAGE}\n```"), 2),
        (format!("~~~ JSON\n{MESSAGE}\n~~~"), 2),
        (format!("````text\n{MESSAGE}\n````\n"), 2),
        (format!("Sure!\n\n```json\n{MESSAGE}\n```\n\nThat lists {{them}}.\n"), 4),
        (format!("Sure!\n\n{MESSAGE}\n\nThat lists them."), 3),
        // The form in which some chats copy a block.
        (format!("json\nCopy code\n{MESSAGE}\nDone."), 3),
        (format!("\u{feff}```json\n{MESSAGE}\n```"), 2),
        // Another fence comes first.
        (format!("```bash\nls {{a,b}}\n```\n```json\n{MESSAGE}\n```"), 5),
        (format!("```python\n{{\"operations\": 1}}\n```\nand\n```json\n{MESSAGE}\n```"), 6),
        (format!("```json\n{{\"name\": \"x\"}}\n```\n```json\n{MESSAGE}\n```"), 5),
        (format!("```json\n[1, 2]\n```\n{MESSAGE}"), 4),
        (format!("{{ not JSON\n```json\n{MESSAGE}\n```"), 3),
        (format!("{{\n{MESSAGE}"), 2),
        (format!("{{\"a\":\n```json\n{MESSAGE}\n```"), 3),
        // A fence is closed by a fence of the same kind that is at least as long and has no text after it.
        (format!("````sh\n```\n{{}}\n````\n{MESSAGE}"), 5),
        (format!("```sh\n~~~\n```json\n```\n{MESSAGE}"), 5),
        // Unusual fences: never closed, closed on the last line, or all on one line.
        (format!("```json\n{MESSAGE}"), 2),
        (format!("```json\n{MESSAGE}```"), 2),
        (format!("```json {MESSAGE}\n```"), 1),
        (format!("```{MESSAGE}\n```"), 1),
        (format!("  ``{MESSAGE}``"), 1),
        (format!("```ls```\n{MESSAGE}"), 2),
        (format!("```{}```", MESSAGE.replace('\n', "")), 1),
        // A fence in a list.
        (format!("1. So:\n\n   ```json\n   {}\n   ```", MESSAGE.replace('\n', "\n   ")), 4),
    ] {
        let crlf = found(&reply.replace('\n', "\r\n"));
        let received = found(&reply);
        assert_eq!((received.line, received.entries.len()), (line, 1), "{reply}");
        assert!(received.entries[0].operation.is_ok(), "{reply}");
        assert_eq!(received, crlf, "{reply}");
    }
}

#[test]
fn fences_and_braces_within_texts_change_nothing() {
    let content =
        "```json\\n{\\\"protocolVersion\\\": \\\"1.0\\\", \\\"operations\\\": []}\\n```\\n}}]]";
    let message = format!(
        "{{\"note\": {{\"a\": {{\"operations\": []}}}}, \"protocolVersion\": \"1.0\",\n\"operations\": [{{\"type\": \"message\", \"content\": \"{content}\"}}]}}"
    );
    for reply in [message.clone(), format!("So:\n```json\n{message}\n```\nThere.")] {
        let received = found(&reply);
        assert_eq!(received.entries.len(), 1);
        assert!(received.entries[0].operation.is_ok());
    }
}

#[test]
fn what_holds_no_message_is_none() {
    for reply in [
        "",
        "\n",
        "Just prose.",
        "{",
        "}",
        "{}",
        "[]",
        "null",
        "``` ",
        "Say {\"protocolVersion\": \"1.0\", \"operations\": []} in the middle of a line.",
        "{\"protocolVersion\": \"1.0\"}",
        "{\"protocolVersion\": \"1.0\", \"runId\": \"run_a\", \"status\": \"completed\", \"events\": []}",
        "{\"operations\": []}",
        "{\"operations\": 5}",
        "{\"operations\": {\"type\": \"shell\"}}",
        "{\"operations\": [{\"type\": \"add\"}, 5, {\"type\": 1}]}",
        "{\"result\": {\"protocolVersion\": \"1.0\", \"operations\": []}}",
        "{\"result\":\n{\"protocolVersion\": \"1.0\", \"operations\": []}\n}",
        "[{\"type\": \"shell\", \"command\": \"ls\"}]",
        "{\"type\": \"shell\", \"command\": \"ls\"}",
        "{\"operations\": [",
        "[RUN_COMMAND]\nls\n[/RUN_COMMAND]",
        // Messages that are shown as part of a document or a program.
        "````markdown\n```json\n{\"protocolVersion\": \"1.0\", \"operations\": []}\n```\n````",
        "````sh\n```\n{\"protocolVersion\": \"1.0\", \"operations\": []}\n````",
        "```ts\n{\"protocolVersion\": \"1.0\", \"operations\": []}\n```",
        "> {\"protocolVersion\": \"1.0\", \"operations\": []}",
    ] {
        assert_eq!(find(reply), None, "{reply}");
    }
}

#[test]
fn a_message_of_another_version_or_of_none_is_found_and_refused() {
    let other = refused(&format!("So:\n{}", MESSAGE.replace("1.0", "2.0")));
    assert_eq!((other.line, other.unclosed), (2, false));
    assert!(other.faults.to_string().starts_with("$.protocolVersion: \"2.0\" is not \"1.0\""));
    let none = refused("{\"operations\": [{\"type\": \"add\"}, {\"type\": \"shell\"}]}");
    assert!(none.faults.to_string().starts_with("$.protocolVersion: it is missing"));
    // Without a version, operations of unknown types belong to something else.
    let strange = "{\"operations\": [{\"type\": \"bash\", \"command\": \"ls\"}]}";
    assert_eq!(find(strange), None);
    assert_eq!(found(&format!("{strange}\n{MESSAGE}")).line, 2);
    let broken = refused("{\"operations\": [\n{\"type\": \"shell\", \"command\": \"ls\"},\n]}");
    let told: Vec<String> = broken.faults.iter().map(ToString::to_string).collect();
    assert!(told[0].contains("a comma before a closing bracket (line 3"), "{told:?}");
    let no_list = refused("{\"protocolVersion\": \"1.0\", \"operations\": \"ls\"}");
    assert!(no_list.faults.to_string().starts_with("$.operations: \"ls\" is not of type array"));
}

#[test]
fn what_is_meant_as_a_message_and_is_no_json_is_refused_with_its_place() {
    for (reply, line, told) in [
        (MESSAGE.replace("ls", "ls\n-l"), 1, "line break"),
        (MESSAGE.replace("}\n]", "},\n]"), 1, "a comma before a closing bracket (line 3"),
        ("{protocolVersion: \"1.0\", operations: []}".to_owned(), 1, "no double quotes"),
        (
            "{\n  // all\n  \"protocolVersion\": \"1.0\", \"operations\": []}".to_owned(),
            1,
            "line 2",
        ),
    ] {
        let refused = refused(&reply);
        assert_eq!((refused.line, refused.unclosed), (line, false), "{reply}");
        let text = refused.faults.to_string();
        assert!(text.starts_with("$: it is not valid JSON: ") && text.contains(told), "{text}");
    }
    let two = MESSAGE.replace("}\n]", "},\n  {\"type\": \"message\", \"content\": \"Hello }]");
    for (cut, told) in [
        (&two[..], "the message ends inside operation 2 (line 3): it was cut off. Send a long"),
        (&two[..two.len() - 3], "the message ends inside operation 2 (line 3): it was cut off"),
        (&MESSAGE[..60], "the message ends inside operation 1 (line 2): it was cut off"),
        (&MESSAGE[..MESSAGE.len() - 3], "the message ends after operation 1, without the brackets"),
        (&MESSAGE[..=MESSAGE.find('[').unwrap()], "the message ends before its first operation"),
    ] {
        for (end, fence) in [("", ""), ("\n", ""), ("\n```\n", "```json\n"), ("\nand } so\n\n", "")]
        {
            // Text after a bracket is not JSON, whatever was intended.
            if end.contains("and") && !told.contains("inside") {
                continue;
            }
            let reply = format!("{fence}{}{end}", cut.strip_suffix("]}").unwrap_or(cut));
            let refused = refused(&reply);
            assert!(refused.unclosed && ends_early(&reply), "{reply}");
            let text = refused.faults.to_string();
            let line = if fence.is_empty() {
                told.to_owned()
            } else {
                told.replace("line 3", "line 4").replace("line 2", "line 3")
            };
            assert!(text.starts_with(&format!("$: {line}")), "{reply}: {text}");
        }
    }
    // A valid message takes precedence over an example in which something is omitted.
    let both = format!("{{\"protocolVersion\": \"1.0\", \"operations\": [...]}}\n{MESSAGE}");
    assert_eq!(found(&both).line, 2);
}

#[test]
fn of_several_messages_none_is_carried_out() {
    for between in ["\n", "\n```\nthen\n```json\n", "\n```\n\n```\n{\"a\": 1}\n"] {
        let reply = format!("```json\n{MESSAGE}{between}{MESSAGE}\n{MESSAGE}\n```");
        let refused = refused(&reply);
        let second = 4 + between.matches('\n').count();
        let told =
            format!("$: the reply contains several operations messages, on lines 2 and {second}.");
        assert_eq!(refused.line, 2);
        assert!(refused.faults.to_string().starts_with(&told), "{}", refused.faults);
    }
}
