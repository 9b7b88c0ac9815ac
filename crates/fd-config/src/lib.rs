//! `bacula-fd.conf`, read into immutable types.
//!
//! The way through the crate: bytes come from a [`Source`] that the caller implements, the lexer
//! makes tokens of them, the parser makes resources, and the start-up checks make of these one
//! [`Config`], which can't hold a reference to something that does not exist. An error is a value
//! with the stock daemon's text, byte for byte, and an explanation of our own.
//!
//! Not here: opening files, running programs, resolving host names (the [`Source`] does), loading
//! keys, starting anything.

mod checks;
mod json;
mod load;
mod resources;
mod settings;
mod stock_message;
mod syntax;
mod texts;
mod values;

pub use checks::{CheckFailure, DirectoryState, KeyProblem, Surroundings, Unchecked};
pub use json::JsonOptions;
pub use load::{LoadError, load, parse, parse_for_json};
pub use resources::{
    CalendarHour, Config, ConnectRun, Console, Destination, DestinationKind, Director, FileDaemon, Messages,
    PasswordKey, Pki, Schedule, Statistics, StatisticsKind, Tls, TypeSet,
};
pub use settings::{
    ConnectionSettings, JobSettings, LogFormat, LogLevel, LogSettings, MetricsSettings, SETTINGS_FILE, Settings,
    SettingsError, TlsSettings,
};
pub use stock_message::StockMessage;
pub use syntax::document::Document;
pub use syntax::error::{Place, SyntaxError};
pub use syntax::source::{AddressFamily, Source};
