//! The snapshots that the daemon has made and has still to remove, in memory and in a file, so that
//! the next start of a daemon that died finds them.
//!
//! The file is `WORKING_DIRECTORY/bacula-fd.PORT.snapshots`. It is trusted only if it belongs to
//! the daemon's user, who alone can read and write it: what is in it is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use fd_fileset::plain_path;
use fd_os::lock::Mutex;
use serde::{Deserialize, Serialize};

use crate::security::own_file;

/// Its mode.
const MODE: u32 = 0o600;
/// The form of what is in it.
const FORM: u32 = 1;
/// Bytes of the longest file that is read or written.
const MOST_BYTES: usize = 1 << 20;

/// What is known of a snapshot (reference 07 §12.4). What is not known yet is empty.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    /// Its name, that of its job.
    pub(crate) name: Vec<u8>,
    /// What the helper program calls it.
    pub(crate) volume: Vec<u8>,
    /// The device of the file system.
    pub(crate) device: Vec<u8>,
    /// The kind of snapshot.
    pub(crate) kind: Vec<u8>,
    /// The type of the file system.
    pub(crate) fs_type: Vec<u8>,
    /// Where the file system is mounted.
    pub(crate) mount_point: Vec<u8>,
    /// Where the snapshot is mounted.
    pub(crate) snap_mount_point: Vec<u8>,
    /// The directory that holds snapshots.
    pub(crate) snap_directory: Vec<u8>,
    /// It may be mounted.
    pub(crate) is_mounted: bool,
    /// It stays when its job has ended: the catalog has it.
    pub(crate) stays: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct SnapshotJournal {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Default, Debug)]
struct State {
    snapshots: BTreeMap<u64, Snapshot>,
    last: u64,
    /// Those of jobs that run.
    in_use: BTreeSet<u64>,
    /// What the daemon before this one has left is in it.
    is_read: bool,
}

impl State {
    fn add(&mut self, snapshot: Snapshot) -> u64 {
        self.last += 1;
        self.snapshots.insert(self.last, snapshot);
        self.last
    }
}

impl SnapshotJournal {
    /// The journal of a daemon that listens on this port.
    pub(crate) fn new(working_directory: &Path, port: u16) -> Self {
        let path = own_file::path(working_directory, port, "snapshots");
        Self { path, state: Mutex::default() }
    }

    /// Reads what the daemon before this one has left, each with its number. To be called once, by
    /// the user that the daemon stays.
    pub(crate) fn load(&self) -> Vec<(u64, Snapshot)> {
        // That of a daemon that was killed while it wrote. Mostly there is none.
        let _ = std::fs::remove_file(own_file::in_the_making(&self.path));
        let mut state = self.state.lock();
        if let Err(error) = self.read(&mut state) {
            let path = self.path.display();
            tracing::warn!(%error, %path, "snapshots that were left stay until the next start: no journal");
        }
        state.snapshots.iter().map(|(number, snapshot)| (*number, snapshot.clone())).collect()
    }

    /// Adds a snapshot, before it is made; its number.
    pub(crate) fn add(&self, snapshot: &Snapshot) -> u64 {
        let mut state = self.state.lock();
        let number = state.add(snapshot.clone());
        state.in_use.insert(number);
        self.write(&mut state);
        number
    }

    /// Notes what is known now.
    pub(crate) fn note(&self, number: u64, snapshot: &Snapshot) {
        let mut state = self.state.lock();
        state.snapshots.insert(number, snapshot.clone());
        self.write(&mut state);
    }

    /// Where the snapshots of all jobs are mounted.
    pub(crate) fn places(&self) -> Vec<Vec<u8>> {
        let state = self.state.lock();
        let places = state.snapshots.values().map(|known| plain_path(&known.snap_mount_point));
        places.filter(|place| place.len() > 1).collect()
    }

    /// Whether a job reads this volume.
    pub(crate) fn is_read_by_a_job(&self, volume: &[u8]) -> bool {
        let state = self.state.lock();
        let mut read = state.in_use.iter().filter_map(|number| state.snapshots.get(number));
        read.any(|known| known.is_mounted && known.volume == volume)
    }

    /// Its job has ended, and could not remove it.
    pub(crate) fn leave(&self, number: u64) {
        self.state.lock().in_use.remove(&number);
    }

    /// It is gone, or stays for good.
    pub(crate) fn forget(&self, number: u64) {
        let mut state = self.state.lock();
        state.snapshots.remove(&number);
        state.in_use.remove(&number);
        self.write(&mut state);
    }

    /// Reads what was left, if that has not been done.
    ///
    /// # Errors
    /// It can't be read for the moment, and must not be replaced either.
    fn read(&self, state: &mut State) -> io::Result<()> {
        if state.is_read {
            return Ok(());
        }
        match read(&self.path) {
            Ok(left) => {
                for snapshot in left {
                    state.add(snapshot);
                }
            }
            Err(error) if own_file::lacks_something(&error) => return Err(error),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(%error, path = %self.path.display(), "the journal of snapshots is not used");
            }
        }
        state.is_read = true;
        Ok(())
    }

    fn write(&self, state: &mut State) {
        if let Err(error) = self.read(state).and_then(|()| write(&self.path, state)) {
            let path = self.path.display();
            tracing::warn!(%error, %path, "snapshots are not removed if the daemon dies: no journal");
        }
    }
}

fn read(path: &Path) -> io::Result<Vec<Snapshot>> {
    decode(&own_file::content(own_file::read_private(path, MODE)?, MOST_BYTES as u64)?)
}

/// Writes a new file and puts it in the place of the old one.
fn write(path: &Path, state: &State) -> io::Result<()> {
    if state.snapshots.is_empty() {
        return match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    let bytes = serde_json::to_vec(&(FORM, state.snapshots.values().collect::<Vec<_>>()))?;
    if bytes.len() > MOST_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    // Lost with the power, the snapshot that is made now would stay for ever.
    own_file::replace(path, MODE, &bytes)
}

/// The snapshots of a file.
fn decode(bytes: &[u8]) -> io::Result<Vec<Snapshot>> {
    match serde_json::from_slice(bytes)? {
        (FORM, snapshots) => Ok(snapshots),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "its form is unknown")),
    }
}

#[cfg(test)]
mod tests;
