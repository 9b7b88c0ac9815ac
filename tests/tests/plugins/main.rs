//! The plugins of `tests/plugins/` in the stock daemon and in the daemon under test: what they are
//! told, in which order, what comes on the volumes and into the catalog, and what is restored.
//!
//! With `FD_UNDER_TEST=stock` a second stock daemon takes the place of ours, which shows that the
//! comparison itself is sound.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "what helps a test fails the test, like the test itself"
)]

mod calls;
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

use bed::Result;
use stage::Stage;

#[test]
fn backups_and_restores_with_plugins_are_those_of_the_stock_daemon() -> Result<()> {
    let stage = Stage::set(&rows::backups())?;
    let mut wrong = Vec::new();
    let mut saved = HashMap::new();
    for level in ["Full", "Incremental"] {
        for (row, jobs) in stage.run_all(level)? {
            wrong.extend(stage.differences(&format!("{} {level}", row.name), &jobs)?);
            saved.insert((row.name, level), jobs);
        }
    }
    for restore in rows::restores() {
        let backups = &saved[&(restore.row, restore.level)];
        wrong.extend(stage.differences_of_restores(&restore, backups)?);
    }
    wrong.extend(stage.differences_of_verifies()?);
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
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
    let wrong = talks::differences()?;
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

#[test]
fn the_plugins_that_the_stock_daemon_loads_are_loaded() -> Result<()> {
    let wrong = loads::differences()?;
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

#[test]
fn plugins_that_need_libbac_work_as_in_the_stock_daemon() -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        return skip::test("only root can give a daemon another /usr");
    }
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
