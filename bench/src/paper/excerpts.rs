//! Tables of the paper that stand in other pages, too, between two marks.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use bed::{BedError, Result, say};

use crate::paper::analysis::{Numbers, UNKNOWN};
use crate::paper::plan::{Excerpt, Line, Plan};
use crate::tree::file;

/// Its file among what is generated.
pub fn file_name(excerpt: &Excerpt) -> String {
    format!("excerpt-{}.md", excerpt.name)
}

/// The excerpt, measured or not.
pub fn text(excerpt: &Excerpt, numbers: &Numbers, tables: &[(String, String)]) -> Result<String> {
    let mut parts = Vec::new();
    for name in &excerpt.tables {
        let table = tables.iter().find(|(known, _)| known == name);
        let (_, table) = table.ok_or_else(|| BedError::Usage(format!("plan.toml: no table {name:?}")))?;
        parts.push(table.clone());
    }
    if !excerpt.line.is_empty() {
        parts.push(gain(&excerpt.line, numbers)?);
    }
    Ok(parts.join("\n"))
}

/// Time and CPU of some jobs, for a reader in a hurry.
fn gain(lines: &[Line], numbers: &Numbers) -> Result<String> {
    let mut text = String::from(
        "| job | time: stock | ferrofd | | CPU: stock | ferrofd | |\n| --- | --: | --: | --: | --: | --: | --: |\n",
    );
    for Line { text: job, key } in lines {
        let get = |word: &str| {
            let found = numbers.get(&format!("{key}.{word}"));
            found.ok_or_else(|| BedError::Usage(format!("plan.toml: no number {key}.{word}")))
        };
        let _ = write!(text, "| {job}");
        for (word, per_second) in [("time", 1000.0), ("cpu", 1.0)] {
            for side in ["stock", "ours"] {
                let median = get(&format!("{word}.{side}.median"))?;
                match median.parse::<f64>() {
                    Ok(median) => write!(text, " | {:.2} s", median / per_second),
                    Err(_) => write!(text, " | {median}"),
                }
                .unwrap_or_default();
            }
            let ratio = get(&format!("{word}.ratio"))?;
            match ratio.parse::<f64>() {
                Ok(ratio) => write!(text, " | **{ratio:.2}**"),
                Err(_) => write!(text, " | {ratio}"),
            }
            .unwrap_or_default();
        }
        text.push_str(" |\n");
    }
    Ok(text)
}

/// Puts all excerpts into their pages, from the files that were generated; with `check` pages are
/// only compared. Those that are not measured as a whole are left out.
pub fn put_all(plan: &Plan, generated: &Path, top: &Path, check: bool) -> Result<bool> {
    let mut good = true;
    for excerpt in &plan.excerpt {
        let (from, page) = (generated.join(file_name(excerpt)), top.join(&excerpt.page));
        let read = |path: &Path| fs::read_to_string(path).map_err(file("read", path));
        let (table, old) = (read(&from)?, read(&page)?);
        let new = put(&old, &excerpt.name, &table)
            .ok_or_else(|| BedError::Usage(format!("{} has no marks for {:?}", excerpt.page, excerpt.name)))?;
        if table.contains(UNKNOWN) {
            say(&format!("{}: {} is not measured as a whole, so it stays as it is", excerpt.page, excerpt.name));
        } else if check && new != old {
            say(&format!("{}: {} is not what was measured", excerpt.page, excerpt.name));
            good = false;
        } else if new != old {
            fs::write(&page, new).map_err(file("write", &page))?;
        }
    }
    Ok(good)
}

/// A page with another table between the marks of a word; `None` without marks.
fn put(page: &str, name: &str, table: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- begin: {name} -->\n"), format!("<!-- end: {name} -->"));
    let (head, rest) = page.split_once(&begin)?;
    let (_, tail) = rest.split_once(&end)?;
    Some(format!("{head}{begin}{table}{end}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::plan::tests::plan;

    #[test]
    fn what_is_between_the_marks_is_replaced_and_nothing_else() {
        let page = "a\n<!-- begin: x -->\nold\n<!-- end: x -->\nb\n";
        let new = put(page, "x", "new\n").unwrap();
        assert_eq!(new, page.replace("old", "new"));
        assert_eq!(put(page, "y", "new\n"), None);
    }

    #[test]
    fn each_excerpt_has_its_marks_and_stays_while_it_is_not_measured() {
        let plan = plan();
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let folder = bed::Folder::new("excerpts").unwrap();
        for excerpt in &plan.excerpt {
            let page = fs::read_to_string(top.join(&excerpt.page)).unwrap();
            assert!(put(&page, &excerpt.name, "").is_some(), "{}", excerpt.page);
            fs::write(folder.path().join(file_name(excerpt)), UNKNOWN).unwrap();
        }
        assert!(put_all(&plan, folder.path(), top, true).unwrap());
    }

    #[test]
    fn a_line_has_seconds_and_ratios() {
        let line = Line { text: "Full".to_owned(), key: "n.c".to_owned() };
        let numbers: Numbers = [
            ("time.stock.median", "2088.1"),
            ("time.ours.median", "606.0"),
            ("time.ratio", "0.290"),
            ("cpu.stock.median", "1.200"),
            ("cpu.ours.median", "0.412"),
            ("cpu.ratio", "0.343"),
        ]
        .map(|(key, value)| (format!("n.c.{key}"), value.to_owned()))
        .into();
        let text = gain(&[line], &numbers).unwrap();
        assert!(text.ends_with("| Full | 2.09 s | 0.61 s | **0.29** | 1.20 s | 0.41 s | **0.34** |\n"), "{text}");
    }
}
