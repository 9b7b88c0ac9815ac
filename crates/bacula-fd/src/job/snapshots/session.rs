//! The snapshots of one backup: made before its first file, removed after its last (reference 07
//! §12.2).

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use fd_fileset::{FileSet, Flags, Include, plain_path};
use fd_messages::{CancelToken, JobLog as _, MessageType};
use fd_os::process::IsWanted;
use fd_session::command::NamedSnapshot;
use fd_walk::{DirectoryLimits, Snapshots, fs_types, real_path, split_path, without_slashes};

use crate::job::outbox::Outbox;
use crate::job::own_thread::ask_storage;
use crate::job::snapshots::choice::{self, Mounted, MountedSnapshot, Questions, Region, Top};
use crate::job::snapshots::helper::{Action, Failed, Helper};
use crate::job::snapshots::mounts::{Mount, MountTable};
use crate::job::snapshots::remove::{Removed, remove};
use crate::job::snapshots::scan;
use crate::shared::daemon::Daemon;
use crate::shared::job::Job;
use crate::shared::snapshot_journal::{Snapshot, SnapshotJournal};
use crate::texts;

/// Kinds of snapshots that are no copies: what is in them has its inode numbers.
const WITH_INODES: [&[u8]; 3] = [b"btrfs", b"lvm", b"zfs"];

/// What a backup with snapshots needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Order<'d> {
    /// The daemon.
    pub(crate) daemon: &'d Daemon,
    /// Its helper program.
    pub(crate) helper: Helper,
    /// What its Director may read.
    pub(crate) limits: DirectoryLimits,
    /// How long the snapshots stay, in seconds, as the Director wrote it; `None` if they are
    /// removed when the job ends.
    pub(crate) retention: Option<Vec<u8>>,
}

/// The snapshots of a running job. Dropped, they are removed.
#[derive(Debug)]
pub(crate) struct Session<'j> {
    job: &'j Job,
    outbox: &'j Outbox,
    helper: Helper,
    journal: &'j SnapshotJournal,
    made: Vec<Made>,
}

#[derive(Debug)]
struct Made {
    /// In the journal.
    number: u64,
    device_number: u64,
    about: Snapshot,
}

/// The job is over: its messages and state say why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Over;

impl<'j> Session<'j> {
    /// Makes the snapshots, and notes in `reads` where the walk finds them.
    ///
    /// # Errors
    /// When a file system that needs a snapshot gets none, or the job is canceled. What was made
    /// is removed.
    pub(crate) fn open(
        order: &'j Order<'j>,
        fileset: &Arc<FileSet>,
        job: &'j Job,
        outbox: &'j Outbox,
        reads: &mut Arc<Snapshots>,
    ) -> Result<Self, Over> {
        let (helper, journal) = (order.helper.clone(), &order.daemon.own_files.snapshot_journal);
        let mut session = Self { job, outbox, helper, journal, made: Vec::new() };
        *reads = hiding(&journal.places());
        if !session.helper.exists() {
            return Ok(session);
        }
        let wanted = || !job.cancel.is_canceled();
        let table = match scan::table(&session.helper, &job.identity.name, &journal.places(), &wanted) {
            Ok(table) => table,
            Err(error) => {
                tracing::warn!(%error, "the table of mounts can't be read");
                outbox.message(MessageType::Error, texts::NO_MOUNT_TABLE);
                return Ok(session);
            }
        };
        let (cancel, fileset, limits) = (job.cancel.clone(), Arc::clone(fileset), order.limits.clone());
        let (regions, strays, table) = session.ask_storage(&wanted, move || {
            let tops = tops(&fileset, &limits, &cancel);
            let regions = regions(&fileset, &tops, &table, &limits);
            let strays: Vec<_> = choice::strays(&tops, &table).map(|(name, at)| (name.to_vec(), at.clone())).collect();
            (regions, strays, table)
        })?;
        for text in told_of_strays(&session.helper, &job.identity.name, &strays, &wanted) {
            outbox.message(MessageType::Error, &text);
        }
        let (devices, directories) = session.supported(&regions, &table, &wanted);
        // What is read as it is now has the snapshots of other jobs in it.
        *reads = hiding(&[journal.places(), directories.clone()].concat());
        if job.cancel.is_canceled() {
            return Err(Over);
        }
        if devices.is_empty() {
            return Ok(session);
        }
        job.set_snapshots(true);
        for (device_number, about) in devices {
            session.create(device_number, about, order.retention.as_deref(), &wanted).inspect_err(|Over| {
                job.set_snapshots(false);
            })?;
        }
        let (mounted, mut places) = session.mount(&wanted);
        if job.cancel.is_canceled() {
            return Err(Over);
        }
        places.extend([journal.places(), directories].concat());
        let (snapshots, not_shown) = session.ask_storage(&wanted, move || {
            let mut not_shown = Vec::new();
            let mut snapshots = choice::readings(&regions, &table, &mounted, &is_shown, |name, mount| {
                not_shown.push(texts::not_in_snapshot(name, &mount.point));
            });
            choice::hide(&mut snapshots, &places, &table, &mounted);
            (snapshots, not_shown)
        })?;
        for text in not_shown {
            outbox.message(MessageType::Error, &text);
        }
        *reads = Arc::new(snapshots);
        Ok(session)
    }

