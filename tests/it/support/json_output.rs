//! Codes and values in the program's `--json` output. They stay the same when sentences change.

use std::fmt;

use serde_json::Value;

use super::{ID, Project, Run};

/// A turn, as `apply --json` tells it.
pub struct Turn {
    pub json: Value,
    /// The next outbox; empty where the session is complete.
    pub outbox: String,
}

impl Turn {
    /// What became of each operation: `ok`, or the code of why it failed.
    pub fn codes(&self) -> Vec<String> {
        codes(&self.json["results"])
    }

    /// The codes of all warnings, in order.
    pub fn warnings(&self) -> Vec<String> {
        let warnings = results(&self.json["results"]).iter().flat_map(warnings_of);
        warnings.map(|warning| text(&warning["code"])).collect()
    }

    /// The messages of the warnings with this code, in order.
    pub fn messages(&self, code: &str) -> Vec<String> {
        let warnings = results(&self.json["results"]).iter().flat_map(warnings_of);
        let meant = warnings.filter(|warning| warning["code"] == code);
        meant.map(|warning| text(&warning["message"])).collect()
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = self.outbox.find("=== CONTEXT ===").unwrap_or_default();
        write!(f, "{:#}\n{}", self.json["results"], &self.outbox[from..])
    }
}

impl Run {
    /// The last line of standard output, which is JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        let line = self.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {self:#?}"))
    }

    /// Each line of standard output, which is JSON.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {self:#?}"));
        self.stdout.lines().map(parse).collect()
    }

    /// The error that it ended with, `{code, message}`, as `--json` tells it.
    #[track_caller]
    pub fn error(&self) -> Value {
        let line = self.stderr.lines().last().unwrap_or_default();
        let told: Value = serde_json::from_str(line).unwrap_or_default();
        assert!(self.code != Some(0) && told["error"]["code"].is_string(), "no error: {self:#?}");
        told["error"].clone()
    }

    /// The message of that error.
    #[track_caller]
    pub fn message(&self) -> String {
        text(&self.error()["message"])
    }
}

impl Project {
    /// Runs a command with `--json`; gives the last line that it prints.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        self.run(&[arguments, &["--json"]].concat()).ok().json()
    }

    /// Runs a command, which fails with an error of this code.
    #[track_caller]
    pub fn fails(&self, arguments: &[&str], code: &str) -> Run {
        self.fails_with(arguments, "", code)
    }

    /// The same with this text as its standard input.
    #[track_caller]
    pub fn fails_with(&self, arguments: &[&str], input: impl AsRef<[u8]>, code: &str) -> Run {
        let run = self.run_with(&[arguments, &["--json"]].concat(), input);
        assert_eq!(run.error()["code"], code, "{arguments:?}: {run:#?}");
        run
    }

    /// Applies a reply to session [`ID`].
    #[track_caller]
    pub fn turn(&self, reply: &str) -> Turn {
        let run = self.run_with(&["apply", "--json", "--session", ID, "-"], reply).ok();
        let json = run.json();
        let outbox = json["outbox"].as_str().map(|path| self.read(path)).unwrap_or_default();
        Turn { json, outbox }
    }

    /// The same; gives what became of each operation (see [`Turn::codes`]).
    #[track_caller]
    pub fn codes(&self, reply: &str) -> Vec<String> {
        self.turn(reply).codes()
    }

    /// What `status --json` tells of session [`ID`].
    #[track_caller]
    pub fn status(&self) -> Value {
        self.json(&["status", ID])
    }

    /// What became of the operations of the newest turn of session [`ID`].
    #[track_caller]
    pub fn last_codes(&self) -> Vec<String> {
        codes(&self.status()["results"])
    }

    /// What `check --json` foretells of a reply; `code` is its exit code.
    #[track_caller]
    pub fn check(&self, reply: &str, code: i32) -> Value {
        self.run_with(&["check", "-", "--json"], reply).with_code(code).json()
    }

    /// What the doctor finds of this.
    #[track_caller]
    pub fn finding(&self, what: &str) -> Value {
        let run = self.run(&["doctor", "--json"]);
        let found = run.json_lines().into_iter().find(|line| line["what"] == what);
        found.unwrap_or_else(|| panic!("{what}: {run:#?}"))
    }
}

/// What became of each of these results: `ok`, or the code of why it failed.
pub fn codes(told: &Value) -> Vec<String> {
    let code = |result: &Value| match result["code"].as_str() {
        _ if result["success"] == true => "ok".to_owned(),
        code => code.unwrap_or("no code").to_owned(),
    };
    results(told).iter().map(code).collect()
}

fn results(told: &Value) -> &[Value] {
    told.as_array().map_or(&[], Vec::as_slice)
}

fn warnings_of(result: &Value) -> &[Value] {
    results(&result["warnings"])
}

/// A text in JSON.
#[track_caller]
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

impl Project {
    /// Takes turns back, or brings them back; gives what `--json` tells of it (`turns`, `redid`, `left`, `ignored`).
    #[track_caller]
    pub fn back(&self, arguments: &[&str]) -> Value {
        self.json(arguments)["changed"]["back"].clone()
    }
}

impl Project {
    /// Why session [`ID`] asks the person.
    #[track_caller]
    pub fn asked_why(&self) -> String {
        text(&self.waiting(ID)["reason"])
    }
}

/// Why an undo left this path as it is.
#[track_caller]
pub fn why(back: &Value, path: &str) -> String {
    let found = results(&back["left"]).iter().find(|left| left[0] == path);
    text(&found.unwrap_or_else(|| panic!("{path}: {back}"))[1])
}

/// The paths that an undo left as they are, sorted.
pub fn left_sorted(back: &Value) -> Vec<&str> {
    let mut left = left(back);
    left.sort_unstable();
    left
}

/// The paths that an undo left as they are.
pub fn left(back: &Value) -> Vec<&str> {
    results(&back["left"]).iter().filter_map(|left| left[0].as_str()).collect()
}
