//! From policies in a settings file to their effect.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::error::Result;
use crate::settings::{Config, Layer, Source};

fn config(layers: &[&str]) -> Result<Config> {
    let read =
        |text: &&str| Layer::from_text(text, Path::new("/project/deaddrop.toml"), Source::File);
    let layers = layers.iter().map(read).collect::<Result<Vec<Layer>>>()?;
    Config::resolve("/project".into(), &Layer::merged(&layers), None)
}

fn policy(text: &str, name: &str) -> Policy {
    config(&[text]).unwrap().policy(name).unwrap()
}

#[test]
fn presets_are_what_the_table_says() {
    let names = |list: &[String]| list.join(" ");
    assert!(Policy::PRESETS.iter().all(|name| Policy::preset(name).unwrap().name == *name));
    assert!(Policy::preset("standrad").is_none());
    let restrictive = policy("", "restrictive");
    let text = restrictive.to_toml();
    assert!(text.starts_with("[policies.restrictive]\nnetwork = false\nfiles.enabled = true\n"));
    assert!(restrictive.files.read_only && !restrictive.shell.enabled);
    assert_eq!(restrictive.files.max_bytes, Some(1 << 20));
    assert_eq!(restrictive.shell.timeout_seconds, Some(10));
    assert_eq!(names(&restrictive.files.blocked), ".* *.env *.key *.pem");
    let standard = policy("", "standard");
    assert_eq!(names(&standard.files.blocked), ".* *.env *.key *.pem node_modules");
    assert_eq!(
        names(&standard.shell.allowed),
        "bun node npm npx cat echo ls pwd head tail grep find wc"
    );
    assert_eq!(
        standard.shell.blocked.join(","),
        "rm -rf /,rm -rf ~,sudo,chmod,chown,curl,wget,ssh"
    );
    assert_eq!((standard.network, standard.files.max_bytes), (Some(false), Some(10 << 20)));
    let permissive = policy("", "permissive");
    assert_eq!(permissive.shell.approval.join(","), "rm -rf,rm -r,chmod,chown");
    assert_eq!((permissive.network, permissive.shell.timeout_seconds), (Some(true), Some(300)));
    assert!(permissive.shell.allowed.is_empty());
    let workspace = policy("", "workspace");
    assert_eq!((workspace.network, workspace.shell.timeout_seconds), (None, None));
    assert_eq!(workspace.shell.max_timeout_seconds, Some(3_600));
    let seconds = Duration::from_secs;
    for (policy, asked, default, given) in [
        (&workspace, Some(7_200), 0, 3_600),
        (&workspace, Some(300), 60, 300),
        (&workspace, None, 60, 60),
        (&standard, Some(300), 60, 30),
    ] {
        let limit = policy.shell.timeout(asked.map(seconds), seconds(default));
        assert_eq!(limit, seconds(given), "{asked:?}");
    }
}

#[test]
fn a_table_changes_a_preset_or_makes_one() {
    let text = r#"
        policy = "mine"
        [policies.standard]
        shell.timeout_seconds = 120
        shell.allowed = ["cargo"]
        [policies.mine]
        preset = "permissive"
        network = false
        [policies.mine.files]
        read_only = true
        blocked = []
        max_bytes = 0x100
    "#;
    let config = config(&[text]).unwrap();
    assert_eq!(config.policy.as_deref(), Some("mine"));
    let standard = config.policy("standard").unwrap();
    assert_eq!(standard.shell.timeout_seconds, Some(120));
    assert_eq!(standard.shell.allowed, ["cargo"]);
    assert_eq!(standard.shell.blocked, Policy::preset("standard").unwrap().shell.blocked);
    let mine = config.policy("mine").unwrap();
    assert_eq!(mine.name, "mine");
    assert!(mine.files.read_only && mine.files.blocked.is_empty());
    assert_eq!((mine.network, mine.files.max_bytes), (Some(false), Some(256)));
    assert_eq!(mine.shell, Policy::preset("permissive").unwrap().shell);
    let names: Vec<&str> = config.policy_names().collect();
    assert_eq!(names, ["restrictive", "standard", "permissive", "ask", "workspace", "mine"]);
}

