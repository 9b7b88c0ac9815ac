//! Intervals from drawing the replicas anew: the bootstrap, bias-corrected and accelerated (`BCa`;
//! Efron and Tibshirani, An Introduction to the Bootstrap, chapter 14).

use statrs::distribution::{ContinuousCDF as _, Normal};

use super::draws::Draws;
use super::quantile::{float, quotient, sorted, sorted_quantile};

/// How often replicas are drawn anew, and with which numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// So often.
    pub times: usize,
    /// The seed.
    pub seed: u64,
}

/// An estimate with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// From all replicas.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Pairs of replicas to draw from. They stay together: what disturbed the machine disturbed both.
/// What is taken of them is in order without being sorted, because thousands of draws are made.
pub struct Pairs {
    /// The values of each side in their order, each with the number of its pair.
    sides: [Vec<(f64, usize)>; 2],
    /// How often each pair is taken.
    times: Vec<usize>,
}

impl Pairs {
    /// Of ours and stock.
    pub fn new(pairs: &[(f64, f64)]) -> Self {
        let in_order = |value: fn(&(f64, f64)) -> f64| {
            let mut side: Vec<_> = pairs.iter().map(value).zip(0..).collect();
            side.sort_by(|one, other| one.0.total_cmp(&other.0));
            side
        };
        Self { sides: [in_order(|pair| pair.0), in_order(|pair| pair.1)], times: vec![1; pairs.len()] }
    }

    /// A statistic of as many as there are, each drawn from all.
    pub fn drawn(&mut self, random: &mut Draws, statistic: impl Fn(&[f64], &[f64]) -> f64) -> f64 {
        self.times.fill(0);
        for _ in 0..self.times.len() {
            let drawn = random.below(self.times.len());
            self.times.get_mut(drawn).into_iter().for_each(|times| *times += 1);
        }
        self.taken(statistic)
    }

    /// A statistic of all but one each.
    fn without_one(&mut self, statistic: impl Fn(&[f64], &[f64]) -> f64) -> Vec<f64> {
        let count = self.times.len();
        let without = |left_out: usize| {
            self.times = (0..count).map(|pair| usize::from(pair != left_out)).collect();
            self.taken(&statistic)
        };
        (0..count).map(without).collect()
    }

    fn taken(&self, statistic: impl Fn(&[f64], &[f64]) -> f64) -> f64 {
        let [left, right] = self.sides.each_ref().map(|side| {
            let mut taken = Vec::with_capacity(self.times.len());
            for (value, pair) in side {
                let times = self.times.get(*pair).copied().unwrap_or_default();
                taken.resize(taken.len() + times, *value);
            }
            taken
        });
        statistic(&left, &right)
    }
}

/// The quotient of the medians of two sorted lists.
pub fn quotient_of_medians(ours: &[f64], stock: &[f64]) -> f64 {
    quotient(sorted_quantile(ours, 500), sorted_quantile(stock, 500))
}

/// How the tables of `bench report` draw.
const USUAL: Draw = Draw { times: 4000, seed: 95 };

/// What a statistic of pairs of replicas, given as two sorted lists, may be, with the given
/// confidence. Of the draws that are equal to the estimate half count as below it, because medians
/// of few values often are.
pub fn bca(pairs: &[(f64, f64)], draw: Draw, confidence: f64, statistic: impl Fn(&[f64], &[f64]) -> f64) -> Estimate {
    let mut all = Pairs::new(pairs);
    let value = all.taken(&statistic);
    let exactly = Estimate { value, low: value, high: value };
    if pairs.len() < 2 || draw.times == 0 {
        return exactly;
    }
    let mut random = Draws::new(draw.seed);
    let drawn: Vec<f64> = (0..draw.times).map(|_| all.drawn(&mut random, &statistic)).collect();
    let drawn = sorted(&drawn);
    let bias = bias(&drawn, value);
    let acceleration = acceleration(&mut all, &statistic);
    let Ok(normal) = Normal::new(0.0, 1.0) else { return exactly };
    let end = |part: f64| {
        let shifted = bias + normal.inverse_cdf(part);
        let part = normal.cdf(bias + shifted / (1.0 - acceleration * shifted));
        between(&drawn, part)
    };
    let half = (1.0 - confidence) / 2.0;
    Estimate { value, low: end(half), high: end(1.0 - half) }
}

