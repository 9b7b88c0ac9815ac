//! The dialogue behind a backup's data: `append end`, `append close` (reference 04 §1.1).

use crate::action::{Action, Input, Machine};
use crate::job_status::JobStatus;
use crate::open::{Ticket, VOLUME_TIMEOUT};
use crate::storage::{self, Direction, StorageError};
use crate::texts;

#[derive(Debug)]
enum Closing {
    Data,
    End,
    Close { status: Option<u8> },
}

/// From the end of the data to the Storage Daemon's verdict on it.
#[derive(Debug)]
pub struct AppendClose {
    ticket: Ticket,
    state: Closing,
}

type CloseActions = Vec<Action<JobStatus, StorageError>>;

impl AppendClose {
    /// The last `EOD` has been sent.
    pub fn start(ticket: Ticket) -> (Self, CloseActions) {
        (Self { ticket, state: Closing::Data }, vec![Action::Receive(VOLUME_TIMEOUT)])
    }
}

impl Machine for AppendClose {
    type Done = JobStatus;
    type Error = StorageError;

    fn handle(&mut self, input: Input<'_>) -> Vec<Action<JobStatus, StorageError>> {
        match (&mut self.state, input) {
            (Closing::Data, Input::Frame(texts::APPEND_DATA_OK)) => {
                self.state = Closing::End;
                vec![Action::Send(texts::append_end(self.ticket.0)), Action::Receive(VOLUME_TIMEOUT)]
            }
            (Closing::Data, other) => {
                vec![Action::Failed(storage::bad_response("Append Data", texts::APPEND_DATA_OK, other))]
            }
            (Closing::End, Input::Frame(texts::APPEND_END_OK)) => {
                self.state = Closing::Close { status: None };
                vec![
                    Action::Send(texts::session_close(Direction::Append, self.ticket.0)),
                    Action::Receive(VOLUME_TIMEOUT),
                ]
            }
            (Closing::End, other) => {
                vec![Action::Failed(storage::bad_response("Append End", texts::APPEND_END_OK, other))]
            }
            (Closing::Close { status }, Input::Frame(frame)) => {
                *status = parse_close_status(frame).or(*status);
                vec![Action::Receive(VOLUME_TIMEOUT)]
            }
            (Closing::Close { .. }, Input::Empty) => vec![Action::Receive(VOLUME_TIMEOUT)],
            (Closing::Close { status }, _) => vec![verdict(*status)],
        }
    }
}

fn verdict(status: Option<u8>) -> Action<JobStatus, StorageError> {
    match status {
        None => Action::Failed(StorageError::AppendClose),
        Some(code) => match JobStatus::from_code(code) {
            Some(status @ (JobStatus::Terminated | JobStatus::Warnings | JobStatus::Incomplete)) => {
                Action::Done(status)
            }
            _ => Action::Failed(StorageError::BadStatus(code)),
        },
    }
}

/// Whether a text that comes before the end of the data is an answer already: the Storage Daemon
/// has given up (reference 04 §1.1).
pub fn is_refusal(text: &[u8]) -> bool {
    text.starts_with(b"39")
}

/// The status in `3000 OK close Status = <n>\n`, the decimal code of a character.
pub fn parse_close_status(frame: &[u8]) -> Option<u8> {
    let rest = frame.strip_prefix(b"3000 OK close Status = ")?;
    storage::leading_number(rest).and_then(|n| u8::try_from(n).ok())
}

#[cfg(test)]
mod tests {
    use fd_bsock::Signal;

    use super::*;

    fn sent<T, E>(actions: &[Action<T, E>]) -> &[u8] {
        match actions.first() {
            Some(Action::Send(frame)) => frame,
            _ => b"nothing",
        }
    }

    #[test]
    fn a_real_ending_returns_the_verdict_at_the_signal() {
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
    fn only_refusals_are_answers_before_the_end_of_the_data() {
        for refusal in ["3999 Failed append\n", "3903 Error append data: no space\n", "3900 Invalid command\n"] {
            assert!(is_refusal(refusal.as_bytes()), "{refusal}");
        }
        for other in ["", "3000 OK data\n", "2000 OK\n", "waiting for a volume"] {
            assert!(!is_refusal(other.as_bytes()), "{other}");
        }
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
    fn a_bad_or_missing_close_status_has_the_stock_text() {
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
        let (mut close, _) = AppendClose::start(Ticket(1));
        let refused = close.handle(Input::Frame(b"3999 Failed append\n"));
        let Some(Action::Failed(error)) = refused.first() else { panic!("{refused:?}") };
        assert_eq!(
            String::from_utf8(error.message()).unwrap(),
            "job.c:3698 Bad response from SD to Append Data command. Wanted 3000 OK append data\n, got len=19 \
             msg=\"3999 Failed append \"\n"
        );
    }
}
