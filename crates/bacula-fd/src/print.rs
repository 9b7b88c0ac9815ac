//! What the program prints on standard output and standard error, before and beside its log.

use std::io;

use fd_config::StockMessage;

use crate::clock;

/// Prints a message of the stock daemon's, with the date, on standard output.
pub(crate) fn say(message: Option<StockMessage>) {
    if let Some(message) = message {
        print(&mut io::stdout(), &message.print(&clock::short_date(clock::seconds())));
    }
}

/// Prints a text; an output that is closed is no error.
pub(crate) fn print(out: &mut dyn io::Write, text: &[u8]) {
    // A closed output is no error.
    let _unread = out.write_all(text).and_then(|()| out.flush());
}
