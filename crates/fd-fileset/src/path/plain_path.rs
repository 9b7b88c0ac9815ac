//! Paths as they are written: parts, `.` and `..`, without symbolic links.

/// The path without empty parts, `.` and `..`, and without a slash at its end; `/` stays `/`. A
/// relative path keeps the `..` at its start.
pub fn plain_path(path: &[u8]) -> Vec<u8> {
    let is_absolute = path.starts_with(b"/");
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                if parts.last().is_some_and(|last| *last != b"..") {
                    parts.pop();
                } else if !is_absolute {
                    parts.push(part);
                }
            }
            _ => parts.push(part),
        }
    }
    let joined = parts.join(&b'/');
    if is_absolute { [b"/", joined.as_slice()].concat() } else { joined }
}

/// Whether a plain path is this plain directory or lies below it; `/ok-evil` does not lie below
/// `/ok`, and nothing lies below the empty path.
pub fn lies_in(path: &[u8], directory: &[u8]) -> bool {
    match path.strip_prefix(directory) {
        Some(rest) if !directory.is_empty() => rest.is_empty() || rest.starts_with(b"/") || directory.ends_with(b"/"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(path: &str) -> String {
        String::from_utf8(plain_path(path.as_bytes())).unwrap()
    }

    #[test]
    fn dots_and_double_slashes_are_removed() {
        for (path, wanted) in [
            ("/a/b", "/a/b"),
            ("//a///b//", "/a/b"),
            ("/a/./b/.", "/a/b"),
            ("/a/../b", "/b"),
            ("/a/b/../../../../c", "/c"),
            ("/", "/"),
            ("/..", "/"),
            ("/...", "/..."),
            ("a/../../b/..", ".."),
            ("", ""),
        ] {
            assert_eq!(plain(path), wanted, "{path}");
        }
    }

    #[test]
    fn a_path_lies_in_a_directory_by_whole_parts() {
        let lies = |path: &str, directory: &str| lies_in(path.as_bytes(), directory.as_bytes());
        assert!(lies("/ok", "/ok") && lies("/ok/a", "/ok") && lies("/ok", "/"));
        assert!(!lies("/ok-evil", "/ok") && !lies("/o", "/ok") && !lies("", "/ok") && !lies("/ok", ""));
    }
}
