//! Figures of many cells at once: curves along what changes, the gains of compression as a map,
//! and the steps of other programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::canvas::{Canvas, WIDTH};
use crate::cell::{Cell, Level, Variant};
use crate::paper::analysis::{Numbers, UNKNOWN};
use crate::paper::derived::codec;
use crate::paper::plan::Axis;
use crate::paper::rivals::row::STEPS;
use crate::paper::scale::{OURS, Scale, shown};
use crate::statistics::{float, quotient};
use crate::tree::{Kind, Tree};

const TOP: f64 = 30.0;
/// Of curves: between these places, with words on both sides.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 500.0;
const BOTTOM: f64 = 330.0;
/// Two words that are nearer than this cannot be read.
const LINE: f64 = 13.0;

/// A cell that was measured.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    /// Which.
    pub cell: Cell,
    /// Medians of the stock daemon's time and of ours, milliseconds.
    pub medians: [f64; 2],
}

/// What a cell is along an axis, and which curve it is of.
fn place(axis: Axis, cell: Cell) -> Option<(u64, String)> {
    let level = cell.level.name().to_owned();
    match (axis, cell.variant) {
        (Axis::Files, Variant::Default) if cell.tree.kind == Kind::Tiny => Some((1000 * cell.tree.scale as u64, level)),
        (Axis::RoundTrip, Variant::Far(round_trip, rate)) => {
            Some((round_trip.into(), format!("{level}, {rate} Mbit/s")))
        }
        (Axis::Delay, Variant::Slow(delay)) => Some((delay.into(), level)),
        (Axis::Clients, Variant::Clients(count)) => Some((count.into(), level)),
        _ => None,
    }
}

/// The curves of a family: median times over what changes, whose values stand side by side.
pub fn curves(axis: Axis, points: &[Point]) -> String {
    let mut canvas = Canvas::new(BOTTOM + 50.0);
    canvas.text(LEFT, 16.0, "start", "median time of the connection, ms (dashed: stock, solid: ours)");
    canvas.text(f64::midpoint(LEFT, RIGHT), BOTTOM + 40.0, "middle", axis.words());
    let mut all: BTreeMap<String, BTreeMap<u64, [f64; 2]>> = BTreeMap::new();
    for point in points {
        if let Some((value, name)) = place(axis, point.cell) {
            all.entry(name).or_default().insert(value, point.medians);
        }
    }
    let mut values: Vec<u64> = all.values().flat_map(|curve| curve.keys().copied()).collect();
    values.sort_unstable();
    values.dedup();
    if values.is_empty() {
        canvas.text(LEFT, TOP + LINE, "start", UNKNOWN);
        return canvas.finish();
    }
    let steps = float(values.len().saturating_sub(1).max(1) as u64);
    let across: BTreeMap<u64, f64> =
        (0..).zip(&values).map(|(at, value)| (*value, LEFT + float(at) * (RIGHT - LEFT) / steps)).collect();
    let scale = Scale::logarithmic(all.values().flat_map(BTreeMap::values).flatten().copied(), (BOTTOM, TOP));
    for mark in &scale.marks {
        canvas.line((LEFT, scale.place(*mark)), (RIGHT, scale.place(*mark)), "#ddd");
        canvas.text(LEFT - 8.0, scale.place(*mark) + 4.0, "end", &mark.to_string());
    }
    for (value, x) in &across {
        canvas.text(*x, BOTTOM + 18.0, "middle", &value.to_string());
    }
    let mut words = Vec::new();
    for (name, curve) in &all {
        for (side, who) in [(0, "stock"), (1, "ours")] {
            let mut path = String::new();
            let mut end = (LEFT, BOTTOM);
            for (value, medians) in curve {
                let median = medians.get(side).copied().unwrap_or_default();
                end = (across.get(value).copied().unwrap_or(LEFT), scale.place(median));
                let _ = write!(path, "{}{:.1} {:.1}", if path.is_empty() { "M" } else { "L" }, end.0, end.1);
                canvas.dot(end.0, end.1, if side == 0 { "white" } else { OURS });
            }
            canvas.path(&path, side == 0);
            words.push((end.1 + 4.0, format!("{who}: {name}")));
        }
    }
    for (y, text) in apart(words) {
        canvas.text(RIGHT + 10.0, y, "start", &text);
    }
    canvas.finish()
}

