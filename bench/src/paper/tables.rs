//! The paper's tables as Markdown, from the printed numbers only.

use std::fmt::Write as _;

use bed::{BedError, Result};

use crate::cell::{Cell, Level, Variant};
use crate::paper::analysis::{Numbers, TOO_FEW, UNKNOWN, is_chosen, key, plain_of};
use crate::paper::derived::{codec, fulls};
use crate::paper::plan::{Family, Gain, Phase, Plan, Profile};
use crate::paper::rivals::adapter::Adapter;
use crate::paper::rivals::row::{READ_ONLY, SAID, STEPS};

/// All tables by their names.
pub fn tables(plan: &Plan, numbers: &Numbers) -> Result<Vec<(String, String)>> {
    let mut tables = vec![("limits".to_owned(), limits(plan, numbers))];
    for phase in &plan.phase {
        for family in &phase.family {
            let name = format!("{}-{}", phase.name, family.name);
            let cells = family.cells()?;
            tables.push((format!("{name}-brief"), brief(phase, &cells, numbers)));
            if plan.has_intervals(phase) {
                tables.push((format!("{name}-tests"), tests(phase, &cells, numbers)));
                tables.push((format!("{name}-spread"), spread(phase, &cells, numbers)));
            }
            tables.push((format!("{name}-cost"), cost(phase, &cells, numbers)));
            let changed: Vec<Cell> = cells.iter().copied().filter(|cell| is_contrasted(plan, phase, *cell)).collect();
            if !changed.is_empty() {
                tables.push((format!("{name}-contrast"), contrast(phase, &changed, numbers)));
            }
            if cells.iter().any(|cell| cell.level.is_restore()) {
                let restores: Vec<Cell> = cells.iter().copied().filter(|cell| cell.level.is_restore()).collect();
                tables.push((format!("{name}-first"), first(phase, &restores, numbers)));
            }
            if phase.floor {
                tables.push((format!("{name}-floor"), floor(phase, &cells, numbers)));
            }
            if family.base.is_some() {
                tables.push((format!("{name}-above"), above(phase, &cells, numbers)));
            }
            if family.rates.is_some() {
                tables.push((format!("{name}-packed"), packed(phase, family, numbers)?));
                tables.push((format!("{name}-choice"), choice(phase, family, numbers)?));
            }
        }
    }
    tables.push(("phases".to_owned(), phases(plan, numbers)));
    tables.push(("clocks".to_owned(), clocks(plan, numbers)));
    tables.push(("constant".to_owned(), constant(plan, numbers)?));
    tables.push(("queue".to_owned(), queue(plan, numbers)));
    tables.push(("drift".to_owned(), drift(plan, numbers)?));
    tables.push(("short".to_owned(), short(plan, numbers)?));
    tables.push(("profiles".to_owned(), profiles(plan, numbers)));
    tables.push(("variation".to_owned(), variation(plan, numbers)));
    tables.push(("gain".to_owned(), gain(&plan.gain, numbers)?));
    Ok(tables)
}

/// Time and CPU of some jobs, for a reader in a hurry.
fn gain(lines: &[Gain], numbers: &Numbers) -> Result<String> {
    let mut text = String::from(
        "| job | time: stock | ferrofd | | CPU: stock | ferrofd | |\n| --- | --: | --: | --: | --: | --: | --: |\n",
    );
    for Gain { text: job, key } in lines {
        let get = |word: &str| {
            let found = numbers.get(&format!("{key}.{word}"));
            found.ok_or_else(|| BedError::Usage(format!("plan.toml: no number {key}.{word}")))
        };
        let _ = write!(text, "| {job}");
        for (word, per_second) in [("run", 1000.0), ("cpu", 1.0)] {
            for side in ["stock", "ours"] {
                let median = get(&format!("{word}.{side}.median"))?;
                match median.parse::<f64>() {
                    Ok(median) => write!(text, " | {:.2} s", median / per_second),
                    Err(_) => write!(text, " | {median}"),
                }
                .unwrap_or_default();
            }
            let ratio = get(&format!("{word}.ratio"))?;
            match ratio.parse::<f64>() {
                Ok(ratio) => write!(text, " | **{ratio:.2}**"),
                Err(_) => write!(text, " | {ratio}"),
            }
            .unwrap_or_default();
        }
        text.push_str(" |\n");
    }
    Ok(text)
}

