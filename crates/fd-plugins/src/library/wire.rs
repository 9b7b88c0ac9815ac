//! What the daemon and a plugin host say to each other, and how it is put into bytes.
//!
//! Calls mirror the functions of a plugin, requests those that the daemon offers (reference 07
//! §3.4, §3.5). Neither side sends an address. What a plugin host says is bounded and checked here
//! before anybody looks at it: a plugin may have overwritten its memory.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::api::host::{AccurateAttributes, Change, FileEvent, Value};
use crate::api::packets::{ChosenFile, MetadataPacket, RestoreFile, SavePacket, SavedObject};
use crate::api::plugin::Offers;

/// Most bytes of a message. Objects and metadata travel in messages.
pub(crate) const LONGEST_MESSAGE: usize = 32 << 20;
/// Most bytes of a message on the control line, which has no data.
pub(crate) const LONGEST_ORDER: usize = 128 << 10;
/// Bytes before each message: its length.
pub(crate) const HEAD: usize = 4;
/// Most bytes of a name, a command or a message's text.
pub(crate) const LONGEST_TEXT: usize = 1 << 20;
/// Most packets of metadata of one file.
pub(crate) const MOST_METADATA: usize = MetadataPacket::MOST;

/// Bytes of a slot of the shared memory: one read of a plugin.
pub(crate) const SLOT: usize = 64 << 10;
/// Bytes from one slot to the next: some plugins write before their buffer (reference 07 §9).
pub(crate) const SLOT_STEP: usize = SLOT + 4096;
/// How many slots there are.
pub(crate) const SLOTS: usize = 16;
/// Where the first slot's data begins in the shared memory. Before it is the page of the
/// [`marks`], and room for what is written before a buffer.
pub(crate) const FIRST_SLOT: usize = 8192;
/// Bytes of the shared memory.
pub(crate) const SHARED: usize = FIRST_SLOT + SLOTS * SLOT_STEP;
/// Most bytes of one write: all slots together.
pub(crate) const LONGEST_WRITE: usize = SHARED - FIRST_SLOT;
/// So many slots may be filled before the daemon has emptied one.
pub(crate) const SLOTS_AHEAD: u32 = 8;
/// A read with fewer bytes travels in its message.
pub(crate) const SMALL_READ: usize = 4096;

/// Places in the first page of the shared memory, which a plugin host keeps up to date, so that the
/// daemon can say where it has died.
pub(crate) mod marks {
    /// The function that runs: [`Function`](super::Function) as a byte; 0 for none.
    pub(crate) const FUNCTION: usize = 0;
    /// 1 if the thread of this instance has received a deadly signal.
    pub(crate) const FAULT: usize = 1;
    /// Bytes of both.
    pub(crate) const LENGTH: usize = 2;
    /// 1 if the daemon wants nothing called ahead any more. It sets this, and the plugin host takes
    /// it back.
    pub(crate) const HALT: usize = 2;
}

/// The function that runs, and whether its thread has received a deadly signal, by the marks in
/// the first bytes of the shared memory.
pub(crate) fn read_marks(bytes: [u8; marks::LENGTH]) -> (Function, bool) {
    let [function, fault] = bytes;
    (Function::from_mark(function), fault == 1)
}

/// A function of a plugin, for messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Function {
    None,
    New,
    Free,
    Event,
    StartBackup,
    EndBackup,
    StartRestore,
    EndRestore,
    Io,
    CreateFile,
    SetAttributes,
    CheckFile,
    Xacl,
    RestoreFileList,
    CheckStream,
    Query,
    RestoreMetadata,
    StartVerify,
    EndVerify,
}

