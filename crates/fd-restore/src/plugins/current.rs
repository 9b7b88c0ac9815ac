//! The plugin whose files are being restored, and how far its current file is (reference 07 §7.4).

use fd_messages::MessageType;
use fd_plugins::{
    Called, CreateStatus, Event, Host, Instance, Io, IoDone, MetadataPacket, NamedPlugin, RestoreFile, Status,
};
use fd_records::MetadataKind;
use nix::errno::Errno;
use nix::fcntl::OFlag;

use super::access::PluginAccess;
use super::host::RestoreHost;
use crate::created::{Created, Taker};
use crate::report::Report;
use crate::texts::{self, FailedWrite};

/// The mode that a plugin's file is opened with.
const MODE: u32 = 0o600;

/// What a plugin says to metadata.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MetadataAnswer {
    /// Go on.
    Taken,
    /// Leave the file out.
    Skip,
    /// End the restore.
    End,
}

/// How far the current file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// There is none, or it is not restored.
    Nothing,
    /// The daemon restores it.
    Core,
    /// The plugin has made it, and takes its data, if it has any.
    Made,
}

/// A plugin between the two records that enclose its files.
pub(crate) struct CurrentPlugin<'j> {
    plugin: NamedPlugin<'j>,
    access: &'j PluginAccess,
    command: Vec<u8>,
    /// The program of the volume that each of its files is given to.
    program: Option<Vec<u8>>,
    /// What it was told of the current file.
    file: Option<RestoreFile>,
    stage: Stage,
    is_lost: bool,
}

/// The plugin can't be called any more; a message has said so.
struct Lost;

impl<'j> CurrentPlugin<'j> {
    /// Tells a plugin that files of its command come. The error says whether it was lost; if not,
    /// it leaves the files to the daemon.
    pub(super) fn begin(
        plugin: NamedPlugin<'j>,
        access: &'j PluginAccess,
        command: &[u8],
        program: Option<Vec<u8>>,
        report: &mut Report<'_>,
    ) -> Result<Self, bool> {
        let (file, stage) = (None, Stage::Nothing);
        let mut begun = Self { plugin, access, command: command.to_vec(), program, file, stage, is_lost: false };
        let event = Event::RestoreCommand(command);
        let takes = begun.call(report, |instance, host| instance.event(host, &event)).is_ok_and(Status::is_ok)
            && begun.call(report, |instance, host| instance.start_restore_file(host, command)).is_ok_and(Status::is_ok);
        if takes { Ok(begun) } else { Err(begun.is_lost) }
    }

    fn call<T>(
        &mut self,
        report: &mut Report<'_>,
        call: impl FnOnce(&mut dyn Instance, &mut dyn Host) -> Called<T>,
    ) -> Result<T, Lost> {
        self.call_and_listen(report, call).map(|(answer, _told_error)| answer)
    }

    /// Returns also whether the plugin has reported an error meanwhile.
    fn call_and_listen<T>(
        &mut self,
        report: &mut Report<'_>,
        call: impl FnOnce(&mut dyn Instance, &mut dyn Host) -> Called<T>,
    ) -> Result<(T, bool), Lost> {
        if self.is_lost {
            return Err(Lost);
        }
        let mut host = RestoreHost::new(self.access.facts.as_ref(), report);
        match self.plugin.call(|instance| call(instance, &mut host)) {
            Ok(answer) => Ok((answer, host.told_error)),
            Err(gone) => {
                self.is_lost = true;
                if !gone.canceled {
                    report.now(MessageType::Error, &gone.text);
                    if let Some(file) = &self.file {
                        report.now(MessageType::Error, &texts::file_of_failed_plugin(&file.name));
                    }
                }
                Err(Lost)
            }
        }
    }

    /// Whether it was told of a file.
    pub(super) const fn has_file(&self) -> bool {
        self.file.is_some()
    }

    fn is_canceled(&self) -> bool {
        self.access.facts.is_canceled()
    }

    /// Whether a plugin has failed because its job was canceled. After its own fatal message, too,
    /// the job is over, and the file is named. The number alone may be that of an operation of the
    /// plugin's.
    fn was_canceled(&self, done: IoDone) -> bool {
        done.errno == Errno::ECANCELED as i32 && self.is_canceled()
    }

