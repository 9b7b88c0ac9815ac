//! One Options block as it was sent.

use std::fmt;

use fd_records::Compression;

use crate::matching::patterns::PatternSet;
use crate::matching::regex::RegexSet;
use crate::matching::wildcard::WildcardFlags;
use crate::parse::flags::Flags;

/// One Options block: the letters of its `O` lines and its patterns.
#[derive(Default)]
pub struct Options {
    /// The on/off letters.
    pub flags: Flags,
    /// Compression, if a `Z` letter chose a known one.
    pub compression: Option<Compression>,
    /// Level of the `d` letter, 0 to 9; counts only with [`Flags::DEDUP`].
    pub dedup_level: u8,
    /// Number of the `P` letter: leading path components to strip.
    pub strip_path: u32,
    /// Text of the `V` letter with the `V`, without the `:`; empty if there is none. At most 49
    /// bytes.
    pub verify: Vec<u8>,
    /// Text of the `C` letter, likewise.
    pub accurate: Vec<u8>,
    /// Text of the `J` letter, likewise.
    pub base_job: Vec<u8>,
    /// Command of an option plugin (`G`).
    pub plugin: Option<Vec<u8>>,
    /// Names of base jobs (`B`); stored, never used.
    pub base: Vec<Vec<u8>>,
    /// File-system types (`X`).
    pub fs_types: Vec<Vec<u8>>,
    /// Drive types (`XD`).
    pub drive_types: Vec<Vec<u8>>,
    pub(crate) wild: RawPatterns,
    pub(crate) any: PathPatterns,
    pub(crate) directory: PathPatterns,
    pub(crate) file: PathPatterns,
    pub(crate) base_name: PatternSet,
}

/// Wild-cards as sent. They are compiled when the block is complete, because a later letter changes
/// their meaning.
#[derive(Default)]
pub(crate) struct RawPatterns {
    pub(crate) any: Vec<Vec<u8>>,
    pub(crate) directory: Vec<Vec<u8>>,
    pub(crate) file: Vec<Vec<u8>>,
    pub(crate) base_name: Vec<Vec<u8>>,
}

/// The patterns of one kind of entry.
#[derive(Default)]
pub(crate) struct PathPatterns {
    pub(crate) wild: PatternSet,
    pub(crate) regex: RegexSet,
}

impl PathPatterns {
    fn is_empty(&self) -> bool {
        self.wild.is_empty() && self.regex.is_empty()
    }

    fn wild_matches(&self, path: &[u8]) -> bool {
        self.wild.is_match(path)
    }

    fn regex_matches(&self, path: &[u8]) -> bool {
        self.regex.is_match(path)
    }
}

impl Options {
    /// Compiles the wild-cards, and gets the regular expressions ready. Call it once, when the
    /// block is complete.
    pub(crate) fn seal(&mut self) {
        let flags = self.wildcard_flags();
        let raw = std::mem::take(&mut self.wild);
        self.any.wild = PatternSet::new(raw.any, flags);
        self.directory.wild = PatternSet::new(raw.directory, flags);
        self.file.wild = PatternSet::new(raw.file, flags);
        self.base_name = PatternSet::new(raw.base_name, flags);
        for kind in [&mut self.any, &mut self.directory, &mut self.file] {
            kind.regex.seal();
        }
    }

    /// How the block's wild-cards are read.
    pub(crate) fn wildcard_flags(&self) -> WildcardFlags {
        WildcardFlags {
            fold_case: self.flags.contains(Flags::IGNORE_CASE),
            path_name: self.flags.contains(Flags::ENHANCED_WILD),
        }
    }

    /// Whether the block rejects what it matches (`e`).
    pub(crate) fn rejects(&self) -> bool {
        self.flags.contains(Flags::EXCLUDE)
    }

    /// Whether the block has no wild-card and no regular expression at all.
    pub(crate) fn has_no_patterns(&self) -> bool {
        self.any.is_empty() && self.directory.is_empty() && self.file.is_empty() && self.base_name.is_empty()
    }

    /// Whether any pattern of the block matches (reference 03 §4.2).
    pub(crate) fn matches(&self, path: &[u8], is_directory: bool) -> bool {
        let own = if is_directory { &self.directory } else { &self.file };
        own.wild_matches(path)
            || (!is_directory && self.base_name_matches(path))
            || self.any.wild_matches(path)
            || own.regex_matches(path)
            || self.any.regex_matches(path)
    }

    /// `WB` patterns are compared with the base name if the block has `W`, else the full path
    /// (reference 03 §4.4.3).
    fn base_name_matches(&self, path: &[u8]) -> bool {
        if self.base_name.is_empty() {
            return false;
        }
        let text = if self.flags.contains(Flags::ENHANCED_WILD) {
            path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
        } else {
            path
        };
        self.base_name.is_match(text)
    }

    /// Whether a `W` pattern of an Exclude block's options matches; such blocks have no other
    /// patterns.
    pub(crate) fn excludes(&self, path: &[u8]) -> bool {
        self.any.wild_matches(path)
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("flags", &self.flags)
            .field("compression", &self.compression)
            .field("strip_path", &self.strip_path)
            .finish_non_exhaustive()
    }
}
