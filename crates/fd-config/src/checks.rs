//! The start-up checks: from a file's contents to a [`Config`] that holds together (reference 06 §6.1).
//!
//! Checks go on after an error. Where a check needs the outside world it asks the [`Surroundings`].

use core::time::Duration;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use crate::directives::Kind;
use crate::document::{Document, RawResource, Value};
use crate::error::fill;
use crate::resources::{
    Config, Console, Director, DisabledCommands, FileDaemon, Messages, PasswordKey, Pki, Schedule, Statistics,
    StatisticsKind, Tls,
};
use crate::stock::StockMessage;
use crate::texts::{self, Check};

/// What a directory turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DirectoryState {
    /// It is there.
    Directory,
    /// There is something else.
    NotADirectory,
    /// There is nothing.
    Missing,
}

/// A key or certificate that can't be used: what the library says, one line each, for example
/// `Unable to open certificate file: ERR=error:80000002:system library::No such file or directory`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyProblem {
    /// May be empty.
    pub lines: Vec<String>,
}

/// What the checks want to know of the outside world.
pub trait Surroundings {
    /// Whether a TLS context can be built of these files. Only the first problem of all resources is asked for.
    ///
    /// # Errors
    /// What is wrong with a file.
    fn tls_context(&mut self, tls: &Tls) -> Result<(), KeyProblem>;

    /// Whether the file holds a certificate with a public key that we can use.
    ///
    /// # Errors
    /// What is wrong with it.
    fn certificate(&mut self, file: &Path) -> Result<(), KeyProblem>;

    /// Whether the file holds an unencrypted private key.
    ///
    /// # Errors
    /// What is wrong with it.
    fn private_key(&mut self, file: &Path) -> Result<(), KeyProblem>;

    /// Whether the file looks as if it holds a private key, good or bad.
    fn mentions_private_key(&mut self, file: &Path) -> bool;

    /// What is at this path, following symbolic links.
    fn directory(&mut self, path: &Path) -> DirectoryState;
}

/// Surroundings in which everything is well: for tests, and for programs that only look at the text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unchecked;

impl Surroundings for Unchecked {
    fn tls_context(&mut self, _tls: &Tls) -> Result<(), KeyProblem> {
        Ok(())
    }

    fn certificate(&mut self, _file: &Path) -> Result<(), KeyProblem> {
        Ok(())
    }

    fn private_key(&mut self, _file: &Path) -> Result<(), KeyProblem> {
        Ok(())
    }

    fn mentions_private_key(&mut self, _file: &Path) -> bool {
        false
    }

    fn directory(&mut self, _path: &Path) -> DirectoryState {
        DirectoryState::Directory
    }
}

/// The checks that failed, in the stock daemon's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", first_line(messages))]
pub struct CheckFailure {
    messages: Vec<StockMessage>,
}

fn first_line(messages: &[StockMessage]) -> String {
    messages.first().map(|message| String::from_utf8_lossy(message.text()).trim_end().to_owned()).unwrap_or_default()
}

impl CheckFailure {
    /// What the daemon prints, in this order; it ends with status 1.
    pub fn messages(&self) -> &[StockMessage] {
        &self.messages
    }
}

/// Which program checks; their texts name different places, and `bfdjson` looks at less.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Program {
    /// The daemon.
    Daemon,
    /// The program that prints the JSON view.
    Json,
}

impl Document {
    /// Checks the whole for the daemon and gives every value its type.
    ///
    /// # Errors
    /// [`CheckFailure`] with everything that is wrong.
    pub fn check(&self, surroundings: &mut dyn Surroundings) -> Result<Config, CheckFailure> {
        let mut checker = Checker::new(self, Program::Daemon);
        let config = checker.run(surroundings);
        match config {
            Some(config) if checker.messages.is_empty() => {
                match checker.working_directory(&config.file_daemon, surroundings) {
                    None => Ok(config),
                    Some(message) => Err(CheckFailure { messages: vec![message] }),
                }
            }
            _ => Err(checker.failure()),
        }
    }

    /// Checks what `bfdjson` checks.
    ///
    /// # Errors
    /// [`CheckFailure`] with everything that is wrong.
    pub fn check_for_json(&self) -> Result<(), CheckFailure> {
        let mut checker = Checker::new(self, Program::Json);
        let config = checker.run(&mut Unchecked);
        if config.is_some() && checker.messages.is_empty() { Ok(()) } else { Err(checker.failure()) }
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &RawResource> {
        self.resources.iter().filter(move |resource| resource.kind == kind)
    }
}

/// Collects what is wrong.
struct Checker<'d> {
    document: &'d Document,
    program: Program,
    /// In front of messages: the program's name until the daemon's is known.
    name: String,
    messages: Vec<StockMessage>,
    failed: bool,
}

impl<'d> Checker<'d> {
    fn new(document: &'d Document, program: Program) -> Self {
        Self { document, program, name: texts::PROGRAM.to_owned(), messages: Vec::new(), failed: false }
    }

