//! What is measured, said before it is measured: `plan.toml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use bed::{BedError, Result};
use serde::Deserialize;

use crate::beside::Work;
use crate::cell::{Cell, Variant};

/// The whole plan.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Every random number begins with it.
    pub seed: u64,
    /// How often a bootstrap draws.
    pub draws: usize,
    /// Of all intervals, 0 to 1.
    pub confidence: f64,
    /// Replicas that are measured together.
    pub block: u32,
    /// Cells with fewer pairs have no intervals.
    pub intervals_from: usize,
    /// The folder of data that the text is about; otherwise that of most phases.
    pub sitting: Option<String>,
    /// What is measured, in this order.
    pub phase: Vec<Phase>,
    /// Other programs beside both daemons.
    pub rivals: Rivals,
    /// Transactions beside a backup, in several settings.
    pub tail: Vec<Tail>,
    /// System calls.
    pub calls: Calls,
    /// What a Full's time consists of.
    pub model: Model,
    /// What gains mean for a week.
    pub profile: Vec<Profile>,
    /// What every commit has to pass.
    pub gate: Vec<Gate>,
    /// What is counted in the repository.
    pub count: Vec<Count>,
    /// Figures of others, by their keys.
    pub published: BTreeMap<String, String>,
    /// The text's own rules.
    pub text: Text,
    /// The jobs for a reader in a hurry.
    pub gain: Vec<Gain>,
    /// Texts that stand in other pages.
    pub excerpt: Vec<Excerpt>,
}

/// A text of `excerpts/` that stands in another page, between two marks. It is put there when all
/// of it has been measured.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Excerpt {
    /// The word of its marks and its file.
    pub name: String,
    /// The page, from the repository's top.
    pub page: String,
}

/// A job whose gain is told to a reader in a hurry.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gain {
    /// What the job is, for the reader.
    pub text: String,
    /// The begin of the keys of its numbers, as `nine.media1.full`.
    pub key: String,
}

/// Cells whose system calls are counted.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    /// Replicas of each.
    pub replicas: u32,
    /// How long all of it takes, about.
    pub minutes: u32,
    /// By their names.
    pub cells: Vec<String>,
}

impl Calls {
    /// Its cells, as they are listed.
    pub fn cells(&self) -> Result<Vec<Cell>> {
        named(&self.cells)
    }
}

/// The cells of the model of a Full's time, `PHASE: CELL` each.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Those that it is fitted to.
    pub fitted: Vec<String>,
    /// Those that it is judged by.
    pub judged: Vec<String>,
}

/// Clients that are all saved in the same way.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its word in numbers.
    pub name: String,
    /// What it is, for the reader.
    pub title: String,
    /// The begin of the keys of its job's numbers, as `nine.media1.full`.
    pub key: String,
    /// How often each client is saved in a week.
    pub jobs: u32,
    /// How many clients there are.
    pub clients: u32,
}

/// A check that every commit has to pass.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// Its word in file names and numbers.
    pub name: String,
    /// What it checks.
    pub title: String,
    /// How it is run, by a shell at the repository's top.
    pub command: String,
}

/// Something that is counted in the repository.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// Its word in numbers.
    pub name: String,
    /// What is counted.
    pub title: String,
    /// What prints the count, by a shell at the repository's top.
    pub command: String,
}

/// Transactions at a fixed rate beside a Full of Mixed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tail {
    /// Its word in file names and numbers.
    pub name: String,
    /// What it is about.
    pub title: String,
    /// What makes the transactions.
    pub work: Work,
    /// Whether volumes and catalog are in memory, as if they were on another host.
    pub elsewhere: bool,
    /// So many.
    pub replicas: u32,
    /// Of Mixed, so many times.
    pub scale: usize,
    /// The same of the short form.
    pub smoke_scale: usize,
    /// How long all of it takes, about.
    pub minutes: u32,
}

/// The steps of other programs (`rivals/*.toml`).
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rivals {
    /// Replicas of all steps.
    pub replicas: u32,
    /// MiB of noise in the set, and as many of zeros.
    pub mebibytes: usize,
    /// The same of the short form.
    pub smoke_mebibytes: usize,
    /// How long all of it takes, about.
    pub minutes: u32,
}

/// One experiment.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Its word in file names and numbers.
    pub name: String,
    /// What it is about.
    pub title: String,
    /// Replicas of each cell.
    pub replicas: u32,
    /// How long all of it takes on two processors, about.
    pub minutes: u32,
    /// The cells of the short form, which shows that everything works.
    pub smoke: Vec<String>,
    /// Whether trees, volumes and the catalog are in memory.
    #[serde(default)]
    pub memory: bool,
    /// Whether all daemons are in a network that acknowledges each packet at once.
    #[serde(default)]
    pub acknowledged: bool,
    /// Whether a client that reads and writes no file takes part.
    #[serde(default)]
    pub floor: bool,
    /// Cells that are judged together.
    pub family: Vec<Family>,
}

