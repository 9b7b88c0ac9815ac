//! What the programs that walk a road of an administrator say, step by step.

use std::process::ExitCode;

use crate::{BedError, Result, say};

/// Prints a step of the road.
pub fn step(text: &str) {
    say(&format!("  {text}"));
}

/// An error of this text unless something is as it must be.
///
/// # Errors
/// It is not.
pub fn must(good: bool, text: impl FnOnce() -> String) -> Result<()> {
    if good { Ok(()) } else { Err(BedError::Usage(text())) }
}

/// Prints how the program's road ended.
pub fn end(program: &str, outcome: Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => {
            say(&format!("{program}: passed"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("{program}: FAILED: {error}"));
            ExitCode::FAILURE
        }
    }
}
