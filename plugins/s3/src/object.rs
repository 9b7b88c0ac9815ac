//! Reading an object: from its first byte to its last, however often the connection breaks.

use std::sync::Arc;

use aws_smithy_types::date_time::Format;
use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Incoming};
use hyper::{HeaderMap, Response, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::checksum::Checksum;
use crate::client::{Ask, Client, Tries};
use crate::error::S3Error;
use crate::extras::Extras;
use crate::listing::{Listed, is_listed, seconds};
use crate::patience::late;
use crate::texts;
use crate::work::runtime;

/// Most pieces of an object that wait to be read. Their bytes are bounded, too.
const MOST_PIECES: usize = 256;

/// What a server says of an object that it sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    /// Bytes.
    pub(crate) size: u64,
    /// When it was stored, seconds since 1970; `None` if the server doesn't say.
    pub(crate) modified: Option<i64>,
    pub(crate) etag: Option<String>,
    pub(crate) extras: Extras,
}

/// An object that is being fetched.
#[derive(Debug)]
pub(crate) struct Fetch {
    /// The head, or why there is none.
    head: oneshot::Receiver<Result<Head, S3Error>>,
    data: mpsc::Receiver<Result<Bytes, S3Error>>,
    /// Bytes that may still come before some are taken.
    room: Arc<Semaphore>,
    /// As many as that are at first.
    most: usize,
    task: AbortHandle,
    /// Bytes that are still to come: the object does not end before.
    left: u64,
    _share: OwnedSemaphorePermit,
}

impl Drop for Fetch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fetch {
    /// Begins to fetch an object, of which at most `room` bytes wait to be read. `share` is given
    /// back when it is dropped.
    pub(crate) fn begin(
        client: &Arc<Client>,
        listed: Listed,
        room: usize,
        share: OwnedSemaphorePermit,
    ) -> Result<Self, S3Error> {
        let (heads, head) = oneshot::channel();
        let (pieces, data) = mpsc::channel(MOST_PIECES);
        let most = room;
        let room = Arc::new(Semaphore::new(room));
        let work = Work {
            client: Arc::clone(client),
            listed,
            heads: Some(heads),
            pieces,
            room: Arc::clone(&room),
            most,
            held: Bytes::new(),
        };
        let runtime = runtime().map_err(|error| S3Error::connection(&fd_os::io_error_text(&error)))?;
        let task = runtime.spawn(work.run()).abort_handle();
        Ok(Self { head, data, room, most, task, left: 0, _share: share })
    }

    /// What the server says of the object, or why it does not. Once only.
    pub(crate) async fn head(&mut self) -> Result<Head, S3Error> {
        let head = (&mut self.head).await.unwrap_or_else(|_| Err(S3Error::nonsense(texts::DIED)));
        self.left = head.as_ref().map_or(0, |head| head.size);
        head
    }

    /// The next bytes of the object; `None` at its end. After an error nothing follows.
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, S3Error>> {
        let next = match self.data.recv().await {
            None if self.left > 0 => Some(Err(S3Error::nonsense(texts::DIED))),
            next => next,
        };
        match &next {
            Some(Ok(bytes)) => {
                self.left = self.left.saturating_sub(bytes.len() as u64);
                self.room.add_permits(bytes.len().min(self.most));
            }
            Some(Err(_)) => {
                self.left = 0;
                self.data.close();
            }
            None => {}
        }
        next
    }
}

struct Work {
    client: Arc<Client>,
    listed: Listed,
    /// Until the head is handed over.
    heads: Option<oneshot::Sender<Result<Head, S3Error>>>,
    pieces: mpsc::Sender<Result<Bytes, S3Error>>,
    room: Arc<Semaphore>,
    most: usize,
    /// The piece that has come last. It is handed over when the next one has come; the last one
    /// only if all are right, so that what is wrong is never whole on the volume.
    held: Bytes,
}

