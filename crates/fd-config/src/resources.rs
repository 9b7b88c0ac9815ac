//! The typed resources: what the daemon runs with. Built once, then read only.
//!
//! Plain strings are bytes, as the file has them; resource names are ASCII (the parser checks it);
//! paths are `PathBuf`.

mod messages;
mod schedule;

use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use core::time::Duration;
use std::collections::BTreeMap;
use std::path::PathBuf;

use fd_records::{ContentCipher, DigestKind};

pub use messages::{Destination, DestinationKind, Messages, TypeSet};
pub use schedule::{CalendarHour, ConnectRun, Schedule};

/// The whole configuration after all start-up checks (reference 06 §3, §6.1).
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// The one `FileDaemon` (or `Client`) resource.
    pub file_daemon: FileDaemon,
    /// At least one, in the order of the file.
    pub directors: Vec<Director>,
    /// At least one, in the order of the file. The one that counts is [`FileDaemon::messages`].
    pub messages: Vec<Messages>,
    /// In the order of the file; the first is the default of the `proxy` command.
    pub consoles: Vec<Console>,
    /// In the order of the file.
    pub schedules: Vec<Schedule>,
    /// In the order of the file.
    pub statistics: Vec<Statistics>,
}

impl Config {
    /// The Director resource of exactly this name (the name in a Director's Hello, case-sensitive).
    pub fn director(&self, name: &[u8]) -> Option<&Director> {
        self.directors.iter().find(|director| director.name.as_bytes() == name)
    }

    /// Kind, name and `TLS …` directives of each resource that has them: the daemon's own, the
    /// Directors, the consoles.
    pub fn tls_resources(&self) -> impl Iterator<Item = (&'static str, &str, &Tls)> {
        let own = ("FileDaemon", self.file_daemon.name.as_str(), &self.file_daemon.tls);
        let directors = self.directors.iter().map(|director| ("Director", director.name.as_str(), &director.tls));
        let consoles = self.consoles.iter().map(|console| ("Console", console.name.as_str(), &console.tls));
        std::iter::once(own).chain(directors).chain(consoles)
    }
}

/// The `FileDaemon` resource (reference 06 §3.1).
#[derive(Clone, PartialEq, Debug)]
pub struct FileDaemon {
    /// The daemon's name: prefix of messages, part of file names.
    pub name: String,
    /// No effect.
    pub description: Vec<u8>,
    /// Where to listen; never empty, no address twice. The port of the first is part of the names
    /// of the pid and the state file. Default `0.0.0.0:9102`.
    pub addresses: Vec<SocketAddr>,
    /// Local address of connections to a Storage Daemon.
    pub source_address: Option<Ipv4Addr>,
    /// IPv6 addresses of `FdAddress` and `FdSourceAddress`, by the directive: they are read as
    /// `0.0.0.0` (reference 06 §2.9), which is hardly what was meant.
    pub not_ipv4: BTreeMap<&'static str, Ipv6Addr>,
    /// State, trace, mail and spool files.
    pub working_directory: PathBuf,
    /// Holds the pid file.
    pub pid_directory: PathBuf,
    /// Accepted, unused.
    pub subsys_directory: Option<PathBuf>,
    /// Every `*-fd.so` in it is loaded; `None`: no plugins.
    pub plugin_directory: Option<PathBuf>,
    /// Handed to the plugins after every `fileset` command.
    pub plugin_options: Vec<Vec<u8>>,
    /// The snapshot helper as written; `None` means `%ebsnapshot` (`%e`: directory of the running
    /// binary, with `/`).
    pub snapshot_command: Option<Vec<u8>>,
    /// Accepted, unused.
    pub scripts_directory: Option<PathBuf>,
    /// Connections served at once; further ones wait. 0: nothing is ever served.
    pub max_concurrent_jobs: u32,
    /// The one Messages resource used for the daemon and all jobs.
    pub messages: Messages,
    /// Total time for connecting to the Storage Daemon.
    pub sd_connect_timeout: Duration,
    /// Zero: no heartbeat.
    pub heartbeat_interval: Duration,
    /// Bytes; 0 means 65536.
    pub max_network_buffer_size: u32,
    /// Signatures and encryption of the saved data.
    pub pki: Pki,
    /// Towards Storage Daemons. `verify_peer`, `allowed_cn` and `dh` don't exist here (true, empty,
    /// `None`).
    pub tls: Tls,
    /// Accepted, unused.
    pub ver_id: Vec<u8>,
    /// Bytes per second, 0: unlimited. Counts if the Director resource has none.
    pub max_bandwidth_per_job: u64,
    /// LZ4 line compression with the Storage Daemon.
    pub comm_compression: bool,
    /// Names of commands that no Director may use.
    pub disabled_commands: Vec<&'static str>,
    /// The same as the file has it.
    pub disable_command: Vec<Vec<u8>>,
    /// File read errors after which a job fails; 0: unlimited.
    pub max_job_error_count: u32,
    /// After this many data packets a POLL is sent and its answer awaited; 0: never.
    pub sd_packet_check: u32,
}

