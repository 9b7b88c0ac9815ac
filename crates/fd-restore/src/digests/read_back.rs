//! The MD5 or SHA-256 of long files, made of several files at a time once they are restored: eight
//! or sixteen side by side take hardly longer than two alone, and one alone takes longer than the
//! rest of the restore.
//!
//! A file is kept open, for reading only, when its digest record or its signature has come. Once
//! there are enough, a thread reads them back, from the page cache as a rule, while the job goes
//! on; so the check covers what the file system has. Later messages are held meanwhile (see
//! [`crate::report`]). Not here: the choice of files, and whether a signature is good.

use std::fs::File;
use std::iter;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use fd_crypto::multi_buffer::{BLOCK, SideBySide};
use fd_crypto::processor::Processor;
use fd_crypto::{DigestSet, Digester};
use fd_messages::CancelToken;
use fd_os::memory_limit::memory;
use fd_records::{DigestKind, DigestValue};
use nix::errno::Errno;

use super::checked::{Checked, Finding, Recorded, Ticket};

/// The number of files that are digested together.
const MOST_FILES: usize = 16;
/// Fewer files are faster one by one.
const WORTH_IT: usize = 3;
/// The number of bytes that are digested together, which should still be in the page cache.
const MOST_BYTES: u64 = 512 << 20;
/// The largest part of the host's memory that these may be: one in so many.
const SHARE_OF_MEMORY: u64 = 16;
/// Bytes that are read of each file at a time, a multiple of [`BLOCK`]. All together should fit
/// into a processor's own cache.
const PIECE: usize = 32 << 10;

/// Long files whose digests are not made or not reported yet.
pub(super) struct LongFiles {
    processor: Processor,
    /// Bytes that may wait.
    most_bytes: u64,
    waiting: Vec<LongFile>,
    waiting_bytes: u64,
    /// The files that the thread reads.
    working: Option<(Group, JoinHandle<Vec<Finding>>)>,
    /// Files whose outcomes are not reported yet.
    done: Vec<(Group, Vec<Finding>)>,
    cancel: CancelToken,
}

/// Files whose digests are made together.
type Group = Arc<Vec<LongFile>>;

/// A file whose digest is to be made.
struct LongFile {
    ticket: Ticket,
    /// Its name, as messages show it.
    name: Vec<u8>,
    recorded: Recorded,
    /// Its device and inode.
    identity: Option<(u64, u64)>,
    /// Open for reading.
    file: File,
    /// How much of it was restored; what another process appends is not read.
    length: u64,
    kind: DigestKind,
    /// The beginning of the digest.
    begun: SideBySide,
    /// Its stamp when the job was done with it.
    left: Option<Stamp>,
}

/// What changes when another process writes: the length, and the time of the last write. The owner
/// can set that time, but not the time of the last change of status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stamp {
    length: u64,
    written: (i64, i64),
    /// `None` for a file without a name: removing the last one changes the status, too.
    changed: Option<(i64, i64)>,
}

impl Stamp {
    /// Whether the file is unchanged since `left`, except that its last name may have been removed.
    fn is_that_of(self, left: Self) -> bool {
        let changed = self.changed.or(left.changed);
        Self { changed, ..self } == left
    }
}

impl LongFiles {
    /// With the kernels of this processor, if it has any.
    pub(super) fn new(processor: Processor) -> Self {
        Self {
            processor,
            most_bytes: MOST_BYTES.min(memory() / SHARE_OF_MEMORY),
            waiting: Vec::new(),
            waiting_bytes: 0,
            working: None,
            done: Vec::new(),
            cancel: CancelToken::default(),
        }
    }

    /// Whether a file of this length can wait for such a digest.
    pub(super) fn can_take(&self, kind: DigestKind, length: u64) -> bool {
        length <= self.most_bytes && SideBySide::suits(kind, self.processor)
    }

    /// Sets the token that stops the thread.
    pub(super) fn belong_to(&mut self, cancel: &CancelToken) {
        self.cancel = cancel.clone();
    }

