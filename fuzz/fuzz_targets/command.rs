#![no_main]
//! The Director's commands, the Storage Daemon's verdict, and the clock's answer, from any frame.

use fd_session::append::parse_close_status;
use fd_session::clock::parse_btime;
use fd_session::command::{Access, Command, Word};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|frame: &[u8]| {
    let _ = parse_close_status(frame);
    if let Some(microseconds) = parse_btime(frame) {
        assert!(microseconds >= 0);
    }
    let Some(word) = Word::of(frame) else { return };
    assert!(frame.starts_with(word.prefix().as_bytes()));
    assert!(word.is_permitted(Access::default()));
    match Command::parse(word, frame) {
        Ok(command) => drop(format!("{command:?}")),
        // Whoever is refused hears why, or the operator does.
        Err(refusal) => assert!(refusal.fatal.is_some() || refusal.reply.is_some()),
    }
});
