//! The records around the files of a plugin (stream 26, reference 04 §15, 05 §12).

use crate::text::decimal;

/// A plugin-name record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PluginName<'a> {
    /// The records that follow belong to a plugin.
    Start {
        /// FileIndex of the file that follows.
        file_index: i64,
        /// Whether the data is portable.
        portable: bool,
        /// The plugin's command, for example `bpipe:/name:reader:writer`.
        command: &'a [u8],
    },
    /// The plugin's records end here.
    End {
        /// FileIndex of the last file.
        file_index: i64,
    },
}

impl<'a> PluginName<'a> {
    /// Appends the record; a start ends with a NUL, an end does not.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Start { file_index, portable, command } => {
                decimal::push_i64(out, *file_index);
                out.extend_from_slice(if *portable { b" 1 1 " } else { b" 1 0 " });
                out.extend_from_slice(command);
                out.push(0);
            }
            Self::End { file_index } => {
                decimal::push_i64(out, *file_index);
                out.extend_from_slice(b" 0");
            }
        }
    }

    /// Reads a record; `None` if it has not the three numbers of a start.
    pub fn parse(record: &'a [u8]) -> Option<Self> {
        let text = record.split(|byte| *byte == 0).next().unwrap_or_default();
        let (file_index, rest) = decimal::take_i64(text);
        let (starts, rest) = decimal::take_i64(rest.strip_prefix(b" ")?);
        if starts == 0 {
            return Some(Self::End { file_index });
        }
        let (portable, rest) = decimal::take_i64(rest.strip_prefix(b" ")?);
        let command = rest.strip_prefix(b" ")?;
        Some(Self::Start { file_index, portable: portable != 0, command })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_and_ends_are_written_and_read() {
        let start = PluginName::Start { file_index: 2, portable: true, command: b"bpipe:/bp/test:cat /x:dd of=/y" };
        let mut out = Vec::new();
        start.encode(&mut out);
        assert_eq!(out, b"2 1 1 bpipe:/bp/test:cat /x:dd of=/y\0");
        assert_eq!(PluginName::parse(&out), Some(start));
        out.clear();
        PluginName::End { file_index: 2 }.encode(&mut out);
        assert_eq!(out, b"2 0");
        assert_eq!(PluginName::parse(b"2 0\0"), Some(PluginName::End { file_index: 2 }));
        assert_eq!(PluginName::parse(b"2"), None);
        assert_eq!(PluginName::parse(b"2 1 1"), None);
    }
}
