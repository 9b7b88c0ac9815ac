//! Setting ACLs and extended attributes in a restore (reference 05 §9.2, §10).
//!
//! Not here: which records apply to which file, and when. That is the restore's state machine.

use fd_records::{Acl, MetadataKind, Stream, StreamClass, xattr};
use nix::errno::Errno;

use crate::names::NameCache;
use crate::target::Target;
use crate::texts;

const ACCESS_ACL: &[u8] = b"system.posix_acl_access";
const DEFAULT_ACL: &[u8] = b"system.posix_acl_default";

/// Up to this many suppressed records the stock daemon goes on warning.
const WARNINGS: u64 = 25;

/// A warning for the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WriterWarning {
    /// The text, with its line end.
    pub text: Vec<u8>,
    /// Whether the stock daemon queues it (reference 05 §0.4).
    pub queued: bool,
}

/// Sets ACLs and extended attributes, and remembers which device supports none.
#[derive(Default, Debug)]
pub struct MetadataWriter {
    names: NameCache,
    acls: Support,
    xattrs: Support,
    kernel_form: Vec<u8>,
}

/// What a record contains, for the calls of this system.
enum Form {
    /// The ACL that the kernel calls this.
    Acl(&'static [u8]),
    Xattrs,
}

/// Whether a device supports one kind of metadata.
#[derive(Clone, Copy, Default, Debug)]
struct Support {
    device: u64,
    works: bool,
    /// Records that were not applied because the device does not support them.
    suppressed: u64,
}

impl Support {
    /// Whether to apply a record on this device; counts those that are not. Another device than
    /// last time is always tried.
    fn admits(&mut self, device: u64) -> bool {
        if device != self.device {
            self.device = device;
            self.works = true;
        }
        self.suppressed += u64::from(!self.works);
        self.works
    }

    fn warning(&self, text: Vec<u8>) -> Option<WriterWarning> {
        (self.suppressed < WARNINGS).then_some(WriterWarning { text, queued: false })
    }
}

impl MetadataWriter {
    /// A new writer.
    pub fn new() -> Self {
        Self::default()
    }

    /// The users and groups of this machine.
    pub fn names(&mut self) -> &mut NameCache {
        &mut self.names
    }

    fn support(&mut self, kind: MetadataKind) -> &mut Support {
        match kind {
            MetadataKind::Acl => &mut self.acls,
            MetadataKind::Xattr => &mut self.xattrs,
        }
    }

    /// The warning about a record whose object has no status (reference 05 §9.2, §10); none if the
    /// object is missing.
    pub fn no_target(&mut self, path: &[u8], kind: MetadataKind, errno: Errno) -> Option<WriterWarning> {
        if errno == Errno::ENOENT { None } else { self.support(kind).warning(texts::no_stat(kind, path, errno)) }
    }

    /// Applies one record of metadata. `path` stands in the message.
    pub fn apply(&mut self, target: &Target<'_>, path: &[u8], stream: Stream, record: &[u8]) -> Option<WriterWarning> {
        let StreamClass::Metadata(kind) = stream.class() else { return None };
        let device = match target.stat() {
            Ok(stat) => stat.st_dev,
            Err(errno) => return self.no_target(path, kind, errno),
        };
        let form = match stream.kind() {
            Stream::LINUX_ACCESS_ACL | Stream::UNIX_ACCESS_ACL => Form::Acl(ACCESS_ACL),
            Stream::LINUX_DEFAULT_ACL | Stream::UNIX_DEFAULT_ACL => Form::Acl(DEFAULT_ACL),
            Stream::LINUX_XATTR => Form::Xattrs,
            _ => return Some(WriterWarning { text: texts::incompatible(kind, path, stream), queued: true }),
        };
        if !self.support(kind).admits(device) {
            return None;
        }
        let failed = match form {
            Form::Acl(name) => self.set_acl(target, path, name, record),
            Form::Xattrs => self.set_xattrs(target, path, record),
        };
        self.support(kind).warning(failed.err()?)
    }

    /// Sets the ACL of one record; the error is the message.
    fn set_acl(&mut self, target: &Target<'_>, path: &[u8], name: &[u8], record: &[u8]) -> Result<(), Vec<u8>> {
        let is_removal = name == DEFAULT_ACL && record.iter().all(|byte| *byte == 0);
        let outcome = if is_removal {
            target.remove_xattr(name)
        } else {
            let acl = Acl::from_text(record, &mut self.names).map_err(|_| texts::acl_from_text(path))?;
            acl.validate().map_err(|_| texts::acl_valid(path))?;
            self.kernel_form.clear();
            acl.to_kernel(&mut self.kernel_form);
            target.set_xattr(name, &self.kernel_form)
        };
        match outcome {
            Ok(()) | Err(Errno::ENODATA | Errno::ENOENT) => Ok(()),
            Err(errno) => {
                self.acls.works &= errno != Errno::ENOTSUP;
                Err(if is_removal { texts::acl_delete(path, errno) } else { texts::acl_set(path, errno) })
            }
        }
    }

    /// Sets the extended attributes of one record; the error is the message.
    fn set_xattrs(&mut self, target: &Target<'_>, path: &[u8], record: &[u8]) -> Result<(), Vec<u8>> {
        for attribute in xattr::entries(record) {
            match target.set_xattr(attribute.name, attribute.value) {
                Ok(()) | Err(Errno::ENOENT) => {}
                Err(Errno::ENOTSUP) => self.xattrs.works = false,
                Err(errno) => return Err(texts::xattr_set(path, errno)),
            }
        }
        Ok(())
    }

    /// The warnings for the end of a restore, for ACLs first.
    pub fn summaries(&self) -> impl Iterator<Item = Vec<u8>> {
        [(MetadataKind::Acl, self.acls.suppressed), (MetadataKind::Xattr, self.xattrs.suppressed)]
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(kind, count)| texts::restoring_summary(kind, count))
    }
}
