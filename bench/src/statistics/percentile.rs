//! The interval of a percentile from the order of the values alone (order statistics): no
//! assumption about their distribution.

use statrs::distribution::{Binomial, DiscreteCDF as _};

/// How likely the quantile `part` lies between the values of these ranks, of `count` in their
/// order; ranks count from 1.
pub fn coverage(count: usize, part: f64, (low, high): (usize, usize)) -> f64 {
    let Ok(below) = Binomial::new(part, count as u64) else { return 0.0 };
    // At least `low` values are below the quantile, and at most `high - 1`.
    let up_to = |number: Option<usize>| number.map_or(0.0, |number| below.cdf(number as u64));
    up_to(high.checked_sub(1)) - up_to(low.checked_sub(1))
}

/// The closest two ranks with at least this confidence; of several, the most likely ones. `None`
/// if there are too few values: for P90 and 95 % fewer than 29.
pub fn ranks_around(count: usize, part: f64, confidence: f64) -> Option<(usize, usize)> {
    for distance in 1..count {
        let all = (1..=count - distance).map(|low| (low, low + distance));
        let best = all.max_by(|left, right| coverage(count, part, *left).total_cmp(&coverage(count, part, *right)));
        let enough = best.filter(|ranks| coverage(count, part, *ranks) >= confidence);
        if enough.is_some() {
            return enough;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(left: f64, right: f64) {
        assert!((left - right).abs() < 5e-5, "{left} against {right}");
    }

    /// Conover, Practical Nonparametric Statistics, the upper quartile of 16 radio tubes: between
    /// the 9th and the 15th with 0.9094.
    #[test]
    fn the_upper_quartile_of_radio_tubes_lies_where_it_is_published() {
        near(coverage(16, 0.75, (9, 15)), 0.9094);
    }

    /// The usual table for medians: of 10 values the 2nd and the 9th, with 0.9785.
    #[test]
    fn a_median_of_ten_lies_between_the_second_and_the_ninth() {
        assert_eq!(ranks_around(10, 0.5, 0.95), Some((2, 9)));
        near(coverage(10, 0.5, (2, 9)), 0.9785);
    }

    /// 1 - 0.9^29 is the first to exceed 0.95.
    #[test]
    fn a_p90_needs_twenty_nine_values() {
        assert_eq!(ranks_around(28, 0.9, 0.95), None);
        assert!(ranks_around(29, 0.9, 0.95).is_some_and(|(_, high)| high == 29));
        let (low, high) = ranks_around(40, 0.9, 0.95).unwrap();
        assert!(coverage(40, 0.9, (low, high)) >= 0.95 && high <= 40);
        assert_eq!(ranks_around(0, 0.9, 0.95), None);
    }
}
