//! How a session with a Storage Daemon opens: `append open`, `append data` for a backup
//! (reference 04 §1.1), `read open`, `read data` for the others (reference 05 §2.1). Not here: the
//! data, and the records.

use std::time::Duration;

use crate::action::{Action, Input, Machine};
use crate::storage::{self, Direction, StorageError};
use crate::texts;

/// The Storage Daemon may wait for an operator to mount a volume: days, not minutes
/// (reference 02 §14.2).
pub(crate) const VOLUME_TIMEOUT: Duration = Duration::from_secs(5 * 24 * 3600);

/// The session number that the Storage Daemon gave us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket(pub i64);

/// From nothing to the Storage Daemon's "send your data", or to its first record.
#[derive(Debug)]
pub struct SessionOpen {
    direction: Direction,
    ticket: Option<Ticket>,
}

type Actions = Vec<Action<Ticket, StorageError>>;

impl SessionOpen {
    /// Asks for a session in which data is sent.
    pub fn append() -> (Self, Actions) {
        Self::start(Direction::Append, texts::APPEND_OPEN.to_vec())
    }

    /// Asks for the records of a backup; both numbers come from the `JobId=` command.
    pub fn read(vol_session_id: u32, vol_session_time: u32) -> (Self, Actions) {
        Self::start(Direction::Read, texts::read_open(vol_session_id, vol_session_time))
    }

    fn start(direction: Direction, ask: Vec<u8>) -> (Self, Actions) {
        (Self { direction, ticket: None }, vec![Action::Send(ask), Action::Receive(VOLUME_TIMEOUT)])
    }
}

impl Machine for SessionOpen {
    type Done = Ticket;
    type Error = StorageError;

    fn handle(&mut self, input: Input<'_>) -> Vec<Action<Ticket, StorageError>> {
        let direction = self.direction;
        match (self.ticket, input) {
            (None, Input::Frame(frame)) => match storage::parse_ticket(frame) {
                Some(ticket) => {
                    self.ticket = Some(Ticket(ticket));
                    vec![Action::Send(texts::session_data(direction, ticket)), Action::Receive(VOLUME_TIMEOUT)]
                }
                None => vec![Action::Failed(StorageError::Open(direction, frame.to_vec()))],
            },
            (None, _) => vec![Action::Failed(StorageError::OpenGone(direction))],
            (Some(ticket), Input::Frame(texts::DATA_OK)) => vec![Action::Done(ticket)],
            (Some(_), other) => {
                let command = match direction {
                    Direction::Append => "Append Data",
                    Direction::Read => "Read Data",
                };
                vec![Action::Failed(storage::bad_response(command, texts::DATA_OK, other))]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fd_bsock::Signal;

    use super::*;

    #[test]
    fn a_real_append_session_opens() {
        let (mut open, actions) = SessionOpen::append();
        assert_eq!(actions[0], Action::Send(b"append open session\n".to_vec()));
        let actions = open.handle(Input::Frame(b"3000 OK open ticket = 7\n"));
        assert_eq!(actions[0], Action::Send(b"append data 7\n".to_vec()));
        assert_eq!(open.handle(Input::Frame(b"3000 OK data\n")), [Action::Done(Ticket(7))]);
    }

    #[test]
    fn a_real_read_session_opens() {
        let (mut open, actions) = SessionOpen::read(5, 1_795_226_230);
        assert_eq!(actions[0], Action::Send(b"read open session = DummyVolume 5 1795226230 0 0 0 0\n".to_vec()));
        let actions = open.handle(Input::Frame(b"3000 OK open ticket = 5\n"));
        assert_eq!(actions[0], Action::Send(b"read data 5\n".to_vec()));
        assert_eq!(open.handle(Input::Frame(b"3000 OK data\n")), [Action::Done(Ticket(5))]);
    }

    #[test]
    fn refusals_have_the_stock_texts() {
        let message = |first: Input<'_>, second: Option<Input<'_>>| {
            let (mut open, _) = SessionOpen::read(1, 2);
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
        let (mut open, _) = SessionOpen::append();
        let refused = open.handle(Input::Frame(b"3902 Error\n"));
        let Some(Action::Failed(error)) = refused.first() else { panic!("{refused:?}") };
        assert_eq!(error.message(), b"Bad response to append open: 3902 Error\n\n");
    }
}
