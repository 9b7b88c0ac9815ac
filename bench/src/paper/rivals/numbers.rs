//! The numbers of other programs: medians of each step.

use std::collections::BTreeMap;

use bed::Result;

use crate::paper::analysis::UNKNOWN;
use crate::paper::folders::Sitting;
use crate::paper::rivals::row::{READ_ONLY, Row, STEPS, read};
use crate::statistics::median;

/// Both daemons and all adapters, in the order of the tables.
pub fn systems(adapters: &[String]) -> Vec<String> {
    ["stock", "ours"].into_iter().map(str::to_owned).chain(adapters.iter().cloned()).collect()
}

/// Those of them that were on the host; all if nothing was measured.
pub fn present(systems: &[String], rows: &[Row]) -> Vec<String> {
    let is_here = |system: &&String| rows.is_empty() || rows.iter().any(|row| row.system == **system);
    systems.iter().filter(is_here).cloned().collect()
}

/// The rows of a sitting.
pub fn rows(sitting: &Sitting) -> Result<Vec<Row>> {
    sitting.rows("rivals", read)
}

/// How many jobs were good, and medians of these: by keys, as printed.
pub fn numbers(systems: &[String], rows: &[Row]) -> BTreeMap<String, String> {
    let mut numbers = BTreeMap::new();
    for system in systems {
        let of_read_only = rows.iter().filter(|row| row.system == *system && row.step == READ_ONLY);
        let word = match of_read_only.map(|row| row.outcome == 'T').reduce(|all, one| all && one) {
            None => UNKNOWN,
            Some(true) => "yes",
            Some(false) => "no",
        };
        numbers.insert(format!("rivals.{system}.{READ_ONLY}"), word.to_owned());
        for step in STEPS {
            let of: Vec<&Row> = rows.iter().filter(|row| row.system == *system && row.step == step).collect();
            let good: Vec<&Row> = of.iter().copied().filter(|row| matches!(row.outcome, 'T' | 'W')).collect();
            let name = format!("rivals.{system}.{step}");
            let mut put = |word: &str, text: String| {
                let text = if good.is_empty() { UNKNOWN.to_owned() } else { text };
                numbers.insert(format!("{name}.{word}"), text);
            };
            let middle = |figure: fn(&Row) -> f64| median(&good.iter().map(|row| figure(row)).collect::<Vec<_>>());
            let mebibyte = f64::from(1 << 20);
            put("wall", format!("{:.2}", middle(|row| row.wall)));
            put("cpu", format!("{:.2}", middle(|row| row.cpu)));
            put("memory", format!("{:.0}", middle(|row| row.memory) / mebibyte));
            put("stored", format!("{:.1}", middle(|row| row.stored) / mebibyte));
            numbers.insert(format!("{name}.n"), good.len().to_string());
            numbers.insert(format!("{name}.bad"), (of.len() - good.len()).to_string());
        }
    }
    numbers
}
