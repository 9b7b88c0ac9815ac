//! Compares what a restore made with what the stock daemon made of it, and says what came out.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use bed::{JobResult, Result, StockRecord, TreeRules, tree_lines};

use crate::cells::{Kind, Situation};
use crate::documented;
use crate::forms::Form;

/// Lines of the Director's report that come from the File Daemon.
const REPORT: [&str; 6] =
    ["Files Restored", "Bytes Restored", "Files Expected", "FD Errors", "FD termination status", "Termination"];

/// What the daemon did.
pub(crate) struct Side {
    pub(crate) client: &'static str,
    /// Where it was told to restore to.
    pub(crate) to: PathBuf,
    /// What is looked at.
    pub(crate) top: PathBuf,
    /// What was saved.
    pub(crate) source: PathBuf,
    pub(crate) job: JobResult,
}

impl Side {
    /// A line with `@` for its own place, `SRC` for what was saved, and `BED` for the bed's folder.
    fn plain(&self, line: &str) -> String {
        let source = self.source.display().to_string();
        let folder = self.source.ancestors().nth(2).map_or(String::new(), |folder| folder.display().to_string());
        let line = line.replace(&self.to.display().to_string(), "@").replace(&source, "SRC");
        line.replace(source.trim_start_matches('/'), "SRC").replace(&folder, "BED").replace(self.client, "CLIENT")
    }

    /// The daemon's messages.
    fn messages(&self) -> Vec<String> {
        self.job.messages_of(&format!("{}-fd", self.client)).iter().map(|line| self.plain(line)).collect()
    }

    fn report(&self) -> Vec<String> {
        let report = self.job.report();
        let mut lines: Vec<_> =
            REPORT.iter().map(|key| format!("{key}: {}", report.get(*key).cloned().unwrap_or_default())).collect();
        lines.push(format!("status {}", self.job.row.status));
        lines
    }

    /// What is at a place, without the directories that only lead to where the tree was.
    fn tree(&self, place: &Path) -> Result<Vec<String>> {
        if fs::symlink_metadata(place).is_err() {
            return Ok(vec!["there is nothing".to_owned()]);
        }
        let above: Vec<_> = self.source.strip_prefix("/").unwrap_or(&self.source).ancestors().skip(1).collect();
        let leads = |line: &str| {
            let path = Path::new(line.split(": ").next().unwrap_or_default());
            above.iter().any(|above| !above.as_os_str().is_empty() && path.ends_with(above))
        };
        let lines = tree_lines(place, TreeRules::EXACT)?;
        Ok(lines.iter().filter(|line| !leads(line)).map(|line| self.plain(line)).collect())
    }
}

/// The rows and their verdicts.
pub(crate) struct Table {
    record: StockRecord,
    is_stock: bool,
    rows: BTreeMap<String, Vec<String>>,
}

impl Table {
    pub(crate) fn new(record: StockRecord, is_stock: bool) -> Self {
        Self { record, is_stock, rows: BTreeMap::new() }
    }

