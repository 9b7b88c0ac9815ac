//! Which attribute each letter compares.

use super::*;

const TIMES: Times = Times { incremental: true, since: 1000, mtime_only: false };

fn known() -> Stat {
    Stat {
        dev: 1,
        ino: 2,
        mode: 0o100_644,
        nlink: 1,
        uid: 5,
        gid: 6,
        rdev: 0,
        size: 100,
        blksize: 4096,
        blocks: 8,
        atime: 500,
        mtime: 600,
        ctime: 700,
    }
}

#[test]
fn each_letter_compares_its_attribute_only() {
    let changes: [(&[u8], Stat); 9] = [
        (b"i", Stat { ino: 3, ..known() }),
        (b"p", Stat { mode: 0o100_600, ..known() }),
        (b"n", Stat { nlink: 2, ..known() }),
        (b"u", Stat { uid: 0, ..known() }),
        (b"g", Stat { gid: 0, ..known() }),
        (b"s", Stat { size: 101, ..known() }),
        (b"a", Stat { atime: 501, ..known() }),
        (b"m", Stat { mtime: 599, ..known() }),
        (b"c", Stat { ctime: 701, ..known() }),
    ];
    for (letter, now) in &changes {
        for (other, _) in &changes {
            assert_eq!(differs(other, &known(), now, TIMES), letter == other, "{letter:?} {other:?}");
        }
        assert!(differs(b"Cpinugsamc", &known(), now, TIMES));
        assert!(!differs(b"CJ:o5", &known(), now, TIMES));
    }
}

#[test]
fn the_letters_d_a_and_m_compare_as_documented() {
    assert!(differs(b"d", &known(), &Stat { size: 99, ..known() }, TIMES));
    assert!(!differs(b"d", &known(), &Stat { size: 101, ..known() }, TIMES));
    assert!(differs(b"A", &known(), &known(), TIMES));
    let modified = Stat { mtime: 1001, ..known() };
    assert!(!differs(b"M", &known(), &modified, TIMES));
    assert!(differs(b"M", &known(), &modified, Times { mtime_only: true, ..TIMES }));
    assert!(differs(b"M", &known(), &Stat { ctime: 1001, ..modified }, TIMES));
    assert!(!differs(b"M", &known(), &Stat { ctime: 1001, ..modified }, Times { incremental: false, ..TIMES }));
    assert!(!differs(b"M", &known(), &Stat { mtime: 1000, ctime: 1001, ..known() }, TIMES));
}

#[test]
fn compared_attributes_are_kept_in_the_list() {
    for letter in *b"ipnugsad" {
        assert_ne!(fields(&[b'C', letter]), Fields::default(), "{}", char::from(letter));
    }
    assert_eq!(fields(b"Cmcs5"), Fields::SIZE);
    assert!(wants_checksum(b"Cmcs5") && !wants_checksum(b"Cmcs"));
    assert!(wants_confirmation(b"Cmcso5") && !wants_confirmation(b"Cmcs5"));
}

#[test]
fn a_scan_is_asked_only_for_attributes_that_it_finds() {
    for letters in [&b"Cmcs"[..], b"", b"Cipnugsmcd", b"ms", b"Co", b"CJ:"] {
        assert!(asks_attributes_only(letters), "{}", letters.escape_ascii());
    }
    for letter in *b"aMA1235678" {
        assert!(!asks_attributes_only(&[b'C', b'm', letter]), "{}", char::from(letter));
    }
}
