//! The functions of a plugin (`pFuncs`, reference 07 §3.4).

use std::sync::Arc;

use fd_records::MetadataKind;
use serde::{Deserialize, Serialize};

use super::call::{Called, Io, IoDone, Status};
use super::event::Event;
use super::host::Host;
use super::packets::{ChosenFile, CreateStatus, MetadataPacket, Query, RestoreFile, SavePacket};

/// A plugin, loaded once for the daemon. Several jobs use it at the same time.
pub trait Plugin: Send + Sync + std::fmt::Debug {
    /// What it says of itself.
    fn info(&self) -> &PluginInfo;

    /// Which functions it has.
    fn offers(&self) -> Offers;

    /// Its context in a job or for another connection of a Director (`newPlugin`). Any answer but
    /// [`Status::Ok`] disables it for this job; the instance is ended all the same.
    ///
    /// # Errors
    /// It can't be reached.
    fn begin(&self, host: &mut dyn Host) -> Called<(Box<dyn Instance>, Status)>;
}

/// What a plugin says of itself (`pInfo`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PluginInfo {
    /// Its file, `bpipe-fd.so`.
    pub file: Vec<u8>,
    /// Its version, a text.
    pub version: Vec<u8>,
}

impl PluginInfo {
    /// The end of the names of files with plugins.
    pub const FILE_END: &'static [u8] = b"-fd.so";

    /// The name that commands use, `bpipe`: the file's up to its first `-fd.so`.
    pub fn name(&self) -> &[u8] {
        let end = self.file.windows(Self::FILE_END.len()).position(|window| window == Self::FILE_END);
        end.and_then(|end| self.file.get(..end)).unwrap_or(&self.file)
    }
}

/// Which functions a plugin has, of those that it need not have (reference 07 §3.4).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each function may be there or not")]
pub struct Offers {
    /// `startBackupFile` and `endBackupFile`.
    pub backup: bool,
    /// `startRestoreFile` and `endRestoreFile`.
    pub restore: bool,
    /// `pluginIO`.
    pub io: bool,
    /// `createFile`.
    pub create_file: bool,
    /// `setFileAttributes`.
    pub set_attributes: bool,
    /// `checkFile`.
    pub check_file: bool,
    /// `handleXACLdata`.
    pub xacl: bool,
    /// `restoreFileList`.
    pub restore_file_list: bool,
    /// `checkStream`.
    pub check_stream: bool,
    /// `queryParameter`.
    pub query: bool,
    /// `metadataRestore`.
    pub metadata: bool,
    /// `startVerifyFile`.
    pub start_verify: bool,
    /// `endVerifyFile`.
    pub end_verify: bool,
}

/// Delivers the cancel event of one instance, from any thread, while another one may be in a call.
pub trait CancelEvent: Send + Sync {
    /// Tells the instance that its job is canceled (event 14). Never waits long: whether the plugin
    /// obeys shows in its calls.
    fn cancel(&self, host: &mut dyn Host);
}

/// A plugin's context in one job. Its functions are called by one thread at a time. Those that a
/// plugin does not have are not called ([`Offers`]).
pub trait Instance: Send {
    /// What cancels it.
    fn canceler(&self) -> Arc<dyn CancelEvent>;

    /// Ends the context (`freePlugin`).
    ///
    /// # Errors
    /// It can't be reached.
    fn end(self: Box<Self>, host: &mut dyn Host) -> Called<()>;

    /// Closes the file that it has open for writing, of which not all data has come: what takes
    /// the data must not see its end, where that can be helped.
    ///
    /// # Errors
    /// It can't be reached.
    fn give_up(&mut self, host: &mut dyn Host) -> Called<IoDone> {
        self.io(host, Io::Close)
    }

    /// Whether it takes part in verifying data: it has registered for event 27.
    fn verifies(&self) -> bool {
        false
    }

