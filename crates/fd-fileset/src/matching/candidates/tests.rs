//! Which patterns are tried for a text, and what it costs in memory to know.

use super::*;

/// Numbers of the candidates for a text.
fn candidates(literals: &[&[&str]], fold_case: bool, text: &str) -> Vec<usize> {
    let literals: Vec<Vec<Vec<u8>>> =
        literals.iter().map(|of| of.iter().map(|literal| literal.as_bytes().to_vec()).collect()).collect();
    let mut asked = Vec::new();
    assert!(!Candidates::new(&literals, fold_case).any(text.as_bytes(), |pattern| {
        asked.push(pattern);
        false
    }));
    asked.sort_unstable();
    asked
}

const MANY: [&[&str]; 9] =
    [&["/home/", ".cache"], &["/home/", "abc"], &[], &["x"], &["bcd"], &["abcd"], &["zz"], &["yy"], &["/home/"]];

#[test]
fn only_patterns_whose_bytes_are_there_are_tried() {
    assert_eq!(candidates(&MANY, false, "/home/abcde"), [1, 2, 3, 4, 5, 8]);
    assert_eq!(candidates(&MANY, false, "/tmp/.cache"), [0, 2, 3]);
    assert_eq!(candidates(&MANY, false, ""), [2, 3]);
}

#[test]
fn case_counts_unless_folded() {
    assert_eq!(candidates(&MANY, false, "/tmp/ZZ"), [2, 3]);
    assert_eq!(candidates(&MANY, true, "/tmp/ZZ"), [2, 3, 6]);
}

#[test]
fn few_patterns_are_all_tried() {
    assert_eq!(candidates(&[&["ab"], &["cd"]], false, "x"), [0, 1]);
}

#[test]
fn a_pattern_is_tried_once_however_often_its_bytes_are_there() {
    const NESTED: [&[&str]; 9] = [&["ab"], &["ba"], &["ab"], &["zz"], &["aba"], &["ab"], &["yy"], &["Ab"], &["ab"]];
    assert_eq!(candidates(&NESTED, false, &"ab".repeat(2000)), [0, 1, 2, 4, 5, 8]);
}

#[test]
fn a_part_of_a_long_literal_is_enough_and_the_rarest_is_looked_for() {
    const LONG: [&[&str]; 8] = [
        &["/home/a/.cache/tmp/"],
        &["/home/b/.cache/tmp/"],
        &["/srv/c/mail/archive"],
        &["d1", "/srv/mail/archive"],
        &["e2"],
        &["f3"],
        &["g4"],
        &["h5"],
    ];
    assert_eq!(candidates(&LONG, false, "/home/a/.cache/tmp/x"), [0]);
    assert_eq!(candidates(&LONG, false, "/srv/c/mail/archive/d1"), [2]);
    assert_eq!(candidates(&LONG, true, "/HOME/B/.CACHE/TMP/"), [1]);
}

#[test]
fn the_finder_takes_no_more_memory_than_is_counted() {
    let spread = |number: u8| (0..8).map(|at| number.wrapping_add(at * 32)).collect::<Vec<_>>();
    let every_byte: Vec<_> = (0..100).map(spread).collect();
    let nested: Vec<_> = (1..300).map(|length| vec![b'a'; length]).chain([vec![b'a'; 20_000]]).collect();
    let short: Vec<_> = (0..=u8::MAX).map(|byte| vec![byte, !byte]).collect();
    for (name, patterns) in [("every byte", every_byte), ("one in another", nested), ("short", short)] {
        let literals: Vec<_> = patterns.iter().map(|pattern| vec![pattern.clone()]).collect();
        for fold_case in [false, true] {
            let finder = Candidates::new(&literals, fold_case).finder.unwrap();
            let counted: usize = patterns.iter().map(|pattern| Candidates::memory(pattern)).sum();
            assert!(finder.memory_usage() <= counted, "{name}: {} of {counted}", finder.memory_usage());
        }
    }
}

#[test]
fn one_match_is_enough() {
    let literals = vec![vec![b"ab".to_vec()]; 10];
    let mut asked = 0;
    assert!(Candidates::new(&literals, false).any(b"xabx", |pattern| {
        asked += 1;
        pattern == 3
    }));
    assert_eq!(asked, 4);
}