    /// Adds a file whose data is complete. Call [`Self::leave`] when its metadata is, too. Without
    /// a kernel for this kind it does nothing.
    pub(super) fn add(
        &mut self,
        ticket: Ticket,
        file: File,
        length: u64,
        kind: DigestKind,
        recorded: Recorded,
        name: &[u8],
    ) {
        let Some(begun) = SideBySide::begin(DigestSet::EMPTY.with(kind), self.processor) else { return };
        let identity = file.metadata().ok().map(|found| (found.dev(), found.ino()));
        self.waiting_bytes = self.waiting_bytes.saturating_add(length);
        let name = name.to_vec();
        self.waiting.push(LongFile { ticket, name, recorded, identity, file, length, kind, begun, left: None });
    }

    /// The job does not change the file that was added last any more.
    pub(super) fn leave(&mut self) {
        if let Some(last) = self.waiting.last_mut().filter(|file| file.left.is_none()) {
            last.left = last.stamp();
        }
    }

    /// The files whose digests are not made yet.
    fn unknown(&self) -> impl Iterator<Item = &LongFile> {
        self.working.iter().flat_map(|(files, _)| files.iter()).chain(&self.waiting)
    }

    /// Whether this is one of the files whose digests are not made yet.
    pub(super) fn has(&self, device: u64, inode: u64) -> bool {
        self.unknown().any(|file| file.identity.is_none_or(|it| it == (device, inode)))
    }

    /// Whether the outcome for this ticket is not known yet.
    pub(super) fn is_unknown(&self, ticket: Ticket) -> bool {
        self.unknown().any(|file| file.ticket == ticket)
    }

    /// Whether all files were reported.
    pub(super) fn is_empty(&self) -> bool {
        self.done.is_empty() && self.unknown().next().is_none()
    }

    /// Starts the thread if there are enough files, and takes its outcomes. Returns whether there
    /// are outcomes to report.
    pub(super) fn go_on(&mut self) -> bool {
        if self.working.as_ref().is_some_and(|(_, findings)| findings.is_finished()) {
            self.collect();
        }
        if self.waiting.len() >= MOST_FILES || self.waiting_bytes >= self.most_bytes {
            self.hand_over();
        }
        !self.done.is_empty()
    }

    /// Waits until all outcomes are known.
    pub(super) fn finish(&mut self) {
        self.hand_over();
        self.collect();
    }

    /// Passes on the outcomes that are known.
    pub(super) fn settle(&mut self, each: &mut dyn FnMut(Checked<'_>)) {
        for (files, findings) in self.done.drain(..) {
            // Only a panic leaves no findings.
            let findings = findings.into_iter().chain(iter::repeat(Finding::None));
            for (LongFile { ticket, name, recorded, .. }, finding) in files.iter().zip(findings) {
                each(Checked { ticket: *ticket, name, recorded, finding });
            }
        }
    }

    /// Starts a thread for the files that wait, after the one before has ended.
    fn hand_over(&mut self) {
        self.collect();
        if self.waiting.is_empty() {
            return;
        }
        self.waiting_bytes = 0;
        let files = Arc::new(std::mem::take(&mut self.waiting));
        let (theirs, together, cancel) = (Arc::clone(&files), SideBySide::width(self.processor), self.cancel.clone());
        match thread::Builder::new().name("long files".to_owned()).spawn(move || check(&theirs, together, &cancel)) {
            Ok(findings) => self.working = Some((files, findings)),
            Err(_no_thread) => {
                let findings = check(&files, together, &self.cancel);
                self.done.push((files, findings));
            }
        }
    }

    /// Waits for the thread.
    fn collect(&mut self) {
        if let Some((files, findings)) = self.working.take() {
            self.done.push((files, findings.join().unwrap_or_default()));
        }
    }
}

impl LongFile {
    fn stamp(&self) -> Option<Stamp> {
        self.file.metadata().ok().map(|found| Stamp {
            length: found.len(),
            written: (found.mtime(), found.mtime_nsec()),
            changed: (found.nlink() > 0).then(|| (found.ctime(), found.ctime_nsec())),
        })
    }

