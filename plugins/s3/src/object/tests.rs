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
