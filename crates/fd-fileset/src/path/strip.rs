//! Strip Path: leading components taken off a name before it is recorded (reference 03 §5.12, 04
//! §6.5).

/// `name` without its first `count` components. Everything up to and including the first `/` stays.
///
/// `None` if the name has too few components, or if `count` is 0: then it is recorded whole.
pub fn strip_path(name: &[u8], count: u32) -> Option<Vec<u8>> {
    let count = usize::try_from(count).ok().filter(|count| *count > 0)?;
    let mut slashes = name.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    let first = slashes.next()?;
    let last_dropped = slashes.nth(count.checked_sub(1)?)?;
    let mut stripped = name.get(..=first)?.to_vec();
    stripped.extend_from_slice(name.get(last_dropped.checked_add(1)?..)?);
    Some(stripped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip(name: &str, count: u32) -> Option<String> {
        strip_path(name.as_bytes(), count).map(|stripped| String::from_utf8(stripped).unwrap())
    }

    #[test]
    fn names_of_the_reference_are_stripped() {
        assert_eq!(strip("/x/t/l", 1).as_deref(), Some("/t/l"));
        assert_eq!(strip("/x/t/", 1).as_deref(), Some("/t/"));
        assert_eq!(strip("/x/t/d/a.c", 2).as_deref(), Some("/d/a.c"));
        assert_eq!(strip("/x/t/l", 2).as_deref(), Some("/l"));
        assert_eq!(strip("/x/t", 2), None);
        assert_eq!(strip("/x/t/d/a.c", 3).as_deref(), Some("/a.c"));
        assert_eq!(strip("/x/t/top.x", 3), None);
        assert_eq!(strip("/x/t/d", 3), None);
    }

    #[test]
    fn unusual_names_are_stripped_like_those_of_the_reference() {
        assert_eq!(strip("/a/b", 0), None);
        assert_eq!(strip("", 1), None);
        assert_eq!(strip("a", 1), None);
        assert_eq!(strip("/", 1), None);
        assert_eq!(strip("a/b/c", 1).as_deref(), Some("a/c"));
        assert_eq!(strip("/a", u32::MAX), None);
    }
}
