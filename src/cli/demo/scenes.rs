//! What the model says in the demonstration, one reply a scene.

/// What the model says, and what a person should see in it.
pub(super) struct Scene {
    pub(super) title: &'static str,
    pub(super) why: &'static str,
    /// Without its first line, which the outbox gives.
    pub(super) reply: &'static str,
}

pub(super) const SCENES: [Scene; 4] = [
    Scene {
        title: "The first reply: a file, and a command that tries it",
        why: "You would copy this from the chat, and save it in the inbox. Its first line, which the outbox gave, says what it answers.",
        reply: "\
[CREATE_FILE path=\"greet.sh\"]
echo \"Hello, $1.\"
[/CREATE_FILE]
[RUN_COMMAND]
sh greet.sh Ada
[/RUN_COMMAND]
",
    },
    Scene {
        title: "The second: an edit, and a file where none may be",
        why: "The model has seen what its command printed. Its edit names the text that is to change; and its note would lie outside of the project, which is refused. The rest is carried out all the same.",
        reply: "\
[EDIT_FILE path=\"greet.sh\"]
<<<<<<< SEARCH
echo \"Hello, $1.\"
=======
echo \"Hello, ${1:-world}.\"
>>>>>>> REPLACE
[/EDIT_FILE]
[RUN_COMMAND]
sh greet.sh
[/RUN_COMMAND]
[CREATE_FILE path=\"../notes.txt\"]
for later
[/CREATE_FILE]
",
    },
    Scene {
        title: "The third: something that only you may allow",
        why: "A shell would run what stands in .envrc as soon as you enter the folder. So the model cannot write it by itself: all waits for you.",
        reply: "\
[CREATE_FILE path=\".envrc\"]
export GREETING=Hello
[/CREATE_FILE]
",
    },
    Scene {
        title: "The last: done",
        why: "The model has nothing more to do, so there is no further outbox, and deaddrop ends.",
        reply: "\
[DONE]
greet.sh greets whom you name, or the world.
[/DONE]
",
    },
];
