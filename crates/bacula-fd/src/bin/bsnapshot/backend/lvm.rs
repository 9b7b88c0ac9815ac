//! Snapshots of logical volumes with ext3, ext4 or XFS. `lvcreate` freezes the file system while it
//! makes one, so there is nothing to be done about that here.

mod volumes;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::answer::Answer;
use crate::backend::actions::Backend;
use crate::backend::lvm::volumes::{Group, LogicalVolume, Volumes, dm_uuid};
use crate::backend::names::permitted;
use crate::backend::privately::{Private, release};
use crate::backend::work::{Work, mounted, now, wrong};
use crate::failure::{Failure, Outcome};
use crate::mounts::Mounts;
use crate::place::{Place, make_snapshot_directory, snapshot_directory};
use crate::settings::SnapshotSize;
use crate::tools::words;

/// Bytes of the names of group and volume together, in the form of the device mapper.
const LONGEST: usize = 120;
/// What a name may have beside letters and digits.
const PUNCTUATION: &str = ".-_+";
/// Of the volume, if nothing else is said.
const USUAL: SnapshotSize = SnapshotSize::Percent(10);
/// Sizes are multiples of this many bytes.
const SECTOR: u64 = 512;

/// The backend.
pub(super) struct Lvm;

impl Backend for Lvm {
    fn name(&self) -> &'static str {
        "lvm"
    }

    fn support(&self, work: &Work<'_>) -> Outcome<Answer> {
        let top = work.top()?;
        // Spares the programs where they have nothing to say, as for a plain partition.
        if !dm_uuid(work.tools, top.about().st_dev).is_some_and(|uuid| uuid.starts_with(b"LVM-")) {
            return Err(Failure::NotLvm);
        }
        // The snapshot is mounted as a whole, so the daemon would read its top directory.
        if Mounts::read(work.tools)?.at(top.path()).is_some_and(|mount| mount.root != Path::new("/")) {
            let why = "only a directory of its file system is mounted here".to_owned();
            return Err(Failure::Refused { path: top.path().to_owned(), why });
        }
        let (device, volumes) = (&work.request.device, Volumes::read(work.tools).ok());
        // If `lvs` fails or doesn't list it, `create` says so aloud; see the same of btrfs.
        let Some(volume) = volumes.as_ref().and_then(|volumes| volumes.of_device(top.about().st_dev, device)) else {
            return Ok(Answer::good().quoted("device", device).bare("type", self.name()).end_line());
        };
        work.must_not_be(&volume.path)?;
        if let Some(why) = volume.has_no_snapshots() {
            return Err(Failure::Refused { path: PathBuf::from(&volume.path), why: why.to_owned() });
        }
        Ok(Answer::good().quoted("device", &volume.path).bare("type", self.name()).end_line())
    }

    fn directory(&self, work: &Work<'_>) -> Option<PathBuf> {
        // In one of another user nothing is made.
        let top = work.top().ok().filter(Place::is_guarded)?;
        work.own_directory(&top)
    }

    fn create(&self, work: &Work<'_>) -> Outcome<Answer> {
        let volumes = Volumes::read(work.tools)?;
        let device = &work.request.device;
        let volume =
            volumes.at(device).ok_or_else(|| wrong("SNAPSHOT_DEVICE", device, "lvs lists no such logical volume"))?;
        if let Some(why) = volume.has_no_snapshots() {
            return Err(Failure::Refused { path: PathBuf::from(&volume.path), why: why.to_owned() });
        }
        let name = snapshot_name(volume, work.name()?)?;
        let created = now();
        if volume.is_thin() {
            // It takes its space from the pool, and would not be activated by itself.
            let options = words!["-s", "-n", &name, "-k", "n", "-a", "y", &volume.path];
            work.tools.change("lvcreate", options)?;
        } else {
            let size = snapshot_size(work, volume);
            let group = Group::read(work.tools, &volume.group)?;
            if group.free < size {
                let (group, free, path) = (volume.group.display(), group.free, volume.path.display());
                return Err(Failure::Other(format!(
                    "volume group {group} has {free} bytes free, and a snapshot of {path} needs {size}: extend the group \
                     (vgextend), or set a smaller lvm_snapshot_size"
                )));
            }
            work.tools.change("lvcreate", words!["-s", "-n", &name, "-L", &format!("{size}b"), &volume.path])?;
        }
        let made = volume.sibling(&name);
        let answer = Answer::good().quoted("volume", made).quoted("createtdate", created);
        Ok(answer.bare("type", self.name()).end_line())
    }

    fn mount(&self, work: &Work<'_>) -> Outcome<Answer> {
        let volume = find(work)?;
        let top = work.top()?;
        let below = |directory: Place, name: &OsStr| directory.make(name, work.tools).map(|at| (at, directory));
        let usual = || below(make_snapshot_directory(&top, &work.settings.snapshot_dir, work.tools)?, work.name()?);
        // What is another user's is not touched. Others may be read-only or full.
        let found = if top.is_guarded() { usual().ok() } else { None };
        let (at, place) = if let Some(found) = found {
            found
        } else {
            let private = Private::make(work, &top)?;
            below(private.directory, &private.name)?
        };
        let options = mount_options(work, &volume);
        let kind = &work.request.file_system;
        let mut arguments = words!["-o", &options].to_vec();
        if !kind.is_empty() {
            arguments.extend(words!["-t", kind]);
        }
        arguments.extend(words![&volume.path, at.path()]);
        if let Err(failure) = work.tools.change("mount", &arguments) {
            // The first failure is the one to be told.
            let _ = at.path().file_name().map(|name| place.remove(name, work.tools));
            return Err(failure);
        }
        Ok(mounted(at.path(), place.path()))
    }

    fn unmount(&self, work: &Work<'_>) -> Outcome<Answer> {
        let name = work.name()?;
        let top = work.top()?;
        let told = &work.request.snapshot_mount_point;
        if let Some(private) = Private::find(work, &top)? {
            private.release(work)?;
        }
        // What is no directory of ours was not used.
        let directory = snapshot_directory(&top, &work.settings.snapshot_dir).ok().flatten();
        if let Some(directory) = directory.filter(Place::is_guarded) {
            let usual = told.as_os_str().is_empty() || told.parent() == Some(directory.path());
            if usual && told.file_name().is_none_or(|last| last == name) {
                release(work, &directory, name)?;
            }
        }
        Ok(Answer::good().end_line())
    }

    fn delete(&self, work: &Work<'_>) -> Outcome<Answer> {
        let volume = find(work)?;
        // What is busy is told by the program.
        let _ = release_all(work, &volume);
        work.tools.change_patiently("lvremove", words!["-f", &volume.path])?;
        Ok(Answer::good().end_line())
    }

    fn list(&self, work: &Work<'_>) -> Outcome<Answer> {
        let volumes = Volumes::read(work.tools)?;
        let device = &work.request.device;
        let origin =
            volumes.at(device).ok_or_else(|| wrong("SNAPSHOT_DEVICE", device, "lvs lists no such logical volume"))?;
        let mut answer = Answer::new();
        for volume in volumes.snapshots_of(origin) {
            let Some(name) = name_in(volume) else { continue };
            let is_of_job =
                work.name().and_then(|name| snapshot_name(origin, name)).is_ok_and(|name| *name == *volume.name);
            let name = if is_of_job { &work.request.name } else { name };
            let entry =
                Answer::new().quoted("volume", &volume.path).quoted("name", name).quoted("device", &origin.path);
            let entry = entry.quoted("createtdate", &volume.created).bare("size", &volume.size.to_string());
            answer = answer.and(&state(entry, volume).bare("type", self.name()).end_line());
        }
        Ok(answer)
    }

    fn query(&self, work: &Work<'_>) -> Outcome<Answer> {
        let volume = find(work)?;
        let answer = state(Answer::new(), &volume).bare("size", &volume.size.to_string());
        Ok(answer.quoted("createtdate", &volume.created).bare("type", self.name()).end_line())
    }
}