impl Function {
    /// Their names in the C interface.
    const NAMES: [(Self, &'static str); 19] = [
        (Self::None, "no function"),
        (Self::New, "newPlugin"),
        (Self::Free, "freePlugin"),
        (Self::Event, "handlePluginEvent"),
        (Self::StartBackup, "startBackupFile"),
        (Self::EndBackup, "endBackupFile"),
        (Self::StartRestore, "startRestoreFile"),
        (Self::EndRestore, "endRestoreFile"),
        (Self::Io, "pluginIO"),
        (Self::CreateFile, "createFile"),
        (Self::SetAttributes, "setFileAttributes"),
        (Self::CheckFile, "checkFile"),
        (Self::Xacl, "handleXACLdata"),
        (Self::RestoreFileList, "restoreFileList"),
        (Self::CheckStream, "checkStream"),
        (Self::Query, "queryParameter"),
        (Self::RestoreMetadata, "metadataRestore"),
        (Self::StartVerify, "startVerifyFile"),
        (Self::EndVerify, "endVerifyFile"),
    ];

    /// The function of this mark; a number that is none counts as no function.
    pub(crate) fn from_mark(mark: u8) -> Self {
        Self::NAMES.into_iter().map(|(function, _)| function).find(|known| known.mark() == mark).unwrap_or(Self::None)
    }

    /// Its mark.
    pub(crate) const fn mark(self) -> u8 {
        self as u8
    }

    /// Its name in the C interface.
    pub(crate) fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(known, _)| *known == self).map(|(_, name)| name).unwrap_or_default()
    }
}

/// Bytes that are serialized as such.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Bytes(#[serde(with = "serde_bytes")] pub(crate) Vec<u8>);

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

/// What the daemon says on the line of an instance.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum ToHost {
    /// A function is to be called. It is answered.
    Call(Box<Call>),
    /// The answer to a request.
    Reply(Reply),
    /// So many slots are free again.
    Credit(u32),
    /// What was begun ahead is to stop. Answered by [`FromHost::Halted`].
    Halt,
}

/// A function of the plugin, with its arguments.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum Call {
    /// `newPlugin`.
    New(Box<Begin>),
    /// `freePlugin`; the line ends.
    Free,
    /// `handlePluginEvent`.
    Event(u32, EventValue),
    /// Event 24.
    HandleFile(Bytes, Box<SavePacket>),
    /// Event 26.
    Features,
    /// `startBackupFile`, with the command; whether data is going to be read; what is called ahead
    /// for the file.
    StartBackup(Bytes, bool, Option<Plan>, Box<SavePacket>),
    /// `endBackupFile`; what is called ahead for the next file of this command.
    EndBackup(Option<(Bytes, Plan)>),
    /// `pluginIO`: open.
    Open { name: Bytes, flags: i32, mode: u32 },
    /// `pluginIO`: read so many bytes, at most [`SLOT`]; whether it goes on reading ahead.
    Read(u32, bool),
    /// `pluginIO`: write these bytes.
    Write(Bytes),
    /// `pluginIO`: write so many bytes of the shared memory.
    WriteShared(u32),
    /// `pluginIO`: seek.
    Seek { offset: i64, whence: i32 },
    /// `pluginIO`: close.
    Close,
    /// `handleXACLdata`: the function's number, and the content in a restore.
    Xacl(i32, Bytes),
    /// `checkStream`.
    CheckStream(i32),
    /// `checkFile`.
    CheckFile(Bytes),
    /// `startRestoreFile`.
    StartRestore(Bytes),
    /// `endRestoreFile`.
    EndRestore,
    /// `createFile`.
    CreateFile(Box<RestoreFile>),
    /// `setFileAttributes`.
    SetAttributes(Box<RestoreFile>),
    /// `metadataRestore`.
    RestoreMetadata(MetadataPacket),
    /// `restoreFileList`.
    RestoreFileList(Option<Box<ChosenFile>>),
    /// `queryParameter`: the parameter and the command.
    Query(Bytes, Bytes),
    /// `startVerifyFile`.
    StartVerify(Box<RestoreFile>),
    /// `endVerifyFile`.
    EndVerify,
}

/// What a new instance knows of its job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Begin {
    /// Values of variables as they are now, for threads of the plugin that are in no call.
    pub(crate) values: Vec<(i32, Value)>,
    /// `Allowed Script Directories`.
    pub(crate) allowed: Vec<Bytes>,
}

/// What was called for a file between `startBackupFile` and `endBackupFile`.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// `checkStream` with this stream.
    pub(crate) check_stream: Option<i32>,
    /// Flags and mode of the open.
    pub(crate) open: Option<(i32, u32)>,
    /// The bytes of a read.
    pub(crate) read: u32,
    /// `handleXACLdata`.
    pub(crate) xacl: bool,
    /// The option flags of the file on which the calls depend.
    pub(crate) flags: u64,
}

