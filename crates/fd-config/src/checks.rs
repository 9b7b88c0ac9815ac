//! The start-up checks: from a file's contents to a [`Config`] that holds together
//! (reference 06 §6.1).
//!
//! Checks go on after an error. For questions to the outside world a check calls the
//! [`Surroundings`].

mod defaults;
mod surroundings;

use self::defaults::text_of;
use crate::resources::{Config, FileDaemon, Pki, Tls};
use crate::stock_message::StockMessage;
use crate::syntax::directives::Kind;
use crate::syntax::document::{Document, RawResource};
use crate::syntax::error::fill;
use crate::texts::{self, Check};

pub use surroundings::{DirectoryState, KeyProblem, Surroundings, Unchecked};

/// The checks that failed, with the stock daemon's messages.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", first_line(messages))]
pub struct CheckFailure {
    messages: Vec<StockMessage>,
    hints: Vec<String>,
}

fn first_line(messages: &[StockMessage]) -> String {
    messages.first().map(|message| String::from_utf8_lossy(message.text()).trim_end().to_owned()).unwrap_or_default()
}

impl CheckFailure {
    /// What the daemon prints, in this order; it ends with status 1.
    pub fn messages(&self) -> &[StockMessage] {
        &self.messages
    }

    /// What to do about it, a line each; often nothing.
    pub fn explanation(&self) -> String {
        self.hints.iter().fold(String::new(), |text, hint| format!("{text}  {} {hint}\n", texts::HINT))
    }
}

/// Which program checks; their texts name different places, and `bfdjson` checks less.
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
                    Some((message, hint)) => {
                        Err(CheckFailure { messages: vec![message], hints: vec![hint.to_owned()] })
                    }
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
        let config = checker.run(&mut Unchecked(|_| vec![""]));
        if config.is_some() && checker.messages.is_empty() { Ok(()) } else { Err(checker.failure()) }
    }
}

/// Collects what is wrong.
struct Checker<'d> {
    document: &'d Document,
    program: Program,
    /// In front of messages: the program's name until the daemon's is known.
    name: String,
    messages: Vec<StockMessage>,
    hints: Vec<String>,
    failed: bool,
}

impl<'d> Checker<'d> {
    fn new(document: &'d Document, program: Program) -> Self {
        Self {
            document,
            program,
            name: texts::PROGRAM.to_owned(),
            messages: Vec::new(),
            hints: Vec::new(),
            failed: false,
        }
    }

    /// All checks that come before "Please correct configuration file".
    fn run(&mut self, surroundings: &mut dyn Surroundings) -> Option<Config> {
        let file_daemon = self.file_daemon(surroundings);
        if self.document.of_kind(Kind::Director).next().is_none() {
            self.fail(&texts::NO_DIRECTOR, &[]);
        }
        let mut directors = Vec::new();
        for raw in self.document.of_kind(Kind::Director) {
            let director = self.document.director(raw, self.disabled(raw, surroundings));
            self.server_tls(raw, &director.tls, surroundings);
            directors.push(director);
        }
        let mut consoles = Vec::new();
        for raw in self.document.of_kind(Kind::Console) {
            let console = defaults::console(raw);
            self.server_tls(raw, &console.tls, surroundings);
            consoles.push(console);
        }
        Some(Config {
            file_daemon: file_daemon?,
            directors,
            messages: self.document.of_kind(Kind::Messages).map(defaults::messages).collect(),
            consoles,
            schedules: self.document.of_kind(Kind::Schedule).map(defaults::schedule).collect(),
            statistics: self.document.of_kind(Kind::Statistics).map(defaults::statistics).collect(),
        })
    }

    /// The message that ends a failed check.
    fn failure(mut self) -> CheckFailure {
        let (text, location) = self.text(&texts::PLEASE_CORRECT, &[]);
        self.messages.push(StockMessage::error(&self.name, location.unwrap_or_default(), &text));
        CheckFailure { messages: self.messages, hints: self.hints }
    }

    /// The template's values come first, then the file's name.
    fn text(&self, check: &Check, values: &[&[u8]]) -> (Vec<u8>, Option<&'static str>) {
        let mut values: Vec<Vec<u8>> = values.iter().map(|value| value.to_vec()).collect();
        values.push(self.document.file.clone());
        let location = match self.program {
            Program::Daemon => Some(check.daemon),
            Program::Json => check.json,
        };
        (fill(check.template, &values), location)
    }

    /// Notes that a check failed. A check that `bfdjson` does not have is ignored there.
    fn fail(&mut self, check: &Check, values: &[&[u8]]) {
        if let (text, Some(location)) = self.text(check, values) {
            self.failed = true;
            if !check.hint.is_empty() {
                self.hints.push(check.hint.to_owned());
            }
            self.messages.push(StockMessage::fatal(&self.name, location, &text));
        }
    }

    fn key_problem(&mut self, problem: &KeyProblem, check: &Check, values: &[&[u8]]) {
        for line in &problem.lines {
            self.messages.push(StockMessage::debug(&self.name, &format!("{}{line}", texts::OPENSSL_LINE)));
        }
        if !problem.hint.is_empty() && !self.hints.contains(&problem.hint) {
            self.hints.push(problem.hint.clone());
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
        let disabled = self.disabled(raw, surroundings);
        let tls = defaults::tls(raw);
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
        let pki = defaults::pki(raw);
        self.pki(&name, &pki, surroundings);
        Some(defaults::file_daemon(raw, messages.unwrap_or_default(), disabled, tls, pki))
    }

    fn disabled(&mut self, raw: &RawResource, surroundings: &mut dyn Surroundings) -> Vec<&'static str> {
        let mut disabled = Vec::new();
        for item in defaults::list(raw, "DisableCommand") {
            let commands = surroundings.disabled_by(&item);
            if commands.is_empty() && self.program != Program::Json {
                self.failed = true;
                self.messages.push(StockMessage::job_fatal(&self.name, &fill(texts::UNKNOWN_COMMAND, &[item])));
            }
            disabled.extend(commands);
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

    /// The message and the advice if it can't be used.
    fn working_directory(
        &self,
        daemon: &FileDaemon,
        surroundings: &mut dyn Surroundings,
    ) -> Option<(StockMessage, &'static str)> {
        let check = match surroundings.directory(&daemon.working_directory) {
            DirectoryState::Directory => return None,
            DirectoryState::Missing => &texts::WORKING_DIRECTORY_MISSING,
            DirectoryState::NotADirectory => &texts::WORKING_DIRECTORY_IS_NONE,
        };
        let path = daemon.working_directory.as_os_str().as_encoded_bytes();
        let (text, location) = self.text(check, &[path]);
        Some((StockMessage::termination(&self.name, location.unwrap_or_default(), &text), check.hint))
    }
}
