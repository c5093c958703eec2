//! The view of a command: the mounts of its root, based on the settings and on what exists on this machine. A command
//! sees nothing else.

mod credentials;
mod etc;
mod git;
mod links;
mod toolchains;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use serde::Deserialize;

use super::identified_path::cannot_show;
use super::request::{Backend, IdentifiedPath, Mount, MountKind};
use crate::links::{follow, links_on_path};
use crate::runner::{CommandSpec, Runner};
use crate::settings::reply_writable_places;
use etc::Etc;
use links::NamedFolder;

/// The structure of `data/system.toml`: the parts of the system that commands see.
#[derive(Deserialize)]
struct SystemTable {
    folders: Vec<String>,
    linked: Vec<String>,
}

static SYSTEM: LazyLock<SystemTable> = LazyLock::new(|| {
    toml::from_str(include_str!("../data/system.toml")).expect("a constant table")
});

/// A link to the system's programs on systems that keep them in a store.
const CURRENT_SYSTEM: &str = "/run/current-system";
/// The other `/tmp`. Commands see the same folder at both paths, unless something is mounted in it.
const VAR_TMP: &str = "/var/tmp";
/// HOME if the user has no usable home folder.
const NO_HOME: &str = "/home/user";

/// What all commands of a workspace see, and the user that they run as.
#[derive(Debug, Clone)]
pub(in crate::runner) struct View {
    /// Mounts, parents first.
    mounts: Vec<Mount>,
    /// Covers over these mounts, for deaddrop's files and secrets of the system.
    covers: Vec<Mount>,
    /// The target of `/etc/resolv.conf` if it is outside `/etc`. Only commands with network access see it.
    names: Option<Mount>,
    /// The HOME of commands.
    pub(in crate::runner) home: PathBuf,
    /// The user and group that commands run as, if they are not this process's.
    pub(in crate::runner) user: Option<(u32, u32)>,
    /// Variables that contain the locations of toolchains, for a command whose HOME does not contain them.
    variables: Vec<(&'static str, PathBuf)>,
    /// The variables of folders that are not available under their names.
    moved: Vec<&'static str>,
    /// The secrets in `/etc`, as of the last scan.
    etc: Arc<Mutex<Etc>>,
    /// Whether deaddrop's own files are in a folder that commands may write.
    holds_state: bool,
    /// A link to deaddrop's own files in such a folder.
    link: Option<PathBuf>,
    /// Why no command may run: a path in a setting cannot be shown.
    refused: Option<String>,
}

impl View {
    /// Determines what commands see on this machine.
    pub(in crate::runner) fn of(runner: &Runner) -> Result<Self, String> {
        let Runner { workspace, settings, .. } = runner;
        if workspace.parent().is_none() {
            return Err("the workspace is the whole file system".to_owned());
        }
        let owner = fs::metadata(workspace)
            .map_err(|e| format!("cannot look at {}: {e}", workspace.display()))?;
        let is_root = rustix::process::geteuid().is_root();
        let user = (is_root && owner.uid() != 0).then(|| (owner.uid(), owner.gid()));
        let named_home =
            std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let real = |home: PathBuf| existing(&home).unwrap_or(home);
        let real_home = named_home.clone().map(real);
        let home = match user {
            Some((user, _)) => home_of(user).map(real),
            None => real_home.clone(),
        };
        let home = home.filter(|home| home.parent().is_some()).unwrap_or_else(|| NO_HOME.into());

        let own = IdentifiedPath::at(workspace, "workspace_dir")
            .map_err(|e| cannot_show(workspace, e))?;
        let written = WritablePlaces::of(workspace, &settings.writable);
        let mut mounts = system();
        let homes: Vec<&Path> =
            real_home.iter().map(PathBuf::as_path).chain([home.as_path()]).collect();
        let toolchains::ToolMounts { mounts: tools, secrets, variables, mut named } =
            toolchains::found(&homes, workspace, &written);
        mounts.extend(tools);
        if let Some((repository, name)) = git::repository(workspace) {
            mounts.extend(read(&repository, repository.clone()));
            named.push(NamedFolder::whole(name));
        }
        let readable = written.resolve_all(&settings.readable, "sandbox.readable");
        let writable = written.resolve_all(&settings.writable, "sandbox.writable");
        let (readable, mut writable, refused) = match (readable, writable) {
            (Ok(readable), Ok(writable)) => (readable, writable, None),
            (Err(reason), _) | (_, Err(reason)) => (Vec::new(), Vec::new(), Some(reason)),
        };
        // Folders in the workspace are already writable with the workspace. A separate mount would always require that
        // same folder, although commands may create it again.
        writable.retain(|identified_path| {
            let mut above = readable.iter().map(|above| &above.path);
            !identified_path.path.starts_with(workspace)
                || above.any(|above| identified_path.path.starts_with(above))
        });
        let here = |kind: fn(IdentifiedPath) -> MountKind| {
            move |from: IdentifiedPath| Mount { at: from.path.clone(), kind: kind(from) }
        };
        mounts.extend(readable.into_iter().map(here(MountKind::Read)));
        mounts.extend(writable.into_iter().chain([own]).map(here(MountKind::Write)));
        if mounts.iter().all(|mount| !mount.at.starts_with(VAR_TMP)) {
            mounts.push(Mount::new(MountKind::Link("/tmp".into()), VAR_TMP));
        }

        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::split_paths(&path).chain([CURRENT_SYSTEM.into()]);
        named.extend(path.filter(|folder| folder.is_absolute()).map(NamedFolder::whole));
        named.extend(named_home.map(|path| NamedFolder {
            path,
            parts: Vec::new(),
            variable: None,
        }));
        let (links, moved) = links::mounts_for_links(&named, &mounts, &[Path::new("/tmp"), &home]);
        mounts.extend(links);

        let mut view = Self {
            mounts,
            covers: Vec::new(),
            names: resolv_conf_mount(),
            home,
            user,
            variables,
            moved,
            etc: Arc::new(Mutex::new(Etc::new())),
            holds_state: false,
            link: None,
            refused,
        };
        view.cover_state(&runner.hidden, runner.shown.as_deref());
        let mut secrets: Vec<PathBuf> = secrets.iter().flat_map(|at| view.places_of(at)).collect();
        secrets.sort();
        // A cover also covers everything below it, and bwrap cannot cover a place twice.
        secrets.dedup_by(|next, above| next.starts_with(above));
        view.covers.extend(all(MountKind::Cover, secrets));
        Ok(view)
    }

