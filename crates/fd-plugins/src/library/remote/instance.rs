//! The functions of a plugin, as calls.

use std::sync::Arc;

use fd_records::MetadataKind;

use super::calls::RemoteInstance;
use crate::api::call::{Called, Io, IoDone, Status};
use crate::api::event::Event;
use crate::api::host::Host;
use crate::api::packets::{ChosenFile, CreateStatus, MetadataPacket, Query, RestoreFile, SavePacket};
use crate::api::plugin::{CancelEvent, Instance};
use crate::library::chain::decisive;
use crate::library::wire::{self, Answer, Bytes, Call, EventValue, Plan};

impl RemoteInstance {
    /// Calls a function that returns a number.
    pub(super) fn status(&mut self, host: &mut dyn Host, call: Call) -> Called<Status> {
        match self.call(host, call)? {
            Answer::Status(code) => Ok(Status::from_code(code)),
            _ => Ok(Status::Error),
        }
    }

    /// Calls a function that fills a packet.
    fn fill(&mut self, host: &mut dyn Host, call: Call, file: &mut SavePacket) -> Called<Status> {
        let Answer::File(code, filled) = self.call(host, call)? else { return Ok(Status::Error) };
        if let Some(filled) = filled {
            *file = *filled;
        }
        Ok(Status::from_code(code))
    }

    fn create(&mut self, host: &mut dyn Host, call: Call) -> Called<(Status, CreateStatus)> {
        match self.call(host, call)? {
            Answer::Created(code, created) => Ok((Status::from_code(code), CreateStatus::from_code(created))),
            _ => Ok((Status::Error, CreateStatus::Error)),
        }
    }
}

impl Instance for RemoteInstance {
    fn canceler(&self) -> Arc<dyn CancelEvent> {
        Arc::clone(&self.canceler) as Arc<dyn CancelEvent>
    }

    fn end(mut self: Box<Self>, host: &mut dyn Host) -> Called<()> {
        if self.dead {
            return Ok(());
        }
        self.call(host, Call::Free).map(drop)
    }

    fn verifies(&self) -> bool {
        self.link.verifies
    }

    fn event(&mut self, host: &mut dyn Host, event: &Event<'_>) -> Called<Status> {
        let value = match event {
            Event::JobStart(text)
            | Event::BackupCommand(text)
            | Event::RestoreCommand(text)
            | Event::EstimateCommand(text)
            | Event::PluginCommand(text)
            | Event::ComponentInfo(text)
            | Event::PluginOptions(text) => EventValue::Text((*text).into()),
            Event::Level(letter) => EventValue::Number(i64::from(*letter)),
            Event::Since(time) => EventValue::Number(*time),
            Event::RestoreObject(Some(object)) => EventValue::Object(Box::new((*object).clone())),
            Event::RestoreObject(None)
            | Event::JobEnd
            | Event::StartBackupJob
            | Event::EndBackupJob
            | Event::StartRestoreJob
            | Event::EndRestoreJob
            | Event::StartVerifyJob
            | Event::EndVerifyJob
            | Event::Cancel
            | Event::EndFileSet => EventValue::Nothing,
        };
        self.status(host, Call::Event(event.number(), value))
    }

    fn handle_file(&mut self, host: &mut dyn Host, command: &[u8], file: &mut SavePacket) -> Called<Status> {
        self.fill(host, Call::HandleFile(command.into(), Box::new(file.clone())), file)
    }

    fn features(&mut self, host: &mut dyn Host) -> Called<Option<Vec<u8>>> {
        match self.call(host, Call::Features)? {
            Answer::Features(text) => Ok(text.map(|text| text.0)),
            _ => Ok(None),
        }
    }

    fn start_backup_file(
        &mut self,
        host: &mut dyn Host,
        command: &[u8],
        reads: bool,
        file: &mut SavePacket,
    ) -> Called<Status> {
        self.learned = Plan::default();
        self.full_reads = 0;
        if self.command != command || !reads {
            self.plan = None;
        }
        self.command = command.to_vec();
        let plan = self.plan.clone().filter(|_| *file == SavePacket::empty());
        let status = self.fill(host, Call::StartBackup(command.into(), reads, plan, Box::new(file.clone())), file)?;
        self.learned.flags = decisive(file.flags);
        Ok(status)
    }

    fn end_backup_file(&mut self, host: &mut dyn Host) -> Called<Status> {
        if self.learned.open.is_some() {
            self.plan = Some(std::mem::take(&mut self.learned));
        }
        // A canceled job begins no other file.
        let next = self.plan.clone().filter(|_| !host.facts().is_canceled());
        self.status(host, Call::EndBackup(next.map(|plan| (self.command.as_slice().into(), plan))))
    }

