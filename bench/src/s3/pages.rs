//! A server whose bucket has any number of objects: it lists them, and does nothing else.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use bed::{BedError, Result};

/// Objects of a page, as many as the protocol allows.
const PAGE: u64 = 1000;

/// The server. It lives as long as the process.
#[derive(Debug)]
pub(super) struct Pages {
    port: u16,
    objects: Arc<AtomicU64>,
}

impl Pages {
    pub(super) fn start() -> Result<Self> {
        let failed = |error: std::io::Error| BedError::Usage(format!("a server that lists: {error}"));
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let objects = Arc::<AtomicU64>::default();
        let own = Arc::clone(&objects);
        thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                let objects = Arc::clone(&own);
                thread::spawn(move || serve(&caller, &objects));
            }
        });
        Ok(Self { port, objects })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// From now on there are so many objects, all of the year 2001.
    pub(super) fn hold(&self, objects: u64) {
        self.objects.store(objects, Ordering::Relaxed);
    }
}

/// Serves a connection until the caller has gone.
fn serve(mut stream: &TcpStream, objects: &AtomicU64) {
    let mut reader = BufReader::new(stream);
    let mut request = String::new();
    while matches!(reader.read_line(&mut request), Ok(1..)) {
        if !request.ends_with("\r\n\r\n") {
            continue;
        }
        let page = page(&request, objects.load(Ordering::Relaxed));
        request.clear();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", page.len());
        if stream.write_all(&[head.as_bytes(), page.as_bytes()].concat()).is_err() {
            return;
        }
    }
}

/// The page that a request asks for: its token is the number of the first object.
fn page(request: &str, objects: u64) -> String {
    let token = request.split_once("continuation-token=").and_then(|(_, rest)| rest.split('&').next());
    let first: u64 = token.and_then(|token| token.parse().ok()).unwrap_or_default();
    let end = first.saturating_add(PAGE).min(objects);
    let mut text = String::from("<ListBucketResult><EncodingType>url</EncodingType>");
    for number in first..end {
        // Writing to a text does not fail.
        let _ = write!(
            text,
            "<Contents><Key>pictures%2F{:04}%2Fpicture-{number:09}.jpeg</Key>\
             <LastModified>2001-02-03T04:05:06.000Z</LastModified>\
             <ETag>&quot;{number:032x}&quot;</ETag><Size>{}</Size><StorageClass>STANDARD</StorageClass></Contents>",
            number / 1000,
            number % 100_000
        );
    }
    let more = end < objects;
    let _ = write!(text, "<IsTruncated>{more}</IsTruncated>");
    if more {
        let _ = write!(text, "<NextContinuationToken>{end}</NextContinuationToken>");
    }
    text.push_str("</ListBucketResult>");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_hold_each_object_once() {
        let all = 2001;
        let first = page("GET /bucket/?list-type=2&prefix= HTTP/1.1\r\n\r\n", all);
        let last = page("GET /bucket/?continuation-token=2000&list-type=2 HTTP/1.1\r\n\r\n", all);
        assert_eq!(first.matches("<Key>").count(), 1000);
        assert!(first.contains("<NextContinuationToken>1000<") && first.contains("<IsTruncated>true<"));
        assert!(last.contains("picture-000002000.jpeg") && last.contains("<IsTruncated>false<"));
        assert_eq!(last.matches("<Key>").count(), 1);
        assert_eq!(page("GET / HTTP/1.1\r\n\r\n", 0).matches("<Key>").count(), 0);
    }
}
