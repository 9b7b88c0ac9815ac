//! The key files that the PKI directives name: read at the start, checked, and held for the jobs
//! (reference 04 §12.1).

use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use fd_backup::Protection;
use fd_config::{KeyProblem, Pki};
use fd_crypto::pki::{Certificate, KeyError, KeyPair, KeyRing, PrivateKey, TrustedSigner};
use fd_os::io_error_text;
use zeroize::Zeroizing;

use crate::texts;

/// The certificate in a PEM file.
pub(crate) fn certificate(file: &Path) -> Result<Certificate, KeyProblem> {
    let pem = read(file).map_err(|error| unreadable(file, texts::OPEN_CERTIFICATE, &error))?;
    Certificate::from_pem(&pem).map_err(|error| unusable(file, &error, texts::certificate_hint))
}

/// The private key in a PEM file.
pub(crate) fn private_key(file: &Path) -> Result<PrivateKey, KeyProblem> {
    let pem = read(file).map_err(|error| unreadable(file, texts::OPEN_PRIVATE_KEY, &error))?;
    PrivateKey::from_pem(&pem).map_err(|error| unusable(file, &error, texts::private_key_hint))
}

/// Whether a PEM file looks as if there were a private key in it.
pub(crate) fn holds_private_key(file: &Path) -> bool {
    read(file).is_ok_and(|pem| pem.windows(11).any(|window| window == b"PRIVATE KEY"))
}

/// All keys of a configuration that was checked; `None` if PKI is off.
pub(crate) fn load(pki: &Pki) -> Result<Option<Protection>, KeyProblem> {
    let Some(key_pair) = pki.key_pair.as_ref().filter(|_| pki.signatures || pki.encryption) else { return Ok(None) };
    let trusted = |file: &Path| -> Result<TrustedSigner, KeyProblem> {
        let private = if holds_private_key(file) { Some(private_key(file)?) } else { None };
        Ok(TrustedSigner { certificate: certificate(file)?, private })
    };
    let keys = KeyRing {
        own: KeyPair { certificate: certificate(key_pair)?, private: private_key(key_pair)? },
        signers: pki.signers.iter().map(|file| trusted(file)).collect::<Result<_, _>>()?,
        masters: pki.master_keys.iter().map(|file| certificate(file)).collect::<Result<_, _>>()?,
    };
    Ok(Some(Protection { keys: Arc::new(keys), digest: pki.digest, encryption: pki.encryption.then_some(pki.cipher) }))
}

/// The file's content, which is overwritten when it is dropped: it may be a private key.
fn read(file: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    fs::read(file).map(Zeroizing::new)
}

/// The two errors that OpenSSL reports for a file that can't be opened.
fn unreadable(file: &Path, step: &str, error: &io::Error) -> KeyProblem {
    let number = error.raw_os_error().unwrap_or_default();
    let second = if number == nix::libc::ENOENT { texts::BIO_NO_SUCH_FILE } else { texts::BIO_SYSTEM };
    let system = texts::openssl_system_error(number, &io_error_text(error));
    KeyProblem {
        lines: [system.as_str(), second].map(|text| texts::step_failed(step, text)).to_vec(),
        hint: texts::unreadable_key_hint(file),
    }
}

fn unusable(file: &Path, error: &KeyError, hint: fn(&Path) -> String) -> KeyProblem {
    let hint = match error {
        KeyError::NoKeyId => texts::key_id_hint(file),
        KeyError::KeyType(_) => texts::key_type_hint(file),
        KeyError::Unreadable { .. } => hint(file),
    };
    KeyProblem { lines: error.lines(), hint }
}
