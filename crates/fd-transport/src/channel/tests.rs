//! Pairs of channels on loopback, and peers that misbehave.

mod handshake;

use super::*;
use crate::{TlsSecret, TlsSide};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Instant;

use fd_bsock::{FrameError, Signal};
use openssl::ssl::{Ssl, SslContextBuilder, SslMethod, SslStream, SslVersion};
use socket2::SockRef;

const KEY: &[u8] = b"af2904ba21987b283d3f14cb9cfb5579";
const SECONDS: Duration = Duration::from_secs(20);
const MOMENT: Duration = Duration::from_millis(20);

fn limits() -> Limits {
    Limits { handshake: SECONDS, write_stall: SECONDS, goodbye: SECONDS }
}

/// An accepted channel and the socket that connected to it.
fn raw_pair(limits: Limits) -> (Channel, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    (Channel::accept(server, limits).unwrap(), client)
}

/// Server and client.
fn pair() -> (Channel, Channel) {
    let (server, socket) = raw_pair(limits());
    let peer = Peer { kind: PeerKind::Storage, host: "sd.example.org".to_owned(), port: 9103 };
    (server, Channel::over(socket, peer, limits()).unwrap())
}

fn tls_pair() -> (Channel, Channel) {
    let (mut server, mut client) = pair();
    thread::scope(|scope| {
        scope.spawn(|| client.start_tls(TlsSide::Client, TlsSecret::Key(KEY)).unwrap());
        server.start_tls(TlsSide::Server, TlsSecret::Key(KEY)).unwrap();
    });
    (server, client)
}

fn data(channel: &mut Channel) -> Vec<u8> {
    match channel.recv(SECONDS).unwrap() {
        Received::Data(data) => data.to_vec(),
        other => panic!("{other:?}"),
    }
}

fn fault(result: Result<Received<'_>, ChannelError>) -> Fault {
    result.unwrap_err().fault
}

#[test]
fn channels_move_between_threads() {
    fn check<T: Send + 'static>() {}
    fn check_shared<T: Send + Sync + Clone + 'static>() {}
    check::<Channel>();
    check_shared::<Canceler>();
    check_shared::<Bandwidth>();
}

#[test]
fn a_frame_larger_than_wanted_is_refused_by_its_header() {
    for (wanted, announced) in [(500, 501_u32), (500, 0x4000_3e80), (usize::MAX, 1_000_001)] {
        let (mut server, mut socket) = raw_pair(limits());
        server.limit_frames(wanted);
        socket.write_all(&announced.to_be_bytes()).unwrap();
        let len = usize::try_from(announced & 0x1fff_ffff).unwrap();
        assert!(matches!(fault(server.recv(SECONDS)), Fault::Frame(FrameError::TooBig { len: said }) if said == len));
    }
    let (mut server, mut client) = pair();
    server.limit_frames(500);
    for len in [500, 501] {
        client.send(&vec![b'a'; len]).unwrap();
        client.flush().unwrap();
        if len == 500 {
            assert_eq!(data(&mut server).len(), len);
            server.limit_frames(1000);
        }
    }
    assert_eq!(data(&mut server).len(), 501, "the limit can be lifted");
}

#[test]
fn frames_of_all_kinds_arrive_in_clear_and_in_tls() {
    for (mut server, mut client) in [pair(), tls_pair()] {
        let sizes = [1, 3, 100, 16_379, 16_380, 16_381, 65_536, 262_144, 1_000_000];
        thread::scope(|scope| {
            scope.spawn(|| {
                for compress in [false, true] {
                    client.set_compression(compress);
                    for size in sizes {
                        client.send(&vec![b'a'; size]).unwrap();
                    }
                    client.send(b"").unwrap();
                    client.signal(Signal::Eod).unwrap();
                }
                client.flush().unwrap();
            });
            for _ in 0..2 {
                for size in sizes {
                    assert!(data(&mut server) == vec![b'a'; size], "{size}");
                }
                assert_eq!(server.recv(SECONDS).unwrap(), Received::Empty);
                assert_eq!(server.recv(SECONDS).unwrap(), Received::Signal(Signal::Eod));
            }
        });
        let plain: usize = sizes.iter().sum();
        assert_eq!(client.counts().plain, i64::try_from(2 * plain).unwrap() - 2);
        assert!(client.counts().sent < client.counts().plain);
    }
}

