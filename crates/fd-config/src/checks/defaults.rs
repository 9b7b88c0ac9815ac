//! Typed resources from given values: adds the defaults, and nothing else.
//!
//! What must hold for all values together is checked in `checks.rs`.

use core::time::Duration;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use fd_records::{ContentCipher, DigestKind};

use crate::resources::{
    Console, Director, FileDaemon, Messages, PasswordKey, Pki, Schedule, Statistics, StatisticsKind, Tls,
};
use crate::syntax::directives::Kind;
use crate::syntax::document::{Document, RawResource, Value};

impl Document {
    /// The resources of one type, in the order of the file.
    pub(crate) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &RawResource> {
        self.resources.iter().filter(move |resource| resource.kind == kind)
    }

    /// The Messages resource that the daemon names, else the first one.
    pub(crate) fn daemon_messages(&self, raw: &RawResource) -> Option<Messages> {
        match raw.value("Messages") {
            Value::Reference(name) => self.named(Kind::Messages, name).map(messages),
            _ => self.of_kind(Kind::Messages).next().map(messages),
        }
    }

    fn named(&self, kind: Kind, name: &[u8]) -> Option<&RawResource> {
        self.of_kind(kind).find(|resource| resource.name() == name)
    }

    fn referred(&self, raw: &RawResource, directive: &str, kind: Kind) -> Option<&RawResource> {
        match raw.value(directive) {
            Value::Reference(name) => self.named(kind, name),
            _ => None,
        }
    }

    pub(crate) fn director(&self, raw: &RawResource, disabled_commands: Vec<&'static str>) -> Director {
        Director {
            name: text_of(raw.name()),
            description: bytes(raw, "Description").unwrap_or_default(),
            password: password(raw),
            address: bytes(raw, "Address").map(|address| text_of(&address)),
            port: port(raw, "DirPort", 9101),
            monitor: flag(raw, "Monitor", false),
            remote: flag(raw, "Remote", false),
            tls: tls(raw),
            max_bandwidth_per_job: long(raw, "MaximumBandwidthPerJob", 0),
            disabled_commands,
            console: self.referred(raw, "Console", Kind::Console).map(console),
            connect_to_director: flag(raw, "ConnectToDirector", false),
            schedule: self.referred(raw, "Schedule", Kind::Schedule).map(schedule),
            reconnection_time: seconds(raw, "ReconnectionTime", 2700),
            allowed_backup_directories: list(raw, "AllowedBackupDirectories"),
            excluded_backup_directories: list(raw, "ExcludedBackupDirectories"),
            allowed_script_directories: list(raw, "AllowedScriptDirectories"),
            allowed_restore_directories: list(raw, "AllowedRestoreDirectories"),
            backup_job_user: bytes(raw, "BackupJobUser"),
            restore_job_user: bytes(raw, "RestoreJobUser"),
        }
    }
}

pub(crate) fn file_daemon(
    raw: &RawResource,
    messages: Messages,
    disabled_commands: Vec<&'static str>,
    tls: Tls,
    pki: Pki,
) -> FileDaemon {
    FileDaemon {
        name: text_of(raw.name()),
        description: bytes(raw, "Description").unwrap_or_default(),
        addresses: raw.addresses.to_list(),
        source_address: raw.source_address,
        not_ipv4: raw.not_ipv4.clone(),
        working_directory: path(raw, "WorkingDirectory").unwrap_or_default(),
        pid_directory: path(raw, "PidDirectory").unwrap_or_default(),
        subsys_directory: path(raw, "SubsysDirectory"),
        plugin_directory: path(raw, "PluginDirectory"),
        plugin_options: list(raw, "PluginOptions"),
        snapshot_command: bytes(raw, "SnapshotCommand"),
        scripts_directory: path(raw, "ScriptsDirectory"),
        max_concurrent_jobs: integer(raw, "MaximumConcurrentJobs", 20),
        messages,
        sd_connect_timeout: seconds(raw, "SdConnectTimeout", 1800),
        heartbeat_interval: seconds(raw, "HeartbeatInterval", 300),
        max_network_buffer_size: integer(raw, "MaximumNetworkBufferSize", 0),
        pki,
        tls,
        ver_id: bytes(raw, "VerId").unwrap_or_default(),
        max_bandwidth_per_job: long(raw, "MaximumBandwidthPerJob", 0),
        comm_compression: flag(raw, "CommCompression", true),
        disabled_commands,
        disable_command: list(raw, "DisableCommand"),
        max_job_error_count: integer(raw, "MaximumJobErrorCount", 1000),
        sd_packet_check: integer(raw, "SdPacketCheck", 0),
    }
}

pub(crate) fn messages(raw: &RawResource) -> Messages {
    Messages {
        name: text_of(raw.name()),
        description: bytes(raw, "Description").unwrap_or_default(),
        ..raw.messages.clone()
    }
}