#[test]
fn the_upper_layer_goes_over_key_by_key() {
    let below = "[policies.mine]\npreset = \"standard\"\nnetwork = true\nshell.allowed = [\"a\"]";
    let above = "[policies.mine]\nshell.allowed = [\"b\"]\n[policies.standard]\nnetwork = true";
    let config = config(&[below, above]).unwrap();
    let mine = config.policy("mine").unwrap();
    assert_eq!((mine.network, mine.shell.allowed), (Some(true), vec!["b".to_owned()]));
    assert_eq!(config.policy("standard").unwrap().network, Some(true));
}

#[test]
fn what_is_shown_can_be_read_again() {
    let text = "[policies.mine]\npreset = \"permissive\"\nshell.blocked = ['a \"b\" \\c']";
    for name in Policy::PRESETS.into_iter().chain(["mine"]) {
        let shown = policy(text, name);
        let mut again = policy(&shown.to_toml(), name);
        again.shell.max_timeout_seconds = shown.shell.max_timeout_seconds;
        assert_eq!(again, shown);
    }
}

#[test]
fn wrong_policies_are_told_with_file_line_and_what_is_right() {
    for (text, expected) in [
        (
            "policy = \"standrad\"",
            ":1: there is no policy 'standrad'; did you mean 'standard'? There are restrictive, standard",
        ),
        ("policy = 5", ":1: policy is 5 but must be the name of a policy"),
        (
            "[policy.standard]\nnetwork = true",
            "policy is a table but must be the name of a policy, as a string; [policies.NAME] changes one",
        ),
        ("policies = 1", ":1: policies must be a table, as [policies.NAME]"),
        ("[policies]\nstandard = true", ":2: policies.standard must be a table"),
        (
            "[policies.mine]\nnetwork = true",
            ":1: policies.mine needs a preset that it changes: preset = \"standard\"",
        ),
        ("[policies.standrad]\nnetwork = true", "or did you mean '[policies.standard]'?"),
        (
            "[policies.mine]\npreset = \"lax\"",
            ":2: policies.mine.preset is \"lax\" but must be one of restrictive, standard,",
        ),
        (
            "[policies.standard]\npreset = \"permissive\"",
            ":2: policies.standard.preset is 'permissive', but 'standard' is itself a preset",
        ),
        ("[policies.standard]\nshel.allowed = []", ":2: unknown setting 'policies.standard.shel'"),
        (
            "[policies.standard]\nshell.alowed = []",
            ":2: unknown setting 'policies.standard.shell.alowed'; did you mean 'policies.standard.shell.allowed'?",
        ),
        (
            "[policies.standard]\nread_only = true",
            "did you mean 'policies.standard.files.read_only'?",
        ),
        ("[policies.standard]\nnetwrok = true", "did you mean 'policies.standard.network'?"),
        (
            "[policies.standard]\nnetwork = \"on\"",
            ":2: policies.standard.network is \"on\" but must be true or false",
        ),
        (
            "[policies.standard]\n\nshell.allowed = \"ls\"",
            ":3: policies.standard.shell.allowed is \"ls\" but must be a list of patterns",
        ),
        (
            "[policies.standard]\nshell.allowed = [1]",
            "policies.standard.shell.allowed contains 1 but each item must be",
        ),
        (
            "[policies.standard]\nshell.blocked = [\" \"]",
            "policies.standard.shell.blocked contains \" \" but each item must be a pattern",
        ),
        (
            "[policies.standard]\nfiles.blocked = [\"x \"]",
            "policies.standard.files.blocked contains \"x \" but each item must be a pattern",
        ),
        (
            "[policies.standard]\nshell.timeout_seconds = 0",
            "shell.timeout_seconds is 0 but must be a whole number from 1 to 3600",
        ),
        ("[policies.standard]\nshell.timeout_seconds = 3601", "is 3601 but must be"),
        ("[policies.standard]\nfiles.max_bytes = -1", "files.max_bytes is -1 but must be"),
        ("[policies.standard]\nfiles = true", "policies.standard.files must be a table"),
        ("[policies.\"a b\"]\nnetwork = true", "policies.\"a b\": a policy's name is made of"),
    ] {
        let said = config(&[text]).expect_err(text).to_string();
        assert!(said.starts_with("/project/deaddrop.toml:"), "{said}");
        assert!(said.contains(expected), "{expected} in {said}");
    }
    let said = |name: &str| config(&[""]).unwrap().policy(name).unwrap_err().to_string();
    assert_eq!(
        said("mine"),
        "policy: there is no policy 'mine'; there are restrictive, standard, permissive, ask, workspace; \
         [policies.NAME] in deaddrop.toml adds one"
    );
    let said = said("Standard");
    assert!(said.contains("did you mean 'standard'? There are restrictive, "), "{said}");
}

