//! A connection of the floor: packets over TCP, from some moment on over TLS with a pre-shared key
//! (reference 01 §11.2).

use std::io::{self, Read, Write};
use std::net::TcpStream;

use bed::peer::{Frame, answer, packet};
use bed::{BedError, PATIENCE, Result};
use openssl::error::ErrorStack;
use openssl::ssl::{Ssl, SslContextBuilder, SslMethod, SslOptions, SslStream};
use socket2::SockRef;

/// Bytes that are gathered before they go to the kernel; OpenSSL alone would write each record of
/// 16 KiB.
const GATHERED: usize = 256 << 10;

/// Which side sent `starttls`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// We sent `starttls`.
    Server,
    /// The peer did.
    Client,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Line {
    who: &'static str,
    over: Over,
}

#[derive(Debug)]
enum Over {
    Clear(Gathered),
    Tls(Box<SslStream<Gathered>>),
}

/// A socket that writes much at a time; whatever waits for an answer sends what is gathered first.
#[derive(Debug)]
struct Gathered {
    socket: TcpStream,
    out: Vec<u8>,
}

impl Read for Gathered {
    /// Acknowledges at once, as ours does: the peers hold small packets back until then.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.flush()?;
        let length = self.socket.read(buffer)?;
        SockRef::from(&self.socket).set_tcp_quickack(true)?;
        Ok(length)
    }
}

impl Write for Gathered {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.extend_from_slice(bytes);
        if self.out.len() >= GATHERED {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }
}

impl Line {
    pub(super) fn connect(who: &'static str, port: u16) -> Result<Self> {
        let socket = TcpStream::connect(("127.0.0.1", port));
        Self::over(who, socket.map_err(|error| problem(who, &error.to_string()))?)
    }

    pub(super) fn over(who: &'static str, socket: TcpStream) -> Result<Self> {
        let set = socket.set_nodelay(true).and_then(|()| socket.set_read_timeout(Some(PATIENCE)));
        set.map_err(|error| problem(who, &error.to_string()))?;
        Ok(Self { who, over: Over::Clear(Gathered { socket, out: Vec::new() }) })
    }

    /// Goes on with TLS.
    pub(super) fn encrypted(self, key: &str, side: Side) -> Result<Self> {
        let Over::Clear(socket) = self.over else { return Err(problem(self.who, "encrypted already")) };
        let session = session(key.as_bytes().to_vec()).map_err(|stack| problem(self.who, &stack.to_string()))?;
        let stream = SslStream::new(session, socket).map_err(|stack| problem(self.who, &stack.to_string()))?;
        let mut stream = Box::new(stream);
        let done = match side {
            Side::Server => stream.accept(),
            Side::Client => stream.connect(),
        };
        done.map_err(|error| problem(self.who, &format!("TLS: {error}")))?;
        Ok(Self { who: self.who, over: Over::Tls(stream) })
    }

    fn stream(&mut self) -> &mut dyn ReadWrite {
        match &mut self.over {
            Over::Clear(stream) => stream,
            Over::Tls(stream) => stream.as_mut(),
        }
    }

    /// Sends bytes as they are.
    pub(super) fn send_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let who = self.who;
        let stream = self.stream();
        stream.write_all(bytes).and_then(|()| stream.flush()).map_err(|error| problem(who, &error.to_string()))
    }

    /// Sends a packet.
    pub(super) fn say(&mut self, text: &str) -> Result<()> {
        self.send_bytes(&packet(text.as_bytes()))
    }

    /// Sends a signal.
    pub(super) fn signal(&mut self, signal: i32) -> Result<()> {
        self.send_bytes(&signal.to_be_bytes())
    }

    /// The next packet or signal, compressed or not.
    pub(super) fn receive(&mut self) -> Result<Frame> {
        let who = self.who;
        let mut exactly = |count: usize| -> Result<Option<Vec<u8>>> {
            let mut bytes = vec![0; count];
            match self.stream().read_exact(&mut bytes) {
                Ok(()) => Ok(Some(bytes)),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
                Err(error) => Err(problem(who, &error.to_string())),
            }
        };
        let Some(head) = exactly(4)? else { return Ok(Frame::Closed) };
        let head = i32::from_be_bytes(head.try_into().unwrap_or_default());
        match usize::try_from(head) {
            Err(_) => Ok(Frame::Signal(head)),
            Ok(length) => Ok(exactly(length & 0x1fff_ffff)?.map_or(Frame::Closed, Frame::Data)),
        }
    }

    /// The next packet must begin so.
    pub(super) fn hear(&mut self, wanted: &str) -> Result<String> {
        match self.receive()? {
            Frame::Data(bytes) if bytes.starts_with(wanted.as_bytes()) => {
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            other => Err(problem(self.who, &format!("expected {wanted:?}, got {other:?}"))),
        }
    }

    /// Puts a challenge and believes the answer: the peer is the bed's own.
    pub(super) fn challenge(&mut self, key: &str) -> Result<()> {
        let challenge = "auth cram-md5 <1234567.1234567@floor-fd> ssl=0\n";
        self.say(challenge)?;
        match self.receive()? {
            Frame::Data(bytes) if bytes == answer(key, challenge) => self.say("1000 OK auth\n"),
            other => Err(problem(self.who, &format!("wrong answer: {other:?}"))),
        }
    }

    /// Answers a challenge.
    pub(super) fn answer(&mut self, key: &str) -> Result<()> {
        let challenge = self.hear("auth cram-md5")?;
        let bytes = packet(&answer(key, &challenge));
        self.send_bytes(&bytes)?;
        self.hear("1000 OK auth\n").map(drop)
    }
}

trait ReadWrite: Read + Write {}

impl<T: Read + Write> ReadWrite for T {}

/// TLS 1.3 with the key as external PSK, AES first as ferrofd offers it.
fn session(key: Vec<u8>) -> std::result::Result<Ssl, ErrorStack> {
    let mut builder = SslContextBuilder::new(SslMethod::tls())?;
    builder.set_ciphersuites("TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256")?;
    builder.set_options(SslOptions::CIPHER_SERVER_PREFERENCE | SslOptions::NO_TICKET);
    let ours = key.clone();
    builder.set_psk_server_callback(move |_, _, psk| Ok(put(&ours, psk)));
    builder.set_psk_client_callback(move |_, _, identity, psk| {
        const IDENTITY: &[u8] = b"Client_identity\0";
        let Some(place) = identity.get_mut(..IDENTITY.len()) else { return Ok(0) };
        place.copy_from_slice(IDENTITY);
        Ok(put(&key, psk))
    });
    Ssl::new(&builder.build())
}

fn put(key: &[u8], place: &mut [u8]) -> usize {
    place.get_mut(..key.len()).map_or(0, |place| {
        place.copy_from_slice(key);
        key.len()
    })
}

/// An error of the connection to `who`.
pub(super) fn problem(who: &str, problem: &str) -> BedError {
    BedError::Peer { who: format!("{who}, by the floor"), problem: problem.to_owned() }
}
