//! The numbers of the paper, each under a key, as they are printed: `numbers.json`. Tables, figures
//! and the text take them from here. `check/check.py` computes them once more.

use std::collections::BTreeMap;
use std::path::Path;

use bed::Result;

use crate::cell::{Cell, Variant};
use crate::paper::folders::most;
use crate::paper::plan::{Family, Phase, Plan};
use crate::sample::{self, Figure, Sample, Side};
use crate::statistics::{
    Draw, Estimate, bca, cliffs_delta, float, hodges_lehmann, holm, median, p90, quotient, ranks_around, seed_of,
    sign_test, sorted, wilcoxon,
};

/// What stands for a number that nobody has measured.
pub const UNKNOWN: &str = "not measured yet";
/// What stands for an interval that so few replicas do not give.
pub const TOO_FEW: &str = "–";

/// Printed numbers by their keys.
pub type Numbers = BTreeMap<String, String>;

const GIB: f64 = 1_073_741_824.0;

/// The raw rows of one phase.
#[derive(Debug, Default)]
pub struct Data {
    /// The folder's name: host and commit.
    pub host: String,
    /// All rows.
    pub samples: Vec<Sample>,
}

/// What is measured of a job, its word and how it is printed.
const FIGURES: [(&str, Figure, usize); 2] = [("time", |one| one.connection, 1), ("cpu", |one| one.fd, 3)];
/// The same of restores only. What is not known is no number.
const FIRST: (&str, Figure, usize) = ("first", |one| one.first.unwrap_or(f64::NAN), 1);

/// The rows of a phase that the text is about.
pub fn data(folder: &Path, phase: &Phase) -> Result<Data> {
    let (host, samples) = most(folder, &phase.name, phase.host.as_deref(), sample::read)?;
    Ok(Data { host, samples })
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

/// All numbers of the plan.
pub fn numbers(plan: &Plan, data: &[Data]) -> Result<Numbers> {
    let mut numbers = Numbers::new();
    let mut put = |key: &str, text: String| drop(numbers.insert(key.to_owned(), text));
    put("plan.seed", plan.seed.to_string());
    put("plan.draws", plan.draws.to_string());
    put("plan.confidence", format!("{:.0}", plan.confidence * 100.0));
    put("plan.block", plan.block.to_string());
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
        for family in &phase.family {
            for (key, text) in of_family(plan, phase, family, data)? {
                put(&key, text);
            }
        }
    }
    Ok(numbers)
}

/// The numbers of a family's cells, and those of all of them.
fn of_family(plan: &Plan, phase: &Phase, family: &Family, data: &Data) -> Result<Numbers> {
    let cells = family.cells()?;
    let mut numbers = Numbers::new();
    let mut found = Vec::new();
    for &cell in &cells {
        let pairs = pairs(&data.samples, cell);
        let name = key(phase, cell);
        numbers.insert(format!("{name}.n"), pairs.len().to_string());
        for side in [Side::Ours, Side::Stock] {
            let mine = data.samples.iter().filter(|one| one.cell == cell && one.side == side);
            let bad = mine.filter(|one| !one.is_good()).count();
            numbers.insert(format!("{name}.bad.{}", side.name()), bad.to_string());
        }
        let first = cell.level.is_restore().then_some(FIRST);
        for (word, figure, digits) in FIGURES.into_iter().chain(first) {
            let values = pairs.iter().map(|(ours, stock)| (figure(ours), figure(stock)));
            let values: Vec<_> = values.filter(|(ours, stock)| !ours.is_nan() && !stock.is_nan()).collect();
            let seed = seed_of(plan.seed, &format!("{}/{cell}/{word}", phase.name));
            let effect = Effect::of(&values, Draw { times: plan.draws, seed }, plan.confidence);
            effect.put(&mut numbers, &format!("{name}.{word}"), digits);
            if word == "time" {
                found.push(effect);
            }
        }
        let (ours, stock): (Vec<&Sample>, Vec<&Sample>) = pairs.iter().copied().unzip();
        for (word, side) in [("ours", ours), ("stock", stock)] {
            let some = |figure: Figure| median(&side.iter().map(|one| figure(one)).collect::<Vec<_>>());
            let known = |text: String| if pairs.is_empty() { UNKNOWN.to_owned() } else { text };
            let memory = some(|one| one.rss) / f64::from(1 << 20);
            numbers.insert(format!("{name}.memory.{word}"), known(format!("{memory:.1}")));
            let rate = some(|one| quotient(float(one.bytes), one.connection) * 1000.0 / f64::from(1 << 20));
            numbers.insert(format!("{name}.rate.{word}"), known(format!("{rate:.1}")));
            let gib = |one: &Sample| float(if one.cell.level.is_restore() { one.bytes } else { one.read_bytes }) / GIB;
            // A job that reads nothing costs nothing for each GiB.
            let has_data = side.iter().all(|one| gib(one) > 0.0);
            let of = |figure: &dyn Fn(&Sample) -> f64| {
                let middle = median(&side.iter().map(|one| quotient(figure(one), gib(one))).collect::<Vec<_>>());
                known(if has_data { format!("{middle:.2}") } else { TOO_FEW.to_owned() })
            };
            numbers.insert(format!("{name}.gib.{word}"), of(&|one| one.fd));
            numbers.insert(format!("{name}.gib.all.{word}"), of(&|one| one.fd + one.sd + one.dir));
            let packed = some(|one| quotient(float(one.bytes), float(one.read_bytes)));
            numbers.insert(format!("{name}.packed.{word}"), known(format!("{packed:.3}")));
        }
    }
    // Correction over the family.
    let corrected = holm(&found.iter().map(|effect| effect.wilcoxon).collect::<Vec<_>>());
    for ((cell, effect), corrected) in cells.iter().zip(&found).zip(corrected) {
        let text = if effect.count == 0 { UNKNOWN.to_owned() } else { probability(corrected) };
        numbers.insert(format!("{}.time.wilcoxon.holm", key(phase, *cell)), text);
    }
    numbers.extend(summary(phase, family, &found));
    Ok(numbers)
}

