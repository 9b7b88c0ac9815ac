//! The numbers of the paper, each under a key, as they are printed: `numbers.json`. Tables, figures
//! and the text take them from here. `check/check.py` computes them once more.

use bed::{BedError, Result};
use std::collections::{BTreeMap, BTreeSet};

use crate::cell::{Cell, Level, Variant};
use crate::paper::folders::Sitting;
use crate::paper::plan::{Family, Limits, Phase, Plan};
use crate::sample::{self, Figure, Sample, Side};
use crate::statistics::{
    Draw, Draws, Estimate, Pairs, bca, between, cliffs_delta, float, hodges_lehmann, holm, median, p90, quotient,
    quotient_of_medians, ranks_around, seed_of, sign_test, sorted, sorted_quantile, wilcoxon,
};

/// What stands for a number that nobody has measured.
pub const UNKNOWN: &str = "not measured yet";
/// What stands for an interval that so few replicas do not give.
pub const TOO_FEW: &str = "–";

/// Printed numbers by their keys.
pub type Numbers = BTreeMap<String, String>;

const GIB: f64 = 1_073_741_824.0;
const MIB: f64 = 1_048_576.0;
/// Milliseconds of a job that has waited in the Director's queue for as long as it can be.
const WHOLE_WAIT: f64 = 1990.0;
/// Digits of a state of the harness.
const SHORT: usize = 8;
/// Milliseconds that a job waits in the Director's queue on average, if its begin is chance.
const MEAN_WAIT: f64 = 1000.0;
/// Of which columns ratios are compared over phases.
const CONTRASTED: [&str; 2] = ["time", "cpu"];
/// GiB below which nothing is told of a GiB.
const LEAST_DATA: f64 = 0.001;

/// The raw rows of one phase.
#[derive(Debug, Default)]
pub struct Data {
    /// The folder's name: host and commit.
    pub host: String,
    /// All rows.
    pub samples: Vec<Sample>,
}

/// Something that is measured of each job.
#[derive(Debug)]
pub struct Column {
    /// Its word in keys.
    pub word: &'static str,
    /// What it is, for the reader.
    pub title: &'static str,
    /// Its value; no number where it is not known.
    pub figure: Figure,
    /// How many digits of it are printed.
    pub digits: usize,
    /// Which jobs have it.
    pub of: fn(Level) -> bool,
}

/// All of them. Less is better in each.
pub const COLUMNS: [Column; 9] = [
    Column { word: "job", title: "job", figure: |one| one.job.unwrap_or(f64::NAN), digits: 1, of: |_| true },
    Column {
        word: "run",
        title: "job without its wait in the queue",
        figure: |one| one.job.zip(one.queued).map_or(f64::NAN, |(job, queued)| job - queued),
        digits: 1,
        of: |_| true,
    },
    Column { word: "time", title: "connection", figure: |one| one.connection, digits: 1, of: |_| true },
    Column { word: "cpu", title: "processor time", figure: |one| one.fd, digits: 3, of: |_| true },
    Column { word: "sd", title: "processor time of the Storage Daemon", figure: |one| one.sd, digits: 3, of: |_| true },
    Column {
        word: "all",
        title: "processor time of all three daemons",
        figure: |one| one.fd + one.sd + one.dir,
        digits: 3,
        of: |_| true,
    },
    Column { word: "memory", title: "memory", figure: |one| one.rss / MIB, digits: 1, of: |_| true },
    Column {
        word: "volume",
        title: "bytes on the volume",
        figure: |one| float(one.bytes) / MIB,
        digits: 2,
        of: |level| !level.is_restore(),
    },
    Column {
        word: "first",
        title: "first file",
        figure: |one| one.first.unwrap_or(f64::NAN),
        digits: 1,
        of: Level::is_restore,
    },
];

/// The rows of a phase.
///
/// # Errors
/// They are of several programs, or of several harnesses.
pub fn data(sitting: &Sitting, phase: &Phase) -> Result<Data> {
    let samples = sitting.rows(&phase.name, sample::read)?;
    for side in Side::BOTH {
        let mine = samples.iter().filter(|one| one.side == side);
        let origins: BTreeSet<_> = mine.map(|one| (&one.program, &one.harness)).collect();
        if origins.len() > 1 {
            let problem = format!("{}: rows of {} are of several programs: {origins:?}", phase.name, side.name());
            return Err(BedError::Usage(problem));
        }
    }
    Ok(Data { host: sitting.name.clone(), samples })
}

