#![no_main]
#![expect(dead_code, reason = "of the program's files only what is fuzzed is called")]
//! `hosts.allow` and `hosts.deny`, with a NUL byte between them. Of patterns that begin with `u` it
//! is not known whether they match: whatever is true of them, no caller is let in who should not.

#[path = "shared/security.rs"]
mod security;
#[path = "../../crates/bacula-fd/src/shortage.rs"]
#[rustfmt::skip]
mod shortage;

use libfuzzer_sys::fuzz_target;
use security::hosts_access::{Answer, decide};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let (allow, deny) = text.split_once('\0').unwrap_or((&text, ""));
    let lets_in = |unknown: Answer| {
        let answer = |token: &str| match token.as_bytes().first() {
            Some(b'u') => unknown,
            Some(b'y') => Answer::Yes,
            _ => Answer::No,
        };
        decide(allow, deny, &answer, &answer)
    };
    assert!(!lets_in(Answer::Unknown) || lets_in(Answer::Yes) && lets_in(Answer::No));
});
