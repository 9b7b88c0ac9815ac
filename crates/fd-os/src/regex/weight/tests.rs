//! Expressions of file sets, heavy ones, and odd ones.

use super::*;

fn light(pattern: &str) -> Option<Weight> {
    let sensitive = weigh(pattern.as_bytes(), false);
    let insensitive = weigh(pattern.as_bytes(), true);
    assert_eq!(sensitive.is_some(), insensitive.is_some(), "{pattern}");
    sensitive
}

#[test]
fn usual_expressions_of_file_sets_are_light() {
    let long = format!("^/srv/({})/.*", (0..150).map(|n| format!("project{n:03}")).collect::<Vec<_>>().join("|"));
    for pattern in [
        "",
        r".*\.o$",
        r"\.(jpg|jpeg|png|gif|mp3|mp4|avi|mkv|iso)$",
        r"^/home/[^/]+/\.(cache|thumbnails|local/share/Trash)(/|$)",
        r"^/var/lib/[a-z0-9_-]+/.*/(tmp|cache)/.*\.[0-9]{1,5}$",
        r"[[:digit:]]{4}-[[:digit:]]{2}-[[:digit:]]{2}",
        r"(^|/)\.git(/|$)",
        r".*/(core|vgcore)\.[0-9]+$",
        r"/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/",
        r"^/home/(a|b|c).*/.*Größe.*\.[Tt][Xx][Tt]$",
        r"\<tmp\>|~$|^#.*#$",
        &long,
    ] {
        let weight = light(pattern).unwrap_or_else(|| panic!("{pattern}"));
        assert!(weight.compiled < 2 << 20 && weight.matching < 16 << 20, "{pattern}: {weight:?}");
    }
}

#[test]
fn unbounded_expressions_are_heavy() {
    let deep = format!("{}a{}", "(".repeat(5000), ")".repeat(5000));
    let dense = "a?".repeat(3000);
    // Each is within its own bound, and together they are deep.
    let nested =
        |repetition: &str| (0..90).fold("a".to_owned(), |inner, _| format!("({inner}{})", repetition.repeat(90)));
    for pattern in [
        r"(a)\1",
        r"((a*)*)*\1c",
        "((a{1,200}){1,200}){1,20}",
        "a{32767}",
        "a{0}{32767}{32767}{32767}",
        "(|){32767}",
        "(a?){2000}",
        ".*a.{30}x$",
        "[ab]*a[ab]{20}x$",
        &deep,
        &"(".repeat(5000),
        &format!("a{}", "*".repeat(5000)),
        &dense,
        &nested("?"),
        &nested("{1}"),
        &"x".repeat(100_000),
    ] {
        assert_eq!(light(pattern), None, "{}", pattern.get(..40).unwrap_or(pattern));
    }
}

#[test]
fn odd_expressions_are_read_to_their_end() {
    for pattern in [
        "(", ")", "[", "[]", "[^", "[[:", "[a-", "[]-a]", "[z-a]", "{", "a{", "a{1", "a{,}", "a{2,1}", "\\", "*a", "|",
        "()", "^*",
    ] {
        assert!(light(pattern).is_some(), "{pattern}");
    }
}

#[test]
fn a_nul_ends_an_expression() {
    assert_eq!(weigh(b"ab\0\\1(", false), weigh(b"ab", false));
}
