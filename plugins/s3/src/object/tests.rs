//! Objects that are not what their listing or their head says.

use std::sync::Mutex;

use super::*;
use crate::server::client;

fn listed() -> Listed {
    Listed { key: b"a b".to_vec(), size: 100_000, modified: 0, etag: "\"x\"".to_owned() }
}

fn share() -> OwnedSemaphorePermit {
    Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap()
}

#[test]
fn an_object_that_is_listed_and_not_there_is_no_deleted_one() {
    let entry = |key: &str| {
        format!(
            "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>x</ETag>\
             <Size>1</Size></Contents>"
        )
    };
    for (found, is_deleted, said) in [
        (String::new(), true, "the server answers 404 NoSuchKey"),
        (entry("a%20b2"), true, "the server answers 404 NoSuchKey"),
        (entry("a%20b"), false, "the server lists it, and does not have it"),
        ("<Contents>".to_owned(), false, "the answer is no listing of a bucket: "),
    ] {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&asked);
        let server = client(move |asked| {
            seen.lock().unwrap().push(asked.target.clone());
            if !asked.target.contains("list-type=2") {
                return Some((404, "", b"<Error><Code>NoSuchKey</Code></Error>".to_vec()));
            }
            let list = format!("<ListBucketResult><EncodingType>url</EncodingType>{found}</ListBucketResult>");
            Some((200, "", list.into()))
        });
        let mut fetch = Fetch::begin(&server, listed(), 1 << 20, share()).unwrap();
        let error = runtime().unwrap().block_on(fetch.head()).unwrap_err();
        assert!(error.is_deleted() == is_deleted && error.to_string().starts_with(said), "{error}");
        let targets = ["/b/a%20b", "/b/?encoding-type=url&list-type=2&max-keys=1&prefix=a%20b"];
        assert_eq!(*asked.lock().unwrap(), targets);
    }
}

/// What is read of an object that is too large to be kept.
fn streamed(status: &'static str, body: usize) -> (Result<Head, S3Error>, usize, Option<S3Error>) {
    let server = client(move |asked| {
        let is_first = !asked.headers.contains_key("range");
        is_first.then(|| (200, status, vec![7; body]))
    });
    let mut fetch = Fetch::begin(&server, listed(), 16 << 10, share()).unwrap();
    runtime().unwrap().block_on(async {
        let head = fetch.head().await;
        let mut length = 0;
        while let Some(next) = fetch.next().await {
            match next {
                Ok(bytes) => length += bytes.len(),
                Err(error) => return (head, length, Some(error)),
            }
        }
        (head, length, None)
    })
}

#[test]
fn the_end_of_an_object_comes_when_all_of_it_is_right() {
    // MD5 of 100,000 bytes 7, and of nothing.
    let right = "ETag: \"3b47e2cb85ad96a9088073ee43e814c6\"\r\n";
    let (head, length, error) = streamed(right, 100_000);
    assert!(head.is_ok() && length == 100_000 && error.is_none(), "{head:?} {length} {error:?}");
    let wrong = "ETag: \"d41d8cd98f00b204e9800998ecf8427e\"\r\n";
    let (head, length, error) = streamed(wrong, 100_000);
    // One of which only one piece has come is not begun.
    let said = error.or_else(|| head.err());
    assert!(length < 100_000 && said == Some(S3Error::Checksum("MD5")), "{length} {said:?}");
}

#[test]
fn a_task_that_has_died_is_not_the_end_of_an_object() {
    let begun = |left| {
        let (heads, head) = oneshot::channel();
        let (pieces, data) = mpsc::channel(1);
        let task = runtime().unwrap().spawn(async {}).abort_handle();
        let fetch = Fetch { head, data, room: Arc::new(Semaphore::new(9)), most: 9, task, left, _share: share() };
        (heads, pieces, fetch)
    };
    let (heads, _pieces, mut fetch) = begun(0);
    drop(heads);
    let head = runtime().unwrap().block_on(fetch.head());
    assert!(matches!(head, Err(S3Error::Nonsense(_))), "{head:?}");
    for left in [0, 9] {
        let (_heads, pieces, mut fetch) = begun(left);
        drop(pieces);
        let next = runtime().unwrap().block_on(fetch.next());
        assert!(matches!(next, Some(Err(S3Error::Nonsense(_)))) == (left > 0), "{next:?}");
        assert!(runtime().unwrap().block_on(fetch.next()).is_none());
    }
}
