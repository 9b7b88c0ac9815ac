//! The file of signatures, whole and damaged.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd as _;

use super::*;

const LEN: usize = 256;

fn file(name: &str) -> File {
    let path = std::env::temp_dir().join(format!("fd-backup-{name}-{}", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    file
}

/// A digest: multiplied, so that neighbours differ everywhere.
fn digest(number: u64) -> [u8; 32] {
    let mut digest = [0; 32];
    for (at, bytes) in digest.chunks_exact_mut(8).enumerate() {
        let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17 * u32::try_from(at).unwrap());
        bytes.copy_from_slice(&mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9).to_le_bytes());
    }
    digest
}

fn signature(number: u64) -> [u8; LEN] {
    [u8::try_from(number % 251).unwrap(); LEN]
}

fn has(kept: &SignatureFile, number: u64) -> bool {
    let mut found = [0; LEN];
    kept.find(&digest(number), &mut found) && found == signature(number)
}

fn keep(kept: &SignatureFile, number: u64) {
    kept.keep(&digest(number), &signature(number));
}

#[test]
fn a_kept_signature_is_found_by_the_next_job_and_no_other_is() {
    let file = file("found");
    let kept = SignatureFile::new(file.try_clone().unwrap(), 1 << 20);
    assert!(!has(&kept, 0));
    for number in 0..1000 {
        keep(&kept, number);
    }
    let next = SignatureFile::new(file, 1 << 20);
    assert!((0..1000).all(|number| has(&next, number)));
    assert!((1000..2000).all(|number| !has(&next, number)));
    assert_eq!((kept.found(), kept.made()), (0, 1000));
    assert_eq!((next.found(), next.made()), (1000, 0));
}

#[test]
fn a_full_file_does_not_grow_and_keeps_a_part_of_repeated_signatures() {
    let file = file("bounded");
    let bytes = 64 << 10;
    let kept = SignatureFile::new(file.try_clone().unwrap(), bytes);
    let room = bytes / PAGE as u64 * (PAGE / (32 + LEN)) as u64;
    for _ in 0..2 {
        for number in (0..2 * room).filter(|number| !has(&kept, *number)).collect::<Vec<_>>() {
            keep(&kept, number);
        }
    }
    assert!(file.metadata().unwrap().len() <= bytes);
    let found = (0..2 * room).filter(|number| has(&kept, *number)).count() as u64;
    assert!((room * 3 / 4..=room).contains(&found), "{found} of {room}");
}

#[test]
fn an_invalid_signature_is_replaced_in_its_place() {
    let file = file("replaced");
    let kept = SignatureFile::new(file.try_clone().unwrap(), 1 << 20);
    keep(&kept, 5);
    let len = file.metadata().unwrap().len();
    file.write_all_at(&[255], len - 1).unwrap();
    assert!(!has(&kept, 5));
    keep(&kept, 5);
    assert!(has(&kept, 5));
    assert_eq!(file.metadata().unwrap().len(), len);
}

#[test]
fn a_file_of_any_content_can_be_used() {
    let file = file("any");
    for byte in [1, 255] {
        file.write_all_at(&vec![byte; 40_000], 0).unwrap();
        let kept = SignatureFile::new(file.try_clone().unwrap(), 40_000);
        assert!(!has(&kept, 1));
        keep(&kept, 1);
        assert!(has(&kept, 1));
    }
}

#[test]
fn a_key_too_large_for_a_page_is_not_kept() {
    let file = file("large");
    let kept = SignatureFile::new(file.try_clone().unwrap(), 1 << 20);
    kept.keep(&digest(1), &[7; PAGE]);
    assert!(!kept.find(&digest(1), &mut [0; PAGE]));
    assert_eq!(file.metadata().unwrap().len(), 0);
}

#[test]
fn on_a_full_disk_no_signature_is_added_and_kept_ones_are_found() {
    let full = OpenOptions::new().read(true).write(true).open("/dev/full").unwrap();
    let kept = SignatureFile::new(full, 1 << 20);
    keep(&kept, 1);
    assert_eq!(kept.problem().and_then(io::Error::raw_os_error), Some(28), "ENOSPC");
    assert!(kept.find(&[0; 32], &mut [1; LEN]), "all of it is zeros");
}

#[test]
fn an_unreadable_file_is_not_read_again() {
    let file = file("unreadable");
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let kept = SignatureFile::new(OpenOptions::new().write(true).open(path).unwrap(), 1 << 20);
    assert!(!has(&kept, 1));
    assert_eq!(kept.problem().and_then(io::Error::raw_os_error), Some(9), "EBADF");
    keep(&kept, 1);
    assert_eq!(file.metadata().unwrap().len(), 0);
}
