//! Real tools at work in the full sandbox, without a network: what people build and test with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::PYTHON;
use crate::scene::{NOBODY, Scene, Way, reply, results};

/// A project of cargo's with a dependency that is in the registry's cache: this crate has it too.
fn cargo_project(scene: &Scene) {
    let lock =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock")).unwrap();
    let itoa =
        lock.split("\n[[package]]\n").find(|part| part.starts_with("name = \"itoa\"\n")).unwrap();
    let version = itoa.lines().find_map(|line| line.strip_prefix("version = ")).unwrap();
    scene.base.write(
        "workspace/Cargo.toml",
        format!("[package]\nname = \"inside\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\nitoa = {version}\n"),
    );
    let own =
        "[[package]]\nname = \"inside\"\nversion = \"0.1.0\"\ndependencies = [\n \"itoa\",\n]\n";
    scene.base.write(
        "workspace/Cargo.lock",
        format!("version = 4\n\n{own}\n[[package]]\n{}\n", itoa.trim_end()),
    );
    scene.base.write(
        "workspace/src/lib.rs",
        "#[test]\nfn it_works() {\n    assert_eq!(itoa::Buffer::new().format(42), \"42\");\n    let s = std::net::TcpListener::bind(\"127.0.0.1:0\").unwrap();\n    std::net::TcpStream::connect(s.local_addr().unwrap()).unwrap();\n    std::fs::write(std::env::temp_dir().join(\"x\"), \"x\").unwrap();\n}\n",
    );
    scene.hand_over();
}

const TEST: &str = "cargo test --locked --quiet 2>&1 | tail -n 20; ls target";

/// Whether cargo is there for us; else says that it is not.
fn there_is_cargo() -> bool {
    let found = Command::new("cargo").arg("--version").output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("SKIPPED: there is no cargo");
    }
    found
}

/// Where a tool of rustup's has its folder.
fn home_of_cargo(variable: &str, folder: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    let found = named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(folder)))?;
    found.canonicalize().ok().filter(|found| found.is_dir())
}

#[test]
fn cargo_builds_and_tests_with_a_dependency_from_its_cache() {
    let Some(scene) = Scene::new(Way::AsItIs).filter(|_| there_is_cargo()) else { return };
    cargo_project(&scene);
    let results = scene.run(&[TEST], &["--command-timeout-seconds", "120"]);
    assert!(results.contains("test result: ok. 1 passed"), "{results}");
}

#[test]
fn cargo_works_for_an_ordinary_user_too() {
    let Some(scene) = Scene::new(Way::OrdinaryUser) else { return };
    let folders = (home_of_cargo("CARGO_HOME", ".cargo"), home_of_cargo("RUSTUP_HOME", ".rustup"));
    let (Some(cargo), Some(rustup)) = folders else {
        eprintln!("SKIPPED: rustup's folders are not here");
        return;
    };
    cargo_project(&scene);
    scene.base.sh("mkdir -p home/.cargo home/.rustup");
    scene.base.write("home/.cargo/credentials.toml", "[registry]\ntoken = \"crates-secret\"\n");
    scene.hand_over();
    // His home, in a mount namespace of its own: the toolchain is the machine's.
    let script = format!(
        "for d in bin registry; do mkdir -p home/.cargo/$d && mount --bind \"$CARGO/$d\" home/.cargo/$d || exit 77; done; \
         mount --bind \"$RUSTUP\" home/.rustup || exit 77; \
         export HOME=$PWD/home XDG_STATE_HOME=$PWD/home/state PATH=$PWD/home/.cargo/bin:/usr/bin:/bin; \
         as_him() {{ setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups \"$@\"; }}; \
         as_him \"$1\" -C . config allow && as_him \"$@\""
    );
    let command = format!("cat ~/.cargo/credentials.toml; {TEST}");
    let file = scene.base.write("reply.txt", reply(&[&command]));
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", &script, "sh"])
        .arg(&scene.program)
        .args(["apply", "--command-timeout-seconds", "120"])
        .arg(file)
        .current_dir(scene.base.path())
        .env("CARGO", cargo)
        .env("RUSTUP", rustup)
        .env("XDG_CONFIG_HOME", scene.base.at(".no-config"))
        .env_remove("CARGO_HOME")
        .env_remove("RUSTUP_HOME")
        .output()
        .unwrap();
    if output.status.code() == Some(77) {
        eprintln!("SKIPPED: only root can mount: {output:?}");
        return;
    }
    let outbox = scene.base.outbox(2);
    assert!(outbox.contains("\n  Sandbox: full: "), "{outbox}");
    let results = results(&outbox);
    assert!(results.contains("test result: ok. 1 passed"), "{results}");
    assert!(!results.contains("crates-secret"), "{results}");
}

#[test]
fn a_tool_that_needs_the_network_fails_at_once_and_says_why() {
    let Some(scene) = Scene::new(Way::AsItIs).filter(|_| there_is_cargo()) else { return };
    cargo_project(&scene);
    let manifest = scene.base.read("workspace/Cargo.toml");
    scene.base.write("workspace/Cargo.toml", manifest + "no-such-crate-at-all = \"1\"\n");
    let results = scene.run(&["cargo build 2>&1"], &["--command-timeout-seconds", "20"]);
    assert!(results.contains("offline"), "{results}");
    assert!(!results.contains("timed out"), "{results}");
}

