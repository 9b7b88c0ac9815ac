//! Tests of the expressions of `regexwhere`.

use fd_os::regex::PosixRegex;

use super::*;

fn parse(expressions: &str) -> Option<RegexWhere> {
    RegexWhere::parse(expressions.as_bytes(), &mut |pattern, options| Ok(compiled(pattern, options))).unwrap()
}

fn compiled(pattern: &[u8], options: RegexOptions) -> Option<NameRegex> {
    let regex = PosixRegex::new(pattern, options).ok()?;
    Some(Box::new(move |name| regex.captures(name).map_err(|_| Undecided)))
}

#[test]
fn an_expression_of_which_nothing_is_known_ends_no_list() {
    let mut compile = |pattern: &[u8], options| {
        if pattern == b"heavy" { Err(b"no process".to_vec()) } else { Ok(compiled(pattern, options)) }
    };
    let mut parse = |expressions: &[u8]| RegexWhere::parse(expressions, &mut compile).map(|parsed| parsed.is_some());
    assert_eq!(parse(b"!a!b!,!heavy!x!,!^!/tmp/r!"), Err(b"no process".to_vec()));
    assert_eq!(parse(b"!a!b!,!(!x!,!heavy!/tmp/r!"), Ok(true), "it is not come to");
}

fn apply(expressions: &str, name: &str) -> String {
    let parsed = parse(expressions).unwrap();
    String::from_utf8(parsed.apply(name.as_bytes(), 1_234_567_890).unwrap()).unwrap()
}

#[test]
fn the_rows_of_the_reference() {
    for (expressions, name, expected) in [
        ("!^/src!/tmp/rf/x!", "/src/File.txt", "/tmp/rf/x/File.txt"),
        ("!^/src!/tmp/rf/x!,!File!Renamed!,!([^/])$!$1.bak!", "/src/File.txt", "/tmp/rf/x/Renamed.txt.bak"),
        ("!^/src!/tmp/rf/x!,!File!Renamed!,!([^/])$!$1.bak!", "/src/", "/tmp/rf/x/"),
        ("!file!X!i,!^!/tmp/rf!", "/src/File.txt", "/tmp/rf/src/X.txt"),
        ("!^!/tmp/rf!,!src/!S$m/!", "/src/File.txt", "/tmp/rf/S1234567890/File.txt"),
        ("|/src/(.*)|/tmp/rf/$1-\\1-$0|", "/src/File.txt", "/tmp/rf/File.txt-File.txt-/src/File.txt"),
        ("!^!/tmp/rf/a\\!b!", "/src/f", "/tmp/rf/a!/src/f"),
        ("!a(b)?!/tmp/rf/$1!", "/src/abs", "/src//tmp/rf/bs"),
        ("!^/src!/tmp/rf/p!,@bad@x@", "/src/f", "/tmp/rf/p/f"),
        ("!/data1/su!/tmp/r5/X!i", "/data1/sub/f", "/tmp/r5/Xb/f"),
        ("!/data1!!i,!([^/])$!$1.old!,!^!/tmp/r4!", "/data1/f", "/tmp/r4/f.old"),
    ] {
        assert_eq!(apply(expressions, name), expected, "{expressions}");
    }
}

#[test]
fn invalid_expressions_are_refused() {
    for expressions in ["@^@/tmp/rf@", "!^!/tmp/rf", "!(!x!", "", "!", "!a", "!a!"] {
        assert!(parse(expressions).is_none(), "{expressions}");
    }
}

#[test]
fn a_broken_later_expression_ends_the_list() {
    assert_eq!(apply("!a!b!,!(!x!,!b!c!", "a"), "b");
    assert_eq!(apply("!a!b!,!b", "a"), "b");
}

#[test]
fn only_the_first_match_is_replaced_and_the_longest_is_taken() {
    assert_eq!(apply("!a!b!g", "aaa"), "baa");
    assert_eq!(apply("!a|ab!X!", "abc"), "Xc");
    assert_eq!(apply("!x!y!", "abc"), "abc");
}

#[test]
fn a_name_that_gets_too_long_is_not_made_longer() {
    let name = vec![b'n'; 4_000];
    let whole_name_often = format!("!^.*$!{}!", "$0".repeat(150_000));
    for expressions in [whole_name_often.clone(), format!("{whole_name_often},!^.*$!short!")] {
        let found = parse(&expressions).unwrap().apply(&name, 0).unwrap();
        assert!(found.len() > LONGEST && found.len() <= LONGEST + name.len(), "{}", found.len());
    }
    // What is too long on the volume may become shorter.
    let found = parse("!^n*$!short!").unwrap().apply(&vec![b'n'; LONGEST + 1], 0);
    assert_eq!(found, Ok(b"short".to_vec()));
}

#[test]
fn newlines_end_lines() {
    assert_eq!(apply("!a.b!X!", "a\nb"), "a\nb");
    assert_eq!(apply("!b$!X!", "b\nc"), "X\nc");
    assert_eq!(apply("!^c!X!", "b\nc"), "b\nX");
}

#[test]
fn escapes_are_those_of_the_reference() {
    assert_eq!(apply("!a\\.b!X!", "a.b"), "X");
    assert_eq!(apply("!a\\.b!X!", "acb"), "acb");
    assert_eq!(apply("!a!\\\\b!", "a"), "\\\\b");
    // Behind a backslash, too, an escaped separator ends the part.
    assert_eq!(apply("!a!\\\\!", "a"), "\\!");
    assert_eq!(apply("!a!\\\\\\!", "a"), "\\\\!");
    assert_eq!(apply("!(a)!\\\\1$!", "a"), "\\a$");
    assert_eq!(apply("!a!$m\\m$!", "a"), "1234567890\\m$");
}
