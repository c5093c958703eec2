//! `read_file`, `write_file` and `list_dir`.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use serde_json::{Value, json};

use super::{Talk, assert_told};

const MOST: usize = 10 << 20;

fn path(path: &str) -> Value {
    json!({ "path": path })
}

fn content(path: &str, content: &str) -> Value {
    json!({ "path": path, "content": content })
}

#[test]
fn parents_of_a_file_are_made_and_a_file_is_replaced_with_its_mode() {
    let mut talk = Talk::new(&[]);
    let success = json!({ "success": true });
    let absolute = format!("{}/a/b/other", talk.root_after_a_ping());
    for at in ["a/b/c/d.txt", "./a/./x/../b/e.txt", &absolute] {
        assert_eq!(talk.gives("write_file", &content(at, at)), success);
        assert_eq!(talk.gives("read_file", &path(at)), json!({ "content": at }));
    }
    assert_eq!(talk.base.names("workspace/a/b"), ["c", "e.txt", "other"]);
    for mode in [0o600, 0o644, 0o755, 0o640] {
        let script = talk.base.write("workspace/script", "a longer text that was there before");
        fs::set_permissions(&script, fs::Permissions::from_mode(mode)).unwrap();
        talk.gives("write_file", &content("script", "short"));
        assert_eq!(fs::read(&script).unwrap(), b"short");
        assert_eq!(script.metadata().unwrap().mode() & 0o7777, mode);
    }
    // What JSON escapes is a byte there, and the end of a line is what was sent.
    let odd = "tab\t nul\0 quote\" back\\slash é 😀\r\n\u{2028}no end";
    talk.gives("write_file", &content("odd", odd));
    assert_eq!(talk.base.read("workspace/odd"), odd);
    assert_eq!(talk.gives("read_file", &path("odd")), json!({ "content": odd }));
}

#[test]
fn ten_mebibytes_are_written_and_read_and_one_byte_more_is_not_read() {
    let mut talk = Talk::new(&[]);
    let whole = "é".repeat(MOST / 2);
    talk.gives("write_file", &content("whole", &whole));
    let read = talk.gives("read_file", &path("whole"));
    assert!(read["content"].as_str() == Some(&*whole));
    talk.gives("write_file", &content("more", &format!("{whole}x")));
    let told = talk.fails("read_file", &path("more"));
    assert_told(&told, -32603, &["'more'", "10485761 bytes", "10485760"]);
    talk.client.pings(1);
}

#[test]
fn what_cannot_be_read_written_or_listed_is_told_with_its_path() {
    let mut talk = Talk::new(&[]);
    talk.client.pings(1);
    talk.base.write("workspace/binary", b"\x7fELF\x00\xff");
    talk.base.write("workspace/file", "text");
    talk.base.sh("mkdir workspace/folder; mkfifo workspace/fifo; ln -s nowhere workspace/broken");
    let root = talk.root();
    for (method, at, why) in [
        ("read_file", "binary", "not UTF-8"),
        ("read_file", "folder", "is a folder"),
        ("read_file", "nothing", "not found"),
        ("read_file", "no/thing", "not found"),
        ("read_file", "broken", "not found"),
        ("read_file", "fifo", "not a regular file"),
        ("read_file", "file/x", "is a file"),
        ("write_file", "folder", "is a folder"),
        ("write_file", "file/x", "is a file"),
        ("write_file", "fifo", "not a regular file"),
        ("list_dir", "nothing", "No folder"),
        ("list_dir", "file", "is not a folder"),
        ("list_dir", "fifo", "is not a folder"),
        ("list_dir", "broken", "No folder"),
    ] {
        for at in [at.to_owned(), format!("{root}/{at}")] {
            let told = talk.fails(method, &content(&at, "x"));
            assert_told(&told, -32603, &[&format!("'{at}'"), why]);
        }
    }
    for at in ["a\0b", "a\\b", "a\nb", "esc\u{1b}", &"x".repeat(300), &"y/".repeat(4000)] {
        for method in ["read_file", "write_file", "list_dir"] {
            let told = talk.fails(method, &content(at, "x"));
            assert_told(&told, -32603, &["'"]);
            assert!(!told.1.contains(['\0', '\n', '\u{1b}']), "{told:?}");
        }
    }
    for at in ["", "/", ".", "folder/", "..", "folder/."] {
        for method in ["read_file", "write_file"] {
            assert_told(&talk.fails(method, &content(at, "x")), -32603, &[&format!("'{at}'")]);
        }
    }
    assert_eq!(talk.base.read("workspace/file"), "text");
    assert_eq!(talk.base.names("workspace").len(), 5, "{:?}", talk.base.names("workspace"));
}

