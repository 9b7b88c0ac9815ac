//! How much of the variation of all logarithms is due to what: Jain, *The Art of Computer Systems
//! Performance Analysis*, chapter 21, with the pairs of replicas as blocks.

use crate::statistics::quantile::{float, quotient};

/// Parts of the whole sum of squares around the mean of all; together 1, unless all is equal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variation {
    /// Which daemon it was.
    pub daemon: f64,
    /// What kind of job.
    pub cell: f64,
    /// That the daemons differ more in some kinds than in others.
    pub both: f64,
    /// What both jobs of a replica have in common: the host at that time.
    pub replica: f64,
    /// What is left.
    pub rest: f64,
}

/// Of pairs of logarithms, ours and stock; one list for each kind of job.
pub fn variation(cells: &[Vec<(f64, f64)>]) -> Variation {
    let all = || cells.iter().flatten();
    let pairs = float(all().count() as u64);
    let mean =
        |values: &mut dyn Iterator<Item = f64>, count: f64| quotient(values.fold(0.0, |sum, one| sum + one), count);
    let (ours, stock) = (mean(&mut all().map(|one| one.0), pairs), mean(&mut all().map(|one| one.1), pairs));
    let middle = f64::midpoint(ours, stock);
    let square = |value: f64| value * value;
    let of_daemons = pairs * (square(ours - middle) + square(stock - middle));
    let (mut of_cells, mut of_both, mut of_replicas, mut of_rest) = (0.0, 0.0, 0.0, 0.0);
    for cell in cells {
        let count = float(cell.len() as u64);
        let means = [mean(&mut cell.iter().map(|one| one.0), count), mean(&mut cell.iter().map(|one| one.1), count)];
        let own = f64::midpoint(means[0], means[1]);
        of_cells += 2.0 * count * square(own - middle);
        for (mean, daemon) in means.into_iter().zip([ours, stock]) {
            of_both += count * square(mean - daemon - own + middle);
        }
        for pair in cell {
            let shared = f64::midpoint(pair.0, pair.1) - own;
            of_replicas += 2.0 * square(shared);
            of_rest += square(pair.0 - means[0] - shared) + square(pair.1 - means[1] - shared);
        }
    }
    let whole = of_daemons + of_cells + of_both + of_replicas + of_rest;
    let part = |sum: f64| if whole > 0.0 { sum / whole } else { 0.0 };
    Variation {
        daemon: part(of_daemons),
        cell: part(of_cells),
        both: part(of_both),
        replica: part(of_replicas),
        rest: part(of_rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_all_where_nothing_else_varies() {
        let parts = |cells: &[Vec<(f64, f64)>]| {
            let Variation { daemon, cell, both, replica, rest } = variation(cells);
            [daemon, cell, both, replica, rest].map(|part| format!("{:.0}", part * 100.0)).join(" ")
        };
        assert_eq!(parts(&[vec![(1.0, 2.0); 3], vec![(1.0, 2.0); 3]]), "100 0 0 0 0");
        assert_eq!(parts(&[vec![(1.0, 1.0); 3], vec![(2.0, 2.0); 3]]), "0 100 0 0 0");
        assert_eq!(parts(&[vec![(1.0, 2.0); 3], vec![(2.0, 1.0); 3]]), "0 0 100 0 0");
        assert_eq!(parts(&[vec![(1.0, 1.0), (2.0, 2.0)]]), "0 0 0 100 0");
        assert_eq!(parts(&[vec![(1.0, 2.0), (2.0, 1.0)]]), "0 0 0 0 100");
        assert_eq!(parts(&[vec![(1.0, 1.0); 2]]), "0 0 0 0 0");
        // By hand: 1.125, 3.125, 0.125, 1.25 and 0.25 of 5.875.
        assert_eq!(parts(&[vec![(0.0, 1.0), (1.0, 1.0)], vec![(1.0, 2.0), (2.0, 3.0)]]), "19 53 2 21 4");
    }
}
