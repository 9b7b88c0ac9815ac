//! Snapshots of btrfs: read-only subvolumes in the directory `.snapshots` of the subvolume.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sys::statvfs::{FsFlags, statvfs};

use crate::answer::Answer;
use crate::backend::actions::Backend;
use crate::backend::privately::Private;
use crate::backend::work::{Work, mounted, now, wrong};
use crate::failure::{Failure, Outcome};
use crate::mounts::{Mounts, inside};
use crate::place::{Place, is_exchangeable, make_snapshot_directory, snapshot_directory};
use crate::settings::is_component;
use crate::tools::words;

/// The number of the top directory of every subvolume.
const SUBVOLUME: u64 = 256;

/// The backend.
pub(super) struct Btrfs;

impl Backend for Btrfs {
    fn name(&self) -> &'static str {
        "btrfs"
    }

    /// Those directly below; the daemon asks again for each of them.
    fn subvolumes(&self, work: &Work<'_>) -> Outcome<Answer> {
        let top = work.top()?;
        if !is_subvolume(&top) {
            return Ok(Answer::nothing());
        }
        let printed = match work.tools.run("btrfs", words!["subvolume", "list", "-o", &work.request.mount_point]) {
            // `create` says it aloud; see `support`.
            Err(Failure::NotInstalled { .. }) => return Ok(Answer::nothing()),
            printed => printed?,
        };
        let mounts = Mounts::read(work.tools)?;
        let above = path_in_file_system(&mounts, &work.request.mount_point);
        let mut answer = Answer::new();
        for path in listed_paths(&printed) {
            let Some(below) = below(&path, &above) else { continue };
            if let Some(found) = nested(&top, below, &work.settings.snapshot_dir) {
                let device = found.about().st_dev.to_string();
                let entry = Answer::new().bare("dev", &device).quoted("mountpoint", found.path());
                answer = answer.and(&entry.bare("fstype", "btrfs").end_line());
            }
        }
        Ok(answer)
    }

    fn support(&self, work: &Work<'_>) -> Outcome<Answer> {
        let top = top_of_subvolume(work)?;
        let path = top.path();
        let why = |why: &str| Failure::Refused { path: path.to_owned(), why: why.to_owned() };
        if statvfs(&top.sure_path()).is_ok_and(|about| about.flags().contains(FsFlags::ST_RDONLY)) {
            return Err(why("it is mounted read-only, so no snapshot can be made"));
        }
        if is_read_only(work, &top).is_ok_and(|is_read_only| is_read_only) {
            return Err(why("it is a read-only subvolume, which stays as it is"));
        }
        // Without its program it is supported all the same, so that `create` can say what is
        // missing: the daemon passes over file systems without support silently.
        Ok(Answer::good().quoted("device", path).bare("type", self.name()).end_line())
    }

    fn directory(&self, work: &Work<'_>) -> Option<PathBuf> {
        work.own_directory(&work.top().ok()?)
    }

    fn directory_of_kept(&self, work: &Work<'_>) -> Option<PathBuf> {
        // Other programs keep directories of theirs here.
        let directory = snapshot_directory(&work.top().ok()?, &work.settings.snapshot_dir).ok()??;
        let is_one = |name: &OsString| matches!(directory.child(name), Ok(Some(found)) if is_subvolume(&found));
        directory.names().ok()?.iter().any(is_one).then(|| work.snapshot_directory())
    }

    fn create(&self, work: &Work<'_>) -> Outcome<Answer> {
        let created = now();
        let volume = make(work).map_err(|failure| {
            let can_prevent_it = failure.is_of_a_directory() && is_exchangeable(&work.request.mount_point);
            if can_prevent_it { Failure::Prevented(Box::new(failure)) } else { failure }
        })?;
        let answer = Answer::good().quoted("volume", volume).bare("createtdate", &created);
        Ok(answer.bare("type", self.name()).end_line())
    }

    fn mount(&self, work: &Work<'_>) -> Outcome<Answer> {
        let found = Snapshot::find(work)?;
        let directory = found.directory.path();
        if found.directory.is_guarded() {
            return Ok(mounted(work.volume()?, directory));
        }
        let private = Private::make(work, &work.top()?)?;
        let to = private.directory.make(&private.name, work.tools)?;
        let bind = |flags, from: Option<&Path>| {
            let none: Option<&Path> = None;
            mount(from, &to.sure_path(), none, MsFlags::MS_BIND | flags, none)
        };
        let from = found.subvolume.sure_path();
        let read_only = MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
        let done = bind(MsFlags::empty(), Some(&from)).and_then(|()| {
            // The descriptor leads below the mount; the name leads to it, and is in our directory.
            let none: Option<&Path> = None;
            mount(none, to.path(), none, MsFlags::MS_BIND | read_only, none)
        });
        if let Err(errno) = done {
            let error = errno.into();
            let failure = Failure::File { doing: "can't mount the snapshot at", path: to.path().to_owned(), error };
            // The first failure is the one to be told.
            let _ = private.release(work);
            return Err(failure);
        }
        Ok(mounted(to.path(), directory))
    }

    fn unmount(&self, work: &Work<'_>) -> Outcome<Answer> {
        // What lies in the directory of the snapshots was never mounted.
        if !work.request.mount_point.as_os_str().is_empty()
            && let Some(private) = Private::find(work, &work.top()?)?
        {
            private.release(work)?;
        }
        Ok(Answer::good().end_line())
    }

    fn delete(&self, work: &Work<'_>) -> Outcome<Answer> {
        let found = Snapshot::find(work)?;
        // The daemon may have died before it knew of the mount.
        let _ = self.unmount(work);
        let within = found.directory.sure_path();
        let done = work.tools.change_patiently("btrfs", words!["subvolume", "delete", &within.join(&found.name)]);
        done.map_err(|failure| failure.naming(&[(&within, found.directory.path())]))?;
        if !found.directory.is_guarded() {
            // A database may stumble over a directory in its own that it can't read. This fails as
            // long as other snapshots are in it.
            let top = found.directory.path().parent().map(Place::open).transpose()?;
            let _ = top.map(|top| top.remove(&work.settings.snapshot_dir, work.tools));
        }
        Ok(Answer::good().end_line())
    }

    fn list(&self, work: &Work<'_>) -> Outcome<Answer> {
        let mut answer = Answer::new();
        // As long as the file system is not mounted, nothing is known of its snapshots.
        let top = top_of_subvolume(work)?;
        let Some(directory) = snapshot_directory(&top, &work.settings.snapshot_dir)? else { return Ok(answer) };
        for name in directory.names()? {
            // Other programs keep directories of theirs here.
            let Ok(Some(found)) = directory.child(&name) else { continue };
            if is_subvolume(&found) {
                let created = match creation(work, &found) {
                    Ok(created) => created,
                    // Its job has ended meanwhile.
                    Err(_) if matches!(directory.child(&name), Ok(None)) => continue,
                    Err(_) => OsString::new(),
                };
                let entry = Answer::new().quoted("volume", found.path()).quoted("name", &name);
                let entry = entry.quoted("device", &work.request.mount_point);
                let entry = entry.quoted("createdate", created).quoted("type", self.name());
                answer = answer.and(&entry.end_line());
            }
        }
        Ok(answer)
    }

    fn query(&self, work: &Work<'_>) -> Outcome<Answer> {
        let found = Snapshot::find(work)?;
        let answer = Answer::good().quoted("createdate", creation(work, &found.subvolume)?);
        Ok(answer.bare("type", self.name()).end_line())
    }
}

