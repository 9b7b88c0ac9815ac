//! The interface of the regular expression engine, and sets of expressions. The engine is the C
//! library's (crate `fd-os`), because a FileSet is written for its dialect and its locale
//! (reference 03 §4.5).

use std::ffi::{CStr, CString};

use crate::matching::candidates::Candidates;
use crate::matching::literals;

/// Compiles POSIX extended regular expressions.
pub trait RegexCompiler {
    /// Compiles `pattern`; a bad one returns the C library's error text.
    fn compile(&self, pattern: &[u8], ignore_case: bool) -> Result<Box<dyn Regex>, String>;
}

/// A compiled regular expression, shared by the threads of a job.
pub trait Regex: Send + Sync {
    /// Whether the expression is found anywhere in `text`.
    fn is_match(&self, text: &CStr) -> bool;

    /// Approximate memory of the compiled form in bytes; it counts for the bound of a FileSet.
    fn memory(&self) -> usize;
}

/// Many expressions, any of which may match.
#[derive(Default)]
pub(crate) struct RegexSet {
    expressions: Vec<Box<dyn Regex>>,
    /// For each the bytes that it needs, until the set is sealed.
    literals: Vec<Vec<Vec<u8>>>,
    ignore_case: bool,
    candidates: Candidates,
}

impl RegexSet {
    /// Adds a compiled expression; `pattern` and `ignore_case` are what it was compiled from.
    pub(crate) fn push(&mut self, expression: Box<dyn Regex>, pattern: &[u8], ignore_case: bool) {
        self.expressions.push(expression);
        self.literals.push(literals::of_regex(pattern, ignore_case));
        self.ignore_case |= ignore_case;
    }

    /// Call it once, when the set is complete.
    pub(crate) fn seal(&mut self) {
        self.candidates = Candidates::new(&std::mem::take(&mut self.literals), self.ignore_case);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.expressions.is_empty()
    }

    /// Whether any expression is found in the text. The text ends at its first NUL byte, as in C.
    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        let mut c_text: Option<CString> = None;
        self.candidates.any(text, |expression| {
            let c_text = c_text.get_or_insert_with(|| {
                let until_nul = text.split(|byte| *byte == 0).next().unwrap_or_default();
                CString::new(until_nul).unwrap_or_default()
            });
            self.expressions.get(expression).is_some_and(|expression| expression.is_match(c_text))
        })
    }
}
