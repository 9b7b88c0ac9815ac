//! Saving the objects of a bucket: listed, compared and fetched ahead, handed over one after the
//! other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::vec::IntoIter;

use fd_messages::MessageType;
use fd_plugins::{Host, IoDone, MetadataPacket, SavePacket, Status};
use fd_records::{FileType, Stat};
use hyper::body::{Buf as _, Bytes};
use md5::{Digest as _, Md5};
use tokio::sync::{Semaphore, mpsc};

use crate::client::Client;
use crate::error::S3Error;
use crate::listing::{Listed, Pages, list};
use crate::names::Namer;
use crate::object::{Fetch, Head};
use crate::texts;
use crate::work::Cancel;

/// Bytes of one unit of the memory that objects share.
const UNIT: usize = 1 << 10;
/// The least and the largest share of an object, in bytes.
const SHARES: (usize, usize) = (16 << 10, 4 << 20);
/// Bytes that a packet of metadata has besides its data.
const METADATA_HEAD: usize = 24;

/// A command at work.
#[derive(Debug)]
pub(crate) struct Backup {
    client: Arc<Client>,
    cancel: Cancel,
    pages: Pages,
    page: IntoIter<Listed>,
    is_listed: bool,
    namer: Namer,
    memory: Arc<Semaphore>,
    queue: VecDeque<Ahead>,
    /// The object that waits for memory.
    held: Option<(Listed, Vec<u8>)>,
    current: Option<Current>,
    mode: Mode,
    counts: Counts,
}

/// What the job wants.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Mode {
    /// Only what has changed.
    pub(crate) only_changed: bool,
    /// The catalog's list of files is there.
    pub(crate) accurate: bool,
    /// Nothing is read.
    pub(crate) estimates: bool,
}

/// An object that is fetched, or of which only the attributes are wanted.
#[derive(Debug)]
struct Ahead {
    listed: Listed,
    name: Vec<u8>,
    fetch: Option<Fetch>,
}

/// The object that is handed over.
#[derive(Debug)]
struct Current {
    name: Vec<u8>,
    fetch: Fetch,
    piece: Bytes,
    /// What is wrong behind the bytes that were handed over.
    failed: Option<S3Error>,
}

#[derive(Default, Debug)]
struct Counts {
    listed: u64,
    unchanged: u64,
    failed: u64,
}

impl Backup {
    pub(crate) fn begin(client: Arc<Client>, cancel: Cancel, mode: Mode) -> Result<Self, S3Error> {
        Ok(Self {
            pages: list(&client)?,
            page: Vec::new().into_iter(),
            is_listed: false,
            namer: Namer::default(),
            memory: Arc::new(Semaphore::new(client.settings().memory() / UNIT)),
            queue: VecDeque::new(),
            held: None,
            current: None,
            mode,
            counts: Counts::default(),
            client,
            cancel,
        })
    }

    /// The next object that is to be saved. [`Status::Stop`] after the last one.
    pub(crate) fn next(&mut self, host: &mut dyn Host, file: &mut SavePacket) -> Status {
        self.current = None;
        match self.find(host, file) {
            Ok(true) => Status::Ok,
            Ok(false) => {
                let Counts { listed, unchanged, failed } = self.counts;
                let bucket = &self.client.settings().bucket;
                if !self.mode.estimates {
                    host.message(MessageType::Info, &texts::summary(bucket, listed, unchanged, failed));
                }
                Status::Stop
            }
            Err(S3Error::Canceled) if self.cancel.is_set() => Status::Stop,
            Err(error) => {
                // A part of a bucket must not pass for the whole: what is missing would not be
                // saved by later jobs, either.
                host.message(MessageType::Fatal, &texts::not_listed(&self.client.settings().bucket, &error));
                Status::Error
            }
        }
    }

    /// How many objects could not be read, unless that is well: later accurate jobs try them again,
    /// and where others are unchanged, an earlier job has those.
    pub(crate) const fn unread(&self) -> u64 {
        if self.mode.accurate || self.counts.unchanged > 0 { 0 } else { self.counts.failed }
    }

