//! Key pairs as an operator makes them with `openssl req -x509 -nodes`.

use std::fs;
use std::path::{Path, PathBuf};

use openssl::asn1::Asn1Time;
use openssl::bn::BigNum;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::x509::extension::SubjectKeyIdentifier;
use openssl::x509::{X509, X509NameBuilder};

/// A key, and where its files are.
pub(crate) struct Keys {
    pub(crate) key: PKey<Private>,
    /// The content of its certificate's `subjectKeyIdentifier`.
    pub(crate) id: Vec<u8>,
    /// Certificate and private key.
    pub(crate) pair: PathBuf,
    /// The certificate alone.
    pub(crate) certificate: PathBuf,
}

impl Keys {
    /// Makes a key of 2048 bits and writes its files.
    pub(crate) fn make(folder: &Path, name: &str) -> Self {
        let key = PKey::from_rsa(Rsa::generate(2048).unwrap()).unwrap();
        let mut subject = X509NameBuilder::new().unwrap();
        subject.append_entry_by_text("CN", name).unwrap();
        let subject = subject.build();
        let mut builder = X509::builder().unwrap();
        builder.set_version(2).unwrap();
        builder.set_subject_name(&subject).unwrap();
        builder.set_issuer_name(&subject).unwrap();
        builder.set_pubkey(&key).unwrap();
        builder.set_serial_number(&BigNum::from_u32(1).unwrap().to_asn1_integer().unwrap()).unwrap();
        builder.set_not_before(&Asn1Time::days_from_now(0).unwrap()).unwrap();
        builder.set_not_after(&Asn1Time::days_from_now(1).unwrap()).unwrap();
        let extension = SubjectKeyIdentifier::new().build(&builder.x509v3_context(None, None)).unwrap();
        builder.append_extension(extension).unwrap();
        builder.sign(&key, MessageDigest::sha256()).unwrap();
        let certificate = builder.build();
        let id = certificate.subject_key_id().unwrap().as_slice().to_vec();
        let text = certificate.to_pem().unwrap();
        let write = |suffix: &str, parts: &[&[u8]]| {
            let path = folder.join(format!("{name}{suffix}"));
            fs::write(&path, parts.concat()).unwrap();
            path
        };
        let pair = write(".pem", &[&text, &key.private_key_to_pem_pkcs8().unwrap()]);
        Self { key, id, pair, certificate: write(".crt", &[&text]) }
    }
}
