//! Snapshots of ZFS: `dataset@name`, seen below `.zfs/snapshot` of the dataset's mount point.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::answer::Answer;
use crate::backend::actions::Backend;
use crate::backend::names::permitted;
use crate::backend::work::{Work, mounted, now, wrong};
use crate::failure::{Failure, Outcome};
use crate::tools::words;

/// Bytes of `dataset@name`.
const LONGEST: usize = 255;
/// What a name may have beside letters and digits. `%` and `,` would mean several snapshots.
const PUNCTUATION: &str = ".-_:";
/// Below the mount point of a dataset.
const SNAPSHOTS: &str = ".zfs/snapshot";

/// The backend.
pub(super) struct Zfs;

impl Backend for Zfs {
    fn name(&self) -> &'static str {
        "zfs"
    }

    /// Asks no program: one that fails is what `create` says aloud; see `support` of btrfs.
    fn support(&self, work: &Work<'_>) -> Outcome<Answer> {
        let _top = work.top()?;
        Ok(Answer::good().quoted("device", dataset(work)?).bare("type", self.name()).end_line())
    }

    fn directory(&self, work: &Work<'_>) -> Option<PathBuf> {
        Some(work.request.mount_point.join(SNAPSHOTS))
    }

    fn create(&self, work: &Work<'_>) -> Outcome<Answer> {
        let volume = volume(work)?;
        let created = now();
        work.tools.change("zfs", words!["snapshot", &volume])?;
        Ok(Answer::good().quoted("volume", volume).bare("createtdate", &created).bare("type", self.name()).end_line())
    }

    fn mount(&self, work: &Work<'_>) -> Outcome<Answer> {
        let (_, name) = snapshot_of(work)?;
        // The kernel makes this directory, and mounts the snapshot when it is entered.
        let directory = work.request.mount_point.join(SNAPSHOTS);
        let at = directory.join(&name);
        match std::fs::metadata(at.join(".")) {
            Ok(about) if about.is_dir() => Ok(mounted(at, directory)),
            Ok(_) => Err(Failure::Refused { path: at, why: "it is no directory".to_owned() }),
            Err(error) => Err(Failure::File { doing: "can't enter the snapshot", path: at, error }),
        }
    }

    fn delete(&self, work: &Work<'_>) -> Outcome<Answer> {
        let (dataset, name) = snapshot_of(work)?;
        work.tools.change_patiently("zfs", words!["destroy", &joined(&dataset, &name)])?;
        Ok(Answer::good().end_line())
    }

    fn list(&self, work: &Work<'_>) -> Outcome<Answer> {
        let dataset = dataset(work)?;
        let columns = "name,creation,used";
        let printed =
            work.tools.run("zfs", words!["list", "-H", "-p", "-t", "snapshot", "-d", "1", "-o", columns, dataset])?;
        let mut answer = Answer::new();
        for line in printed.split(|byte| *byte == b'\n') {
            let mut columns = line.split(|byte| *byte == b'\t').map(OsStr::from_bytes);
            let (Some(volume), Some(time), Some(size), None) =
                (columns.next(), columns.next(), columns.next(), columns.next())
            else {
                continue;
            };
            let Some((of, name)) = split(volume) else { continue };
            if of == dataset && is_permitted(name) {
                let named = if made_for(work, dataset, name) { &work.request.name } else { name };
                let entry = Answer::new().quoted("volume", volume).quoted("name", named).quoted("device", dataset);
                let entry = entry.quoted("createtdate", digits(time)).bare("size", &digits(size)).bare("status", "1");
                answer = answer.and(&entry.error(&"").quoted("type", self.name()).end_line());
            }
        }
        Ok(answer)
    }

    fn query(&self, work: &Work<'_>) -> Outcome<Answer> {
        let (dataset, name) = snapshot_of(work)?;
        let volume = joined(&dataset, &name);
        let printed = work.tools.run("zfs", words!["list", "-H", "-p", "-t", "snapshot", "-o", "used", &volume])?;
        let size = digits(OsStr::from_bytes(printed.trim_ascii()));
        Ok(Answer::good().bare("size", &size).error(&"").bare("type", self.name()).end_line())
    }
}

/// `SNAPSHOT_DEVICE`: what the kernel calls the device of a file system.
fn dataset<'w>(work: &'w Work<'_>) -> Outcome<&'w OsStr> {
    let device = &work.request.device;
    if is_dataset(device) { Ok(device) } else { Err(wrong("SNAPSHOT_DEVICE", device, "it is no dataset")) }
}

/// What `create` makes.
fn volume(work: &Work<'_>) -> Outcome<OsString> {
    let dataset = dataset(work)?;
    let most = LONGEST.saturating_sub(dataset.len() + 1);
    let name = permitted(work.name()?, PUNCTUATION, most);
    if name.is_empty() {
        return Err(wrong("SNAPSHOT_DEVICE", dataset, "its name is too long for a snapshot"));
    }
    Ok(joined(dataset, OsStr::new(&name)))
}

/// What `SNAPSHOT_VOLUME` names, if it is a snapshot that `create` can have made. Without its `@`
/// it would be the dataset itself.
fn snapshot_of(work: &Work<'_>) -> Outcome<(OsString, OsString)> {
    let given = work.volume()?;
    let refused = |why: &str| Failure::Refused { path: PathBuf::from(given), why: why.to_owned() };
    let (dataset, name) = split(given).ok_or_else(|| refused("it is no snapshot"))?;
    if !is_dataset(dataset) || !is_permitted(name) {
        return Err(refused("it is not the name of a snapshot of this program"));
    }
    if !(work.request.device.is_empty()
        || work.request.device == dataset
        || work.request.device.as_bytes().starts_with(b"/"))
    {
        return Err(wrong("SNAPSHOT_DEVICE", &work.request.device, "the volume is of another dataset"));
    }
    if !work.request.name.is_empty() && !made_for(work, dataset, name) {
        return Err(wrong("SNAPSHOT_NAME", &work.request.name, "it is not the name of the volume"));
    }
    Ok((dataset.to_owned(), name.to_owned()))
}

/// Whether a snapshot of a dataset has the name that `create` gives it for this job.
fn made_for(work: &Work<'_>, dataset: &OsStr, name: &OsStr) -> bool {
    let most = LONGEST.saturating_sub(dataset.len() + 1);
    work.name().is_ok_and(|wanted| *permitted(wanted, PUNCTUATION, most) == *name)
}

fn split(volume: &OsStr) -> Option<(&OsStr, &OsStr)> {
    let mut parts = volume.as_bytes().split(|byte| *byte == b'@').map(OsStr::from_bytes);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(dataset), Some(name), None) => Some((dataset, name)),
        _ => None,
    }
}

fn joined(dataset: &OsStr, name: &OsStr) -> OsString {
    let mut volume = dataset.to_owned();
    volume.push("@");
    volume.push(name);
    volume
}

/// No option, no path, one line.
fn is_dataset(name: &OsStr) -> bool {
    let good = |byte: &u8| byte.is_ascii_alphanumeric() || b" .-_:/".contains(byte);
    let bytes = name.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric) && bytes.iter().all(good)
}

fn is_permitted(name: &OsStr) -> bool {
    !name.is_empty() && *permitted(name, PUNCTUATION, usize::MAX) == *name
}

/// A number, or 0.
fn digits(text: &OsStr) -> String {
    text.to_string_lossy().parse::<u64>().unwrap_or_default().to_string()
}