/// Geometric means of the first phase's families by each clock, and of the same cells where all
/// daemons acknowledge at once.
fn clocks(plan: &Plan, numbers: &Numbers) -> String {
    let mut text = head(&[
        "what",
        "cells",
        "job without queue",
        "below one",
        "connection",
        "below one",
        "job",
        "below one",
        "job, if both waited a second",
    ]);
    let first = plan.phase.iter().take(1).chain(plan.phase.iter().filter(|phase| phase.acknowledged));
    for (phase, family) in first.flat_map(|phase| phase.family.iter().map(move |family| (phase, family))) {
        let name = format!("{}.{}", phase.name, family.name);
        let of = |word: &str| {
            let mean = with_interval(numbers, &format!("{name}.{word}.geometric"));
            format!("{mean} | {}", get(numbers, &format!("{name}.{word}.below")))
        };
        let values = ["run", "time", "job"].map(of).join(" | ");
        let [cells, evened] = ["job.cells", "run.evened"].map(|word| get(numbers, &format!("{name}.{word}")));
        let _ = writeln!(text, "| {} | {cells} | {values} | {evened} |", family.title);
    }
    text
}

/// Of each cell that is measured where all daemons acknowledge at once, which part of what ours
/// saves by default is gone there.
fn constant(plan: &Plan, numbers: &Numbers) -> Result<String> {
    let mut text = head(&["cell", "saved by default, ms", "saved there, ms", "part of it that is gone there"]);
    for phase in plan.phase.iter().filter(|phase| phase.acknowledged) {
        for family in &phase.family {
            text.push_str(&lines(phase, &family.cells()?, numbers, &["share.default", "share.acknowledged", "share*"]));
        }
    }
    Ok(text)
}

/// How many Fulls have waited in the Director's queue for as long as a job can, and how long
/// restores have waited.
fn queue(plan: &Plan, numbers: &Numbers) -> String {
    let mut text = head(&[
        "phase",
        "Fulls: stock",
        "whole wait",
        "mean, ms",
        "restores: mean, ms",
        "Fulls: ours",
        "whole wait",
        "mean, ms",
        "restores: mean, ms",
    ]);
    for phase in plan.phase.iter().filter(|phase| plan.has_intervals(phase)) {
        let of = |side: &str| {
            let name = format!("{}.queue.{side}", phase.name);
            ["fulls", "whole", "mean", "restores"].map(|word| get(numbers, &format!("{name}.{word}"))).join(" | ")
        };
        let _ = writeln!(text, "| {} | {} | {} |", phase.title, of("stock"), of("ours"));
    }
    text
}

/// Cells as they are by default that several phases have measured, which shows how much the same
/// job differs between them.
fn drift(plan: &Plan, numbers: &Numbers) -> Result<String> {
    let mut text = head(&[
        "cell and phase",
        "hours from the first row",
        "pairs",
        "connection: stock, ms",
        "ours, ms",
        "ratio",
        "CPU: stock, s",
        "ours, s",
        "ratio",
    ]);
    let mut all: Vec<(Cell, &Phase)> = Vec::new();
    for phase in plan.phase.iter().filter(|phase| !phase.memory && !phase.acknowledged) {
        let cells = phase.cells()?.into_iter().filter(|cell| cell.variant == Variant::Default);
        let measured = cells.filter(|cell| get(numbers, &format!("{}.time.ratio", key(phase, *cell))) != UNKNOWN);
        all.extend(measured.map(|cell| (cell, phase)));
    }
    for (at, (cell, _)) in all.iter().enumerate() {
        let is_first = all.iter().position(|(other, _)| other == cell) == Some(at);
        let same: Vec<_> = all.iter().filter(|(other, _)| is_first && other == cell).collect();
        for (_, phase) in same.iter().filter(|_| same.len() > 1) {
            let name = key(phase, *cell);
            let words = [
                "time.stock.median",
                "time.ours.median",
                "time.ratio",
                "cpu.stock.median",
                "cpu.ours.median",
                "cpu.ratio",
            ];
            let values = words.map(|word| get(numbers, &format!("{name}.{word}"))).join(" | ");
            let (cell, from) =
                (cell.to_string().replace(" default", ""), get(numbers, &format!("{}.from", phase.name)));
            let pairs = get(numbers, &format!("{name}.n"));
            let _ = writeln!(text, "| {cell}: {} | {from} | {pairs} | {values} |", phase.name);
        }
    }
    Ok(text)
}

