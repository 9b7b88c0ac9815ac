//! The pages of the project (not those of the reference): do the tests and source files that they
//! name exist, are their lines short, and do they speak of programs as things?
//!
//! Not here: the tables that other rules compare with the sources.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::citations::CHAPTERS;
use crate::sources::{Outcome, files, read, root, rust_files};

/// A line of a page.
struct Line {
    page: PathBuf,
    number: usize,
    text: String,
    /// Between two fences.
    code: bool,
}

impl Line {
    fn problem(&self, what: &str) -> String {
        format!("{}:{}: {what}", self.page.display(), self.number)
    }

    /// What stands in backticks.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.text.split('`').skip(1).step_by(2)
    }
}

/// The lines of the project's own pages.
fn lines() -> Outcome<Vec<Line>> {
    let mut lines = Vec::new();
    for page in files()? {
        if page.extension().is_some_and(|extension| extension == "md") && !page.starts_with(CHAPTERS) {
            lines.extend(lines_of(&page)?);
        }
    }
    Ok(lines)
}

fn lines_of(page: &Path) -> Outcome<Vec<Line>> {
    let (mut lines, mut code) = (Vec::new(), false);
    for (at, text) in read(&page.to_string_lossy())?.lines().enumerate() {
        code ^= text.starts_with("```");
        lines.push(Line { page: page.to_owned(), number: at + 1, text: text.to_owned(), code });
    }
    Ok(lines)
}

#[test]
fn every_test_that_a_page_names_exists() -> Outcome<()> {
    // An example of how to name one.
    const EXAMPLE: &str = "a_canceled_job_releases_its_device";
    // Those have a test of their own.
    const METRICS: [&str; 2] = ["bacula_fd_", "process_"];
    let mut known = BTreeSet::new();
    for path in rust_files()? {
        let text = read(&path.to_string_lossy())?;
        let names = text.lines().filter_map(|line| line.trim_start().strip_prefix("fn ")?.split('(').next());
        known.extend(names.map(str::to_owned));
    }
    let is_test = |name: &str| {
        let of_a_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        name.matches('_').count() >= 3
            && name.bytes().all(of_a_name)
            && name != EXAMPLE
            && !METRICS.iter().any(|m| name.starts_with(m))
    };
    let mut problems = Vec::new();
    for line in lines()? {
        let missing = line.names().filter(|name| is_test(name) && !known.contains(*name));
        problems.extend(missing.map(|name| line.problem(&format!("there is no test {name}"))));
    }
    crate::none(&problems);
    Ok(())
}

/// Paths are meant from the root, from `crates/`, or from the page's own directory. `x` stands for
/// any module.
#[test]
fn every_source_file_that_a_page_names_exists() -> Outcome<()> {
    let mut problems = Vec::new();
    for line in lines()? {
        let from = [root(), root().join("crates"), root().join(&line.page).with_file_name("")];
        let is_source = |name: &str| {
            let source = Path::new(name).extension().is_some_and(|extension| extension == "rs");
            source && name.contains('/') && !name.starts_with("x/")
        };
        let missing = line.names().filter(|name| is_source(name) && !from.iter().any(|from| from.join(name).is_file()));
        problems.extend(missing.map(|name| line.problem(&format!("there is no {name}"))));
    }
    crate::none(&problems);
    Ok(())
}

#[test]
fn lines_of_pages_are_short_enough_to_read() -> Outcome<()> {
    const COLUMNS: usize = 120;
    let free = |line: &Line| line.code || line.text.starts_with('|');
    let long = lines()?.into_iter().filter(|line| line.text.chars().count() > COLUMNS && !free(line));
    let problems: Vec<String> = long.map(|line| line.problem("more than 120 columns")).collect();
    crate::none(&problems);
    Ok(())
}

/// A daemon, a file or a function is "it".
#[test]
fn pages_speak_of_programs_as_things() -> Outcome<()> {
    const WORDS: [&str; 8] = ["anybody", "everybody", "he", "him", "his", "nobody", "somebody", "whoever"];
    let mut problems = Vec::new();
    // The page of style quotes them.
    for line in lines()?.iter().filter(|line| line.page != Path::new("CONTRIBUTING.md")) {
        let prose = line.text.split('`').step_by(2).flat_map(|text| text.split(|c: char| !c.is_alphanumeric()));
        let found = prose.map(str::to_lowercase).filter(|word| WORDS.contains(&word.as_str()));
        problems.extend(found.map(|word| line.problem(&format!("{word:?} of what? A program is \"it\""))));
    }
    crate::none(&problems);
    Ok(())
}

