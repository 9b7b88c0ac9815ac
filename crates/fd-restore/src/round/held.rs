//! What a round holds, and the object that its records are of.

use std::num::NonZeroU16;

use fd_messages::{CancelToken, Progress};
use fd_records::{RecordHeader, Stream, StreamClass};

use super::late_links::LateLinks;
use super::made::{Made, Open};
use super::metadata::HeldMetadata;
use super::state::RestoreState;
use crate::created::Taker;
use crate::file::RestoreItem;
use crate::overlap::{Pace, Writers};
use crate::plan::RestorePlan;
use crate::plugins::Section;
use crate::report::Report;

/// The object whose records come.
pub(super) struct Current {
    pub(super) item: RestoreItem,
    pub(super) made: Made,
    /// ACLs and extended attributes that are applied after the attributes.
    pub(super) metadata: HeldMetadata,
    /// Those that a plugin has saved in its own form.
    pub(super) xacls: HeldMetadata,
}

impl Current {
    pub(super) fn new(item: RestoreItem, made: Made) -> Self {
        let (metadata, xacls) = (HeldMetadata::default(), HeldMetadata::default());
        Self { item, made, metadata, xacls }
    }

    /// What takes its data, while that is restored.
    pub(super) const fn open(&mut self) -> Option<(&RestoreItem, &mut Open)> {
        match &mut self.made {
            Made::Open(open) => Some((&self.item, open)),
            _ => None,
        }
    }
}

/// What is said once for many records.
#[derive(Default, Debug)]
pub(super) struct SaidOnce {
    /// Ignored records, by kind.
    pub(super) data_streams: u64,
    pub(super) resource_forks: u64,
    pub(super) finder_info: u64,
    /// The last command of a plugin that messages have told of.
    pub(super) command: Vec<u8>,
    /// Files that came after their plugin had failed.
    pub(super) lost: u64,
}

/// How objects are made.
pub(super) struct Making {
    /// How many files are made at a time.
    pub(super) pace: Pace,
    pub(super) writers: Writers,
}

impl Making {
    pub(super) fn new(depth: Option<NonZeroU16>) -> Self {
        Self { pace: Pace::new(depth), writers: Writers::new() }
    }
}

/// Where in the sequence of records a round is.
pub(super) struct Place {
    /// The stream of the record before, without flag bits.
    pub(super) previous: Stream,
    /// The header of the last attributes, whose file the records that follow are of.
    file: Option<RecordHeader>,
    /// That of the last start or end of a plugin's file, which are of the same file.
    plugin_name: Option<RecordHeader>,
}

impl Place {
    pub(super) const fn new() -> Self {
        Self { previous: Stream::NONE, file: None, plugin_name: None }
    }

    /// A record with this header has come.
    pub(super) fn had(&mut self, header: RecordHeader) {
        self.previous = header.stream.kind();
        match header.stream.class() {
            StreamClass::Attributes | StreamClass::AttributesUpdate => self.file = Some(header),
            StreamClass::PluginName => self.plugin_name = Some(header),
            _ => {}
        }
    }

    /// Whether these attributes are of another file than that of the plugin's which has begun.
    pub(super) fn is_of_next_file(&self, header: &RecordHeader) -> bool {
        self.plugin_name.is_some_and(|start| !header.is_of_file_of(&start))
    }

    /// Whether a record stands among those of a file, and is of another file or backup.
    pub(super) fn is_stray(&self, header: &RecordHeader) -> bool {
        let is_of_a_file = matches!(
            header.stream.class(),
            StreamClass::Data(_)
                | StreamClass::SessionData
                | StreamClass::SignedDigest
                | StreamClass::Digest(_)
                | StreamClass::Metadata(_)
                | StreamClass::PluginMetadata
                | StreamClass::PluginXacl(_)
        );
        is_of_a_file && self.file.is_some_and(|file| !header.is_of_file_of(&file))
    }
}

pub(super) struct Round<'a> {
    pub(super) plan: &'a RestorePlan,
    pub(super) progress: &'a Progress,
    pub(super) cancel: &'a CancelToken,
    pub(super) report: Report<'a>,
    pub(super) state: &'a mut RestoreState,
    /// The object of the last attribute record that was restored.
    pub(super) current: Option<Current>,
    /// Whether a plugin has saved the records that come, and which one restores them.
    pub(super) section: Section<'a>,
    pub(super) place: Place,
    pub(super) making: Making,
    /// Hard links whose first names may still be restored.
    pub(super) late_links: LateLinks,
    pub(super) said_once: SaidOnce,
}

impl Round<'_> {
    /// What takes the data of the current file, while that is restored.
    pub(super) fn open(&self) -> Option<&Open> {
        match &self.current {
            Some(Current { made: Made::Open(open), .. }) => Some(open),
            _ => None,
        }
    }

    /// Whether data of the current file is restored.
    pub(super) fn is_open(&self) -> bool {
        self.open().is_some()
    }

    /// Whether a plugin takes the data of the current file.
    pub(super) fn is_open_by_plugin(&self) -> bool {
        matches!(self.open(), Some(Open { to: Taker::Plugin { .. }, .. }))
    }

    /// Whether the digest of the current file has come, and is right as far as that is known.
    pub(super) fn is_complete(&self) -> bool {
        self.open().is_some_and(|open| open.digest.has_come())
    }
}