/// Frames of a read session, of which the last ones of a batch are still incomplete.
#[test]
fn gathered_frames_are_delivered_as_they_were_sent() {
    const BATCH: usize = 256 * 1024;
    let sizes = [12, 65_536, 0, 65_536, 30, 16_384, 16_379, 1_000_000, 3, 100, 200_000];
    let payload =
        |turn: usize, size: usize| -> Vec<u8> { (0..size).map(|at| (at / 9 + turn).to_le_bytes()[0]).collect() };
    for (mut server, mut client) in [pair(), tls_pair()] {
        thread::scope(|scope| {
            scope.spawn(|| {
                for turn in 0..40 {
                    client.set_compression(turn % 3 == 1);
                    for size in sizes {
                        client.send(&payload(turn, size)).unwrap();
                        if size == 100 {
                            client.signal(Signal::Heartbeat).unwrap();
                        }
                    }
                }
                client.signal(Signal::Eod).unwrap();
                client.send(b"behind").unwrap();
                client.flush().unwrap();
            });
            let mut expected = (0..40).flat_map(|turn| sizes.map(|size| payload(turn, size)));
            let mut pool = vec![Frames::default(), Frames::default()];
            let mut ended = false;
            for batch in 0.. {
                let mut frames = pool.remove(0);
                frames.clear();
                while frames.total() < BATCH && !ended {
                    let patience = Some(SECONDS).filter(|_| frames.is_empty());
                    match server.gather(&mut frames, patience).unwrap() {
                        Some(Gathered::Signal(Signal::Eod)) => ended = true,
                        Some(_) => {}
                        // Every second batch is taken as soon as there is no more, the others wait.
                        None if batch % 2 == 0 => break,
                        None => thread::yield_now(),
                    }
                }
                server.deliver(&mut frames);
                for number in 0..frames.len() {
                    assert!(frames.get(number).unwrap() == expected.next().unwrap(), "frame {number} of batch {batch}");
                }
                pool.push(frames);
                if ended {
                    break;
                }
            }
            assert_eq!(expected.next(), None);
            assert_eq!(data(&mut server), b"behind");
        });
    }
}

#[test]
fn encoded_frames_of_workers_keep_their_order() {
    for (mut server, mut client) in [pair(), tls_pair()] {
        let mut encoder = Encoder::new(false);
        let sizes = [10, 70_000, 5, 16_380, 300_000, 16_384, 40_000];
        thread::scope(|scope| {
            scope.spawn(|| {
                for (n, size) in sizes.into_iter().enumerate() {
                    client.send(format!("before {n}").as_bytes()).unwrap();
                    let mut frames = Vec::new();
                    encoder.data(&mut frames, &vec![b'w'; size]).unwrap();
                    encoder.signal(&mut frames, Signal::Eod);
                    client.send_encoded(&frames, encoder.take_count()).unwrap();
                }
                client.flush().unwrap();
            });
            for (n, size) in sizes.into_iter().enumerate() {
                assert_eq!(data(&mut server), format!("before {n}").as_bytes());
                assert!(data(&mut server) == vec![b'w'; size]);
                assert_eq!(server.recv(SECONDS).unwrap(), Received::Signal(Signal::Eod));
            }
        });
        let texts = i64::try_from("before 0".len() * sizes.len()).unwrap();
        let frames: usize = sizes.iter().sum();
        assert_eq!(client.counts().plain, texts + i64::try_from(frames - sizes.len()).unwrap());
    }
}

