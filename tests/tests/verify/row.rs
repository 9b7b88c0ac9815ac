//! One row of the matrix: a `FileSet`, the tree that it is about, and which levels are run when.

use std::path::{Path, PathBuf};

use bed::{Expect, FileSet, job_resource};

use crate::damage::Damage;

bed::named! {
    /// The trees that rows are about (see `trees.rs`), by their directories below `source`:
    /// every kind of entry, for the levels that read the disk; plain files, for those that read a
    /// volume; hard links.
    pub(crate) Tree { Disk = "disk", Data = "data", Links = "links" }
}

bed::named! {
    /// A level, by the Director's word.
    pub(crate) Level {
        Backup = "Full", Init = "InitCatalog", Catalog = "Catalog", DiskToCatalog = "DiskToCatalog",
        Volume = "VolumeToCatalog", Data = "Data",
    }
}

impl Level {
    /// The level of a letter.
    pub(crate) fn of(letter: char) -> Self {
        match letter {
            'B' => Self::Backup,
            'I' => Self::Init,
            'C' => Self::Catalog,
            'D' => Self::DiskToCatalog,
            'V' => Self::Volume,
            'A' => Self::Data,
            other => panic!("no level has the letter {other}"),
        }
    }

    /// Whether the Storage Daemon reads a volume for it: one job a device at a time.
    pub(crate) fn reads(self) -> bool {
        matches!(self, Self::Volume | Self::Data)
    }

    /// The row's job that runs it. `init` and `catalog` belong to a job of their own: the Director
    /// uses the last `init` under the same name.
    fn job(self) -> &'static str {
        match self {
            Self::Backup => "backup",
            Self::Init | Self::Catalog => "disk",
            Self::DiskToCatalog | Self::Volume | Self::Data => "verify",
        }
    }
}

/// What has been done to trees, volumes and catalog when a phase begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Nothing; backups only.
    Backup,
    /// Nothing; `init` only.
    Init,
    /// Nothing.
    Clean,
    /// The trees have changed.
    Tampered,
    /// Records on the volumes have changed.
    Damaged,
    /// Rows of the catalog have changed.
    Forged,
}

pub(crate) const PHASES: [Phase; 6] =
    [Phase::Backup, Phase::Init, Phase::Clean, Phase::Tampered, Phase::Damaged, Phase::Forged];

/// One row.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) tree: Tree,
    /// Directives of each Options block, separated by ` ; `.
    options: Vec<String>,
    /// Directives of the Include.
    settings: Vec<&'static str>,
    /// Names of the Include; `@` is the tree.
    files: Vec<&'static str>,
    /// Letters of the levels that each phase runs.
    plan: Vec<(Phase, &'static str)>,
    pub(crate) damage: Damage,
    /// `Accurate = yes` in the jobs that verify.
    accurate: bool,
    pub(crate) expect: Expect,
}

/// A row about the disk, compared with a backup after the tree has changed.
pub(crate) fn disk(name: &str, options: &str) -> Row {
    let plan = vec![(Phase::Backup, "B"), (Phase::Tampered, "D")];
    Row { plan, tree: Tree::Disk, ..row(name, options) }
}

/// A row about a volume, verified after its records have changed.
pub(crate) fn data(name: &str, options: &str) -> Row {
    Row { plan: vec![(Phase::Backup, "B"), (Phase::Damaged, "A")], damage: Damage::Bits, ..row(name, options) }
}

fn row(name: &str, options: &str) -> Row {
    Row {
        name: name.to_owned(),
        tree: Tree::Data,
        options: if options.is_empty() { Vec::new() } else { vec![options.to_owned()] },
        settings: Vec::new(),
        files: vec!["@"],
        plan: Vec::new(),
        damage: Damage::None,
        accurate: false,
        expect: Expect::Equal,
    }
}

impl Row {
    /// Adds an Options block.
    pub(crate) fn block(mut self, options: &str) -> Self {
        self.options.push(options.to_owned());
        self
    }

    /// A directive of the Include itself.
    pub(crate) fn setting(mut self, directive: &'static str) -> Self {
        self.settings.push(directive);
        self
    }