    fn ask_storage<T: Send + 'static>(
        &self,
        wanted: IsWanted<'_>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Over> {
        ask_storage(self.job, wanted, work).map_err(|nothing| {
            let (kind, text) = nothing.message();
            self.outbox.message(kind, text);
            Over
        })
    }

    /// The file systems that can have a snapshot, ascending, and the directories that are for those
    /// of any.
    fn supported(
        &self,
        regions: &[Region],
        table: &MountTable,
        wanted: IsWanted<'_>,
    ) -> (BTreeMap<u64, Snapshot>, Vec<Vec<u8>>) {
        let name = &self.job.identity.name;
        let (mut found, mut directories) = (BTreeMap::new(), Vec::new());
        for number in choice::devices(regions, table) {
            let Some(mount) = table.main(number).and_then(|at| table.get(at)) else { continue };
            if !wanted() {
                break;
            }
            let about = match scan::support(&self.helper, mount, name, wanted) {
                Ok(mut about) => {
                    directories.extend(named(&std::mem::take(&mut about.snap_directory)));
                    about
                }
                Err(failed) => {
                    directories.extend(named(&failed.snap_directory));
                    if let Some(text) = without_answer(&failed, mount, wanted) {
                        self.outbox.message(MessageType::Error, &text);
                    }
                    continue;
                }
            };
            // Read as it is now, it is saved with all that is in it.
            if let Some(why) = table.incomplete(number) {
                let text = texts::subvolumes_not_known(&about.mount_point, why);
                self.outbox.message(MessageType::Error, &text);
            } else {
                found.insert(number, about);
            }
        }
        (found, directories)
    }

    fn create(
        &mut self,
        device_number: u64,
        mut about: Snapshot,
        retention: Option<&[u8]>,
        wanted: IsWanted<'_>,
    ) -> Result<(), Over> {
        if !wanted() {
            return Err(Over);
        }
        // It is in the journal before it is there.
        let number = self.journal.add(&about);
        let answer = match self.helper.ask(Action::Create, &about, wanted) {
            Ok(answer) => answer,
            Err(failed) => return self.not_created(number, device_number, &about, &failed, wanted),
        };
        about.volume = answer.volume;
        if !answer.kind.is_empty() {
            about.kind = answer.kind;
        }
        self.journal.note(number, &about);
        self.outbox.message(MessageType::Info, &texts::snapshot_created(&about.mount_point));
        let stays = retention.is_some_and(|retention| self.is_noted(&about, answer.created, retention));
        if stays {
            about.stays = true;
            self.journal.note(number, &about);
        }
        self.made.push(Made { number, device_number, about });
        Ok(())
    }

    fn not_created(
        &self,
        number: u64,
        device_number: u64,
        about: &Snapshot,
        failed: &Failed,
        wanted: IsWanted<'_>,
    ) -> Result<(), Over> {
        // A helper that was ended may have made it, or something that it has started makes it
        // later: then the next start of the daemon looks again.
        if !failed.was_ended || self.removed(about) == Ok(Removed::Done) {
            self.journal.forget(number);
        } else {
            self.journal.leave(number);
        }
        if failed.was_ended && self.job.cancel.is_canceled() {
            return Err(Over);
        }
        let text = texts::snapshot_not_created(&about.mount_point, &failed.error);
        let point = about.mount_point.clone();
        let is_there = move || {
            let found = nix::sys::stat::lstat(OsStr::from_bytes(&point));
            found.is_ok_and(|found| found.st_dev == device_number)
        };
        // The helper says that the job may go on without it; or there is nothing to save any more.
        if failed.status == 2 || !self.ask_storage(wanted, is_there)? {
            self.outbox.message(MessageType::Error, &text);
            return Ok(());
        }
        self.outbox.message(MessageType::Fatal, &text);
        Err(Over)
    }

    /// Whether the Director has noted a snapshot that is to stay.
    fn is_noted(&self, about: &Snapshot, created: i64, retention: &[u8]) -> bool {
        let Snapshot { name, volume, device, kind, .. } = about.clone();
        let snapshot = NamedSnapshot { name, volume, device, kind };
        let question = texts::new_snapshot(&self.job.identity.name, &snapshot, created, retention);
        let answer = self.outbox.ask(question);
        if answer.as_ref().is_some_and(|answer| answer.starts_with(texts::SNAPSHOT_NOTED)) {
            return true;
        }
        let text = texts::snapshot_not_noted(&about.mount_point, answer.as_deref().unwrap_or_default());
        self.outbox.message(MessageType::Warning, &text);
        false
    }

    /// Mounts what was made: where each snapshot is, and the directories that hold snapshots.
    fn mount(&mut self, wanted: IsWanted<'_>) -> (Mounted, Vec<Vec<u8>>) {
        let (mut mounted, mut directories) = (Mounted::new(), Vec::new());
        for made in &mut self.made {
            if !wanted() {
                break;
            }
            let point = made.about.mount_point.clone();
            if made.about.volume.is_empty() {
                let text = texts::snapshot_not_mounted(&point, texts::NO_SNAPSHOT_VOLUME);
                self.outbox.message(MessageType::Error, &text);
                continue;
            }
            made.about.is_mounted = true;
            self.journal.note(made.number, &made.about);
            let why = match self.helper.ask(Action::Mount, &made.about, wanted) {
                Ok(answer) if answer.status.is_some_and(|status| status < 1) => Vec::new(),
                Ok(answer) if answer.snap_mount_point.starts_with(b"/") => {
                    if !answer.snap_directory.is_empty() {
                        directories.push(plain_path(&answer.snap_directory));
                    }
                    let keeps_inodes = WITH_INODES.contains(&made.about.kind.as_slice());
                    let shown = MountedSnapshot { point: answer.snap_mount_point.clone(), keeps_inodes };
                    mounted.insert(made.device_number, shown);
                    made.about.snap_mount_point = answer.snap_mount_point;
                    made.about.snap_directory = without_slashes(&answer.snap_directory).to_vec();
                    self.journal.note(made.number, &made.about);
                    continue;
                }
                Ok(_) => texts::NO_SNAPSHOT_MOUNT_POINT.to_vec(),
                Err(failed) if failed.was_ended => {
                    self.outbox.message(MessageType::Error, &texts::snapshot_not_mounted(&point, &failed.error));
                    continue;
                }
                Err(failed) => failed.error,
            };
            self.outbox.message(MessageType::Error, &texts::snapshot_not_mounted(&point, &why));
            made.about.is_mounted = false;
            self.journal.note(made.number, &made.about);
        }
        (mounted, directories)
    }

    /// Unmounts and removes what was made. A `cancel` that comes while this is done ends it; the
    /// next start of the daemon removes the rest.
    fn close(&mut self) {
        for made in std::mem::take(&mut self.made) {
            let point = &made.about.mount_point;
            match self.removed(&made.about) {
                Ok(_) if made.about.stays => {}
                // Who deletes it unmounts it.
                Err(failed) if made.about.stays => {
                    let text = texts::snapshot_not_unmounted(point, &failed.error);
                    self.outbox.message(MessageType::Error, &text);
                }
                Ok(Removed::NotThere) => {
                    let text = texts::snapshot_not_removed(point, texts::NO_SNAPSHOT_VOLUME);
                    self.outbox.message(MessageType::Error, &text);
                }
                Ok(Removed::Done) => self.outbox.message(MessageType::Info, &texts::snapshot_removed(point)),
                Err(failed) => {
                    let text = texts::snapshot_not_removed(point, &failed.error);
                    self.outbox.message(MessageType::Error, &text);
                    self.journal.leave(made.number);
                    continue;
                }
            }
            self.journal.forget(made.number);
        }
    }

    fn removed(&self, about: &Snapshot) -> Result<Removed, Failed> {
        let aborts = self.job.aborts();
        remove(&self.helper, about, &|| self.job.aborts() == aborts)
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

/// Names in subvolumes that are not known are read as they are now: what is told of that.
fn told_of_strays(helper: &Helper, job: &[u8], strays: &[(Vec<u8>, Mount)], wanted: IsWanted<'_>) -> Vec<Vec<u8>> {
    let mut unanswered = Vec::new();
    let has_support = |mount: &Mount| {
        let answer = scan::support(helper, mount, job, wanted);
        unanswered.extend(answer.as_ref().err().and_then(|failed| without_answer(failed, mount, wanted)));
        answer.is_ok()
    };
    let without = choice::without_snapshot(strays, has_support);
    let told: Vec<_> = without.map(|(name, mount)| texts::not_in_snapshot(name, &mount.point)).collect();
    [unanswered, told].concat()
}

/// What is told of a helper that gave no answer about a file system: it has not said that there can
/// be no snapshot.
fn without_answer(failed: &Failed, mount: &Mount, wanted: IsWanted<'_>) -> Option<Vec<u8>> {
    (failed.is_no_answer() && wanted()).then(|| texts::snapshot_not_created(&mount.point, &failed.error))
}

/// What a backup with snapshots leaves out of these files, for a walk that makes none.
pub(crate) fn hidden(order: &Order<'_>, fileset: &Arc<FileSet>, job: &Job, wanted: IsWanted<'_>) -> Arc<Snapshots> {
    let (helper, name) = (&order.helper, &job.identity.name);
    let mut places = order.daemon.own_files.snapshot_journal.places();
    let table = if helper.exists() { scan::table(helper, name, &places, wanted).ok() } else { None };
    let (cancel, fileset, limits) = (job.cancel.clone(), Arc::clone(fileset), order.limits.clone());
    let looked = table.map(|table| {
        ask_storage(job, wanted, move || (regions(&fileset, &tops(&fileset, &limits, &cancel), &table, &limits), table))
    });
    if let Some(Ok((regions, table))) = looked {
        let mounts = choice::devices(&regions, &table).into_iter().filter_map(|number| table.get(table.main(number)?));
        for mount in mounts.take_while(|_| wanted()) {
            let answer = scan::support(helper, mount, name, wanted);
            let directory = answer.map_or_else(|failed| failed.snap_directory, |about| about.snap_directory);
            places.extend(named(&directory));
        }
    }
    hiding(&places)
}

/// The directory of snapshots that the helper has named, if it has.
fn named(directory: &[u8]) -> Option<Vec<u8>> {
    directory.starts_with(b"/").then(|| plain_path(directory))
}

/// No snapshots, but these directories are left out.
fn hiding(places: &[Vec<u8>]) -> Arc<Snapshots> {
    let mut snapshots = Snapshots::default();
    for place in places {
        snapshots.hide(place);
    }
    Arc::new(snapshots)
}

/// The names of the FileSet that are there, and that the Director may read. Not a FIFO that is
/// read: in a snapshot it has no writer.
fn tops<'f>(fileset: &'f FileSet, limits: &DirectoryLimits, cancel: &CancelToken) -> Vec<Top<'f>> {
    let includes = fileset.includes().iter().enumerate();
    let names = includes.flat_map(|(number, include)| include.names().iter().map(move |name| (number, include, name)));
    let top = |(number, include, name): (usize, &'f Include, &'f Vec<u8>)| {
        let found = nix::sys::stat::lstat(OsStr::from_bytes(name)).ok().filter(|_| !cancel.is_canceled())?;
        let kind = found.st_mode & nix::libc::S_IFMT;
        if kind == nix::libc::S_IFIFO && include.top_level().has(Flags::READ_FIFO) {
            return None;
        }
        let real = if kind == nix::libc::S_IFLNK {
            let (directory, last) = split_path(name);
            plain_path(&[real_path(directory).as_slice(), b"/", last].concat())
        } else {
            real_path(name)
        };
        let is_directory = kind == nix::libc::S_IFDIR;
        limits.accepts(&real).then_some(Top {
            include,
            number,
            name,
            real,
            device_number: found.st_dev,
            inode: found.st_ino,
            is_directory,
        })
    };
    names.filter_map(top).collect()
}

