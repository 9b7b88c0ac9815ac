//! Checking that an object is what its server says.

use aws_smithy_types::base64;
use crc::{CRC_32_ISCSI, CRC_32_ISO_HDLC, CRC_64_NVME, Crc, Digest, Table};
use hyper::HeaderMap;
use md5::{Digest as _, Md5};

static CRC32: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);
static CRC32C: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);
static CRC64: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_NVME);

/// A checksum that is computed while an object is read.
pub(crate) enum Checksum {
    /// The server has said none that can be checked.
    None,
    /// The `ETag` of an object that was stored in one piece.
    Md5(Box<Md5>, Vec<u8>),
    Crc32(&'static str, Digest<'static, u32, Table<16>>, Vec<u8>),
    Crc64(Digest<'static, u64, Table<16>>, Vec<u8>),
}

impl Checksum {
    /// The best one that the server names for a whole object.
    pub(crate) fn of(headers: &HeaderMap, etag: Option<&str>, etag_is_md5: bool) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        // A checksum of checksums of parts has their number behind a hyphen.
        let named = |name: &str, length: usize| {
            let value = text(name).filter(|value| !value.contains('-'))?;
            base64::decode(value).ok().filter(|bytes| bytes.len() == length)
        };
        if let Some(sum) = named("x-amz-checksum-crc64nvme", 8) {
            return Self::Crc64(CRC64.digest(), sum);
        }
        if let Some(sum) = named("x-amz-checksum-crc32c", 4) {
            return Self::Crc32("CRC32C", CRC32C.digest(), sum);
        }
        if let Some(sum) = named("x-amz-checksum-crc32", 4) {
            return Self::Crc32("CRC32", CRC32.digest(), sum);
        }
        let is_encrypted = text("x-amz-server-side-encryption").is_some_and(|kind| kind.starts_with("aws:"))
            || headers.contains_key("x-amz-server-side-encryption-customer-algorithm");
        let digest = etag.and_then(|etag| from_hex(etag.trim_matches('"')));
        match digest {
            Some(digest) if etag_is_md5 && !is_encrypted => Self::Md5(Box::default(), digest),
            _ => Self::None,
        }
    }

    /// The next bytes of the object.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::None => {}
            Self::Md5(digest, _) => digest.update(bytes),
            Self::Crc32(_, digest, _) => digest.update(bytes),
            Self::Crc64(digest, _) => digest.update(bytes),
        }
    }

    /// After the last bytes: the name of the checksum if it is another one.
    pub(crate) fn differs(self) -> Option<&'static str> {
        let (name, is_same) = match self {
            Self::None => return None,
            Self::Md5(digest, wanted) => ("MD5", digest.finalize().as_slice() == wanted),
            Self::Crc32(name, digest, wanted) => (name, digest.finalize().to_be_bytes().as_slice() == wanted),
            Self::Crc64(digest, wanted) => ("CRC64NVME", digest.finalize().to_be_bytes().as_slice() == wanted),
        };
        (!is_same).then_some(name)
    }
}

/// The 16 bytes of an MD5 digest in hexadecimal digits.
fn from_hex(text: &str) -> Option<Vec<u8>> {
    if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(headers: &[(&'static str, &'static str)], etag: &str, data: &[u8]) -> Option<&'static str> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let mut sum = Checksum::of(&map, Some(etag), true);
        for part in data.chunks(3) {
            sum.update(part);
        }
        sum.differs()
    }

    #[test]
    fn each_kind_finds_other_data() {
        // Of "123456789": the check values of the algorithms' catalog.
        const CRC32: (&str, &str) = ("x-amz-checksum-crc32", "y/Q5Jg==");
        const CRC32C: (&str, &str) = ("x-amz-checksum-crc32c", "4waSgw==");
        const CRC64: (&str, &str) = ("x-amz-checksum-crc64nvme", "rosUhgp5mIg=");
        const MD5: &str = "\"25f9e794323b453885f5181f1b624d0b\"";
        for (headers, etag, name) in [
            (vec![CRC32], "", "CRC32"),
            (vec![CRC32C], MD5, "CRC32C"),
            (vec![CRC64], "", "CRC64NVME"),
            (vec![], MD5, "MD5"),
        ] {
            assert_eq!(check(&headers, etag, b"123456789"), None, "{name}");
            assert_eq!(check(&headers, etag, b"123456788"), Some(name));
            assert_eq!(check(&headers, etag, b""), Some(name));
        }
    }

    #[test]
    fn what_is_no_checksum_of_the_object_is_not_compared() {
        const MD5: &str = "\"25f9e794323b453885f5181f1b624d0b\"";
        for (headers, etag) in [
            (vec![], "\"25f9e794323b453885f5181f1b624d0b-2\""),
            (vec![("x-amz-checksum-crc32", "y/Q5Jg==-2")], ""),
            (vec![("x-amz-checksum-crc32", "y/Q5")], ""),
            (vec![("x-amz-server-side-encryption", "aws:kms")], MD5),
            (vec![("x-amz-server-side-encryption-customer-algorithm", "AES256")], MD5),
        ] {
            assert_eq!(check(&headers, etag, b"other"), None, "{headers:?} {etag}");
        }
    }
}
