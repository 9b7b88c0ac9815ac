//! The messages about a file once the digest of its data is known.

use std::collections::HashMap;

use fd_messages::MessageType;
use fd_records::DigestKind;

use crate::digests::{Answer, Checked, DigestCheck, Finding, Recorded, Ticket};
use crate::file::{Encryption, RestoreItem};
use crate::output_file::OutputFile;
use crate::report::{QueuedMessage, Report};
use crate::texts;

use super::held::Round;
use super::state::RestoreState;

impl Round<'_> {
    /// Makes all deferred digests, and delivers the messages that were held for them.
    pub(super) fn settle(&mut self) {
        self.state.digest.finish();
        self.deliver_held();
    }

    /// Makes the digests of small files, and delivers the messages that are held for nothing else.
    pub(super) fn deliver_held(&mut self) {
        let RestoreState { digest, encryption, .. } = &mut *self.state;
        let mut messages: HashMap<Ticket, Vec<QueuedMessage>> = HashMap::new();
        digest.settle(|Checked { ticket, name, recorded, finding }| {
            let about = messages_about(name, recorded, finding, encryption);
            if !about.is_empty() {
                messages.insert(ticket, about);
            }
        });
        let is_known = |ticket| !digest.is_unknown(ticket);
        self.report.settle(|ticket| is_known(ticket).then(|| messages.remove(&ticket).unwrap_or_default()));
    }
}

/// Compares the data of the current file with what the volume records, or defers that.
pub(super) fn check(
    kind: DigestKind,
    recorded: Recorded,
    item: &RestoreItem,
    file: Option<&OutputFile>,
    digest: &mut DigestCheck,
    encryption: &Encryption,
    report: &mut Report<'_>,
) {
    match digest.check(kind, recorded, &item.output, file) {
        Answer::Later(ticket) => report.hold_for(ticket),
        Answer::Now(recorded, finding) => {
            for (kind, text) in messages_about(&item.output, &recorded, finding, encryption) {
                report.now(kind, &text);
            }
        }
    }
}

/// The messages about a file, the most important one last; none if its data is what was saved, or
/// may be.
pub(super) fn messages_about(
    name: &[u8],
    recorded: &Recorded,
    finding: Finding,
    encryption: &Encryption,
) -> Vec<QueuedMessage> {
    let digest = match finding {
        Finding::Canceled => return Vec::new(),
        Finding::Unreadable(errno) => return vec![(MessageType::Error, texts::not_read_back(name, errno))],
        Finding::None => None,
        Finding::Has(digest) | Finding::Changed(digest) => Some(digest),
    };
    let messages = match (recorded, digest) {
        (Recorded::Signature(signature), _) => encryption.verify(signature, digest, name),
        (Recorded::Digest(recorded), Some(digest)) if *recorded != digest => {
            let text = texts::digest_differs(digest.kind(), name, recorded.as_bytes(), &digest);
            vec![(MessageType::Error, text)]
        }
        _ => Vec::new(),
    };
    // A change of a file that has just been restored is no error of the restore.
    if matches!(finding, Finding::Changed(_)) && !messages.is_empty() {
        return vec![(MessageType::Warning, texts::changed_meanwhile(name))];
    }
    messages
}
