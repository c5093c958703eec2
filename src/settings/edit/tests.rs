//! Settings files before and after a change.

use super::*;

const TEXT: &str = "\
# At the head.

max_tokens   = 5_000   # enough for mine
sandbox = \"off\" # for now

# What commands see.
secrets_allow = [
  \"a/*.pem\", # theirs
]

[guest] # the box
command = [\"ssh\", \"box\"]
";

/// The text of a file after a change.
fn changed(text: &str, change: impl FnOnce(&Path) -> Result<()>) -> Result<String> {
    let project = tempfile::tempdir().unwrap();
    let file = project.path().join(FILE);
    fs::write(&file, text).unwrap();
    let project = project.path().canonicalize().unwrap();
    let done = change(&project);
    let now = fs::read_to_string(&file).unwrap();
    assert!(done.is_ok() || now == text, "what failed has changed the file");
    done.map(|()| now)
}

fn with(text: &str, name: &str, words: &[&str]) -> Result<String> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    changed(text, |project| set(Some(project), name, &words).map(drop))
}

fn without(text: &str, name: &str) -> Result<String> {
    changed(text, |project| unset(Some(project), name).map(drop))
}

#[test]
fn a_value_is_replaced_where_it_stands() {
    let text = with(TEXT, "max_tokens", &["9000"]).unwrap();
    assert_eq!(text, TEXT.replace("5_000", "9000"));
    let text = with(TEXT, "sandbox", &["partial"]).unwrap();
    assert_eq!(text, TEXT.replace("\"off\"", "\"partial\""));
    assert_eq!(with(TEXT, "sandbox.mode", &["partial"]).unwrap(), text);
    let text = with(TEXT, "guest.command", &["deaddrop", "rpc"]).unwrap();
    assert_eq!(text, TEXT.replace("[\"ssh\", \"box\"]", "[\"deaddrop\", \"rpc\"]"));
}

#[test]
fn what_is_new_goes_where_it_belongs() {
    let text = with(TEXT, "policy", &["standard"]).unwrap();
    assert!(text.contains("]\npolicy = \"standard\"\n\n[guest] # the box"), "{text}");
    let text = with(TEXT, "sandbox.network", &["true"]).unwrap();
    let table = "\n[sandbox]\nmode = \"off\" # for now\nnetwork = true\n";
    assert_eq!(text, TEXT.replace("sandbox = \"off\" # for now\n", "") + table);
    let text = with("# A note.\n", "sandbox.readable", &["/a", "~/b"]).unwrap();
    assert_eq!(text, "# A note.\n[sandbox]\nreadable = [\"/a\", \"~/b\"]\n");
    assert_eq!(with("# A note.\n", "policy", &["x"]).unwrap_err().exit_status(), 2);
    let text = with("# A note.\n", "max_tokens", &["5000"]).unwrap();
    assert_eq!(text, "# A note.\nmax_tokens = 5000\n");
    let text = with("", "policies.mine.preset", &["standard"]).unwrap();
    assert_eq!(text, "[policies.mine]\npreset = \"standard\"\n");
    let text = with(&text, "policies.mine.files.read_only", &["true"]).unwrap();
    assert!(text.ends_with("\n\n[policies.mine.files]\nread_only = true\n"), "{text}");
    let text = with("[sandbox]\nnetwork = true\n", "sandbox", &["off"]).unwrap();
    assert_eq!(text, "[sandbox]\nnetwork = true\nmode = \"off\"\n");
    assert_eq!(with("", "secrets_allow", &["[]"]).unwrap(), "secrets_allow = []\n");
    assert_eq!(with("", "inbox_dir", &["5"]).unwrap(), "inbox_dir = \"5\"\n");
}

#[test]
fn what_is_removed_leaves_the_comments_above_it() {
    let text = without(TEXT, "max_tokens").unwrap();
    assert_eq!(text, TEXT.replace("max_tokens   = 5_000   # enough for mine\n", ""));
    let text = without(TEXT, "secrets_allow").unwrap();
    let list = "secrets_allow = [\n  \"a/*.pem\", # theirs\n]\n";
    assert_eq!(text, TEXT.replace(list, ""));
    assert!(!without(TEXT, "guest").unwrap().contains("guest"));
    assert!(without("sandbox = { mode = \"off\", network = true }\n", "sandbox").is_err());
    assert_eq!(without(TEXT, "policy").unwrap(), TEXT, "it does not stand there");
}

