//! What is measured: cells of a tree, a level and a variant, each with its name, and choosing among
//! them by words.

use std::fmt;

use bed::{BedError, Result};

use crate::changing::Changer;
use crate::tree::{Kind, Suite, Tree};

mod variant;

pub use variant::{BUCKET_AWAY, Codec, Image, Mechanism, Mounted, Part, Since, Traffic, Variant};

/// What a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Everything is saved.
    Full,
    /// What was touched since the Full.
    Differential,
    /// What was touched since the last job.
    Incremental,
    /// The Full is restored to an empty folder.
    Restore,
    /// A Full and a Differential.
    RestoreDifferential,
    /// A Full and three Incrementals.
    RestoreIncrementals,
    /// One file out of a Full.
    RestoreFile,
}

impl Level {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Differential => "diff",
            Self::Incremental => "incr",
            Self::Restore => "restore",
            Self::RestoreDifferential => "restore-diff",
            Self::RestoreIncrementals => "restore-incrs",
            Self::RestoreFile => "restore-file",
        }
    }

    /// Whether it restores.
    pub fn is_restore(self) -> bool {
        matches!(self, Self::Restore | Self::RestoreDifferential | Self::RestoreIncrementals | Self::RestoreFile)
    }
}

/// One line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// What is saved.
    pub tree: Tree,
    /// How it differs from the defaults.
    pub variant: Variant,
    /// The job.
    pub level: Level,
}

impl fmt::Display for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} {}", self.tree, self.level.name(), self.variant)
    }
}

