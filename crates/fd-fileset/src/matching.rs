//! Wild-cards, regular expressions, and sets of them.

pub(crate) mod candidates;
pub(crate) mod literals;
pub(crate) mod patterns;
pub(crate) mod regex;
pub(crate) mod wildcard;
