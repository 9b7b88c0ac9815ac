//! The objects of a bucket, in the order of their keys, page by page.

use std::sync::Arc;

use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use quick_xml::de::from_reader;
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::client::{Ask, Client, LONGEST_PAGE, encode_value};
use crate::error::S3Error;
use crate::texts;
use crate::work::runtime;

/// Most bytes of a key, which is S3's own bound, and of an `ETag`.
const LONGEST_TEXT: usize = 1024;
/// Pages that are fetched before they are wanted.
const PAGES_AHEAD: usize = 2;

/// Most pages without an object, one after the other: a server may look at so many keys at a time
/// that were deleted.
const EMPTY_PAGES: usize = 1000;

/// An object of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Listed {
    pub(crate) key: Vec<u8>,
    /// Bytes.
    pub(crate) size: u64,
    /// When it was stored, seconds since 1970.
    pub(crate) modified: i64,
    pub(crate) etag: String,
}

/// A page of a listing.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Page {
    objects: Vec<Listed>,
    /// What brings the next page.
    next: Option<String>,
}

/// What a listing brings: a page, or `None` at its end. Without that it has not ended.
pub(crate) type Pages = mpsc::Receiver<Result<Option<Vec<Listed>>, S3Error>>;

/// Lists all objects that begin with the bucket's prefixes. The list ends with an error, or when
/// nobody reads on.
pub(crate) fn list(client: &Arc<Client>) -> Result<Pages, S3Error> {
    let (pages, receiver) = mpsc::channel(PAGES_AHEAD);
    let client = Arc::clone(client);
    let runtime = runtime().map_err(|error| S3Error::connection(&fd_os::io_error_text(&error)))?;
    runtime.spawn(async move {
        let mut last = None;
        for prefix in client.settings().prefixes() {
            let (mut token, mut empty) = (None, 0);
            loop {
                let mut page = fetch(&client, &prefix, token.as_deref(), &mut last).await;
                empty = if page.as_ref().is_ok_and(|page| page.objects.is_empty()) { empty + 1 } else { 0 };
                if empty > EMPTY_PAGES {
                    page = Err(S3Error::nonsense(texts::ENDLESS));
                }
                let next = page.as_ref().ok().and_then(|page| page.next.clone());
                let failed = page.is_err();
                if pages.send(page.map(|page| Some(page.objects))).await.is_err() || failed {
                    return;
                }
                if next.is_none() {
                    break;
                }
                token = next;
            }
        }
        let _gone = pages.send(Ok(None)).await;
    });
    Ok(receiver)
}

async fn fetch(
    client: &Client,
    prefix: &str,
    token: Option<&str>,
    last: &mut Option<Vec<u8>>,
) -> Result<Page, S3Error> {
    // In the order in which they are signed.
    let token_part = token.map(|token| format!("continuation-token={}&", encode_value(token.as_bytes())));
    let query = format!(
        "{}encoding-type=url&list-type=2&max-keys=1000&prefix={}",
        token_part.unwrap_or_default(),
        encode_value(prefix.as_bytes())
    );
    let answer = client.whole_answer(&Ask { query, ..Ask::get(None) }, LONGEST_PAGE).await?;
    let page = parse(&answer)?;
    if page.next.is_some() && page.next.as_deref() == token {
        return Err(S3Error::nonsense(texts::ENDLESS));
    }
    for object in &page.objects {
        if last.as_ref().is_some_and(|last| *last >= object.key) {
            return Err(S3Error::nonsense(&texts::no_order(&object.key)));
        }
        *last = Some(object.key.clone());
    }
    Ok(page)
}

/// Whether the listing has an object, asked for alone.
pub(crate) async fn is_listed(client: &Client, key: &[u8]) -> Result<bool, S3Error> {
    // Of all keys that begin with it, it is the first.
    let query = format!("encoding-type=url&list-type=2&max-keys=1&prefix={}", encode_value(key));
    let answer = client.whole_answer(&Ask { query, ..Ask::get(None) }, LONGEST_PAGE).await?;
    Ok(parse(&answer)?.objects.iter().any(|object| object.key == key))
}

/// A listing has this name: any other page would pass for an empty bucket.
#[derive(Deserialize)]
enum Answer {
    ListBucketResult(Listing),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listing {
    #[serde(default)]
    contents: Vec<Content>,
    is_truncated: Option<bool>,
    next_continuation_token: Option<String>,
    encoding_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Content {
    key: String,
    last_modified: String,
    #[serde(rename = "ETag", default)]
    etag: String,
    size: u64,
}

fn parse(answer: &[u8]) -> Result<Page, S3Error> {
    let Answer::ListBucketResult(answer) =
        from_reader(answer).map_err(|error| S3Error::nonsense(&texts::no_listing(&error)))?;
    let is_encoded = answer.encoding_type.as_deref() == Some("url");
    let objects = answer.contents.into_iter().map(|content| {
        let modified = seconds(&content.last_modified, Format::DateTimeWithOffset)
            .ok_or_else(|| S3Error::nonsense(&texts::no_time(&content.last_modified)))?;
        let key = if is_encoded { decode(&content.key) } else { content.key.into_bytes() };
        for (what, length) in [("a key", key.len()), ("an ETag", content.etag.len())] {
            if length > LONGEST_TEXT {
                return Err(S3Error::nonsense(&texts::too_long(what, length)));
            }
        }
        Ok(Listed { key, size: content.size, modified, etag: content.etag })
    });
    let objects = objects.collect::<Result<_, S3Error>>()?;
    // The next page is not left out because the server does not say that there is one.
    let is_truncated = answer.is_truncated.unwrap_or(answer.next_continuation_token.is_some());
    if is_truncated && answer.next_continuation_token.is_none() {
        return Err(S3Error::nonsense(texts::ENDLESS));
    }
    Ok(Page { objects, next: answer.next_continuation_token.filter(|_| is_truncated) })
}

/// The number of objects in a server's answer; `None` if it is no listing.
#[cfg(fuzzing)]
pub fn objects_in(answer: &[u8]) -> Option<usize> {
    parse(answer).ok().map(|page| page.objects.len())
}

/// Seconds since 1970 of a time in this format.
pub(crate) fn seconds(text: &str, format: Format) -> Option<i64> {
    DateTime::from_str(text, format).ok().map(|time| time.secs())
}

/// A key of a listing that was asked for with `encoding-type=url`.
fn decode(text: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let escaped = after.split_at_checked(2).and_then(|(digits, after)| {
            let number = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
            Some((number, after))
        });
        match (byte, escaped) {
            (b'%', Some((number, after))) => {
                key.push(number);
                rest = after;
                continue;
            }
            (b'+', _) => key.push(b' '),
            _ => key.push(*byte),
        }
        rest = after;
    }
    key
}

#[cfg(test)]
mod tests;
