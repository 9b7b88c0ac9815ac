//! The levels of a Verify job that read the disk: `init`, `catalog` and `disk_to_catalog`
//! (reference 05 §18). They are the same for this daemon: it sends to the Director what the FileSet
//! selects, and the Director compares or stores it.
//!
//! Not here: the levels that read a volume (`fd-restore`), and the end of the packets.

use std::sync::Arc;

use fd_crypto::Digesters;
use fd_fileset::{FileSet, Flags};
use fd_messages::{CancelToken, JobLog, MessageType, PacketSink, Progress, SendError};
use fd_os::local_time::now;
use fd_records::{DigestKind, FileType, LStat, Stat, VerifyAttributes, VerifyDigest};
use fd_walk::{Entry, Flow, WalkEnd, WalkEvent, WalkHost, WalkSettings};

use crate::file::blocks::DataEnd;
use crate::file::compare::{Blocks, read_file};
use crate::shared::plan::block_len;
use crate::source::{LeaseClock, OpenLimits};
use crate::texts;

/// What is verified.
#[derive(Clone, Debug)]
pub struct VerifyPlan {
    /// What the job selects.
    pub fileset: Arc<FileSet>,
    /// How the tree is walked; its purpose should be [`fd_walk::Purpose::Verify`].
    pub walk: WalkSettings,
    /// `Maximum Network Buffer Size`: files are read in blocks of so many bytes; 0 for 65,536.
    pub network_buffer: usize,
    /// Whether this client encrypts what it saves: no block of zeros is left out of the digests
    /// then.
    pub encrypts: bool,
}

/// Why a verify failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum VerifyDiskError {
    /// The job was canceled.
    #[error("the job was canceled")]
    Canceled,
    /// The Director can't be reached. The operator has got a message about it.
    #[error("packet to the Director: {0}")]
    Director(#[from] SendError),
    /// The FileSet has a plugin command: what a plugin saves is not on the disk. The operator has
    /// got a message about it.
    #[error("the FileSet has a plugin command")]
    Plugin,
}

/// Sends to the Director what the FileSet selects on the disk: the attributes of each entry, and
/// the digest of each regular file except later names of hard links.
///
/// # Errors
/// See [`VerifyDiskError`].
pub fn verify_disk(
    plan: &VerifyPlan,
    progress: &Progress,
    log: &dyn JobLog,
    cancel: &CancelToken,
    director: &mut dyn PacketSink,
) -> Result<(), VerifyDiskError> {
    let record_len = block_len(plan.network_buffer);
    let host = Host { progress, log, cancel };
    let mut verify = Verify {
        host: &host,
        director,
        digesters: Digesters::default(),
        block: Vec::new(),
        record_len,
        encrypts: plan.encrypts,
        lstat_text: Vec::new(),
        leases: LeaseClock::default(),
    };
    let mut result = Ok(());
    let summary = fd_walk::walk(&plan.fileset, &plan.walk, &host, &mut |event| {
        result = verify.event(event);
        if result.is_ok() { Flow::Continue } else { Flow::Stop }
    });
    result?;
    if summary.end == WalkEnd::Complete { Ok(()) } else { Err(VerifyDiskError::Canceled) }
}

/// Answers the walk's questions.
struct Host<'h> {
    progress: &'h Progress,
    log: &'h dyn JobLog,
    cancel: &'h CancelToken,
}

impl WalkHost for Host<'_> {
    fn is_canceled(&self) -> bool {
        self.cancel.is_canceled()
    }

    fn examined(&self, path: &[u8]) {
        self.progress.add_files_examined(1);
        self.progress.set_current_file(path);
        self.progress.touch(now());
    }

    fn wants(&self, kind: MessageType) -> bool {
        self.log.wants(kind)
    }
}

impl Host<'_> {
    /// An error that counts twice: as a message, and as a file that can't be verified (reference 05
    /// §18.4).
    fn failed(&self, text: &[u8]) {
        self.log.message(MessageType::Error, text);
        self.progress.add_error();
    }
}

