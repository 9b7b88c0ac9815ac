//! The options (reference 07 §12.7).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use fd_config::getopt;

/// Where the configuration is; in the second place with packages of bacula.org.
const FILES: [&str; 2] = ["/etc/bacula/bsnapshot.conf", "/opt/bacula/etc/bsnapshot.conf"];

/// A command line that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// `-c`, or the default.
    pub(crate) settings_file: PathBuf,
    /// Whether `-c` was there: then the file must exist.
    pub(crate) settings_given: bool,
    /// `-d`, plus one for each `-v`.
    pub(crate) debug: u32,
    /// `-o`.
    pub(crate) log: Option<PathBuf>,
    /// `-s`.
    pub(crate) sudo: bool,
    /// `-t`.
    pub(crate) check: bool,
    /// `-T`.
    pub(crate) kind: Option<OsString>,
    /// `-V`.
    pub(crate) volume: Option<OsString>,
}

impl Arguments {
    /// Reads the arguments; the first one is the program's own name.
    ///
    /// # Errors
    /// The complaint for standard error, without LF; empty for `-?`.
    pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, Vec<u8>> {
        let apart = getopt::take_apart(arguments, b"cdoTV", b"stv")?;
        if !apart.positional.is_empty() {
            return Err(Vec::new());
        }
        let mut read = Self {
            settings_file: first_that_is_there(FILES.map(Path::new)).to_owned(),
            settings_given: false,
            debug: 0,
            log: None,
            sudo: false,
            check: false,
            kind: None,
            volume: None,
        };
        for (option, value) in apart.options {
            match option {
                b'c' => {
                    read.settings_file = PathBuf::from(OsString::from_vec(value));
                    read.settings_given = true;
                }
                b'd' => read.debug = String::from_utf8_lossy(&value).parse().unwrap_or(1),
                b'o' => read.log = Some(PathBuf::from(OsString::from_vec(value))),
                b's' => read.sudo = true,
                b't' => read.check = true,
                b'T' => read.kind = Some(OsString::from_vec(value)),
                b'V' => read.volume = Some(OsString::from_vec(value)),
                _ => read.debug = read.debug.saturating_add(1),
            }
        }
        Ok(read)
    }
}

/// The first of these places in which there is something, or else the first one.
fn first_that_is_there([first, second]: [&Path; 2]) -> &Path {
    if !first.exists() && second.exists() { second } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Arguments, Vec<u8>> {
        Arguments::parse(std::iter::once("bsnapshot").chain(words.iter().copied()).map(OsString::from))
    }

    #[test]
    fn what_the_daemon_appends_for_debugging_is_understood() {
        let read = parse(&["-d", "200", "-o", "/var/lib/bacula/bsnapshot.log"]).unwrap();
        assert_eq!((read.debug, read.log.as_deref()), (200, Some(Path::new("/var/lib/bacula/bsnapshot.log"))));
        assert_eq!(
            (read.settings_file.as_path(), read.settings_given),
            (Path::new("/etc/bacula/bsnapshot.conf"), false)
        );
    }

    #[test]
    fn the_configuration_is_found_where_packages_of_bacula_org_have_it() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = ["first.conf", "second.conf"].map(|name| folder.path().join(name));
        let found = || first_that_is_there([&first, &second]).to_owned();
        assert_eq!(found(), first);
        std::fs::write(&second, "").unwrap();
        assert_eq!(found(), second);
        std::fs::write(&first, "").unwrap();
        assert_eq!(found(), first);
    }

    #[test]
    fn each_option_is_taken() {
        let read = parse(&["-stvv", "-c", "my.conf", "-T", "zfs", "-Vtank@a"]).unwrap();
        assert!(read.sudo && read.check && read.settings_given);
        assert_eq!((read.debug, read.settings_file), (2, PathBuf::from("my.conf")));
        assert_eq!((read.kind, read.volume), (Some("zfs".into()), Some("tank@a".into())));
    }

    #[test]
    fn what_is_unknown_is_refused() {
        assert_eq!(parse(&["-x"]).unwrap_err(), b"bsnapshot: invalid option -- 'x'");
        assert_eq!(parse(&["create"]).unwrap_err(), b"");
    }
}
