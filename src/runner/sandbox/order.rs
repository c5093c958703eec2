//! What a helper is told: one command, and all that it may see and do. It travels through the
//! socket that becomes the helper's report, since everybody can read a process's arguments: its
//! length, then words with their operands.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// How a command is confined; the helper does this or fails, it never does less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::runner) enum Means {
    /// Namespaces and a root of their own, made by the helper.
    Full,
    /// The same made by `bwrap`.
    Bwrap,
    /// What runs inside of bwrap: the walls that bwrap does not build.
    Inside,
    /// Landlock and seccomp alone.
    Partial,
    /// Nothing: the command has its user's rights.
    Open,
}

/// A file or folder that commands are shown, and its identity when it was chosen: by its path alone,
/// whoever puts a link in its place would choose another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::runner) struct Held {
    /// Where it is; no component of this is a link.
    pub(in crate::runner) path: PathBuf,
    /// Device and inode of the folder. Of a file, those of the folder that contains it: editors and
    /// installers replace files.
    pub(in crate::runner) device: u64,
    pub(in crate::runner) inode: u64,
    pub(in crate::runner) is_folder: bool,
    /// The setting that names it; a command is not run if something else is there by now. Empty for
    /// what nobody named, which is then not shown.
    pub(in crate::runner) setting: String,
}

/// A piece of the root that a command sees. Later ones lie over earlier ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::runner) enum Mount {
    /// `from` as it is, not to be written, at `to`.
    Read { from: Held, to: PathBuf },
    /// `from`, to be written, at `to`.
    Write { from: Held, to: PathBuf },
    /// The folder `from`, at `at`; what is written there is forgotten with the command.
    Overlay { from: Held, at: PathBuf },
    /// A link.
    Link { to: PathBuf, at: PathBuf },
    /// An empty file or folder in the place of what is there, if something is.
    Cover { at: PathBuf },
    /// The file that is there, not to be written, nor anything put in its place; what is no regular file
    /// is covered.
    Show { at: PathBuf },
    /// A folder that cannot be renamed away.
    Pin { at: PathBuf },
    /// What is there, not to be written.
    Keep { at: PathBuf },
}

/// What one command may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::runner) struct Limits {
    /// Processes and threads; 0 for no limit.
    pub(in crate::runner) processes: u64,
    /// The size of one file in bytes; 0 for no limit.
    pub(in crate::runner) file: u64,
    /// The address space of one process in bytes; 0 for no limit.
    pub(in crate::runner) memory: u64,
}

/// One command for a helper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::runner) struct Order {
    /// The process that gives it.
    pub(in crate::runner) parent: u32,
    /// How to confine the command.
    pub(in crate::runner) means: Means,
    /// The command; of no use to a probe.
    pub(in crate::runner) command: OsString,
    /// Where it runs, in its own view.
    pub(in crate::runner) folder: PathBuf,
    /// Its whole environment.
    pub(in crate::runner) environment: Vec<(OsString, OsString)>,
    /// A file that stays locked while it runs; empty for none.
    pub(in crate::runner) lock: PathBuf,
    /// Whom it runs as, where that is another: user and group.
    pub(in crate::runner) user: Option<(u32, u32)>,
    /// Whether it reaches the network.
    pub(in crate::runner) network: bool,
    /// What it may use up.
    pub(in crate::runner) limits: Limits,
    /// What it sees.
    pub(in crate::runner) mounts: Vec<Mount>,
    /// Instead of running the command, find out whether the walls stand.
    pub(in crate::runner) probe: bool,
}

