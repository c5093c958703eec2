//! `init`: sets up a folder as a project. deaddrop's files are put in a folder that git ignores and that replies and
//! commands cannot access.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::CliContext;
use super::arguments::Global;
use super::locate::{self, ProjectSource};
use super::output;
use super::settings::follow_consent;
use crate::atomic::{self, read_regular};
use crate::error::{Error, Result};
use crate::program::Programs;
use crate::runner::sandbox::{Confinement, Tier};
use crate::settings::{self, Config, FILE, FOLDER, Layer, SettingsDraft};
use crate::text::shell_word;

#[derive(Debug, Args)]
pub(super) struct Init {
    /// The folder to set up [default: the current folder]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Allow your home folder, or the workspace of another project
    #[arg(long)]
    force: bool,
}

/// The settings that name deaddrop's own folders, with their values.
const OWN_DIRS: [(&str, &str); 4] = [
    ("inbox_dir", ".deaddrop/inbox"),
    ("outbox_dir", ".deaddrop/outbox"),
    ("sessions_dir", ".deaddrop/sessions"),
    ("approvals_dir", ".deaddrop/approvals"),
];

fn own_dirs(config: &Config) -> [&PathBuf; 4] {
    [&config.inbox, &config.outbox, &config.sessions, &config.approvals]
}

pub(super) fn init(arguments: &Init, global: &Global) -> Result<ExitCode> {
    let folder = match (&arguments.folder, &global.project) {
        (Some(_), Some(_)) => {
            return Err(Error::usage("-C and DIR both name the folder; give only one"));
        }
        (Some(folder), None) | (None, Some(folder)) => folder.clone(),
        (None, None) => PathBuf::from("."),
    };
    let current_dir = std::env::current_dir();
    let current_dir =
        current_dir.map_err(|e| Error::io("tell where you are, in", ".".as_ref(), e))?;
    let folder = settings::real_path(&current_dir.join(folder));
    let made = set_up_folder(&folder, arguments.force, global.settings.given())?;
    let context =
        CliContext::new(made.config.clone(), global, Some(current_dir), ProjectSource::Direct);
    report(&context, &made);
    Ok(ExitCode::SUCCESS)
}

/// Sets up a folder because a command of the person needs a project there.
pub(super) fn set_up(folder: &Path) -> Result<()> {
    let SetUp { config, in_git, .. } = set_up_folder(&settings::real_path(folder), false, &[])?;
    output::say(format!(
        "{} is set up: {FOLDER}/ contains deaddrop's files.",
        config.project.display()
    ));
    if let GitStatus::Visible(why) = in_git {
        output::say(format!("Git sees {FILE} ({why})."));
    }
    Ok(())
}

/// The result of setting up a folder.
struct SetUp {
    config: Config,
    /// Whether the settings were written.
    is_new: bool,
    in_git: GitStatus,
}

/// Makes a folder a project with these settings.
fn set_up_folder(folder: &Path, force: bool, given: &[(&str, String)]) -> Result<SetUp> {
    // All checks come before the first write.
    check_folder(folder, force)?;
    let draft = match fs::symlink_metadata(folder.join(FILE)) {
        Ok(_) => complete_settings(folder, given)?,
        Err(_) => Some(new_settings(folder, given)?),
    };
    check_writable(folder)?;
    // The folders in the settings can be resolved only if the project folder exists.
    let new = atomic::make_folders(folder)?;
    let typed: Vec<&str> = given.iter().map(|(name, _)| *name).collect();
    let agreed = load_with_consent(folder, draft.as_ref(), &typed);
    let config = agreed.inspect_err(|_| new.iter().for_each(|new| drop(fs::remove_dir(new))))?;

    make_own_folder(folder)?;
    for own in own_dirs(&config) {
        fs::create_dir_all(own).map_err(|e| Error::io("make the folder", own, e))?;
    }
    draft.iter().try_for_each(SettingsDraft::write)?;
    let in_git = ignore_in_git(folder, &Programs::of(&config));
    Ok(SetUp { config, is_new: draft.is_some(), in_git })
}

