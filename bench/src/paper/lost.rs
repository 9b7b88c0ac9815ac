//! Where ours loses, found by a program: every cell and every column in which it takes more than
//! the stock daemon, and every line of transactions beside a backup.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::paper::analysis::{COLUMNS, Measured, Numbers, TOO_FEW, UNKNOWN, is_chosen};
use crate::paper::plan::{Plan, Tail};
use crate::statistics::{median, quotient};

/// What else is counted of jobs, by words of keys.
const COUNTS: [(&str, &str); 3] =
    [("calls", "system calls"), ("switches", "context switches"), ("faults", "page faults")];
/// What transactions beside a backup wait.
const WAITS: [(&str, &str); 3] =
    [("p50", "transactions: median"), ("p90", "transactions: P90"), ("p99", "transactions: P99")];

/// The words of all columns, with what they are.
fn columns() -> impl Iterator<Item = (&'static str, &'static str)> {
    COLUMNS.iter().map(|column| (column.word, column.title))
}

/// A cell in which ours takes so much of what the stock daemon takes.
#[derive(Debug, Clone, Copy)]
struct Ratio<'a, 'b> {
    of: &'b Measured<'a>,
    value: f64,
    interval: Option<(f64, f64)>,
}

/// The ratio of each cell that has one, by the words of the columns. A job that several phases have
/// measured in the same circumstances is that of the first one; one whose pairs failures have
/// chosen is left out.
fn ratios<'a, 'b>(measured: &'b [Measured<'a>], numbers: &Numbers) -> BTreeMap<&'static str, Vec<Ratio<'a, 'b>>> {
    let mut found: BTreeMap<&'static str, Vec<Ratio<'a, 'b>>> = BTreeMap::new();
    let job = |of: &Measured<'_>| (of.cell, of.phase.acknowledged, of.phase.memory);
    let is_told = |of: &&Measured<'_>| of.effect.count > 0 && !is_chosen(of.phase, of.cell, numbers);
    for of in measured.iter().filter(is_told) {
        let effect = &of.effect;
        let interval = effect.has_interval.then_some((effect.ratio.low, effect.ratio.high));
        let known = found.entry(of.column.word).or_default();
        if known.iter().all(|other| job(other.of) != job(of)) {
            known.push(Ratio { of, value: effect.ratio.value, interval });
        }
    }
    found
}