/// Cells with fewer pairs than were planned.
fn short(plan: &Plan, numbers: &Numbers) -> Result<String> {
    let mut text = head(&["cell", "pairs planned", "pairs", "jobs that failed: stock", "ours"]);
    for phase in &plan.phase {
        for cell in phase.cells()? {
            let name = key(phase, cell);
            let of = |word: &str| get(numbers, &format!("{name}.{word}"));
            if of("n").parse::<u32>().is_ok_and(|pairs| (1..phase.replicas).contains(&pairs)) {
                let shown = cell.to_string().replace(" default", "");
                let values = ["n", "bad.stock", "bad.ours"].map(of).join(" | ");
                let _ = writeln!(text, "| {}: {shown} | {} | {values} |", phase.name, phase.replicas);
            }
        }
    }
    Ok(text)
}

/// Whether a cell's ratio is told beside that of the same job in the first phase.
fn is_contrasted(plan: &Plan, phase: &Phase, cell: Cell) -> bool {
    let Some(base) = plain_of(cell) else { return false };
    let is_there = |first: &Phase| first.cells().is_ok_and(|cells| cells.contains(&base));
    plan.has_intervals(phase) && plan.phase.first().is_some_and(is_there)
}

/// What a ratio is of that of the same job in the first phase.
fn contrast(phase: &Phase, cells: &[Cell], numbers: &Numbers) -> String {
    let columns = [
        ("connection: ratio", "time.ratio"),
        ("of that by default", "time.contrast*"),
        ("CPU: ratio", "cpu.ratio"),
        ("of that by default", "cpu.contrast*"),
    ];
    rows(phase, cells, numbers, &columns)
}

/// What gains mean for a week.
fn profiles(plan: &Plan, numbers: &Numbers) -> String {
    let mut text = head(&[
        "profile",
        "jobs a week of each client",
        "stock, s a job",
        "ours, s a job",
        "α, the ratio of medians",
        "stock: clients' jobs an hour",
        "ours",
        "stock: minutes a week",
        "ours",
    ]);
    for Profile { name, title, key, jobs, clients } in &plan.profile {
        let of = |word: &str| ["stock", "ours"].map(|side| get(numbers, &format!("profile.{name}.{word}.{side}")));
        let ratio = with_interval(numbers, &format!("{key}.job.ratio"));
        let [seconds, hour, minutes] = ["seconds", "hour", "minutes"].map(|word| of(word).join(" | "));
        let _ = writeln!(text, "| {title}, {clients} clients | {jobs} | {seconds} | {ratio} | {hour} | {minutes} |");
    }
    text
}

/// What the times of each family vary with.
fn variation(plan: &Plan, numbers: &Numbers) -> String {
    let mut text = head(&["family", "daemon, %", "kind of job", "both together", "replica", "the rest"]);
    for phase in &plan.phase {
        for family in &phase.family {
            let of = |word| get(numbers, &format!("{}.{}.variation.{word}", phase.name, family.name));
            let values = ["daemon", "cell", "both", "replica", "rest"].map(of);
            let _ = writeln!(text, "| {} | {} |", family.title, values.join(" | "));
        }
    }
    text
}

