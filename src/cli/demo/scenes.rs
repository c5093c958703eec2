//! The steps of the demonstration, with what the model says in them.

/// What a person does in a step, and what they should see in it.
pub(super) struct Scene {
    pub(super) title: &'static str,
    pub(super) why: &'static str,
    /// What the model says, if it does.
    pub(super) reply: &'static str,
    /// The commands that are typed.
    pub(super) commands: &'static [&'static [&'static str]],
}

pub(super) const SCENES: [Scene; 7] = [
    Scene {
        title: "A project",
        why: "deaddrop works on a folder of yours. `init` makes it ready: inbox, outbox and sessions go to .deaddrop/, which git ignores and no command sees.",
        reply: "",
        commands: &[&["init"]],
    },
    Scene {
        title: "A task",
        why: "It writes an outbox, a text with all that the model needs, for you to paste into any chat. Without --no-watch it would wait for replies in the inbox.",
        reply: "",
        commands: &[&["new", "--no-watch", "Write a script that greets people"]],
    },
    Scene {
        title: "The first reply: a file, and a command that tries it",
        why: "You would copy this from the chat. With -v, deaddrop shows what commands print, too.",
        reply: "\
[CREATE_FILE path=\"greet.sh\"]
echo \"Hello, $1.\"
[/CREATE_FILE]
[RUN_COMMAND]
sh greet.sh Ada
[/RUN_COMMAND]
",
        commands: &[&["apply", "-v", "../reply.txt"]],
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
        commands: &[&["apply", "-v", "../reply.txt"]],
    },
    Scene {
        title: "Second thoughts: look at a turn, and take it back",
        why: "You can see what each turn changed, take it back, and have it again; the next outbox tells the model so.",
        reply: "",
        commands: &[&["diff"], &["undo"], &["redo"]],
    },
    Scene {
        title: "The third: something that only you may allow",
        why: "A shell would run what stands in .envrc as soon as you enter the folder. So the model cannot write it by itself: all waits for you. You look at it, and allow it, this once.",
        reply: "\
[CREATE_FILE path=\".envrc\"]
export GREETING=Hello
[/CREATE_FILE]
",
        commands: &[&["apply", "../reply.txt"], &["approve"]],
    },
    Scene {
        title: "The last: done",
        why: "The model has nothing more to do, so there is no further outbox.",
        reply: "\
[DONE]
greet.sh greets whom you name, or the world.
[/DONE]
",
        commands: &[&["apply", "../reply.txt"]],
    },
];
