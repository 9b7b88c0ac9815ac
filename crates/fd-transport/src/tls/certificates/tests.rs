//! Handshakes with good, wrong and missing certificates.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

use openssl::asn1::Asn1Time;
use openssl::bn::BigNum;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::symm::Cipher;
use openssl::x509::extension::{BasicConstraints, SubjectAlternativeName};
use openssl::x509::{X509, X509Name};

use super::*;
use crate::{Channel, Fault, Limits, Peer, PeerKind, TlsSecret, TlsSide};

const SECONDS: Duration = Duration::from_secs(20);

struct Authority {
    certificate: X509,
    key: PKey<Private>,
}

fn key() -> PKey<Private> {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap()
}

fn name(common: &str) -> X509Name {
    let mut name = X509Name::builder().unwrap();
    name.append_entry_by_text("O", "ferrofd").unwrap();
    name.append_entry_by_text("CN", common).unwrap();
    name.build()
}

/// A certificate for `common`, signed by `by` or by itself.
fn certificate(common: &str, key: &PKey<Private>, by: Option<&Authority>, alternatives: &[&str]) -> X509 {
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    let serial = BigNum::from_u32(u32::try_from(common.len()).unwrap() + 1).unwrap();
    builder.set_serial_number(&serial.to_asn1_integer().unwrap()).unwrap();
    builder.set_subject_name(&name(common)).unwrap();
    builder.set_not_before(&Asn1Time::days_from_now(0).unwrap()).unwrap();
    builder.set_not_after(&Asn1Time::days_from_now(2).unwrap()).unwrap();
    builder.set_pubkey(key).unwrap();
    let issuer = by.map_or_else(|| name(common), |by| by.certificate.subject_name().to_owned().unwrap());
    builder.set_issuer_name(&issuer).unwrap();
    if by.is_none() {
        builder.append_extension(BasicConstraints::new().critical().ca().build().unwrap()).unwrap();
    }
    if !alternatives.is_empty() {
        let mut names = SubjectAlternativeName::new();
        for alternative in alternatives {
            match alternative.strip_prefix("IP:") {
                Some(address) => names.ip(address),
                None => names.dns(alternative),
            };
        }
        let extension = names.build(&builder.x509v3_context(None, None)).unwrap();
        builder.append_extension(extension).unwrap();
    }
    builder.sign(by.map_or(key, |by| &by.key), MessageDigest::sha256()).unwrap();
    builder.build()
}

/// Files of two authorities and of some hosts, in a folder that goes with it.
struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        let files = Self { folder: tempfile::tempdir().unwrap() };
        let authority = |common: &str| {
            let key = key();
            Authority { certificate: certificate(common, &key, None, &[]), key }
        };
        let ours = authority("ours");
        let other = authority("other");
        files.write("ca.pem", &ours.certificate.to_pem().unwrap());
        files.write("other-ca.pem", &other.certificate.to_pem().unwrap());
        files.issue("fd", &ours, &[]);
        files.issue("dir", &ours, &[]);
        files.issue("stranger", &other, &[]);
        files.issue("alternatives", &ours, &["sd.example.org", "*.wild.example.org", "IP:192.0.2.7", "IP:2001:db8::7"]);
        files.issue("localhost", &ours, &[]);
        files
    }

    fn issue(&self, common: &str, by: &Authority, alternatives: &[&str]) {
        let key = key();
        let certificate = certificate(common, &key, Some(by), alternatives);
        self.write(&format!("{common}.pem"), &certificate.to_pem().unwrap());
        self.write(&format!("{common}.key"), &key.private_key_to_pem_pkcs8().unwrap());
        let encrypted = key.private_key_to_pem_pkcs8_passphrase(Cipher::aes_128_cbc(), b"secret").unwrap();
        self.write(&format!("{common}.encrypted.key"), &encrypted);
    }

    fn write(&self, name: &str, content: &[u8]) {
        fs::write(self.path(name), content).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The files of `common`, which trusts `ca`.
    fn of(&self, common: &str, ca: &str) -> CertificateFiles {
        CertificateFiles {
            ca_file: Some(self.path(ca)),
            certificate: Some(self.path(&format!("{common}.pem"))),
            key: Some(self.path(&format!("{common}.key"))),
            verify_peer: true,
            ..CertificateFiles::default()
        }
    }

    /// Trusts `ca` and has no certificate of its own.
    fn nobody(&self, ca: &str) -> CertificateFiles {
        CertificateFiles { ca_file: Some(self.path(ca)), verify_peer: true, ..CertificateFiles::default() }
    }
}

