//! Work that is done once: it is counted, never timed.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use deaddrop::clock::Timestamp;
use deaddrop::daemon::{self, Serve};
use deaddrop::engine::{Clock, Engine};
use deaddrop::error::Result;
use deaddrop::executor::{Executor, InterruptedStep, PreviewExecutor, WriteAhead};
use deaddrop::outbox::{RenderedOutbox, render};
use deaddrop::policy::{Grant, Verdict};
use deaddrop::protocol::{
    Detail, Digest, Effect, Excerpt, Failure, FileVersion, Kind, Operation, Part, RelPath,
    Revision, parsed, tags,
};
use deaddrop::session::Session;
use deaddrop::settings::{Config, Layer};
use deaddrop::tokens;
use deaddrop::turn::{self, TurnInput};
use deaddrop::watch::Stop;
use deaddrop::workspace::walk::Walk;
use deaddrop::workspace::{Contents, PathFacts, Workspace, overview};

use crate::outbox::budget::{asked_for, environment, outcome, ran, rendered};
use crate::support::{self, ID};

/// An edit, and so many long lines around what it changed.
fn edited(lines: usize) -> Detail {
    let seen = || FileVersion::whole(b"x\n");
    let lines = (1..=lines).map(|n| (n, format!("line {n} of it ").repeat(20)));
    let excerpt = Excerpt { lines: lines.collect(), more: 0 };
    let revision = Revision { before: seen(), after: seen(), excerpt, fuzzy_matches: vec![] };
    let path = RelPath::parse("a.py").unwrap();
    Detail::Replaced { path, edits: 1, revision: Some(Box::new(revision)) }
}

#[test]
fn a_walk_is_sorted_once_however_often_its_outbox_is_cut() {
    let huge = "    value = compute(value, other)\n".repeat(3_000);
    let results = (0..50).map(|n| ran("make", &format!("output {n}\n").repeat(300), 0)).collect();
    let (session, files) = asked_for(&[("huge.py", &huge)], results);
    let names: Vec<String> = (0..3_000).map(|n| format!("folder{}/file_{n}.py", n % 50)).collect();
    let walk = Walk::of(names.iter().map(|name| (name.as_str(), 7)));
    for limit in [4_000, 8_000, 24_000, 1_000_000] {
        let before = overview::sorted_count();
        let RenderedOutbox { text, .. } = render(&session, &environment(limit), &walk, &files);
        assert_eq!(overview::sorted_count() - before, 1, "for {limit} tokens");
        assert!(tokens::count(&text) <= limit, "for {limit} tokens");
    }
}

#[test]
fn lines_around_an_edit_are_shortened_to_their_room() {
    let (session, files) = asked_for(&[], vec![outcome(Kind::Edit, edited(200))]);
    let RenderedOutbox { text, tokens, .. } = rendered(&session, &files, 8_000);
    assert!(tokens <= 8_000, "{tokens}");
    assert!(text.contains("[OK] EDIT_FILE: Edited 'a.py' (1 replacement)\n    1| line 1 of it "));
    assert!(text.contains(" more lines left out for room ...]\n"), "{text}");
    let whole = rendered(&session, &files, 100_000).text;
    assert!(whole.contains("\n  200| line 200 of it ") && !whole.contains("left out for room"));
}

#[test]
fn results_that_fit_are_whole_whatever_is_cut_beside_them() {
    // Few tokens for as many characters.
    let output = "international information configuration ".repeat(600);
    let (session, files) =
        asked_for(&[("a.py", &"a = 1\n".repeat(5_000))], vec![ran("make", output.trim_end(), 0)]);
    let RenderedOutbox { text, tokens, .. } = rendered(&session, &files, 8_000);
    assert!(tokens <= 8_000, "{tokens}");
    assert!(text.contains(output.trim_end()), "{text}");
    assert!(text.contains(" are left out for room: [READ_FILE path=\"a.py\""), "{text}");
}

/// A preview that counts how often it is read.
struct Counting<'a> {
    inner: PreviewExecutor<'a>,
    reads: Cell<usize>,
}

impl Executor for Counting<'_> {
    fn perform(
        &mut self,
        operation: &Operation,
        opens: Grant,
        before: &mut dyn FnMut(WriteAhead<'_>) -> Result<()>,
    ) -> Result<Detail> {
        self.inner.perform(operation, opens, before)
    }

    fn read(&self, path: &RelPath, part: Part) -> Result<std::result::Result<Contents, Failure>> {
        self.reads.set(self.reads.get() + 1);
        self.inner.read(path, part)
    }

    fn path_facts(&self, operation: &Operation) -> Result<Option<PathFacts>> {
        self.inner.path_facts(operation)
    }

    fn resolved_path(&self, operation: &Operation) -> Result<Option<RelPath>> {
        self.inner.resolved_path(operation)
    }

    fn content_digest(&self, operation: &Operation) -> Result<Option<Digest>> {
        self.inner.content_digest(operation)
    }

    fn inspect_interrupted(
        &mut self,
        effect: &Effect,
        operation: &Operation,
    ) -> Result<InterruptedStep> {
        self.inner.inspect_interrupted(effect, operation)
    }
}

