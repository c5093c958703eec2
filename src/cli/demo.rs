//! `demo`: a whole session in a folder that is removed afterwards, with the real program on real files;
//! only the replies are written beforehand. Each step is explained.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Deserialize;
use serde_json::json;

use super::output::{self, Terminal};
use super::{WAITS, rows};
use crate::error::{Error, Result};
use crate::program;
use crate::terminal::{Stream, Styled};
use crate::watch::Stop;

#[derive(Debug, Args)]
pub(super) struct Demo {
    /// Keep the folder, and print its path
    #[arg(long)]
    keep: bool,
}

/// The steps of the demonstration.
#[derive(Deserialize)]
struct Scenes {
    scene: Vec<Scene>,
}

/// What a person does in a step, and what they should see in it.
#[derive(Deserialize)]
struct Scene {
    title: String,
    why: String,
    /// What the model says, if it does.
    reply: Option<String>,
    /// The commands that are typed.
    commands: Vec<Vec<String>>,
}

/// What a text begins with, in each row, that is not the demonstration's own.
const BAR: &str = "  │ ";
/// How long a person at a terminal may look at a step before the next begins.
const PAUSE: Duration = Duration::from_millis(800);

pub(super) fn demo(arguments: &Demo, ui: &Terminal, json: bool) -> Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let mut folder = tempfile::Builder::new()
        .prefix("deaddrop-demo-")
        .tempdir()
        .map_err(|e| Error::io("make a folder in", &std::env::temp_dir(), e))?;
    folder.disable_cleanup(arguments.keep);
    let path = folder.path().canonicalize();
    let path = path.map_err(|e| Error::io("open the folder", folder.path(), e))?;
    let project = path.join("project");
    fs::create_dir(&project).map_err(|e| Error::io("make the folder", &project, e))?;
    let stage = Stage { path: &path, ui, json, stop };
    let Scenes { scene: scenes } =
        toml::from_str(include_str!("data/demo.toml")).expect("a table in order");
    for (n, scene) in scenes.iter().enumerate() {
        stage.play(n + 1, scene)?;
    }
    drop(folder);
    if arguments.keep {
        let kept = json!({ "kept": path.display().to_string() });
        output::told(json, kept, || format!("\nAll of it lies in {}", path.display()));
    } else {
        stage.tell("\nNothing of it is left. In a project of yours: `deaddrop init`, then `deaddrop new \"what is to be done\"`.");
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the session is played, and how it is told.
struct Stage<'a> {
    path: &'a Path,
    ui: &'a Terminal,
    json: bool,
    stop: Stop,
}

impl Stage<'_> {
    /// Tells of a step and why it is done, and does what a person would do.
    fn play(&self, number: usize, scene: &Scene) -> Result<()> {
        if number > 1 {
            self.pause()?;
        }
        let title = self.ui.for_results().bold(&format!("{number}. {}", scene.title));
        self.tell(Styled::from("\n") + title + format!("\n{}\n", scene.why));
        if let Some(reply) = &scene.reply {
            let file = self.path.join("reply.txt");
            fs::write(&file, reply).map_err(|e| Error::io("write", &file, e))?;
            self.show(reply);
        }
        for words in &scene.commands {
            let typed = words
                .iter()
                .map(|word| if word.contains(' ') { format!("\"{word}\"") } else { word.clone() });
            self.tell(format!("\n$ deaddrop {}\n", typed.collect::<Vec<_>>().join(" ")));
            self.run(words)?;
        }
        Ok(())
    }

    /// Gives a person who watches the time to look.
    fn pause(&self) -> Result<()> {
        let is_watched = !self.json && !self.ui.quiet && Stream::Out.is_terminal();
        let begun = Instant::now();
        while is_watched && begun.elapsed() < PAUSE && !self.stop.is_asked() {
            thread::sleep(Duration::from_millis(10));
        }
        if self.stop.is_asked() { Err(Error::interrupted()) } else { Ok(()) }
    }

    fn tell(&self, text: impl Into<Styled>) {
        if !self.json && !self.ui.quiet {
            output::prose(text);
        }
    }

    /// Shows a text that is not this command's own.
    fn show(&self, text: &str) {
        for row in output::rows_of(text.trim_end(), BAR).as_str().lines() {
            self.tell(format!("{BAR}{row}"));
        }
    }

    /// Runs the program to its end without the person's own settings, and shows what it says.
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
        // It stands behind the bar.
        let width = rows::own_width().saturating_sub(BAR.chars().count());
        command.env("COLUMNS", width.to_string()).args(words);
        command.current_dir(self.path.join("project")).stdin(Stdio::null());
        if self.json {
            command.arg("--json").stdout(writer).stderr(Stdio::null());
        } else {
            command.stdout(writer.try_clone().map_err(fail)?).stderr(writer);
        }
        let mut child = command.spawn().map_err(fail)?;
        // Its ends of the pipe are the child's alone then.
        drop(command);
        let mut said = String::new();
        reader.read_to_string(&mut said).map_err(fail)?;
        if self.json {
            said.lines().for_each(output::json);
        }
        self.show(&said);
        let ended = child.wait().map_err(fail)?;
        if self.stop.is_asked() {
            return Err(Error::interrupted());
        }
        match ended.code() {
            Some(code) if code == 0 || code == i32::from(WAITS) => Ok(()),
            _ => Err(Error::failed(format!("`deaddrop {}` has failed: {said}", words.join(" ")))),
        }
    }
}
