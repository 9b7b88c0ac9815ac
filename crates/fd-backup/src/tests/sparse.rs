//! Sparse files: blocks of zeros are left out, and holes are not even read (reference 04 §8.3).

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Duration;

use fd_records::{FileType, Stat, Stream};

use super::support::{Bed, Outcome, Record, hex};
use crate::exchange::Stopped;
use crate::file::blocks::{Cut, DataEnd, Scratch, read_blocks};
use crate::source::{Opened, Source};

/// Length of a block with the default network buffer.
const BLOCK: u64 = 65_528;

fn addresses(record: &Record) -> Vec<(u64, usize)> {
    record
        .messages
        .iter()
        .map(|message| (u64::from_be_bytes(message[..8].try_into().unwrap()), message.len() - 8))
        .collect()
}

/// Saves a file of `len` bytes with data at some positions, once with holes and once without.
fn both_ways(len: u64, data: &[(u64, &[u8])]) -> (Outcome, Vec<Record>) {
    let bed = Bed::new("Ms");
    let (holes, full) = (File::create(bed.path("holes")).unwrap(), File::create(bed.path("full")).unwrap());
    full.write_all_at(&vec![0; usize::try_from(len).unwrap()], 0).unwrap();
    holes.set_len(len).unwrap();
    for (at, bytes) in data {
        holes.write_all_at(bytes, *at).unwrap();
        full.write_all_at(bytes, *at).unwrap();
    }
    assert_eq!(holes.metadata().unwrap().size(), full.metadata().unwrap().size());
    let outcome = bed.run();
    let (with_holes, in_full) = (outcome.of(&bed.name("holes")), outcome.of(&bed.name("full")));
    assert_eq!(with_holes[0].attributes().lstat.data_stream, Stream::SPARSE_DATA);
    for (one, other) in with_holes[1..].iter().zip(&in_full[1..]) {
        assert_eq!((one.stream, one.size, &one.messages), (other.stream, other.size, &other.messages));
    }
    assert_eq!(with_holes.len(), in_full.len());
    (outcome, in_full)
}

/// The example of reference 04 §17.3.
#[test]
fn a_sparse_file_has_records_of_its_data_only() {
    let (outcome, records) = both_ways(393_268, &[(131_056, b"DATA-AT-2")]);
    assert_eq!(addresses(&records[1]), [(2 * BLOCK, 65_528), (6 * BLOCK, 100)]);
    assert!(records[1].messages[0][8..].starts_with(b"DATA-AT-2\0"));
    // The digest covers only the data that is sent.
    assert_eq!(hex(&records[2].data()), "55c6a50be155178e3280290a90cb3844");
    assert_eq!(outcome.progress.job_bytes(), 2 * (65_528 + 100 + 16));
    assert_eq!(outcome.progress.read_bytes(), 2 * (65_528 + 100));
}

#[test]
fn the_last_block_is_always_sent() {
    let (_, records) = both_ways(200_000, &[]);
    assert_eq!(addresses(&records[1]), [(3 * BLOCK, 3416)]);
    assert_eq!(hex(&records[2].data()), "8664be969f675706105801b9ccacd55d");
    let (_, records) = both_ways(2 * BLOCK, &[]);
    assert_eq!(addresses(&records[1]), [(BLOCK, 65_528)]);
    let (_, records) = both_ways(15, &[]);
    assert_eq!(addresses(&records[1]), [(0, 15)]);
    let (_, records) = both_ways(BLOCK, &[]);
    assert_eq!(addresses(&records[1]), [(0, 65_528)]);
}

#[test]
fn data_anywhere_in_a_sparse_file_is_sent() {
    for at in [0, 4095, 4096, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 77, 20 * BLOCK - 1, 20 * BLOCK, 20 * BLOCK + 9] {
        let (_, records) = both_ways(20 * BLOCK + 10, &[(at, b"x")]);
        let mut expected = vec![at / BLOCK * BLOCK, 20 * BLOCK];
        expected.dedup();
        assert_eq!(addresses(&records[1]).iter().map(|(address, _)| *address).collect::<Vec<_>>(), expected, "{at}");
    }
}

/// A thread that reads zeros for hours must give way, too.
#[test]
fn something_can_be_done_before_each_block_also_before_those_that_are_left_out() {
    let bed = Bed::new("Ms");
    let path = bed.file("f", &vec![0; usize::try_from(5 * BLOCK).unwrap()]);
    let stat = Stat { size: 5 * 65_528, blocks: i64::MAX, ..Stat::default() };
    let opened = Opened::new(File::open(path).unwrap().into(), Duration::ZERO);
    let mut source = Source::new(opened, FileType::Regular, &stat);
    let (mut calls, mut taken) = (0, 0);
    let each = |_, _: &[u8]| {
        taken += 1;
        Ok::<(), Stopped>(())
    };
    let mut intake = Scratch { block: &mut Vec::new(), before_each: &mut || calls += 1, each };
    let end = read_blocks(&mut source, &Cut::new(FileType::Regular, &stat, true, 65_536), &|| false, &mut intake);
    assert!(matches!(end, Ok(DataEnd::Complete)));
    // The last one is the end.
    assert_eq!((calls, taken), (6, 1));
}

#[test]
fn only_known_file_systems_are_asked_for_holes() {
    let of = |path| knows_holes(File::open(path).unwrap());
    assert_eq!((of("/dev/shm"), of("/proc/version")), (true, false));
}

fn knows_holes(file: File) -> bool {
    Source::new(Opened::new(file.into(), Duration::ZERO), FileType::Regular, &Stat::default()).knows_holes()
}

#[test]
fn a_hole_of_a_terabyte_takes_no_time() {
    let bed = Bed::new("Ms");
    let file = File::create(bed.path("huge")).unwrap();
    let len = 1 << 40;
    if file.set_len(len).is_err() {
        return skip::test("this file system has no files of a terabyte");
    }
    if !knows_holes(file.try_clone().unwrap()) {
        return skip::test("this file system is not asked for holes");
    }
    file.write_all_at(b"data", len / 2).unwrap();
    let outcome = bed.run();
    let records = outcome.of(&bed.name("huge"));
    let last = (len - 1) / BLOCK * BLOCK;
    assert_eq!(
        addresses(&records[1]),
        [(len / 2 / BLOCK * BLOCK, 65_528), (last, usize::try_from(len - last).unwrap())]
    );
}
