//! What both scanners accept, and where they differ.

use super::*;

#[test]
fn blanks_are_sent_as_0x01_and_come_back() {
    assert_eq!(bash_spaces(b"a b\tc\n"), b"a\x01b\tc\n");
    assert_eq!(unbash_spaces(b"a\x01b\x01\x01"), b"a b  ");
}

#[test]
fn lenient_white_space_may_be_missing() {
    for line in [&b"level=full"[..], b"level = full", b"level \t\n=\x0b\x0c\r full"] {
        let mut scan = Lenient::new(line);
        assert_eq!(scan.text("level = ").unwrap().word(WORD_MAX), b"full");
    }
    assert!(Lenient::new(b"leve l").text("level").is_none());
    assert!(Lenient::new(b"").text(" ").is_some());
    assert!(Lenient::new(b"").text("x").is_none());
}

#[test]
fn lenient_words_and_numbers_may_be_empty() {
    let mut scan = Lenient::new(b"a= b=x c=-12y");
    assert_eq!(scan.text("a=").unwrap().word(127), b"");
    assert_eq!(scan.text(" b=").unwrap().i32(), 0);
    assert_eq!(scan.rest(), b"x c=-12y");
    assert_eq!(scan.byte(), b'x');
    assert_eq!(scan.text(" c=").unwrap().i32(), -12);
    assert_eq!(scan.byte(), b'y');
    assert_eq!(scan.byte(), 0);
    assert_eq!(scan.word(5), b"");
}

#[test]
fn a_width_leaves_the_rest_of_the_word() {
    let mut scan = Lenient::new(b"abcdef ghi");
    assert_eq!(scan.word(4), b"abcd");
    assert!(scan.clone().text(" ghi").is_none());
    assert_eq!(scan.word(4), b"ef");
    assert_eq!(Lenient::new(b"ab\0cd").word(WORD_MAX), b"ab");
}

#[test]
fn numbers_wrap_round() {
    assert_eq!(Lenient::new(b"4294967297").i32(), 1);
    assert_eq!(Lenient::new(b"2147483648").i32(), i32::MIN);
    assert_eq!(Lenient::new(b"4294967295").u32(), u32::MAX);
    assert_eq!(Lenient::new(b"18446744073709551617").u64(), 1);
    assert_eq!(Lenient::new(b"-9223372036854775808").i64(), i64::MIN);
    assert_eq!(Lenient::new(b"-").i64(), 0);
    assert_eq!(Lenient::new(b"-7").u32(), 0);
}

#[test]
fn strict_needs_white_space_and_digits() {
    let mut scan = Strict::new(b"Hello  w-dir calling 10002 tlspsk=100\n");
    assert_eq!(scan.text("Hello ").unwrap().word(127), Some(&b"w-dir"[..]));
    assert_eq!(scan.text(" calling ").unwrap().i32(), Some(10002));
    assert_eq!(scan.text(" tlspsk=").unwrap().i64(), Some(100));
    assert!(Strict::new(b"Hellow-dir").text("Hello ").is_none());
    assert!(Strict::new(b"").text(" ").is_none());
    assert_eq!(Strict::new(b"x").i32(), None);
    assert_eq!(Strict::new(b"-").i64(), None);
    assert_eq!(Strict::new(b"12x").u64(), Some(12));
    assert_eq!(Strict::new(b"").word(5), None);
}
