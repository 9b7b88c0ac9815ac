//! Compares what two daemons made of the same restore, and says what came out.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use bed::{JobResult, Result, TreeRules, compare_trees};

use crate::cells::{Kind, Situation};
use crate::documented;

/// Lines of the Director's report that come from the File Daemon.
const REPORT: [&str; 6] =
    ["Files Restored", "Bytes Restored", "Files Expected", "FD Errors", "FD termination status", "Termination"];

/// What one daemon did.
pub(crate) struct Side {
    pub(crate) client: String,
    pub(crate) to: PathBuf,
    pub(crate) top: PathBuf,
    pub(crate) job: JobResult,
}

impl Side {
    /// The daemon's messages, with `@` for its own place.
    fn messages(&self) -> Vec<String> {
        let to = self.to.display().to_string();
        let clean = |text: String| text.replace(&to, "@").replace(&self.client, "CLIENT");
        self.job.messages_of(&format!("{}-fd", self.client)).into_iter().map(clean).collect()
    }

    fn report(&self) -> Vec<String> {
        let report = self.job.report();
        let mut lines: Vec<_> =
            REPORT.iter().map(|key| format!("{key}: {}", report.get(*key).cloned().unwrap_or_default())).collect();
        lines.push(format!("status {}", self.job.row.status));
        lines
    }
}

/// The rows and their verdicts.
pub(crate) struct Table {
    both_stock: bool,
    rows: BTreeMap<String, Vec<String>>,
}

impl Table {
    pub(crate) fn new(both_stock: bool) -> Self {
        Self { both_stock, rows: BTreeMap::new() }
    }

    fn add(&mut self, row: String, differences: Vec<String>) {
        self.rows.entry(row).or_default().extend(differences);
    }

    /// The stock daemon takes its umask away while it sets attributes, and two restores at a time
    /// can lose it for good: what it makes from then on without a record is writable by all users.
    /// `lost` says of which side that was seen.
    pub(crate) fn forgive_lost_umasks(&mut self, lost: [bool; 2]) {
        let excuses = ["mode 0777 against 0755", "mode 0755 against 0777"];
        for differences in self.rows.values_mut() {
            differences.retain(|text| !excuses.iter().zip(lost).any(|(excuse, lost)| lost && text.ends_with(excuse)));
        }
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
        let documented = documented::of_row(name).filter(|_| !self.both_stock);
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

/// Compares two trees of which either may be missing.
fn compare_places(left: &Path, right: &Path) -> Result<Vec<String>> {
    let exists = |path: &Path| fs::symlink_metadata(path).is_ok();
    match (exists(left), exists(right)) {
        (true, true) => compare_trees(left, right, TreeRules::EXACT),
        (false, false) => Ok(Vec::new()),
        (left, right) => Ok(vec![format!("exists: {left} against {right}")]),
    }
}

/// The differences between two lists of lines, in their order.
fn compare_lines(left: &[String], right: &[String]) -> Vec<String> {
    if left == right {
        return Vec::new();
    }
    let only = |side: &str, mine: &[String], theirs: &[String]| -> Vec<String> {
        mine.iter().filter(|line| !theirs.contains(line)).map(|line| format!("{side} says {line}")).collect()
    };
    let mut told = only("stock", left, right);
    told.extend(only("test", right, left));
    if told.is_empty() {
        told.push(format!("the same lines in another order or number: {left:#?} against {right:#?}"));
    }
    told
}

/// Sorts messages by the cell that they are about; what is about none is under an empty name.
fn by_cell(side: &Side) -> BTreeMap<String, Vec<String>> {
    let mut cells: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in side.messages() {
        let mut cell = String::new();
        if let Some((_, rest)) = line.split_once("/source/cells/") {
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

/// Compares the restores of all cells in one replace mode.
pub(crate) fn compare_cells(mode: &str, sides: &[Side], table: &mut Table) -> Result<()> {
    let [left, right] = sides else { return Ok(()) };
    let (told_left, told_right) = (by_cell(left), by_cell(right));
    let lines = |told: &BTreeMap<String, Vec<String>>, cell: &str| told.get(cell).cloned().unwrap_or_default();
    for situation in Situation::ALL {
        for kind in Kind::ALL {
            let place = |side: &Side| side.top.join(situation.name()).join(kind.name());
            let cell = format!("{} {}", situation.name(), kind.name());
            let mut found = compare_places(&place(left), &place(right))?;
            found.extend(compare_lines(&lines(&told_left, &cell), &lines(&told_right, &cell)));
            table.add(format!("{mode} {cell}"), found);
        }
    }
    let mut rest = compare_lines(&lines(&told_left, ""), &lines(&told_right, ""));
    rest.extend(compare_lines(&left.report(), &right.report()));
    // Around the cells there are only the directories themselves.
    let outside =
        |text: &String| !text.contains('/') || text.split(['/', ':']).nth(1).is_some_and(|part| part.starts_with(' '));
    rest.extend(compare_places(&left.top, &right.top)?.into_iter().filter(outside));
    table.add(format!("{mode} job"), rest);
    Ok(())
}

/// Compares the restores of one form of names.
pub(crate) fn compare_form(name: &str, sides: &[Side], table: &mut Table) -> Result<()> {
    let [left, right] = sides else { return Ok(()) };
    let mut found = compare_lines(&left.messages(), &right.messages());
    found.extend(compare_lines(&left.report(), &right.report()));
    let anywhere =
        |text: String| sides.iter().fold(text, |text, side| text.replace(&side.to.display().to_string(), "@"));
    // Links that lead into their own tree lead to two places.
    let real = |text: &String| {
        let targets = text.split_once(" target ").and_then(|(_, targets)| targets.split_once(" against "));
        targets.is_none_or(|(one, other)| one != other)
    };
    found.extend(compare_places(&left.top, &right.top)?.into_iter().map(anywhere).filter(real));
    table.add(format!("form {name}"), found);
    Ok(())
}
