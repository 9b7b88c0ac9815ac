//! Everything in `generated/`, from the plan, the raw rows and the text.

use std::fs;
use std::path::Path;

use bed::{BedError, Result};

use crate::paper::analysis::{Numbers, UNKNOWN, data, measured, numbers, one_program};
use crate::paper::appendix;
use crate::paper::calls;
use crate::paper::counts;
use crate::paper::curves::programs;
use crate::paper::derived;
use crate::paper::excerpts;
use crate::paper::faults;
use crate::paper::figures::figures;
use crate::paper::folders::Sitting;
use crate::paper::gates;
use crate::paper::lost;
use crate::paper::model;
use crate::paper::plan::Plan;
use crate::paper::rivals::adapter::Adapter;
use crate::paper::rivals::numbers as rivals;
use crate::paper::rivals::published;
use crate::paper::tables::{beside, rivals as of_rivals, tables};
use crate::paper::tail;
use crate::paper::text::{bare_numbers, filled};

/// The texts with references, beside the excerpts.
const TEXTS: [&str; 2] = ["paper.md", "claims.md"];

/// The table of a sitting beside the published one; at the end of the text of another sitting.
const BESIDE: &str = "beside";

/// The phase of system calls.
pub const CALLS: &str = "calls";

/// What is made of the rows of one sitting.
struct Rendered {
    numbers: Numbers,
    tables: Vec<(String, String)>,
    figures: Vec<(String, String)>,
}

impl Rendered {
    /// The names of all figures.
    fn figure_names(&self) -> Vec<String> {
        self.figures.iter().map(|(name, _)| name.clone()).collect()
    }
}

/// Renders the paper of a folder from the data of another into a third, which is made anew. The
/// rows are those of the wanted sitting, otherwise of the plan's. Figures that no text shows are
/// left out.
pub fn render(paper: &Path, data_folder: &Path, wanted: Option<&str>, into: &Path) -> Result<()> {
    let plan = Plan::read(paper)?;
    let sitting = Sitting::find(data_folder, wanted.or(plan.sitting.as_deref()))?;
    if let Some(wanted) = wanted.filter(|wanted| **wanted != sitting.name) {
        return Err(BedError::Usage(format!("{}: no rows of {wanted}", data_folder.display())));
    }
    let mut main = of_sitting(paper, &plan, &sitting)?;
    let mut files: Vec<(String, String)> = vec![("numbers.json".to_owned(), json(&main.numbers))];
    files.push(("appendix.md".to_owned(), appendix::text(&plan, &main.numbers, &main.tables, &main.figure_names())));
    let published = Sitting::find(data_folder, plan.sitting.as_deref())?;
    if published.name != sitting.name {
        let theirs = of_sitting(paper, &plan, &published)?.numbers;
        let text = beside(&plan, (&sitting.name, &main.numbers), (&published.name, &theirs))?;
        main.tables.push((BESIDE.to_owned(), text));
    }
    files.extend(texts(paper, &plan, &main.numbers, &main.tables, &main.figure_names())?);
    let is_shown = |name: &str| files.iter().any(|(_, text)| text.contains(&format!("]({name})")));
    let shown: Vec<_> = main.figures.into_iter().filter(|(name, _)| is_shown(name)).collect();
    files.extend(shown);
    if into.exists() {
        fs::remove_dir_all(into).map_err(BedError::file("remove", into))?;
    }
    for (name, content) in files {
        let path = into.join(name);
        let folder = path.parent().unwrap_or(into);
        fs::create_dir_all(folder).map_err(BedError::file("create", folder))?;
        fs::write(&path, content).map_err(BedError::file("write", &path))?;
    }
    Ok(())
}

/// Numbers, tables and figures of a sitting.
fn of_sitting(paper: &Path, plan: &Plan, sitting: &Sitting) -> Result<Rendered> {
    let adapters = Adapter::all(&paper.join("rivals"))?;
    let steps = rivals::rows(sitting)?;
    let transactions = tail::numbers(sitting, &plan.tail)?;
    let found = faults::numbers(paper)?;
    let passed = gates::numbers(sitting, &plan.gate)?;
    let counted = counts::numbers(sitting, &plan.count)?;
    let rows = plan.phase.iter().map(|phase| data(sitting, phase)).collect::<Result<Vec<_>>>()?;
    one_program(&rows)?;
    let measured = measured(plan, &rows)?;
    let mut numbers = numbers(plan, &rows, &measured)?;
    numbers.extend(lost::numbers(&measured, &numbers));
    numbers.extend(model::numbers(plan, &rows)?);
    numbers.extend(calls::numbers(&plan.calls, &sitting.rows(CALLS, calls::rows)?));
    numbers.extend(derived::numbers(plan, &rows)?);
    let names: Vec<String> = adapters.iter().map(|adapter| adapter.name.clone()).collect();
    let systems = rivals::systems(&names);
    numbers.extend(rivals::numbers(&systems, &steps));
    let systems = rivals::present(&systems, &steps);
    numbers.insert("rivals.host".to_owned(), if steps.is_empty() { UNKNOWN.to_owned() } else { sitting.name.clone() });
    let weeks = derived::profiles(&plan.profile, &numbers);
    numbers.extend(weeks);
    numbers.extend(transactions.clone());
    let mut tables = tables(plan, &numbers)?;
    tables.extend(of_rivals(&systems, &adapters, &numbers));
    tables.push(("rivals-published".to_owned(), published::table(paper)?));
    tables.push(("tail".to_owned(), tail::table(&plan.tail, &transactions)));
    tables.push(("tail-signs".to_owned(), tail::signs(&plan.tail, &transactions)));
    tables.push(("lost-tails".to_owned(), lost::tails(&plan.tail, &transactions)));
    tables.push(("lost".to_owned(), lost::table(plan, &numbers)));
    tables.push(("lost-cells".to_owned(), lost::cells(&measured, &numbers)));
    tables.push((CALLS.to_owned(), calls::table(&plan.calls, &numbers)));
    tables.push(("model".to_owned(), model::table(plan, &numbers)));
    tables.push(("faults".to_owned(), faults::table(&found)));
    numbers.extend(found);
    tables.push(("gates".to_owned(), gates::table(&plan.gate, &passed)));
    numbers.extend(passed);
    tables.push(("counts".to_owned(), counts::table(&plan.count, &counted)));
    numbers.extend(counted);
    let mut figures = figures(plan, &rows, &measured)?;
    figures.extend(tail::figures(sitting, &plan.tail)?);
    figures.push(("rivals-wall.svg".to_owned(), programs(&systems, &numbers)));
    Ok(Rendered { numbers, tables, figures })
}

