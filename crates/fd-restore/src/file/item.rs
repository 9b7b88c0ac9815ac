//! The attribute record of the current file, with what it means for this restore.

use fd_plugins::{RestoreFile, Value, Variable};
use fd_records::{AttributesRecord, FileType, Replace, Stat, Stream, StreamClass};

use crate::names::{OutputName, OutputNames, Undecided};
use crate::plan::RestorePlan;
use crate::plugins::{PluginAccess, told_of};
use crate::tree::{MakeDirectory, OutputPath, PathError};

/// The data of a file may be this many times as long as its attributes say,
const MOST_TIMES: u64 = 16;
/// and this many bytes longer: a log may have been empty when its attributes were read.
const MOST_BEYOND: u64 = 16 << 20;

/// A file to be restored.
#[derive(Debug)]
pub(crate) struct RestoreItem {
    /// Its type; `None` if the number is not known.
    pub(crate) file_type: Option<FileType>,
    /// The number of its type.
    pub(crate) type_code: u16,
    /// Its name as it was saved.
    pub(crate) name: Vec<u8>,
    /// Its name here, as messages show it.
    pub(crate) output: Vec<u8>,
    /// Its name here, as it is used.
    pub(crate) path: Result<OutputPath, PathError>,
    /// Target of the link that it is.
    pub(crate) link: OutputName,
    /// Its saved status.
    pub(crate) stat: Stat,
    /// The stream of its data.
    pub(crate) data_stream: Stream,
    /// If above 0, it is a patch of an existing file, which a plugin has saved.
    pub(crate) delta_seq: i64,
    /// Whether it only updates the attributes of an existing file (stream 37).
    pub(crate) is_update: bool,
    /// Whether it is a hard link that expressions rename, but not the file that it links to: it
    /// would become a name of a file that is not restored.
    pub(crate) leads_out: bool,
    /// Whether a plugin has saved it: its attributes need not tell how much data it has.
    pub(crate) is_of_plugin: bool,
}

impl RestoreItem {
    /// What a record means. An error: under which name it is restored could not be decided.
    pub(crate) fn new(
        record: &AttributesRecord<'_>,
        stream: Stream,
        is_of_plugin: bool,
        plan: &RestorePlan,
    ) -> Result<Self, Undecided> {
        let stat = record.lstat.stat;
        let file_type = record.file_type();
        let output = plan.output.output(record.name, stat.mtime)?;
        let link = match file_type {
            Some(file_type) => plan.output.link_target(file_type, record.link, plan.prelinks, stat.mtime)?,
            None => OutputName { text: Vec::new(), given: 0 },
        };
        let leads_out = matches!(plan.output, OutputNames::Regex(_))
            && file_type == Some(FileType::HardLink)
            && output.text != record.name
            && link.text == record.link;
        Ok(Self {
            leads_out,
            is_of_plugin,
            file_type,
            type_code: record.type_code,
            name: record.name.to_vec(),
            path: OutputPath::new(&output.text, output.given),
            output: output.text,
            link,
            stat,
            data_stream: record.lstat.data_stream,
            // Only plugins save patches. The stock daemon numbers what it sends whole behind an
            // update of attributes, too (reference 04 §6.4).
            delta_seq: if is_of_plugin { record.delta_seq } else { 0 },
            is_update: stream.kind() == Stream::ATTRIBUTES_UPDATE,
        })
    }

    /// What a plugin is told of it.
    pub(crate) fn for_plugin(
        &self,
        record: &AttributesRecord<'_>,
        stream: Stream,
        replace: Replace,
        access: &PluginAccess,
    ) -> RestoreFile {
        let text = |variable| match access.facts.value(variable) {
            Some(Value::Text(text)) => text,
            Some(Value::Number(_)) | None => None,
        };
        RestoreFile {
            name: self.output.clone(),
            link: Some(self.link.text.clone()),
            place: text(Variable::Where),
            regex_where: text(Variable::RegexWhere),
            replace: replace.letter(),
            ..told_of(stream, record)
        }
    }

    /// The first name of the hard link that it is.
    pub(crate) fn first_name(&self) -> Result<OutputPath, PathError> {
        OutputPath::new(&self.link.text, self.link.given)
    }

    /// The name of the object in its directory.
    pub(crate) fn last_name(&self) -> Option<&[u8]> {
        let path = self.path.as_ref().ok()?.as_bytes();
        path.rsplit(|byte| *byte == b'/').next().filter(|name| !name.is_empty())
    }

    /// Whether it is made as a directory.
    pub(crate) fn is_directory(&self) -> bool {
        matches!(
            self.file_type,
            Some(FileType::Directory | FileType::DirectoryBegin | FileType::Reparse | FileType::Junction)
        )
    }

    /// Whether it is a FIFO, a device or a socket.
    pub(crate) const fn is_special(&self) -> bool {
        matches!(self.file_type, Some(FileType::Special | FileType::Raw | FileType::Fifo))
    }

    /// Whether it is a patch of a regular file.
    pub(crate) fn is_patch(&self) -> bool {
        self.delta_seq > 0 && matches!(self.file_type, Some(FileType::Regular | FileType::EmptyFile))
    }

    /// Whether what it is written to may hold data, so that zeros that the backup has left out are
    /// to be written: a device or FIFO. The gaps of a patch are no zeros.
    pub(crate) fn needs_its_zeros(&self) -> bool {
        self.delta_seq <= 0 && matches!(self.file_type, Some(FileType::Raw | FileType::Fifo))
    }

    /// Whether zeros at its end may have been left out, so that how long it was is not known.
    pub(crate) fn may_lack_zeros(&self) -> bool {
        self.needs_its_zeros() && self.data_stream.layout().has_address
    }

    /// Whether its record is all that was saved of it, without data.
    pub(crate) fn is_whole(&self) -> bool {
        self.file_type != Some(FileType::Regular) || self.stat.size == 0
    }

    /// Whether data of it must come: without it, no file that is there is replaced. What a plugin
    /// has saved may have a size and no data.
    pub(crate) fn needs_data(&self) -> bool {
        self.file_type == Some(FileType::Regular) && self.stat.size > 0 && !self.is_of_plugin
    }

    /// Whether its data needs keys. The records of objects without data name a stream for it, too.
    pub(crate) fn has_encrypted_data(&self) -> bool {
        let is_encrypted = matches!(self.data_stream.class(), StreamClass::Data(layout) if layout.is_encrypted);
        is_encrypted && !self.is_whole()
    }

    /// How many bytes its data may have; `None` if that is unknown. A file that grew during the
    /// backup is longer than its attributes say, but not by this much. What a plugin has saved may
    /// have any size in its attributes, and devices and fifos have 0.
    pub(crate) fn most_data(&self) -> Option<u64> {
        match self.file_type {
            Some(FileType::Regular | FileType::EmptyFile) if !self.is_of_plugin => {
                let size = u64::try_from(self.stat.size).ok()?;
                Some(size.saturating_mul(MOST_TIMES).saturating_add(MOST_BEYOND))
            }
            _ => None,
        }
    }

    /// How the directories on its way are made: it is one itself, or they are the parents of an
    /// object (reference 05 §6.4). Its mode is theirs, too, without what makes sense for a file or
    /// a link only: others may not write there.
    pub(crate) const fn directories(&self, is_one: bool) -> MakeDirectory {
        MakeDirectory { uid: self.stat.uid, gid: self.stat.gid, mode: self.stat.mode & !0o7022 | 0o300, keep: !is_one }
    }
}
