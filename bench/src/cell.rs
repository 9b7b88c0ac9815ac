//! What is measured: cells of a tree, a level and a variant, each with its name, and choosing among
//! them by words.

use std::fmt;

use bed::{BedError, Result};

use crate::tree::{Kind, Tree};

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

/// What is not as by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// MD5 and otherwise what both daemons do when nothing is said.
    Default,
    /// `AclSupport` and `XattrSupport`.
    Acl,
    /// `Compression = GZIP6`.
    Gzip6,
    /// `Compression = LZO`.
    Lzo,
    /// `Compression = ZSTD`.
    Zstd,
    /// `Sparse = yes`.
    Sparse,
    /// `Sparse = yes` and no signature.
    SparseUnsigned,
    /// No signature.
    Unsigned,
    /// `Signature = SHA256`.
    Sha256,
    /// `TLS PSK Enable = no` in all daemons.
    Clear,
    /// The page cache is dropped before each job.
    Cold,
    /// `Accurate = yes`.
    Accurate,
    /// Data is encrypted with AES-256 and signed with SHA-256, for the first time.
    Pki,
    /// The same in a later Full: what did not change was signed before.
    PkiAgain,
    /// For the first time, compressed with LZO before.
    PkiLzo,
    /// Nothing has changed since the last job.
    Unchanged,
    /// The same without a page cache.
    ColdUnchanged,
    /// Through slowfs, without a delay; nothing has changed.
    Slow0,
    /// With a millisecond before each operation.
    Slow1,
    /// With five.
    Slow5,
    /// With twenty.
    Slow20,
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

impl Variant {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Acl => "acl",
            Self::Gzip6 => "gzip6",
            Self::Lzo => "lzo",
            Self::Zstd => "zstd",
            Self::Sparse => "sparse",
            Self::SparseUnsigned => "sparse-unsigned",
            Self::Unsigned => "unsigned",
            Self::Sha256 => "sha256",
            Self::Clear => "clear",
            Self::Cold => "cold",
            Self::Accurate => "accurate",
            Self::Pki => "pki",
            Self::PkiAgain => "pki-again",
            Self::PkiLzo => "pki-lzo",
            Self::Unchanged => "unchanged",
            Self::ColdUnchanged => "cold-unchanged",
            Self::Slow0 => "slow0",
            Self::Slow1 => "slow1",
            Self::Slow5 => "slow5",
            Self::Slow20 => "slow20",
        }
    }

    /// The directives of the `FileSet`'s Options.
    pub fn options(self) -> Vec<&'static str> {
        let signature = match self {
            Self::Unsigned | Self::SparseUnsigned => None,
            Self::Sha256 => Some("Signature = SHA256"),
            _ => Some("Signature = MD5"),
        };
        let more: &[&str] = match self {
            Self::Acl => &["AclSupport = yes", "XattrSupport = yes"],
            Self::Gzip6 => &["Compression = GZIP6"],
            Self::Lzo | Self::PkiLzo => &["Compression = LZO"],
            Self::Zstd => &["Compression = ZSTD"],
            Self::Sparse | Self::SparseUnsigned => &["Sparse = yes"],
            _ => &[],
        };
        signature.into_iter().chain(more.iter().copied()).collect()
    }

    /// Whether two daemons' volumes are equal byte by byte. Compressed blocks come from different
    /// encoders, and keys of encrypted data are random; there, the catalog's rows are compared.
    pub fn same_bytes(self) -> bool {
        !matches!(self, Self::Gzip6 | Self::Lzo | Self::Zstd) && !self.is_encrypted()
    }

    /// Milliseconds before each operation of the storage, if it is slow at all.
    pub fn delay(self) -> Option<u32> {
        match self {
            Self::Slow0 => Some(0),
            Self::Slow1 => Some(1),
            Self::Slow5 => Some(5),
            Self::Slow20 => Some(20),
            _ => None,
        }
    }

    /// Whether a hundredth of the files is touched before a Differential or an Incremental.
    pub fn touches(self) -> bool {
        !matches!(self, Self::Accurate | Self::Unchanged | Self::ColdUnchanged) && self.delay().is_none()
    }

    /// Whether the page cache is dropped before each job.
    pub fn is_cold(self) -> bool {
        matches!(self, Self::Cold | Self::ColdUnchanged)
    }

    /// Whether data is encrypted and signed.
    pub fn is_encrypted(self) -> bool {
        matches!(self, Self::Pki | Self::PkiAgain | Self::PkiLzo)
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
        write!(out, "{} {} {}", self.tree, self.level.name(), self.variant.name())
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
        let codecs = [Variant::Gzip6, Variant::Lzo, Variant::Zstd, Variant::Pki, Variant::PkiLzo];
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
            add(kind, 1, &[Variant::Pki, Variant::PkiLzo], &[Full, Restore]);
        }
        for kind in [Kind::Manyfiles, Kind::Media, Kind::Mixed] {
            add(kind, 1, &[Variant::PkiAgain], &[Full]);
        }
        add(Kind::Tiny, 500, &[Variant::Accurate], &[Incremental]);
        add(Kind::Hole, 64, &[Variant::SparseUnsigned], &[Full]);
        for (thousands, levels) in [(10, &every[..]), (100, &every), (1000, &[Full, Incremental])] {
            add(Kind::Tiny, thousands, &[Variant::Default], levels);
        }
        add(Kind::Media, 16, &[Variant::Default], &[Restore]);
        add(Kind::Media, 4, &[Variant::Lzo], &[Full]);
        add(Kind::Manyfiles, 10, &[Variant::Unchanged], &[Incremental]);
        add(Kind::Tiny, 1000, &[Variant::Unchanged], &[Incremental]);
        add(Kind::Tiny, 300, &[Variant::ColdUnchanged], &[Full, Incremental]);
        let slow = [Variant::Slow0, Variant::Slow1, Variant::Slow5, Variant::Slow20];
        for thousands in [1, 10] {
            add(Kind::Small, thousands, &slow, &[Full, Incremental, Restore]);
        }
        cells
    }

    /// Whether all words are among the cell's: its three words, and the tree's name without its
    /// scale.
    fn has(&self, words: &[&str]) -> bool {
        let tree = self.tree.to_string();
        let known = [tree.as_str(), self.tree.kind.name(), self.level.name(), self.variant.name()];
        words.iter().all(|word| known.contains(word))
    }

    /// The cells that a choice such as `"manyfiles10 full, mixed incr"` names; all for an empty
    /// one.
    pub fn choose(choice: &str) -> Result<Vec<Self>> {
        let all = Self::all();
        if choice.trim().is_empty() {
            return Ok(all);
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
        assert_eq!(names("").len(), Cell::all().len());
        assert!(Cell::choose("manyfiles11").is_err());
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
