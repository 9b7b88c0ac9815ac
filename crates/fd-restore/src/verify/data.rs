//! The data on a volume against the digests and sizes that were recorded with it
//! (reference 05 §20).
//!
//! Unlike the stock daemon it does not call different what can't be compared: hard links, which
//! have a digest but no data, encrypted files, and files whose digest is of another kind than the
//! FileSet's.

use fd_crypto::Digester;
use fd_messages::{CancelToken, MessageType, PacketSink};
use fd_records::{AttributesRecord, FileType, PluginName, RecordHeader, Stream, StreamClass, digest_text};

use super::checks::Checks;
use super::job::{VerifyError, VerifyJob, VerifyOutcome};
use super::scan::{Ended, Scan};
use crate::report::Report;
use crate::stream::{End, Next, RecordSource, UnpackError, Unpacker, Win32Stream, next_record};
use crate::texts;

/// What the catalog has of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CatalogFile {
    /// Size in bytes.
    pub size: i64,
    /// Digest in base 64 without padding; `None` if there is none. A text that no digest gives,
    /// such as the empty one, differs from every digest.
    pub digest: Option<Vec<u8>>,
}

/// The files that the catalog has of the job.
pub trait CatalogList {
    /// The file of this name (directories with `/` at the end), which counts as found from now on.
    fn find(&mut self, name: &[u8]) -> Option<CatalogFile>;
    /// Hands over the names that were never found.
    fn missing(&mut self, tell: &mut dyn FnMut(&[u8]));
}

/// Compares the data of every file on the volume with its digest and size, and with the catalog if
/// there is a list. What plugins find in files is sent to the Director.
///
/// # Errors
///
/// If the records make no sense or data can't be unpacked; the error has been reported.
pub fn data(
    job: &mut VerifyJob<'_>,
    checks: Checks,
    catalog: Option<&mut dyn CatalogList>,
    director: &mut dyn PacketSink,
) -> Result<VerifyOutcome, VerifyError> {
    let mut verify = Verify {
        checks,
        digester: checks.digest.and_then(|kind| Digester::new(kind).ok()),
        unpacker: Unpacker::new(),
        progress: job.progress,
        report: Report::new(job.log),
        catalog,
        file: None,
        told: Told::default(),
        differs: false,
        damaged: false,
        of_plugin: None,
        scan: Scan::new(job.plugins),
    };
    if checks.unsigned {
        verify.report.now(MessageType::Warning, &texts::no_signature());
    }
    let read = verify.read(job.source, job.cancel);
    // What was found is worth telling, also if the volume is not read to its end.
    let sent = verify.scan.packets().try_for_each(|packet| director.send(packet));
    let end = read?;
    // What was not read is not missing on the volume.
    let missing = end == End::EndOfData && verify.tell_missing();
    if let Err(error) = sent {
        verify.report.now(MessageType::Fatal, &texts::events_not_sent(&error.0));
        return Err(VerifyError::Director(error));
    }
    Ok(VerifyOutcome {
        end,
        differs: verify.differs,
        missing,
        damaged: verify.damaged,
        queued: verify.report.into_queue(),
    })
}

/// The file whose records come.
struct CurrentFile {
    name: Vec<u8>,
    file_type: Option<FileType>,
    recorded_size: i64,
    /// How long the data is, as far as it has come.
    size: u64,
    has_data: bool,
    is_encrypted: bool,
    is_of_plugin: bool,
    /// That of its attributes.
    stream: Stream,
    win32: Win32Stream,
    /// The digest of the data in base 64, once it is complete.
    computed: Option<Vec<u8>>,
    stage: Stage,
}

impl CurrentFile {
    /// Whether its data is in an earlier job or with another name: its digest is that of this data.
    fn is_elsewhere(&self) -> bool {
        self.stream == Stream::ATTRIBUTES_UPDATE || self.file_type == Some(FileType::HardLink)
    }
}

/// What was done about a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Stage {
    /// Its data comes.
    Open,
    /// Its data is complete.
    Finished,
    /// It was compared with the catalog.
    Compared,
}

/// Messages that are given once a job.
#[derive(Clone, Copy, Default)]
struct Told {
    /// That encrypted data is not compared.
    encrypted: bool,
    /// That digests of other kinds are not compared.
    other_kind: bool,
}

struct Verify<'a, 'c> {
    checks: Checks,
    digester: Option<Digester>,
    unpacker: Unpacker,
    progress: &'a fd_messages::Progress,
    report: Report<'a>,
    catalog: Option<&'c mut dyn CatalogList>,
    file: Option<CurrentFile>,
    told: Told,
    differs: bool,
    /// An attribute record could not be read, or the records ended too early.
    damaged: bool,
    /// The header of the record that began the file of a plugin, until its end.
    of_plugin: Option<RecordHeader>,
    scan: Scan<'a>,
}