    fn find(&mut self, host: &mut dyn Host, file: &mut SavePacket) -> Result<bool, S3Error> {
        loop {
            self.fill(host)?;
            let Some(ahead) = self.queue.pop_front() else { return Ok(false) };
            let Ahead { listed, name, fetch } = ahead;
            let Some(mut fetch) = fetch else {
                describe(file, name, &listed, None);
                return Ok(true);
            };
            let head = self.cancel.wait(fetch.head())?;
            match head {
                Ok(head) => {
                    describe(file, name.clone(), &listed, Some(&head));
                    self.current = Some(Current { name, fetch, piece: Bytes::new(), failed: None });
                    return Ok(true);
                }
                Err(S3Error::Canceled) => return Err(S3Error::Canceled),
                Err(error) if error.is_deleted() => {
                    host.message(MessageType::Info, &texts::gone(&name));
                }
                Err(error) => {
                    self.counts.failed += 1;
                    host.message(MessageType::Error, &texts::not_read(&name, &error));
                    // It is there: the catalog's version of it remains.
                    let _unknown = host.mark_seen(&name);
                }
            }
        }
    }

    /// Begins to fetch as many objects as may be fetched.
    fn fill(&mut self, host: &mut dyn Host) -> Result<(), S3Error> {
        while self.queue.len() < usize::from(self.client.settings().prefetch) {
            let (listed, name) = match self.held.take() {
                Some(held) => held,
                None => match self.next_listed()? {
                    Some(listed) => {
                        self.counts.listed += 1;
                        let bucket = &self.client.settings().bucket;
                        let (name, is_marked) = self.namer.name(bucket, &listed.key);
                        if self.mode.only_changed && !self.has_changed(host, &listed, &name, is_marked) {
                            self.counts.unchanged += 1;
                            continue;
                        }
                        (listed, name)
                    }
                    None => break,
                },
            };
            if self.mode.estimates {
                self.queue.push_back(Ahead { listed, name, fetch: None });
                continue;
            }
            let (least, most) = SHARES;
            let room = usize::try_from(listed.size).unwrap_or(most).clamp(least, most);
            let units = u32::try_from(room / UNIT).unwrap_or_default();
            let Ok(share) = Arc::clone(&self.memory).try_acquire_many_owned(units) else {
                self.held = Some((listed, name));
                break;
            };
            let fetch = Fetch::begin(&self.client, listed.clone(), room, share)?;
            self.queue.push_back(Ahead { listed, name, fetch: Some(fetch) });
        }
        Ok(())
    }

    /// The next object of the listing. `None` at its end, or if it would have to be waited for
    /// while there is something to hand over.
    fn next_listed(&mut self) -> Result<Option<Listed>, S3Error> {
        loop {
            if let Some(listed) = self.page.next() {
                return Ok(Some(listed));
            }
            if self.is_listed || self.cancel.is_set() {
                return if self.cancel.is_set() { Err(S3Error::Canceled) } else { Ok(None) };
            }
            let page = match self.pages.try_recv() {
                Ok(page) => Some(page),
                Err(mpsc::error::TryRecvError::Empty) if !self.queue.is_empty() => return Ok(None),
                Err(_) => self.cancel.wait(self.pages.recv())?,
            };
            match page.unwrap_or_else(|| Err(S3Error::nonsense(texts::DIED)))? {
                Some(page) => self.page = page.into_iter(),
                None => self.is_listed = true,
            }
        }
    }

    /// Whether an object has to be saved. One that has not is marked as seen.
    fn has_changed(&self, host: &mut dyn Host, listed: &Listed, name: &[u8], is_marked: bool) -> bool {
        if is_marked && !self.mode.accurate {
            // Its name may be new, because of another object.
            return true;
        }
        let mut file = SavePacket::empty();
        describe(&mut file, name.to_vec(), listed, None);
        if host.check_changes(&mut file) != Status::Seen {
            return true;
        }
        if self.mode.accurate {
            let known = host.accurate_attributes(name);
            if known.is_none_or(|known| known.stat.ino != file.stat.ino) {
                return true;
            }
            let _unknown = host.mark_seen(name);
        }
        false
    }

