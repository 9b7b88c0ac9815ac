//! `bsnapshot.conf` (reference 07 §12.7): lines of `key = value`, `#` begins a comment.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

use crate::arguments::Arguments;
use crate::failure::{Failure, Outcome};

/// The longest file that is read, in bytes.
const LONGEST: u64 = 1 << 20;
/// Where programs are looked for. The daemon's own `PATH` may be anything.
const PROGRAMS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin";

/// How large the snapshot of a logical volume becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SnapshotSize {
    /// Of the volume's size; 1 to 100.
    Percent(u64),
    /// Exactly, in bytes.
    Bytes(u64),
}

/// The configuration with its defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// `trace`: the file that is written to if `debug` is above 0.
    pub(crate) trace: Option<PathBuf>,
    /// `debug`: 0 is nothing, 1 the programs that are run, 2 also what they said.
    pub(crate) debug: u32,
    /// `sudo`: programs are run through it.
    pub(crate) sudo: bool,
    /// `disabled`: no snapshot is made.
    pub(crate) disabled: bool,
    /// `retry`: how often what is busy is tried once more; one second between.
    pub(crate) retry: u32,
    /// `lvm_snapshot_size`: by volume.
    pub(crate) lvm_snapshot_size: Vec<(OsString, SnapshotSize)>,
    /// `skip_volume`: devices, datasets or mount points of which there are no snapshots.
    pub(crate) skip_volume: Vec<OsString>,
    /// `snapshot_dir`: the directory in the top directory of each file system.
    pub(crate) snapshot_dir: OsString,
    /// `fail_job_on_error`: a job whose snapshot can't be made ends.
    pub(crate) fail_job_on_error: bool,
    /// `mountopts`: for all devices (none), or for one.
    pub(crate) mountopts: Vec<(Option<OsString>, OsString)>,
    /// `path`: where programs are looked for.
    pub(crate) path: Vec<PathBuf>,
    /// `private_dir`: where snapshots are mounted whose file system is another user's.
    pub(crate) private_dir: PathBuf,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            trace: None,
            debug: 0,
            sudo: false,
            disabled: false,
            retry: 3,
            lvm_snapshot_size: Vec::new(),
            skip_volume: Vec::new(),
            snapshot_dir: OsString::from(".snapshots"),
            fail_job_on_error: true,
            mountopts: Vec::new(),
            path: PROGRAMS.split(':').map(PathBuf::from).collect(),
            private_dir: PathBuf::from("/run/bsnapshot"),
        }
    }
}

impl Settings {
    /// Reads the file. Without it there are the defaults, unless it must exist; lines that are not
    /// understood are left out. Beside it, what is wrong: the file can't be read, isn't ours alone,
    /// or has such a line, the first of which is named.
    pub(crate) fn read(path: &Path, must_exist: bool) -> (Self, Outcome<()>) {
        let text = match Self::text(path, must_exist) {
            Ok(text) => text,
            Err(problem) => return (Self::default(), Err(problem)),
        };
        let (read, problem) = Self::parse(&text);
        (read, problem.map_err(|(line, why)| Failure::Setting { path: path.to_owned(), line, why }))
    }

    /// What is in the file. It names programs that run as root, so no other user may be able to
    /// write it.
    fn text(path: &Path, must_exist: bool) -> Outcome<Vec<u8>> {
        let failed = |error| Failure::File { doing: "can't read", path: path.to_owned(), error };
        let file = match File::open(path) {
            Ok(file) => file,
            // A link that leads nowhere is a file that can't be read.
            Err(error) if error.kind() == ErrorKind::NotFound && !must_exist && !path.is_symlink() => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(failed(error)),
        };
        let about = file.metadata().map_err(failed)?;
        if !(about.uid() == 0 || about.uid() == geteuid().as_raw()) || about.mode() & 0o022 != 0 {
            let why = "it must belong to root, and only root may write it".to_owned();
            return Err(Failure::Refused { path: path.to_owned(), why });
        }
        let mut text = Vec::new();
        if file.take(LONGEST).read_to_end(&mut text).map_err(failed)? as u64 == LONGEST {
            return Err(Failure::Refused { path: path.to_owned(), why: "it has more than 1 MiB".to_owned() });
        }
        Ok(text)
    }

    /// The same with what the command line says.
    pub(crate) fn with(mut self, arguments: &Arguments) -> Self {
        self.debug = self.debug.max(arguments.debug);
        self.sudo |= arguments.sudo;
        self.trace = arguments.log.clone().or(self.trace);
        self
    }

