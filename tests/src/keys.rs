//! Key pairs as an operator makes them with `openssl req -x509 -nodes`.

use std::fs;
use std::path::{Path, PathBuf};

use openssl::asn1::Asn1Time;
use openssl::bn::BigNum;
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::x509::extension::SubjectKeyIdentifier;
use openssl::x509::{X509, X509NameBuilder};

use crate::certificates::broken;
use crate::error::{BedError, Result};

/// A key, and where its files are.
#[derive(Debug)]
pub struct Keys {
    /// The private key.
    pub key: PKey<Private>,
    /// The content of its certificate's `subjectKeyIdentifier`.
    pub id: Vec<u8>,
    /// Certificate and private key, as `PKI Keypair` needs them.
    pub pair: PathBuf,
    /// The certificate alone.
    pub certificate: PathBuf,
}

impl Keys {
    /// Makes a key of 2048 bits and writes its files.
    pub fn make(folder: &Path, name: &str) -> Result<Self> {
        let key = Rsa::generate(2048).and_then(PKey::from_rsa).map_err(broken)?;
        let certificate = certificate(&key, name).map_err(broken)?;
        let id = certificate.subject_key_id().map(|id| id.as_slice().to_vec()).unwrap_or_default();
        let text = certificate.to_pem().map_err(broken)?;
        let write = |suffix: &str, parts: &[&[u8]]| -> Result<PathBuf> {
            let path = folder.join(format!("{name}{suffix}"));
            fs::write(&path, parts.concat()).map_err(BedError::file("write", &path))?;
            Ok(path)
        };
        let pair = write(".pem", &[&text, &key.private_key_to_pem_pkcs8().map_err(broken)?])?;
        Ok(Self { key, id, pair, certificate: write(".crt", &[&text])? })
    }
}

/// Signed by itself.
fn certificate(key: &PKey<Private>, name: &str) -> std::result::Result<X509, ErrorStack> {
    let mut subject = X509NameBuilder::new()?;
    subject.append_entry_by_text("CN", name)?;
    let subject = subject.build();
    let mut builder = X509::builder()?;
    builder.set_version(2)?;
    builder.set_subject_name(&subject)?;
    builder.set_issuer_name(&subject)?;
    builder.set_pubkey(key)?;
    builder.set_serial_number(&*BigNum::from_u32(1)?.to_asn1_integer()?)?;
    builder.set_not_before(&*Asn1Time::days_from_now(0)?)?;
    builder.set_not_after(&*Asn1Time::days_from_now(30)?)?;
    let extension = SubjectKeyIdentifier::new().build(&builder.x509v3_context(None, None))?;
    builder.append_extension(extension)?;
    builder.sign(key, MessageDigest::sha256())?;
    Ok(builder.build())
}
