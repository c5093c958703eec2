//! The toolchains that people keep in their home folder, and their caches. Of each only what it
//! needs to build is seen, never its credentials: what does not stand in this table is not there.

use std::env;
use std::path::{Path, PathBuf};

use super::super::order::Mount;

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
    /// What of it is a secret.
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
    Tool { variable: "GOPATH", folder: "go", read: &["bin"], cache: &["pkg"], secret: &[] },
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
        secret: &[],
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
    Tool { variable: "", folder: ".m2", read: &["wrapper"], cache: &["repository"], secret: &[] },
    Tool {
        variable: "GRADLE_USER_HOME",
        folder: ".gradle",
        read: &[],
        cache: &["caches", "wrapper"],
        secret: &[],
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
}

/// Looks into these home folders. What lies in the workspace is seen with it.
pub(super) fn found(homes: &[&Path], workspace: &Path) -> Found {
    let Found { mut mounts, mut secrets, mut variables } = Found::default();
    let mut add = |mount: Mount| {
        if mounts.iter().all(|other| other.at() != mount.at()) {
            mounts.push(mount);
        }
    };
    for tool in TOOLS {
        let named = env::var_os(tool.variable).map(PathBuf::from);
        let named = named.filter(|folder| folder.is_absolute() && folder.components().count() > 2);
        let at_home = homes.iter().map(|home| home.join(tool.folder));
        let at_home = at_home.filter(|_| !tool.folder.is_empty());
        for folder in named.into_iter().chain(at_home) {
            let Ok(folder) = folder.canonicalize() else { continue };
            // A home folder, or one above it, is no tool whatever a variable says.
            let is_home = homes.iter().any(|home| home.starts_with(&folder));
            if !folder.is_dir() || is_home || folder.starts_with(workspace) {
                continue;
            }
            if !tool.variable.is_empty() && variables.iter().all(|(name, _)| *name != tool.variable)
            {
                variables.push((tool.variable, folder.clone()));
            }
            let at_home = homes.iter().any(|home| folder.starts_with(home));
            if !at_home && !tool.cache.is_empty() {
                // Its folder is not a private one, and it may want to write beside its cache.
                add(Mount::Overlay { at: folder.clone() });
                secrets.extend(tool.secret.iter().map(|name| folder.join(name)));
                let read = tool.read.iter().map(|part| folder.join(part));
                secrets.extend(read.filter(|part| holds_credentials(part)));
                continue;
            }
            for part in tool.read.iter().map(|part| folder.join(part)).filter(|part| part.exists())
            {
                if !holds_credentials(&part) {
                    add(Mount::Read { from: part.clone(), to: part });
                }
            }
            for part in tool.cache.iter().map(|part| folder.join(part)).filter(|part| part.is_dir())
            {
                add(Mount::Overlay { at: part });
            }
        }
    }
    Found { mounts, secrets, variables }
}

/// Some tools let people write tokens into their settings. Comments do not count: there are such
/// that explain how.
fn holds_credentials(file: &Path) -> bool {
    const SETTINGS: [&str; 3] = ["config", "config.toml", "config.yaml"];
    let is_comment = |line: &str| line.starts_with('#') || line.starts_with("--");
    SETTINGS.iter().any(|name| file.ends_with(name))
        && file.is_file()
        && std::fs::read_to_string(file).map_or(true, |text| {
            let mut lines = text.lines().map(str::trim_start).filter(|line| !is_comment(line));
            lines.any(|line| ["token", "password", "secret"].iter().any(|word| line.contains(word)))
        })
}
