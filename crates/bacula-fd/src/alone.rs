//! For tests of what belongs to the process, such as its limits and its output: a process for each.

use std::path::Path;
use std::process::Command;

/// Runs this test alone in a process, which `prepare` may give an environment, and `case` there.
/// Both get a folder. What the process has printed, where the test was not alone before.
pub(crate) fn alone(test: &str, prepare: impl FnOnce(&mut Command, &Path), case: impl FnOnce(&Path)) -> Option<String> {
    const FOLDER: &str = "FOLDER_OF_A_TEST_ALONE";
    if let Some(folder) = std::env::var_os(FOLDER) {
        case(Path::new(&folder));
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    prepare(command.args(["--exact", test, "--nocapture"]).env(FOLDER, folder.path()), folder.path());
    let output = command.output().unwrap();
    let [printed, errors] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    // With a name that no test has, nothing runs, and that is no failure.
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}{errors}");
    Some(printed)
}
