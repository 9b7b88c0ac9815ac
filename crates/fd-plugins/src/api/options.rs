//! What a user may fill in before a restore, and has filled in (reference 07 §6.2, §10.3).

use fd_messages::MessageType;
use fd_records::FileType;

use super::call::Status;
use super::host::Host;
use super::packets::{SaveObject, SavePacket, SavedObject};
use crate::texts;

/// Name of the object that offers the options.
const NAME: &[u8] = b"RestoreOptions";

/// Commands that a job keeps with what users want of them.
const MOST: usize = 1_000;
/// All of that together, in bytes: the memory is the Director's to take.
const MOST_BYTES: usize = 1 << 20;

/// The option that a plugin has.
#[derive(Debug)]
pub struct RestoreOption {
    /// Its name.
    pub name: &'static [u8],
    /// The object that a Full saves for the Director's menu.
    pub offered: &'static [u8],
    /// Whether a user need not fill it in.
    pub is_optional: bool,
    /// The message that it is obeyed.
    pub obeyed: fn(&[u8]) -> Vec<u8>,
}

/// Commands, and what users want for the restore of what they have saved.
#[derive(Default, Debug)]
pub struct FilledIn(Vec<(Vec<u8>, Vec<u8>)>);

impl FilledIn {
    /// What is wanted for the restore of what this command has saved.
    pub fn of(&self, command: &[u8]) -> Option<&[u8]> {
        self.0.iter().find(|(known, _)| known == command).map(|(_, value)| value.as_slice())
    }

    /// This is wanted for the restore of what the command has saved. `false`: there is no room.
    fn put(&mut self, command: &[u8], value: Vec<u8>) -> bool {
        let others = || self.0.iter().filter(|(known, _)| known != command);
        let bytes: usize = others().map(|(command, value)| command.len() + value.len()).sum();
        let has_room = others().count() < MOST && bytes + command.len() + value.len() <= MOST_BYTES;
        if has_room {
            self.0.retain(|(known, _)| known != command);
            self.0.push((command.to_vec(), value));
        }
        has_room
    }
}

impl RestoreOption {
    /// Makes the object that offers it of a packet.
    pub fn offer(&self, file: &mut SavePacket) {
        file.file_type = i32::from(FileType::PluginConfig.code());
        file.object = SaveObject { name: Some(NAME.to_vec()), data: self.offered.to_vec(), index: 0 };
    }

    /// Takes what a user has filled in, and says so. Other objects mean nothing: those that an
    /// earlier backup has saved may have the same name.
    pub fn take(&self, filled: &mut FilledIn, host: &mut dyn Host, object: &SavedObject) -> Status {
        if object.name != NAME || !object.is_filled_in() {
            return Status::Ok;
        }
        let value = value_of(self.name, &object.data);
        let text = match value.map(|value| value.filter(|value| !(self.is_optional && value.is_empty()))) {
            Ok(Some(value)) => {
                let text = (self.obeyed)(&value);
                if filled.put(&object.command, value) {
                    host.message(MessageType::Info, &text);
                    return Status::Ok;
                }
                texts::TOO_MANY_OPTIONS
            }
            Ok(None) if self.is_optional => return Status::Ok,
            Ok(None) => texts::OPTIONS_NOT_VALID,
            Err(NotOptions) => texts::OPTIONS_NOT_READ,
        };
        host.message(MessageType::Fatal, text);
        Status::Error
    }
}

/// Options that are no text of options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct NotOptions;

/// The value of the option of this name in a user's options, if there is one.
fn value_of(option: &[u8], text: &[u8]) -> Result<Option<Vec<u8>>, NotOptions> {
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

    fn restore_command(text: &[u8]) -> Result<Option<Vec<u8>>, NotOptions> {
        value_of(b"restore_command", text)
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
    fn commands_and_values_are_bounded_in_number_and_bytes() {
        let mut filled = FilledIn::default();
        for command in 0..MOST {
            assert!(filled.put(command.to_string().as_bytes(), b"value".to_vec()), "{command}");
        }
        assert!(!filled.put(b"new", b"value".to_vec()), "there are as many as may be");
        assert!(filled.put(b"0", b"other".to_vec()), "this one is there");
        assert_eq!(filled.of(b"0"), Some(&b"other"[..]));
        let mut filled = FilledIn::default();
        assert!(filled.put(b"a", vec![b'x'; MOST_BYTES - 3]) && !filled.put(b"b", b"xx".to_vec()));
        assert!(filled.put(b"b", b"x".to_vec()) && filled.of(b"a").is_some());
        assert!(!filled.put(b"b", b"xx".to_vec()) && filled.of(b"b") == Some(b"x"), "what was there stays");
    }

    #[test]
    fn what_is_no_option_is_refused() {
        for text in ["other=1\n", "restore_command\n", "restore_command=\"x\n", "x"] {
            assert_eq!(restore_command(text.as_bytes()), Err(NotOptions), "{text}");
        }
    }
}