/// The steps of other programs: time, processor time and bytes.
pub fn rivals(systems: &[String], adapters: &[Adapter], numbers: &Numbers) -> Vec<(String, String)> {
    let class = |name: &str| adapters.iter().find(|adapter| adapter.name == name).map_or("plain", |one| &one.class);
    let table = |word: &str| {
        let mut text = head(&[&["program", "stores"][..], &SAID].concat());
        for system in systems {
            let values: Vec<_> = STEPS.map(|step| get(numbers, &format!("rivals.{system}.{step}.{word}"))).into();
            let _ = writeln!(text, "| {system} | {} | {} |", class(system), values.join(" | "));
        }
        (format!("rivals-{word}"), text)
    };
    let mut tables: Vec<_> = ["wall", "cpu", "memory", "stored"].map(table).into();
    let mut text = head(&["program", "saves a tree that is read-only"]);
    for system in systems {
        let _ = writeln!(text, "| {system} | {} |", get(numbers, &format!("rivals.{system}.{READ_ONLY}")));
    }
    tables.push((format!("rivals-{READ_ONLY}"), text));
    tables
}

/// The first phase in a sitting, beside another one.
pub fn beside(plan: &Plan, here: (&str, &Numbers), there: (&str, &Numbers)) -> Result<String> {
    let mut text = String::new();
    let columns = ["job without queue", "connection", "CPU", "memory"];
    let _ = writeln!(text, "Ratios here (`{}`) and there (`{}`):\n", here.0, there.0);
    let titles: Vec<String> = columns.iter().flat_map(|one| [format!("{one}: here"), "there".to_owned()]).collect();
    text.push_str(&head(&[&["cell"][..], &titles.iter().map(String::as_str).collect::<Vec<_>>()].concat()));
    for phase in plan.phase.iter().take(1) {
        for cell in phase.cells()? {
            let of = |word: &str| {
                let key = format!("{}.{word}.ratio", key(phase, cell));
                [here.1, there.1].map(|numbers| get(numbers, &key).to_owned()).join(" | ")
            };
            let values = ["run", "time", "cpu", "memory"].map(of);
            let _ = writeln!(text, "| {} | {} |", cell.to_string().replace(" default", ""), values.join(" | "));
        }
    }
    Ok(text)
}

/// A number, or that there is none.
fn get<'a>(numbers: &'a Numbers, key: &str) -> &'a str {
    numbers.get(key).map_or(UNKNOWN, String::as_str)
}

/// A number with its interval.
fn with_interval(numbers: &Numbers, key: &str) -> String {
    let value = get(numbers, key);
    let [low, high] = ["low", "high"].map(|end| numbers.get(&format!("{key}.{end}")).map_or(TOO_FEW, String::as_str));
    if value == UNKNOWN || low == TOO_FEW { value.to_owned() } else { format!("{value} [{low}, {high}]") }
}

/// The head of a table: the first column to the left, the others to the right.
fn head(columns: &[&str]) -> String {
    let rule = vec!["--:"; columns.len().saturating_sub(1)].join(" | ");
    format!("| {} |\n| --- | {rule} |\n", columns.join(" | "))
}

/// A row for each cell, with these columns: title and key. Columns of which nothing is known are
/// left out, if anything else is.
fn rows(phase: &Phase, cells: &[Cell], numbers: &Numbers, columns: &[(&str, &str)]) -> String {
    let of = |cell: Cell, column: &str| get(numbers, &format!("{}.{}", key(phase, cell), column.trim_end_matches('*')));
    let is_known = |column: &str| column != "n" && cells.iter().any(|cell| of(*cell, column) != UNKNOWN);
    let any = columns.iter().any(|(_, column)| is_known(column));
    let kept = |column: &str| !any || column == "n" || is_known(column);
    let (titles, columns): (Vec<&str>, Vec<&str>) = columns.iter().copied().filter(|(_, column)| kept(column)).unzip();
    let mut text = head(&[&["cell"][..], &titles].concat());
    text.push_str(&lines(phase, cells, numbers, &columns));
    text
}

