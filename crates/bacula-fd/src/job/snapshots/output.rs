//! What the helper program prints (reference 07 §12.4): `key=value` pairs, divided by white space.

use fd_os::local_time::local_time;
use fd_records::listing::LocalTime;

use crate::clock::days;

/// The answer about one file system or snapshot. What is missing is empty.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Answer {
    /// `status`; `None` without one.
    pub(crate) status: Option<i64>,
    /// `error`; `None` without one.
    pub(crate) error: Option<Vec<u8>>,
    /// `type`.
    pub(crate) kind: Vec<u8>,
    /// `name`.
    pub(crate) name: Vec<u8>,
    /// `device`.
    pub(crate) device: Vec<u8>,
    /// `volume`.
    pub(crate) volume: Vec<u8>,
    /// `createtdate` or `createdate`, seconds since 1970.
    pub(crate) created: i64,
    /// `size`, in bytes.
    pub(crate) size: i64,
    /// `snapmountpoint`.
    pub(crate) snap_mount_point: Vec<u8>,
    /// `snapdirectory`.
    pub(crate) snap_directory: Vec<u8>,
}

/// A file system that is no entry of the table of mounts.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Subvolume {
    /// Its device number.
    pub(crate) device_number: u64,
    /// Where it is.
    pub(crate) mount_point: Vec<u8>,
    /// Its device; may be empty.
    pub(crate) device: Vec<u8>,
    /// Its type.
    pub(crate) fs_type: Vec<u8>,
}

/// One answer; a key that comes twice counts with its last value.
pub(crate) fn answer(output: &[u8]) -> Answer {
    let mut answer = Answer::default();
    pairs(output, |key, value| answer.take(key, value));
    answer
}

/// The entries of a `list`; each ends with its type.
pub(crate) fn list(output: &[u8]) -> Vec<Answer> {
    let (mut found, mut next) = (Vec::new(), Answer::default());
    pairs(output, |key, value| {
        let is_last = key == b"type";
        next.take(key, value);
        if is_last {
            found.push(std::mem::take(&mut next));
        }
    });
    found
}

/// The groups of `subvolumes`; each ends with its `fstype`.
pub(crate) fn subvolumes(output: &[u8]) -> Vec<Subvolume> {
    let (mut found, mut next) = (Vec::new(), Subvolume::default());
    pairs(output, |key, value| match key {
        b"dev" => next.device_number = number(&value).unwrap_or(0),
        b"mountpoint" => next.mount_point = value,
        b"device" => next.device = value,
        b"fstype" => {
            let group = Subvolume { fs_type: value, ..std::mem::take(&mut next) };
            if group.mount_point.starts_with(b"/") && group.device_number != 0 {
                found.push(group);
            }
        }
        _ => {}
    });
    found
}

impl Answer {
    fn take(&mut self, key: &[u8], value: Vec<u8>) {
        match key {
            b"status" => self.status = Some(number(&value).unwrap_or(0)),
            b"error" => self.error = Some(value),
            b"type" => self.kind = value,
            b"name" => self.name = value,
            b"device" => self.device = value,
            b"volume" => self.volume = value,
            b"createtdate" => self.created = number(&value).unwrap_or(0),
            b"createdate" => self.created = seconds(&value).unwrap_or(0),
            b"size" => self.size = number(&value).unwrap_or(0),
            b"snapmountpoint" => self.snap_mount_point = value,
            b"snapdirectory" => self.snap_directory = value,
            _ => {}
        }
    }
}

/// Hands over each pair, its key in small letters. In a value in double quotes, a backslash stands
/// before a quote or a backslash. What is no pair is passed over.
fn pairs(output: &[u8], mut each: impl FnMut(&[u8], Vec<u8>)) {
    let mut rest = output.trim_ascii_start();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'=' || byte.is_ascii_whitespace()).unwrap_or(rest.len());
        let (key, behind) = rest.split_at(end);
        rest = match behind.strip_prefix(b"=") {
            None => behind,
            Some(behind) => {
                let (value, behind) = value(behind);
                each(&key.to_ascii_lowercase(), value);
                behind
            }
        }
        .trim_ascii_start();
    }
}

fn value(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        return (without_nul(value), rest);
    };
    let (mut value, mut rest) = (Vec::new(), quoted);
    loop {
        rest = match rest {
            [] => return (without_nul(&value), rest),
            [b'"', rest @ ..] => return (without_nul(&value), rest),
            [b'\\', byte @ (b'"' | b'\\'), rest @ ..] | [byte, rest @ ..] => {
                value.push(*byte);
                rest
            }
        }
    }
}

