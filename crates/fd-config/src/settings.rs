//! `bacula-fd.toml`: the settings that the stock daemon does not have. The file is optional, and so
//! is everything in it.
//!
//! Not here: anything that `bacula-fd.conf` can set.

use core::fmt;
use core::net::SocketAddr;
use core::num::NonZeroU16;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use crate::removed::Removed;
use crate::syntax::explain::did_you_mean;
use crate::texts;

/// The file's name; it is beside `bacula-fd.conf`.
pub const SETTINGS_FILE: &str = "bacula-fd.toml";
/// Most workers of one job.
const MOST_WORKERS: u16 = 512;
/// Most files that one job looks up, reads or makes at a time.
const MOST_AT_A_TIME: u16 = 256;
/// Longest time for a caller's login, in seconds.
const LONGEST_SILENCE: u16 = 3600;
/// Least memory of one job, in bytes.
const LEAST_MEMORY: u64 = 4 << 20;
/// Least memory of a plugin host, in bytes.
const LEAST_PLUGIN_MEMORY: u64 = 64 << 20;
/// Longest time for a call of a plugin, in seconds: a week.
const LONGEST_CALL: u32 = 7 * 24 * 3600;
/// Least size of a file with signatures, in bytes, if there is to be one.
const LEAST_SIGNATURES: u64 = 1 << 20;

/// All settings; [`Settings::default`] applies without a file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// How jobs use this host.
    pub job: JobSettings,
    /// The daemon's own log.
    pub log: LogSettings,
    /// Time limits of callers.
    pub connection: ConnectionSettings,
    /// How connections with other daemons are protected, beyond what `bacula-fd.conf` sets.
    pub tls: TlsSettings,
    /// Numbers for monitoring systems.
    pub metrics: MetricsSettings,
    /// How plugins run.
    pub plugins: PluginSettings,
    /// How files are restored.
    pub restore: RestoreSettings,
}

/// `[restore]`
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RestoreSettings {
    /// Whether data is compared with the digests on the volume. Signatures are checked all the
    /// same.
    #[serde(deserialize_with = "yes_or_no")]
    pub check_digests: bool,
}

impl Default for RestoreSettings {
    fn default() -> Self {
        Self { check_digests: true }
    }
}

/// `[plugins]`
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PluginSettings {
    /// Which `bpipe` there is.
    pub bpipe: Bpipe,
    /// Removed.
    pub s3: Removed,
    /// Which commands of a volume a restore runs.
    pub restore_commands: RestoreCommands,
    /// `[plugins.settings.NAME]`: what a plugin of this name gets, which is that of its file before
    /// `-fd.so`.
    pub settings: BTreeMap<String, PluginHostSettings>,
}

/// `plugins.bpipe`
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bpipe {
    /// The daemon's own.
    #[default]
    Builtin,
    /// The `bpipe-fd.so` of the plugin directory, in a plugin host.
    Library,
    /// None.
    Off,
}

/// `plugins.restore_commands`
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RestoreCommands {
    /// Whatever the volume says.
    Any,
    /// Those that someone has said who may order programs.
    #[default]
    Known,
    /// None.
    None,
}

/// `[plugins.settings.NAME]`: the process that a plugin runs in.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PluginHostSettings {
    /// The user that it runs as; `None`: the daemon's.
    pub user: Option<String>,
    /// The group that it runs as; `None`: the user's, or the daemon's.
    pub group: Option<String>,
    /// Most memory in bytes, at least 64 MiB; `None`: no limit.
    #[serde(deserialize_with = "plugin_memory")]
    pub memory: Option<u64>,
    /// Whether it can reach the network.
    pub network: bool,
    /// Seconds that it may take to load, 1 to 3600.
    #[serde(deserialize_with = "start_timeout")]
    pub start_timeout: u16,
    /// Seconds that a call may take, 1 to 604,800; `None`: as long as it likes.
    #[serde(deserialize_with = "call_timeout")]
    pub call_timeout: Option<u32>,
}