/// An object whose head is known.
enum Begun {
    /// All of it is there, and is right.
    Whole(Bytes),
    /// It comes with this answer.
    Streams(Response<Incoming>),
}

impl Work {
    async fn run(mut self) {
        let ended = match self.begin().await {
            Ok((head, Begun::Whole(bytes))) => self.hand_over(&head, bytes).await,
            Ok((head, Begun::Streams(answer))) => self.read(answer, &head, &mut None).await,
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            // Nobody waits in a canceled job.
            match self.heads.take() {
                Some(heads) => drop(heads.send(Err(error))),
                None => drop(self.pieces.send(Err(error)).await),
            }
        }
    }

    /// Hands over a piece; the head before the first one, because an object of which nothing has
    /// come must not be on the volume at all.
    async fn hand_over(&mut self, head: &Head, bytes: Bytes) -> Result<(), S3Error> {
        if let Some(heads) = self.heads.take() {
            heads.send(Ok(head.clone())).map_err(|_| S3Error::Canceled)?;
        }
        let wanted = u32::try_from(bytes.len().min(self.most)).unwrap_or_default();
        let room = self.room.acquire_many(wanted).await.map_err(|_| S3Error::Canceled)?;
        room.forget();
        self.pieces.send(Ok(bytes)).await.map_err(|_| S3Error::Canceled)
    }

    /// Asks for the object. What there is room for is read to its end before any of it is handed
    /// over: a part of an object on the volume would look like the object to later jobs.
    async fn begin(&mut self) -> Result<(Head, Begun), S3Error> {
        let mut tries = Tries::new(self.client.settings().retries);
        loop {
            let answer = match self.client.ask_again(&self.question(0, None)).await {
                // A server that has lost data goes on listing it.
                Err(error) if error.is_deleted() => {
                    let is_listed = is_listed(&self.client, &self.listed.key).await?;
                    return Err(if is_listed { S3Error::Missing } else { error });
                }
                answered => answered?,
            };
            if answer.status() != StatusCode::OK {
                // A part of it, or what a proxy has made of it.
                return Err(S3Error::other(answer.status()));
            }
            let head = head(answer.headers())?;
            self.compare(&head)?;
            if usize::try_from(head.size).map_or(true, |size| size > self.most) {
                return Ok((head, Begun::Streams(answer)));
            }
            let mut kept = Some(Vec::with_capacity(self.most.min(head.size.try_into().unwrap_or_default())));
            let Err(error) = self.read(answer, &head, &mut kept).await else {
                return Ok((head, Begun::Whole(kept.unwrap_or_default().into())));
            };
            // The object of now is as good.
            let begins_anew = error == S3Error::Changed || (head.etag.is_none() && error.may_pass());
            tries.pause_if(begins_anew, error).await?;
        }
    }

    /// An object of the listing's `ETag` has the listing's size.
    fn compare(&self, head: &Head) -> Result<(), S3Error> {
        let Listed { etag: listed, size, .. } = &self.listed;
        let is_same = head.etag.as_ref().is_some_and(|etag| etag.trim_matches('"') == listed.trim_matches('"'));
        if is_same && head.size != *size {
            return Err(S3Error::nonsense(&texts::other_size(head.size, *size)));
        }
        Ok(())
    }

