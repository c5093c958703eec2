//! The toolchains that people keep in their home folder, and their caches. Of each only what it
//! needs to build is seen, never its credentials: what does not stand in this table is not there.

use std::env;
use std::path::{Path, PathBuf};

use super::super::order::{Held, Mount};
use super::links::Named;
use super::{Written, credentials};

/// A folder of a tool.
struct Tool {
    /// The variable that names it, where there is one.
    variable: &'static str,
    /// Where it is in the home folder, if anywhere.
    folder: &'static str,
    /// What of it is read; empty: all.
    read: &'static [&'static str],
    /// What of it commands may write to, which is forgotten.
    cache: &'static [&'static str],
    /// What of it is a secret, or somebody's work, where all else of it is seen.
    secret: &'static [&'static str],
}

const fn whole(variable: &'static str, folder: &'static str) -> Tool {
    Tool { variable, folder, read: &[""], cache: &[], secret: &[] }
}

const fn cache(variable: &'static str, folder: &'static str) -> Tool {
    Tool { variable, folder, read: &[], cache: &[""], secret: &[] }
}

const TOOLS: &[Tool] = &[
    Tool {
        variable: "CARGO_HOME",
        folder: ".cargo",
        read: &["bin", "env", "config", "config.toml"],
        cache: &["registry", "git"],
        secret: &["credentials", "credentials.toml"],
    },
    whole("RUSTUP_HOME", ".rustup"),
    whole("PYENV_ROOT", ".pyenv"),
    whole("NVM_DIR", ".nvm"),
    Tool {
        variable: "VOLTA_HOME",
        folder: ".volta",
        read: &["bin", "tools"],
        cache: &[],
        secret: &[],
    },
    whole("FNM_DIR", ".local/share/fnm"),
    Tool {
        variable: "BUN_INSTALL",
        folder: ".bun",
        read: &["bin"],
        cache: &["install/cache"],
        secret: &[],
    },
    Tool { variable: "", folder: ".deno", read: &["bin"], cache: &[], secret: &[] },
    cache("DENO_DIR", ".cache/deno"),
    Tool { variable: "GOPATH", folder: "go", read: &["bin"], cache: &["pkg"], secret: &["src"] },
    cache("GOMODCACHE", ""),
    cache("GOCACHE", ".cache/go-build"),
    whole("GOROOT", ""),
    whole("SDKMAN_DIR", ".sdkman"),
    whole("JAVA_HOME", ""),
    whole("ASDF_DATA_DIR", ".asdf"),
    whole("", ".local/share/mise"),
    whole("RBENV_ROOT", ".rbenv"),
    whole("", ".rvm"),
    whole("", ".gem/ruby"),
    Tool {
        variable: "DOTNET_ROOT",
        folder: ".dotnet",
        // Beside these it keeps certificates with their keys.
        read: &[
            "dotnet",
            "host",
            "library-packs",
            "metadata",
            "packs",
            "sdk",
            "sdk-manifests",
            "shared",
            "store",
            "templates",
            "tools",
        ],
        cache: &[],
        secret: &[],
    },
    cache("", ".nuget/packages"),
    whole("", ".nix-profile"),
    whole("", ".local/state/nix/profiles"),
    whole("", ".guix-profile"),
    whole("", ".guix-home/profile"),
    whole("", ".config/guix/current"),
    whole("", ".local/bin"),
    whole("", ".local/lib"),
    whole("", ".local/pipx/venvs"),
    whole("", ".local/share/pipx/venvs"),
    Tool {
        variable: "",
        folder: ".local/share/uv",
        read: &["python", "tools"],
        cache: &[],
        secret: &[],
    },
    whole("", ".local/share/pnpm"),
    whole("", ".juliaup"),
    Tool {
        variable: "",
        folder: ".julia",
        read: &["packages", "artifacts", "registries", "environments"],
        cache: &["compiled"],
        secret: &["servers", "logs"],
    },
    whole("", ".ghcup"),
    Tool {
        variable: "",
        folder: ".cabal",
        read: &["bin", "config"],
        cache: &["packages", "store"],
        secret: &[],
    },
    Tool {
        variable: "",
        folder: ".stack",
        read: &["programs", "config.yaml"],
        cache: &["pantry", "snapshots"],
        secret: &[],
    },
    whole("", ".opam"),
    whole("", ".elan"),
    whole("", ".nimble"),
    whole("", ".swiftly"),
    Tool {
        variable: "",
        folder: ".m2",
        read: &["wrapper"],
        cache: &["repository"],
        secret: &["settings.xml", "settings-security.xml"],
    },
    Tool {
        variable: "GRADLE_USER_HOME",
        folder: ".gradle",
        read: &[],
        cache: &["caches", "wrapper"],
        secret: &["gradle.properties", "init.gradle", "init.gradle.kts", "init.d"],
    },
    Tool { variable: "", folder: ".npm", read: &[], cache: &["_cacache"], secret: &[] },
    cache("", ".cache/pip"),
    cache("", ".cache/uv"),
    cache("", ".cache/yarn"),
    cache("", ".cache/pnpm"),
    cache("", ".cache/ccache"),
    cache("", ".cache/sccache"),
    whole("", ".cache/ms-playwright"),
    whole("CONDA_PREFIX", "miniconda3"),
    whole("", "anaconda3"),
    whole("", "miniforge3"),
    whole("VIRTUAL_ENV", ""),
];