/// The value of an event.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum EventValue {
    /// A null pointer.
    Nothing,
    /// A text.
    Text(Bytes),
    /// A number in the pointer.
    Number(i64),
    /// A restore object.
    Object(Box<SavedObject>),
}

impl Call {
    /// The function that it calls.
    pub(crate) const fn function(&self) -> Function {
        match self {
            Self::New(_) => Function::New,
            Self::Free => Function::Free,
            Self::Event(..) | Self::HandleFile(..) | Self::Features => Function::Event,
            Self::StartBackup(..) => Function::StartBackup,
            Self::EndBackup(_) => Function::EndBackup,
            Self::Open { .. }
            | Self::Read(..)
            | Self::Write(_)
            | Self::WriteShared(_)
            | Self::Seek { .. }
            | Self::Close => Function::Io,
            Self::Xacl(..) => Function::Xacl,
            Self::CheckStream(_) => Function::CheckStream,
            Self::CheckFile(_) => Function::CheckFile,
            Self::StartRestore(_) => Function::StartRestore,
            Self::EndRestore => Function::EndRestore,
            Self::CreateFile(_) => Function::CreateFile,
            Self::SetAttributes(_) => Function::SetAttributes,
            Self::RestoreMetadata(_) => Function::RestoreMetadata,
            Self::RestoreFileList(_) => Function::RestoreFileList,
            Self::Query(..) => Function::Query,
            Self::StartVerify(_) => Function::StartVerify,
            Self::EndVerify => Function::EndVerify,
        }
    }
}

/// What a plugin host says on the line of an instance.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum FromHost {
    /// Something that needs no answer.
    Note(Note),
    /// The plugin calls a function of the daemon. It is answered.
    Request(Request),
    /// A function of the plugin has returned.
    Answer(Answer),
    /// Nothing more is done ahead.
    Halted,
}

/// Something that needs no answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Note {
    /// `JobMessage`: its type and its text.
    Message(i32, Bytes),
    /// `DebugMessage`: its level and its text.
    Debug(i32, Bytes),
    /// The plugin takes part in verifying data.
    Verifies,
}

/// A function of the daemon, with its arguments.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// `getBaculaValue`.
    Value(i32),
    /// `setBaculaValue` of variable 10.
    MarkSeen(Bytes),
    /// `setBaculaValue` of variable 22.
    SetInteractive,
    /// The functions that change the FileSet.
    Change(Change, Bytes, u8),
    /// `checkChanges`.
    CheckChanges(Box<SavePacket>),
    /// `AcceptFile`.
    AcceptFile(Box<SavePacket>),
    /// `getAccurateAttribs`.
    Accurate(Bytes),
    /// `AddFileEvent`.
    FileEvent(FileEvent),
}

/// The answer to a [`Request`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// To `getBaculaValue`.
    Value(Option<Value>),
    /// To most.
    Status(i32),
    /// To `checkChanges`: the status, `delta_seq`, `accurate_found`.
    Checked(i32, u32, bool),
    /// To `getAccurateAttribs`.
    Accurate(Option<Box<AccurateAttributes>>),
}

/// What a function of the plugin has returned.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// Most functions: their number.
    Status(i32),
    /// `startBackupFile` and event 24: the number, and the packet if the number is 0.
    File(i32, Option<Box<SavePacket>>),
    /// Event 26.
    Features(Option<Bytes>),
    /// `pluginIO`.
    Io { returned: i32, status: i32, errno: i32, offset: i64, data: Data },
    /// `handleXACLdata`: the number and the content.
    Xacl(i32, Bytes),
    /// `checkStream`: the number and the stream.
    Stream(i32, i32),
    /// `createFile` and `setFileAttributes`: the number and `create_status`.
    Created(i32, i32),
    /// `queryParameter`: the number and the result.
    Query(i32, Option<Bytes>),
}

/// Where the bytes are that were read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Data {
    /// There are none.
    Nothing,
    /// Here.
    Here(Bytes),
    /// In this slot of the shared memory.
    Slot(u32),
}

/// What the daemon says on the control line of a plugin host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// The first one: which plugin it is to load, and how.
    Load(Box<Load>),
    /// A new instance; its line and its shared memory come with it.
    Open(u64),
    /// The cancel event of an instance; a line for it comes with it.
    Cancel(u64),
    /// Becomes this user, with these groups, as the daemon itself has.
    /// It may still read every file then, if the daemon may.
    Become { uid: u32, gid: u32, groups: Vec<u32>, reads_all: bool },
    /// The daemon ends.
    Unload,
}

