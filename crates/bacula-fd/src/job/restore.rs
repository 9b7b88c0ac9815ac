//! A restore between its `2000 OK restore` and its last word to the Storage Daemon.

use std::sync::Arc;

use fd_crypto::pki::KeyRing;
use fd_crypto::processor::Processor;
use fd_fileset::{plain_path, wildcard};
use fd_messages::{JobLog as _, MessageType};
use fd_plugins::Event;
use fd_records::Replace;
use fd_restore::{CompileName, End, LinkRule, OutputNames, QueuedMessage, RegexWhere, RestorePlan, RestoreState};
use fd_session::JobStatus;
use fd_session::command::Where;
use fd_walk::{real_path, without_slashes};

use crate::connection::storage::StorageConnection;
use crate::job::outbox::Outbox;
use crate::job::record_feed::{self, RecordFeed};
use crate::shared::job::Job;
use crate::texts;

/// The plan for the Director's command.
///
/// # Errors
/// A fatal message: of a list of expressions nothing can be used, or one could not be compiled.
pub(crate) fn plan(
    replace: Replace,
    prelinks: bool,
    place: &Where,
    keys: Option<Arc<KeyRing>>,
    compile: &mut CompileName<'_>,
) -> Result<RestorePlan, Vec<u8>> {
    let output = match place {
        Where::Folder(folder) => OutputNames::below(folder.clone()),
        Where::Regex(expressions) => {
            let parsed = RegexWhere::parse(expressions, compile)?;
            OutputNames::Regex(parsed.ok_or_else(|| texts::BAD_WHERE_REGEX.of(expressions))?)
        }
    };
    Ok(RestorePlan {
        output,
        prelinks,
        replace,
        check_digests: true,
        digests: None,
        keys,
        processor: Processor::chosen(),
        writing_depth: None,
        plugins: None,
    })
}

/// By which rule a restore follows links, if the Director may restore there:
/// `AllowedRestoreDirectories` (reference 05 §1.3). The place must be allowed as it is written,
/// without `..`, and as the kernel resolves it. No expression list is, where there are limits: its
/// text can look like an allowed place (`/tmp/ok/` replaces `tmp` by `ok`).
///
/// A link that another job of the Director puts into the place after the look is a new one, however
/// long the Director keeps this job waiting.
pub(crate) fn links_in(allowed: &[Vec<u8>], place: &Where) -> Option<LinkRule> {
    let rule = LinkRule::from_now();
    let is_allowed = match place {
        _ if allowed.is_empty() => true,
        Where::Regex(_) => false,
        Where::Folder(folder) => may_restore_to(allowed, folder),
    };
    is_allowed.then_some(rule)
}

fn may_restore_to(allowed: &[Vec<u8>], folder: &[u8]) -> bool {
    let written = if folder.starts_with(b"/") { plain_path(folder) } else { folder.to_vec() };
    let has_dots = || folder.split(|byte| *byte == b'/').any(|part| part == b"..");
    if !folder.starts_with(b"/") && has_dots() || !allowed.iter().any(|pattern| leads_to(pattern, &written)) {
        return false;
    }
    // The kernel resolves only what comes before a part that is missing; the restore goes on from
    // there, by the text without dots.
    [real_path(folder), real_path(&written)].iter().all(|real| {
        let leads_there = |pattern: &Vec<u8>| leads_to(pattern, real) || leads_to(&real_pattern(pattern), real);
        *real == written || allowed.iter().any(leads_there)
    })
}

/// A pattern whose directories before the first wildcard are real ones.
fn real_pattern(pattern: &[u8]) -> Vec<u8> {
    let plain = pattern.iter().position(|byte| b"*?[\\".contains(byte)).unwrap_or(pattern.len());
    let (plain, rest) = pattern.split_at_checked(plain).unwrap_or((pattern, &[]));
    if rest.is_empty() {
        return real_path(plain);
    }
    let directory = plain.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let (directory, name) = plain.split_at_checked(directory).unwrap_or((plain, &[]));
    let real = if directory.len() > 1 { real_path(directory) } else { Vec::new() };
    [real.as_slice(), b"/", name, rest].concat()
}

/// Whether `pattern`, whose slashes at the end mean nothing, matches `path` or a part of it that
/// ends before a slash.
fn leads_to(pattern: &[u8], path: &[u8]) -> bool {
    let pattern = without_slashes(pattern);
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(place, _)| place);
    ends.chain([path.len()]).filter_map(|end| path.get(..end)).any(|part| wildcard(pattern, part, false))
}

/// Restores what one Storage Daemon sends; errors become messages and the job's status. The result
/// is what the stock daemon says only with its next message, or before the job's end when its
/// status is settled: errors among them do not fail the restore. `waiting` are those of the
/// previous round; `tell` tells plugins when the records come and when they have come.
pub(crate) fn run(
    job: &Job,
    plan: &RestorePlan,
    state: &mut RestoreState,
    waiting: Vec<QueuedMessage>,
    outbox: &Outbox,
    storage: &mut StorageConnection,
    tell: &dyn Fn(&Event<'_>),
) -> Vec<QueuedMessage> {
    let ticket = match storage.open_read(job) {
        Ok(ticket) => ticket,
        Err(error) => {
            let mut waiting = waiting;
            if !job.has_ended() {
                for (kind, text) in waiting.drain(..) {
                    outbox.message(kind, &text);
                }
                outbox.message(MessageType::Fatal, &error.message());
            }
            job.change_status(JobStatus::Error);
            return waiting;
        }
    };
    job.change_status(JobStatus::Running);
    tell(&Event::StartRestoreJob);
    state.wait_with(waiting);
    let mut waiting = Vec::new();
    storage.channel().expect_many(true);
    let restored = fd_restore::run(
        plan,
        state,
        &job.progress,
        outbox,
        &job.cancel,
        &mut RecordFeed::new(storage, record_feed::reason),
    );
    storage.channel().expect_many(false);
    tell(&Event::EndRestoreJob);
    match restored {
        Ok(outcome) => {
            if matches!(outcome.end, End::ConnectionLost(_)) {
                job.change_status(JobStatus::Error);
            }
            waiting = outcome.queued;
            job.change_status(JobStatus::Terminated);
        }
        Err(error) => {
            tracing::debug!(%error, "the records are out of sequence");
            job.change_status(JobStatus::Error);
        }
    }
    if let Err(error) = storage.close_read(ticket) {
        tracing::debug!(%error, "the Storage daemon did not say good-bye");
    }
    waiting
}

#[cfg(test)]
mod tests;