    pub(crate) const fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Whether the plugin has left the current file to the daemon.
    pub(crate) const fn leaves_it_to_core(&self) -> bool {
        matches!(self.stage, Stage::Core)
    }

    /// Whether the plugin has made the current file, so that it gets the file's ACL and extended
    /// attributes.
    pub(crate) const fn has_made_it(&self) -> bool {
        matches!(self.stage, Stage::Made)
    }

    /// A second start without an end between them.
    pub(crate) fn second_start(&self, command: &[u8]) -> Vec<u8> {
        texts::second_start(&self.plugin.info().file, command)
    }

    /// An attribute record: `createFile`, and what it leads to. `None`: the daemon is to make it.
    pub(crate) fn create(&mut self, file: RestoreFile, report: &mut Report<'_>) -> Option<Created> {
        let name = file.name.clone();
        self.stage = Stage::Nothing;
        if !self.plugin.offers().create_file {
            report.now(MessageType::Error, &texts::create_refused(&name));
            return Some(Created::Kept);
        }
        if self.file.replace(file).is_some() {
            report.now(MessageType::Fatal, &texts::unbalanced_create());
            return Some(Created::Kept);
        }
        let Some(file) = self.file.clone() else { return Some(Created::Kept) };
        let Ok((status, made)) = self.call(report, |instance, host| instance.create_file(host, &file)) else {
            return Some(Created::Kept);
        };
        match made {
            _ if !status.is_ok() => {
                report.now(MessageType::Error, &texts::create_failed(status.code(), &name));
                Some(Created::Kept)
            }
            CreateStatus::Error => {
                report.now(MessageType::Error, &texts::create_refused(&name));
                Some(Created::Kept)
            }
            CreateStatus::Skip => Some(Created::Kept),
            CreateStatus::Core => {
                self.stage = Stage::Core;
                None
            }
            CreateStatus::Created => {
                self.stage = Stage::Made;
                Some(Created::ByPlugin)
            }
            CreateStatus::Extract | CreateStatus::Other(_) => Some(self.open(&name, report)),
        }
    }

    fn open(&mut self, name: &[u8], report: &mut Report<'_>) -> Created {
        if let Some(program) = &self.program {
            report.now(MessageType::Info, &texts::volume_asks_for_program(self.plugin.info().name(), program));
        }
        let flags = (OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_TRUNC).bits();
        let done = self.io(report, Io::Open { name, flags, mode: MODE });
        match done {
            Ok(done) if done.status >= 0 => {
                self.stage = Stage::Made;
                Created::Data(Taker::Plugin { address: 0 })
            }
            Ok(done) => {
                if !self.was_canceled(done) {
                    report.now(MessageType::Error, &texts::plugin_open_failed(name, done.errno));
                }
                Created::Kept
            }
            Err(Lost) => Created::Kept,
        }
    }

    fn io(&mut self, report: &mut Report<'_>, io: Io<'_>) -> Result<IoDone, Lost> {
        if !self.plugin.offers().io {
            return Ok(IoDone::error(Errno::ENOSYS as i32));
        }
        self.call(report, |instance, host| instance.io(host, io))
    }

    /// The next data goes to this address, instead of `at`. The error is the message, if there is
    /// one.
    pub(crate) fn go_to(
        &mut self,
        to: u64,
        at: &mut u64,
        name: &[u8],
        report: &mut Report<'_>,
    ) -> Result<(), Option<Vec<u8>>> {
        let failed = |errno| Some(texts::seek_failed(to, name, errno));
        if *at == to {
            return Ok(());
        }
        let offset = i64::try_from(to).map_err(|_too_far| failed(Errno::EINVAL))?;
        let done = self.io(report, Io::Seek { offset, whence: 0 }).map_err(|Lost| None)?;
        if done.status < 0 {
            return Err(if self.is_canceled() { None } else { failed(Errno::from_raw(done.errno)) });
        }
        *at = to;
        Ok(())
    }

