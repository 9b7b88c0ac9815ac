//! Offers itself to a Director as its File Daemon, and prints what both say and what each command
//! means.
//!
//! `cargo run -p fd-session --example director [ADDRESS NAME PASSWORD]`: NAME is that of a Client
//! resource of the Director at ADDRESS, for example `127.0.0.1:9101`, with
//! `Allow FD Connections = yes` and `TLS PSK Enable = no`. It ends when the Director has been
//! silent for ten seconds. Without arguments the Director is one in memory.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::collections::VecDeque;
use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Read as _};
use std::net::TcpStream;
use std::time::Duration;

use fd_bsock::{Encoder, Parsed, Signal, cram, hello, parse};
use fd_session::authenticate::{Authentication, Challenges, Credentials};
use fd_session::command::{self, Access};
use fd_session::{Action, Input, Machine, Need};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => print!("{}", conversation(&mut Scripted::new("client-password"), "example-fd", "client-password")?),
        [address, name, password] => {
            let stream = TcpStream::connect(address)?;
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            let mut director = Connected { stream, encoder: Encoder::new(false), received: Vec::new() };
            print!("{}", conversation(&mut director, name, password)?);
        }
        _ => return Err("usage: director [ADDRESS NAME PASSWORD]".into()),
    }
    Ok(())
}

/// What comes from a Director.
enum Said {
    Frame(Vec<u8>),
    Signal(Signal),
}

/// A Director, wherever it is.
trait Director {
    fn send(&mut self, frame: &[u8]) -> Outcome<()>;
    /// `None`: it has gone, or has nothing more to say.
    fn receive(&mut self) -> Outcome<Option<Said>>;
}

/// Says hello, authenticates, and reads commands until the Director is silent or ends the session.
fn conversation(director: &mut impl Director, name: &str, password: &str) -> Outcome<String> {
    let mut lines = String::new();
    let greeting = hello::registration(name.as_bytes(), 0);
    writeln!(lines, "we:       {}", greeting.escape_ascii())?;
    director.send(&greeting)?;
    let (mut machine, mut actions) = Authentication::client(credentials(name, password));
    while let Some(action) = (!actions.is_empty()).then(|| actions.remove(0)) {
        match action {
            Action::Send(frame) => {
                writeln!(lines, "we:       {}", frame.escape_ascii())?;
                director.send(&frame)?;
            }
            Action::Receive(_) => {
                actions = match director.receive()? {
                    Some(Said::Frame(frame)) => {
                        writeln!(lines, "Director: {}", frame.escape_ascii())?;
                        machine.handle(Input::Frame(&frame))
                    }
                    Some(Said::Signal(signal)) => machine.handle(Input::Signal(signal)),
                    None => machine.handle(Input::Gone("the connection is closed")),
                };
            }
            Action::Done(_) => break,
            Action::Failed(error) => return Err(error.into()),
            other => return Err(format!("this example has no TLS: {other:?}").into()),
        }
    }
    while let Some(said) = director.receive()? {
        match said {
            Said::Signal(signal) => writeln!(lines, "Director: {signal}")?,
            Said::Frame(frame) => {
                writeln!(lines, "Director: {}", frame.escape_ascii())?;
                // Two lines of its own greet us; all that follows are commands.
                if hello::is_director_acceptance(&frame) || frame == hello::REGISTERED {
                    continue;
                }
                match command::read(&frame, Access::default(), |_| false) {
                    Ok(command) => writeln!(lines, "          {command:?}")?,
                    Err(refusal) => {
                        let words = [refusal.fatal, refusal.reply].map(Option::unwrap_or_default).concat();
                        writeln!(lines, "          refused: {}", words.escape_ascii())?;
                    }
                }
            }
        }
    }
    Ok(lines)
}

fn credentials(name: &str, password: &str) -> Credentials {
    Credentials {
        own_name: name.to_owned(),
        key: cram::key_from_password(password.as_bytes()).into_bytes(),
        need: Need::default(),
        tls_authenticate: false,
        require_tls: false,
        peer_may_have_our_name: false,
        challenges: Challenges::default(),
        // A program that is not an example takes both from the system.
        random: 254_337_502,
        time: 1_795_226_764,
    }
}

/// A Director in memory: the other side of the same machine, and then some commands.
struct Scripted {
    password: String,
    machine: Option<Authentication>,
    said: VecDeque<Said>,
}

