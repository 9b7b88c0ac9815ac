//! Whether what is on a volume fits together: bytes, digest, extended attributes and ACL of each
//! record are those of the inode that its attributes name.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use bed::{LStat, Records, Result};
use md5::{Digest as _, Md5};

use crate::scene::{Inode, NAMES, SECRET, user_of};

/// One file on a volume.
#[derive(Debug, Default)]
pub(crate) struct Saved {
    pub(crate) name: String,
    /// Its type as the attribute record says it (reference 04 §6.1).
    pub(crate) kind: String,
    /// What a symbolic link leads to, or what a hard link is a name of.
    target: String,
    lstat: Option<LStat>,
    data: Vec<u8>,
    digest: Vec<u8>,
    acl: Vec<u8>,
    attributes: Vec<u8>,
}

/// The files of a job.
pub(crate) fn saved(records: Records) -> Result<Vec<Saved>> {
    let mut files: BTreeMap<i32, Saved> = BTreeMap::new();
    for record in records {
        let record = record?;
        let file = files.entry(record.file_index).or_default();
        match record.stream {
            1 => {
                let mut parts = record.data.split(|byte| *byte == 0);
                let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
                let (head, lstat, target) = (text(), text(), text());
                let mut words = head.splitn(3, ' ').skip(1).map(str::to_owned);
                file.kind = words.next().unwrap_or_default();
                file.name = words.next().unwrap_or_default();
                file.lstat = LStat::parse(lstat.as_bytes());
                file.target = target;
            }
            2 => file.data.extend(record.data),
            3 => file.digest = record.data,
            1007 | 1008 => file.acl.extend(record.data),
            1998 => file.attributes = record.data,
            _ => {}
        }
    }
    Ok(files.into_values().collect())
}

/// What does not fit.
pub(crate) fn misfits(files: &[Saved], inodes: &BTreeMap<u64, Inode>, log: &str) -> Vec<String> {
    files.iter().flat_map(|file| file.misfits(files, inodes, log)).collect()
}

impl Saved {
    fn misfits(&self, files: &[Self], inodes: &BTreeMap<u64, Inode>, log: &str) -> Vec<String> {
        let mut problems = Vec::new();
        let mut problem = |what: String| problems.push(format!("{}: {what}", self.name));
        let Some(lstat) = self.lstat else {
            problem("no attributes".to_owned());
            return problems;
        };
        for part in [&self.data, &self.attributes] {
            if contains(part, SECRET.as_bytes()) {
                problem("what only root may read is in it".to_owned());
            }
        }
        let number = lstat.inode.cast_unsigned();
        let is_told = is_named(log, &self.name);
        match (self.kind.as_str(), inodes.get(&number)) {
            // A further name of a file.
            ("1", Some(Inode::File(..))) => {
                let first = files.iter().find(|file| file.name == self.target && file.kind != "1");
                let first = first.and_then(|file| file.lstat).map(|lstat| lstat.inode);
                if first != Some(lstat.inode) {
                    problem(format!("{first:?} was saved as the first name of inode {number}"));
                }
            }
            ("2" | "3", Some(Inode::File(line, attribute, length))) => {
                let fits = |(at, byte): (usize, &u8)| line.get(at % line.len().max(1)) == Some(byte);
                if !self.data.iter().enumerate().all(fits) {
                    problem(format!("the data is not that of {:?}", String::from_utf8_lossy(line)));
                }
                // A file that is cut off while it is read is saved as far as it goes.
                let size = usize::try_from(lstat.size).unwrap_or(usize::MAX);
                let is_cut = (*length..size).contains(&self.data.len());
                if size != self.data.len() && !is_cut && !is_told {
                    problem(format!("{} bytes, LStat says {}", self.data.len(), lstat.size));
                }
                let computed = Md5::digest(&self.data).to_vec();
                if self.digest != computed && !(self.data.is_empty() && self.digest.is_empty()) && !is_told {
                    problem("the digest is not that of the data".to_owned());
                }
                self.judge_metadata(number, attribute.as_deref(), &mut problem);
            }
            ("5", Some(Inode::Directory(attribute))) => {
                self.judge_metadata(number, attribute.as_deref(), &mut problem);
            }
            ("4", Some(Inode::Link(target))) if Path::new(&self.target) == target => {}
            ("6", Some(Inode::Other)) => {}
            (_, inode) => problem(format!("type {} with inode {number}: {inode:?}", self.kind)),
        }
        problems
    }

    /// Whether a file or directory of a unit has all its records, or a message.
    pub(crate) fn lacks(&self, log: &str) -> Option<String> {
        let is_whole = !self.attributes.is_empty() && !self.acl.is_empty();
        let has_none = !["2", "3", "5"].contains(&self.kind.as_str()) || !self.name.contains("/u0");
        (!is_whole && !has_none && !is_named(log, &self.name)).then(|| format!("{}: attributes or ACL lack", self.name))
    }

    /// Extended attributes and ACL of an inode.
    fn judge_metadata(&self, number: u64, attribute: Option<&[u8]>, problem: &mut impl FnMut(String)) {
        let own = |attribute: &[u8]| contains(&self.attributes, attribute);
        if !self.attributes.is_empty() && !attribute.is_some_and(own) {
            problem(format!("other attributes: {}", String::from_utf8_lossy(&self.attributes)));
        }
        let acl = String::from_utf8_lossy(&self.acl);
        if acl.contains("user:1") && !acl.contains(&format!("user:{}:", user_of(number))) {
            problem(format!("the ACL of another one: {acl}"));
        }
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Whether a text names the path itself, and not only something below it.
pub(crate) fn is_named(text: &str, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    text.match_indices(path).any(|(at, _)| {
        let rest = text.get(at + path.len()..).unwrap_or_default().trim_start_matches('/');
        !rest.starts_with(|next: char| next.is_alphanumeric() || next == '-')
    })
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
