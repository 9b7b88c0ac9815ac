//! What stands before and round a message's own text (reference 01 §16.2, 06 §7.4).

use fd_os::local_time::local_time;

use crate::MessageType;

/// Longest line, in bytes; the stock daemon's buffer holds one more.
const LINE_MAX: usize = 4999;

/// A job's line as the operator reads it: `<daemon> JobId <n>: Error: <text>`, cut at 4999 bytes.
pub fn job_line(daemon: &str, job_id: u32, kind: MessageType, text: &[u8]) -> Vec<u8> {
    let head = match kind {
        MessageType::Events => String::new(),
        MessageType::Abort => format!("{daemon} ABORTING via segfault due to ERROR\n"),
        MessageType::ErrorTerm => format!("{daemon} ERROR TERMINATION\n"),
        MessageType::Fatal => format!("{daemon} JobId {job_id}: Fatal error: "),
        MessageType::Error => format!("{daemon} JobId {job_id}: Error: "),
        MessageType::Warning => format!("{daemon} JobId {job_id}: Warning: "),
        MessageType::Security => format!("{daemon} JobId {job_id}: Security Alert: "),
        _ => format!("{daemon} JobId {job_id}: "),
    };
    let mut line = head.into_bytes();
    line.extend_from_slice(text);
    line.truncate(LINE_MAX);
    line
}

/// A daemon's line, outside jobs: `<daemon>: Security Alert: <text>`. `place` is `file.c:line` of the stock daemon.
pub fn daemon_line(daemon: &str, kind: MessageType, place: &str, text: &[u8]) -> Vec<u8> {
    let head = match kind {
        MessageType::Abort => format!("{daemon}: ABORTING via segfault due to ERROR in {place}\n"),
        MessageType::ErrorTerm => format!("{daemon}: ERROR TERMINATION at {place}\n"),
        MessageType::Fatal => format!("{daemon}: Fatal Error at {place} because:\n"),
        MessageType::Error => format!("{daemon}: ERROR in {place} "),
        MessageType::Warning => format!("{daemon}: Warning: "),
        MessageType::Security => format!("{daemon}: Security Alert: "),
        _ => format!("{daemon}: "),
    };
    let mut line = head.into_bytes();
    line.extend_from_slice(text);
    line.truncate(LINE_MAX);
    line
}

/// The frame that carries a line to a Director; `time` in seconds since 1970 (reference 02 §6.1).
pub fn jmsg(job_id: u32, type_number: u8, time: i64, line: &[u8]) -> Vec<u8> {
    let mut frame = format!("Jmsg JobId={job_id} type={type_number} level={time} ").into_bytes();
    frame.extend_from_slice(line);
    frame
}

/// What stands before a daemon message that came several times.
pub fn repeated(times: u32) -> String {
    format!("Message repeated {times} times: ")
}

/// Three letters for a month, 1 to 12.
pub fn month(number: u8) -> &'static str {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    MONTHS.get(usize::from(number).saturating_sub(1)).unwrap_or(&"Jan")
}

/// The date that stands before a line in a local destination: `21-Nov 02:20 `.
pub fn date_prefix(time: i64) -> String {
    let at = local_time(time);
    let month = month(at.month);
    format!("{:02}-{month} {:02}:{:02} ", at.day, at.hour, at.minute)
}

/// An event as a message (reference 06 §9): no name and no job before it. `kind` is `connection`, `command`, `job`,
/// `daemon` or `security`, `reference` any number that stays the same for one session.
pub fn event(code: &str, daemon: &str, reference: u64, kind: &str, source: &str, text: &str) -> Vec<u8> {
    let bashed = |value: &str| value.replace(' ', "\u{1}");
    let (daemon, source) = (bashed(daemon), bashed(source));
    format!("Events: code={code} daemon={daemon} ref=0x{reference:x} type={kind} source={source} text={text}\n")
        .into_bytes()
}

/// What stands before mail that the default command sends.
pub(crate) const MAIL_HEAD: &[u8] = b"Subject: Bacula Message\r\n\r\n";
/// Mail programs hang, and further letters are lost.
pub(crate) const TOO_MANY_LETTERS: &str = "too many letters wait for the mail program";

/// The command without `Mail Command`.
pub(crate) fn default_mail_command(recipients: &[u8]) -> Vec<u8> {
    [b"/usr/lib/sendmail -F Bacula ", recipients].concat()
}

/// An operator command that failed.
pub(crate) fn operator_failed(command: &[u8], why: &str) -> String {
    let command = String::from_utf8_lossy(command);
    format!("Msg delivery error: Operator mail program terminated in error.\nCMD={command}\nERR={why}\n")
}

/// A mail command with its codes replaced, outside jobs (reference 06 §7.8).
pub(crate) fn expand_without_job(command: &[u8], daemon: &[u8], recipients: &[u8], process: u32) -> Vec<u8> {
    let mut expanded = Vec::with_capacity(command.len());
    let mut rest = command.iter();
    while let Some(&byte) = rest.next() {
        if byte != b'%' {
            expanded.push(byte);
            continue;
        }
        match rest.next() {
            None | Some(b'%') => expanded.push(b'%'),
            Some(b'd') => expanded.extend_from_slice(daemon),
            Some(b'r') => expanded.extend_from_slice(recipients),
            Some(b'P') => expanded.extend_from_slice(process.to_string().as_bytes()),
            Some(code) if b"bceEFijlnoRstv".contains(code) => expanded.extend_from_slice(b"*none*"),
            Some(&code) => expanded.extend_from_slice(&[b'%', code]),
        }
    }
    expanded
}

/// What is said where a destination does not take a message (reference 06 §7.7).
pub(crate) fn delivery_error(time: i64, what: &str) -> String {
    format!("{} Message delivery ERROR: {what}\n", date_prefix(time))
}

/// A file destination that can't be opened.
pub(crate) fn open_failed(path: &str, reason: &str) -> String {
    format!("fopen {path} failed: ERR={reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_line() {
        let line =
            job_line("dc-fd", 1, MessageType::Info, b"Connected to Storage at 127.0.0.1:20213 without encryption\n");
        let frame = jmsg(1, MessageType::Info.number(), 1_795_227_599, &line);
        assert_eq!(
            frame,
            b"Jmsg JobId=1 type=7 level=1795227599 dc-fd JobId 1: Connected to Storage at 127.0.0.1:20213 without encryption\n"
        );
        assert_eq!(frame.len(), 111);
    }

    #[test]
    fn heads_by_type() {
        let head = |kind| String::from_utf8(job_line("x-fd", 9, kind, b"")).unwrap();
        assert_eq!(head(MessageType::Fatal), "x-fd JobId 9: Fatal error: ");
        assert_eq!(head(MessageType::NotSaved), "x-fd JobId 9: ");
        assert_eq!(head(MessageType::Security), "x-fd JobId 9: Security Alert: ");
        assert_eq!(head(MessageType::Events), "");
    }

    #[test]
    fn long_lines_are_cut() {
        assert_eq!(job_line("x", 1, MessageType::Info, &[b'a'; 6000]).len(), 4999);
    }
}
