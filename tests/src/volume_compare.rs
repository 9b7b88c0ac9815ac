//! Compares what two File Daemons sent for the same tree: record by record, every byte. Session ids
//! and times are not part of a record; everything else must be equal.

use std::fmt::Write as _;

use crate::error::Result;
use crate::saved::Attributes;
use crate::volume::{Record, stream_name};

/// What comparing found.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Records that both have.
    pub records: u64,
    /// Bytes in the left one's records.
    pub bytes: u64,
    /// The first differences, in words.
    pub differences: Vec<String>,
    /// How many there are in all.
    pub count: u64,
}

impl Comparison {
    /// Whether everything is equal.
    pub fn is_equal(&self) -> bool {
        self.count == 0
    }

    /// The differences as one text.
    pub fn text(&self) -> String {
        let mut text = format!("{} of {} records differ", self.count, self.records);
        for difference in &self.differences {
            let _ = write!(text, "\n{difference}");
        }
        text
    }
}

/// What may differ.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordRules {
    /// Leave out the access time in `LStat`, for a tree that was read in between on a host that
    /// notes each access.
    pub mask_atime: bool,
}

/// How many differences are put into words.
const TOLD: usize = 20;
/// Which of the sixteen numbers of `LStat` is the access time (reference 04 §6.3).
const ATIME: usize = 10;

/// Compares two record sequences to their ends.
pub fn compare_records(
    left: impl Iterator<Item = Result<Record>>,
    right: impl Iterator<Item = Result<Record>>,
    rules: RecordRules,
) -> Result<Comparison> {
    let mut result = Comparison::default();
    let (mut left, mut right) = (left, right);
    let mut name = Vec::new();
    loop {
        let (one, other) = (left.next().transpose()?, right.next().transpose()?);
        let difference = match (&one, &other) {
            (None, None) => return Ok(result),
            (Some(record), None) => Some(format!("only on the left: {}", describe(record))),
            (None, Some(record)) => Some(format!("only on the right: {}", describe(record))),
            (Some(one), Some(other)) => {
                result.records += 1;
                result.bytes += one.data.len() as u64;
                if one.stream == Attributes::STREAM {
                    name = Attributes::of(&one.data).path.to_vec();
                }
                difference(one, other, rules)
            }
        };
        if let Some(difference) = difference {
            result.count += 1;
            if result.differences.len() < TOLD {
                result.differences.push(format!("{difference} (file {})", name.escape_ascii()));
            }
        }
    }
}

/// The difference between two records, if there is one.
fn difference(left: &Record, right: &Record, rules: RecordRules) -> Option<String> {
    if (left.file_index, left.stream) != (right.file_index, right.stream) {
        return Some(format!("{} against {}", describe(left), describe(right)));
    }
    let masked = |record: &Record| {
        let mask = rules.mask_atime && record.stream == Attributes::STREAM;
        if mask { without_atime(&record.data) } else { None }.unwrap_or_else(|| record.data.clone())
    };
    let (one, other) = (masked(left), masked(right));
    if one == other {
        return None;
    }
    let common = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
    let part = |bytes: &[u8]| {
        let start = common.saturating_sub(40);
        bytes.iter().skip(start).take(120).copied().collect::<Vec<_>>().escape_ascii().to_string()
    };
    Some(format!(
        "FileIndex {} stream {}: differ at byte {common} of {} and {}\n    left:  …{}\n    right: …{}",
        left.file_index,
        stream_name(left.stream),
        one.len(),
        other.len(),
        part(&one),
        part(&other)
    ))
}

fn describe(record: &Record) -> String {
    let Record { file_index, stream, data, offset, .. } = record;
    format!("FileIndex {file_index} stream {}, {} bytes, at {offset}", stream_name(*stream), data.len())
}

/// The attributes record with `-` for the access time.
fn without_atime(data: &[u8]) -> Option<Vec<u8>> {
    let mut parts: Vec<Vec<u8>> = data.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect();
    let lstat = parts.get_mut(1)?;
    let mut numbers: Vec<&[u8]> = lstat.split(|&byte| byte == b' ').collect();
    *numbers.get_mut(ATIME)? = b"-";
    *lstat = numbers.join(&b' ');
    Some(parts.join(&0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &[u8] = b"1 3 /d/x\0P4A uYn6 IGk B A A A G BAA I AAAA BBBB CCCC A A C\0\0\0\x30\0";

    type Short<'a> = (i32, i32, &'a [u8]);

    fn record(&(file_index, stream, data): &Short<'_>) -> Record {
        Record { session: (1, 1), file_index, stream, data: data.to_vec(), offset: 0 }
    }

    fn compare(left: &[Short<'_>], right: &[Short<'_>], rules: RecordRules) -> Comparison {
        let records = |list: &[Short<'_>]| list.iter().map(|short| Ok(record(short))).collect::<Vec<_>>();
        compare_records(records(left).into_iter(), records(right).into_iter(), rules).unwrap()
    }

    #[test]
    fn equal_sequences_are_equal_and_counted() {
        let list = [(1, 1, FILE), (1, 2, &b"data"[..])];
        let result = compare(&list, &list, RecordRules::default());
        assert!(result.is_equal());
        assert_eq!((result.records, result.bytes), (2, FILE.len() as u64 + 4));
    }

    #[test]
    fn each_kind_of_difference_is_told_with_its_place() {
        let list = [(1, 1, FILE), (1, 2, &b"data"[..])];
        let cases: [(&[Short<'_>], &str); 4] = [
            (&[(1, 1, FILE), (1, 2, b"dXta")], "FileIndex 1 stream 2 DATA: differ at byte 1 of 4 and 4"),
            (&[(1, 1, FILE), (2, 2, b"data")], "against FileIndex 2"),
            (&[(1, 1, FILE)], "only on the left: FileIndex 1 stream 2 DATA, 4 bytes"),
            (&[(1, 1, FILE), (1, 2, b"data"), (1, 3, b"")], "only on the right: FileIndex 1 stream 3 MD5"),
        ];
        for (other, wanted) in cases {
            let result = compare(&list, other, RecordRules::default());
            assert_eq!(result.count, 1);
            assert!(result.text().contains(wanted), "{}", result.text());
            assert!(result.text().contains("(file /d/x)"), "{}", result.text());
        }
    }

    #[test]
    fn only_the_access_time_is_masked_and_only_on_demand() {
        let atime = FILE.to_vec().into_iter().map(|b| if b == b'A' { b'Z' } else { b }).collect::<Vec<_>>();
        let mut atime_only = FILE.to_vec();
        let at = FILE.windows(4).position(|window| window == b"AAAA").unwrap();
        atime_only[at] = b'Z';
        let mask = RecordRules { mask_atime: true };
        assert!(compare(&[(1, 1, FILE)], &[(1, 1, &atime_only)], mask).is_equal());
        assert!(!compare(&[(1, 1, FILE)], &[(1, 1, &atime_only)], RecordRules::default()).is_equal());
        assert!(!compare(&[(1, 1, FILE)], &[(1, 1, &atime)], mask).is_equal());
    }
}
