//! Numbers that are derived from the cells of a family: what its times vary with, what a part costs
//! above what is without it, and which compression is best on which line.

use std::collections::BTreeMap;

use bed::Result;

use crate::cell::{Cell, Codec, Level, Variant};
use crate::paper::analysis::{Data, Numbers, UNKNOWN, key, pairs};
use crate::paper::plan::{Family, Phase, Plan, Profile};
use crate::sample::{Figure, Sample, Side};
use crate::statistics::{Variation, float, median, quotient, variation};
use crate::tree::Tree;

/// The derived numbers of the whole plan.
pub fn numbers(plan: &Plan, data: &[Data]) -> Result<Numbers> {
    let mut numbers = Numbers::new();
    for (phase, data) in plan.phase.iter().zip(data) {
        for family in &phase.family {
            numbers.extend(parts(phase, family, data)?);
            if phase.floor {
                numbers.extend(floors(phase, &family.cells()?, data));
            }
            if let Some(base) = family.base()? {
                numbers.extend(above(phase, &family.cells()?, base, data));
            }
            for rate in family.rates.iter().flatten() {
                numbers.extend(choices(phase, family, *rate, data)?);
            }
        }
    }
    Ok(numbers)
}

/// How long a job of each profile takes, its wait in the queue with it, how many fit in an hour one
/// after the other, and how many minutes all of a week take; from the printed means, since it is
/// these that add up.
pub fn profiles(profiles: &[Profile], numbers: &Numbers) -> Numbers {
    let mut found = Numbers::new();
    for Profile { name, key, jobs, clients, .. } in profiles {
        for side in Side::BOTH.map(Side::name) {
            let mean = numbers.get(&format!("{key}.job.{side}.mean")).and_then(|text| text.parse::<f64>().ok());
            let all = f64::from(*jobs) * f64::from(*clients);
            let words = [
                ("seconds", mean.map(|mean| format!("{:.2}", mean / 1000.0))),
                ("hour", mean.map(|mean| format!("{:.0}", 3_600_000.0 / mean))),
                ("minutes", mean.map(|mean| format!("{:.1}", mean * all / 60_000.0))),
            ];
            for (word, text) in words {
                found.insert(format!("profile.{name}.{word}.{side}"), text.unwrap_or(UNKNOWN.to_owned()));
            }
        }
    }
    found
}

/// What the times of a family vary with, in percent.
fn parts(phase: &Phase, family: &Family, data: &Data) -> Result<Numbers> {
    let time = |(ours, stock): (&Sample, &Sample)| (ours.connection.ln(), stock.connection.ln());
    let cells = family.cells()?.into_iter().map(|cell| pairs(&data.samples, cell).into_iter().map(time).collect());
    let cells: Vec<Vec<(f64, f64)>> = cells.collect();
    let is_known = cells.iter().all(|cell| !cell.is_empty());
    let Variation { daemon, cell, both, replica, rest } = variation(&cells);
    let number = |(word, part): (&str, f64)| {
        let text = if is_known { format!("{:.1}", part * 100.0) } else { UNKNOWN.to_owned() };
        (format!("{}.{}.variation.{word}", phase.name, family.name), text)
    };
    let all = [("daemon", daemon), ("cell", cell), ("both", both), ("replica", replica), ("rest", rest)];
    Ok(all.into_iter().map(number).collect())
}

/// The median of a figure of one side in the pairs of a cell; `None` without pairs.
fn middle(samples: &[Sample], cell: Cell, side: Side, figure: Figure) -> Option<f64> {
    let of = |(ours, stock): (&Sample, &Sample)| figure(if side == Side::Ours { ours } else { stock });
    let values: Vec<f64> = pairs(samples, cell).into_iter().map(of).collect();
    (!values.is_empty()).then(|| median(&values))
}

