#![no_main]
//! The two scanners behind every command: any line, any order of conversions.

use fd_bsock::scan::{Lenient, Strict, bash_spaces, unbash_spaces};
use libfuzzer_sys::fuzz_target;

// The first byte chooses the conversions, two bits each; the rest is the line.
fuzz_target!(|data: &[u8]| {
    let Some((&plan, line)) = data.split_first() else { return };
    let mut lenient = Lenient::new(line);
    let mut strict = Some(Strict::new(line));
    for step in 0..4 {
        match plan >> (2 * step) & 3 {
            0 => {
                let word = lenient.word(7);
                assert!(word.len() <= 7 && !word.iter().any(u8::is_ascii_whitespace));
                strict = strict.and_then(|mut scan| scan.word(7).is_some().then_some(scan));
            }
            1 => {
                let _ = (lenient.i32(), lenient.u64());
                strict = strict.and_then(|mut scan| scan.i32().is_some().then_some(scan));
            }
            2 => {
                let _ = (lenient.byte(), lenient.i64(), lenient.u32());
                strict = strict.and_then(|mut scan| scan.u64().is_some().then_some(scan));
            }
            _ => {
                if lenient.text("a =b ").is_none() {
                    break;
                }
                strict = strict.and_then(|mut scan| scan.text("a =b ").is_some().then_some(scan));
            }
        }
        assert!(line.ends_with(lenient.rest()));
    }
    if !line.contains(&1) {
        assert_eq!(unbash_spaces(&bash_spaces(line)), line);
    }
});
