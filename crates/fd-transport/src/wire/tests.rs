//! Unit tests of `wire`.

use super::*;
use std::io::{Read, Write};
use std::net::TcpListener;

fn pair() -> (Wire, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (theirs, _) = listener.accept().unwrap();
    (Wire::new(ours, Duration::from_secs(5)).unwrap(), theirs)
}

#[test]
fn many_small_pieces_leave_in_one_write() {
    let (mut wire, mut peer) = pair();
    for _ in 0..1000 {
        wire.queue(b"0123456789").unwrap();
    }
    assert_eq!(wire.stats.writes, 0);
    wire.flush().unwrap();
    assert_eq!((wire.stats.writes, wire.stats.bytes_out), (1, 10_000));
    let mut got = vec![0; 10_000];
    peer.read_exact(&mut got).unwrap();
}

#[test]
fn a_read_that_waits_sends_first() {
    let (mut wire, mut peer) = pair();
    let echo = std::thread::spawn(move || {
        let mut got = [0; 5];
        peer.read_exact(&mut got).unwrap();
        peer.write_all(&got).unwrap();
        peer
    });
    wire.queue(b"hello").unwrap();
    wire.fill(Wait::Until(None)).unwrap();
    assert_eq!(wire.input.filled(), b"hello");
    drop(echo.join().unwrap());
    assert_eq!(wire.fill(Wait::Until(None)).unwrap(), 0);
    assert!(wire.eof);
}

#[test]
fn bulk_reads_gather_small_frames_and_return_the_last_ones() {
    let (mut wire, mut peer) = pair();
    wire.receive_in_bulk(true);
    let sender = std::thread::spawn(move || {
        (0..20_000).for_each(|_| peer.write_all(b"0123456789").unwrap());
        peer
    });
    while wire.stats.bytes_in < 200_000 {
        assert!(wire.fill(Wait::Until(None)).unwrap() > 0);
        let got = wire.input.filled().len();
        wire.input.consume(got);
    }
    wire.receive_in_bulk(false);
    let mut peer = sender.join().unwrap();
    let deadline = Instant::now() + Duration::from_millis(30);
    assert_eq!(wire.fill(Wait::Until(Some(deadline))).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert!(Instant::now() >= deadline, "the timeout is the caller's again");
    // A reader that waits for bulk data and gets nothing is not woken all the time, but at the
    // first byte.
    wire.receive_in_bulk(true);
    let deadline = Instant::now() + Duration::from_millis(30);
    assert_eq!(wire.fill(Wait::Until(Some(deadline))).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert_eq!(wire.bulk, Bulk::Paused);
    peer.write_all(b"x").unwrap();
    assert_eq!(wire.fill(Wait::Until(None)).unwrap(), 1);
    assert_eq!(wire.bulk, Bulk::On);
}

#[test]
fn reads_end_at_their_deadline() {
    let (mut wire, _peer) = pair();
    assert_eq!(wire.fill(Wait::No).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    let deadline = Instant::now() + Duration::from_millis(30);
    assert_eq!(wire.fill(Wait::Until(Some(deadline))).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert!(Instant::now() >= deadline);
}

#[test]
fn a_write_that_makes_no_progress_ends() {
    let (wire, _peer) = pair();
    let Wire { stream, .. } = wire;
    let stream = Arc::into_inner(stream).unwrap();
    let mut wire = Wire::new(stream, Duration::from_millis(50)).unwrap();
    let block = vec![0; OUTPUT_MAX];
    let error = (0..1000).find_map(|_| wire.queue(&block).err()).unwrap();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
}

#[test]
fn a_limited_write_is_cut_into_pieces() {
    let (mut wire, mut peer) = pair();
    wire.set_bandwidth(Bandwidth::new(1_000_000));
    // 0.4 s, but for the burst and for the last piece.
    let earliest = Instant::now() + Duration::from_millis(200);
    wire.queue(&vec![7; 400_000]).unwrap();
    assert!(Instant::now() >= earliest);
    assert!(wire.stats.writes >= 4);
    let mut got = vec![0; 400_000];
    peer.read_exact(&mut got).unwrap();
    assert!(got.iter().all(|&byte| byte == 7));
}
