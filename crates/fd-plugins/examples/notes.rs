//! A plugin that saves notes: `Plugin = "notes:NAME=TEXT"` is the file `/@notes/NAME` with the
//! text, and a restore writes it there again, below `where`.
//!
//! `cargo build --release -p fd-plugins --example notes` makes `libnotes.so` in
//! `target/release/examples`. As `notes-fd.so` in the `Plugin Directory` it is loaded by ferrofd,
//! and by the stock daemon.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use fd_plugins::export::{FileType, MessageType, Stat};
use fd_plugins::{
    Called, CancelEvent, CreateStatus, Event, Host, Instance, Io, IoDone, Offers, Plugin, PluginInfo, RestoreFile,
    SavePacket, Status,
};

/// The plugin. The daemon has one of it.
#[derive(Debug)]
struct Notes {
    info: PluginInfo,
}

fd_plugins::export!(Notes { info: PluginInfo { file: b"notes-fd.so".to_vec(), version: b"1".to_vec() } });

impl Plugin for Notes {
    fn info(&self) -> &PluginInfo {
        &self.info
    }

    fn offers(&self) -> Offers {
        Offers { backup: true, restore: true, io: true, create_file: true, set_attributes: true, ..Offers::default() }
    }

    fn begin(&self, _host: &mut dyn Host) -> Called<(Box<dyn Instance>, Status)> {
        Ok((Box::new(Job::default()), Status::Ok))
    }
}

/// What it does in one job.
#[derive(Default)]
struct Job {
    name: Vec<u8>,
    text: Vec<u8>,
    /// The data that is left to read.
    reading: io::Cursor<Vec<u8>>,
    /// Where a file is restored.
    place: PathBuf,
    writing: Option<File>,
}

/// Nothing here waits, so there is nothing to cancel.
struct Nothing;

impl CancelEvent for Nothing {
    fn cancel(&self, _host: &mut dyn Host) {}
}

impl Instance for Job {
    fn canceler(&self) -> Arc<dyn CancelEvent> {
        Arc::new(Nothing)
    }

    fn end(self: Box<Self>, _host: &mut dyn Host) -> Called<()> {
        Ok(())
    }

    fn event(&mut self, host: &mut dyn Host, event: &Event<'_>) -> Called<Status> {
        let (Event::BackupCommand(command) | Event::EstimateCommand(command)) = event else { return Ok(Status::Ok) };
        let arguments = command.strip_prefix(b"notes:").unwrap_or_default();
        let Some(equals) = arguments.iter().position(|byte| *byte == b'=') else {
            host.message(MessageType::Fatal, b"notes: the command has no text\n");
            return Ok(Status::Error);
        };
        let (name, text) = arguments.split_at(equals);
        self.name = [b"/@notes/", name].concat();
        self.text = text.iter().copied().skip(1).collect();
        Ok(Status::Ok)
    }

    fn start_backup_file(
        &mut self,
        _host: &mut dyn Host,
        _command: &[u8],
        _reads: bool,
        file: &mut SavePacket,
    ) -> Called<Status> {
        file.name = Some(self.name.clone());
        file.file_type = i32::from(FileType::Regular.code());
        file.stat = Stat {
            mode: 0o100_644,
            nlink: 1,
            size: i64::try_from(self.text.len()).unwrap_or(i64::MAX),
            blksize: 4096,
            blocks: 1,
            mtime: 1_000_000_000,
            ..Stat::default()
        };
        Ok(Status::Ok)
    }

    fn start_restore_file(&mut self, _host: &mut dyn Host, _command: &[u8]) -> Called<Status> {
        Ok(Status::Ok)
    }

    fn create_file(&mut self, _host: &mut dyn Host, file: &RestoreFile) -> Called<(Status, CreateStatus)> {
        self.place = PathBuf::from(OsString::from_vec(file.name.clone()));
        Ok((Status::Ok, CreateStatus::Extract))
    }

    fn io(&mut self, host: &mut dyn Host, io: Io<'_>) -> Called<IoDone> {
        let done = match io {
            Io::Open { flags: 0, .. } => {
                self.reading = io::Cursor::new(self.text.clone());
                Ok(0)
            }
            Io::Open { .. } => self.create().map(|file| {
                self.writing = Some(file);
                0
            }),
            Io::Read { buffer } => self.reading.read(buffer),
            Io::Write { data } => match &mut self.writing {
                Some(file) => file.write_all(data).map(|()| data.len()),
                None => Err(io::Error::from_raw_os_error(9)),
            },
            Io::Seek { .. } => Err(io::Error::from_raw_os_error(29)),
            Io::Close => {
                if self.writing.take().is_some() {
                    host.message(MessageType::Info, b"notes: restored a note\n");
                }
                Ok(0)
            }
        };
        Ok(match done {
            Ok(count) => IoDone::bytes(i32::try_from(count).unwrap_or(i32::MAX)),
            Err(error) => IoDone::error(error.raw_os_error().unwrap_or(5)),
        })
    }
}

impl Job {
    fn create(&self) -> io::Result<File> {
        if let Some(parent) = self.place.parent() {
            std::fs::create_dir_all(parent)?;
        }
        File::create(&self.place)
    }
}
