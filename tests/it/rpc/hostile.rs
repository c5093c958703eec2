//! Clients that mean harm: what they send is not given back at its length, and a policy rules the
//! methods of a host too.

use std::fs;

use serde_json::{Value, json};

use super::client::Server;
use crate::support::Project;

/// The longest answer to what is refused, in bytes: what is told, and what is around it.
const LONGEST: usize = (64 << 10) + 200;

#[test]
fn no_refusal_repeats_a_long_request() {
    let base = Project::new();
    let (_server, mut client) = Server::stdio(&base, &["--sandbox", "off"]);
    // Three bytes each: no place to cut but between two.
    let long = "\u{20ac}".repeat(1 << 20);
    let step = json!({ "key": "k", "operation": long, "outputLimit": 1 });
    for (method, params, told) in [
        (&*long, json!({}), "method not found: \u{20ac}"),
        ("about", json!({ "tools": long }), "invalid params: invalid type: string"),
        ("step", step, "invalid params: "),
        ("exec_code", json!({ "lang": long, "code": "" }), "unsupported language: \u{20ac}"),
    ] {
        let answer = client.ask(1, method, &params);
        let said = match &answer["result"] {
            Value::Null => &answer["error"]["message"],
            result => &result["stderr"],
        };
        let said = said.as_str().unwrap();
        assert!(said.starts_with(told) && said.ends_with('\u{2026}'), "{}", &said[..60]);
        assert!(answer.to_string().len() <= LONGEST, "{told}");
    }
    client.pings(2);
}

#[test]
fn a_policy_rules_what_a_host_reads() {
    let base = Project::new();
    let settings = "[policies.mine]\npreset = \"standard\"\nfiles.blocked = [\"secrets/**\"]\n";
    fs::write(base.at("deaddrop.toml"), settings).unwrap();
    fs::create_dir_all(base.at("workspace/secrets")).unwrap();
    fs::write(base.at("workspace/secrets/key"), "hidden").unwrap();
    fs::write(base.at("workspace/open"), "shown").unwrap();
    std::os::unix::fs::symlink("secrets/key", base.at("workspace/link")).unwrap();
    let (_server, mut client) = Server::stdio(&base, &["--sandbox", "off", "--policy", "mine"]);
    let mut read = |path: &str| client.ask(1, "read", &json!({ "path": path, "limit": 100 }));
    assert_eq!(read("open")["result"]["file"]["bytes"], "shown");
    for path in ["secrets/key", "link"] {
        let failed = &read(path)["result"]["failed"];
        assert_eq!(failed["kind"], "denied", "{path}: {failed}");
        let reason = failed["reason"].as_str().unwrap();
        assert!(reason.contains("of the policy 'mine'"), "{reason}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_of_the_whole_machine_gives_nothing_of_itself() {
    let base = Project::new();
    let arguments = ["--root", "/", "--sandbox", "off"];
    let (server, mut client) = Server::stdio(&base, &arguments);
    let mut ask =
        |method: &str, path: &str| client.ask(1, method, &json!({ "path": path, "limit": 100 }));
    assert!(ask("read_file", "/proc/version")["result"]["content"].is_string());
    let own = format!("/proc/{}/environ", server.pid());
    for path in ["/proc/self/environ", "/proc/thread-self/environ", &*own] {
        let answer = ask("read_file", path);
        assert_eq!(answer["error"]["code"], -32_603, "{path}: {answer}");
    }
    // Each of its threads has a folder of its own, which is in no listing.
    let threads = fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap();
    let threads: Vec<String> =
        threads.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(threads.len() > 1, "{threads:?}");
    for thread in threads {
        let folder = format!("/proc/{thread}");
        for path in [
            format!("{folder}/environ"),
            format!("{folder}/status"),
            format!("{folder}/task/{thread}/environ"),
            format!("/proc/{}/task/{thread}/environ", server.pid()),
            format!("/proc/{}/root{folder}/environ", std::process::id()),
        ] {
            let told = ask("read_file", &path)["error"].to_string();
            assert!(told.contains("deaddrop's own state"), "{path}: {told}");
        }
        let listed = ask("list_dir", &folder);
        assert!(listed["error"].to_string().contains("deaddrop's own state"), "{listed}");
        let answer = ask("read", &format!("proc/{thread}/environ"));
        assert!(answer["result"]["failed"].is_object(), "{answer}");
    }
    // What belongs to others is none of its business.
    let other = format!("/proc/{}/status", std::process::id());
    let answer = ask("read_file", &other);
    assert!(answer["result"]["content"].is_string(), "{answer}");
}
