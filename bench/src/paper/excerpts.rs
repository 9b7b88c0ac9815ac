//! Texts with numbers of the paper that stand in other pages, between two marks.

use std::fs;
use std::path::Path;

use bed::{BedError, Result, say};

use crate::paper::analysis::UNKNOWN;
use crate::paper::plan::{Excerpt, Plan};

/// Its template below the paper's folder, and its file below the generated ones.
pub fn file_name(excerpt: &Excerpt) -> String {
    format!("excerpts/{}.md", excerpt.name)
}

/// Puts all excerpts into their pages, from the files that were generated; with `check` pages are
/// only compared. Those that are not measured as a whole are left out.
pub fn put_all(plan: &Plan, generated: &Path, top: &Path, check: bool) -> Result<bool> {
    let mut good = true;
    for excerpt in &plan.excerpt {
        let (from, page) = (generated.join(file_name(excerpt)), top.join(&excerpt.page));
        let read = |path: &Path| fs::read_to_string(path).map_err(BedError::file("read", path));
        let (text, old) = (read(&from)?, read(&page)?);
        let new = put(&old, &excerpt.name, &text)
            .ok_or_else(|| BedError::Usage(format!("{} has no marks for {:?}", excerpt.page, excerpt.name)))?;
        if text.contains(UNKNOWN) {
            say(&format!("{}: {} is not measured as a whole, so it stays as it is", excerpt.page, excerpt.name));
        } else if check && new != old {
            say(&format!("{}: {} is not what was measured", excerpt.page, excerpt.name));
            good = false;
        } else if new != old {
            fs::write(&page, new).map_err(BedError::file("write", &page))?;
        }
    }
    Ok(good)
}

/// A page with another text between the marks of a word; `None` without marks.
fn put(page: &str, name: &str, text: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- begin: {name} -->\n"), format!("<!-- end: {name} -->"));
    let (head, rest) = page.split_once(&begin)?;
    let (_, tail) = rest.split_once(&end)?;
    Some(format!("{head}{begin}{text}{end}{tail}"))
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
            folder.make("excerpts").unwrap();
            fs::write(folder.path().join(file_name(excerpt)), UNKNOWN).unwrap();
        }
        assert!(put_all(&plan, folder.path(), top, true).unwrap());
    }
}
