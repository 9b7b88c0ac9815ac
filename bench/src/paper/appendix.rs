//! The appendix: tables and figures of every phase that was measured, in the plan's order.

use std::fmt::Write as _;

use crate::paper::analysis::{Numbers, UNKNOWN};
use crate::paper::plan::{Phase, Plan};

const HEAD: &str = "---\ntitle: \"Appendix: tables and figures\"\n---\n\n\
                    Made from the raw rows; `paper.md` says what is compared and how.\n";
/// What a table has behind its family's name, and what it is.
const TABLES: [(&str, &str); 10] = [
    ("-brief", "Times by each clock"),
    ("-tests", "Shifts of pairs, and how likely they are by chance"),
    ("-spread", "How times spread"),
    ("-cost", "Processor time, memory, throughput"),
    ("-first", "When the first file is there"),
    ("-contrast", "Beside the same job by default"),
    ("-floor", "Above a client that reads and writes no file"),
    ("-above", "What each part costs"),
    ("-packed", "What compression leaves, and what it takes"),
    ("-choice", "The best compression for a line"),
];

/// What the figures of a family show, by the ends of their names.
const FIGURES: [(&str, &str); 8] = [
    ("medians", "Medians, and the change from stock to ours"),
    ("samples", "Every sample"),
    ("ratios", "Ratios with their intervals"),
    ("throughput", "Throughput"),
    ("ecdf", "Which part of the jobs had ended when"),
    ("curves", "Medians along what changes"),
    ("map", "Ours / stock; darker is faster"),
    ("above", "Processor time above the job without the part"),
];
/// Tables of phases with so many pairs that their cells have intervals.
const OF_MANY_PAIRS: [&str; 3] = ["-tests", "-spread", "-first"];
/// Figures of the first phase, which the text is about most; they would fill pages for the others.
const OF_THE_FIRST: [&str; 4] = ["medians", "samples", "throughput", "ecdf"];
/// The tables of other programs, and what they are.
const RIVALS: [(&str, &str); 6] = [
    ("rivals-wall", "Seconds of each step"),
    ("rivals-cpu", "Processor seconds of each step"),
    ("rivals-memory", "MiB: the peaks of Bacula's three daemons together, of others that of the largest process"),
    ("rivals-stored", "MiB that are stored after each step"),
    ("rivals-readonly", "Whether a tree is saved that is mounted read-only"),
    ("rivals-published", "Seconds that others have published, of a set of the same kind"),
];

/// What is measured: the tables and figures of a sitting, by their names.
struct Made<'a> {
    plan: &'a Plan,
    tables: &'a [(String, String)],
    figures: &'a [String],
}

impl Made<'_> {
    /// A table with its caption, if there is one of this name.
    fn table(&self, text: &mut String, name: &str, caption: &str) {
        if let Some((_, table)) = self.tables.iter().find(|(known, _)| known == name) {
            let _ = write!(text, "\n{table}\nTable: {caption}\n");
        }
    }

    /// The tables and figures of all families of a phase.
    fn phase(&self, text: &mut String, phase: &Phase) {
        let _ = write!(text, "\n## {}\n", phase.title);
        for family in &phase.family {
            let _ = write!(text, "\n### {}\n", family.title);
            let name = format!("{}-{}", phase.name, family.name);
            let has_intervals = self.plan.has_intervals(phase);
            for (end, what) in TABLES.into_iter().filter(|(end, _)| has_intervals || !OF_MANY_PAIRS.contains(end)) {
                self.table(text, &format!("{name}{end}"), &format!("{}. {what}", family.title));
            }
            let is_first = self.plan.phase.first().is_some_and(|first| first.name == phase.name);
            for (word, what) in FIGURES.into_iter().filter(|(word, _)| is_first || !OF_THE_FIRST.contains(word)) {
                let figure = format!("{name}-{word}.svg");
                if self.figures.contains(&figure) {
                    let _ = write!(text, "\n![{}. {what}]({figure})\n", family.title);
                }
            }
        }
    }

    /// The tables of other programs.
    fn rivals(&self, text: &mut String, numbers: &Numbers) {
        if numbers.get("rivals.host").is_some_and(|host| host != UNKNOWN) {
            text.push_str("\n## Other programs\n");
            for (name, what) in RIVALS {
                self.table(text, name, &format!("Other programs. {what}"));
            }
        }
    }
}

/// The appendix: what was measured, and the names of what was not. Figures are by their file names.
pub fn text(plan: &Plan, numbers: &Numbers, tables: &[(String, String)], figures: &[String]) -> String {
    let made = Made { plan, tables, figures };
    let mut text = HEAD.to_owned();
    let is_measured = |phase: &&Phase| numbers.get(&format!("{}.host", phase.name)).is_none_or(|host| host != UNKNOWN);
    let missing: Vec<&str> =
        plan.phase.iter().filter(|phase| !is_measured(phase)).map(|phase| phase.title.as_str()).collect();
    if !missing.is_empty() {
        let _ = write!(text, "\nPlanned, and not measured in this sitting:\n\n- {}\n", missing.join("\n- "));
    }
    let general = [
        ("When each phase was measured, and by what", "phases"),
        ("The same jobs in several phases", "drift"),
        ("Cells with fewer pairs than planned", "short"),
        ("Waits in the Director's queue", "queue"),
        ("Every cell in which ours takes more", "lost-cells"),
        ("What times vary with", "variation"),
        ("A model of a Full's time", "model"),
    ];
    for (title, name) in general {
        let _ = write!(text, "\n## {title}\n");
        made.table(&mut text, name, title);
    }
    for phase in plan.phase.iter().filter(is_measured) {
        made.phase(&mut text, phase);
    }
    if plan.tail.iter().any(|tail| numbers.get(&format!("{}.ours.n", tail.name)).is_some_and(|n| n != "0")) {
        text.push_str("\n## Work beside a Full\n");
        made.table(&mut text, "tail", "Transactions beside a Full of Mixed");
        made.table(&mut text, "lost-tails", "Of these, what is worse beside ours");
    }
    made.rivals(&mut text, numbers);
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
            text.contains(
                "### Backups\n\n| a |\n\nTable: Backups. Times by each clock\n\n\
                 ![Backups. Which part of the jobs had ended when](nine-backups-ecdf.svg)\n"
            ),
            "{text}"
        );
        assert_eq!(text.matches("\n## ").count(), plan().phase.len() + 7);
    }
}