/// Makes the snapshot of the job; its path.
fn make(work: &Work<'_>) -> Outcome<PathBuf> {
    let name = work.name()?;
    let top = work.top()?;
    match snapshot(work, &top, name) {
        // Another job has removed the directory of the snapshots meanwhile, with its last one.
        Err(_) if snapshot_directory(&top, &work.settings.snapshot_dir)?.is_none() => snapshot(work, &top, name),
        done => done,
    }
}

/// Makes a snapshot; its path.
fn snapshot(work: &Work<'_>, top: &Place, name: &OsStr) -> Outcome<PathBuf> {
    let directory = make_snapshot_directory(top, &work.settings.snapshot_dir, work.tools)?;
    let volume = directory.path().join(name);
    // The program would make the snapshot inside of what is there.
    if directory.child(name)?.is_some() {
        return Err(Failure::Refused { path: volume, why: "there is a snapshot of this name already".to_owned() });
    }
    let (from, within) = (top.sure_path(), directory.sure_path());
    let done = work.tools.change("btrfs", words!["subvolume", "snapshot", "-r", &from, &within.join(name)]);
    done.map_err(|failure| failure.naming(&[(&within, directory.path()), (&from, top.path())]))?;
    if !directory.child(name)?.is_some_and(|made| is_subvolume(&made)) {
        return Err(Failure::Other(format!("btrfs: no snapshot came to be at {}", volume.display())));
    }
    Ok(volume)
}

/// A snapshot that this program can have made.
struct Snapshot {
    directory: Place,
    name: OsString,
    subvolume: Place,
}

