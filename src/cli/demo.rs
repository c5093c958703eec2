//! `demo`: plays a whole session in a temporary folder, and explains each step. It runs the real program on real files;
//! only the replies are prepared.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use serde::Deserialize;
use serde_json::json;

use super::prompt::Prompt;
use super::{EXIT_WAITS, output, rows};
use crate::error::{Error, Result};
use crate::program;
use crate::terminal::{Stream, Styled};
use crate::watch::Stop;

/// The steps of the demonstration.
#[derive(Deserialize)]
struct Scenes {
    scene: Vec<Scene>,
}

/// One step: what a person does, and what they should notice.
#[derive(Deserialize)]
struct Scene {
    title: String,
    why: String,
    /// The model's reply, if the step has one.
    reply: Option<String>,
    /// The commands that the person types.
    commands: Vec<Vec<String>>,
}

/// The beginning of each row of replies and command output.
const BAR: &str = "  │ ";

pub(super) fn demo(keep: bool) -> Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let mut folder = tempfile::Builder::new()
        .prefix("deaddrop-demo-")
        .tempdir()
        .map_err(|e| Error::io("make a folder in", &std::env::temp_dir(), e))?;
    folder.disable_cleanup(keep);
    let path = folder.path().canonicalize();
    let path = path.map_err(|e| Error::io("open the folder", folder.path(), e))?;
    let project = path.join("project");
    fs::create_dir(&project).map_err(|e| Error::io("make the folder", &project, e))?;
    let stage = Stage { path: &path, stop };
    let Scenes { scene: scenes } =
        toml::from_str(include_str!("data/demo.toml")).expect("the table is valid");
    for (n, scene) in scenes.iter().enumerate() {
        stage.play(n + 1, scene)?;
    }
    drop(folder);
    if keep {
        let kept = json!({ "kept": path.display().to_string() });
        output::print(kept, || format!("\nIts files are in {}", path.display()));
    } else {
        tell(
            "\nIts files are removed. To work on your own project, run `deaddrop init`, then `deaddrop new \"your task\"`.",
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder of the demonstration, and how it is shown.
struct Stage<'a> {
    path: &'a Path,
    stop: Stop,
}

impl Stage<'_> {
    /// Explains a step, and runs its commands.
    fn play(&self, number: usize, scene: &Scene) -> Result<()> {
        if number > 1 {
            self.pause()?;
        }
        let title = output::bold(&format!("{number}. {}", scene.title));
        tell(Styled::from("\n") + title + format!("\n{}\n", scene.why));
        if let Some(reply) = &scene.reply {
            let file = self.path.join("reply.txt");
            fs::write(&file, reply).map_err(|e| Error::io("write", &file, e))?;
            show(reply);
        }
        for words in &scene.commands {
            let typed = words
                .iter()
                .map(|word| if word.contains(' ') { format!("\"{word}\"") } else { word.clone() });
            tell(format!("\n$ deaddrop {}\n", typed.collect::<Vec<_>>().join(" ")));
            self.run(words)?;
        }
        Ok(())
    }

    /// If a person is watching, waits for Enter, so that they can read.
    fn pause(&self) -> Result<()> {
        if !output::wants_json() && Stream::Out.is_terminal() && !self.stop.is_asked() {
            let _ = Prompt::show("\nEnter shows the next step. ").map(Prompt::answer);
        }
        if self.stop.is_asked() { Err(Error::interrupted()) } else { Ok(()) }
    }

    /// Runs deaddrop without the person's own settings, and shows its output.
    fn run(&self, words: &[String]) -> Result<()> {
        let fail = |e| Error::io("run", "deaddrop".as_ref(), e);
        let (mut reader, writer) = io::pipe().map_err(fail)?;
        let mut command = Command::new(program::own_executable().map_err(fail)?);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("DEADDROP_") {
                command.env_remove(name);
            }
        }
        command.env_remove("NOTIFY_SOCKET").env("XDG_CONFIG_HOME", self.path.join("settings"));
        command.env("XDG_STATE_HOME", self.path.join("state"));
        // The output is shown behind the bar, so the rows have less room.
        let width = rows::terminal_width().saturating_sub(BAR.chars().count());
        command.env("COLUMNS", width.to_string()).args(words);
        command.current_dir(self.path.join("project")).stdin(Stdio::null());
        if output::wants_json() {
            command.arg("--json").stdout(writer).stderr(Stdio::null());
        } else {
            command.stdout(writer.try_clone().map_err(fail)?).stderr(writer);
        }
        let mut child = command.spawn().map_err(fail)?;
        // Close this process's copies of the pipe's writing end. Otherwise reading would never end.
        drop(command);
        let mut said = String::new();
        reader.read_to_string(&mut said).map_err(fail)?;
        if output::wants_json() {
            said.lines().for_each(output::json_text);
        }
        show(&said);
        let ended = child.wait().map_err(fail)?;
        if self.stop.is_asked() {
            return Err(Error::interrupted());
        }
        match ended.code() {
            Some(code) if code == 0 || code == i32::from(EXIT_WAITS) => Ok(()),
            _ => Err(Error::failed(format!("`deaddrop {}` failed: {said}", words.join(" ")))),
        }
    }
}

fn tell(text: impl Into<Styled>) {
    if !output::wants_json() && !output::is_quiet() {
        output::prose(text);
    }
}

/// Shows a reply or the output of a command.
fn show(text: &str) {
    for row in output::wrapped_behind(text.trim_end(), BAR).as_str().lines() {
        tell(format!("{BAR}{row}"));
    }
}
