//! Against examples that are published.

use super::*;

fn near(left: f64, right: f64, within: f64) {
    assert!((left - right).abs() <= within, "{left} against {right}");
}

/// Darwin's crossed and self-fertilized maize, differences of heights in eighths of an inch; the
/// example of `scipy.stats.wilcoxon`.
const MAIZE: [f64; 15] = [6.0, 8.0, 14.0, 16.0, 23.0, 24.0, 28.0, 29.0, 41.0, -48.0, 49.0, 56.0, 60.0, -67.0, 75.0];

/// Hamilton's depression scale before and after a therapy: Hollander and Wolfe's table 3.1, which R
/// has as the example of `wilcox.test`.
#[expect(clippy::approx_constant, reason = "it is what a patient had")]
const DEPRESSION: ([f64; 9], [f64; 9]) =
    ([1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30], [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]);

fn depression() -> Vec<f64> {
    DEPRESSION.0.iter().zip(DEPRESSION.1).map(|(before, after)| before - after).collect()
}

#[test]
fn wilcoxon_gives_the_published_probabilities() {
    near(wilcoxon(&MAIZE), 0.041_259_765_625, 1e-12);
    // R: V = 40, 0.01953 one-sided.
    near(wilcoxon(&depression()), 2.0 * 0.019_531_25, 1e-12);
    near(wilcoxon(&[]), 1.0, 0.0);
}

/// Ranks of |0, 1, 1, -2|: zero has rank 1 and is left out, the ones share 2.5, the last has 4.
/// Sums of 2.5, 2.5 and 4 of at least 5: 5, 6.5, 6.5 and 9, half of eight.
#[test]
fn zeros_and_equal_sizes_are_ranked() {
    near(wilcoxon(&[0.0, 1.0, 1.0, -2.0]), 1.0, 0.0);
    near(wilcoxon(&[0.0, 1.0, 1.0, 2.0]), 0.25, 1e-12);
}

/// Zar's ten deer: the hind leg is longer than the foreleg eight times, shorter twice.
#[test]
fn the_sign_test_gives_the_published_probability() {
    let deer = [4.0, 4.0, -3.0, 5.0, -1.0, 5.0, 6.0, 5.0, 6.0, 2.0];
    near(sign_test(&deer), 0.109_375, 1e-12);
    near(sign_test(&[0.0, 0.0]), 1.0, 0.0);
}

/// Hollander and Wolfe: the shift is 0.46, and the 96.1 % interval goes from 0.010 to 0.786.
#[test]
fn hodges_and_lehmanns_shift_is_the_published_one() {
    let shift = hodges_lehmann(&depression(), 0.96);
    near(shift.value, 0.46, 1e-9);
    let (low, high) = shift.interval.unwrap();
    near(low, 0.010, 1e-9);
    near(high, 0.786, 5e-4);
    assert_eq!(hodges_lehmann(&[1.0, 2.0], 0.95).interval, None);
}

/// The ages of `scipy.stats.mannwhitneyu`'s example, U = 17 of 20, and Aesop's hare and tortoises,
/// U = 25 of 36 for one and 11 for the other: delta = 2 U / all - 1.
#[test]
fn cliffs_delta_follows_from_the_published_u() {
    near(cliffs_delta(&[19.0, 22.0, 16.0, 29.0, 24.0], &[20.0, 11.0, 17.0, 12.0]), 0.7, 1e-12);
    let (tortoises, hares) = ([1.0, 7.0, 8.0, 9.0, 10.0, 11.0], [2.0, 3.0, 4.0, 5.0, 6.0, 12.0]);
    near(cliffs_delta(&tortoises, &hares), 14.0 / 36.0, 1e-12);
    near(cliffs_delta(&hares, &tortoises), -14.0 / 36.0, 1e-12);
}

/// Four hypotheses with 0.01, 0.04, 0.03 and 0.005: the usual example of Holm's method.
#[test]
fn holm_gives_the_published_corrections() {
    let got = holm(&[0.01, 0.04, 0.03, 0.005]);
    for (got, wanted) in got.iter().zip([0.03, 0.06, 0.06, 0.02]) {
        near(*got, wanted, 1e-12);
    }
}
