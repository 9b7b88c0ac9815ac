//! What a check has found.

/// How it stands with one thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Nothing is wrong.
    Good,
    /// Jobs run, but not as they should, or not for long.
    Warning,
    /// The daemon does not start, or jobs fail.
    Fault,
}

/// One line of the report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Finding {
    /// What was looked at, in one or two words.
    pub(super) area: &'static str,
    pub(super) state: State,
    /// What was found.
    pub(super) text: String,
    /// What to do about it; empty if nothing.
    pub(super) hint: String,
}

impl Finding {
    /// Nothing is wrong.
    pub(super) fn good(area: &'static str, text: impl Into<String>) -> Self {
        Self { area, state: State::Good, text: text.into(), hint: String::new() }
    }

    /// Jobs run, but not as they should.
    pub(super) fn warning(area: &'static str, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { area, state: State::Warning, text: text.into(), hint: hint.into() }
    }

    /// The daemon does not start, or jobs fail.
    pub(super) fn fault(area: &'static str, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { area, state: State::Fault, text: text.into(), hint: hint.into() }
    }
}