/// How far the draws' middle is from the estimate, in standard deviations.
fn bias(drawn: &[f64], value: f64) -> f64 {
    let count = |test: &dyn Fn(&&f64) -> bool| float(drawn.iter().filter(test).count() as u64);
    let all = float(drawn.len() as u64);
    let below = (count(&|one| **one < value) + 0.5 * count(&|one| one.total_cmp(&value).is_eq())) / all;
    // Never infinite.
    let below = below.clamp(0.5 / all, 1.0 - 0.5 / all);
    Normal::new(0.0, 1.0).map_or(0.0, |normal| normal.inverse_cdf(below))
}

/// From the estimates without one pair each (jackknife).
fn acceleration(all: &mut Pairs, statistic: impl Fn(&[f64], &[f64]) -> f64) -> f64 {
    let without = all.without_one(statistic);
    let mean = without.iter().fold(0.0, |sum, one| sum + one) / float(without.len() as u64);
    let (mut squares, mut cubes) = (0.0, 0.0);
    for one in &without {
        let away = mean - one;
        squares += away * away;
        cubes += away * away * away;
    }
    let scale = 6.0 * squares * squares.sqrt();
    if scale == 0.0 { 0.0 } else { cubes / scale }
}

/// The value below which a part of the sorted draws is, between its neighbours.
pub fn between(sorted: &[f64], part: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let place = part.clamp(0.0, 1.0) * float(last as u64);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the length")]
    let at = (place.floor() as usize).min(last);
    let low = sorted.get(at).copied().unwrap_or_default();
    let high = sorted.get(at + 1).copied().unwrap_or(low);
    low + (high - low) * (place - float(at as u64))
}

/// The quotient of two medians, with its interval of 95 %.
pub fn ratio_of_medians(pairs: &[(f64, f64)]) -> Estimate {
    bca(pairs, USUAL, 0.95, quotient_of_medians)
}

/// The median of the values, with its interval of 95 %.
pub fn median_with_interval(values: &[f64]) -> Estimate {
    let pairs: Vec<_> = values.iter().map(|&value| (value, 0.0)).collect();
    bca(&pairs, USUAL, 0.95, |left, _| sorted_quantile(left, 500))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Neurological test A of 26 children, in Efron and Tibshirani's table 14.1.
    const SPATIAL: [f64; 26] = [
        48.0, 36.0, 20.0, 29.0, 42.0, 42.0, 20.0, 42.0, 22.0, 41.0, 45.0, 14.0, 6.0, 0.0, 33.0, 28.0, 34.0, 4.0, 32.0,
        24.0, 47.0, 41.0, 24.0, 26.0, 30.0, 41.0,
    ];

    fn variance(values: &[f64], _: &[f64]) -> f64 {
        let count = float(values.len() as u64);
        let mean = values.iter().sum::<f64>() / count;
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count
    }

    fn near(left: f64, right: f64, within: f64) {
        assert!((left - right).abs() <= within, "{left} against {right}");
    }

    /// Their page 186: the variance is 171.5, its acceleration 0.061, and the 90 % interval
    /// (115.8, 259.6) from 2,000 draws of their own.
    #[test]
    fn the_interval_of_a_variance_is_the_published_one() {
        let pairs: Vec<_> = SPATIAL.iter().map(|&value| (value, 0.0)).collect();
        let estimate = bca(&pairs, Draw { times: 20_000, seed: 1 }, 0.90, variance);
        near(estimate.value, 171.5, 0.05);
        near(estimate.low, 115.8, 3.0);
        near(estimate.high, 259.6, 5.0);
        near(acceleration(&mut Pairs::new(&pairs), variance), 0.061, 0.0005);
    }

    #[test]
    fn an_interval_holds_its_estimate_and_grows_with_the_spread() {
        let narrow = ratio_of_medians(&[(1.0, 2.0), (1.1, 2.1), (0.9, 2.0), (1.0, 1.9)]);
        let wide = ratio_of_medians(&[(1.0, 2.0), (2.1, 2.1), (0.3, 2.0), (1.0, 0.9)]);
        near(narrow.value, 0.5, 1e-9);
        assert!(narrow.low <= narrow.value && narrow.value <= narrow.high);
        assert!(wide.high - wide.low > narrow.high - narrow.low);
    }

    #[test]
    fn equal_replicas_and_a_single_one_have_no_spread() {
        for pairs in [&[(1.0, 2.0); 5][..], &[(1.0, 2.0)]] {
            let Estimate { value, low, high } = ratio_of_medians(pairs);
            near(value, 0.5, 0.0);
            assert_eq!((low, high), (value, value));
        }
    }
}
