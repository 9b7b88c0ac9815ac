//! The places of the reference that comments and pages cite: does each exist in `docs/reference/`?
//!
//! A citation names a chapter and sections: "reference 04 §6.3", "reference 04 §8.5–8.6, 05 §7.2",
//! "02 §4.2, step 3", "06 §16, row 181", "reference 04 Appendix A". A section without a chapter
//! belongs to the chapter that is cited before it in the same sentence, else to the chapter or
//! crate that it stands in.
//!
//! Not here: whether the section says what the comment claims.

use std::collections::BTreeMap;
use std::path::Path;

use crate::sources::{Outcome, files, read};

/// Where a section without a chapter means this chapter. Each chapter itself is added to them.
const HOMES: [(&str, &str); 1] = [("crates/fd-compress", "08")];
/// Where the chapters are.
pub(crate) const CHAPTERS: &str = "docs/reference";

/// The numbers and appendices of a chapter, each with the lines that belong to it.
#[derive(Default)]
struct Chapter {
    places: BTreeMap<String, String>,
}

impl Chapter {
    fn parse(page: &str) -> Self {
        let mut places: BTreeMap<String, String> = BTreeMap::new();
        // The headings around a line, outermost first: depth and names.
        let mut around: Vec<(usize, Vec<String>)> = Vec::new();
        let mut fenced = false;
        for line in page.lines() {
            fenced ^= line.starts_with("```");
            if let Some((depth, heading)) = heading(line).filter(|_| !fenced) {
                around.retain(|(outer, _)| *outer < depth);
                around.push((depth, names(heading)));
            }
            for name in around.iter().flat_map(|(_, names)| names) {
                let text = places.entry(name.clone()).or_default();
                text.push_str(line);
                text.push('\n');
            }
            // A row that has a number of its own: `| 18.4 | …`.
            let cell = line.strip_prefix("| ").and_then(|rest| rest.split(" |").next()).unwrap_or_default();
            if cell.contains('.') && number(cell) == cell {
                places.entry(cell.to_owned()).or_default().push_str(line);
            }
        }
        Self { places }
    }

    /// Whether the place has a step or a row of this number.
    fn has_item(&self, place: &str, item: &str) -> bool {
        let begins = [format!("{item}. "), format!("| {item} |")];
        self.places
            .get(place)
            .is_some_and(|text| text.lines().any(|l| begins.iter().any(|b| l.starts_with(b.as_str()))))
    }
}

/// The depth and text of a heading: `### 4.2 …`, or a paragraph that begins with `**11.2 …**`.
fn heading(line: &str) -> Option<(usize, &str)> {
    let text = line.trim_start_matches('#');
    let depth = line.len() - text.len();
    let bold = line.strip_prefix("**").filter(|text| number(text).contains('.')).map(|text| (7, text));
    if depth > 0 { Some((depth, text.trim())) } else { bold }
}

/// What a heading can be cited by: `4.2`, `Appendix A`.
fn names(heading: &str) -> Vec<String> {
    let mut names = Vec::new();
    let number = number(heading);
    if !number.is_empty() {
        names.push(number.to_owned());
    }
    if let Some((_, rest)) = heading.split_once("Appendix ") {
        names.extend(rest.chars().next().map(|letter| format!("Appendix {letter}")));
    }
    names
}

/// The section number that `text` begins with, without a dot at its end; nothing if it begins
/// otherwise.
fn number(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number = text.get(..end).unwrap_or_default().trim_end_matches('.');
    if number.starts_with('.') { "" } else { number }
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Citation {
    line: usize,
    /// Two digits; `None` if the text does not say it.
    chapter: Option<String>,
    /// A number or an appendix; empty if the whole chapter is cited.
    place: String,
    /// Steps and rows of the place.
    items: Vec<String>,
}

/// A file's lines as one text, without indentation and marks of comments, so that a citation may be
/// broken by a line's end. With the offset at which each line begins.
fn joined(text: &str) -> (String, Vec<usize>) {
    let (mut all, mut starts) = (String::new(), Vec::new());
    for line in text.lines() {
        let line = line.trim_start();
        let bare = ["///", "//!", "//", "# "].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line);
        starts.push(all.len());
        all.push_str(bare.trim());
        all.push(' ');
    }
    (all, starts)
}