    fn parse(text: &[u8]) -> (Self, Result<(), (usize, String)>) {
        let (mut read, mut problem) = (Self::default(), Ok(()));
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || matches!(line.first(), Some(b'#' | b';' | b'[')) {
                continue;
            }
            let understood = read.line(line).map_err(|why| (number + 1, why));
            problem = problem.and(understood);
        }
        (read, problem)
    }

    fn line(&mut self, line: &[u8]) -> Result<(), String> {
        let Some(equals) = line.iter().position(|byte| *byte == b'=') else { return Err("no \"=\"".to_owned()) };
        let (key, value) = line.split_at(equals);
        let key = String::from_utf8_lossy(key.trim_ascii()).to_ascii_lowercase();
        let value = unquote(value.get(1..).unwrap_or_default().trim_ascii())?;
        let file = || PathBuf::from(&value);
        match key.as_str() {
            "trace" => self.trace = Some(file()),
            "debug" => self.debug = number(&value)?,
            "sudo" => self.sudo = yes_or_no(&value)?,
            "disabled" => self.disabled = yes_or_no(&value)?,
            "retry" => self.retry = number(&value)?,
            "fail_job_on_error" => self.fail_job_on_error = yes_or_no(&value)?,
            "lvm_snapshot_size" => {
                self.lvm_snapshot_size.extend(list(&value).map(size_of_volume).collect::<Result<Vec<_>, _>>()?);
            }
            "skip_volume" => self.skip_volume.extend(list(&value).map(OsStr::to_owned)),
            "snapshot_dir" => self.snapshot_dir = component(value)?,
            "mountopts" => self.mountopts.push(mount_options(&value)),
            "path" => self.path = std::env::split_paths(&value).map(absolute).collect::<Result<_, _>>()?,
            "private_dir" => self.private_dir = absolute(file())?,
            _ => return Err(format!("there is no setting {key}")),
        }
        Ok(())
    }
}

/// Whether it can be the name of one entry of a directory.
pub(crate) fn is_component(name: &OsStr) -> bool {
    let name = name.as_bytes();
    !(name.is_empty() || name == b"." || name == b".." || name.len() > 255 || name.contains(&b'/'))
}

fn component(value: OsString) -> Result<OsString, String> {
    if is_component(&value) { Ok(value) } else { Err("the name of one directory is needed, without \"/\"".to_owned()) }
}

fn absolute(path: PathBuf) -> Result<PathBuf, String> {
    if path.is_absolute() { Ok(path) } else { Err(format!("{} is not an absolute path", path.display())) }
}

/// A value in quotes has no comment behind it that must be cut, and may hold `\"` and `\\`.
fn unquote(value: &[u8]) -> Result<OsString, String> {
    let Some(inside) = value.strip_prefix(b"\"") else {
        let comment = value.windows(2).position(|two| two[..] == *b" #" || two[..] == *b"\t#");
        return Ok(
            OsStr::from_bytes(value.get(..comment.unwrap_or(value.len())).unwrap_or_default().trim_ascii()).into()
        );
    };
    let mut plain = Vec::new();
    let mut bytes = inside.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'"' => return Ok(OsString::from_vec(plain)),
            b'\\' => plain.extend(bytes.next()),
            _ => plain.push(byte),
        }
    }
    Err("the closing quote is missing".to_owned())
}

fn yes_or_no(value: &OsStr) -> Result<bool, String> {
    match value.to_string_lossy().to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" | "1" => Ok(true),
        "no" | "false" | "off" | "0" => Ok(false),
        other => Err(format!("{other:?} is neither yes nor no")),
    }
}

fn number(value: &OsStr) -> Result<u32, String> {
    value.to_string_lossy().parse().map_err(|_| format!("\"{}\" is not a number", value.display()))
}

/// The parts between commas.
fn list(value: &OsStr) -> impl Iterator<Item = &OsStr> {
    let parts = value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    parts.filter(|part| !part.is_empty()).map(OsStr::from_bytes)
}

/// `/dev/vg/lv:5%`, `/dev/vg/lv:10G`.
fn size_of_volume(value: &OsStr) -> Result<(OsString, SnapshotSize), String> {
    let wrong = || format!("\"{}\" is not VOLUME:SIZE or VOLUME:PERCENT%", value.display());
    let bytes = value.as_bytes();
    let colon = bytes.iter().rposition(|byte| *byte == b':').ok_or_else(wrong)?;
    let (volume, size) = bytes.split_at(colon);
    let size = String::from_utf8_lossy(size.get(1..).unwrap_or_default().trim_ascii()).to_ascii_lowercase();
    let digits = size.trim_end_matches(|last: char| !last.is_ascii_digit());
    let amount: u64 = digits.parse().map_err(|_| wrong())?;
    let unit = |shift: u32| amount.checked_shl(shift).filter(|bytes| bytes >> shift == amount).map(SnapshotSize::Bytes);
    let size = match size.strip_prefix(digits).unwrap_or_default().trim() {
        "%" => Some(SnapshotSize::Percent(amount)).filter(|_| (1..=100).contains(&amount)),
        "" | "b" => unit(0),
        "k" | "kb" => unit(10),
        "m" | "mb" => unit(20),
        "g" | "gb" => unit(30),
        "t" | "tb" => unit(40),
        _ => None,
    };
    let volume = OsStr::from_bytes(volume.trim_ascii()).to_owned();
    Ok((volume, size.filter(|size| *size != SnapshotSize::Bytes(0)).ok_or_else(wrong)?))
}

/// `nouuid,nosuid` for all, `/dev/vg/lv:nouuid` for one.
fn mount_options(value: &OsStr) -> (Option<OsString>, OsString) {
    let bytes = value.as_bytes();
    match bytes.iter().rposition(|byte| *byte == b':') {
        Some(colon) if bytes.starts_with(b"/") => {
            let (device, options) = bytes.split_at(colon);
            let options = options.get(1..).unwrap_or_default().trim_ascii();
            (Some(OsStr::from_bytes(device.trim_ascii()).into()), OsStr::from_bytes(options).into())
        }
        _ => (None, value.to_owned()),
    }
}

#[cfg(test)]
mod tests;
