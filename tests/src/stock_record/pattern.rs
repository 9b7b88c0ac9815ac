//! What several runs of one row have in common.
//!
//! A pattern is a list of lines. A place where the runs differ within a line is a [`CHANCE`], and a
//! line that not all of them have may be missing. Runs with the same lines in another order make a
//! pattern whose order is chance.

#![expect(clippy::indexing_slicing, reason = "each index comes from a length or a position of the same list")]

/// Stands for any text within a line.
pub(crate) const CHANCE: char = '¤';

/// The lines that several runs have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    pub(crate) lines: Vec<Line>,
    /// Whether the lines come in any order.
    pub(crate) any_order: bool,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) text: String,
    /// Whether some of the runs lacked it.
    pub(crate) may_be_missing: bool,
}

impl Line {
    fn always(text: &str) -> Self {
        Self { text: text.to_owned(), may_be_missing: false }
    }
}

impl Pattern {
    /// What these runs have in common. `None` without a run.
    pub fn of(runs: &[Vec<String>]) -> Option<Self> {
        let (first, others) = runs.split_first()?;
        let pattern = Self { lines: first.iter().map(|line| Line::always(line)).collect(), any_order: false };
        Some(others.iter().fold(pattern, |pattern, run| pattern.with(run)))
    }

    /// Whether every line may be missing, so that runs without a line fit.
    pub fn holds_nothing(&self) -> bool {
        !self.lines.is_empty() && self.lines.iter().all(|line| line.may_be_missing)
    }

    /// The same pattern, widened until it fits one more run.
    fn with(mut self, run: &[String]) -> Self {
        if let Some(pairs) = self.one_to_one(run) {
            let in_order = pairs.windows(2).all(|pair| pair[0] < pair[1]);
            for (line, at) in self.lines.iter_mut().zip(pairs) {
                line.text = common(&line.text, &run[at]);
            }
            self.any_order |= !in_order;
            return self;
        }
        let mut lines = Vec::new();
        let (mut old, mut new) = (0, 0);
        for (in_pattern, in_run) in self.aligned(run, |line, found| likeness(&line.text, found)) {
            lines.extend(self.lines[old..in_pattern].iter().map(|line| Line { may_be_missing: true, ..line.clone() }));
            lines.extend(run[new..in_run].iter().map(|text| Line { text: text.clone(), may_be_missing: true }));
            let line = &self.lines[in_pattern];
            lines.push(Line { text: common(&line.text, &run[in_run]), may_be_missing: line.may_be_missing });
            (old, new) = (in_pattern + 1, in_run + 1);
        }
        lines.extend(self.lines[old..].iter().map(|line| Line { may_be_missing: true, ..line.clone() }));
        lines.extend(run[new..].iter().map(|text| Line { text: text.clone(), may_be_missing: true }));
        Self { lines, any_order: self.any_order }
    }

    /// Which line of the run belongs to each of the pattern's, if all of both have one: those that
    /// fit, and then those that are alike.
    fn one_to_one(&self, run: &[String]) -> Option<Vec<usize>> {
        if self.lines.len() != run.len() {
            return None;
        }
        let mut free: Vec<bool> = vec![true; run.len()];
        let mut pairs = vec![usize::MAX; run.len()];
        for matches in [fits as fn(&str, &str) -> bool, is_alike] {
            for (at, line) in
                self.lines.iter().enumerate().filter(|(at, _)| pairs[*at] == usize::MAX).collect::<Vec<_>>()
            {
                // The line at the same place first: order is not chance without a reason.
                let candidates = std::iter::once(at).chain(0..run.len());
                let found = candidates.into_iter().find(|&place| free[place] && matches(&line.text, &run[place]));
                if let Some(place) = found {
                    (free[place], pairs[at]) = (false, place);
                }
            }
        }
        pairs.iter().all(|&place| place != usize::MAX).then_some(pairs)
    }