/// What a plugin host is to load.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Load {
    /// Path of the plugin; empty for one that is compiled in.
    pub(crate) path: Bytes,
    /// Its file's name.
    pub(crate) file: Bytes,
    /// Variables that are the same in every job.
    pub(crate) general: Vec<(i32, Value)>,
    /// User to become, if not the daemon's, and its groups, group first.
    pub(crate) user: Option<(Option<u32>, Vec<u32>)>,
    /// Most bytes of memory.
    pub(crate) memory: Option<u64>,
    /// Whether it may use the network.
    pub(crate) network: bool,
    /// Whether it has the capability to read every file from the daemon.
    pub(crate) reads_all: bool,
    /// The daemon's working directory.
    pub(crate) working_directory: Bytes,
    /// The daemon's name.
    pub(crate) daemon: Bytes,
}

/// What a plugin host says on its control line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The plugin is loaded.
    Loaded {
        /// `pInfo.plugin_version`.
        version: Bytes,
        offers: Offers,
    },
    /// It is not, and this is why; `None`: its `loadPlugin` has refused.
    Refused(Option<Bytes>),
    /// Done what was ordered.
    Done,
}

/// What a plugin host has said is not what it may say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Nonsense {
    /// It has more bytes than any message.
    #[error("a message of {0} bytes")]
    TooLong(u32),
    /// It is none of the messages.
    #[error("an unknown message")]
    Unknown,
    /// A text is too long, or has a NUL in it.
    #[error("a text that is none")]
    Text,
    /// A number is out of its range.
    #[error("a number out of its range")]
    Range,
    /// It does not answer what was called.
    #[error("an answer to another call")]
    Order,
}

/// The bytes of a message, its length first.
pub(crate) fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, Nonsense> {
    let mut bytes = vec![0; HEAD];
    append(message, &mut bytes)?;
    Ok(bytes)
}

fn append<T: Serialize>(message: &T, bytes: &mut Vec<u8>) -> Result<(), Nonsense> {
    *bytes = postcard::to_extend(message, std::mem::take(bytes)).map_err(|_| Nonsense::Unknown)?;
    let length = u32::try_from(bytes.len().saturating_sub(HEAD)).map_err(|_| Nonsense::Range)?;
    if length as usize > LONGEST_MESSAGE {
        return Err(Nonsense::TooLong(length));
    }
    if let Some(head) = bytes.first_chunk_mut() {
        *head = length.to_le_bytes();
    }
    Ok(())
}

/// The bytes of a message that has a packet to itself.
pub(crate) fn encode_bare<T: Serialize>(message: &T) -> Result<Vec<u8>, Nonsense> {
    postcard::to_extend(message, Vec::new()).map_err(|_| Nonsense::Unknown)
}

/// The message of these bytes, without a length.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Nonsense> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        _ => Err(Nonsense::Unknown),
    }
}

/// Puts messages together that come in pieces.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    bytes: Vec<u8>,
    /// What was taken already.
    start: usize,
}

impl Assembly {
    /// Takes what has come.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 && self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message, if it is complete.
    ///
    /// # Errors
    /// It is too long.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, Nonsense> {
        let rest = self.bytes.get(self.start..).unwrap_or_default();
        let Some((head, _)) = rest.split_first_chunk::<HEAD>() else {
            self.compact();
            return Ok(None);
        };
        let length = u32::from_le_bytes(*head);
        if length as usize > LONGEST_MESSAGE {
            return Err(Nonsense::TooLong(length));
        }
        let from = self.start + HEAD;
        let to = from + length as usize;
        if to > self.bytes.len() {
            self.compact();
            return Ok(None);
        }
        self.start = to;
        Ok(self.bytes.get(from..to))
    }

    /// Forgets what was taken, once it is more than a little.
    fn compact(&mut self) {
        const LITTLE: usize = 64 << 10;
        if self.start > LITTLE {
            self.bytes.drain(..self.start);
            self.start = 0;
            self.bytes.shrink_to(LITTLE);
        }
    }
}

