//! `bed`: sets the bed up, raises one for a human, or shows that ferrofd can replace the stock
//! daemon.

mod demo;
mod matching;
mod records;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use bed::{Bed, BedError, BedOptions, ClientOptions, Fd, RecordRules, Records, compare_records, say};

/// A test bed of an unmodified Bacula 15.0.3 on loopback.
#[derive(Debug, Parser)]
#[command(name = "bed")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Unpack Bacula 15.0.3 into the cache (or look at `BACULA_ROOT`), once per host.
    Setup,
    /// Raise a bed and keep it until Ctrl-C.
    Up {
        /// Which File Daemons it has.
        #[arg(value_enum, default_values = ["stock"])]
        clients: Vec<Fd>,
    },
    /// Show that ferrofd takes the stock daemon's place: save, restore, compare everything, measure
    /// both.
    Demo {
        /// A small tree made for it instead of a real one.
        #[arg(long)]
        short: bool,
        /// The tree to save; /usr/share when large enough, else the largest of some.
        #[arg(long, conflicts_with = "short")]
        tree: Option<PathBuf>,
    },
    /// The records of what the stock daemon did, which `make test` compares with.
    #[command(subcommand)]
    Records(records::Action),
    /// Whether two sessions wrote the same records, but for access times.
    SameRecords {
        /// `VolSessionId:VolSessionTime` of the first.
        left: String,
        /// Of the second.
        right: String,
        /// The volumes that hold both, in order.
        #[arg(required = true)]
        volumes: Vec<PathBuf>,
    },
    /// Measure what a FileSet with many patterns costs both daemons.
    Matching {
        /// How many patterns.
        #[arg(long, default_value_t = 1000)]
        patterns: usize,
        /// How many estimates of each kind.
        #[arg(long, default_value_t = 3)]
        rounds: usize,
    },
}

fn main() -> ExitCode {
    let code = |good: bool| if good { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    let result = match Arguments::parse().command {
        Command::Setup => bed::setup::root(&mut |step| say(step)).map(|_| ExitCode::SUCCESS),
        Command::Up { clients } => up(&clients),
        Command::Demo { short, tree } => demo::run(demo::Choice { short, tree }).map(code),
        Command::SameRecords { left, right, volumes } => same_records(&left, &right, &volumes).map(code),
        Command::Records(action) => records::run(&action).map(|()| ExitCode::SUCCESS),
        Command::Matching { patterns, rounds } => matching::run(patterns, rounds).map(code),
    };
    result.unwrap_or_else(|error| {
        // Standard error may be closed, and then the error can't be reported.
        let _ = writeln!(io::stderr(), "bed: {error}");
        ExitCode::FAILURE
    })
}

/// Says how the records of two sessions differ.
fn same_records(left: &str, right: &str, volumes: &[PathBuf]) -> bed::Result<bool> {
    let records = |session: &str| {
        let numbers = session.split_once(':').and_then(|(id, time)| Some((id.parse().ok()?, time.parse().ok()?)));
        let session = numbers.ok_or_else(|| BedError::Usage(format!("no session: {session:?}")))?;
        Records::new(volumes.to_vec(), Some(session))
    };
    let found = compare_records(records(left)?, records(right)?, RecordRules { mask_atime: true })?;
    say(&found.text());
    Ok(found.is_equal() && found.records > 0)
}

/// Raises a bed for a human.
fn up(clients: &[Fd]) -> bed::Result<ExitCode> {
    let ends = bed::block_ends()?;
    bed::setup::root(&mut |step| say(step))?;
    let clients: Vec<_> = clients.iter().copied().map(ClientOptions::new).collect();
    let names: Vec<_> = clients.iter().map(|client| client.name.clone()).collect();
    let options = BedOptions::new("up", clients)?;
    let source = options.source()?;
    let mut bed = Bed::start(options)?;
    say(&format!("The bed is in {}.", bed.folder().display()));
    say(&format!("Director on port {}, Storage Daemon on port {}.", bed.director().port(), bed.storage().port()));
    for name in names {
        say(&format!(
            "Client {name}-fd on port {}; `run job=backup-{name}` saves {}.",
            bed.client(&name)?.port(),
            source.display()
        ));
    }
    let console: Vec<_> = bed.console_argv()?.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    say(&format!("Console:\n  {}", console.join(" ")));
    say("Ctrl-C ends it.");
    ends.wait().map_err(|source| BedError::System { what: "sigwait", source })?;
    say("Ending.");
    Ok(ExitCode::SUCCESS)
}
