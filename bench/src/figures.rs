//! The figures of one cell from many samples, side by side.

use std::collections::BTreeSet;

use crate::cell::Cell;
use crate::sample::{Figure, Sample, Side};
use crate::statistics::{median, quotient};

/// A figure of one side in one cell, in the order of the replicas.
pub fn values(samples: &[Sample], cell: Cell, side: Side, figure: Figure) -> Vec<f64> {
    let mut chosen: Vec<_> = samples.iter().filter(|sample| sample.cell == cell && sample.side == side).collect();
    chosen.sort_by_key(|sample| sample.replica);
    chosen.into_iter().map(figure).collect()
}

/// Ours and the stock daemon's figure of the same replicas.
pub fn pairs(samples: &[Sample], cell: Cell, figure: Figure) -> Vec<(f64, f64)> {
    values(samples, cell, Side::Ours, figure).into_iter().zip(values(samples, cell, Side::Stock, figure)).collect()
}

/// The cells that have samples, in their order.
pub fn cells(samples: &[Sample]) -> Vec<Cell> {
    let present: BTreeSet<Cell> = samples.iter().map(|sample| sample.cell).collect();
    Cell::all().into_iter().filter(|cell| present.contains(cell)).collect()
}

/// (our time − floor) / (stock's time − floor), from medians.
pub fn above_the_floor(samples: &[Sample], cell: Cell) -> Option<f64> {
    let time: Figure = |sample| sample.connection;
    let of = |side| values(samples, cell, side, time);
    let floor = of(Side::Floor);
    let rest = |side| median(&of(side)) - median(&floor);
    (!floor.is_empty()).then(|| quotient(rest(Side::Ours), rest(Side::Stock)))
}
