//! What commands have for themselves under a server (HOME and `/tmp`), and what becomes of it when the
//! server ends or is killed, whatever they made there.

use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::client::{Client, Server};
use crate::scene::{Scene, Way};
use crate::support::wait_until;

/// Makes what a careless removal would stumble over: in a HOME, by whom commands run as.
const ODD: &str = "mkdir -p a/b/c a/x l && touch a/b/c/f && ln -s / l/root && ln -s \"$KEPT\" kept && ln -s . l/loop && mkfifo l/pipe && chmod 0 a/b/c a/b a/x a";
/// So much that it takes a while: a tree too deep for a recursion, and many files.
const DEEP: &str = "mkdir -p $(printf 'd/%.0s' $(seq 5000))";
const MANY: &str = "seq 5000 | xargs touch";
/// So long a slow disk may take to remove that.
const SLOW: Duration = Duration::from_mins(1);

/// A server of the scene's project, and a client of it.
fn serve(scene: &Scene) -> (Server, Client) {
    let socket = scene.base.at("agent.sock");
    let mut command = scene.command(&scene.program, &["rpc", "--unix", "agent.sock"]);
    let sandbox = format!("{:?}", scene.asked).to_lowercase();
    command.args(["--sandbox", &sandbox]).stdin(Stdio::null());
    let server = Server::start(&mut command);
    wait_until("the server", || server.said().contains("Serving "));
    (server, Client::unix(&socket))
}

/// Makes these things in HOME, which a command brings into being. Walls make deep trees slow to make,
/// so that is done without them.
fn make(scene: &Scene, client: &mut Client, own: &str, script: &str) {
    let answer = client.ask(1, "exec", &json!({"cmd": "echo made > ~/made && cat ~/made"}));
    assert_eq!(answer["result"]["stdout"], "made\n", "{}: {answer}", scene.name());
    let kept = scene.base.at("kept");
    let script = format!("KEPT='{}'; cd sessions/{own}/own/home && {script}", kept.display());
    let mut command = scene.command(Path::new("/bin/sh"), &["-c", &script]);
    assert!(command.status().unwrap().success(), "{}: {script}", scene.name());
}

/// What lies in deaddrop's own folder beside the rest.
fn left(scene: &Scene) -> Vec<String> {
    let names = scene.base.names("sessions");
    names.into_iter().filter(|n| [".rpc-", ".gone-"].iter().any(|own| n.starts_with(own))).collect()
}

/// As whoever runs the tests, and as an ordinary user.
fn scenes() -> impl Iterator<Item = Scene> {
    [Way::AsItIs, Way::OrdinaryUser].into_iter().filter_map(|way| {
        let scene = Scene::new(way)?;
        scene.base.write("kept/file", "kept");
        scene.hand_over();
        Some(scene)
    })
}

#[test]
fn whatever_commands_made_is_put_aside_and_goes_with_the_server_or_after_it() {
    for scene in scenes() {
        let (mut server, mut client) = serve(&scene);
        let [own] = &left(&scene)[..] else { panic!("{:?}", left(&scene)) };
        let much = if scene.way == Way::AsItIs { DEEP } else { MANY };
        make(&scene, &mut client, own, &format!("{much} && {ODD} && chmod 0 .. ."));
        let begun = Instant::now();
        server.signal("TERM");
        assert_eq!(server.wait().code(), Some(0), "{}", scene.name());
        assert!(begun.elapsed() < Duration::from_secs(25), "{}", scene.name());
        // A slow disk leaves some of it to those that come later.
        assert!(left(&scene).iter().all(|name| name.starts_with(".gone-")), "{}", scene.name());
        let (mut server, _client) = serve(&scene);
        let begun = Instant::now();
        while left(&scene).len() > 1 {
            assert!(begun.elapsed() < SLOW, "{}: {:?}", scene.name(), left(&scene));
            thread::sleep(Duration::from_millis(20));
        }
        server.signal("TERM");
        server.wait();
        assert_eq!(left(&scene), [""; 0], "{}", scene.name());
        assert_eq!(scene.base.read("kept/file"), "kept");
    }
}

#[test]
fn what_a_killed_server_left_is_gone_after_the_next_start() {
    for scene in scenes() {
        let (mut server, mut client) = serve(&scene);
        let [own] = &left(&scene)[..] else { panic!("{:?}", left(&scene)) };
        make(&scene, &mut client, own, &format!("{ODD} && chmod 0 ../.. .. ."));
        server.signal("KILL");
        server.wait();
        let own = scene.base.at(&format!("sessions/{own}"));
        let (mut server, _client) = serve(&scene);
        wait_until("what was left", || !own.exists() && left(&scene).len() == 1);
        server.signal("TERM");
        assert_eq!(server.wait().code(), Some(0));
        assert_eq!(left(&scene), [""; 0], "{}", scene.name());
        assert_eq!(scene.base.read("kept/file"), "kept");
    }
}
