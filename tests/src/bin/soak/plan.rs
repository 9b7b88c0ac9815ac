//! What a round does, drawn from the seed and the round's number alone, so that any round can be
//! done again.

use bed::Noise;

/// Which pair of File Daemons runs a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pair {
    /// As they come.
    Plain,
    /// With `PKI Encryption`.
    Sealed,
    /// With a clock that steps.
    Clock,
}

impl Pair {
    pub(crate) const ALL: [Self; 3] = [Self::Plain, Self::Sealed, Self::Clock];

    /// The stock daemon's client, and ours: names of one length.
    pub(crate) fn clients(self) -> [&'static str; 2] {
        match self {
            Self::Plain => ["refpla", "undpla"],
            Self::Sealed => ["refsea", "undsea"],
            Self::Clock => ["refclo", "undclo"],
        }
    }
}

/// The clients whose jobs are interrupted.
pub(crate) const HELD: [&str; 2] = ["refhel", "undhel"];

/// A level of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Full,
    Differential,
    Incremental,
}

bed::named! {
    /// A level of a Verify job, by the Director's word.
    pub(crate) Check {
        Init = "InitCatalog", Catalog = "Catalog", Disk = "DiskToCatalog", Volume = "VolumeToCatalog", Data = "Data",
    }
}

impl Check {
    /// The job that runs it: the Director uses the last `InitCatalog` under the same name.
    pub(crate) fn job(self) -> &'static str {
        match self {
            Self::Init | Self::Catalog => "disk",
            Self::Disk | Self::Volume | Self::Data => "check",
        }
    }
}

/// A backup job of both daemons with its FileSet, run in each generation of the tree.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent choice")]
pub(crate) struct Lane {
    /// Also the FileSet's name.
    pub(crate) name: String,
    pub(crate) pair: Pair,
    /// Directives of its Options.
    pub(crate) options: Vec<&'static str>,
    /// A pattern of what is left out.
    pub(crate) excluding: Option<&'static str>,
    pub(crate) accurate: bool,
    /// Blocks are compressed, so that their lengths may differ.
    pub(crate) packed: bool,
    /// ZSTD, which Debian's stock daemon ignores.
    pub(crate) zstd: bool,
    /// A program's output is saved, too.
    pub(crate) bpipe: bool,
    /// One for each generation.
    pub(crate) levels: Vec<Level>,
    /// Verify jobs after each generation.
    pub(crate) checks: Vec<Option<Check>>,
    /// Generations after which it is estimated, and restored.
    pub(crate) estimates: Vec<bool>,
    pub(crate) restores: Vec<bool>,
}

/// What is done to the daemons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The File Daemons of the lanes are ended and started again between jobs.
    RestartClients,
    RestartStorage,
    RestartDirector,
    /// A job of each daemon is canceled in the middle of a file, while the lanes' jobs run.
    Cancel,
    /// A File Daemon is ended in the middle of a file.
    StopClient,
    KillClient,
    KillStorage,
    KillDirector,
    /// Both daemons restore onto a disk of so many KiB.
    FullDisk(u32),
    /// The clock of a pair of File Daemons goes so many seconds before or after that of the host.
    Clock(i32),
}

/// What is in the tree of a round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tree {
    /// Every type of file, not only plain files.
    pub(crate) every_type: bool,
    /// Files that get further names between the jobs.
    pub(crate) new_links: bool,
}

/// A round.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) tree: Tree,
    /// Each file that is saved or skipped has a message.
    pub(crate) every_message: bool,
    pub(crate) lanes: Vec<Lane>,
    /// What happens in each generation, before its jobs or while they run.
    pub(crate) troubles: Vec<Vec<Trouble>>,
}

/// Digests that both daemons have.
const SIGNATURES: [&str; 8] = [
    "Signature = MD5",
    "Signature = MD5",
    "Signature = SHA1",
    "Signature = SHA256",
    "Signature = SHA512",
    "Signature = XXHASH64",
    "Signature = XXH3_128",
    "",
];
/// Whose files a Verify of the stock daemon digests (docs/differences.md).
const VERIFIABLE: [&str; 4] = ["Signature = MD5", "Signature = SHA1", "Signature = SHA256", "Signature = SHA512"];
const COMPRESSIONS: [&str; 8] =
    ["", "", "", "Compression = GZIP1", "Compression = GZIP6", "Compression = GZIP9", "Compression = LZO", ZSTD];
