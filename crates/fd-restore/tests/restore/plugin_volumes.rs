//! Volumes with files of plugins, and jobs that restore them.

use fd_messages::{CancelToken, MessageType};
use fd_records::{FileType, PluginMetadata, Stream};
use fd_restore::{LinkRule, RestoreState, SequenceError};

use crate::fake_plugin::{Answers, Noted, access};
use crate::volume::{Finished, Place, Saved, Volume};

/// The command of the files.
pub(crate) const COMMAND: &str = "tp:a command";

/// How the message begins that a command of the volume is run.
pub(crate) const ASKS: &str = "The volume asks plugin tp to restore: ";

/// What came of a restore with a plugin.
#[derive(Debug)]
pub(crate) struct Restored {
    pub(crate) place: Place,
    pub(crate) finished: Finished,
    pub(crate) noted: Noted,
}

impl Restored {
    pub(crate) fn calls(&self) -> Vec<&str> {
        self.noted.calls.iter().map(String::as_str).collect()
    }

    /// The calls between the first two and the last.
    pub(crate) fn inner_calls(&self) -> Vec<&str> {
        let calls = self.calls();
        assert_eq!((calls[0], calls[1], calls[calls.len() - 1]), ("event 10 tp:a command", "start", "end"));
        calls[2..calls.len() - 1].to_vec()
    }

    /// The messages but that each restore with a plugin has.
    pub(crate) fn told(&self) -> Vec<(MessageType, String)> {
        let root = self.place.root().to_str().unwrap();
        let told = self.finished.told().into_iter().filter(|(_, text)| !text.starts_with(ASKS));
        told.map(|(kind, text)| (kind, text.replace(root, ""))).collect()
    }
}

/// Restores what is on the volume below a new place.
pub(crate) fn restore(answers: Answers, volume: &Volume) -> Restored {
    restore_at(Place::new(), answers, volume, &CancelToken::new())
}

pub(crate) fn restore_at(place: Place, answers: Answers, volume: &Volume, cancel: &CancelToken) -> Restored {
    let mut job = place.job();
    let (access, noted) = access(answers);
    job.plan.plugins = Some(access);
    let finished = job.run_round_with(&mut RestoreState::new(&job.plan, LinkRule::from_now()), cancel, volume);
    drop(job);
    let noted = std::mem::take(&mut *noted.lock().unwrap());
    Restored { place, finished, noted }
}

impl Volume {
    /// Metadata of a plugin.
    pub(crate) fn blob(&mut self, index: u16, data: &[u8]) -> &mut Self {
        let mut record = Vec::new();
        PluginMetadata { total_size: 100, total_count: 2, kind: 0, index, data }.encode(&mut record);
        self.record(Stream::PLUGIN_META_BLOB, &record)
    }

    /// A plugin's file with two blobs, its data, an ACL and an attribute.
    pub(crate) fn of_plugin(&mut self, saved: &Saved) -> &mut Self {
        self.start(COMMAND).put(saved).blob(0, b"one").blob(1, b"two").record(Stream::FILE_DATA, b"hello");
        self.record(Stream::PLUGIN_ACL, b"A").record(Stream::PLUGIN_XATTR, b"X").stop()
    }
}

/// A plugin's regular file.
pub(crate) fn plugin_file(name: &str) -> Saved {
    let mut saved = Saved::new(name, FileType::Regular, 0o100_640);
    saved.stat.size = 5;
    saved
}

/// The plugin has ended the restore.
pub(crate) fn ended_by_plugin(restored: &Restored) -> bool {
    restored.finished.outcome == Err(SequenceError::Plugin)
}
