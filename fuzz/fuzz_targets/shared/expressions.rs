//! The regular expressions of the C library, as the daemon uses them within its own process.

use std::ffi::CStr;

use fd_fileset::{Regex, RegexCompiler};
use fd_os::regex::{PosixRegex, RegexError, RegexOptions, weigh};

pub struct Compiled(PosixRegex, usize);

impl Regex for Compiled {
    fn is_match(&self, text: &CStr) -> bool {
        self.0.is_match_c(text).is_ok_and(|found| found)
    }

    fn memory(&self) -> usize {
        self.1
    }
}

/// The daemon's own, without its second process: what is too heavy for this one is refused.
pub struct Compiler;

impl RegexCompiler for Compiler {
    fn compile(&self, pattern: &[u8], ignore_case: bool) -> Result<Box<dyn Regex>, String> {
        let Some(weight) = weigh(pattern, ignore_case) else { return Err(RegexError::too_big().to_string()) };
        assert!(weight.compiled <= 8 << 20 && weight.matching <= 16 << 20);
        let compiled = PosixRegex::new(pattern, RegexOptions { ignore_case, newline: false });
        Ok(Box::new(Compiled(compiled.map_err(|error| error.to_string())?, weight.compiled)))
    }
}
