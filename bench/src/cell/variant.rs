//! What is not as by default in a cell: options of the `FileSet`, of the daemons, of the storage,
//! of the line, or how many clients there are.

use std::fmt;

use crate::changing::Changer;

/// What is not as by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// MD5 and otherwise what both daemons do when nothing is said.
    Default,
    /// `AclSupport` and `XattrSupport`.
    Acl,
    /// `Compression`.
    Packed(Codec),
    /// The same, perhaps without any, with so many workers of ours.
    Workers(Codec, u16),
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
    /// Neither signature nor TLS, and then one part alone.
    Bare(Part),
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
    /// The tree is on a file system of its own, and the page cache is dropped.
    OnImage(Since, Image),
    /// Through slowfs, with so many milliseconds before each operation; nothing has changed.
    Slow(u16),
    /// The same, but names and attributes are remembered, as by most file systems over a network.
    SlowReads(u16),
    /// The tree is mounted read-only.
    ReadOnly,
    /// The tree is encrypted by the file system, which has the key.
    Fscrypt,
    /// A suite changes further files while they are saved.
    Changing(Changer),
    /// The host is so many milliseconds away, there and back, over a line of so many Mbit/s.
    Far(u16, u16),
    /// A mechanism of ours is off, or both daemons do without something.
    Without(Mechanism),
    /// Ours runs with the C library and the OpenSSL of the stock daemon.
    InRoot(Traffic),
    /// So many clients with the same tree at once.
    Clients(u16),
    /// The tree's files are the objects of a bucket, which the stock daemon sees mounted; ours
    /// fetches so many at a time, from a server that is so many milliseconds away.
    Bucket(Mounted, u16, u16),
}

/// What a job can do without, to see what it is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mechanism {
    /// Packets are not compressed, by either daemon.
    LineCompression,
    /// More than one worker.
    Workers,
    /// Our own kernels' vector instructions; OpenSSL keeps its own.
    Instructions,
    /// The same but for AVX2, as on processors that have no AVX-512.
    Avx512,
    /// Giving way to others.
    Manners,
    /// Comparing the digests of what was restored.
    Checks,
}

impl Mechanism {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::LineCompression, Self::Workers, Self::Instructions, Self::Avx512, Self::Manners, Self::Checks];

    /// The word of a job without it.
    pub fn word(self) -> &'static str {
        match self {
            Self::LineCompression => "no-line-compression",
            Self::Workers => "one-worker",
            Self::Instructions => "baseline-cpu",
            Self::Avx512 => "avx2-cpu",
            Self::Manners => "no-manners",
            Self::Checks => "unchecked",
        }
    }

    /// What ours finds as `FERROFD_CPU`.
    pub fn processor(self) -> Option<&'static str> {
        match self {
            Self::Instructions => Some("baseline"),
            Self::Avx512 => Some("avx2"),
            _ => None,
        }
    }

    /// The line of ours' `bacula-fd.toml` that switches it off.
    pub fn setting(self) -> Option<&'static str> {
        match self {
            Self::Workers => Some("job.workers = 1"),
            Self::Manners => Some("job.manners = \"off\""),
            Self::Checks => Some("restore.check_digests = \"no\""),
            Self::LineCompression | Self::Instructions | Self::Avx512 => None,
        }
    }
}

/// How both daemons talk where they have the same libraries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Traffic {
    /// As by default.
    Default,
    /// With one cipher suite, which the stock daemon prefers.
    OneCipher,
    /// Packets are not compressed.
    NotCompressed,
    /// Without TLS.
    Clear,
}

impl Traffic {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Default, Self::OneCipher, Self::NotCompressed, Self::Clear];

    /// The word of a job.
    fn word(self) -> &'static str {
        match self {
            Self::Default => "in-root",
            Self::OneCipher => "in-root-chacha20-poly1305",
            Self::NotCompressed => "in-root-no-line-compression",
            Self::Clear => "in-root-clear",
        }
    }
}

/// What a later job finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Since {
    /// Nothing has changed.
    Unchanged,
    /// A hundredth of the files was touched.
    Changed,
    /// Nothing has changed, and `Accurate = yes`.
    Accurate,
}

impl Since {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Unchanged, Self::Changed, Self::Accurate];

    fn word(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Changed => "changed",
            Self::Accurate => "accurate",
        }
    }
}

/// A file system that is made for a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Image {
    /// ext4.
    Ext4,
    /// The same, which ours walks without an inode scan.
    Ext4Walk,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
    /// The same without an inode scan.
    BtrfsWalk,
}