struct Verify<'v> {
    host: &'v Host<'v>,
    director: &'v mut dyn PacketSink,
    digesters: Digesters,
    /// A buffer for blocks.
    block: Vec<u8>,
    record_len: usize,
    encrypts: bool,
    lstat_text: Vec<u8>,
    leases: LeaseClock,
}

impl Verify<'_> {
    fn event(&mut self, event: WalkEvent<'_>) -> Result<(), VerifyDiskError> {
        match event {
            WalkEvent::Entry(entry) => self.entry(entry)?,
            WalkEvent::Message(message) => {
                self.host.log.message(message.kind, message.text);
                if message.error {
                    self.host.progress.add_error();
                }
            }
            WalkEvent::Plugin(plugin) => {
                self.host.log.message(MessageType::Fatal, &texts::no_plugins_on_disk(plugin.command));
                return Err(VerifyDiskError::Plugin);
            }
        }
        Ok(())
    }

    fn entry(&mut self, mut entry: Entry) -> Result<(), VerifyDiskError> {
        self.host.progress.add_file();
        let number = self.host.progress.files();
        self.lstat_text.clear();
        LStat { stat: entry.stat, ..LStat::default() }.encode(&mut self.lstat_text);
        let names = entry.whole_names();
        let packet = VerifyAttributes {
            number,
            options: &entry.options.verify,
            name: &names.name,
            lstat_text: &self.lstat_text,
            link: &names.link,
        };
        self.send(packet.encode())?;
        let has_digest = entry.stat.mode_type() == Stat::MODE_REGULAR && entry.file_type != FileType::HardLink;
        match entry.options.digest {
            Some(kind) if has_digest => {
                if entry.options.has(Flags::KEEP_ATIME) {
                    // The stock daemon sets the times anew behind it, which costs their fractions.
                    Arc::make_mut(&mut entry.options).flags |= Flags::NO_ATIME;
                }
                self.digest(&entry, kind, number)
            }
            _ => Ok(()),
        }
    }

    /// Sends the digest of the entry's data. After a read error, it is that of the data before it.
    fn digest(&mut self, entry: &Entry, kind: DigestKind, number: u32) -> Result<(), VerifyDiskError> {
        let host = self.host;
        let warn = || host.log.message(MessageType::Warning, &texts::digest_failed(kind));
        let Ok(digester) = self.digesters.ready(kind) else {
            warn();
            return Ok(());
        };
        let is_stopped = || host.cancel.is_canceled();
        let open_limits = OpenLimits::new(&is_stopped, &self.leases);
        let each = |data: &[u8]| {
            digester.update(data);
            host.progress.add_read_bytes(data.len() as u64);
            host.progress.add_job_bytes(data.len() as u64);
            host.progress.touch(now());
        };
        let sparse = entry.options.is_sparse(self.encrypts);
        let blocks = Blocks { buffer: &mut self.block, before_each: &mut || {}, record_len: self.record_len, sparse };
        let end = read_file(entry, blocks, open_limits, each);
        match end.map_err(|_stopped| VerifyDiskError::Canceled)? {
            Ok((DataEnd::Complete, _)) => {}
            Ok((DataEnd::ReadError(errno), _)) => host.failed(&texts::cannot_read_to_verify(&entry.path, errno)),
            Err(errno) => {
                host.failed(&texts::cannot_open_to_verify(&entry.path, errno));
                return Ok(());
            }
        }
        let Ok(value) = digester.finish() else {
            warn();
            return Ok(());
        };
        let packet = VerifyDigest { number, kind, digest: value.as_bytes() };
        self.send(packet.encode())
    }

    fn send(&mut self, packet: Vec<u8>) -> Result<(), VerifyDiskError> {
        self.director.send(packet).map_err(|error| {
            self.host.log.message(MessageType::Fatal, &texts::director_lost(&error.0));
            VerifyDiskError::Director(error)
        })
    }
}
