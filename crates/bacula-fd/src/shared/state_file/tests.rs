//! Files that the stock daemon wrote, damaged ones, and a round trip.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use super::*;

fn entry(job_id: u32) -> FinishedJob {
    FinishedJob {
        errors: 3,
        job_type: b'B',
        job_status: b'T',
        job_level: b'F',
        job_id,
        vol_session_id: 1,
        vol_session_time: 0x6b00_f550,
        job_files: 5,
        job_bytes: 12,
        start_time: 0x6b00_f577,
        end_time: 0x6b00_f577,
        job: b"stock.2026-11-21_01.35.49_03".to_vec(),
    }
}

#[test]
fn an_empty_list_has_196_bytes_and_the_stock_header() {
    // reference 06 §5.9
    let file = encode(&[]);
    assert_eq!(file.len(), 196);
    assert_eq!(&file[..14], b"Bacula State\n\0");
    assert_eq!(&file[16..24], [4, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(&file[24..40], [0xc0, 0, 0, 0, 0, 0, 0, 0, 0xc4, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(decode(&file), Ok(Vec::new()));
}

#[test]
fn a_record_stands_where_the_stock_daemon_puts_it() {
    // The dump of reference 06 §5.9: three jobs, the first one shown.
    let file = encode(&[FinishedJob { errors: 0, ..entry(1) }, entry(2), entry(3)]);
    assert_eq!(file.len(), 796);
    assert_eq!(&file[32..34], [0x1c, 0x03]);
    assert_eq!(&file[0xc0..0xc4], [3, 0, 0, 0]);
    let codes = [0, 0, 0, 0, 0x42, 0, 0, 0, 0x54, 0, 0, 0, 0x46, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0x50, 0xf5, 0, 0x6b];
    assert_eq!(&file[0xd4..0xf0], codes);
    assert_eq!(&file[0xf0..0xfc], [5, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(&file[0x10c..0x110], b"stoc");
}

#[test]
fn the_newest_ten_survive_a_round_trip() {
    let all: Vec<FinishedJob> = (1..=13).map(entry).collect();
    assert_eq!(decode(&encode(&all)).unwrap(), all[3..]);
    let with_console = [entry(0), entry(7)];
    assert_eq!(decode(&encode(&with_console)).unwrap(), [entry(7)]);
    let long = FinishedJob { job: vec![b'x'; 500], ..entry(1) };
    assert_eq!(decode(&encode(&[long])).unwrap()[0].job.len(), 127);
}

#[test]
fn a_link_or_fifo_in_its_place_is_not_read() {
    let directory = std::env::temp_dir().join(format!("ferrofd-state-traps-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let (real, file) = (directory.join("real"), directory.join("bacula-fd.1.state"));
    fs::write(&real, encode(&[entry(1)])).unwrap();
    assert_eq!(load(&real), [entry(1)]);
    std::os::unix::fs::symlink(&real, &file).unwrap();
    assert_eq!(load(&file), []);
    fs::remove_file(&file).unwrap();
    // Without a writer an open that blocks would never return.
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(load(&file), []);
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn damage_is_named() {
    let good = encode(&[entry(1)]);
    for length in 0..HEADER_SIZE + 4 {
        assert!(decode(&good[..length]).is_err(), "{length}");
    }
    let broken = |at: usize, byte: u8| {
        let mut file = good.clone();
        file[at] = byte;
        decode(&file)
    };
    assert_eq!(broken(0, b'b'), Err(DamagedState::Magic));
    assert_eq!(broken(16, 3), Err(DamagedState::Version(3)));
    assert_eq!(broken(24, 0), Err(DamagedState::Short(396)));
    assert_eq!(broken(31, 0xff), Err(DamagedState::Short(396)));
    assert_eq!(broken(0xc0, 41), Err(DamagedState::Count(41)));
}

/// Power may fail while it is written.
#[test]
fn a_file_that_was_cut_off_keeps_the_jobs_before_the_cut() {
    let jobs: Vec<_> = (1..=3).map(entry).collect();
    let whole = encode(&jobs);
    for (cut, kept) in [(1, 2), (RECORD_SIZE, 2), (RECORD_SIZE + 1, 1), (3 * RECORD_SIZE, 0)] {
        assert_eq!(decode(&whole[..whole.len() - cut]).as_deref(), Ok(&jobs[..kept]), "{cut}");
    }
}

#[test]
fn only_a_file_of_the_daemon_is_overwritten() {
    let directory = std::env::temp_dir().join(format!("ferrofd-state-over-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let (file, other) = (own_file::path(&directory, 9102, "state"), directory.join("other"));
    let ways: [&dyn Fn(); 3] =
        [&|| std::os::unix::fs::symlink(&other, &file).unwrap(), &|| fs::hard_link(&other, &file).unwrap(), &|| {
            fs::write(&file, "rubbish").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        }];
    for way in ways {
        fs::write(&other, "another user's").unwrap();
        way();
        save(&file, &[entry(1)]).unwrap();
        assert_eq!(load(&file), [entry(1)]);
        let about = fs::symlink_metadata(&file).unwrap();
        assert!(about.is_file() && about.mode() & 0o7777 == MODE, "{about:?}");
        assert_eq!(fs::read(&other).unwrap(), b"another user's");
        let inode = about.ino();
        save(&file, &[entry(1), entry(2)]).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().ino(), inode, "written over");
        fs::remove_file(&file).unwrap();
    }
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_damaged_file_is_deleted_and_a_good_one_read() {
    let directory = std::env::temp_dir().join(format!("ferrofd-state-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let file = own_file::path(&directory, 9102, "state");
    assert!(file.ends_with("bacula-fd.9102.state"));
    assert_eq!(load(&file), []);
    save(&file, &[entry(1)]).unwrap();
    save(&file, &[entry(1), entry(2)]).unwrap();
    assert_eq!(load(&file), [entry(1), entry(2)]);
    save(&file, &[entry(3)]).unwrap();
    assert_eq!(fs::read(&file).unwrap(), encode(&[entry(3)]), "nothing is left behind it");
    fs::write(&file, b"rubbish").unwrap();
    assert_eq!(load(&file), []);
    assert!(!file.exists());
    fs::remove_dir_all(&directory).unwrap();
}
