//! A scripted peer: speaks Bacula's frames (reference 01 §1) and its login (01 §8, §9) over plain
//! TCP, sends exactly what a test gives it, and closes when the test does.
//!
//! Without TLS: a daemon that is to be talked to this way has `TLS PSK Enable = no` or at least
//! does not require it.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};

use md5::{Digest as _, Md5};
use nix::sys::socket::{setsockopt, sockopt};

use crate::config::{DIRECTOR, FD_PASSWORD};
use crate::error::{BedError, Result};
use crate::patience::{PATIENCE, wait_for_input};

/// Signals used by the scripts (reference 01 §2).
pub const EOD: i32 = -1;
/// The sender is about to close.
pub const TERMINATE: i32 = -4;
/// The signal by which a peer that waits says that it is there.
pub const HEARTBEAT: i32 = -6;

/// What a peer sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A packet's payload; an empty packet is empty.
    Data(Vec<u8>),
    /// A negative length.
    Signal(i32),
    /// It closed or reset the connection.
    Closed,
}

impl Frame {
    /// A packet as text, anything else by its name.
    pub fn text(&self) -> String {
        match self {
            Self::Data(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => format!("{other:?}"),
        }
    }
}

/// The key between the job of a scripted Director and a scripted Storage Daemon, in the form of
/// real ones.
pub const SD_KEY: &str = "FHDM-NHEO-KGBJ-ABPN-DFPH-IEFC-NMBL-EAPC";

/// The first packet of a Director.
pub fn hello(director: &str) -> String {
    format!("Hello Director {director} calling 10002 tlspsk=0\n")
}

/// Logs in as a Director at a File Daemon's port.
pub fn logged_in(port: u16, director: &str) -> Result<Peer> {
    let mut peer = Peer::connect("FD", port)?;
    peer.send(hello(director).as_bytes())?;
    peer.log_in(&key_of_password(FD_PASSWORD), director)?;
    peer.expect("2000 OK Hello 15\n")?;
    Ok(peer)
}

/// Logs in as the bed's Director at a File Daemon's port and names a job; 0 stands for a console's
/// command.
pub fn director_session(port: u16, job: u32) -> Result<Peer> {
    let mut peer = logged_in(port, DIRECTOR)?;
    let command =
        format!("JobId={job} Job=script.2026-01-01_00.00.00_{job:02} SDid=1 SDtime=1 Authorization={SD_KEY}\n");
    peer.send(command.as_bytes())?;
    peer.expect("2000 OK Job 15.0.3 ")?;
    Ok(peer)
}

/// The same for a job that is told to do a Full.
pub fn job_session(port: u16, job: u32) -> Result<Peer> {
    let mut peer = director_session(port, job)?;
    peer.send(b"level = full  mtime_only=0 \n")?;
    peer.expect("2000 OK level\n")?;
    Ok(peer)
}

/// Takes the next call of a File Daemon as the Storage Daemon of a scripted Director's job, and
/// lets it log in.
pub fn storage_session(listener: &TcpListener) -> Result<Peer> {
    let mut peer = Peer::accepted("FD", listener)?;
    peer.expect("Hello Bacula SD: Start Job ")?;
    peer.send(b"sdcaps: dedup=0 hash=1 dedup_block=65536 min_dedup_block=1024 max_dedup_block=66556\n")?;
    peer.expect("fdcaps: ")?;
    let challenge = "auth cram-md5 <1122334.1234567@script-sd> ssl=0\n";
    peer.send(challenge.as_bytes())?;
    peer.hear_answer(SD_KEY, challenge)?;
    peer.send(b"1000 OK auth\n")?;
    let challenge = peer.expect("auth cram-md5 <")?;
    peer.send(&answer(SD_KEY, &challenge))?;
    peer.expect("1000 OK auth\n")?;
    peer.send(b"3000 OK Hello 30008\n")?;
    Ok(peer)
}

/// One end of a connection.
#[derive(Debug)]
pub struct Peer {
    stream: TcpStream,
    who: String,
}

impl Peer {
    /// Connects to a port of 127.0.0.1; `who` is for messages.
    pub fn connect(who: &str, port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port));
        Self::over(who, stream.map_err(|error| problem(who, &format!("connect: {error}")))?)
    }

    /// Accepts the next caller.
    pub fn accepted(who: &str, listener: &TcpListener) -> Result<Self> {
        wait_for_input(&format!("a call of {who}"), listener)?;
        Self::over(who, listener.accept().map_err(|error| problem(who, &format!("accept: {error}")))?.0)
    }

    /// Takes an accepted connection.
    pub fn over(who: &str, stream: TcpStream) -> Result<Self> {
        let set =
            |result: std::io::Result<()>| result.map_err(|error| problem(who, &format!("socket option: {error}")));
        set(stream.set_read_timeout(Some(PATIENCE)))?;
        set(stream.set_nodelay(true))?;
        Ok(Self { stream, who: who.to_owned() })
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).map_err(|error| problem(&self.who, &format!("write: {error}")))
    }

    /// Sends one packet.
    pub fn send(&mut self, payload: &[u8]) -> Result<()> {
        self.send_bytes(&packet(payload))
    }

    /// Sends a signal.
    pub fn signal(&mut self, signal: i32) -> Result<()> {
        self.send_bytes(&signal.to_be_bytes())
    }

    /// Closes the sending half.
    pub fn finish(&mut self) -> Result<()> {
        self.stream.shutdown(Shutdown::Write).map_err(|error| problem(&self.who, &format!("shutdown: {error}")))
    }

    /// Sends one packet and closes the sending half, so that both arrive together.
    pub fn send_last(&mut self, payload: &[u8]) -> Result<()> {
        let held = setsockopt(&self.stream, sockopt::TcpCork, &true);
        held.map_err(|error| problem(&self.who, &format!("TCP_CORK: {error}")))?;
        self.send(payload)?;
        self.finish()
    }

    /// The next packet or signal; compressed payloads are given as they are.
    pub fn receive(&mut self) -> Result<Frame> {
        let Some(head) = self.exactly(4)? else { return Ok(Frame::Closed) };
        let head = i32::from_be_bytes(head.try_into().unwrap_or_default());
        if head < 0 {
            return Ok(Frame::Signal(head));
        }
        let length = usize::try_from(head & 0x1fff_ffff).unwrap_or(0);
        Ok(self.exactly(length)?.map_or(Frame::Closed, Frame::Data))
    }

    /// The next packet's text; anything else is an error.
    pub fn receive_text(&mut self) -> Result<String> {
        match self.receive()? {
            Frame::Data(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            other => Err(problem(&self.who, &format!("expected text, got {other:?}"))),
        }
    }

    /// Nothing has come so far; what comes later is still heard. To be asked when something has
    /// happened that comes later.
    pub fn must_be_silent(&mut self) -> Result<()> {
        let set = |is_on| self.stream.set_nonblocking(is_on).map_err(|error| problem(&self.who, &error.to_string()));
        set(true)?;
        let looked = self.stream.peek(&mut [0]);
        set(false)?;
        match looked {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            other => Err(problem(&self.who, &format!("expected silence, got {other:?}"))),
        }
    }

    /// The next packet must begin with `wanted`.
    pub fn expect(&mut self, wanted: &str) -> Result<String> {
        let text = self.receive_text()?;
        if text.starts_with(wanted) {
            Ok(text)
        } else {
            Err(problem(&self.who, &format!("expected {wanted:?}, got {text:?}")))
        }
    }

    /// Everything until the peer closes.
    pub fn rest(&mut self) -> Result<Vec<Frame>> {
        let mut frames = Vec::new();
        loop {
            match self.receive()? {
                Frame::Closed => return Ok(frames),
                frame => frames.push(frame),
            }
        }
    }

    /// Answers a challenge and puts one, as the caller of a Hello does.
    pub fn log_in(&mut self, key: &str, name: &str) -> Result<()> {
        let challenge = self.expect("auth cram-md5")?;
        self.send(&answer(key, &challenge))?;
        self.expect("1000 OK auth\n")?;
        let challenge = format!("auth cram-md5 <1234567.1234567@{name}> ssl=0\n");
        self.send(challenge.as_bytes())?;
        self.hear_answer(key, &challenge)?;
        self.send(b"1000 OK auth\n")
    }

    /// The other side's answer to our challenge must be right.
    pub fn hear_answer(&mut self, key: &str, challenge: &str) -> Result<()> {
        let answered = self.receive()?;
        if answered == Frame::Data(answer(key, challenge)) {
            Ok(())
        } else {
            Err(problem(&self.who, &format!("wrong answer to {challenge:?}: {answered:?}")))
        }
    }

    /// So many bytes, or `None` if the peer closes before.
    fn exactly(&mut self, count: usize) -> Result<Option<Vec<u8>>> {
        let mut bytes = vec![0; count];
        match self.stream.read_exact(&mut bytes) {
            Ok(()) => Ok(Some(bytes)),
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => Ok(None),
            Err(error) => Err(problem(&self.who, &format!("read of {count} bytes: {error}"))),
        }
    }
}