impl Image {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Ext4, Self::Ext4Walk, Self::Xfs, Self::Btrfs, Self::BtrfsWalk];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Ext4Walk => "ext4-walk",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::BtrfsWalk => "btrfs-walk",
        }
    }

    /// Whether ours walks it without an inode scan.
    pub fn is_walked(self) -> bool {
        matches!(self, Self::Ext4Walk | Self::BtrfsWalk)
    }

    /// What makes it, without the place. An inode of ext4 for each block: its files are small.
    pub fn program(self) -> &'static [&'static str] {
        match self {
            Self::Ext4 | Self::Ext4Walk => &["mkfs.ext4", "-q", "-F", "-i", "4096"],
            Self::Xfs => &["mkfs.xfs", "-q", "-f"],
            Self::Btrfs | Self::BtrfsWalk => &["mkfs.btrfs", "-q", "-f"],
        }
    }
}

/// How a bucket becomes a file system: what `rclone mount` is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mounted {
    /// Nothing. It asks for the modification time of each object, which it may have stored as
    /// metadata: a request for each.
    Plain,
    /// All that makes it fast: the server's times, which come with the listing; an object is asked
    /// for its data only; and the kernel may remember names and attributes.
    Tuned,
}

impl Mounted {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Tuned, Self::Plain];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Tuned => "tuned",
        }
    }
}

/// How data is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Codec {
    /// Not at all.
    None,
    /// `GZIP1` to `GZIP9`.
    Gzip(u8),
    /// `LZO`.
    Lzo,
    /// `ZSTD`.
    Zstd,
}

/// What one part of a job's work costs is told by a job with it and one without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// None: what a job costs without all of them.
    Nothing,
    /// A signature, as the Director's configuration spells it.
    Signature(&'static str),
    /// ACLs and extended attributes.
    Acl,
    /// Holes are looked for.
    Sparse,
    /// TLS, with what both sides agree upon.
    Tls,
    /// TLS with this cipher suite alone.
    Cipher(&'static str),
}

impl Part {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 12] = [
        Self::Nothing,
        Self::Signature("MD5"),
        Self::Signature("SHA1"),
        Self::Signature("SHA256"),
        Self::Signature("SHA512"),
        Self::Signature("XXHASH64"),
        Self::Signature("XXH3_128"),
        Self::Acl,
        Self::Sparse,
        Self::Tls,
        Self::Cipher("TLS_AES_128_GCM_SHA256"),
        Self::Cipher("TLS_CHACHA20_POLY1305_SHA256"),
    ];

    fn word(self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Signature(name) => format!("-{}", name.to_lowercase().replace('_', "-")),
            Self::Acl => "-acl".to_owned(),
            Self::Sparse => "-sparse".to_owned(),
            Self::Tls => "-tls".to_owned(),
            Self::Cipher(suite) => {
                let name = suite.trim_start_matches("TLS_").trim_end_matches("_SHA256");
                format!("-{}", name.to_lowercase().replace('_', "-"))
            }
        }
    }
}

impl Codec {
    /// Its word.
    pub fn word(self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Gzip(level) => format!("gzip{level}"),
            Self::Lzo => "lzo".to_owned(),
            Self::Zstd => "zstd".to_owned(),
        }
    }

    fn option(self) -> Option<String> {
        (self != Self::None).then(|| format!("Compression = {}", self.word().to_uppercase()))
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self {
            Self::Default => "default",
            Self::Acl => "acl",
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
            Self::ReadOnly => "read-only",
            Self::Fscrypt => "fscrypt",
            Self::OnImage(since, image) => return write!(out, "cold-{}-{}", since.word(), image.name()),
            Self::Changing(changer) => return write!(out, "changing-{}", changer.name()),
            Self::Packed(codec) => return out.write_str(&codec.word()),
            Self::Workers(codec, count) => return write!(out, "{}-workers{count}", codec.word()),
            Self::Bare(part) => return write!(out, "bare{}", part.word()),
            Self::Slow(delay) => return write!(out, "slow{delay}"),
            Self::SlowReads(delay) => return write!(out, "slow-reads{delay}"),
            Self::Far(round_trip, rate) => return write!(out, "far{round_trip}ms{rate}mbit"),
            Self::Without(mechanism) => mechanism.word(),
            Self::InRoot(line) => line.word(),
            Self::Clients(count) => return write!(out, "clients{count}"),
            Self::Bucket(mounted, in_flight, BUCKET_AWAY) => {
                return write!(out, "bucket-{}{in_flight}", mounted.name());
            }
            Self::Bucket(mounted, in_flight, away) => {
                return write!(out, "bucket-{}{in_flight}-{away}ms", mounted.name());
            }
        };
        out.write_str(word)
    }
}

