//! What a Director answers to questions that a running job asks.

use std::time::{Duration, Instant};

use fd_transport::{Channel, ChannelError, Received};

/// How often it is looked whether an answer is still wanted.
const STEP: Duration = Duration::from_millis(500);

/// Waits for answers, and knows those that come too late.
#[derive(Default, Debug)]
pub(super) struct Answers {
    /// Questions whose answer is still to come, and no longer waited for.
    given_up: u32,
}

impl Answers {
    /// The answer to the question that was asked last; `None` if it does not come in time, or is
    /// not wanted any more. The connection is as good as before then.
    ///
    /// # Errors
    /// The connection is lost.
    pub(super) fn wait(
        &mut self,
        channel: &mut Channel,
        limit: Duration,
        is_wanted: impl Fn() -> bool,
    ) -> Result<Option<Vec<u8>>, ChannelError> {
        let begun = Instant::now();
        loop {
            let left = limit.saturating_sub(begun.elapsed());
            match channel.recv(left.min(STEP)) {
                Ok(Received::Data(frame)) if self.is_late(frame) => {}
                Ok(Received::Data(frame)) => return Ok(Some(frame.to_vec())),
                Ok(Received::Empty | Received::Signal(_)) => {}
                Err(error) if error.is_timeout() => {
                    if left.is_zero() || !is_wanted() {
                        self.given_up = self.given_up.saturating_add(1);
                        return Ok(None);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether this frame is an answer that was given up. Answers begin with a number, commands
    /// don't.
    pub(super) fn is_late(&mut self, frame: &[u8]) -> bool {
        let is_late = self.given_up > 0 && frame.first().is_some_and(u8::is_ascii_digit);
        self.given_up -= u32::from(is_late);
        is_late
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use fd_transport::{IDLE_LIMIT, Limits};

    use super::*;

    fn pair() -> (Channel, Channel) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let director = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let ours = listener.accept().unwrap().0;
        (Channel::accept(ours, Limits::default()).unwrap(), Channel::accept(director, Limits::default()).unwrap())
    }

    #[test]
    fn an_answer_that_comes_too_late_costs_neither_the_connection_nor_the_next_answer() {
        let ((mut channel, mut director), mut answers) = (pair(), Answers::default());
        let unlimited = IDLE_LIMIT;
        assert_eq!(answers.wait(&mut channel, Duration::ZERO, || true).unwrap(), None);
        assert_eq!(answers.wait(&mut channel, unlimited, || false).unwrap(), None, "the job is canceled");
        for answer in ["1000 first\n", "1999 second\n", "1000 third\n"] {
            director.send(answer.as_bytes()).unwrap();
        }
        director.flush().unwrap();
        assert_eq!(answers.wait(&mut channel, unlimited, || true).unwrap().unwrap(), b"1000 third\n");
        assert_eq!(answers.wait(&mut channel, Duration::ZERO, || true).unwrap(), None);
        drop(director);
        assert!(answers.wait(&mut channel, unlimited, || true).is_err());
    }

    #[test]
    fn a_late_answer_is_no_command_and_a_command_no_late_answer() {
        let mut answers = Answers::default();
        assert!(!answers.is_late(b"1000 Snapshot created\n"), "none is missing");
        answers.given_up = 1;
        assert!(!answers.is_late(b"status") && !answers.is_late(b""));
        assert!(answers.is_late(b"1000 Snapshot created\n"));
        assert!(!answers.is_late(b"1000 Snapshot created\n"));
    }
}
