//! Certificates that are read again.

use std::fs::{OpenOptions, rename, write};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::thread;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use openssl::asn1::Asn1Time;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::PKey;
use openssl::x509::X509;

use super::*;
use crate::daemon::host::Host;

/// A certificate that ends after so many days, with its key.
fn pem(days: u32) -> Vec<u8> {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    let key = PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap();
    let mut builder = X509::builder().unwrap();
    builder.set_pubkey(&key).unwrap();
    builder.set_not_before(&Asn1Time::days_from_now(0).unwrap()).unwrap();
    builder.set_not_after(&Asn1Time::days_from_now(days).unwrap()).unwrap();
    builder.sign(&key, MessageDigest::sha256()).unwrap();
    [builder.build().to_pem().unwrap(), key.private_key_to_pem_pkcs8().unwrap()].concat()
}

/// The configuration of a daemon and a Director whose authorities are in a file each.
fn with_certificates(folder: &Path) -> Config {
    let (file, place) = (folder.join("fd.conf"), folder.display());
    let tls = |authorities| {
        format!(
            " TLS Enable = yes\n TLS Certificate = {place}/pair\n TLS Key = {place}/pair\n \
             TLS CA Certificate File = {place}/{authorities}\n}}\n"
        )
    };
    let resources = format!(
        "FileDaemon {{\n Name = x-fd\n WorkingDirectory = {place}\n PidDirectory = {place}\n{}\
         Director {{\n Name = d\n Password = p\n{}Messages {{\n Name = m\n Director = d = all\n}}\n",
        tls("own"),
        tls("director")
    );
    write(&file, resources).unwrap();
    fd_config::load(file.as_os_str().as_bytes(), &mut Host, &mut Host).unwrap()
}

#[test]
fn of_two_readings_of_certificates_the_one_that_began_later_counts() {
    let folder = tempfile::tempdir().unwrap();
    let [pair, own, director, next] = ["pair", "own", "director", "next"].map(|name| folder.path().join(name));
    for file in [&pair, &own, &director] {
        write(file, pem(2)).unwrap();
    }
    let config = with_certificates(folder.path());
    let certificates = ResourceCertificates::load(&config).unwrap();
    let before = certificates.ends();
    let replace_by_fifo = |file: &Path| {
        mkfifo(&next, Mode::S_IRWXU).unwrap();
        rename(&next, file).unwrap();
    };
    // Returns when it is being read.
    let begin_to_write = |fifo: &Path| OpenOptions::new().write(true).open(fifo).unwrap();
    replace_by_fifo(&director);
    thread::scope(|scope| {
        let older = scope.spawn(|| certificates.load_again(&config));
        let mut authorities = begin_to_write(&director);
        replace_by_fifo(&director);
        authorities.write_all(&pem(2)).unwrap();
        drop(authorities);
        // All authorities are read, and now their dates. Those of the daemon's were first.
        let dates = begin_to_write(&director);
        for file in [&own, &director] {
            write(&next, pem(3)).unwrap();
            rename(&next, file).unwrap();
        }
        certificates.load_again(&config).unwrap();
        let newer = certificates.ends();
        drop(dates);
        older.join().unwrap().unwrap();
        assert_ne!(newer, before);
        assert_eq!(certificates.ends(), newer);
    });
}
