//! A line to a host that is far away: what is sent comes half a round trip later, and no more than
//! the line carries. It is a relay on loopback: nothing is lost, and TCP's own slow start is that
//! of loopback. A sender may be ahead by what Linux allows a connection.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bed::{BedError, Result};

/// Bytes that are sent at once.
const PIECE: usize = 16 << 10;
/// Pieces of a connection that are on their way: with those whose acknowledgement is, 6 MiB, the
/// kernel's default limit.
const WINDOW: usize = 192;
/// How much the line may send at once after it has been idle.
const BURST: Duration = Duration::from_millis(5);

/// A line with two directions, shared by all connections over it.
#[derive(Debug, Clone)]
pub struct Line {
    one_way: Duration,
    up: Arc<Direction>,
    down: Arc<Direction>,
}

/// Ports of 127.0.0.1 at this end of a line and at the other one.
#[derive(Debug)]
pub struct Way {
    /// At this end.
    pub port: u16,
    target: Arc<AtomicU16>,
}

#[derive(Debug)]
struct Direction {
    bytes_per_second: f64,
    /// When all that has been sent is on its way.
    free: Mutex<Instant>,
}

impl Direction {
    fn new(mbit: u16) -> Arc<Self> {
        Arc::new(Self { bytes_per_second: f64::from(mbit) * 1e6 / 8.0, free: Mutex::new(Instant::now()) })
    }

    /// When so many bytes more are on their way.
    fn send(&self, bytes: usize) -> Instant {
        let now = Instant::now();
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = (*free).max(now.checked_sub(BURST).unwrap_or(now));
        *free = begin + Duration::from_secs_f64(crate::statistics::float(bytes as u64) / self.bytes_per_second);
        (*free).max(now)
    }
}

impl Line {
    /// A line of so many Mbit/s with this round trip.
    pub fn new(round_trip: Duration, mbit: u16) -> Self {
        Self { one_way: round_trip / 2, up: Direction::new(mbit), down: Direction::new(mbit) }
    }

    /// Opens a port that leads over the line. Both live as long as the process.
    pub fn way(&self) -> Result<Way> {
        let failed = |error: io::Error| BedError::Usage(format!("a port that leads far away: {error}"));
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let target = Arc::<AtomicU16>::default();
        let (line, to) = (self.clone(), Arc::clone(&target));
        thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                // A connection that can't be made ends, as the server's own would.
                let _ended = line.carry(&caller, to.load(Ordering::Relaxed));
            }
        });
        Ok(Way { port, target })
    }

    fn carry(&self, caller: &TcpStream, port: u16) -> io::Result<()> {
        let server = TcpStream::connect(("127.0.0.1", port))?;
        caller.set_nodelay(true)?;
        server.set_nodelay(true)?;
        // Making a connection takes a round trip.
        self.pass(caller.try_clone()?, server.try_clone()?, &self.up, self.one_way * 2);
        self.pass(server, caller.try_clone()?, &self.down, Duration::ZERO);
        Ok(())
    }

    fn pass(&self, mut from: TcpStream, mut to: TcpStream, direction: &Arc<Direction>, begin: Duration) {
        let (one_way, direction) = (self.one_way, Arc::clone(direction));
        let (sender, pieces) = sync_channel::<(Instant, Vec<u8>)>(WINDOW);
        thread::spawn(move || {
            thread::sleep(begin);
            let mut buffer = vec![0; PIECE];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                let gone = direction.send(count);
                thread::sleep(gone.saturating_duration_since(Instant::now()));
                let piece = buffer.get(..count).unwrap_or_default().to_vec();
                if sender.send((gone + one_way, piece)).is_err() {
                    break;
                }
            }
            // The other side has closed its end; what it still gets is read by its other thread.
            let _closed = from.shutdown(Shutdown::Read);
        });
        thread::spawn(move || {
            for (due, piece) in pieces {
                thread::sleep(due.saturating_duration_since(Instant::now()));
                if to.write_all(&piece).is_err() {
                    break;
                }
            }
            let _closed = to.shutdown(Shutdown::Write);
        });
    }
}

impl Way {
    /// From now on connections go to this port.
    pub fn leads_to(&self, port: u16) {
        self.target.store(port, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line to a server that answers each byte, and takes what comes.
    fn line(round_trip: u64, mbit: u16) -> (TcpStream, thread::JoinHandle<()>) {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let way = Line::new(Duration::from_millis(round_trip), mbit).way().unwrap();
        way.leads_to(server.local_addr().unwrap().port());
        let answerer = thread::spawn(move || {
            let (mut caller, _) = server.accept().unwrap();
            let mut bytes = vec![0; 1 << 20];
            while let Ok(1..) = caller.read(&mut bytes) {
                caller.write_all(b"x").unwrap();
            }
        });
        (TcpStream::connect(("127.0.0.1", way.port)).unwrap(), answerer)
    }

    #[test]
    fn an_answer_takes_a_round_trip_and_the_first_one_two() {
        let (mut near, answerer) = line(30, 1000);
        for round_trips in [2, 1] {
            let begun = Instant::now();
            near.write_all(b"x").unwrap();
            near.read_exact(&mut [0]).unwrap();
            assert!(begun.elapsed() >= Duration::from_millis(30) * round_trips, "{:?}", begun.elapsed());
        }
        drop(near);
        answerer.join().unwrap();
    }

    #[test]
    fn no_more_passes_than_the_line_carries() {
        let (mut near, answerer) = line(0, 100);
        let begun = Instant::now();
        // A tenth of a second's worth.
        near.write_all(&vec![0; 1_250_000]).unwrap();
        near.shutdown(Shutdown::Write).unwrap();
        io::copy(&mut near, &mut io::sink()).unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(90), "{:?}", begun.elapsed());
        answerer.join().unwrap();
    }
}