/// The lines of such a table.
fn lines(phase: &Phase, cells: &[Cell], numbers: &Numbers, columns: &[&str]) -> String {
    let mut text = String::new();
    for &cell in cells {
        let name = key(phase, cell);
        let of = |column: &&str| match column.strip_suffix('*') {
            Some(column) => with_interval(numbers, &format!("{name}.{column}")),
            None => get(numbers, &format!("{name}.{column}")).to_owned(),
        };
        let values: Vec<_> = columns.iter().map(of).collect();
        let shown = cell.to_string().replace(" default", "");
        let _ = writeln!(text, "| {shown} | {} |", values.join(" | "));
    }
    text
}

/// All clocks, processor time and memory in one row.
fn brief(phase: &Phase, cells: &[Cell], numbers: &Numbers) -> String {
    let cells: Vec<Cell> = cells.iter().copied().filter(|cell| !is_chosen(phase, *cell, numbers)).collect();
    let columns = [
        ("pairs", "n"),
        ("job: ratio", "job.ratio*"),
        ("without queue: stock, ms", "run.stock.median"),
        ("ours, ms", "run.ours.median"),
        ("ratio", "run.ratio*"),
        ("connection: stock, ms", "time.stock.median"),
        ("ours, ms", "time.ours.median"),
        ("ratio", "time.ratio*"),
        ("ratio of CPU", "cpu.ratio"),
        ("ratio of memory", "memory.ratio"),
    ];
    rows(phase, &cells, numbers, &columns)
}

/// How much of what the Director and the Storage Daemon leave is used.
fn floor(phase: &Phase, cells: &[Cell], numbers: &Numbers) -> String {
    let columns = [
        ("floor, ms", "floor.time"),
        ("stock, ms", "time.stock.median"),
        ("ours, ms", "time.ours.median"),
        ("ours above the floor, of stock's", "floor.above"),
    ];
    rows(phase, cells, numbers, &columns)
}

/// Shift, delta and tests, by two clocks.
fn tests(phase: &Phase, cells: &[Cell], numbers: &Numbers) -> String {
    let columns = [
        ("without queue: shift of pairs", "run.shift*"),
        ("Cliff's delta", "run.delta"),
        ("p (Wilcoxon, Holm)", "run.wilcoxon.holm"),
        ("connection: shift of pairs", "time.shift*"),
        ("Cliff's delta", "time.delta"),
        ("p (Wilcoxon, Holm)", "time.wilcoxon.holm"),
        ("p (sign test)", "time.sign"),
    ];
    rows(phase, cells, numbers, &columns)
}

/// How the connections' times spread.
fn spread(phase: &Phase, cells: &[Cell], numbers: &Numbers) -> String {
    let columns = [
        ("stock: mean, ms", "time.stock.mean"),
        ("deviation", "time.stock.deviation"),
        ("P90", "time.stock.p90*"),
        ("most", "time.stock.most"),
        ("ours: mean, ms", "time.ours.mean"),
        ("deviation", "time.ours.deviation"),
        ("P90", "time.ours.p90*"),
        ("most", "time.ours.most"),
        ("ratio of P90", "time.p90.ratio*"),
    ];
    rows(phase, cells, numbers, &columns)
}

fn cost(phase: &Phase, cells: &[Cell], numbers: &Numbers) -> String {
    let columns = [
        ("stock: CPU, s", "cpu.stock.median"),
        ("ours: CPU, s", "cpu.ours.median"),
        ("ratio", "cpu.ratio*"),
        ("the Storage Daemon's: ratio", "sd.ratio*"),
        ("all three daemons': ratio", "all.ratio*"),
        ("stock: MiB", "memory.stock.median"),
        ("ours: MiB", "memory.ours.median"),
        ("stock: MiB/s", "rate.stock"),
        ("ours: MiB/s", "rate.ours"),
        ("stock: all daemons, CPU s/GiB", "gib.all.stock"),
        ("ours: all daemons, CPU s/GiB", "gib.all.ours"),
    ];
    rows(phase, cells, numbers, &columns)
}

