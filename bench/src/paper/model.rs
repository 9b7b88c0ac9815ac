//! A model of a Full's time: a constant, and so much for each file, MiB and millisecond of a round
//! trip. It is fitted to some cells and judged by others.

use std::fmt::Write as _;

use bed::{BedError, Result};

use crate::cell::{Cell, Variant};
use crate::paper::analysis::{Data, Numbers, UNKNOWN, pairs};
use crate::paper::plan::{Model, Plan};
use crate::sample::{Sample, Side};
use crate::statistics::{float, median};

/// What a time consists of: of one job, of a file, of a MiB, of a millisecond of a round trip.
const PARTS: usize = 4;
/// Their words in keys, their factors from milliseconds, and their digits.
const WORDS: [(&str, f64, usize); PARTS] =
    [("constant", 1.0, 1), ("file", 1000.0, 1), ("mebibyte", 1.0, 2), ("round-trips", 1.0, 1)];
const MIB: f64 = 1_048_576.0;
/// The phase whose cells have a line between.
const LINES: &str = "far: ";

/// A cell's median time, in milliseconds, and how much there is of each part.
struct Point {
    parts: [f64; PARTS],
    time: f64,
}

/// The points of these cells, `PHASE: CELL` each; `None` if one was not measured.
fn points(names: &[String], plan: &Plan, data: &[Data], side: Side) -> Result<Option<Vec<Point>>> {
    let mut points = Vec::new();
    for name in names {
        let unknown = || BedError::Usage(format!("plan.toml: the model has no cell {name:?}"));
        let (phase, words) = name.split_once(": ").ok_or_else(unknown)?;
        let at = plan.phase.iter().position(|one| one.name == phase).ok_or_else(unknown)?;
        let cell = Cell::all().into_iter().find(|cell| cell.to_string() == words).ok_or_else(unknown)?;
        let samples = data.get(at).map_or(&[][..], |data| &data.samples);
        let mine = pairs(samples, cell).into_iter().map(|(ours, stock)| if side == Side::Ours { ours } else { stock });
        let mine: Vec<&Sample> = mine.collect();
        let Some(first) = mine.first() else { return Ok(None) };
        let round_trip = if let Variant::Far(milliseconds, _) = cell.variant { f64::from(milliseconds) } else { 0.0 };
        points.push(Point {
            parts: [1.0, float(first.files), float(first.read_bytes) / MIB, round_trip],
            time: median(&mine.iter().map(|one| one.connection).collect::<Vec<_>>()),
        });
    }
    Ok(Some(points))
}

/// The least squares of relative errors; each step in an order that another program can repeat.
fn fit(points: &[Point]) -> [f64; PARTS] {
    let mut rows = [[0.0; PARTS + 1]; PARTS];
    for point in points {
        let scaled = point.parts.map(|part| part / point.time);
        for (row, left) in rows.iter_mut().zip(scaled) {
            for (sum, right) in row.iter_mut().zip(scaled.into_iter().chain([1.0])) {
                *sum += left * right;
            }
        }
    }
    // Gauss and Jordan. The matrix is symmetric and positive, so no rows change places.
    for at in 0..PARTS {
        let Some(mut own) = rows.get(at).copied() else { continue };
        let head = own.get(at).copied().unwrap_or(1.0);
        for one in &mut own {
            *one /= head;
        }
        for (other, row) in rows.iter_mut().enumerate() {
            let factor = row.get(at).copied().unwrap_or_default();
            for (one, mine) in row.iter_mut().zip(own) {
                *one = if other == at { mine } else { *one - factor * mine };
            }
        }
    }
    rows.map(|row| row[PARTS])
}

/// The time of a point by the model.
fn predicted(parts: &[f64; PARTS], point: &Point) -> f64 {
    parts.iter().zip(point.parts).fold(0.0, |sum, (part, much)| sum + part * much)
}