#[test]
fn a_hello_of_64_bytes_and_terminate_count_60() {
    let (_server, mut client) = pair();
    client.send(&[b'x'; 64]).unwrap();
    client.signal(Signal::Terminate).unwrap();
    assert_eq!(client.counts(), CommCount { plain: 60, sent: 60 });
}

#[test]
fn frames_arrive_when_sent_byte_by_byte() {
    let (mut server, mut socket) = raw_pair(limits());
    socket.set_nodelay(true).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            for byte in b"\0\0\0\x05hello\xff\xff\xff\xff\0\0\0\0\x40\0\0\x03\x20hi" {
                socket.write_all(&[*byte]).unwrap();
            }
        });
        assert_eq!(data(&mut server), b"hello");
        assert_eq!(server.recv(SECONDS).unwrap(), Received::Signal(Signal::Eod));
        assert_eq!(server.recv(SECONDS).unwrap(), Received::Empty);
        assert_eq!(data(&mut server), b"hi");
    });
}

#[test]
fn a_close_within_a_frame_differs_from_one_between_frames() {
    let (mut server, mut socket) = raw_pair(limits());
    socket.write_all(b"\0\0\0\x05hel").unwrap();
    drop(socket);
    let error = server.recv(SECONDS).unwrap_err();
    let port = server.peer().port;
    assert_eq!(error.to_string(), format!("Read expected 5 got 3 from client:127.0.0.1:{port}"));
    assert!(matches!(fault(server.recv(SECONDS)), Fault::HasErrors));
    assert!(matches!(server.send(b"x").unwrap_err().fault, Fault::HasErrors));

    for (mut server, client) in [pair(), tls_pair()] {
        drop(client);
        assert!(matches!(fault(server.recv(SECONDS)), Fault::Closed));
    }
}

#[test]
fn a_length_of_half_a_gigabyte_allocates_nothing() {
    let (mut server, mut socket) = raw_pair(limits());
    socket.write_all(b"\x7f\xff\xff\xff\0\0\0\0lots of data").unwrap();
    let error = server.recv(SECONDS).unwrap_err();
    let port = server.peer().port;
    assert_eq!(
        error.to_string(),
        format!(
            "Packet size=536870911 too big from \"client:127.0.0.1:{port}\". Maximum permitted 1000000. Terminating \
             connection."
        )
    );
    assert!(matches!(server.send(b"x").unwrap_err().fault, Fault::Terminated));
}

#[test]
fn a_silent_peer_is_asked_for_after_the_time_that_was_set() {
    let (server, _socket) = raw_pair(limits());
    let time =
        || SockRef::from(&*server.link.wire().unwrap().socket().upgrade().unwrap()).tcp_keepalive_time().unwrap();
    let kernels = time();
    for (idle, wanted) in [(0, kernels.as_secs()), (300, 300), (40_000, 32_767)] {
        server.keep_alive(Duration::from_secs(idle));
        assert_eq!(time().as_secs(), wanted, "{idle}");
    }
}

#[test]
fn a_bad_block_is_an_error() {
    let (mut server, mut socket) = raw_pair(limits());
    socket.write_all(b"\x40\0\0\x03\xff\xff\xff").unwrap();
    assert!(matches!(fault(server.recv(SECONDS)), Fault::Frame(FrameError::BadBlock { len: 3 })));
    assert!(matches!(fault(server.recv(SECONDS)), Fault::HasErrors));
}

#[test]
fn a_timeout_in_the_middle_of_a_frame_loses_nothing() {
    let (mut server, mut socket) = raw_pair(limits());
    socket.write_all(b"\0\0\0\x05he").unwrap();
    let error = server.recv(MOMENT).unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert!(server.try_recv().unwrap().is_none());
    socket.write_all(b"llo").unwrap();
    assert_eq!(data(&mut server), b"hello");

    let (mut server, mut client) = tls_pair();
    assert!(server.recv(MOMENT).unwrap_err().is_timeout());
    assert!(server.try_recv().unwrap().is_none());
    client.send(b"late").unwrap();
    client.flush().unwrap();
    assert_eq!(data(&mut server), b"late");
}

