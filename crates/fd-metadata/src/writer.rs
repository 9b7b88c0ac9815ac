//! Setting ACLs and extended attributes in a restore (reference 05 §9.2, §10).
//!
//! Not here: which records apply to which file, and when. That is the restore's state machine.

use fd_records::{Acl, AclHere, MetadataKind, Stream, StreamClass, xattr};
use nix::errno::Errno;

use crate::names::NameCache;
use crate::target::{ACCESS_ACL, DEFAULT_ACL, Target};
use crate::texts;
use crate::warnings::WarningLimit;

/// The warnings about one record, for the operator.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct WriterWarnings {
    /// The texts, each with its line end.
    pub texts: Vec<Vec<u8>>,
    /// Whether the stock daemon queues them (reference 05 §0.4).
    pub queued: bool,
}

/// Sets ACLs and extended attributes.
#[derive(Default, Debug)]
pub struct MetadataWriter {
    names: NameCache,
    acls: Count,
    xattrs: Count,
    /// ACLs that directories had and the backup has not, since the last summary.
    removed: u64,
    kernel_form: Vec<u8>,
}

/// What XFS calls the ACLs of an object among its attributes, with numbers in the place of names.
/// Set behind the ACL, it would give other users what those of that name had. No backup has it
/// without the ACL.
const ACLS_OF_XFS: [&[u8]; 2] = [b"trusted.SGI_ACL_FILE", b"trusted.SGI_ACL_DEFAULT"];

/// What a record contains, for the calls of this system.
enum Form {
    /// The ACL that the kernel calls this.
    Acl(&'static [u8]),
    Xattrs,
}

/// What of one kind could not be set.
#[derive(Clone, Copy, Default, Debug)]
struct Count {
    errors: u64,
    /// Warnings that the file system doesn't support it. A job has the first few: there may be one
    /// for each file.
    unsupported: usize,
}

/// The warnings about one record, and their count.
struct Warnings<'a> {
    count: &'a mut Count,
    texts: Vec<Vec<u8>>,
    /// Those without a text.
    more: u64,
}

impl<'a> Warnings<'a> {
    fn new(count: &'a mut Count) -> Self {
        Self { count, texts: Vec::new(), more: 0 }
    }

    fn add(&mut self, errno: Errno, text: impl FnOnce() -> Vec<u8>) {
        self.count.errors += 1;
        if errno == Errno::ENOTSUP {
            self.count.unsupported += 1;
            if self.count.unsupported > WarningLimit::MOST {
                return;
            }
        }
        if self.texts.len() < WarningLimit::MOST {
            self.texts.push(text());
        } else {
            self.more += 1;
        }
    }

