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

/// The number of objects in a server's answer; `None` if it is no listing. For the fuzz target.
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
mod tests {
    use super::*;
    use crate::server::client;

    const START: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
        <ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>";
    const OBJECT: &str = "<Contents><Key>a%2F+%0A%25+%2B</Key><LastModified>2026-11-22T10:11:12.999Z</LastModified>\
        <ETag>&quot;abc&quot;</ETag><Size>5</Size><StorageClass>STANDARD</StorageClass></Contents>";

    fn parsed(rest: &str) -> Result<Page, S3Error> {
        parse(format!("{START}{rest}</ListBucketResult>").as_bytes())
    }

    #[test]
    fn a_page_is_read() {
        let page = parsed(&format!(
            "<IsTruncated>true</IsTruncated><EncodingType>url</EncodingType>{OBJECT}{OBJECT}\
             <NextContinuationToken>t+/=</NextContinuationToken>"
        ));
        let key = b"a/ \n% +".to_vec();
        let object = Listed { key, size: 5, modified: 1_795_342_272, etag: "\"abc\"".to_owned() };
        assert_eq!(page, Ok(Page { objects: vec![object.clone(), object], next: Some("t+/=".to_owned()) }));
        assert_eq!(parsed("<IsTruncated>false</IsTruncated>"), Ok(Page::default()));
    }

    #[test]
    fn a_key_that_is_not_encoded_is_left_alone() {
        let page = parsed(&OBJECT.replace("a%2F+%0A%25+%2B", "a%2F+&amp;")).unwrap();
        assert_eq!(page.objects.first().map(|object| object.key.clone()), Some(b"a%2F+&".to_vec()));
    }

    #[test]
    fn nonsense_is_an_error() {
        for rest in [
            "<IsTruncated>true</IsTruncated>",
            &OBJECT.replace("<Size>5</Size>", "<Size>-5</Size>"),
            &OBJECT.replace("2026", "noon"),
            &OBJECT.replace("<Size>5</Size>", ""),
            "<Contents>",
        ] {
            assert!(matches!(parsed(rest), Err(S3Error::Nonsense(_))), "{rest}");
        }
        assert!(matches!(parse(b"<html>hello"), Err(S3Error::Nonsense(_))));
        let error = parsed(&OBJECT.replace("2026", "\n2026\u{1b}[2J")).unwrap_err().to_string();
        assert!(error.contains("2026") && !error.chars().any(char::is_control), "{error:?}");
        for other in ["", "<html></html>", "<Error><Code>x</Code></Error>", "<ListBucketResult>"] {
            assert!(matches!(parse(other.as_bytes()), Err(S3Error::Nonsense(_))), "{other}");
        }
    }

    #[test]
    fn a_page_with_a_token_has_a_next_one_unless_it_says_else() {
        let token = "<NextContinuationToken>t</NextContinuationToken>";
        assert_eq!(parsed(token).unwrap().next.as_deref(), Some("t"));
        assert_eq!(parsed(&format!("<IsTruncated>false</IsTruncated>{token}")).unwrap().next, None);
    }

    #[test]
    fn texts_that_are_longer_than_any_are_refused() {
        let with = |length: usize, what: &str| parsed(&OBJECT.replace(what, &"k".repeat(length)));
        for what in ["a%2F+%0A%25+%2B", "&quot;abc&quot;"] {
            assert!(with(1024, what).is_ok());
            assert!(matches!(with(1025, what), Err(S3Error::Nonsense(_))), "{what}");
        }
    }

    /// The keys that a listing brings whose pages are these, and its error.
    fn listed(page: impl Fn(usize) -> String + Send + Sync + 'static) -> (Vec<Vec<u8>>, Option<S3Error>) {
        let server = client(move |asked| {
            let number = asked
                .target
                .split("continuation-token=")
                .nth(1)
                .map_or(0, |rest| rest.split('&').next().and_then(|number| number.parse().ok()).unwrap());
            Some((200, "", format!("{START}{}</ListBucketResult>", page(number)).into()))
        });
        let mut pages = list(&server).unwrap();
        let mut keys = Vec::new();
        while let Some(page) = pages.blocking_recv() {
            match page {
                Ok(Some(page)) => keys.extend(page.into_iter().map(|object| object.key)),
                Ok(None) => return (keys, None),
                Err(error) => return (keys, Some(error)),
            }
        }
        panic!("the listing has no end: {keys:?}")
    }

    #[test]
    fn a_page_without_objects_is_not_the_end() {
        let next = |number: usize| format!("<NextContinuationToken>{}</NextContinuationToken>", number + 1);
        let key = |key: &str| OBJECT.replace("a%2F+%0A%25+%2B", key);
        let (keys, error) = listed(move |number| match number {
            0 => format!("{}{}", next(0), key("0")),
            1..100 => next(number),
            _ => key("1"),
        });
        assert_eq!((keys, error), (vec![b"0".to_vec(), b"1".to_vec()], None));
        // Without an end there is nothing but such pages.
        let (keys, error) = listed(next);
        assert_eq!((keys, error), (Vec::new(), Some(S3Error::nonsense(texts::ENDLESS))));
    }
}