impl FromHost {
    /// A message of a plugin host, checked.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Nonsense> {
        let message: Self = decode(bytes)?;
        match &message {
            Self::Note(Note::Message(_, text) | Note::Debug(_, text)) => text_fits(&text.0)?,
            Self::Note(Note::Verifies) | Self::Halted => {}
            Self::Request(request) => request.check()?,
            Self::Answer(answer) => answer.check()?,
        }
        Ok(message)
    }
}

impl Request {
    fn check(&self) -> Result<(), Nonsense> {
        match self {
            Self::Value(_) | Self::SetInteractive => Ok(()),
            Self::MarkSeen(text) | Self::Change(_, text, _) | Self::Accurate(text) => text_fits(&text.0),
            Self::CheckChanges(file) | Self::AcceptFile(file) => check_file(file),
            Self::FileEvent(event) => {
                text_fits(&event.source)?;
                text_fits(&event.description)
            }
        }
    }
}

impl Answer {
    fn check(&self) -> Result<(), Nonsense> {
        match self {
            Self::Status(_) | Self::Stream(..) | Self::Created(..) | Self::Xacl(..) => Ok(()),
            Self::File(_, file) => file.as_deref().map_or(Ok(()), check_file),
            Self::Features(text) => text.as_ref().map_or(Ok(()), |text| text_fits(&text.0)),
            Self::Query(_, text) => text.as_ref().map_or(Ok(()), |text| text_fits(&text.0)),
            Self::Io { status, data, .. } => match data {
                Data::Nothing => Ok(()),
                Data::Here(bytes) => in_range(bytes.0.len() <= SLOT && usize::try_from(*status) == Ok(bytes.0.len())),
                Data::Slot(slot) => {
                    in_range((*slot as usize) < SLOTS && usize::try_from(*status).is_ok_and(|count| count <= SLOT))
                }
            },
        }
    }

    /// Whether it answers this call.
    pub(crate) fn answers(&self, call: &Call) -> bool {
        match call {
            Call::New(_)
            | Call::Free
            | Call::Event(..)
            | Call::EndBackup(_)
            | Call::CheckFile(_)
            | Call::StartRestore(_)
            | Call::EndRestore
            | Call::RestoreMetadata(_)
            | Call::RestoreFileList(_)
            | Call::StartVerify(_)
            | Call::EndVerify => matches!(self, Self::Status(_)),
            Call::HandleFile(..) | Call::StartBackup(..) => matches!(self, Self::File(..)),
            Call::Features => matches!(self, Self::Features(_)),
            Call::Read(most, _) => match self {
                Self::Io { data: Data::Nothing, status, .. } => *status <= 0,
                Self::Io { status, .. } => u32::try_from(*status).is_ok_and(|count| count <= *most),
                _ => false,
            },
            Call::Open { .. } | Call::Write(_) | Call::WriteShared(_) | Call::Seek { .. } | Call::Close => {
                matches!(self, Self::Io { data: Data::Nothing, .. })
            }
            Call::Xacl(..) => matches!(self, Self::Xacl(..)),
            Call::CheckStream(_) => matches!(self, Self::Stream(..)),
            Call::CreateFile(_) | Call::SetAttributes(_) => matches!(self, Self::Created(..)),
            Call::Query(..) => matches!(self, Self::Query(..)),
        }
    }
}

fn check_file(file: &SavePacket) -> Result<(), Nonsense> {
    let object = &file.plugin_object;
    let texts = [
        file.name.as_deref(),
        file.link.as_deref(),
        file.snap_name.as_deref(),
        file.object.name.as_deref(),
        Some(&object.path),
        Some(&object.plugin_name),
        Some(&object.category),
        Some(&object.object_type),
        Some(&object.name),
        Some(&object.source),
        Some(&object.uuid),
    ];
    texts.into_iter().flatten().try_for_each(text_fits)?;
    in_range(file.metadata.as_ref().is_none_or(|list| list.len() <= MOST_METADATA))
}

fn text_fits(text: &[u8]) -> Result<(), Nonsense> {
    if text.len() <= LONGEST_TEXT && !text.contains(&0) { Ok(()) } else { Err(Nonsense::Text) }
}

const fn in_range(is: bool) -> Result<(), Nonsense> {
    if is { Ok(()) } else { Err(Nonsense::Range) }
}