/// From the begin of a restore to its first file, and to its end.
fn first(phase: &Phase, cells: &[Cell], numbers: &Numbers) -> String {
    let columns = [
        ("stock: first file, ms", "first.stock.median"),
        ("ours: first file, ms", "first.ours.median"),
        ("ratio of medians", "first.ratio*"),
        ("stock: all, ms", "time.stock.median"),
        ("ours: all, ms", "time.ours.median"),
        ("ratio of medians", "time.ratio*"),
    ];
    rows(phase, cells, numbers, &columns)
}

/// What each part takes more than the job without it.
fn above(phase: &Phase, cells: &[Cell], numbers: &Numbers) -> String {
    let columns = [
        ("stock: more CPU, s", "above.cpu.stock"),
        ("ours: more CPU, s", "above.cpu.ours"),
        ("stock: more time, ms", "above.time.stock"),
        ("ours: more time, ms", "above.time.ours"),
        ("stock: CPU s/GiB", "gib.stock"),
        ("ours: CPU s/GiB", "gib.ours"),
    ];
    rows(phase, cells, numbers, &columns)
}

/// What compression leaves, and what it takes in both directions.
fn packed(phase: &Phase, family: &Family, numbers: &Numbers) -> Result<String> {
    let mut text = head(&[
        "tree",
        "compression",
        "stock: volume / data",
        "ours: volume / data",
        "stock: Full, ms",
        "ours: Full, ms",
        "ratio",
        "stock: restore, ms",
        "ours: restore, ms",
        "ratio",
    ]);
    for (tree, cells) in fulls(family)? {
        for full in cells {
            let restore = Cell { level: Level::Restore, ..full };
            let [full_key, restore_key] = [full, restore].map(|cell| key(phase, cell));
            let of = |word: &str| get(numbers, &format!("{full_key}.{word}")).to_owned();
            let back =
                |word: &str| numbers.get(&format!("{restore_key}.{word}")).cloned().unwrap_or(TOO_FEW.to_owned());
            let columns = [
                of("packed.stock"),
                of("packed.ours"),
                of("time.stock.median"),
                of("time.ours.median"),
                of("time.ratio"),
                back("time.stock.median"),
                back("time.ours.median"),
                back("time.ratio"),
            ];
            let _ = writeln!(text, "| {tree} | {} | {} |", codec(full), columns.join(" | "));
        }
    }
    Ok(text)
}

/// Which compression a Full is fastest with on which line.
fn choice(phase: &Phase, family: &Family, numbers: &Numbers) -> Result<String> {
    let rates: Vec<u32> = family.rates.iter().flatten().copied().collect();
    let lines: Vec<String> = rates.iter().map(|rate| format!("{rate} Mbit/s")).collect();
    let columns: Vec<&str> = ["tree", "daemon"].into_iter().chain(lines.iter().map(String::as_str)).collect();
    let mut text = head(&columns);
    for tree in fulls(family)?.into_keys() {
        for side in ["stock", "ours"] {
            let best = rates.iter().map(|rate| {
                let name = format!("{}.{}.choice.{tree}.{rate}.{side}", phase.name, family.name);
                match get(numbers, &format!("{name}.codec")) {
                    UNKNOWN => UNKNOWN.to_owned(),
                    codec => format!("{codec}, {} s", get(numbers, &format!("{name}.seconds"))),
                }
            });
            let _ = writeln!(text, "| {tree} | {side} | {} |", best.collect::<Vec<_>>().join(" | "));
        }
    }
    Ok(text)
}