/// The parts of both daemons, and how far the model is off where it was fitted and elsewhere.
pub fn numbers(plan: &Plan, data: &[Data]) -> Result<Numbers> {
    let Model { fitted, judged } = &plan.model;
    let mut numbers = Numbers::new();
    for side in Side::BOTH {
        let name = format!("model.{}", side.name());
        let (by, other) = (points(fitted, plan, data, side)?, points(judged, plan, data, side)?);
        let parts = by.as_deref().map(fit);
        for (at, (word, factor, digits)) in WORDS.into_iter().enumerate() {
            let part = parts.and_then(|parts| parts.get(at).copied());
            let text = part.map_or(UNKNOWN.to_owned(), |part| format!("{:.digits$}", part * factor));
            numbers.insert(format!("{name}.{word}"), text);
        }
        for (word, names, points) in [("fitted", fitted, by), ("judged", judged, other)] {
            let (mut most, mut near) = (None, None);
            for (at, cell) in names.iter().enumerate() {
                let point = points.as_ref().and_then(|points| points.get(at));
                let found = parts.zip(point).map(|(parts, point)| {
                    let predicted = predicted(&parts, point);
                    (point.time, predicted, (predicted / point.time - 1.0) * 100.0)
                });
                let key = format!("{name}.{}", cell.replace(": ", ".").replace(' ', "."));
                let texts = found.map_or([UNKNOWN; 3].map(str::to_owned), |(time, predicted, off)| {
                    most = Some(off.abs().max(most.unwrap_or_default()));
                    if !cell.starts_with(LINES) {
                        near = Some(off.abs().max(near.unwrap_or_default()));
                    }
                    [format!("{time:.0}"), format!("{predicted:.0}"), format!("{off:+.0}")]
                });
                for (word, text) in ["measured", "predicted", "off"].into_iter().zip(texts) {
                    numbers.insert(format!("{key}.{word}"), text);
                }
            }
            let text = most.map_or(UNKNOWN.to_owned(), |most| format!("{most:.0}"));
            numbers.insert(format!("{name}.{word}.most"), text);
            let text = near.map_or(UNKNOWN.to_owned(), |near: f64| format!("{near:.0}"));
            numbers.insert(format!("{name}.{word}.near.most"), text);
        }
    }
    Ok(numbers)
}

/// The table of all cells, those first that the model was fitted to.
pub fn table(plan: &Plan, numbers: &Numbers) -> String {
    let mut text = String::from(
        "| Full of | | stock: measured, ms | model | off by, % | ours: measured, ms | model | off by, % |\n\
         | --- | --- | --: | --: | --: | --: | --: | --: |\n",
    );
    for (word, names) in [("fitted", &plan.model.fitted), ("judged", &plan.model.judged)] {
        for name in names {
            let key = name.replace(": ", ".").replace(' ', ".");
            let values = Side::BOTH.map(|side| {
                let get = |word: &str| numbers.get(&format!("model.{}.{key}.{word}", side.name()));
                ["measured", "predicted", "off"].map(|word| get(word).map_or(UNKNOWN, String::as_str)).join(" | ")
            });
            let shown = name.split_once(": ").map_or("", |(_, cell)| cell).replace(" full", "").replace(" default", "");
            let _ = writeln!(text, "| {shown} | {word} | {} |", values.join(" | "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_time_are_found_again() {
        let point = |files, mebibytes, round_trip| {
            let parts = [1.0, files, mebibytes, round_trip];
            let time = predicted(&[200.0, 0.05, 3.0, 8.0], &Point { parts, time: 0.0 });
            Point { parts, time }
        };
        let points = [
            point(1.0, 0.0, 0.0),
            point(5500.0, 100.0, 0.0),
            point(8.0, 256.0, 0.0),
            point(2000.0, 150.0, 0.0),
            point(5500.0, 100.0, 10.0),
        ];
        for (found, wanted) in fit(&points).into_iter().zip([200.0, 0.05, 3.0, 8.0]) {
            assert!((found - wanted).abs() < 1e-6, "{found} against {wanted}");
        }
    }
}
