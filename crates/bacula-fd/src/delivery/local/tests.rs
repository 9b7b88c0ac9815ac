//! Mail, the operator and files.

use fd_config::TypeSet;
use std::io::Read as _;
use std::os::unix::net::{UnixDatagram, UnixListener};

use super::*;
use crate::alone::alone;

fn destination(kind: DestinationKind, place: &str, command: Option<String>) -> Destination {
    let mut types = TypeSet::default();
    types.insert(MessageType::Info.number());
    Destination { kind, place: place.into(), types, command: command.map(String::into_bytes) }
}

const INFO: u8 = MessageType::Info.number();

fn local(folder: &std::path::Path, destinations: Vec<Destination>) -> LocalDestinations {
    let messages = Messages { destinations, ..Messages::default() };
    LocalDestinations::new(messages, "x-fd", folder.to_owned())
}

#[test]
fn mail_is_sent_at_the_end_of_a_session_and_operator_commands_run_at_once() {
    let folder = std::env::temp_dir().join(format!("ferrofd-mail-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let into = |name: &str| Some(format!("tee -a {}/{name}-%r-%i-%d", folder.display()));
    let mut local = local(
        &folder,
        vec![
            destination(DestinationKind::Mail, "root", into("mail")),
            destination(DestinationKind::MailOnSuccess, "root", into("success")),
            destination(DestinationKind::Operator, "op", into("operator")),
        ],
    );
    for line in [&b"one\n"[..], b"two\n"] {
        local.deliver(MessageType::Info.number(), 0, line, None);
    }
    let waiting = std::fs::read_dir(&folder)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".mail"));
    assert_eq!(waiting.count(), 0, "a daemon that is killed now leaves it behind");
    local.deliver(MessageType::Warning.number(), 0, b"no destination\n", None);
    local.finish();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let mail = read("mail-root-*none*-x-fd");
    assert!(mail.ends_with("one\n") || mail.contains("one\n") && mail.ends_with("two\n"), "{mail}");
    assert_eq!(mail.lines().count(), 2, "{mail}");
    assert_eq!(read("operator-op-*none*-x-fd").lines().count(), 2);
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().collect();
    assert_eq!(left.len(), 2, "spool files stay, or a success was mailed: {left:?}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn mail_waits_in_a_file_whatever_the_length_of_the_daemon_s_name() {
    let folder = tempfile::tempdir().unwrap();
    let command = Some(format!("tee {}/mail", folder.path().display()));
    let destinations = vec![destination(DestinationKind::Mail, "root", command)];
    let messages = Messages { destinations, ..Messages::default() };
    let mut local = LocalDestinations::new(messages, &"n".repeat(127), folder.path().to_owned());
    local.deliver(INFO, 0, b"one\n", None);
    local.finish();
    assert!(std::fs::read_to_string(folder.path().join("mail")).unwrap_or_default().ends_with("one\n"));
}

/// Standard output belongs to the process, so there is one for this.
#[test]
fn an_operator_s_command_that_fails_is_told_as_it_was_written() {
    const NAME: &str = "delivery::local::tests::an_operator_s_command_that_fails_is_told_as_it_was_written";
    let commands = ["/bin/sh -c 'exit 7'", "/bin/sh -c 'kill -9 $$'"];
    let told = alone(
        NAME,
        |_, _| {},
        |folder| {
            let operator = |command: &str| destination(DestinationKind::Operator, "op", Some(command.to_owned()));
            let mut local = local(folder, commands.map(operator).to_vec());
            local.deliver(INFO, 0, b"one\n", None);
            local.finish();
        },
    );
    let errors = ["Child exited with code 7", "Child died from signal 9: Kill, unblockable"];
    if let Some(told) = told {
        for (command, error) in commands.into_iter().zip(errors) {
            let text = format!("Operator mail program terminated in error.\nCMD={command}\nERR={error}\n");
            assert!(told.contains(&text) && !told.contains(&format!("{text}\n")), "{told}");
        }
    }
}

/// The same as above.
#[test]
fn what_is_not_delivered_is_told_with_the_name_of_what_has_failed() {
    const NAME: &str = "delivery::local::tests::what_is_not_delivered_is_told_with_the_name_of_what_has_failed";
    let case = |folder: &Path| {
        let destinations =
            [DestinationKind::Mail, DestinationKind::Append].map(|kind| destination(kind, "/no/x", None));
        local(&folder.join("none"), destinations.to_vec()).deliver(INFO, 0, b"one\n", None);
    };
    if let Some(told) = alone(NAME, |_, _| {}, case) {
        let missing = "failed: ERR=No such file or directory\n";
        let mail = told.lines().find(|line| line.contains(".mail")).unwrap_or_default();
        let wanted = "  Message delivery ERROR: Msg delivery error: fopen /";
        let end = format!("/none/x-fd.1.mail {missing}");
        assert!(mail.contains(wanted) && format!("{mail}\n").ends_with(&end), "{told}");
        assert!(told.contains(&format!("  Message delivery ERROR: fopen /no/x {missing}")), "{told}");
    }
    let local = local(Path::new("/w"), Vec::new());
    let failure = |kind, place| local.failure(&destination(kind, place, None), &io::Error::other("why"));
    assert_eq!(failure(DestinationKind::Stdout, ""), "write to standard output failed: ERR=why");
    assert_eq!(failure(DestinationKind::Syslog, ""), "write to the host's log failed: ERR=why");
    assert_eq!(failure(DestinationKind::Operator, "op"), "why");
}

#[test]
fn a_file_begins_anew_with_each_session_and_an_appended_one_does_not() {
    let folder = std::env::temp_dir().join(format!("ferrofd-files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let mut local = local(
        &folder,
        vec![
            destination(DestinationKind::File, &path("file"), None),
            destination(DestinationKind::Append, &path("append"), None),
        ],
    );
    for line in [&b"one\n"[..], b"two\n"] {
        local.deliver(MessageType::Info.number(), 0, line, None);
        local.close();
    }
    let lines = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap().lines().count();
    assert_eq!((lines("file"), lines("append")), (1, 2));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_log_daemon_may_read_a_stream() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("log");
    let reader = UnixListener::bind(&place).unwrap();
    syslog_at(&place, INFO, priority(INFO), b"one\ntwo\n").unwrap();
    let mut text = Vec::new();
    reader.accept().unwrap().0.read_to_end(&mut text).unwrap();
    assert_eq!(text, b"<30>bacula-fd: one\0<30>bacula-fd: two\0");
}

#[test]
fn a_log_daemon_that_does_not_read_is_waited_for_once() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("log");
    let reader = UnixDatagram::bind(&place).unwrap();
    // Each of them would wait for ever, or a second: there are minutes of them.
    let sent = (0..1000).filter(|_| syslog_at(&place, INFO, priority(INFO), b"text\n").is_ok()).count();
    assert!((1..1000).contains(&sent), "{sent}");
    let mut text = [0; 100];
    let length = reader.recv(&mut text).unwrap();
    assert_eq!(&text[..length], b"<30>bacula-fd: text");
    syslog_at(&place, INFO, priority(INFO), b"it reads again\n").unwrap();
    drop(reader);
    std::fs::remove_file(&place).unwrap();
    syslog_at(&place, INFO, priority(INFO), b"there is none\n").unwrap();
}

#[test]
fn what_belongs_to_no_job_is_an_error_in_the_host_s_log_and_a_message_is_what_its_type_says() {
    let kinds =
        [MessageType::Abort, MessageType::Fatal, MessageType::Security, MessageType::Warning, MessageType::Info];
    assert_eq!(kinds.map(|kind| priority(kind.number())), [3, 5, 5, 5, 6]);
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("log");
    let reader = UnixDatagram::bind(&place).unwrap();
    for (priority, wanted) in [(priority(MessageType::Security.number()), "<29>"), (ERROR, "<27>")] {
        syslog_at(&place, MessageType::Security.number(), priority, b"text\n").unwrap();
        let mut text = [0; 100];
        let length = reader.recv(&mut text).unwrap();
        assert_eq!(String::from_utf8_lossy(&text[..length]), format!("{wanted}bacula-fd: text"));
    }
}

#[test]
fn what_a_backup_could_not_save_has_a_date_and_what_a_verify_could_not_look_at_has_none() {
    let is_listing = |text: &str| {
        let line = format!("tst-fd JobId 1:      {text}: ERR=No such file or directory\n");
        super::is_listing(MessageType::NotSaved.number(), line.as_bytes())
    };
    for quoted in ["\"/a\"", "\"x\"", "\"./dot\"", "\"relative/name\"", "\"/a\"b\""] {
        assert!(!is_listing(&format!("Could not stat {quoted}")), "{quoted}");
    }
    for plain in ["/a", "/a \"b", "x\"y"] {
        assert!(is_listing(&format!("Could not stat {plain}")), "{plain}");
    }
}

#[test]
fn a_line_of_a_script_has_a_date_whatever_is_in_it() {
    let is_listing = |kind: MessageType, text: &str| {
        super::is_listing(kind.number(), format!("tst-fd JobId 1: {text}\n").as_bytes())
    };
    for text in ["ClientRunBeforeJob:      x", "ClientRunBeforeJob: tst-fd JobId 1:      x", "Total:      5"] {
        assert!(!is_listing(MessageType::Info, text), "{text}");
    }
    assert!(is_listing(MessageType::Info, "     Recursion turned off. Will not descend from /a into /a/b"));
    assert!(is_listing(MessageType::Skipped, "     Unchanged file skipped: /a"));
    assert!(!is_listing(MessageType::Skipped, "File skipped. Already exists: /a"));
}