    /// Whether commands see a file. If the path contains links, their targets must be visible, too.
    pub(in crate::runner) fn shows(&self, path: &Path) -> bool {
        let seen = |path: &Path| self.mounts.iter().any(|mount| path.starts_with(&mount.at));
        // A link in the view may lead elsewhere: the command's `/var/tmp` is not this machine's `/var/tmp`.
        let identified_path = |path: &Path| {
            self.mounts.iter().any(|mount| !mount.is_link() && path.starts_with(&mount.at))
        };
        seen(path) && existing(path).is_some_and(|path| identified_path(&path))
    }

    /// The mounts for a command.
    pub(in crate::runner) fn mounts(
        &self,
        spec: &CommandSpec,
        network: bool,
    ) -> io::Result<Vec<Mount>> {
        let CommandSpec { own, protected, pinned, .. } = spec;
        let own = own.canonicalize()?;
        let own = |name: &str| IdentifiedPath::at(&own.join(name), "sessions_dir");
        let mut mounts = vec![
            Mount::new(MountKind::Write(own("tmp")?), "/tmp"),
            Mount::new(MountKind::Write(own("home")?), &self.home),
        ];
        mounts.extend(self.names.iter().filter(|_| network).cloned());
        mounts.extend(self.mounts.iter().cloned());
        // A mount must come after the mounts that contain it.
        mounts.sort_by_key(|mount| mount.at.components().count());
        mounts.extend(self.covers.iter().cloned());
        let mut etc = self.etc.lock().unwrap_or_else(PoisonError::into_inner);
        let secrets = etc.secrets().iter().flat_map(|at| self.places_of(at));
        mounts.extend(all(MountKind::Cover, secrets));
        // Pin a folder before its contents are mounted, because the pin would cover them.
        mounts.extend(all(MountKind::Pin, pinned.iter().cloned()));
        mounts.extend(all(MountKind::Keep, protected.iter().cloned()));
        Ok(mounts)
    }

    /// Why no command may run in any tier: a path in a setting cannot be shown.
    pub(in crate::runner) fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// The variables that contain the locations of toolchains: all of them if the command has another HOME, otherwise
    /// only those whose folder is not available under its name.
    pub(in crate::runner) fn variables(
        &self,
        backend: Backend,
    ) -> impl Iterator<Item = (&'static str, &Path)> {
        let status = self
            .variables
            .iter()
            .filter(move |(name, _)| backend == Backend::Partial || self.moved.contains(name));
        status.map(|(name, folder)| (*name, folder.as_path()))
    }

