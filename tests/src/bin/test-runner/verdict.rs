//! What a test program printed, in numbers.

use std::collections::BTreeSet;

/// Tests that ended so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

/// What the last line `test result: …` says, or the sum of all of them; nothing if there is none. A
/// test may start its own program again, which prints such a line as well.
pub(crate) fn counts(output: &[u8], all: bool) -> Option<Counts> {
    let mut counts = Counts::default();
    let text = String::from_utf8_lossy(output);
    let mut results = text.lines().rev().filter_map(|line| line.strip_prefix("test result: ")).peekable();
    results.peek()?;
    for line in results.take(if all { usize::MAX } else { 1 }) {
        let number = |word: &str| {
            let part = line.split(['.', ';']).find_map(|part| part.trim().strip_suffix(word)).unwrap_or_default();
            part.trim().parse().unwrap_or(0)
        };
        counts.passed += number("passed");
        counts.failed += number("failed");
    }
    Some(counts)
}

/// What is wrong with a program that ended as if all were well: a test that ends the whole process
/// takes the others with it, and a choice of tests may be of none.
pub(crate) fn problem(counts: Option<Counts>, is_choice: bool) -> Option<String> {
    match counts {
        None => Some("no result".to_owned()),
        Some(Counts { passed: 0, failed: 0 }) if is_choice => Some("no test was chosen".to_owned()),
        Some(_) => None,
    }
}

/// What failed, as the program shows it: from the first line `failures:` to the second. Of a
/// program that died, its last lines.
pub(crate) fn failures(output: &[u8]) -> Vec<String> {
    const LAST: usize = 20;
    let text = String::from_utf8_lossy(output);
    let lines: Vec<&str> = text.lines().collect();
    let mut marks = lines.iter().enumerate().filter(|(_, line)| **line == "failures:").map(|(place, _)| place);
    let shown = match (marks.next(), marks.next()) {
        (Some(first), Some(second)) => lines.get(first..second),
        _ => lines.get(lines.len().saturating_sub(LAST)..),
    };
    shown.unwrap_or_default().iter().map(|line| (*line).to_owned()).collect()
}

/// How many tests said that they can't run here (a line of `skips` is
/// `FILE:LINE: TEST: WHAT: REASON`). A part that can't is no skipped test.
pub(crate) fn skipped(skips: &str) -> usize {
    let tests = skips.lines().filter_map(|line| line.split_once(": all of it: "));
    tests.map(|(test, _)| test).collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &[u8] =
        b"running 3 tests\ntest a ... ok\n\nfailures:\n\n---- b stdout ----\nwrong\n\n\nfailures:\n    b\n\n\
        test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 4 filtered out; finished in 0.01s\n\n\
        test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";

    #[test]
    fn the_last_result_counts_or_all_of_them() {
        assert_eq!(counts(OUTPUT, true), Some(Counts { passed: 7, failed: 1 }));
        assert_eq!(counts(OUTPUT, false), Some(Counts { passed: 5, failed: 0 }));
        assert_eq!(counts(b"Segmentation fault", false), None);
    }

    #[test]
    fn a_program_without_a_result_or_a_choice_of_no_test_is_wrong() {
        let of_none = counts(b"test result: ok. 0 passed; 0 failed; 0 ignored; 9 filtered out\n", false);
        assert_eq!(problem(counts(b"test a ... ok\n", false), false).as_deref(), Some("no result"));
        assert_eq!(problem(of_none, true).as_deref(), Some("no test was chosen"));
        assert_eq!(problem(of_none, false), None);
        assert_eq!(problem(counts(OUTPUT, false), true), None);
    }

    #[test]
    fn failures_are_those_that_the_program_shows() {
        assert_eq!(failures(OUTPUT), ["failures:", "", "---- b stdout ----", "wrong", "", ""]);
        assert_eq!(failures(b"one\nSegmentation fault"), ["one", "Segmentation fault"]);
    }

    #[test]
    fn a_skipped_test_is_counted_once_and_a_part_is_not() {
        let skips = "a.rs:1: one: all of it: no jfs\na.rs:1: one: all of it: no jfs\nb.rs:2: two: a part: no\n";
        assert_eq!(skipped(skips), 1);
    }
}
