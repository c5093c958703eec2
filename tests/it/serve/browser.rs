//! The page in a real browser: Chromium without a window, driven through chromedriver.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Page, serve};
use crate::support::{PATIENCE, Project, wait_until};

/// A free port.
const ANY: &str = "127.0.0.1:0";

/// Sizes of a window and the colours that a person prefers.
const LOOKS: [(u32, &str); 4] = [(390, "light"), (390, "dark"), (1440, "light"), (1440, "dark")];

/// The text of axe, which finds what keeps people from using a page; None, and said so, where it is not installed.
static AXE: LazyLock<Option<String>> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/target/axe/node_modules/axe-core/axe.min.js");
    let axe = fs::read_to_string(path);
    axe.inspect_err(|e| eprintln!("SKIPPED: axe is not installed: {path}: {e}")).ok()
});

/// A browser with one page; it ends with the test.
struct Browser {
    driver: Child,
    port: u16,
    session: String,
}

impl Browser {
    /// None, and said so, where there is no such browser.
    fn start() -> Option<Self> {
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut driver = match command.spawn() {
            Ok(driver) => driver,
            Err(e) => {
                eprintln!("SKIPPED: no chromedriver: {e}");
                return None;
            }
        };
        let lines = BufReader::new(driver.stdout.take().unwrap()).lines().map_while(Result::ok);
        let port = lines.filter_map(|line| {
            line.split_once("successfully on port ")?.1.trim_end_matches('.').parse().ok()
        });
        let port = { port }.next().expect("it says its port");
        let mut browser = Self { driver, port, session: String::new() };
        let arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage"];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": { "args": arguments },
        } } });
        match browser.send("POST", "/session", &wanted) {
            Ok(made) => made["sessionId"].as_str().unwrap().clone_into(&mut browser.session),
            Err(why) => {
                eprintln!("SKIPPED: Chromium does not start: {why}");
                return None;
            }
        }
        Some(browser)
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).map_err(|e| e.to_string())?;
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).map_err(|e| e.to_string())?;
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        for line in reader.by_ref().lines() {
            let line = line.map_err(|e| e.to_string())?;
            if line.is_empty() {
                break;
            }
            if let Some(n) = line.to_lowercase().strip_prefix("content-length:") {
                length = n.trim().parse().unwrap();
            }
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer).map_err(|e| e.to_string())?;
        let mut answer: Value = serde_json::from_slice(&answer).map_err(|e| e.to_string())?;
        match &answer["value"]["error"] {
            Value::Null => Ok(answer["value"].take()),
            _ => Err(answer["value"]["message"].to_string()),
        }
    }

    /// Asks it for something of its session.
    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        self.send(method, &format!("/session/{}{path}", self.session), body)
            .unwrap_or_else(|why| panic!("{path}: {why}\n{}", self.text()))
    }

    #[track_caller]
    fn open(&self, url: &str) {
        self.ask("POST", "/url", &json!({ "url": url }));
    }

    /// What an expression is in the page; `given` is its argument.
    fn value(&self, expression: &str, given: &Value) -> Value {
        let body = json!({ "script": format!("const given = arguments[0]; return ({expression})"), "args": [given] });
        self.send("POST", &format!("/session/{}/execute/sync", self.session), &body)
            .unwrap_or_else(|why| panic!("{expression}: {why}"))
    }

    /// All that the page shows.
    fn text(&self) -> String {
        self.value("document.body.innerText", &Value::Null).as_str().unwrap().to_owned()
    }

    /// Waits until an expression is true.
    #[track_caller]
    fn wait_for(&self, expression: &str) {
        let begun = Instant::now();
        while self.value(&format!("Boolean({expression})"), &Value::Null) != true {
            assert!(
                begun.elapsed() < PATIENCE,
                "waited in vain for {expression} in\n{}",
                self.text()
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the element of this selector shows the text.
    #[track_caller]
    fn shows(&self, selector: &str, text: &str) {
        let [selector, text] = [selector, text].map(|it| json!(it).to_string());
        self.wait_for(&format!("document.querySelector({selector})?.innerText.includes({text})"));
    }

    #[track_caller]
    fn element(&self, selector: &str) -> String {
        let is_ready = format!("{selector}:not([aria-disabled=true])");
        self.wait_for(&format!("document.querySelector({})", json!(is_ready)));
        let body = json!({ "using": "css selector", "value": selector });
        let element = self.ask("POST", "/element", &body);
        element.as_object().unwrap().values().next().unwrap().as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn click(&self, selector: &str) {
        self.act(selector, "click", &json!({}));
    }

    /// Types a text, as a person does.
    #[track_caller]
    fn types(&self, selector: &str, text: &str) {
        self.act(selector, "value", &json!({ "text": text }));
    }

    #[track_caller]
    fn act(&self, selector: &str, how: &str, body: &Value) {
        // It may be drawn anew meanwhile, or be hidden until a turn has ended.
        let waits = |why: &str| why.contains("stale") || why.contains("not interactable");
        wait_until(&format!("{how} of {selector}"), || {
            let element = self.element(selector);
            let path = format!("/session/{}/element/{element}/{how}", self.session);
            match self.send("POST", &path, body) {
                Err(why) if !waits(&why) => panic!("{selector}: {why}\n{}", self.text()),
                acted => acted.is_ok(),
            }
        });
    }

    /// Looks at the page in all sizes and colours: nothing is cut off at its side, and axe has no serious finding.
    #[track_caller]
    fn is_usable(&self, what: &str) {
        let emulate = |command: &str, parameters: &Value| {
            let body = json!({ "cmd": format!("Emulation.{command}"), "params": parameters });
            self.ask("POST", "/goog/cdp/execute", &body);
        };
        for (width, colours) in LOOKS {
            let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500 });
            emulate("setDeviceMetricsOverride", &size);
            let feature = json!({ "name": "prefers-color-scheme", "value": colours });
            emulate("setEmulatedMedia", &json!({ "features": [feature] }));
            let cut_off = "document.documentElement.scrollWidth - innerWidth";
            assert_eq!(self.value(cut_off, &Value::Null), 0, "{what}, {width} px");
            let Some(axe) = &*AXE else { continue };
            let body = json!({ "script": format!("{axe}; {RUN_AXE}"), "args": [] });
            let found = self.ask("POST", "/execute/async", &body);
            assert_eq!(found, json!([]), "{what}, {width} px, {colours}: {found:#}");
        }
        emulate("clearDeviceMetricsOverride", &json!({}));
        emulate("setEmulatedMedia", &json!({ "features": [] }));
    }

    /// Pastes a text where nothing is typed.
    fn pastes(&self, text: &str) {
        let paste = "(() => { const data = new DataTransfer(); data.setData('text/plain', given); \
            document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })); })()";
        self.value(paste, &json!(text));
    }
}

/// Gives what axe finds that is serious, and where. What moves is looked at where it stops.
const RUN_AXE: &str = "const done = arguments[arguments.length - 1]; \
    document.getAnimations().forEach((it) => it.effect.getComputedTiming().endTime < Infinity && it.finish()); \
    axe.run({ resultTypes: ['violations'] }) \
        .then(({ violations }) => done(violations \
            .filter(({ impact }) => impact === 'serious' || impact === 'critical') \
            .map(({ id, nodes }) => [id, nodes.map((node) => node.html)])))";

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.send("DELETE", &format!("/session/{}", self.session), &Value::Null);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// The newest outbox in the project, by its name.
fn newest_outbox(base: &Project) -> String {
    base.names("outbox").pop().unwrap_or_default()
}

#[test]
fn a_session_from_its_task_to_words_at_the_end() {
    let Some(browser) = Browser::start() else { return };
    let base = Project::new();
    base.write("workspace/greet.py", "print('hello')\n");
    let (_daemon, Page { url, .. }) = serve(&base, ANY);
    browser.open(&url);
    assert_eq!(browser.value("location.hash.includes('token')", &Value::Null), false);

    browser.types("#task", "Greet the person by name in greet.py");
    browser.shows("#shown", "greet.py");
    browser.click("#shown-0");
    browser.shows("#shown", "Excluded by you");
    browser.is_usable("a new session");
    browser.click("#out-0");
    browser.wait_for("document.querySelector('#shown-0')?.checked");
    // Whoever uses a keyboard goes on from there.
    browser.wait_for("document.activeElement.closest('#shown')");
    browser.click("#begin");
    browser.shows("#outbox-title", "Outbox 1");
    browser.click("#copy");
    browser.shows("#notices", "Outbox 1 is copied");
    browser.is_usable("an outbox");

    let reply = "[EDIT_FILE path=\"greet.py\"]\n<<<<<<< SEARCH\nprint('hello')\n=======\nprint('hello, you')\n>>>>>>> REPLACE\n[/EDIT_FILE]\n[CREATE_FILE path=\"unwanted.txt\"]\nx\n[/CREATE_FILE]\n[RUN_COMMAND]\necho it ran\n[/RUN_COMMAND]\n";
    browser.pastes(reply);
    browser.shows("#preview .diff", "hello, you");
    browser.shows("#preview", "echo it ran");
    browser.wait_for("document.activeElement.id === 'preview-title'");
    browser.click("#step-2");
    browser.types("#why-2", "nobody wants it");
    browser.shows("#run", "Run 2 of 3 steps");
    browser.wait_for("!document.querySelector('#preview').innerText.includes('unwanted.txt')");
    browser.is_usable("a reply before it is executed");
    // Enter executes it where nothing is typed.
    browser.element("#run");
    browser.types("#step-1", "\u{e007}");
    browser.shows("#outbox-title", "Outbox 2");
    browser.shows("#view", "it ran");
    browser.shows("#view", "left out by the user: nobody wants it");
    browser.is_usable("results");
    assert_eq!(base.read("workspace/greet.py"), "print('hello, you')\n");
    assert!(!base.exists("workspace/unwanted.txt"));

    browser.pastes("[CREATE_FILE path=\".envrc\"]\nexport A=1\n[/CREATE_FILE]\n");
    browser.shows("#preview", "asks you");
    browser.click("#run");
    browser.shows("#question-title", "Your decision is needed");
    browser.shows(".question .diff", "export A=1");
    browser.is_usable("a question");
    assert!(!base.exists("workspace/.envrc"));
    browser.click("#approve");
    browser.shows("#outbox-title", "Outbox 3");
    assert_eq!(base.read("workspace/.envrc"), "export A=1\n");

    browser.pastes("[CREATE_FILE path=\"second.txt\"]\nx\n[/CREATE_FILE]\n");
    browser.click("#run");
    browser.shows("#outbox-title", "Outbox 4");
    assert!(base.exists("workspace/second.txt"));
    browser.click("#undo");
    browser.click("dialog [type=submit]");
    browser.shows("#outbox-title", "Outbox 5");
    assert!(!base.exists("workspace/second.txt"));
    browser.shows(".history", "undid turn 3");
    browser.is_usable("history");

    browser.click("#say");
    browser.types("#words", "Thank you so far");
    browser.click("dialog [type=submit]");
    browser.shows("#view", "Thank you so far");
    assert!(base.read(&format!("outbox/{}", newest_outbox(&base))).contains("Thank you so far"));

    browser.pastes("[RUN_COMMAND]\necho begun; sleep 300\n[/RUN_COMMAND]\n");
    browser.click("#run");
    browser.shows("#live-output", "begun");
    browser.is_usable("a turn");
    browser.click("#stop");
    browser.shows("#view", "interrupted by the user");
    browser.shows("#outbox-title", "Outbox 6");

    for (view, heading) in [("settings", "Settings"), ("doctor", "Doctor")] {
        browser.value("location.hash = given", &format!("#/{view}").into());
        browser.shows("#view h1", heading);
        browser.is_usable(heading);
    }

    // Nothing was loaded from elsewhere.
    let elsewhere = "performance.getEntriesByType('resource').filter((it) => !it.name.startsWith(location.origin)).length";
    assert_eq!(browser.value(elsewhere, &Value::Null), 0);
}

#[test]
fn only_what_was_seen_is_decided_on() {
    let Some(browser) = Browser::start() else { return };
    let base = Project::with_session();
    base.write("workspace/seen.txt", "one\n");
    let (_daemon, Page { url, .. }) = serve(&base, ANY);
    browser.open(&url);
    browser.shows("#outbox-title", "Outbox 1");

    let create = |path: &str| format!("[CREATE_FILE path=\"{path}\"]\nx\n[/CREATE_FILE]\n");
    browser.pastes(&[create("first/.envrc"), create("second/.envrc")].concat());
    browser.click("#run");
    browser.shows(".question", "first/.envrc");
    // A second click, 0.4 seconds after the next question appeared.
    let twice = "new MutationObserver((_, observer) => { \
        const next = document.querySelector('#approve'); \
        if (!next?.closest('.question').innerText.includes('second/.envrc')) return; \
        observer.disconnect(); \
        setTimeout(() => { next.click(); window.clicked = true; }, 400); \
        }).observe(document.body, { childList: true, subtree: true })";
    browser.value(twice, &Value::Null);
    browser.click("#approve");
    browser.wait_for("window.clicked");
    browser.element("#approve");
    browser.shows(".question", "second/.envrc");
    assert!(base.exists("workspace/first/.envrc"));
    assert!(!base.exists("workspace/second/.envrc"));
    browser.click("#approve");
    browser.shows("#outbox-title", "Outbox 2");
    assert!(base.exists("workspace/second/.envrc"));

    let edit = "[EDIT_FILE path=\"seen.txt\"]\n<<<<<<< SEARCH\none\n=======\ntwo\n>>>>>>> REPLACE\n[/EDIT_FILE]\n";
    browser.pastes(&(edit.to_owned() + &create("other.txt")));
    browser.element("#run");
    base.write("workspace/seen.txt", "one\nmore\n");
    browser.click("#step-2");
    browser.shows("#preview", "The files have changed since you looked.");
    browser.shows("#preview .diff", "more");
    browser.element("#looked");
    browser.value("document.querySelector('#run').click()", &Value::Null);
    browser.wait_for("document.querySelector('#run[aria-disabled=true]')");
    assert_eq!(base.read("workspace/seen.txt"), "one\nmore\n");
    browser.click("#looked");
    browser.click("#run");
    browser.shows("#outbox-title", "Outbox 3");
    assert_eq!(base.read("workspace/seen.txt"), "two\nmore\n");
}

#[test]
fn an_answer_that_comes_late_is_not_shown_over_a_newer_one() {
    let Some(browser) = Browser::start() else { return };
    let base = Project::with_session();
    let (_daemon, Page { url, .. }) = serve(&base, ANY);
    browser.open(&url);
    browser.shows("#outbox-title", "Outbox 1");
    browser.shows("#connection", "connected");
    // The next answer about the session is held back until there is a newer one.
    let holds = "(() => { \
        const original = window.fetch; \
        window.fetch = async (url, init) => { \
            const answer = await original(url, init); \
            if (window.held || !url.endsWith('/status') || !init.body.includes('session')) return answer; \
            window.held = true; \
            await new Promise((free) => { window.free = free; }); \
            setTimeout(() => { window.shown = true; }, 300); \
            return answer; \
        }; })()";
    browser.value(holds, &Value::Null);
    base.run(&["say", "first"]).ok();
    browser.wait_for("window.held");
    base.run_with(&["apply", "-"], "[MESSAGE]\nhi\n[/MESSAGE]\n").ok();
    browser.value("setTimeout(window.free, 1000)", &Value::Null);
    browser.wait_for("window.shown");
    browser.shows(".head .meta", "outbox 2");
}

/// Runs as a script wherever it is taken as markup, and hides what follows it from the eye.
const HOSTILE: &str =
    "<img src=x onerror=\"window.ran=1\"><script>window.ran=1</script>\u{202e}txt.exe";

#[test]
fn whatever_files_commands_and_models_say_is_text() {
    let Some(browser) = Browser::start() else { return };
    let base = Project::new();
    let name = "a <img src=x onerror=ran=1>.html";
    base.write(&format!("workspace/{name}"), format!("{HOSTILE}\n"));
    base.write("workspace/plain.txt", "plain\n");
    let (_daemon, Page { url, .. }) = serve(&base, ANY);
    browser.open(&url);
    browser.types("#task", "Look at <b>all</b> of <img src=x onerror=window.ran=1>");
    browser.shows("#shown", name);
    browser.click("#begin");
    browser.shows("#outbox-title", "Outbox 1");

    let reply = format!(
        "[CREATE_FILE path=\"{name}\"]\n{HOSTILE}\n<b>2</b>\n[/CREATE_FILE]\n[MESSAGE]\n{HOSTILE}\n[/MESSAGE]\n[RUN_COMMAND]\nprintf '%s\\n' '{HOSTILE}'; exit 3\n[/RUN_COMMAND]\n[READ_FILE path=\"{HOSTILE}\"]\n[CREATE_FILE path=\".envrc\"]\n{HOSTILE}\n[/CREATE_FILE]\n"
    );
    browser.pastes(&reply.replace('"', "&quot;"));
    browser.shows("#preview", "step");
    browser.value("document.querySelector('#reply').value = ''", &Value::Null);
    browser.pastes(&reply);
    browser.shows("#preview .diff", "<script>window.ran=1</script>");
    browser.shows("#preview .diff", "<U+202E>");
    browser.click("#run");
    browser.shows(".question .diff", "<script>window.ran=1</script><U+202E>txt.exe");
    browser.shows(".steps", "onerror");
    browser.click("#deny");
    browser.shows("#outbox-title", "Outbox 2");
    browser.click(".history summary");
    browser.shows(".history .diff", "<script>window.ran=1</script>");
    browser.pastes(&format!("[DONE]\n{HOSTILE}\n[/DONE]\n"));
    browser.click("#run");
    browser.shows("#view .prose", "onerror");

    let found = "[window.ran ?? null, document.querySelectorAll('img').length, \
        document.querySelectorAll('script').length, document.body.innerText.includes('\\u202e')]";
    assert_eq!(browser.value(found, &Value::Null), json!([null, 1, 1, false]));
}

#[test]
fn a_page_of_another_start_says_what_to_do() {
    let Some(browser) = Browser::start() else { return };
    let base = Project::with_session();
    let (daemon, Page { url, host, .. }) = serve(&base, ANY);
    browser.open(&url);
    browser.shows("#outbox-title", "Outbox 1");
    browser.shows("#connection", "connected");
    daemon.stop();
    browser.shows("#connection", "Connection lost");
    browser.value("document.getElementById('reply').value = given", &"my words".into());
    let (_again, Page { url, .. }) = serve(&base, &host);
    browser.shows("#view", "Open the one that it printed last");
    browser.shows("#view", "my words");
    browser.value("location.assign(given)", &url.into());
    browser.shows("#outbox-title", "Outbox 1");
    browser.shows("#connection", "connected");
}
