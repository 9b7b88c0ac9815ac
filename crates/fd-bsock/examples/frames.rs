//! Prints the frames of one direction of a connection, a line each.
//!
//! `cargo run -p fd-bsock --example frames [FILE]`: FILE holds the bytes as they were received,
//! without TLS. Without a file it encodes and prints the beginning of a backup, as a Director sends
//! it.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::error::Error;
use std::fmt::Write as _;

use fd_bsock::{Encoder, Parsed, Signal, decompress, parse};

fn main() -> Result<(), Box<dyn Error>> {
    let bytes = match std::env::args_os().nth(1) {
        Some(file) => std::fs::read(file)?,
        None => backup()?,
    };
    print!("{}", described(&bytes)?);
    Ok(())
}

/// What a Director sends before a backup, in frames.
fn backup() -> Result<Vec<u8>, Box<dyn Error>> {
    let (mut encoder, mut bytes) = (Encoder::new(true), Vec::new());
    encoder.data(&mut bytes, b"Hello Director bacula-dir calling 10002 tlspsk=0\n")?;
    encoder
        .data(&mut bytes, b"JobId=1 Job=etc.2026-11-21_02.56.53_03 SDid=1 SDtime=1795229812 Authorization=dummy\n")?;
    encoder.data(&mut bytes, b"fileset\n")?;
    for line in ["I\n", "O M\n", "N\n", "F /etc/hosts\nF /etc/hosts.allow\nF /etc/hosts.deny\n", "N\n", "E\n"] {
        encoder.data(&mut bytes, line.as_bytes())?;
    }
    encoder.signal(&mut bytes, Signal::Eod);
    encoder.data(&mut bytes, b"level = full  mtime_only=0 \n")?;
    encoder.data(&mut bytes, b"")?;
    Ok(bytes)
}

/// A line for each frame: where it begins, how long it is, and what it carries.
fn described(bytes: &[u8]) -> Result<String, Box<dyn Error>> {
    let (mut lines, mut plain, mut at) = (String::new(), Vec::new(), 0);
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let consumed = match parse(rest)? {
            Parsed::Data { payload, compressed: true, consumed } => {
                decompress(payload, &mut plain)?;
                writeln!(lines, "{at:>8} LZ4 {:>6} {}", payload.len(), plain.escape_ascii())?;
                consumed
            }
            Parsed::Data { payload, consumed, .. } => {
                writeln!(lines, "{at:>8} data {:>5} {}", payload.len(), payload.escape_ascii())?;
                consumed
            }
            Parsed::Empty { consumed } => {
                writeln!(lines, "{at:>8} empty")?;
                consumed
            }
            Parsed::Signal { signal, consumed } => {
                writeln!(lines, "{at:>8} signal {signal}")?;
                consumed
            }
            Parsed::Need(bytes) => {
                writeln!(lines, "{at:>8} cut off: {} of {bytes} bytes", rest.len())?;
                break;
            }
        };
        at += consumed;
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_frame_of_the_built_in_conversation_has_a_line() -> Result<(), Box<dyn Error>> {
        let lines = described(&backup()?)?;
        assert_eq!(lines.lines().count(), 12, "{lines}");
        assert!(
            lines.starts_with("       0 data    49 Hello Director bacula-dir calling 10002 tlspsk=0\\n\n"),
            "{lines}"
        );
        assert!(lines.contains(" LZ4 ") && lines.contains("F /etc/hosts.allow\\n"), "{lines}");
        assert!(lines.contains(" signal BNET_EOD\n") && lines.ends_with(" empty\n"), "{lines}");
        let cut = described(b"\0\0\0\x05abc")?;
        assert_eq!(cut, "       0 cut off: 7 of 9 bytes\n");
        Ok(())
    }
}