const ZSTD: &str = "Compression = ZSTD";
const SWITCHES: [&str; 9] = [
    "Sparse = yes",
    "AclSupport = yes",
    "XattrSupport = yes",
    "NoAtime = yes",
    "CheckFileChanges = yes",
    "OneFS = no",
    "Portable = yes",
    "MtimeOnly = yes",
    "HardLinks = no",
];
/// What the stock daemon looks up before it has found the entry's own Options.
const LEAKING: [&str; 2] = ["MtimeOnly = yes", "HardLinks = no"];
/// Letters that compare links or change times, and a digest only where it is MD5
/// (docs/differences.md).
const LETTERS: [&str; 4] = ["", "Accurate = mcs", "Accurate = pinsmc", "Accurate = ipnugsamcd"];
const LETTERS_OF_MD5: [&str; 3] = ["Accurate = pins5", "Accurate = pinsmc5", "Accurate = ipnugsamcd5"];
/// None of them tells the names of one file apart.
const PATTERNS: [&str; 4] = [
    "WildFile = \"*/file-*3\"",
    "RegexFile = \"/file-[0-9]*[02468]$\"",
    "WildDir = \"*/3\"",
    "RegexDir = \"/many/0/[1-2]$\"",
];

impl Plan {
    /// The plan of a round; a short one is done in a few seconds.
    pub(crate) fn of(seed: u64, round: u64, short: bool) -> Self {
        let mut noise = Noise::new(seed.wrapping_mul(0x9e37_79b9).wrapping_add(round));
        // Neighboring numbers must not share their sequence.
        let mut noise = Noise::new(noise.number());
        let generations = if short { 2 } else { 3 + noise.below(3) };
        let tree = Tree { every_type: noise.below(2) == 0, new_links: noise.below(2) == 0 };
        let number = if short { 4 } else { 12 };
        let lanes = (0..number).map(|lane| Lane::draw(&mut noise, lane, generations, tree)).collect();
        let troubles = (0..generations)
            .map(|generation| {
                let count = if generation == 0 || short { 1 } else { 2 };
                (0..count).map(|_| Trouble::draw(&mut noise, generation == 0)).collect()
            })
            .collect();
        Self { seed: noise.number(), tree, every_message: noise.below(4) == 0, lanes, troubles }
    }
}

impl Lane {
    fn draw(noise: &mut Noise, number: usize, generations: usize, tree: Tree) -> Self {
        let pair = match number % 6 {
            1 => Pair::Sealed,
            4 => Pair::Clock,
            _ => Pair::Plain,
        };
        let bpipe = pair == Pair::Plain && noise.below(6) == 0;
        let signature = one(noise, &SIGNATURES);
        let compression = one(noise, &COMPRESSIONS);
        // Debian's stock daemon encrypts plain data where ZSTD is wanted.
        let zstd = compression == ZSTD && pair != Pair::Sealed && !bpipe;
        let is_out = compression == ZSTD && !zstd || bpipe && compression == "Compression = LZO";
        let compression = if is_out { "" } else { compression };
        let accurate = noise.below(2) == 0;
        let letters = match (accurate, signature) {
            (false, _) => "",
            // Behind a hard link that is sent the stock daemon compares no digest; and where not
            // all letters have the change time, it overlooks names that change
            // (docs/differences.md).
            (true, "Signature = MD5") if !tree.new_links && noise.below(2) == 0 => one(noise, &LETTERS_OF_MD5),
            (true, _) => one(noise, &LETTERS),
        };
        let mut options = vec![signature, compression, letters];
        options.extend(SWITCHES.into_iter().filter(|_| noise.below(4) == 0));
        let excluding = (noise.below(4) == 0).then(|| one(noise, &PATTERNS));
        // With the stock daemon they depend on the block of the entry before (docs/differences.md).
        let leaks = |option: &str| {
            excluding.is_some()
                && (LEAKING.contains(&option) || option.starts_with("Accurate") && option.ends_with('5'))
        };
        // The blocks of a program's output are as long as a read happens to find them; and of
        // encrypted zeros the stock daemon saves every second file again (docs/differences.md).
        let no_holes = bpipe || pair == Pair::Sealed && letters.ends_with('5');
        options.retain(|option| !(option.is_empty() || leaks(option) || no_holes && *option == "Sparse = yes"));
        let level = |noise: &mut Noise, generation: usize| match (generation, noise.below(8)) {
            (0, _) | (_, 0) => Level::Full,
            (_, 1 | 2) => Level::Differential,
            _ => Level::Incremental,
        };
        let levels = (0..generations).map(|generation| level(noise, generation)).collect();
        let is_verifiable = VERIFIABLE.contains(&signature) && pair == Pair::Plain && !bpipe && !zstd;
        let checks = Self::draw_checks(noise, generations, is_verifiable, tree.every_type);
        let estimates = (0..generations).map(|_| noise.below(4) == 0).collect();
        let restores = (0..generations).map(|done| done + 1 == generations || noise.below(4) == 0).collect();
        Self {
            name: format!("lane{number:02}"),
            pair,
            packed: !compression.is_empty(),
            options,
            excluding,
            accurate,
            zstd,
            bpipe,
            levels,
            checks,
            estimates,
            restores,
        }
    }