impl Default for PluginHostSettings {
    fn default() -> Self {
        Self { user: None, group: None, memory: None, network: true, start_timeout: 30, call_timeout: None }
    }
}

impl PluginSettings {
    /// What the plugin of this name gets, without a final `-fd.so`.
    pub fn of(&self, name: &[u8]) -> PluginHostSettings {
        let found = self.settings.iter().find(|(known, _)| known.as_bytes() == name);
        found.map(|(_, settings)| settings.clone()).unwrap_or_default()
    }

    /// The names with settings that none of these plugins has. Our own `bpipe` needs no file.
    pub fn unused<'a>(&'a self, plugins: &'a [&[u8]]) -> impl Iterator<Item = &'a str> {
        let names = self.settings.keys().map(String::as_str);
        names.filter(|name| *name != "bpipe" && !plugins.contains(&name.as_bytes()))
    }
}

/// `[metrics]`
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MetricsSettings {
    /// Where `GET /metrics` is answered, an address with its port; `None`: nowhere.
    #[serde(deserialize_with = "address")]
    pub address: Option<SocketAddr>,
}

/// `[tls]`
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsSettings {
    /// Whether a peer that does not encrypt is refused, whichever side connects.
    pub require: bool,
}

/// `[connection]`
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConnectionSettings {
    /// Seconds that a caller may take for the whole login, its first packet included, 1 to 3600.
    #[serde(deserialize_with = "login")]
    pub login: u16,
    /// Removed.
    pub first_packet: Removed,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        Self { login: 15, first_packet: Removed::default() }
    }
}

/// `[job]`
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JobSettings {
    /// Threads that read, digest and compress for one job, 1 to 512; `None`: the program's own
    /// choice.
    #[serde(deserialize_with = "workers")]
    pub workers: Option<NonZeroU16>,
    /// Files that one job looks up, reads or makes at a time, 1 to 256; `None`: one where the file
    /// system answers at once, more while it answers late.
    #[serde(deserialize_with = "depth")]
    pub depth: Option<NonZeroU16>,
    /// Bytes that one job's buffers may take, at least 4 MiB; `None`: the program's own choice.
    #[serde(deserialize_with = "memory")]
    pub memory: Option<u64>,
    /// Bytes that the file with signatures of earlier backups may take, 0 for no file, or at least
    /// 1 MiB; `None`: the program's own choice.
    #[serde(deserialize_with = "kept_signatures")]
    pub kept_signatures: Option<u64>,
    /// Whether Incremental and Differential jobs find unchanged files by an inode scan.
    pub inode_scan: JobInodeScan,
    /// How backups give way to others that need the processors, the disks or the memory.
    pub manners: JobManners,
    /// Whether a backup's last message, and the status of one that runs, show how the time is
    /// spent.
    pub stage_times: bool,
    /// Removed.
    pub io_priority: Removed,
    /// Removed.
    pub lookup_depth: Removed,
    /// Removed.
    pub max_load: Removed,
    /// Removed.
    pub nice: Removed,
    /// Removed.
    pub reading_depth: Removed,
    /// Removed.
    pub writing_depth: Removed,
}

/// `job.inode_scan`
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobInodeScan {
    /// Never.
    Off,
    /// Where it takes less than the lookups.
    #[default]
    Auto,
    /// Wherever it can be done.
    Always,
}

/// `job.manners`
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobManners {
    /// They use what they get.
    Off,
    /// They give way, and stay faster than one thread would be.
    #[default]
    Auto,
    /// They give way whatever it costs them.
    Generous,
}

/// `[log]`
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogSettings {
    /// How lines look.
    pub format: LogFormat,
    /// What is logged; a debug level on the command line overrides it.
    pub level: LogLevel,
}

/// `log.format`
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// `log.level`
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Only failures.
    Error,
    /// Also what may fail soon.
    #[default]
    Warn,
    /// What happens.
    Info,
    /// How it happens.
    Debug,
    /// Every step.
    Trace,
}