/// The median time of the client that reads and writes no file, and which part of the stock
/// daemon's time above it ours takes.
fn floors(phase: &Phase, cells: &[Cell], data: &Data) -> Numbers {
    let mut numbers = Numbers::new();
    for &cell in cells {
        let mine = data.samples.iter().filter(|one| one.cell == cell && one.side == Side::Floor && one.is_good());
        let times: Vec<f64> = mine.map(|one| one.connection).collect();
        let floor = (!times.is_empty()).then(|| median(&times));
        let above = |side| Some(middle(&data.samples, cell, side, |one| one.connection)? - floor?);
        let part = above(Side::Ours).zip(above(Side::Stock)).map(|(ours, stock)| quotient(ours, stock));
        let known =
            |value: Option<f64>, digits: usize| value.map_or(UNKNOWN.to_owned(), |one| format!("{one:.digits$}"));
        let name = key(phase, cell);
        numbers.insert(format!("{name}.floor.time"), known(floor, 1));
        numbers.insert(format!("{name}.floor.above"), known(part, 2));
    }
    numbers
}

/// What each cell takes more than the same without its variant.
fn above(phase: &Phase, cells: &[Cell], base: Variant, data: &Data) -> Numbers {
    let mut numbers = Numbers::new();
    let figures: [(&str, Figure, usize); 2] = [("cpu", |one| one.fd, 3), ("time", |one| one.connection, 1)];
    for &cell in cells {
        for side in Side::BOTH {
            for (word, figure, digits) in figures {
                let of = |cell| middle(&data.samples, cell, side, figure);
                let more = of(cell).zip(of(Cell { variant: base, ..cell })).map(|(with, without)| with - without);
                let text = more.map_or(UNKNOWN.to_owned(), |more| format!("{more:.digits$}"));
                numbers.insert(format!("{}.above.{word}.{}", key(phase, cell), side.name()), text);
            }
            let time = |cell| middle(&data.samples, cell, side, |one| one.connection);
            let more = time(cell).zip(time(Cell { variant: base, ..cell }));
            let percent = more.map(|(with, without)| (quotient(with, without) - 1.0) * 100.0);
            let text = percent.map_or(UNKNOWN.to_owned(), |percent| format!("{percent:.0}"));
            numbers.insert(format!("{}.above.percent.{}", key(phase, cell), side.name()), text);
        }
    }
    numbers
}

/// The cells of each tree of a family that are Fulls.
pub fn fulls(family: &Family) -> Result<BTreeMap<Tree, Vec<Cell>>> {
    let mut fulls: BTreeMap<Tree, Vec<Cell>> = BTreeMap::new();
    for cell in family.cells()?.into_iter().filter(|cell| cell.level == Level::Full) {
        fulls.entry(cell.tree).or_default().push(cell);
    }
    Ok(fulls)
}

/// Of each tree and daemon the compression with which a Full ends first over a line of so many
/// Mbit/s: it takes as long as here, or as its bytes need. The stock daemon of Debian has no ZSTD.
fn choices(phase: &Phase, family: &Family, rate: u32, data: &Data) -> Result<Numbers> {
    let mut numbers = Numbers::new();
    for (tree, cells) in fulls(family)? {
        for side in Side::BOTH {
            let seconds = |cell: &Cell| {
                let time = middle(&data.samples, *cell, side, |one| one.connection)? / 1000.0;
                let bytes = middle(&data.samples, *cell, side, |one| float(one.bytes))?;
                Some(time.max(bytes * 8.0 / (f64::from(rate) * 1e6)))
            };
            let has = |cell: &&Cell| side == Side::Ours || cell.variant.codec() != Codec::Zstd;
            let all: Option<Vec<(f64, Cell)>> =
                cells.iter().filter(has).map(|cell| Some((seconds(cell)?, *cell))).collect();
            // The first of several.
            let best = all.and_then(|all| all.into_iter().reduce(|best, one| if one.0 < best.0 { one } else { best }));
            let name = format!("{}.{}.choice.{tree}.{rate}.{}", phase.name, family.name, side.name());
            let (word, time) = best.map_or((UNKNOWN.to_owned(), UNKNOWN.to_owned()), |(seconds, cell)| {
                (codec(cell), format!("{seconds:.1}"))
            });
            numbers.insert(format!("{name}.codec"), word);
            numbers.insert(format!("{name}.seconds"), time);
        }
    }
    Ok(numbers)
}