impl Verify<'_, '_> {
    /// Takes all records.
    fn read(&mut self, source: &mut dyn RecordSource, cancel: &CancelToken) -> Result<End, VerifyError> {
        loop {
            match next_record(source, self.progress, cancel) {
                Ok(Next::Record(header, record)) => self.record(header, record)?,
                Ok(Next::End(end)) => {
                    self.end_scan()?;
                    // Before the end, the file whose records came last is not whole, and differs
                    // from nothing.
                    match &end {
                        End::EndOfData => self.close(),
                        End::Canceled => {}
                        End::ConnectionLost(error) => {
                            self.report.now(MessageType::Error, &texts::connection_lost(error));
                            self.damaged = true;
                        }
                    }
                    return Ok(end);
                }
                Err(error) => {
                    self.report.now(MessageType::Fatal, &texts::sequence(&error, &texts::VERIFY_LINES));
                    return Err(error.into());
                }
            }
        }
    }

    /// The data of the current file is complete for plugins.
    fn end_scan(&mut self) -> Result<(), VerifyError> {
        self.scan.close(&mut self.report).map_err(|Ended| self.ended_by_plugin())
    }

    fn ended_by_plugin(&self) -> VerifyError {
        let name = self.file.as_ref().map_or(&b""[..], |file| &file.name);
        VerifyError::Plugin(String::from_utf8_lossy(name).into_owned())
    }

    fn record(&mut self, header: RecordHeader, record: &[u8]) -> Result<(), VerifyError> {
        let stream = header.stream;
        match stream.class() {
            StreamClass::Attributes | StreamClass::AttributesUpdate => {
                // Of another file: the record that ends the plugin's was lost.
                self.of_plugin = self.of_plugin.filter(|start| header.is_of_file_of(start));
                return self.attributes(stream, record);
            }
            StreamClass::Data(layout) if layout.is_encrypted => self.encrypted(),
            StreamClass::Data(_) | StreamClass::PluginData => return self.content(stream, record),
            StreamClass::Digest(_) => return self.digest(stream, record),
            StreamClass::PluginName => {
                let is_start = matches!(PluginName::parse(record), Some(PluginName::Start { .. }));
                self.of_plugin = is_start.then_some(header);
            }
            // Objects of plugins have no data to compare, but they count.
            StreamClass::RestoreObject | StreamClass::PluginObject => {
                self.progress.add_file();
                self.progress.add_files_examined(1);
            }
            _ => {}
        }
        Ok(())
    }

    fn attributes(&mut self, stream: Stream, record: &[u8]) -> Result<(), VerifyError> {
        self.end_scan()?;
        self.close();
        let Some(attributes) = AttributesRecord::parse(record) else {
            self.report.now(MessageType::Error, &texts::attributes(record));
            self.progress.add_file();
            self.progress.add_files_examined(1);
            self.damaged = true;
            return Ok(());
        };
        self.report.now(MessageType::Verified, &texts::verifying(attributes.name));
        self.progress.add_file();
        self.progress.add_files_examined(1);
        self.progress.set_current_file(attributes.name);
        self.file = Some(CurrentFile {
            name: attributes.name.to_vec(),
            file_type: attributes.file_type(),
            recorded_size: attributes.lstat.stat.size,
            size: 0,
            has_data: false,
            is_encrypted: false,
            is_of_plugin: self.of_plugin.is_some(),
            stream,
            win32: Win32Stream::default(),
            computed: None,
            stage: Stage::Open,
        });
        self.scan.open(stream, &attributes, &mut self.report);
        Ok(())
    }

    fn encrypted(&mut self) {
        if let Some(file) = &mut self.file {
            file.is_encrypted = true;
        }
        if !self.told.encrypted {
            self.told.encrypted = true;
            self.report.now(MessageType::Warning, &texts::encrypted_not_verified());
        }
    }

    /// Data of a file.
    fn content(&mut self, stream: Stream, record: &[u8]) -> Result<(), VerifyError> {
        let has_content = [FileType::EmptyFile, FileType::Regular, FileType::Raw, FileType::Fifo].map(Some);
        let Some(file) = self.file.as_mut().filter(|file| has_content.contains(&file.file_type)) else {
            return Ok(());
        };
        self.progress.add_read_bytes(record.len() as u64);
        if file.stage != Stage::Open {
            self.report.now(MessageType::Info, &texts::data_not_compared(&file.name));
            self.differs = true;
            self.file = None;
            return Ok(());
        }
        let layout = stream.layout();
        let unpacked = self.unpacker.unpack(layout, record).map_err(|error| {
            let text = match error {
                UnpackError::ShortAddress => texts::short_address(&file.name, record.len()),
                UnpackError::Compression(error) => texts::decompression(&error, &file.name),
            };
            self.report.now(MessageType::Error, &text);
            VerifyError::Data(String::from_utf8_lossy(&file.name).into_owned())
        })?;
        let data = self.unpacker.data(&unpacked, record);
        file.has_data = true;
        file.size = file.size.max(unpacked.address.unwrap_or(0));
        if let Some(digester) = &mut self.digester {
            digester.update(data);
        }
        if let Err(Ended) = self.scan.data(data, &mut self.report) {
            return Err(VerifyError::Plugin(String::from_utf8_lossy(&file.name).into_owned()));
        }
        let length = if layout.is_win32 {
            let mut rest = data;
            let mut length = 0;
            while let Some(piece) = file.win32.next_data(&mut rest) {
                length += piece.len() as u64;
            }
            length
        } else {
            data.len() as u64
        };
        file.size = file.size.saturating_add(length);
        self.progress.add_job_bytes(length);
        Ok(())
    }

