//! Snapshots, with a script in the place of the programs that make them: what the helper is called
//! with, what is saved, and what is told, beside the stock daemon (reference 07 §12).

#![expect(clippy::unwrap_used, reason = "a failed step of a test ends it")]

mod console;
mod died;
mod helper;
mod place;
mod rows;