/// Values become environment variables, paths and fields of a file.
fn without_nul(value: &[u8]) -> Vec<u8> {
    value.iter().copied().filter(|byte| *byte != 0).collect()
}

fn number<N: std::str::FromStr>(text: &[u8]) -> Option<N> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// `2023-11-14 22:13:20` in the host's time zone as seconds since 1970.
fn seconds(date: &[u8]) -> Option<i64> {
    let mut fields = date.split(|byte| !byte.is_ascii_digit()).filter(|field| !field.is_empty());
    let mut next = || number::<i64>(fields.next()?);
    let wanted = [next()?, next()?, next()?, next()?, next()?, next()?];
    let wanted = of_civil(wanted);
    // The zone's offset is that of the moment itself; near a change the first guess may miss it.
    let shown = |moment: i64| {
        let LocalTime { year, month, day, hour, minute, second } = local_time(moment);
        of_civil([i64::from(year), month.into(), day.into(), hour.into(), minute.into(), second.into()])
    };
    let guess = wanted.saturating_sub(shown(wanted).saturating_sub(wanted));
    Some(guess.saturating_sub(shown(guess).saturating_sub(wanted)))
}

/// Seconds since 1970 of a date and time in UTC.
fn of_civil([year, month, day, hour, minute, second]: [i64; 6]) -> i64 {
    let within = |number: i64, most: u8| u8::try_from(number).map_or(most, |number| number.clamp(1, most));
    let year = i32::try_from(year.clamp(0, 9999)).unwrap_or(9999);
    days(year, within(month, 12), within(day, 31)) * 86_400
        + hour.clamp(0, 24) * 3600
        + minute.clamp(0, 60) * 60
        + second.clamp(0, 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_may_be_quoted_and_keys_are_of_any_case() {
        let found =
            answer(b" STATUS=1 noise type=\"lvm\" volume=\"/dev/v g/l\\\"v\\\\\"\tcreatetdate=\"1700000000\"\n");
        assert_eq!((found.status, found.created, found.error), (Some(1), 1_700_000_000, None));
        assert_eq!((found.kind.as_slice(), found.volume.as_slice()), (&b"lvm"[..], &b"/dev/v g/l\"v\\"[..]));
        let empty = answer(b"error=\"\" status=x snapmountpoint= snapdirectory=/a");
        assert_eq!((empty.error.as_deref(), empty.status), (Some(&b""[..]), Some(0)));
        assert_eq!((empty.snap_mount_point.as_slice(), empty.snap_directory.as_slice()), (&b""[..], &b"/a"[..]));
    }

    #[test]
    fn damaged_output_is_read_as_far_as_it_goes() {
        for (text, volume) in
            [("volume=\"open", "open"), ("volume=\"a\\", "a\\"), ("volume=\0a\0", "a"), ("volume", "")]
        {
            assert_eq!(answer(text.as_bytes()).volume, volume.as_bytes(), "{text}");
        }
        assert_eq!(answer(b"= == \"\" status=2"), Answer { status: Some(2), ..Answer::default() });
    }

    #[test]
    fn a_type_ends_an_entry_of_a_list_and_an_fstype_a_subvolume() {
        let found = list(b"name=a createdate=\"2023-11-14 22:13:20\" size=7 type=x name=b type=y\nname=c");
        assert_eq!(found.iter().map(|entry| entry.name.as_slice()).collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(found[0].size, 7);
        let found =
            subvolumes(b"dev=33 mountpoint=\"/x y\" fstype=btrfs\ndev=34 mountpoint=/z device=/d fstype=b dev=1");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let found: Vec<_> =
            found.iter().map(|one| (one.device_number, text(&one.mount_point), text(&one.device))).collect();
        assert_eq!(found, [(33, "/x y".to_owned(), String::new()), (34, "/z".to_owned(), "/d".to_owned())]);
        assert!(subvolumes(b"dev=x mountpoint=/a fstype=b dev=3 mountpoint=a fstype=b").is_empty());
    }

    #[test]
    fn dates_are_local_times() {
        let now = local_time(1_700_000_000);
        let LocalTime { year, month, day, hour, minute, second } = now;
        let text = format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
        assert_eq!(seconds(text.as_bytes()), Some(1_700_000_000));
        assert_eq!(of_civil([1970, 1, 1, 0, 0, 0]), 0);
        assert_eq!(of_civil([2024, 2, 29, 12, 0, 0]), 1_709_208_000);
        assert_eq!(seconds(b"yesterday"), None);
    }
}
