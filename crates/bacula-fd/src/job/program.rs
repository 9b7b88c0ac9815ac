//! Programs that are to run, and how those that ran or could not run are reported, with the stock
//! daemon's words and numbers (reference 02 §10.5).

use std::ffi::OsStr;
use std::fs;
use std::io::{self, PipeReader};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use fd_fileset::{ProgramNotAllowed, check_allowed, lies_in};
use fd_messages::split_arguments;
use fd_os::io_error_text;
use fd_os::process::{Group, IsWanted, Program, no_input};
use fd_walk::real_path;
use nix::errno::Errno;

use crate::texts::NO_PROGRAM;

/// Why a command was not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotRun {
    /// There is no word in it.
    #[error("{NO_PROGRAM}")]
    Empty,
    /// *Allowed Script Directories* do not have it.
    #[error("{0}")]
    Refused(ProgramNotAllowed),
    /// The system has no process for it now.
    #[error("{}", io_error_text(.0))]
    NoProcess(io::Error),
    /// The program can't be executed.
    #[error("{}", io_error_text(.0))]
    Exec(io::Error),
}

impl From<io::Error> for NotRun {
    fn from(error: io::Error) -> Self {
        // EAGAIN, ENOMEM, ENFILE, EMFILE: as a rule they come from making a process and its pipes,
        // not from the program.
        if matches!(error.raw_os_error(), Some(11 | 12 | 23 | 24)) { Self::NoProcess(error) } else { Self::Exec(error) }
    }
}

/// Starts a command line as long as it is wanted, without input; see [`prepare`]. Its output and
/// its errors come through one pipe, in the order in which it writes them.
pub(crate) fn start_while(
    command: &[u8],
    allowed: &[Vec<u8>],
    group: Group,
    wanted: IsWanted<'_>,
) -> Result<(Program, PipeReader), NotRun> {
    start_words_while(command, &split_arguments(command), allowed, |_| {}, group, wanted)
}

/// [`start_while`] for a command line that is split already; `command` is what is checked. `dress`
/// gives the program what else it needs.
pub(crate) fn start_words_while(
    command: &[u8],
    words: &[Vec<u8>],
    allowed: &[Vec<u8>],
    dress: impl FnOnce(&mut Command) + Send + 'static,
    group: Group,
    wanted: IsWanted<'_>,
) -> Result<(Program, PipeReader), NotRun> {
    let pipe = io::pipe().and_then(|(reader, writer)| Ok((reader, writer.try_clone()?, writer)));
    let (reader, output, errors) = pipe.map_err(NotRun::NoProcess)?;
    let (command, words, allowed) = (command.to_vec(), words.to_vec(), allowed.to_vec());
    let make = move || {
        let mut process = prepare(&command, &words, &allowed)?;
        process.stdin(no_input()).stdout(output).stderr(errors);
        dress(&mut process);
        Ok(process)
    };
    Program::start_while(make, group, wanted).map(|program| (program, reader))
}

/// The command line as a process that is to be started. With *Allowed Script Directories* the
/// program's own path, links followed, has to be in one of them, too; and that path is executed, so
/// that no link can put another program in its place.
fn prepare(command: &[u8], words: &[Vec<u8>], allowed: &[Vec<u8>]) -> Result<Command, NotRun> {
    check_allowed(command, allowed).map_err(NotRun::Refused)?;
    let (name, arguments) = words.split_first().ok_or(NotRun::Empty)?;
    let name = OsStr::from_bytes(name);
    let mut process = if allowed.is_empty() {
        fd_os::process::command(name)
    } else {
        let real = fs::canonicalize(name).map_err(NotRun::Exec)?;
        let path = real.as_os_str().as_bytes();
        if !allowed.iter().any(|directory| lies_in(path, &real_path(directory))) {
            return Err(NotRun::Refused(ProgramNotAllowed::Path));
        }
        let mut process = fd_os::process::command(&real);
        // Some programs act by the name that they are called by.
        process.arg0(name);
        process
    };
    process.args(arguments.iter().map(|argument| OsStr::from_bytes(argument)));
    Ok(process)
}

/// What the system says of a command line that is too long for it.
pub(crate) fn too_long() -> io::Error {
    io::Error::from_raw_os_error(Errno::E2BIG as i32)
}

/// The exit status by which the stock daemon's child reports that a program could not be executed.
pub(crate) fn exec_status(error: &io::Error) -> i32 {
    // EACCES, ENOEXEC, EFAULT, EINTR, E2BIG, ENAMETOOLONG, ENOMEM, ETXTBSY, ENOENT: 200 and the
    // place in this list.
    const NUMBERS: [i32; 9] = [13, 8, 14, 4, 7, 36, 12, 26, 2];
    let place = error.raw_os_error().and_then(|number| NUMBERS.iter().position(|known| *known == number));
    place.and_then(|place| i32::try_from(place).ok()).map_or(255, |place| 200 + place)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use fd_os::io_error_text;

    use super::*;
    use crate::texts::ended;

    #[test]
    fn a_missing_program_is_reported() {
        let error = io::Error::from_raw_os_error(2);
        assert_eq!((exec_status(&error), io_error_text(&error).as_str()), (208, "No such file or directory"));
        assert_eq!(exec_status(&io::Error::from_raw_os_error(13)), 200);
        assert_eq!(exec_status(&io::Error::from_raw_os_error(5)), 255);
    }

    #[test]
    fn a_link_in_an_allowed_directory_leads_to_no_other_program() {
        let folder = std::env::temp_dir().join(format!("ferrofd-scripts-{}", std::process::id()));
        let (ok, evil) = (folder.join("ok"), folder.join("ok-evil"));
        for directory in [&ok, &evil] {
            fs::create_dir_all(directory).unwrap();
            scripts::write(&directory.join("script"), "echo $0").unwrap();
        }
        symlink(evil.join("script"), ok.join("link")).unwrap();
        symlink("script", ok.join("alias")).unwrap();
        symlink(&ok, folder.join("also-ok")).unwrap();
        let at = |path: &str| folder.join(path).into_os_string().into_encoded_bytes();
        for allowed in [at("ok"), at("also-ok")] {
            let directory = String::from_utf8(allowed.clone()).unwrap();
            let run = |name: &str| {
                let command = format!("{directory}{name} x").into_bytes();
                prepare(&command, &split_arguments(&command), std::slice::from_ref(&allowed))
            };
            for name in ["/script", "/alias", "//./script", "/../ok/script"] {
                let refused = name.contains("..") && directory.ends_with("also-ok");
                assert_eq!(run(name).is_ok(), !refused, "{directory} {name}");
            }
            for name in ["/link", "-evil/script", "/../ok-evil/script"] {
                assert!(matches!(run(name), Err(NotRun::Refused(ProgramNotAllowed::Path))), "{directory} {name}");
            }
            assert!(matches!(run("/none"), Err(NotRun::Exec(error)) if error.kind() == io::ErrorKind::NotFound));
        }
        let mut aliased = prepare(&at("ok/alias"), &[at("ok/alias")], &[at("ok")]).unwrap();
        assert_eq!(aliased.get_program(), ok.canonicalize().unwrap().join("script"));
        assert!(aliased.output().unwrap().status.success());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn ends_of_programs_have_the_stock_words() {
        assert_eq!(ended(ExitStatus::from_raw(3 << 8)), "Child exited with code 3");
        // No stock words: it did run.
        assert_eq!(ended(ExitStatus::from_raw(200 << 8)), "Child exited with code 200");
        assert_eq!(ended(ExitStatus::from_raw(15)), "Child died from signal 15: Termination");
    }
}
