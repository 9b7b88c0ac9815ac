//! When a program runs, what it gets, and how it ends.

use super::*;
use crate::shared::job::Identity;

fn surroundings(allowed: &[Vec<u8>]) -> Surroundings {
    let (client, director, previous_job) = (b"c".to_vec(), b"d".to_vec(), Vec::new());
    Surroundings { client, director, previous_job, allowed: allowed.to_vec() }
}

fn script(command: &str, abort_on_error: bool) -> RunScript {
    let command = command.as_bytes().to_vec();
    RunScript { on_success: true, on_failure: false, abort_on_error, when: RunScript::BEFORE, command }
}

fn said_by(command: &str, allowed: &[Vec<u8>], abort: bool) -> (Vec<String>, JobStatus) {
    let job = Job::new(Identity { name: b"nightly.2026-11-21_02.19.56_04".to_vec(), ..Identity::default() }, 0);
    let mut said = Vec::new();
    let mut say = |kind, text: &[u8]| said.push(format!("{kind:?} {}", String::from_utf8_lossy(text)));
    run(&script(command, abort), Moment::Before, &job, &surroundings(allowed), &|| false, &mut say);
    (said, job.status())
}

#[test]
fn output_comes_line_by_line_and_codes_are_expanded() {
    let (said, status) = said_by("sh -c \"echo one %n; echo two >&2\"", &[], true);
    assert_eq!(
        said,
        [
            "Info shell command: run ClientBeforeJob \"sh -c \"echo one nightly; echo two >&2\"\"\n",
            "Info ClientBeforeJob: one nightly\n",
            "Info ClientBeforeJob: two\n",
        ]
    );
    assert_eq!(status, JobStatus::Created);
}

/// A few bytes of codes are not to take hundreds of megabytes.
#[test]
fn a_command_that_its_codes_make_too_long_is_not_run() {
    let codes = "%j".repeat(300_000);
    let (said, _) = said_by(&format!("/bin/true {codes}"), &[], true);
    assert_eq!(said, ["Error Runscript: ClientBeforeJob returned non-zero status=204. ERR=Argument list too long\n"]);
}

