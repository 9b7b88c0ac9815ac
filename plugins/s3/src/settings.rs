//! The file that a command names: the bucket, and how to get at it.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper::Uri;
use serde::de::{Deserialize, Deserializer, Error as _};

use crate::texts;

/// Most bytes of the file.
const LONGEST: u64 = 1 << 20;
/// Bits of a mode that let others than the owner and the group read, or others than the owner
/// write.
const OPEN_TO_OTHERS: u32 = 0o027;

/// The bucket of a command.
#[derive(Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BucketSettings {
    /// Its name.
    pub(crate) bucket: String,
    /// The server, `https://HOST[:PORT]`; without it Amazon's of the region.
    #[serde(default)]
    endpoint: Option<String>,
    /// The region that requests are signed for.
    #[serde(default = "default_region")]
    pub(crate) region: String,
    /// Whether the bucket stands in the path, not in front of the server's name.
    #[serde(default = "yes")]
    pub(crate) path_style: bool,
    #[serde(deserialize_with = "key")]
    pub(crate) access_key: String,
    #[serde(deserialize_with = "key")]
    pub(crate) secret_key: String,
    #[serde(default, deserialize_with = "token")]
    pub(crate) session_token: Option<String>,
    /// What keys begin with that are saved. None: all.
    #[serde(default)]
    prefixes: Vec<String>,
    /// What is put before keys that are restored into this bucket.
    #[serde(default)]
    pub(crate) restore_prefix: String,
    /// Certificates that are trusted instead of the system's, in a file of PEM.
    #[serde(default)]
    pub(crate) ca_file: Option<PathBuf>,
    /// Objects that are fetched at the same time, 1 to 1,024.
    #[serde(default = "default_prefetch")]
    pub(crate) prefetch: u16,
    /// Most mebibytes of objects that are fetched and not yet saved, 8 to 4,096.
    #[serde(default = "default_memory")]
    memory: u16,
    /// How often a request is tried again that has failed, 0 to 100.
    #[serde(default = "default_retries")]
    pub(crate) retries: u32,
    /// Seconds in which a server must answer or send more, 1 to 3,600.
    #[serde(default = "default_timeout")]
    timeout: u16,
    /// Whether an `ETag` that looks like an MD5 digest is one.
    #[serde(default = "yes")]
    pub(crate) etag_is_md5: bool,
}

impl std::fmt::Debug for BucketSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BucketSettings").field("bucket", &self.bucket).finish_non_exhaustive()
    }
}

/// A message about the wrong type of a value has the value, and messages are no place for keys.
fn key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match toml::Value::deserialize(deserializer)? {
        toml::Value::String(key) => Ok(key),
        _ => Err(D::Error::custom(texts::NO_STRING)),
    }
}

fn token<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    key(deserializer).map(Some)
}

fn default_region() -> String {
    "us-east-1".to_owned()
}

const fn yes() -> bool {
    true
}

const fn default_prefetch() -> u16 {
    64
}

const fn default_memory() -> u16 {
    64
}

/// With the pauses between them, long enough for a server to restart.
const fn default_retries() -> u32 {
    10
}

const fn default_timeout() -> u16 {
    60
}

impl BucketSettings {
    /// Reads the file. The error is a message.
    pub(crate) fn read(path: &Path) -> Result<Self, Vec<u8>> {
        let failed = |line: usize, what: &str| texts::settings(path, line, what);
        let io_failed = |error: std::io::Error| failed(0, &fd_os::io_error_text(&error));
        // A FIFO in its place must not stop the job.
        let mut file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(io_failed)?;
        let metadata = file.metadata().map_err(io_failed)?;
        if !metadata.is_file() {
            return Err(failed(0, texts::NO_FILE));
        }
        let own = rustix::process::geteuid().as_raw();
        if metadata.uid() != 0 && metadata.uid() != own {
            return Err(failed(0, texts::FOREIGN));
        }
        if metadata.mode() & OPEN_TO_OTHERS != 0 {
            return Err(failed(0, &texts::open_to_others(metadata.mode() & 0o7777)));
        }
        let mut text = String::new();
        file.by_ref().take(LONGEST).read_to_string(&mut text).map_err(io_failed)?;
        let settings = Self::parse(&text).map_err(|(line, what)| failed(line, &what))?;
        Ok(settings)
    }

    /// The settings of a text; or the line, 0 for none, and what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, (usize, String)> {
        let settings: Self = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            (before.matches('\n').count() + 1, error.message().to_owned())
        })?;
        settings.check().map_err(|(name, what)| {
            let line = text.lines().position(|line| line.trim_start().starts_with(name));
            (line.map_or(0, |line| line + 1), format!("{name}: {what}"))
        })?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        let in_range = |name, is, least: u32, most: u32| {
            if (least..=most).contains(&is) { Ok(()) } else { Err((name, texts::range(is, least, most))) }
        };
        in_range("prefetch", self.prefetch.into(), 1, 1024)?;
        in_range("memory", self.memory.into(), 8, 4096)?;
        in_range("retries", self.retries, 0, 100)?;
        in_range("timeout", self.timeout.into(), 1, 3600)?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if !self.bucket.bytes().all(plain) || matches!(self.bucket.as_str(), "" | "." | "..") {
            return Err(("bucket", texts::NO_BUCKET.to_owned()));
        }
        // It stands in a header.
        if !self.region.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(("region", texts::NO_KEY.to_owned()));
        }
        let uri: Result<Uri, _> = self.endpoint().parse();
        let fits = uri.is_ok_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some() && matches!(uri.path(), "/" | "")
        });
        if !fits {
            return Err(("endpoint", texts::NO_ENDPOINT.to_owned()));
        }
        for (name, text) in [("access_key", &self.access_key), ("secret_key", &self.secret_key)] {
            if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err((name, texts::NO_KEY.to_owned()));
            }
        }
        Ok(())
    }

    /// The server, without a slash at its end.
    pub(crate) fn endpoint(&self) -> String {
        match &self.endpoint {
            Some(endpoint) => endpoint.trim_end_matches('/').to_owned(),
            None => format!("https://s3.{}.amazonaws.com", self.region),
        }
    }

    /// What keys begin with that are saved: in their order, and none that begins with another.
    pub(crate) fn prefixes(&self) -> Vec<String> {
        let mut sorted = self.prefixes.clone();
        sorted.sort_unstable();
        let mut chosen: Vec<String> = Vec::new();
        for prefix in sorted {
            if chosen.last().is_none_or(|last| !prefix.starts_with(last)) {
                chosen.push(prefix);
            }
        }
        if chosen.is_empty() {
            chosen.push(String::new());
        }
        chosen
    }

    /// Whether objects that are saved by these settings and by others can have one name.
    pub(crate) fn shares_names(&self, other: &Self) -> bool {
        let (own, others) = (self.prefixes(), other.prefixes());
        let meets = |one: &String| own.iter().any(|own| own.starts_with(one) || one.starts_with(own));
        self.bucket == other.bucket && others.iter().any(meets)
    }

    /// Most bytes of objects that are fetched and not yet saved.
    pub(crate) fn memory(&self) -> usize {
        usize::from(self.memory) << 20
    }

    /// How long a server may send nothing.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout.into())
    }
}

#[cfg(test)]
mod tests;
