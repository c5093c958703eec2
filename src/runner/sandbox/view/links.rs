//! Links that lead to files that a command sees. Mounts are at real paths, but PATH, HOME and the variables of
//! toolchains may reach them through links.

use std::path::{Component, Path, PathBuf};

use super::super::request::{Mount, MountKind};
use super::{existing, read};
use crate::links::{Link, links_on_path};

/// A folder under a name that is in use, and the parts of the folder that must be available under that name.
#[derive(Debug)]
pub(super) struct NamedFolder {
    pub(super) path: PathBuf,
    pub(super) parts: Vec<PathBuf>,
    /// The variable that contains the name.
    pub(super) variable: Option<&'static str>,
}

impl NamedFolder {
    /// A folder that must be available completely.
    pub(super) fn whole(path: PathBuf) -> Self {
        Self { path, parts: vec![PathBuf::new()], variable: None }
    }
}

/// Returns the additional mounts that make each folder available under its name, if its target is already visible. Also
/// returns the variables of folders of which only parts are available.
///
/// In a folder that commands may write, a link could be in the way of the next command, or be a command's own link. In
/// such folders the parts are mounted instead.
pub(super) fn mounts_for_links(
    named: &[NamedFolder],
    mounts: &[Mount],
    private: &[&Path],
) -> (Vec<Mount>, Vec<&'static str>) {
    let mut more: Vec<Mount> = Vec::new();
    let mut moved = Vec::new();
    let mut add = |mount: Mount| {
        if mounts.iter().chain(&more).all(|other| other.at != mount.at) {
            more.push(mount);
        }
    };
    let is_seen = |path: &Path| mounts.iter().any(|mount| path.starts_with(&mount.at));
    // A link may also lead to a parent folder of a visible path.
    let leads_on = |path: &Path| {
        let mut places = mounts.iter().map(|mount| &*mount.at).chain(private.iter().copied());
        places.any(|at| path.starts_with(at) || at.starts_with(path))
    };
    for NamedFolder { path, parts, variable } in named {
        for Link { at, to, rest } in links_on_path(path) {
            // If a mount contains the link, the link is already visible.
            if is_seen(&at) {
                continue;
            }
            if !private.iter().any(|private| at.starts_with(private)) {
                if existing(&at).is_some_and(|target| leads_on(&target)) {
                    add(Mount::new(MountKind::Link(to), at));
                }
                continue;
            }
            let place = at.join(&rest);
            if place.components().any(|part| part == Component::ParentDir) {
                break;
            }
            for part in parts {
                let seen = existing(&path.join(part)).filter(|from| is_seen(from));
                if let Some(from) = seen {
                    // Collecting the components removes the slash that joining an empty part adds.
                    if let Some(mount) = read(&from, place.join(part).components().collect()) {
                        add(mount);
                    }
                }
            }
            moved.extend(*variable);
            break;
        }
    }
    (more, moved)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn seen(path: &Path) -> Mount {
        read(path, path.into()).unwrap()
    }

    #[test]
    fn links_lead_to_what_is_seen_also_above_it_and_over_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        // The layout of NixOS and Silverblue.
        fs::create_dir_all(root.join("nix/store/abc/sw/bin")).unwrap();
        fs::create_dir_all(root.join("run")).unwrap();
        fs::create_dir_all(root.join("var/home/me")).unwrap();
        fs::create_dir_all(root.join("private")).unwrap();
        symlink(root.join("nix/store/abc"), root.join("run/system-1-link")).unwrap();
        symlink("system-1-link", root.join("run/current-system")).unwrap();
        symlink("var/home", root.join("home")).unwrap();
        symlink("../private", root.join("run/hidden")).unwrap();
        symlink(root.join("nix/store/abc"), root.join("var/home/me/.nix-profile")).unwrap();
        let home = root.join("var/home/me");
        let named = ["run/current-system/sw/bin", "home/me", "run/hidden", "run/nothing"]
            .map(|path| NamedFolder::whole(root.join(path)));
        let profile = NamedFolder::whole(root.join("home/me/.nix-profile/sw"));
        let named: Vec<NamedFolder> = named.into_iter().chain([profile]).collect();
        let (more, moved) = mounts_for_links(&named, &[seen(&root.join("nix/store"))], &[&home]);
        let link = |at: &str, to: PathBuf| Mount::new(MountKind::Link(to), root.join(at));
        let expected = [
            link("run/current-system", "system-1-link".into()),
            link("run/system-1-link", root.join("nix/store/abc")),
            link("home", "var/home".into()),
            read(&root.join("nix/store/abc/sw"), home.join(".nix-profile/sw")).unwrap(),
        ];
        assert_eq!(more, expected);
        assert!(moved.is_empty());
    }

    #[test]
    fn of_a_folder_behind_a_link_at_home_only_the_parts_that_are_seen_are_mounted() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for part in ["disk/cargo/bin", "disk/cargo/registry", "disk/cargo/secret", "home"] {
            fs::create_dir_all(root.join(part)).unwrap();
        }
        symlink(root.join("disk/cargo"), root.join("home/.cargo")).unwrap();
        let parts = ["bin", "secret", "git"].map(PathBuf::from).to_vec();
        let path = root.join("home/.cargo");
        let named = NamedFolder { path, parts, variable: Some("CARGO_HOME") };
        let bin = root.join("disk/cargo/bin");
        let (more, moved) = mounts_for_links(&[named], &[seen(&bin)], &[&root.join("home")]);
        assert_eq!(more, [read(&bin, root.join("home/.cargo/bin")).unwrap()]);
        assert_eq!(moved, ["CARGO_HOME"]);
    }
}