#[test]
fn a_refused_program_is_told_with_the_directive_that_refuses_it() {
    let allowed = [b"/ok".to_vec()];
    for command in ["/bad/x", "/ok/x | y"] {
        let (said, _) = said_by(command, &allowed, true);
        let [_, warning, error] = said.as_slice() else { panic!("{said:?}") };
        assert!(warning.starts_with("Warning ") && warning.contains("Allowed Script Directories"), "{warning}");
        assert!(error.starts_with("Error ") && error.contains("status=-402653185"), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/bin/sh", folder.path().join("sh")).unwrap();
    let path = std::fs::canonicalize(folder.path()).unwrap();
    let (said, _) =
        said_by(&format!("{}/sh -c true", path.display()), &[path.as_os_str().as_encoded_bytes().to_vec()], true);
    assert!(said.len() == 3 && said[1].contains("Allowed Script Directories"), "{said:?}");
}

#[test]
fn each_end_of_a_line_makes_a_message_however_it_is_written() {
    for buffer in [1, 2, 3, 4096] {
        let text =
            [b"10%\r50%\rdone\ndos\r\n\n\r\r\n\r\nx\nnul\0tail\n\0\n".to_vec(), vec![b'y'; 998], b"\rz".to_vec()];
        let output = BufReader::with_capacity(buffer, io::Cursor::new(text.concat()));
        let mut pieces = Pieces { output, piece: Vec::new(), may_pair: false };
        let mut found = Vec::new();
        while let Some(piece) = pieces.next().unwrap() {
            found.push(String::from_utf8_lossy(piece).into_owned());
        }
        let long = "y".repeat(499);
        let expected = [
            "10%",
            "50%",
            "done",
            "dos",
            "",
            "",
            "",
            "",
            "x",
            "nul\0tail",
            "\0",
            long.as_str(),
            long.as_str(),
            "",
            "z",
        ];
        assert_eq!(found, expected, "{buffer}");
    }
}

#[test]
fn failures_have_the_stock_numbers() {
    let last = |command: &str, allowed: &[Vec<u8>]| said_by(command, allowed, false).0.pop().unwrap_or_default();
    assert_eq!(
        last("sh -c \"exit 3\"", &[]),
        "Error Runscript: ClientBeforeJob returned non-zero status=3. ERR=Child exited with code 3\n"
    );
    assert_eq!(
        last("/no/such/program", &[]),
        "Error Runscript: ClientBeforeJob returned non-zero status=208. ERR=No such file or directory\n"
    );
    assert_eq!(
        last("/bin/true", &[b"/opt/scripts".to_vec()]),
        "Error Runscript: ClientBeforeJob returned non-zero status=-402653185. ERR=Unknown Error\n"
    );
    assert_eq!(
        last("sh -c \"kill -TERM $$\"", &[]),
        "Error Runscript: ClientBeforeJob returned non-zero status=15. ERR=Child died from signal 15: Termination\n"
    );
}

#[test]
fn only_a_script_that_may_fails_the_job() {
    assert_eq!(said_by("/bin/false", &[], false).1, JobStatus::Created);
    assert_eq!(said_by("/bin/false", &[], true).1, JobStatus::Error);
}

/// A script that tells somebody how the job went must not say what was before.
#[test]
fn a_script_sees_the_status_that_the_one_before_it_has_left() {
    let job = Job::new(Identity::default(), 0);
    let scripts = [script("/bin/false", true), RunScript { on_failure: true, ..script("echo %e", true) }];
    let mut said = Vec::new();
    run_all(&scripts, Moment::Before, &job, &surroundings(&[]), &|| false, &mut |_, text| {
        said.push(String::from_utf8_lossy(text).into_owned());
    });
    assert_eq!(said.last().unwrap(), "ClientBeforeJob: Error\n");
}

/// Runs a script that has no end of its own; after its first line this happens. How many bytes it
/// printed.
fn endless(command: &str, moment: Moment, job: &Job, gone: &dyn Fn() -> bool, first: &dyn Fn()) -> (usize, String) {
    let (mut bytes, mut last) = (0, String::new());
    run(&script(command, false), moment, job, &surroundings(&[]), gone, &mut |kind, text| {
        if kind == MessageType::Info && !text.starts_with(b"shell command") {
            bytes += text.len();
            first();
        }
        last = String::from_utf8_lossy(text).into_owned();
    });
    (bytes, last)
}

#[test]
fn a_cancel_ends_scripts_before_the_job_and_none_that_cleans_up() {
    for command in ["yes", "sh -c \"echo x; exec sleep 1000\"", "sh -c \"echo x; exec >&- 2>&-; exec sleep 1000\""] {
        let job = Job::new(Identity::default(), 0);
        let (_, last) = endless(command, Moment::Before, &job, &|| false, &|| job.abort(false));
        let said = "ClientBeforeJob returned non-zero status=15. ERR=Child died from signal 15: Termination\n";
        assert!(last.ends_with(said), "{command}: {last}");
        let (bytes, _) = endless("echo cleaned", Moment::After, &job, &|| false, &|| ());
        assert!(bytes > 0);
        let (_, last) = endless(command, Moment::Before, &job, &|| false, &|| ());
        // The cancel may be seen before the thread that starts the program has started it.
        let not_started = format!("returned non-zero status={NOT_STARTED}. ERR=Unknown Error\n");
        assert!(last.ends_with(said) || last.ends_with(&not_started), "canceled before it began: {command}: {last}");
    }
}

#[test]
fn a_cancel_does_not_wait_for_processes_that_a_script_left() {
    let job = Job::new(Identity::default(), 0);
    let script = "sh -c \"echo x; sleep 1000 & exit 0\"";
    let (_, last) = endless(script, Moment::Before, &job, &|| false, &|| job.abort(false));
    assert_eq!(last, "ClientBeforeJob: x\n");
}

#[test]
fn without_its_director_a_script_before_the_job_ends_and_one_after_it_when_it_prints_without_end() {
    let job = Job::new(Identity::default(), 0);
    let gone = Cell::new(false);
    let (_, last) = endless("yes", Moment::Before, &job, &|| gone.get(), &|| gone.set(true));
    assert!(last.contains("status=15"), "{last}");
    let (bytes, last) = endless("yes", Moment::After, &job, &|| true, &|| ());
    assert!(last.contains("status=15") && bytes > UNHEARD_MAX, "{bytes} {last}");
    let (bytes, last) = endless("sh -c \"sleep 1; echo done\"", Moment::After, &job, &|| true, &|| ());
    assert_eq!((bytes, last.as_str()), (21, "ClientAfterJob: done\n"));
}

#[test]
fn conditions_choose_which_scripts_run() {
    let script = |on_success, on_failure, when| RunScript {
        on_success,
        on_failure,
        abort_on_error: false,
        when,
        command: Vec::new(),
    };
    assert!(Moment::Before.wants(&script(true, false, 2), JobStatus::Created));
    assert!(!Moment::Before.wants(&script(true, false, 1), JobStatus::Created));
    assert!(Moment::After.wants(&script(true, false, 3), JobStatus::Terminated));
    assert!(!Moment::After.wants(&script(true, false, 1), JobStatus::Fatal));
    assert!(Moment::After.wants(&script(false, true, 1), JobStatus::Fatal));
    assert!(Moment::After.wants(&script(false, true, 1), JobStatus::Differences));
    assert!(!Moment::After.wants(&script(true, true, 1), JobStatus::Incomplete));
}

#[test]
fn a_script_for_which_there_is_no_process_was_not_tried() {
    let failure = |number| Failure::of(&io::Error::from_raw_os_error(number).into());
    // EAGAIN, ENOMEM, ENFILE, EMFILE.
    for number in [11, 12, 23, 24] {
        let Failure { status, error, .. } = failure(number);
        assert_eq!((status, error.as_str()), (NOT_STARTED, "Unknown Error"), "{number}");
    }
    let Failure { status, error, .. } = failure(2);
    assert_eq!((status, error.as_str()), (208, "No such file or directory"));
}