impl Scripted {
    fn new(password: &str) -> Self {
        Self { password: password.to_owned(), machine: None, said: VecDeque::new() }
    }
}

impl Director for Scripted {
    fn send(&mut self, frame: &[u8]) -> Outcome<()> {
        let actions = if let Some(machine) = &mut self.machine {
            machine.handle(Input::Frame(frame))
        } else {
            let (machine, actions) =
                Authentication::server(credentials("example-dir", &self.password), Need::default());
            self.machine = Some(machine);
            actions
        };
        for action in actions {
            match action {
                Action::Send(frame) => self.said.push_back(Said::Frame(frame)),
                Action::Done(_) => {
                    let lines: [&[u8]; 6] = [
                        b"1000 OK: 10002 example-dir Version: 15.0.3 (25 March 2025)\n",
                        b"OK\n",
                        b"level = accurate_incremental  mtime_only=0 \n",
                        b"estimate listing=1\n",
                        b"verify level=Data\n",
                        b"level = sideways\n",
                    ];
                    self.said.extend(lines.map(|line| Said::Frame(line.to_vec())));
                    self.said.push_back(Said::Signal(Signal::Terminate));
                }
                Action::Failed(error) => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> Outcome<Option<Said>> {
        Ok(self.said.pop_front())
    }
}

/// A Director at the other end of a connection.
struct Connected {
    stream: TcpStream,
    encoder: Encoder,
    received: Vec<u8>,
}

impl Director for Connected {
    fn send(&mut self, frame: &[u8]) -> Outcome<()> {
        let mut bytes = Vec::new();
        self.encoder.data(&mut bytes, frame)?;
        Ok(io::Write::write_all(&mut self.stream, &bytes)?)
    }

    fn receive(&mut self) -> Outcome<Option<Said>> {
        loop {
            let (said, consumed) = match parse(&self.received)? {
                Parsed::Data { payload, consumed, .. } => (Said::Frame(payload.to_vec()), consumed),
                Parsed::Empty { consumed } => (Said::Frame(Vec::new()), consumed),
                Parsed::Signal { signal, consumed } => (Said::Signal(signal), consumed),
                Parsed::Need(_) => {
                    let mut more = [0; 4096];
                    let count = match self.stream.read(&mut more) {
                        Ok(0) => return Ok(None),
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                        read => read?,
                    };
                    self.received.extend_from_slice(more.get(..count).unwrap_or_default());
                    continue;
                }
            };
            self.received.drain(..consumed);
            return Ok(Some(said));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_director_in_memory_is_understood() -> Outcome<()> {
        let lines = conversation(&mut Scripted::new("secret"), "example-fd", "secret")?;
        assert!(
            lines.starts_with("we:       Hello example-fd fdcallsdir 1 tlspsk=0\\n\nDirector: auth cram-md5 <"),
            "{lines}"
        );
        assert!(lines.contains("\n          Estimate(EstimateOrder { listing: true, limit: 0 })\n"), "{lines}");
        assert!(lines.contains("          refused: job.c:2756 Unknown backup level: sideways\\n\n"), "{lines}");
        assert!(lines.ends_with("Director: BNET_TERMINATE\n"), "{lines}");
        Ok(())
    }

    #[test]
    fn a_wrong_password_is_an_error() {
        let error = conversation(&mut Scripted::new("secret"), "example-fd", "wrong").unwrap_err();
        assert!(error.to_string().starts_with("wrong password: "), "{error}");
    }

    #[test]
    fn frames_of_a_connection_arrive_in_pieces() -> Outcome<()> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let stream = TcpStream::connect(listener.local_addr()?)?;
        let mut director = Connected { stream, encoder: Encoder::new(false), received: Vec::new() };
        let (mut peer, _) = listener.accept()?;
        for byte in b"\0\0\0\x03OK\n\xff\xff\xff\xfc" {
            io::Write::write_all(&mut peer, &[*byte])?;
        }
        drop(peer);
        assert!(matches!(director.receive()?, Some(Said::Frame(frame)) if frame == b"OK\n"));
        assert!(matches!(director.receive()?, Some(Said::Signal(Signal::Terminate))));
        assert!(director.receive()?.is_none());
        Ok(())
    }
}
