//! A server that is against its client: it must not get a job called good whose data is missing or
//! is another's, nor the client's keys, nor more memory than [docs/limits.md] says.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bed::{Bed, Fd, ONLY_OURS, Result, children, reset_peak, usage};

use super::fake::{Fake, Object, say};
use super::{bed_with, names, restored_into};

/// Answers a request, or leaves it to the honest server.
type Trick = fn(&TcpStream, &str, &str) -> Option<bool>;

/// Answers a request for a page of the listing, whose target may say which.
type Page = fn(&TcpStream, &str) -> bool;

/// Answers a request for an object.
type Answer = fn(&TcpStream) -> bool;

/// Most memory that a plugin host takes beyond what it has at rest: 64 MiB of objects, and a page
/// of 16 MiB with what it says.
const MOST_MEMORY: u64 = 160 << 20;
/// Bytes of an answer that is as long as one may be.
const LONG: usize = 15 << 20;
/// Bytes of an answer of which each is a chunk: more memory than may be taken, if each were kept.
const MANY: usize = 6 << 20;

fn is_listing(method: &str, target: &str) -> bool {
    method == "GET" && target.contains("list-type=2")
}

fn send(mut stream: &TcpStream, bytes: &[u8]) -> bool {
    stream.write_all(bytes).is_ok()
}

/// A listing with this in it.
fn list(stream: &TcpStream, body: &str) -> bool {
    say(stream, 200, "", format!("<ListBucketResult>{body}</ListBucketResult>").as_bytes())
}

fn entry(key: &str, size: usize, tag: &str) -> String {
    format!(
        "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>{tag}</ETag>\
         <Size>{size}</Size></Contents>"
    )
}

