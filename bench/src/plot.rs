//! The four figures of the comparison as SVG: medians with their intervals, 90th percentiles,
//! ratios, growth.

use crate::canvas::{Canvas, WIDTH};
use crate::cell::{Cell, Level, Variant};
use crate::figures::{cells, pairs, values};
use crate::sample::{Figure, Sample, Side};
use crate::statistics::{Estimate, float, median, median_with_interval, p90, ratio_of_medians};
use crate::tree::Kind;

/// Where bars begin, right of the cells' names.
const LEFT: f64 = 260.0;
const ROW: f64 = 34.0;
const TOP: f64 = 60.0;
const STOCK: &str = "#8a8f98";
const OURS: &str = "#c2410c";

/// A bar with its interval.
struct Bar {
    colour: &'static str,
    estimate: Estimate,
}

/// The figures by their file names.
pub fn figures(samples: &[Sample]) -> Vec<(&'static str, String)> {
    let connection: Figure = |sample| sample.connection;
    let exactly = |value| Estimate { value, low: value, high: value };
    let sides = [(Side::Stock, STOCK), (Side::Ours, OURS)];
    let bars = |title, estimate: &dyn Fn(&[f64]) -> Estimate| {
        chart(samples, title, &|cell| {
            let bar = |(side, colour)| Bar { colour, estimate: estimate(&values(samples, cell, side, connection)) };
            sides.map(bar).into()
        })
    };
    let ratios = |cell| {
        let bar = |colour, figure| Bar { colour, estimate: ratio_of_medians(&pairs(samples, cell, figure)) };
        vec![bar(OURS, connection), bar("#0f766e", |sample: &Sample| sample.fd)]
    };
    let mut figures = vec![
        (
            "medians.svg",
            bars("Connection, ms: median with 95 % interval (grey: stock, red: ours)", &median_with_interval),
        ),
        ("p90.svg", bars("Connection, ms: 90th percentile (grey: stock, red: ours)", &|v| exactly(p90(v)))),
        ("ratios.svg", chart(samples, "Ours / stock with 95 % interval (red: connection, green: FD CPU)", &ratios)),
    ];
    figures.extend(growth(samples).map(|figure| ("growth.svg", figure)));
    figures
}

/// One row a cell, its bars on a logarithmic scale.
fn chart(samples: &[Sample], title: &str, bars: &dyn Fn(Cell) -> Vec<Bar>) -> String {
    let rows: Vec<_> = cells(samples).into_iter().map(|cell| (cell, bars(cell))).collect();
    let all = || rows.iter().flat_map(|(_, bars)| bars).flat_map(|bar| [bar.estimate.low, bar.estimate.high]);
    let positive = || all().filter(|value| *value > 0.0 && value.is_finite());
    let (low, high) = (positive().fold(f64::MAX, f64::min), positive().fold(f64::MIN_POSITIVE, f64::max));
    let scale = Scale::new(low, high);
    let mut canvas = drawing(title, rows.len());
    grid(&mut canvas, &scale);
    for (at, (cell, bars)) in rows.iter().enumerate() {
        let y = TOP + float(at as u64) * ROW;
        canvas.text(LEFT - 8.0, y + 18.0, "end", &cell.to_string());
        for (at, bar) in bars.iter().enumerate() {
            draw(&mut canvas, &scale, y + 4.0 + float(at as u64) * 13.0, bar);
        }
    }
    canvas.finish()
}