/// The same words from top to bottom, none nearer to the next than can be read.
fn apart(mut words: Vec<(f64, String)>) -> Vec<(f64, String)> {
    words.sort_by(|(left, _), (right, _)| left.total_cmp(right));
    let mut last = f64::MIN;
    for (y, _) in &mut words {
        *y = y.max(last + LINE);
        last = *y;
    }
    words
}

/// Which part of something took longer than so many milliseconds, beside the stock daemon and
/// beside ours.
pub fn longer(both: &[Vec<(f64, f64)>; 2]) -> String {
    let mut canvas = Canvas::new(BOTTOM + 50.0);
    canvas.text(LEFT, 16.0, "start", "part of the transactions that took longer (dashed: stock, solid: ours)");
    canvas.text(f64::midpoint(LEFT, RIGHT), BOTTOM + 40.0, "middle", "ms");
    if both.iter().all(Vec::is_empty) {
        canvas.text(LEFT, TOP + LINE, "start", UNKNOWN);
        return canvas.finish();
    }
    let all = || both.iter().flatten();
    let across = Scale::logarithmic(all().map(|(time, _)| *time), (LEFT, RIGHT));
    let up = Scale::logarithmic(all().map(|(_, part)| *part), (BOTTOM, TOP));
    for mark in &up.marks {
        canvas.line((LEFT, up.place(*mark)), (RIGHT, up.place(*mark)), "#ddd");
        canvas.text(LEFT - 8.0, up.place(*mark) + 4.0, "end", &mark.to_string());
    }
    for mark in &across.marks {
        canvas.line((across.place(*mark), TOP), (across.place(*mark), BOTTOM), "#ddd");
        canvas.text(across.place(*mark), BOTTOM + 18.0, "middle", &mark.to_string());
    }
    for (points, is_dashed) in both.iter().zip([true, false]) {
        let path = points.iter().map(|(time, part)| format!("{:.1} {:.1}", across.place(*time), up.place(*part)));
        let path = path.collect::<Vec<_>>().join("L");
        if !path.is_empty() {
            canvas.path(&format!("M{path}"), is_dashed);
        }
    }
    canvas.finish()
}

/// What compression gains: a field for each codec, tree and level, the darker the more.
pub fn map(points: &[Point]) -> String {
    let mut codecs: Vec<String> = Vec::new();
    let mut columns: Vec<(Tree, Level)> = Vec::new();
    let mut ratios = BTreeMap::new();
    for Point { cell, medians: [stock, ours] } in points {
        let (codec, column) = (codec(*cell), (cell.tree, cell.level));
        if !codecs.contains(&codec) {
            codecs.push(codec.clone());
        }
        if !columns.contains(&column) {
            columns.push(column);
        }
        ratios.insert((codec, column), quotient(*ours, *stock));
    }
    let (width, height) = (100.0, 26.0);
    let mut canvas = Canvas::new(TOP + height * float(codecs.len().max(1) as u64) + 34.0);
    if columns.is_empty() {
        canvas.text(LEFT, TOP + LINE, "start", UNKNOWN);
    }
    for (at, (tree, level)) in (0..).zip(&columns) {
        let middle = LEFT + width * (float(at) + 0.5);
        canvas.text(middle, TOP - 8.0, "middle", &format!("{tree} {}", level.name()));
    }
    for (row, codec) in (0..).zip(&codecs) {
        let y = TOP + height * float(row);
        canvas.text(LEFT - 8.0, y + 17.0, "end", codec);
        for (at, column) in (0..).zip(&columns) {
            let x = LEFT + width * float(at);
            if let Some(ratio) = ratios.get(&(codec.clone(), *column)) {
                canvas.bar(x, x + width, y, height, grey(*ratio));
                canvas.text(x + width / 2.0, y + 17.0, "middle", &format!("{ratio:.2}"));
            }
        }
    }
    canvas.finish()
}

