//! Scripts that tests write and run. Only for tests: each crate and the bed has it.
//!
//! A program that is open for writing can't be run. What another thread of the test program forks
//! meanwhile has the open file, too, until it runs a program of its own. So another process writes.

use std::io::{Error, Result};
use std::path::Path;
use std::process::Command;

/// Writes a program with mode 0755: these lines for `sh`, or a text that names its interpreter
/// itself. It can be run at once, whatever other threads start meanwhile.
pub fn write(path: &Path, text: &str) -> Result<()> {
    let head = if text.starts_with("#!") { "" } else { "#!/bin/sh\n" };
    let by_shell = "printf '%s\\n' \"$1\" >\"$0\" && chmod 755 \"$0\"";
    let status = Command::new("sh").args(["-c", by_shell]).arg(path).arg(format!("{head}{text}")).status()?;
    if status.success() { Ok(()) } else { Err(Error::other(format!("{}: {status}", path.display()))) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_script_can_be_run_at_once_while_others_start_programs() {
        let path = std::env::temp_dir().join(format!("scripts-{}", std::process::id()));
        let has_ended = AtomicBool::new(false);
        let outcomes: Vec<Result<bool>> = std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !has_ended.load(Ordering::Relaxed) {
                        assert!(Command::new("true").status().is_ok_and(|status| status.success()));
                    }
                });
            }
            let run = |code: i32| {
                write(&path, &format!("exit {code}"))?;
                Ok(Command::new(&path).status()?.code() == Some(code))
            };
            let outcomes = (0..200).map(run).collect();
            has_ended.store(true, Ordering::Relaxed);
            outcomes
        });
        std::fs::remove_file(&path).unwrap();
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(true))), "{outcomes:?}");
    }
}