/// Of each column how many cells there are, in how many ours takes more, in how many of these the
/// whole interval is above one, the middle and the greatest of the ratios; `counted` says how many
/// jobs have failed.
pub fn numbers(measured: &[Measured<'_>], counted: &Numbers) -> Numbers {
    let all = ratios(measured, counted);
    let mut numbers = Numbers::new();
    for (word, _) in columns() {
        let cells = all.get(word).map_or(&[][..], Vec::as_slice);
        let lost: Vec<_> = cells.iter().filter(|one| one.value > 1.0).collect();
        let clear = lost.iter().filter(|one| one.interval.is_some_and(|(low, _)| low > 1.0)).count();
        let middle = median(&lost.iter().map(|one| one.value).collect::<Vec<_>>());
        // The first of several.
        let worst = lost.iter().copied().reduce(|worst, one| if one.value > worst.value { one } else { worst });
        let known = |text: String| if cells.is_empty() { UNKNOWN.to_owned() } else { text };
        // Rounded to less, a volume would be as large as the other.
        let digits = if word == "volume" { 4 } else { 2 };
        let or_none = |text: String| known(if lost.is_empty() { TOO_FEW.to_owned() } else { text });
        let mut put = |key: &str, text: String| drop(numbers.insert(format!("lost.{word}.{key}"), text));
        put("of", known(cells.len().to_string()));
        put("cells", known(lost.len().to_string()));
        put("able", known(cells.iter().filter(|one| one.interval.is_some()).count().to_string()));
        put("clear", known(clear.to_string()));
        put("middle", or_none(format!("{middle:.digits$}")));
        put("most", or_none(worst.map_or_else(String::new, |one| format!("{:.digits$}", one.value))));
        put("most.cell", or_none(worst.map_or_else(String::new, |one| name(one.of))));
    }
    numbers
}

/// A cell with its phase.
fn name(of: &Measured<'_>) -> String {
    format!("{}: {}", of.phase.name, of.cell.to_string().replace(" default", ""))
}

/// The table of all columns of which there are any, of what is counted of jobs, and of transactions
/// beside them.
pub fn table(plan: &Plan, numbers: &Numbers) -> String {
    let mut text = String::from(
        "| what | cells | ours takes more in | cells that can show it | beyond chance in | median of these | most \
         | where |\n| --- | --: | --: | --: | --: | --: | --: | --- |\n",
    );
    for (word, title) in columns() {
        let get = |key: &str| numbers.get(&format!("lost.{word}.{key}")).map_or(UNKNOWN, String::as_str);
        if get("of") == UNKNOWN {
            continue;
        }
        let values = ["of", "cells", "able", "clear", "middle", "most", "most.cell"].map(get);
        let _ = writeln!(text, "| {title} | {} |", values.join(" | "));
    }
    let printed = |key: &str| numbers.get(key).and_then(|text| text.parse::<f64>().ok());
    for (word, title) in COUNTS {
        let of = |cell: &String| {
            let cell = cell.replace(" default", "");
            Some((printed(&format!("calls.{}.{word}.ratio", cell.replace(' ', ".")))?, format!("calls: {cell}")))
        };
        few(&mut text, title, &plan.calls.cells.iter().filter_map(of).collect::<Vec<_>>());
    }
    for (word, title) in WAITS {
        let of = |tail: &Tail| {
            let [ours, stock] = ["ours", "stock"].map(|side| printed(&format!("{}.{side}.{word}", tail.name)));
            Some((quotient(ours?, stock?), tail.title.clone()))
        };
        few(&mut text, title, &plan.tail.iter().filter_map(of).collect::<Vec<_>>());
    }
    text
}

/// A line of ratios that have no intervals.
fn few(text: &mut String, title: &str, ratios: &[(f64, String)]) {
    let lost: Vec<_> = ratios.iter().filter(|(ratio, _)| *ratio > 1.0).collect();
    let Some((most, place)) = lost.iter().copied().reduce(|most, one| if one.0 > most.0 { one } else { most }) else {
        if !ratios.is_empty() {
            let _ = writeln!(text, "| {title} | {} | 0 | 0 | 0 | {TOO_FEW} | {TOO_FEW} | {TOO_FEW} |", ratios.len());
        }
        return;
    };
    let middle = median(&lost.iter().map(|(ratio, _)| *ratio).collect::<Vec<_>>());
    let (all, some) = (ratios.len(), lost.len());
    let _ = writeln!(text, "| {title} | {all} | {some} | 0 | 0 | {middle:.2} | {most:.2} | {place} |");
}

/// Every cell in which ours takes more of something: the ratios above one, with intervals where
/// there are any.
pub fn cells(measured: &[Measured<'_>], counted: &Numbers) -> String {
    let titles: Vec<_> = columns().map(|(_, title)| title).collect();
    let mut text = format!("| cell | {} |\n| --- |{}\n", titles.join(" | "), " --: |".repeat(titles.len()));
    let all = ratios(measured, counted);
    for one in measured.iter().filter(|one| one.column.word == COLUMNS[0].word) {
        let shown = |(word, _): (&'static str, &str)| {
            let mine = all.get(word).into_iter().flatten().find(|ratio| {
                std::ptr::eq(ratio.of.family, one.family) && ratio.of.cell == one.cell && ratio.value > 1.0
            });
            mine.map(|ratio| match ratio.interval {
                Some((low, high)) => format!("{:.2} [{low:.2}, {high:.2}]", ratio.value),
                None => format!("{:.2}", ratio.value),
            })
        };
        let values: Vec<Option<String>> = columns().map(shown).collect();
        if values.iter().any(Option::is_some) {
            let values: Vec<String> = values.into_iter().map(Option::unwrap_or_default).collect();
            let _ = writeln!(text, "| {} | {} |", name(one), values.join(" | "));
        }
    }
    text
}

/// Every number of transactions beside a backup that is greater with ours than with the stock
/// daemon.
pub fn tails(tails: &[Tail], numbers: &Numbers) -> String {
    let mut text = String::from("| beside | what | stock | ours |\n| --- | --- | --: | --: |\n");
    let words = [("slow", "slow transactions"), ("p50", "median, ms"), ("p90", "P90, ms"), ("p99", "P99, ms")];
    for Tail { name, title, .. } in tails {
        for (word, what) in words {
            let get = |side: &str| numbers.get(&format!("{name}.{side}.{word}")).map_or(UNKNOWN, String::as_str);
            let (stock, ours) = (get("stock"), get("ours"));
            let [less, more] = [stock, ours].map(|text| text.parse::<f64>().unwrap_or_default());
            if more > less {
                let _ = writeln!(text, "| {title} | {what} | {stock} | {ours} |");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::analysis::{Data, measured};
    use crate::paper::plan::tests::plan;
    use crate::sample::tests::sample;
    use crate::sample::{Sample, Side};

    #[test]
    fn what_is_lost_is_found_with_its_interval_and_its_cell() {
        let plan = plan();
        let cell = plan.phase[0].family[0].cells().unwrap()[0];
        let mut samples = Vec::new();
        for replica in 1..=40 {
            let more = f64::from(replica);
            samples.push(Sample { cell, connection: 100.0 + more, rss: 1e6, ..sample(Side::Stock, replica) });
            samples.push(Sample { cell, connection: 50.0 + more, rss: 2e6, ..sample(Side::Ours, replica) });
        }
        let data: Vec<_> = [Data { host: String::new(), samples }]
            .into_iter()
            .chain(plan.phase.iter().skip(1).map(|_| Data::default()))
            .collect();
        let measured = measured(&plan, &data).unwrap();
        let numbers = numbers(&measured, &Numbers::new());
        let get = |key: &str| numbers[&format!("lost.{key}")].as_str();
        assert_eq!((get("memory.of"), get("memory.cells"), get("memory.clear")), ("1", "1", "1"));
        assert_eq!((get("memory.most"), get("memory.most.cell")), ("2.00", "nine: manyfiles1 full"));
        assert_eq!((get("time.of"), get("time.cells"), get("time.most")), ("1", "0", TOO_FEW));
        let (table, cells) = (table(&plan, &numbers), cells(&measured, &Numbers::new()));
        assert!(table.contains("| memory | 1 | 1 | 1 | 1 | 2.00 | 2.00 | nine: manyfiles1 full |"), "{table}");
        assert!(cells.contains("2.00 [2.00, 2.00]") && cells.lines().count() == 3, "{cells}");
    }

    #[test]
    fn a_job_counts_once_and_one_that_failures_have_chosen_not_at_all() {
        let plan = plan();
        let at = |name: &str| plan.phase.iter().position(|phase| phase.name == name).unwrap();
        let cell = plan.phase[0].family[0].cells().unwrap()[0];
        let mut data: Vec<_> = plan.phase.iter().map(|_| Data::default()).collect();
        for phase in [0, at("acknowledged"), at("compression"), at("memory")] {
            data[phase].samples = Side::BOTH.map(|side| Sample { cell, ..sample(side, 1) }).into();
        }
        let measured = measured(&plan, &data).unwrap();
        let of = |counted: &Numbers| numbers(&measured, counted)["lost.memory.of"].clone();
        assert_eq!(of(&Numbers::new()), "3");
        let name = |word: &str| format!("memory.manyfiles1.full.{word}");
        let failed = [("n", "1"), ("bad.stock", "2")].map(|(word, text)| (name(word), text.to_owned()));
        assert_eq!(of(&failed.into()), "2");
    }

    #[test]
    fn calls_and_transactions_are_lost_like_everything_else() {
        let plan = plan();
        let tail = plan.tail[0].name.clone();
        let printed = [
            ("calls.media1.full.switches.ratio".to_owned(), "23.00"),
            ("calls.mixed1.full.switches.ratio".to_owned(), "0.50"),
            (format!("{tail}.ours.p99"), "6.00"),
            (format!("{tail}.stock.p99"), "4.00"),
        ];
        let table = table(&plan, &printed.map(|(key, text)| (key, text.to_owned())).into());
        let line = "| context switches | 2 | 1 | 0 | 0 | 23.00 | 23.00 | calls: media1 full |";
        assert!(table.contains(line), "{table}");
        assert!(table.contains("| transactions: P99 | 1 | 1 | 0 | 0 | 1.50 | 1.50 |"), "{table}");
    }

    #[test]
    fn slower_transactions_are_lost_and_equal_ones_are_not() {
        let plan = plan();
        let name = &plan.tail[0].name;
        let number = |side: &str, word: &str, text: &str| (format!("{name}.{side}.{word}"), text.to_owned());
        let numbers = Numbers::from([
            number("stock", "p99", "10.00"),
            number("ours", "p99", "12.00"),
            number("stock", "slow", "3"),
            number("ours", "slow", "3"),
        ]);
        let text = tails(&plan.tail, &numbers);
        assert!(text.contains("| P99, ms | 10.00 | 12.00 |") && text.lines().count() == 3, "{text}");
    }
}
