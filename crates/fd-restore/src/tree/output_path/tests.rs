//! Tests of paths to restore to.

use super::*;

fn clean(text: &str, anchor: usize) -> Result<String, PathError> {
    OutputPath::new(text.as_bytes(), anchor).map(|path| String::from_utf8(path.path).unwrap())
}

#[test]
fn slashes_and_dots_are_cleaned() {
    assert_eq!(clean("/x//a/./b/", 0).unwrap(), "x/a/b");
    assert_eq!(clean("/", 0).unwrap(), "");
    assert_eq!(clean("C:/f", 0).unwrap(), "C:/f");
    assert_eq!(OutputPath::new(b"C:/f", 0).unwrap().base(), Base::Current);
    assert_eq!(OutputPath::new(b"/f", 0).unwrap().base(), Base::Root);
}

#[test]
fn nothing_leads_above_where() {
    assert_eq!(clean("/r/a/../b", 2).unwrap(), "r/b");
    assert_eq!(clean("/r/../etc/x", 2), Err(PathError::Escapes));
    assert_eq!(clean("/r/a/../../etc/x", 2), Err(PathError::Escapes));
    assert_eq!(clean("/r/a/..", 2).unwrap(), "r");
    assert_eq!(clean("/tmp/rf/../zz/a", 10).unwrap(), "tmp/zz/a");
    assert_eq!(clean("/tmp/rf/../zz/../a", 13), Err(PathError::Escapes));
    assert_eq!(clean("rel/../../a", 3), Err(PathError::Escapes));
}

#[test]
fn above_the_root_is_the_root() {
    assert_eq!(clean("/../../etc/x", 0).unwrap(), "etc/x");
    assert_eq!(clean("/../x/a", 5).unwrap(), "x/a");
    assert_eq!(clean("../x", 0), Err(PathError::Escapes));
}

#[test]
fn limits_are_kept() {
    assert_eq!(clean("/a\0b", 0), Err(PathError::Nul));
    assert_eq!(clean(&"/a".repeat(5000), 0), Err(PathError::TooLong));
    assert_eq!(clean(&"/a".repeat(40_000), 0), Err(PathError::TooLong));
    assert!(clean(&"/a".repeat(4096), 0).is_ok());
}

#[test]
fn a_path_splits_into_directory_and_name() {
    let path = OutputPath::new(b"/r/a/b", 2).unwrap();
    let (parent, name) = path.split().unwrap();
    assert_eq!((parent.as_bytes(), name), (&b"r/a"[..], &b"b"[..]));
    let path = OutputPath::new(b"/b", 0).unwrap();
    let (parent, name) = path.split().unwrap();
    assert_eq!((parent.as_bytes(), name), (&b""[..], &b"b"[..]));
    assert!(OutputPath::new(b"/", 0).unwrap().split().is_none());
}

#[test]
fn components_are_found_from_any_border() {
    let names = |from| components(b"ab/c/def", from).map(|range| (range.start, range.end)).collect::<Vec<_>>();
    assert_eq!(names(0), [(0, 2), (3, 4), (5, 8)]);
    assert_eq!(names(2), [(3, 4), (5, 8)]);
    assert_eq!(names(8), []);
    assert_eq!(components(b"", 0).count(), 0);
}

#[test]
fn common_beginnings_end_at_a_border() {
    assert_eq!(common_length(b"a/b/c", b"a/b/d"), 3);
    assert_eq!(common_length(b"a/b", b"a/bc"), 1);
    assert_eq!(common_length(b"a/b", b"a/b"), 3);
    assert_eq!(common_length(b"a", b"a/b"), 1);
    assert_eq!(common_length(b"x", b"y"), 0);
    assert_eq!(common_length(b"", b"y"), 0);
}
