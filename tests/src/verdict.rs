//! Comparing two lists of lines in side-by-side suites: the differences must be those that are
//! expected.

use std::collections::BTreeMap;

/// What a comparison must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing but equality.
    Equal,
    /// ferrofd does otherwise on purpose.
    Differs {
        /// A text that a row of `docs/differences.md` holds.
        documented: &'static str,
        /// Each difference must hold one of these texts, and all of them must be found.
        found: &'static [&'static str],
    },
}

impl Expect {
    /// Whether the differences are those that are expected.
    pub fn is_met_by(self, differences: &[String]) -> bool {
        match self {
            Self::Equal => differences.is_empty(),
            Self::Differs { found, .. } => {
                let known = |text: &String| found.iter().any(|part| text.contains(part));
                differences.iter().all(known)
                    && found.iter().all(|part| differences.iter().any(|text| text.contains(part)))
            }
        }
    }
}

/// The lines that only the stock daemon or only ours has, or both in another order; `what` begins
/// each text.
pub fn line_differences(what: &str, stock: &[String], ours: &[String]) -> Vec<String> {
    let mut differences = Vec::new();
    if stock == ours {
        return differences;
    }
    let mut balance: BTreeMap<&String, i32> = BTreeMap::new();
    for (lines, step) in [(stock, 1), (ours, -1)] {
        for line in lines {
            *balance.entry(line).or_default() += step;
        }
    }
    for (line, count) in balance {
        match count {
            0 => {}
            1.. => differences.push(format!("{what} only of stock: {line}")),
            _ => differences.push(format!("{what} only of ours: {line}")),
        }
    }
    if differences.is_empty() {
        let place = stock.iter().zip(ours).find(|(stock, ours)| stock != ours);
        differences.push(format!("{what}: the same lines in another order, {place:?}"));
    }
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn lines_of_one_side_are_told() {
        assert_eq!(line_differences("x", &lines("a b"), &lines("a b")), Vec::<String>::new());
        let differences = line_differences("x", &lines("a b b"), &lines("a b c"));
        assert_eq!(differences, ["x only of stock: b", "x only of ours: c"]);
        assert!(line_differences("x", &lines("a b"), &lines("b a"))[0].contains("another order"));
    }

    #[test]
    fn an_expected_difference_must_be_found_and_be_the_only_one() {
        let expect = Expect::Differs { documented: "", found: &["stock: b", "ours: c"] };
        assert!(expect.is_met_by(&lines_of(&["only of stock: b", "only of ours: c"])));
        assert!(!expect.is_met_by(&lines_of(&["only of stock: b"])));
        assert!(!expect.is_met_by(&lines_of(&["only of stock: b", "only of ours: c", "status"])));
        assert!(Expect::Equal.is_met_by(&[]) && !Expect::Equal.is_met_by(&lines_of(&["x"])));
    }

    fn lines_of(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }
}
