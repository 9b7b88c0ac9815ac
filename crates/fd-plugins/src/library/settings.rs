//! How plugin hosts are run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::api::host::{Value, Variable};

/// Takes a line that a plugin has printed: the plugin's file and the line.
pub type Output = Arc<dyn Fn(&[u8], &[u8]) + Send + Sync>;

/// How plugin hosts are run.
#[derive(Clone)]
pub struct HostSettings {
    /// The program that has the role of a plugin host.
    pub program: PathBuf,
    /// Name of the daemon.
    pub daemon: Vec<u8>,
    /// The working directory.
    pub working_directory: Vec<u8>,
    /// Values of the variables that are the same in every job.
    pub general: Vec<(Variable, Value)>,
    /// How long a call may go on after its job was canceled.
    pub grace: Duration,
    /// Takes what plugins print.
    pub output: Output,
}

impl HostSettings {
    /// The usual [`HostSettings::grace`].
    pub const GRACE: Duration = Duration::from_secs(10);
}

impl std::fmt::Debug for HostSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostSettings").field("program", &self.program).finish_non_exhaustive()
    }
}

/// What one plugin may.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Confinement {
    /// The user that it runs as, with all of its groups, its first one first; `None`: the daemon's.
    pub user: Option<(Option<u32>, Vec<u32>)>,
    /// Most bytes of memory, the program included; `None`: any.
    pub memory: Option<u64>,
    /// Whether it may use the network.
    pub network: bool,
    /// How long a call may take that begins or ends something: `loadPlugin`, `newPlugin`,
    /// `freePlugin`, and the events 1 and 2.
    pub start_timeout: Duration,
    /// How long any other call may take; `None`: as long as it likes.
    pub call_timeout: Option<Duration>,
}

impl Default for Confinement {
    fn default() -> Self {
        Self { user: None, memory: None, network: true, start_timeout: Duration::from_secs(30), call_timeout: None }
    }
}