fn preset(name: &str) -> Policy {
    Policy::preset(name).unwrap()
}

#[test]
fn presets_stand_in_their_order() {
    let is_wider = |name: &str, ceiling: &str| preset(name).narrowed(&preset(ceiling)).is_none();
    let ranked = || Policy::PRESETS.into_iter().filter(|name| *name != "ask").enumerate();
    for (n, strict) in ranked() {
        for (m, other) in ranked() {
            // `workspace` leaves the network to the sandbox settings.
            let opens = (strict, other) == ("permissive", "workspace");
            assert_eq!(is_wider(strict, other), n > m || opens, "{strict} {other}");
        }
    }
    // The file rules are those of `workspace`, and only this policy asks about every command.
    for (name, ceiling, wider) in [
        ("ask", "standard", true),
        ("ask", "permissive", true),
        ("permissive", "ask", true),
        ("ask", "workspace", false),
        ("ask", "ask", false),
    ] {
        assert_eq!(is_wider(name, ceiling), wider, "{name} {ceiling}");
    }
    for name in ["restrictive", "standard", "workspace"] {
        let narrowed = preset(name).narrowed(&preset("ask")).unwrap();
        assert!(narrowed.shell.approval.contains(&"*".to_owned()), "{name}");
    }
}

#[test]
fn whatever_is_taken_away_or_added_counts() {
    let standard = preset("standard");
    let narrowed = |change: fn(&mut Policy)| {
        let mut policy = preset("standard");
        change(&mut policy);
        policy.narrowed(&standard)
    };
    for opens in [
        (|p| p.network = None) as fn(&mut Policy),
        |p| p.network = Some(true),
        |p| p.files.max_bytes = None,
        |p| p.shell.allowed.clear(),
        |p| p.shell.allowed.push("sh".to_owned()),
    ] {
        assert_eq!(narrowed(opens), None);
    }
    for restored in [
        (|p| drop(p.files.blocked.pop())) as fn(&mut Policy),
        |p| drop(p.shell.blocked.pop()),
        |p| drop(p.shell.approval.pop()),
        |p| p.shell.timeout_seconds = Some(3_000),
    ] {
        assert_eq!(narrowed(restored), Some(standard.clone()));
    }
    for closes in [
        (|p| p.files.blocked.push("x".to_owned())) as fn(&mut Policy),
        |p| p.files.allowed.push("src".to_owned()),
        |p| p.files.read_only = true,
        |p| p.files.max_bytes = Some(1),
        |p| p.shell.enabled = false,
        |p| drop(p.shell.allowed.pop()),
        |p| p.shell.timeout_seconds = Some(1),
    ] {
        let mut policy = preset("standard");
        closes(&mut policy);
        assert_eq!(narrowed(closes), Some(policy));
    }
    let mut blocks = preset("standard");
    let asked = blocks.shell.approval.pop().unwrap();
    blocks.shell.blocked.push(asked.clone());
    assert!(blocks.narrowed(&standard).unwrap().shell.blocked.contains(&asked));
    let mut reads = preset("workspace");
    reads.files.read_only = true;
    assert_eq!(preset("permissive").narrowed(&reads), None);
}

#[test]
fn what_is_shown_of_a_policy_is_read_as_the_same() {
    let text =
        "[policies.mine]\npreset = 'permissive'\nshell.blocked = ['echo \"x\"', 'a\\b', 'é']\n";
    let shown = policy(text, "mine").to_toml();
    assert_eq!(policy(&shown, "mine").shell.blocked, ["echo \"x\"", "a\\b", "é"], "{shown}");
}