/// What is there of all this.
#[derive(Default)]
pub(super) struct Found {
    pub(super) mounts: Vec<Mount>,
    /// What would be seen with these and is not to be.
    pub(super) secrets: Vec<PathBuf>,
    /// The variables that say where the tools are, for a HOME where they are not.
    pub(super) variables: Vec<(&'static str, PathBuf)>,
    /// The folders as they are named.
    pub(super) named: Vec<Named>,
}

/// Folders of packages that everybody may read.
const STORES: [&str; 2] = ["/nix/store", "/gnu/store"];

/// Where programs keep what they could fetch again, and make what links they like: none that is below
/// it is followed.
const CACHES: &str = ".cache";

/// Looks into these home folders. What lies in the workspace is seen with it.
pub(super) fn found(homes: &[&Path], workspace: &Path, written: &Written) -> Found {
    let mut found = Found::default();
    for tool in TOOLS {
        let named = env::var_os(tool.variable).map(PathBuf::from);
        let named = named.filter(|folder| folder.is_absolute() && folder.components().count() > 2);
        let at_home = homes.iter().map(|home| home.join(tool.folder));
        let at_home = at_home.filter(|_| !tool.folder.is_empty());
        for name in named.into_iter().chain(at_home) {
            let is_cache = homes.iter().any(|home| name.starts_with(home.join(CACHES)));
            if is_cache && name.is_symlink() {
                continue;
            }
            let Ok(folder) = written.real(&name) else { continue };
            // A home folder, or one above it, is no tool whatever a variable says.
            let is_home = homes.iter().any(|home| home.starts_with(&folder));
            if !folder.is_dir() || is_home || folder.starts_with(workspace) {
                continue;
            }
            let variables = &mut found.variables;
            if !tool.variable.is_empty() && variables.iter().all(|(name, _)| *name != tool.variable)
            {
                variables.push((tool.variable, folder.clone()));
            }
            found.named.push(Named {
                path: name,
                parts: tool.read.iter().chain(tool.cache).map(PathBuf::from).collect(),
                variable: Some(tool.variable).filter(|variable| !variable.is_empty()),
            });
            let at_home = homes.iter().any(|home| folder.starts_with(home));
            found.add(tool, &folder, at_home, written);
        }
    }
    found
}

impl Found {
    /// What is seen of a tool that is in this folder.
    fn add(&mut self, tool: &Tool, folder: &Path, at_home: bool, written: &Written) {
        let held = |part: &Path| Held::at(&written.real(part).ok()?, "").ok();
        if !at_home && !tool.cache.is_empty() {
            // Its folder is not a private one, and it may want to write beside its cache.
            let Some(from) = held(folder) else { return };
            if self.mount(Mount::Overlay { from, at: folder.into() }) {
                self.secrets.extend(tool.secret.iter().map(|name| folder.join(name)));
                let read = tool.read.iter().map(|part| folder.join(part));
                self.secrets.extend(read.filter(|part| credentials::holds_any(part)));
                self.secrets.extend(credentials::within(folder, tool.cache));
            }
            return;
        }
        for to in tool.read.iter().map(|part| join(folder, part)) {
            let Some(from) = held(&to).filter(|_| !credentials::holds_any(&to)) else { continue };
            let real = from.path.clone();
            if self.mount(Mount::Read { from, to })
                && STORES.iter().all(|store| !real.starts_with(store))
            {
                self.secrets.extend(credentials::within(&real, &[]));
            }
        }
        for at in tool.cache.iter().map(|part| join(folder, part)) {
            // A cache is never a link, wherever it is: programs make what links they like there.
            let from = Some(&at).filter(|at| !at.is_symlink()).and_then(|at| held(at));
            let from = from.filter(|from| from.is_folder);
            from.map(|from| self.mount(Mount::Overlay { from, at }));
        }
    }

    /// Whether nothing was mounted there before.
    fn mount(&mut self, mount: Mount) -> bool {
        let is_new = self.mounts.iter().all(|other| other.at() != mount.at());
        if is_new {
            self.mounts.push(mount);
        }
        is_new
    }
}

/// Joining nothing would add a slash.
fn join(folder: &Path, part: &str) -> PathBuf {
    folder.join(part).components().collect()
}