/// What a handshake came to for server and client, and the cipher if it was good for both.
fn shake(server: &CertificateFiles, client: &CertificateFiles, host: &str) -> [Result<(), Fault>; 2] {
    let (server, client) = (Certificates::load(server).unwrap(), Certificates::load(client).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    let limits = Limits { handshake: SECONDS, write_stall: SECONDS, goodbye: SECONDS };
    let peer = Peer { kind: PeerKind::Storage, host: host.to_owned(), port: 9103 };
    let mut ours = Channel::accept(accepted, limits).unwrap();
    let mut theirs = Channel::over(socket, peer, limits).unwrap();
    std::thread::scope(|scope| {
        let server = scope.spawn(move || {
            let shaken = ours.start_tls(TlsSide::Server, TlsSecret::Certificates(&server)).and_then(|()| {
                ours.send(b"hello")?;
                ours.flush()
            });
            let kept = shaken.is_ok().then_some(ours);
            (shaken.map_err(|error| error.fault), kept)
        });
        let shaken = theirs
            .start_tls(TlsSide::Client, TlsSecret::Certificates(&client))
            .and_then(|()| theirs.recv(SECONDS).map(|_| ()));
        // What it sent must arrive before the connection goes.
        let (answered, ours) = server.join().unwrap();
        drop((ours, theirs));
        [answered, shaken.map_err(|error| error.fault)]
    })
}

#[test]
fn certificates_of_both_sides_are_accepted() {
    let files = Files::new();
    let mut server = files.of("fd", "ca.pem");
    for allowed in [Vec::new(), vec![b"nobody".to_vec(), b"DIR".to_vec()]] {
        server.allowed_cn = allowed;
        assert!(matches!(shake(&server, &files.of("dir", "ca.pem"), "fd"), [Ok(()), Ok(())]));
    }
    server.verify_peer = false;
    assert!(matches!(shake(&server, &files.nobody("ca.pem"), "fd"), [Ok(()), Ok(())]));
}

#[test]
fn authorities_are_loaded_from_a_directory_or_a_file() {
    let files = Files::new();
    let folder = files.path("authorities");
    fs::create_dir(&folder).unwrap();
    let pem = fs::read(files.path("ca.pem")).unwrap();
    let hash = X509::from_pem(&pem).unwrap().subject_name_hash();
    fs::write(folder.join(format!("{hash:08x}.0")), pem).unwrap();
    let with_folder =
        |common: &str| CertificateFiles { ca_file: None, ca_dir: Some(folder.clone()), ..files.of(common, "ca.pem") };
    assert!(matches!(shake(&with_folder("fd"), &with_folder("dir"), "fd"), [Ok(()), Ok(())]));
    assert!(matches!(shake(&with_folder("fd"), &files.of("stranger", "ca.pem"), "fd"), [Err(_), _]));
}

#[test]
fn a_client_without_a_certificate_or_of_another_authority_is_refused() {
    let files = Files::new();
    let server = files.of("fd", "ca.pem");
    let [refused, _] = shake(&server, &files.nobody("ca.pem"), "fd");
    assert!(
        matches!(&refused, Err(Fault::Handshake { reason, .. }) if reason.contains("did not return a certificate"))
    );
    let [refused, _] = shake(&server, &files.of("stranger", "ca.pem"), "fd");
    let Err(Fault::Handshake { certificates, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(
        certificates,
        [
            "tls.c:95 Error with certificate at depth: 0, issuer = /O=ferrofd/CN=other, subject = /O=ferrofd/CN=stranger, \
          ERR=20:unable to get local issuer certificate"
        ]
    );
}

#[test]
fn a_common_name_that_is_not_on_the_list_is_refused() {
    let files = Files::new();
    let server = CertificateFiles { allowed_cn: vec![b"nobody".to_vec(), b"di".to_vec()], ..files.of("fd", "ca.pem") };
    let [refused, _] = shake(&server, &files.of("dir", "ca.pem"), "fd");
    assert!(matches!(&refused, Err(Fault::Certificate { reason }) if reason.contains("required commonName")));
}

#[test]
fn a_server_must_be_the_host_that_was_called() {
    let files = Files::new();
    let client = files.of("dir", "ca.pem");
    let good = [
        ("fd", "FD"),
        ("alternatives", "sd.example.org"),
        ("alternatives", "one.wild.example.org"),
        ("alternatives", "192.0.2.7"),
        ("alternatives", "[2001:db8:0::7]"),
        ("alternatives", "[::ffff:192.0.2.7]"),
        ("alternatives", "alternatives"),
        ("localhost", "127.0.0.1"),
        ("localhost", "[::ffff:127.0.0.1]"),
    ];
    for (server, host) in good {
        assert!(matches!(shake(&files.of(server, "ca.pem"), &client, host)[1], Ok(())), "{server} {host}");
    }
    let bad = [
        ("fd", "127.0.0.1"),
        ("alternatives", "wild.example.org"),
        ("alternatives", "192.0.2.8"),
        ("alternatives", "[::ffff:192.0.2.8]"),
    ];
    for (server, host) in bad {
        let [_, refused] = shake(&files.of(server, "ca.pem"), &client, host);
        let Err(Fault::Certificate { reason }) = refused else { panic!("{server} {host}: {refused:?}") };
        assert!(reason.contains(&format!("Host name \"{host}\" did not match presented certificate")), "{reason}");
    }
    assert!(matches!(shake(&files.of("stranger", "ca.pem"), &client, "stranger")[1], Err(Fault::Handshake { .. })));
}

/// The lines of a set of files that can't be used.
fn problem(files: &CertificateFiles) -> Vec<String> {
    Certificates::load(files).unwrap_err().lines
}

#[test]
fn bad_certificate_files_are_reported_in_the_stock_words() {
    let files = Files::new();
    files.write("garbage", b"garbage\n");
    let with = |change: fn(&mut CertificateFiles, PathBuf), name: &str| {
        let mut set = files.of("fd", "ca.pem");
        change(&mut set, files.path(name));
        problem(&set)
    };
    let ca = with(|set, path| set.ca_file = Some(path), "missing");
    assert_eq!(
        ca.first().unwrap(),
        "Error loading certificate verification stores: ERR=error:80000002:system library::No such file or directory"
    );
    let certificate = with(|set, path| set.certificate = Some(path), "garbage");
    assert_eq!(
        certificate.first().unwrap(),
        "Error loading certificate file: ERR=error:0480006C:PEM routines::no start line"
    );
    let key = with(|set, path| set.key = Some(path), "dir.key");
    assert_eq!(key, ["Error loading private key: ERR=error:05800074:x509 certificate routines::key values mismatch"]);
    // The passphrase is not asked for on the terminal.
    let key = with(|set, path| set.key = Some(path), "fd.encrypted.key");
    assert!(key.first().unwrap().starts_with("Error loading private key: ERR=error:"), "{key:?}");
    let dh = with(|set, path| set.dh = Some(path), "garbage");
    assert_eq!(
        dh,
        ["Unable to load DH parameters from specified file: ERR=error:0480006C:PEM routines::no start line"]
    );
    let unnamable = |set: &mut CertificateFiles, folder: PathBuf| {
        set.certificate = Some(folder.join(std::ffi::OsString::from_vec(vec![0xff, b'x'])));
    };
    assert_eq!(with(unnamable, ""), ["Error loading certificate file: ERR=the file's name is not UTF-8"]);
}

#[test]
fn a_wildcard_covers_one_label_of_a_host_name() {
    assert!(covers(b"FD.example.org", b"fd.Example.org"));
    assert!(covers(b"*.example.org", b"fd.EXAMPLE.org"));
    for (pattern, host) in [
        ("*.example.org", "example.org"),
        ("*.example.org", "a.b.example.org"),
        ("*", "localhost"),
        ("*", "fd.example.org"),
        ("fd.example.org", "fd.example.org.evil"),
        ("*example.org", "fdexample.org"),
    ] {
        assert!(!covers(pattern.as_bytes(), host.as_bytes()), "{pattern} {host}");
    }
}
