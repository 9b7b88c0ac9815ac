//! POSIX extended regular expressions of the C library: leftmost-longest, in the locale of the
//! process.
//!
//! A FileSet and `RegexWhere` are written for this dialect, and no other engine matches it exactly
//! (reference 03 §4.5).

mod automaton;
mod set;
mod tree;
mod weight;

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::ops::Range;

pub use weight::{Weight, weigh};

/// Most groups that a match reports: the whole and `\1` to `\9`.
pub const GROUPS: usize = 10;

/// The places of a match and of its groups.
pub type Captures = [Option<Range<usize>>; GROUPS];

/// How an expression is compiled; it is always an extended one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RegexOptions {
    /// Letters match in either case, in the sense of the locale.
    pub ignore_case: bool,
    /// `.` and negated sets do not match a newline, `^` and `$` match at each.
    pub newline: bool,
}

/// An expression that does not compile, in the C library's words, such as `Unmatched ( or \(`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegexError {
    text: String,
}

impl RegexError {
    /// An expression that costs more than it may.
    pub fn too_big() -> Self {
        Self { text: describe(libc::REG_ESIZE, std::ptr::null()) }
    }

    /// There was no memory for an expression.
    pub fn no_memory() -> Self {
        Self { text: describe(libc::REG_ESPACE, std::ptr::null()) }
    }
}

impl std::fmt::Display for RegexError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for RegexError {}

/// A compiled expression.
pub struct PosixRegex {
    /// Boxed, because the C library may keep pointers into it.
    compiled: Box<libc::regex_t>,
}

// SAFETY: glibc's regexec takes a `const regex_t *` and locks its own internal state; POSIX
// requires it to be usable by several threads at once.
unsafe impl Send for PosixRegex {}
// SAFETY: as above; no method changes the compiled form.
unsafe impl Sync for PosixRegex {}

impl std::fmt::Debug for PosixRegex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PosixRegex").finish_non_exhaustive()
    }
}

impl PosixRegex {
    /// Compiles `pattern`, whatever that costs: memory, stack, and later time. A process that must
    /// not die compiles light ones only ([`weigh`]). What comes after a NUL byte does not count, as
    /// in C.
    ///
    /// # Errors
    /// The C library's words.
    pub fn new(pattern: &[u8], options: RegexOptions) -> Result<Self, RegexError> {
        let until_nul = pattern.split(|byte| *byte == 0).next().unwrap_or_default();
        let Ok(pattern) = CString::new(until_nul) else {
            return Err(RegexError { text: "Invalid regular expression".to_owned() });
        };
        let mut flags = libc::REG_EXTENDED;
        if options.ignore_case {
            flags |= libc::REG_ICASE;
        }
        if options.newline {
            flags |= libc::REG_NEWLINE;
        }
        let mut compiled: Box<MaybeUninit<libc::regex_t>> = Box::new(MaybeUninit::zeroed());
        // SAFETY: the first pointer is to a regex_t that regcomp fills, the second to a C string
        // that lives long enough.
        let code = unsafe { libc::regcomp(compiled.as_mut_ptr(), pattern.as_ptr(), flags) };
        if code != 0 {
            return Err(RegexError { text: describe(code, compiled.as_ptr()) });
        }
        // SAFETY: regcomp succeeded, so the regex_t is whole.
        let compiled = unsafe { compiled.assume_init() };
        Ok(Self { compiled })
    }

    /// Whether the expression matches anywhere in `text`. What comes after a NUL byte does not
    /// count.
    pub fn is_match(&self, text: &[u8]) -> bool {
        self.captures_of::<0>(text).is_ok_and(|found| found.is_some())
    }

    /// Whether the expression matches anywhere in `text`, without a copy of it.
    ///
    /// # Errors
    /// The C library's words: there was no memory to find out.
    pub fn is_match_c(&self, text: &CStr) -> Result<bool, RegexError> {
        self.execute(text, &mut [])
    }

    /// The first match, leftmost and then longest: the whole and its nine groups, as places in
    /// `text`. A group that took no part is `None`.
    ///
    /// # Errors
    /// The C library's words: there was no memory to find out.
    pub fn captures(&self, text: &[u8]) -> Result<Option<Captures>, RegexError> {
        self.captures_of::<GROUPS>(text)
    }

