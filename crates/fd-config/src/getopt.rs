//! Arguments as the C library's `getopt` takes them apart: options may be joined (`-fP`, `-cFILE`),
//! come after other arguments, and end at `--`. Not here: what an option means.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

/// A command line, taken apart.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Arguments {
    /// Options in their order, with their values.
    pub options: Vec<(u8, Vec<u8>)>,
    /// What is no option.
    pub positional: Vec<Vec<u8>>,
}

/// Takes apart a command line whose first word is the program's name. `valued` are the letters with
/// a value, `flags` those without; `?` is always known.
///
/// # Errors
/// The complaint of `getopt` about the first letter that is unknown or has no value, without LF;
/// empty for `-?`.
pub fn take_apart(
    arguments: impl IntoIterator<Item = OsString>,
    valued: &[u8],
    flags: &[u8],
) -> Result<Arguments, Vec<u8>> {
    let mut arguments = arguments.into_iter().map(OsString::into_vec);
    let program = arguments.next().unwrap_or_default();
    let mut apart = Arguments::default();
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix(b"-") {
            Some(b"-") => apart.positional.extend(arguments.by_ref()),
            Some(letters @ [_, ..]) => {
                let mut letters = letters;
                while let Some((&letter, rest)) = letters.split_first() {
                    letters = rest;
                    if valued.contains(&letter) {
                        let value = if rest.is_empty() { arguments.next() } else { Some(rest.to_vec()) };
                        let value = value.ok_or_else(|| complain(&program, "option requires an argument", letter))?;
                        apart.options.push((letter, value));
                        letters = &[];
                    } else if flags.contains(&letter) {
                        apart.options.push((letter, Vec::new()));
                    } else if letter == b'?' {
                        return Err(Vec::new());
                    } else {
                        return Err(complain(&program, "invalid option", letter));
                    }
                }
            }
            _ => apart.positional.push(argument),
        }
    }
    Ok(apart)
}

fn complain(program: &[u8], what: &str, option: u8) -> Vec<u8> {
    [program, format!(": {what} -- '").as_bytes(), &[option, b'\'']].concat()
}
