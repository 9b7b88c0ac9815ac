//! Messages about key files, in the stock daemon's words (reference 04 §12.1).

/// A failed step and one error of OpenSSL.
pub(crate) fn step_failed(step: &str, error: &str) -> String {
    format!("{step}: ERR={error}")
}