/// What a family says as a whole.
fn summary(phase: &Phase, family: &Family, found: &[Effect]) -> Numbers {
    let name = format!("{}.{}", phase.name, family.name);
    let all = found.iter().all(|effect| effect.count > 0);
    let known = |text: String| if all { text } else { UNKNOWN.to_owned() };
    let mean = |of: fn(&Effect) -> f64| {
        let logarithms = found.iter().fold(0.0, |sum, effect| sum + of(effect).ln());
        (logarithms / float(found.len() as u64)).exp()
    };
    let below = family.interval_below.unwrap_or(1.0);
    let faster = |high: fn(&Effect) -> Option<f64>| {
        found.iter().filter(|effect| high(effect).is_some_and(|high| high < below)).count()
    };
    let (by_median, by_p90) = (faster(|one| Some(one.ratio.high)), faster(|one| one.tail.map(|(_, high)| high)));
    let geometric = mean(|effect| effect.ratio.value);
    let kept = geometric <= family.geometric_mean.unwrap_or(f64::INFINITY)
        && (family.interval_below.is_none() || (by_median == found.len() && by_p90 == found.len()));
    let limit = |limit: Option<f64>| limit.map_or_else(|| TOO_FEW.to_owned(), |limit| format!("{limit:.2}"));
    Numbers::from([
        (format!("{name}.cells"), found.len().to_string()),
        (format!("{name}.geometric"), known(format!("{geometric:.3}"))),
        (format!("{name}.geometric.p90"), known(format!("{:.3}", mean(|effect| effect.tail_ratio)))),
        (format!("{name}.geometric.limit"), limit(family.geometric_mean)),
        (format!("{name}.below.limit"), limit(family.interval_below)),
        (format!("{name}.below"), known(by_median.to_string())),
        (format!("{name}.below.p90"), known(by_p90.to_string())),
        (format!("{name}.verdict"), known(if kept { "kept" } else { "missed" }.to_owned())),
    ])
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
    /// Of medians.
    pub ratio: Estimate,
    /// Of the 90th percentiles.
    pub tail_ratio: f64,
    /// Its interval, if there are enough replicas.
    pub tail: Option<(f64, f64)>,
    /// Of the 90th percentiles of ours and of stock, for the wider of both confidences.
    pub tails: [Option<(f64, f64)>; 2],
    /// Hodges and Lehmann's shift of the logarithms, as a ratio.
    pub shift: Estimate,
    /// Whether it has an interval.
    pub has_interval: bool,
    /// Probabilities by chance.
    pub sign: f64,
    /// The same by ranks.
    pub wilcoxon: f64,
    /// Cliff's delta: how much more often ours is larger than less.
    pub delta: f64,
}

