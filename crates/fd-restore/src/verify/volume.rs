//! What a volume holds, sent to the Director file by file (reference 05 §19).

use fd_messages::{MessageType, PacketSink};
use fd_records::{AttributesRecord, FileType, Stream, StreamClass, VerifyAttributes, VerifyDigest};

use super::checks::Checks;
use super::job::{VerifyError, VerifyJob, VerifyOutcome};
use crate::report::Report;
use crate::stream::{End, Next, next_record};
use crate::texts;

/// The verify options that the stock daemon sends with any FileSet.
const OPTIONS: &[u8] = b"pinsug5";

/// Sends the Director the attributes and digests of the files on the volume. The caller sends the
/// end of the packets.
///
/// # Errors
///
/// If the records make no sense or the Director can't be reached; the error has been reported.
pub fn volume(
    job: &mut VerifyJob<'_>,
    checks: Checks,
    director: &mut dyn PacketSink,
) -> Result<VerifyOutcome, VerifyError> {
    let mut verify = Verify { progress: job.progress, report: Report::new(job.log), damaged: false, in_file: false };
    if checks.unsigned {
        verify.report.now(MessageType::Warning, &texts::no_signature());
    }
    loop {
        match next_record(job.source, job.progress, job.cancel) {
            Ok(Next::Record(header, record)) => {
                if let Some(packet) = verify.packet(header.stream, record)
                    && let Err(error) = director.send(packet)
                {
                    verify.report.now(MessageType::Fatal, &texts::director_lost(&error.0));
                    return Err(VerifyError::Director(error));
                }
            }
            Ok(Next::End(end)) => {
                if let End::ConnectionLost(error) = &end {
                    verify.report.now(MessageType::Error, &texts::connection_lost(error));
                    verify.damaged = true;
                }
                let Verify { damaged, report, .. } = verify;
                return Ok(VerifyOutcome { end, differs: false, missing: false, damaged, queued: report.into_queue() });
            }
            Err(error) => {
                verify.report.now(MessageType::Fatal, &texts::sequence(&error, &texts::VERIFY_LINES));
                return Err(error.into());
            }
        }
    }
}

struct Verify<'a> {
    progress: &'a fd_messages::Progress,
    report: Report<'a>,
    /// An attribute record could not be read.
    damaged: bool,
    /// The Director has the attributes of the current file: it refuses a digest without them.
    in_file: bool,
}

impl Verify<'_> {
    /// The packet that a record becomes.
    fn packet(&mut self, stream: Stream, record: &[u8]) -> Option<Vec<u8>> {
        match stream.class() {
            StreamClass::Attributes | StreamClass::AttributesUpdate => self.attributes(record),
            StreamClass::RestoreObject | StreamClass::PluginObject => {
                count(self.progress, b"");
                self.in_file = false;
                None
            }
            StreamClass::Digest(kind) if self.in_file => {
                let digest = record.get(..kind.len()).unwrap_or(record);
                Some(VerifyDigest { number: self.progress.files(), kind, digest }.encode())
            }
            _ => None,
        }
    }

    fn attributes(&mut self, record: &[u8]) -> Option<Vec<u8>> {
        let attributes = AttributesRecord::parse(record);
        self.in_file = attributes.is_some();
        let Some(attributes) = attributes else {
            self.report.now(MessageType::Error, &texts::attributes(record));
            // The Director finds files by their number, so this one needs a number, too.
            count(self.progress, b"");
            self.damaged = true;
            return None;
        };
        self.report.now(MessageType::Verified, &texts::verifying(attributes.name));
        count(self.progress, attributes.name);
        Some(attribute_packet(&attributes, self.progress.files()))
    }
}

fn count(progress: &fd_messages::Progress, name: &[u8]) {
    progress.add_file();
    progress.add_files_examined(1);
    progress.set_current_file(name);
}

fn attribute_packet(attributes: &AttributesRecord<'_>, number: u32) -> Vec<u8> {
    let file_type = attributes.file_type();
    // A deleted file has no place in the catalog's numbering.
    let number = if file_type == Some(FileType::Deleted) { 0 } else { number };
    let link = if matches!(file_type, Some(FileType::HardLink | FileType::Symlink)) { attributes.link } else { b"" };
    VerifyAttributes { number, options: OPTIONS, name: attributes.name, lstat_text: attributes.lstat_text, link }
        .encode()
}
