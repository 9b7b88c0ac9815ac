//! Setting ACLs and extended attributes in a restore (reference 05 §9.2, §10).
//!
//! Not here: which records apply to which file, and when. That is the restore's state machine.

use fd_records::{Acl, Stream, xattr};
use nix::errno::Errno;

use crate::names::NameCache;
use crate::target::Target;
use crate::texts;

const ACCESS_ACL: &[u8] = b"system.posix_acl_access";
const DEFAULT_ACL: &[u8] = b"system.posix_acl_default";

/// Up to this many suppressed records the reference goes on warning.
const WARNINGS: u64 = 25;

/// A warning for the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WriterWarning {
    /// The text, with its line end.
    pub text: Vec<u8>,
    /// Whether the reference queues it (reference 05 §0.4).
    pub queued: bool,
}

impl WriterWarning {
    fn direct(text: Vec<u8>) -> Self {
        Self { text, queued: false }
    }

    fn queued(text: Vec<u8>) -> Self {
        Self { text, queued: true }
    }
}

/// Sets ACLs and extended attributes, and remembers which device has none.
#[derive(Default, Debug)]
pub struct MetadataWriter {
    names: NameCache,
    acls: Support,
    xattrs: Support,
    kernel_form: Vec<u8>,
}

/// Whether a device supports one kind of metadata.
#[derive(Clone, Copy, Default, Debug)]
struct Support {
    device: u64,
    works: bool,
    /// Records that were not tried because the device said no before.
    suppressed: u64,
}

impl Support {
    /// Whether to try on this device; counts where not. Another device than last time is always tried.
    fn admits(&mut self, device: u64) -> bool {
        if device != self.device {
            self.device = device;
            self.works = true;
        }
        self.suppressed += u64::from(!self.works);
        self.works
    }
}

impl MetadataWriter {
    /// A writer that knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The names of this machine.
    pub fn names(&mut self) -> &mut NameCache {
        &mut self.names
    }

    /// What is said of a record whose object can't be looked at (reference 05 §9.2, §10). One that is not there is passed
    /// over.
    pub fn no_target(&self, path: &[u8], is_acl: bool, errno: Errno) -> Option<WriterWarning> {
        match errno {
            Errno::ENOENT => None,
            errno if is_acl => self.acl_warning(texts::acl_no_stat(path, errno)),
            errno => self.xattr_warning(texts::xattr_no_stat(path, errno)),
        }
    }

    /// Sets the ACL of one record. `path` stands in the message.
    pub fn set_acl(
        &mut self,
        target: &Target<'_>,
        path: &[u8],
        stream: Stream,
        record: &[u8],
    ) -> Option<WriterWarning> {
        let device = match device_of(target) {
            Ok(device) => device?,
            Err(errno) => return self.no_target(path, true, errno),
        };
        let (name, is_default) = match stream.kind() {
            Stream::LINUX_ACCESS_ACL | Stream::UNIX_ACCESS_ACL => (ACCESS_ACL, false),
            Stream::LINUX_DEFAULT_ACL | Stream::UNIX_DEFAULT_ACL => (DEFAULT_ACL, true),
            _ => return Some(WriterWarning::queued(texts::acl_incompatible(path, stream))),
        };
        if !self.acls.admits(device) {
            return None;
        }
        if is_default && record.iter().all(|byte| *byte == 0) {
            return match target.remove_xattr(name) {
                Ok(()) | Err(Errno::ENODATA | Errno::ENOENT) => None,
                Err(errno) => self.acl_failed(errno, texts::acl_delete(path, errno)),
            };
        }
        let Ok(acl) = Acl::from_text(record, &mut self.names) else {
            return self.acl_warning(texts::acl_from_text(path));
        };
        if acl.validate().is_err() {
            return self.acl_warning(texts::acl_valid(path));
        }
        self.kernel_form.clear();
        acl.to_kernel(&mut self.kernel_form);
        match target.set_xattr(name, &self.kernel_form) {
            Ok(()) | Err(Errno::ENOENT) => None,
            Err(errno) => self.acl_failed(errno, texts::acl_set(path, errno)),
        }
    }

    fn acl_failed(&mut self, errno: Errno, text: Vec<u8>) -> Option<WriterWarning> {
        if errno == Errno::ENOTSUP {
            self.acls.works = false;
        }
        self.acl_warning(text)
    }

    fn acl_warning(&self, text: Vec<u8>) -> Option<WriterWarning> {
        (self.acls.suppressed < WARNINGS).then(|| WriterWarning::direct(text))
    }

    /// Sets the extended attributes of one record. `path` stands in the message.
    pub fn set_xattrs(
        &mut self,
        target: &Target<'_>,
        path: &[u8],
        stream: Stream,
        record: &[u8],
    ) -> Option<WriterWarning> {
        let device = match device_of(target) {
            Ok(device) => device?,
            Err(errno) => return self.no_target(path, false, errno),
        };
        if stream.kind() != Stream::LINUX_XATTR {
            return Some(WriterWarning::queued(texts::xattr_incompatible(path, stream)));
        }
        if !self.xattrs.admits(device) {
            return None;
        }
        for attribute in xattr::entries(record) {
            match target.set_xattr(attribute.name, attribute.value) {
                Ok(()) | Err(Errno::ENOENT) => {}
                Err(Errno::ENOTSUP) => self.xattrs.works = false,
                Err(errno) => return self.xattr_warning(texts::xattr_set(path, errno)),
            }
        }
        None
    }

    fn xattr_warning(&self, text: Vec<u8>) -> Option<WriterWarning> {
        (self.xattrs.suppressed < WARNINGS).then(|| WriterWarning::direct(text))
    }

    /// The warnings for the end of a restore, for ACLs first.
    pub fn summaries(&self) -> impl Iterator<Item = Vec<u8>> {
        [("acl", self.acls.suppressed), ("xattr", self.xattrs.suppressed)]
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(what, count)| texts::restoring_summary(what, count))
    }
}

/// The device of the target; `None` if it is not there any more, which the reference passes over.
fn device_of(target: &Target<'_>) -> Result<Option<u64>, Errno> {
    match target.stat() {
        Ok(stat) => Ok(Some(stat.st_dev)),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}