    fn captures_of<const COUNT: usize>(
        &self,
        text: &[u8],
    ) -> Result<Option<[Option<Range<usize>>; COUNT]>, RegexError> {
        let until_nul = text.split(|byte| *byte == 0).next().unwrap_or_default();
        let mut places = [libc::regmatch_t { rm_so: -1, rm_eo: -1 }; COUNT];
        let Ok(c_text) = CString::new(until_nul) else { return Ok(None) };
        if !self.execute(&c_text, &mut places)? {
            return Ok(None);
        }
        Ok(Some(places.map(|place| {
            let (start, end) = (usize::try_from(place.rm_so).ok()?, usize::try_from(place.rm_eo).ok()?);
            (start <= end && end <= text.len()).then_some(start..end)
        })))
    }

    fn execute(&self, text: &CStr, places: &mut [libc::regmatch_t]) -> Result<bool, RegexError> {
        // SAFETY: the regex_t was made by regcomp and lives as long as `self`; the text is a C
        // string; `places` has the length that is said.
        let code =
            unsafe { libc::regexec(&raw const *self.compiled, text.as_ptr(), places.len(), places.as_mut_ptr(), 0) };
        match code {
            0 => Ok(true),
            libc::REG_NOMATCH => Ok(false),
            code => Err(RegexError { text: describe(code, &raw const *self.compiled) }),
        }
    }
}

impl Drop for PosixRegex {
    fn drop(&mut self) {
        // SAFETY: the regex_t was made by regcomp and is not used again.
        unsafe { libc::regfree(&raw mut *self.compiled) };
    }
}

fn describe(code: libc::c_int, compiled: *const libc::regex_t) -> String {
    let mut buffer = [0_u8; 256];
    // SAFETY: the buffer has the length that is said; regerror writes a C string into it and only
    // reads the regex_t.
    unsafe { libc::regerror(code, compiled, buffer.as_mut_ptr().cast(), buffer.len()) };
    let text = buffer.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &[u8]) -> bool {
        PosixRegex::new(pattern.as_bytes(), RegexOptions::default()).unwrap().is_match(text)
    }

    #[test]
    fn the_dialect_is_that_of_the_c_library() {
        assert!(matches("a{2}|b", b"xaax"));
        assert!(matches(r"\w\b", b"/x"));
        assert!(!matches(r"^\d$", b"1"), "\\d is no class here");
        assert!(matches("a.c", b"a\nc"));
        assert!(matches("", b"anything"));
        assert!(matches("[[:digit:]]$", b"/t/1"));
    }

    #[test]
    fn errors_have_the_c_librarys_words() {
        let error =
            |pattern: &str| PosixRegex::new(pattern.as_bytes(), RegexOptions::default()).unwrap_err().to_string();
        assert_eq!(error("*a"), "Invalid preceding regular expression");
        assert_eq!(error("("), "Unmatched ( or \\(");
        assert_eq!(error("[a"), "Unmatched [, [^, [:, [., or [=");
        assert_eq!(error("a{1"), "Unmatched \\{");
    }

    #[test]
    fn the_longest_leftmost_match_is_taken() {
        let options = RegexOptions { ignore_case: true, newline: true };
        let regex = PosixRegex::new(b"AB|ABC(d)?(e)?", options).unwrap();
        let groups = regex.captures(b"xxabcdz").unwrap().unwrap();
        assert_eq!(groups[0], Some(2..6));
        assert_eq!(groups[1], Some(5..6));
        assert_eq!(groups[2], None);
        assert_eq!(regex.captures(b"nothing"), Ok(None));
    }

    #[test]
    fn a_back_reference_is_what_its_group_has_matched() {
        assert!(matches("^(.)\\1$", b"aa") && !matches("^(.)\\1$", b"ab"));
    }

    #[test]
    fn threads_share_an_expression() {
        let regex = PosixRegex::new(b"(a|b)*c", RegexOptions::default()).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).all(|_| regex.is_match(b"ababababc")).then_some(()).unwrap());
            }
        });
    }
}
