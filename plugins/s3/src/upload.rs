//! Restoring objects into a bucket.

use std::collections::VecDeque;
use std::sync::Arc;

use aws_smithy_types::base64;
use fd_messages::{MessageType, Said};
use fd_plugins::Host;
use hyper::body::Bytes;
use hyper::{HeaderMap, Method};
use md5::{Digest as _, Md5};
use quick_xml::de::from_reader;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::task::{JoinError, JoinHandle};

use crate::client::{Ask, Client, LONGEST_WORD, Refusal, Tries, encode_value};
use crate::error::S3Error;
use crate::extras::Extras;
use crate::object::head as head_of;
use crate::texts;
use crate::work::{Cancel, runtime, wait_a_moment};

/// Bytes of a part of a large object. Smaller ones are stored in one piece.
const PART: usize = 8 << 20;
/// Most small objects that are stored at the same time, and most of their bytes.
const MOST: (usize, usize) = (64, 64 << 20);

/// Objects on their way into a bucket.
#[derive(Debug)]
pub(crate) struct Uploads {
    client: Arc<Client>,
    cancel: Cancel,
    /// Small ones, which are stored while others come.
    running: VecDeque<Running>,
    bytes: usize,
}

#[derive(Debug)]
struct Running {
    name: Vec<u8>,
    key: Vec<u8>,
    bytes: usize,
    task: JoinHandle<Result<(), S3Error>>,
}

impl Running {
    /// Says what went wrong with an object whose work has ended.
    fn say(&self, host: &mut dyn Host, stored: Result<Result<(), S3Error>, JoinError>) {
        if let Err(error) = stored.unwrap_or_else(|died| Err(S3Error::nonsense(&died))) {
            host.message(MessageType::Error, &texts::not_stored(&self.name, &error));
        }
    }
}

/// An object whose data comes.
#[derive(Default, Debug)]
pub(crate) struct Upload {
    /// The file that it was.
    pub(crate) name: Vec<u8>,
    key: Vec<u8>,
    /// Its headers.
    pub(crate) extras: Extras,
    /// How many bytes it must have: one that is torn, or not whole on the volume, is not stored in
    /// the place of one that is whole.
    size: u64,
    /// How many have come.
    come: u64,
    data: Vec<u8>,
    /// What the server calls it, once it has parts; and their tags.
    parts: Option<(String, Vec<String>)>,
}

impl Upload {
    /// The object of this key, which was this file, with so many bytes.
    pub(crate) fn new(name: Vec<u8>, key: Vec<u8>, size: u64) -> Self {
        Self { name, key, size, ..Self::default() }
    }
}

impl Drop for Uploads {
    fn drop(&mut self) {
        for running in &self.running {
            running.task.abort();
        }
    }
}

impl Uploads {
    pub(crate) fn new(client: Arc<Client>, cancel: Cancel) -> Self {
        Self { client, cancel, running: VecDeque::new(), bytes: 0 }
    }