#[test]
fn what_would_not_be_taken_is_not_written() {
    for (name, words, told) in [
        ("max_tokens", &["12"][..], "max_tokens is 12 but must be a whole number from"),
        ("max_tokens", &["many"], "max_tokens is \"many\" but must be"),
        ("max_tokens", &["1", "2"], "config set max_tokens: takes one value"),
        ("max_tokns", &["5000"], "unknown setting 'max_tokns'; did you mean 'max_tokens'?"),
        ("sandbox.netwrok", &["true"], "did you mean 'sandbox.network'?"),
        ("first_contents", &["yes"], "but must be true or false"),
        ("outbox_dir", &["inbox"], "must not be in"),
        ("policy", &["strict"], "there is no policy 'strict'"),
        ("secrets_allow", &["b"], "has comments in the value; change it there"),
        ("sandbox.env", &["[\"A\""], "config set sandbox.env: "),
        ("guest.port", &["5"], "[guest] has a port"),
        ("guest.prot", &["5"], "did you mean 'guest.port'?"),
        ("foo.bar", &["1"], "unknown setting 'foo.bar'; `deaddrop config show` lists"),
        ("max_tokens.x", &["1"], "did you mean 'max_tokens'?"),
        ("policy.x", &["1"], "did you mean 'policy'?"),
        ("sandbox.foo.bar", &["1"], "unknown setting 'sandbox.foo.bar'"),
        ("policies.x", &["1"], "policies.x must be a table, as [policies.NAME]"),
        ("policies.x.fils.read_only", &["true"], "unknown setting 'policies.x.fils"),
    ] {
        let told_now = with(TEXT, name, words).expect_err(name);
        assert_eq!(told_now.exit_status(), 2, "{name}");
        assert!(told_now.to_string().contains(told), "{name}: {told_now}");
    }
    let told = with("max_tokens = \n", "policy", &["standard"]).unwrap_err().to_string();
    assert!(told.contains("deaddrop.toml:1: "), "{told}");
    // An invalid setting can be corrected.
    assert_eq!(with("max_tokens = 1\n", "max_tokens", &["5000"]).unwrap(), "max_tokens = 5000\n");
    assert!(without("[guest]\ncommand = [\"a\"]\n", "guest.command").is_err());
}

#[cfg(unix)]
#[test]
fn a_link_and_the_rights_of_the_file_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().canonicalize().unwrap();
    let real = project.join("real.toml");
    fs::write(&real, "").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    symlink("real.toml", project.join(FILE)).unwrap();
    set(Some(&project), "max_tokens", &["5000".to_owned()]).unwrap();
    assert!(project.join(FILE).is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "max_tokens = 5000\n");
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn line_ends_stay_where_a_line_is_changed_or_removed() {
    let crlf = |text: &str| text.replace('\n', "\r\n");
    let plain = with(TEXT, "max_tokens", &["9000"]).unwrap();
    assert_eq!(with(&crlf(TEXT), "max_tokens", &["9000"]).unwrap(), crlf(&plain));
    let plain = without(TEXT, "max_tokens").unwrap();
    assert_eq!(without(&crlf(TEXT), "max_tokens").unwrap(), crlf(&plain));
    // Adding a line gives the whole file Unix line ends.
    let plain = with(TEXT, "policy", &["standard"]).unwrap();
    assert_eq!(with(&crlf(TEXT), "policy", &["standard"]).unwrap(), plain);
}

#[test]
fn what_is_not_named_keeps_its_place_and_its_bytes() {
    let dotted =
        "sandbox.max_processes = 400 # one\nmax_tokens = 5000 # two\nsandbox.min_free_bytes = 0\n";
    let text = with(dotted, "max_tokens", &["6000"]).unwrap();
    assert_eq!(text, dotted.replace("5000", "6000"));
    let odd = "\u{feff}sandbox.env = [\"\"\"A=x\r\ny\"\"\"]\nmax_tokens = 5000\n";
    let text = with(odd, "max_tokens", &["6000"]).unwrap();
    assert_eq!(text, odd.replace("5000", "6000"));
}