#[test]
fn a_closed_peer_is_detected_before_its_last_data_is_read() {
    for (server, mut client) in [pair(), tls_pair()] {
        let watcher = server.canceler();
        client.send(b"last words").unwrap();
        client.flush().unwrap();
        assert!(!watcher.peer_has_left());
        drop(client);
        while !watcher.peer_has_left() {
            thread::yield_now();
        }
    }
}

#[test]
fn an_answer_is_noticed_and_not_taken_and_so_is_the_end() {
    let (mut server, mut client) = pair();
    let watcher = server.canceler();
    assert!(!watcher.peer_answers_within(MOMENT));
    client.send(b"an answer").unwrap();
    client.flush().unwrap();
    assert!(watcher.peer_answers_within(IDLE_LIMIT));
    assert_eq!(data(&mut server), b"an answer");
    assert!(!watcher.peer_answers_within(MOMENT));
    drop(client);
    assert!(watcher.peer_answers_within(IDLE_LIMIT));
}

/// What the peer says is dropped while a write stands still, but for this.
const REFUSAL: &[u8] = b"3999 Failed append\n";

fn drop_what_comes(channel: &mut Channel) {
    let is_text = |text: &[u8]| text != REFUSAL;
    channel.drop_what_comes(Some(Unwanted { every: Duration::from_millis(1), is_text }));
}

/// The kernel keeps few bytes for this channel.
fn make_narrow(channel: &Channel) {
    let socket = channel.link.wire().unwrap().socket().upgrade().unwrap();
    socket2::SockRef::from(&*socket).set_send_buffer_size(16 * 1024).unwrap();
    socket2::SockRef::from(&*socket).set_recv_buffer_size(16 * 1024).unwrap();
}

#[test]
fn a_sender_and_a_peer_that_reads_only_when_all_is_said_go_on() {
    const SIZE: usize = 300_000;
    for (mut storage, mut sender) in [pair(), tls_pair()] {
        make_narrow(&storage);
        make_narrow(&sender);
        drop_what_comes(&mut sender);
        thread::scope(|scope| {
            scope.spawn(|| {
                let noise: Vec<u8> = (0..1000_u32).map(|n| n.wrapping_mul(n).to_le_bytes()[1]).collect();
                storage.set_compression(true);
                for _ in 0..2000 {
                    storage.send(&[b'a'; 1000]).unwrap();
                    storage.send(b"waiting for a volume").unwrap();
                    storage.send(&noise).unwrap();
                    storage.signal(Signal::Heartbeat).unwrap();
                }
                storage.send(REFUSAL).unwrap();
                storage.signal(Signal::Eod).unwrap();
                storage.flush().unwrap();
                for n in 0..20_u8 {
                    assert!(data(&mut storage) == vec![n; SIZE + usize::from(n)], "{n}");
                    assert!(data(&mut storage) == vec![n; SIZE], "{n}");
                }
            });
            let mut encoder = Encoder::new(false);
            for n in 0..20_u8 {
                sender.send(&vec![n; SIZE + usize::from(n)]).unwrap();
                let mut frames = Vec::new();
                encoder.data(&mut frames, &vec![n; SIZE]).unwrap();
                sender.send_encoded(&frames, encoder.take_count()).unwrap();
            }
            sender.flush().unwrap();
        });
        sender.drop_what_came();
        assert_eq!(data(&mut sender), REFUSAL, "an answer is not dropped");
        sender.drop_what_came();
        assert!(matches!(fault(sender.recv(MOMENT)), Fault::TimedOut { .. }), "the signal behind it is");
    }
}