    /// Other names than the tree's.
    pub(crate) fn files(mut self, files: &[&'static str]) -> Self {
        self.files = files.to_vec();
        self
    }

    pub(crate) fn of(mut self, tree: Tree) -> Self {
        self.tree = tree;
        self
    }

    /// Compares with an `init`, too.
    pub(crate) fn init(self) -> Self {
        self.run(Phase::Init, "I").run(Phase::Tampered, "CD")
    }

    /// Which levels run in a phase.
    pub(crate) fn run(mut self, phase: Phase, letters: &'static str) -> Self {
        self.plan.retain(|(planned, _)| *planned != phase);
        self.plan.push((phase, letters));
        self
    }

    pub(crate) fn damage(mut self, damage: Damage) -> Self {
        self.damage = damage;
        self
    }

    pub(crate) fn accurate(mut self) -> Self {
        self.accurate = true;
        self
    }

    /// See [`Expect::Differs`].
    pub(crate) fn differs(mut self, documented: &'static str, found: &'static [&'static str]) -> Self {
        self.expect = Expect::Differs { documented, found };
        self
    }

    /// Whether blocks are compressed, so that their lengths may differ.
    pub(crate) fn is_compressed(&self) -> bool {
        self.options.iter().any(|options| options.contains("Compression"))
    }

    /// The levels of a phase.
    pub(crate) fn levels(&self, phase: Phase) -> impl Iterator<Item = Level> {
        let letters = self.plan.iter().find(|(planned, _)| *planned == phase).map_or("", |(_, letters)| letters);
        letters.chars().map(Level::of)
    }

    /// The names that a walk begins with.
    pub(crate) fn tops(&self, tree: &Path) -> Vec<PathBuf> {
        self.files.iter().map(|file| PathBuf::from(file.replace('@', &tree.to_string_lossy()))).collect()
    }

    /// What its jobs are made of.
    pub(crate) fn input(&self) -> String {
        let set = self.file_set(Path::new("@"), 0).lines.join("\n");
        format!("{set}\n{:?} {:?} {:?} {}", self.tree, self.plan, self.damage, self.accurate)
    }

    /// The Director's resource, `deeper` directories below the place of the records.
    pub(crate) fn file_set(&self, tree: &Path, deeper: usize) -> FileSet {
        let strip = |text: &str| match text.strip_prefix("StripPath = ") {
            Some(count) => format!("StripPath = {}", count.parse::<usize>().unwrap() + deeper),
            None => text.to_owned(),
        };
        let here = |text: &str| strip(text).replace('@', &tree.to_string_lossy());
        let mut lines = vec!["Include {".to_owned()];
        lines.extend(self.settings.iter().map(|line| here(line)));
        for block in &self.options {
            lines.push("Options {".to_owned());
            lines.extend(block.split(" ; ").map(here));
            lines.push("}".to_owned());
        }
        lines.extend(self.files.iter().map(|file| format!("File = \"{}\"", here(file))));
        lines.push("}".to_owned());
        FileSet { name: self.name.clone(), lines }
    }

    /// The Director's resources for a client's jobs.
    pub(crate) fn jobs(&self, client: &str) -> Vec<String> {
        let name = &self.name;
        let job = |job: &str, more: &str| {
            let more = format!("{more}\nMaximum Concurrent Jobs = 10");
            job_resource(&format!("{name}-{job}-{client}"), client, name, &more)
        };
        let accurate = if self.accurate { "Accurate = yes" } else { "" };
        let verify = format!("Type = Verify\nLevel = Data\nVerify Job = \"{name}-backup-{client}\"\n{accurate}");
        vec![
            job("backup", "Type = Backup\nLevel = Full"),
            job("disk", "Type = Verify\nLevel = InitCatalog"),
            job("verify", &verify),
        ]
    }

    /// The console's command for a level.
    pub(crate) fn command(&self, level: Level, client: &str) -> String {
        format!("run job={}-{}-{client} level={} yes", self.name, level.job(), level.name())
    }
}
