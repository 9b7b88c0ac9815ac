//! Plugins in C, in a plugin host of their own, called by a daemon that does nothing else.
//!
//! The plugin host is this program itself, so it has no harness.

#![allow(clippy::print_stdout, clippy::panic, reason = "it is a test, and its own harness")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test ends with the first thing that is wrong")]

mod bed;
mod calls;
mod confined;
mod debian;
mod failures;
mod leftovers;

use std::process::ExitCode;

type Test = (&'static str, fn());

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    if fd_plugins::library::is_meant(&arguments) {
        return ExitCode::from(fd_plugins::library::serve());
    }
    if arguments.iter().any(|argument| argument == debian::INSIDE) {
        debian::inside();
        return ExitCode::SUCCESS;
    }
    if let [_, role, plugin, loops] = &arguments[..]
        && role == leftovers::DAEMON
    {
        leftovers::daemon(plugin.as_ref(), loops.as_ref());
        return ExitCode::SUCCESS;
    }
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let (mut passed, mut failed) = (0, 0);
    let tests = [calls::TESTS, confined::TESTS, failures::TESTS, leftovers::TESTS, debian::TESTS];
    for (name, test) in tests.into_iter().flatten().filter(|(name, _)| name.contains(&filter)) {
        // A skipped test is named by its thread.
        let run = std::thread::Builder::new().name((*name).to_owned()).spawn(*test);
        let good = run.is_ok_and(|run| run.join().is_ok());
        println!("test {name} ... {}", if good { "ok" } else { "FAILED" });
        passed += usize::from(good);
        failed += usize::from(!good);
    }
    // As every harness does.
    println!("test result: {}. {passed} passed; {failed} failed", if failed == 0 { "ok" } else { "FAILED" });
    ExitCode::from(u8::from(failed > 0))
}
