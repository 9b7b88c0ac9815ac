//! The reference's streams, byte by byte: worked examples (§7), malformed streams (§8), odd ones
//! (§9).

use super::decode::{Error, decode};
use super::{LzoEncoder, decompress};

/// The reference's notation (§2): hex bytes, `00*19`, `80..97`, `"text"`, `R(n)`, `( … )*N`.
fn bytes(mut text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        text = text.trim_start();
        let Some(first) = text.chars().next() else { return out };
        let (item, rest) = match first {
            '"' => {
                let (item, rest) = text[1..].split_once('"').unwrap();
                (item.as_bytes().to_vec(), rest)
            }
            '(' => {
                let (item, rest) = text[1..].split_once(')').unwrap();
                (bytes(item), rest)
            }
            'R' => {
                let (count, rest) = text[2..].split_once(')').unwrap();
                (random(count.parse().unwrap()), rest)
            }
            _ => {
                let from = u8::from_str_radix(&text[..2], 16).unwrap();
                match text[2..].strip_prefix("..") {
                    Some(rest) => ((from..=u8::from_str_radix(&rest[..2], 16).unwrap()).collect(), &rest[2..]),
                    None => (vec![from], &text[2..]),
                }
            }
        };
        let (count, rest) = match rest.strip_prefix('*') {
            Some(rest) => {
                let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                (rest[..digits].parse().unwrap(), &rest[digits..])
            }
            None => (1, rest),
        };
        out.extend(item.repeat(count));
        text = rest;
    }
}

/// The first `count` bytes of the reference's generator.
fn random(count: usize) -> Vec<u8> {
    let mut x = 0x1234_5678_u32;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        x.to_be_bytes()[0]
    };
    (0..count).map(|_| next()).collect()
}

/// Result and number of bytes, as the C library returns them.
fn verdict(stream: &[u8], limit: usize) -> (Result<(), Error>, Vec<u8>) {
    let mut buffer = b"before".to_vec();
    let (written, verdict) = decode(stream, limit, &mut buffer, 6);
    assert!(written <= limit);
    assert_eq!(buffer[..6], *b"before");
    (verdict, buffer[6..6 + written].to_vec())
}

const LAZY_DOG: &str = r#"("the quick brown fox jumps over the lazy dog. ")*6"#;
const TRAILING: &str = r#""abcdefghiXabcdefghYZabcdefghUVWabcdefgh0123456789abcdefghijABCDEFGHIJKLMNOPQRSTUVWXYZ""#;