#[test]
fn what_ends_a_connection_is_not_dropped() {
    for (mut storage, mut sender) in [pair(), tls_pair()] {
        drop_what_comes(&mut sender);
        storage.signal(Signal::Heartbeat).unwrap();
        storage.signal(Signal::Terminate).unwrap();
        storage.flush().unwrap();
        assert!(sender.canceler().peer_answers_within(IDLE_LIMIT));
        sender.drop_what_came();
        assert_eq!(sender.recv(SECONDS).unwrap(), Received::Signal(Signal::Terminate));
    }
    for (storage, mut sender) in [pair(), tls_pair()] {
        drop_what_comes(&mut sender);
        drop(storage);
        assert!(sender.canceler().peer_answers_within(IDLE_LIMIT));
        sender.drop_what_came();
        assert!(matches!(fault(sender.recv(SECONDS)), Fault::Closed));
    }
}

#[test]
fn a_write_with_pauses_ends_when_it_stands_still_for_too_long() {
    let (mut server, _socket) = raw_pair(Limits { write_stall: MOMENT, ..limits() });
    drop_what_comes(&mut server);
    let block = vec![0; 1_000_000];
    let error = (0..1000).find_map(|_| server.send(&block).err()).unwrap();
    assert!(matches!(error.fault, Fault::Write { .. }), "{error}");
    assert_eq!(error.cause(), "Connection timed out");
}

#[test]
fn a_canceler_wakes_a_reader_and_a_writer() {
    for (mut server, client) in [pair(), tls_pair()] {
        let canceler = server.canceler();
        thread::scope(|scope| {
            let reader = scope.spawn(|| fault(server.recv(IDLE_LIMIT)));
            canceler.cancel();
            assert!(matches!(reader.join().unwrap(), Fault::Canceled));
        });
        assert!(matches!(server.send(b"x").unwrap_err().fault, Fault::Canceled));

        drop(client);

        let (mut server, peer) = pair();
        let canceler = server.canceler();
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let block = vec![0; 1_000_000];
                loop {
                    if let Err(error) = server.send(&block) {
                        return error.fault;
                    }
                }
            });
            canceler.clone().cancel();
            assert!(matches!(writer.join().unwrap(), Fault::Canceled));
        });
        drop(peer);
        canceler.cancel();
    }
}

#[test]
fn nothing_is_sent_after_terminate() {
    let (mut server, mut client) = pair();
    client.signal(Signal::Terminate).unwrap();
    client.flush().unwrap();
    assert_eq!(server.recv(SECONDS).unwrap(), Received::Signal(Signal::Terminate));
    assert!(matches!(server.send(b"x").unwrap_err().fault, Fault::Terminated));
    assert!(matches!(server.signal(Signal::Terminate).unwrap_err().fault, Fault::Terminated));
    assert!(matches!(fault(server.recv(SECONDS)), Fault::Terminated));
    thread::scope(|scope| {
        scope.spawn(|| server.close().unwrap());
        client.close().unwrap();
    });
}

#[test]
fn closing_delivers_everything_and_says_goodbye() {
    let (mut server, socket) = raw_pair(limits());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut tls = handshake::other_tls(socket, "TLS_AES_128_GCM_SHA256", SslVersion::TLS1_3);
            tls.connect().unwrap();
            let mut all = Vec::new();
            // An end without close_notify would be an error here.
            tls.read_to_end(&mut all).unwrap();
            assert_eq!(all, b"\0\0\0\x04last\xff\xff\xff\xfc");
            tls.shutdown().unwrap();
        });
        server.start_tls(TlsSide::Server, TlsSecret::Key(KEY)).unwrap();
        server.send(b"last").unwrap();
        server.signal(Signal::Terminate).unwrap();
        server.close().unwrap();
    });
}

#[test]
fn closing_ends_although_the_peer_does_not_close() {
    let (server, socket) = raw_pair(Limits { goodbye: MOMENT, ..limits() });
    let earliest = Instant::now() + MOMENT;
    server.close().unwrap();
    assert!(Instant::now() >= earliest);
    drop(socket);
}