pub(crate) fn console(raw: &RawResource) -> Console {
    Console {
        name: text_of(raw.name()),
        description: bytes(raw, "Description").unwrap_or_default(),
        password: password(raw),
        address: bytes(raw, "Address").map(|address| text_of(&address)),
        port: port(raw, "DirPort", 9101),
        tls: tls(raw),
    }
}

pub(crate) fn schedule(raw: &RawResource) -> Schedule {
    Schedule {
        name: text_of(raw.name()),
        description: bytes(raw, "Description").unwrap_or_default(),
        enabled: flag(raw, "Enabled", true),
        runs: raw.runs.clone(),
    }
}

pub(crate) fn statistics(raw: &RawResource) -> Statistics {
    Statistics {
        name: text_of(raw.name()),
        description: bytes(raw, "Description").unwrap_or_default(),
        prefix: bytes(raw, "Prefix"),
        metrics: list(raw, "Metrics"),
        interval: seconds(raw, "Interval", 300),
        port: port(raw, "Port", 0),
        host: bytes(raw, "Host").map(|host| text_of(&host)),
        kind: match raw.value("Type") {
            Value::Statistics(kind) => *kind,
            // The parser requires the directive.
            _ => StatisticsKind::Csv,
        },
        file: path(raw, "File"),
        mangle_metric: flag(raw, "MangleMetric", false),
    }
}

pub(crate) fn pki(raw: &RawResource) -> Pki {
    let encryption = flag(raw, "PkiEncryption", false);
    let files = |directive| list(raw, directive).into_iter().map(path_of).collect();
    Pki {
        signatures: encryption || flag(raw, "PkiSignatures", false),
        encryption,
        key_pair: path(raw, "PkiKeyPair"),
        signers: files("PkiSigner"),
        master_keys: files("PkiMasterKey"),
        cipher: match raw.value("PkiCipher") {
            Value::Cipher(cipher) => *cipher,
            _ => ContentCipher::default(),
        },
        digest: match raw.value("PkiDigest") {
            Value::Digest(digest) => *digest,
            _ => DigestKind::Sha256,
        },
    }
}

/// The Tls… directives. `TlsRequire` turns `TlsEnable` on when certificate material is named; which
/// counts depends on the resource (reference 01 §10.1).
pub(crate) fn tls(raw: &RawResource) -> Tls {
    let of_daemon = raw.kind == Kind::FileDaemon;
    let mut tls = Tls {
        enable: flag(raw, "TlsEnable", false),
        require: flag(raw, "TlsRequire", false),
        authenticate: flag(raw, "TlsAuthenticate", false),
        psk_enable: flag(raw, "TlsPskEnable", true),
        ca_file: path(raw, "TlsCaCertificateFile"),
        ca_dir: path(raw, "TlsCaCertificateDir"),
        cert: path(raw, "TlsCertificate"),
        key: path(raw, "TlsKey"),
        ..Tls::default()
    };
    if !of_daemon {
        tls.verify_peer = flag(raw, "TlsVerifyPeer", true);
        tls.allowed_cn = list(raw, "TlsAllowedCn");
        tls.dh = path(raw, "TlsDhFile");
    }
    let named = tls.cert.is_some() || tls.key.is_some();
    let authorities = of_daemon && (tls.ca_file.is_some() || tls.ca_dir.is_some());
    tls.enable |= tls.require && (named || authorities);
    tls
}

fn bytes(raw: &RawResource, directive: &str) -> Option<Vec<u8>> {
    match raw.value(directive) {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    }
}

fn path(raw: &RawResource, directive: &str) -> Option<PathBuf> {
    bytes(raw, directive).map(path_of)
}

fn path_of(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}

/// Names are ASCII, and a host whose name is not text can't be found anyway.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn list(raw: &RawResource, directive: &str) -> Vec<Vec<u8>> {
    match raw.value(directive) {
        Value::List(items) => items.clone(),
        _ => Vec::new(),
    }
}

fn flag(raw: &RawResource, directive: &str, default: bool) -> bool {
    match raw.value(directive) {
        Value::Flag(flag) => *flag,
        _ => default,
    }
}

fn integer(raw: &RawResource, directive: &str, default: u32) -> u32 {
    match raw.value(directive) {
        Value::Integer(number) => *number,
        _ => default,
    }
}

/// A port keeps the low 16 bits of its number, as in a socket address.
fn port(raw: &RawResource, directive: &str, default: u16) -> u16 {
    #[expect(clippy::cast_possible_truncation, reason = "that is what the stock daemon does to a port")]
    let port = integer(raw, directive, u32::from(default)) as u16;
    port
}

fn long(raw: &RawResource, directive: &str, default: u64) -> u64 {
    match raw.value(directive) {
        Value::Long(number) => *number,
        _ => default,
    }
}

fn seconds(raw: &RawResource, directive: &str, default: u64) -> Duration {
    Duration::from_secs(long(raw, directive, default))
}

fn password(raw: &RawResource) -> PasswordKey {
    match raw.value("Password") {
        Value::Secret(secret) => secret.key.clone(),
        // The parser requires the directive.
        _ => PasswordKey::of(b""),
    }
}
