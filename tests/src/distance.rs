//! A relay that makes a server far away: whatever it answers comes a round trip later, and so does
//! the first answer of a connection again, because making one takes a round trip, too.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{BedError, Result};

/// Pieces of an answer that are on their way at the same time, and the most bytes of one.
const PIECES: usize = 256;
const PIECE: usize = 64 << 10;

/// A port of 127.0.0.1 that leads to another one, far away. It lives as long as the process.
#[derive(Debug)]
pub struct Distance {
    port: u16,
}

impl Distance {
    /// Opens the port.
    pub fn to(port: u16, round_trip: Duration) -> Result<Self> {
        let failed = |error: io::Error| BedError::Usage(format!("a port that leads to another one: {error}"));
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let own = listener.local_addr().map_err(failed)?.port();
        thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                // A connection that can't be made ends, as the server's own would.
                let _ = relay(caller, port, round_trip);
            }
        });
        Ok(Self { port: own })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// Carries both directions of a connection.
fn relay(mut caller: TcpStream, port: u16, round_trip: Duration) -> io::Result<()> {
    let mut server = TcpStream::connect(("127.0.0.1", port))?;
    caller.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut answers, mut to) = (server.try_clone()?, caller.try_clone()?);
    thread::spawn(move || {
        thread::sleep(round_trip);
        let mut buffer = vec![0; PIECE];
        while let Ok(count @ 1..) = caller.read(&mut buffer) {
            if server.write_all(buffer.get(..count).unwrap_or_default()).is_err() {
                break;
            }
        }
        // Either side may have gone already.
        let _ = server.shutdown(Shutdown::Write);
    });
    let (sender, pieces) = sync_channel::<(Instant, Vec<u8>)>(PIECES);
    thread::spawn(move || {
        let mut buffer = vec![0; PIECE];
        while let Ok(count @ 1..) = answers.read(&mut buffer) {
            let piece = buffer.get(..count).unwrap_or_default().to_vec();
            if sender.send((Instant::now() + round_trip, piece)).is_err() {
                break;
            }
        }
    });
    thread::spawn(move || {
        for (due, piece) in pieces {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&piece).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_comes_a_round_trip_later() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let round_trip = Duration::from_millis(30);
        let distance = Distance::to(server.local_addr().unwrap().port(), round_trip).unwrap();
        let answerer = thread::spawn(move || {
            let (mut caller, _) = server.accept().unwrap();
            let mut byte = [0];
            while caller.read(&mut byte).unwrap() == 1 {
                caller.write_all(&byte).unwrap();
            }
        });
        // The first round trip begins with the connection.
        let mut begun = Instant::now();
        let mut near = TcpStream::connect(("127.0.0.1", distance.port())).unwrap();
        for round_trips in [2, 1] {
            near.write_all(b"x").unwrap();
            near.read_exact(&mut [0]).unwrap();
            let end = Instant::now();
            assert!(end >= begun + round_trip * round_trips);
            begun = end;
        }
        drop(near);
        answerer.join().unwrap();
    }
}
