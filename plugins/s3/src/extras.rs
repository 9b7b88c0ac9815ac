//! What a server keeps of an object besides its data: content type, user metadata. It is saved as
//! metadata of the file, a text of lines `NAME: VALUE`, and becomes extended attributes
//! `user.s3.NAME` of a restored file, or headers of a restored object.

use aws_smithy_types::base64;
use hyper::HeaderMap;

/// The first line of the text.
const VERSION: &[u8] = b"s3 1\n";
/// Headers that are kept and given back.
const KEPT: [&str; 7] = [
    "content-type",
    "content-encoding",
    "content-language",
    "content-disposition",
    "cache-control",
    "expires",
    "x-amz-website-redirect-location",
];
/// What the names of user metadata begin with.
const USER: &str = "x-amz-meta-";
/// Kept for information: not given back.
const TOLD: [&str; 3] = ["etag", "x-amz-version-id", "x-amz-storage-class"];
/// Most bytes of all names and values: what HTTP servers take.
const LONGEST: usize = 64 << 10;

/// Names and values.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Extras(Vec<(String, Vec<u8>)>);

impl Extras {
    /// What the headers of an answer say.
    pub(crate) fn of_headers(headers: &HeaderMap) -> Self {
        let mut found: Vec<(String, Vec<u8>)> = headers
            .iter()
            .filter(|(name, _)| is_kept(name.as_str()) || TOLD.contains(&name.as_str()))
            .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
            .collect();
        found.sort();
        Self(found)
    }

    /// The text of a file's metadata.
    pub(crate) fn to_text(&self) -> Vec<u8> {
        let mut text = VERSION.to_vec();
        for (name, value) in &self.0 {
            text.extend_from_slice(name.as_bytes());
            text.extend_from_slice(b": ");
            text.extend_from_slice(value);
            text.push(b'\n');
        }
        text
    }

    /// What a text says; `None` if it is another one.
    pub(crate) fn of_text(text: &[u8]) -> Option<Self> {
        let lines = text.strip_prefix(VERSION)?;
        if text.len() > LONGEST {
            return None;
        }
        let mut found = Vec::new();
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let colon = line.windows(2).position(|two| two == b": ")?;
            let (name, value) = line.split_at_checked(colon)?;
            let name = std::str::from_utf8(name).ok()?;
            if !is_kept(name) && !TOLD.contains(&name) {
                continue;
            }
            found.push((name.to_owned(), value.get(2..)?.to_vec()));
        }
        Some(Self(found))
    }

    /// Headers of a restored object.
    pub(crate) fn headers(&self) -> Vec<(String, Vec<u8>)> {
        let kept = self.0.iter().filter(|(name, _)| is_kept(name));
        let sent = kept.map(|(name, value)| {
            let value = if name.starts_with(USER) { in_ascii(value) } else { value.clone() };
            (name.clone(), value)
        });
        sent.collect()
    }

    /// Extended attributes of a restored file.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (String, &[u8])> {
        self.0.iter().map(|(name, value)| (format!("user.s3.{name}"), value.as_slice()))
    }
}

fn is_kept(name: &str) -> bool {
    KEPT.contains(&name) || name.strip_prefix(USER).is_some_and(|rest| !rest.is_empty())
}

/// A value of user metadata in ASCII, in the form that Amazon's servers understand and send (RFC
/// 2047). These headers have to be signed, and what servers take other bytes for differs.
fn in_ascii(value: &[u8]) -> Vec<u8> {
    if value.is_ascii() {
        return value.to_vec();
    }
    let charset = if std::str::from_utf8(value).is_ok() { "UTF-8" } else { "ISO-8859-1" };
    format!("=?{charset}?B?{}?=", base64::encode(value)).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("content-type", "text/plain; charset=utf-8"),
            ("x-amz-meta-a", "1: 2"),
            ("etag", "\"x\""),
            ("date", "now"),
            ("x-amz-meta-", "nameless"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        let extras = Extras::of_headers(&headers);
        let text = extras.to_text();
        assert_eq!(text, b"s3 1\ncontent-type: text/plain; charset=utf-8\netag: \"x\"\nx-amz-meta-a: 1: 2\n");
        assert_eq!(Extras::of_text(&text), Some(extras.clone()));
        let names: Vec<_> = extras.headers().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["content-type", "x-amz-meta-a"]);
        assert_eq!(extras.attributes().next(), Some(("user.s3.content-type".to_owned(), &text[19..44])));
    }

    #[test]
    fn another_text_is_none_of_it() {
        for text in ["", "s3 2\n", "s3 1\nline", "s3 1\n\u{1}: x\nno colon"] {
            assert_eq!(Extras::of_text(text.as_bytes()), None, "{text}");
        }
        // A name that would be another header is left out.
        assert_eq!(Extras::of_text(b"s3 1\nhost: x\nx-amz-acl: public\n"), Some(Extras::default()));
        assert_eq!(Extras::of_text(&[b"s3 1\n".as_slice(), &vec![b'\n'; LONGEST]].concat()), None);
    }
}
