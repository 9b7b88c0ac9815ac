//! The gates that every commit has to pass, each with what it came to and how long it took.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use bed::{BedError, Result, say};

use crate::paper::analysis::{Numbers, UNKNOWN};
use crate::paper::folders::{Sitting, columns};
use crate::paper::plan::Gate;

const HEAD: &str = "gate,result,seconds";
const PASSED: &str = "passed";

/// Runs these, or all if none is chosen, in the repository, one after the other, and writes the
/// rows; whether all have passed, those that ran before among them.
pub fn run(gates: &[Gate], chosen: &[String], repository: &Path, raw: &Path) -> Result<bool> {
    if let Some(unknown) = chosen.iter().find(|one| gates.iter().all(|gate| gate.name != **one)) {
        return Err(BedError::Usage(format!("plan.toml has no gate {unknown:?}")));
    }
    let before = if raw.exists() && !chosen.is_empty() { rows(raw)? } else { Vec::new() };
    let mut text = format!("{HEAD}\n");
    for Gate { name, command, .. } in gates {
        if !chosen.is_empty() && !chosen.contains(name) {
            for row in before.iter().filter(|row| row.first() == Some(name)) {
                let _ = writeln!(text, "{}", row.join(","));
            }
            continue;
        }
        say(&format!("Gate {name}: {command}"));
        let begun = Instant::now();
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(repository).stdin(Stdio::null());
        let status = shell.status().map_err(BedError::file("run", Path::new("sh")))?;
        let result = if status.success() { PASSED } else { "failed" };
        let _ = writeln!(text, "{name},{result},{:.0}", begun.elapsed().as_secs_f64());
    }
    fs::write(raw, &text).map_err(BedError::file("write", raw))?;
    Ok(rows(raw)?.iter().all(|row| row.get(1).is_some_and(|result| result == PASSED)))
}

fn rows(path: &Path) -> Result<Vec<Vec<String>>> {
    columns(path, HEAD)
}

/// How each gate ended.
pub fn numbers(sitting: &Sitting, gates: &[Gate]) -> Result<Numbers> {
    let rows = sitting.rows("gates", rows)?;
    let mut numbers = Numbers::new();
    for Gate { name, .. } in gates {
        let row = rows.iter().find(|row| row.first() == Some(name));
        for (column, word) in [(1, "result"), (2, "seconds")] {
            let text = row.and_then(|row| row.get(column)).map_or(UNKNOWN, String::as_str);
            numbers.insert(format!("gates.{name}.{word}"), text.to_owned());
        }
    }
    Ok(numbers)
}

/// The table.
pub fn table(gates: &[Gate], numbers: &Numbers) -> String {
    let mut text = "| gate | command | result | seconds |\n| --- | --- | --- | --: |\n".to_owned();
    for Gate { name, title, command } in gates {
        let [result, seconds] =
            ["result", "seconds"].map(|word| numbers.get(&format!("gates.{name}.{word}")).map_or("", String::as_str));
        let _ = writeln!(text, "| {title} | `{command}` | {result} | {seconds} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_that_fails_is_told_and_the_others_run() {
        let folder = bed::Folder::new("gates").unwrap();
        let gate = |name: &str, command: &str| Gate {
            name: name.to_owned(),
            title: name.to_uppercase(),
            command: command.to_owned(),
        };
        let gates = [gate("bad", "false"), gate("good", "test -e here")];
        fs::write(folder.path().join("here"), "").unwrap();
        let raw = folder.make("gates/host").unwrap().join("raw.csv");
        assert!(!run(&gates, &[], folder.path(), &raw).unwrap());
        assert!(run(gates.get(1..).unwrap(), &[], folder.path(), &raw).unwrap());
        let numbers = numbers(&Sitting::find(folder.path(), None).unwrap(), &gates).unwrap();
        let text = table(&gates, &numbers);
        assert!(text.contains("| BAD | `false` | not measured yet |"), "{text}");
        assert!(text.contains("| GOOD | `test -e here` | passed | "), "{text}");
    }

    #[test]
    fn a_chosen_gate_runs_alone_and_the_rows_of_the_others_stay() {
        let folder = bed::Folder::new("gates").unwrap();
        let gate = |name: &str| Gate {
            name: name.to_owned(),
            title: String::new(),
            command: format!("test -e {name} && rm {name}"),
        };
        let gates = [gate("one"), gate("other")];
        let raw = folder.path().join("raw.csv");
        fs::write(folder.path().join("one"), "").unwrap();
        assert!(!run(&gates, &[], folder.path(), &raw).unwrap());
        fs::write(folder.path().join("other"), "").unwrap();
        assert!(run(&gates, &["other".to_owned()], folder.path(), &raw).unwrap());
        let rows = fs::read_to_string(&raw).unwrap();
        let without_seconds: Vec<_> = rows.lines().map(|row| row.rsplit_once(',').unwrap().0).collect();
        assert_eq!(without_seconds, ["gate,result", "one,passed", "other,passed"]);
        assert!(run(&gates, &["third".to_owned()], folder.path(), &raw).is_err());
    }
}