/// `SNAPSHOT_VOLUME`, if it is a snapshot that `create` can have made.
fn find(work: &Work<'_>) -> Outcome<LogicalVolume> {
    let given = work.volume()?;
    let refused = |why: &str| Failure::Refused { path: PathBuf::from(given), why: why.to_owned() };
    let volumes = Volumes::read(work.tools)?;
    let volume = volumes.at(given).ok_or_else(|| refused("there is no such logical volume"))?;
    let origin = volumes.origin_of(volume).ok_or_else(|| refused("it is no snapshot"))?;
    if name_in(volume).is_none() {
        return Err(refused("its name does not begin with that of its origin, so this program did not make it"));
    }
    if !work.request.name.is_empty() && *snapshot_name(origin, work.name()?)? != *volume.name {
        return Err(wrong("SNAPSHOT_NAME", &work.request.name, "it is not the name of the volume"));
    }
    Ok(volume.clone())
}

/// Unmounts a snapshot where `mount` can have mounted it. The daemon may have died before it knew
/// of that, and the console knows no mount points.
fn release_all(work: &Work<'_>, volume: &LogicalVolume) -> Outcome<()> {
    for mount in Mounts::read(work.tools)?.all().iter().filter(|mount| volume.is_numbered(&mount.device)) {
        let (Some(parent), Some(name)) = (mount.at.parent(), mount.at.file_name()) else { continue };
        let settings = work.settings;
        if parent == settings.private_dir || parent.file_name() == Some(&settings.snapshot_dir) {
            let directory = Place::open(parent)?.must_be_ours()?;
            if directory.is_guarded() {
                release(work, &directory, name)?;
            }
        }
    }
    Ok(())
}