impl FileDaemon {
    /// The port in the names of the pid and the state file: that of the first address
    /// (reference 06 §5.2).
    pub fn port(&self) -> u16 {
        self.addresses.first().map_or(Self::DEFAULT_PORT, SocketAddr::port)
    }

    /// The port without `FdPort`.
    pub(crate) const DEFAULT_PORT: u16 = 9102;
}

/// A `Director` resource: a Director that may give commands to this daemon (reference 06 §3.2).
#[derive(Clone, PartialEq, Debug)]
pub struct Director {
    /// Must equal the name in the Director's Hello.
    pub name: String,
    /// No effect.
    pub description: Vec<u8>,
    /// The shared secret.
    pub password: PasswordKey,
    /// Host to call, for `connect_to_director` and `proxy`.
    pub address: Option<String>,
    /// Port to call.
    pub port: u16,
    /// May only ask for the status.
    pub monitor: bool,
    /// Has only the rights of a console's user.
    pub remote: bool,
    /// Towards this Director.
    pub tls: Tls,
    /// Bytes per second, 0: see [`FileDaemon::max_bandwidth_per_job`].
    pub max_bandwidth_per_job: u64,
    /// Names of commands that this Director may not use either.
    pub disabled_commands: Vec<&'static str>,
    /// Console identity of the `proxy` command; `None`: the first Console resource, else this
    /// Director's own.
    pub console: Option<Console>,
    /// Call this Director (does nothing without an address).
    pub connect_to_director: bool,
    /// Time windows of `connect_to_director`.
    pub schedule: Option<Schedule>,
    /// Greatest age of an idle connection to the Director.
    pub reconnection_time: Duration,
    /// Empty: everything may be saved. Else only paths that begin with an item or are the beginning
    /// of one.
    pub allowed_backup_directories: Vec<Vec<u8>>,
    /// Paths that begin with an item are not saved; checked first.
    pub excluded_backup_directories: Vec<Vec<u8>>,
    /// Empty: every program. Else command texts must begin with an item (reference 06 §10.3).
    pub allowed_script_directories: Vec<Vec<u8>>,
    /// Empty: everywhere. Else `fnmatch` patterns for `where`.
    pub allowed_restore_directories: Vec<Vec<u8>>,
    /// Accepted, unused.
    pub backup_job_user: Option<Vec<u8>>,
    /// Accepted, unused.
    pub restore_job_user: Option<Vec<u8>>,
}

/// A `Console` resource: the identity of this daemon for the `proxy` command (reference 06 §3.4).
#[derive(Clone, PartialEq, Debug)]
pub struct Console {
    /// The console's name.
    pub name: String,
    /// No effect.
    pub description: Vec<u8>,
    /// The shared secret.
    pub password: PasswordKey,
    /// The Director's host.
    pub address: Option<String>,
    /// The Director's port.
    pub port: u16,
    /// Towards the Director.
    pub tls: Tls,
}