#[test]
fn files_are_read_once_for_an_end_that_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), "x\n").unwrap();
    let workspace = Workspace::open(folder.path(), &[], &[]).unwrap();
    let mut executor = Counting { inner: PreviewExecutor::new(&workspace), reads: Cell::new(0) };
    let reply = "[READ_FILE path=\"a\"]\n[READ_FILE path=\"nope\"]\n[DONE if=\"ok\"]\nx\n[/DONE]\n";
    let input = TurnInput {
        steps: &tags::parse(reply).steps,
        known: &BTreeMap::new(),
        decision: None,
        session: &Session::default(),
        judge: &|_, _| Ok(Verdict::Allow),
        question_id: None,
        stopped: None,
        now: &Timestamp::now,
    };
    let outcomes = turn::run(&input, &mut executor, &mut (), &mut ()).unwrap().outcomes;
    let why = "not counted: 1 operation before it failed (READ_FILE on line 2 of the reply), so the session goes on";
    let Detail::Ineffective { reason, .. } = &outcomes[2].detail else { panic!("{outcomes:?}") };
    assert_eq!((reason.as_str(), outcomes[2].warnings.len()), (why, 0));
    assert!(outcomes[0].success() && !outcomes[1].success(), "{outcomes:?}");
    // And once when all is done, for what came after it.
    assert_eq!(executor.reads.get(), 2 * 2);
}

/// The project of `scene`, held by this thread.
fn held(scene: &support::Project) -> Engine {
    // The library in this process has the tests' own folder for what it notes.
    let state = std::env::var_os("XDG_STATE_HOME").map(std::path::PathBuf::from);
    state.iter().for_each(|state| scene.agree_in(state));
    let config = Config::load_trusted(scene.path(), Layer::default()).unwrap();
    Engine::open(config, Clock::default(), Stop::default(), None, &mut ()).unwrap()
}

/// How often replies are parsed in one look into the inbox.
fn parsed_in_a_round(base: &mut Engine) -> usize {
    let before = parsed();
    daemon::serve_once(base, &Serve::All, &Stop::default(), &mut ()).unwrap();
    parsed() - before
}

/// A file in the inbox that was written a while ago.
fn drop_old(scene: &support::Project, name: &str, text: &str) {
    let path = scene.write(&format!("inbox/{name}"), text);
    support::set_time(&path, SystemTime::now() - Duration::from_mins(1));
}

#[test]
fn replies_that_wait_and_stay_as_they_are_cost_a_round_nothing() {
    let scene = crate::approvals::asked::scene();
    scene.run_with(&["apply", "-"], crate::approvals::asked::ASKS).with_code(3);
    let address = format!("[REPLY session=\"{ID}\" sequence=\"2\"]\n");
    for n in 0..20 {
        drop_old(&scene, &format!("r{n}.txt"), &format!("{address}[DONE]\n{n}\n[/DONE]\n"));
    }
    let mut base = held(&scene);
    assert_eq!(parsed_in_a_round(&mut base), 20);
    assert_eq!(parsed_in_a_round(&mut base), 0);
    drop_old(&scene, "r7.txt", &format!("{address}[DONE]\nanother\n[/DONE]\n"));
    assert_eq!(parsed_in_a_round(&mut base), 1);
    assert_eq!(scene.names("inbox").iter().filter(|name| name.starts_with('r')).count(), 20);
}

#[test]
fn a_reply_is_parsed_twice_at_most_on_its_way() {
    let scene = support::Project::with_session();
    let mut base = held(&scene);
    let create = "[CREATE_FILE path=\"a\"]\nx\n[/CREATE_FILE]\n";
    for (sequence, reply, most) in [
        // To find its session, and once it is taken.
        (1, format!("[REPLY session=\"{ID}\" sequence=\"1\"]\n{create}"), 2),
        (2, create.to_owned(), 1),
    ] {
        scene.write(&format!("inbox/r{sequence}.txt"), reply);
        assert_eq!(parsed_in_a_round(&mut base), most);
        assert!(scene.outbox(sequence + 1).contains("[OK] CREATE_FILE"));
    }
}
