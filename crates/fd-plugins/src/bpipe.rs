//! `bpipe`: what a program prints is saved, and a restore gives it to another program (reference
//! 07 §10).

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use fd_messages::MessageType;
use fd_os::io_error_text;
use fd_records::{FileType, Stat};
use nix::errno::Errno;
use nix::fcntl::OFlag;

use crate::api::call::{Called, Io, IoDone, Status};
use crate::api::event::Event;
use crate::api::host::{Host, Value, Variable};
use crate::api::options::{FilledIn, RestoreOption};
use crate::api::packets::{CreateStatus, RestoreFile, SavePacket};
use crate::api::plugin::{CancelEvent, Instance, Offers, Plugin, PluginInfo};
use crate::texts;

mod command;
mod output;
mod program;
pub(crate) mod shell;

use command::BpipeCommand;
use program::{Failed, Running};

/// Whether *Allowed Script Directories* name places of programs, and this line's is in one of them.
pub fn permits_program(line: &[u8], allowed: &[Vec<u8>]) -> bool {
    !allowed.is_empty() && shell::prepare(line, allowed).is_ok()
}

/// The plugin.
#[derive(Debug)]
pub struct BpipePlugin {
    info: PluginInfo,
}

impl BpipePlugin {
    /// The plugin, as the stock daemon announces its own: `bpipe(2)`.
    pub fn new() -> Self {
        Self { info: PluginInfo { file: b"bpipe-fd.so".to_vec(), version: b"2".to_vec() } }
    }
}

impl Default for BpipePlugin {
    fn default() -> Self {
        Self::new()
    }
}

impl Plugin for BpipePlugin {
    fn info(&self) -> &PluginInfo {
        &self.info
    }

    fn offers(&self) -> Offers {
        Offers {
            backup: true,
            restore: true,
            io: true,
            create_file: true,
            set_attributes: true,
            check_file: true,
            xacl: true,
            ..Offers::default()
        }
    }

    fn begin(&self, _host: &mut dyn Host) -> Called<(Box<dyn Instance>, Status)> {
        Ok((Box::new(BpipeJob::default()), Status::Ok))
    }
}

/// Another writer for one restore.
static RESTORE_COMMAND: RestoreOption = RestoreOption {
    name: b"restore_command",
    offered: b"# Plugin configuration file\n# Version 1\n\
        OptPrompt=\"Restore command to use\"\nrestore_command=@STR@\n\n",
    is_optional: false,
    obeyed: texts::user_command,
};

/// Its context in a job.
#[derive(Default, Debug)]
struct BpipeJob {
    level: Option<u8>,
    /// The command that is being saved, estimated or restored.
    command: BpipeCommand,
    /// The object of the command is to be saved before its file.
    object_due: bool,
    /// What was saved last is the object, and the file follows.
    object_saved: bool,
    /// The writers that a user wants.
    user_writers: FilledIn,
    /// `where` and the replace mode's letter.
    place: Vec<u8>,
    replace: u8,
    running: Option<Running>,
}

/// The calls of an instance look by themselves whether the job was canceled.
#[derive(Default)]
struct Looks;

impl CancelEvent for Looks {
    fn cancel(&self, _host: &mut dyn Host) {}
}

impl Instance for BpipeJob {
    fn canceler(&self) -> Arc<dyn CancelEvent> {
        Arc::new(Looks)
    }

    fn end(self: Box<Self>, _host: &mut dyn Host) -> Called<()> {
        Ok(())
    }

    fn program_of_volume(&self, command: &[u8]) -> Option<Vec<u8>> {
        let is_the_user_s = self.user_writers.of(command).is_some();
        BpipeCommand::parse(command).ok().filter(|_| !is_the_user_s).map(|command| command.writer)
    }

    fn event(&mut self, host: &mut dyn Host, event: &Event<'_>) -> Called<Status> {
        Ok(match event {
            Event::Level(level) => {
                self.level = Some(*level);
                Status::Ok
            }
            Event::BackupCommand(command) => {
                let level = self.level.or_else(|| level_of(host));
                self.object_due = level == Some(b'F');
                self.take_command(host, command)
            }
            Event::EstimateCommand(command) => {
                self.object_due = false;
                self.take_command(host, command)
            }
            Event::RestoreCommand(command) => {
                let status = self.take_command(host, command);
                if let Some(writer) = self.user_writers.of(command) {
                    self.command.writer = writer.to_vec();
                }
                status
            }
            Event::RestoreObject(Some(object)) => RESTORE_COMMAND.take(&mut self.user_writers, host, object),
            _ => Status::Ok,
        })
    }

    fn handle_file(&mut self, host: &mut dyn Host, command: &[u8], _file: &mut SavePacket) -> Called<Status> {
        host.message(MessageType::Fatal, &texts::not_for_options(command));
        Ok(Status::Error)
    }

    fn start_backup_file(
        &mut self,
        _host: &mut dyn Host,
        _command: &[u8],
        reads: bool,
        file: &mut SavePacket,
    ) -> Called<Status> {
        if std::mem::take(&mut self.object_due) && reads {
            self.object_saved = true;
            RESTORE_COMMAND.offer(file);
            return Ok(Status::Ok);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs().cast_signed());
        file.name = Some(self.command.file.clone());
        file.file_type = i32::from(FileType::Regular.code());
        file.stat = Stat {
            mode: 0o100_700,
            size: -1,
            blksize: 4096,
            blocks: 1,
            atime: now,
            mtime: now,
            ctime: now,
            ..Stat::default()
        };
        Ok(Status::Ok)
    }

