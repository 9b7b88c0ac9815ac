//! Whether what is on a volume fits together: bytes, digest, extended attributes and ACL of each
//! record are those of the inode that its attributes name.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use bed::{LStat, Records, Result, Saved, is_named, saved};
use md5::{Digest as _, Md5};

use crate::scene::{Inode, NAMES, SECRET, user_of};

/// The files of a job.
pub(crate) fn files(records: Records) -> Result<Vec<Saved>> {
    Ok(saved(records)?.into_values().collect())
}

/// What does not fit.
pub(crate) fn misfits(files: &[Saved], inodes: &BTreeMap<u64, Inode>, log: &str) -> Vec<String> {
    files.iter().flat_map(|file| misfits_of(file, files, inodes, log)).collect()
}

fn misfits_of(file: &Saved, files: &[Saved], inodes: &BTreeMap<u64, Inode>, log: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut problem = |what: String| problems.push(format!("{}: {what}", file.name));
    let Some(lstat) = LStat::parse(&file.lstat) else {
        problem("no attributes".to_owned());
        return problems;
    };
    for part in [&file.data, &file.attributes] {
        if contains(part, SECRET.as_bytes()) {
            problem("what only root may read is in it".to_owned());
        }
    }
    let number = lstat.inode.cast_unsigned();
    let is_told = is_named(log, &file.name);
    match (file.kind.as_str(), inodes.get(&number)) {
        // A further name of a file.
        ("1", Some(Inode::File(..))) => {
            let first = files.iter().find(|first| first.name == file.target && first.kind != "1");
            let first = first.and_then(|first| LStat::parse(&first.lstat)).map(|lstat| lstat.inode);
            if first != Some(lstat.inode) {
                problem(format!("{first:?} was saved as the first name of inode {number}"));
            }
        }
        ("2" | "3", Some(Inode::File(line, attribute, length))) => {
            let fits = |(at, byte): (usize, &u8)| line.get(at % line.len().max(1)) == Some(byte);
            if !file.data.iter().enumerate().all(fits) {
                problem(format!("the data is not that of {:?}", String::from_utf8_lossy(line)));
            }
            // A file that is cut off while it is read is saved as far as it goes.
            let size = usize::try_from(lstat.size).unwrap_or(usize::MAX);
            let is_cut = (*length..size).contains(&file.data.len());
            if size != file.data.len() && !is_cut && !is_told {
                problem(format!("{} bytes, LStat says {}", file.data.len(), lstat.size));
            }
            let computed = Md5::digest(&file.data).to_vec();
            if file.digest != computed && !(file.data.is_empty() && file.digest.is_empty()) && !is_told {
                problem("the digest is not that of the data".to_owned());
            }
            judge_metadata(file, number, attribute.as_deref(), &mut problem);
        }
        ("5", Some(Inode::Directory(attribute))) => {
            judge_metadata(file, number, attribute.as_deref(), &mut problem);
        }
        ("4", Some(Inode::Link(target))) if Path::new(&file.target) == target => {}
        ("6", Some(Inode::Other)) => {}
        (_, inode) => problem(format!("type {} with inode {number}: {inode:?}", file.kind)),
    }
    problems
}

/// Whether a file or directory of a unit has all its records, or a message.
pub(crate) fn lacks(file: &Saved, log: &str) -> Option<String> {
    let is_whole = !file.attributes.is_empty() && !file.acl.is_empty();
    let has_none = !["2", "3", "5"].contains(&file.kind.as_str()) || !file.name.contains("/u0");
    (!is_whole && !has_none && !is_named(log, &file.name)).then(|| format!("{}: attributes or ACL lack", file.name))
}

/// Extended attributes and ACL of an inode.
fn judge_metadata(file: &Saved, number: u64, attribute: Option<&[u8]>, problem: &mut impl FnMut(String)) {
    let own = |attribute: &[u8]| contains(&file.attributes, attribute);
    if !file.attributes.is_empty() && !attribute.is_some_and(own) {
        problem(format!("other attributes: {}", String::from_utf8_lossy(&file.attributes)));
    }
    let acl = String::from_utf8_lossy(&file.acl);
    if acl.contains("user:1") && !acl.contains(&format!("user:{}:", user_of(number))) {
        problem(format!("the ACL of another one: {acl}"));
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// The names of a unit that are neither on the volume nor in a message, themselves or what they
/// are in. What was below a replaced directory may be missing; a socket is not saved.
pub(crate) fn missing(unit: &Path, replaced: Option<&Path>, files: &[Saved], log: &str) -> Vec<PathBuf> {
    let is_there = |path: &Path| {
        let path = path.to_string_lossy();
        files.iter().any(|file| file.name.trim_end_matches('/') == path) || is_named(log, &path)
    };
    let is_accounted = |path: &Path| {
        is_there(path)
            || path.ancestors().skip(1).take_while(|above| above.starts_with(unit)).any(|above| {
                let above = above.to_string_lossy();
                is_named(log, &above)
                    || files.iter().any(|file| file.name.trim_end_matches('/') == above && file.kind != "5")
            })
    };
    let is_socket = |path: &Path| fs::symlink_metadata(path).is_ok_and(|stat| stat.file_type().is_socket());
    let is_gone =
        |path: &Path| replaced.is_some_and(|above| path.starts_with(above) && (path != above || is_socket(path)));
    let paths = NAMES.iter().map(|name| unit.join(name)).filter(|path| !is_gone(path));
    paths.filter(|path| !is_accounted(path)).collect()
}

/// In words.
pub(crate) fn is_missing(path: &Path) -> String {
    format!("{} is missing", path.display())
}