    /// Compares the parts of a row, which is made of `input`.
    fn add(&mut self, row: &str, input: &str, parts: [(&str, Vec<String>); 2]) -> Result<()> {
        for (part, lines) in parts {
            let differences = self.record.differences(row, part, input, &lines)?;
            self.rows.entry(row.to_owned()).or_default().extend(differences);
        }
        Ok(())
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn equal(&self) -> usize {
        self.rows.iter().filter(|(name, found)| self.mark(name, found) == '=').count()
    }

    pub(crate) fn documented(&self) -> usize {
        self.rows.iter().filter(|(name, found)| self.mark(name, found) == 'd').count()
    }

    /// `=` equal, `d` different as documented, `!` wrong.
    fn mark(&self, name: &str, found: &[String]) -> char {
        let documented = documented::of_row(name).filter(|_| !self.is_stock);
        match documented {
            None if found.is_empty() => '=',
            Some(documented) => {
                let known = |text: &String| documented.found.iter().any(|part| text.contains(part));
                let all_found = documented.found.iter().all(|part| found.iter().any(|text| text.contains(part)));
                if found.iter().all(known) && all_found { 'd' } else { '!' }
            }
            None => '!',
        }
    }

    /// The rows that are wrong, with their differences.
    pub(crate) fn wrong(&self) -> String {
        let wrong = self.rows.iter().filter(|(name, found)| self.mark(name, found) == '!');
        wrong.fold(String::new(), |text, (name, found)| text + name + ":\n    " + &found.join("\n    ") + "\n")
    }
}

impl fmt::Display for Table {
    /// A grid for each replace mode, then the other rows.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(to, "= as the stock daemon, d as documented, ! wrong")?;
        for (number, kind) in Kind::ALL.iter().enumerate() {
            writeln!(to, "{:24}{}{}", "", "| ".repeat(number), kind.name())?;
        }
        let mut mode = "";
        for (name, found) in &self.rows {
            let words: Vec<_> = name.split(' ').collect();
            let [this_mode, situation, kind] = words[..] else { continue };
            if kind != Kind::ALL[0].name() {
                continue;
            }
            if mode != this_mode {
                mode = this_mode;
                writeln!(to, "{mode}")?;
            }
            let _ = found;
            let marks = Kind::ALL.map(|kind| {
                let name = format!("{mode} {situation} {}", kind.name());
                self.rows.get(&name).map_or(' ', |found| self.mark(&name, found))
            });
            let marks: String = marks.iter().flat_map(|mark| [*mark, ' ']).collect();
            writeln!(to, "    {situation:20}{marks}")?;
        }
        for (name, found) in self.rows.iter().filter(|(name, _)| name.split(' ').count() != 3) {
            writeln!(to, "{name:40} {}", self.mark(name, found))?;
        }
        Ok(())
    }
}

/// Sorts messages by the cell that they are about; what is about none is under an empty name.
fn by_cell(side: &Side) -> BTreeMap<String, Vec<String>> {
    let mut cells: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in side.messages() {
        let mut cell = String::new();
        if let Some((_, rest)) = line.split_once("SRC/") {
            let mut words = rest.split(['/', ' ', ':']);
            let (situation, kind) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let known = Situation::ALL.iter().any(|known| known.name() == situation);
            if known && Kind::ALL.iter().any(|known| known.name() == kind) {
                cell = format!("{situation} {kind}");
            }
        }
        cells.entry(cell).or_default().push(line);
    }
    cells
}

/// Compares the restore of all cells in one replace mode.
pub(crate) fn compare_cells(mode: &str, side: &Side, table: &mut Table) -> Result<()> {
    let mut told = by_cell(side);
    for situation in Situation::ALL {
        for kind in Kind::ALL {
            let cell = format!("{} {}", situation.name(), kind.name());
            let tree = side.tree(&side.top.join(situation.name()).join(kind.name()))?;
            let said = told.remove(&cell).unwrap_or_default();
            let row = format!("{mode} {cell}");
            table.add(&row, &row, [("tree", tree), ("messages", said)])?;
        }
    }
    let mut said = told.remove("").unwrap_or_default();
    said.extend(side.report());
    // What is around the cells.
    let is_around = |line: &String| {
        let path = line.split(": ").next().unwrap_or_default();
        path.split('/').nth(1).is_none_or(|cell| Kind::ALL.iter().all(|kind| kind.name() != cell))
    };
    let around = side.tree(&side.top)?.into_iter().filter(is_around).collect();
    let row = format!("{mode} job");
    table.add(&row, &row, [("tree", around), ("messages", said)])
}

/// Compares the restore of one form of names.
pub(crate) fn compare_form(form: &Form, side: &Side, table: &mut Table) -> Result<()> {
    let said = [side.messages(), side.report()].concat();
    table.add(
        &format!("form {}", form.name),
        &format!("{form:?}"),
        [("tree", side.tree(&side.top)?), ("messages", said)],
    )
}
