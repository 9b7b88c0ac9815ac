//! Certificates of TLS, and the keys of PKI: can they be read, do they fit, when do they end?

use std::path::Path;

use fd_config::{KeyProblem, Tls};
use fd_os::io_error_text;
use openssl::pkey::PKey;
use openssl::x509::X509;

use super::case::Case;
use crate::clock;
use crate::diagnose::finding::Finding;
use crate::diagnose::texts::{self, CERTIFICATES, PKI};
use crate::diagnose::world::World;
use crate::security::certificate_dates::{Validity, validities};

/// A certificate that ends sooner is a warning, in seconds: 14 days.
const SOON: i64 = 14 * 86_400;

pub(super) fn check(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (kind, name, tls) in case.config().tls_resources() {
        if tls.enable || tls.authenticate {
            let resource = texts::resource(kind, name);
            findings.extend(of_tls(&resource, tls, case.world));
            if kind == "Director" && is_password_enough(tls) {
                findings.push(Finding::warning(CERTIFICATES, texts::password_is_enough(&resource), texts::HINT_PSK));
            }
        } else if !tls.psk_enable {
            findings.push(Finding::warning(CERTIFICATES, texts::in_clear(kind, name), texts::HINT_IN_CLEAR));
        }
    }
    if findings.is_empty() {
        findings.push(Finding::good(CERTIFICATES, texts::ONLY_PSK));
    }
    findings.extend(of_pki(case));
    findings
}

/// Whether a peer without a certificate gets in by its password, although the resource looks as if
/// it had to have one.
const fn is_password_enough(tls: &Tls) -> bool {
    tls.enable && tls.psk_enable && tls.verify_peer && (tls.require || !tls.allowed_cn.is_empty())
}

fn of_tls(resource: &str, tls: &Tls, world: &dyn World) -> Vec<Finding> {
    // The daemon's own words, for everything that it would refuse. It does not look at dates.
    if let Err(problem) = world.tls_context(tls) {
        return vec![refused(CERTIFICATES, resource, &problem, mismatch(tls, world))];
    }
    let mut findings = Vec::new();
    if let Some(file) = &tls.cert {
        findings.push(dates(resource, file, world, <[Validity]>::first));
    }
    if let Some(file) = &tls.ca_file {
        // As long as one of several authorities is valid, connections can be.
        let found = dates(resource, file, world, last);
        if !found.hint.is_empty() {
            findings.push(found);
        }
    }
    if findings.is_empty() {
        findings.push(Finding::good(CERTIFICATES, texts::authorities_only(resource)));
    }
    findings
}

fn refused(area: &'static str, resource: &str, problem: &KeyProblem, other: Option<String>) -> Finding {
    let why = other.unwrap_or_else(|| problem.lines.join("; "));
    let hint = if problem.hint.is_empty() { texts::HINT_CERTIFICATE } else { &problem.hint };
    Finding::fault(area, texts::refused(resource, &why), hint)
}

/// OpenSSL's words for a key of another certificate are hard to understand.
fn mismatch(tls: &Tls, world: &dyn World) -> Option<String> {
    let (certificate, key) = (tls.cert.as_deref()?, tls.key.as_deref()?);
    let is_other = !fits(&world.read(certificate).ok()?, &world.read(key).ok()?)?;
    is_other.then(|| texts::other_key(key, certificate))
}

/// Whether a key is that of a certificate; `None` if one of them can't be read.
fn fits(certificate: &[u8], key: &[u8]) -> Option<bool> {
    let certificate = X509::from_pem(certificate).ok()?;
    let key = PKey::private_key_from_pem_callback(key, |_| Ok(0)).ok()?;
    Some(certificate.public_key().ok()?.public_eq(&key))
}

fn last(all: &[Validity]) -> Option<&Validity> {
    all.iter().max_by_key(|validity| validity.end)
}

fn dates(resource: &str, file: &Path, world: &dyn World, which: fn(&[Validity]) -> Option<&Validity>) -> Finding {
    let pem = match world.read(file) {
        Ok(pem) => pem,
        Err(error) => {
            let text = texts::unreadable(file, &io_error_text(&error));
            return Finding::fault(CERTIFICATES, text, texts::hint(&error, texts::HINT_CERTIFICATE));
        }
    };
    let all = validities(&pem).unwrap_or_default();
    let Some(&Validity { begin, end }) = which(&all) else {
        return Finding::fault(CERTIFICATES, texts::no_certificate(file), texts::HINT_CERTIFICATE);
    };
    let (now, date) = (world.now(), clock::iso_date(end));
    if end <= now {
        Finding::fault(CERTIFICATES, texts::ended(resource, file, &date), texts::HINT_ENDED)
    } else if begin > now {
        Finding::fault(CERTIFICATES, texts::not_yet(resource, file, &clock::iso_date(begin)), texts::HINT_NOT_YET)
    } else if end - now < SOON {
        let days = (end - now) / 86_400;
        Finding::warning(CERTIFICATES, texts::ends_soon(resource, file, &date, days), texts::HINT_ENDED)
    } else {
        Finding::good(CERTIFICATES, texts::valid_until(resource, file, &date))
    }
}

/// The keys that sign and encrypt data. Their dates are never looked at.
fn of_pki(case: &Case<'_>) -> Vec<Finding> {
    let own = &case.config().file_daemon;
    let pki = &own.pki;
    let Some(pair) = pki.key_pair.as_ref().filter(|_| pki.signatures || pki.encryption) else { return Vec::new() };
    let mut findings = Vec::new();
    let mut must_be_good = |result: Result<(), KeyProblem>, file: &Path| {
        if let Err(problem) = result {
            findings.push(refused(PKI, &file.display().to_string(), &problem, None));
        }
    };
    must_be_good(case.world.certificate(pair), pair);
    must_be_good(case.world.private_key(pair), pair);
    for signer in &pki.signers {
        must_be_good(case.world.certificate(signer), signer);
        if case.world.mentions_private_key(signer) {
            must_be_good(case.world.private_key(signer), signer);
        }
    }
    for master in &pki.master_keys {
        must_be_good(case.world.certificate(master), master);
    }
    if findings.is_empty() {
        let pem = case.world.read(pair).unwrap_or_default();
        findings.push(match fits(&pem, &pem) {
            Some(false) => Finding::fault(PKI, texts::other_key(pair, pair), texts::HINT_OTHER_KEY),
            _ => Finding::good(PKI, texts::pki(pki.encryption, pki.signers.len(), pki.master_keys.len())),
        });
    }
    findings
}
