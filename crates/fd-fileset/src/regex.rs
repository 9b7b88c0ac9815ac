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

/// Literal search under the trait's name: enough for tests that don't care about the dialect.
#[cfg(test)]
pub(crate) mod literal {
    use super::{Regex, RegexCompiler};

    pub(crate) struct LiteralCompiler;
    struct Literal(Vec<u8>);

    impl RegexCompiler for LiteralCompiler {
        fn compile(&self, pattern: &[u8], ignore_case: bool) -> Result<Box<dyn Regex>, String> {
            if pattern == b"(" {
                return Err("Unmatched ( or \\(".to_owned());
            }
            let mut pattern = pattern.to_vec();
            if ignore_case {
                pattern.push(b'!');
            }
            Ok(Box::new(Literal(pattern)))
        }
    }

    impl Regex for Literal {
        fn is_match(&self, text: &[u8]) -> bool {
            self.0.is_empty() || text.windows(self.0.len()).any(|part| part == self.0)
        }
    }
}