/// A settings file that can't be used: its name, the place and the reason, with the line and a
/// caret.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}: {reason}{hint}", file.display())]
pub struct SettingsError {
    file: PathBuf,
    reason: Box<toml::de::Error>,
    /// Advice as a line; often nothing.
    hint: String,
}

impl Settings {
    /// Reads the text of a settings file; `file` is only its name, for messages.
    ///
    /// # Errors
    /// [`SettingsError`]: bad TOML, an unknown key, or a value out of its range.
    pub fn parse(file: &Path, text: &str) -> Result<Self, SettingsError> {
        toml::from_str(text).map_err(|reason: toml::de::Error| {
            let value = reason.span().and_then(|span| text.get(span)).unwrap_or_default();
            let hint = hint(reason.message(), value).map(|hint| format!("  {} {hint}\n", texts::HINT));
            SettingsError { file: file.to_owned(), hint: hint.unwrap_or_default(), reason: Box::new(reason) }
        })
    }

    /// A line about each setting of the file that is no more: its name, and what took its place.
    pub fn removed(&self) -> impl Iterator<Item = String> {
        let (connection, job, plugins) = (&self.connection, &self.job, &self.plugins);
        let all = [
            ("connection.first_packet", connection.first_packet, texts::LOGIN_IS_ALL),
            ("job.io_priority", job.io_priority, texts::UNIT_IO),
            ("job.lookup_depth", job.lookup_depth, texts::DEPTH_IS_ONE),
            ("job.max_load", job.max_load, texts::MANNERS_DO),
            ("job.nice", job.nice, texts::UNIT_NICE),
            ("job.reading_depth", job.reading_depth, texts::DEPTH_IS_ONE),
            ("job.writing_depth", job.writing_depth, texts::DEPTH_IS_ONE),
            ("plugins.s3", plugins.s3, texts::S3_IS_A_PACKAGE),
        ];
        all.into_iter()
            .filter(|(_, removed, _)| removed.is_there())
            .map(|(name, _, instead)| texts::removed(name, instead))
    }

    /// Where the settings file of a configuration file is looked for: beside it, or, if a program
    /// prints it, it comes through a pipe or has no name, in `/etc/bacula`.
    pub fn path_beside(config_file: &OsStr) -> PathBuf {
        const PRINTED: [&[u8]; 4] = [b"|", b"/dev/fd/", b"/dev/stdin", b"/proc/"];
        let is_printed = PRINTED.iter().any(|head| config_file.as_bytes().starts_with(head));
        let has_place = !is_printed && !config_file.is_empty();
        let file = if has_place { config_file } else { OsStr::new("/etc/bacula/bacula-fd.conf") };
        Path::new(file).with_file_name(SETTINGS_FILE)
    }
}

/// What to write instead of this value or name, from the parser's message.
fn hint(message: &str, value: &str) -> Option<String> {
    let is_bare = message.starts_with("string values must be quoted");
    if is_bare && ["yes", "no", "on", "off"].contains(&value) {
        // Which of them is meant depends on the setting.
        return Some(texts::true_or_quoted(value));
    }
    if ["True", "False"].contains(&value) || message.contains("expected a boolean") {
        return Some(texts::WRITE_TRUE_OR_FALSE.to_owned());
    }
    if is_bare {
        return Some(texts::quote(value));
    }
    if let Some((found, expected)) = message.split_once(", expected one of ") {
        let quoted = |text: &str| -> Vec<String> { text.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
        let (found, known) = (quoted(found), quoted(expected));
        return did_you_mean(found.first()?.as_bytes(), known.iter().map(String::as_str));
    }
    if message == "wanted string or table" {
        return Some(texts::WRITE_A_WORD.to_owned());
    }
    if !message.starts_with("invalid type") {
        return None;
    }
    match message.rsplit(' ').next()? {
        "i64" | "f64" => Some(texts::WRITE_A_NUMBER.to_owned()),
        "string" => Some(texts::WRITE_QUOTES.to_owned()),
        _ => None,
    }
}

fn login<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    seconds(deserializer, "login")
}

