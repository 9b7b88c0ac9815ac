//! The command of a FileSet, `bpipe:FILE:READER:WRITER` (reference 07 §10.1, §10.3).

use crate::texts;

/// A command in its parts. The reader's and the writer's are for a shell.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct BpipeCommand {
    /// Name of the file in the catalog.
    pub(crate) file: Vec<u8>,
    /// What prints the data in a backup.
    pub(crate) reader: Vec<u8>,
    /// What takes the data in a restore.
    pub(crate) writer: Vec<u8>,
}

impl BpipeCommand {
    /// The parts of a command. Only the writer may have colons. The error is the message for it.
    pub(crate) fn parse(command: &[u8]) -> Result<Self, Vec<u8>> {
        let mut parts = command.splitn(4, |byte| *byte == b':');
        let _name = parts.next();
        let mut part = |name: &str| parts.next().ok_or_else(|| texts::terminator_not_found(name, command));
        // A part is missing when the colon before it is.
        let file = part("Plugin")?.to_vec();
        let reader = part("File")?.to_vec();
        let writer = part("Reader")?.to_vec();
        Ok(Self { file, reader, writer })
    }

    /// The writer with `%w` as the place of a restore, `%r` as the replace mode's letter and `%%`
    /// as a percent sign. Others stay; one at the end goes.
    pub(crate) fn writer_for(&self, place: &[u8], replace: u8) -> Vec<u8> {
        let mut line = Vec::with_capacity(self.writer.len() + place.len());
        let mut bytes = self.writer.iter().copied();
        while let Some(byte) = bytes.next() {
            if byte != b'%' {
                line.push(byte);
                continue;
            }
            match bytes.next() {
                Some(b'w') => line.extend_from_slice(place),
                Some(b'r') => line.push(replace),
                Some(b'%') => line.push(b'%'),
                Some(other) => line.extend_from_slice(&[b'%', other]),
                None => {}
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(command: &str) -> Result<BpipeCommand, String> {
        BpipeCommand::parse(command.as_bytes()).map_err(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn the_writer_may_have_colons_and_the_others_may_not() {
        let command = parse(r"bpipe:/a b:cat \:x | y:psql -h ::1").unwrap();
        assert_eq!(command.file, b"/a b");
        assert_eq!(command.reader, br"cat \");
        assert_eq!(command.writer, b"x | y:psql -h ::1");
        assert_eq!(parse("bpipe:::").unwrap(), BpipeCommand::default());
    }

    #[test]
    fn a_missing_part_is_named() {
        for (command, part) in [("bpipe", "Plugin"), ("bpipe:/a", "File"), ("bpipe:/a:b", "Reader")] {
            assert_eq!(parse(command), Err(format!("{part} terminator not found: {command}\n")));
        }
    }

    #[test]
    fn the_writer_gets_the_place_and_the_replace_mode() {
        let command = parse("bpipe:f:r:>%w/x.%r %%w %x%").unwrap();
        assert_eq!(command.writer_for(b"/tmp/%r", b'a'), b">/tmp/%r/x.a %w %x");
        assert_eq!(command.writer_for(b"", b'n'), b">/x.n %w %x");
    }
}