/// Loads the future settings. The person consents to the settings that they have just `typed`, and an earlier consent
/// stays.
fn load_with_consent(
    folder: &Path,
    draft: Option<&SettingsDraft>,
    typed: &[&str],
) -> Result<Config> {
    let now = Config::load(folder, Layer::default());
    let before = now.as_ref().ok().map(|(_, consent)| consent.clone());
    let (config, consent) = draft.map_or(now, SettingsDraft::load)?;
    config.check_workspace()?;
    check_own_dirs(folder, &own_dirs(&config))?;
    follow_consent(before.as_ref().unwrap_or(&consent), &consent, typed)?;
    Ok(config)
}

/// Refuses folders that are probably a mistake, or that belong to another project.
pub(super) fn check_folder(folder: &Path, force: bool) -> Result<()> {
    let no = |why: String| Err(Error::usage(format!("{}: {why}", folder.display())));
    if let Some(why) = locate::is_broad(folder).filter(|_| !force) {
        return no(format!("{why}; choose another folder, or run `deaddrop init --force`"));
    }
    if let Some(why) = settings::problem_in_git_directory(folder) {
        return no(why);
    }
    let above = match settings::projects_above(folder) {
        Ok(above) => above,
        Err(_) if force => Vec::new(),
        Err(e) => {
            return no(format!(
                "a project above cannot be read ({e}); repair it, or run `deaddrop init --force`"
            ));
        }
    };
    for config in above {
        let project = config.project.display();
        let state = config.state().into_iter().filter_map(|place| place.canonicalize().ok());
        if state.into_iter().any(|place| folder.starts_with(place)) {
            return no(format!(
                "it contains deaddrop's own files of the project {project}; choose another folder"
            ));
        }
        if config.works_in(folder) && !force {
            return no(format!(
                "it is in the workspace of the project {project}, which `deaddrop new` already uses here; with --force it becomes a project of its own, and every command needs -C to use it"
            ));
        }
    }
    if let Some(other) = settings::project_writing_to(folder)?.filter(|_| !force) {
        return no(format!(
            "the replies of the project {} can write here; with --force it becomes a project of its own, and commands need -C until its first session has begun",
            other.display()
        ));
    }
    let sessions = folder.join("sessions/journal");
    let without = sessions.exists() && fs::symlink_metadata(folder.join(FILE)).is_err() && !force;
    if without {
        return no(format!(
            "`deaddrop new` was run here without `init`, and its sessions, in sessions/, would no longer be found; with --force, deaddrop's files are in {FOLDER}/ from now on, and `deaddrop log --sessions-dir sessions` still lists these"
        ));
    }
    Ok(())
}

/// Adds to existing settings those of `init` that they lack; None if they have all. Refuses settings that put deaddrop's
/// files elsewhere, or under which deaddrop has already worked: the person chose them.
fn complete_settings(folder: &Path, given: &[(&str, String)]) -> Result<Option<SettingsDraft>> {
    let file = folder.join(FILE);
    if let Some((name, value)) = given.first() {
        return Err(Error::usage(format!(
            "{} already exists and stays as it is; `deaddrop -C {} config set {name} {}` changes it",
            file.display(),
            shell_word(&folder.display().to_string()),
            shell_word(value)
        )));
    }
    let config = Config::load_untrusted(folder)?;
    let own = own_dirs(&config);
    if own.iter().zip(OWN_DIRS).all(|(own, (_, name))| **own == folder.join(name)) {
        return Ok(None);
    }
    let is_default = |(own, (name, _)): (&&PathBuf, (&str, &str))| {
        name.strip_suffix("_dir").is_some_and(|name| **own == folder.join(name))
    };
    if own.iter().zip(OWN_DIRS).all(is_default) && !config.has_begun() {
        let workspace = ("workspace_dir", ".");
        let settings: Vec<_> = [workspace].into_iter().chain(OWN_DIRS).collect();
        return SettingsDraft::new(folder, "", &settings).map(Some);
    }
    Err(Error::usage(format!(
        "{} already exists and keeps deaddrop's files elsewhere than in {FOLDER}/; it stays as it is: `deaddrop new` uses it, and `deaddrop config show` lists its settings",
        file.display()
    )))
}