/// As a Storage Daemon or Director after a cancel, with a `close_notify` or without a word.
#[test]
fn no_wait_for_a_peer_that_keeps_the_connection_of_tls_open_is_endless() {
    for (says_goodbye, cancels) in [(false, false), (false, true), (true, false), (true, true)] {
        let (mut server, socket) = raw_pair(Limits { goodbye: MOMENT, ..limits() });
        let kept = thread::scope(|scope| {
            let client = scope.spawn(|| {
                let mut tls = handshake::other_tls(socket, "TLS_AES_128_GCM_SHA256", SslVersion::TLS1_3);
                tls.connect().unwrap();
                if says_goodbye {
                    tls.shutdown().unwrap();
                }
                tls
            });
            server.start_tls(TlsSide::Server, TlsSecret::Key(KEY)).unwrap();
            client.join().unwrap()
        });
        let canceler = server.canceler();
        assert!(!canceler.peer_leaves_within(MOMENT), "it holds the connection");
        if cancels {
            thread::scope(|scope| {
                let waiting = scope.spawn(|| server.recv(IDLE_LIMIT).map(drop));
                canceler.cancel();
                assert!(waiting.join().unwrap().is_err());
            });
            assert!(canceler.peer_has_left(), "the connection is shut down here");
        }
        server.close().unwrap();
        drop(kept);
    }
}

#[test]
fn a_broken_pipe_has_the_text_of_the_reference() {
    let (mut server, mut client) = pair();
    server.send(b"unread").unwrap();
    server.flush().unwrap();
    assert_eq!(data(&mut client), b"unread");
    drop(server);
    let block = vec![0; 3392];
    let error = (0..1_000_000).find_map(|_| client.send(&block).and_then(|()| client.flush()).err()).unwrap();
    let text = error.to_string();
    assert!(text.starts_with("Write error sending 3396 bytes to Storage daemon:sd.example.org:9103: ERR="), "{text}");
    assert!(["Broken pipe", "Connection reset by peer"].contains(&error.cause().as_str()), "{text}");
    let text = client.send(b"x").unwrap_err().to_string();
    assert_eq!(text, "Socket has errors=1 on call to Storage daemon:sd.example.org:9103");
}

#[test]
fn an_oversized_frame_is_refused_and_the_channel_stays_usable() {
    let (mut server, mut client) = pair();
    let error = client.send(&vec![0; 1_000_001]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Write socket has insane msglen=1000001 on call to Storage daemon:sd.example.org:9103"
    );
    client.send(b"ok").unwrap();
    client.flush().unwrap();
    assert_eq!(data(&mut server), b"ok");
}

#[test]
fn system_calls_are_few() {
    for (mut server, mut client) in [pair(), tls_pair()] {
        let (wrote, read) = (client.wire_stats().writes, server.wire_stats().reads);
        for _ in 0..1000 {
            client.send(&[b'x'; 100]).unwrap();
            client.signal(Signal::Eod).unwrap();
        }
        client.flush().unwrap();
        assert_eq!(client.wire_stats().writes, wrote + 1);
        for _ in 0..1000 {
            assert_eq!(data(&mut server).len(), 100);
            assert_eq!(server.recv(SECONDS).unwrap(), Received::Signal(Signal::Eod));
        }
        // 108 000 bytes through a buffer that begins with 16 KiB and doubles.
        let reads = server.wire_stats().reads - read;
        assert!(reads <= 10, "{reads} reads");
    }
}

#[test]
fn bandwidth_counts_encrypted_bytes() {
    let (mut server, mut client) = tls_pair();
    client.set_bandwidth(Bandwidth::new(2_000_000));
    // Half a second, but for the burst and for the last piece.
    let earliest = Instant::now() + Duration::from_millis(300);
    thread::scope(|scope| {
        scope.spawn(|| {
            client.send(&vec![b'x'; 1_000_000]).unwrap();
            client.flush().unwrap();
        });
        assert_eq!(data(&mut server).len(), 1_000_000);
    });
    assert!(Instant::now() >= earliest);
}
