//! The two fixed structures, as DER (reference 04 §12.3, §12.4).

use der::asn1::{ObjectIdentifier, OctetStringRef, SetOfVec};
use der::{Sequence, Tag, ValueOrd};

/// `rsaEncryption`: how a recipient's copy of the content key is encrypted.
pub(crate) const RSA_ENCRYPTION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

/// The only version of everything here.
pub(crate) const VERSION: u8 = 0;

/// A structure of another version would mean something else.
pub(crate) fn check_versions(own: u8, parts: impl Iterator<Item = u8>) -> Result<(), der::Error> {
    let all_known = std::iter::once(own).chain(parts).all(|version| version == VERSION);
    if all_known { Ok(()) } else { Err(Tag::Integer.value_error().into()) }
}

/// Stream 22.
#[derive(Clone, PartialEq, Eq, Debug, Sequence)]
pub(crate) struct CryptoData<'a> {
    pub(crate) version: u8,
    pub(crate) cipher: ObjectIdentifier,
    pub(crate) iv: &'a OctetStringRef,
    pub(crate) recipients: SetOfVec<Recipient<'a>>,
}

/// The content key for the owner of one certificate.
#[derive(Clone, PartialEq, Eq, Debug, Sequence, ValueOrd)]
pub(crate) struct Recipient<'a> {
    pub(crate) version: u8,
    pub(crate) key_id: &'a OctetStringRef,
    pub(crate) algorithm: ObjectIdentifier,
    pub(crate) key: &'a OctetStringRef,
}

/// Stream 19.
#[derive(Clone, PartialEq, Eq, Debug, Sequence)]
pub(crate) struct SignatureData<'a> {
    pub(crate) version: u8,
    pub(crate) signers: SetOfVec<SignerInfo<'a>>,
}

/// One signature.
#[derive(Clone, PartialEq, Eq, Debug, Sequence, ValueOrd)]
pub(crate) struct SignerInfo<'a> {
    pub(crate) version: u8,
    pub(crate) key_id: &'a OctetStringRef,
    pub(crate) digest: ObjectIdentifier,
    pub(crate) algorithm: ObjectIdentifier,
    pub(crate) signature: &'a OctetStringRef,
}