    /// The sequence of pairs that are most alike, in the order of both.
    fn aligned(&self, run: &[String], likeness: fn(&Line, &str) -> u32) -> Vec<(usize, usize)> {
        // A line that may be missing may fit where another one must be.
        let equal = |(line, found): (&Line, &String)| !line.may_be_missing && fits(&line.text, found);
        let head = self.lines.iter().zip(run).take_while(|&pair| equal(pair)).count();
        let rest = (self.lines[head..].iter().rev()).zip(run[head..].iter().rev());
        let tail = rest.take_while(|&pair| equal(pair)).count();
        let (old, new) = (&self.lines[head..self.lines.len() - tail], &run[head..run.len() - tail]);
        let mut longest = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
        let fit: Vec<Vec<u32>> =
            old.iter().map(|line| new.iter().map(|found| likeness(line, found)).collect()).collect();
        for (i, row) in fit.iter().enumerate().rev() {
            for (j, &fit) in row.iter().enumerate().rev() {
                let both = if fit > 0 { longest[i + 1][j + 1] + fit } else { 0 };
                longest[i][j] = both.max(longest[i + 1][j]).max(longest[i][j + 1]);
            }
        }
        let mut pairs: Vec<_> = (0..head).map(|at| (at, at)).collect();
        let (mut i, mut j) = (0, 0);
        while i < old.len() && j < new.len() {
            if fit[i][j] > 0 && longest[i][j] == longest[i + 1][j + 1] + fit[i][j] {
                pairs.push((head + i, head + j));
                (i, j) = (i + 1, j + 1);
            } else if longest[i + 1][j] >= longest[i][j + 1] {
                i += 1;
            } else {
                j += 1;
            }
        }
        pairs.extend((0..tail).map(|at| (self.lines.len() - tail + at, run.len() - tail + at)));
        pairs
    }

    /// What does not fit: the pattern's lines that the run lacks, and the run's that it does not
    /// have. `what` begins each text.
    pub fn differences(&self, what: &str, run: &[String]) -> Vec<String> {
        let pairs = if self.any_order { self.loosely(run) } else { self.aligned(run, must_fit) };
        let (mut lacks, mut more) = (vec![true; self.lines.len()], vec![true; run.len()]);
        for (in_pattern, in_run) in pairs {
            (lacks[in_pattern], more[in_run]) = (false, false);
        }
        let lacks = self.lines.iter().zip(lacks).filter(|(line, lacks)| *lacks && !line.may_be_missing);
        let stock = lacks.map(|(line, _)| format!("{what} only of stock: {}", line.text));
        let ours =
            run.iter().zip(more).filter(|(_, more)| *more).map(|(line, _)| format!("{what} only of ours: {line}"));
        stock.chain(ours).collect()
    }

    /// Pairs that fit, in any order.
    fn loosely(&self, run: &[String]) -> Vec<(usize, usize)> {
        let mut free = vec![true; run.len()];
        let mut pairs = Vec::new();
        // What must be there first, and what is exact before what has a place of chance.
        let mut order: Vec<_> = (0..self.lines.len()).collect();
        order.sort_by_key(|&at| (self.lines[at].may_be_missing, self.lines[at].text.contains(CHANCE)));
        for at in order {
            if let Some(place) = (0..run.len()).find(|&place| free[place] && fits(&self.lines[at].text, &run[place])) {
                free[place] = false;
                pairs.push((at, place));
            }
        }
        pairs
    }
}

/// Whether a line fits; what must be there comes before what may be missing.
fn must_fit(line: &Line, found: &str) -> u32 {
    if fits(&line.text, found) { 2 - u32::from(line.may_be_missing) } else { 0 }
}

/// Whether a line fits a text with places of chance.
fn fits(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split(CHANCE);
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<_> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

/// Runs of letters and digits, and each other character by itself.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = if first.is_alphanumeric() {
            rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, more) = rest.split_at(end);
        tokens.push(token);
        rest = more;
    }
    tokens
}

/// How many tokens two lines have in common at their begin and at their end.
fn shared(one: &[&str], other: &[&str]) -> (usize, usize) {
    let head = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let ends = one[head..].iter().rev().zip(other[head..].iter().rev());
    (head, ends.take_while(|(one, other)| one == other).count())
}

/// Whether two lines are the same but for what may be chance.
fn is_alike(one: &str, other: &str) -> bool {
    likeness(one, other) > 0
}

/// How much of two lines is the same, from 1 to 100, if the rest may be chance: as many tokens, at
/// least half of them equal, among them the first word; or the same begin and end that make up most
/// of them. Else 0.
fn likeness(one: &str, other: &str) -> u32 {
    if fits(one, other) {
        return 100;
    }
    let (one, other) = (tokens(one), tokens(other));
    let most = one.len().max(other.len());
    let equal = if one.len() == other.len() {
        one.iter().zip(&other).filter(|(one, other)| one == other).count()
    } else {
        let (head, tail) = shared(&one, &other);
        head + tail
    };
    let is_alike = one.first() == other.first() && 2 * equal > most;
    if is_alike { u32::try_from(99 * equal / most).unwrap_or(99) } else { 0 }
}

