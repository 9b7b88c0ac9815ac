//! A server of the test's own. It has any key, makes any fault, and checks no signature.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use md5::{Digest as _, Md5};

/// How the server says that an object is not there. What stands before it says it otherwise.
pub(crate) const NO_SUCH_KEY: &str = "<Error><Code>NoSuchKey</Code></Error>";

/// What goes wrong with an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// So many requests are answered with 503 first.
    Busy(u32),
    /// It can't be read.
    Forbidden,
    /// The connection ends in the middle, so many times.
    Short(u32),
    /// Nothing more comes after the middle.
    Hangs,
    /// After the middle it is another object, so many times.
    Replaced(u32),
    /// No request is answered.
    Silent,
    /// It has no `ETag`, and the connection ends in the middle, so many times.
    Untagged(u32),
    /// The connection ends in the middle, and parts of it can't be asked for.
    Unranged,
    /// The listing shows an older version of it.
    Grown,
    /// The data is not that of the `ETag`.
    Wrong,
    /// It is listed, but is not there, as this says.
    Gone(&'static str),
    /// It was listed, and is there no more.
    Deleted,
}

impl Fault {
    /// How the server says that the object is not there.
    fn absent(self) -> Option<&'static str> {
        match self {
            Self::Gone(text) => Some(text),
            Self::Deleted => Some(NO_SUCH_KEY),
            _ => None,
        }
    }
}

/// An object.
#[derive(Clone, Default, Debug)]
pub(crate) struct Object {
    pub(crate) data: Vec<u8>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) fault: Option<Fault>,
}

impl Object {
    pub(crate) fn new(data: &[u8]) -> Self {
        Self { data: data.to_vec(), ..Self::default() }
    }

    pub(crate) fn with(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    fn tag(&self) -> String {
        format!("\"{}\"", hex(&Md5::digest(&self.data)))
    }
}

/// Answers a request in the server's place, or leaves it to the server: `None`. `Some(false)`: the
/// connection ends.
pub(crate) type Hook = Arc<dyn Fn(&TcpStream, &str, &str) -> Option<bool> + Send + Sync>;

#[derive(Default)]
struct State {
    objects: BTreeMap<Vec<u8>, Object>,
    /// After so many pages a listing fails.
    pages: Option<usize>,
    hanging: usize,
    /// Parts of objects that come in parts.
    parts: BTreeMap<usize, Vec<u8>>,
    requests: usize,
    hook: Option<Hook>,
}

/// A server with one bucket. It lives as long as the test's process.
#[derive(Clone)]
pub(crate) struct Fake {
    port: u16,
    state: Arc<Mutex<State>>,
}

/// Objects of a page.
const PAGE: usize = 10;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn encode(key: &[u8]) -> String {
    key.iter()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(*byte).into() } else { format!("%{byte:02X}") })
        .collect()
}

fn decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        if *byte == b'%' {
            bytes.push(u8::from_str_radix(std::str::from_utf8(&after[..2]).unwrap(), 16).unwrap());
            rest = &after[2..];
        } else {
            bytes.push(*byte);
            rest = after;
        }
    }
    bytes
}

