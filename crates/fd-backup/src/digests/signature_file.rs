//! Signatures of earlier backups, in a file: what comes again with the same content is not signed again.
//!
//! The file is a table of pages, without a header. A digest belongs on one of them, where it stands with its signature
//! among others. Nothing in the file is believed: the signer checks a signature before it uses it, which takes a thirtieth
//! of making it. So neither damage, nor a page that another job is writing, nor the signatures of another key can get onto
//! a volume. What is found is what would have been made: with RSA as Bacula uses it (PKCS #1 v1.5) a digest has one
//! signature.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fd_crypto::pki::SignatureStore;

/// Bytes of a page.
const PAGE: usize = 4096;

/// A file with signatures, for all signers of a job.
#[derive(Debug)]
pub struct SignatureFile {
    file: File,
    pages: u64,
    found: AtomicU64,
    made: AtomicU64,
    is_unreadable: AtomicBool,
    problem: OnceLock<io::Error>,
}

/// A page of the file, divided as a digest and its signature want it.
struct Page<'d> {
    bytes: [u8; PAGE],
    /// Where it begins in the file.
    begin: u64,
    digest: &'d [u8],
    entry_len: usize,
}

impl SignatureFile {
    /// Keeps signatures in this file, which can be read and written and grows to at most so many bytes. Whatever stands
    /// in it is as good as nothing.
    pub fn new(file: File, bytes: u64) -> Self {
        let pages = (bytes / PAGE as u64).max(1);
        Self {
            file,
            pages,
            found: AtomicU64::new(0),
            made: AtomicU64::new(0),
            is_unreadable: AtomicBool::new(false),
            problem: OnceLock::new(),
        }
    }

    /// How many signatures came out of the file, good or not.
    pub fn found(&self) -> u64 {
        self.found.load(Ordering::Relaxed)
    }

    /// How many had to be made.
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// Why nothing more was kept from some moment on: the disk is full, or can't be read.
    pub fn problem(&self) -> Option<&io::Error> {
        self.problem.get()
    }

    /// The page where a digest belongs.
    fn page<'d>(&self, digest: &'d [u8], signature_len: usize) -> Option<Page<'d>> {
        // A disk with errors takes its time for each of them.
        if self.is_unreadable.load(Ordering::Relaxed) {
            return None;
        }
        // Digests are as good as random.
        let number = digest.first_chunk().map_or(0, |first| u64::from_le_bytes(*first));
        let begin = number % self.pages * PAGE as u64;
        let mut page = Page { bytes: [0; PAGE], begin, digest, entry_len: (digest.len() + signature_len).max(1) };
        match self.read(begin, &mut page.bytes) {
            Ok(()) => Some(page),
            Err(problem) => {
                self.is_unreadable.store(true, Ordering::Relaxed);
                self.problem.get_or_init(|| problem);
                None
            }
        }
    }

    /// What is behind the file's end is empty.
    fn read(&self, begin: u64, page: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while let Some(rest) = page.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, begin + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl SignatureStore for SignatureFile {
    fn find(&self, digest: &[u8], signature: &mut [u8]) -> bool {
        let Some(page) = self.page(digest, signature.len()) else { return false };
        let Some((_, known)) = page.entries().find(|(known, _)| *known == digest) else { return false };
        signature.copy_from_slice(known);
        self.found.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn keep(&self, digest: &[u8], signature: &[u8]) {
        self.made.fetch_add(1, Ordering::Relaxed);
        if self.problem.get().is_some() {
            return;
        }
        let Some(place) = self.page(digest, signature.len()).and_then(|page| page.place()) else { return };
        if let Err(problem) = self.file.write_all_at(&[digest, signature].concat(), place) {
            self.problem.get_or_init(|| problem);
        }
    }
}

impl Page<'_> {
    fn entries(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.bytes.chunks_exact(self.entry_len).filter_map(|entry| entry.split_at_checked(self.digest.len()))
    }

    /// Where in the file the digest's entry is to stand: where it stands, or where none does, or in the place of another;
    /// `None` if not even one has room on a page.
    fn place(&self) -> Option<u64> {
        let same = self.entries().position(|(known, _)| known == self.digest);
        let empty = || self.entries().position(|(known, _)| known.iter().all(|byte| *byte == 0));
        // Any other will do, but not always the same: with more files than room the oldest would never be found again.
        let any = || usize::from(*self.digest.last()?).checked_rem(PAGE / self.entry_len);
        let index = same.or_else(empty).or_else(any)?;
        Some(self.begin + (index * self.entry_len) as u64)
    }
}

#[cfg(test)]
mod tests;
