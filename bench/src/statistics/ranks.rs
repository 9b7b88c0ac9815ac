//! Tests and sizes of effects that need only the order of values: sign test, Wilcoxon's signed
//! ranks, Hodges and Lehmann's shift, Cliff's delta, Holm's correction. All are exact; nothing is
//! approximated by a normal distribution.

use std::cmp::Ordering;

use statrs::distribution::{Binomial, DiscreteCDF as _};

use super::bootstrap::Estimate;
use super::quantile::{float, sorted, sorted_quantile};

/// How likely signs as one-sided as these are by chance (two-sided). Zeros count for neither side.
pub fn sign_test(differences: &[f64]) -> f64 {
    let count = |sign: fn(&&f64) -> bool| differences.iter().filter(sign).count() as u64;
    let (positive, negative) = (count(|one| **one > 0.0), count(|one| **one < 0.0));
    let Ok(fair) = Binomial::new(0.5, positive + negative) else { return 1.0 };
    (2.0 * fair.cdf(positive.min(negative))).min(1.0)
}

/// How likely signed ranks as one-sided as these are by chance (two-sided, exact). Equal sizes
/// share their mean rank. Zeros are ranked and then left out (Pratt).
pub fn wilcoxon(differences: &[f64]) -> f64 {
    let mut sizes: Vec<(f64, bool)> = differences.iter().map(|one| (one.abs(), *one > 0.0)).collect();
    sizes.sort_by(|left, right| left.0.total_cmp(&right.0));
    let (mut doubled, mut positive, mut done) = (Vec::new(), 0, 0);
    for equal in sizes.chunk_by(|left, right| left.0.total_cmp(&right.0).is_eq()) {
        // Twice the mean of the ranks from done + 1 to done + length.
        let rank = 2 * done + equal.len() + 1;
        done += equal.len();
        for (size, is_positive) in equal {
            if *size > 0.0 {
                doubled.push(rank);
                positive += if *is_positive { rank } else { 0 };
            }
        }
    }
    let chances = chances_of_sums(&doubled);
    let up_to: f64 = chances.iter().take(positive + 1).fold(0.0, |sum, one| sum + one);
    let from: f64 = chances.iter().skip(positive).fold(0.0, |sum, one| sum + one);
    (2.0 * up_to.min(from)).min(1.0)
}

/// How likely each sum is, if each rank belongs to it with the chance of a coin.
fn chances_of_sums(ranks: &[usize]) -> Vec<f64> {
    let mut chances = vec![1.0];
    for &rank in ranks {
        let with = |at: usize| at.checked_sub(rank).and_then(|at| chances.get(at)).copied().unwrap_or(0.0);
        let without = |at: usize| chances.get(at).copied().unwrap_or(0.0);
        chances = (0..chances.len() + rank).map(|at| f64::midpoint(without(at), with(at))).collect();
    }
    chances
}

/// A shift with its interval; without one if there are too few values for the confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// The median of the means of all two differences.
    pub value: f64,
    /// Its ends.
    pub interval: Option<(f64, f64)>,
}

impl From<Shift> for Estimate {
    fn from(shift: Shift) -> Self {
        let (low, high) = shift.interval.unwrap_or((shift.value, shift.value));
        Self { value: shift.value, low, high }
    }
}

/// By how much the differences are shifted from zero (Hodges and Lehmann).
pub fn hodges_lehmann(differences: &[f64], confidence: f64) -> Shift {
    let means: Vec<f64> = differences
        .iter()
        .enumerate()
        .flat_map(|(at, left)| differences.iter().skip(at).map(move |right| (left + right) / 2.0))
        .collect();
    let means = sorted(&means);
    let value = sorted_quantile(&means, 500);
    // The most sums of ranks at one end that are together unlikely enough.
    let ranks: Vec<usize> = (1..=differences.len()).collect();
    let (mut outside, mut left_out) = (0.0, 0);
    for chance in chances_of_sums(&ranks) {
        outside += chance;
        if outside > (1.0 - confidence) / 2.0 {
            break;
        }
        left_out += 1;
    }
    let end = |at: usize| means.get(at).copied();
    let high = means.len().checked_sub(left_out).and_then(end);
    let interval = left_out.checked_sub(1).and_then(end).zip(high);
    Shift { value, interval }
}

/// How much more often a left value is greater than a right one than less, from -1 to 1.
pub fn cliffs_delta(left: &[f64], right: &[f64]) -> f64 {
    let mut more: i64 = 0;
    for one in left {
        for other in right {
            more += match one.total_cmp(other) {
                Ordering::Greater => 1,
                Ordering::Less => -1,
                Ordering::Equal => 0,
            };
        }
    }
    let pairs = float((left.len() * right.len()) as u64);
    let size = float(more.unsigned_abs()) / pairs.max(1.0);
    if more < 0 { -size } else { size }
}

/// The probabilities of a family of tests, corrected so that all of them together err as seldom as
/// one (Holm).
pub fn holm(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    let of = |at: usize| probabilities.get(at).copied().unwrap_or(1.0);
    order.sort_by(|left, right| of(*left).total_cmp(&of(*right)));
    let mut corrected = vec![0.0; probabilities.len()];
    let mut least: f64 = 0.0;
    for (done, &at) in order.iter().enumerate() {
        least = least.max(of(at) * float((probabilities.len() - done) as u64)).min(1.0);
        if let Some(place) = corrected.get_mut(at) {
            *place = least;
        }
    }
    corrected
}

#[cfg(test)]
mod tests;
