//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// Stops another process at its system calls.
#[derive(Debug, Parser)]
pub(crate) struct Arguments {
    /// Whose rights the other user has.
    #[arg(long, default_value_t = 65534)]
    pub(crate) uid: u32,
    /// What the other user puts into another's place: below a folder named like the rule's, a
    /// `file` and a directory `dir`.
    #[arg(long, default_value = "/nonexistent")]
    pub(crate) spare: PathBuf,
    /// Where the other user puts what was in the place.
    #[arg(long, default_value = "/nonexistent")]
    pub(crate) grave: PathBuf,
    /// Where the other user's symbolic links lead.
    #[arg(long, default_value = "/nonexistent")]
    pub(crate) lure: PathBuf,
    /// Only be the other user: takes orders from standard input.
    #[arg(long, hide = true)]
    pub(crate) act: bool,
    /// Where each call that a rule may be about is noted before it is done: `THREAD CALL PATHS`.
    #[arg(long)]
    pub(crate) log: Option<PathBuf>,
    /// The process.
    pub(crate) pid: i32,
    /// The file with the rules.
    pub(crate) rules: PathBuf,
}