/// How a cell is compressed.
pub fn codec(cell: Cell) -> String {
    match cell.variant.codec() {
        Codec::None => "none".to_owned(),
        codec => codec.word(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Part;
    use crate::paper::plan::tests::plan;
    use crate::sample::tests::sample;

    #[test]
    fn a_part_costs_what_is_above_the_cell_without_it() {
        let plan = plan();
        let bare = Cell::choose("media1 full bare").unwrap()[0];
        let with = Cell { variant: Variant::Bare(Part::Signature("MD5")), ..bare };
        let row = |cell, side, fd| Sample { cell, fd, ..sample(side, 1) };
        let samples =
            Side::BOTH.iter().flat_map(|side| [row(bare, *side, 0.5), row(with, *side, 0.75)]).collect::<Vec<_>>();
        let found =
            above(&plan.phase[0], &[with, bare], Variant::Bare(Part::Nothing), &Data { host: String::new(), samples });
        assert_eq!(found["nine.media1.full.bare-md5.above.cpu.ours"], "0.250");
        assert_eq!(found["nine.media1.full.bare.above.time.stock"], "0.0");
        assert_eq!(found["nine.media1.full.bare-md5.above.percent.ours"], "0");
    }

    #[test]
    fn what_is_above_the_floor_is_a_part_of_what_the_stock_daemon_has_above_it() {
        let plan = plan();
        let cell = Cell::choose("media1 full default").unwrap()[0];
        let row = |side, connection| Sample { cell, connection, ..sample(side, 1) };
        let samples = vec![row(Side::Stock, 900.0), row(Side::Ours, 350.0), row(Side::Floor, 300.0)];
        let found = floors(&plan.phase[0], &[cell], &Data { host: String::new(), samples });
        assert_eq!(found["nine.media1.full.floor.time"], "300.0");
        assert_eq!(found["nine.media1.full.floor.above"], "0.08");
        assert_eq!(floors(&plan.phase[0], &[cell], &Data::default())["nine.media1.full.floor.above"], UNKNOWN);
    }

    #[test]
    fn a_profile_takes_its_mean_times_its_jobs() {
        let profile = Profile {
            name: "hourly".to_owned(),
            title: String::new(),
            key: "nine.mixed1.incr".to_owned(),
            jobs: 168,
            clients: 100,
        };
        let numbers = Numbers::from([("nine.mixed1.incr.job.ours.mean".to_owned(), "200.0".to_owned())]);
        let found = profiles(&[profile], &numbers);
        assert_eq!(
            (found["profile.hourly.minutes.ours"].as_str(), found["profile.hourly.hour.ours"].as_str()),
            ("56.0", "18000")
        );
        assert_eq!(found["profile.hourly.minutes.stock"], UNKNOWN);
    }

    #[test]
    fn on_a_slow_line_the_smallest_volume_wins() {
        let plan = plan();
        let (phase, family) = plan
            .phase
            .iter()
            .find_map(|phase| Some((phase, phase.family.iter().find(|family| family.rates.is_some())?)))
            .unwrap();
        let mut samples = Vec::new();
        for cells in fulls(family).unwrap().into_values() {
            for cell in cells {
                let (connection, bytes) =
                    if cell.variant == Variant::Default { (1000.0, 500_000_000) } else { (2000.0, 100_000_000) };
                samples.extend(Side::BOTH.map(|side| Sample { cell, connection, bytes, ..sample(side, 1) }));
            }
        }
        let data = Data { host: String::new(), samples };
        let codec = |rate| {
            let found = choices(phase, family, rate, &data).unwrap();
            found[&format!("{}.{}.choice.mixed1.{rate}.ours.codec", phase.name, family.name)].clone()
        };
        assert_eq!((codec(10_000).as_str(), codec(10) == "none"), ("none", false));
    }
}