/// # Errors
/// The phases are not all of one program of each daemon.
pub fn one_program(data: &[Data]) -> Result<()> {
    for side in Side::BOTH {
        let rows = data.iter().flat_map(|data| &data.samples).filter(|one| one.side == side);
        let programs: BTreeSet<&str> = rows.filter_map(|one| one.program.as_deref()).collect();
        if programs.len() > 1 {
            let problem = format!("the phases' rows of {} are of several programs: {programs:?}", side.name());
            return Err(BedError::Usage(problem));
        }
    }
    Ok(())
}

/// The key of a cell: its three words with dots, without `default`.
pub fn key(phase: &Phase, cell: Cell) -> String {
    let mut key = format!("{}.{}.{}", phase.name, cell.tree, cell.level.name());
    if cell.variant != Variant::Default {
        key.push('.');
        key.push_str(&cell.variant.to_string());
    }
    key
}

/// The good samples of the replicas in which both daemons' jobs were good: ours and stock.
pub fn pairs(samples: &[Sample], cell: Cell) -> Vec<(&Sample, &Sample)> {
    let of = |side| -> BTreeMap<u32, &Sample> {
        let chosen = samples.iter().filter(|one| one.cell == cell && one.side == side && one.is_good());
        chosen.map(|one| (one.replica, one)).collect()
    };
    let (ours, stock) = (of(Side::Ours), of(Side::Stock));
    ours.into_iter().filter_map(|(replica, ours)| Some((ours, *stock.get(&replica)?))).collect()
}

/// One column of one cell, as it was measured in a phase.
#[derive(Debug)]
pub struct Measured<'a> {
    /// The phase.
    pub phase: &'a Phase,
    /// The family in it.
    pub family: &'a Family,
    /// The cell.
    pub cell: Cell,
    /// What of it.
    pub column: &'static Column,
    /// Ours beside stock.
    pub effect: Effect,
}

impl Measured<'_> {
    /// The key of the cell in its phase.
    pub fn key(&self) -> String {
        key(self.phase, self.cell)
    }
}

/// Every column of every cell of the plan.
pub fn measured<'a>(plan: &'a Plan, data: &[Data]) -> Result<Vec<Measured<'a>>> {
    let mut all = Vec::new();
    for (phase, data) in plan.phase.iter().zip(data) {
        for family in &phase.family {
            for cell in family.cells()? {
                let pairs = pairs(&data.samples, cell);
                for column in COLUMNS.iter().filter(|column| (column.of)(cell.level)) {
                    let values = pairs.iter().map(|(ours, stock)| ((column.figure)(ours), (column.figure)(stock)));
                    let values: Vec<_> = values.filter(|(ours, stock)| !ours.is_nan() && !stock.is_nan()).collect();
                    let seed = seed_of(plan.seed, &format!("{}/{cell}/{}", phase.name, column.word));
                    let has_interval = values.len() >= plan.intervals_from;
                    let draw = has_interval.then_some(Draw { times: plan.draws, seed });
                    let effect = Effect::of(&values, draw, plan.confidence);
                    all.push(Measured { phase, family, cell, column, effect });
                }
            }
        }
    }
    Ok(all)
}

