//! What is done for a record, decided from the record alone: which object is made, and where. What
//! exists there already is looked at when it is made (`replace`).

use fd_messages::MessageType;
use fd_records::FileType;

use super::item::RestoreItem;
use crate::report::QueuedMessage;
use crate::texts;
use crate::tree::{Base, OutputPath};

/// What is done for a record.
pub(crate) enum Plan<'i> {
    /// A directory is made at this path.
    Directory(&'i OutputPath),
    /// This object is made, or changed.
    Object(Object, Place<'i>),
    /// Nothing is made at this path: it was never saved, or is no file.
    Nothing(&'i OutputPath),
}

/// An object that is no directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Object {
    /// A regular file, which is made at once: the call itself shows whether something exists.
    NewFile,
    /// A regular file that is patched, or whose attributes are updated.
    ExistingFile,
    Symlink,
    HardLink,
    Special,
    /// Its name ends with a slash, so it can't be made.
    Unnamed,
}

/// Where an object is made.
pub(crate) struct Place<'i> {
    pub(crate) path: &'i OutputPath,
    /// The directory that holds it.
    pub(crate) parent: OutputPath,
    /// Its name there.
    pub(crate) name: &'i [u8],
}

impl<'i> Plan<'i> {
    /// The plan for `item`. The error is the message that says why nothing can be done.
    pub(crate) fn of(item: &'i RestoreItem) -> Result<Self, QueuedMessage> {
        let error = |text| Err((MessageType::Error, text));
        let path = match &item.path {
            Ok(path) => path,
            Err(why) => return error(texts::name_refused(&item.output, *why)),
        };
        let object = match item.file_type {
            Some(FileType::Symlink) => Object::Symlink,
            Some(FileType::HardLink) => Object::HardLink,
            _ if item.is_special() => Object::Special,
            Some(FileType::EmptyFile | FileType::Regular) if !item.is_update && item.delta_seq == 0 => Object::NewFile,
            Some(FileType::EmptyFile | FileType::Regular) => Object::ExistingFile,
            _ if item.is_directory() => return Ok(Self::Directory(path)),
            _ => return Ok(Self::Nothing(path)),
        };
        if path.base() == Base::Current && !item.output.is_empty() && !item.output.contains(&b'/') {
            return Err((MessageType::Warning, texts::no_directory(&item.output)));
        }
        let Some((parent, name)) = path.split().filter(|_| !item.output.is_empty()) else {
            return error(texts::no_file_name(&item.name));
        };
        if item.leads_out {
            return error(texts::link_leads_out(&item.output, &item.link.text));
        }
        let object = if item.output.ends_with(b"/") { Object::Unnamed } else { object };
        Ok(Self::Object(object, Place { path, parent, name }))
    }
}

#[cfg(test)]
mod tests {
    use fd_records::{Stat, Stream};

    use super::*;
    use crate::names::OutputName;

    fn item(file_type: FileType, output: &[u8], delta_seq: i64, is_update: bool) -> RestoreItem {
        RestoreItem {
            file_type: Some(file_type),
            type_code: file_type.code(),
            name: output.to_vec(),
            output: output.to_vec(),
            path: OutputPath::new(output, 0),
            link: OutputName { text: Vec::new(), given: 0 },
            stat: Stat::default(),
            data_stream: Stream::NONE,
            delta_seq,
            is_update,
            leads_out: false,
            is_of_plugin: false,
        }
    }

    #[test]
    fn a_new_file_is_one_that_changes_none_and_has_a_name() {
        for (output, delta_seq, is_update, expected) in [
            (&b"/in/name"[..], 0, false, Object::NewFile),
            (b"in/name", 0, false, Object::NewFile),
            (b"/in/name", 1, false, Object::ExistingFile),
            (b"/in/name", -1, false, Object::ExistingFile),
            (b"/in/name", 0, true, Object::ExistingFile),
            (b"/in/name/", 0, false, Object::Unnamed),
        ] {
            for file_type in [FileType::Regular, FileType::EmptyFile] {
                let item = item(file_type, output, delta_seq, is_update);
                let Ok(Plan::Object(object, Place { parent, name, .. })) = Plan::of(&item) else {
                    panic!("{}", output.escape_ascii());
                };
                assert_eq!((object, parent.as_bytes(), name), (expected, &b"in"[..], &b"name"[..]));
            }
        }
    }

    #[test]
    fn without_a_name_or_a_directory_nothing_is_made() {
        for (output, expected) in [
            (&b""[..], MessageType::Error),
            (b"/", MessageType::Error),
            (b"name", MessageType::Warning),
            (b"../name", MessageType::Error),
        ] {
            let kind = Plan::of(&item(FileType::Regular, output, 0, false)).err().map(|(kind, _text)| kind);
            assert_eq!(kind, Some(expected), "{}", output.escape_ascii());
        }
        assert!(matches!(Plan::of(&item(FileType::Directory, b"name", 0, false)), Ok(Plan::Directory(_))));
        assert!(matches!(Plan::of(&item(FileType::NoOpen, b"/name", 0, false)), Ok(Plan::Nothing(_))));
    }
}
