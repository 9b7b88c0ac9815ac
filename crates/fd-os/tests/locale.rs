//! The dialect of regular expressions in two locales, as seen on the stock daemon (reference 03
//! §4.5).

#![expect(clippy::expect_used, reason = "what helps a test fails the test, like the test itself")]

use std::env;
use std::process::Command;

use fd_os::locale;
use fd_os::regex::{PosixRegex, RegexOptions};

fn matches(pattern: &str, ignore_case: bool, text: &[u8]) -> bool {
    let options = RegexOptions { ignore_case, newline: false };
    PosixRegex::new(pattern.as_bytes(), options).expect("a good expression").is_match(text)
}

/// What a process has that is to change its locale.
const ASKED: &str = "FERROFD_TEST_OF_LOCALES";

/// The locale belongs to the process, so each one gets a process of its own.
#[test]
fn expressions_depend_on_the_locale() {
    for name in ["C", "C.UTF-8"] {
        let program = env::current_exe().expect("this program");
        let arguments = ["--exact", "expressions_in_the_locale_of_this_process"];
        let status = Command::new(program).args(arguments).env("LC_ALL", name).env(ASKED, "yes").status();
        assert!(status.expect("a process").success(), "{name}");
    }
}

#[test]
fn expressions_in_the_locale_of_this_process() {
    // The test above runs this one with both locales. Beside others it must not change any.
    if env::var_os(ASKED).is_none() {
        return skip::unasked();
    }
    let is_utf8 = env::var("LC_ALL").as_deref() == Ok("C.UTF-8");
    locale::set_from_environment();
    let letter = "/x/é".as_bytes();
    let invalid = b"/x/bad\xff".as_slice();
    assert_eq!(matches("/x/.$", false, letter), is_utf8);
    assert_eq!(matches("/x/..$", false, letter), !is_utf8);
    assert_eq!(matches("É", true, letter), is_utf8);
    for pattern in ["/x/.*$", "bad.$", "bad[^a]$"] {
        assert_eq!(matches(pattern, false, invalid), !is_utf8, "{pattern}");
    }
    assert!(matches("bad", false, invalid));
}

#[test]
fn the_dialect_is_glibcs() {
    for (pattern, text) in [
        (r"\w\W\s\S", "a- b"),
        (r"\<word\>", "a word here"),
        (r"\bword\b", "a word here"),
        (r"o\Br", "word"),
        (r"(ab)\1", "abab"),
        ("a{2}", "aa"),
        ("a|b", "b"),
        ("[[:upper:]]", "A"),
        (".", "\n"),
        (")", ")"),
        ("a**", "aaa"),
        ("", "anything"),
    ] {
        assert!(matches(pattern, false, text.as_bytes()), "{pattern}");
    }
    for (pattern, text) in [(r"\d", "1"), ("^b", "a\nb"), ("a$", "a\nb"), (r"o\br", "word")] {
        assert!(!matches(pattern, false, text.as_bytes()), "{pattern}");
    }
}
