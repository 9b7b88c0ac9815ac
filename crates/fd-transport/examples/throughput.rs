//! What the way through a channel costs: CPU seconds per GB and MB per second on loopback, sender
//! and receiver apart.
//!
//! `cargo run --release -p fd-transport --example throughput [GB]`
#![expect(clippy::print_stdout, reason = "a program for people to run")]

use std::error::Error;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use fd_bsock::{CommCount, Encoder, Signal};
use fd_transport::{Channel, IDLE_LIMIT, Limits, Received, TlsSecret, TlsSide};
use rustix::time::{ClockId, clock_gettime};

const KEY: &[u8] = b"af2904ba21987b283d3f14cb9cfb5579";
const GB: f64 = 1e9;

type Failure = Box<dyn Error + Send + Sync>;

/// CPU seconds of this thread so far.
fn cpu() -> Result<f64, Failure> {
    Ok(Duration::try_from(clock_gettime(ClockId::ThreadCPUTime))?.as_secs_f64())
}

/// What one side used.
struct Cost {
    cpu: f64,
    wall: f64,
    calls: u64,
}

fn receive(mut channel: Channel) -> Result<Cost, Failure> {
    let (start, before) = (Instant::now(), cpu()?);
    while channel.recv(IDLE_LIMIT)? != Received::Signal(Signal::Terminate) {}
    let cost = Cost { cpu: cpu()? - before, wall: start.elapsed().as_secs_f64(), calls: channel.wire_stats().reads };
    channel.close()?;
    Ok(cost)
}

fn send(mut channel: Channel, frame: usize, bytes: usize, whole: bool) -> Result<Cost, Failure> {
    let payload: Vec<u8> = (0_u8..=255).cycle().take(frame).collect();
    let mut frames = Vec::new();
    // Workers hand over some frames at a time.
    let batch = (65_536 / frame).max(1);
    let mut encoder = Encoder::new(false);
    for _ in 0..batch {
        encoder.data(&mut frames, &payload)?;
    }
    let count: CommCount = encoder.take_count();
    let (start, before) = (Instant::now(), cpu()?);
    for _ in 0..bytes / frame / batch {
        if whole {
            channel.send_encoded(&frames, count)?;
        } else {
            for _ in 0..batch {
                channel.send(&payload)?;
            }
        }
    }
    channel.signal(Signal::Terminate)?;
    channel.flush()?;
    let cost = Cost { cpu: cpu()? - before, wall: start.elapsed().as_secs_f64(), calls: channel.wire_stats().writes };
    channel.close()?;
    Ok(cost)
}

fn run(name: &str, tls: bool, frame: usize, bytes: usize, whole: bool) -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let socket = TcpStream::connect(listener.local_addr()?)?;
    let mut server = Channel::accept(listener.accept()?.0, Limits::default())?;
    let reader = thread::spawn(move || {
        if tls {
            server.start_tls(TlsSide::Server, TlsSecret::Key(KEY))?;
        }
        receive(server)
    });
    let mut client = Channel::accept(socket, Limits::default())?;
    if tls {
        client.start_tls(TlsSide::Client, TlsSecret::Key(KEY))?;
    }
    let cipher = client.cipher().unwrap_or_else(|| "clear".to_owned());
    let sent = send(client, frame, bytes, whole)?;
    let received = reader.join().map_err(|_| "the receiver failed")??;
    #[expect(clippy::cast_precision_loss, reason = "a few GB")]
    let gigabytes = bytes as f64 / GB;
    for (side, cost) in [("send", sent), ("recv", received)] {
        println!(
            "{name:<28} {side} {:>6.0} MB/s {:>6.3} CPU s/GB {:>8} calls  {cipher}",
            gigabytes * 1000.0 / cost.wall,
            cost.cpu / gigabytes,
            cost.calls
        );
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let gigabytes: usize = std::env::args().nth(1).map_or(Ok(2), |text| text.parse())?;
    let bytes = gigabytes * 1_000_000_000;
    for tls in [false, true] {
        run("64 KiB frames", tls, 65_536, bytes, false)?;
        run("64 KiB frames, encoded", tls, 65_536, bytes, true)?;
        run("100 byte frames", tls, 100, bytes / 2, false)?;
        run("100 byte frames, encoded", tls, 100, bytes / 2, true)?;
    }
    Ok(())
}