fn citations(text: &str) -> Vec<Citation> {
    let (text, starts) = joined(text);
    let line = |at: usize| starts.partition_point(|start| *start <= at);
    let mut found: Vec<Citation> = Vec::new();
    // Where the last citation ended.
    let mut end = 0;
    for (at, _) in text.match_indices(['§', 'e']) {
        let (before, rest) = (text.get(..at).unwrap_or_default(), text.get(at..).unwrap_or_default());
        if let Some(rest) = rest.strip_prefix("eference ") {
            if let Some(chapter) = chapter_at_start(rest).filter(|_| before.ends_with(['r', 'R'])) {
                let place = match rest.get(2..).and_then(|rest| rest.strip_prefix(" Appendix ")) {
                    Some(rest) => format!("Appendix {}", rest.chars().next().unwrap_or_default()),
                    None => String::new(),
                };
                found.push(Citation { line: line(at), chapter: Some(chapter.to_owned()), place, items: Vec::new() });
            }
        } else if let Some(mut rest) = rest.strip_prefix('§') {
            let gap = text.get(end..at).unwrap_or_default();
            let before_this = found.last().filter(|_| is_chain(gap)).and_then(|last| last.chapter.clone());
            let chapter = chapter_at_end(before).or(before_this);
            for place in take_range(&mut rest) {
                found.push(Citation { line: line(at), chapter: chapter.clone(), place, items: Vec::new() });
            }
            if let Some(last) = found.last_mut() {
                last.items = take_items(&mut rest);
            }
            end = text.len().saturating_sub(rest.len());
        }
    }
    found
}

fn chapter_at_start(text: &str) -> Option<&str> {
    let chapter = text.get(..2)?;
    let mut follows = text.get(2..)?.chars();
    let whole = match follows.next() {
        Some('.') => !follows.next().is_some_and(|c| c.is_ascii_digit()),
        Some(next) => !next.is_alphanumeric(),
        None => true,
    };
    (whole && chapter.bytes().all(|byte| byte.is_ascii_digit())).then_some(chapter)
}

/// The chapter of `… 04 ` or of a link to it, `04-backup-stream.md `.
fn chapter_at_end(text: &str) -> Option<String> {
    let word = text.strip_suffix(' ')?.rsplit([' ', '(', '[', '`']).find(|word| !word.is_empty())?;
    let (digits, rest) = (word.get(..2)?, word.get(2..)?);
    let page = rest.trim_end_matches([',', ')']);
    let is_page = page.starts_with('-') && Path::new(page).extension().is_some_and(|extension| extension == "md");
    ((rest.is_empty() || is_page) && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.to_owned())
}

/// Whether what stands between two citations leaves the second one in the first one's sentence.
fn is_chain(gap: &str) -> bool {
    gap.len() < 60 && !gap.contains(". ") && !gap.contains(['{', '}'])
}

/// The number at the beginning of `text`, or the two ends of a range: `8.5–8.6`.
fn take_range(text: &mut &str) -> Vec<String> {
    let take = |text: &mut &str| {
        let found = number(text);
        *text = text.get(found.len()..).unwrap_or_default();
        found.to_owned()
    };
    let mut places = vec![take(text)];
    if let Some(mut rest) = text.strip_prefix('–').filter(|rest| !number(rest).is_empty()) {
        places.push(take(&mut rest));
        *text = rest;
    }
    places
}

/// `, step 3`, ` steps 6 and 7`, `, row 181`.
fn take_items(text: &mut &str) -> Vec<String> {
    let mut items = Vec::new();
    let mut words = text.trim_start_matches(',').split_inclusive(' ').filter(|word| *word != " ");
    if words.next().is_some_and(|word| ["step ", "steps ", "row ", "rows "].contains(&word)) {
        for word in words {
            let item = number(word);
            let joins = ["and ", "to ", "or "].contains(&word);
            if item.is_empty() && !joins {
                break;
            }
            items.extend((!item.is_empty()).then(|| item.to_owned()));
            if !joins && item.len() + 1 != word.len() {
                break;
            }
        }
    }
    items
}

