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
    about(file, &format!("the plugin host has closed its line in {function}, and was ended."))
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

/// A plugin that reads more than it may.
pub(crate) fn read_too_much(file: &[u8], got: i32, most: i32) -> Vec<u8> {
    about(file, &format!("pluginIO says that it has read {got} bytes of at most {most}."))
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

/// A file of bucket settings that can't be used; `line` is 0 if it is about no line.
pub(crate) fn s3_settings(path: &std::path::Path, line: usize, what: &str) -> Vec<u8> {
    let place = if line == 0 { String::new() } else { format!(" line {line}") };
    format!("s3: {}{place}: {what}\n", path.display()).into_bytes()
}

/// What is no file.
pub(crate) const S3_NO_FILE: &str = "it is not a file";
/// A file of somebody else.
pub(crate) const S3_FOREIGN: &str = "it must belong to root, because it has a secret key";
/// What is no name of a bucket.
pub(crate) const S3_NO_BUCKET: &str = "a bucket's name has letters, digits, dots and hyphens";
/// What is no address of a server.
pub(crate) const S3_NO_ENDPOINT: &str = "it must be http://HOST[:PORT] or https://HOST[:PORT], without a path";
/// What is no key for access.
pub(crate) const S3_NO_KEY: &str = "it must have printable ASCII characters, and no spaces";
/// A file without a certificate.
pub(crate) const S3_NO_CERTIFICATE: &str = "it has no certificate";
/// A listing that does not end.
pub(crate) const S3_ENDLESS: &str = "the listing has no next page where it should have one";
/// An object that was replaced.
pub(crate) const S3_CHANGED: &str = "the object was replaced while it was read";
/// A server that can't send the rest of an object.
pub(crate) const S3_NO_RANGES: &str = "the server does not send the rest of an object";
/// An object with more bytes than it should have.
pub(crate) const S3_TOO_LONG: &str = "the server sends more bytes than it has said";
/// An object of unknown size.
pub(crate) const S3_NO_LENGTH: &str = "the server does not say how long the object is";
/// A part without an `ETag`.
pub(crate) const S3_NO_TAG: &str = "the server has sent no ETag for a part";

/// A file that others may read or change.
pub(crate) fn s3_open_to_others(mode: u32) -> String {
    format!("it has a secret key, and mode {mode:04o} lets others read or change it: chmod 0600")
}

/// A number that is out of its range.
pub(crate) fn s3_range(is: u32, least: u32, most: u32) -> String {
    format!("{is} is not {least} to {most}")
}

/// Certificates that can't be read.
pub(crate) fn s3_ca_file(file: &std::path::Path, error: &str) -> String {
    format!("ca_file: {}: {error}", file.display())
}

/// A system without certificates.
pub(crate) fn s3_no_certificates(error: &str) -> String {
    format!("the system has no certificates that are trusted ({error}); set ca_file")
}

/// A request that a server has refused.
pub(crate) fn s3_refused(status: u16, code: &str, message: &str) -> String {
    let gap = if code.is_empty() && message.is_empty() { "" } else { " " };
    let colon = if code.is_empty() || message.is_empty() { "" } else { ": " };
    format!("the server answers {status}{gap}{code}{colon}{message}")
}

/// A server that does not answer.
pub(crate) fn s3_late(seconds: u64) -> String {
    format!("the server has sent nothing for {seconds} seconds")
}

/// An object with fewer bytes than it should have.
pub(crate) fn s3_short(got: u64, wanted: u64) -> String {
    format!("the connection ended after {got} of {wanted} bytes")
}

/// Data that is not the object's.
pub(crate) fn s3_checksum(kind: &str) -> String {
    format!("the data is not what the object's {kind} says")
}

/// What is no listing.
pub(crate) fn s3_no_listing(error: &dyn Display) -> String {
    format!("the answer is no listing of a bucket: {error}")
}

/// What is no time.
pub(crate) fn s3_no_time(text: &str) -> String {
    format!("the listing has a time that is none: {text}")
}

/// A listing in another order than that of the keys.
pub(crate) fn s3_no_order(key: &[u8]) -> String {
    format!("the listing is not in the order of the keys: {}", key.escape_ascii())
}

/// A bucket that can't be listed to its end.
pub(crate) fn s3_not_listed(bucket: &str, error: &dyn Display) -> Vec<u8> {
    format!("s3: Could not list bucket {bucket}: {error}\n").into_bytes()
}

/// An object that can't be read, or not to its end.
pub(crate) fn s3_not_read(name: &[u8], error: &dyn Display) -> Vec<u8> {
    [b"s3: Could not read ", name, format!(": {error}\n").as_bytes()].concat()
}

/// An object that was listed and is there no more.
pub(crate) fn s3_gone(name: &[u8]) -> Vec<u8> {
    [b"s3: Deleted since it was listed: ", name, b"\n"].concat()
}

/// What a backup has done.
pub(crate) fn s3_summary(bucket: &str, listed: u64, unchanged: u64, failed: u64) -> Vec<u8> {
    format!("s3: Bucket {bucket}: {listed} objects, {unchanged} of them unchanged, {failed} not read.\n").into_bytes()
}

/// A file whose name is that of no object.
pub(crate) fn s3_no_key(name: &[u8]) -> Vec<u8> {
    [b"s3: Not restored, because its name is that of no object: ", name, b"\n"].concat()
}

/// An object that could not be stored.
pub(crate) fn s3_not_stored(name: &[u8], error: &dyn Display) -> Vec<u8> {
    [b"s3: Could not restore ", name, format!(": {error}\n").as_bytes()].concat()
}

/// An object that the replace mode leaves alone.
pub(crate) fn s3_exists(name: &[u8]) -> Vec<u8> {
    [b"s3: Not restored, because the bucket has it: ", name, b"\n"].concat()
}

/// Extended attributes that could not be set.
pub(crate) fn s3_no_attributes(name: &[u8], error: &std::io::Error) -> Vec<u8> {
    let error = fd_os::io_error_text(error);
    [b"s3: Content type and user metadata not restored for ", name, format!(": {error}\n").as_bytes()].concat()
}

/// A user wants a restore to go into a bucket.
pub(crate) fn s3_restores_into(path: &[u8]) -> Vec<u8> {
    [b"s3: Restoring into the bucket of ", path, b"\n"].concat()
}
