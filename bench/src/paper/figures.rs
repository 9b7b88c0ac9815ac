//! The paper's figures as SVG. They are readable in grey: the stock daemon is light or hollow, ours
//! is dark or filled.

use std::fmt::Write as _;

use bed::Result;

use crate::canvas::{Canvas, WIDTH};
use crate::cell::{Cell, Variant};
use crate::paper::analysis::{Data, Effect, UNKNOWN, pairs};
use crate::paper::curves::{Point, curves, map};
use crate::paper::plan::{Phase, Plan};
use crate::paper::scale::{OURS, STOCK, Scale, shown};
use crate::sample::Sample;
use crate::statistics::{Draw, float, median, quotient, seed_of, sorted, sorted_quantile};

/// Where the scale begins, right of the cells' names.
const LEFT: f64 = 200.0;
/// Where it ends; behind it is room for words.
const RIGHT: f64 = 770.0;
const TOP: f64 = 56.0;
/// Of all scales.
const SPAN: (f64, f64) = (LEFT, RIGHT);

/// All figures by their file names.
pub fn figures(plan: &Plan, data: &[Data]) -> Result<Vec<(String, String)>> {
    let mut figures = Vec::new();
    for (phase, data) in plan.phase.iter().zip(data) {
        for family in &phase.family {
            let rows: Vec<Row> =
                family.cells()?.into_iter().map(|cell| Row::of(plan, phase, cell, &data.samples)).collect();
            let drawn = [
                ("medians", medians(&family.title, &rows)),
                ("samples", distributions(&family.title, &rows)),
                ("ratios", ratios(&family.title, &rows)),
                ("throughput", throughput(&family.title, &rows)),
                ("ecdf", ecdf(&family.title, &rows)),
            ];
            let file = |(word, text)| (format!("{}-{}-{word}.svg", phase.name, family.name), text);
            figures.extend(drawn.map(file));
            let points: Vec<Point> = rows.iter().filter_map(Row::point).collect();
            if let Some(axis) = family.axis {
                let text = curves(&family.title, axis, &points);
                figures.push((format!("{}-{}-curves.svg", phase.name, family.name), text));
            }
            if family.rates.is_some() {
                figures.push((format!("{}-{}-map.svg", phase.name, family.name), map(&family.title, &points)));
            }
            if let Some(base) = family.base()? {
                let text = above(&family.title, &rows, base, &data.samples);
                figures.push((format!("{}-{}-above.svg", phase.name, family.name), text));
            }
        }
    }
    Ok(figures)
}

/// What is drawn of a cell.
struct Row {
    cell: Cell,
    name: String,
    time: Effect,
    /// MiB a second, of ours and of stock.
    rates: [f64; 2],
}

impl Row {
    fn of(plan: &Plan, phase: &Phase, cell: Cell, samples: &[Sample]) -> Self {
        let pairs = pairs(samples, cell);
        let values: Vec<_> = pairs.iter().map(|(ours, stock)| (ours.connection, stock.connection)).collect();
        let seed = seed_of(plan.seed, &format!("{}/{cell}/time", phase.name));
        let rate = |one: &Sample| quotient(float(one.bytes), one.connection) * 1000.0 / f64::from(1 << 20);
        let [ours, stock] = [0, 1].map(|side| {
            let of = |pair: &(&Sample, &Sample)| rate(if side == 0 { pair.0 } else { pair.1 });
            median(&pairs.iter().map(of).collect::<Vec<_>>())
        });
        Self {
            cell,
            name: cell.to_string().replace(" default", ""),
            time: Effect::of(&values, Draw { times: plan.draws, seed }, plan.confidence),
            rates: [ours, stock],
        }
    }

    /// Its medians, if it was measured.
    fn point(&self) -> Option<Point> {
        let medians = [median(&self.time.stock), median(&self.time.ours)];
        (self.time.count > 0).then_some(Point { cell: self.cell, medians })
    }

