//! The paper's figures as SVG. They are readable in grey: the stock daemon is light or hollow, ours
//! is dark or filled.

use std::fmt::Write as _;

use bed::Result;

use crate::canvas::{Canvas, WIDTH};
use crate::cell::{Cell, Variant};
use crate::paper::analysis::{Data, Effect, Measured, UNKNOWN, pairs};
use crate::paper::curves::{Point, curves, map};
use crate::paper::plan::Plan;
use crate::paper::scale::{OURS, STOCK, Scale, shown};
use crate::sample::Sample;
use crate::statistics::{float, median, quotient, sorted, sorted_quantile};

/// Where the scale begins, right of the cells' names.
const LEFT: f64 = 170.0;
/// Where it ends; behind it is room for words.
const RIGHT: f64 = 620.0;
const TOP: f64 = 12.0;
/// Of all scales.
const SPAN: (f64, f64) = (LEFT, RIGHT);

/// All figures by their file names. Those of single cells are of families with intervals only.
pub fn figures(plan: &Plan, data: &[Data], measured: &[Measured<'_>]) -> Result<Vec<(String, String)>> {
    let mut figures = Vec::new();
    for (phase, data) in plan.phase.iter().zip(data) {
        for family in &phase.family {
            let mine = || measured.iter().filter(|one| std::ptr::eq(one.family, family));
            let rows: Vec<Row<'_>> = mine()
                .filter(|one| one.column.word == "time")
                .filter_map(|time| Row::of(time, mine().find(|one| one.cell == time.cell && one.column.word == "run")?))
                .collect();
            if plan.has_intervals(phase) {
                let drawn = [
                    ("medians", medians(&rows)),
                    ("samples", distributions(&rows)),
                    ("ratios", ratios(&rows)),
                    ("throughput", throughput(&rows, &data.samples)),
                    ("ecdf", ecdf(&rows)),
                ];
                let file = |(word, text)| (format!("{}-{}-{word}.svg", phase.name, family.name), text);
                figures.extend(drawn.map(file));
            }
            let points: Vec<Point> = rows.iter().filter_map(Row::point).collect();
            if let Some(axis) = family.axis {
                figures.push((format!("{}-{}-curves.svg", phase.name, family.name), curves(axis, &points)));
            }
            if family.rates.is_some() {
                figures.push((format!("{}-{}-map.svg", phase.name, family.name), map(&points)));
            }
            if let Some(base) = family.base()? {
                let text = above(&rows, base, &data.samples);
                figures.push((format!("{}-{}-above.svg", phase.name, family.name), text));
            }
        }
    }
    Ok(figures)
}

/// What is drawn of a cell.
struct Row<'a> {
    cell: Cell,
    name: String,
    /// By the connection's clock.
    time: &'a Effect,
    /// By the job's, less its wait in the queue.
    run: &'a Effect,
}

impl<'a> Row<'a> {
    fn of(time: &'a Measured<'_>, run: &'a Measured<'_>) -> Option<Self> {
        let name = time.cell.to_string().replace(" default", "");
        (time.cell == run.cell).then_some(Self { cell: time.cell, name, time: &time.effect, run: &run.effect })
    }

    /// Its medians, if it was measured.
    fn point(&self) -> Option<Point> {
        let medians = [median(&self.time.stock), median(&self.time.ours)];
        (self.time.count > 0).then_some(Point { cell: self.cell, medians })
    }

