#![no_main]
//! The Director's commands, the Storage Daemon's verdict, and the clock's answer, from any frame.

use fd_session::append::parse_close_status;
use fd_session::clock::parse_btime;
use fd_session::command::{self, Access};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|frame: &[u8]| {
    let _ = parse_close_status(frame);
    if let Some(microseconds) = parse_btime(frame) {
        assert!(microseconds >= 0);
    }
    match command::read(frame, Access::default(), |_| false) {
        Ok(command) => drop(format!("{command:?}")),
        // A refusal always says something, to the Director or to the operator.
        Err(refusal) => assert!(refusal.fatal.is_some() || refusal.reply.is_some()),
    }
});
