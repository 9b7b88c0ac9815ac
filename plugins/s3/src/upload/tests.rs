//! Storing objects on servers that answer in all ways.

use std::sync::{Arc, Mutex};

use fd_plugins::{JobFacts, NoFacts};

use super::*;
use crate::server::{Answer, Asked, client};

/// A host that keeps messages.
#[derive(Default, Debug)]
struct Listener(Vec<String>);

impl Host for Listener {
    fn facts(&self) -> &dyn JobFacts {
        &NoFacts
    }

    fn message(&mut self, _kind: MessageType, text: &[u8]) {
        self.0.push(String::from_utf8_lossy(text).into_owned());
    }
}

/// Stores an object. What the plugin says of it, and what it was told later.
fn store(client: Arc<Client>, data: &[u8]) -> (Result<(), S3Error>, Vec<String>) {
    let (mut uploads, mut host) = (Uploads::new(client, Cancel::default()), Listener::default());
    let mut upload = Upload::new(b"/@s3/b/k".to_vec(), b"k".to_vec(), data.len() as u64);
    let stored = uploads.write(&mut upload, data).and_then(|()| uploads.finish(&mut host, &mut upload));
    uploads.wait_for_all(&mut host);
    (stored, host.0)
}

/// The answer to all that is right but the end of an object in two parts.
fn answer(asked: &Asked) -> Answer {
    let begun = "<InitiateMultipartUploadResult><UploadId>id</UploadId></InitiateMultipartUploadResult>";
    let body = if asked.target.ends_with("?uploads=") { begun } else { "" };
    Some((200, "ETag: \"x\"\r\n", body.into()))
}

fn is_end(asked: &Asked) -> bool {
    asked.method == "POST" && asked.target.contains("?uploadId=")
}

const LARGE: usize = PART + 9;
const DONE: &str = "<CompleteMultipartUploadResult/>";

#[test]
fn what_a_server_says_of_a_completion_is_one_line() {
    for right in [
        "<CompleteMultipartUploadResult/>",
        "<?xml version=\"1.0\"?>\n \n <CompleteMultipartUploadResult xmlns=\"x\"><Key>a</Key><ETag/>\
         </CompleteMultipartUploadResult>",
    ] {
        assert_eq!(completed(right.as_bytes()), Ok(()), "{right}");
    }
    let error = completed(b"<Error>\n25-Nov 10:00 dir JobId 1: Backup OK\x1b[2J</Error>").unwrap_err();
    let said = "<Error> 25-Nov 10:00 dir JobId 1: Backup OK [2J</Error>";
    assert_eq!(error.to_string(), format!("the server does not say that the object is there: {said}"));
}

#[test]
fn a_request_without_a_body_says_that_it_has_none() {
    let lengths = Arc::new(Mutex::new(Vec::new()));
    for size in [0, LARGE] {
        let seen = Arc::clone(&lengths);
        let server = client(move |asked| {
            let length = asked.headers.get("content-length").cloned();
            seen.lock().unwrap().push(length.map(|length| (asked.method.clone(), length)));
            if is_end(asked) { Some((200, "", DONE.into())) } else { answer(asked) }
        });
        assert_eq!(store(server, &vec![0; size]), (Ok(()), Vec::new()));
    }
    let lengths = lengths.lock().unwrap();
    assert!(lengths.len() == 5 && lengths.iter().all(Option::is_some), "{lengths:?}");
}

#[test]
fn data_goes_with_its_digest_which_a_bucket_with_object_lock_asks_for() {
    for size in [0, 9, LARGE] {
        let server = client(|asked| {
            let digest = base64::encode(Md5::digest(&asked.body));
            if asked.method == "PUT" && asked.headers.get("content-md5") != Some(&digest) {
                let refusal = "<Error><Code>InvalidRequest</Code></Error>";
                return Some((400, "", refusal.into()));
            }
            if is_end(asked) { Some((200, "", DONE.into())) } else { answer(asked) }
        });
        assert_eq!(store(server, &vec![7; size]), (Ok(()), Vec::new()), "{size}");
    }
}
