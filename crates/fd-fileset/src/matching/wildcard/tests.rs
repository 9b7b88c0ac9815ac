//! Wild-cards against the answers of the C library.

use super::*;

fn plain(pattern: &str, text: &str) -> bool {
    wildcard(pattern.as_bytes(), text.as_bytes(), false)
}

fn folded(pattern: &str, text: &str) -> bool {
    wildcard(pattern.as_bytes(), text.as_bytes(), true)
}

fn enhanced(pattern: &str, text: &str) -> bool {
    let flags = WildcardFlags { fold_case: false, path_name: true };
    Wildcard::new(pattern.as_bytes(), flags).is_match(text.as_bytes())
}

/// Reference 03 §4.4.2, observed on the stock daemon.
#[test]
fn patterns_match_like_those_of_the_reference() {
    for (pattern, text) in [
        ("*.o", "/a/b.o"),
        ("/a/*", "/a/b/c"),
        ("/a/*", "/a/.h"),
        ("/a/*", "/a/"),
        ("/a?b", "/a/b"),
        ("a*b", "ab"),
        ("a**b", "aXb"),
        ("[^ab]c", "dc"),
        ("[]a]x", "]x"),
        ("[a-]x", "-x"),
        ("[a", "[a"),
        ("[]", "[]"),
        ("a[\\]]b", "a]b"),
        ("", ""),
        ("*", ""),
        ("**", "any/thing"),
    ] {
        assert!(plain(pattern, text), "{pattern} ~ {text}");
    }
    for (pattern, text) in [
        ("[!ab]c", "bc"),
        ("[!]a]x", "]x"),
        ("a\\*b", "aXb"),
        ("{a,b}", "a"),
        ("*/", "/a/b"),
        ("/x/**/c", "/x/c"),
        ("", "a"),
        ("?", ""),
        ("a*a", "a"),
    ] {
        assert!(!plain(pattern, text), "{pattern} ~ {text}");
    }
}

#[test]
fn case_is_folded_for_ascii_only() {
    assert!(folded("[A-C]x", "bx"));
    assert!(folded("*.O", "x.o"));
    assert!(folded("\\A[!b]", "aC"));
    assert!(!folded("[!b]", "B"));
    assert!(!folded("É", "é"));
    assert!(!plain("*.O", "x.o"));
    // Both ends of a range fold to small letters, so what stands between Z and a is in no range
    // across them.
    assert!(!folded("[Z-a]", "_"));
    assert!(plain("[Z-a]", "_"));
}

/// Where the dialect is not the C library's.
#[test]
fn patterns_that_the_c_library_reads_otherwise_match_like_the_reference() {
    assert!(!plain("[[:alpha:]]x", "ax"));
    assert!(plain("[[:alpha:]]x", ":]x"));
    assert!(plain("[[:alpha:]]x", "a]x"));
    assert!(plain("a\\", "a\\"));
    assert!(!plain("?", "é"));
    assert!(plain("??", "é"));
    assert!(!plain("[é]x", "éx"));
    assert!(!plain("[a-\\]]", "]"));
}

#[test]
fn bytes_of_a_range_compare_as_signed_numbers() {
    assert!(wildcard(b"[\xe9-a]", b"A", false), "from -23 to 97");
    assert!(wildcard(b"[\xe0-\xef]", b"\xe9", false));
    assert!(!wildcard(b"[a-\xe9]", b"z", false), "from 97 to -23");
}

#[test]
fn sets_that_are_not_closed_are_ordinary_characters() {
    assert!(plain("[a-", "[a-"));
    assert!(plain("x[!", "x[!"));
    assert!(plain("[\\]", "[]"), "the quoted bracket does not close");
    assert!(plain("[a\\", "[a\\"));
    assert!(plain("[*", "[anything"));
    assert!(!plain("[a", "a"));
    // Each is looked at once, and not up to the end of the pattern.
    let many = "[".repeat(900_000);
    assert!(plain(&many, &many));
}

/// Reference 03 §4.4.3.
#[test]
fn enhanced_wild_cards_stop_at_slashes() {
    assert!(!enhanced("*/c.o", "/t/d/sub/c.o"));
    assert!(enhanced("/t/d/*.o", "/t/d/a.o"));
    assert!(!enhanced("/t/d/*.o", "/t/d/sub/c.o"));
    assert!(enhanced("/t/d/*", "/t/d/a.o"));
    assert!(!enhanced("/t/d/*", "/t/d/sub/c.o"));
    assert!(!enhanced("/a?b", "/a/b"));
    assert!(!enhanced("/a[/]b", "/a/b"));
    assert!(!enhanced("/a[!x]b", "/a/b"));
    assert!(enhanced("/*/*/c", "/a/b/c"));
    assert!(!enhanced("*a*b", "xa/ab"));
    assert!(enhanced("*a*/b", "xaa/b"));
}

/// What the pattern means, found by trying everything. Only for short texts.
fn by_trying(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|at| by_trying(rest, &text[at..])),
        Some((wanted, rest)) => text
            .split_first()
            .is_some_and(|(byte, after)| (*wanted == b'?' || wanted == byte) && by_trying(rest, after)),
    }
}

#[test]
fn the_leftmost_place_of_each_part_is_enough() {
    let words = |letters: &[u8], longest: usize| {
        let mut all = vec![Vec::new()];
        let mut from = 0;
        for _ in 0..longest {
            let until = all.len();
            for at in from..until {
                for letter in letters {
                    all.push([all[at].as_slice(), &[*letter]].concat());
                }
            }
            from = until;
        }
        all
    };
    let texts = words(b"ab", 6);
    for pattern in words(b"ab*?", 5) {
        let compiled = Wildcard::new(&pattern, WildcardFlags::default());
        for text in &texts {
            assert_eq!(compiled.is_match(text), by_trying(&pattern, text), "{pattern:?} {text:?}");
        }
    }
}

#[test]
fn many_stars_take_no_longer_than_one_after_the_other() {
    let pattern = "*a".repeat(500) + "b";
    let text = "a".repeat(4000);
    assert!(!plain(&pattern, &text));
    assert!(plain(&pattern, &(text + "b")));
}
