//! The plugins of `tests/plugins/` in the daemon under test: what they are told, in which order,
//! what comes on the volumes and into the catalog, and what is restored, compared with what the
//! stock daemon did.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "what helps a test fails the test, like the test itself"
)]

mod calls;
mod confined;
mod evil;
mod jobs;
mod libbac;
mod loads;
mod rows;
mod stage;
mod talks;
mod told;
mod traces;

use std::collections::HashMap;

use bed::{Fd, Result, StockRecord};
use stage::{NAME, OTHER, Stage, between};

#[test]
fn backups_and_restores_with_plugins_are_those_of_the_stock_daemon() -> Result<()> {
    skip::when!(!nix::unistd::geteuid().is_root(), "needs root");
    let stage = Stage::set(&rows::backups(), &[(Fd::under_test()?, NAME)])?;
    let record = StockRecord::open("plugins")?;
    let mut wrong = Vec::new();
    let mut saved = HashMap::new();
    for level in ["Full", "Incremental"] {
        for (row, job) in stage.run_all(NAME, level)? {
            let parts = stage.parts(row, &job)?;
            wrong.extend(stage.differences(&record, &format!("{} {level}", row.name), row, parts)?);
            saved.insert((row.name, level), job);
        }
    }
    for restore in rows::restores() {
        let parts = stage.restore(&restore, &saved[&(restore.row, restore.level)], NAME, NAME)?;
        let what = format!("restore {}", restore.label());
        wrong.extend(stage.differences(&record, &what, stage.row(restore.row), parts)?);
    }
    for (row, parts) in stage.verify_all()? {
        wrong.extend(stage.differences(&record, &format!("verify {}", row.name), row, parts)?);
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

/// The volumes are the same (see the records), so this shows nothing new; it is the plainest proof.
#[test]
#[ignore = "the stock daemon live: make test-live"]
fn each_daemon_restores_what_plugins_of_the_other_have_saved() -> Result<()> {
    let restores: Vec<_> = rows::restores().into_iter().filter(|restore| restore.is_crossed).collect();
    let is_restored = |row: &rows::Row| restores.iter().any(|restore| restore.row == row.name);
    let rows: Vec<_> = rows::backups().into_iter().filter(is_restored).collect();
    let stage = Stage::set(&rows, &[(Fd::Stock, OTHER), (Fd::under_test()?, NAME)])?;
    let mut saved = HashMap::new();
    for (name, level) in [(OTHER, "Full"), (NAME, "Full"), (OTHER, "Incremental"), (NAME, "Incremental")] {
        saved.extend(stage.run_all(name, level)?.into_iter().map(|(row, job)| ((row.name, level, name), job)));
    }
    let mut wrong = Vec::new();
    for restore in restores {
        let side = |from, onto| stage.restore(&restore, &saved[&(restore.row, restore.level, from)], from, onto);
        wrong.extend(between(&restore.label(), &side(NAME, OTHER)?, &side(OTHER, NAME)?));
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

/// Beside the stock daemon.
#[test]
fn updates_that_a_plugin_leaves_to_the_daemon_are_restored_as_by_the_stock_daemon() -> Result<()> {
    skip::when!(!nix::unistd::geteuid().is_root(), "needs root");
    let stage = Stage::set(&rows::updates(), &[(Fd::Stock, OTHER), (Fd::under_test()?, NAME)])?;
    let [stock, ours] = [OTHER, NAME].map(|name| stage.restore_chain(name));
    let ((told_by_stock, stock), (mut told, ours)) = (stock?, ours?);
    assert_eq!(ours, stock);
    // The stock daemon drops their data, and no message says so.
    let dropped: Vec<_> = told.extract_if(.., |line| line.contains("Warning: Data of ")).collect();
    let wanted = if Fd::under_test()? == Fd::Stock { 0 } else { 5 };
    assert_eq!((dropped.len(), told), (wanted, told_by_stock), "{dropped:#?}");
    Ok(())
}

#[test]
fn differences_that_are_allowed_are_documented() {
    let page = include_str!("../../../docs/differences.md");
    for (row, _) in told::DOCUMENTED {
        assert!(page.contains(&format!("| {row}")), "{row}");
    }
}

#[test]
fn questions_about_plugins_are_answered_as_by_the_stock_daemon() -> Result<()> {
    skip::when!(!nix::unistd::geteuid().is_root(), "needs root");
    let wrong = talks::differences()?;
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

#[test]
fn the_plugins_that_the_stock_daemon_loads_are_loaded() -> Result<()> {
    skip::when!(!nix::unistd::geteuid().is_root(), "needs root");
    let wrong = loads::differences()?;
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

#[test]
fn plugins_that_need_libbac_work_as_in_the_stock_daemon() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let wrong = libbac::wrong()?;
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

#[test]
fn what_a_plugin_says_for_debugging_is_in_the_trace() -> Result<()> {
    let wrong = traces::differences()?;
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}
