//! The dialogue round the data of a backup, and answers that break it off.

use fd_bsock::Signal;

use super::*;

fn sent<T, E>(actions: &[Action<T, E>]) -> &[u8] {
    match actions.first() {
        Some(Action::Send(frame)) => frame,
        _ => b"nothing",
    }
}

#[test]
fn the_real_opening() {
    let (mut open, actions) = AppendOpen::start();
    assert_eq!(sent(&actions), b"append open session\n");
    assert_eq!(sent(&open.handle(Input::Frame(b"3000 OK open ticket = 7\n"))), b"append data 7\n");
    assert_eq!(open.handle(Input::Frame(b"3000 OK data\n")), [Action::Done(Ticket(7))]);
}

#[test]
fn the_real_tail() {
    let (mut close, _) = AppendClose::start(Ticket(7));
    assert_eq!(sent(&close.handle(Input::Frame(b"3000 OK append data\n"))), b"append end session 7\n");
    assert_eq!(sent(&close.handle(Input::Frame(b"3000 OK end\n"))), b"append close session 7\n");
    assert_eq!(
        close.handle(Input::Frame(b"3000 OK close Status = 84\n")),
        [Action::Receive(VOLUME_TIMEOUT)],
        "the verdict counts when the signal comes"
    );
    assert_eq!(close.handle(Input::Signal(Signal::Eod)), [Action::Done(JobStatus::Terminated)]);
}

#[test]
fn the_close_status_is_a_character_code() {
    assert_eq!(parse_close_status(b"3000 OK close Status = 84\n"), Some(84));
    assert_eq!(parse_close_status(b"3000 OK close Status = 102"), Some(102));
    assert_eq!(parse_close_status(b"3000 OK close Status = \n"), None);
    assert_eq!(parse_close_status(b"3000 OK close Status = 300\n"), None);
    assert_eq!(parse_close_status(b"3000 OK close Status = -84\n"), None);
    assert_eq!(parse_close_status(b"3000 OK close status = 84\n"), None);
    assert_eq!(parse_close_status(b"3999 OK close Status = 84\n"), None);
}

#[test]
fn a_storage_daemon_that_says_the_job_failed() {
    let texts = |status: &[u8]| {
        let mut close = AppendClose { ticket: Ticket(1), state: Closing::Close { status: None } };
        let _wait = close.handle(Input::Frame(status));
        match close.handle(Input::Signal(Signal::Eod)).pop() {
            Some(Action::Failed(error)) => String::from_utf8(error.message()).unwrap(),
            other => format!("{other:?}"),
        }
    };
    assert_eq!(texts(b"3000 OK close Status = 102\n"), "Bad status 102 f returned from Storage Daemon.\n");
    assert_eq!(texts(b"3999 no\n"), "Append Close with SD failed.\n");
}

#[test]
fn wrong_answers_have_the_stock_texts() {
    let (mut open, _) = AppendOpen::start();
    let refused = open.handle(Input::Frame(b"3902 Error\n"));
    let Some(Action::Failed(error)) = refused.first() else { panic!("{refused:?}") };
    assert_eq!(error.message(), b"Bad response to append open: 3902 Error\n\n");

    let (mut close, _) = AppendClose::start(Ticket(1));
    let refused = close.handle(Input::Frame(b"3999 Failed append\n"));
    let Some(Action::Failed(error)) = refused.first() else { panic!("{refused:?}") };
    assert_eq!(
        String::from_utf8(error.message()).unwrap(),
        "job.c:3698 Bad response from SD to Append Data command. Wanted 3000 OK append data\n, got len=19 \
         msg=\"3999 Failed append \"\n"
    );
}
