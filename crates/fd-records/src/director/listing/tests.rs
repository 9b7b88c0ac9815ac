//! Lines of listings.

use super::*;

struct Root;

impl Names for Root {
    fn user_name(&mut self, uid: u32) -> Option<&[u8]> {
        (uid == 0).then_some(b"root")
    }
    fn group_name(&mut self, gid: u32) -> Option<&[u8]> {
        (gid == 0).then_some(b"verylonggroup")
    }
}

const TIME: LocalTime = LocalTime { year: 2026, month: 11, day: 21, hour: 2, minute: 0, second: 29 };

fn line(stat: &Stat, name: &[u8], link: Option<&[u8]>) -> String {
    let mut out = Vec::new();
    push_line(&mut out, stat, Some(TIME), &mut Root, name, link);
    String::from_utf8(out).unwrap()
}

#[test]
fn lines_are_those_of_the_reference() {
    let stat = Stat { mode: 0o120_777, nlink: 1, size: 2, gid: 7, ..Stat::default() };
    assert_eq!(
        line(&stat, b"/t/sl", Some(b"f1")),
        "lrwxrwxrwx   1 root     7                         2 2026-11-21 02:00:29  /t/sl -> f1\n"
    );
    let stat = Stat { mode: 0o100_644, nlink: 1, uid: 54321, gid: 54321, size: 1_234_567_890_123, ..stat };
    assert_eq!(
        line(&stat, b"/t/sp", None),
        "-rw-r--r--   1 54321    54321         1234567890123 2026-11-21 02:00:29  /t/sp\n"
    );
}

/// Observed with files on a tmpfs, whose times have 64 bits.
#[test]
fn years_of_any_length_and_none_are_those_of_the_stock_daemon() {
    let of_year = |year| Some(LocalTime { year, ..TIME });
    for (time, text) in [
        (of_year(2446), " 2446-11-21 02:00:29  /f"),
        (of_year(99), " 0099-11-21 02:00:29  /f"),
        (of_year(-1), " -001-11-21 02:00:29  /f"),
        (of_year(-31_686_769), " -31686769-11-21 02:00:29  /f"),
        (of_year(i32::MAX), " 2147483647-11-21 02:00:29  /f"),
        (None, " 0   /f"),
    ] {
        let mut out = Vec::new();
        push_line(&mut out, &Stat::default(), time, &mut Root, b"/f", None);
        let line = String::from_utf8(out).unwrap();
        assert!(line.trim_end().ends_with(text), "{line}");
    }
}

#[test]
fn wide_numbers_widen_and_long_names_are_cut() {
    let stat = Stat { mode: 0o010_644, nlink: 123, size: -1, ..Stat::default() };
    assert_eq!(
        line(&stat, b"/t/ff", None),
        "frw-r--r--  123 root     verylong                 -1 2026-11-21 02:00:29  /t/ff\n"
    );
}

#[test]
fn modes_show_their_special_bits() {
    for (mode, text) in [
        (0o041_777, "drwxrwxrwt"),
        (0o106_755, "-rwsr-sr-x"),
        (0o107_644, "-rwSr-Sr-T"),
        (0o060_660, "brw-rw----"),
        (0o020_000, "c---------"),
        (0o140_755, "srwxr-xr-x"),
    ] {
        assert_eq!(String::from_utf8_lossy(&mode_text(mode)), text);
    }
}

#[test]
fn a_deleted_file_has_its_own_line() {
    let mut out = Vec::new();
    push_deleted_line(&mut out, b"/x");
    assert_eq!(out, b"-*DELETED-   - -        -                  - ---------- --------  /x\n");
}