/// Cells whose tests are corrected together.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// Its word.
    pub name: String,
    /// What it is about.
    pub title: String,
    /// The cells by their names.
    pub cells: Vec<String>,
    /// What was promised of the jobs' clock, less their wait in the queue.
    #[serde(default)]
    pub run: Limits,
    /// What was promised of the connections' clock.
    #[serde(default)]
    pub connection: Limits,
    /// The variant above which the costs of the others are told.
    pub base: Option<String>,
    /// Mbit/s of lines for which the best compression is told.
    pub rates: Option<Vec<u32>>,
    /// What changes along its curves.
    pub axis: Option<Axis>,
}

/// What was promised of a family before it was measured.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Every interval of a ratio of medians ends below.
    pub interval_below: Option<f64>,
    /// At most so much is the geometric mean of the ratios of medians.
    pub geometric_mean: Option<f64>,
}

/// What changes along a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// How many files a tree has.
    Files,
    /// How far away the host is.
    RoundTrip,
    /// How long the storage waits.
    Delay,
    /// How many clients there are at once.
    Clients,
}

impl Axis {
    /// What its values are.
    pub fn words(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::RoundTrip => "milliseconds of a round trip",
            Self::Delay => "milliseconds before each operation",
            Self::Clients => "clients",
        }
    }
}

/// What the text may hold.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// Phrases with digits that are no measurements: names, versions, constants.
    pub constants: Vec<String>,
}

impl Plan {
    /// Reads the plan of a folder; every cell must be known.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("plan.toml");
        let text = fs::read_to_string(&path).map_err(BedError::file("read", &path))?;
        let plan: Self =
            toml::from_str(&text).map_err(|error| BedError::Usage(format!("{}: {error}", path.display())))?;
        for phase in &plan.phase {
            phase.cells()?;
            phase.smoke_cells()?;
        }
        plan.calls.cells()?;
        Ok(plan)
    }

    /// Whether the cells of a phase have intervals, if no pair of theirs fails.
    pub fn has_intervals(&self, phase: &Phase) -> bool {
        usize::try_from(phase.replicas).is_ok_and(|replicas| replicas >= self.intervals_from)
    }
}

impl Phase {
    /// Its cells, in the order in which neighbours share a bed.
    pub fn cells(&self) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for family in &self.family {
            cells.extend(family.cells()?);
        }
        in_order(&cells)
    }

    /// The cells of its short form.
    pub fn smoke_cells(&self) -> Result<Vec<Cell>> {
        in_order(&named(&self.smoke)?)
    }
}

impl Family {
    /// Its cells, as they are listed.
    pub fn cells(&self) -> Result<Vec<Cell>> {
        named(&self.cells)
    }

    /// The variant above which the costs of the others are told: one of its cells'.
    pub fn base(&self) -> Result<Option<Variant>> {
        let Some(base) = &self.base else { return Ok(None) };
        let found = self.cells()?.into_iter().find(|cell| cell.variant.to_string() == *base);
        let found = found.ok_or_else(|| BedError::Usage(format!("plan.toml: {} has no {base:?}", self.name)))?;
        Ok(Some(found.variant))
    }
}

fn named(names: &[String]) -> Result<Vec<Cell>> {
    let all = Cell::all();
    let of = |name: &String| {
        let found = all.iter().find(|cell| cell.to_string() == *name).copied();
        found.ok_or_else(|| BedError::Usage(format!("plan.toml: no cell is named {name:?}; see `bench list`")))
    };
    names.iter().map(of).collect()
}

fn in_order(chosen: &[Cell]) -> Result<Vec<Cell>> {
    let cells: Vec<_> = Cell::all().into_iter().filter(|cell| chosen.contains(cell)).collect();
    if cells.len() == chosen.len() {
        Ok(cells)
    } else {
        Err(BedError::Usage("plan.toml: a cell is listed twice".to_owned()))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The plan of the paper.
    pub(crate) fn plan() -> Plan {
        let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
        Plan::read(&bench.with_file_name("paper").join("perf-analysis")).unwrap()
    }

    #[test]
    fn the_papers_plan_is_whole() {
        let plan = plan();
        assert_eq!(plan.phase[0].name, "nine");
        assert_eq!(plan.phase[0].family[0].cells().unwrap().len(), 9);
        for phase in &plan.phase {
            assert!(!phase.smoke_cells().unwrap().is_empty(), "{}", phase.name);
            assert_eq!(phase.replicas % plan.block, 0, "{}: whole blocks", phase.name);
        }
    }

    #[test]
    fn an_unknown_cell_is_refused() {
        assert!(named(&["manyfiles1 full nonsense".to_owned()]).is_err());
        let twice = named(&["empty full default".to_owned(), "empty full default".to_owned()]).unwrap();
        assert!(in_order(&twice).is_err());
    }
}
