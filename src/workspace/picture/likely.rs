//! Whether a folder whose name tools and people give holds build products, where no manifest beside it
//! and no mark in it tells: by what it is in, by what stands in it, and by what git tracks.

use super::Sorter;
use crate::workspace::names::split;
use crate::workspace::products::{Likely, is_made, is_prose, is_source_folder, is_written, likely};

/// So many files of a folder are looked at.
const LOOKED_AT: usize = 2_000;

impl Sorter<'_> {
    /// Whether `folder`, which has this name and is in `parent`, most likely holds build products; both
    /// end in `/` but for the root.
    pub(super) fn is_likely_product(&self, parent: &str, name: &str, folder: &str) -> bool {
        let Some(likely) = likely(name) else { return false };
        // What people keep is source, whatever it is called.
        if self.walk.is_tracked(folder) {
            return false;
        }
        let start = self.walk.first(0..self.all, |path| path < folder);
        let files = (start..self.all)
            .map(|n| self.walk.file(n).path)
            .take_while(|path| path.starts_with(folder))
            .take(LOOKED_AT)
            .map(|path| &path[folder.len()..]);
        match likely {
            Likely::Unless { web } => {
                let (mut prose, mut made, mut written, mut all) = (true, 0, 0, 0);
                for path in files {
                    let (is_direct, name) = (!path.contains('/'), split(path).1);
                    if is_direct && is_written(name, web) {
                        return false;
                    }
                    prose &= is_direct && is_prose(name);
                    made += usize::from(is_made(name));
                    written += usize::from(is_written(name, web));
                    all += 1;
                }
                if made == 0 && 2 * written > all {
                    return false;
                }
                // The name of a folder of sources further up makes it a package, or a part of one.
                !prose && !parent.split_terminator('/').any(is_source_folder)
            }
            Likely::Where => {
                let (mut made, mut all) = (0, 0);
                for path in files {
                    if !path.contains('/') && is_written(path, true) {
                        return false;
                    }
                    all += 1;
                    made += usize::from(is_made(split(path).1));
                }
                made > 0 && 2 * made >= all
            }
        }
    }
}