    /// The program that the restore of this command of a volume would run, for a shell; `None`
    /// where the command itself doesn't say it, or the user of the restore has chosen another one.
    fn program_of_volume(&self, _command: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// `handlePluginEvent`.
    ///
    /// # Errors
    /// It can't be reached.
    fn event(&mut self, host: &mut dyn Host, event: &Event<'_>) -> Called<Status>;

    /// Event 24: whether this option plugin saves the file (reference 07 §5.7).
    ///
    /// # Errors
    /// It can't be reached.
    fn handle_file(&mut self, _host: &mut dyn Host, _command: &[u8], _file: &mut SavePacket) -> Called<Status> {
        Ok(Status::Core)
    }

    /// Event 26: the features that it names.
    ///
    /// # Errors
    /// It can't be reached.
    fn features(&mut self, _host: &mut dyn Host) -> Called<Option<Vec<u8>>> {
        Ok(None)
    }

    /// `startBackupFile`: the next file of a command. Anything but [`Status::Ok`] ends the command.
    /// `reads` says that the data will be read, too, unless the packet forbids it: it will not in
    /// an estimate.
    ///
    /// # Errors
    /// It can't be reached.
    fn start_backup_file(
        &mut self,
        _host: &mut dyn Host,
        _command: &[u8],
        _reads: bool,
        _file: &mut SavePacket,
    ) -> Called<Status> {
        Ok(Status::Error)
    }

    /// `endBackupFile`: [`Status::More`] if there is a further file.
    ///
    /// # Errors
    /// It can't be reached.
    fn end_backup_file(&mut self, _host: &mut dyn Host) -> Called<Status> {
        Ok(Status::Ok)
    }

    /// `pluginIO`.
    ///
    /// # Errors
    /// It can't be reached.
    fn io(&mut self, _host: &mut dyn Host, _io: Io<'_>) -> Called<IoDone> {
        Ok(IoDone::error(0))
    }

    /// Reads at most `most` bytes to the end of `room`, as [`Io::Read`] does: the daemon's buffer,
    /// so that no copy is needed. What is behind the bytes that [`IoDone::status`] counts is cut
    /// off by the caller.
    ///
    /// # Errors
    /// It can't be reached.
    fn read_to(&mut self, host: &mut dyn Host, room: &mut Vec<u8>, most: usize) -> Called<IoDone> {
        let start = room.len();
        room.resize(start.saturating_add(most), 0);
        self.io(host, Io::Read { buffer: room.get_mut(start..).unwrap_or_default() })
    }

    /// `handleXACLdata` in a backup: appends the next bytes to `content`. Nothing appended: there
    /// are no more.
    ///
    /// # Errors
    /// It can't be reached.
    fn read_xacl(&mut self, _host: &mut dyn Host, _kind: MetadataKind, _content: &mut Vec<u8>) -> Called<Status> {
        Ok(Status::Ok)
    }

    /// `handleXACLdata` in a restore.
    ///
    /// # Errors
    /// It can't be reached.
    fn write_xacl(&mut self, _host: &mut dyn Host, _kind: MetadataKind, _content: &[u8]) -> Called<Status> {
        Ok(Status::Ok)
    }

    /// `checkStream`: the plugin may change the stream's number.
    ///
    /// # Errors
    /// It can't be reached.
    fn check_stream(&mut self, _host: &mut dyn Host, _stream: &mut i32) -> Called<Status> {
        Ok(Status::Ok)
    }

    /// `checkFile`: [`Status::Seen`] if a file that this job has not saved still exists.
    ///
    /// # Errors
    /// It can't be reached.
    fn check_file(&mut self, _host: &mut dyn Host, _name: &[u8]) -> Called<Status> {
        Ok(Status::Ok)
    }

    /// `startRestoreFile`.
    ///
    /// # Errors
    /// It can't be reached.
    fn start_restore_file(&mut self, _host: &mut dyn Host, _command: &[u8]) -> Called<Status> {
        Ok(Status::Error)
    }

    /// `endRestoreFile`.
    ///
    /// # Errors
    /// It can't be reached.
    fn end_restore_file(&mut self, _host: &mut dyn Host) -> Called<Status> {
        Ok(Status::Ok)
    }

    /// `createFile`, with the number that it returned and its `create_status`.
    ///
    /// # Errors
    /// It can't be reached.
    fn create_file(&mut self, _host: &mut dyn Host, _file: &RestoreFile) -> Called<(Status, CreateStatus)> {
        Ok((Status::Error, CreateStatus::Error))
    }

    /// `setFileAttributes`, with the number that it returned and its `create_status`.
    ///
    /// # Errors
    /// It can't be reached.
    fn set_attributes(&mut self, _host: &mut dyn Host, _file: &RestoreFile) -> Called<(Status, CreateStatus)> {
        Ok((Status::Ok, CreateStatus::Error))
    }

    /// `metadataRestore`.
    ///
    /// # Errors
    /// It can't be reached.
    fn restore_metadata(&mut self, _host: &mut dyn Host, _packet: &MetadataPacket) -> Called<Status> {
        Ok(Status::Ok)
    }

    /// `restoreFileList`: a file that was chosen; `None` after the last one.
    ///
    /// # Errors
    /// It can't be reached.
    fn restore_file_list(&mut self, _host: &mut dyn Host, _file: Option<&ChosenFile>) -> Called<Status> {
        Ok(Status::Ok)
    }

    /// `queryParameter`: a result is appended to `result`. [`Status::More`]: ask again.
    ///
    /// # Errors
    /// It can't be reached.
    fn query(&mut self, _host: &mut dyn Host, _query: Query<'_>, _result: &mut Vec<u8>) -> Called<Status> {
        Ok(Status::Error)
    }

    /// `startVerifyFile`.
    ///
    /// # Errors
    /// It can't be reached.
    fn start_verify_file(&mut self, _host: &mut dyn Host, _file: &RestoreFile) -> Called<Status> {
        Ok(Status::Error)
    }

    /// `endVerifyFile`.
    ///
    /// # Errors
    /// It can't be reached.
    fn end_verify_file(&mut self, _host: &mut dyn Host) -> Called<Status> {
        Ok(Status::Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_at_the_first_mark() {
        let name = |file: &str| PluginInfo { file: file.into(), version: Vec::new() }.name().to_vec();
        assert_eq!(name("bpipe-fd.so"), b"bpipe");
        assert_eq!(name("a-fd.so.b-fd.so"), b"a");
    }
}
