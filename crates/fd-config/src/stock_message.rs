//! Messages in the form in which the stock daemon prints them before it has a Messages resource
//! (reference 06 §1.9, §7.4).

/// Longest message.
const MAX_MESSAGE: usize = 4999;

/// How often, and with which date, a message is printed on standard output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Printing {
    /// Bare, then dated.
    Twice,
    /// As [`Printing::Twice`], and it goes to the host's log.
    Abort,
    /// With a date.
    Dated,
    /// Bare: debug lines.
    Bare,
}

/// One message to the operator, complete with the prefix that names its origin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StockMessage {
    text: Vec<u8>,
    printing: Printing,
}

impl StockMessage {
    /// `NAME: ERROR TERMINATION at LOCATION` and the text: the process ends with status 1.
    pub fn termination(name: &str, location: &str, text: &[u8]) -> Self {
        Self::new(format!("{name}: ERROR TERMINATION at {location}\n"), text, Printing::Twice)
    }

    /// The same in the form of a job's message, printed once: `NAME ERROR TERMINATION` and the
    /// text.
    pub fn job_termination(name: &str, text: &[u8]) -> Self {
        Self::new(format!("{name} ERROR TERMINATION\n"), text, Printing::Dated)
    }

    /// `NAME: ABORTING via segfault due to ERROR in LOCATION` and the text.
    pub fn abort(name: &str, location: &str, text: &[u8]) -> Self {
        Self::new(format!("{name}: ABORTING via segfault due to ERROR in {location}\n"), text, Printing::Abort)
    }

    pub(crate) fn fatal(name: &str, location: &str, text: &[u8]) -> Self {
        Self::new(format!("{name}: Fatal Error at {location} because:\n"), text, Printing::Twice)
    }

    pub(crate) fn error(name: &str, location: &str, text: &[u8]) -> Self {
        Self::new(format!("{name}: ERROR in {location} "), text, Printing::Twice)
    }

    pub(crate) fn job_fatal(name: &str, text: &[u8]) -> Self {
        Self::new(format!("{name} JobId 0: Fatal error: "), text, Printing::Dated)
    }

    pub(crate) fn debug(name: &str, text: &str) -> Self {
        Self::new(format!("{name}: "), text.as_bytes(), Printing::Bare)
    }

    /// Prefix and text, which ends in LF; the whole is cut as the stock daemon cuts it, with the
    /// LF.
    fn new(prefix: String, text: &[u8], printing: Printing) -> Self {
        let mut whole = prefix.into_bytes();
        whole.extend_from_slice(text);
        if !whole.ends_with(b"\n") {
            whole.push(b'\n');
        }
        whole.truncate(MAX_MESSAGE);
        Self { text: whole, printing }
    }

    /// The message without date, once.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Whether it goes to the host's log, too (reference 06 §7.5).
    pub fn is_abort(&self) -> bool {
        self.printing == Printing::Abort
    }

    /// What goes to standard output; `date` is `DD-Mon HH:MM` of now.
    pub fn print(&self, date: &str) -> Vec<u8> {
        let mut output = Vec::new();
        if self.printing != Printing::Dated {
            output.extend_from_slice(&self.text);
        }
        if self.printing != Printing::Bare {
            output.extend_from_slice(date.as_bytes());
            output.push(b' ');
            output.extend_from_slice(&self.text);
        }
        output
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_termination_is_printed_twice_and_a_job_message_once() {
        let end = StockMessage::termination("x-fd", "util.c:1057", b"Gone.");
        let expected = "x-fd: ERROR TERMINATION at util.c:1057\nGone.\n\
                        21-Nov 01:46 x-fd: ERROR TERMINATION at util.c:1057\nGone.\n";
        assert_eq!(String::from_utf8(end.print("21-Nov 01:46")).unwrap(), expected);
        let job = StockMessage::job_fatal("x-fd", b"No.");
        assert_eq!(job.print("21-Nov 01:46"), b"21-Nov 01:46 x-fd JobId 0: Fatal error: No.\n");
        assert_eq!(StockMessage::debug("x-fd", "a").print("21-Nov 01:46"), b"x-fd: a\n");
    }

    #[test]
    fn a_long_message_is_cut() {
        assert_eq!(StockMessage::error("x", "y", &[b'z'; 9000]).text().len(), 4999);
    }
}