/// `LV_NAME`, cut if it would be too long for the device mapper, which doubles each `-`.
fn snapshot_name(origin: &LogicalVolume, name: &OsStr) -> Outcome<String> {
    let doubled = |text: &[u8]| text.len() + text.split(|byte| *byte == b'-').count() - 1;
    let taken = doubled(origin.group.as_bytes()) + doubled(origin.name.as_bytes()) + 2;
    let room = LONGEST.saturating_sub(taken);
    let mut most = room;
    let mut end = permitted(name, PUNCTUATION, most);
    while doubled(end.as_bytes()) > room {
        most = most.saturating_sub(1);
        end = permitted(name, PUNCTUATION, most);
    }
    if end.len() < name.len().min(23) {
        let path = PathBuf::from(&origin.path);
        return Err(Failure::Refused { path, why: "its name is too long for a snapshot".to_owned() });
    }
    Ok(format!("{}_{end}", origin.name.display()))
}

/// The job's name in the volume's.
fn name_in(volume: &LogicalVolume) -> Option<&OsStr> {
    let rest = volume.name.as_bytes().strip_prefix(volume.origin.as_bytes())?.strip_prefix(b"_")?;
    Some(OsStr::from_bytes(rest)).filter(|name| !name.is_empty())
}

/// `status` and `error` of a snapshot.
fn state(answer: Answer, volume: &LogicalVolume) -> Answer {
    if volume.is_invalid() {
        let error = "the snapshot is full, and its data is lost: set a larger lvm_snapshot_size";
        return answer.bare("status", "0").error(&error);
    }
    answer.bare("status", "1").error(&"")
}

fn snapshot_size(work: &Work<'_>, volume: &LogicalVolume) -> u64 {
    let sizes = &work.settings.lvm_snapshot_size;
    let size = sizes.iter().find(|(named, _)| volume.is_at(named)).map_or(USUAL, |(_, size)| *size);
    let bytes = match size {
        SnapshotSize::Bytes(bytes) => bytes,
        SnapshotSize::Percent(percent) => {
            u64::try_from(u128::from(volume.size) * u128::from(percent) / 100).unwrap_or(u64::MAX)
        }
    };
    (bytes / SECTOR * SECTOR).max(SECTOR)
}

/// Read-only. XFS refuses two file systems of one number, unless it must not look at it. A snapshot
/// that is full has read errors; ext3 and ext4 have what to do then in the superblock, which is
/// that of the volume: it may be that the host is to panic.
fn mount_options(work: &Work<'_>, volume: &LogicalVolume) -> OsString {
    let usual = match work.request.file_system.as_bytes() {
        b"xfs" => "ro,nouuid",
        b"ext3" | b"ext4" => "ro,errors=continue",
        _ => "ro",
    };
    let mut options = OsString::from(usual);
    for (device, more) in &work.settings.mountopts {
        let is_for = |device: &OsString| {
            *device == work.request.device || *device == volume.path || *device == volume.origin_path()
        };
        if device.as_ref().is_none_or(is_for) && !more.is_empty() && *more != *"nouuid" {
            options.push(",");
            options.push(more);
        }
    }
    options
}
