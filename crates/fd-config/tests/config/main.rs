//! The configuration from text to typed values, against the messages of the stock programs, and
//! with broken input.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests, with their helpers")]

mod robustness;
mod stock_corpus;
mod typed;
mod world;
