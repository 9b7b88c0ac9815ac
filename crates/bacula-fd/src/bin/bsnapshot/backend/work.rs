//! What an action works with.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::answer::Answer;
use crate::failure::{Failure, Outcome};
use crate::place::{Place, snapshot_directory};
use crate::request::Request;
use crate::settings::{Settings, is_component};
use crate::tools::Tools;

/// One action: what is wanted, and what there is to do it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work<'a> {
    /// What the daemon wants.
    pub(crate) request: &'a Request,
    /// The configuration.
    pub(crate) settings: &'a Settings,
    /// The programs.
    pub(crate) tools: &'a Tools<'a>,
}

impl Work<'_> {
    /// `SNAPSHOT_NAME`, which becomes part of a path.
    pub(super) fn name(&self) -> Outcome<&OsStr> {
        let name = &self.request.name;
        if is_component(name) { Ok(name) } else { Err(wrong("SNAPSHOT_NAME", name, "it must be the name of one file")) }
    }

    /// `SNAPSHOT_VOLUME`.
    pub(super) fn volume(&self) -> Outcome<&OsStr> {
        let volume = &self.request.volume;
        if volume.is_empty() { Err(wrong("SNAPSHOT_VOLUME", volume, "it is needed")) } else { Ok(volume) }
    }

    /// The top directory of the file system, `SNAPSHOT_MOUNTPOINT`.
    pub(super) fn top(&self) -> Outcome<Place> {
        if self.request.mount_point.as_os_str().is_empty() {
            return Err(wrong("SNAPSHOT_MOUNTPOINT", OsStr::new(""), "it is needed"));
        }
        Place::open(&self.request.mount_point)
    }

    /// Where snapshots of the file system are seen.
    pub(super) fn snapshot_directory(&self) -> PathBuf {
        self.request.mount_point.join(&self.settings.snapshot_dir)
    }

    /// The same, if it is or would be ours.
    pub(super) fn own_directory(&self, top: &Place) -> Option<PathBuf> {
        snapshot_directory(top, &self.settings.snapshot_dir).is_ok().then(|| self.snapshot_directory())
    }

    /// `skip_volume` may say the device, what `support` makes of it, or the mount point.
    pub(super) fn must_not_be_skipped(&self) -> Outcome<()> {
        self.must_not_be(&self.request.device)?;
        self.must_not_be(self.request.mount_point.as_os_str())
    }

    /// One of these.
    pub(super) fn must_not_be(&self, volume: &OsStr) -> Outcome<()> {
        if self.settings.skip_volume.iter().any(|skipped| skipped == volume) {
            return Err(Failure::Skipped(volume.to_string_lossy().into_owned()));
        }
        Ok(())
    }
}

/// A variable that makes no sense.
pub(super) fn wrong(variable: &'static str, value: &OsStr, why: &'static str) -> Failure {
    Failure::Variable { variable, value: value.to_string_lossy().into_owned(), why }
}

/// Seconds since 1970.
pub(super) fn now() -> String {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().to_string()
}

/// The answer of `mount`.
pub(super) fn mounted(at: impl Into<OsString>, directory: impl Into<OsString>) -> Answer {
    Answer::good().quoted("snapmountpoint", at.into()).quoted("snapdirectory", directory.into()).end_line()
}