    /// Hands the plugin the next data, which goes to the address `at`. The error is the message, if
    /// there is one.
    pub(crate) fn write(
        &mut self,
        data: &[u8],
        at: &mut u64,
        report: &mut Report<'_>,
        failed: impl Fn(&FailedWrite) -> Vec<u8>,
    ) -> Result<(), Option<Vec<u8>>> {
        let done = self.io(report, Io::Write { data }).map_err(|Lost| None)?;
        match usize::try_from(done.status) {
            Ok(written) if written == data.len() => {
                *at = at.saturating_add(data.len() as u64);
                Ok(())
            }
            _ if self.was_canceled(done) => Err(None),
            Ok(written) => Err(Some(texts::wrong_write_size(data.len(), written))),
            Err(_negative) => {
                let errno = Errno::from_raw(done.errno);
                Err(Some(failed(&FailedWrite { written: 0, block: 0, length: data.len(), errno })))
            }
        }
    }

    /// Metadata that the plugin has saved with the file. Files that it leaves out have theirs, too.
    pub(crate) fn restore_metadata(&mut self, packet: &MetadataPacket, report: &mut Report<'_>) -> MetadataAnswer {
        if self.file.is_none() || !self.plugin.offers().metadata {
            return MetadataAnswer::Taken;
        }
        match self.call(report, |instance, host| instance.restore_metadata(host, packet)) {
            Ok(Status::Ok) => MetadataAnswer::Taken,
            Ok(Status::Skip) | Err(Lost) => MetadataAnswer::Skip,
            Ok(failed) => {
                report.now(MessageType::Error, &texts::metadata_failed(failed.code()));
                MetadataAnswer::End
            }
        }
    }

    /// Lets the plugin set the attributes. Returns whether the daemon is to set them.
    pub(crate) fn set_attributes(&mut self, report: &mut Report<'_>) -> bool {
        if !self.plugin.offers().set_attributes {
            return false;
        }
        let Some(file) = self.file.clone() else { return false };
        let set = self.call(report, |instance, host| instance.set_attributes(host, &file));
        matches!(set, Ok((_, CreateStatus::Core)))
    }

    /// Ends the data of the current file, which remains the plugin's if the plugin takes it.
    pub(crate) fn close(&mut self, report: &mut Report<'_>) {
        let end = self.end_data(report, |instance, host| instance.io(host, Io::Close));
        if let Some((done, told_error)) = end
            && done.has_failed_to_close()
            && !told_error
            && !self.is_canceled()
            && let Some(file) = &self.file
        {
            report.now(MessageType::Error, &texts::plugin_close_failed(&file.name, Errno::from_raw(done.errno)));
        }
    }

    /// What the plugin says to that, and whether it has told of an error.
    fn end_data(
        &mut self,
        report: &mut Report<'_>,
        end: impl FnOnce(&mut dyn Instance, &mut dyn Host) -> Called<IoDone>,
    ) -> Option<(IoDone, bool)> {
        if self.stage != Stage::Made {
            self.stage = Stage::Nothing;
            return None;
        }
        if self.is_canceled() {
            self.cancel(report);
        }
        self.call_and_listen(report, end).ok()
    }

    /// Gives the current file up; `is_open`: the plugin takes its data.
    pub(crate) fn abandon(&mut self, is_open: bool, report: &mut Report<'_>) {
        if is_open {
            // Why it is given up was told.
            let _done = self.end_data(report, |instance, host| instance.give_up(host));
        }
        self.stage = Stage::Nothing;
    }

    /// Tells the job's plugins that the job ends early.
    pub(crate) fn cancel(&self, report: &mut Report<'_>) {
        self.access.plugins.cancel(&mut RestoreHost::new(self.access.facts.as_ref(), report));
    }

    /// An ACL or extended attributes that the plugin has saved.
    pub(crate) fn write_xacl(&mut self, kind: MetadataKind, content: &[u8], report: &mut Report<'_>) {
        if !self.plugin.offers().xacl {
            return;
        }
        let Ok((status, told_error)) =
            self.call_and_listen(report, |instance, host| instance.write_xacl(host, kind, content))
        else {
            return;
        };
        if !status.is_ok()
            && !told_error
            && let Some(file) = &self.file
        {
            report.now(MessageType::Warning, &texts::xacl_failed(kind, &file.name, status.code()));
        }
    }

    /// The record that ends the files of the command.
    pub(crate) fn end(mut self, report: &mut Report<'_>) {
        let _status = self.call(report, |instance, host| instance.end_restore_file(host));
    }
}

impl std::fmt::Debug for CurrentPlugin<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CurrentPlugin")
            .field("command", &String::from_utf8_lossy(&self.command))
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}
