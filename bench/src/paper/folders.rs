//! Raw rows below the folder of all data: `PHASE/HOST/raw.csv`.

use std::fs;
use std::path::Path;

use bed::Result;

use crate::tree::file;

/// The rows of a phase that the text is about, with the name of their folder: of the one that is
/// wanted, otherwise of that with most rows; of several, the last by name. None if there are none.
pub fn most<T>(
    data: &Path,
    phase: &str,
    wanted: Option<&str>,
    read: impl Fn(&Path) -> Result<Vec<T>>,
) -> Result<(String, Vec<T>)> {
    let folder = data.join(phase);
    let mut best = (String::new(), Vec::new());
    if !folder.exists() {
        return Ok(best);
    }
    let entries = fs::read_dir(&folder).map_err(file("read", &folder))?.flatten();
    let mut hosts: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    hosts.sort();
    for host in hosts {
        let raw = folder.join(&host).join("raw.csv");
        if wanted.is_none_or(|wanted| wanted == host) && raw.exists() {
            let rows = read(&raw)?;
            if rows.len() >= best.1.len() {
                best = (host, rows);
            }
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_with_most_rows_counts_unless_another_one_is_wanted() {
        let folder = bed::Folder::new("folders").unwrap();
        for (host, lines) in [("a", "1\n2\n"), ("b", "1\n2\n"), ("c", "1\n")] {
            fs::write(folder.make(&format!("nine/{host}")).unwrap().join("raw.csv"), lines).unwrap();
        }
        let read = |path: &Path| Ok(fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect());
        let most = |phase, wanted| most(folder.path(), phase, wanted, read).unwrap().0;
        assert_eq!(most("nine", None), "b");
        assert_eq!(most("nine", Some("c")), "c");
        assert_eq!(most("ten", None), "");
    }
}