impl Order {
    /// Sends the order.
    ///
    /// # Errors
    /// A word holds a NUL byte, which no program could be given; or the other end is gone.
    pub(in crate::runner) fn send(&self, to: &mut impl Write) -> io::Result<()> {
        let mut bytes = vec![0; size_of::<u64>()];
        for word in self.words() {
            let word = word.as_encoded_bytes();
            if word.contains(&0) {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "it holds a NUL byte"));
            }
            bytes.extend_from_slice(word);
            bytes.push(0);
        }
        let length = (bytes.len() - size_of::<u64>()) as u64;
        bytes[..size_of::<u64>()].copy_from_slice(&length.to_le_bytes());
        to.write_all(&bytes)
    }

    /// Receives an order; None where what comes is not one.
    pub(in crate::runner) fn receive(from: &mut impl Read) -> Option<Self> {
        let mut length = [0; size_of::<u64>()];
        from.read_exact(&mut length).ok()?;
        let mut bytes = Vec::new();
        let length = u64::from_le_bytes(length);
        from.take(length).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 == length).then_some(())?;
        Self::parse(bytes.strip_suffix(&[0])?.split(|byte| *byte == 0).map(word))
    }

    fn words(&self) -> Vec<OsString> {
        let mut words = Words(Vec::new());
        words.add("parent", [self.parent.to_string()]);
        words.add("means", [name(self.means)]);
        words.add("folder", [&self.folder]);
        words.add("lock", [&self.lock]);
        if let Some((user, group)) = self.user {
            words.add("user", [user.to_string(), group.to_string()]);
        }
        if self.network {
            words.add("network", [] as [&str; 0]);
        }
        if self.probe {
            words.add("probe", [] as [&str; 0]);
        }
        let Limits { processes, file, memory } = self.limits;
        words.add("limits", [processes.to_string(), file.to_string(), memory.to_string()]);
        for (key, value) in &self.environment {
            words.add("env", [key, value]);
        }
        for mount in &self.mounts {
            match mount {
                Mount::Read { from, to } => words.add_held("read", from, to),
                Mount::Write { from, to } => words.add_held("write", from, to),
                Mount::Overlay { from, at } => words.add_held("overlay", from, at),
                Mount::Link { to, at } => words.add("link", [to, at]),
                Mount::Cover { at } => words.add("cover", [at]),
                Mount::Show { at } => words.add("show", [at]),
                Mount::Pin { at } => words.add("pin", [at]),
                Mount::Keep { at } => words.add("keep", [at]),
            }
        }
        words.add("run", [&self.command]);
        words.0
    }

    fn parse(words: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut words = words.fuse();
        let mut order = Self {
            parent: 0,
            means: Means::Full,
            command: OsString::new(),
            folder: PathBuf::new(),
            environment: Vec::new(),
            lock: PathBuf::new(),
            user: None,
            network: false,
            limits: Limits::default(),
            mounts: Vec::new(),
            probe: false,
        };
        loop {
            let word = words.next()?;
            let mut path = || words.next().map(PathBuf::from);
            match word.to_str()? {
                "parent" => order.parent = number(words.next())?,
                "means" => order.means = means(&words.next()?)?,
                "folder" => order.folder = path()?,
                "lock" => order.lock = path()?,
                "user" => order.user = Some((number(words.next())?, number(words.next())?)),
                "network" => order.network = true,
                "probe" => order.probe = true,
                "limits" => {
                    order.limits = Limits {
                        processes: number(words.next())?,
                        file: number(words.next())?,
                        memory: number(words.next())?,
                    };
                }
                "env" => order.environment.push((words.next()?, words.next()?)),
                "read" => order.mounts.push(Mount::Read { from: held(&mut path)?, to: path()? }),
                "write" => order.mounts.push(Mount::Write { from: held(&mut path)?, to: path()? }),
                "overlay" => {
                    order.mounts.push(Mount::Overlay { from: held(&mut path)?, at: path()? });
                }
                "link" => order.mounts.push(Mount::Link { to: path()?, at: path()? }),
                "cover" => order.mounts.push(Mount::Cover { at: path()? }),
                "show" => order.mounts.push(Mount::Show { at: path()? }),
                "pin" => order.mounts.push(Mount::Pin { at: path()? }),
                "keep" => order.mounts.push(Mount::Keep { at: path()? }),
                // What follows is the command, whatever it looks like.
                "run" => {
                    order.command = words.next()?;
                    return words.next().is_none().then_some(order);
                }
                _ => return None,
            }
        }
    }
}

/// An order in the making.
struct Words(Vec<OsString>);