    /// Its name, its values and its colours: stock above ours.
    fn sides(&self) -> [(&[f64], &'static str, f64); 2] {
        [(&self.time.stock, STOCK, 5.0), (&self.time.ours, OURS, 19.0)]
    }
}

/// Every time of both daemons.
fn times(rows: &[Row]) -> impl Iterator<Item = f64> {
    rows.iter().flat_map(|row| row.time.ours.iter().chain(&row.time.stock).copied())
}

fn medians(title: &str, rows: &[Row]) -> String {
    let all = rows.iter().flat_map(|row| row.sides().map(|(values, ..)| median(values)));
    let scale = Scale::logarithmic(all, SPAN);
    chart(&format!("{title}: median time, ms (light: stock, dark: ours)"), rows, 36.0, &scale, &|canvas, row, y| {
        for (values, colour, below) in row.sides() {
            let value = median(values);
            canvas.bar(LEFT, scale.place(value), y + below, 12.0, colour);
            canvas.text(scale.place(value) + 4.0, y + below + 10.0, "start", &shown(value));
        }
        let change = (row.time.ratio.value - 1.0) * 100.0;
        canvas.text(WIDTH - 8.0, y + 21.0, "end", &format!("{change:+.1} %"));
    })
}

fn distributions(title: &str, rows: &[Row]) -> String {
    let scale = Scale::logarithmic(times(rows), SPAN);
    let title = format!("{title}: every sample, ms, with quartiles (hollow: stock, filled: ours)");
    chart(&title, rows, 44.0, &scale, &|canvas, row, y| {
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
                canvas.line((scale.place(*first), y + 6.0), (scale.place(*last), y + 6.0), "#777");
            }
            canvas.bar(low, high, y, 12.0, "#eee");
            canvas.line((middle, y), (middle, y + 12.0), "black");
            for (at, value) in values.iter().enumerate() {
                // Beside each other, so that equal ones are seen.
                let spread = float((at % 5) as u64) * 2.0;
                let fill = if colour == STOCK { "none" } else { OURS };
                canvas.dot(scale.place(*value), y + 2.0 + spread, fill);
            }
        }
    })
}

fn ratios(title: &str, rows: &[Row]) -> String {
    let ends = |row: &Row| {
        let tail = row.time.tail.unwrap_or((row.time.tail_ratio, row.time.tail_ratio));
        [row.time.ratio.low, row.time.ratio.high, tail.0, tail.1, 1.0]
    };
    let scale = Scale::linear(rows.iter().filter(|row| row.time.count > 0).flat_map(ends), SPAN);
    let title = format!("{title}: ours / stock with intervals (filled: medians, hollow: P90)");
    chart(&title, rows, 30.0, &scale, &|canvas, row, y| {
        canvas.line((scale.place(1.0), y), (scale.place(1.0), y + 30.0), "black");
        let tail = row.time.tail.unwrap_or((row.time.tail_ratio, row.time.tail_ratio));
        for (value, low, high, fill, y) in [
            (row.time.ratio.value, row.time.ratio.low, row.time.ratio.high, OURS, y + 9.0),
            (row.time.tail_ratio, tail.0, tail.1, "white", y + 20.0),
        ] {
            canvas.line((scale.place(low), y), (scale.place(high), y), OURS);
            canvas.dot(scale.place(value), y, fill);
        }
    })
}

fn throughput(title: &str, rows: &[Row]) -> String {
    let scale = Scale::logarithmic(rows.iter().flat_map(|row| row.rates), SPAN);
    chart(&format!("{title}: MiB a second (light: stock, dark: ours)"), rows, 36.0, &scale, &|canvas, row, y| {
        let [ours, stock] = row.rates;
        for (value, colour, below) in [(stock, STOCK, 5.0), (ours, OURS, 19.0)] {
            canvas.bar(LEFT, scale.place(value), y + below, 12.0, colour);
            canvas.text(scale.place(value) + 4.0, y + below + 10.0, "start", &shown(value));
        }
    })
}