/// A line with a place of chance wherever the two differ.
fn common(pattern: &str, line: &str) -> String {
    if fits(pattern, line) {
        return pattern.to_owned();
    }
    let (one, other) = (tokens(pattern), tokens(line));
    let mut text = String::new();
    let chance = |text: &mut String| {
        if !text.ends_with(CHANCE) {
            text.push(CHANCE);
        }
    };
    if one.len() == other.len() {
        for (one, other) in one.iter().zip(&other) {
            if one == other { text.push_str(one) } else { chance(&mut text) }
        }
    } else {
        let (head, tail) = shared(&one, &other);
        text.extend(one[..head].iter().copied());
        chance(&mut text);
        text.extend(one[one.len() - tail..].iter().copied());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> Vec<String> {
        text.split('|').map(str::to_owned).collect()
    }

    fn pattern(runs: &[&str]) -> Pattern {
        Pattern::of(&runs.iter().map(|text| run(text)).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn what_is_the_same_in_all_runs_must_be_the_same_again() {
        let pattern = pattern(&["a 1|b|c", "a 1|b|c"]);
        assert_eq!(pattern.differences("x", &run("a 1|b|c")), Vec::<String>::new());
        assert_eq!(pattern.differences("x", &run("a 2|b|c")), ["x only of stock: a 1", "x only of ours: a 2"]);
        assert_eq!(pattern.differences("x", &run("a 1|c")), ["x only of stock: b"]);
        assert_eq!(pattern.differences("x", &run("a 1|b|c|c")), ["x only of ours: c"]);
        assert_eq!(pattern.differences("x", &run("b|a 1|c")).len(), 2, "the order is not chance");
    }

    #[test]
    fn what_differs_within_a_line_is_chance_and_nothing_else_is() {
        let pattern = pattern(&["JobId=7 took 3 s, files=12", "JobId=8 took 1 s, files=12"]);
        assert!(pattern.differences("x", &run("JobId=12 took 25 s, files=12")).is_empty());
        assert_eq!(pattern.differences("x", &run("JobId=12 took 25 s, files=11")).len(), 2);
        assert_eq!(pattern.differences("x", &run("JobId=12 lasted 25 s, files=12")).len(), 2);
    }

    #[test]
    fn a_line_that_one_run_lacks_may_be_missing_and_no_other() {
        let pattern = pattern(&["begin|late word|end", "begin|end", "begin|late word|end"]);
        assert!(pattern.differences("x", &run("begin|end")).is_empty());
        assert!(pattern.differences("x", &run("begin|late word|end")).is_empty());
        assert_eq!(pattern.differences("x", &run("begin|late word")).len(), 1);
        assert_eq!(pattern.differences("x", &run("begin|other|end")).len(), 1);
    }

    #[test]
    fn what_must_be_there_is_not_taken_for_what_may_be_missing() {
        let pattern = pattern(&["a 1|gone/ 1|end", "a 2|b 2|gone/ 1|end", "a 1|c 2|gone/ 1|end"]);
        assert!(pattern.differences("x", &run("a 1|gone/ 1|end")).is_empty());
    }

    #[test]
    fn a_line_that_is_missing_is_not_taken_for_one_that_is_alike() {
        let pattern = pattern(&["a: size 1|b: size 1|c: size 1", "a: size 1|c: size 1"]);
        assert!(pattern.differences("x", &run("a: size 1|c: size 1")).is_empty());
        assert_eq!(pattern.differences("x", &run("a: size 1|d: size 1|c: size 1")).len(), 1);
    }

    #[test]
    fn an_order_that_differs_between_runs_is_chance() {
        let pattern = pattern(&["one 1|two|three", "two|one 2|three"]);
        assert!(pattern.differences("x", &run("three|two|one 9")).is_empty());
        assert_eq!(pattern.differences("x", &run("three|two|two")), ["x only of stock: one ¤", "x only of ours: two"]);
    }

    #[test]
    fn a_number_that_was_longer_once_is_chance_with_any_length() {
        let pattern = pattern(&["rate 10.5 MB/s now", "rate 7 KB/s now"]);
        assert!(pattern.differences("x", &run("rate 123.25 GB/s now")).is_empty());
        assert!(!pattern.differences("x", &run("rate 123.25 GB/s later")).is_empty());
    }
}
