//! A server for tests, whose answers a test gives, and a host that keeps what it is told.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use fd_messages::MessageType;
use fd_plugins::{Host, JobFacts, NoFacts};

use crate::client::Client;
use crate::settings::BucketSettings;

/// A host that keeps messages.
#[derive(Default, Debug)]
pub(crate) struct Listener {
    pub(crate) kinds: Vec<MessageType>,
    pub(crate) texts: Vec<String>,
}

impl Host for Listener {
    fn facts(&self) -> &dyn JobFacts {
        &NoFacts
    }

    fn message(&mut self, kind: MessageType, text: &[u8]) {
        self.kinds.push(kind);
        self.texts.push(String::from_utf8_lossy(text).into_owned());
    }
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// Status, headers and body. `None`: the connection ends.
pub(crate) type Answer = Option<(u16, &'static str, Vec<u8>)>;

/// The settings of a bucket on a server that answers so. It lives as long as the test's process.
pub(crate) fn settings(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for caller in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            thread::spawn(move || serve(&caller, &*answer));
        }
    });
    format!("bucket = \"b\"\naccess_key = \"a\"\nsecret_key = \"s\"\nendpoint = \"http://127.0.0.1:{port}\"\n")
}

/// A client of such a bucket.
pub(crate) fn client(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Arc<Client> {
    Arc::new(Client::new(&BucketSettings::parse(&settings(answer)).unwrap()).unwrap())
}

fn serve(mut stream: &TcpStream, answer: &dyn Fn(&Asked) -> Answer) {
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
        let mut body = vec![0; headers.get("content-length").map_or(0, |length| length.parse().unwrap())];
        reader.read_exact(&mut body).unwrap();
        let Some((status, told, body)) = answer(&Asked { method, target, headers, body }) else { return };
        let length =
            if told.contains("Content-Length") { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let head = format!("HTTP/1.1 {status} X\r\n{length}{told}\r\n");
        if stream.write_all(&[head.as_bytes(), &body].concat()).is_err() {
            return;
        }
    }
}