/// Processor seconds of each cell above the one without its variant; what is less is nothing.
fn above(title: &str, rows: &[Row], base: Variant, samples: &[Sample]) -> String {
    let of = |cell: Cell| {
        let pairs = pairs(samples, cell);
        let middle = |side: &dyn Fn(&(&Sample, &Sample)) -> f64| median(&pairs.iter().map(side).collect::<Vec<_>>());
        [middle(&|(_, stock)| stock.fd), middle(&|(ours, _)| ours.fd)]
    };
    let more = |row: &Row| {
        let ([stock, ours], [other, mine]) = (of(row.cell), of(Cell { variant: base, ..row.cell }));
        [(stock - other, STOCK, 5.0), (ours - mine, OURS, 19.0)]
    };
    let scale = Scale::linear(rows.iter().flat_map(|row| more(row).map(|(seconds, ..)| seconds)), SPAN);
    let title = format!("{title}: processor seconds more than without (light: stock, dark: ours)");
    chart(&title, rows, 36.0, &scale, &|canvas, row, y| {
        for (seconds, colour, below) in more(row) {
            canvas.bar(LEFT, scale.place(seconds), y + below, 12.0, colour);
            canvas.text(scale.place(seconds).max(LEFT) + 4.0, y + below + 10.0, "start", &format!("{seconds:.2}"));
        }
    })
}

/// Which part of the jobs was over after how long.
fn ecdf(title: &str, rows: &[Row]) -> String {
    let scale = Scale::logarithmic(times(rows), SPAN);
    let title = format!("{title}: part of the jobs that had ended after so many ms (dashed: stock, solid: ours)");
    chart(&title, rows, 70.0, &scale, &|canvas, row, y| {
        for (values, colour, _) in row.sides() {
            let values = sorted(values);
            let mut path = String::new();
            for (at, value) in (1_u64..).zip(&values) {
                let height = y + 62.0 - 56.0 * float(at) / float(values.len() as u64);
                let before = y + 62.0 - 56.0 * float(at - 1) / float(values.len() as u64);
                let word = if at == 1 { "M" } else { "L" };
                let x = scale.place(*value);
                let _ = write!(path, "{word}{x:.1} {before:.1}L{x:.1} {height:.1}");
            }
            canvas.path(&path, colour == STOCK);
        }
    })
}

/// A figure with a row for each cell. Cells without data say so.
fn chart(title: &str, rows: &[Row], height: f64, scale: &Scale, draw: &dyn Fn(&mut Canvas, &Row, f64)) -> String {
    let mut canvas = Canvas::new(title, TOP + height * float(rows.len() as u64) + 34.0);
    for value in &scale.marks {
        let (x, bottom) = (scale.place(*value), canvas.height() - 26.0);
        canvas.line((x, TOP - 6.0), (x, bottom), "#ddd");
        canvas.text(x, bottom + 16.0, "middle", &value.to_string());
    }
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
    use crate::paper::plan::tests::plan;
    use crate::sample::Side;
    use crate::sample::tests::sample;

    #[test]
    fn figures_show_every_cell_measured_or_not_and_are_whole() {
        let plan = plan();
        let cell = plan.phase[0].family[0].cells().unwrap()[0];
        let samples = [1, 2, 3]
            .into_iter()
            .flat_map(|replica| [Side::Stock, Side::Ours].map(|side| Sample { cell, ..sample(side, replica) }));
        let first = Data { host: String::new(), samples: samples.collect() };
        let data: Vec<_> = [first].into_iter().chain(plan.phase.iter().skip(1).map(|_| Data::default())).collect();
        for (name, figure) in figures(&plan, &data).unwrap() {
            assert!(figure.ends_with("</svg>\n") && !figure.contains("NaN") && !figure.contains("inf"), "{name}");
            if name.starts_with("nine-backups") {
                assert!(figure.contains("manyfiles1 full") && figure.contains(UNKNOWN), "{name}");
            }
        }
    }
}