/// Links within the repository; other sites are not asked.
#[test]
fn every_link_of_a_page_leads_to_a_file_and_a_heading() -> Outcome<()> {
    let (all, mut problems) = (files()?, Vec::new());
    for page in all.iter().filter(|page| page.extension().is_some_and(|extension| extension == "md")) {
        for line in lines_of(page)?.iter().filter(|line| !line.code) {
            // In backticks there are no links.
            let prose: String = line.text.split('`').step_by(2).collect();
            let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            for target in targets.filter(|target| !target.contains("://")) {
                let (path, heading) = target.split_once('#').unwrap_or((target, ""));
                let file = if path.is_empty() { root().join(page) } else { root().join(page).with_file_name(path) };
                if !file.exists() {
                    problems.push(line.problem(&format!("{target} does not exist")));
                } else if !heading.is_empty() && !anchors(&std::fs::read_to_string(&file)?).contains(heading) {
                    problems.push(line.problem(&format!("{target}: there is no such heading")));
                }
            }
        }
    }
    crate::none(&problems);
    Ok(())
}

/// A page that the book does not list is one that its readers don't find.
#[test]
fn the_example_of_the_manual_page_is_the_packages_configuration() -> Outcome<()> {
    let page = read("docs/man/bacula-fd.conf.5.md")?;
    let example = page.split("## Examples").nth(1).and_then(|rest| rest.split("```").nth(1)).unwrap_or_default();
    let packaged = read("packaging/files/bacula-fd.conf.in")?;
    // But for the comment that leads to the manual page.
    let (_, packaged) = packaged.split_once("\n\n").unwrap_or_default();
    assert_eq!(example.trim(), packaged.trim(), "the page on the left, the package on the right");
    Ok(())
}

#[test]
fn every_page_of_the_manual_is_in_its_table_of_contents() -> Outcome<()> {
    const CONTENTS: &str = "docs/SUMMARY.md";
    let summary = read(CONTENTS)?;
    let listed: BTreeSet<&str> = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    let pages = files()?.into_iter().filter(|page| page.extension().is_some_and(|extension| extension == "md"));
    let missing = pages.filter(|page| page != Path::new(CONTENTS)).filter_map(|page| {
        let page = page.strip_prefix("docs").ok()?.to_string_lossy().into_owned();
        (!listed.contains(page.as_str())).then(|| format!("docs/{page} is not in {CONTENTS}"))
    });
    crate::none(&missing.collect::<Vec<_>>());
    Ok(())
}

/// Figures that a reader can't measure again are hearsay.
#[test]
fn every_table_of_figures_is_among_the_claims() -> Outcome<()> {
    const CLAIMS: &str = "paper/perf-analysis/claims.md";
    let claims = read(CLAIMS)?;
    let named: BTreeSet<&str> = claims.split('`').skip(1).step_by(2).filter(|name| name.contains(".md#")).collect();
    let (mut sections, mut problems) = (BTreeSet::new(), Vec::new());
    let all = lines()?;
    let is_measured =
        |page: &Path| page == Path::new("README.md") || page.starts_with("docs") || page.starts_with("bench");
    let mut section = String::new();
    for line in all.iter().filter(|line| !line.code && is_measured(&line.page)) {
        if line.text.starts_with('#') {
            section = format!("{}#{}", line.page.display(), anchor(&line.text));
            sections.insert(section.clone());
        } else if line.text.split('|').filter(|cell| is_figure(cell)).count() > 1 && !named.contains(section.as_str()) {
            problems.push(line.problem(&format!("{CLAIMS} has no {section}")));
        }
    }
    let gone = named.iter().filter(|name| !sections.contains(**name));
    problems.extend(gone.map(|name| format!("{CLAIMS}: there is no {name}")));
    crate::none(&problems);
    Ok(())
}

/// Whether a cell of a table is a number, perhaps with a unit.
fn is_figure(cell: &str) -> bool {
    let bare = cell.trim().replace(['*', ','], "");
    let number = [" s", " ms", " MiB"].iter().find_map(|unit| bare.strip_suffix(unit)).unwrap_or(&bare);
    number.parse::<f64>().is_ok()
}

/// The names by which links reach the headings of a page.
fn anchors(page: &str) -> BTreeSet<String> {
    page.lines().filter(|line| line.starts_with('#')).map(anchor).collect()
}

fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}
