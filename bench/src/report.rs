//! The table: medians, 90th percentiles, ratios with their intervals, as Markdown.

use std::fmt::Write as _;

use crate::cell::Cell;
use crate::figures::{above_the_floor, cells, pairs, values};
use crate::sample::{Figure, Sample, Side};
use crate::statistics::{Estimate, float, median, p90, quotient, ratio_of_medians};

/// The tables of all cells.
pub fn markdown(samples: &[Sample]) -> String {
    let mut text = String::from(
        "Stock and ours; ratios are ours / stock with 95 % intervals (bootstrap of pairs of replicas). Connection: the \
         life of the Director's connection to the File Daemon. RSS: the File Daemon's peak.\n\n\
         | cell | n | connection ms: stock | ours | ratio | P90 ratio | FD CPU s: stock | ours | ratio | SD CPU ratio | DIR CPU ratio | peak MiB: stock | ours |\n\
         | --- | --: | --: | --: | --- | --: | --: | --: | --- | --: | --: | --: | --: |\n",
    );
    for cell in cells(samples) {
        row(&mut text, samples, cell);
    }
    floors(&mut text, samples);
    let _ = write!(
        text,
        "\n| cell | files | bytes | job ms: stock | ours | load |\n| --- | --: | --: | --: | --: | --- |\n"
    );
    for cell in cells(samples) {
        let of = |figure| median(&values(samples, cell, Side::Stock, figure));
        let of_side = |side| samples.iter().filter(move |sample| sample.cell == cell && sample.side == side);
        let job = |side| median(&of_side(side).filter_map(|sample| sample.job).collect::<Vec<_>>());
        let loads: Vec<f64> =
            samples.iter().filter(|sample| sample.cell == cell).map(|sample| sample.around.load).collect();
        let (least, most) =
            loads.iter().fold((f64::MAX, 0.0_f64), |(least, most), &load| (least.min(load), most.max(load)));
        let _ = writeln!(
            text,
            "| {cell} | {:.0} | {:.0} | {:.0} | {:.0} | {least:.1}–{most:.1} |",
            of(|s| float(s.files)),
            of(|s| float(s.bytes)),
            job(Side::Stock),
            job(Side::Ours),
        );
    }
    text
}

/// What Director and Storage Daemon need for themselves, where it was measured.
fn floors(text: &mut String, samples: &[Sample]) {
    let rows: Vec<_> =
        cells(samples).into_iter().filter_map(|cell| Some((cell, above_the_floor(samples, cell)?))).collect();
    if rows.is_empty() {
        return;
    }
    text.push_str(
        "\nThe floor sends the recorded stream without reading a file; in a restore it drops what it receives. Above it: \
         (ours − floor) / (stock − floor).\n\n\
         | cell | floor ms | stock ms | ours ms | above the floor |\n| --- | --: | --: | --: | --: |\n",
    );
    for (cell, above) in rows {
        let time = |side| median(&values(samples, cell, side, |sample| sample.connection));
        let _ = writeln!(
            text,
            "| {cell} | {:.0} | {:.0} | {:.0} | **{above:.2}** |",
            time(Side::Floor),
            time(Side::Stock),
            time(Side::Ours)
        );
    }
}

fn row(text: &mut String, samples: &[Sample], cell: Cell) {
    let of = |side, figure| values(samples, cell, side, figure);
    let ratio = |figure: Figure| ratio_of_medians(&pairs(samples, cell, figure));
    let connection: Figure = |sample| sample.connection;
    let cpu: Figure = |sample| sample.fd;
    let tail = quotient(p90(&of(Side::Ours, connection)), p90(&of(Side::Stock, connection)));
    let replicas = pairs(samples, cell, connection).len();
    let mebibytes = |side| median(&of(side, |sample| sample.rss)) / f64::from(1 << 20);
    let _ = writeln!(
        text,
        "| {cell} | {} | {:.0} | {:.0} | {} | {tail:.2} | {:.3} | {:.3} | {} | {:.2} | {:.2} | {:.0} | {:.0} |",
        replicas,
        median(&of(Side::Stock, connection)),
        median(&of(Side::Ours, connection)),
        shown(ratio(connection), replicas),
        median(&of(Side::Stock, cpu)),
        median(&of(Side::Ours, cpu)),
        shown(ratio(cpu), replicas),
        ratio(|sample| sample.sd).value,
        ratio(|sample| sample.dir).value,
        mebibytes(Side::Stock),
        mebibytes(Side::Ours),
    );
}

/// A ratio, with its interval where there is one: a single pair has none.
fn shown(estimate: Estimate, replicas: usize) -> String {
    let number = |value: f64| if value < 0.1 { format!("{value:.4}") } else { format!("{value:.2}") };
    let Estimate { value, low, high } = estimate;
    match replicas {
        0 | 1 => format!("**{}** (one pair)", number(value)),
        _ => format!("**{}** [{}, {}]", number(value), number(low), number(high)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pair_has_no_interval() {
        let estimate = Estimate { value: 0.5, low: 0.5, high: 0.5 };
        assert_eq!(shown(estimate, 1), "**0.50** (one pair)");
        assert_eq!(shown(Estimate { value: 0.0002, ..estimate }, 2), "**0.0002** [0.50, 0.50]");
    }
}