    /// The digest that was recorded with the file.
    fn digest(&mut self, stream: Stream, record: &[u8]) -> Result<(), VerifyError> {
        let (Some(wanted), true) = (self.checks.digest, self.file.is_some()) else { return Ok(()) };
        self.end_scan()?;
        self.finish(true);
        let Some(file) = &mut self.file else { return Ok(()) };
        if !file.is_encrypted && !file.is_elsewhere() {
            if stream.digest_kind() == Some(wanted) {
                let stored = digest_text::of(record);
                let computed = file.computed.as_deref().unwrap_or_default();
                if computed != stored {
                    let text = texts::data_differs(stream, &file.name, computed, &stored);
                    self.report.now(MessageType::Info, &text);
                    self.differs = true;
                }
            } else {
                // The catalog's is of that kind, too.
                file.computed = None;
                if !self.told.other_kind {
                    self.told.other_kind = true;
                    let text = texts::other_digest(&file.name, stream, wanted);
                    self.report.now(MessageType::Warning, &text);
                }
            }
        }
        self.check_catalog();
        Ok(())
    }

    /// The data of the current file is complete. `has_digest`: there is one to compare it with.
    fn finish(&mut self, has_digest: bool) {
        let Some(file) = self.file.as_mut().filter(|file| file.stage == Stage::Open) else { return };
        file.stage = Stage::Finished;
        // What a plugin has saved without any data may have a size all the same, and a plugin need
        // not know how long its data will be.
        let has_size = if file.is_of_plugin {
            file.has_data && file.recorded_size > 0
        } else {
            file.has_data || !file.is_encrypted
        };
        // Where digests are to be compared, a file that has neither data nor a digest may have lost
        // both.
        let is_asked = self.checks.size || self.checks.digest.is_some() && !file.has_data && !has_digest;
        let size_matters = is_asked && has_size && !file.is_elsewhere() && file.file_type == Some(FileType::Regular);
        if size_matters && i64::try_from(file.size) != Ok(file.recorded_size) {
            let text = texts::size_differs(&file.name, file.size, file.recorded_size);
            self.report.now(MessageType::Info, &text);
            self.differs = true;
        }
        if let Some(value) = self.digester.as_mut().and_then(|digester| digester.finish().ok()) {
            file.computed = Some(digest_text::of(value.as_bytes()));
        }
    }

    /// Compares the current file with the catalog, once.
    fn check_catalog(&mut self) {
        let (Some(catalog), Some(file)) = (self.catalog.as_mut(), self.file.as_mut()) else { return };
        if file.stage == Stage::Compared {
            return;
        }
        file.stage = Stage::Compared;
        let Some(known) = catalog.find(&file.name) else {
            // The Director does not list what an accurate job has recorded as deleted.
            if file.file_type != Some(FileType::Deleted) {
                self.report.now(MessageType::Info, &texts::not_in_catalog(&file.name));
                self.differs = true;
            }
            return;
        };
        if known.size != file.recorded_size {
            self.report.now(MessageType::Info, &texts::catalog_size_differs(&file.name));
            self.differs = true;
        }
        let computed = file.computed.as_ref().filter(|_| file.has_data && !file.is_encrypted);
        if let Some(computed) = computed
            && known.digest.is_some_and(|digest| digest != *computed)
        {
            self.report.now(MessageType::Info, &texts::catalog_digest_differs(&file.name));
            self.differs = true;
        }
    }

    /// Ends the current file.
    fn close(&mut self) {
        self.finish(false);
        self.check_catalog();
        self.file = None;
    }

    /// Names what the catalog has and the volume has not; true if there is anything.
    fn tell_missing(&mut self) -> bool {
        let mut any = false;
        if let Some(catalog) = self.catalog.as_mut() {
            catalog.missing(&mut |name| {
                if !any {
                    self.report.now(MessageType::Info, &texts::only_in_catalog());
                    any = true;
                }
                self.report.now(MessageType::Info, &texts::listed(name));
            });
        }
        any
    }
}
