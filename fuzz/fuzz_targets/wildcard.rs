#![no_main]
//! Wild cards against a plain, slow matcher; sets (which it lacks) are only matched.

use fd_fileset::{Wildcard, WildcardFlags};
use libfuzzer_sys::fuzz_target;

/// Whether the pattern matches the whole text, by trying everything.
fn slow(pattern: &[u8], text: &[u8], flags: WildcardFlags) -> bool {
    let fold = |byte: u8| if flags.fold_case { byte.to_ascii_lowercase() } else { byte };
    let free = |byte: u8| !(flags.path_name && byte == b'/');
    let literal = |byte: u8, behind: &[u8]| {
        text.split_first().is_some_and(|(first, rest)| fold(*first) == fold(byte) && slow(behind, rest, flags))
    };
    match pattern {
        [] => text.is_empty(),
        [b'*', behind @ ..] => {
            slow(behind, text, flags)
                || text.split_first().is_some_and(|(first, rest)| free(*first) && slow(pattern, rest, flags))
        }
        [b'?', behind @ ..] => {
            text.split_first().is_some_and(|(first, rest)| free(*first) && slow(behind, rest, flags))
        }
        [b'\\', quoted, behind @ ..] => literal(*quoted, behind),
        [byte, behind @ ..] => literal(*byte, behind),
    }
}

// Flags, pattern, NUL, text.
fuzz_target!(|data: &[u8]| {
    let Some((&bits, rest)) = data.split_first() else { return };
    let Some(at) = rest.iter().position(|byte| *byte == 0) else { return };
    let (pattern, text) = (&rest[..at], &rest[at + 1..]);
    let flags = WildcardFlags { fold_case: bits & 1 != 0, path_name: bits & 2 != 0 };
    let fast = Wildcard::new(pattern, flags).is_match(text);
    if pattern.len() <= 12 && text.len() <= 16 && !pattern.contains(&b'[') {
        assert_eq!(fast, slow(pattern, text, flags), "{} on {}", pattern.escape_ascii(), text.escape_ascii());
    }
});
