//! What is counted in the repository: commits, tests, lines, `unsafe` blocks. Each is the number
//! that a command prints.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use bed::{BedError, Result, argv, run as run_program};

use crate::paper::analysis::{Numbers, UNKNOWN};
use crate::paper::folders::Sitting;
use crate::paper::plan::Count;

const HEAD: &str = "count,number";

/// Counts all in the repository and writes the rows.
pub fn run(counts: &[Count], repository: &Path, raw: &Path) -> Result<()> {
    let mut text = format!("{HEAD}\n");
    for Count { name, command, .. } in counts {
        let mut words = argv(["sh", "-c", "cd \"$0\" && eval \"$1\""]);
        words.extend([repository.as_os_str().to_owned(), command.into()]);
        let done = run_program(&words, b"")?;
        let said = String::from_utf8_lossy(&done.stdout).trim().to_owned();
        let number: u64 = said.parse().map_err(|_| BedError::Program {
            program: command.clone(),
            problem: format!("{}; no number: {said:?}", done.status),
        })?;
        let _ = writeln!(text, "{name},{number}");
    }
    fs::write(raw, &text).map_err(BedError::file("write", raw))
}

fn rows(path: &Path) -> Result<Vec<(String, String)>> {
    let text = fs::read_to_string(path).map_err(BedError::file("read", path))?;
    let row = |line: &str| {
        let row = line.split_once(',').map(|(name, number)| (name.to_owned(), number.to_owned()));
        row.ok_or_else(|| BedError::Usage(format!("{}: {line:?} is no count", path.display())))
    };
    text.lines().skip(1).map(row).collect()
}

/// What was counted.
pub fn numbers(sitting: &Sitting, counts: &[Count]) -> Result<Numbers> {
    let rows = sitting.rows("counts", rows)?;
    let of = |Count { name, .. }: &Count| {
        let row = rows.iter().find(|(known, _)| known == name);
        (format!("counts.{name}"), row.map_or(UNKNOWN.to_owned(), |(_, number)| number.clone()))
    };
    Ok(counts.iter().map(of).collect())
}

/// The table.
pub fn table(counts: &[Count], numbers: &Numbers) -> String {
    let mut text = "| what | number |\n| --- | --: |\n".to_owned();
    for Count { name, title, .. } in counts {
        let number = numbers.get(&format!("counts.{name}")).map_or("", String::as_str);
        let _ = writeln!(text, "| {title} | {number} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_prints_is_the_count_and_words_are_refused() {
        let folder = bed::Folder::new("counts").unwrap();
        let count =
            |command: &str| Count { name: "lines".to_owned(), title: "Lines".to_owned(), command: command.to_owned() };
        fs::write(folder.path().join("here"), "a\nb\n").unwrap();
        let raw = folder.make("counts/host").unwrap().join("raw.csv");
        let counts = [count("cat here | wc -l")];
        assert_eq!(numbers(&Sitting::find(folder.path(), None).unwrap(), &counts).unwrap()["counts.lines"], UNKNOWN);
        run(&counts, folder.path(), &raw).unwrap();
        let numbers = numbers(&Sitting::find(folder.path(), None).unwrap(), &counts).unwrap();
        assert!(table(&counts, &numbers).contains("| Lines | 2 |"));
        let problem = run(&[count("echo many")], folder.path(), &raw).unwrap_err().to_string();
        assert!(problem.contains("no number"), "{problem}");
    }
}
