//! What a command sees of this machine: the mounts of its root, from the settings and from what is
//! there. Nothing is seen that does not stand here.

mod etc;
mod toolchains;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::order::{Means, Mount};
use crate::config;

/// Folders of the system that are the same for everybody and hold programs.
const SYSTEM: [&str; 9] = [
    "/usr",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/home/linuxbrew",
    "/var/lib/texmf",
    "/var/lib/ca-certificates",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
];
/// Parts of it that many systems have as links into `/usr`.
const LINKED: [&str; 7] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc"];
/// As many as the kernel follows.
const MOST_LINKS: usize = 40;
/// HOME where there is none that can be used.
const NO_HOME: &str = "/home/user";

/// What all commands of a workspace see, and as whom.
#[derive(Debug, Clone)]
pub(in crate::runner) struct View {
    /// From the top of the tree downwards.
    mounts: Vec<Mount>,
    /// What lies over all of these: deaddrop's files, secrets of the system.
    covers: Vec<Mount>,
    /// HOME.
    pub(in crate::runner) home: PathBuf,
    /// Whom commands run as, where that is not us: user and group.
    pub(in crate::runner) user: Option<(u32, u32)>,
    /// Where toolchains are, for a command that has no HOME with them in it.
    pub(in crate::runner) variables: Vec<(&'static str, PathBuf)>,
    /// Whether something of deaddrop's own lies in a folder that commands may write.
    holds_state: bool,
    /// A link there that leads to something of deaddrop's own.
    link: Option<PathBuf>,
}

/// What commands are to see beside the system.
pub(in crate::runner) struct Wanted<'a> {
    pub(in crate::runner) workspace: &'a Path,
    /// deaddrop's own files and folders.
    pub(in crate::runner) state: &'a [PathBuf],
    pub(in crate::runner) settings: &'a config::Sandbox,
}

impl View {
    /// Looks at what is there.
    pub(in crate::runner) fn of(wanted: &Wanted) -> Result<Self, String> {
        let Wanted { workspace, state, settings } = wanted;
        if workspace.parent().is_none() {
            return Err("the workspace is the whole file system".to_owned());
        }
        let owner = fs::metadata(workspace)
            .map_err(|e| format!("cannot look at {}: {e}", workspace.display()))?;
        let is_root = rustix::process::geteuid().is_root();
        let user = (is_root && owner.uid() != 0).then(|| (owner.uid(), owner.gid()));
        let real_home =
            std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let real_home = real_home.and_then(|home| existing(&home).or(Some(home)));
        let home = match user {
            Some((user, _)) => home_of(user),
            None => real_home.clone(),
        };
        let home = home.filter(|home| home.parent().is_some()).unwrap_or_else(|| NO_HOME.into());

        let mut mounts = system(settings.network);
        let homes: Vec<&Path> =
            real_home.iter().map(PathBuf::as_path).chain([home.as_path()]).collect();
        let toolchains::Found { mounts: tools, secrets, variables } =
            toolchains::found(&homes, workspace);
        mounts.extend(tools);
        let readable = settings.readable.iter().filter_map(|path| existing(path));
        mounts.extend(readable.map(|path| Mount::Read { from: path.clone(), to: path }));
        for path in settings.writable.iter().filter_map(|path| existing(path)) {
            mounts.push(Mount::Write { from: path.clone(), to: path });
        }
        let (from, to) = (workspace.to_path_buf(), workspace.to_path_buf());
        mounts.push(Mount::Write { from, to });

        let mut view = Self {
            mounts,
            covers: Vec::new(),
            home,
            user,
            variables,
            holds_state: false,
            link: None,
        };
        view.cover_state(state);
        let secrets = etc::secrets().into_iter().chain(secrets);
        view.covers.extend(secrets.map(|at| Mount::Cover { at }));
        Ok(view)
    }

    /// Whether a file is seen, wherever its links lead.
    pub(in crate::runner) fn shows(&self, path: &Path) -> bool {
        let seen = |path: &Path| self.mounts.iter().any(|mount| path.starts_with(mount.at()));
        seen(path) && existing(path).is_some_and(|path| seen(&path))
    }

    /// The mounts for a command of the session whose own folder is `own`, which may not write
    /// `protected`.
    pub(in crate::runner) fn mounts(&self, own: &Path, protected: &[PathBuf]) -> Vec<Mount> {
        let mut mounts = vec![
            Mount::Write { from: own.join("tmp"), to: "/tmp".into() },
            Mount::Write { from: own.join("home"), to: self.home.clone() },
        ];
        mounts.extend(self.mounts.iter().cloned());
        // What lies below something is put there after it.
        mounts.sort_by_key(|mount| mount.at().components().count());
        mounts.extend(self.covers.iter().cloned());
        mounts.extend(protected.iter().map(|at| Mount::Keep { at: at.clone() }));
        mounts
    }

