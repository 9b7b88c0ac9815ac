//! Beginning and ending TLS, with peers that misbehave.

use super::*;

#[test]
fn a_handshake_takes_no_longer_than_was_said_last() {
    let (mut server, _silent) = raw_pair(limits());
    server.limit_handshake(MOMENT);
    let error = server.start_tls(TlsSide::Server, TlsSecret::Key(KEY)).unwrap_err();
    assert!(matches!(error.fault, Fault::HandshakeTimedOut { after } if after == MOMENT), "{error}");
}

#[test]
fn a_pre_shared_key_negotiates_tls_1_3_with_a_sha_256_suite() {
    let (server, client) = tls_pair();
    let cipher = server.cipher().unwrap();
    assert_eq!(client.cipher(), Some(cipher.clone()));
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("aes") {
        assert_eq!(cipher, "TLSv1.3 TLS_AES_128_GCM_SHA256");
    }
    assert!(cipher.starts_with("TLSv1.3 TLS_") && cipher.ends_with("_SHA256"), "{cipher}");
    assert!(server.is_encrypted() && client.is_encrypted());
}

/// A TLS peer with other settings than ours.
pub(super) fn other_tls(socket: TcpStream, suites: &str, version: SslVersion) -> SslStream<TcpStream> {
    let mut builder = SslContextBuilder::new(SslMethod::tls()).unwrap();
    builder.set_ciphersuites(suites).unwrap();
    builder.set_cipher_list("PSK-AES256-CBC-SHA").unwrap();
    builder.set_max_proto_version(Some(version)).unwrap();
    builder.set_psk_client_callback(|_, _, identity, psk| {
        identity[..2].copy_from_slice(b"x\0");
        psk[..KEY.len()].copy_from_slice(KEY);
        Ok(KEY.len())
    });
    builder.set_psk_server_callback(|_, _, psk| {
        psk[..KEY.len()].copy_from_slice(KEY);
        Ok(KEY.len())
    });
    SslStream::new(Ssl::new(&builder.build()).unwrap(), socket).unwrap()
}

#[test]
fn a_server_takes_what_the_client_has() {
    for (suites, version, expected) in [
        ("TLS_CHACHA20_POLY1305_SHA256", SslVersion::TLS1_3, "TLSv1.3 TLS_CHACHA20_POLY1305_SHA256"),
        (
            "TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256",
            SslVersion::TLS1_3,
            "TLSv1.3 TLS_",
        ),
        ("TLS_AES_128_GCM_SHA256", SslVersion::TLS1_2, "TLSv1.2 PSK-AES256-CBC-SHA"),
    ] {
        let (mut server, socket) = raw_pair(limits());
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut tls = other_tls(socket, suites, version);
                tls.connect().unwrap();
                tls.write_all(b"\0\0\0\x02ok").unwrap();
            });
            server.start_tls(TlsSide::Server, TlsSecret::Key(KEY)).unwrap();
            assert!(server.cipher().unwrap().starts_with(expected), "{:?}", server.cipher());
            assert_eq!(data(&mut server), b"ok");
        });
    }
}

#[test]
fn a_client_accepts_a_server_of_tls_1_2() {
    let (mut ours, socket) = raw_pair(limits());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut tls = other_tls(socket, "TLS_AES_128_GCM_SHA256", SslVersion::TLS1_2);
            tls.accept().unwrap();
            tls.write_all(b"\0\0\0\x02ok").unwrap();
        });
        ours.start_tls(TlsSide::Client, TlsSecret::Key(KEY)).unwrap();
        assert_eq!(ours.cipher().unwrap(), "TLSv1.2 PSK-AES256-CBC-SHA");
        assert_eq!(data(&mut ours), b"ok");
    });
}

/// Whatever the version, and whoever says it.
#[test]
fn a_wrong_key_is_told_from_other_failures() {
    for version in [SslVersion::TLS1_3, SslVersion::TLS1_2] {
        let (mut server, socket) = raw_pair(limits());
        thread::scope(|scope| {
            scope.spawn(|| other_tls(socket, "TLS_AES_128_GCM_SHA256", version).connect().map(drop).unwrap_err());
            let error = server.start_tls(TlsSide::Server, TlsSecret::Key(b"another key")).unwrap_err();
            assert!(matches!(error.fault, Fault::WrongKey { .. }), "{version:?}: {error:?}");
        });
    }
    // A client that has the key, and no suite that goes with it.
    let (mut server, socket) = raw_pair(limits());
    thread::scope(|scope| {
        scope
            .spawn(|| other_tls(socket, "TLS_AES_256_GCM_SHA384", SslVersion::TLS1_3).connect().map(drop).unwrap_err());
        let error = server.start_tls(TlsSide::Server, TlsSecret::Key(KEY)).unwrap_err();
        assert!(matches!(error.fault, Fault::Handshake { .. }), "{error:?}");
    });
}

