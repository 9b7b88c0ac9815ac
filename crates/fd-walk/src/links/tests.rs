//! The table of inodes.

use super::*;

fn stat(dev: u64, ino: u64) -> Stat {
    Stat { dev, ino, ..Stat::default() }
}

fn first(met: Met) -> LinkSlot {
    let Met::First(slot) = met else { panic!("{met:?}") };
    slot
}

#[test]
fn the_first_name_of_an_inode_is_the_one_met_first() {
    let table = LinkTable::default();
    let slot = first(table.meet(&stat(1, 2), b"/a", 0));
    assert!(matches!(table.meet(&stat(1, 2), b"/a", 0), Met::Again));
    let saved = LinkState::Saved { file_index: 7, digest: DigestValue::from_bytes(DigestKind::Md5, &[3; 16]) };
    slot.set(saved);
    let Met::Later(same) = table.meet(&stat(1, 2), b"/b", 0) else { panic!("known") };
    assert_eq!(same.path(), b"/a");
    assert_eq!(same.get(), saved);
    assert!(matches!(table.meet(&stat(2, 2), b"/c", 0), Met::First(_)), "another device");
    let Met::Later(same) = table.meet(&stat(1, 2), b"/b", 3) else { panic!("known") };
    assert_eq!((same.path(), same.strip_path()), (b"/a".to_vec(), 0));
    let slot = first(table.meet(&stat(2, 3), b"/d", 3));
    assert!(matches!(table.meet(&stat(2, 3), b"/d", 0), Met::Again));
    assert_eq!(slot.strip_path(), 3);
}

#[test]
fn another_file_of_the_same_number_is_doubtful() {
    let table = LinkTable::default();
    let known = Stat { size: 5, mtime: 6, ctime: 7, ..stat(1, 2) };
    first(table.meet(&known, b"/a", 0));
    assert!(matches!(table.meet(&known, b"/b", 0), Met::Later(_)));
    let sizes_and_times = [Stat { size: 6, ..known }, Stat { mtime: 7, ..known }, Stat { ctime: 8, ..known }];
    // Files of an image that was made with one time for all.
    let others = [
        Stat { mode: Stat::MODE_FIFO, ..known },
        Stat { uid: 1, ..known },
        Stat { gid: 1, ..known },
        Stat { rdev: 1, ..known },
    ];
    for other in sizes_and_times.into_iter().chain(others) {
        assert!(matches!(table.meet(&other, b"/b", 0), Met::Doubtful(_)), "{other:?}");
    }
    assert!(matches!(table.meet(&Stat { nlink: 3, atime: 9, ..known }, b"/b", 0), Met::Later(_)), "names and reads");
}

#[test]
fn a_slot_returns_its_last_state() {
    let slot = first(LinkTable::default().meet(&stat(1, 2), b"a", 0));
    assert_eq!((slot.get(), slot.path()), (LinkState::Pending, b"a".to_vec()));
    for state in [
        LinkState::NotSaved,
        LinkState::Saved { file_index: 0, digest: None },
        LinkState::Saved { file_index: -1, digest: DigestValue::from_bytes(DigestKind::Sha512, &[5; 64]) },
        LinkState::Pending,
    ] {
        slot.set(state);
        assert_eq!(slot.get(), state);
    }
}

#[test]
fn many_inodes_in_many_directories_keep_their_names() {
    let table = LinkTable::default();
    let path = |ino: u64| format!("/some/directory {}/of many/name {ino}", ino / 7).into_bytes();
    let slots: Vec<_> = (0..5000).map(|ino| first(table.meet(&stat(ino % 3, ino), &path(ino), 0))).collect();
    for (ino, slot) in (0..).zip(slots) {
        assert_eq!(slot.path(), path(ino));
        assert!(matches!(table.meet(&stat(ino % 3, ino), &path(ino), 0), Met::Again));
        assert!(matches!(table.meet(&stat(ino % 3, ino), b"/other", 0), Met::Later(_)));
    }
}

#[test]
fn an_inode_costs_little_more_than_its_name_and_digest() {
    let table = LinkTable::default();
    for ino in 0..10_000 {
        let path = format!("/a/long/path/to/the/directory/file-{ino:06}");
        first(table.meet(&stat(1, ino), path.as_bytes(), 0));
    }
    let arena = table.arena.lock();
    let bytes = arena.records.len() * size_of::<Record>() + arena.numbers.allocation_size() + arena.bytes.len();
    assert!(bytes / 10_000 < 60, "{} bytes an inode", bytes / 10_000);
}
