//! What a user reads of key files, in the stock daemon's words (reference 04 §12.1).

/// What was tried, and one thing that OpenSSL says about it.
pub(crate) fn step_failed(step: &str, error: &str) -> String {
    format!("{step}: ERR={error}")
}