    /// Opens the object that was handed over.
    pub(crate) fn open(&mut self) -> IoDone {
        if self.current.is_some() { IoDone::bytes(0) } else { IoDone::error(libc::ENOENT) }
    }

    /// Reads on in it.
    pub(crate) fn read(&mut self, host: &mut dyn Host, buffer: &mut [u8]) -> IoDone {
        let Some(Current { name, fetch, piece, failed }) = &mut self.current else {
            return IoDone::error(libc::EBADF);
        };
        let mut count = 0;
        while count < buffer.len() {
            if piece.is_empty() {
                let next = match failed.take() {
                    Some(error) => Ok(Some(Err(error))),
                    None => self.cancel.wait(fetch.next()),
                };
                match next {
                    Ok(None) => break,
                    Ok(Some(Ok(next))) => {
                        *piece = next;
                        continue;
                    }
                    Ok(Some(Err(S3Error::Canceled))) | Err(_) => return IoDone::error(libc::ECANCELED),
                    // What came before belongs to the object.
                    Ok(Some(Err(error))) if count > 0 => {
                        *failed = Some(error);
                        break;
                    }
                    Ok(Some(Err(error))) => {
                        self.counts.failed += 1;
                        host.message(MessageType::Warning, &texts::not_read(name, &error));
                        return IoDone::error(libc::EIO);
                    }
                }
            }
            let room = buffer.get_mut(count..).unwrap_or_default();
            let now = room.len().min(piece.len());
            piece.copy_to_slice(room.get_mut(..now).unwrap_or_default());
            count += now;
        }
        IoDone::bytes(i32::try_from(count).unwrap_or_default())
    }

    /// Closes it.
    pub(crate) fn close(&mut self) -> IoDone {
        self.current = None;
        IoDone::bytes(0)
    }
}

/// Describes an object as a file.
fn describe(file: &mut SavePacket, name: Vec<u8>, listed: &Listed, head: Option<&Head>) {
    let size = i64::try_from(head.map_or(listed.size, |head| head.size)).unwrap_or(i64::MAX);
    let modified = head.and_then(|head| head.modified).unwrap_or(listed.modified);
    let etag = head.and_then(|head| head.etag.as_deref()).unwrap_or(&listed.etag);
    let file_type = if size == 0 { FileType::EmptyFile } else { FileType::Regular };
    file.name = Some(name);
    file.file_type = i32::from(file_type.code());
    file.no_read = size == 0;
    file.stat = Stat {
        mode: Stat::MODE_REGULAR | 0o600,
        nlink: 1,
        ino: number_of(etag),
        size,
        blksize: 4096,
        blocks: size.div_euclid(512) + i64::from(size.rem_euclid(512) > 0),
        atime: modified,
        mtime: modified,
        ctime: modified,
        ..Stat::default()
    };
    if let Some(head) = head {
        let data = head.extras.to_text();
        let total_size = u32::try_from(data.len() + METADATA_HEAD).unwrap_or_default();
        file.metadata = Some(vec![MetadataPacket { total_size, total_count: 1, kind: 0, index: 0, data }]);
    }
}

/// A number for an `ETag`, which stands in the place of the inode's: accurate jobs find objects
/// that were replaced by others of the same size in the same second.
fn number_of(etag: &str) -> u64 {
    let digest = Md5::digest(etag.trim_matches('"').as_bytes());
    digest.first_chunk().map_or(0, |bytes: &[u8; 8]| u64::from_be_bytes(*bytes) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::client;

    #[test]
    fn a_listing_that_has_died_is_not_at_its_end() {
        let mut backup = Backup::begin(client(|_| None), Cancel::default(), Mode::default()).unwrap();
        let (pages, receiver) = mpsc::channel(1);
        backup.pages = receiver;
        drop(pages);
        let next = backup.next_listed();
        assert!(matches!(next, Err(S3Error::Nonsense(_))) && !backup.is_listed, "{next:?}");
    }
}