#[test]
fn every_cited_section_of_the_reference_exists() -> Outcome<()> {
    let all = files()?;
    let mut chapters: BTreeMap<String, Chapter> = BTreeMap::new();
    let mut homes: Vec<(String, String)> = HOMES.map(|(place, chapter)| (place.to_owned(), chapter.to_owned())).into();
    for file in all.iter().filter(|file| file.starts_with(CHAPTERS)) {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if let Some(chapter) = name.get(..2).filter(|chapter| chapter.bytes().all(|byte| byte.is_ascii_digit())) {
            chapters.insert(chapter.to_owned(), Chapter::parse(&read(&file.to_string_lossy())?));
            homes.push((file.to_string_lossy().into_owned(), chapter.to_owned()));
        }
    }
    let (mut problems, mut checked) = (Vec::new(), 0);
    for file in all.iter().filter(|file| file.extension().is_some_and(|e| e == "rs" || e == "md" || e == "toml")) {
        // This page of rules speaks of citations that do not exist.
        if file.ends_with("house_rules/citations.rs") {
            continue;
        }
        let home = homes.iter().find(|(place, _)| file.starts_with(place)).map(|(_, chapter)| chapter.clone());
        for cited in citations(&read(&file.to_string_lossy())?) {
            checked += 1;
            let place = format!("{}:{}", file.display(), cited.line);
            let Some(name) = cited.chapter.or_else(|| home.clone()) else {
                problems.push(format!("{place}: §{} of which chapter?", cited.place));
                continue;
            };
            let Some(chapter) = chapters.get(&name) else {
                problems.push(format!("{place}: the reference has no chapter {name}"));
                continue;
            };
            if !cited.place.is_empty() && !chapter.places.contains_key(&cited.place) {
                problems.push(format!("{place}: the reference has no {name} §{}", cited.place));
            }
            let missing = cited.items.iter().filter(|item| !chapter.has_item(&cited.place, item));
            problems.extend(missing.map(|item| format!("{place}: {name} §{} has no step or row {item}", cited.place)));
        }
    }
    crate::none(&problems);
    assert!(checked > 400, "{checked} citations found: has their form changed?");
    Ok(())
}

#[test]
fn citations_are_read_in_every_form() {
    let read = |text: &str| -> Vec<String> {
        let word = |c: Citation| {
            let items = c.items.join("+");
            format!("{}:{} {}:{items}", c.line, c.chapter.unwrap_or_default(), c.place).trim_end_matches(':').to_owned()
        };
        citations(text).into_iter().filter(|c| !c.place.is_empty() || c.line == 9).map(word).collect()
    };
    assert_eq!(read("(reference 04 §8.5–8.6, 05 §7.2)."), ["1:04 8.5", "1:04 8.6", "1:05 7.2"]);
    assert_eq!(read("/// reference 06\n/// §1.2 – §1.6, and §2. Not §3"), ["2:06 1.2", "2:06 1.6", "2:06 2", "2: 3"]);
    assert_eq!(read("02 §4.2, step 3). 04 §1.1 steps 6 and 7)"), ["1:02 4.2:3", "1:04 1.1:6+7"]);
    assert_eq!(read("reference 04 Appendix A, `05-restore.md` §3"), ["1:04 Appendix A", "1:05 3"]);
    assert_eq!(read("\n\n\n\n\n\n\n\nof reference 02."), ["9:02 "]);
    let page =
        "## 1. One\n1. first\n### 1.1 Two\n**1.2 Three.**\n## 19. Appendix A: b\n| 19.2 | row |\n```\n# 7 no\n```";
    let chapter = Chapter::parse(page);
    let places: Vec<&str> = chapter.places.keys().map(String::as_str).collect();
    assert_eq!(places, ["1", "1.1", "1.2", "19", "19.2", "Appendix A"]);
    assert!(chapter.has_item("1", "1") && !chapter.has_item("1.1", "1"));
}
