//! Restoring what was saved: to files, which the daemon makes, or into a bucket.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use aws_smithy_types::date_time::Format;
use fd_messages::MessageType;
use fd_plugins::{CreateStatus, Host, Io, IoDone, MetadataPacket, RestoreFile, Status};
use fd_records::Replace;
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, XattrFlags, fsetxattr, fstat, open, openat, readlinkat};
use rustix::process::geteuid;

use crate::client::Client;
use crate::error::S3Error;
use crate::extras::Extras;
use crate::listing::seconds;
use crate::names::key_of;
use crate::settings::BucketSettings;
use crate::texts;
use crate::upload::{Upload, Uploads};
use crate::work::Cancel;

/// So many files are named that could not get what was saved with them.
const MOST_NAMED: u64 = 25;
/// Most links on the way to a file, as the kernel's own limit.
const MOST_LINKS: u32 = 40;

/// The places in buckets that objects were restored to in a job, and which bucket's they were.
pub(crate) type Places = BTreeMap<String, String>;

/// The files of a command on their way back.
#[derive(Default, Debug)]
pub(crate) struct Restore {
    /// The file that describes the bucket, as it was given.
    into: Option<Vec<u8>>,
    /// The bucket that they go to; `None`: to files.
    uploads: Option<Uploads>,
    /// What is known of the current file.
    extras: Extras,
    upload: Option<Upload>,
    /// Files that could not get what was saved with them.
    bare: u64,
}

impl Restore {
    /// Restores into the bucket of this file, or to files. The error is a message.
    pub(crate) fn begin(into: Option<&[u8]>, cancel: &Cancel) -> Result<Self, Vec<u8>> {
        let uploads = match into {
            None => None,
            Some(path) => {
                let path = Path::new(std::ffi::OsStr::from_bytes(path));
                let settings = BucketSettings::read(path)?;
                let client = Client::new(&settings).map_err(|what| texts::settings(path, 0, &what))?;
                Some(Uploads::new(Arc::new(client), cancel.clone()))
            }
        };
        Ok(Self { into: into.map(<[u8]>::to_vec), uploads, ..Self::default() })
    }

    /// Whether files of a command that are to be restored in this way can come next.
    pub(crate) fn goes_to(&self, into: Option<&[u8]>) -> bool {
        self.into.as_deref() == into
    }

    /// A file comes. An object does not go where one of another bucket went: two could have one
    /// key.
    pub(crate) fn create(&mut self, host: &mut dyn Host, file: &RestoreFile, places: &mut Places) -> CreateStatus {
        self.extras = Extras::default();
        self.give_up();
        let Some(uploads) = &mut self.uploads else { return CreateStatus::Core };
        let place = file.place.as_deref().unwrap_or_default();
        let place = place.strip_suffix(b"/").unwrap_or(place);
        let Some((bucket, key)) = file.name.strip_prefix(place).and_then(key_of) else {
            host.message(MessageType::Error, &texts::no_key(&file.name));
            return CreateStatus::Skip;
        };
        let first = places.entry(uploads.client().place()).or_insert_with(|| bucket.clone());
        if *first != bucket {
            host.message(MessageType::Error, &texts::not_stored(&file.name, &texts::mixed(first)));
            return CreateStatus::Skip;
        }
        let key = [uploads.client().settings().restore_prefix.as_bytes(), &key].concat();
        match uploads.wait_for(host, &key).and_then(|()| takes(uploads, file, &key)) {
            Ok(true) => {
                let size = u64::try_from(file.stat.size).unwrap_or_default();
                self.upload = Some(Upload::new(file.name.clone(), key, size));
                CreateStatus::Extract
            }
            Ok(false) => {
                host.message(MessageType::Skipped, &texts::exists(&file.name));
                CreateStatus::Skip
            }
            Err(error) => {
                host.message(MessageType::Error, &texts::not_stored(&file.name, &error));
                CreateStatus::Skip
            }
        }
    }

    /// What was saved with the current file.
    pub(crate) fn metadata(&mut self, packet: &MetadataPacket) -> Status {
        if let Some(extras) = Extras::of_text(&packet.data) {
            if let Some(upload) = &mut self.upload {
                upload.extras = extras.clone();
            }
            self.extras = extras;
        }
        Status::Ok
    }

    /// The current file is there, with its data.
    pub(crate) fn set_attributes(&mut self, host: &mut dyn Host, file: &RestoreFile) -> CreateStatus {
        if self.uploads.is_none() {
            if let Err(error) = set_extras(file, &std::mem::take(&mut self.extras)) {
                self.bare += 1;
                if self.bare <= MOST_NAMED {
                    host.message(MessageType::Warning, &texts::no_attributes(&file.name, &error));
                }
            }
            return CreateStatus::Core;
        }
        CreateStatus::Created
    }

