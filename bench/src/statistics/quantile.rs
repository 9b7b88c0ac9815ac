//! Medians and percentiles.

/// A number for a computation; what counts or measures here is far below 2⁵³.
#[expect(clippy::cast_precision_loss, reason = "the last digits of a measurement mean nothing")]
pub fn float(number: u64) -> f64 {
    number as f64
}

/// The values in their order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The quantile of a sorted list between its neighbours, as most programs compute it (type 7 of
/// Hyndman and Fan); 0 for an empty list.
pub fn sorted_quantile(sorted: &[f64], thousandths: usize) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = last * thousandths;
    let (at, between) = (place / 1000, float((place % 1000) as u64) / 1000.0);
    let low = sorted.get(at).copied().unwrap_or_default();
    let high = sorted.get(at + 1).copied().unwrap_or(low);
    low + (high - low) * between
}

/// The middle of the values.
pub fn median(values: &[f64]) -> f64 {
    sorted_quantile(&sorted(values), 500)
}

/// What nine of ten values do not exceed.
pub fn p90(values: &[f64]) -> f64 {
    sorted_quantile(&sorted(values), 900)
}

/// A quotient; 1 for two zeros.
pub fn quotient(left: f64, right: f64) -> f64 {
    if right == 0.0 && left == 0.0 { 1.0 } else { left / right }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_textbook() {
        let near = |left: f64, right: f64| assert!((left - right).abs() < 1e-9, "{left} against {right}");
        near(median(&[3.0, 1.0, 2.0]), 2.0);
        near(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        near(p90(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]), 9.1);
        near(median(&[]), 0.0);
    }
}
