//! The options in force for one entry.

use std::sync::Arc;

use fd_records::{Compression, DigestKind};

use crate::parse::flags::Flags;
use crate::parse::options::Options;

/// Longest verify, accurate and base-job text in force (reference 03 §3.1).
const LONGEST_TEXT: usize = 19;

/// The options in force for one entry. There is one of these per Options block and one per Include
/// for its top-level names, made when the FileSet is complete and shared by reference counting: an
/// entry costs no allocation for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EffectiveOptions {
    /// The on/off options.
    pub flags: Flags,
    /// The one digest to make.
    pub digest: Option<DigestKind>,
    /// Compression of the data.
    pub compression: Option<Compression>,
    /// Deduplication level; counts only with [`Flags::DEDUP`].
    pub dedup_level: u8,
    /// Leading path components to strip, 0 for none. The number is the Include's, on or off is the
    /// block's (reference 03 §5.12).
    pub strip_path: u32,
    /// Allowed file-system types; empty allows all.
    pub fs_types: Arc<[Vec<u8>]>,
    /// Allowed drive types; empty allows all, which is the only value on Linux.
    pub drive_types: Arc<[Vec<u8>]>,
    /// Verify letters of the Include, starting with `V`.
    pub verify: Arc<[u8]>,
    /// Accurate letters of the Include, starting with `C`; where it has none,
    /// [`Self::ACCURATE`].
    pub accurate: Arc<[u8]>,
    /// Base-job letters of the Include, starting with `J`.
    pub base_job: Arc<[u8]>,
    /// Option plugin of the Include.
    pub plugin: Option<Arc<[u8]>>,
}

impl Default for EffectiveOptions {
    /// The options of an Include without an Options block.
    fn default() -> Self {
        Self {
            flags: Flags::NONE,
            digest: None,
            compression: None,
            dedup_level: 0,
            strip_path: 0,
            fs_types: Arc::default(),
            drive_types: Arc::default(),
            verify: Arc::from(*b"V"),
            accurate: Self::ACCURATE.into(),
            base_job: Arc::from(*b"Jspug5"),
            plugin: None,
        }
    }
}

impl EffectiveOptions {
    /// The accurate letters of an Include that has none.
    pub const ACCURATE: &'static [u8] = b"mcs";

    /// Whether an option is on.
    pub fn has(&self, flag: Flags) -> bool {
        self.flags.contains(flag)
    }

    /// Whether blocks of zeros are left out of the data, which then has addresses. Encrypted data
    /// has none (reference 04 §7).
    pub fn is_sparse(&self, is_encrypted: bool) -> bool {
        self.has(Flags::SPARSE) && !is_encrypted
    }

    /// The options for the names of an Include itself: everything that any of its blocks switches
    /// on, and the last block's value of what is not a switch (reference 03 §3.2).
    pub(crate) fn of_top_level(blocks: &[Options]) -> Self {
        let mut all = Self::default();
        let mut verify = all.verify.to_vec();
        for block in blocks {
            all.flags |= block.flags;
            if block.compression.is_some() {
                all.compression = block.compression;
            }
            if block.flags.contains(Flags::DEDUP) {
                all.dedup_level = block.dedup_level;
            }
            all.strip_path = block.strip_path;
            all.fs_types = block.fs_types.as_slice().into();
            all.drive_types = block.drive_types.as_slice().into();
            if let Some(plugin) = &block.plugin {
                all.plugin = Some(plugin.as_slice().into());
            }
            verify.extend_from_slice(&block.verify);
            replace_unless_empty(&mut all.accurate, &block.accurate);
            replace_unless_empty(&mut all.base_job, &block.base_job);
        }
        all.verify = cut(&verify).into();
        all.digest = all.flags.digest();
        all.strip_path = strip_count(all.flags, all.strip_path);
        all
    }

    /// The options for the entries that this block decides about.
    pub(crate) fn of_block(block: &Options, top_level: &Self, include_strip: u32) -> Self {
        Self {
            flags: block.flags,
            digest: block.flags.digest(),
            compression: block.compression,
            dedup_level: if block.flags.contains(Flags::DEDUP) { block.dedup_level } else { top_level.dedup_level },
            strip_path: strip_count(block.flags, include_strip),
            fs_types: block.fs_types.as_slice().into(),
            drive_types: block.drive_types.as_slice().into(),
            ..top_level.clone()
        }
    }
}

fn strip_count(flags: Flags, count: u32) -> u32 {
    if flags.contains(Flags::STRIP_PATH) { count } else { 0 }
}

fn replace_unless_empty(text: &mut Arc<[u8]>, new: &[u8]) {
    if !new.is_empty() {
        *text = cut(new).into();
    }
}

fn cut(text: &[u8]) -> &[u8] {
    text.get(..LONGEST_TEXT).unwrap_or(text)
}
