//! What a user may fill in before a restore (reference 07 §6.2, §10.3).

/// Name of the object that offers the options.
pub(crate) const NAME: &[u8] = b"RestoreOptions";

/// The object that a Full saves for the Director's menu.
pub(crate) const OFFERED: &[u8] = b"# Plugin configuration file\n# Version 1\n\
    OptPrompt=\"Restore command to use\"\nrestore_command=@STR@\n\n";

/// The option.
const RESTORE_COMMAND: &[u8] = b"restore_command";

/// Options that are no text of options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NotOptions;

/// The restore command in a user's options, if there is one.
pub(crate) fn restore_command(text: &[u8]) -> Result<Option<Vec<u8>>, NotOptions> {
    value_of(RESTORE_COMMAND, text)
}

/// The value of the option of this name in a user's options, if there is one.
pub(crate) fn value_of(option: &[u8], text: &[u8]) -> Result<Option<Vec<u8>>, NotOptions> {
    let mut found = None;
    let mut rest = text;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Ok(found);
        }
        if rest.starts_with(b"#") {
            rest = after_line(rest);
            continue;
        }
        let equals = rest.iter().position(|byte| matches!(byte, b'=' | b'\n')).ok_or(NotOptions)?;
        let (name, value) = rest.split_at_checked(equals).ok_or(NotOptions)?;
        let value = value.strip_prefix(b"=").ok_or(NotOptions)?.trim_ascii_start();
        let (value, after) = if let Some(quoted) = value.strip_prefix(b"\"") {
            unquote(quoted)?
        } else {
            let end = value.iter().position(|byte| *byte == b'\n').unwrap_or(value.len());
            let (bare, after) = value.split_at_checked(end).ok_or(NotOptions)?;
            (bare.trim_ascii_end().to_vec(), after)
        };
        if !name.trim_ascii_end().eq_ignore_ascii_case(option) {
            return Err(NotOptions);
        }
        found = Some(value);
        rest = after;
    }
}

/// The text up to its closing quote, and what follows.
fn unquote(text: &[u8]) -> Result<(Vec<u8>, &[u8]), NotOptions> {
    let mut value = Vec::new();
    let mut rest = text;
    loop {
        match rest {
            [b'"', after @ ..] => return Ok((value, after)),
            [b'\\', escaped, after @ ..] => {
                value.push(*escaped);
                rest = after;
            }
            [byte, after @ ..] => {
                value.push(*byte);
                rest = after;
            }
            [] => return Err(NotOptions),
        }
    }
}

fn after_line(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
    text.get(end..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offered_options_have_the_stock_bytes() {
        assert_eq!(OFFERED.len(), 98);
    }

    #[test]
    fn a_user_s_command_is_found() {
        let text = b"# Plugin configuration file\n# Version 1\n# Restore command to use\n\
            restore_command=\"sh -c 'cat > \\\"%w\\\"/user.%r'\"\n\n";
        assert_eq!(restore_command(text), Ok(Some(b"sh -c 'cat > \"%w\"/user.%r'".to_vec())));
        assert_eq!(restore_command(b"Restore_Command = cat \n"), Ok(Some(b"cat".to_vec())));
        assert_eq!(restore_command(b"# nothing\n"), Ok(None));
        assert_eq!(restore_command(b""), Ok(None));
    }

    #[test]
    fn what_is_no_option_is_refused() {
        for text in ["other=1\n", "restore_command\n", "restore_command=\"x\n", "x"] {
            assert_eq!(restore_command(text.as_bytes()), Err(NotOptions), "{text}");
        }
    }
}
