//! A session on its way whose operations are carried out by a second deaddrop, in a folder of its own:
//! host, guest and what connects them can be stopped one by one.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;

use crate::scene::Scene;
use crate::support::{PATIENCE, Project, Run, program, set_time, wait_until};

/// How many commands the replies hold; the n-th adds its number to `trace` and makes `once-n`, which
/// must not be there yet.
pub(super) const COMMANDS: usize = 7;
/// How many replies there are. The last ends the session.
pub(super) const TURNS: usize = 4;

fn command(n: usize, meanwhile: &str) -> String {
    format!(
        "[RUN_COMMAND]\necho {n} >> trace; {meanwhile}test ! -e once-{n} && : > once-{n}\n[/RUN_COMMAND]\n"
    )
}

/// The n-th reply, from 1. None of its operations comes to the same when it is done twice.
pub(super) fn reply(n: usize) -> String {
    match n {
        1 => format!(
            "[CREATE_FILE path=\"a.txt\"]\none\ntwo\nthree\n[/CREATE_FILE]\n{}\
             [EDIT_FILE path=\"a.txt\" start_line=\"2\" end_line=\"2\"]\ntwo and\na half\n[/EDIT_FILE]\n\
             {}[READ_FILE path=\"a.txt\"]\n",
            command(1, ""),
            command(2, "/bin/sleep 0.1; ")
        ),
        2 => format!(
            "{}[CREATE_FILE path=\"deep/b.txt\"]\nfirst\n[/CREATE_FILE]\n[DELETE_FILE path=\"a.txt\"]\n{}[MESSAGE]\nGood\n[/MESSAGE]\n",
            command(3, ""),
            command(4, "/bin/sleep 0.2; ")
        ),
        3 => format!(
            "[MESSAGE]\nOn\n[/MESSAGE]\n[EDIT_FILE path=\"deep/b.txt\" start_line=\"1\" end_line=\"1\"]\nzero\nfirst\n[/EDIT_FILE]\n{}{}",
            command(5, "/bin/sleep 0.05; "),
            command(6, "")
        ),
        _ => format!("{}[DONE]\nAll of it\n[/DONE]\n", command(7, "")),
    }
}

/// How the guest is reached, and what it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// The program that the host starts is the guest.
    Direct,
    /// The same, with strace between where there is a file `inject`: once, with the options in it.
    Traced,
    /// A relay stands between, whose death the guest survives.
    Relay,
    /// The same, and the guest serves a folder that is no project's: it takes no lock, so a
    /// second one can begin beside the first.
    Rooted,
}

/// What can be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Victim {
    Host,
    Guest,
    Connection,
}

/// A host and its guest.
pub(super) struct Pair {
    pub(super) scene: Scene,
    pub(super) guest: Project,
    pub(super) way: Way,
    /// How often the guest was killed: so many commands may be lost, and no more.
    pub(super) guest_kills: usize,
    /// Whether a process of the guest's was killed, such as one that tries out the sandbox: commands may fail.
    pub(super) struck_another: bool,
    /// How often the host was started to go on.
    pub(super) starts: usize,
}

impl Pair {
    pub(super) fn new(way: Way) -> Self {
        let (scene, guest) = (Scene::new(), Project::new());
        let (guest_kills, struck_another, starts) = (0, false, 0);
        let pair = Self { scene, guest, way, guest_kills, struck_another, starts };
        let (host, guest) = (pair.scene.base.path().display(), pair.guest.path().display());
        fs::create_dir_all(pair.guest.at(pair.tree())).unwrap();
        // Each guest asks every tool that it finds for its version, which takes longer than all else.
        let env = format!("env PATH=/none XDG_STATE_HOME={guest}/state");
        let root = if way == Way::Rooted { format!(" --root {guest}/tree") } else { String::new() };
        let served = format!("{env} {} -C {guest} rpc{root}", program().display());
        let script = match way {
            Way::Direct => format!("exec {served}\n"),
            Way::Traced => format!(
                "if mv inject injected 2>/dev/null; then\n  \
                 exec strace -f -q -y -s 300 $(cat injected) -o guest.trace \
                 {served}\nfi\nexec {served}\n"
            ),
            // Nothing of the relay may keep the host from seeing that the guest is gone.
            Way::Relay | Way::Rooted => format!(
                "to={guest}/in.$$ from={guest}/out.$$\nmkfifo $to $from\n\
                 setsid {served} < $to > $from 2>> {guest}/err &\necho $! >> guests\n\
                 cat $from &\necho $$ >> relays\nexec > /dev/null\ncat > $to\nwait\n"
            ),
        };
        let script = pair.scene.base.write("reach.sh", format!("cd {host}\n{script}"));
        let settings = format!("[guest]\ncommand = {}\n", json!(["/bin/sh", script]));
        pair.scene.base.write("deaddrop.toml", settings);
        pair
    }