    /// Why commands with this view cannot be confined by some means, whatever the machine.
    pub(in crate::runner) fn obstacle(&self, means: Means) -> Option<String> {
        match (means, &self.link) {
            (Means::Partial, _) if self.holds_state => Some(
                "deaddrop's own files lie in the workspace, and Landlock cannot keep them from commands: move them out of it (inbox_dir, outbox_dir, sessions_dir)".to_owned(),
            ),
            (Means::Bwrap, Some(link)) => Some(format!(
                "{} is a link to deaddrop's own files, and bwrap cannot keep it from being replaced by commands: put what it leads to in its place",
                link.display()
            )),
            _ => None,
        }
    }

    /// Hides deaddrop's files wherever the command would see them, and keeps the folders above them
    /// from being renamed away with all that is in them.
    fn cover_state(&mut self, state: &[PathBuf]) {
        let private = [Path::new("/tmp"), &self.home];
        let mut pins: Vec<PathBuf> = Vec::new();
        let mut covers = Vec::new();
        let places = state.iter().flat_map(|place| {
            // Who replaces a link on the way leads deaddrop to files of his own.
            let links = links_on_the_way(place);
            links.into_iter().chain([place.clone()]).chain(existing(place))
        });
        for place in places {
            let (mut shown, mut writable) = (None, false);
            for mount in &self.mounts {
                let at = mount.at();
                let deeper = shown.is_none_or(|shown: &Path| at.starts_with(shown));
                if place.starts_with(at) && deeper {
                    shown = Some(at);
                    writable = matches!(mount, Mount::Write { .. });
                }
            }
            let Some(shown) = shown else { continue };
            let hidden = private.iter().any(|private| {
                place.starts_with(private) && private.starts_with(shown) && *private != shown
            });
            if hidden || covers.iter().any(|cover: &Mount| cover.at() == place) {
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
            covers.push(Mount::Cover { at: place });
        }
        pins.sort_by_key(|pin| pin.components().count());
        pins.dedup();
        self.covers.extend(pins.into_iter().map(|at| Mount::Pin { at }));
        self.covers.extend(covers);
    }
}

/// The system's programs, libraries and settings.
fn system(network: bool) -> Vec<Mount> {
    let mut mounts = Vec::new();
    for path in LINKED.map(Path::new) {
        if let Ok(to) = fs::read_link(path) {
            mounts.push(Mount::Link { to, at: path.into() });
        } else if path.is_dir() {
            mounts.push(Mount::Read { from: path.into(), to: path.into() });
        }
    }
    for path in SYSTEM.map(Path::new).into_iter().filter(|path| path.is_dir()) {
        mounts.push(Mount::Read { from: path.into(), to: path.into() });
    }
    mounts.push(Mount::Link { to: "/tmp".into(), at: "/var/tmp".into() });
    // Often a link to where nothing else is needed.
    if let Some(names) = existing(Path::new("/etc/resolv.conf"))
        && network
        && !names.starts_with("/etc")
    {
        mounts.push(Mount::Read { from: names.clone(), to: names });
    }
    mounts
}

/// Where a path leads, if to something.
fn existing(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

/// All links that are followed on the way to a path.
fn links_on_the_way(path: &Path) -> Vec<PathBuf> {
    let mut links = Vec::new();
    let mut here = PathBuf::new();
    let mut left: Vec<PathBuf> =
        path.components().rev().map(|part| part.as_os_str().into()).collect();
    while let Some(part) = left.pop() {
        if part == Path::new("..") {
            here.pop();
            continue;
        }
        here.push(&part);
        if let Ok(target) = fs::read_link(&here)
            && links.len() < MOST_LINKS
        {
            links.push(here.clone());
            here.pop();
            left.extend(target.components().rev().map(|part| part.as_os_str().into()));
        }
    }
    links
}

/// The home folder of a user, as the system's list has it.
fn home_of(user: u32) -> Option<PathBuf> {
    let list = fs::read_to_string("/etc/passwd").ok()?;
    let fields = list.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let found =
        fields.into_iter().find(|fields| fields.get(2) == Some(&user.to_string().as_str()))?;
    Some(PathBuf::from(*found.get(5)?)).filter(|home| home.is_dir())
}

/// Makes the folder that a session's commands have for themselves, with its HOME and its `/tmp`.
pub(in crate::runner) fn make_own(own: &Path, user: Option<(u32, u32)>) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
    for (folder, mode) in
        [(own.to_path_buf(), 0o711), (own.join("home"), 0o700), (own.join("tmp"), 0o700)]
    {
        // A command may have closed it to itself, and with it the way to what lies below.
        match fs::set_permissions(&folder, fs::Permissions::from_mode(mode)) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
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
