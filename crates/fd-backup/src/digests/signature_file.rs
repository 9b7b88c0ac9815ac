//! Signatures of this backup and earlier ones, in a file: the same content is not signed again.
//!
//! The file is a table of pages, without a header. Each digest belongs to one page, which holds
//! several digests with their signatures. The file is not trusted: the signer checks a signature
//! before it uses it, at a thirtieth of the cost of making it. So no damage, no half-written page
//! and no signature of another key can get onto a volume. A signature from the file is the one that
//! would have been made: with RSA as Bacula uses it (PKCS #1 v1.5), a digest has one signature.

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

/// A page of the file, divided into entries for digests and signatures of these lengths.
struct Page<'d> {
    bytes: [u8; PAGE],
    /// Its position in the file.
    begin: u64,
    digest: &'d [u8],
    entry_len: usize,
}

impl SignatureFile {
    /// Keeps signatures in this file, which must be readable and writable and grows to at most
    /// `bytes`. It may have any content.
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

    /// The number of signatures found in the file, valid or not.
    pub fn found(&self) -> u64 {
        self.found.load(Ordering::Relaxed)
    }

    /// The number of signatures that were made.
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// The error after which signatures are no longer kept, such as a full disk.
    pub fn problem(&self) -> Option<&io::Error> {
        self.problem.get()
    }

    /// The page that a digest belongs to.
    fn page<'d>(&self, digest: &'d [u8], signature_len: usize) -> Option<Page<'d>> {
        // A disk with errors is slow for each of them.
        if self.is_unreadable.load(Ordering::Relaxed) {
            return None;
        }
        // Digests are evenly distributed.
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

    /// Reads a page. Bytes past the end of the file are 0.
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

    /// The position for the digest's entry in the file: its present one, an empty one, or that of
    /// another entry. `None` if an entry is longer than a page.
    fn place(&self) -> Option<u64> {
        let same = self.entries().position(|(known, _)| known == self.digest);
        let empty = || self.entries().position(|(known, _)| known.iter().all(|byte| *byte == 0));
        // Not always the same one: with more files than places, the others would never be replaced.
        let any = || usize::from(*self.digest.last()?).checked_rem(PAGE / self.entry_len);
        let index = same.or_else(empty).or_else(any)?;
        Some(self.begin + (index * self.entry_len) as u64)
    }
}

#[cfg(test)]
mod tests;
