//! The file that keeps the signatures of a backup for the next one.

use std::io;
use std::path::Path;
use std::sync::Arc;

use fd_backup::SignatureFile;
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use crate::security::own_file;
use crate::shared::daemon::Daemon;

/// The size that counts without a setting, in bytes.
const USUAL: u64 = 64 << 20;
/// No other user may read it: it shows which contents are in which file.
const MODE: u32 = 0o600;

/// The file for a backup with PKI; `None` if it is switched off, or can't be opened. With
/// `reads_all` it is read ahead.
pub(crate) fn for_backup(daemon: &Daemon, reads_all: bool) -> Option<Arc<SignatureFile>> {
    daemon.jobs.protection.as_ref()?;
    let config = &daemon.config().file_daemon;
    let bytes = daemon.settings.job.kept_signatures.unwrap_or(USUAL);
    let path = own_file::path(&config.working_directory, config.port(), "signatures");
    match open(&path, bytes, reads_all) {
        Ok(file) => file.map(Arc::new),
        Err(error) => {
            tracing::warn!(%error, path = %path.display(), "signatures can't be kept: equal files are signed one by one");
            None
        }
    }
}

/// Logs what happened to it.
pub(crate) fn report(file: &SignatureFile) {
    tracing::debug!(found = file.found(), made = file.made(), "signatures");
    if let Some(error) = file.problem() {
        tracing::warn!(%error, "some signatures were not kept for the next backup");
    }
}

fn open(path: &Path, bytes: u64, reads_all: bool) -> io::Result<Option<SignatureFile>> {
    if bytes == 0 {
        return Ok(None);
    }
    let file = own_file::open(path, MODE)?;
    if file.metadata()?.len() > bytes {
        file.set_len(bytes)?;
    }
    if reads_all {
        // Single pages would cost a rotating disk more time than signing. The call is only advice.
        let _ = posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_WILLNEED);
    }
    Ok(Some(SignatureFile::new(file, bytes)))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn the_file_is_the_daemon_s_alone_and_cut_to_its_size() {
        let directory = std::env::temp_dir().join(format!("ferrofd-signatures-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let file = own_file::path(&directory, 9102, "signatures");
        assert!(file.ends_with("bacula-fd.9102.signatures"));
        assert!(open(&file, 0, true).unwrap().is_none());
        assert!(!file.exists());
        assert!(open(&file, 4 << 20, true).unwrap().is_some());
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, MODE);
        fs::File::options().write(true).open(&file).unwrap().set_len(3 << 20).unwrap();
        for (size, len) in [(4 << 20, 3 << 20), (2 << 20, 2 << 20)] {
            assert!(open(&file, size, false).unwrap().is_some());
            assert_eq!(fs::metadata(&file).unwrap().len(), len);
        }
        fs::remove_dir_all(&directory).unwrap();
        assert!(open(&file, 1 << 20, false).is_err(), "no such directory");
    }
}