    fn io(&mut self, host: &mut dyn Host, io: Io<'_>) -> Called<IoDone> {
        match io {
            Io::Open { name, flags, mode } => {
                self.learned.open = Some((flags, mode));
                self.full_reads = 0;
                self.input_output(host, Call::Open { name: name.into(), flags, mode })
            }
            Io::Read { buffer } => self.read_into(host, buffer),
            Io::Write { data } => {
                // The usual case, and that of no data, is one part.
                let mut written = 0_i32;
                let mut rest = data;
                loop {
                    let (part, next) = rest.split_at(rest.len().min(wire::LONGEST_WRITE));
                    let done = self.write_part(host, part)?;
                    let whole = usize::try_from(done.status) == Ok(part.len());
                    if !whole || next.is_empty() {
                        let status = if done.status < 0 { done.status } else { written.saturating_add(done.status) };
                        return Ok(IoDone { status, ..done });
                    }
                    written = written.saturating_add(done.status);
                    rest = next;
                }
            }
            Io::Seek { offset, whence } => self.input_output(host, Call::Seek { offset, whence }),
            Io::Close => {
                self.rest.0.clear();
                self.input_output(host, Call::Close)
            }
        }
    }

    fn read_xacl(&mut self, host: &mut dyn Host, kind: MetadataKind, content: &mut Vec<u8>) -> Called<Status> {
        self.learned.xacl = true;
        let number = if kind == MetadataKind::Acl { 1 } else { 3 };
        match self.call(host, Call::Xacl(number, Bytes::default()))? {
            Answer::Xacl(code, bytes) => {
                content.extend_from_slice(&bytes.0);
                Ok(Status::from_code(code))
            }
            _ => Ok(Status::Error),
        }
    }

    fn write_xacl(&mut self, host: &mut dyn Host, kind: MetadataKind, content: &[u8]) -> Called<Status> {
        let number = if kind == MetadataKind::Acl { 2 } else { 4 };
        match self.call(host, Call::Xacl(number, content.into()))? {
            Answer::Xacl(code, _) => Ok(Status::from_code(code)),
            _ => Ok(Status::Error),
        }
    }

    fn check_stream(&mut self, host: &mut dyn Host, stream: &mut i32) -> Called<Status> {
        self.learned.check_stream = Some(*stream);
        match self.call(host, Call::CheckStream(*stream))? {
            Answer::Stream(code, changed) => {
                *stream = changed;
                Ok(Status::from_code(code))
            }
            _ => Ok(Status::Error),
        }
    }

    fn check_file(&mut self, host: &mut dyn Host, name: &[u8]) -> Called<Status> {
        self.status(host, Call::CheckFile(name.into()))
    }

    fn start_restore_file(&mut self, host: &mut dyn Host, command: &[u8]) -> Called<Status> {
        self.status(host, Call::StartRestore(command.into()))
    }

    fn end_restore_file(&mut self, host: &mut dyn Host) -> Called<Status> {
        self.status(host, Call::EndRestore)
    }

    fn create_file(&mut self, host: &mut dyn Host, file: &RestoreFile) -> Called<(Status, CreateStatus)> {
        self.create(host, Call::CreateFile(Box::new(file.clone())))
    }

    fn set_attributes(&mut self, host: &mut dyn Host, file: &RestoreFile) -> Called<(Status, CreateStatus)> {
        self.create(host, Call::SetAttributes(Box::new(file.clone())))
    }

    fn restore_metadata(&mut self, host: &mut dyn Host, packet: &MetadataPacket) -> Called<Status> {
        self.status(host, Call::RestoreMetadata(packet.clone()))
    }

    fn restore_file_list(&mut self, host: &mut dyn Host, file: Option<&ChosenFile>) -> Called<Status> {
        self.status(host, Call::RestoreFileList(file.cloned().map(Box::new)))
    }

    fn query(&mut self, host: &mut dyn Host, query: Query<'_>, result: &mut Vec<u8>) -> Called<Status> {
        match self.call(host, Call::Query(query.parameter.into(), query.command.into()))? {
            Answer::Query(code, text) => {
                result.extend_from_slice(&text.unwrap_or_default().0);
                Ok(Status::from_code(code))
            }
            _ => Ok(Status::Error),
        }
    }

    fn start_verify_file(&mut self, host: &mut dyn Host, file: &RestoreFile) -> Called<Status> {
        self.status(host, Call::StartVerify(Box::new(file.clone())))
    }

    fn end_verify_file(&mut self, host: &mut dyn Host) -> Called<Status> {
        self.status(host, Call::EndVerify)
    }
}