    /// Its values and its colours: stock above ours.
    fn sides(&self) -> [(&[f64], &'static str, f64); 2] {
        [(&self.time.stock, STOCK, 5.0), (&self.time.ours, OURS, 19.0)]
    }
}

/// Every time of both daemons.
fn times(rows: &[Row<'_>]) -> impl Iterator<Item = f64> {
    rows.iter().flat_map(|row| row.time.ours.iter().chain(&row.time.stock).copied())
}

/// A value of both daemons as two dots with a line between them.
fn dots(canvas: &mut Canvas, scale: &Scale, y: f64, [stock, ours]: [f64; 2]) {
    let [from, to] = [stock, ours].map(|value| scale.place(value));
    canvas.line((from, y), (to, y), "#777");
    for (value, fill, at) in [(stock, "white", from), (ours, OURS, to)] {
        canvas.dot(at, y, fill);
        let is_left = at <= from.min(to);
        let (place, anchor) = if is_left { (at - 6.0, "end") } else { (at + 6.0, "start") };
        canvas.text(place, y + 4.0, anchor, &shown(value));
    }
}

fn medians(rows: &[Row<'_>]) -> String {
    let all = rows.iter().flat_map(|row| row.sides().map(|(values, ..)| median(values)));
    let scale = Scale::logarithmic(all, SPAN);
    let axis = "median time of the connection, ms (hollow: stock, filled: ours)";
    chart(axis, rows, 24.0, &scale, &|canvas, row, y| {
        dots(canvas, &scale, y + 12.0, [median(&row.time.stock), median(&row.time.ours)]);
        let change = (row.time.ratio.value - 1.0) * 100.0;
        canvas.text(WIDTH - 8.0, y + 16.0, "end", &format!("{change:+.1} %"));
    })
}

fn distributions(rows: &[Row<'_>]) -> String {
    let scale = Scale::logarithmic(times(rows), SPAN);
    let axis = "time of the connection, ms: every sample, its quartiles and median (hollow: stock, filled: ours)";
    chart(axis, rows, 44.0, &scale, &|canvas, row, y| {
        for (values, colour, below) in row.sides() {
            let (y, values) = (y + below * 1.2, sorted(values));
            let [low, middle, high] = [250, 500, 750].map(|part| scale.place(sorted_quantile(&values, part)));
            // Whiskers end at the last sample within one and a half boxes.
            let reach = 1.5 * (sorted_quantile(&values, 750) - sorted_quantile(&values, 250));
            let inside = |value: &&f64| {
                **value >= sorted_quantile(&values, 250) - reach && **value <= sorted_quantile(&values, 750) + reach
            };
            let (first, last) = (values.iter().find(inside), values.iter().rev().find(inside));
            if let (Some(first), Some(last)) = (first, last) {
                canvas.line((scale.place(*first), y + 7.0), (scale.place(*last), y + 7.0), "#777");
            }
            canvas.bar(low, high, y, 14.0, "#ccc");
            for (at, value) in values.iter().enumerate() {
                // Beside each other, so that equal ones are seen.
                let spread = float((at % 5) as u64) * 2.5;
                let fill = if colour == STOCK { "white" } else { OURS };
                canvas.dot(scale.place(*value), y + 2.0 + spread, fill);
            }
            canvas.line((middle, y - 1.0), (middle, y + 15.0), "black");
        }
    })
}

fn ratios(rows: &[Row<'_>]) -> String {
    let ends = |row: &Row<'_>| [row.time.ratio.low, row.time.ratio.high, row.run.ratio.low, row.run.ratio.high, 1.0];
    let scale = Scale::linear(rows.iter().filter(|row| row.time.count > 0).flat_map(ends), SPAN);
    let axis =
        "ours / stock with intervals, less is faster (filled: connection, hollow: job without its wait in the queue)";
    chart(axis, rows, 26.0, &scale, &|canvas, row, y| {
        canvas.line((scale.place(1.0), y), (scale.place(1.0), y + 26.0), "black");
        for (ratio, fill, y) in [(row.time.ratio, OURS, y + 8.0), (row.run.ratio, "white", y + 18.0)] {
            canvas.line((scale.place(ratio.low), y), (scale.place(ratio.high), y), OURS);
            canvas.dot(scale.place(ratio.value), y, fill);
        }
        let both = format!("{:.2}, {:.2}", row.time.ratio.value, row.run.ratio.value);
        canvas.text(WIDTH - 8.0, y + 17.0, "end", &both);
    })
}

fn throughput(rows: &[Row<'_>], samples: &[Sample]) -> String {
    let rate = |one: &Sample| quotient(float(one.bytes), one.connection) * 1000.0 / f64::from(1 << 20);
    let of = |row: &Row<'_>| {
        let (ours, stock): (Vec<f64>, Vec<f64>) =
            pairs(samples, row.cell).iter().map(|(ours, stock)| (rate(ours), rate(stock))).unzip();
        [median(&stock), median(&ours)]
    };
    let scale = Scale::logarithmic(rows.iter().flat_map(of), SPAN);
    chart("MiB a second (hollow: stock, filled: ours)", rows, 24.0, &scale, &|canvas, row, y| {
        dots(canvas, &scale, y + 12.0, of(row));
    })
}

/// Processor seconds of each cell above the one without its variant; what is less is nothing.
fn above(rows: &[Row<'_>], base: Variant, samples: &[Sample]) -> String {
    let of = |cell: Cell| {
        let pairs = pairs(samples, cell);
        let middle = |side: &dyn Fn(&(&Sample, &Sample)) -> f64| median(&pairs.iter().map(side).collect::<Vec<_>>());
        [middle(&|(_, stock)| stock.fd), middle(&|(ours, _)| ours.fd)]
    };
    let more = |row: &Row<'_>| {
        let ([stock, ours], [other, mine]) = (of(row.cell), of(Cell { variant: base, ..row.cell }));
        [(stock - other, STOCK, 5.0), (ours - mine, OURS, 19.0)]
    };
    let scale = Scale::linear(rows.iter().flat_map(|row| more(row).map(|(seconds, ..)| seconds)), SPAN);
    let axis = "processor seconds more than without (light: stock, dark: ours)";
    chart(axis, rows, 36.0, &scale, &|canvas, row, y| {
        for (seconds, colour, below) in more(row) {
            canvas.bar(LEFT, scale.place(seconds), y + below, 12.0, colour);
            canvas.text(scale.place(seconds).max(LEFT) + 4.0, y + below + 10.0, "start", &format!("{seconds:.2}"));
        }
    })
}

/// Which part of the jobs was over after how long.
fn ecdf(rows: &[Row<'_>]) -> String {
    let scale = Scale::logarithmic(times(rows), SPAN);
    let axis = "time of the connection, ms; upwards: the part of the jobs that had ended (dashed: stock, solid: ours)";
    chart(axis, rows, 56.0, &scale, &|canvas, row, y| {
        for (values, colour, _) in row.sides() {
            let values = sorted(values);
            let mut path = String::new();
            for (at, value) in (1_u64..).zip(&values) {
                let height = y + 50.0 - 44.0 * float(at) / float(values.len() as u64);
                let before = y + 50.0 - 44.0 * float(at - 1) / float(values.len() as u64);
                let word = if at == 1 { "M" } else { "L" };
                let x = scale.place(*value);
                let _ = write!(path, "{word}{x:.1} {before:.1}L{x:.1} {height:.1}");
            }
            canvas.path(&path, colour == STOCK);
        }
    })
}

/// A figure with a row for each cell and words for its axis. Cells without data say so.
fn chart(
    axis: &str,
    rows: &[Row<'_>],
    height: f64,
    scale: &Scale,
    draw: &dyn Fn(&mut Canvas, &Row<'_>, f64),
) -> String {
    let mut canvas = Canvas::new(TOP + height * float(rows.len() as u64) + 46.0);
    let bottom = canvas.height() - 40.0;
    for value in &scale.marks {
        let x = scale.place(*value);
        canvas.line((x, TOP - 6.0), (x, bottom), "#ddd");
        canvas.text(x, bottom + 16.0, "middle", &value.to_string());
    }
    canvas.text(WIDTH / 2.0, bottom + 34.0, "middle", axis);
    for (at, row) in rows.iter().enumerate() {
        let y = TOP + float(at as u64) * height;
        canvas.text(LEFT - 8.0, y + height / 2.0 + 4.0, "end", &row.name);
        if row.time.count == 0 {
            canvas.text(LEFT + 8.0, y + height / 2.0 + 4.0, "start", UNKNOWN);
        } else {
            draw(&mut canvas, row, y);
        }
    }
    canvas.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::analysis::measured;
    use crate::paper::plan::tests::plan;
    use crate::sample::Side;
    use crate::sample::tests::sample;

    #[test]
    fn figures_show_every_cell_measured_or_not_and_are_whole() {
        let plan = plan();
        let cell = plan.phase[0].family[0].cells().unwrap()[0];
        let samples =
            [1, 2, 3].into_iter().flat_map(|replica| Side::BOTH.map(|side| Sample { cell, ..sample(side, replica) }));
        let first = Data { host: String::new(), samples: samples.collect() };
        let data: Vec<_> = [first].into_iter().chain(plan.phase.iter().skip(1).map(|_| Data::default())).collect();
        for (name, figure) in figures(&plan, &data, &measured(&plan, &data).unwrap()).unwrap() {
            assert!(figure.ends_with("</svg>\n") && !figure.contains("NaN") && !figure.contains("inf"), "{name}");
            if name.starts_with("nine-backups") {
                assert!(figure.contains("manyfiles1 full") && figure.contains(UNKNOWN), "{name}");
            }
        }
    }
}
