//! What is done to the records of a row on its volume. Each file of the tree `data` has one kind of
//! damage.
//!
//! Not among them: an attribute record that is none. The stock daemon then prints what its memory
//! happens to hold, or ends with a segmentation violation.

use std::collections::HashMap;
use std::fs;

use bed::{Attributes, Bed, Result, Session, rewrite_volume};

/// What is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    None,
    /// Bits in data, digests, names, sizes and types.
    Bits,
    /// A data record under an unknown stream.
    Stream,
    /// Every zlib stream, from its first byte on.
    Zlib,
    /// The version in a compression header.
    HeaderVersion,
    /// The length in a compression header.
    HeaderLength,
    /// The algorithm in a compression header.
    HeaderAlgorithm,
}

impl Damage {
    /// Whether data can't be unpacked any more, which ends a Verify of data.
    pub(crate) fn ends_the_job(self) -> bool {
        matches!(self, Self::Zlib | Self::HeaderVersion | Self::HeaderLength | Self::HeaderAlgorithm)
    }
}

const DATA: [i32; 6] = [2, 4, 6, 7, 29, 30];
const DIGESTS: [i32; 6] = [3, 10, 17, 18, 39, 41];
/// The streams whose records begin with an address.
const SPARSE: [i32; 3] = [6, 7, 30];
const ADDRESS: usize = 8;

/// Damages the rows' sessions on the volumes of a client.
pub(crate) fn damage(bed: &Bed, client: &str, sessions: &HashMap<Session, Damage>) -> Result<()> {
    for volume in fs::read_dir(bed.folder().join("volumes").join(client)).unwrap() {
        let mut names: HashMap<Session, String> = HashMap::new();
        rewrite_volume(&volume.unwrap().path(), |session, file_index, stream, record| {
            let Some(damage) = sessions.get(&session).filter(|_| file_index > 0) else { return };
            if *stream == Attributes::STREAM {
                names.insert(session, file_name(record));
            }
            let name = names.get(&session).map(String::as_str).unwrap_or_default();
            change(*damage, name, stream, record);
        })?;
    }
    Ok(())
}

/// The last part of the path in an attribute record.
fn file_name(record: &[u8]) -> String {
    String::from_utf8_lossy(Attributes::of(record).path).rsplit('/').next().unwrap_or_default().to_owned()
}

fn change(damage: Damage, name: &str, stream: &mut i32, record: &mut [u8]) {
    let (is_attributes, is_data) = (*stream == Attributes::STREAM, DATA.contains(stream));
    let body = if SPARSE.contains(stream) { ADDRESS } else { 0 };
    match (damage, name) {
        (Damage::Bits, "bit-in-data") | (Damage::HeaderAlgorithm, "words") if is_data => record[body] ^= 1,
        (Damage::Bits, "bit-in-digest") if DIGESTS.contains(stream) => record[3] ^= 0x20,
        (Damage::Bits, "bit-in-name") if is_attributes => put(record, b"bit-in-name\0", b"BIT-IN-NAME\0"),
        (Damage::Bits, "bit-in-size") if is_attributes => change_size(record),
        (Damage::Bits, "bit-in-type") if is_attributes => put(record, b" 3 /", b" 9 /"),
        (Damage::Stream, "bit-in-data") if is_data => *stream = 999,
        (Damage::Zlib, "words") if is_data => record[body..].fill(b'?'),
        (Damage::HeaderVersion, "words") if is_data => record[body + 7] ^= 1,
        (Damage::HeaderLength, "words") if is_data => record[body + 11] ^= 1,
        _ => {}
    }
}

/// Puts `new` in the place of the first `old`, which must be there.
fn put(record: &mut [u8], old: &[u8], new: &[u8]) {
    let at = record.windows(old.len()).position(|window| window == old).unwrap();
    record[at..at + new.len()].copy_from_slice(new);
}

/// Another size in `LStat`, of the same number of digits.
fn change_size(record: &mut [u8]) {
    let lstat = record.iter().position(|&byte| byte == 0).unwrap() + 1;
    let blanks = record[lstat..].iter().enumerate().filter(|(_, byte)| **byte == b' ').map(|(at, _)| lstat + at);
    let before_size = blanks.take(7).last().unwrap();
    record[before_size + 1] = if record[before_size + 1] == b'B' { b'C' } else { b'B' };
}