/// Each byte is a chunk of its own.
fn chunks(stream: &TcpStream, headers: &str, body: &[u8]) -> bool {
    let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{headers}\r\n");
    let mut bytes = head.into_bytes();
    for byte in body {
        bytes.extend_from_slice(&[b'1', b'\r', b'\n', *byte, b'\r', b'\n']);
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    send(stream, &bytes)
}

/// A case in which the server is waited for as long as a file of bucket settings says.
const IMPATIENT: &str = "interim answers only";

/// What is no listing of the bucket. Each fails the job, and says so.
const LISTINGS: [(&str, Page, &str); 11] = [
    (
        "a page of another kind",
        |stream, _| say(stream, 200, "Content-Type: text/html\r\n", b"<html><body><p>Please log in.</p></body></html>"),
        "the answer is no listing of a bucket",
    ),
    (
        "an error with a good status",
        |stream, _| say(stream, 200, "", b"<Error><Code>InternalError</Code></Error>"),
        "the answer is no listing of a bucket",
    ),
    (
        "a next page without a word of it",
        |stream, target| {
            let more = format!("{}<NextContinuationToken>10</NextContinuationToken>", entry("0", 1, "x"));
            !target.contains("continuation-token") && list(stream, &more)
        },
        "connection closed before",
    ),
    (
        "another server",
        |stream, _| say(stream, 307, "Location: http://127.0.0.2:1/bucket/\r\n", b""),
        "the server answers 307",
    ),
    (
        "the same page again",
        |stream, _| {
            let body = "<IsTruncated>true</IsTruncated><NextContinuationToken>0</NextContinuationToken>";
            list(stream, &format!("{body}{}", entry("0", 1, "x")))
        },
        "the listing has no next page where it should have one",
    ),
    (
        "a key longer than any",
        |stream, _| list(stream, &entry(&"k".repeat(2 << 20), 1, "x")),
        "the listing has a key of 2097152 bytes",
    ),
    (
        "a tag longer than any",
        |stream, _| list(stream, &entry("k", 1, &"t".repeat(LONG))),
        "the listing has an ETag of 15728640 bytes",
    ),
    (
        "a page with millions of attributes",
        |stream, _| {
            let attributes: String = (0..LONG / 12).map(|number| format!(" a{number}=''")).collect();
            say(stream, 200, "", format!("<Other{attributes}></Other>").as_bytes())
        },
        "the answer is no listing of a bucket",
    ),
    (
        "an answer without an end",
        |stream, _| {
            let chunk = [b"100000\r\n".as_slice(), &vec![b' '; 1 << 20], b"\r\n"].concat();
            let mut is_heard = send(stream, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            while is_heard {
                is_heard = send(stream, &chunk);
            }
            false
        },
        "length limit exceeded",
    ),
    (
        IMPATIENT,
        |stream, _| {
            let interim = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".repeat(1000);
            while send(stream, &interim) {}
            false
        },
        "the server has sent nothing for 3 seconds",
    ),
    ("a byte at a time", |stream, _| chunks(stream, "", &vec![b' '; MANY]), "the answer is no listing of a bucket"),
];

/// What a listing says of three objects, `a`, `b` and `c` of which the second has a fault.
fn three(stream: &TcpStream, method: &str, target: &str) -> Option<bool> {
    let all = || ["a", "b", "c"].map(|key| entry(key, 4, "&quot;tag-2&quot;")).concat();
    is_listing(method, target).then(|| list(stream, &all()))
}

fn is_second(method: &str, target: &str) -> bool {
    method == "GET" && target.split('?').next() == Some("/bucket/b")
}

fn good(stream: &TcpStream) -> bool {
    say(stream, 200, "ETag: \"tag-2\"\r\n", b"data")
}

/// What is not the object that was asked for. Each is named as an error, and the others are saved.
const OBJECTS: [(&str, Answer, &str); 6] = [
    (
        "a part of it",
        |stream| {
            send(
                stream,
                b"HTTP/1.1 206 Partial\r\nETag: \"tag-9\"\r\nContent-Range: bytes 0-1/4\r\nContent-Length: 2\r\n\r\nda",
            )
        },
        "the server answers 206",
    ),
    (
        "less than was listed, by the same name",
        |stream| say(stream, 200, "ETag: \"tag-2\"\r\n", b"da"),
        "the object has 2 bytes, and 4 in the listing",
    ),
    (
        "nothing of it, by the same name",
        |stream| say(stream, 200, "ETag: \"tag-2\"\r\n", b""),
        "the object has 0 bytes, and 4 in the listing",
    ),
    ("a page of a proxy", |stream| say(stream, 203, "ETag: \"tag-9\"\r\n", b"page"), "the server answers 203"),
    (
        "more than it says",
        |stream| chunks(stream, "ETag: \"tag-2\"\r\nContent-Length: 4\r\n", b"data and more"),
        "the server sends more bytes than it has said",
    ),
    (
        "another place",
        |stream| say(stream, 302, "Location: http://127.0.0.2:1/bucket/b\r\n", b"data"),
        "the server answers 302",
    ),
];

/// Answers to the end of an object in parts that do not say that it is there, and what is said.
const COMPLETIONS: [(&str, &str); 5] = [
    ("", NOT_SAID),
    (
        "<Error xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Code>InternalError</Code></Error>",
        "the server answers 200 InternalError",
    ),
    ("<Error><Code>InvalidPart</Code></Error>", NOT_SAID),
    ("<html>busy</html>", NOT_SAID),
    ("<CompleteMultipartUploadResult><Key>x</Key>", NOT_SAID),
];
const NOT_SAID: &str = "the server does not say that the object is there";

/// What the plugin host was at rest: its number and its memory.
struct AtRest(u32, u64);

impl AtRest {
    fn of(bed: &mut Bed) -> Result<Self> {
        let host = children(bed.client("ours")?.pid()?)?[0];
        let memory = usage(host)?.peak_memory;
        reset_peak(host)?;
        Ok(Self(host, memory))
    }

    /// What is wrong since the last look: another plugin host, or much memory.
    fn wrong(&self, bed: &mut Bed) -> Result<String> {
        let Self(host, memory) = Self::of(bed)?;
        let more = memory.saturating_sub(self.1);
        let mut wrong = String::new();
        // Other jobs would have lost it.
        if host != self.0 {
            wrong.push_str("the plugin host is another one\n");
        }
        if more > MOST_MEMORY {
            writeln!(wrong, "{more} bytes of memory").unwrap();
        }
        Ok(wrong)
    }
}

fn wrong_listings(bed: &mut Bed, fake: &Fake) -> Result<String> {
    let mut wrong = String::new();
    let mut rest = AtRest::of(bed)?;
    for (what, page, said) in LISTINGS {
        fake.answer_with(move |stream, method, target| is_listing(method, target).then(|| page(stream, target)));
        let file_set = if what == IMPATIENT { "Impatient" } else { "Bucket" };
        let job = bed.backup("ours", &format!("level=Incremental fileset={file_set}"))?;
        let deleted = names(bed, &job).1;
        let strained = rest.wrong(bed)?;
        rest.0 = AtRest::of(bed)?.0;
        if job.row.status != 'f' || !job.log.contains(said) || !deleted.is_empty() || !strained.is_empty() {
            let deleted = deleted.len();
            writeln!(wrong, "{what}: {} {strained}, {deleted} deleted\n{}", job.row.status, job.log).unwrap();
        }
    }
    Ok(wrong)
}

fn wrong_objects(bed: &Bed, fake: &Fake) -> Result<String> {
    let mut wrong = String::new();
    for (what, trick, said) in OBJECTS {
        fake.answer_with(move |stream, method, target| {
            let object = || if is_second(method, target) { trick(stream) } else { good(stream) };
            Some(three(stream, method, target).unwrap_or_else(object))
        });
        let job = bed.backup("ours", "level=Full")?;
        let named = format!("Error: s3: Could not read /@s3/bucket/b: {said}");
        if job.row.errors == 0 || !job.log.contains(&named) || job.row.files != 3 {
            writeln!(wrong, "{what}: {} files, {} errors\n{}", job.row.files, job.row.errors, job.log).unwrap();
        }
    }
    Ok(wrong)
}

/// Long refusals, and objects of which each byte is a chunk, many at the same time.
fn wrong_memory(bed: &mut Bed, fake: &Fake) -> Result<String> {
    let mut wrong = String::new();
    let refuses: Trick =
        |stream, method, target| (!is_listing(method, target)).then(|| say(stream, 403, "", &vec![b'x'; LONG]));
    let dribbles: Trick = |stream, method, target| {
        let size = MANY / 6;
        if is_listing(method, target) {
            return Some(list(stream, &(100..106).map(|key| entry(&key.to_string(), size, "x")).collect::<String>()));
        }
        Some(chunks(stream, &format!("Content-Length: {size}\r\nETag: \"y\"\r\n"), &vec![b'x'; size]))
    };
    let rest = AtRest::of(bed)?;
    for (what, trick) in [("long refusals", refuses), ("objects by the byte", dribbles)] {
        fake.answer_with(trick);
        let job = bed.backup("ours", "level=Full")?;
        let strained = rest.wrong(bed)?;
        if !strained.is_empty() {
            writeln!(wrong, "{what}: {strained}\n{}", job.log).unwrap();
        }
    }
    Ok(wrong)
}

/// Small objects are restored into a bucket whose server says much to each.
fn wrong_uploads(bed: &mut Bed, fake: &Fake) -> Result<String> {
    fake.answer_with(|_, _, _| None);
    fake.remove_all();
    for number in 0..100 {
        fake.put(&format!("{number:02}"), Object::new(b"data"));
    }
    let full = bed.backup("ours", "level=Full")?.must_be_good()?;
    let rest = AtRest::of(bed)?;
    fake.answer_with(|stream, method, _| (method == "PUT").then(|| say(stream, 200, "", &vec![b' '; LONG])));
    let job = restored_into(bed, &full, &bed.folder().join("copy.toml"), "always")?;
    let strained = rest.wrong(bed)?;
    Ok(if strained.is_empty() { strained } else { format!("long answers to uploads: {strained}\n{}", job.log) })
}

/// A large object is restored into a bucket whose server does not say that it has it.
fn wrong_completions(bed: &Bed, fake: &Fake) -> Result<String> {
    let mut wrong = String::new();
    fake.answer_with(|_, _, _| None);
    fake.remove_all();
    fake.put("large", Object::new(&vec![7; 9 << 20]));
    let full = bed.backup("ours", "level=Full")?.must_be_good()?;
    for (answer, said) in COMPLETIONS {
        let given_up = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&given_up);
        fake.answer_with(move |stream, method, target| match method {
            "POST" if target.contains("uploadId=") => Some(say(stream, 200, "", answer.as_bytes())),
            "DELETE" => {
                counts.fetch_add(1, Ordering::SeqCst);
                Some(say(stream, 204, "", b""))
            }
            _ => None,
        });
        let job = restored_into(bed, &full, &bed.folder().join("copy.toml"), "always")?;
        // Its parts would stay in the bucket.
        let given_up = given_up.load(Ordering::SeqCst);
        let named = format!("/@s3/bucket/large: {said}");
        if job.row.errors == 0 || !job.log.contains(&named) || given_up != 1 {
            writeln!(wrong, "{answer:?}: {}, given up {given_up} times\n{}", job.row.status, job.log).unwrap();
        }
    }
    Ok(wrong)
}

#[test]
fn a_hostile_server_costs_its_own_job_and_little_memory() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, ONLY_OURS);
    let fake = Fake::start();
    for number in 0..100 {
        fake.put(&format!("{number:02}"), Object::new(b"data"));
    }
    let mut bed = bed_with(&fake, "timeout = 30\nretries = 1")?;
    bed.backup("ours", "level=Full")?.must_be_good()?;
    let mut wrong = wrong_listings(&mut bed, &fake)?;
    wrong.push_str(&wrong_objects(&bed, &fake)?);
    wrong.push_str(&wrong_memory(&mut bed, &fake)?);
    wrong.push_str(&wrong_uploads(&mut bed, &fake)?);
    wrong.push_str(&wrong_completions(&bed, &fake)?);
    assert!(wrong.is_empty(), "{wrong}");
    Ok(())
}
