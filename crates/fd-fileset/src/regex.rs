//! What the FileSet needs from a regular expression engine. The engine is the C library's (crate `fd-os`), because
//! a FileSet is written for its dialect and its locale (reference 03 §4.5).

/// Compiles POSIX extended regular expressions.
pub trait RegexCompiler {
    /// Compiles `pattern`; a bad one gives the C library's own words.
    fn compile(&self, pattern: &[u8], ignore_case: bool) -> Result<Box<dyn Regex>, String>;
}

/// A compiled regular expression, shared by the threads of a job.
pub trait Regex: Send + Sync {
    /// Whether the expression is found anywhere in `text`. A text cannot hold NUL bytes.
    fn is_match(&self, text: &[u8]) -> bool;
}
