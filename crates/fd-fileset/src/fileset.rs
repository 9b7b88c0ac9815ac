//! The complete FileSet, and the decision about one path.

use std::sync::Arc;

use fd_records::DigestKind;

use crate::effective::EffectiveOptions;
use crate::matching::patterns::PatternSet;
use crate::matching::wildcard::WildcardFlags;
use crate::parse::options::Options;

/// What to save and what to leave out. Immutable once parsed, shared by the threads of a job.
#[derive(Default, Debug)]
pub struct FileSet {
    includes: Vec<Include>,
    excludes: Vec<Exclude>,
}

/// One Include block.
#[derive(Default, Debug)]
pub struct Include {
    options: Vec<(Options, Arc<EffectiveOptions>)>,
    top_level: Arc<EffectiveOptions>,
    names: Vec<Vec<u8>>,
    plugins: Vec<Vec<u8>>,
    ignore_dir: Option<Vec<u8>>,
}

/// One Exclude block. Its names are wild-cards for the whole path.
#[derive(Default)]
pub struct Exclude {
    options: Vec<Options>,
    patterns: PatternSet,
    names: Vec<Vec<u8>>,
}

/// The decision about an entry below the top level.
#[derive(Clone, Copy, Debug)]
pub struct Verdict<'f> {
    /// Whether the entry is saved and, for a directory, entered.
    pub accepted: bool,
    /// The options in force for it.
    pub options: &'f Arc<EffectiveOptions>,
}

/// A block of lines while it is being read, Include or Exclude.
#[derive(Default, Debug)]
pub(crate) struct Block {
    pub(crate) is_exclude: bool,
    pub(crate) options: Vec<Options>,
    /// The place of the Options block that lines go to.
    pub(crate) current: usize,
    pub(crate) names: Vec<Vec<u8>>,
    pub(crate) plugins: Vec<Vec<u8>>,
    pub(crate) ignore_dir: Option<Vec<u8>>,
}

impl FileSet {
    /// Makes the FileSet of complete blocks.
    pub(crate) fn from_blocks(blocks: Vec<Block>) -> Self {
        let mut fileset = Self::default();
        for block in blocks {
            if block.is_exclude {
                fileset.excludes.push(Exclude::from_block(block));
            } else {
                fileset.includes.push(Include::from_block(block));
            }
        }
        fileset
    }

    /// A FileSet of these Includes, with nothing but the options for their names and their plugin
    /// commands.
    pub(crate) fn outline<'b>(includes: impl Iterator<Item = &'b Block>) -> Self {
        let include = |block: &Block| Include {
            top_level: Arc::new(EffectiveOptions::of_top_level(&block.options)),
            plugins: block.plugins.clone(),
            ..Include::default()
        };
        Self { includes: includes.map(include).collect(), excludes: Vec::new() }
    }

    /// The Include blocks, in the order received.
    pub fn includes(&self) -> &[Include] {
        &self.includes
    }

    /// The Exclude blocks, in the order received.
    pub fn excludes(&self) -> &[Exclude] {
        &self.excludes
    }

    /// Whether an entry found below a top-level name of `include` is saved, and with which options
    /// (reference 03 §4.2).
    ///
    /// `path` is the full path as walked, a directory without final slash. Top-level names
    /// themselves are never filtered: their options are [`Include::top_level`]. The first block
    /// that matches decides, even against the Exclude blocks; an entry that nothing matches is
    /// accepted with the options of the last block.
    pub fn judge<'f>(&self, include: &'f Include, path: &[u8], is_directory: bool) -> Verdict<'f> {
        self.judge_also(include, path, is_directory, |_| false)
    }

    /// As [`Self::judge`], with further Exclude blocks: what plugins have excluded since the
    /// FileSet was complete (reference 07 §3.5).
    pub fn judge_also<'f>(
        &self,
        include: &'f Include,
        path: &[u8],
        is_directory: bool,
        is_excluded: impl FnOnce(&[u8]) -> bool,
    ) -> Verdict<'f> {
        let mut options = &include.top_level;
        for (block, effective) in &include.options {
            options = effective;
            if block.matches(path, is_directory) {
                return Verdict { accepted: !block.rejects(), options };
            }
            if block.rejects() && block.has_no_patterns() {
                return Verdict { accepted: false, options };
            }
        }
        let excluded = self.excludes.iter().any(|exclude| exclude.matches(path)) || is_excluded(path);
        Verdict { accepted: !excluded, options }
    }

    /// The digests of what is saved: `None` where there is none. Empty if nothing is.
    pub fn digests(&self) -> impl Iterator<Item = Option<DigestKind>> {
        let saves = |include: &&Include| !include.names.is_empty() || !include.plugins.is_empty();
        self.includes.iter().filter(saves).flat_map(|include| {
            let blocks = include.options.iter().map(|(_, effective)| effective.digest);
            [include.top_level.digest].into_iter().chain(blocks)
        })
    }

    /// Every plugin command: those that save, and those of Options.
    pub fn plugin_commands(&self) -> impl Iterator<Item = &[u8]> {
        self.includes.iter().flat_map(|include| {
            let of_options = include.options.iter().filter_map(|(_, effective)| effective.plugin.as_deref());
            include.plugins.iter().map(Vec::as_slice).chain(of_options)
        })
    }

    /// Whether `path` is literally a name of any Include or Exclude block: then no message is sent
    /// about a mount point there (reference 03 §5.7).
    pub fn lists(&self, path: &[u8]) -> bool {
        let include_names = self.includes.iter().flat_map(|include| &include.names);
        let exclude_names = self.excludes.iter().flat_map(|exclude| &exclude.names);
        include_names.chain(exclude_names).any(|name| name == path)
    }
}

