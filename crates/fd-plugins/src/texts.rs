//! What users read, word for word as the stock daemon's `bpipe` says it (reference 07 §10).

use std::fmt::Display;

/// A command without a part of it.
pub(crate) fn terminator_not_found(part: &str, command: &[u8]) -> Vec<u8> {
    [part.as_bytes(), b" terminator not found: ", command, b"\n"].concat()
}

/// A program that could not be started; `end` is `reader` or `writer`.
pub(crate) fn open_failed(end: &str, command: &[u8], error: impl Display) -> Vec<u8> {
    [b"Open pipe ", end.as_bytes(), b"=", command, format!(" failed: ERR={error}\n").as_bytes()].concat()
}

/// A command in an Options block, where the stock daemon can't start its empty reader.
pub(crate) fn not_for_options(command: &[u8]) -> Vec<u8> {
    [b"bpipe saves no files of an Options block, its command belongs into the Include: ", command, b"\n"].concat()
}

/// What a program has said.
pub(crate) fn said(file: &[u8], text: &[u8]) -> Vec<u8> {
    [file, b": ", text, b"\n"].concat()
}

/// A program that has failed.
pub(crate) fn closing_failed(file: &[u8], number: i32) -> Vec<u8> {
    [b"bpipe-fd: Error closing for file ", file, format!(": {number}\n").as_bytes()].concat()
}

/// An error of a pipe; `what` is `read` or `write`.
pub(crate) fn pipe_failed(what: &str, error: impl Display) -> Vec<u8> {
    format!("Pipe {what} error: ERR={error}\n").into_bytes()
}

/// A call for a program that does not run; `what` is `read FD`, `write FD` or `FD on bpipe close`.
pub(crate) fn nothing_open(what: &str) -> Vec<u8> {
    format!("Logic error: NULL {what}\n").into_bytes()
}

/// The restore command that a user has given.
pub(crate) fn user_command(command: &[u8]) -> Vec<u8> {
    [b"Using user supplied restore command: \"", command, b"\"\n"].concat()
}

/// A user's options that can't be read.
pub(crate) const OPTIONS_NOT_READ: &[u8] = b"Unable to parse the User supplied restore options\n";
/// A user's options without a restore command.
pub(crate) const OPTIONS_NOT_VALID: &[u8] = b"User supplied restore options are not valid\n";
/// More of them than a job keeps; ferrofd's own.
pub(crate) const TOO_MANY_OPTIONS: &[u8] =
    b"Too many restore options: a plugin takes 1,000 in a job, and 1 MiB of them\n";

/// A plugin host that has died; `end` is one of [`ended`].
pub(crate) fn died(file: &[u8], function: &str, end: &str) -> Vec<u8> {
    about(file, &format!("the plugin host died in {function}: {end}."))
}

/// A function that another instance was in.
pub(crate) fn of_another_job(function: &str) -> String {
    format!("{function} of another job")
}

/// How a process has ended: the signal, or else its exit status.
pub(crate) fn ended(end: Result<i32, i32>) -> String {
    match end {
        Ok(signal) => format!("signal {signal} ({})", fd_os::signal_words(signal)),
        Err(status) => format!("exit status {status}"),
    }
}

/// A plugin host that has closed its line and goes on.
pub(crate) fn hung_up(file: &[u8], function: &str) -> Vec<u8> {
    about(file, &format!("the plugin host has closed its line in {function}."))
}

/// A plugin host that has said what none may say.
pub(crate) fn nonsense(file: &[u8], function: &str, what: &str) -> Vec<u8> {
    about(file, &format!("the plugin host failed in {function}: {what}. It was ended."))
}

/// A function that does not return.
pub(crate) fn late(file: &[u8], function: &str, seconds: u64) -> Vec<u8> {
    about(file, &format!("{function} has not returned for {seconds} s. The plugin host was ended."))
}

/// A function that goes on after its job was canceled.
pub(crate) fn still_runs(file: &[u8], function: &str, seconds: u64) -> Vec<u8> {
    about(file, &format!("{function} has not returned {seconds} s after the job was canceled."))
}

/// A plugin host that could not be started.
pub(crate) fn not_loaded(file: &[u8], why: &str) -> Vec<u8> {
    about(file, &format!("it could not be loaded: {why}."))
}