#[test]
fn nothing_outside_of_the_root_is_read_written_or_listed() {
    let mut talk = Talk::new(&[]);
    talk.client.pings(1);
    let secret = talk.base.write("beside/secret", "hunter2");
    let secret = secret.canonicalize().unwrap();
    talk.base.write("workspace-evil/secret", "hunter2");
    symlink("../beside", talk.base.at("workspace/relative")).unwrap();
    symlink(secret.parent().unwrap(), talk.base.at("workspace/absolute")).unwrap();
    symlink(&secret, talk.base.at("workspace/file")).unwrap();
    symlink("..", talk.base.at("workspace/up")).unwrap();
    symlink("/", talk.base.at("workspace/machine")).unwrap();
    let root = talk.root();
    for at in [
        "../beside/secret",
        "a/../../beside/secret",
        "relative/secret",
        "absolute/secret",
        "file",
        "up/beside/secret",
        "machine/etc/passwd",
        "/etc/passwd",
        "/",
        secret.to_str().unwrap(),
        &format!("{root}/../beside/secret"),
        &format!("{root}/up/beside/secret"),
        &format!("{root}-evil/secret"),
        "/proc/self/root/etc/passwd",
    ] {
        for method in ["read_file", "write_file", "list_dir"] {
            let told = talk.fails(method, &content(at, "owned"));
            assert_told(&told, -32603, &[at]);
            assert!(!told.1.contains("hunter2"), "{told:?}");
        }
    }
    for at in ["relative", "up", "machine", "..", "absolute"] {
        assert_told(&talk.fails("list_dir", &path(at)), -32603, &["outside", at]);
        let made = format!("{at}/made");
        assert_told(&talk.fails("write_file", &content(&made, "x")), -32603, &["outside", &made]);
    }
    assert_eq!(fs::read_to_string(secret).unwrap(), "hunter2");
    assert_eq!(talk.base.names("beside"), ["secret"]);
}

#[test]
fn a_folder_is_listed_by_name_and_links_are_not_followed() {
    let mut talk = Talk::new(&[]);
    talk.client.pings(1);
    for (name, length) in [("b", 2), ("B", 3), ("a", 0), (".hidden", 1), ("é", 5), ("a b", 1024)] {
        talk.base.write(&format!("workspace/all/{name}"), vec![b'x'; length]);
    }
    talk.base.write("workspace/all/deep/er/file", "x");
    for (to, name) in [("deep", "to-folder"), ("b", "to-file"), ("nowhere", "to-nothing")] {
        symlink(to, talk.base.at(&format!("workspace/all/{name}"))).unwrap();
    }
    symlink("/etc", talk.base.at("workspace/all/to-outside")).unwrap();
    let name = OsString::from_vec(b"z\xff".to_vec());
    fs::write(talk.base.at("workspace/all").join(name), "1234567").unwrap();
    let entry = |(name, is_dir, size): (&str, bool, u64)| json!({ "name": name, "is_dir": is_dir, "size": size });
    let entries: Vec<Value> = [
        (".hidden", false, 1),
        ("B", false, 3),
        ("a", false, 0),
        ("a b", false, 1024),
        ("b", false, 2),
        ("deep", true, 0),
        ("to-file", false, 1),
        ("to-folder", false, 4),
        ("to-nothing", false, 7),
        ("to-outside", false, 4),
        // A name that is no text is shown with U+FFFD for what is none.
        ("z\u{fffd}", false, 7),
        ("é", false, 5),
    ]
    .into_iter()
    .map(entry)
    .collect();
    let root = talk.root();
    for at in ["all", "all/", "./all/deep/..", &format!("{root}/all")] {
        assert_eq!(talk.gives("list_dir", &path(at)), json!({ "entries": entries }), "{at}");
    }
    // A link that is asked for is followed, within the root.
    let er = json!({ "entries": [entry(("er", true, 0))] });
    assert_eq!(talk.gives("list_dir", &path("all/to-folder")), er);
    let only = json!({ "entries": [entry(("all", true, 0))] });
    for at in ["", ".", "./", "all/..", &root] {
        assert_eq!(talk.gives("list_dir", &path(at)), only, "{at:?}");
    }
    // No path can name it, so the name as it is shown leads nowhere.
    assert_told(&talk.fails("read_file", &path("all/z\u{fffd}")), -32603, &["not found"]);
}

#[test]
fn a_root_that_is_another_folder_now_is_told_and_one_put_back_served() {
    let mut talk = Talk::new(&[]);
    talk.gives("write_file", &content("file", "first"));
    let root = talk.root();
    talk.base.sh("mv workspace away");
    for replaced in [false, true] {
        if replaced {
            talk.base.sh("mkdir workspace; echo other > workspace/file");
        }
        for (method, at) in [("read_file", "file"), ("write_file", "file"), ("list_dir", "")] {
            let told = talk.fails(method, &content(at, "x"));
            assert_told(&told, -32603, &[at, &root, "start deaddrop rpc again"]);
        }
        let (code, stdout, stderr) = talk.exec("cat file");
        assert_eq!((code, &*stdout), (-1, ""));
        assert!(stderr.contains("start deaddrop rpc again"), "{stderr}");
        let code = json!({ "lang": "sh", "code": "cat file" });
        assert_eq!(talk.gives("exec_code", &code)["exit_code"], -1);
    }
    assert_eq!(talk.base.read("workspace/file"), "other\n");
    talk.base.sh("rm -r workspace; mv away workspace");
    assert_eq!(talk.gives("read_file", &path("file")), json!({ "content": "first" }));
    assert_eq!(talk.exec("cat file").1, "first");
}

impl Talk {
    /// The root, once it is surely there.
    fn root_after_a_ping(&mut self) -> String {
        self.client.pings(0);
        self.root()
    }
}
