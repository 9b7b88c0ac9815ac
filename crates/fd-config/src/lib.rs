//! `bacula-fd.conf` and `bacula-fd.toml`, read into immutable types.
//!
//! - `syntax`: from bytes to the values in the file: source, lexer, grammar, tables of directives
//! - `values`: each type of value with its own rules
//! - `resources`: the typed resources, as one [`Config`]
//! - `checks`: the start-up checks, so that a [`Config`] refers to nothing that does not exist
//! - `settings`: `bacula-fd.toml`; `json`: the view that `bfdjson` prints
//! - `getopt`: a command line, taken apart
//!
//! An error is a value with the stock daemon's text, without passwords, and an explanation of our
//! own.
//!
//! Not here: opening files, running programs, resolving host names (the [`Source`] does), loading
//! keys, starting anything.

mod checks;
mod json;
mod load;
mod removed;
mod resources;
mod settings;
mod stock_message;
mod syntax;
mod texts;
mod values;

pub mod getopt;

pub use checks::{CheckFailure, DirectoryState, KeyProblem, Surroundings, Unchecked};
pub use json::JsonOptions;
pub use load::{LoadError, load, parse, parse_for_json};
pub use removed::Removed;
pub use resources::{
    CalendarHour, Config, ConnectRun, Console, Destination, DestinationKind, Director, FileDaemon, Messages,
    PasswordKey, Pki, Schedule, Statistics, StatisticsKind, Tls, TypeSet,
};
pub use settings::{
    Bpipe, ConnectionSettings, JobInodeScan, JobManners, JobSettings, LogFormat, LogLevel, LogSettings,
    MetricsSettings, PluginHostSettings, PluginSettings, RestoreCommands, SETTINGS_FILE, Settings, SettingsError,
    TlsSettings,
};
pub use stock_message::StockMessage;
pub use syntax::document::Document;
pub use syntax::error::{Place, SyntaxError};
pub use syntax::source::{AddressFamily, MAX_FILE, Source};
