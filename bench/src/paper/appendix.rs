//! The appendix: every table and every figure of every phase, in the plan's order.

use std::fmt::Write as _;

use crate::paper::analysis::{Numbers, UNKNOWN};
use crate::paper::plan::{Phase, Plan};

const HEAD: &str = "---\ntitle: \"Every table and every figure\"\n---\n\n\
                    Made from the raw rows; `paper.md` says what is compared and how.\n";
/// What a table has behind its family's name, and what it is.
const TABLES: [(&str, &str); 9] = [
    ("-brief", "Times by each clock"),
    ("-tests", "Shifts of pairs, and how likely they are by chance"),
    ("-spread", "How times spread"),
    ("-cost", "Processor time, memory, throughput"),
    ("-first", "When the first file is there"),
    ("-floor", "Above a client that reads and writes no file"),
    ("-above", "What each part costs"),
    ("-packed", "What compression leaves, and what it takes"),
    ("-choice", "The best compression for a line"),
];

/// The text: the phases that were measured, and the names of the others. Figures are those of each
/// family by their file names.
pub fn text(plan: &Plan, numbers: &Numbers, tables: &[(String, String)], figures: &[String]) -> String {
    let mut text = HEAD.to_owned();
    let is_measured = |phase: &&Phase| numbers.get(&format!("{}.host", phase.name)).is_none_or(|host| host != UNKNOWN);
    let missing: Vec<&str> =
        plan.phase.iter().filter(|phase| !is_measured(phase)).map(|phase| phase.title.as_str()).collect();
    if !missing.is_empty() {
        let _ = write!(text, "\nPlanned, and not measured in this sitting: {}.\n", missing.join("; "));
    }
    for (title, name) in [("Every cell in which ours takes more", "lost-cells"), ("What times vary with", "variation")]
    {
        if let Some((_, table)) = tables.iter().find(|(known, _)| known == name) {
            let _ = write!(text, "\n## {title}\n\n{table}");
        }
    }
    for phase in plan.phase.iter().filter(is_measured) {
        let _ = write!(text, "\n## {}\n", phase.title);
        for family in &phase.family {
            let _ = write!(text, "\n### {}\n", family.title);
            let name = format!("{}-{}", phase.name, family.name);
            for (end, what) in TABLES {
                if let Some((_, table)) = tables.iter().find(|(known, _)| *known == format!("{name}{end}")) {
                    let _ = write!(text, "\n{what}:\n\n{table}");
                }
            }
            for figure in figures.iter().filter(|figure| figure.starts_with(&format!("{name}-"))) {
                let _ = write!(text, "\n![{}]({figure})\n", family.title);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::plan::tests::plan;

    #[test]
    fn each_family_has_its_tables_and_figures() {
        let tables = [("nine-backups-brief".to_owned(), "| a |\n".to_owned())];
        let text = text(&plan(), &Numbers::new(), &tables, &["nine-backups-ecdf.svg".to_owned()]);
        assert!(
            text.contains("### Backups\n\nTimes by each clock:\n\n| a |\n\n![Backups](nine-backups-ecdf.svg)\n"),
            "{text}"
        );
        assert_eq!(text.matches("\n## ").count(), plan().phase.len());
    }
}