    /// The current file's data, for a bucket.
    pub(crate) fn io(&mut self, host: &mut dyn Host, io: &Io<'_>) -> IoDone {
        let (Some(uploads), Some(upload)) = (&mut self.uploads, &mut self.upload) else {
            return IoDone::error(libc::EBADF);
        };
        let done = match io {
            Io::Open { .. } => Ok(()),
            Io::Write { data } => uploads.write(upload, data),
            Io::Close => uploads.finish(host, upload),
            Io::Read { .. } => return IoDone::error(libc::EBADF),
            // A gap of zeros would be as good as a hole, but nobody asks for one.
            Io::Seek { .. } => return IoDone::error(libc::ESPIPE),
        };
        match (done, io) {
            (Ok(()), Io::Write { data }) => IoDone::bytes(i32::try_from(data.len()).unwrap_or(i32::MAX)),
            (Ok(()), Io::Close) => {
                self.upload = None;
                IoDone::bytes(0)
            }
            (Ok(()), _) => IoDone::bytes(0),
            (Err(S3Error::Canceled), _) => {
                self.give_up();
                IoDone::error(libc::ECANCELED)
            }
            (Err(error), _) => {
                host.message(MessageType::Error, &texts::not_stored(&upload.name, &error));
                self.give_up();
                IoDone::error(libc::EIO)
            }
        }
    }

    /// The current object will not be stored.
    fn give_up(&mut self) {
        if let (Some(upload), Some(uploads)) = (self.upload.take(), &self.uploads) {
            uploads.abandon(&upload);
        }
    }

    /// No more files come.
    pub(crate) fn end(&mut self, host: &mut dyn Host) {
        self.give_up();
        if let Some(uploads) = &mut self.uploads {
            uploads.wait_for_all(host);
        }
        if self.bare > MOST_NAMED {
            host.message(MessageType::Warning, &texts::no_attributes_in_all(self.bare));
        }
    }
}

/// Whether the replace mode lets an object be stored.
fn takes(uploads: &Uploads, file: &RestoreFile, key: &[u8]) -> Result<bool, S3Error> {
    let mode = Replace::from_letter(file.replace);
    if mode == Replace::Always {
        return Ok(true);
    }
    let Some(headers) = uploads.look_up(key)? else { return Ok(true) };
    let modified = headers.get("last-modified").and_then(|value| seconds(value.to_str().ok()?, Format::HttpDate));
    Ok(match mode {
        Replace::Always => true,
        Replace::IfNewer => modified.is_some_and(|modified| file.stat.mtime > modified),
        Replace::IfOlder => modified.is_some_and(|modified| file.stat.mtime < modified),
        Replace::Never => false,
    })
}

/// Keeps content type and user metadata as extended attributes. One that fails costs only itself;
/// the error is that of the first.
fn set_extras(file: &RestoreFile, extras: &Extras) -> io::Result<()> {
    let opened = open_restored(file)?;
    let set = extras.attributes().map(|(name, value)| fsetxattr(&opened, name.as_str(), value, XattrFlags::empty()));
    Ok(set.fold(Ok(()), Result::and)?)
}

/// Opens a restored file, and nothing but a file. Below the place of the restore no link is
/// followed. Without one, as with `where=/` and `RegexWhere`, one is that only root and the user
/// of this process can have put there. Step by step, as older kernels have no call for it.
fn open_restored(file: &RestoreFile) -> io::Result<File> {
    let place = file.place.as_deref().filter(|place| !place.is_empty() && file.name.starts_with(place));
    let top: &[u8] = if file.name.starts_with(b"/") { b"/" } else { b"." };
    let split = place.map(|place| file.name.split_at_checked(place.len()).unwrap_or_default());
    let (way, below) = split.unwrap_or((top, &file.name));
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut reached = openat(CWD, way, directory, Mode::empty())?;
    let mut names = steps(below);
    if names.iter().any(|name| name == b"..") {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut links = 0;
    while let Some(name) = names.pop() {
        let next = openat(&reached, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        let stat = fstat(&next)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => reached = next,
            // The opening alone can move a tape, or start a watchdog.
            FileType::RegularFile if names.is_empty() => {
                let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
                return Ok(File::from(open(format!("/proc/self/fd/{}", next.as_raw_fd()), flags, Mode::empty())?));
            }
            FileType::Symlink => {
                links += 1;
                let is_followed = place.is_none() && !names.is_empty() && links <= MOST_LINKS;
                if !is_followed || !is_ours(&stat) || !is_ours_alone(&fstat(&reached)?) {
                    return Err(io::Error::other("a symbolic link on the way to it is not followed"));
                }
                let target = readlinkat(&next, "", Vec::new())?.into_bytes();
                if target.starts_with(b"/") {
                    reached = openat(CWD, "/", directory, Mode::empty())?;
                }
                names.extend(steps(&target));
            }
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        }
    }
    Err(io::ErrorKind::InvalidInput.into())
}

/// The names of a path, the first one last.
fn steps(path: &[u8]) -> Vec<Vec<u8>> {
    path.rsplit(|byte| *byte == b'/').filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect()
}

/// Whether this belongs to root or the user of this process.
fn is_ours(stat: &Stat) -> bool {
    [0, geteuid().as_raw()].contains(&stat.st_uid)
}

/// Whether nobody else can put a link of ours into this directory.
fn is_ours_alone(stat: &Stat) -> bool {
    is_ours(stat) && (stat.st_mode & 0o022 == 0 || stat.st_mode & 0o1000 != 0)
}

#[cfg(test)]
mod tests;
