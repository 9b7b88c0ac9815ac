//! `bfdjson`: the configuration as JSON, for web front ends (reference 06 §13). The same program
//! under another name.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;

use fd_config::{JsonOptions, StockMessage, getopt};
use fd_os::regex::{PosixRegex, RegexOptions};

use crate::daemon::cli::{self, CliError};
use crate::daemon::host::Host;
use crate::print::{print, say};
use crate::texts;

/// What the command line asks for.
#[derive(Debug, Default)]
struct Wish {
    file: OsString,
    data_only: bool,
    resource: Option<Vec<u8>>,
    name: Option<Vec<u8>>,
    directives: Option<Vec<u8>>,
    test_only: bool,
    verbose: bool,
}

/// Runs the program; returns its exit status.
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    match parse(arguments) {
        Ok(wish) => show(&wish),
        Err(error) => {
            print(&mut io::stderr(), &error.standard_error(texts::JSON_USAGE));
            1
        }
    }
}

fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Wish, CliError> {
    let usage = |complaint| CliError::Usage { complaint };
    let mut apart = getopt::take_apart(arguments, b"rnlcd", b"Dtv").map_err(usage)?;
    let mut wish = Wish::default();
    let mut file = None;
    for (option, value) in apart.options {
        match option {
            b'r' => wish.resource = Some(value),
            b'n' => wish.name = Some(value),
            b'l' => wish.directives = Some(value),
            b'c' => file = Some(value),
            b'D' => wish.data_only = true,
            b't' => wish.test_only = true,
            b'v' => wish.verbose = true,
            // -d: there are no debug lines here.
            _ => {}
        }
    }
    if apart.positional.len() > 1 || (wish.directives.is_some() && wish.resource.is_none()) {
        return Err(usage(Vec::new()));
    }
    let named = apart.positional.pop().or(file).filter(|name| !name.is_empty());
    wish.file = cli::resolve(named.unwrap_or_else(cli::default_file));
    Ok(wish)
}

fn show(wish: &Wish) -> u8 {
    if wish.test_only && wish.verbose {
        let line = [b"config_file=", wish.file.as_bytes(), b"\n"].concat();
        print(&mut io::stdout(), &line);
    }
    let filter = match wish.directives.as_deref().map(compiled).transpose() {
        Ok(filter) => filter,
        Err(message) => {
            say(Some(message));
            return 1;
        }
    };
    let document = match fd_config::parse_for_json(wish.file.as_bytes(), &mut Host) {
        Ok(document) => document,
        Err(error) => {
            say(Some(error.message()));
            print(&mut io::stderr(), error.explanation().as_bytes());
            return error.exit_status();
        }
    };
    if let Err(failure) = document.check_for_json() {
        for message in failure.messages() {
            say(Some(message.clone()));
        }
        return 1;
    }
    if !wish.test_only {
        let wanted = filter.map(|regex| move |name: &str| regex.is_match(name.as_bytes()));
        let json = document.to_json(&JsonOptions {
            data_only: wish.data_only,
            resource: wish.resource.as_deref(),
            name: wish.name.as_deref(),
            directives: wanted.as_ref().map(|wanted| wanted as &dyn Fn(&str) -> bool),
        });
        print(&mut io::stdout(), &json);
    }
    0
}

fn compiled(expression: &[u8]) -> Result<PosixRegex, StockMessage> {
    let options = RegexOptions { ignore_case: false, newline: false };
    // No bound is needed: the user who wrote it waits for it.
    PosixRegex::new(expression, options)
        .map_err(|_| StockMessage::job_termination("bacula-fd", &texts::bad_directives(expression)))
}