    /// The paths of a file in the view, including paths under other names.
    fn places_of(&self, path: &Path) -> Vec<PathBuf> {
        let others = self.mounts.iter().filter_map(|Mount { at, kind }| match kind {
            MountKind::Read(from) | MountKind::Overlay(from) if from.path != *at => {
                path.strip_prefix(&from.path).ok().map(|rest| at.join(rest).components().collect())
            }
            _ => None,
        });
        [path.to_path_buf()].into_iter().chain(others).collect()
    }

    /// Why a backend cannot confine commands with this view on any machine; None if it can.
    pub(in crate::runner) fn obstacle(&self, backend: Backend) -> Option<String> {
        match (backend, &self.link) {
            (Backend::Partial, _) if self.holds_state => Some(
                "deaddrop's own files are in the workspace, and Landlock cannot hide them from commands: keep them out of it, with a project elsewhere (`deaddrop init DIR --workspace-dir WORKSPACE`)".to_owned(),
            ),
            (Backend::Bwrap, Some(link)) => Some(format!(
                "{} is a link to deaddrop's own files, and bwrap cannot keep it from being replaced by commands: put what it leads to in its place",
                link.display()
            )),
            _ => None,
        }
    }

    /// Hides deaddrop's files wherever commands would see them, and prevents the parent folders from being renamed.
    /// `readable` stays readable if it is in a folder that commands may write: the file may be tracked, and if commands
    /// saw an empty file instead, git would commit it as empty.
    fn cover_state(&mut self, state: &[PathBuf], readable: Option<&Path>) {
        let private = [Path::new("/tmp"), &self.home];
        let mut pins: Vec<PathBuf> = Vec::new();
        let mut covers = Vec::new();
        let places = state.iter().flat_map(|place| {
            // If a command replaced a link in the path, deaddrop could be led to other files.
            let links = links_on_path(place).into_iter().map(|link| link.at);
            links.chain([place.clone()]).chain(existing(place))
        });
        let places: Vec<PathBuf> = places.flat_map(|place| self.places_of(&place)).collect();
        for place in places {
            let (mut shown, mut writable) = (None, false);
            for Mount { at, kind } in self.mounts.iter().filter(|mount| !mount.is_link()) {
                let deeper = shown.is_none_or(|shown: &Path| at.starts_with(shown));
                if place.starts_with(at) && deeper {
                    shown = Some(at);
                    writable = matches!(kind, MountKind::Write(_));
                }
            }
            let Some(shown) = shown else { continue };
            let hidden = private.iter().any(|private| {
                place.starts_with(private) && private.starts_with(shown) && *private != shown
            });
            if hidden || covers.iter().any(|cover: &Mount| cover.at == place) {
                continue;
            }
            if writable {
                self.holds_state = true;
                if place.is_symlink() {
                    self.link = Some(place.clone());
                }
                let above = place.ancestors().skip(1).take_while(|above| *above != shown);
                pins.extend(above.map(Path::to_path_buf));
            }
            let is_shown = writable && readable == Some(&*place);
            covers
                .push(Mount::new(if is_shown { MountKind::Show } else { MountKind::Cover }, place));
        }
        pins.sort_by_key(|pin| pin.components().count());
        pins.dedup();
        self.covers.extend(all(MountKind::Pin, pins));
        self.covers.extend(covers);
    }
}

/// The system's programs, libraries and settings.
fn system() -> Vec<Mount> {
    let mut mounts = Vec::new();
    for path in SYSTEM.linked.iter().map(Path::new) {
        if let Ok(to) = fs::read_link(path) {
            mounts.push(Mount::new(MountKind::Link(to), path));
        } else if path.is_dir() {
            mounts.extend(read(path, path.into()));
        }
    }
    for path in SYSTEM.folders.iter().map(Path::new).filter(|path| path.is_dir()) {
        mounts.extend(existing(path).and_then(|real| read(&real, path.into())));
    }
    mounts
}

/// Mounts of this kind, one at each of these paths.
fn all(kind: MountKind, places: impl IntoIterator<Item = PathBuf>) -> impl Iterator<Item = Mount> {
    places.into_iter().map(move |at| Mount { at, kind: kind.clone() })
}

/// A read-only mount of the entry at a path without links, if it exists.
fn read(path: &Path, to: PathBuf) -> Option<Mount> {
    Some(Mount::new(MountKind::Read(IdentifiedPath::at(path, "").ok()?), to))
}

/// The places that commands can write, also through the person's links. A link in them may be a command's own.
struct WritablePlaces {
    /// The workspace, and the other places that the settings let commands write.
    own: Vec<PathBuf>,
    /// The corresponding places of other projects that the person has used.
    others: BTreeSet<PathBuf>,
}

impl WritablePlaces {
    fn of(workspace: &Path, writable: &[PathBuf]) -> Self {
        let writable = writable.iter().filter_map(|path| existing(path));
        let own = [workspace.to_path_buf()].into_iter().chain(writable).collect();
        Self { own, others: reply_writable_places().unwrap_or_default() }
    }

