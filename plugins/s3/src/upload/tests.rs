//! Storing objects on servers that answer in all ways.

use std::sync::{Arc, Mutex};

use super::*;
use crate::server::{Answer, Asked, Listener, client};

/// Stores an object. What the plugin says of it, and what it was told later.
fn store(client: Arc<Client>, data: &[u8]) -> (Result<(), S3Error>, Vec<String>) {
    let (mut uploads, mut host) = (Uploads::new(client, Cancel::default()), Listener::default());
    let mut upload = Upload::new(b"/@s3/b/k".to_vec(), b"k".to_vec(), data.len() as u64);
    let stored = uploads.write(&mut upload, data).and_then(|()| uploads.finish(&mut host, &mut upload));
    uploads.wait_for_all(&mut host);
    (stored, host.texts)
}

/// The answer to all that is right but the end of an object in two parts.
fn answer(asked: &Asked) -> (u16, &'static str, Vec<u8>) {
    let begun = "<InitiateMultipartUploadResult><UploadId>id</UploadId></InitiateMultipartUploadResult>";
    let body = if asked.target.ends_with("?uploads=") { begun } else { "" };
    (200, "ETag: \"x\"\r\n", body.into())
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
            if is_end(asked) { Some((200, "", DONE.into())) } else { Some(answer(asked)) }
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
            if is_end(asked) { Some((200, "", DONE.into())) } else { Some(answer(asked)) }
        });
        assert_eq!(store(server, &vec![7; size]), (Ok(()), Vec::new()), "{size}");
    }
}

/// Stores an object in two parts on a server that answers so to the first and to the second
/// request for its end, and then with this head.
fn completed_after(first: Answer, second: Answer, head: &'static str) -> Result<(), S3Error> {
    let asked_before = Mutex::new(false);
    let server = client(move |asked| {
        if asked.method == "HEAD" {
            return Some((200, head, Vec::new()));
        }
        if !is_end(asked) {
            return Some(answer(asked));
        }
        let is_second = std::mem::replace(&mut *asked_before.lock().unwrap(), true);
        if is_second { second.clone() } else { first.clone() }
    });
    store(server, &vec![7; LARGE]).0
}

#[test]
fn an_object_in_parts_is_completed_again_when_the_server_could_not() {
    let done = || Some((200, "", DONE.into()));
    for code in ["InternalError", "SlowDown", "ServiceUnavailable"] {
        let error = format!("<Error xmlns=\"x\"><Code>{code}</Code><Message>Try again.</Message></Error>");
        assert_eq!(completed_after(Some((200, "", error.into())), done(), ""), Ok(()), "{code}");
    }
    let error = "<Error><Code>InvalidPart</Code></Error>";
    assert!(completed_after(Some((200, "", error.into())), done(), "").is_err());
}

#[test]
fn an_object_in_parts_is_there_though_the_server_could_not_say_so() {
    let gone = || Some((404, "", "<Error><Code>NoSuchUpload</Code></Error>".into()));
    assert_eq!(LARGE, 8_388_617);
    let right = "Content-Length: 8388617\r\nETag: \"abc-2\"\r\n";
    assert_eq!(completed_after(None, gone(), right), Ok(()));
    for (first, head) in [
        // Another object, and one whose upload was never there.
        (None, "Content-Length: 8388618\r\nETag: \"abc-2\"\r\n"),
        (None, "Content-Length: 8388617\r\nETag: \"abc-3\"\r\n"),
        (None, "Content-Length: 8388617\r\nETag: \"abc2\"\r\n"),
        (gone(), right),
    ] {
        let error = completed_after(first, gone(), head).unwrap_err().to_string();
        assert_eq!(error, "the server answers 404 NoSuchUpload", "{head}");
    }
}

#[test]
fn a_cancel_says_how_many_objects_were_on_their_way() {
    let (came, news) = std::sync::mpsc::channel();
    let server = client(move |asked| {
        came.send(asked.method.clone()).unwrap();
        match asked.target.trim_start_matches("/b/") {
            "stored" => Some((200, "ETag: \"x\"\r\n", Vec::new())),
            "refused" => Some((403, "", Vec::new())),
            _ => {
                std::thread::park();
                None
            }
        }
    });
    let (cancel, mut host) = (Cancel::default(), Listener::default());
    let mut uploads = Uploads::new(server, cancel.clone());
    for key in ["a", "stored", "refused", "b", "c"] {
        let mut upload = Upload::new(key.into(), key.into(), 1);
        uploads.write(&mut upload, b"x").unwrap();
        uploads.finish(&mut host, &mut upload).unwrap();
        assert_eq!(news.recv().unwrap(), "PUT");
    }
    let has_ended =
        |uploads: &Uploads| uploads.running.iter().filter(|running| running.task.is_finished()).count() == 2;
    while !has_ended(&uploads) {
        std::thread::yield_now();
    }
    cancel.set();
    // What comes then must not hide any of them.
    assert_eq!(uploads.wait_for(&mut host, b"a"), Err(S3Error::Canceled));
    uploads.wait_for_all(&mut host);
    assert_eq!(
        host.texts,
        [
            "s3: Could not restore refused: the server answers 403\n",
            "s3: 3 object(s) were on their way into the bucket and may not be there\n"
        ]
    );
    assert_eq!(host.kinds, [MessageType::Error; 2]);
}
