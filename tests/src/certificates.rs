//! Certificates for beds: authorities, and what they sign.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use openssl::asn1::Asn1Time;
use openssl::bn::{BigNum, MsbOption};
use openssl::ec::{EcGroup, EcKey};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::x509::extension::{BasicConstraints, SubjectAlternativeName};
use openssl::x509::{X509, X509Name, X509NameRef};

use crate::error::{BedError, Result};

/// In seconds.
const DAY: i64 = 86_400;
/// How long certificates are valid.
const DAYS: i64 = 30;

/// An authority that signs certificates into a folder.
#[derive(Debug)]
pub struct Authority {
    folder: PathBuf,
    name: String,
    key: PKey<Private>,
    certificate: X509,
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(crate) fn broken(error: ErrorStack) -> BedError {
    BedError::Usage(format!("certificates: {error}"))
}

fn new_key() -> std::result::Result<PKey<Private>, ErrorStack> {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?;
    PKey::from_ec_key(EcKey::generate(&group)?)
}

/// A certificate for `common`, signed by an authority or by itself.
fn certificate(
    common: &str,
    key: &PKey<Private>,
    signer: Option<(&X509NameRef, &PKey<Private>)>,
    hosts: &[&str],
    days: i64,
) -> std::result::Result<X509, ErrorStack> {
    let mut name = X509Name::builder()?;
    name.append_entry_by_nid(Nid::COMMONNAME, common)?;
    let name = name.build();
    let mut serial = BigNum::new()?;
    serial.rand(64, MsbOption::ONE, false)?;
    let mut builder = X509::builder()?;
    builder.set_version(2)?;
    builder.set_serial_number(&*serial.to_asn1_integer()?)?;
    builder.set_subject_name(&name)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let now = i64::try_from(now).unwrap_or_default();
    let end = now + days * DAY;
    let (begin, end) = (Asn1Time::from_unix(now.min(end - DAY))?, Asn1Time::from_unix(end)?);
    builder.set_not_before(&begin)?;
    builder.set_not_after(&end)?;
    builder.set_pubkey(key)?;
    builder.set_issuer_name(signer.map_or(&*name, |(issuer, _)| issuer))?;
    if signer.is_none() {
        builder.append_extension(BasicConstraints::new().critical().ca().build()?)?;
    }
    if !hosts.is_empty() {
        let mut names = SubjectAlternativeName::new();
        for host in hosts {
            names.dns(host);
        }
        let extension = names.build(&builder.x509v3_context(None, None))?;
        builder.append_extension(extension)?;
    }
    builder.sign(signer.map_or(key, |(_, key)| key), MessageDigest::sha256())?;
    Ok(builder.build())
}

impl Authority {
    /// Makes one; its certificate becomes `<name>.pem` in the folder.
    pub fn new(folder: &Path, name: &str) -> Result<Self> {
        let key = new_key().map_err(broken)?;
        let certificate = certificate(name, &key, None, &[], DAYS).map_err(broken)?;
        let authority = Self { folder: folder.to_owned(), name: name.to_owned(), key, certificate };
        authority.write(&format!("{name}.pem"), &authority.certificate.to_pem().map_err(broken)?)?;
        Ok(authority)
    }

    /// Signs a certificate for `common` and these hosts: `<common>.pem` and `<common>.key`.
    pub fn sign(&self, common: &str, hosts: &[&str]) -> Result<()> {
        self.sign_for(common, hosts, DAYS)
    }

    /// The same, until this many days from now; in the past, if that is negative.
    pub fn sign_for(&self, common: &str, hosts: &[&str], days: i64) -> Result<()> {
        let key = new_key().map_err(broken)?;
        let by = (self.certificate.subject_name(), &self.key);
        let signed = certificate(common, &key, Some(by), hosts, days).map_err(broken)?;
        self.write(&format!("{common}.pem"), &signed.to_pem().map_err(broken)?)?;
        self.write(&format!("{common}.key"), &key.private_key_to_pem_pkcs8().map_err(broken)?)
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        fs::write(&path, content).map_err(BedError::file("write", &path))
    }

    /// `TLS CA Certificate File = …`.
    pub fn trusted(&self) -> String {
        format!("TLS CA Certificate File = \"{}\"", self.folder.join(format!("{}.pem", self.name)).display())
    }

    /// `TLS Certificate` and `TLS Key` of `common`.
    pub fn identity(&self, common: &str) -> Vec<String> {
        let path = |suffix: &str| self.folder.join(format!("{common}.{suffix}")).display().to_string();
        vec![format!("TLS Certificate = \"{}\"", path("pem")), format!("TLS Key = \"{}\"", path("key"))]
    }
}