    fn into_texts(mut self, path: &[u8]) -> Vec<Vec<u8>> {
        if self.more > 0 {
            self.texts.push(texts::more_not_set(path, self.more));
        }
        self.texts
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

    fn count(&mut self, kind: MetadataKind) -> &mut Count {
        match kind {
            MetadataKind::Acl => &mut self.acls,
            MetadataKind::Xattr => &mut self.xattrs,
        }
    }

    /// The warning about a record whose object has no status (reference 05 §9.2, §10); none if the
    /// object is missing.
    pub fn no_target(&mut self, path: &[u8], kind: MetadataKind, errno: Errno) -> WriterWarnings {
        let mut warnings = Warnings::new(self.count(kind));
        if errno != Errno::ENOENT {
            warnings.add(errno, || texts::no_stat(kind, path, errno));
        }
        WriterWarnings { texts: warnings.into_texts(path), queued: false }
    }

    /// Applies one record of metadata. `path` stands in the messages.
    pub fn apply(&mut self, target: &Target<'_>, path: &[u8], stream: Stream, record: &[u8]) -> WriterWarnings {
        let StreamClass::Metadata(kind) = stream.class() else { return WriterWarnings::default() };
        if let Err(errno) = target.stat() {
            return self.no_target(path, kind, errno);
        }
        let form = match stream.kind() {
            Stream::LINUX_ACCESS_ACL | Stream::UNIX_ACCESS_ACL => Form::Acl(ACCESS_ACL),
            Stream::LINUX_DEFAULT_ACL | Stream::UNIX_DEFAULT_ACL => Form::Acl(DEFAULT_ACL),
            Stream::LINUX_XATTR => Form::Xattrs,
            _ => return WriterWarnings { texts: vec![texts::incompatible(kind, path, stream)], queued: true },
        };
        let mut count = *self.count(kind);
        let mut warnings = Warnings::new(&mut count);
        match form {
            Form::Acl(name) => self.set_acl(target, path, name, record, &mut warnings),
            Form::Xattrs => set_xattrs(target, path, record, &mut warnings),
        }
        let texts = warnings.into_texts(path);
        *self.count(kind) = count;
        WriterWarnings { texts, queued: false }
    }

    /// Takes the ACLs away that a directory has and should not have, and says so. `path` stands in
    /// the messages.
    pub fn drop_acls(&mut self, target: &Target<'_>, path: &[u8], access: bool, default: bool) -> WriterWarnings {
        let mut warnings = Warnings::new(&mut self.acls);
        let mut removed = Vec::new();
        for (_, name) in [(access, ACCESS_ACL), (default, DEFAULT_ACL)].into_iter().filter(|(dropped, _)| *dropped) {
            match target.drop_acl(name) {
                Ok(false) => {}
                Ok(true) => {
                    self.removed += 1;
                    if self.removed <= WarningLimit::MOST as u64 {
                        removed.push(texts::acl_removed(path, name == DEFAULT_ACL));
                    }
                }
                Err(errno) => warnings.add(errno, || texts::acl_delete(path, errno)),
            }
        }
        removed.append(&mut warnings.into_texts(path));
        WriterWarnings { texts: removed, queued: false }
    }

    /// Sets the ACL of one record. What can't be set of an access ACL gives no user more rights
    /// than the ACL.
    fn set_acl(&mut self, target: &Target<'_>, path: &[u8], name: &[u8], record: &[u8], warnings: &mut Warnings<'_>) {
        if name == DEFAULT_ACL && record.iter().all(|byte| *byte == 0) {
            match target.remove_xattr(name) {
                Ok(()) | Err(Errno::ENODATA | Errno::ENOENT) => {}
                Err(errno) => warnings.add(errno, || texts::acl_delete(path, errno)),
            }
            return;
        }
        let is_set = match Acl::from_text_here(record, &mut self.names) {
            None => {
                warnings.add(Errno::EINVAL, || texts::acl_from_text(path));
                Err(Acl::default())
            }
            Some(AclHere { acl, unknown, merged }) => {
                if !unknown.is_empty() {
                    let failed = self.names.take_failed_number();
                    warnings.add(Errno::EINVAL, || texts::acl_left_out(path, &unknown, failed));
                }
                if !merged.is_empty() {
                    warnings.add(Errno::EINVAL, || texts::acl_merged(path, &merged));
                }
                self.kernel_form.clear();
                acl.to_kernel(&mut self.kernel_form);
                let is_valid = acl.is_valid();
                match if is_valid { target.set_xattr(name, &self.kernel_form) } else { Err(Errno::EINVAL) } {
                    Ok(()) => Ok(()),
                    Err(errno) if is_valid => {
                        warnings.add(errno, || texts::acl_set(path, errno));
                        Err(acl)
                    }
                    Err(errno) => {
                        warnings.add(errno, || texts::acl_valid(path));
                        Err(acl)
                    }
                }
            }
        };
        if let (Err(acl), true) = (is_set, name == ACCESS_ACL) {
            reduce_mode(target, path, &acl, warnings);
        }
    }

    /// The warnings for the end of the records of a Storage Daemon, for ACLs first.
    pub fn summaries(&mut self) -> impl Iterator<Item = Vec<u8>> {
        let removed = std::mem::take(&mut self.removed);
        [(MetadataKind::Acl, self.acls.errors), (MetadataKind::Xattr, self.xattrs.errors)]
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(kind, count)| texts::restoring_summary(kind, count))
            .chain((removed > WarningLimit::MOST as u64).then(|| texts::acls_removed(removed)))
    }
}

/// Takes rights of the owning group and of others away that they would not have with the ACL: with
/// one, the bits of the group in the mode are its mask.
fn reduce_mode(target: &Target<'_>, path: &[u8], acl: &Acl, warnings: &mut Warnings<'_>) {
    let Ok(stat) = target.stat() else { return };
    // A damaged ACL says nothing about others.
    let (group, other) = if acl.entries().is_empty() { (0, 7) } else { acl.least_without() };
    let least = u32::from(group) << 3 | u32::from(other);
    let mode = stat.st_mode & !(0o077 & !least);
    if mode != stat.st_mode
        && let Err(errno) = target.set_mode(mode)
    {
        warnings.add(errno, || texts::mode_not_reduced(path, errno));
    }
}

/// Sets the extended attributes of one record, each for itself, as far as it makes sense.
fn set_xattrs(target: &Target<'_>, path: &[u8], record: &[u8], warnings: &mut Warnings<'_>) {
    let mut attributes = xattr::entries(record);
    for attribute in attributes.by_ref() {
        if ACLS_OF_XFS.contains(&attribute.name) {
            continue;
        }
        let set = target.set_xattr(attribute.name, attribute.value);
        if set.is_err() && attribute.name == ACCESS_ACL {
            reduce_mode(target, path, &Acl::from_kernel(attribute.value).unwrap_or_default(), warnings);
        }
        match set {
            Ok(()) => {}
            Err(Errno::ENOTSUP) => {
                warnings.add(Errno::ENOTSUP, || texts::xattr_unsupported(path, attribute.name));
            }
            Err(errno) => warnings.add(errno, || texts::xattr_set(path, attribute.name, errno)),
        }
    }
    let left = attributes.unread();
    if record.iter().rev().take(left).any(|byte| *byte != 0) {
        warnings.add(Errno::EINVAL, || texts::xattrs_damaged(path, left));
    }
}