/// White from 1 on, and light enough to be written upon.
fn grey(ratio: f64) -> &'static str {
    let greys = [(0.2, "#999999"), (0.4, "#adadad"), (0.6, "#c2c2c2"), (0.8, "#d6d6d6"), (1.0, "#ebebeb")];
    greys.into_iter().find(|(limit, _)| ratio < *limit).map_or("#ffffff", |(_, grey)| grey)
}

/// How long each step takes each program, in columns.
pub fn programs(names: &[String], numbers: &Numbers) -> String {
    let wall = |name: &str, step: &str| -> Option<f64> {
        numbers.get(&format!("rivals.{name}.{step}.wall")).and_then(|text| text.parse().ok())
    };
    let here: Vec<&String> = names.iter().filter(|name| STEPS.iter().any(|step| wall(name, step).is_some())).collect();
    let height = 17.0;
    let mut canvas = Canvas::new(TOP + height * float(here.len().max(1) as u64) + 20.0);
    if here.is_empty() {
        canvas.text(LEFT, TOP + LINE, "start", UNKNOWN);
    }
    let left = 110.0;
    let column = (WIDTH - left) / float(STEPS.len() as u64);
    for (at, step) in (0..).zip(STEPS) {
        let x = left + column * float(at);
        let all = here.iter().filter_map(|name| wall(name, step));
        let scale = Scale::logarithmic(all, (x, x + column - 45.0));
        canvas.text(x, TOP - 8.0, "start", step);
        for (row, name) in (0..).zip(&here) {
            let y = TOP + height * float(row);
            if at == 0 {
                canvas.text(left - 8.0, y + 11.0, "end", name);
            }
            if let Some(seconds) = wall(name, step) {
                canvas.dot(scale.place(seconds) - 4.0, y + 7.0, if *name == "ours" { OURS } else { "white" });
                canvas.text(scale.place(seconds) + 4.0, y + 11.0, "start", &shown(seconds));
            }
        }
    }
    canvas.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(words: &str, medians: [f64; 2]) -> Point {
        Point { cell: Cell::choose(words).unwrap()[0], medians }
    }

    #[test]
    fn cells_of_one_level_are_a_curve_in_the_order_of_the_axis() {
        let points = [
            point("tiny100k full default", [1000.0, 100.0]),
            point("tiny10k full default", [100.0, 10.0]),
            point("tiny10k incr default", [50.0, 20.0]),
            point("mixed1 full gzip6", [1.0, 1.0]),
        ];
        let text = curves(Axis::Files, &points);
        assert_eq!(text.matches("<circle").count(), 6, "three points of each daemon");
        assert_eq!(text.matches("stroke-dasharray").count(), 2, "a curve for each level");
        let (tens, hundreds) = (text.find(">10000<").unwrap(), text.find(">100000<").unwrap());
        assert!(tens < hundreds, "{text}");
        assert!(curves(Axis::Clients, &points).contains(UNKNOWN));
    }

    #[test]
    fn words_do_not_cover_each_other() {
        let words = apart([20.0, 10.0, 11.0].map(|y| (y, String::new())).into());
        assert!(words.windows(2).all(|pair| pair[1].0 - pair[0].0 >= LINE), "{words:?}");
    }

    #[test]
    fn a_map_has_a_field_for_each_cell_and_is_dark_where_most_is_gained() {
        let points = [point("mixed1 full gzip6", [1000.0, 300.0]), point("media1 restore lzo", [1000.0, 1100.0])];
        let text = map(&points);
        assert!(text.contains("0.30") && text.contains("1.10") && text.contains("#adadad"), "{text}");
    }

    #[test]
    fn programs_that_are_not_here_are_not_drawn() {
        let numbers = Numbers::from([
            ("rivals.ours.initial.wall".to_owned(), "1.50".to_owned()),
            ("rivals.dar.initial.wall".to_owned(), UNKNOWN.to_owned()),
        ]);
        let names = ["ours", "dar"].map(str::to_owned);
        let text = programs(&names, &numbers);
        assert!(text.contains(">ours<") && text.contains("1.50") && !text.contains(">dar<"), "{text}");
    }
}