    /// All checks that come before "Please correct configuration file".
    fn run(&mut self, surroundings: &mut dyn Surroundings) -> Option<Config> {
        let file_daemon = self.file_daemon(surroundings);
        if self.document.of_kind(Kind::Director).next().is_none() {
            self.fail(&texts::NO_DIRECTOR, &[]);
        }
        let mut directors = Vec::new();
        for raw in self.document.of_kind(Kind::Director) {
            let director = self.document.director(raw, self.disabled(raw));
            self.server_tls(raw, &director.tls, surroundings);
            directors.push(director);
        }
        let mut consoles = Vec::new();
        for raw in self.document.of_kind(Kind::Console) {
            let console = console(raw);
            self.server_tls(raw, &console.tls, surroundings);
            consoles.push(console);
        }
        Some(Config {
            file_daemon: file_daemon?,
            directors,
            messages: self.document.of_kind(Kind::Messages).map(messages).collect(),
            consoles,
            schedules: self.document.of_kind(Kind::Schedule).map(schedule).collect(),
            statistics: self.document.of_kind(Kind::Statistics).map(statistics).collect(),
        })
    }

    /// The message that ends a failed check.
    fn failure(mut self) -> CheckFailure {
        let (text, location) = self.text(&texts::PLEASE_CORRECT, &[]);
        self.messages.push(StockMessage::error(&self.name, location.unwrap_or_default(), &text));
        CheckFailure { messages: self.messages }
    }

    /// Values go in first, then the file's name.
    fn text(&self, check: &Check, values: &[&[u8]]) -> (Vec<u8>, Option<&'static str>) {
        let mut values: Vec<Vec<u8>> = values.iter().map(|value| value.to_vec()).collect();
        values.push(self.document.file.clone());
        let location = match self.program {
            Program::Daemon => Some(check.daemon),
            Program::Json => check.json,
        };
        (fill(check.template, &values), location)
    }

    /// Notes that a check failed. A check that `bfdjson` does not know counts for nothing there.
    fn fail(&mut self, check: &Check, values: &[&[u8]]) {
        if let (text, Some(location)) = self.text(check, values) {
            self.failed = true;
            self.messages.push(StockMessage::fatal(&self.name, location, &text));
        }
    }

    fn key_problem(&mut self, problem: &KeyProblem, check: &Check, values: &[&[u8]]) {
        for line in &problem.lines {
            self.messages.push(StockMessage::debug(&self.name, &format!("{}{line}", texts::OPENSSL_LINE)));
        }
        self.fail(check, values);
    }

    fn file_daemon(&mut self, surroundings: &mut dyn Surroundings) -> Option<FileDaemon> {
        let mut all = self.document.of_kind(Kind::FileDaemon);
        let Some(raw) = all.next() else {
            self.fail(&texts::NO_FILE_DAEMON, &[]);
            return None;
        };
        if all.next().is_some() {
            self.fail(&texts::SECOND_FILE_DAEMON, &[]);
        }
        self.name = text_of(raw.name());
        let messages = self.document.daemon_messages(raw);
        if messages.is_none() {
            self.fail(&texts::NO_MESSAGES, &[]);
        }
        let disabled = self.disabled(raw);
        let tls = tls(raw);
        let name = raw.name().to_vec();
        if (tls.enable || tls.authenticate) && tls.ca_file.is_none() && tls.ca_dir.is_none() {
            self.fail(&texts::DAEMON_WITHOUT_CA, &[]);
        }
        if !self.failed
            && (tls.enable || tls.authenticate)
            && let Err(problem) = surroundings.tls_context(&tls)
        {
            self.key_problem(&problem, &texts::DAEMON_TLS_CONTEXT, &[&name]);
        }
        let pki = pki(raw);
        self.pki(&name, &pki, surroundings);
        Some(file_daemon(raw, messages.unwrap_or_default(), disabled, tls, pki))
    }

    fn disabled(&mut self, raw: &RawResource) -> DisabledCommands {
        let mut disabled = DisabledCommands::default();
        for item in list(raw, "DisableCommand") {
            if !disabled.disable(&item) && self.program == Program::Daemon {
                self.failed = true;
                self.messages.push(StockMessage::job_fatal(&self.name, &fill(texts::UNKNOWN_COMMAND, &[item])));
            }
        }
        disabled
    }