/// Whether a region is at this path of its snapshot. It may have been exchanged before the snapshot
/// was made, or after it.
fn is_shown(region: &Region, path: &[u8]) -> bool {
    let inode = |path: &[u8]| nix::sys::stat::lstat(OsStr::from_bytes(path)).ok().map(|found| found.st_ino);
    let there = inode(path);
    there == inode(&region.real) || there.is_some() && there == region.inode
}

/// See [`choice::regions`].
fn regions(fileset: &FileSet, tops: &[Top<'_>], table: &MountTable, limits: &DirectoryLimits) -> Vec<Region> {
    let questions = Questions {
        is_marked: &|directory, marker| limits.shows(directory, marker),
        is_left_out: &|options, path| fs_types::left_out(&options.fs_types, path).is_some(),
    };
    choice::regions(fileset, tops, table, &questions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::snapshots::choice::tests::fileset;
    use crate::job::snapshots::helper::tests::helper;

    #[test]
    fn a_fifo_that_is_read_is_no_name_of_a_snapshot() {
        let folder = tempfile::tempdir().unwrap();
        let [file, fifo] = ["file", "fifo"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
        std::fs::write(&file, "").unwrap();
        nix::unistd::mkfifo(&*fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for (options, expected) in [("O r", vec![&file]), ("O M", vec![&file, &fifo])] {
            let fileset = fileset(&["I", options, "N", &format!("F {file}"), &format!("F {fifo}"), "N", "N"]);
            let tops = tops(&fileset, &DirectoryLimits::default(), &CancelToken::default());
            let names: Vec<_> = tops.iter().map(|top| std::str::from_utf8(top.name).unwrap()).collect();
            assert_eq!(names, expected, "{options}");
        }
    }

    /// It has not said that there can be no snapshot.
    #[test]
    fn a_helper_that_is_ended_while_it_is_asked_about_subvolumes_is_told_once_a_file_system() {
        let stray = |name: &str| (name.as_bytes().to_vec(), Mount { point: b"/p".to_vec(), ..Mount::default() });
        let strays = [stray("/p/1"), stray("/p/2")];
        for (script, count, expected) in [
            ("kill -9 $$", 1, "   Unable to create snapshot of /p ERR="),
            ("echo status=0", 0, ""),
            ("echo status=1", 2, "   Unable to use snapshot of /p ERR=/p/1 is a place of its file system"),
        ] {
            let (helper, folder) = helper("strays", script, "");
            let told = told_of_strays(&helper, b"job", &strays, &|| true);
            std::fs::remove_dir_all(folder).unwrap();
            assert_eq!(told.len(), count, "{script}");
            assert!(told.first().is_none_or(|told| told.starts_with(expected.as_bytes())), "{script}");
        }
    }

    /// Otherwise the message about its snapshot tells that there is a file.
    #[test]
    fn what_a_director_may_not_read_is_no_name_of_a_snapshot() {
        let folder = tempfile::tempdir().unwrap();
        let [own, secret] = ["own", "secret"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
        for path in [&own, &secret] {
            std::fs::write(path, "").unwrap();
        }
        let fileset = fileset(&["I", &format!("F {own}"), &format!("F {secret}"), "N", "N"]);
        let listed = |path: &str| vec![path.as_bytes().to_vec()];
        for limits in [DirectoryLimits::new(&listed(&own), &[]), DirectoryLimits::new(&[], &listed(&secret))] {
            let tops = tops(&fileset, &limits, &CancelToken::default());
            assert_eq!(tops.iter().map(|top| top.name).collect::<Vec<_>>(), [own.as_bytes()]);
        }
    }
}
