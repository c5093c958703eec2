//! Reads files of the version before a `[DONE]` without effect had its own outcome type.

use std::fs;

use super::journal;
use super::log;
use super::record::History;
use super::store::SessionStore;
use super::{run_id, run_stem};
use crate::protocol::{Detail, Effect, Ending, Kind, RelPath};

const ID: &str = "308d0b68";
const SESSION: &str = include_str!("../../tests/it/daemon/older_versions/session.json");
const WAITING: &str = include_str!("../../tests/it/daemon/older_versions/waiting.json");
const LOG: &str = include_str!("../../tests/it/daemon/older_versions/session.log");
const JOURNAL: &[u8] = include_bytes!("../../tests/it/daemon/older_versions/journal");

fn stored(session: &str) -> (tempfile::TempDir, SessionStore) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(format!("{ID}.json")), session).unwrap();
    fs::write(folder.path().join(format!("{ID}.log")), LOG).unwrap();
    let store = SessionStore::new(folder.path());
    (folder, store)
}

#[test]
fn a_stored_session_is_read_and_written_with_the_same_values() {
    let (folder, store) = stored(SESSION);
    let session = store.load(ID).unwrap();
    assert_eq!((session.sequence, session.task.as_str()), (9, "Read old files"));
    assert_eq!(session.created_at.to_string(), "2026-11-24T18:45:04Z");
    let kinds: Vec<(Kind, bool)> =
        session.last_results.iter().map(|one| (one.kind, one.success())).collect();
    let expected =
        [(Kind::Edit, true), (Kind::Read, true), (Kind::Run, false), (Kind::Done, false)];
    assert_eq!(kinds, expected);
    let Detail::Ineffective { summary, reason } = &session.last_results[3].detail else {
        panic!("{:?}", session.last_results[3]);
    };
    assert_eq!(summary.trim(), "Never.");
    assert!(reason.starts_with("not counted: 1 operation") && reason.contains("line 5"));
    assert_eq!(session.last_results[3].warnings, []);
    assert!(session.seen.get(&RelPath::parse("a.txt").unwrap(), (1, 3)).is_some());

    store.save(&session).unwrap();
    let written = fs::read_to_string(folder.path().join(format!("{ID}.json"))).unwrap();
    assert_eq!(store.load(ID).unwrap(), session);
    let mut before: serde_json::Value = serde_json::from_str(SESSION).unwrap();
    let mut after: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(after["lastResults"][3]["success"], false);
    assert_eq!(after["lastResults"][3]["summary"], reason.as_str());
    for value in [&mut before, &mut after] {
        value["lastResults"][3] = serde_json::Value::Null;
    }
    // The lines seen of a newer version are stored differently now.
    for seen in before["seen"].as_object_mut().unwrap().values_mut() {
        seen.as_object_mut().unwrap().remove("newer");
    }
    assert_kept(&before, &after, "session");
}

/// Checks that `after` contains all of `before`. Only fields with default values may be added.
#[track_caller]
fn assert_kept(before: &serde_json::Value, after: &serde_json::Value, at: &str) {
    use serde_json::Value;
    let is_default = |value: &Value| {
        value.is_null()
            || *value == false
            || *value == "tags"
            || *value == 0
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(serde_json::Map::is_empty)
            || value.get("count") == Some(&Value::from(0))
    };
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, value) in before {
                assert!(after.contains_key(name), "{at}.{name} is gone");
                assert_kept(value, &after[name], &format!("{at}.{name}"));
            }
            for (name, value) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
                assert!(is_default(value), "{at}.{name} is new: {value}");
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            assert_eq!(before.len(), after.len(), "{at}");
            for (n, (before, after)) in before.iter().zip(after).enumerate() {
                assert_kept(before, after, &format!("{at}[{n}]"));
            }
        }
        _ => assert_eq!(before, after, "{at}"),
    }
}

