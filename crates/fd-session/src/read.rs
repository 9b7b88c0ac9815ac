//! The dialogue round a restore's or a volume verify's records (reference 05 §2.1). Not here: the
//! records.

use crate::action::{Action, Input, Machine};
use crate::append::{Ticket, VOLUME_TIMEOUT};
use crate::storage::{self, StorageError};
use crate::texts;
use fd_bsock::Signal;

/// From nothing to the first record.
#[derive(Debug)]
pub struct ReadOpen {
    ticket: Option<Ticket>,
}

type OpenActions = Vec<Action<Ticket, StorageError>>;

impl ReadOpen {
    /// Asks for the session of this job; both numbers come from the `JobId=` command.
    pub fn start(vol_session_id: u32, vol_session_time: u32) -> (Self, OpenActions) {
        let ask = texts::read_open(vol_session_id, vol_session_time);
        (Self { ticket: None }, vec![Action::Send(ask), Action::Receive(VOLUME_TIMEOUT)])
    }
}

impl Machine for ReadOpen {
    type Done = Ticket;
    type Error = StorageError;

    fn handle(&mut self, input: Input<'_>) -> Vec<Action<Ticket, StorageError>> {
        match (self.ticket, input) {
            (None, Input::Frame(frame)) => match storage::parse_ticket(frame) {
                Some(ticket) => {
                    self.ticket = Some(Ticket(ticket));
                    vec![Action::Send(texts::read_data(ticket)), Action::Receive(VOLUME_TIMEOUT)]
                }
                None => vec![Action::Failed(StorageError::ReadOpen(frame.to_vec()))],
            },
            (None, _) => vec![Action::Failed(StorageError::ReadOpenGone)],
            (Some(ticket), Input::Frame(texts::DATA_OK)) => vec![Action::Done(ticket)],
            (Some(_), other) => vec![Action::Failed(storage::bad_response("Read Data", texts::DATA_OK, other))],
        }
    }
}

/// The end of a session, whatever the Storage Daemon answers.
#[derive(Debug)]
pub struct ReadClose;

impl ReadClose {
    /// All records have been read, or the others are not needed.
    pub fn start(ticket: Ticket) -> (Self, Vec<Action<(), StorageError>>) {
        (Self, vec![Action::Send(texts::read_close(ticket.0)), Action::Receive(VOLUME_TIMEOUT)])
    }
}

impl Machine for ReadClose {
    type Done = ();
    type Error = StorageError;

    fn handle(&mut self, _answer: Input<'_>) -> Vec<Action<(), StorageError>> {
        vec![Action::Signal(Signal::Terminate), Action::Done(())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_session_opens_and_closes() {
        let (mut open, actions) = ReadOpen::start(5, 1_795_226_230);
        assert_eq!(actions[0], Action::Send(b"read open session = DummyVolume 5 1795226230 0 0 0 0\n".to_vec()));
        let actions = open.handle(Input::Frame(b"3000 OK open ticket = 5\n"));
        assert_eq!(actions[0], Action::Send(b"read data 5\n".to_vec()));
        assert_eq!(open.handle(Input::Frame(b"3000 OK data\n")), [Action::Done(Ticket(5))]);
        let (mut close, actions) = ReadClose::start(Ticket(5));
        assert_eq!(actions[0], Action::Send(b"read close session 5\n".to_vec()));
        assert_eq!(
            close.handle(Input::Frame(b"3000 OK close Status = 82\n")),
            [Action::Signal(Signal::Terminate), Action::Done(())]
        );
    }

    #[test]
    fn refusals_have_the_stock_texts() {
        let message = |first: Input<'_>, second: Option<Input<'_>>| {
            let (mut open, _) = ReadOpen::start(1, 2);
            let mut actions = open.handle(first);
            if let Some(second) = second {
                actions = open.handle(second);
            }
            match actions.pop() {
                Some(Action::Failed(error)) => String::from_utf8(error.message()).unwrap(),
                other => format!("{other:?}"),
            }
        };
        let ticket = Input::Frame(b"3000 OK open ticket = 5\n");
        assert_eq!(
            message(Input::Frame(b"3904 Error open session, bad parameters\n"), None),
            "Bad response to SD read open: 3904 Error open session, bad parameters\n\n"
        );
        assert_eq!(message(Input::Gone("closed"), None), "Bad response from stored to read open command\n");
        assert_eq!(
            message(ticket, Some(Input::Frame(b"3000 error\n"))),
            "job.c:3698 Bad response from SD to Read Data command. Wanted 3000 OK data\n, got len=11 msg=\"3000 \
             error \"\n"
        );
        assert_eq!(
            message(ticket, Some(Input::Signal(Signal::Eod))),
            "job.c:3701 Bad response from SD to Read Data command. Wanted 3000 OK data\n, got SIGNAL BNET_EOD\n"
        );
        assert_eq!(
            message(ticket, Some(Input::Gone("No data available"))),
            "job.c:3693 Comm error with SD. bad response to Read Data. ERR=No data available\n"
        );
    }
}
