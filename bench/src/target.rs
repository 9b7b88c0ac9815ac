//! The promises about ferrofd's performance as limits of ratios, and whether samples are within
//! them.

use std::fmt::Write as _;

use crate::cell::{Cell, Codec, Level, Variant};
use crate::figures::{above_the_floor, cells, pairs, values};
use crate::sample::{Sample, Side};
use crate::statistics::{p90, quotient, ratio_of_medians};
use crate::tree::Kind;

/// A limit, and what was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Which cell, and which figure of it.
    pub what: String,
    /// At most so much.
    pub limit: f64,
    /// So much was measured.
    pub got: f64,
}

impl Verdict {
    /// Whether the promise is kept.
    pub fn is_met(&self) -> bool {
        self.got <= self.limit
    }
}

/// The limits of a cell: FD CPU and connection time, ours / stock.
fn limits(cell: Cell) -> (Option<f64>, Option<f64>) {
    let Cell { tree, variant, level } = cell;
    match (tree.kind, tree.scale, variant, level) {
        (Kind::Empty, ..) => (None, Some(0.6)),
        (Kind::Tiny, 100, Variant::Default, Level::Restore) => (Some(0.7), Some(1.0)),
        (Kind::Media, 16, Variant::Default, Level::Restore) => (None, Some(1.0)),
        (Kind::Small, 10, Variant::Slow(1), _) | (Kind::Small, 10, Variant::Slow(5), Level::Restore) => {
            (None, Some(0.1))
        }
        (Kind::Small, 10, Variant::Slow(5 | 20), _) => (None, Some(0.05)),
        (Kind::Tiny, 300, Variant::ColdUnchanged, Level::Full) => (None, Some(0.2)),
        (Kind::Tiny, 300, Variant::ColdUnchanged, _) => (None, Some(0.5)),
        (Kind::Manyfiles, 10, Variant::Unchanged, _) => (Some(0.55), Some(0.6)),
        (_, _, Variant::Pki | Variant::PkiAgain | Variant::PkiLzo, _) => (Some(0.7), Some(0.6)),
        (Kind::Manyfiles | Kind::Media | Kind::Mixed, _, Variant::Default, Level::Restore) => (Some(0.6), Some(0.8)),
        (Kind::Manyfiles, 10, Variant::Default, Level::Full) => (Some(0.4), Some(0.5)),
        (Kind::Media, 10, Variant::Default, Level::Full) => (Some(0.8), Some(0.7)),
        (Kind::Mixed, 10, Variant::Default, Level::Full) | (Kind::Tiny, 500, Variant::Accurate, _) => {
            (Some(0.5), Some(0.6))
        }
        (Kind::Manyfiles | Kind::Media | Kind::Mixed, _, Variant::Default, _) => (Some(0.6), Some(0.6)),
        (Kind::Mixed, 10, Variant::Packed(Codec::Gzip(6)), Level::Full) => (Some(0.6), Some(0.4)),
        (Kind::Mixed, 10, Variant::Packed(Codec::Lzo), Level::Full)
        | (Kind::Media, 4, Variant::Packed(Codec::Lzo), _) => (Some(0.8), Some(0.6)),
        (Kind::Hole, ..) => (Some(0.01), Some(0.05)),
        _ => (None, None),
    }
}

/// What may be left of the stock daemon's time above the floor.
const ABOVE_THE_FLOOR: f64 = 0.25;
/// The same of a restore.
const RESTORE_ABOVE_THE_FLOOR: f64 = 0.5;
/// Peak memory of a job, bytes.
const MEMORY: f64 = 96.0 * 1024.0 * 1024.0;

/// The promises of the cells that have samples.
pub fn verdicts(samples: &[Sample]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for cell in cells(samples) {
        let mut add = |figure: &str, limit: f64, got: f64| {
            verdicts.push(Verdict { what: format!("{cell}: {figure}"), limit, got });
        };
        let (cpu, connection) = limits(cell);
        if let Some(limit) = cpu {
            add("FD CPU", limit, ratio_of_medians(&pairs(samples, cell, |s| s.fd)).value);
        }
        if let Some(limit) = connection {
            add("connection", limit, ratio_of_medians(&pairs(samples, cell, |s| s.connection)).value);
            let of = |side| p90(&values(samples, cell, side, |s| s.connection));
            add("connection, P90", 1.0, quotient(of(Side::Ours), of(Side::Stock)));
        }
        let peak = values(samples, cell, Side::Ours, |s| s.rss).into_iter().fold(0.0, f64::max);
        add("peak memory, of 96 MiB", 1.0, peak / MEMORY);
        let above = above_the_floor(samples, cell);
        if let (Some(above), Kind::Manyfiles, 10) = (above, cell.tree.kind, cell.tree.scale) {
            let limit = if cell.level == Level::Restore { RESTORE_ABOVE_THE_FLOOR } else { ABOVE_THE_FLOOR };
            add("connection above the floor", limit, above);
        }
    }
    verdicts
}

/// The promises as a table.
pub fn markdown(verdicts: &[Verdict]) -> String {
    let mut text = String::from("| promise | limit | measured | |\n| --- | --: | --: | --- |\n");
    for verdict in verdicts {
        let word = if verdict.is_met() { "met" } else { "**missed**" };
        let _ = writeln!(text, "| {} | {} | {:.3} | {word} |", verdict.what, verdict.limit, verdict.got);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::sample;

    #[test]
    fn a_promise_is_kept_up_to_its_limit() {
        let samples = [
            Sample { connection: 1000.0, fd: 2.0, ..sample(Side::Stock, 1) },
            Sample { connection: 500.0, fd: 0.9, rss: 1e8, ..sample(Side::Ours, 1) },
            Sample { connection: 400.0, ..sample(Side::Floor, 1) },
        ];
        let verdicts = verdicts(&samples);
        let met = |what: &str| verdicts.iter().find(|v| v.what.ends_with(what)).map(Verdict::is_met);
        assert_eq!(met("FD CPU"), Some(false));
        assert_eq!(met("connection"), Some(true));
        assert_eq!(met("P90"), Some(true));
        assert_eq!(met("of 96 MiB"), Some(true));
        assert_eq!(met("above the floor"), Some(true));
        assert!((above_the_floor(&samples, samples[0].cell).unwrap() - 1.0 / 6.0).abs() < 1e-9);
    }
}