impl Fake {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let fake = Self { port: listener.local_addr().unwrap().port(), state: Arc::default() };
        let own = fake.clone();
        thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                let own = own.clone();
                thread::spawn(move || own.serve(&caller));
            }
        });
        fake
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn put(&self, key: &str, object: Object) {
        self.lock().objects.insert(key.as_bytes().to_vec(), object);
    }

    pub(crate) fn remove_all(&self) {
        self.lock().objects.clear();
    }

    /// All keys and their data.
    pub(crate) fn objects(&self) -> BTreeMap<Vec<u8>, Object> {
        self.lock().objects.clone()
    }

    /// A listing fails after so many pages.
    pub(crate) fn fail_after(&self, pages: Option<usize>) {
        self.lock().pages = pages;
    }

    /// From now on this answers, with method and target of a request.
    pub(crate) fn answer_with(&self, hook: impl Fn(&TcpStream, &str, &str) -> Option<bool> + Send + Sync + 'static) {
        self.lock().hook = Some(Arc::new(hook));
    }

    /// How many requests hang.
    pub(crate) fn hanging(&self) -> usize {
        self.lock().hanging
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a connection until the caller has gone.
    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let mut words = line.split_whitespace().map(ToOwned::to_owned);
            let (method, target) = (words.next().unwrap(), words.next().unwrap());
            let mut headers = BTreeMap::new();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let Some((name, value)) = line.trim_end().split_once(": ") else { break };
                headers.insert(name.to_ascii_lowercase(), value.to_owned());
            }
            if ["PUT", "POST"].contains(&&*method) && !headers.contains_key("content-length") {
                say(stream, 411, "", b"<Error><Code>MissingContentLength</Code></Error>");
                return;
            }
            let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let mut state = self.lock();
            state.requests += 1;
            let hook = state.hook.clone();
            drop(state);
            match hook.and_then(|hook| hook(stream, &method, &target)) {
                Some(true) => continue,
                Some(false) => return,
                None => {}
            }
            if !self.answer(stream, &method, &target, &headers, body) {
                return;
            }
        }
    }

    /// Answers a request. `false`: the connection ends.
    fn answer(
        &self,
        stream: &TcpStream,
        method: &str,
        target: &str,
        headers: &BTreeMap<String, String>,
        body: Vec<u8>,
    ) -> bool {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let key = decode(path.strip_prefix("/bucket/").unwrap());
        match (method, key.is_empty()) {
            ("GET", true) => self.list(stream, query),
            ("GET", false) => self.get(stream, &key, headers),
            // As a bucket with Object Lock.
            ("PUT", _) if !headers.contains_key("content-md5") => {
                say(stream, 400, "", b"<Error><Code>InvalidRequest</Code></Error>")
            }
            ("PUT", _) if query.starts_with("partNumber=") => {
                let number = query.split(['=', '&']).nth(1).unwrap().parse().unwrap();
                self.lock().parts.insert(number, body);
                say(stream, 200, "ETag: \"part\"\r\n", b"")
            }
            ("POST", _) if query == "uploads=" => say(
                stream,
                200,
                "",
                b"<InitiateMultipartUploadResult><UploadId>id</UploadId></InitiateMultipartUploadResult>",
            ),
            ("POST", _) => {
                let parts = std::mem::take(&mut self.lock().parts);
                let data: Vec<u8> = parts.into_values().flatten().collect();
                self.lock().objects.insert(key, Object::new(&data));
                say(stream, 200, "", b"<CompleteMultipartUploadResult/>")
            }
            ("PUT", _) => {
                let kept = headers.iter().filter(|(name, _)| name.starts_with("x-amz-meta") || *name == "content-type");
                let headers = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
                self.lock().objects.insert(key, Object { data: body, headers, fault: None });
                say(stream, 200, "ETag: \"x\"\r\n", b"")
            }
            _ => say(stream, 405, "", b""),
        }
    }

    fn list(&self, stream: &TcpStream, query: &str) -> bool {
        let from = query.strip_prefix("continuation-token=").map(|rest| rest.split('&').next().unwrap());
        let from: usize = from.map_or(0, |from| from.parse().unwrap());
        let state = self.lock();
        if state.pages.is_some_and(|pages| from >= pages * PAGE) {
            let body = b"<Error><Code>AccessDenied</Code><Message>not you</Message></Error>";
            return say(stream, 403, "", body);
        }
        let prefix = query.split('&').find_map(|part| part.strip_prefix("prefix="));
        let prefix = decode(prefix.unwrap_or_default());
        let is_listed = |key: &[u8], object: &Object| {
            key.starts_with(&prefix) && (prefix.is_empty() || object.fault != Some(Fault::Deleted))
        };
        let listed = state.objects.iter().filter(|(key, object)| is_listed(key, object));
        let more = listed.clone().count() > from + PAGE;
        let objects = listed.skip(from).take(PAGE).map(|(key, object)| {
            let older = Object::new(&object.data[..object.data.len() / 2]);
            let object = if object.fault == Some(Fault::Grown) { &older } else { object };
            format!(
                "<Contents><Key>{}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>{}</ETag>\
                 <Size>{}</Size></Contents>",
                encode(key),
                object.tag(),
                object.data.len()
            )
        });
        let objects: String = objects.collect();
        let next = format!("<NextContinuationToken>{}</NextContinuationToken>", from + PAGE);
        let body = format!(
            "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>{more}</IsTruncated>{}{objects}\
             </ListBucketResult>",
            if more { &next } else { "" }
        );
        drop(state);
        say(stream, 200, "", body.as_bytes())
    }

    fn get(&self, mut stream: &TcpStream, key: &[u8], headers: &BTreeMap<String, String>) -> bool {
        let mut state = self.lock();
        let Some(object) = state.objects.get_mut(key) else {
            return say(stream, 404, "", NO_SUCH_KEY.as_bytes());
        };
        if let Some(text) = object.fault.and_then(Fault::absent) {
            return say(stream, 404, "", text.as_bytes());
        }
        let mut data = object.data.clone();
        let half = data.len() / 2;
        let tag = object.tag();
        let range =
            headers.get("range").map(|range| range.trim_start_matches("bytes=").trim_end_matches('-').to_owned());
        let mut from: usize = range.map_or(0, |from| from.parse().unwrap());
        let (mut cut, mut hangs) = (false, false);
        match &mut object.fault {
            Some(Fault::Forbidden) => {
                return say(stream, 403, "", b"<Error><Code>AccessDenied</Code><Message>not you</Message></Error>");
            }
            Some(Fault::Busy(times)) if *times > 0 => {
                *times -= 1;
                return say(stream, 503, "", b"<Error><Code>SlowDown</Code></Error>");
            }
            Some(Fault::Short(times) | Fault::Untagged(times)) if *times > 0 => {
                *times -= 1;
                cut = true;
            }
            Some(Fault::Replaced(times)) if *times > 0 => {
                if from > 0 {
                    *times -= 1;
                    return say(stream, 412, "", b"");
                }
                cut = true;
            }
            Some(Fault::Unranged) => {
                cut = from == 0;
                from = 0;
            }
            Some(Fault::Hangs) => (cut, hangs) = (from == 0, true),
            Some(Fault::Silent) => hangs = true,
            Some(Fault::Wrong) => data[half] ^= 1,
            _ => {}
        }
        if headers.get("if-match").is_some_and(|wanted| *wanted != tag) {
            return say(stream, 412, "", b"");
        }
        let is_silent = object.fault == Some(Fault::Silent);
        let mut told = "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n".to_owned();
        if !matches!(object.fault, Some(Fault::Untagged(_))) {
            told.push_str(&format!("ETag: {tag}\r\n"));
        }
        for (name, value) in &object.headers {
            told.push_str(&format!("{name}: {value}\r\n"));
        }
        let rest = &data[from.min(data.len())..];
        let (status, range) = match from {
            0 => ("200 OK", String::new()),
            _ => ("206 Partial", format!("Content-Range: bytes {from}-{}/{}\r\n", data.len() - 1, data.len())),
        };
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{range}{told}\r\n", rest.len());
        if hangs {
            state.hanging += 1;
        }
        drop(state);
        let sent = if cut { &rest[..rest.len() / 2] } else { rest };
        let all = [head.as_bytes(), sent].concat();
        if stream.write_all(if is_silent { b"" } else { &all }).is_err() {
            return false;
        }
        if hangs {
            // Until the caller has hung up.
            let _gone = stream.set_read_timeout(Some(Duration::from_secs(600)));
            let _read = stream.read(&mut [0]);
            self.lock().hanging -= 1;
        }
        !cut && !hangs
    }
}

/// Sends an answer with its length.
pub(crate) fn say(mut stream: &TcpStream, status: u16, headers: &str, body: &[u8]) -> bool {
    let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body].concat()).is_ok()
}
