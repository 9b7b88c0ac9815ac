//! Plugins that look at the data of a volume's files, such as a search for viruses (reference 07
//! §9).

use fd_messages::MessageType;
use fd_plugins::{FileEvent, Host, Io, JobFacts, Status, Value, Variable};
use fd_records::{AttributesRecord, FileEventRecord, FileType, Stream, VerifyFileEvent};

use crate::plugins::{PluginAccess, told_of};
use crate::report::Report;
use crate::texts;

/// Events that are kept for the Director.
const MOST_EVENTS: usize = 10_000;

/// What plugins do with the files of a Verify job.
pub(super) struct Scan<'a> {
    access: Option<&'a PluginAccess>,
    /// The plugins that take the data of the current file, by their file names.
    takers: Vec<Vec<u8>>,
    /// The current file.
    name: Vec<u8>,
    events: Events,
}

/// A plugin ends the job; a message has said so.
pub(super) struct Ended;

/// What plugins have found.
#[derive(Default)]
struct Events {
    found: Vec<FileEvent>,
    /// There are more than fit.
    is_full: bool,
}

impl<'a> Scan<'a> {
    pub(super) fn new(access: Option<&'a PluginAccess>) -> Self {
        Self { access, takers: Vec::new(), name: Vec::new(), events: Events::default() }
    }

    /// A file begins. Plugins get regular files only, and of these no update of attributes.
    pub(super) fn open(&mut self, stream: Stream, record: &AttributesRecord<'_>, report: &mut Report<'_>) {
        let is_scanned = record.file_type() == Some(FileType::Regular) && stream.kind() != Stream::ATTRIBUTES_UPDATE;
        let Some(access) = self.access.filter(|_| is_scanned) else { return };
        let file = told_of(stream, record);
        let takers = &mut self.takers;
        let mut host = ScanHost { facts: access.facts.as_ref(), report, events: &mut self.events };
        access.plugins.call_each(&mut host, |info, offers, instance, host| {
            if !instance.verifies() || !offers.start_verify || !offers.io {
                return Ok(());
            }
            if !instance.start_verify_file(host, &file)?.is_ok() {
                return Ok(());
            }
            let opened = instance.io(host, Io::Open { name: record.name, flags: 0, mode: 1 })?;
            if opened.returned.is_ok() && opened.status >= 0 {
                takers.push(info.file.clone());
            }
            Ok(())
        });
        if !self.takers.is_empty() {
            self.name = record.name.to_vec();
        }
    }

    /// The next data of the current file.
    pub(super) fn data(&mut self, data: &[u8], report: &mut Report<'_>) -> Result<(), Ended> {
        let Some(access) = self.access.filter(|_| !self.takers.is_empty()) else { return Ok(()) };
        let takers = &self.takers;
        let mut failed = None;
        let mut host = ScanHost { facts: access.facts.as_ref(), report, events: &mut self.events };
        access.plugins.call_each(&mut host, |info, _offers, instance, host| {
            if takers.contains(&info.file) && failed.is_none() {
                let done = instance.io(host, Io::Write { data })?;
                if done.status < 0 || done.returned == Status::Error {
                    failed = Some((info.file.clone(), done.status));
                }
            }
            Ok(())
        });
        self.end_if(failed, report)
    }

    /// The end of the current file.
    pub(super) fn close(&mut self, report: &mut Report<'_>) -> Result<(), Ended> {
        let Some(access) = self.access.filter(|_| !self.takers.is_empty()) else { return Ok(()) };
        let takers = std::mem::take(&mut self.takers);
        let mut failed = None;
        let mut host = ScanHost { facts: access.facts.as_ref(), report, events: &mut self.events };
        access.plugins.call_each(&mut host, |info, offers, instance, host| {
            if takers.contains(&info.file) {
                let status = instance.io(host, Io::Close)?.status;
                let ended = if offers.end_verify { instance.end_verify_file(host)? } else { Status::Ok };
                let code = if status == 0 { ended.code() } else { status };
                if code != 0 && failed.is_none() {
                    failed = Some((info.file.clone(), code));
                }
            }
            Ok(())
        });
        self.end_if(failed, report)
    }

    fn end_if(&self, failed: Option<(Vec<u8>, i32)>, report: &mut Report<'_>) -> Result<(), Ended> {
        let Some((plugin, code)) = failed else { return Ok(()) };
        report.now(MessageType::Error, &texts::verify_ended_by_plugin(&plugin, &self.name, code));
        Err(Ended)
    }

    /// The packets about what was found, for the Director.
    pub(super) fn packets(&self) -> impl Iterator<Item = Vec<u8>> {
        let job_id = match self.access.and_then(|access| access.facts.value(Variable::JobId)) {
            Some(Value::Number(number)) => number,
            _ => 0,
        };
        self.events.found.iter().map(move |FileEvent { file_index, kind, severity, source, description }| {
            let event = FileEventRecord { kind: *kind, severity: *severity, source, description };
            VerifyFileEvent { job_id, file_index: *file_index, event }.encode()
        })
    }
}

/// What a plugin is offered during one call.
struct ScanHost<'a, 'r> {
    facts: &'a dyn JobFacts,
    report: &'a mut Report<'r>,
    events: &'a mut Events,
}

impl Host for ScanHost<'_, '_> {
    fn facts(&self) -> &dyn JobFacts {
        self.facts
    }

    fn message(&mut self, kind: MessageType, text: &[u8]) {
        self.report.of_plugin(kind, text);
    }

    fn add_file_event(&mut self, event: FileEvent) -> Status {
        if self.events.found.len() < MOST_EVENTS {
            self.events.found.push(event);
            return Status::Ok;
        }
        if !std::mem::replace(&mut self.events.is_full, true) {
            self.report.now(MessageType::Warning, &texts::too_many_events(MOST_EVENTS));
        }
        Status::Error
    }
}
