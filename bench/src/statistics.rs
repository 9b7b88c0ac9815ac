//! Medians, percentiles, and intervals of ratios from a few replicas.

use bed::Noise;

/// How often the replicas are drawn anew for an interval.
const DRAWS: usize = 4000;

/// A number for a computation; what counts or measures here is far below 2⁵³.
#[expect(clippy::cast_precision_loss, reason = "the last digits of a measurement mean nothing")]
pub fn float(number: u64) -> f64 {
    number as f64
}

/// The quantile of a sorted list between its neighbours, as most programs compute it; 0 for an
/// empty list.
pub fn sorted_quantile(sorted: &[f64], thousandths: usize) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = last * thousandths;
    let (at, between) = (place / 1000, float((place % 1000) as u64) / 1000.0);
    let low = sorted.get(at).copied().unwrap_or_default();
    let high = sorted.get(at + 1).copied().unwrap_or(low);
    low + (high - low) * between
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The middle of the values.
pub fn median(values: &[f64]) -> f64 {
    sorted_quantile(&sorted(values), 500)
}

/// What nine of ten values do not exceed.
pub fn p90(values: &[f64]) -> f64 {
    sorted_quantile(&sorted(values), 900)
}

/// An estimate with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// From all replicas.
    pub value: f64,
    /// 2.5 % of the draws are below.
    pub low: f64,
    /// 2.5 % of the draws are above.
    pub high: f64,
}

/// What a statistic of pairs of replicas may be if the replicas are drawn anew from themselves
/// (bootstrap). The pairs stay together: what disturbed the machine disturbed both. The draws are
/// the same on every call.
pub fn bootstrap(pairs: &[(f64, f64)], statistic: impl Fn(&[f64], &[f64]) -> f64) -> Estimate {
    let split = |pairs: &[(f64, f64)]| -> f64 {
        let (left, right): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        statistic(&left, &right)
    };
    let value = split(pairs);
    if pairs.is_empty() {
        return Estimate { value, low: value, high: value };
    }
    let mut noise = Noise::new(95);
    let draws: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let drawn: Vec<_> = (0..pairs.len()).filter_map(|_| pairs.get(noise.below(pairs.len())).copied()).collect();
            split(&drawn)
        })
        .collect();
    let draws = sorted(&draws);
    Estimate { value, low: sorted_quantile(&draws, 25), high: sorted_quantile(&draws, 975) }
}

/// The quotient of two medians, with its interval.
pub fn ratio_of_medians(pairs: &[(f64, f64)]) -> Estimate {
    bootstrap(pairs, |ours, stock| quotient(median(ours), median(stock)))
}

/// The median of the left values, with its interval.
pub fn median_with_interval(values: &[f64]) -> Estimate {
    let pairs: Vec<_> = values.iter().map(|&value| (value, 0.0)).collect();
    bootstrap(&pairs, |left, _| median(left))
}

/// A quotient; 1 for two zeros.
pub fn quotient(left: f64, right: f64) -> f64 {
    if right == 0.0 && left == 0.0 { 1.0 } else { left / right }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-9, "{left} against {right}");
    }

    #[test]
    fn quantiles_are_those_of_the_textbook() {
        near(median(&[3.0, 1.0, 2.0]), 2.0);
        near(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        near(p90(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]), 9.1);
        near(median(&[]), 0.0);
    }

    #[test]
    fn an_interval_holds_its_estimate_and_grows_with_the_spread() {
        let narrow = ratio_of_medians(&[(1.0, 2.0), (1.1, 2.1), (0.9, 2.0), (1.0, 1.9)]);
        let wide = ratio_of_medians(&[(1.0, 2.0), (2.1, 2.1), (0.3, 2.0), (1.0, 0.9)]);
        near(narrow.value, 0.5);
        assert!(narrow.low <= narrow.value && narrow.value <= narrow.high);
        assert!(wide.high - wide.low > narrow.high - narrow.low);
    }
}
