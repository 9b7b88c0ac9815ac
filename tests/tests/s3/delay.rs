//! A relay that takes its time: each direction half a round trip.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

/// A port of 127.0.0.1 that leads to another one, far away. It lives as long as the test's process.
pub(crate) struct Distance {
    pub(crate) port: u16,
    /// Connections that are open, and most that were.
    open: Arc<(AtomicUsize, AtomicUsize)>,
}

impl Distance {
    pub(crate) fn to(port: u16, round_trip: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        let open = Arc::<(AtomicUsize, AtomicUsize)>::default();
        let counts = Arc::clone(&open);
        let way = round_trip / 2;
        thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                let Ok(called) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                for stream in [&caller, &called] {
                    stream.set_nodelay(true).unwrap();
                }
                let now = counts.0.fetch_add(1, Ordering::Relaxed) + 1;
                counts.1.fetch_max(now, Ordering::Relaxed);
                carry(called.try_clone().unwrap(), caller.try_clone().unwrap(), way, None);
                carry(caller, called, way, Some(Arc::clone(&counts)));
            }
        });
        Self { port: own, open }
    }

    /// Most connections that were open at the same time.
    pub(crate) fn most(&self) -> usize {
        self.open.1.load(Ordering::Relaxed)
    }
}

/// Carries what comes from one side to the other, later.
fn carry(mut from: TcpStream, mut to: TcpStream, way: Duration, counts: Option<Arc<(AtomicUsize, AtomicUsize)>>) {
    let (sender, receiver) = sync_channel::<(Instant, Vec<u8>)>(64);
    thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if sender.send((Instant::now() + way, buffer[..count].to_vec())).is_err() {
                break;
            }
        }
        if let Some(counts) = counts {
            counts.0.fetch_sub(1, Ordering::Relaxed);
        }
    });
    thread::spawn(move || {
        for (due, bytes) in receiver {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _gone = to.shutdown(Shutdown::Write);
    });
}
