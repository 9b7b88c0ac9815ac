//! The line that messages and estimates show for an entry, in the style of `ls -l` (reference 03
//! §9, 05 §3.6).

use crate::record::lstat::Stat;
use crate::text::decimal;
use crate::text::names::Names;

/// A local time. The caller converts: this crate has no time zone.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LocalTime {
    /// Year, for example 2026.
    pub year: i32,
    /// Month, 1 to 12.
    pub month: u8,
    /// Day, 1 to 31.
    pub day: u8,
    /// Hour, 0 to 23.
    pub hour: u8,
    /// Minute, 0 to 59.
    pub minute: u8,
    /// Second, 0 to 60.
    pub second: u8,
}

impl LocalTime {
    /// The first moment of 1970.
    pub const EPOCH: Self = Self { year: 1970, month: 1, day: 1, hour: 0, minute: 0, second: 0 };
}

/// Appends the line with its line end. `modified` is the mtime of `stat`, `None` if no calendar has
/// it; `link` is the target of a symbolic link.
pub fn push_line(
    out: &mut Vec<u8>,
    stat: &Stat,
    modified: Option<LocalTime>,
    names: &mut dyn Names,
    name: &[u8],
    link: Option<&[u8]>,
) {
    out.extend_from_slice(&mode_text(stat.mode));
    out.extend_from_slice(b"  ");
    push_right(out, 2, |out| decimal::push_u64(out, stat.nlink));
    out.push(b' ');
    push_owner(out, stat.uid, names.user_name(stat.uid));
    out.push(b' ');
    push_owner(out, stat.gid, names.group_name(stat.gid));
    out.push(b' ');
    push_right(out, 18, |out| decimal::push_i64(out, stat.size));
    out.push(b' ');
    if let Some(modified) = modified {
        push_time(out, modified);
    }
    out.extend_from_slice(b"  ");
    out.extend_from_slice(name);
    if let Some(link) = link {
        out.extend_from_slice(b" -> ");
        out.extend_from_slice(link);
    }
    out.push(b'\n');
}

/// Appends the line of a file that was removed since the last backup.
pub fn push_deleted_line(out: &mut Vec<u8>, name: &[u8]) {
    out.extend_from_slice(b"-*DELETED-   - -        -                  - ---------- --------  ");
    out.extend_from_slice(name);
    out.push(b'\n');
}

/// The ten letters of a mode. A fifo is `f` here, not `p`.
fn mode_text(mode: u32) -> [u8; 10] {
    let kind = match mode & Stat::MODE_TYPE {
        Stat::MODE_DIRECTORY => b'd',
        Stat::MODE_BLOCK => b'b',
        Stat::MODE_CHARACTER => b'c',
        Stat::MODE_SYMLINK => b'l',
        Stat::MODE_FIFO => b'f',
        Stat::MODE_SOCKET => b's',
        _ => b'-',
    };
    let letter = |bit: u32, letter: u8| if mode & bit == 0 { b'-' } else { letter };
    let last = |execute: u32, special: u32, both: u8, alone: u8| match (mode & execute != 0, mode & special != 0) {
        (true, true) => both,
        (false, true) => alone,
        (true, false) => b'x',
        (false, false) => b'-',
    };
    [
        kind,
        letter(0o400, b'r'),
        letter(0o200, b'w'),
        last(0o100, 0o4000, b's', b'S'),
        letter(0o040, b'r'),
        letter(0o020, b'w'),
        last(0o010, 0o2000, b's', b'S'),
        letter(0o004, b'r'),
        letter(0o002, b'w'),
        last(0o001, 0o1000, b't', b'T'),
    ]
}

/// Appends the output of `write`, with blanks before it up to `width`.
fn push_right(out: &mut Vec<u8>, width: usize, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    write(out);
    let missing = width.saturating_sub(out.len() - start);
    out.splice(start..start, std::iter::repeat_n(b' ', missing));
}

/// Appends a name or number, cut or filled to eight bytes.
fn push_owner(out: &mut Vec<u8>, number: u32, name: Option<&[u8]>) {
    let start = out.len();
    match name {
        Some(name) => out.extend_from_slice(name),
        None => decimal::push_u64(out, u64::from(number)),
    }
    out.resize(start + 8, b' ');
}

fn push_time(out: &mut Vec<u8>, time: LocalTime) {
    push_padded(out, 4, i64::from(time.year));
    for (separator, value) in
        [(b'-', time.month), (b'-', time.day), (b' ', time.hour), (b':', time.minute), (b':', time.second)]
    {
        out.push(separator);
        push_padded(out, 2, i64::from(value));
    }
}

/// Appends a number with zeros before its digits up to `width`, its sign included.
fn push_padded(out: &mut Vec<u8>, width: usize, value: i64) {
    let start = out.len();
    decimal::push_i64(out, value);
    let digits = if value < 0 { start + 1 } else { start };
    let missing = width.saturating_sub(out.len() - start);
    out.splice(digits..digits, std::iter::repeat_n(b'0', missing));
}

#[cfg(test)]
mod tests;
