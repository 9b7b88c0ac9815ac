//! From when until when certificates are valid.

use openssl::asn1::{Asn1Time, Asn1TimeRef};
use openssl::error::ErrorStack;
use openssl::x509::X509;

/// When a certificate is valid, seconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Validity {
    pub(crate) begin: i64,
    pub(crate) end: i64,
}

/// The validity of each certificate of a PEM file, in its order.
///
/// # Errors
/// One of them is damaged.
pub(crate) fn validities(pem: &[u8]) -> Result<Vec<Validity>, ErrorStack> {
    let epoch = Asn1Time::from_unix(0)?;
    let seconds = |time: &Asn1TimeRef| {
        let since = epoch.diff(time)?;
        Ok(i64::from(since.days).saturating_mul(86_400).saturating_add(i64::from(since.secs)))
    };
    let certificates = X509::stack_from_pem(pem)?;
    let validity = |certificate: X509| {
        Ok(Validity { begin: seconds(certificate.not_before())?, end: seconds(certificate.not_after())? })
    };
    certificates.into_iter().map(validity).collect()
}

#[cfg(test)]
mod tests {
    use openssl::pkey::PKey;
    use openssl::rsa::Rsa;

    use super::*;

    #[test]
    fn times_before_and_after_1970_are_told() {
        let key = PKey::from_rsa(Rsa::generate(1024).unwrap()).unwrap();
        let mut builder = X509::builder().unwrap();
        builder.set_pubkey(&key).unwrap();
        builder.set_not_before(&Asn1Time::from_unix(-86_401).unwrap()).unwrap();
        builder.set_not_after(&Asn1Time::from_unix(4_102_444_800).unwrap()).unwrap();
        builder.sign(&key, openssl::hash::MessageDigest::sha256()).unwrap();
        let pem = builder.build().to_pem().unwrap();
        assert_eq!(validities(&pem).unwrap(), [Validity { begin: -86_401, end: 4_102_444_800 }]);
        assert_eq!(validities(&[pem.clone(), pem].concat()).unwrap().len(), 2);
        assert_eq!(validities(b"none").unwrap_or_default(), []);
    }
}
