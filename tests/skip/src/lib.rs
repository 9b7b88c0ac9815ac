//! How a test says that it, or a part of it, can't run here. Else it would count as passed.
//!
//! `make test` counts what was said and `.ci/run` ends badly over what is not on its list
//! (docs/testing.md). Only for tests: each crate and the bed has it, and it uses nothing.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::panic::Location;
use std::path::PathBuf;
use std::thread;

/// The folder that has a line for each skip, if there is one.
const VARIABLE: &str = "FERROFD_SKIPS";

/// What a test gives back.
pub trait Given {
    /// As if it had passed.
    const PASSED: Self;
}

impl Given for () {
    const PASSED: Self = ();
}

impl<E> Given for Result<(), E> {
    const PASSED: Self = Ok(());
}

/// Ends a test that can't run here: `return skip::test("needs root")`.
#[track_caller]
pub fn test<G: Given>(reason: &str) -> G {
    say("all of it", reason);
    G::PASSED
}

/// Ends a test that can't run here if this is so: `skip::when!(!is_root(), "needs root")`.
#[macro_export]
macro_rules! when {
    ($condition:expr, $reason:expr) => {
        if $condition {
            return $crate::test($reason);
        }
    };
}

/// Ends a test that can't run here if there is something that it lacks: an optional text.
#[macro_export]
macro_rules! lacks {
    ($missing:expr) => {
        if let Some(missing) = $missing {
            return $crate::test(AsRef::<str>::as_ref(&missing));
        }
    };
}

/// Ends a test that only does something when another test starts it, in a process of its own. That
/// is no skip.
pub fn unasked<G: Given>() -> G {
    G::PASSED
}

/// A part of a test can't run here; the rest goes on.
#[track_caller]
pub fn part(reason: &str) {
    say("a part", reason);
}

#[track_caller]
#[expect(clippy::print_stdout, reason = "beside what else the test tells")]
fn say(what: &str, reason: &str) {
    let thread = thread::current();
    let place = Location::caller();
    let line = format!("{}:{}: {}: {what}: {reason}\n", place.file(), place.line(), thread.name().unwrap_or("?"));
    print!("skipped: {line}");
    if let Some(folder) = std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty()) {
        let path = PathBuf::from(folder).join("skips");
        let written = OpenOptions::new().create(true).append(true).open(&path).and_then(|mut file| {
            // In one piece, since many tests may write at a time.
            file.write_all(line.as_bytes())
        });
        assert!(written.is_ok(), "{}: {written:?}", path.display());
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    const CHILD: &str = "skip::tests::child";

    /// The other test is this one's program: by itself it does not skip.
    #[test]
    fn child() -> Result<(), String> {
        if std::env::var_os(CHILD).is_none() {
            return super::unasked();
        }
        super::part("one half");
        crate::lacks!(None::<&str>);
        crate::when!(super::VARIABLE.is_empty(), "nothing");
        crate::lacks!(Some("the other half"));
        Err("it goes on".to_owned())
    }

    #[test]
    fn each_skip_is_one_line_in_the_folder() {
        let folder = std::env::temp_dir().join(format!("skip-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tests::child"])
            .env(CHILD, "yes")
            .env(super::VARIABLE, &folder)
            .output();
        let told = std::fs::read_to_string(folder.join("skips"));
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(child.unwrap().status.success());
        let told = told.unwrap();
        let lines: Vec<&str> = told.lines().map(|line| line.split_once("tests::child: ").unwrap().1).collect();
        assert_eq!(lines, ["a part: one half", "all of it: the other half"]);
        assert!(told.lines().all(|line| line.starts_with("tests/skip/src/lib.rs:")), "{told}");
    }
}