/// What was promised before, and what came out.
fn limits(plan: &Plan, numbers: &Numbers) -> String {
    let mut text = head(&[
        "family and clock",
        "cells",
        "geometric mean",
        "limit",
        "intervals below the limit",
        "limit",
        "outcome",
    ]);
    for phase in &plan.phase {
        for family in &phase.family {
            for (word, clock, limits) in
                [("run", "job without queue", family.run), ("time", "connection", family.connection)]
            {
                if limits.interval_below.is_none() && limits.geometric_mean.is_none() {
                    continue;
                }
                let name = format!("{}.{}.{word}", phase.name, family.name);
                let of = |key: &str| get(numbers, &format!("{name}.{key}")).to_owned();
                let mean = with_interval(numbers, &format!("{name}.geometric"));
                let [cells, limit, below, most, verdict] =
                    ["cells", "geometric.limit", "below", "below.limit", "verdict"].map(of);
                let _ = writeln!(
                    text,
                    "| {}, {clock} | {cells} | {mean} | {limit} | {below} | {most} | {verdict} |",
                    family.title
                );
            }
        }
    }
    text
}

/// What was measured where.
fn phases(plan: &Plan, numbers: &Numbers) -> String {
    let mut text = head(&[
        "phase",
        "replicas planned",
        "jobs",
        "of them not good",
        "load",
        "hours from the first row",
        "harness",
        "host and commit",
    ]);
    for phase in &plan.phase {
        let of = |key: &str| get(numbers, &format!("{}.{key}", phase.name)).to_owned();
        let load = if of("load.least") == UNKNOWN {
            UNKNOWN.to_owned()
        } else {
            format!("{} to {}", of("load.least"), of("load.most"))
        };
        let hours = if of("from") == UNKNOWN { UNKNOWN.to_owned() } else { format!("{} to {}", of("from"), of("to")) };
        let [planned, jobs, bad, harness, host] = ["replicas", "jobs", "jobs.bad", "harness", "host"].map(of);
        let title = &phase.title;
        let _ = writeln!(text, "| {title} | {planned} | {jobs} | {bad} | {load} | {hours} | {harness} | {host} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_several_phases_have_stands_beside_itself() {
        let plan = crate::paper::plan::tests::plan();
        let number = |phase: &str, word: &str| (format!("{phase}.manyfiles1.full.{word}"), "0.470".to_owned());
        let mut numbers: Numbers = [number("nine", "time.ratio")].into();
        assert_eq!(drift(&plan, &numbers).unwrap().lines().count(), 2);
        numbers.extend([number("compression", "time.ratio"), number("acknowledged", "time.ratio")]);
        let text = drift(&plan, &numbers).unwrap();
        assert!(
            text.contains("| manyfiles1 full: nine |") && text.contains("| manyfiles1 full: compression |"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 4);
    }

    #[test]
    fn cells_with_too_few_pairs_are_named_and_those_that_failures_chose_have_no_times() {
        let plan = crate::paper::plan::tests::plan();
        let phase = plan.phase.iter().find(|phase| phase.name == "sources").unwrap();
        let number = |word: &str, text: &str| (format!("sources.mixed1.restore.changing-fsx.{word}"), text.to_owned());
        let numbers: Numbers = [number("n", "17"), number("bad.stock", "20"), number("bad.ours", "5")].into();
        let short = short(&plan, &numbers).unwrap();
        assert!(short.contains("| sources: mixed1 restore changing-fsx | 40 | 17 | 20 | 5 |"), "{short}");
        let brief = brief(phase, &phase.cells().unwrap(), &numbers);
        assert!(brief.contains("mixed1 full changing-fsx") && !brief.contains("restore"), "{brief}");
    }

    #[test]
    fn a_gain_has_seconds_and_ratios() {
        let gain = Gain { text: "Full".to_owned(), key: "n.c".to_owned() };
        let numbers: Numbers = [
            ("run.stock.median", "2088.1"),
            ("run.ours.median", "606.0"),
            ("run.ratio", "0.290"),
            ("cpu.stock.median", "1.200"),
            ("cpu.ours.median", "0.412"),
            ("cpu.ratio", "0.343"),
        ]
        .map(|(key, value)| (format!("n.c.{key}"), value.to_owned()))
        .into();
        let text = super::gain(&[gain], &numbers).unwrap();
        assert!(text.ends_with("| Full | 2.09 s | 0.61 s | **0.29** | 1.20 s | 0.41 s | **0.34** |\n"), "{text}");
    }
}