    fn end_backup_file(&mut self, _host: &mut dyn Host) -> Called<Status> {
        Ok(if std::mem::take(&mut self.object_saved) { Status::More } else { Status::Ok })
    }

    fn io(&mut self, host: &mut dyn Host, io: Io<'_>) -> Called<IoDone> {
        Ok(match io {
            Io::Open { flags, .. } => self.open(host, flags),
            Io::Read { buffer } => {
                let mut room = Vec::new();
                let done = self.read(host, &mut room, buffer.len());
                if let Some(front) = buffer.get_mut(..room.len()) {
                    front.copy_from_slice(&room);
                }
                done
            }
            Io::Write { data } => self.write(host, data),
            Io::Seek { .. } => IoDone::error(Errno::ESPIPE as i32),
            Io::Close => self.end(host, Running::close),
        })
    }

    fn give_up(&mut self, host: &mut dyn Host) -> Called<IoDone> {
        Ok(self.end(host, Running::give_up))
    }

    fn read_to(&mut self, host: &mut dyn Host, room: &mut Vec<u8>, most: usize) -> Called<IoDone> {
        Ok(self.read(host, room, most))
    }

    fn start_restore_file(&mut self, _host: &mut dyn Host, _command: &[u8]) -> Called<Status> {
        Ok(Status::Ok)
    }

    fn create_file(&mut self, _host: &mut dyn Host, file: &RestoreFile) -> Called<(Status, CreateStatus)> {
        // With `regexwhere` there is no place.
        self.place = file.place.clone().unwrap_or_default();
        self.replace = file.replace;
        Ok((Status::Ok, CreateStatus::Extract))
    }
}

impl BpipeJob {
    fn take_command(&mut self, host: &mut dyn Host, command: &[u8]) -> Status {
        match BpipeCommand::parse(command) {
            Ok(command) => {
                self.command = command;
                Status::Ok
            }
            Err(text) => {
                host.message(MessageType::Fatal, &text);
                Status::Error
            }
        }
    }

    fn open(&mut self, host: &mut dyn Host, flags: i32) -> IoDone {
        let restores = OFlag::from_bits_retain(flags).intersects(OFlag::O_WRONLY | OFlag::O_RDWR | OFlag::O_CREAT);
        let writer;
        let (end, line, started) = if restores {
            writer = self.command.writer_for(&self.place, self.replace);
            ("writer", &writer, Running::writer(host, &writer))
        } else {
            let reader = &self.command.reader;
            ("reader", reader, Running::reader(host, reader))
        };
        match started {
            Ok(running) => {
                let done = IoDone::bytes(running.descriptor());
                self.running = Some(running);
                done
            }
            // A canceled job needs no words.
            Err(not_run) if not_run.is_unwanted() => IoDone::error(not_run.errno),
            Err(not_run) => {
                host.message(MessageType::Fatal, &texts::open_failed(end, line, &not_run.words));
                IoDone::error(not_run.errno)
            }
        }
    }

    fn read(&mut self, host: &mut dyn Host, room: &mut Vec<u8>, most: usize) -> IoDone {
        let Some(running) = &mut self.running else { return nothing_open(host, "read FD") };
        match running.read(host, &self.command.file, room, most) {
            Ok(count) => IoDone::bytes(i32::try_from(count).unwrap_or(i32::MAX)),
            Err(failed) => failure(host, failed, "read"),
        }
    }

    fn write(&mut self, host: &mut dyn Host, data: &[u8]) -> IoDone {
        let Some(running) = &mut self.running else { return nothing_open(host, "write FD") };
        match running.write(host, &self.command.file, data) {
            Ok(()) => IoDone::bytes(i32::try_from(data.len()).unwrap_or(i32::MAX)),
            Err(failed) => failure(host, failed, "write"),
        }
    }

    fn end(&mut self, host: &mut dyn Host, end: impl FnOnce(Running, &mut dyn Host, &[u8]) -> Option<i32>) -> IoDone {
        let Some(running) = self.running.take() else { return nothing_open(host, "FD on bpipe close") };
        match end(running, host, &self.command.file) {
            Some(0) | None => IoDone::bytes(0),
            Some(number) => {
                host.message(MessageType::Error, &texts::closing_failed(&self.command.file, number));
                IoDone { returned: Status::Ok, status: number, errno: number, offset: 0 }
            }
        }
    }
}

fn level_of(host: &mut dyn Host) -> Option<u8> {
    match host.value(Variable::Level) {
        Some(Value::Number(letter)) => u8::try_from(letter).ok(),
        _ => None,
    }
}

fn nothing_open(host: &mut dyn Host, what: &str) -> IoDone {
    host.message(MessageType::Fatal, &texts::nothing_open(what));
    IoDone::error(Errno::EBADF as i32)
}

/// Says why data could not be moved. A canceled job needs no words.
fn failure(host: &mut dyn Host, failed: Failed, what: &str) -> IoDone {
    match failed {
        Failed::NotOpen => nothing_open(host, &format!("{what} FD")),
        Failed::Canceled => IoDone::error(Errno::ECANCELED as i32),
        Failed::Io(error) => {
            host.message(MessageType::Fatal, &texts::pipe_failed(what, io_error_text(&error)));
            IoDone::error(error.raw_os_error().unwrap_or(Errno::EIO as i32))
        }
    }
}

#[cfg(test)]
mod tests;
