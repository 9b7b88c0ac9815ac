//! What others have published of the same steps, on a machine of theirs: `rivals/published.csv`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use bed::{BedError, Result};

use crate::paper::rivals::row::{COPIES, SAID, STEPS};

const HEAD: &str = "program,step,seconds";

/// The table: a program a line, in the order of the file.
pub fn table(paper: &Path) -> Result<String> {
    let path = paper.join("rivals/published.csv");
    let text = fs::read_to_string(&path).map_err(BedError::file("read", &path))?;
    let problem = |line: usize| BedError::Usage(format!("{}:{line}: no published time", path.display()));
    if text.lines().next() != Some(HEAD) {
        return Err(problem(1));
    }
    let mut programs: Vec<(&str, [&str; COPIES])> = Vec::new();
    for (number, line) in (1..).zip(text.lines()).skip(1) {
        let [program, step, seconds] = line.split(',').collect::<Vec<_>>().try_into().map_err(|_| problem(number))?;
        let at = STEPS.iter().take(COPIES).position(|known| *known == step).ok_or_else(|| problem(number))?;
        seconds.parse::<f64>().map_err(|_| problem(number))?;
        if programs.last().is_none_or(|(last, _)| *last != program) {
            programs.push((program, [""; COPIES]));
        }
        if let Some(place) = programs.last_mut().and_then(|(_, times)| times.get_mut(at)) {
            *place = seconds;
        }
    }
    let mut table = format!(
        "| program | {} |\n| --- | {} |\n",
        SAID.iter().take(COPIES).copied().collect::<Vec<_>>().join(" | "),
        ["--:"; COPIES].join(" | ")
    );
    for (program, times) in programs {
        let _ = writeln!(table, "| {program} | {} |", times.join(" | "));
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_is_a_line_and_a_wrong_line_is_named() {
        let paper = bed::Folder::new("published").unwrap();
        let path = paper.make("rivals").unwrap().join("published.csv");
        fs::write(&path, format!("{HEAD}\na,initial,0.61\na,more,0.14\nb,initial,1.80\n")).unwrap();
        let table = table(paper.path()).unwrap();
        assert!(table.contains("\n| a | 0.61 |  |  | 0.14 |  |\n| b | 1.80 |"), "{table}");
        fs::write(&path, format!("{HEAD}\na,nothing,0.61\n")).unwrap();
        let problem = super::table(paper.path()).unwrap_err().to_string();
        assert!(problem.contains("published.csv:2: no published time"), "{problem}");
    }
}