/// Whether a tool is there for everybody; else says that it is not.
fn there_is(tool: &str) -> bool {
    let found =
        ["/usr/bin", "/usr/local/bin", "/bin"].iter().any(|at| Path::new(at).join(tool).exists());
    if !found {
        eprintln!("SKIPPED: there is no {tool}");
    }
    found
}

fn as_root_and_as_a_user() -> impl Iterator<Item = Scene> {
    [Way::AsItIs, Way::OrdinaryUser].into_iter().filter_map(Scene::new)
}

#[test]
fn npm_runs_the_tests_of_a_package() {
    if !there_is("npm") {
        return;
    }
    for scene in as_root_and_as_a_user() {
        scene.base.write(
            "workspace/package.json",
            "{\"name\":\"inside\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"node test.js\"},\"dependencies\":{\"dep\":\"file:./dep\"}}",
        );
        scene.base.write("workspace/dep/package.json", "{\"name\":\"dep\",\"version\":\"1.0.0\"}");
        scene.base.write("workspace/dep/index.js", "module.exports = 42;\n");
        scene.base.write(
            "workspace/test.js",
            "const s = require('net').createServer(); s.listen(0, '127.0.0.1', () => { console.log('answer', require('dep')); s.close(); });\n",
        );
        scene.hand_over();
        let commands = ["npm install 2>&1", "npm test 2>&1"];
        let results = scene.run(&commands, &["--command-timeout-seconds", "60"]);
        assert!(results.contains("answer 42"), "{}: {results}", scene.name());
        assert!(!results.contains("FAILED"), "{}: {results}", scene.name());
    }
}

#[test]
fn python_runs_the_tests_of_a_package() {
    if !Path::new(PYTHON).exists() {
        eprintln!("SKIPPED: there is no {PYTHON}");
        return;
    }
    let has = |module: &str| {
        let import = Command::new(PYTHON).args(["-c", &format!("import {module}")]).output();
        import.is_ok_and(|output| output.status.success())
    };
    let with = if has("pytest") { "pytest -q" } else { "unittest -v" };
    if with.starts_with("unittest") {
        eprintln!("SKIPPED (in part): there is no pytest; its tests are run by unittest");
    }
    for scene in as_root_and_as_a_user() {
        scene.base.write(
            "workspace/test_inside.py",
            "import multiprocessing, socket, tempfile, unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        tempfile.mkdtemp()\n        multiprocessing.Lock()\n        socket.create_server((\"127.0.0.1\", 0))\n        with multiprocessing.Pool(2) as pool:\n            self.assertEqual(pool.map(abs, [-1]), [1])\n",
        );
        scene.hand_over();
        let results = scene.run(&[&format!("{PYTHON} -m {with} 2>&1")], &[]);
        let passed = results.contains("1 passed") || results.contains("\n  OK");
        assert!(passed, "{}: {results}", scene.name());
        let venv = format!("{PYTHON} -m venv --without-pip v && v/bin/python -c 'print(6 * 7)'");
        if has("venv") {
            let results = scene.run(&[&venv], &[]);
            assert!(results.contains("Output: 42"), "{}: {results}", scene.name());
        }
    }
}

#[test]
fn make_builds_and_tests_with_a_compiler() {
    if !there_is("make") || !there_is("gcc") {
        return;
    }
    for scene in as_root_and_as_a_user() {
        scene.base.write(
            "workspace/main.c",
            "#include <stdio.h>\nint main(void) { char *p = 0; puts(p ? p : \"made\"); return 0; }\n",
        );
        scene.base.write(
            "workspace/Makefile",
            "test: main\n\t./main\nmain: main.c\n\tgcc -O1 -o $@ $<\n",
        );
        scene.hand_over();
        let results = scene.run(&["make -j2 test 2>&1"], &[]);
        assert!(results.contains("\n  made"), "{}: {results}", scene.name());
        // Where addresses are drawn from very many, as with vm.mmap_rnd_bits = 32, some versions of the
        // sanitizer find no room for theirs now and then, in a sandbox or not.
        let tries = "for i in $(seq 20); do ./checked && exit 0; done; exit 1";
        scene.base.write("outside.c", scene.base.read("workspace/main.c"));
        let outside = format!("gcc -fsanitize=address outside.c -o checked || exit 1; {tries}");
        let outside = scene.command("sh".as_ref(), &["-c", &outside]).output().unwrap();
        if !outside.status.success() {
            eprintln!(
                "SKIPPED (in part): {}: what gcc checks addresses in: {outside:?}",
                scene.name()
            );
            continue;
        }
        let sanitize = format!("gcc -fsanitize=address main.c -o checked || exit 1; {tries}");
        let results = scene.run(&[&sanitize], &[]);
        assert!(results.starts_with("[OK]"), "{}: {results}", scene.name());
    }
}

#[test]
fn git_shows_and_compares() {
    if !there_is("git") {
        return;
    }
    for scene in as_root_and_as_a_user() {
        scene.base.sh("chown $(id -u) . workspace; cd workspace; git init -q .; echo a > a; git add a; git -c user.name=n -c user.email=e commit -qm first; echo b >> a");
        scene.hand_over();
        let results = scene
            .run(&["git log --oneline | cut -d' ' -f2; git diff --stat; git status --short"], &[]);
        assert!(
            results.contains("first") && results.contains("1 insertion"),
            "{}: {results}",
            scene.name()
        );
    }
}
