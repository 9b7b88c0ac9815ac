//! Numbers, durations and speeds as people write them.

use super::*;

#[test]
fn durations_sum_their_groups() {
    let cases: [(&str, u64); 26] = [
        ("5\t h", 18_000),
        ("5   h   6 ", 18_006),
        ("5", 5),
        ("5seconds", 5),
        ("5s", 5),
        ("5n", 300),
        ("5mi", 300),
        ("5mins", 300),
        ("5Minutes", 300),
        ("5m", 12_960_000),
        ("5mo", 12_960_000),
        ("1month", 2_592_000),
        ("1w", 604_800),
        ("1q", 7_862_400),
        ("1y", 31_536_000),
        ("1.5hours", 5400),
        ("1h30min", 5400),
        ("1hour30", 3630),
        ("5.h", 18_000),
        ("0", 0),
        ("99999999999", 99_999_999_999),
        ("1hours5m3s", 12_963_603),
        ("0.5s0.5s", 1),
        ("1.999999min", 119),
        ("", 0),
        ("99999999999999999999", 9_223_372_036_854_775_807),
    ];
    for (text, seconds) in cases {
        assert_eq!(duration(text.as_bytes()), Ok(seconds), "{text}");
    }
}

#[test]
fn a_bad_duration_returns_the_rest_of_the_text() {
    let cases = [
        ("abc", "abc"),
        ("5foo", ""),
        ("-5", "-5"),
        ("1.5.2h", "1.5.2h"),
        (".5h", ".5h"),
        ("1e3", "3"),
        ("5foo3hours", "3hours"),
        ("5h-", "-"),
        (" ", ""),
        ("5 foo  6", "  6"),
        ("5 . 3", ". 3"),
        ("5 min. ", "."),
        ("60secondes", ""),
        ("5minutesx", ""),
    ];
    for (text, rest) in cases {
        assert_eq!(duration(text.as_bytes()), Err(BadDuration(rest.as_bytes().to_vec())), "{text}");
    }
}

#[test]
fn a_kilo_of_a_speed_is_1000_or_1024() {
    let cases: [(&str, Option<u64>); 18] = [
        ("100k", Some(102_400)),
        ("100kb", Some(100_000)),
        ("100kb/s", Some(100_000)),
        ("100kib/s", Some(102_400)),
        ("1m", Some(1_048_576)),
        ("1mb", Some(1_000_000)),
        ("1mib", Some(1_048_576)),
        ("1.5m", Some(1_572_864)),
        ("1K", Some(1024)),
        ("5k5", Some(5120)),
        ("5/", Some(5)),
        ("1.9", Some(1)),
        ("1g", None),
        ("5b", None),
        ("abc", None),
        (".5k", None),
        ("5.5.", None),
        ("", None),
    ];
    for (text, bytes) in cases {
        assert_eq!(speed(text.as_bytes()), bytes, "{text}");
    }
}

#[test]
fn numbers_begin_with_a_digit() {
    for good in ["5", "5.9", "1e3", "1e+3", "5.", "5.e3", "+5", "-0.5", "007", "1E-3"] {
        assert!(is_number(good.as_bytes()), "{good}");
    }
    for bad in ["", "1e", ".5", "-", "+", "--5", "5k", "0x10", "5 ", " 5", "1.2.3", "5e5e5"] {
        assert!(!is_number(bad.as_bytes()), "{bad}");
    }
    assert_eq!(integer(b"99999999999999999999"), (7_766_279_631_452_241_919, false));
    assert_eq!(integer(b"-0.5"), (0, true));
    assert_eq!(leading_number(b"-12ab"), -12);
    assert_eq!(leading_number(b"9102abc"), 9102);
    assert_eq!(leading_number(b"99999999999999999999"), i64::MAX);
}
