//! What users read of the plugin.

use std::fmt::Display;

use fd_messages::one_line;

/// A file of bucket settings that can't be used; `line` is 0 if it is about no line.
pub(crate) fn settings(path: &std::path::Path, line: usize, what: &str) -> Vec<u8> {
    let place = if line == 0 { String::new() } else { format!(" line {line}") };
    format!("s3: {}{place}: {what}\n", path.display()).into_bytes()
}

/// What is no file.
pub(crate) const NO_FILE: &str = "it is not a file";
/// A file of somebody else.
pub(crate) const FOREIGN: &str = "it must belong to root, because it has a secret key";
/// What is no name of a bucket.
pub(crate) const NO_BUCKET: &str = "a bucket's name has letters, digits, dots and hyphens";
/// What is no address of a server.
pub(crate) const NO_ENDPOINT: &str = "it must be http://HOST[:PORT] or https://HOST[:PORT], without a path";
/// What is no key for access.
pub(crate) const NO_KEY: &str = "it must have printable ASCII characters, and no spaces";
/// What is no key at all.
pub(crate) const NO_STRING: &str = "a key is a string in quotes";
/// A file without a certificate.
pub(crate) const NO_CERTIFICATE: &str = "it has no certificate";
/// A listing that does not end.
pub(crate) const ENDLESS: &str = "the listing has no next page where it should have one";
/// Work that has ended, as by a panic.
pub(crate) const DIED: &str = "the work on it has ended before it was done";
/// An object that only the listing has.
pub(crate) const MISSING: &str = "the server lists it, and does not have it";
/// An object that was replaced.
pub(crate) const CHANGED: &str = "the object was replaced while it was read";
/// A server that can't send the rest of an object.
pub(crate) const NO_RANGES: &str = "the server does not send the rest of an object";
/// An object with more bytes than it should have.
pub(crate) const TOO_LONG: &str = "the server sends more bytes than it has said";
/// An object of unknown size.
pub(crate) const NO_LENGTH: &str = "the server does not say how long the object is";
/// A part without an `ETag`.
pub(crate) const NO_TAG: &str = "the server has sent no ETag for a part";

/// A file that others may read or change.
pub(crate) fn open_to_others(mode: u32) -> String {
    format!("it has a secret key, and mode {mode:04o} lets others read or change it: chmod 0600")
}

/// A number that is out of its range.
pub(crate) fn range(is: u32, least: u32, most: u32) -> String {
    format!("{is} is not {least} to {most}")
}

/// Certificates that can't be read.
pub(crate) fn ca_file(file: &std::path::Path, error: &str) -> String {
    format!("ca_file: {}: {error}", file.display())
}

/// A system without certificates.
pub(crate) fn no_certificates(error: &str) -> String {
    format!("the system has no certificates that are trusted ({error}); set ca_file")
}

/// A request that a server has refused.
pub(crate) fn refused(status: u16, code: &str, message: &str) -> String {
    let gap = if code.is_empty() && message.is_empty() { "" } else { " " };
    let colon = if code.is_empty() || message.is_empty() { "" } else { ": " };
    format!("the server answers {status}{gap}{code}{colon}{message}")
}

/// A server that takes and sends nothing.
pub(crate) fn late(seconds: u64) -> String {
    format!("the server has sent nothing for {seconds} seconds")
}

/// A text of a listing that is longer than any.
pub(crate) fn too_long(what: &str, length: usize) -> String {
    format!("the listing has {what} of {length} bytes")
}

/// An object that is as in the listing by its `ETag`, and not by its size.
pub(crate) fn other_size(is: u64, listed: u64) -> String {
    format!("the object has {is} bytes, and {listed} in the listing")
}

/// An object that was sent in parts, and may not be there.
pub(crate) fn not_completed(answer: &str) -> String {
    format!("the server does not say that the object is there: {answer}")
}

/// An object with fewer bytes than it should have.
pub(crate) fn short(got: u64, wanted: u64) -> String {
    format!("the connection ended after {got} of {wanted} bytes")
}

/// An object of which the volume does not have all, or not all came.
pub(crate) fn torn(got: u64, wanted: u64) -> String {
    format!("{got} of its {wanted} bytes came")
}

/// Data that is not the object's.
pub(crate) fn checksum(kind: &str) -> String {
    format!("the data is not what the object's {kind} says")
}

