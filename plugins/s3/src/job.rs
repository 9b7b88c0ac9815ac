//! The plugin in one job.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use fd_messages::MessageType;
use fd_plugins::{
    Called, CancelEvent, CreateStatus, Event, FilledIn, Host, Instance, Io, IoDone, MetadataPacket, RestoreFile,
    RestoreOption, SavePacket, Status, Value, Variable,
};

use crate::backup::{Backup, Mode};
use crate::client::Client;
use crate::error::S3Error;
use crate::restore::{Places, Restore};
use crate::settings::BucketSettings;
use crate::texts;
use crate::work::Cancel;

/// A bucket for one restore.
static RESTORE_INTO: RestoreOption = RestoreOption {
    name: b"restore_into",
    offered: b"# Plugin configuration file\n# Version 1\n\
        OptPrompt=\"Restore into the bucket of this file on the client\"\nrestore_into=@STR@\n\n",
    is_optional: true,
    obeyed: texts::restores_into,
};

/// Its context in a job.
#[derive(Default, Debug)]
pub(crate) struct S3Job {
    cancel: Arc<Canceler>,
    level: Option<u8>,
    backup: Option<Backup>,
    restore: Option<Restore>,
    places: Places,
    /// The addresses of the buckets that were saved, and how.
    saved: Vec<(String, BucketSettings)>,
    /// The object of the command is to be saved before its files.
    object_due: bool,
    /// How many such objects there were. They count as files.
    objects: i32,
    /// Objects of buckets that could not be read.
    unread: u64,
    /// The bucket files that a user wants for restores.
    into: FilledIn,
}

#[derive(Default, Debug)]
struct Canceler(Cancel);

impl CancelEvent for Canceler {
    fn cancel(&self, _host: &mut dyn Host) {
        self.0.set();
    }
}

impl Instance for S3Job {
    fn canceler(&self) -> Arc<dyn CancelEvent> {
        Arc::clone(&self.cancel) as Arc<dyn CancelEvent>
    }

    fn end(self: Box<Self>, _host: &mut dyn Host) -> Called<()> {
        Ok(())
    }

    fn event(&mut self, host: &mut dyn Host, event: &Event<'_>) -> Called<Status> {
        Ok(match event {
            Event::Level(level) => {
                self.level = Some(*level);
                Status::Ok
            }
            Event::BackupCommand(command) => {
                self.object_due = self.level == Some(b'F');
                self.begin_backup(host, command, false)
            }
            Event::EstimateCommand(command) => {
                self.object_due = false;
                self.begin_backup(host, command, true)
            }
            Event::EndBackupJob => {
                self.must_have_saved(host);
                Status::Ok
            }
            Event::RestoreCommand(command) => self.begin_restore(host, command),
            Event::RestoreObject(Some(object)) => RESTORE_INTO.take(&mut self.into, host, object),
            Event::EndRestoreJob => {
                if let Some(mut restore) = self.restore.take() {
                    restore.end(host);
                }
                Status::Ok
            }
            _ => Status::Ok,
        })
    }

    fn start_backup_file(
        &mut self,
        host: &mut dyn Host,
        _command: &[u8],
        reads: bool,
        file: &mut SavePacket,
    ) -> Called<Status> {
        if std::mem::take(&mut self.object_due) && reads {
            self.objects += 1;
            RESTORE_INTO.offer(file);
            return Ok(Status::Ok);
        }
        Ok(self.backup.as_mut().map_or(Status::Error, |backup| backup.next(host, file)))
    }

    fn end_backup_file(&mut self, _host: &mut dyn Host) -> Called<Status> {
        // Whether there is another one is found when it is wanted.
        Ok(Status::More)
    }

    fn io(&mut self, host: &mut dyn Host, io: Io<'_>) -> Called<IoDone> {
        if let Some(restore) = &mut self.restore {
            return Ok(restore.io(host, &io));
        }
        let Some(backup) = &mut self.backup else { return Ok(IoDone::error(libc::EBADF)) };
        Ok(match io {
            Io::Open { .. } => backup.open(),
            Io::Read { buffer } => backup.read(host, buffer),
            Io::Close => backup.close(),
            Io::Write { .. } | Io::Seek { .. } => IoDone::error(libc::EBADF),
        })
    }

    fn start_restore_file(&mut self, _host: &mut dyn Host, _command: &[u8]) -> Called<Status> {
        Ok(Status::Ok)
    }