    fn question(&self, from: u64, etag: Option<&str>) -> Ask<'_> {
        let mut headers = Vec::new();
        if from == 0 {
            headers.push(("x-amz-checksum-mode".to_owned(), b"ENABLED".to_vec()));
        } else {
            headers.push(("range".to_owned(), format!("bytes={from}-").into_bytes()));
        }
        headers.extend(etag.map(|etag| ("if-match".to_owned(), etag.as_bytes().to_vec())));
        Ask { headers, ..Ask::get(Some(&self.listed.key)) }
    }

    /// Reads an object to its end, and checks it. Its bytes are passed on, or kept where there is a
    /// place for them.
    async fn read(
        &mut self,
        first: Response<Incoming>,
        head: &Head,
        kept: &mut Option<Vec<u8>>,
    ) -> Result<(), S3Error> {
        let etag = head.etag.as_deref();
        let mut checksum = Checksum::of(first.headers(), etag, self.client.settings().etag_is_md5);
        let mut tries = Tries::new(self.client.settings().retries);
        let mut got = 0;
        let mut answer = Ok(first);
        loop {
            let before = got;
            let end = match answer {
                Ok(answer) => self.receive(answer, head, &mut got, &mut checksum, kept).await,
                Err(error) => Err(error),
            };
            if got > before {
                tries.renew();
            }
            let Err(error) = end else { break };
            // Without an ETag nobody knows whether the rest is of the same object.
            if etag.is_none() {
                return Err(error);
            }
            tries.pause(error).await?;
            answer = self.rest(got, etag).await;
        }
        if let Some(name) = checksum.differs() {
            return Err(S3Error::Checksum(name));
        }
        if kept.is_none() {
            let last = std::mem::take(&mut self.held);
            self.hand_over(head, last).await?;
        }
        Ok(())
    }

    /// Asks for the rest of the object, from this byte on.
    async fn rest(&self, from: u64, etag: Option<&str>) -> Result<Response<Incoming>, S3Error> {
        let answer = self.client.ask(&self.question(from, etag)).await.map_err(|error| match error {
            S3Error::Refused { status: 404 | 412, .. } => S3Error::Changed,
            other => other,
        })?;
        let is_same = header(answer.headers(), "etag").as_deref() == etag;
        let range = header(answer.headers(), "content-range");
        let is_rest = range.is_some_and(|range| range.starts_with(&format!("bytes {from}-")));
        match (is_same, from == 0 || is_rest) {
            (false, _) => Err(S3Error::Changed),
            (true, false) => Err(S3Error::nonsense(texts::NO_RANGES)),
            (true, true) => Ok(answer),
        }
    }

    /// Takes what an answer brings, up to the end of the object.
    async fn receive(
        &mut self,
        answer: Response<Incoming>,
        head: &Head,
        got: &mut u64,
        checksum: &mut Checksum,
        kept: &mut Option<Vec<u8>>,
    ) -> Result<(), S3Error> {
        let (mut body, size) = (answer.into_body(), head.size);
        loop {
            let frame =
                timeout(self.client.patience(), body.frame()).await.map_err(|_| late(self.client.patience()))?;
            let Some(frame) = frame else {
                return if *got == size { Ok(()) } else { Err(S3Error::Short { got: *got, wanted: size }) };
            };
            let frame = frame.map_err(|_| S3Error::Short { got: *got, wanted: size })?;
            let Ok(bytes) = frame.into_data() else { continue };
            if got.saturating_add(bytes.len() as u64) > size {
                return Err(S3Error::nonsense(texts::TOO_LONG));
            }
            checksum.update(&bytes);
            *got += bytes.len() as u64;
            if let Some(kept) = kept {
                // A server chooses how many pieces they come in.
                kept.extend_from_slice(&bytes);
                continue;
            }
            if !bytes.is_empty() {
                let before = std::mem::replace(&mut self.held, bytes);
                if !before.is_empty() {
                    self.hand_over(head, before).await?;
                }
            }
        }
    }
}

/// What the headers of an answer say.
pub(crate) fn head(headers: &HeaderMap) -> Result<Head, S3Error> {
    let size = header(headers, "content-length").and_then(|text| text.parse().ok());
    let modified = header(headers, "last-modified").and_then(|text| seconds(&text, Format::HttpDate));
    Ok(Head {
        size: size.ok_or_else(|| S3Error::nonsense(texts::NO_LENGTH))?,
        modified,
        etag: header(headers, "etag"),
        extras: Extras::of_headers(headers),
    })
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests;
