//! What replicas say: medians and percentiles, their intervals, tests of whether one daemon is
//! faster, and how much.
//!
//! `paper/perf-analysis/check/check.py` computes the same once more. So every random number and
//! every order of summing is fixed here.

mod bootstrap;
mod draws;
mod percentile;
mod quantile;
mod ranks;
mod variation;

pub use bootstrap::{Draw, Estimate, Pairs, bca, between, median_with_interval, quotient_of_medians, ratio_of_medians};
pub use draws::{Draws, seed_of};
pub use percentile::{coverage, ranks_around};
pub use quantile::{float, median, p90, quotient, sorted, sorted_quantile};
pub use ranks::{Shift, cliffs_delta, hodges_lehmann, holm, sign_test, wilcoxon};
pub use variation::{Variation, variation};