impl Cell {
    /// All cells, in the order in which they run: neighbours of one tree and variant share a bed.
    pub fn all() -> Vec<Self> {
        use Level::{Differential, Full, Incremental, Restore, RestoreDifferential, RestoreFile, RestoreIncrementals};
        let mut cells = Vec::new();
        let mut add = |kind, scale, variants: &[Variant], levels: &[Level]| {
            let tree = Tree { kind, scale };
            for &variant in variants {
                cells.extend(levels.iter().map(|&level| Self { tree, variant, level }));
            }
        };
        let every = [Full, Differential, Incremental, Restore];
        let chains = [RestoreDifferential, RestoreIncrementals, RestoreFile];
        add(Kind::Empty, 1, &[Variant::Default], &[Full, Incremental]);
        for scale in [1, 10] {
            for kind in [Kind::Manyfiles, Kind::Media, Kind::Mixed] {
                add(kind, scale, &[Variant::Default], &every);
                add(kind, scale, &[Variant::Default], &chains);
            }
        }
        let packed = [Codec::Gzip(6), Codec::Lzo, Codec::Zstd].map(Variant::Packed);
        let codecs = [&packed[..], &[Variant::Pki, Variant::PkiLzo]].concat();
        for scale in [1, 10] {
            add(Kind::Mixed, scale, &codecs, &[Full, Restore]);
        }
        let others = [
            Variant::Acl,
            Variant::Sparse,
            Variant::Unsigned,
            Variant::Sha256,
            Variant::Clear,
            Variant::Cold,
            Variant::Accurate,
        ];
        for scale in [1, 10] {
            add(Kind::Mixed, scale, &others, &[Full]);
        }
        add(Kind::Manyfiles, 10, &[Variant::Acl, Variant::Clear, Variant::Cold], &[Full, Incremental]);
        add(Kind::Media, 10, &[Variant::Clear, Variant::Cold], &[Full]);
        for kind in [Kind::Manyfiles, Kind::Media] {
            add(kind, 1, &packed, &[Full, Restore]);
            add(kind, 1, &[Variant::Pki, Variant::PkiLzo], &[Full, Restore]);
        }
        add(Kind::Mixed, 1, &[1, 9].map(|level| Variant::Packed(Codec::Gzip(level))), &[Full, Restore]);
        for codec in [Codec::None, Codec::Gzip(6), Codec::Lzo, Codec::Zstd] {
            add(Kind::Mixed, 1, &[1, 2, 4].map(|workers| Variant::Workers(codec, workers)), &[Full]);
        }
        for kind in [Kind::Manyfiles, Kind::Media] {
            add(kind, 1, &Part::ALL.map(Variant::Bare), &[Full, Restore]);
            add(kind, 1, &[1, 2, 4, 8].map(Variant::Clients), &[Full]);
        }
        for kind in [Kind::Manyfiles, Kind::Media, Kind::Mixed] {
            add(kind, 1, &Mechanism::ALL.map(Variant::Without), &[Full, Restore]);
        }
        for kind in [Kind::Manyfiles, Kind::Media] {
            add(kind, 1, &Traffic::ALL.map(Variant::InRoot), &[Full, Restore]);
        }
        for rate in [100, 1000] {
            let far = [0, 10, 50, 100].map(|round_trip| Variant::Far(round_trip, rate));
            add(Kind::Manyfiles, 1, &far, &[Full, Incremental, Restore]);
        }
        for gigabytes in [1, 4] {
            add(Kind::Single, gigabytes, &[Variant::Default], &[Full, Restore]);
        }
        add(Kind::Single, 16, &[Variant::Default], &[Full]);
        add(Kind::Mixed, 1, &[Variant::ReadOnly, Variant::Fscrypt], &[Full, Restore]);
        add(Kind::Mixed, 1, &Changer::ALL.map(Variant::Changing), &[Full, Restore]);
        for thousands in [10, 100] {
            add(Kind::Holes, thousands, &[Variant::Default, Variant::Sparse], &[Full]);
        }
        for suite in Suite::ALL.map(Kind::Foreign) {
            add(suite, 1, &[Variant::Acl], &[Full, Restore]);
        }
        for kind in [Kind::Manyfiles, Kind::Media, Kind::Mixed] {
            add(kind, 1, &[Variant::PkiAgain], &[Full]);
        }
        add(Kind::Hole, 64, &[Variant::SparseUnsigned], &[Full]);
        add(Kind::Media, 16, &[Variant::Default], &[Restore]);
        add(Kind::Media, 4, &[Variant::Packed(Codec::Lzo)], &[Full]);
        add(Kind::Manyfiles, 10, &[Variant::Unchanged], &[Incremental]);
        let slow = [0, 1, 5, 20].map(Variant::Slow);
        for thousands in [1, 10] {
            add(Kind::Small, thousands, &slow, &[Full, Incremental, Restore]);
        }
        add(Kind::Single, 1, &[Variant::SlowReads(5)], &[Full]);
        let bucket = |mounted, in_flight| Variant::Bucket(mounted, in_flight, BUCKET_AWAY);
        let [tuned, plain] = Mounted::ALL.map(|mounted| bucket(mounted, 64));
        add(Kind::Small, 1, &[tuned], &[Full]);
        add(Kind::Small, 3, &[tuned, plain], &[Full, Incremental]);
        add(Kind::Small, 3, &[256, 768].map(|in_flight| bucket(Mounted::Tuned, in_flight)), &[Full]);
        cells.extend(Self::of_tiny_files());
        cells.extend(Self::of_objects());
        cells
    }

    /// Very many small files, most of which have not changed.
    fn of_tiny_files() -> Vec<Self> {
        use Level::{Differential, Full, Incremental, Restore};
        let mut cells = Vec::new();
        let mut add = |scale, variants: &[Variant], levels: &[Level]| {
            let tree = Tree { kind: Kind::Tiny, scale };
            for &variant in variants {
                cells.extend(levels.iter().map(|&level| Self { tree, variant, level }));
            }
        };
        let (every, two) = ([Full, Differential, Incremental, Restore], [Full, Incremental]);
        for (thousands, levels) in [(10, &every[..]), (100, &every), (1000, &two), (1320, &two)] {
            add(thousands, &[Variant::Default], levels);
        }
        for thousands in [500, 1320] {
            add(thousands, &[Variant::Accurate], &[Incremental]);
        }
        for thousands in [300, 1000] {
            add(thousands, &[Variant::Unchanged], &[Incremental]);
        }
        add(300, &[Variant::ColdUnchanged], &two);
        let on_images = Since::ALL.map(|since| Image::ALL.map(|image| Variant::OnImage(since, image)));
        for thousands in [150, 300, 1320] {
            add(thousands, on_images.as_flattened(), &[Incremental]);
        }
        cells
    }