/// A `Statistics` resource: a collector (reference 06 §3.5, §11).
#[derive(Clone, PartialEq, Debug)]
pub struct Statistics {
    /// The collector's name.
    pub name: String,
    /// No effect.
    pub description: Vec<u8>,
    /// Stands before metric names, with a dot.
    pub prefix: Option<Vec<u8>>,
    /// Filter patterns; empty: all metrics.
    pub metrics: Vec<Vec<u8>>,
    /// Between two collections.
    pub interval: Duration,
    /// Graphite's port.
    pub port: u16,
    /// Graphite's host.
    pub host: Option<String>,
    /// Where the numbers go.
    pub kind: StatisticsKind,
    /// The CSV file.
    pub file: Option<PathBuf>,
    /// Replace `.` by `%32` in metric names.
    pub mangle_metric: bool,
}

/// Where a collector's numbers go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatisticsKind {
    /// Lines of a file.
    Csv,
    /// A Graphite server.
    Graphite,
}

/// Signatures and encryption of the saved data (reference 06 §3.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pki {
    /// Sign. Implied by `encryption`.
    pub signatures: bool,
    /// Encrypt.
    pub encryption: bool,
    /// PEM file with the certificate and the unencrypted RSA key; present when one of the two is
    /// on.
    pub key_pair: Option<PathBuf>,
    /// PEM files of further trusted signers.
    pub signers: Vec<PathBuf>,
    /// PEM files of further recipients.
    pub master_keys: Vec<PathBuf>,
    /// Session cipher.
    pub cipher: ContentCipher,
    /// Signature digest.
    pub digest: DigestKind,
}

/// The Tls… directives of a resource, after "`TlsRequire` turns `TlsEnable` on when certificate
/// material is named" (reference 01 §10.1).
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "five independent directives of the file")]
pub struct Tls {
    /// Certificate TLS.
    pub enable: bool,
    /// Refuse clear text.
    pub require: bool,
    /// TLS only for the authentication.
    pub authenticate: bool,
    /// TLS-PSK.
    pub psk_enable: bool,
    /// Ask the peer for a valid certificate.
    pub verify_peer: bool,
    /// Accepted common names; empty: any.
    pub allowed_cn: Vec<Vec<u8>>,
    /// PEM file of certificate authorities.
    pub ca_file: Option<PathBuf>,
    /// Directory of certificate authorities.
    pub ca_dir: Option<PathBuf>,
    /// Our certificate (PEM).
    pub cert: Option<PathBuf>,
    /// Its private key (PEM).
    pub key: Option<PathBuf>,
    /// Diffie-Hellman parameters.
    pub dh: Option<PathBuf>,
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            enable: false,
            require: false,
            authenticate: false,
            psk_enable: true,
            verify_peer: true,
            allowed_cn: Vec::new(),
            ca_file: None,
            ca_dir: None,
            cert: None,
            key: None,
            dh: None,
        }
    }
}

/// A password in the form that is used: the 32 lower-case hex digits of its MD5
/// (reference 01 §9.1). Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordKey(String);

impl PasswordKey {
    /// Of the bytes in the configuration file.
    pub fn of(clear_text: &[u8]) -> Self {
        Self(fd_bsock::cram::key_from_password(clear_text))
    }

    /// Whether it is that of a password without a character, which everybody knows.
    pub fn is_empty(&self) -> bool {
        *self == Self::of(b"")
    }

    /// The shared secret of CRAM-MD5 and TLS-PSK.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for PasswordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_key_is_the_md5_of_the_bytes_and_stays_secret() {
        // reference 01 §9.1
        let key = PasswordKey::of(b"fdpw");
        assert_eq!(key.as_str(), "af2904ba21987b283d3f14cb9cfb5579");
        assert!(!format!("{key:?}").contains("af29"));
    }
}
