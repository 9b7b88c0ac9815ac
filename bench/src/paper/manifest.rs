//! What stands in a tree, in a few lines, so that another host can see that it has the same.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use bed::{BedError, Result};
use openssl::sha::Sha256;
use walkdir::WalkDir;

/// Of larger files the size is enough.
const READ: u64 = 1 << 30;

/// Compares a tree with its manifest, or writes the manifest if there is none.
pub fn keep(tree: &Path, manifest: &Path) -> Result<()> {
    let found = describe(tree)?;
    if !manifest.exists() {
        if let Some(folder) = manifest.parent() {
            fs::create_dir_all(folder).map_err(BedError::file("create", folder))?;
        }
        return fs::write(manifest, found).map_err(BedError::file("write", manifest));
    }
    let known = fs::read_to_string(manifest).map_err(BedError::file("read", manifest))?;
    if known == found {
        return Ok(());
    }
    Err(BedError::Usage(format!("{} is not what {} says:\n{found}", tree.display(), manifest.display())))
}

/// Entries, files, bytes, and a digest of all names, modes, sizes, targets of links and contents.
fn describe(tree: &Path) -> Result<String> {
    let (mut entries, mut files, mut bytes, mut all) = (0_u64, 0_u64, 0_u64, Sha256::new());
    for entry in WalkDir::new(tree).min_depth(1).sort_by_file_name() {
        let found = entry.and_then(|entry| entry.metadata().map(|meta| (entry, meta)));
        let (entry, meta) = found.map_err(|error| BedError::file("walk", tree)(error.into()))?;
        let path = entry.path();
        entries += 1;
        all.update(path.strip_prefix(tree).unwrap_or(path).as_os_str().as_bytes());
        all.update(format!("\0{:o}\0", meta.mode()).as_bytes());
        if meta.is_symlink() {
            all.update(fs::read_link(path).map_err(BedError::file("read", path))?.as_os_str().as_bytes());
        } else if meta.is_file() {
            files += 1;
            bytes += meta.len();
            all.update(format!("{}\0", meta.len()).as_bytes());
            if meta.len() <= READ {
                content(path, &mut all)?;
            }
        }
        all.update(b"\n");
    }
    let digest = all.finish().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let mut text = String::new();
    for (word, count) in [("entries", entries), ("files", files), ("bytes", bytes)] {
        let _ = writeln!(text, "{word} {count}");
    }
    let _ = writeln!(text, "sha256 {digest}");
    Ok(text)
}

fn content(path: &Path, all: &mut Sha256) -> Result<()> {
    let mut opened = File::open(path).map_err(BedError::file("open", path))?;
    let mut buffer = vec![0; 256 << 10];
    loop {
        let count = opened.read(&mut buffer).map_err(BedError::file("read", path))?;
        if count == 0 {
            return Ok(());
        }
        all.update(buffer.get(..count).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_is_found() {
        let folder = bed::Folder::new("manifest").unwrap();
        let tree = folder.make("tree").unwrap();
        fs::write(tree.join("a"), "one").unwrap();
        let manifest = folder.path().join("trees/a.manifest");
        keep(&tree, &manifest).unwrap();
        keep(&tree, &manifest).unwrap();
        assert!(fs::read_to_string(&manifest).unwrap().starts_with("entries 1\nfiles 1\nbytes 3\nsha256 "));
        fs::write(tree.join("a"), "two").unwrap();
        assert!(keep(&tree, &manifest).is_err());
    }
}