    fn create_file(&mut self, host: &mut dyn Host, file: &RestoreFile) -> Called<(Status, CreateStatus)> {
        let Self { restore, places, .. } = self;
        let created = restore.as_mut().map_or(CreateStatus::Core, |restore| restore.create(host, file, places));
        Ok((Status::Ok, created))
    }

    fn set_attributes(&mut self, host: &mut dyn Host, file: &RestoreFile) -> Called<(Status, CreateStatus)> {
        let set = self.restore.as_mut().map_or(CreateStatus::Core, |restore| restore.set_attributes(host, file));
        Ok((Status::Ok, set))
    }

    fn restore_metadata(&mut self, _host: &mut dyn Host, packet: &MetadataPacket) -> Called<Status> {
        Ok(self.restore.as_mut().map_or(Status::Ok, |restore| restore.metadata(packet)))
    }
}

impl S3Job {
    /// A command of a backup has ended.
    fn end_backup(&mut self) {
        self.unread += self.backup.take().map_or(0, |backup| backup.unread());
    }

    /// Fails a job that has objects that it could not read, and has saved nothing: what builds on
    /// it would not try them again. The daemon does not count them, as they were not handed over.
    fn must_have_saved(&mut self, host: &mut dyn Host) {
        self.end_backup();
        let files = number_of(host.value(Variable::FileIndex).as_ref());
        let is_ended_already = self.cancel.0.is_set() || host.facts().is_canceled();
        if self.unread > 0 && files.is_some_and(|files| files <= self.objects) && !is_ended_already {
            host.message(MessageType::Fatal, &texts::none_read(self.unread));
        }
    }

    fn begin_backup(&mut self, host: &mut dyn Host, command: &[u8], estimates: bool) -> Status {
        self.end_backup();
        let number = number_of(host.value(Variable::Level).as_ref());
        let level = self.level.or_else(|| number.and_then(|number| u8::try_from(number).ok()));
        let accurate = number_of(host.value(Variable::Accurate).as_ref()).is_some_and(|is| is != 0);
        // A Full that is resumed has a list of what it has saved; one on a base, that of the base.
        let only_changed = accurate || !matches!(level, None | Some(b'F' | b' '));
        let mode = Mode { only_changed, accurate, estimates };
        let path = path_of(command);
        let begun = BucketSettings::read(path).and_then(|settings| {
            let client = Client::new(&settings).map_err(|what| texts::settings(path, 0, &what))?;
            // The name of an object does not say which server it is of.
            let is_taken = |(address, saved): &(String, BucketSettings)| {
                address != client.address() && saved.shares_names(&settings)
            };
            if self.saved.iter().any(is_taken) {
                return Err(texts::settings(path, 0, &texts::same_names(&settings.bucket)));
            }
            self.saved.push((client.address().to_owned(), settings.clone()));
            let failed = |error: S3Error| texts::not_listed(&settings.bucket, &error);
            Backup::begin(Arc::new(client), self.cancel.0.clone(), mode).map_err(failed)
        });
        match begun {
            Ok(backup) => {
                self.backup = Some(backup);
                Status::Ok
            }
            Err(text) => {
                host.message(MessageType::Fatal, &text);
                Status::Error
            }
        }
    }

    fn begin_restore(&mut self, host: &mut dyn Host, command: &[u8]) -> Status {
        let into = self.into.of(command);
        if self.restore.as_ref().is_some_and(|restore| restore.goes_to(into)) {
            return Status::Ok;
        }
        // The files of another command, which go another way.
        if let Some(mut before) = self.restore.take() {
            before.end(host);
        }
        match Restore::begin(into, &self.cancel.0) {
            Ok(restore) => {
                self.restore = Some(restore);
                Status::Ok
            }
            Err(text) => {
                host.message(MessageType::Fatal, &text);
                Status::Error
            }
        }
    }
}

/// The file that a command names.
fn path_of(command: &[u8]) -> &Path {
    let colon = command.iter().position(|byte| *byte == b':').map_or(command.len(), |colon| colon + 1);
    Path::new(OsStr::from_bytes(command.get(colon..).unwrap_or_default().trim_ascii()))
}

fn number_of(value: Option<&Value>) -> Option<i32> {
    match value {
        Some(Value::Number(number)) => Some(*number),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