impl Variant {
    /// The directives of the `FileSet`'s Options.
    pub fn options(self) -> Vec<String> {
        let signature = match self {
            Self::Sha256 => Some("SHA256"),
            Self::Bare(Part::Signature(name)) => Some(name),
            Self::Unsigned | Self::SparseUnsigned | Self::Bare(_) => None,
            _ => Some("MD5"),
        };
        let mut options: Vec<String> = signature.map(|name| format!("Signature = {name}")).into_iter().collect();
        options.extend(self.codec().option());
        if matches!(self, Self::Acl | Self::Bare(Part::Acl)) {
            options.extend(["AclSupport = yes".to_owned(), "XattrSupport = yes".to_owned()]);
        }
        if matches!(self, Self::Sparse | Self::SparseUnsigned | Self::Bare(Part::Sparse)) {
            options.push("Sparse = yes".to_owned());
        }
        options
    }

    /// How data is compressed.
    pub fn codec(self) -> Codec {
        match self {
            Self::Packed(codec) | Self::Workers(codec, _) => codec,
            Self::PkiLzo => Codec::Lzo,
            _ => Codec::None,
        }
    }

    /// Whether there is TLS between the daemons.
    pub fn has_tls(self) -> bool {
        !matches!(self, Self::Clear | Self::InRoot(Traffic::Clear))
            && (!matches!(self, Self::Bare(_)) || self.suite().is_some() || self == BARE_TLS)
    }

    /// The one cipher suite of TLS that is allowed.
    pub fn suite(self) -> Option<&'static str> {
        match self {
            Self::Bare(Part::Cipher(suite)) => Some(suite),
            Self::InRoot(Traffic::OneCipher) => Some("TLS_CHACHA20_POLY1305_SHA256"),
            _ => None,
        }
    }

    /// Whether two daemons' volumes are equal byte by byte. Compressed blocks come from different
    /// encoders, keys of encrypted data are random, and files that change do so between the jobs,
    /// too; there, the catalog's rows are compared.
    pub fn same_bytes(self) -> bool {
        self.codec() == Codec::None && !self.is_encrypted() && self.changer().is_none()
    }

    /// What changes files meanwhile.
    pub fn changer(self) -> Option<Changer> {
        if let Self::Changing(changer) = self { Some(changer) } else { None }
    }

    /// Whether a hundredth of the files is touched before a Differential or an Incremental.
    pub fn touches(self) -> bool {
        !matches!(
            self,
            Self::Accurate
                | Self::Unchanged
                | Self::ColdUnchanged
                | Self::OnImage(Since::Unchanged | Since::Accurate, _)
                | Self::Slow(_)
                | Self::SlowReads(_)
                | Self::Bucket(..)
        )
    }

    /// Whether the page cache is dropped before each job.
    pub fn is_cold(self) -> bool {
        matches!(self, Self::Cold | Self::ColdUnchanged | Self::OnImage(..))
    }

    /// Whether jobs are accurate.
    pub fn is_accurate(self) -> bool {
        matches!(self, Self::Accurate | Self::OnImage(Since::Accurate, _))
    }

    /// Whether data is encrypted and signed.
    pub fn is_encrypted(self) -> bool {
        matches!(self, Self::Pki | Self::PkiAgain | Self::PkiLzo)
    }
}

/// How far a bucket is away where its word doesn't say it.
pub const BUCKET_AWAY: u16 = 10;
const BARE_TLS: Variant = Variant::Bare(Part::Tls);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_of_the_word() {
        assert_eq!(Variant::Default.options(), ["Signature = MD5"]);
        assert_eq!(Variant::Bare(Part::Acl).options(), ["AclSupport = yes", "XattrSupport = yes"]);
        let packed = Variant::Workers(Codec::Gzip(6), 2);
        assert_eq!(packed.options(), ["Signature = MD5", "Compression = GZIP6"]);
        assert_eq!(packed.to_string(), "gzip6-workers2");
        assert!(!packed.same_bytes() && Variant::Workers(Codec::None, 2).same_bytes());
    }

    #[test]
    fn a_bucket_tells_how_far_it_is_if_not_as_usual() {
        let named = |away| Variant::Bucket(Mounted::Tuned, 64, away).to_string();
        assert_eq!([named(10), named(1)], ["bucket-tuned64", "bucket-tuned64-1ms"]);
    }

    #[test]
    fn what_is_bare_has_tls_only_where_it_is_the_part() {
        let tls: Vec<String> =
            Part::ALL.map(Variant::Bare).iter().filter(|one| one.has_tls()).map(ToString::to_string).collect();
        assert_eq!(tls, ["bare-tls", "bare-aes-128-gcm", "bare-chacha20-poly1305"]);
        assert!(Variant::Default.has_tls() && !Variant::Clear.has_tls());
    }
}
