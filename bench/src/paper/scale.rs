//! From values to places in a figure, and what all figures share.

/// The stock daemon is light or hollow or dashed.
pub const STOCK: &str = "#b8b8b8";
/// Ours is dark or filled or solid.
pub const OURS: &str = "#303030";

/// An axis.
#[derive(Debug)]
pub struct Scale {
    low: f64,
    high: f64,
    is_logarithmic: bool,
    /// Values that are written at it.
    pub marks: Vec<f64>,
    span: (f64, f64),
}

impl Scale {
    /// From a power of ten to another, between two places.
    pub fn logarithmic(values: impl Iterator<Item = f64>, span: (f64, f64)) -> Self {
        let (low, high) = ends(values);
        let powers: Vec<i32> = (-6..=9).collect();
        let first = powers.iter().rev().find(|power| 10f64.powi(**power) <= low).copied().unwrap_or(-6);
        let last = powers.iter().find(|power| 10f64.powi(**power) >= high).copied().unwrap_or(9).max(first + 1);
        let marks = (first..=last).map(|power| 10f64.powi(power)).collect();
        Self { low: f64::from(first), high: f64::from(last), is_logarithmic: true, marks, span }
    }

    /// From zero to what is enough, in steps of a quarter, between two places.
    pub fn linear(values: impl Iterator<Item = f64>, span: (f64, f64)) -> Self {
        let (_, high) = ends(values);
        let steps = (1_u32..=40).find(|steps| f64::from(*steps) / 4.0 >= high).unwrap_or(40);
        let marks = (0..=steps).map(|step| f64::from(step) / 4.0).collect();
        Self { low: 0.0, high: f64::from(steps) / 4.0, is_logarithmic: false, marks, span }
    }

    /// Where a value is; at an end if it is beyond.
    pub fn place(&self, value: f64) -> f64 {
        let known = if self.is_logarithmic { value.max(1e-6).log10() } else { value };
        let part = (known - self.low) / (self.high - self.low);
        let (from, to) = self.span;
        from + part.clamp(0.0, 1.0) * (to - from)
    }
}

/// The least and the greatest positive value.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let positive = values.filter(|value| *value > 0.0 && value.is_finite());
    let (low, high) = positive.fold((f64::MAX, 0.0_f64), |(low, high), one| (low.min(one), high.max(one)));
    if high > 0.0 { (low, high) } else { (1.0, 1.0) }
}

/// A value with three digits at least.
pub fn shown(value: f64) -> String {
    if value < 10.0 { format!("{value:.2}") } else { format!("{value:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_hold_their_ends() {
        let span = (100.0, 200.0);
        let scales = [Scale::logarithmic([0.3, 25.0].into_iter(), span), Scale::linear([0.3, 1.1].into_iter(), span)];
        for scale in scales {
            assert!(scale.place(0.3) > 100.0 && scale.place(1.1) < 200.0, "{:?}", scale.marks);
        }
        assert_eq!(Scale::linear([0.3, 1.1].into_iter(), span).marks.last(), Some(&1.25));
    }
}
