//! What an encrypted job put on its volume, opened with the private key: independent of the
//! product's own code.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use bed::{Record, Result};
use openssl::pkey::{PKey, Private};
use openssl::rsa::Padding;
use openssl::symm::{Cipher, decrypt};

/// `SignedDigest`, the encrypted session data, and the three streams of encrypted data.
pub(crate) const SIGNATURE: i32 = 19;
pub(crate) const SESSION: i32 = 22;
const PLAIN: i32 = 20;
const GZIP: i32 = 23;
const COMPRESSED: i32 = 32;
/// A block before compression is never longer.
const LARGEST: usize = 1 << 17;

/// One item of the volume, in a form that must be the same for both daemons.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Item {
    pub(crate) file_index: i32,
    pub(crate) stream: i32,
    pub(crate) content: Content,
}

#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Content {
    Bytes(Vec<u8>),
    /// A session record: its cipher, and its recipients, in the order of the record.
    Session {
        cipher: Vec<u8>,
        iv_len: usize,
        key_len: usize,
        recipients: Vec<Vec<u8>>,
    },
    /// Encrypted data: its blocks as they were read from the file. The lengths of the records are
    /// the same for both where nothing is compressed.
    Data {
        blocks: Vec<Vec<u8>>,
        record_lens: Vec<usize>,
    },
}

/// The pieces of a DER structure: tag and content, one after the other.
fn der(mut bytes: &[u8]) -> Vec<(u8, &[u8])> {
    let mut pieces = Vec::new();
    while let [tag, first, rest @ ..] = bytes {
        let lengths = usize::from(if first & 0x80 == 0 { 0 } else { first & 0x7f });
        let (length, rest) = rest.split_at(lengths);
        let length = match lengths {
            0 => usize::from(*first),
            _ => length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)),
        };
        let (content, rest) = rest.split_at(length);
        pieces.push((*tag, content));
        bytes = rest;
    }
    pieces
}

/// The tags of a structure.
fn tags(pieces: &[(u8, &[u8])]) -> Vec<u8> {
    pieces.iter().map(|(tag, _)| *tag).collect()
}

/// A session record, taken apart field by field (reference 04 §12.3); its key is decrypted with our
/// private key.
fn session(record: &[u8], id: &[u8], private: &PKey<Private>) -> (Content, Vec<u8>, Vec<u8>) {
    let outer = der(record);
    assert_eq!(tags(&outer), [0x30]);
    let fields = der(outer[0].1);
    assert_eq!(tags(&fields), [0x02, 0x06, 0x04, 0x31], "version, cipher, IV, recipients");
    assert_eq!(fields[0].1, [0]);
    let mut key = Vec::new();
    let mut recipients = Vec::new();
    for (tag, recipient) in der(fields[3].1) {
        assert_eq!(tag, 0x30);
        let parts = der(recipient);
        assert_eq!(tags(&parts), [0x02, 0x04, 0x06, 0x04], "version, key id, algorithm, key");
        assert_eq!((parts[0].1, parts[2].1), (&[0][..], &b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01"[..]));
        if parts[1].1 == id {
            let mut plain = vec![0; 256];
            let len = private.rsa().unwrap().private_decrypt(parts[3].1, &mut plain, Padding::PKCS1).unwrap();
            key = plain[..len].to_vec();
        }
        recipients.push(parts[1].1.to_vec());
    }
    let (cipher, iv) = (fields[1].1.to_vec(), fields[2].1.to_vec());
    (Content::Session { cipher, iv_len: iv.len(), key_len: key.len(), recipients }, key, iv)
}

fn unpack(stream: i32, block: &[u8]) -> Vec<u8> {
    match stream {
        GZIP => {
            let mut plain = Vec::new();
            flate2::read::ZlibDecoder::new(block).read_to_end(&mut plain).unwrap();
            plain
        }
        COMPRESSED => {
            assert_eq!(&block[..4], b"LZOX");
            lzokay_native::decompress_all(&block[12..], Some(LARGEST)).unwrap()
        }
        _ => block.to_vec(),
    }
}

fn blocks(stream: i32, data: &[u8], key: &[u8], iv: &[u8]) -> Vec<Vec<u8>> {
    let cipher = match key.len() {
        16 => Cipher::aes_128_cbc(),
        24 => Cipher::aes_192_cbc(),
        _ => Cipher::aes_256_cbc(),
    };
    let plain = decrypt(cipher, key, Some(iv), data).unwrap();
    let mut rest = plain.as_slice();
    let mut blocks = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (block, after) = after.split_at(u32::from_be_bytes(*length) as usize);
        blocks.push(unpack(stream, block));
        rest = after;
    }
    assert!(rest.is_empty());
    blocks
}

/// The records of one file's data, which only together can be decrypted.
struct Sealed {
    file_index: i32,
    stream: i32,
    data: Vec<u8>,
    record_lens: Vec<usize>,
}

/// Everything that a job put on its volume. Also gives how many different initialisation vectors
/// there are.
pub(crate) fn open(
    records: impl Iterator<Item = Result<Record>>,
    id: &[u8],
    private: &PKey<Private>,
) -> (Vec<Item>, usize) {
    let mut items: Vec<Item> = Vec::new();
    let mut keys = BTreeMap::new();
    let mut vectors = BTreeSet::new();
    let mut sealed: Option<Sealed> = None;
    for record in records.map(Some).chain([None]) {
        let record = record.transpose().unwrap();
        if let (Some(record), Some(sealed)) = (&record, &mut sealed)
            && record.stream == sealed.stream
        {
            sealed.record_lens.push(record.data.len());
            sealed.data.extend_from_slice(&record.data);
            continue;
        }
        if let Some(Sealed { file_index, stream, data, record_lens }) = sealed.take() {
            let (key, iv): &(Vec<u8>, Vec<u8>) = &keys[&file_index];
            let record_lens = if stream == PLAIN { record_lens } else { Vec::new() };
            let content = Content::Data { blocks: blocks(stream, &data, key, iv), record_lens };
            items.push(Item { file_index, stream, content });
        }
        let Some(Record { file_index, stream, data, .. }) = record else { break };
        let content = match stream {
            PLAIN | GZIP | COMPRESSED => {
                sealed = Some(Sealed { file_index, stream, record_lens: vec![data.len()], data });
                continue;
            }
            SESSION => {
                let (content, key, iv) = session(&data, id, private);
                vectors.insert(iv.clone());
                keys.insert(file_index, (key, iv));
                content
            }
            _ => Content::Bytes(data),
        };
        items.push(Item { file_index, stream, content });
    }
    (items, vectors.len())
}