/// The texts with what they refer to.
fn texts(
    paper: &Path,
    plan: &Plan,
    numbers: &Numbers,
    tables: &[(String, String)],
    figures: &[String],
) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for name in TEXTS.map(str::to_owned).into_iter().chain(plan.excerpt.iter().map(excerpts::file_name)) {
        let path = paper.join(&name);
        let template = fs::read_to_string(&path).map_err(BedError::file("read", &path))?;
        let bare = bare_numbers(&template, &plan.text.constants);
        if !bare.is_empty() {
            return Err(BedError::Usage(format!(
                "{name}: a number stands in the text without a reference to a measurement:\n{}",
                bare.join("\n")
            )));
        }
        let template = if name == TEXTS[0] && tables.iter().any(|(known, _)| known == BESIDE) {
            format!("{template}\n## Another host\n\n{{{{table {BESIDE}}}}}\n")
        } else {
            template
        };
        let text =
            filled(&template, numbers, tables, figures).map_err(|error| BedError::Usage(format!("{name}: {error}")))?;
        files.push((name, text));
    }
    Ok(files)
}

/// One key a line, in their order.
fn json(numbers: &Numbers) -> String {
    let text = serde_json::to_string_pretty(numbers).unwrap_or_default();
    format!("{text}\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;
    use crate::sample::{self, Sample, Side};

    fn paper() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("paper").join("perf-analysis")
    }

    /// The files below a folder.
    fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(
                    files(&path)
                        .into_iter()
                        .map(|(name, text)| (Path::new(path.file_name().unwrap()).join(name), text)),
                );
            } else {
                found.insert(path.file_name().unwrap().into(), fs::read_to_string(&path).unwrap());
            }
        }
        found
    }

    #[test]
    fn the_paper_renders_without_data_and_twice_alike() {
        let folder = bed::Folder::new("paper").unwrap();
        let read = |name: &str| {
            let into = folder.path().join(name);
            render(&paper(), &folder.path().join("none"), None, &into).unwrap();
            files(&into)
        };
        let once = read("once");
        assert!(once.len() > 5 && once == read("twice"));
    }

    #[test]
    fn another_sitting_has_the_published_one_beside_it() {
        let folder = bed::Folder::new("paper").unwrap();
        let plan = Plan::read(&paper()).unwrap();
        let cell = plan.phase[0].cells().unwrap()[0];
        for sitting in ["elsewhere", plan.sitting.as_deref().unwrap()] {
            let raw = folder.make(&format!("data/{}/{sitting}", plan.phase[0].name)).unwrap().join("raw.csv");
            for side in Side::BOTH {
                sample::append(&raw, &Sample { cell, ..sample::tests::sample(side, 1) }).unwrap();
            }
        }
        let text = |sitting: Option<&str>| {
            let into = folder.path().join("into");
            render(&paper(), &folder.path().join("data"), sitting, &into).unwrap();
            fs::read_to_string(into.join("paper.md")).unwrap()
        };
        let (elsewhere, published) = (text(Some("elsewhere")), text(None));
        assert!(elsewhere.contains("## Another host") && elsewhere.contains("Ratios here (`elsewhere`)"));
        assert!(!published.contains("## Another host"));
    }

    /// `make paper-render` makes it.
    #[test]
    fn what_is_generated_is_what_the_rows_give() {
        let folder = bed::Folder::new("paper").unwrap();
        let (again, paper) = (folder.path().join("again"), paper());
        render(&paper, &paper.join("data"), None, &again).unwrap();
        let (again, generated) = (files(&again), files(&paper.join("generated")));
        assert!(again.keys().eq(generated.keys()), "other files");
        let other: Vec<_> =
            again.iter().filter(|(name, text)| generated[*name] != **text).map(|(name, _)| name).collect();
        assert!(other.is_empty(), "{other:?}");
        let top = paper.ancestors().nth(2).unwrap();
        assert!(excerpts::put_all(&Plan::read(&paper).unwrap(), &paper.join("generated"), top, true).unwrap());
    }
}
