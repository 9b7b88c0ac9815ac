//! Splitting a command line into arguments, as the daemon does for every child program. No shell.

/// Arguments of one command; what follows is dropped.
const MAX_ARGUMENTS: usize = 100;

/// Splits a command (reference 06 §10.2): blanks and TABs stand between arguments; an argument that *begins* with a
/// quote goes on to the next same quote; other arguments end at a blank only, so a TAB inside stays. No escapes.
pub fn split_command(command: &[u8]) -> Vec<Vec<u8>> {
    let mut arguments = Vec::new();
    let mut rest = command;
    while arguments.len() < MAX_ARGUMENTS {
        let start = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t'));
        let Some((&first, after)) = start.and_then(|start| rest.get(start..)).and_then(<[u8]>::split_first) else {
            break;
        };
        let (body, end) = match first {
            b'"' | b'\'' => (after, first),
            _ => (rest.get(start.unwrap_or(0)..).unwrap_or_default(), b' '),
        };
        let length = body.iter().position(|byte| *byte == end).unwrap_or(body.len());
        arguments.push(body.get(..length).unwrap_or_default().to_vec());
        rest = body.get(length + 1..).unwrap_or_default();
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(command: &str) -> Vec<String> {
        split_command(command.as_bytes()).into_iter().map(|word| String::from_utf8(word).unwrap()).collect()
    }

    #[test]
    fn arguments_follow_the_daemons_rules() {
        assert_eq!(split("cat /a /b"), ["cat", "/a", "/b"]);
        assert_eq!(split(" \t cat  \t /a "), ["cat", "/a"]);
        assert_eq!(split("sh -c 'echo a b'"), ["sh", "-c", "echo a b"]);
        assert_eq!(split("a \"b c\"d"), ["a", "b c", "d"]);
        assert_eq!(split("a b\tc"), ["a", "b\tc"]);
        assert_eq!(split("a b'c d'"), ["a", "b'c", "d'"]);
        assert_eq!(split("a 'open end"), ["a", "open end"]);
        assert_eq!(split("a '' b"), ["a", "", "b"]);
        assert_eq!(split("  "), Vec::<String>::new());
        assert_eq!(split(&"x ".repeat(300)).len(), 100);
    }
}