/// Why: `loadPlugin` has returned an error.
pub(crate) const LOAD_REFUSED: &str = "loadPlugin has returned an error";
/// Why: `loadPlugin` does not return.
pub(crate) const LOAD_LATE: &str = "loadPlugin does not return";
/// No plugin with the C interface can be loaded here.
pub(crate) const OTHER_PROCESSOR: &str = "plugins with the C interface are supported on x86-64 only";

fn about(file: &[u8], text: &str) -> Vec<u8> {
    [b"Plugin ", file, b": ", text.as_bytes(), b"\n"].concat()
}

/// A library that can't be opened (reference 07 §2.4, like the next ones).
pub(crate) fn dlopen_failed(path: &[u8], error: &str) -> Vec<u8> {
    [b"dlopen plugin ", path, b" failed: ERR=", error.as_bytes(), b"\n"].concat()
}

/// A library without a function of a plugin.
pub(crate) fn no_function(name: &str, path: &[u8]) -> Vec<u8> {
    [b"Lookup of ", name.as_bytes(), b" in plugin ", path, b" failed: ERR=<NULL>\n"].concat()
}

/// A plugin for another program.
pub(crate) fn wrong_magic(file: &[u8], got: &[u8]) -> Vec<u8> {
    [b"Plugin magic wrong. Plugin=", file, b" wanted=*FDPluginData* got=", got, b"\n"].concat()
}

/// A plugin of another version.
pub(crate) fn wrong_version(file: &[u8], got: u32) -> Vec<u8> {
    [b"Plugin version incorrect. Plugin=", file, format!(" wanted=23 got={got}\n").as_bytes()].concat()
}

/// A plugin with another license.
pub(crate) fn wrong_license(file: &[u8], license: &[u8]) -> Vec<u8> {
    [b"Plugin license incompatible. Plugin=", file, b" license=", license, b"\n"].concat()
}

/// A plugin with another structure.
pub(crate) fn wrong_size(file: &[u8], got: u32) -> Vec<u8> {
    [b"Plugin size incorrect. Plugin=", file, format!(" wanted=56 got={got}\n").as_bytes()].concat()
}

/// A plugin without the structures that it is to return.
pub(crate) fn no_structures(file: &[u8]) -> Vec<u8> {
    about(file, "loadPlugin has set no pInfo or no pFuncs.")
}

/// A plugin that can't be confined; `what` is the setting.
pub(crate) fn not_confined(file: &[u8], what: &str, error: &std::io::Error) -> Vec<u8> {
    about(file, &format!("its setting \"{what}\" can't be kept: {}.", fd_os::io_error_text(error)))
}

/// What a plugin with a user of its own may not add to the FileSet.
pub(crate) fn reaches_further(file: &[u8], item: &[u8]) -> Vec<u8> {
    let item = String::from_utf8_lossy(item);
    about(file, &format!("it has a user of its own, and may not add this to the FileSet: {item}"))
}

/// A plugin that reads more than it may.
pub(crate) fn read_too_much(file: &[u8], got: i32, most: i32) -> Vec<u8> {
    about(file, &format!("pluginIO says that it has read {got} bytes of at most {most}."))
}

/// Threads of a plugin that say more than is held.
pub(crate) fn threads_say_too_much(file: &[u8]) -> Vec<u8> {
    about(file, "its threads say more during a call than is held; the rest is left out.")
}

/// A plugin with an ACL or attributes of an impossible length.
pub(crate) fn too_long_for_an_acl(file: &[u8], got: i32) -> Vec<u8> {
    about(file, &format!("handleXACLdata says that there are {got} bytes."))
}

/// A plugin host that can't go on.
pub(crate) fn host_failed(error: &std::io::Error) -> String {
    format!("The plugin host can't go on: {}\n", fd_os::io_error_text(error))
}

/// `checkChanges` without a name, as the stock daemon says it.
pub(crate) const NO_NAME_TO_CHECK: &[u8] =
    b"fd_plugins.c:2559 Command plugin: no fname in baculaCheckChanges packet.\n";

/// Where the plugin is that Bacula does not have.
pub(crate) const IN_FERROFD_S3: &str = " It is in the package ferrofd-s3.";