/// CPU time for each file, and peak memory, over the number of files.
fn growth(samples: &[Sample]) -> Option<String> {
    let all = cells(samples);
    let chosen: Vec<Cell> = all
        .into_iter()
        .filter(|cell| (cell.tree.kind, cell.variant, cell.level) == (Kind::Tiny, Variant::Default, Level::Full))
        .collect();
    if chosen.is_empty() {
        return None;
    }
    let line = |cell: Cell, side, colour| -> [(String, Bar); 2] {
        let of = |figure: Figure| values(samples, cell, side, figure);
        let bar = |values: &[f64]| Bar { colour, estimate: median_with_interval(values) };
        let memory: Vec<f64> = of(|sample| sample.rss).iter().map(|bytes| bytes / f64::from(1 << 20)).collect();
        let files = median(&of(|sample| float(sample.files)));
        [
            (format!("{files} files: CPU µs a file"), bar(&of(Sample::cpu_per_file))),
            (format!("{files} files: peak MiB"), bar(&memory)),
        ]
    };
    let mut rows = Vec::new();
    for part in 0..2 {
        for &cell in &chosen {
            for (side, colour) in [(Side::Stock, STOCK), (Side::Ours, OURS)] {
                rows.extend(line(cell, side, colour).into_iter().nth(part));
            }
        }
    }
    let high = rows.iter().map(|(_, bar)| bar.estimate.high).fold(1.0, f64::max);
    let scale = Scale::new(1.0, high);
    let mut canvas = drawing("Growth: a Full of so many files (grey: stock, red: ours)", rows.len());
    grid(&mut canvas, &scale);
    for (at, (name, bar)) in rows.iter().enumerate() {
        let y = TOP + float(at as u64) * ROW;
        canvas.text(LEFT - 8.0, y + 18.0, "end", name);
        draw(&mut canvas, &scale, y + 8.0, bar);
    }
    Some(canvas.finish())
}

/// A logarithmic scale from a power of ten to another.
struct Scale {
    low: i32,
    high: i32,
}

impl Scale {
    fn new(low: f64, high: f64) -> Self {
        let decade = |value: f64| (-9..=12).find(|&power| value < 10f64.powi(power)).unwrap_or(12);
        let low = decade(low) - 1;
        Self { low, high: decade(high).max(low + 1) }
    }

    fn x(&self, value: f64) -> f64 {
        let part = (value.log10() - f64::from(self.low)) / f64::from(self.high - self.low);
        LEFT + part.clamp(0.0, 1.0) * (WIDTH - LEFT - 90.0)
    }
}

/// A drawing with room for so many rows.
fn drawing(title: &str, rows: usize) -> Canvas {
    let mut canvas = Canvas::new(TOP + ROW * float(rows as u64) + 30.0);
    canvas.text(12.0, 24.0, "start", title);
    canvas
}

fn grid(canvas: &mut Canvas, scale: &Scale) {
    for power in scale.low..=scale.high {
        let x = scale.x(10f64.powi(power));
        let bottom = canvas.height() - 24.0;
        canvas.line((x, TOP), (x, bottom), "#ddd");
        canvas.text(x, bottom + 16.0, "middle", &10f64.powi(power).to_string());
    }
}

fn draw(canvas: &mut Canvas, scale: &Scale, y: f64, bar: &Bar) {
    let Bar { colour, estimate: Estimate { value, low, high } } = bar;
    canvas.bar(LEFT, scale.x(*value), y, 11.0, colour);
    canvas.line((scale.x(*low), y + 5.5), (scale.x(*high), y + 5.5), "black");
    let digits = if *value < 10.0 { 2 } else { 0 };
    canvas.text(scale.x(*value).max(scale.x(*high)) + 4.0, y + 10.0, "start", &format!("{value:.digits$}"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::sample;

    #[test]
    fn figures_show_every_cell_and_are_whole() {
        let samples = [sample(Side::Stock, 1), sample(Side::Ours, 1)];
        let figures = figures(&samples);
        assert_eq!(figures.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["medians.svg", "p90.svg", "ratios.svg"]);
        for (name, figure) in figures {
            assert!(figure.contains("manyfiles10 full default") && figure.ends_with("</svg>\n"), "{name}");
            assert!(!figure.contains("NaN") && !figure.contains("inf\""), "{name}: {figure}");
        }
    }

    #[test]
    fn a_scale_holds_its_ends() {
        let scale = Scale::new(0.3, 25.0);
        assert_eq!((scale.low, scale.high), (-1, 2));
        assert!(scale.x(0.3) > LEFT && scale.x(25.0) < WIDTH);
    }
}