/// All numbers of the plan.
pub fn numbers(plan: &Plan, data: &[Data], measured: &[Measured<'_>]) -> Result<Numbers> {
    let mut numbers = Numbers::new();
    let mut put = |key: &str, text: String| drop(numbers.insert(key.to_owned(), text));
    put("plan.seed", plan.seed.to_string());
    put("plan.draws", plan.draws.to_string());
    put("plan.confidence", format!("{:.0}", plan.confidence * 100.0));
    put("plan.block", plan.block.to_string());
    put("plan.intervals", plan.intervals_from.to_string());
    put("rivals.replicas", plan.rivals.replicas.to_string());
    put("rivals.minutes", plan.rivals.minutes.to_string());
    for tail in &plan.tail {
        put(&format!("{}.replicas", tail.name), tail.replicas.to_string());
        put(&format!("{}.minutes", tail.name), tail.minutes.to_string());
    }
    put("rivals.mebibytes", plan.rivals.mebibytes.to_string());
    for (key, text) in &plan.published {
        put(&format!("published.{key}"), text.clone());
    }
    for (phase, data) in plan.phase.iter().zip(data) {
        put(&format!("{}.replicas", phase.name), phase.replicas.to_string());
        put(&format!("{}.minutes", phase.name), phase.minutes.to_string());
        let (mut least, mut most) = (f64::MAX, 0.0_f64);
        for sample in &data.samples {
            (least, most) = (least.min(sample.around.load), most.max(sample.around.load));
        }
        let known = |text: String| if data.samples.is_empty() { UNKNOWN.to_owned() } else { text };
        put(&format!("{}.host", phase.name), known(data.host.clone()));
        put(&format!("{}.load.least", phase.name), known(format!("{least:.2}")));
        put(&format!("{}.load.most", phase.name), known(format!("{most:.2}")));
        let jobs = data.samples.len();
        let bad = data.samples.iter().filter(|one| !one.is_good()).count();
        put(&format!("{}.jobs", phase.name), known(jobs.to_string()));
        put(&format!("{}.jobs.bad", phase.name), known(bad.to_string()));
        for side in Side::BOTH {
            let of = |wanted: fn(Level) -> bool| -> Vec<f64> {
                let jobs = data.samples.iter().filter(|one| one.side == side && wanted(one.cell.level));
                jobs.filter_map(|one| one.queued).collect()
            };
            let (fulls, restores) = (of(|level| level == Level::Full), of(Level::is_restore));
            let long = fulls.iter().filter(|wait| **wait >= WHOLE_WAIT).count();
            let middle =
                |waits: &[f64]| if waits.is_empty() { TOO_FEW.to_owned() } else { format!("{:.0}", mean(waits)) };
            let name = format!("{}.queue.{}", phase.name, side.name());
            put(&format!("{name}.fulls"), known(fulls.len().to_string()));
            put(&format!("{name}.whole"), known(long.to_string()));
            put(&format!("{name}.mean"), known(middle(&fulls)));
            put(&format!("{name}.restores"), known(middle(&restores)));
        }
    }
    sitting(plan, data, &mut put);
    let mut short = 0;
    for (phase, data) in plan.phase.iter().zip(data).filter(|(_, data)| !data.samples.is_empty()) {
        let few = |cell: &Cell| (1..phase.replicas as usize).contains(&pairs(&data.samples, *cell).len());
        short += phase.cells()?.iter().filter(|cell| few(cell)).count();
    }
    put("plan.short", short.to_string());
    for (phase, data) in plan.phase.iter().zip(data) {
        for cell in phase.cells()? {
            numbers.extend(of_cell(phase, cell, data));
        }
    }
    for one in measured {
        let depth = if !plan.has_intervals(one.phase) {
            Depth::Medians
        } else if matches!(one.column.word, "job" | "run" | "time") {
            Depth::Everything
        } else {
            Depth::Intervals
        };
        one.effect.put(&mut numbers, &format!("{}.{}", one.key(), one.column.word), one.column.digits, depth);
    }
    for family in measured.chunk_by(|left, right| std::ptr::eq(left.family, right.family)) {
        numbers.extend(of_family(plan, family));
    }
    numbers.extend(contrasts(plan, measured));
    numbers.extend(shares(plan, measured));
    Ok(numbers)
}

/// Whether more jobs of a cell have failed than pairs are left. Both daemons' luck has chosen these
/// pairs then, so nothing is told of their times.
pub fn is_chosen(phase: &Phase, cell: Cell, numbers: &Numbers) -> bool {
    let count = |word: &str| numbers.get(&format!("{}.{word}", key(phase, cell))).and_then(|text| text.parse().ok());
    let [bad, more, left]: [u32; 3] = ["bad.stock", "bad.ours", "n"].map(|word| count(word).unwrap_or_default());
    bad + more > left
}

/// When each phase was measured, counted in hours from the first row of all, and by which states of
/// the harness.
fn sitting(plan: &Plan, data: &[Data], put: &mut dyn FnMut(&str, String)) {
    let began = |data: &Data| -> Vec<u64> { data.samples.iter().map(|one| one.around.began).collect() };
    let first = data.iter().flat_map(began).min().unwrap_or_default();
    let hours = |at: Option<u64>| at.map_or(UNKNOWN.to_owned(), |at| format!("{:.1}", float(at - first) / 3600.0));
    let harness = |data: &Data| -> BTreeSet<String> {
        data.samples.iter().filter_map(|one| Some(one.harness.as_ref()?.chars().take(SHORT).collect())).collect()
    };
    for (phase, data) in plan.phase.iter().zip(data) {
        put(&format!("{}.from", phase.name), hours(began(data).into_iter().min()));
        put(&format!("{}.to", phase.name), hours(began(data).into_iter().max()));
        let states: Vec<String> = harness(data).into_iter().collect();
        let text = if states.is_empty() { UNKNOWN.to_owned() } else { states.join(" ") };
        put(&format!("{}.harness", phase.name), text);
    }
    put("sitting.hours", hours(data.iter().flat_map(began).max()));
    let states: BTreeSet<String> = data.iter().flat_map(harness).collect();
    put("sitting.harnesses", if states.is_empty() { UNKNOWN.to_owned() } else { states.len().to_string() });
}

/// The same cell as it is by default; none if it is that one.
pub fn plain_of(cell: Cell) -> Option<Cell> {
    (cell.variant != Variant::Default).then_some(Cell { variant: Variant::Default, ..cell })
}

/// What a ratio is of that of the same job as it is by default, which the first phase has; with an
/// interval of draws of the pairs of both.
fn contrasts(plan: &Plan, measured: &[Measured<'_>]) -> Numbers {
    let mut numbers = Numbers::new();
    let first = plan.phase.first().map(|phase| phase.name.as_str());
    for one in measured.iter().filter(|one| CONTRASTED.contains(&one.column.word) && plan.has_intervals(one.phase)) {
        let is_base = |other: &&Measured<'_>| {
            Some(other.phase.name.as_str()) == first
                && plain_of(one.cell) == Some(other.cell)
                && other.column.word == one.column.word
        };
        let Some(base) = measured.iter().find(is_base) else { continue };
        let name = format!("{}.{}.contrast", one.key(), one.column.word);
        let (with, without) = (one.effect.pairs(), base.effect.pairs());
        if with.is_empty() || without.is_empty() {
            for key in ["", ".low", ".high"] {
                numbers.insert(format!("{name}{key}"), UNKNOWN.to_owned());
            }
            continue;
        }
        let mut random = Draws::new(seed_of(plan.seed, &format!("{name}/contrast")));
        let (mut with, mut without) = (Pairs::new(&with), Pairs::new(&without));
        let mut drawn = |pairs: &mut Pairs| pairs.drawn(&mut random, quotient_of_medians);
        let ratios: Vec<f64> = (0..plan.draws).map(|_| quotient(drawn(&mut with), drawn(&mut without))).collect();
        let ratios = sorted(&ratios);
        let half = (1.0 - plan.confidence) / 2.0;
        let value = quotient(one.effect.ratio.value, base.effect.ratio.value);
        let ends = [("", value), (".low", between(&ratios, half)), (".high", between(&ratios, 1.0 - half))];
        numbers.extend(ends.map(|(key, value)| (format!("{name}{key}"), format!("{value:.3}"))));
    }
    numbers
}

/// How many milliseconds of the connection ours saves in the first phase and where all daemons
/// acknowledge at once, and which part of the former is gone there; with an interval of draws of
/// the pairs of both.
fn shares(plan: &Plan, measured: &[Measured<'_>]) -> Numbers {
    let saved = |ours: &[f64], stock: &[f64]| sorted_quantile(stock, 500) - sorted_quantile(ours, 500);
    let mut numbers = Numbers::new();
    let first = plan.phase.first().map(|phase| phase.name.as_str());
    for one in measured.iter().filter(|one| one.phase.acknowledged && one.column.word == "time") {
        let is_base = |other: &&Measured<'_>| {
            Some(other.phase.name.as_str()) == first && other.cell == one.cell && other.column.word == "time"
        };
        let Some(base) = measured.iter().find(is_base) else { continue };
        let name = format!("{}.share", one.key());
        let (default, there) = (base.effect.pairs(), one.effect.pairs());
        if default.is_empty() || there.is_empty() {
            for key in ["", ".low", ".high", ".default", ".acknowledged"] {
                numbers.insert(format!("{name}{key}"), UNKNOWN.to_owned());
            }
            continue;
        }
        let mut random = Draws::new(seed_of(plan.seed, &name));
        let (mut default, mut there) = (Pairs::new(&default), Pairs::new(&there));
        let gone = |default: f64, there: f64| 1.0 - quotient(there, default);
        let mut drawn = |pairs: &mut Pairs| pairs.drawn(&mut random, saved);
        let parts: Vec<f64> = (0..plan.draws).map(|_| gone(drawn(&mut default), drawn(&mut there))).collect();
        let parts = sorted(&parts);
        let half = (1.0 - plan.confidence) / 2.0;
        let middle = |one: &Measured<'_>| median(&one.effect.stock) - median(&one.effect.ours);
        let (default, there) = (middle(base), middle(one));
        let ends =
            [("", gone(default, there)), (".low", between(&parts, half)), (".high", between(&parts, 1.0 - half))];
        numbers.extend(ends.map(|(key, value)| (format!("{name}{key}"), format!("{value:.2}"))));
        let saved = [("default", default), ("acknowledged", there)];
        numbers.extend(saved.map(|(key, value)| (format!("{name}.{key}"), format!("{value:.0}"))));
    }
    numbers
}

/// The numbers of a cell that are no columns.
fn of_cell(phase: &Phase, cell: Cell, data: &Data) -> Numbers {
    let mut numbers = Numbers::new();
    let pairs = pairs(&data.samples, cell);
    let name = key(phase, cell);
    numbers.insert(format!("{name}.n"), pairs.len().to_string());
    for side in [Side::Ours, Side::Stock] {
        let mine = data.samples.iter().filter(|one| one.cell == cell && one.side == side);
        let bad = mine.filter(|one| !one.is_good()).count();
        numbers.insert(format!("{name}.bad.{}", side.name()), bad.to_string());
    }
    // Of pairs in which one job failed: whose, and how likely that is by chance (McNemar, exact).
    let failed = |side| -> BTreeSet<u32> {
        let bad = data.samples.iter().filter(|one| one.cell == cell && one.side == side && !one.is_good());
        bad.map(|one| one.replica).collect()
    };
    let (ours, stock) = (failed(Side::Ours), failed(Side::Stock));
    let one_of: Vec<f64> =
        ours.symmetric_difference(&stock).map(|one| if ours.contains(one) { 1.0 } else { -1.0 }).collect();
    numbers.insert(format!("{name}.bad.sign"), probability(sign_test(&one_of)));
    let (ours, stock): (Vec<&Sample>, Vec<&Sample>) = pairs.iter().copied().unzip();
    for (word, side) in [("ours", ours), ("stock", stock)] {
        let some = |figure: Figure| median(&side.iter().map(|one| figure(one)).collect::<Vec<_>>());
        let known = |text: String| if pairs.is_empty() { UNKNOWN.to_owned() } else { text };
        let rate = some(|one| quotient(float(one.bytes), one.connection) * 1000.0 / MIB);
        numbers.insert(format!("{name}.rate.{word}"), known(format!("{rate:.1}")));
        let gib = |one: &Sample| float(if one.cell.level.is_restore() { one.bytes } else { one.read_bytes }) / GIB;
        // A job that reads nothing costs nothing for each GiB, and one that reads a few bytes
        // millions of seconds.
        let has_data = side.iter().all(|one| gib(one) >= LEAST_DATA);
        let of = |figure: &dyn Fn(&Sample) -> f64| {
            let middle = median(&side.iter().map(|one| quotient(figure(one), gib(one))).collect::<Vec<_>>());
            known(if has_data { format!("{middle:.2}") } else { TOO_FEW.to_owned() })
        };
        numbers.insert(format!("{name}.gib.{word}"), of(&|one| one.fd));
        numbers.insert(format!("{name}.gib.all.{word}"), of(&|one| one.fd + one.sd + one.dir));
        let packed = some(|one| quotient(float(one.bytes), float(one.read_bytes)));
        numbers.insert(format!("{name}.packed.{word}"), known(format!("{packed:.3}")));
    }
    numbers
}

/// What the cells of a family say together, by each clock.
fn of_family(plan: &Plan, measured: &[Measured<'_>]) -> Numbers {
    let Some(Measured { phase, family, .. }) = measured.first() else { return Numbers::new() };
    let mut numbers = Numbers::new();
    for word in ["job", "run", "time"] {
        let found: Vec<&Measured<'_>> = measured.iter().filter(|one| one.column.word == word).collect();
        let corrected = holm(&found.iter().map(|one| one.effect.wilcoxon).collect::<Vec<_>>());
        for (one, corrected) in found.iter().zip(corrected) {
            if plan.has_intervals(phase) && word != "job" {
                let text = if one.effect.count == 0 { UNKNOWN.to_owned() } else { probability(corrected) };
                numbers.insert(format!("{}.{word}.wilcoxon.holm", one.key()), text);
            }
        }
        let limits = match word {
            "run" => family.run,
            "time" => family.connection,
            _ => Limits::default(),
        };
        let name = format!("{}.{}.{word}", phase.name, family.name);
        numbers.extend(summary(plan, phase, &name, limits, &found));
        if word == "run" {
            numbers.insert(format!("{name}.evened"), evened(&found));
        }
    }
    numbers
}

/// The geometric mean of the ratios of medians, if all jobs of both daemons waited as long in the
/// queue.
fn evened(found: &[&Measured<'_>]) -> String {
    if found.iter().any(|one| one.effect.count == 0) {
        return UNKNOWN.to_owned();
    }
    let waited = |values: &[f64]| median(values) + MEAN_WAIT;
    let ratios = found.iter().map(|one| quotient(waited(&one.effect.ours), waited(&one.effect.stock)));
    format!("{:.3}", geometric_mean(&ratios.collect::<Vec<_>>()))
}

/// What a family says as a whole by one clock.
fn summary(plan: &Plan, phase: &Phase, name: &str, limits: Limits, found: &[&Measured<'_>]) -> Numbers {
    let all = found.iter().all(|one| one.effect.count > 0);
    let known = |text: String| if all { text } else { UNKNOWN.to_owned() };
    let ratios: Vec<f64> = found.iter().map(|one| one.effect.ratio.value).collect();
    let geometric = geometric_mean(&ratios);
    let mut numbers = Numbers::from([
        (format!("{name}.cells"), found.len().to_string()),
        (format!("{name}.geometric"), known(format!("{geometric:.3}"))),
        (format!("{name}.faster"), known(ratios.iter().filter(|ratio| **ratio < 1.0).count().to_string())),
    ]);
    if !plan.has_intervals(phase) {
        return numbers;
    }
    let pairs: Vec<Vec<(f64, f64)>> = found.iter().map(|one| one.effect.pairs()).collect();
    let seed = seed_of(plan.seed, &format!("{name}/geometric"));
    let (low, high) = geometric_interval(&pairs, Draw { times: plan.draws, seed }, plan.confidence);
    let tails: Vec<f64> = found.iter().map(|one| one.effect.tail_ratio).collect();
    let below = limits.interval_below.unwrap_or(1.0);
    let faster = |high: &dyn Fn(&Effect) -> Option<f64>| {
        found.iter().filter(|one| high(&one.effect).is_some_and(|high| high < below)).count()
    };
    let by_median = faster(&|one| one.has_interval.then_some(one.ratio.high));
    let by_p90 = faster(&|one| one.tail.map(|(_, high)| high));
    let kept = geometric <= limits.geometric_mean.unwrap_or(f64::INFINITY)
        && (limits.interval_below.is_none() || by_median == found.len());
    let limit = |limit: Option<f64>| limit.map_or_else(|| TOO_FEW.to_owned(), |limit| format!("{limit:.2}"));
    numbers.extend([
        (format!("{name}.geometric.low"), known(format!("{low:.3}"))),
        (format!("{name}.geometric.high"), known(format!("{high:.3}"))),
        (format!("{name}.geometric.p90"), known(format!("{:.3}", geometric_mean(&tails)))),
        (format!("{name}.geometric.limit"), limit(limits.geometric_mean)),
        (format!("{name}.below.limit"), limit(limits.interval_below)),
        (format!("{name}.below"), known(by_median.to_string())),
        (format!("{name}.below.p90"), known(by_p90.to_string())),
        (format!("{name}.verdict"), known(if kept { "kept" } else { "missed" }.to_owned())),
    ]);
    numbers
}

/// The geometric mean, in the order of the values.
fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().fold(0.0, |sum, one| sum + one.ln()) / float(values.len() as u64)).exp()
}

/// The middle part of the geometric means of draws of pairs, those of each cell by themselves.
fn geometric_interval(cells: &[Vec<(f64, f64)>], draw: Draw, confidence: f64) -> (f64, f64) {
    if cells.iter().any(Vec::is_empty) {
        return (f64::NAN, f64::NAN);
    }
    let mut random = Draws::new(draw.seed);
    let mut cells: Vec<Pairs> = cells.iter().map(|pairs| Pairs::new(pairs)).collect();
    let means: Vec<f64> = (0..draw.times)
        .map(|_| {
            let ratios = cells.iter_mut().map(|pairs| pairs.drawn(&mut random, quotient_of_medians));
            geometric_mean(&ratios.collect::<Vec<_>>())
        })
        .collect();
    let means = sorted(&means);
    let half = (1.0 - confidence) / 2.0;
    (between(&means, half), between(&means, 1.0 - half))
}

/// One figure of one cell: ours beside stock.
#[derive(Debug, Clone)]
pub struct Effect {
    /// Pairs.
    pub count: usize,
    /// Ours.
    pub ours: Vec<f64>,
    /// The stock daemon's.
    pub stock: Vec<f64>,
    /// Of medians; its ends are the value without an interval.
    pub ratio: Estimate,
    /// Whether there is one.
    pub has_interval: bool,
    /// Of the 90th percentiles.
    pub tail_ratio: f64,
    /// Its interval, if there are enough replicas.
    pub tail: Option<(f64, f64)>,
    /// Of the 90th percentiles of ours and of stock, for the wider of both confidences.
    pub tails: [Option<(f64, f64)>; 2],
    /// Hodges and Lehmann's shift of the logarithms, as a ratio.
    pub shift: Estimate,
    /// Whether that has an interval.
    pub shift_has_interval: bool,
    /// Probabilities by chance.
    pub sign: f64,
    /// The same by ranks.
    pub wilcoxon: f64,
    /// Cliff's delta: how much more often ours is larger than less.
    pub delta: f64,
}

/// How much is told of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Depth {
    /// Medians and their ratio.
    Medians,
    /// And its interval.
    Intervals,
    /// And how the values spread, percentiles, tests.
    Everything,
}

impl Effect {
    /// Of pairs of ours and stock; without `draw` there is no interval.
    pub fn of(pairs: &[(f64, f64)], draw: Option<Draw>, confidence: f64) -> Self {
        let (ours, stock): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let logarithms: Vec<f64> = pairs.iter().map(|(ours, stock)| quotient(*ours, *stock).ln()).collect();
        let draw = draw.filter(|_| pairs.len() > 1);
        let ratio = bca(pairs, draw.unwrap_or(Draw { times: 0, seed: 0 }), confidence, quotient_of_medians);
        // Both intervals hold together with the confidence if each errs half as often.
        let each = 1.0 - (1.0 - confidence) / 2.0;
        let tails = [&ours, &stock].map(|values| {
            let (low, high) = ranks_around(values.len(), 0.9, each)?;
            let sorted = sorted(values);
            Some((*sorted.get(low.checked_sub(1)?)?, *sorted.get(high.checked_sub(1)?)?))
        });
        let [mine, theirs] = tails;
        let tail = mine.zip(theirs).map(|(mine, theirs)| (quotient(mine.0, theirs.1), quotient(mine.1, theirs.0)));
        let shift = hodges_lehmann(&logarithms, confidence);
        let (low, high) = shift.interval.unwrap_or((shift.value, shift.value));
        Self {
            count: pairs.len(),
            ratio,
            has_interval: draw.is_some(),
            tail_ratio: quotient(p90(&ours), p90(&stock)),
            tail,
            tails,
            shift: Estimate { value: shift.value.exp(), low: low.exp(), high: high.exp() },
            shift_has_interval: shift.interval.is_some(),
            sign: sign_test(&logarithms),
            wilcoxon: wilcoxon(&logarithms),
            delta: cliffs_delta(&ours, &stock),
            ours,
            stock,
        }
    }

    /// Ours and stock, pair by pair.
    fn pairs(&self) -> Vec<(f64, f64)> {
        self.ours.iter().copied().zip(self.stock.iter().copied()).collect()
    }

    /// So much of it as printed.
    fn put(&self, numbers: &mut Numbers, name: &str, digits: usize, depth: Depth) {
        let none = self.count == 0;
        let mut put = |key: &str, text: String| {
            let text = if none { UNKNOWN.to_owned() } else { text };
            numbers.insert(format!("{name}.{key}"), text);
        };
        let ratio = |value: f64| format!("{value:.3}");
        let or_few = |there: bool, text: String| if there { text } else { TOO_FEW.to_owned() };
        let sides = [("ours", &self.ours, self.tails[0]), ("stock", &self.stock, self.tails[1])];
        for (word, values, _) in sides {
            put(&format!("{word}.median"), format!("{:.digits$}", median(values)));
        }
        put("ratio", ratio(self.ratio.value));
        if depth >= Depth::Intervals {
            put("ratio.low", or_few(self.has_interval, ratio(self.ratio.low)));
            put("ratio.high", or_few(self.has_interval, ratio(self.ratio.high)));
        }
        if depth < Depth::Everything {
            return;
        }
        for (word, values, tail) in sides {
            put(&format!("{word}.mean"), format!("{:.digits$}", mean(values)));
            put(&format!("{word}.deviation"), or_few(values.len() > 1, format!("{:.digits$}", deviation(values))));
            put(&format!("{word}.most"), format!("{:.digits$}", values.iter().copied().fold(0.0, f64::max)));
            let (low, high) = tail.unwrap_or_default();
            put(&format!("{word}.p90"), or_few(tail.is_some(), format!("{:.digits$}", p90(values))));
            put(&format!("{word}.p90.low"), or_few(tail.is_some(), format!("{low:.digits$}")));
            put(&format!("{word}.p90.high"), or_few(tail.is_some(), format!("{high:.digits$}")));
        }
        put("p90.ratio", or_few(self.tail.is_some(), ratio(self.tail_ratio)));
        put("p90.ratio.low", or_few(self.tail.is_some(), ratio(self.tail.unwrap_or_default().0)));
        put("p90.ratio.high", or_few(self.tail.is_some(), ratio(self.tail.unwrap_or_default().1)));
        put("shift", ratio(self.shift.value));
        put("shift.low", or_few(self.shift_has_interval, ratio(self.shift.low)));
        put("shift.high", or_few(self.shift_has_interval, ratio(self.shift.high)));
        put("sign", probability(self.sign));
        put("wilcoxon", probability(self.wilcoxon));
        put("delta", ratio(self.delta));
    }
}

/// With two digits.
pub fn probability(value: f64) -> String {
    if value >= 0.001 { format!("{value:.3}") } else { format!("{value:.1e}") }
}

/// In the order of the values, so that another program rounds alike.
fn mean(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |sum, one| sum + one) / float(values.len().max(1) as u64)
}

/// Of a sample.
fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares = values.iter().fold(0.0, |sum, one| sum + (one - mean) * (one - mean));
    (squares / float(values.len().saturating_sub(1).max(1) as u64)).sqrt()
}

#[cfg(test)]
mod tests;
