//! What holds of any text that is read as a message of operations or of events, or as a reply that
//! holds one.

use deaddrop::protocol::operations::{
    MESSAGE_OPERATIONS_LIMIT, OPERATIONS_LIMIT, find, parse_events_message,
    parse_operations_message, print, receive, steps,
};
use deaddrop::protocol::{Step, read_run};

/// Panics where something of it does not hold.
pub(crate) fn hold(text: &str) {
    is_found(text);
    is_received(text);
    can_be_written(text);
    events_can_be_printed(text);
    read_run(text);
}

/// What is found stands on lines of the text, in order, and each part of it is a step.
fn is_found(text: &str) {
    let lines = text.matches('\n').count() + 1;
    let Some(found) = find(text) else { return };
    match &found {
        Ok(received) => {
            assert!((1..=lines).contains(&received.line));
            let places = received.entries.iter().map(|entry| entry.line);
            assert!(places.clone().is_sorted());
            assert!(places.clone().all(|line| (received.line..=lines).contains(&line)));
            assert!(received.entries.len() <= MESSAGE_OPERATIONS_LIMIT);
        }
        Err(refused) => assert!((1..=lines).contains(&refused.line)),
    }
    let count = found.as_ref().map(|received| received.entries.len());
    for ends in [true, false] {
        let steps = steps(found.clone(), ends);
        let least = usize::from(ends);
        assert_eq!(steps.len(), count.as_ref().map_or(1, |count| *count.max(&least)));
        let json = serde_json::to_string(&steps).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Step>>(&json).unwrap(), steps);
    }
}

/// The two readers of a message agree: one that is valid is received whole, and the other way round.
fn is_received(text: &str) {
    let valid = parse_operations_message(text);
    let Ok(received) = receive(text) else {
        let is_valid = valid.is_ok_and(|it| it.len() <= MESSAGE_OPERATIONS_LIMIT);
        return assert!(!is_valid, "{text}");
    };
    let operations: Result<Vec<_>, _> =
        received.entries.into_iter().map(|entry| entry.operation).collect();
    match (valid, operations) {
        (Ok(valid), Ok(operations)) => assert_eq!(valid, operations),
        (Ok(valid), Err(faults)) => {
            assert!(valid.len() > OPERATIONS_LIMIT, "{faults}: {valid:?}");
        }
        (Err(faults), Ok(operations)) => panic!("{faults}, and {operations:?}"),
        (Err(_), Err(_)) => {}
    }
}

/// What is valid is the same once it is written and read again.
fn can_be_written(text: &str) {
    let Ok(operations) = parse_operations_message(text) else { return };
    let message = serde_json::json!({"protocolVersion": "1.0", "operations": operations});
    assert_eq!(parse_operations_message(&message.to_string()).unwrap(), operations, "{message}");
}

fn events_can_be_printed(text: &str) {
    let Ok(message) = parse_events_message(text) else { return };
    let printed = print(&message);
    assert!(!printed.chars().any(deaddrop::text::is_hazard), "{printed:?}");
    assert_eq!(parse_events_message(&printed).unwrap(), message, "{printed}");
}