impl Snapshot {
    /// What `SNAPSHOT_VOLUME` names: a read-only subvolume in a directory of ours, of this job.
    fn find(work: &Work<'_>) -> Outcome<Self> {
        let volume = Path::new(work.volume()?);
        let refused = |why: &str| Failure::Refused { path: volume.to_owned(), why: why.to_owned() };
        let (Some(parent), Some(name)) = (volume.parent(), volume.file_name()) else {
            return Err(refused("it is no path of a snapshot"));
        };
        if parent.file_name() != Some(&work.settings.snapshot_dir) || parent.join(name) != volume || !is_component(name)
        {
            return Err(refused("it is not in a directory of snapshots"));
        }
        if !(work.request.name.is_empty() || work.request.name == name) {
            return Err(wrong("SNAPSHOT_NAME", &work.request.name, "it is not the name of the volume"));
        }
        let top = &work.request.mount_point;
        if !top.as_os_str().is_empty() && parent != work.snapshot_directory() {
            return Err(wrong("SNAPSHOT_MOUNTPOINT", top.as_os_str(), "the volume is of another file system"));
        }
        let directory = Place::open(parent)?.must_be_ours()?;
        let subvolume = directory.child(name)?.ok_or_else(|| refused("there is no such snapshot"))?;
        if !is_subvolume(&subvolume) {
            return Err(refused("it is no subvolume"));
        }
        if !is_read_only(work, &subvolume)? {
            return Err(refused("it is writable, so it was not made for a backup"));
        }
        Ok(Self { directory, name: name.to_owned(), subvolume })
    }
}

fn top_of_subvolume(work: &Work<'_>) -> Outcome<Place> {
    let top = work.top()?;
    if is_subvolume(&top) {
        return Ok(top);
    }
    let why = "it is not the top directory of a subvolume".to_owned();
    Err(Failure::Refused { path: top.path().to_owned(), why })
}

fn is_subvolume(place: &Place) -> bool {
    place.about().st_ino == SUBVOLUME
}

fn is_read_only(work: &Work<'_>, subvolume: &Place) -> Outcome<bool> {
    let printed = work.tools.run("btrfs", words!["property", "get", "-ts", &subvolume.sure_path(), "ro"])?;
    Ok(printed.trim_ascii() == b"ro=true")
}

/// `2026-11-21 02:20:13`, local time; empty if the program doesn't say it.
fn creation(work: &Work<'_>, snapshot: &Place) -> Outcome<OsString> {
    let printed = work.tools.run("btrfs", words!["subvolume", "show", &snapshot.sure_path()])?;
    let time = printed.split(|byte| *byte == b'\n').find_map(|line| line.trim_ascii().strip_prefix(b"Creation time:"));
    Ok(OsStr::from_bytes(time.unwrap_or_default().trim_ascii().get(..19).unwrap_or_default()).to_owned())
}

/// The paths of `btrfs subvolume list`, each behind `ID 257 gen 7 top level 256 path `. A line of
/// another form belongs to the name before it, which has a newline in it.
fn listed_paths(printed: &[u8]) -> Vec<PathBuf> {
    let mut paths: Vec<Vec<u8>> = Vec::new();
    for line in printed.strip_suffix(b"\n").unwrap_or(printed).split(|byte| *byte == b'\n') {
        match (behind_head(line), paths.last_mut()) {
            (Some(path), _) => paths.push(path.to_vec()),
            (None, Some(last)) => last.extend([b"\n", line].concat()),
            (None, None) => {}
        }
    }
    paths.into_iter().map(|path| PathBuf::from(OsStr::from_bytes(&path))).collect()
}

fn behind_head(line: &[u8]) -> Option<&[u8]> {
    let mut rest = line;
    for word in [&b"ID "[..], b" gen ", b" top level "] {
        rest = rest.strip_prefix(word)?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        rest = rest.get(digits..).filter(|_| digits > 0)?;
    }
    rest.strip_prefix(b" path ")
}

/// Where a directory is in its file system: `@home/x` for `/home/x` if `/home` is `@home`.
fn path_in_file_system(mounts: &Mounts, directory: &Path) -> PathBuf {
    let Some(mount) = mounts.containing(directory) else { return PathBuf::new() };
    let rest = directory.strip_prefix(&mount.at).unwrap_or(Path::new(""));
    Path::new(inside(&mount.root)).join(rest)
}

/// The rest of a path below a directory, both in the file system.
fn below<'p>(path: &'p Path, directory: &Path) -> Option<&'p Path> {
    path.strip_prefix(directory).ok().filter(|rest| !rest.as_os_str().is_empty())
}

/// The subvolume at a path below another one, unless it is a snapshot.
fn nested(top: &Place, below: &Path, snapshots: &OsStr) -> Option<Place> {
    let mut names = below.iter();
    let first = names.next().filter(|first| *first != snapshots)?;
    let mut place = top.child(first).ok()??;
    for name in names {
        place = place.child(name).ok()??;
    }
    Some(place).filter(is_subvolume)
}

#[cfg(test)]
mod tests;