#[test]
fn a_wrong_key_fails_on_both_sides_and_clear_frames_follow() {
    let (mut server, mut client) = pair();
    thread::scope(|scope| {
        scope.spawn(|| {
            let error = client.start_tls(TlsSide::Client, TlsSecret::Key(b"another key")).unwrap_err();
            // Which alert it is depends on the version of OpenSSL.
            let head = "[FE0064] TLS Connect failure. Check the passwords. ERR=error:0A0004";
            assert!(error.to_string().starts_with(head), "{error}");
            assert_eq!(data(&mut client), b"2999 Authentication failed.\n");
            assert_eq!(client.recv(SECONDS).unwrap(), Received::Signal(Signal::Terminate));
        });
        let error = server.start_tls(TlsSide::Server, TlsSecret::Key(KEY)).unwrap_err();
        assert!(matches!(error.fault, Fault::WrongKey { .. }), "{error:?}");
        assert!(!server.is_encrypted());
        server.send(b"2999 Authentication failed.\n").unwrap();
        server.signal(Signal::Terminate).unwrap();
        server.flush().unwrap();
    });
}

#[test]
fn garbage_instead_of_a_handshake_is_an_error_and_clear_frames_follow() {
    let (mut server, mut socket) = raw_pair(limits());
    socket.write_all(b"\0\0\0\x05hello and more").unwrap();
    let error = server.start_tls(TlsSide::Server, TlsSecret::Key(KEY)).unwrap_err();
    assert!(matches!(error.fault, Fault::Handshake { .. }), "{error:?}");
    server.send(b"2999 Authentication failed.\n").unwrap();
    server.flush().unwrap();
    let mut answer = Vec::new();
    drop(server);
    // What we did not read makes the kernel reset the connection after the answer.
    let _reset = socket.read_to_end(&mut answer);
    assert!(answer.ends_with(b"\0\0\0\x1c2999 Authentication failed.\n"), "{}", answer.escape_ascii());
}

#[test]
fn a_stalled_handshake_ends() {
    let (mut server, mut socket) = raw_pair(Limits { handshake: MOMENT, ..limits() });
    let error = server.start_tls(TlsSide::Server, TlsSecret::Key(KEY)).unwrap_err();
    assert!(matches!(error.fault, Fault::HandshakeTimedOut { after: MOMENT }), "{error:?}");
    server.send(b"2999 Authentication failed.\n").unwrap();
    server.flush().unwrap();
    let mut answer = [0; 32];
    socket.read_exact(&mut answer).unwrap();
    assert_eq!(answer, *b"\0\0\0\x1c2999 Authentication failed.\n");
    let (mut server, socket) = raw_pair(limits());
    drop(socket);
    assert!(matches!(server.start_tls(TlsSide::Server, TlsSecret::Key(KEY)).unwrap_err().fault, Fault::Closed));
}

#[test]
fn tls_starts_behind_bytes_that_were_read_ahead() {
    let (mut server, mut client) = pair();
    thread::scope(|scope| {
        scope.spawn(|| {
            client.send(b"last clear frame").unwrap();
            client.start_tls(TlsSide::Client, TlsSecret::Key(KEY)).unwrap();
            client.send(b"first secret frame").unwrap();
            client.flush().unwrap();
        });
        assert_eq!(data(&mut server), b"last clear frame");
        let before = server.wire_stats().bytes_in;
        assert!(before > 20, "ClientHello did not come along: {before}");
        server.start_tls(TlsSide::Server, TlsSecret::Key(KEY)).unwrap();
        assert_eq!(data(&mut server), b"first secret frame");
    });
    // The clear frame with the ClientHello, the end of the handshake, the secret frame.
    assert_eq!(client.wire_stats().writes, 3);
}

#[test]
fn clear_frames_follow_the_last_record_when_tls_is_dropped() {
    let (mut server, mut client) = tls_pair();
    client.send(b"last secret frame").unwrap();
    client.drop_tls().unwrap();
    client.send(b"first clear frame").unwrap();
    client.signal(Signal::Eod).unwrap();
    client.flush().unwrap();
    assert_eq!(data(&mut server), b"last secret frame");
    server.drop_tls().unwrap();
    assert!(!server.is_encrypted());
    assert_eq!(data(&mut server), b"first clear frame");
    assert_eq!(server.recv(SECONDS).unwrap(), Received::Signal(Signal::Eod));
    // And TLS can start again with the sides changed, as after ISALIVE.
    thread::scope(|scope| {
        scope.spawn(|| client.start_tls(TlsSide::Server, TlsSecret::Key(KEY)).unwrap());
        server.start_tls(TlsSide::Client, TlsSecret::Key(KEY)).unwrap();
        server.send(b"again").unwrap();
        server.flush().unwrap();
    });
    assert_eq!(data(&mut client), b"again");
}

#[test]
fn a_second_handshake_takes_the_place_of_the_first() {
    let (mut server, mut client) = tls_pair();
    client.send(b"hello").unwrap();
    client.flush().unwrap();
    assert_eq!(data(&mut server), b"hello");
    // The former client is the server now, and both have another key.
    client.send(b"starttls").unwrap();
    client.flush().unwrap();
    assert_eq!(data(&mut server), b"starttls");
    thread::scope(|scope| {
        let other = scope.spawn(|| client.start_tls(TlsSide::Server, TlsSecret::Key(b"another key")));
        server.start_tls(TlsSide::Client, TlsSecret::Key(b"another key")).unwrap();
        other.join().unwrap().unwrap();
    });
    server.send(b"within").unwrap();
    server.flush().unwrap();
    assert_eq!(data(&mut client), b"within");
    assert!(server.is_encrypted() && client.is_encrypted());
}
