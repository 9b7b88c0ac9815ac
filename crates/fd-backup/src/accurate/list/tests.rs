//! The list in memory.

use super::*;

fn stat(n: i64) -> Stat {
    Stat {
        dev: 65024,
        ino: 10_160_589 + n.cast_unsigned(),
        mode: 0o100_644,
        nlink: 1,
        uid: u32::try_from(n % 3).unwrap(),
        gid: 0,
        rdev: 0,
        size: n * 1000,
        blksize: 4096,
        blocks: n,
        atime: 1_700_000_000 + n,
        mtime: 1_700_000_000 - n,
        ctime: 1_795_228_584 + n,
    }
}

fn push(list: &mut List, name: &[u8], stat: Stat, digest: &[u8], link_fi: i32) -> bool {
    let mut lstat_text = Vec::new();
    LStat { stat, link_fi, ..LStat::default() }.encode(&mut lstat_text);
    list.push(&AccurateEntry { name, lstat_text: &lstat_text, digest, delta_seq: 0 })
}

#[test]
fn a_list_returns_each_record_unchanged() {
    let mut list = List::new(Fields::ALL);
    for n in 0..3000 {
        let digest: &[u8] = if n % 2 == 0 { b"nVdV36yYdCA1NqA50wWznw" } else { b"" };
        assert!(push(
            &mut list,
            format!("/srv/{}/file{n}", n % 70).as_bytes(),
            stat(n),
            digest,
            i32::try_from(n % 5).unwrap()
        ));
    }
    assert!(push(&mut list, b"/srv/7/", Stat::default(), b"0", 0));
    list.complete();
    assert_eq!(list.len(), 3001);
    for n in 0..3000 {
        let path = format!("/srv/{}/file{n}", n % 70);
        let id = list.find(path.as_bytes()).unwrap();
        let known = list.get(id).unwrap();
        assert_eq!(known.stat, stat(n));
        assert_eq!(known.is_link, n % 5 != 0);
        assert_eq!(matches!(known.digest, Some(bytes) if bytes.len() == 16), n % 2 == 0);
        let mut out = Vec::new();
        list.push_path(id, &mut out);
        assert_eq!(out, path.as_bytes());
    }
    assert_eq!(list.iter().count(), 3001);
    let directory = list.find(b"/srv/7/").unwrap();
    assert_eq!(list.get(directory).unwrap().digest, Some(&[][..]));
    for absent in [&b"/srv/7"[..], b"/srv/7/file8", b"/srv/", b"file1", b""] {
        assert_eq!(list.find(absent), None);
    }
}

#[test]
fn only_compared_attributes_take_memory() {
    let mut list = List::new(Fields::SIZE);
    assert!(push(&mut list, b"/f", stat(7), b"", 0));
    list.complete();
    let id = list.find(b"/f").unwrap();
    let (mtime, ctime, size) = (stat(7).mtime, stat(7).ctime, stat(7).size);
    assert_eq!(list.get(id).unwrap().stat, Stat { mtime, ctime, size, ..Stat::default() });
}

#[test]
fn the_first_of_equal_paths_counts() {
    let mut list = List::new(Fields::ALL);
    for n in 1..4 {
        assert!(push(&mut list, b"/same", stat(n), b"", 0));
    }
    assert!(push(&mut list, b"/other", stat(9), b"", 0));
    list.complete();
    assert_eq!(list.len(), 2);
    let id = list.find(b"/same").unwrap();
    assert_eq!(list.get(id).unwrap().stat, stat(1));
    assert_eq!(list.iter().count(), 2);
    list.set_seen(id);
    assert!(list.get(id).unwrap().seen);
    assert_eq!(list.iter().filter(|id| !list.get(*id).unwrap().seen).count(), 1);
}

#[test]
fn unreadable_attributes_are_refused() {
    let mut list = List::new(Fields::ALL);
    assert!(!list.push(&AccurateEntry { name: b"/f", lstat_text: b"A A", digest: b"", delta_seq: 0 }));
    list.complete();
    assert_eq!((list.len(), list.find(b"/f"), list.iter().count()), (0, None, 0));
}

/// The stock daemon needs 67 bytes, its message and three more, rounded up, and its table.
#[test]
fn memory_is_a_quarter_of_the_stock_daemon_s() {
    let mut list = List::new(Fields::SIZE);
    let mut stock = 0;
    for n in 0..50_000_i64 {
        let path = format!("/home/user{:03}/project/src/module{:04}/file_{n:06}.txt", n / 10_000, n / 20);
        let changing = Stat { mtime: 1_700_000_000 + n * 977 % 100_000_000, size: n * 37 % 90_000, ..stat(n) };
        let mut text = Vec::new();
        LStat { stat: changing, ..LStat::default() }.encode(&mut text);
        stock += (64 + path.len() + text.len() + 3 + 3_usize).next_multiple_of(8) + 8;
        assert!(push(&mut list, path.as_bytes(), changing, b"", 0));
    }
    list.complete();
    assert!(list.memory() * 4 <= stock, "{} against {}", list.memory() / 50_000, stock / 50_000);
}