    /// Sizes of real buckets' objects, on the disk and in a bucket.
    fn of_objects() -> Vec<Self> {
        use Level::{Full, Incremental};
        let cell = |scale, variant, level| Self { tree: Tree { kind: Kind::Objects, scale }, variant, level };
        let mut cells = Vec::new();
        for scale in [1, 30, 1320] {
            cells.extend([Full, Incremental].map(|level| cell(scale, Variant::Default, level)));
        }
        cells.push(cell(1320, Variant::Accurate, Incremental));
        for away in [1, BUCKET_AWAY] {
            let bucket = |in_flight| Variant::Bucket(Mounted::Tuned, in_flight, away);
            cells.push(cell(1, bucket(64), Full));
            // One at a time, the whole bucket would take five minutes and more each time.
            cells.push(cell(3, bucket(1), Full));
            cells.extend([64, 256, 768].map(|in_flight| cell(30, bucket(in_flight), Full)));
        }
        cells
    }

    /// Whether all words are among the cell's: its three words, and the tree's name without its
    /// scale.
    fn has(&self, words: &[&str]) -> bool {
        let (tree, variant) = (self.tree.to_string(), self.variant.to_string());
        let known = [tree.as_str(), self.tree.kind.name(), self.level.name(), variant.as_str()];
        words.iter().all(|word| known.contains(word))
    }

    /// Whether it is measured for the paper only, or when it is named.
    fn is_of_the_paper(&self) -> bool {
        let variant = matches!(
            self.variant,
            Variant::Bare(_)
                | Variant::Workers(..)
                | Variant::Far(..)
                | Variant::Clients(_)
                | Variant::Without(_)
                | Variant::InRoot(_)
                | Variant::Bucket(..)
                | Variant::ReadOnly
                | Variant::Fscrypt
                | Variant::OnImage(..)
                | Variant::Changing(_)
        );
        variant || matches!(self.tree.kind, Kind::Single | Kind::Holes | Kind::Objects | Kind::Foreign(_))
    }

    /// The cells that a choice such as `"manyfiles10 full, mixed incr"` names; for an empty one all
    /// but those of the paper.
    pub fn choose(choice: &str) -> Result<Vec<Self>> {
        let all = Self::all();
        if choice.trim().is_empty() {
            return Ok(all.into_iter().filter(|cell| !cell.is_of_the_paper()).collect());
        }
        let groups: Vec<Vec<&str>> = choice.split(',').map(|part| part.split_whitespace().collect()).collect();
        if let Some(none) = groups.iter().find(|words| !all.iter().any(|cell| cell.has(words))) {
            return Err(BedError::Usage(format!("no cell has the words {:?}; see `bench list`", none.join(" "))));
        }
        Ok(all.into_iter().filter(|cell| groups.iter().any(|words| cell.has(words))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_choose_cells() {
        let names = |choice| Cell::choose(choice).unwrap().iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(names("manyfiles10 full default"), ["manyfiles10 full default"]);
        assert_eq!(names("empty full, media1 restore default"), ["empty full default", "media1 restore default"]);
        assert!(names("manyfiles full").len() > 2);
        assert!(names("").len() > 50 && !names("").iter().any(|name| name.contains("bare")));
        assert_eq!(names("media1 full bare-md5"), ["media1 full bare-md5"]);
        assert!(Cell::choose("manyfiles11").is_err());
    }

    #[test]
    fn the_claims_name_cells_that_exist() {
        let top = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let claims = std::fs::read_to_string(top.join("paper/perf-analysis/claims.md")).unwrap();
        let choices: Vec<&str> = claims.split("--cells \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(!choices.is_empty());
        for choice in choices {
            assert!(Cell::choose(choice).is_ok_and(|cells| !cells.is_empty()), "{choice}");
        }
    }

    #[test]
    fn no_cell_stands_twice() {
        let mut all = Cell::all();
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