#[test]
fn a_stored_session_that_waits_is_read() {
    let (_folder, store) = stored(WAITING);
    let waiting = store.pending().unwrap().remove(0);
    let question = waiting.question().unwrap();
    assert_eq!((question.id.as_str(), question.step), ("op-43622497", Some(2)));
    let pending = waiting.pending.as_ref().unwrap();
    assert_eq!((pending.steps.len(), pending.outcomes.len()), (4, 2));
    assert!(question.ask.opens.repository && waiting.asked == [question.id.clone()]);
}

#[test]
fn a_session_without_its_key_is_damaged() {
    let mut value: serde_json::Value = serde_json::from_str(SESSION).unwrap();
    value.as_object_mut().unwrap().remove("secret");
    let (_folder, store) = stored(&value.to_string());
    assert!(store.load(ID).unwrap_err().to_string().contains("is damaged"));
}

#[test]
fn a_stored_log_is_read() {
    let (folder, _store) = stored(SESSION);
    let entries = log::read(folder.path(), ID).unwrap();
    let failed: Vec<usize> = entries.iter().map(|entry| entry.failed).collect();
    assert_eq!(failed, [2, 1, 0, 2, 1, 2, 1, 1]);
    assert_eq!(log::undone(&entries).into_iter().collect::<Vec<_>>(), [2]);
    assert!(entries[6].recovered && entries[6].interrupted == 1);
    // A missing turn gets its line back, in the right place. A line without the required fields is not a turn.
    let missing = entries[2].clone();
    let rest: Vec<&str> = LOG.lines().filter(|line| !line.contains("\"sequence\":3,")).collect();
    fs::write(
        folder.path().join(format!("{ID}.log")),
        rest.join("\n") + "\n{\"sequence\":9}\n{\"torn",
    )
    .unwrap();
    assert_eq!(log::restore(folder.path(), ID, vec![missing]).unwrap(), 1);
    assert_eq!(log::read(folder.path(), ID).unwrap(), entries);
    let written = fs::read_to_string(folder.path().join(format!("{ID}.log"))).unwrap();
    let values = |text: &str| -> serde_json::Value {
        text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()).collect()
    };
    assert_kept(&values(LOG), &values(&written), "log");
}

#[test]
fn only_a_name_with_an_id_is_that_of_a_run() {
    assert_eq!(run_id("run_a1b2c3d4"), Some("a1b2c3d4"));
    assert_eq!(run_id(&run_stem(ID)), Some(ID));
    for name in [
        "",
        "run_",
        "a1b2c3d4",
        "RUN_a1b2c3d4",
        "run_../x",
        "run_a/b",
        "run_a b",
        "run_é",
        "run_a\0",
    ] {
        assert_eq!(run_id(name), None, "{name:?}");
    }
}

#[test]
fn a_stored_journal_is_read() {
    let contents = journal::read(JOURNAL).unwrap();
    assert!(!contents.torn && contents.end == JOURNAL.len());
    let payloads = contents.payloads;
    let history = History::read(&payloads).unwrap();
    let [entry] = history.logged[ID].as_slice() else { panic!("{:?}", history.logged) };
    assert_eq!((entry.sequence, entry.commands, entry.failed), (8, 4, 2));
    let session = &history.states[ID];
    assert!(matches!(session.last_results[3].detail, Detail::Ineffective { .. }));
    assert_eq!(*session, stored(SESSION).1.load(ID).unwrap());

    let turn = history.unfinished.unwrap();
    assert_eq!((turn.begin.session.sequence, turn.begin.steps().len()), (9, 2));
    assert!(turn.commit.is_none() && turn.guard.is_some() && turn.noted.len() == 2);
    assert!(turn.intents[&1] == Effect::Command);
    assert!(matches!(turn.results[&0].detail, Detail::Created { replaced: true, .. }));

    // The result of an unfinished turn is also decoded.
    let result = payloads.iter().position(|text| text.contains("\"kind\":\"done\"")).unwrap();
    let turn = History::read(&payloads[..=result]).unwrap().unfinished.unwrap();
    assert!(matches!(turn.results[&3].detail, Detail::Ineffective { .. }));
    let Detail::Ran(execution) = &turn.results[&2].detail else { panic!("{:?}", turn.results) };
    assert_eq!(execution.ending, Ending::Exited(1));
}
