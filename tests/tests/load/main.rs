//! The daemon under load: many jobs, many at a time, many requests for the status meanwhile, and
//! connections that may carry only so much.
//!
//! `SOAK_JOBS=1000` makes the long form of the soak (some ten minutes); without it the same is done
//! with a few dozen.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what helps a test fails the test, like the test itself")]

mod bandwidth;
mod sessions;
mod soak;