    fn finding(&self, digest: Option<DigestValue>) -> Finding {
        match digest {
            None => Finding::None,
            Some(digest) => match (self.left, self.stamp()) {
                (Some(left), Some(found)) if !found.is_that_of(left) => Finding::Changed(digest),
                (Some(_), None) => Finding::Changed(digest),
                _ => Finding::Has(digest),
            },
        }
    }
}

/// The digest of a file that is being read.
enum Running {
    SideBySide(SideBySide),
    Alone(Digester),
}

/// A file that is being read.
struct Reading<'f> {
    number: usize,
    file: &'f LongFile,
    digest: Running,
    /// Bytes in the digest.
    digested: u64,
    piece: Vec<u8>,
    /// The length of what was read into it.
    filled: usize,
    error: Option<Errno>,
}

impl<'f> Reading<'f> {
    fn new((number, file): (usize, &'f LongFile), is_alone: bool) -> Self {
        let alone = if is_alone { Digester::new(file.kind).ok() } else { None };
        let digest = alone.map_or(Running::SideBySide(file.begun), Running::Alone);
        Self { number, file, digest, digested: 0, piece: vec![0; PIECE], filled: 0, error: None }
    }

    /// Reads the next piece: a whole one, except at the end of the file.
    fn read(&mut self) {
        let left = usize::try_from(self.file.length.saturating_sub(self.digested)).unwrap_or(PIECE).min(PIECE);
        self.filled = 0;
        while let Some(room) = self.piece.get_mut(self.filled..left).filter(|room| !room.is_empty()) {
            match self.file.file.read_at(room, self.digested.saturating_add(self.filled as u64)) {
                Ok(0) => return,
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.error = Some(error.raw_os_error().map_or(Errno::EIO, Errno::from_raw));
                    return;
                }
            }
        }
    }

    /// Goes on to the next piece. Returns the outcome if this was the last one.
    fn go_on(&mut self) -> Option<Finding> {
        if let Some(errno) = self.error {
            return Some(Finding::Unreadable(errno));
        }
        let length = self.digested.saturating_add(self.filled as u64);
        if self.filled == PIECE && length < self.file.length {
            self.digested = length;
            return None;
        }
        // The end, which may be too early.
        let (_blocks, rest) = parts(&self.piece, self.filled);
        Some(self.file.finding(match &mut self.digest {
            Running::SideBySide(digest) => digest.finish(rest, length).get(self.file.kind),
            Running::Alone(digester) => digester.finish().ok(),
        }))
    }
}

/// The whole blocks of what was read, and the rest.
fn parts(piece: &[u8], filled: usize) -> (&[[u8; BLOCK]], &[u8]) {
    piece.get(..filled).unwrap_or_default().as_chunks()
}

/// Digests the pieces; of those of files side by side, the whole blocks.
fn digest(files: &mut [Reading<'_>]) {
    SideBySide::advance(files.iter_mut().filter_map(|Reading { digest, piece, filled, .. }| match digest {
        Running::SideBySide(digest) => Some((digest, parts(piece, *filled).0)),
        Running::Alone(digester) => {
            digester.update(piece.get(..*filled).unwrap_or_default());
            None
        }
    }));
}

/// Reads these files, so many at a time, and makes their digests.
fn check(files: &[LongFile], together: usize, cancel: &CancelToken) -> Vec<Finding> {
    let mut findings = vec![Finding::Canceled; files.len()];
    let mut waiting: Vec<(usize, &LongFile)> = files.iter().enumerate().collect();
    // The longest first, so that the kernel is busy to the end.
    waiting.sort_by_key(|(_, file)| file.length);
    let mut reading: Vec<Reading<'_>> = Vec::new();
    loop {
        while reading.len() < together
            && let Some(next) = waiting.pop()
        {
            reading.push(Reading::new(next, files.len() < WORTH_IT));
        }
        if reading.is_empty() || cancel.is_canceled() {
            return findings;
        }
        reading.iter_mut().for_each(Reading::read);
        digest(&mut reading);
        reading.retain_mut(|file| {
            let found = file.go_on();
            if let (Some(found), Some(place)) = (found, findings.get_mut(file.number)) {
                *place = found;
            }
            found.is_none()
        });
    }
}

#[cfg(test)]
mod tests;
