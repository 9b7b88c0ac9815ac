//! Which programs *Allowed Script Directories* permits (reference 03 §1.5.1). Running one is the
//! caller's part.

use fd_messages::split_arguments;

use crate::path::plain_path::{lies_in, plain_path};
use crate::texts;

/// Characters that a command may not contain when script directories are restricted.
const FORBIDDEN: &[u8] = b"$!;\\&|<>`()";

/// Why a command may not be run; the text is that of the reference's `ERR=`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProgramNotAllowed {
    /// No allowed directory is a prefix of the command.
    #[error("{}", texts::NOT_IN_ALLOWED_PATHS)]
    Path,
    /// The command contains a character that a shell would interpret.
    #[error("{}", texts::NOT_ALLOWED_CHARACTER)]
    Character,
}

/// Whether *Allowed Script Directories* permits this command by its text: the program's path,
/// without `..`, has to be in one of them. Without directories every command is permitted. Links
/// are the caller's part.
pub fn check_allowed<D: AsRef<[u8]>>(command: &[u8], directories: &[D]) -> Result<(), ProgramNotAllowed> {
    if directories.is_empty() {
        return Ok(());
    }
    let words = split_arguments(command);
    let program = plain_path(words.first().map_or(b"".as_slice(), Vec::as_slice));
    let is_in = |directory: &D| {
        let directory = plain_path(directory.as_ref());
        directory.starts_with(b"/") && lies_in(&program, &directory)
    };
    if !directories.iter().any(is_in) {
        return Err(ProgramNotAllowed::Path);
    }
    if command.iter().any(|byte| FORBIDDEN.contains(byte)) {
        return Err(ProgramNotAllowed::Character);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_in_allowed_script_directories_are_permitted() {
        let allowed = |command: &str, directories: &[&str]| check_allowed(command.as_bytes(), directories);
        assert_eq!(allowed("rm -rf / ; x", &[]), Ok(()));
        assert_eq!(allowed("/etc/bacula/list -a", &["/opt", "/etc/bacula"]), Ok(()));
        assert_eq!(allowed("/usr/bin/list", &["/etc/bacula"]), Err(ProgramNotAllowed::Path));
        assert_eq!(allowed("/etc//bacula/./list", &["/etc/bacula/"]), Ok(()));
        for around in ["/etc/bacula/../../bin/sh", "/etc/bacula-evil/list", "list", "", "\"/etc/bacula/../x\""] {
            assert_eq!(allowed(around, &["/etc/bacula"]), Err(ProgramNotAllowed::Path), "{around}");
        }
        assert_eq!(allowed("echo", &["echo"]), Err(ProgramNotAllowed::Path));
        for bad in ["$(x)", "a!b", "a;b", "a\\b", "a&b", "a|b", "a<b", "a>b", "a`b`", "(a)"] {
            assert_eq!(allowed(&format!("/x {bad}"), &["/x"]), Err(ProgramNotAllowed::Character), "{bad}");
        }
    }

    #[test]
    fn a_program_in_quotes_or_behind_blanks_is_permitted_where_it_lies() {
        for (program, judged) in [("/x/bin/s", Ok(())), ("/x/bin-evil/s", Err(ProgramNotAllowed::Path))] {
            for line in [format!("\"{program}\" a"), format!("  {program} a"), format!("\t\"{program}\"")] {
                assert_eq!(check_allowed(line.as_bytes(), &["/x/bin"]), judged, "{line}");
            }
        }
    }
}
