//! The faults that were found, counted by what they are about and what they did: `faults.csv`. Of
//! the stock daemon it has those that were documented when the paper's rows were measured. Of ours
//! it has the first ones only; `CHANGELOG.md` has all.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use bed::{BedError, Fd, Result};

use crate::paper::analysis::Numbers;

const HEAD: &str = "daemon,class,harm,shown_by,what";
/// What a fault is about.
const CLASSES: [&str; 4] = ["memory", "concurrency", "logic", "interface"];
/// What it did: the word, and how the table says it.
const HARMS: [(&str, &str); 5] = [
    ("data", "data lost, wrong or in the wrong place"),
    ("end", "the daemon or its Director ends"),
    ("access", "a stranger or another user gets or does what they may not"),
    ("hold", "a job, a place or a file is held for ever"),
    ("message", "a message is missing or wrong"),
];

/// What is counted of a row. The rest is for readers: the test that keeps watch, and how the row of
/// `docs/differences.md` begins if it is the stock daemon's.
struct Fault {
    daemon: String,
    class: String,
    harm: String,
}

fn columns(line: &str) -> Option<[&str; 5]> {
    line.splitn(5, ',').collect::<Vec<_>>().try_into().ok()
}

/// All rows of a file.
fn read(path: &Path) -> Result<Vec<Fault>> {
    let text = fs::read_to_string(path).map_err(BedError::file("read", path))?;
    let problem = |line: usize| BedError::Usage(format!("{}:{line}: no fault", path.display()));
    if text.lines().next() != Some(HEAD) {
        return Err(problem(1));
    }
    let fault = |(number, line): (usize, &str)| {
        let [daemon, class, harm, _shown_by, _what] = columns(line).ok_or_else(|| problem(number))?;
        let is_known = Fd::BOTH.iter().any(|one| one.name() == daemon)
            && CLASSES.contains(&class)
            && HARMS.iter().any(|(word, _)| *word == harm);
        let [daemon, class, harm] = [daemon, class, harm].map(str::to_owned);
        is_known.then_some(Fault { daemon, class, harm }).ok_or_else(|| problem(number))
    };
    (1..).zip(text.lines()).skip(1).map(fault).collect()
}

/// How many of each daemon, class and harm; `all` stands for any class.
pub fn numbers(paper: &Path) -> Result<Numbers> {
    let faults = read(&paper.join("faults.csv"))?;
    let mut numbers = Numbers::new();
    for daemon in Fd::BOTH.map(Fd::name) {
        let own = || faults.iter().filter(|fault| fault.daemon == daemon);
        for class in CLASSES.into_iter().chain(["all"]) {
            let of = || own().filter(|fault| class == "all" || fault.class == class);
            numbers.insert(format!("faults.{daemon}.{class}"), of().count().to_string());
            for (harm, _) in HARMS {
                let count = of().filter(|fault| fault.harm == harm).count();
                numbers.insert(format!("faults.{daemon}.{class}.{harm}"), count.to_string());
            }
        }
    }
    Ok(numbers)
}

/// The table, of the stock daemon's: the list of ours is not kept up.
pub fn table(numbers: &Numbers) -> String {
    let columns = || CLASSES.into_iter().chain(["all"]);
    let heads: Vec<_> = columns().collect();
    let mut text =
        format!("| what it did | {} |\n| --- | {} |\n", heads.join(" | "), vec!["--:"; heads.len()].join(" | "));
    for (end, said) in HARMS.map(|(harm, said)| (format!(".{harm}"), said)).into_iter().chain([(String::new(), "all")])
    {
        let key = |class: &str| format!("faults.{}.{class}{end}", Fd::Stock.name());
        let values: Vec<_> = columns().map(|class| numbers.get(&key(class)).cloned().unwrap_or_default()).collect();
        let _ = writeln!(text, "| {said} | {} |", values.join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_of_the_stock_daemon_is_a_documented_difference_with_this_test() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let differences = fs::read_to_string(top.join("docs/differences.md")).unwrap();
        let faults = fs::read_to_string(top.join("paper/perf-analysis/faults.csv")).unwrap();
        for line in faults.lines().skip(1) {
            let [daemon, _, _, shown_by, what] = columns(line).unwrap();
            let (begin, test) = (format!("| {what}"), format!("`{shown_by}`"));
            let is_there = differences.lines().any(|row| row.starts_with(&begin) && row.contains(&test));
            assert!(daemon == "ours" || is_there, "{what}");
        }
    }

    #[test]
    fn rows_are_counted_and_unknown_words_refused() {
        let folder = bed::Folder::new("faults").unwrap();
        let put = |rows: &str| fs::write(folder.path().join("faults.csv"), format!("{HEAD}\n{rows}")).unwrap();
        put("stock,logic,data,a,b, c\nours,memory,end,a,b\nstock,memory,data,a,b\n");
        let numbers = numbers(folder.path()).unwrap();
        let of = |key: &str| numbers.get(key).cloned().unwrap();
        assert_eq!([of("faults.stock.all.data"), of("faults.stock.logic"), of("faults.ours.all")], ["2", "1", "1"]);
        assert!(table(&numbers).ends_with("| all | 1 | 0 | 1 | 0 | 2 |\n"), "{}", table(&numbers));
        for wrong in ["stock,logic,data,a\n", "stock,luck,data,a,b\n", "other,logic,data,a,b\n"] {
            put(wrong);
            assert!(super::numbers(folder.path()).is_err(), "{wrong}");
        }
    }
}