/// What is no listing.
pub(crate) fn no_listing(error: &dyn Display) -> String {
    format!("the answer is no listing of a bucket: {error}")
}

/// What is no time.
pub(crate) fn no_time(text: &str) -> String {
    format!("the listing has a time that is none: {text}")
}

/// A listing in another order than that of the keys.
pub(crate) fn no_order(key: &[u8]) -> String {
    format!("the listing is not in the order of the keys: {}", key.escape_ascii())
}

/// A bucket that can't be listed to its end.
pub(crate) fn not_listed(bucket: &str, error: &dyn Display) -> Vec<u8> {
    format!("s3: Could not list bucket {bucket}: {error}\n").into_bytes()
}

/// An object that can't be read, or not to its end.
pub(crate) fn not_read(name: &[u8], error: &dyn Display) -> Vec<u8> {
    one_line(&[b"s3: Could not read ", name, format!(": {error}\n").as_bytes()])
}

/// An object that was listed and is there no more.
pub(crate) fn gone(name: &[u8]) -> Vec<u8> {
    one_line(&[b"s3: Deleted since it was listed: ", name, b"\n"])
}

/// A job that has saved nothing.
pub(crate) fn none_read(failed: u64) -> Vec<u8> {
    format!("s3: {failed} object(s) could not be read, and the job has saved nothing else\n").into_bytes()
}

/// A bucket whose objects have the names of those of one at another address.
pub(crate) fn same_names(bucket: &str) -> String {
    format!(
        "this FileSet has a bucket {bucket} at another address, and the objects of both would have the same names: \
         give it a FileSet and a job of its own, or prefixes that the other one does not have"
    )
}

/// What a backup has done.
pub(crate) fn summary(bucket: &str, listed: u64, unchanged: u64, failed: u64) -> Vec<u8> {
    format!("s3: Bucket {bucket}: {listed} objects, {unchanged} of them unchanged, {failed} not read.\n").into_bytes()
}

/// A file whose name is that of no object.
pub(crate) fn no_key(name: &[u8]) -> Vec<u8> {
    one_line(&[b"s3: Not restored, because its name is that of no object: ", name, b"\n"])
}

/// An object that could not be stored.
pub(crate) fn not_stored(name: &[u8], error: &dyn Display) -> Vec<u8> {
    one_line(&[b"s3: Could not restore ", name, format!(": {error}\n").as_bytes()])
}

/// An object of another bucket than what went to the same place.
pub(crate) fn mixed(bucket: &str) -> String {
    format!("objects of bucket {bucket} go to the same place; restore this one with another restore_prefix")
}

/// An object that the replace mode leaves alone.
pub(crate) fn exists(name: &[u8]) -> Vec<u8> {
    one_line(&[b"s3: Not restored, because the bucket has it: ", name, b"\n"])
}

/// Extended attributes that could not be set.
pub(crate) fn no_attributes(name: &[u8], error: &std::io::Error) -> Vec<u8> {
    let error = fd_os::io_error_text(error);
    one_line(&[b"s3: Content type and user metadata not restored for ", name, format!(": {error}\n").as_bytes()])
}

/// More files than are named lack their extended attributes.
pub(crate) fn no_attributes_in_all(count: u64) -> Vec<u8> {
    format!("s3: Content type and user metadata not restored for {count} files in all\n").into_bytes()
}

/// Objects of a canceled restore that were on their way.
pub(crate) fn given_up(count: usize) -> Vec<u8> {
    format!("s3: {count} object(s) were on their way into the bucket and may not be there\n").into_bytes()
}

/// A user wants a restore to go into a bucket.
pub(crate) fn restores_into(path: &[u8]) -> Vec<u8> {
    one_line(&[b"s3: Restoring into the bucket of ", path, b"\n"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_object_orders_no_terminal_about() {
        let name = "/@s3/b/\u{9b}2J\u{202e}".as_bytes();
        for text in [not_read(name, &"x"), gone(name), no_key(name), not_stored(name, &"x"), exists(name)] {
            let text = String::from_utf8(text).unwrap();
            assert!(
                text.trim_end_matches('\n').chars().all(|character| character.is_ascii_graphic() || character == ' '),
                "{text:?}"
            );
        }
    }
}
