//! Passes entries and messages to the sink, and counts them.

use fd_messages::MessageType;
use fd_records::{FileType, Stat};
use rustix::io::Errno;

use super::place::LONGEST_PATH;
use crate::entry::Entry;
use crate::event::{Flow, Message, WalkEvent};
use crate::settings::{Purpose, WalkEnd, WalkHost, WalkSummary};
use crate::texts;

/// See the module.
pub(super) struct Report<'w> {
    pub(super) purpose: Purpose,
    pub(super) host: &'w dyn WalkHost,
    pub(super) sink: &'w mut dyn FnMut(WalkEvent<'_>) -> Flow,
    /// A buffer for texts.
    pub(super) text: Vec<u8>,
    pub(super) summary: WalkSummary,
    /// What is walked over was reported already. Errors are told all the same: this one may be new.
    pub(super) is_muted: bool,
    /// How many components the Include that is walked strips off names.
    pub(super) strip_path: u32,
}

impl Report<'_> {
    pub(super) fn give(&mut self, event: WalkEvent<'_>) -> Result<(), WalkEnd> {
        if self.is_muted && !matches!(event, WalkEvent::Message(Message { error: true, .. })) {
            return Ok(());
        }
        match (self.sink)(event) {
            Flow::Continue => Ok(()),
            Flow::Stop => Err(WalkEnd::Stopped),
        }
    }

    /// An entry, after [`Self::begin`].
    pub(super) fn entry(&mut self, entry: Entry) -> Result<(), WalkEnd> {
        if self.is_muted {
            return Ok(());
        }
        self.summary.entries += 1;
        if entry.stat.mode_type() == Stat::MODE_REGULAR && entry.file_type != FileType::HardLink {
            self.summary.bytes = self.summary.bytes.saturating_add(u64::try_from(entry.stat.size).unwrap_or(0));
        }
        self.give(WalkEvent::Entry(entry))
    }

    /// One more entry was examined.
    pub(super) fn begin(&mut self, path: &[u8]) -> Result<(), WalkEnd> {
        if self.is_muted {
            return Ok(());
        }
        self.host.examined(path);
        self.verifying(path)
    }

    /// Announces an entry in a Verify job.
    pub(super) fn verifying(&mut self, path: &[u8]) -> Result<(), WalkEnd> {
        if self.purpose != Purpose::Verify {
            return Ok(());
        }
        self.say(MessageType::Verified, |text| texts::verifying(text, path))
    }

    /// An entry that did not change.
    pub(super) fn unchanged(&mut self, path: &[u8]) -> Result<(), WalkEnd> {
        self.begin(path)?;
        if matches!(self.purpose, Purpose::Estimate { .. }) {
            return Ok(());
        }
        self.say(MessageType::Skipped, |text| texts::unchanged(text, path))
    }

    /// An entry whose attributes or contents can't be read.
    pub(super) fn failed(&mut self, path: &[u8], what: &str, errno: Errno) -> Result<(), WalkEnd> {
        self.begin(path)?;
        self.could_not(path, what, errno)
    }

    /// An error, without counting an entry.
    pub(super) fn could_not(&mut self, path: &[u8], what: &str, errno: Errno) -> Result<(), WalkEnd> {
        // What has a longer path can't have been saved by an earlier job.
        if !matches!(errno, Errno::NOENT | Errno::NOTDIR) && path.len() <= LONGEST_PATH {
            self.host.not_examined(path, self.strip_path);
        }
        let purpose = self.purpose;
        if matches!(purpose, Purpose::Estimate { .. }) {
            return Ok(());
        }
        let words = fd_os::error_text(errno.raw_os_error());
        self.say(MessageType::NotSaved, |text| texts::failed(text, purpose, what, path, &words))
    }

    /// A message. Its text is only built if its type is delivered or it counts as an error.
    pub(super) fn say(&mut self, kind: MessageType, build: impl FnOnce(&mut Vec<u8>)) -> Result<(), WalkEnd> {
        let error = kind == MessageType::NotSaved;
        if !error && !self.host.wants(kind) {
            return Ok(());
        }
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        build(&mut text);
        let flow = self.give(WalkEvent::Message(Message { kind, text: &text, error }));
        self.text = text;
        flow
    }
}