    /// Where in the guest's folder operations are carried out.
    pub(super) fn tree(&self) -> &'static str {
        if self.way == Way::Rooted { "tree" } else { "workspace" }
    }

    pub(super) fn drop_reply(&self, n: usize) {
        let base = &self.scene.base;
        let path = base.write(&format!("r{n}.part"), reply(n));
        set_time(&path, SystemTime::UNIX_EPOCH + Duration::from_secs(n as u64));
        fs::rename(path, base.at(&format!("inbox/r{n}.txt"))).unwrap();
    }

    pub(super) fn drop_replies(&self) {
        (1..=TURNS).for_each(|n| self.drop_reply(n));
    }

    /// Lets the host go on undisturbed until there is nothing left to do.
    pub(super) fn go_on(&mut self) {
        let begun = Instant::now();
        loop {
            self.starts += 1;
            let run = Run::of(&mut self.scene.command(), "");
            self.scene.look();
            match ended(run.code, &run.stderr) {
                End::Done => return,
                // What it was doing may have to end first.
                End::Away if begun.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(20)),
                _ => return self.scene.wrong.push(format!("a start ended with {run:?}")),
            }
        }
    }

    /// Kills what there is of this now; gives whether there was anything.
    pub(super) fn kill(&mut self, victim: Victim, host: &mut Child) -> bool {
        let is_there = match victim {
            Victim::Host => host.try_wait().unwrap().is_none() && host.kill().is_ok(),
            Victim::Guest => self.last("guests", "").is_some_and(|pid| kill(&pid)),
            Victim::Connection => {
                let relay = self.last("relays", "reach.sh");
                relay.is_some_and(|pid| kill(&format!("-{pid}")))
            }
        };
        self.guest_kills += usize::from(is_there && victim == Victim::Guest);
        is_there
    }

    /// The process that was noted last in that list, if it lives and is ours.
    fn last(&self, list: &str, script: &str) -> Option<String> {
        let pids = fs::read_to_string(self.scene.base.at(list)).unwrap_or_default();
        let pid = pids.strip_suffix('\n')?.lines().last()?.to_owned();
        self.is_ours(&pid, script).then_some(pid)
    }

    fn is_ours(&self, pid: &str, script: &str) -> bool {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        let folder = if script.is_empty() { self.guest.path() } else { self.scene.base.path() };
        line.contains(&*folder.to_string_lossy()) && line.contains(script)
    }

    /// Waits until nothing serves any more.
    pub(super) fn wait_for_guests(&self) {
        let pids = fs::read_to_string(self.scene.base.at("guests")).unwrap_or_default();
        wait_until("the end of all guests", || !pids.lines().any(|pid| self.is_ours(pid, "")));
    }

    /// Starts the host beside the test; what it says goes to `daemon.log`.
    pub(super) fn start(&self, arguments: &[&str]) -> Child {
        let log = fs::File::create(self.scene.base.at("daemon.log")).unwrap();
        let mut command = self.scene.base.command(arguments);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        command.spawn().unwrap()
    }

    /// The numbers that the commands left.
    pub(super) fn trace(&self) -> Vec<usize> {
        let text = fs::read_to_string(self.guest.at(self.tree()).join("trace")).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap_or_default()).collect()
    }
}

/// How a host ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// There is nothing left to do.
    Done,
    /// It was killed.
    Killed,
    /// It could not go on without its guest, and said so.
    Away,
    Otherwise,
}

pub(super) fn ended(code: Option<i32>, said: &str) -> End {
    match code {
        Some(0) => End::Done,
        Some(5) if said.contains("no open session") => End::Done,
        Some(1) if said.contains("cannot be used") => End::Away,
        None => End::Killed,
        _ => End::Otherwise,
    }
}

fn kill(pid: &str) -> bool {
    let killed =
        Command::new("kill").args(["-s", "KILL", "--", pid]).stderr(Stdio::null()).status();
    killed.is_ok_and(|status| status.success())
}