impl Include {
    fn from_block(mut block: Block) -> Self {
        for options in &mut block.options {
            options.seal();
        }
        let top_level = EffectiveOptions::of_top_level(&block.options);
        let strip = block.options.last().map_or(0, |options| options.strip_path);
        let options = block
            .options
            .into_iter()
            .map(|options| {
                let effective = EffectiveOptions::of_block(&options, &top_level, strip);
                (options, Arc::new(effective))
            })
            .collect();
        Self {
            options,
            top_level: Arc::new(top_level),
            names: block.names,
            plugins: block.plugins,
            ignore_dir: block.ignore_dir,
        }
    }

    /// The Options blocks, in the order received.
    pub fn options(&self) -> impl Iterator<Item = &Options> {
        self.options.iter().map(|(options, _)| options)
    }

    /// The options for the names of this Include themselves: the sum of its Options blocks
    /// (reference 03 §3.2).
    pub fn top_level(&self) -> &Arc<EffectiveOptions> {
        &self.top_level
    }

    /// The names to save, in the order received. They may be empty strings.
    pub fn names(&self) -> &[Vec<u8>] {
        &self.names
    }

    /// Plugin commands, to be run after the names.
    pub fn plugins(&self) -> &[Vec<u8>] {
        &self.plugins
    }

    /// A directory that holds a file of this name is left out (`ExcludeDirContaining`).
    pub fn ignore_dir(&self) -> Option<&[u8]> {
        self.ignore_dir.as_deref()
    }
}

impl Exclude {
    /// A block of these names without options.
    pub fn of_names(names: Vec<Vec<u8>>) -> Self {
        Self::from_block(Block { is_exclude: true, names, ..Block::default() })
    }

    fn from_block(mut block: Block) -> Self {
        for options in &mut block.options {
            options.seal();
        }
        let fold_case = block.options.last().is_some_and(|options| options.wildcard_flags().fold_case);
        let flags = WildcardFlags { fold_case, path_name: false };
        let patterns = PatternSet::new(block.names.iter().cloned(), flags);
        Self { options: block.options, patterns, names: block.names }
    }

    /// The names as received.
    pub fn names(&self) -> &[Vec<u8>] {
        &self.names
    }

    /// Whether it excludes a path.
    pub fn matches(&self, path: &[u8]) -> bool {
        self.options.iter().any(|options| options.excludes(path)) || self.patterns.is_match(path)
    }
}

impl std::fmt::Debug for Exclude {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exclude").field("options", &self.options).field("names", &self.names).finish_non_exhaustive()
    }
}
