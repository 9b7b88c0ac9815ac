//! What a Director has for plugins: options, objects and lists before a restore, and queries
//! (reference 02 §4.13, §4.16, §4.22, §4.23).

use fd_bsock::scan::{Lenient, Strict, unbash_spaces};

use super::job::JOB_MAX;

/// What is for plugins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PluginCommand {
    /// `component`; a list follows.
    Components,
    /// `PluginFeatures`.
    Features,
    /// `restorefilelist`: a list for this plugin follows.
    FileList(Vec<u8>),
    /// `restoreobject`: the object's name and its bytes follow.
    Object(RestoreObject),
    /// `restoreobject end`.
    ObjectsEnd,
    /// `pluginoptions=`: options for the plugins of a Verify job.
    Options(Vec<u8>),
    /// `query`.
    Query(PluginQuery),
}

impl PluginCommand {
    pub(super) fn file_list(frame: &[u8]) -> Option<Self> {
        let plugin = Lenient::new(frame).text("restorefilelist plugin=")?.word(JOB_MAX);
        Some(Self::FileList(unbash_spaces(plugin)))
    }

    pub(super) fn object(frame: &[u8]) -> Option<Self> {
        let is_end = frame.starts_with(b"restoreobject end");
        if is_end { Some(Self::ObjectsEnd) } else { RestoreObject::parse(frame).map(Self::Object) }
    }

    pub(super) fn options(frame: &[u8]) -> Option<Self> {
        Some(Self::Options(unbash_spaces(Strict::new(frame).text("pluginoptions=")?.word(usize::MAX)?)))
    }

    pub(super) fn query(frame: &[u8]) -> Option<Self> {
        PluginQuery::parse(frame).map(Self::Query)
    }
}

/// What a plugin saved for itself and gets back before a restore (reference 02 §4.16, 05 §1.6).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RestoreObject {
    /// The backup that it comes from.
    pub job_id: u32,
    /// Bytes as they are sent.
    pub length: i32,
    /// Bytes of the object itself.
    pub full_length: i32,
    /// Number among the objects of its plugin.
    pub index: i32,
    /// Its type in the catalog.
    pub object_type: i32,
    /// 1: what is sent is a zlib stream.
    pub compression: i32,
    /// The record's FileIndex.
    pub file_index: i32,
    /// The command of the FileSet that has saved it; empty if not said.
    pub plugin: Vec<u8>,
}

impl RestoreObject {
    /// `restoreobject JobId=%u %d,%d,%d,%d,%d,%d,%s`; the plugin's command may be missing, and
    /// its comma with it. The stock daemon cuts it after 1,000 bytes.
    fn parse(frame: &[u8]) -> Option<Self> {
        let mut scan = Lenient::new(frame);
        let job_id = scan.text("restoreobject JobId=")?.u32();
        let length = scan.text(" ")?.i32();
        let full_length = scan.text(",")?.i32();
        let index = scan.text(",")?.i32();
        let object_type = scan.text(",")?.i32();
        let compression = scan.text(",")?.i32();
        let file_index = scan.text(",")?.i32();
        let plugin = scan.text(",").map(|scan| unbash_spaces(scan.word(usize::MAX))).unwrap_or_default();
        Some(Self { job_id, length, full_length, index, object_type, compression, file_index, plugin })
    }
}

/// `query`: a plugin is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PluginQuery {
    /// What for.
    pub parameter: Vec<u8>,
    /// Its name.
    pub plugin: Vec<u8>,
}

impl PluginQuery {
    fn parse(frame: &[u8]) -> Option<Self> {
        let (mut parameter, mut plugin) = (None, None);
        let mut rest = frame.strip_prefix(b"query")?;
        loop {
            rest = rest.trim_ascii_start();
            let Some(equal) = rest.iter().position(|byte| *byte == b'=') else { break };
            let (key, behind) = rest.split_at_checked(equal)?;
            let (text, behind) = quoted(behind.get(1..)?);
            match key {
                b"parameter" => parameter = Some(text),
                b"plugin" => plugin = Some(text),
                _ => {}
            }
            rest = behind;
        }
        Some(Self { parameter: parameter?, plugin: plugin? })
    }
}

/// A value in double quotes, `\` before any byte taken literally, or a bare word; and what stands
/// behind it.
fn quoted(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let Some(inner) = text.strip_prefix(b"\"") else {
        let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
        let (word, rest) = text.split_at_checked(end).unwrap_or((text, &[]));
        return (word.to_vec(), rest);
    };
    let (mut value, mut rest) = (Vec::new(), inner);
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match (byte, behind.split_first()) {
            (b'"', _) => break,
            (b'\\', Some((&next, behind))) => {
                value.push(next);
                rest = behind;
            }
            _ => value.push(byte),
        }
    }
    (value, rest)
}
