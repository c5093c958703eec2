//! Toolchains in the home folder, and their caches. A command sees only the parts that each toolchain needs to build,
//! never its credentials, and nothing that is not in the table.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;

use super::super::request::{IdentifiedPath, Mount, MountKind};
use super::links::NamedFolder;
use super::{WritablePlaces, credentials};

/// A folder of a tool, as in `data/toolchains.toml`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Tool {
    variable: String,
    folder: String,
    read: Vec<String>,
    cache: Vec<String>,
    secret: Vec<String>,
}

static TOOLS: LazyLock<BTreeMap<String, Vec<Tool>>> = LazyLock::new(|| {
    toml::from_str(include_str!("../data/toolchains.toml")).expect("a constant table")
});

/// The mounts for the toolchains that exist.
#[derive(Default)]
pub(super) struct ToolMounts {
    pub(super) mounts: Vec<Mount>,
    /// Secrets in these mounts, which must be covered.
    pub(super) secrets: Vec<PathBuf>,
    /// Variables that contain the locations of the tools, for a HOME that does not contain them.
    pub(super) variables: Vec<(&'static str, PathBuf)>,
    /// The folders under the names that are in use.
    pub(super) named: Vec<NamedFolder>,
}

/// Package stores that everybody may read.
const STORES: [&str; 2] = ["/nix/store", "/gnu/store"];

/// The folder in which programs keep files that they can fetch again. They may create any link in it, so links in it
/// are not followed.
const CACHES: &str = ".cache";

/// Finds the toolchains in these home folders. Toolchains in the workspace are visible anyway.
pub(super) fn found(homes: &[&Path], workspace: &Path, written: &WritablePlaces) -> ToolMounts {
    let mut found = ToolMounts::default();
    for tool in &TOOLS["tools"] {
        let named = env::var_os(&tool.variable).map(PathBuf::from);
        let named = named.filter(|folder| folder.is_absolute() && folder.components().count() > 2);
        let at_home = homes.iter().map(|home| home.join(&tool.folder));
        let at_home = at_home.filter(|_| !tool.folder.is_empty());
        for name in named.into_iter().chain(at_home) {
            let is_cache = homes.iter().any(|home| name.starts_with(home.join(CACHES)));
            if is_cache && name.is_symlink() {
                continue;
            }
            let Ok(folder) = written.real(&name) else { continue };
            // A variable may name a home folder or a parent of one, which is not a tool's folder.
            let is_home = homes.iter().any(|home| home.starts_with(&folder));
            if !folder.is_dir() || is_home || folder.starts_with(workspace) {
                continue;
            }
            let variables = &mut found.variables;
            if !tool.variable.is_empty() && variables.iter().all(|(name, _)| *name != tool.variable)
            {
                variables.push((&tool.variable, folder.clone()));
            }
            found.named.push(NamedFolder {
                path: name,
                parts: tool.read.iter().chain(&tool.cache).map(PathBuf::from).collect(),
                variable: Some(&*tool.variable).filter(|variable| !variable.is_empty()),
            });
            let at_home = homes.iter().any(|home| folder.starts_with(home));
            found.add(tool, &folder, at_home, written);
        }
    }
    found
}

impl ToolMounts {
    /// Adds the visible parts of a tool in this folder.
    fn add(&mut self, tool: &Tool, folder: &Path, at_home: bool, written: &WritablePlaces) {
        let identified_path = |part: &Path| IdentifiedPath::at(&written.real(part).ok()?, "").ok();
        if !at_home && !tool.cache.is_empty() {
            // The folder is not in a home folder, and the tool may need to write outside its cache.
            let Some(from) = identified_path(folder) else { return };
            if self.mount(Mount::new(MountKind::Overlay(from), folder)) {
                self.secrets.extend(tool.secret.iter().map(|name| folder.join(name)));
                let read = tool.read.iter().map(|part| folder.join(part));
                self.secrets.extend(read.filter(|part| credentials::contains_tokens(part)));
                self.secrets.extend(credentials::within(folder, &tool.cache));
            }
            return;
        }
        for to in tool.read.iter().map(|part| join(folder, part)) {
            let Some(from) = identified_path(&to).filter(|_| !credentials::contains_tokens(&to))
            else {
                continue;
            };
            let real = from.path.clone();
            if self.mount(Mount::new(MountKind::Read(from), to))
                && STORES.iter().all(|store| !real.starts_with(store))
            {
                self.secrets.extend(credentials::within(&real, &[]));
            }
        }
        for at in tool.cache.iter().map(|part| join(folder, part)) {
            // A link is not accepted as a cache, because programs may create any link there.
            let from = Some(&at).filter(|at| !at.is_symlink()).and_then(|at| identified_path(at));
            let from = from.filter(|from| from.is_folder);
            from.map(|from| self.mount(Mount::new(MountKind::Overlay(from), at)));
        }
    }

    /// Adds a mount, unless another one has the same path. Returns whether it was added.
    fn mount(&mut self, mount: Mount) -> bool {
        let is_new = self.mounts.iter().all(|other| other.at != mount.at);
        if is_new {
            self.mounts.push(mount);
        }
        is_new
    }
}

/// Joins a part to a folder. If the part is empty, no slash is added.
fn join(folder: &Path, part: &str) -> PathBuf {
    folder.join(part).components().collect()
}