impl Effect {
    /// Of pairs of ours and stock.
    pub fn of(pairs: &[(f64, f64)], draw: Draw, confidence: f64) -> Self {
        let (ours, stock): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let logarithms: Vec<f64> = pairs.iter().map(|(ours, stock)| quotient(*ours, *stock).ln()).collect();
        let ratio = bca(pairs, draw, confidence, |ours, stock| quotient(median(ours), median(stock)));
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
            tail_ratio: quotient(p90(&ours), p90(&stock)),
            tail,
            tails,
            shift: Estimate { value: shift.value.exp(), low: low.exp(), high: high.exp() },
            has_interval: shift.interval.is_some(),
            sign: sign_test(&logarithms),
            wilcoxon: wilcoxon(&logarithms),
            delta: cliffs_delta(&ours, &stock),
            ours,
            stock,
        }
    }

    /// All of it as printed.
    fn put(&self, numbers: &mut Numbers, name: &str, digits: usize) {
        let none = self.count == 0;
        let mut put = |key: &str, text: String| {
            let text = if none { UNKNOWN.to_owned() } else { text };
            numbers.insert(format!("{name}.{key}"), text);
        };
        let ratio = |value: f64| format!("{value:.3}");
        let or_few = |there: bool, text: String| if there { text } else { TOO_FEW.to_owned() };
        for (word, values, tail) in [("ours", &self.ours, self.tails[0]), ("stock", &self.stock, self.tails[1])] {
            put(&format!("{word}.median"), format!("{:.digits$}", median(values)));
            put(&format!("{word}.mean"), format!("{:.digits$}", mean(values)));
            put(&format!("{word}.deviation"), or_few(values.len() > 1, format!("{:.digits$}", deviation(values))));
            put(&format!("{word}.p90"), format!("{:.digits$}", p90(values)));
            put(&format!("{word}.most"), format!("{:.digits$}", values.iter().copied().fold(0.0, f64::max)));
            let (low, high) = tail.unwrap_or_default();
            put(&format!("{word}.p90.low"), or_few(tail.is_some(), format!("{low:.digits$}")));
            put(&format!("{word}.p90.high"), or_few(tail.is_some(), format!("{high:.digits$}")));
        }
        let many = self.count > 1;
        put("ratio", ratio(self.ratio.value));
        put("ratio.low", or_few(many, ratio(self.ratio.low)));
        put("ratio.high", or_few(many, ratio(self.ratio.high)));
        put("p90.ratio", ratio(self.tail_ratio));
        put("p90.ratio.low", or_few(self.tail.is_some(), ratio(self.tail.unwrap_or_default().0)));
        put("p90.ratio.high", or_few(self.tail.is_some(), ratio(self.tail.unwrap_or_default().1)));
        put("shift", ratio(self.shift.value));
        put("shift.low", or_few(self.has_interval, ratio(self.shift.low)));
        put("shift.high", or_few(self.has_interval, ratio(self.shift.high)));
        put("sign", probability(self.sign));
        put("wilcoxon", probability(self.wilcoxon));
        put("delta", ratio(self.delta));
    }
}

/// With two digits.
fn probability(value: f64) -> String {
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
mod tests {
    use super::*;
    use crate::paper::plan::tests::plan;
    use crate::sample::tests::sample;

    fn measured(plan: &Plan) -> Vec<Data> {
        let cell = plan.phase[0].family[0].cells().unwrap()[0];
        let mut samples = Vec::new();
        for replica in 1..=40 {
            let more = f64::from(replica);
            samples.push(Sample { cell, connection: 1000.0 + more, ..sample(Side::Stock, replica) });
            samples.push(Sample { cell, connection: 300.0 + more, ..sample(Side::Ours, replica) });
        }
        samples.push(Sample { cell, outcome: 'E', connection: 1.0, ..sample(Side::Ours, 41) });
        let data = Data { host: "here".to_owned(), samples };
        [data].into_iter().chain(plan.phase.iter().skip(1).map(|_| Data::default())).collect()
    }

    #[test]
    fn a_cell_has_all_its_numbers_and_bad_jobs_are_counted_but_no_times() {
        let plan = plan();
        let numbers = numbers(&plan, &measured(&plan)).unwrap();
        let cell = key(&plan.phase[0], plan.phase[0].family[0].cells().unwrap()[0]);
        let get = |name: &str| numbers[&format!("{cell}.{name}")].as_str();
        assert_eq!((get("n"), get("time.stock.median"), get("time.ours.median")), ("40", "1020.5", "320.5"));
        assert_eq!((get("time.ratio"), get("time.delta")), ("0.314", "-1.000"));
        assert!(get("time.p90.ratio.high").parse::<f64>().unwrap() < 1.0);
        assert_eq!(get("time.sign"), "1.8e-12");
        assert_eq!((numbers["nine.jobs"].as_str(), numbers["nine.jobs.bad"].as_str()), ("81", "1"));
        assert_eq!((get("bad.ours"), get("bad.stock")), ("1", "0"));
        assert_eq!(numbers["nine.backups.geometric"], UNKNOWN);
    }

    #[test]
    fn without_data_every_number_says_so_and_none_is_missing() {
        let plan = plan();
        let nothing: Vec<_> = plan.phase.iter().map(|_| Data::default()).collect();
        let (without, with) = (numbers(&plan, &nothing).unwrap(), numbers(&plan, &measured(&plan)).unwrap());
        assert!(without.keys().eq(with.keys()));
        assert!(without.values().any(|text| text == UNKNOWN) && !without.values().any(|text| text.contains("NaN")));
    }
}