    /// Resolves a path. The error is a link in the path that commands could have made.
    fn real(&self, path: &Path) -> Result<PathBuf, PathBuf> {
        let (links, real) = follow(path);
        let mut links = links.into_iter().map(|link| link.at);
        let is_theirs = |at: &PathBuf| {
            self.own.iter().chain(&self.others).any(|written| at.starts_with(written))
        };
        links.find(is_theirs).map_or(Ok(real), Err)
    }

    /// Resolves those paths of a setting that exist.
    fn resolve_all(&self, paths: &[PathBuf], setting: &str) -> Result<Vec<IdentifiedPath>, String> {
        paths.iter().filter_map(|path| self.named(path, setting).transpose()).collect()
    }

    /// Resolves a path of a setting, if it exists.
    ///
    /// # Errors
    /// The path is in a place that commands can write, and is not a real folder.
    fn named(&self, path: &Path, setting: &str) -> Result<Option<IdentifiedPath>, String> {
        let refused = |at: &Path, what: &str| {
            let why = format!(
                "{setting} names it, and {} is {what} in a place that commands can write; put a folder there, or remove it from {setting}",
                at.display()
            );
            cannot_show(path, why)
        };
        let real = self.real(path).map_err(|link| refused(&link, "a link"))?;
        let identified_path = match IdentifiedPath::at(&real, setting) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            identified_path => identified_path.map_err(|e| cannot_show(path, e))?,
        };
        let is_within =
            self.own.iter().any(|written| real != *written && real.starts_with(written));
        if is_within && !identified_path.is_folder {
            return Err(refused(&real, "a file"));
        }
        Ok(Some(identified_path))
    }
}

/// The target of `/etc/resolv.conf`, if it is outside `/etc`.
fn resolv_conf_mount() -> Option<Mount> {
    let names = existing(Path::new("/etc/resolv.conf"))?;
    let is_elsewhere = !names.starts_with("/etc");
    if is_elsewhere { read(&names, names.clone()) } else { None }
}

/// Resolves a path, if it exists.
fn existing(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

/// The home folder of a user, from `/etc/passwd`.
fn home_of(user: u32) -> Option<PathBuf> {
    let list = fs::read_to_string("/etc/passwd").ok()?;
    let fields = list.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let found =
        fields.into_iter().find(|fields| fields.get(2) == Some(&user.to_string().as_str()))?;
    Some(PathBuf::from(*found.get(5)?)).filter(|home| home.is_dir())
}

/// Creates the session's own folder, with a HOME and a `/tmp` for its commands.
pub(in crate::runner) fn make_own(own: &Path, user: Option<(u32, u32)>) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
    // If several commands start at once, only one of them creates the folder.
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    for (folder, mode) in
        [(own.to_path_buf(), 0o711), (own.join("home"), 0o700), (own.join("tmp"), 0o700)]
    {
        // The target of a link may belong to another user.
        if folder.is_symlink() {
            return Err(io::Error::other(format!(
                "{} is a link, but deaddrop's own folders are never links; look at it, and move it away",
                folder.display()
            )));
        }
        // A command may have removed its access to the folder and to everything in it.
        match fs::set_permissions(&folder, fs::Permissions::from_mode(mode)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                fs::DirBuilder::new().mode(mode).create(&folder)?;
                if let Some((user, group)) = user.filter(|_| folder != own) {
                    chown(&folder, Some(user), Some(group))?;
                }
            }
            done => done?,
        }
    }
    Ok(())
}