impl Words {
    fn add(&mut self, word: &str, operands: impl IntoIterator<Item = impl AsRef<OsStr>>) {
        self.0.push(word.into());
        self.0.extend(operands.into_iter().map(|operand| operand.as_ref().to_owned()));
    }

    fn add_held(&mut self, word: &str, from: &Held, to: &Path) {
        let Held { path, device, inode, is_folder, setting } = from;
        self.add(word, [path]);
        self.0
            .extend([device.to_string(), inode.to_string(), is_folder.to_string()].map(Into::into));
        self.0.extend([setting.into(), to.into()]);
    }
}

fn held(path: &mut impl FnMut() -> Option<PathBuf>) -> Option<Held> {
    Some(Held {
        path: path()?,
        device: number(path().map(OsString::from))?,
        inode: number(path().map(OsString::from))?,
        is_folder: number(path().map(OsString::from))?,
        setting: path()?.to_str()?.to_owned(),
    })
}

fn number<T: std::str::FromStr>(word: Option<OsString>) -> Option<T> {
    word?.to_str()?.parse().ok()
}

/// Back from its bytes. An order is received by the program that sent it.
#[cfg(unix)]
fn word(bytes: &[u8]) -> OsString {
    use std::os::unix::ffi::OsStrExt;
    OsStr::from_bytes(bytes).to_owned()
}

#[cfg(not(unix))]
fn word(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}

const MEANS: [(Means, &str); 5] = [
    (Means::Full, "full"),
    (Means::Bwrap, "bwrap"),
    (Means::Inside, "inside"),
    (Means::Partial, "partial"),
    (Means::Open, "open"),
];

fn name(means: Means) -> &'static str {
    MEANS.iter().find(|(of, _)| *of == means).map_or("full", |(_, name)| name)
}

fn means(word: &OsStr) -> Option<Means> {
    MEANS.iter().find(|(_, name)| *name == word).map(|(means, _)| *means)
}

impl Mount {
    /// Where it lies in the command's view.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(in crate::runner) fn at(&self) -> &Path {
        match self {
            Self::Read { to, .. } | Self::Write { to, .. } => to,
            Self::Overlay { at, .. }
            | Self::Link { at, .. }
            | Self::Cover { at }
            | Self::Show { at }
            | Self::Pin { at }
            | Self::Keep { at } => at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_survives_its_journey() {
        let held = |path: &str, setting: &str| Held {
            path: path.into(),
            device: 1,
            inode: u64::MAX,
            is_folder: setting.is_empty(),
            setting: setting.to_owned(),
        };
        let order = Order {
            parent: 7,
            means: Means::Bwrap,
            command: "run probe\nenv".into(),
            folder: "/w".into(),
            environment: vec![("A".into(), "b=c".into()), ("run".into(), String::new().into())],
            lock: "/l".into(),
            user: Some((1000, 100)),
            network: true,
            limits: Limits { processes: 9, file: 0, memory: 1 << 40 },
            mounts: vec![
                Mount::Read { from: held("/a", ""), to: "/b".into() },
                Mount::Write { from: held("run", "sandbox.writable"), to: "/b c".into() },
                Mount::Overlay { from: held("/o", ""), at: "/o".into() },
                Mount::Link { to: "usr/lib".into(), at: "/lib".into() },
                Mount::Cover { at: "/c".into() },
                Mount::Show { at: "/s".into() },
                Mount::Pin { at: "/p".into() },
                Mount::Keep { at: "/k".into() },
            ],
            probe: true,
        };
        let mut sent = Vec::new();
        order.send(&mut sent).unwrap();
        assert_eq!(Order::receive(&mut sent.as_slice()), Some(order.clone()));
        assert_eq!(Order::receive(&mut &sent[..sent.len() - 1]), None);
        let mut more = order.words();
        more.push("x".into());
        assert_eq!(Order::parse(more.into_iter()), None);
        assert_eq!(Order::parse(order.words().into_iter().take(9)), None);
        let nul = Order { command: "a\0b".into(), ..order };
        assert!(nul.send(&mut sent).is_err());
    }
}