    /// A Verify of data takes hard links for damage (docs/differences.md), which only some trees
    /// have.
    fn draw_checks(noise: &mut Noise, generations: usize, is_verifiable: bool, every_type: bool) -> Vec<Option<Check>> {
        let mut has_init = false;
        (0..generations)
            .map(|_| {
                let check = match noise.below(10) {
                    0 | 1 if has_init => Check::Catalog,
                    0 | 1 => Check::Init,
                    2 | 3 => Check::Disk,
                    4 | 5 => Check::Volume,
                    6 if !every_type => Check::Data,
                    _ => return None,
                };
                has_init |= check == Check::Init;
                is_verifiable.then_some(check)
            })
            .collect()
    }

    /// The generations whose jobs together hold the newest state.
    pub(crate) fn chain(&self, generation: usize) -> Vec<usize> {
        let mut chain: Vec<usize> = Vec::new();
        for (at, level) in self.levels.iter().enumerate().take(generation + 1) {
            match level {
                Level::Full => chain = vec![at],
                // It holds what all since the Full hold.
                Level::Differential => chain = chain.first().copied().into_iter().chain([at]).collect(),
                Level::Incremental => chain.push(at),
            }
        }
        chain
    }
}

impl Trouble {
    fn draw(noise: &mut Noise, is_first: bool) -> Self {
        match noise.below(20) {
            0..=4 => Self::Cancel,
            5 | 6 => Self::RestartClients,
            7 => Self::RestartStorage,
            8 => Self::RestartDirector,
            9 | 10 => Self::StopClient,
            11 | 12 => Self::KillClient,
            13 => Self::KillStorage,
            14 => Self::KillDirector,
            15..=17 if !is_first => Self::FullDisk(u32::try_from(64 + noise.below(900)).unwrap_or(64)),
            _ => Self::Clock(i32::try_from(noise.below(20_000)).unwrap_or(0) - 10_000),
        }
    }
}

fn one(noise: &mut Noise, choices: &[&'static str]) -> &'static str {
    choices.get(noise.below(choices.len())).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_always_the_same_and_rounds_differ() {
        let told = |round| format!("{:?}", Plan::of(3, round, false));
        assert_eq!(told(5), told(5));
        assert_ne!(told(5), told(6));
    }

    #[test]
    fn a_chain_begins_with_the_last_full() {
        let mut lane = Lane::draw(&mut Noise::new(1), 0, 5, Tree { every_type: true, new_links: true });
        lane.levels = vec![Level::Full, Level::Incremental, Level::Differential, Level::Incremental, Level::Full];
        assert_eq!(lane.chain(1), [0, 1]);
        assert_eq!(lane.chain(3), [0, 2, 3]);
        assert_eq!(lane.chain(4), [4]);
    }

    #[test]
    fn what_only_our_daemon_does_is_not_drawn() {
        for round in 0..200 {
            for lane in Plan::of(1, round, false).lanes {
                let zstd = lane.options.contains(&ZSTD);
                assert_eq!(zstd, lane.zstd);
                assert!(!zstd || lane.pair != Pair::Sealed);
                let digests = lane.options.iter().any(|option| option.starts_with("Accurate") && option.ends_with('5'));
                assert!(!digests || lane.options.contains(&"Signature = MD5"));
                assert_eq!(lane.levels.first(), Some(&Level::Full));
                assert_eq!(lane.restores.last(), Some(&true));
            }
        }
    }
}