/// The settings of a new project.
fn new_settings(folder: &Path, given: &[(&str, String)]) -> Result<SettingsDraft> {
    let given_value =
        |name: &str| given.iter().find(|(known, _)| *known == name).map(|(_, value)| &**value);
    let workspace = given_value("workspace_dir").unwrap_or(".");
    let works_here = if workspace == "." { " The workspace is this folder." } else { "" };
    let note = format!(
        "# Settings of deaddrop: `deaddrop config show -v` lists all of them.{works_here}\n# Replies and commands cannot change this file, and cannot access {FOLDER}/.\n"
    );
    let own = OWN_DIRS.into_iter().map(|(name, place)| (name, given_value(name).unwrap_or(place)));
    let mut settings: Vec<(&str, &str)> =
        [("workspace_dir", workspace)].into_iter().chain(own).collect();
    for (name, value) in given {
        if settings.iter().all(|(known, _)| known != name) {
            settings.push((name, value));
        }
    }
    SettingsDraft::new(folder, &note, &settings)
}

/// Refuses a folder in which deaddrop's own folders cannot be created.
fn check_own_dirs(folder: &Path, own: &[&PathBuf]) -> Result<()> {
    let aside = folder.join(FOLDER);
    // A link is also refused, since its target may belong to somebody else.
    if fs::symlink_metadata(&aside).is_ok_and(|found| !found.is_dir()) {
        return Err(Error::usage(format!(
            "{} is not a folder; move it away, because deaddrop's files belong there",
            aside.display()
        )));
    }
    check_writable(&aside)?;
    own.iter().try_for_each(|own| check_writable(own))
}

/// Checks that a folder can be written to or created.
pub(super) fn check_writable(folder: &Path) -> Result<()> {
    for place in folder.ancestors() {
        let no = |why: &str| {
            Err(Error::usage(format!(
                "{} {why}; correct that, because deaddrop writes to {}",
                place.display(),
                folder.display()
            )))
        };
        match fs::metadata(place) {
            Ok(found) if !found.is_dir() => return no("is not a folder"),
            Ok(_) if !atomic::may_write_in(place) => {
                return no("is a folder that you cannot write to");
            }
            Ok(_) => break,
            // The nearest existing parent decides.
            Err(e)
                if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
                    && fs::symlink_metadata(place).is_err() => {}
            Err(e) => return no(&format!("cannot be read, or leads nowhere ({e})")),
        }
    }
    Ok(())
}

/// Creates deaddrop's own folder, with a rule that makes git ignore it.
fn make_own_folder(folder: &Path) -> Result<()> {
    let own = folder.join(FOLDER);
    fs::create_dir_all(&own).map_err(|e| Error::io("make the folder", &own, e))?;
    let ignore = own.join(".gitignore");
    if fs::symlink_metadata(&ignore).is_err() {
        atomic::write(&ignore, b"*\n")?;
    }
    Ok(())
}

