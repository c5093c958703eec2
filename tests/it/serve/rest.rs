//! The REST API: what the SDK of Agent Spaces sends, and what it reads.

mod bounds;
mod lasting;
mod project_space;
mod sdk;

use serde_json::{Value, json};

use super::client::{Answer, Served};

impl Served {
    /// Makes a space; gives its path.
    #[track_caller]
    fn space(&self, options: &Value) -> String {
        let made = self.ask("POST", "/v1/spaces", &options.to_string());
        assert_eq!(made.status, 201, "{made:?}");
        format!("/v1/spaces/{}", made.body["data"]["id"].as_str().unwrap())
    }

    /// Runs operations in a space.
    #[track_caller]
    fn run(&self, space: &str, operations: &Value) -> Answer {
        self.ask("POST", &format!("{space}/runs"), &message(operations))
    }

    #[track_caller]
    fn decide(&self, space: &str, run: &Value, operation: &str, decision: &str) -> Answer {
        let run = run["id"].as_str().unwrap();
        let approval = json!({ "approval": { "operationId": operation, "decision": decision } });
        self.ask("POST", &format!("{space}/runs/{run}/resume"), &approval.to_string())
    }

    #[track_caller]
    fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "")
    }
}

impl Answer {
    #[track_caller]
    fn data(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert!(self.body["meta"]["requestId"].is_string(), "{self:?}");
        self.body["data"].clone()
    }

    #[track_caller]
    fn fails(&self, status: u16, code: &str) -> &Value {
        assert_eq!(
            (self.status, self.body["error"]["code"].as_str()),
            (status, Some(code)),
            "{self:?}"
        );
        assert!(self.body["error"]["message"].is_string(), "{self:?}");
        assert!(self.body["meta"]["requestId"].is_string(), "{self:?}");
        &self.body["error"]
    }
}

fn message(operations: &Value) -> String {
    json!({ "protocolVersion": "1.0", "operations": operations }).to_string()
}

/// The types of the events of a run.
fn types(run: &Value) -> Vec<&str> {
    let events = run["events"].as_array().unwrap_or_else(|| panic!("no events: {run}"));
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}
