//! The dialogue behind a restore's or a volume verify's records (reference 05 §2.1).

use fd_bsock::Signal;

use crate::action::{Action, Input, Machine};
use crate::open::{Ticket, VOLUME_TIMEOUT};
use crate::storage::{Direction, StorageError};
use crate::texts;

/// The end of a session, whatever the Storage Daemon answers.
#[derive(Debug)]
pub struct ReadClose;

impl ReadClose {
    /// All records have been read, or the others are not needed.
    pub fn start(ticket: Ticket) -> (Self, Vec<Action<(), StorageError>>) {
        (Self, vec![Action::Send(texts::session_close(Direction::Read, ticket.0)), Action::Receive(VOLUME_TIMEOUT)])
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
    fn any_answer_ends_a_read_session() {
        let (mut close, actions) = ReadClose::start(Ticket(5));
        assert_eq!(actions[0], Action::Send(b"read close session 5\n".to_vec()));
        assert_eq!(
            close.handle(Input::Frame(b"3000 OK close Status = 82\n")),
            [Action::Signal(Signal::Terminate), Action::Done(())]
        );
    }
}