fn problem(who: &str, problem: &str) -> BedError {
    BedError::Peer { who: who.to_owned(), problem: problem.to_owned() }
}

/// A packet's bytes on the wire.
pub fn packet(payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), payload].concat()
}

/// The key of a password: the hexadecimal digits of its MD5 (reference 01 §9.1).
pub fn key_of_password(password: &str) -> String {
    format!("{:032x}", u128::from_be_bytes(Md5::digest(password).into()))
}

/// The payload that answers `auth cram-md5 <challenge> ssl=n`.
pub fn answer(key: &str, challenge: &str) -> Vec<u8> {
    let text = challenge.split_ascii_whitespace().nth(2).unwrap_or_default();
    let mut payload = sign_extended_base64(&hmac_md5(key.as_bytes(), text.as_bytes()));
    payload.push(0);
    payload
}

/// RFC 2104 with MD5; the keys of Bacula are never longer than a block.
fn hmac_md5(key: &[u8], text: &[u8]) -> [u8; 16] {
    let padded = |with: u8| {
        let mut block = [with; 64];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Md5::new().chain_update(padded(0x36)).chain_update(text).finalize();
    Md5::new().chain_update(padded(0x5c)).chain_update(inner).finalize().into()
}

/// Bacula's own encoding, with its two oddities (reference 01 §9.4).
fn sign_extended_base64(bytes: &[u8]) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |value: u32| ALPHABET.get((value & 63) as usize).copied().unwrap_or(b'A');
    let (mut register, mut bits, mut out) = (0u32, 0, Vec::new());
    for &byte in bytes {
        register = register << 8 | i32::from(byte.cast_signed()).cast_unsigned();
        bits += 8;
        while bits >= 6 {
            bits -= 6;
            out.push(digit(register >> bits));
        }
    }
    if bits > 0 {
        out.push(digit(register & ((1 << bits) - 1)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_those_of_the_reference() {
        let key = key_of_password("fdpw");
        assert_eq!(key, "af2904ba21987b283d3f14cb9cfb5579");
        // Reference 01 §9.4.
        let vectors = [
            (key.as_str(), "<254337502.1795226764@w-fd>", "0wdCU9UpTFgdv551L7+jzA"),
            (key.as_str(), "<110644299.1795226764@w-dir>", "x4Eyo7+N/7+cO51bX+/dOB"),
            ("FHDM-NHEO-KGBJ-ABPN-DFPH-IEFC-NMBL-EAPC", "<854732134.1795226766@w-sd>", "tF+hGB+xW//On5NTh69inD"),
            ("FHDM-NHEO-KGBJ-ABPN-DFPH-IEFC-NMBL-EAPC", "<2112588988.1795226766@w-fd>", "TA/168kV36/oJ40IKmAo5D"),
        ];
        for (key, challenge, wanted) in vectors {
            let payload = answer(key, &format!("auth cram-md5 {challenge} ssl=0\n"));
            assert_eq!(payload, [wanted.as_bytes(), b"\0"].concat());
        }
    }
}