    /// The bucket.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The headers of the object of this key; `None` if there is none.
    pub(crate) fn look_up(&self, key: &[u8]) -> Result<Option<HeaderMap>, S3Error> {
        let ask = Ask { method: Method::HEAD, ..Ask::get(Some(key)) };
        match self.cancel.wait(self.client.ask_again(&ask))? {
            Ok(answer) => Ok(Some(answer.headers().clone())),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The next bytes of an object.
    pub(crate) fn write(&mut self, upload: &mut Upload, data: &[u8]) -> Result<(), S3Error> {
        upload.come = upload.come.saturating_add(data.len() as u64);
        let mut rest = data;
        while !rest.is_empty() {
            if upload.data.len() == PART {
                self.send_part(upload)?;
            }
            let (now, later) = rest.split_at(rest.len().min(PART.saturating_sub(upload.data.len())));
            upload.data.extend_from_slice(now);
            rest = later;
        }
        Ok(())
    }

    fn send_part(&self, upload: &mut Upload) -> Result<(), S3Error> {
        if upload.parts.is_none() {
            let headers = upload.extras.headers();
            let ask =
                Ask { method: Method::POST, query: "uploads=".to_owned(), headers, ..Ask::get(Some(&upload.key)) };
            let answer = self.cancel.wait(self.client.whole_answer(&ask, LONGEST_WORD))??;
            let begun: Begun = from_reader(answer.as_ref()).map_err(|error| S3Error::nonsense(&error))?;
            upload.parts = Some((begun.upload_id, Vec::new()));
        }
        let Some((id, tags)) = &mut upload.parts else { return Ok(()) };
        let body = Bytes::from(std::mem::take(&mut upload.data));
        let ask = Ask {
            method: Method::PUT,
            query: format!("partNumber={}&uploadId={}", tags.len() + 1, encode_value(id.as_bytes())),
            headers: vec![digest(&body)],
            body,
            ..Ask::get(Some(&upload.key))
        };
        let answer = self.cancel.wait(self.client.ask_again(&ask))??;
        let tag = answer.headers().get("etag").and_then(|tag| tag.to_str().ok());
        tags.push(tag.ok_or_else(|| S3Error::nonsense(texts::NO_TAG))?.to_owned());
        Ok(())
    }

    /// All bytes of an object are there. Errors of small ones are said later.
    pub(crate) fn finish(&mut self, host: &mut dyn Host, upload: &mut Upload) -> Result<(), S3Error> {
        if upload.come < upload.size {
            return Err(S3Error::Torn { got: upload.come, wanted: upload.size });
        }
        if upload.parts.is_some() {
            if !upload.data.is_empty() {
                self.send_part(upload)?;
            }
            return self.complete(upload);
        }
        let Upload { name, key, extras, data, .. } = std::mem::take(upload);
        let (bytes, client, stored) = (data.len(), Arc::clone(&self.client), key.clone());
        self.wait_until(host, MOST.0 - 1, MOST.1.saturating_sub(bytes))?;
        let runtime = runtime().map_err(|error| S3Error::connection(&fd_os::io_error_text(&error)))?;
        let task = runtime.spawn(async move {
            let (mut headers, body) = (extras.headers(), Bytes::from(data));
            headers.push(digest(&body));
            let ask = Ask { method: Method::PUT, headers, body, ..Ask::get(Some(&stored)) };
            client.whole_answer(&ask, LONGEST_WORD).await.map(drop)
        });
        self.bytes += bytes;
        self.running.push_back(Running { name, key, bytes, task });
        Ok(())
    }

    fn complete(&self, upload: &Upload) -> Result<(), S3Error> {
        let Some((id, tags)) = &upload.parts else { return Ok(()) };
        let parts = tags.iter().zip(1..).map(|(tag, number)| {
            let tag = quick_xml::escape::escape(tag);
            format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>")
        });
        let body = format!("<CompleteMultipartUpload>{}</CompleteMultipartUpload>", parts.collect::<String>());
        let ask = Ask {
            method: Method::POST,
            query: format!("uploadId={}", encode_value(id.as_bytes())),
            body: Bytes::from(body.into_bytes()),
            ..Ask::get(Some(&upload.key))
        };
        self.cancel.wait(self.completed(&ask, upload.come, tags.len()))?
    }

    /// Asks for the completion of an object of so many bytes and parts, until it is there.
    async fn completed(&self, ask: &Ask<'_>, size: u64, parts: usize) -> Result<(), S3Error> {
        let mut tries = Tries::new(self.client.settings().retries);
        let mut is_first = true;
        loop {
            let answer = self.client.whole_once(ask, LONGEST_WORD).await;
            let error = match answer.and_then(|answer| completed(&answer)) {
                Ok(()) => return Ok(()),
                // An earlier try has done it, and its answer was lost.
                Err(error) if !is_first && error.is_over() => {
                    let head = Ask { method: Method::HEAD, ..Ask::get(ask.key) };
                    let head = head_of(self.client.ask_again(&head).await?.headers())?;
                    let tag = head.etag.unwrap_or_default();
                    let is_there = head.size == size && tag.trim_matches('"').ends_with(&format!("-{parts}"));
                    return if is_there { Ok(()) } else { Err(error) };
                }
                Err(error) => error,
            };
            tries.pause(error).await?;
            is_first = false;
        }
    }

    /// Gives up an object: its parts must not stay in the bucket.
    pub(crate) fn abandon(&self, upload: &Upload) {
        if let Some((id, _)) = &upload.parts {
            let query = format!("uploadId={}", encode_value(id.as_bytes()));
            let ask = Ask { method: Method::DELETE, query, ..Ask::get(Some(&upload.key)) };
            // Also of a canceled job, so this waits a moment only. The bucket's own rules remove
            // what it leaves.
            let _left = wait_a_moment(self.client.ask(&ask));
        }
    }

    /// Waits until no more than so many small objects and bytes are on their way.
    fn wait_until(&mut self, host: &mut dyn Host, objects: usize, bytes: usize) -> Result<(), S3Error> {
        while self.running.len() > objects || (self.bytes > bytes && !self.running.is_empty()) {
            let Some(mut running) = self.running.pop_front() else { break };
            let stored = match self.cancel.wait(&mut running.task) {
                Ok(stored) => stored,
                Err(canceled) => {
                    self.running.push_front(running);
                    return Err(canceled);
                }
            };
            self.bytes = self.bytes.saturating_sub(running.bytes);
            running.say(host, stored);
        }
        Ok(())
    }

    /// Waits until no object of this key is on its way. A key can come twice, from two backups: the
    /// bucket keeps what comes last.
    pub(crate) fn wait_for(&mut self, host: &mut dyn Host, key: &[u8]) -> Result<(), S3Error> {
        let behind = self.running.iter().rev().position(|running| running.key == key);
        behind.map_or(Ok(()), |behind| self.wait_until(host, behind, usize::MAX))
    }

    /// Waits for all that are on their way. Those that a cancel gives up count as restored already.
    pub(crate) fn wait_for_all(&mut self, host: &mut dyn Host) {
        if self.wait_until(host, 0, usize::MAX).is_ok() {
            return;
        }
        // Not all that nobody has waited for are still on their way.
        let running = std::mem::take(&mut self.running).into_iter();
        let (ended, given_up) = running.partition::<VecDeque<_>, _>(|running| running.task.is_finished());
        for mut running in ended {
            if let Some(stored) = wait_a_moment(&mut running.task) {
                running.say(host, stored);
            }
        }
        self.running = given_up;
        if !self.running.is_empty() {
            host.message(MessageType::Error, &texts::given_up(self.running.len()));
        }
    }
}

/// The header with the digest of what is sent: a bucket with Object Lock takes no data without it.
fn digest(data: &[u8]) -> (String, Vec<u8>) {
    ("content-md5".to_owned(), base64::encode(Md5::digest(data)).into_bytes())
}

/// What an answer to the completion of an object says. An error may come behind a good status,
/// because completing takes long, so only the right answer counts.
fn completed(answer: &[u8]) -> Result<(), S3Error> {
    match from_reader(answer) {
        Ok(Completion::CompleteMultipartUploadResult(_)) => Ok(()),
        Ok(Completion::Error(refusal)) if refusal.with(200).may_pass() => Err(refusal.with(200)),
        Ok(Completion::Error(_)) | Err(_) => {
            Err(S3Error::nonsense(&texts::not_completed(Said::of_bytes(answer).as_str())))
        }
    }
}

#[derive(Deserialize)]
enum Completion {
    CompleteMultipartUploadResult(IgnoredAny),
    Error(Refusal),
}

#[derive(Deserialize)]
struct Begun {
    #[serde(rename = "UploadId")]
    upload_id: String,
}

#[cfg(test)]
mod tests;