    fn pki(&mut self, name: &[u8], pki: &Pki, surroundings: &mut dyn Surroundings) {
        if !pki.signatures && !pki.encryption {
            return;
        }
        let Some(key_pair) = &pki.key_pair else {
            self.fail(&texts::NO_KEY_PAIR, &[name]);
            return;
        };
        if self.failed || self.program == Program::Json {
            return;
        }
        if let Err(problem) = surroundings.certificate(key_pair) {
            self.key_problem(&problem, &texts::BAD_CERTIFICATE, &[name]);
        }
        if let Err(problem) = surroundings.private_key(key_pair) {
            self.key_problem(&problem, &texts::BAD_PRIVATE_KEY, &[name]);
        }
        for signer in &pki.signers {
            let file = signer.as_os_str().as_encoded_bytes();
            if surroundings.mentions_private_key(signer)
                && let Err(problem) = surroundings.private_key(signer)
            {
                self.key_problem(&problem, &texts::BAD_SIGNER_KEY, &[file, name]);
            }
            if let Err(problem) = surroundings.certificate(signer) {
                self.key_problem(&problem, &texts::BAD_SIGNER, &[file, name]);
            }
        }
        for master in &pki.master_keys {
            if let Err(problem) = surroundings.certificate(master) {
                let file = master.as_os_str().as_encoded_bytes();
                self.key_problem(&problem, &texts::BAD_MASTER_KEY, &[file, name]);
            }
        }
    }

    /// The side that accepts connections needs certificate and key.
    fn server_tls(&mut self, raw: &RawResource, tls: &Tls, surroundings: &mut dyn Surroundings) {
        if !tls.enable && !tls.authenticate {
            return;
        }
        let texts = if raw.kind == Kind::Director { &texts::DIRECTOR_TLS } else { &texts::CONSOLE_TLS };
        let name = raw.name().to_vec();
        if tls.cert.is_none() {
            self.fail(&texts.no_certificate, &[&name]);
        }
        if tls.key.is_none() {
            self.fail(&texts.no_key, &[&name]);
        }
        if tls.verify_peer && tls.ca_file.is_none() && tls.ca_dir.is_none() {
            self.fail(&texts.no_ca, &[&name]);
        }
        if !self.failed
            && self.program == Program::Daemon
            && let Err(problem) = surroundings.tls_context(tls)
        {
            self.key_problem(&problem, &texts.context, &[&name]);
        }
    }

    fn working_directory(&self, daemon: &FileDaemon, surroundings: &mut dyn Surroundings) -> Option<StockMessage> {
        let check = match surroundings.directory(&daemon.working_directory) {
            DirectoryState::Directory => return None,
            DirectoryState::Missing => &texts::WORKING_DIRECTORY_MISSING,
            DirectoryState::NotADirectory => &texts::WORKING_DIRECTORY_IS_NONE,
        };
        let path = daemon.working_directory.as_os_str().as_encoded_bytes();
        let (text, location) = self.text(check, &[path]);
        Some(StockMessage::termination(&self.name, location.unwrap_or_default(), &text))
    }
}

impl Document {
    /// The Messages resource that the daemon names, else the first one.
    fn daemon_messages(&self, raw: &RawResource) -> Option<Messages> {
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

    fn director(&self, raw: &RawResource, disabled_commands: DisabledCommands) -> Director {
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

fn file_daemon(
    raw: &RawResource,
    messages: Messages,
    disabled_commands: DisabledCommands,
    tls: Tls,
    pki: Pki,
) -> FileDaemon {
    FileDaemon {
        name: text_of(raw.name()),
        description: bytes(raw, "Description").unwrap_or_default(),
        addresses: raw.addresses.to_list(),
        source_address: raw.source_address,
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
        max_job_error_count: integer(raw, "MaximumJobErrorCount", 1000),
        sd_packet_check: integer(raw, "SdPacketCheck", 0),
    }
}

fn messages(raw: &RawResource) -> Messages {
    Messages {
        name: text_of(raw.name()),
        description: bytes(raw, "Description").unwrap_or_default(),
        ..raw.messages.clone()
    }
}

fn console(raw: &RawResource) -> Console {
    Console {
        name: text_of(raw.name()),
        description: bytes(raw, "Description").unwrap_or_default(),
        password: password(raw),
        address: bytes(raw, "Address").map(|address| text_of(&address)),
        port: port(raw, "DirPort", 9101),
        tls: tls(raw),
    }
}

fn schedule(raw: &RawResource) -> Schedule {
    Schedule {
        name: text_of(raw.name()),
        description: bytes(raw, "Description").unwrap_or_default(),
        enabled: flag(raw, "Enabled", true),
        runs: raw.runs.clone(),
    }
}

fn statistics(raw: &RawResource) -> Statistics {
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

fn pki(raw: &RawResource) -> Pki {
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
            _ => crate::PkiCipher::default(),
        },
        digest: match raw.value("PkiDigest") {
            Value::Digest(digest) => *digest,
            _ => crate::PkiDigest::default(),
        },
    }
}

/// The Tls… directives. `TlsRequire` turns `TlsEnable` on when certificate material is named; which counts depends on
/// the resource (reference 01 §10.1).
fn tls(raw: &RawResource) -> Tls {
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
fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn list(raw: &RawResource, directive: &str) -> Vec<Vec<u8>> {
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

/// A port keeps the low 16 bits of its number, as it would on its way into a socket address.
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