/// §7: input and stream.
const WORKED: &[(&str, &str)] = &[
    ("", "11 00 00"),
    (r#""a""#, "12 61 11 00 00"),
    (r#""abc""#, "14 61 62 63 11 00 00"),
    ("00..03", "15 00..03 11 00 00"),
    ("00..0b", "1d 00..0b 11 00 00"),
    ("00..10", "22 00..10 11 00 00"),
    ("00..11", "23 00..11 11 00 00"),
    ("00..ed", "ff 00..ed 11 00 00"),
    ("00..ee", "00 dd 00..ee 11 00 00"),
    ("R(273)", "00 ff R(273) 11 00 00"),
    ("R(274)", "00 00 01 R(274) 11 00 00"),
    ("R(300)", "00 00 1b R(300) 11 00 00"),
    ("00*40", "02 00*5 32 10 00 0c 00*15 11 00 00"),
    ("00*65536", "02 00*5 20 00*192 8b 10 00 0d 00*16 20 00*64 0b 00 00 00 01 00*19 11 00 00"),
    ("00*65536", "12 00 20 00*256 de 00 00 11 00 00"),
    (
        LAZY_DOG,
        r#"00 0d "the quick brown fox jumps over " 78 03 06 "lazy dog." 95 01 "q" 20 ab b0 00
           0d "r the lazy dog. " 11 00 00"#,
    ),
    (LAZY_DOG, r#"30 "the quick brown fox jumps over " 78 03 07 "lazy dog. " 20 c0 b0 00 11 00 00"#),
    (
        TRAILING,
        r#"07 "abcdefghiX" e6 01 "YZ" e7 01 "UVW" e8 01 07 "0123456789" e4 02
           00 0a "ijABCDEFGHIJKLMNOPQRSTUVWXYZ" 11 00 00"#,
    ),
    (r#""01234567" 00*2040 "01234567" 80..97"#, r#"06 "01234567" 00 20 00*7 dd 00 00 fc ff 00 06 80..97 11 00 00"#),
    (r#""01234567" 00*2041 "01234567" 80..97"#, r#"06 "01234567" 00 20 00*7 de 00 00 26 00 20 00 06 80..97 11 00 00"#),
    (
        r#""01234567" 00*16376 "01234567" 80..97"#,
        r#"06 "01234567" 00 20 00*64 16 00 00 26 fc ff 00 06 80..97 11 00 00"#,
    ),
    (
        r#""01234567" 00*16377 "01234567" 80..97"#,
        r#"06 "01234567" 00 20 00*64 17 00 00 16 04 00 00 06 80..97 11 00 00"#,
    ),
    (
        r#""01234567" 00*32759 "01234567" 80..97"#,
        r#"06 "01234567" 00 20 00*128 55 00 00 16 fc ff 00 06 80..97 11 00 00"#,
    ),
    (
        r#""01234567" 00*32760 "01234567" 80..97"#,
        r#"06 "01234567" 00 20 00*128 56 00 00 1e 00 00 00 06 80..97 11 00 00"#,
    ),
    (
        r#""0123456789ABCDEF" 00*49135 "0123456789ABCDEF" 80..97"#,
        r#"22 "0123456789ABCDEF" 00 (20 00*7 e6 00 00)*23 20 00*7 d4 00 00 18 07 fc ff 00 06 80..97 11 00 00"#,
    ),
    (
        r#""0123456789ABCDEF" 00*49136 "0123456789ABCDEF" 80..97"#,
        r#"22 "0123456789ABCDEF" 00 (20 00*7 e6 00 00)*23 20 00*7 d5 00 00
           00 16 "0123456789ABCDEF" 80..97 11 00 00"#,
    ),
    ("R(65536)", "00 00*256 ee R(65536) 11 00 00"),
    (r#""a"*20"#, "12 61 31 00 00 11 00 00"),
    (r#""ab"*20"#, "13 61 62 20 05 04 00 11 00 00"),
    (r#""abc"*20"#, "14 61 62 63 20 18 08 00 11 00 00"),
    (
        r#""0123456789XYZ" 00*2040 "abcdefghijXYZklmnopqrs""#,
        r#"1f "0123456789XYZ" 00 20 00*7 dd 00 00 07 "abcdefghij" 00 01 06 "klmnopqrs" 11 00 00"#,
    ),
    (
        TRAILING,
        r#"1b "abcdefghiX" e6 01 "YZ" e7 01 "UVW" e8 01 07 "0123456789" 27 c0 00
           00 03 "jABCDEFGHIJKLMNOPQRST" 49 06 "X" 00 10 11 00 00"#,
    ),
];

/// §8: stream, limit, the C library's code, bytes produced before the error.
const MALFORMED: &[(&str, usize, i32, usize)] = &[
    ("", 16, -4, 0),
    ("11", 16, -4, 0),
    ("11 00", 16, -4, 0),
    ("11 00 00 00", 16, -8, 0),
    ("12 61 11 00 00 12 62 11 00 00", 16, -8, 1),
    ("12 61", 16, -4, 0),
    ("12 61 11 00", 16, -4, 0),
    ("14 61 62 11 00 00", 16, -4, 0),
    ("15 61 62 63 64", 16, -4, 0),
    ("ff 61*237 11 00 00", 300, -4, 0),
    ("01 61 62 63 11 00", 16, -4, 0),
    ("00 00 00 00 00", 64, -4, 0),
    ("00 00 01 61*273 11 00 00", 512, -4, 0),
    ("15 61 62 63 64 20 00 00 00", 64, -4, 4),
    ("15 61 62 63 64 20 01 ff", 64, -4, 4),
    ("15 61 62 63 64 10 01 04", 64, -4, 4),
    ("15 61 62 63 64 40", 64, -4, 0),
    ("12 61 40 08 11 00 00", 64, -6, 1),
    ("13 61 62 27 08 00 11 00 00", 64, -6, 2),
    ("12 61 16 04 00 11 00 00", 64, -6, 1),
    ("11 04 00 11 00 00", 64, -6, 0),
    ("10 01 04 00 11 00 00", 64, -6, 0),
    ("12 61 19 00 00", 64, -6, 1),
    ("13 61 62 08 00 11 00 00", 64, -6, 2),
    ("15 61 62 63 64 00 00 11 00 00", 64, -6, 4),
    ("15 61 62 63 64 01 65 66 67 68 11 00 00", 64, -6, 4),
    ("13 61 62 02 63 64 65 66 67 11 00 00", 64, -6, 2),
    ("11 01 15 61 62 63 64 11 00 00", 64, -6, 0),
    ("15 61 62 63 64 11 00 00", 3, -5, 0),
    ("12 61 11 00 00", 0, -5, 0),
    ("12 61 3f 00 00 11 00 00", 33, -5, 1),
    ("12 61 21 01 00 62 11 00 00", 4, -5, 4),
    ("12 61 21 01 00 62 11 00", 16, -4, 4),
    ("12 61 21 03 00 62 63 11 00 00", 16, -4, 4),
    ("15 61 62 63 64 20 00*1000 01 00 00 11 00 00", 65536, -5, 4),
    ("15 61", 3, -5, 0),
    ("13 61 62 3f fc ff 11 00 00", 2, -6, 2),
    ("15 61 62 63 64 40 00 11", 64, -4, 7),
    ("15 61 62 63 64 40 00 00", 64, -4, 7),
];

/// §9: stream, limit, output.
const ODD: &[(&str, usize, &str)] = &[
    ("11 00 00", 0, ""),
    ("10 01 00 00", 0, ""),
    ("11 03 00", 0, ""),
    ("12 61 17 00 00", 1, "61"),
    ("01 61 62 63 64 11 00 00", 4, "61..64"),
    ("14 61 62 63 00 00 11 00 00", 5, "61 62 63 63 63"),
    ("12 61 21 00 00 11 00 00", 4, "61*4"),
    ("12 61 3f 00 00 11 00 00", 34, "61*34"),
    ("12 61 20 01 00 00 11 00 00", 35, "61*35"),
    ("12 61 60 00 01 65 66 67 68 11 00 00", 9, "61*5 65..68"),
    ("12 61 21 01 00 62 11 00 00", 5, "61*4 62"),
];

#[test]
fn worked_examples_decode_within_their_exact_size() {
    for (input, stream) in WORKED {
        let (input, stream) = (bytes(input), bytes(stream));
        assert_eq!(verdict(&stream, input.len()), (Ok(()), input));
    }
    assert_eq!(random(16), bytes("87 15 48 81 70 29 89 c5 d3 3a 69 4e fc 35 8c f6"));
}

#[test]
fn worked_examples_of_literals_are_encoded_byte_by_byte() {
    for (input, stream) in WORKED.iter().take(12) {
        let mut out = Vec::new();
        LzoEncoder::new().append(&bytes(input), &mut out).unwrap();
        assert_eq!(out, bytes(stream), "{input}");
    }
}

#[test]
fn malformed_streams_return_the_c_library_s_code_and_byte_count() {
    for &(stream, limit, code, written) in MALFORMED {
        let (verdict, out) = verdict(&bytes(stream), limit);
        assert_eq!((verdict.map_err(Error::code), out.len()), (Err(code), written), "{stream} within {limit}");
    }
}

#[test]
fn unusual_valid_streams_are_accepted() {
    for &(stream, limit, output) in ODD {
        assert_eq!(verdict(&bytes(stream), limit), (Ok(()), bytes(output)), "{stream}");
    }
}

#[test]
fn cut_streams_trailing_bytes_and_small_limits_have_errors_of_their_own() {
    for (input, stream) in WORKED {
        let (input, stream) = (bytes(input), bytes(stream));
        // Each place of the short ones, some fifty of those of 64 KiB.
        let steps = |len: usize| (0..len).step_by(1 + len / 700 * 13);
        for cut in steps(stream.len()).chain(stream.len().checked_sub(1)) {
            let (verdict, out) = verdict(&stream[..cut], input.len());
            assert_eq!(verdict, Err(Error::InputOverrun), "{cut} bytes of {}", stream.len());
            assert!(input.starts_with(&out));
        }
        for limit in steps(input.len()).chain(input.len().checked_sub(1)) {
            let (verdict, out) = verdict(&stream, limit);
            assert_eq!(verdict, Err(Error::OutputOverrun), "limit {limit} of {}", input.len());
            assert!(input.starts_with(&out));
        }
        for more in [0, 0x11, 0xff] {
            let longer = [stream.as_slice(), &[more]].concat();
            assert_eq!(verdict(&longer, input.len() + 1), (Err(Error::InputNotConsumed), input.clone()));
        }
    }
}

#[test]
fn an_error_leaves_the_output_as_it_was() {
    let mut out = b"before".to_vec();
    for &(stream, limit, ..) in MALFORMED {
        assert!(decompress(&bytes(stream), limit, &mut out).is_err());
        assert_eq!(out, b"before");
    }
    // A limit at the end of the address space is no reason to overflow.
    assert_eq!(decompress(&bytes("12 61 11 00 00"), usize::MAX, &mut out), Ok(()));
    assert_eq!(out, b"beforea");
}