fn seconds<'de, D: Deserializer<'de>>(deserializer: D, key: &str) -> Result<u16, D::Error> {
    let number = i64::deserialize(deserializer)?;
    let seconds = u16::try_from(number).ok().filter(|seconds| (1..=LONGEST_SILENCE).contains(seconds));
    seconds.ok_or_else(|| D::Error::custom(texts::seconds_out_of_range(key, number, LONGEST_SILENCE.into())))
}

/// `"yes"` and `"no"`, or true and false as elsewhere.
fn yes_or_no<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    deserializer.deserialize_any(YesOrNo)
}

struct YesOrNo;

impl Visitor<'_> for YesOrNo {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(texts::EXPECTED_YES_OR_NO)
    }

    fn visit_bool<E: Error>(self, is_yes: bool) -> Result<bool, E> {
        Ok(is_yes)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<bool, E> {
        match text {
            "yes" => Ok(true),
            "no" => Ok(false),
            _ => Err(E::custom(format!("{text:?}: {} is expected", texts::EXPECTED_YES_OR_NO))),
        }
    }
}

fn workers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NonZeroU16>, D::Error> {
    up_to(MOST_WORKERS, deserializer, "workers")
}

fn depth<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NonZeroU16>, D::Error> {
    up_to(MOST_AT_A_TIME, deserializer, "depth")
}

fn up_to<'de, D: Deserializer<'de>>(most: u16, deserializer: D, key: &str) -> Result<Option<NonZeroU16>, D::Error> {
    let number = i64::deserialize(deserializer)?;
    let taken = u16::try_from(number).ok().filter(|taken| *taken <= most).and_then(NonZeroU16::new);
    taken.map(Some).ok_or_else(|| D::Error::custom(texts::number_out_of_range(key, number, most)))
}

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(|_| D::Error::custom(texts::not_an_address(&text)))
}

fn memory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let bytes = deserializer.deserialize_any(Size)?;
    if bytes >= LEAST_MEMORY { Ok(Some(bytes)) } else { Err(D::Error::custom(texts::too_little_memory(LEAST_MEMORY))) }
}

fn plugin_memory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    match deserializer.deserialize_any(Size)? {
        bytes @ LEAST_PLUGIN_MEMORY.. => Ok(Some(bytes)),
        _ => Err(D::Error::custom(texts::too_little_memory(LEAST_PLUGIN_MEMORY))),
    }
}

fn start_timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    seconds(deserializer, "start_timeout")
}

fn call_timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let number = i64::deserialize(deserializer)?;
    let seconds = u32::try_from(number).ok().filter(|seconds| (1..=LONGEST_CALL).contains(seconds));
    seconds.map(Some).ok_or_else(|| D::Error::custom(texts::seconds_out_of_range("call_timeout", number, LONGEST_CALL)))
}

fn kept_signatures<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    match deserializer.deserialize_any(Size)? {
        bytes @ (0 | LEAST_SIGNATURES..) => Ok(Some(bytes)),
        _ => Err(D::Error::custom(texts::too_few_signatures(LEAST_SIGNATURES))),
    }
}

/// A number of bytes: a whole number, or a text such as `64 MiB`.
struct Size;

impl Visitor<'_> for Size {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(texts::EXPECTED_A_SIZE)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
        u64::try_from(number).map_err(|_| E::custom(texts::EXPECTED_A_SIZE))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        size(text).ok_or_else(|| E::custom(format!("{text:?}: {}", texts::EXPECTED_A_SIZE)))
    }
}

fn size(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 8] = [
        ("", 1),
        ("B", 1),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ];
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let number: u64 = digits.parse().ok()?;
    let unit = unit.trim();
    let (_, factor) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    number.checked_mul(*factor)
}

#[cfg(test)]
mod tests;
