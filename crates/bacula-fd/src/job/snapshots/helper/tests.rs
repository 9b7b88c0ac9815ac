//! Calls of a helper that is a line of shell.

use std::fs;
use std::path::PathBuf;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::*;
use crate::alone::alone;

/// A helper that does this, in a folder of its own.
pub(in crate::job::snapshots) fn helper(name: &str, script: &str, arguments: &str) -> (Helper, PathBuf) {
    let folder = std::env::temp_dir().join(format!("ferrofd-helper-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("helper");
    scripts::write(&program, script).unwrap();
    let command = format!("{} {arguments}", program.display()).into_bytes();
    (Helper { command, allowed: Vec::new(), working: b"/work".to_vec() }, folder)
}

fn about() -> Snapshot {
    let text = |text: &str| text.as_bytes().to_vec();
    Snapshot { name: text("job.1"), device: text("/dev/v g"), mount_point: text("/d"), ..Snapshot::default() }
}

fn ask(name: &str, script: &str) -> Result<Answer, Failed> {
    let (helper, folder) = helper(name, script, "");
    let answer = helper.ask(Action::Create, &about(), &|| true);
    fs::remove_dir_all(folder).unwrap();
    answer
}

#[test]
fn a_call_has_its_codes_and_its_environment() {
    let script = "for word; do printf '<%s>' \"$word\"; done; env | grep ^SNAPSHOT_ | sort | tr '\\n' ' '";
    let (helper, folder) = helper("codes", script, "%a \"-%d-\" %n%% %v %x");
    let printed = helper.run(Action::Support, &about(), &|| true).unwrap();
    assert_eq!(
        String::from_utf8(printed).unwrap(),
        "<support><-/dev/v g-><job.1%><><%x>SNAPSHOT_ACTION=support SNAPSHOT_DEVICE=/dev/v g \
         SNAPSHOT_MOUNTPOINT=/d SNAPSHOT_NAME=job.1 SNAPSHOT_WORKING=/work "
    );
    assert!(helper.exists());
    fs::remove_dir_all(folder).unwrap();
    assert!(!helper.exists());
    let failed = helper.ask(Action::Delete, &about(), &|| true).unwrap_err();
    assert!(failed.error.ends_with(b".  No such file or directory\n"), "{}", failed.error.escape_ascii());
}

#[test]
fn an_exit_of_one_has_the_helper_s_own_error_and_other_ends_have_not() {
    let text = |failed: Failed| (failed.status, String::from_utf8(failed.error).unwrap());
    assert_eq!(ask("good", "echo status=0 type=x").map(|answer| answer.kind), Ok(b"x".to_vec()));
    let (status, error) = text(ask("error", "echo 'status=2 error=\"no space\"'; exit 1").unwrap_err());
    assert_eq!((status, error.as_str()), (2, "no space"));
    let (status, error) = text(ask("silent", "echo 'status=2'; exit 1").unwrap_err());
    assert_eq!(status, 2);
    assert!(error.starts_with("Error while executing \"create\" /") && error.ends_with("Child exited with code 1\n"));
    let (status, error) = text(ask("other", "echo 'status=2 error=x'; exit 3").unwrap_err());
    assert!(status == 0 && error.contains("helper . status=2 error=x\n Child exited with code 3"), "{error}");
    let killed = ask("killed", "kill -9 $$").unwrap_err();
    assert!(killed.was_ended);
    let (_, error) = text(killed);
    assert!(error.contains("Child died from signal 9"), "{error}");
    let endless = ask("endless", "yes").unwrap_err();
    assert!(endless.was_ended && endless.is_no_answer());
    let (_, error) = text(endless);
    assert!(error.contains("more than 1 MiB"), "{error}");
}

/// The limit belongs to the process, so there is one for this.
#[test]
fn a_helper_for_which_there_is_no_process_has_not_answered() {
    const NAME: &str = "job::snapshots::helper::tests::a_helper_for_which_there_is_no_process_has_not_answered";
    alone(
        NAME,
        |_, _| {},
        |_| {
            let (helper, folder) = helper("no-process", "echo status=1", "");
            let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
            setrlimit(Resource::RLIMIT_NOFILE, 0, hard).unwrap();
            let failed = helper.ask(Action::Support, &about(), &|| true).unwrap_err();
            setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
            assert!(failed.error.ends_with(b"Too many open files\n"), "{}", failed.error.escape_ascii());
            assert!(failed.is_no_answer() && !failed.was_ended);
            fs::remove_dir_all(folder).unwrap();
        },
    );
}

#[test]
fn a_call_that_is_not_wanted_any_more_is_ended_with_what_it_has_started() {
    let (helper, folder) = helper("unwanted", "sleep 1000 & echo started > $0.started; sleep 1000", "");
    let started = folder.join("helper.started");
    let failed = helper.ask(Action::Create, &about(), &|| !started.exists()).unwrap_err();
    assert!(failed.was_ended && failed.status == 0);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_helper_outside_the_allowed_directories_is_not_run() {
    let (mut helper, folder) = helper("refused", "touch $0.ran", "");
    helper.allowed = vec![b"/usr/lib".to_vec()];
    let failed = helper.ask(Action::Create, &about(), &|| true).unwrap_err();
    assert!(failed.error.ends_with(b"Not in allowed paths\n"), "{}", failed.error.escape_ascii());
    assert!(!failed.is_no_answer(), "the administrator wants none");
    assert!(!folder.join("helper.ran").exists());
    fs::remove_dir_all(folder).unwrap();
}