/// Reports what was set up, what replies can access, and what to do next.
fn report(context: &CliContext, made: &SetUp) {
    let SetUp { is_new, ref in_git, .. } = *made;
    let CliContext { config, .. } = context;
    let file = config.project.join(FILE);
    let confinement = context.confinement();
    let is_here = settings::find_project(&config.project).is_ok();
    let is_around =
        context.current_dir.as_ref().is_some_and(|here| here.starts_with(&config.project));
    let named = if is_here && is_around {
        String::new()
    } else {
        format!("-C {} ", shell_word(&config.project.display().to_string()))
    };
    let next = format!("deaddrop {named}new \"what is to be done\"");
    let value = json!({
        "project": config.project.display().to_string(),
        "settings": file.display().to_string(),
        "workspace": config.workspace.display().to_string(),
        "made": is_new,
        "sandbox": confinement.as_ref().map(Confinement::line).ok(),
        "confined": confinement.as_ref().is_ok_and(|c| !matches!(c.tier, Tier::None | Tier::Off)),
        "next": next,
    });
    output::print(value, || context.display(&file));
    let verb = if is_new { "is set up" } else { "was already set up" };
    output::say(output::bold(&format!("{} {verb}.", config.project.display())));
    output::say(format!(
        "Replies can read and change files in {}.",
        config.workspace.canonicalize().unwrap_or_else(|_| config.workspace.clone()).display()
    ));
    if !config.workspace.exists() {
        output::warning("this folder does not exist; it is created, empty, at the next start");
    }
    output::say(format!(
        "{FOLDER}/ contains inbox, outbox, sessions and approvals. Git ignores it; replies and commands cannot access it, and cannot change {FILE}."
    ));
    match in_git {
        GitStatus::NoRepository => {}
        GitStatus::Ignored(exclude) => output::say(format!(
            "Git ignores {FILE}{}. `git clean -x` removes it, and `git clean -dx` also removes {FOLDER}/ and your sessions.",
            match exclude {
                Some(file) => format!(" (a line in {})", context.display(file)),
                None => String::new(),
            }
        )),
        GitStatus::Visible(why) => output::say(format!(
            "Git sees {FILE} ({why}). Commands can read it, but not change it."
        )),
    }
    match confinement {
        Err(e) => output::warning(&format!("the sandbox could not be checked: {e}")),
        Ok(found) if found.tier == Tier::None => {
            output::warning(
                "there is no sandbox here, so commands in replies are refused; replies can still change files",
            );
            found.why().iter().for_each(|reason| output::say(format!("  {reason}")));
            output::say("`deaddrop doctor` suggests fixes.");
        }
        Ok(found) => output::say(format!("Commands: {}.", found.line())),
    }
    if !is_here {
        output::warning("commands need -C here to name the project");
    }
    output::say(format!(
        "Next: {next}\nThen paste the file that it names into a chat, and save the reply as a .txt file in {}/.",
        context.display(&config.inbox)
    ));
}

/// Whether git sees the settings of a project.
pub(super) enum GitStatus {
    /// There is no repository or no git.
    NoRepository,
    /// Git ignores them, because of a line added to this file or of existing rules.
    Ignored(Option<PathBuf>),
    /// Git sees them, for this reason.
    Visible(String),
}

/// Makes git ignore the settings in this clone, unless git tracks them. They are only for this machine, and a command
/// with `git add -A` would add them.
pub(super) fn ignore_in_git(folder: &Path, programs: &Programs) -> GitStatus {
    let git = |arguments: &[&str]| {
        let output = settings::run_git(programs, folder, arguments).ok()??;
        Some(String::from_utf8_lossy(&output).trim_end_matches('\n').to_owned())
    };
    let (Some(exclude), Some(prefix), Some(repository)) = (
        git(&["rev-parse", "--git-path", "info/exclude"]),
        git(&["rev-parse", "--show-prefix"]),
        git(&["rev-parse", "--git-common-dir"]),
    ) else {
        return GitStatus::NoRepository;
    };
    if git(&["ls-files", "--error-unmatch", "--", FILE]).is_some() {
        return GitStatus::Visible("it is tracked".to_owned());
    }
    let exclude = folder.join(exclude);
    if git(&["check-ignore", "--quiet", "--", FILE]).is_some() {
        return GitStatus::Ignored(None);
    }
    // Pattern characters in the names of parent folders must be escaped.
    let mut line = String::from("/");
    for c in prefix.chars().chain(FILE.chars()) {
        if "*?[\\ ".contains(c) {
            line.push('\\');
        }
        line.push(c);
    }
    // If a link leads out of the repository, its target may be shared, so it is not changed.
    if settings::real_path(&exclude)
        != settings::real_path(&folder.join(repository)).join("info/exclude")
    {
        return GitStatus::Visible(format!("{} is a link", exclude.display()));
    }
    let text = match read_regular(&exclude, 1 << 20) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
        Err(e) => return GitStatus::Visible(format!("{} cannot be read ({e})", exclude.display())),
    };
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let written = exclude.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
        let mut file = fs::File::options().append(true).create(true).open(&exclude)?;
        file.write_all(format!("{gap}{line}\n").as_bytes())
    });
    match written {
        Ok(()) => GitStatus::Ignored(Some(exclude)),
        Err(e) => GitStatus::Visible(format!("{} cannot be written: {e}", exclude.display())),
    }
}
