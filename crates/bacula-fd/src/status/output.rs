//! How `.status` writes names and values: for people, for scripts, as JSON (reference 02 §11.3).
//!
//! The options of a request choose separators, quotes and the form of times. Not here: what is
//! written.

use crate::clock::{iso_date, short_date};

/// How times look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Times {
    Iso,
    Unix,
    Short,
}

/// What a request's `api_opts=` chose. A separator of code 0 is none, and cuts what would follow it
/// in its item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Options {
    separator: u8,
    equal: u8,
    /// The characters after the name of a group.
    label: &'static str,
    begin: u8,
    end: u8,
    /// Lists of objects are in brackets.
    brackets: bool,
    new_names: bool,
    quotes: bool,
    times: Times,
}

const PLAIN: Options = Options {
    separator: b'\n',
    equal: b'=',
    label: ":\n",
    begin: b'\n',
    end: b'\n',
    brackets: false,
    new_names: false,
    quotes: false,
    times: Times::Iso,
};

const JSON: Options = Options {
    separator: b',',
    equal: b':',
    label: ":",
    begin: b'{',
    end: b'}',
    brackets: true,
    new_names: true,
    quotes: true,
    times: Times::Iso,
};

impl Options {
    /// Letters from left to right; others are ignored.
    fn parse(mut letters: &[u8]) -> Self {
        let mut options = PLAIN;
        while let Some((&letter, rest)) = letters.split_first() {
            let digits = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
            let (number, behind) = rest.split_at_checked(digits).unwrap_or((rest, &[]));
            let number = number.iter().fold(0_u32, |number, digit| {
                number.saturating_mul(10).saturating_add(u32::from(digit.wrapping_sub(b'0')))
            });
            let code = u8::try_from(number).ok().filter(u8::is_ascii);
            letters = if b"seltS".contains(&letter) { behind } else { rest };
            match letter {
                b'C' => options = PLAIN,
                b'j' => options = Self { times: options.times, ..JSON },
                b'o' => options.new_names = true,
                b'q' => options.quotes = true,
                b's' => options.separator = code.unwrap_or(options.separator),
                b'e' => options.equal = code.unwrap_or(options.equal),
                // The stock daemon loses the character that was given.
                b'l' => options.label = "",
                b'S' => {
                    let code = code.map(|code| if code == 0 { b'\n' } else { code });
                    options.begin = code.unwrap_or(options.begin);
                    options.end = code.unwrap_or(options.end);
                }
                // Only its first digit counts.
                b't' => {
                    options.times = match rest.first() {
                        Some(b'1') => Times::Unix,
                        Some(b'2') => Times::Short,
                        Some(digit) if digit.is_ascii_digit() => Times::Iso,
                        _ => options.times,
                    }
                }
                _ => {}
            }
        }
        options
    }
}

/// A text in the making.
#[derive(Debug)]
pub(super) struct Output {
    options: Options,
    text: Vec<u8>,
    /// The next item needs a separator before it.
    pending: bool,
}

impl Output {
    /// With the options of a request.
    pub(super) fn new(api_opts: &[u8]) -> Self {
        Self { options: Options::parse(api_opts), text: Vec::new(), pending: false }
    }

    /// Takes what was written as one frame, NUL at its end. What follows goes on where this left
    /// off.
    pub(super) fn frame(&mut self) -> Vec<u8> {
        let mut frame = std::mem::take(&mut self.text);
        frame.push(0);
        frame
    }

    /// The begin of an answer whose content is one object.
    pub(super) fn begin_object_group(&mut self, name: &str) {
        self.begin_object();
        self.label(name);
        self.begin_object();
    }

    /// The begin of an answer whose content is a list of objects.
    pub(super) fn begin_list_group(&mut self, name: &str) {
        self.begin_object();
        self.label(name);
        if self.options.brackets {
            self.text.push(b'[');
        }
    }

    /// Ends what [`Self::begin_object_group`] began.
    pub(super) fn end_object_group(&mut self) {
        self.end_object();
        self.end_answer();
    }

    /// Ends what [`Self::begin_list_group`] began.
    pub(super) fn end_list_group(&mut self) {
        if self.options.brackets {
            self.text.push(b']');
        }
        self.pending = true;
        self.end_answer();
    }

    fn end_answer(&mut self) {
        self.number("error", 0);
        self.text("errmsg", b"");
        self.end_object();
        self.text.push(b'\n');
    }

    /// An object, in a list or behind a label.
    pub(super) fn begin_object(&mut self) {
        self.separate();
        self.text.push(self.options.begin);
    }

    /// Its end.
    pub(super) fn end_object(&mut self) {
        self.text.push(self.options.end);
        self.pending = true;
    }

    /// An object with a name inside another one.
    pub(super) fn begin_named_object(&mut self, name: &str) {
        self.separate();
        self.label(name);
        self.text.push(self.options.begin);
    }

    /// A list of objects with a name inside an object. Its name is never quoted but in JSON, and
    /// its brackets never left out.
    pub(super) fn begin_named_list(&mut self, name: &str) {
        let last = self.text.last().copied();
        self.pending = false;
        if self.options.brackets {
            if last != Some(JSON.begin) {
                self.text.push(JSON.separator);
            }
            self.text.extend_from_slice(format!("\"{name}\":[").as_bytes());
        } else {
            if last != Some(self.options.separator) {
                self.push_separator();
            }
            self.text.extend_from_slice(format!("{name}: [\n").as_bytes());
        }
    }

    /// Its end.
    pub(super) fn end_named_list(&mut self) {
        self.text.extend_from_slice(if self.options.brackets { b"]" } else { b"]\n" });
        self.pending = true;
    }

    /// A whole number.
    pub(super) fn number(&mut self, name: &str, value: impl Into<i128>) {
        self.item(name, value.into().to_string().as_bytes());
    }

    /// `true` or `false`.
    pub(super) fn flag(&mut self, name: &str, value: bool) {
        self.item(name, value.to_string().as_bytes());
    }

    /// A text.
    pub(super) fn text(&mut self, name: &str, value: &[u8]) {
        let value = self.quoted(value);
        self.item(name, &value);
    }

    /// Texts under one name.
    pub(super) fn list<T: AsRef<[u8]>>(&mut self, name: &str, values: &[T]) {
        let values: Vec<Vec<u8>> = values.iter().map(|value| self.quoted(value.as_ref())).collect();
        let joined = values.join(&b","[..]);
        let value = if self.options.brackets { [b"[", joined.as_slice(), b"]"].concat() } else { joined };
        self.item(name, &value);
    }

    /// A moment, as two items: seconds since 1970, and in the form that was chosen.
    pub(super) fn time(&mut self, name: &str, seconds: i64) {
        let formatted = match self.options.times {
            Times::Unix => self.quoted_text(&seconds.to_string()),
            Times::Iso => self.quoted_text(&iso_date(seconds)),
            Times::Short => self.quoted_text(&short_date(seconds)),
        };
        let epoch = self.named(&format!("{name}_epoch"), seconds.to_string().as_bytes());
        let moment = self.named(name, formatted.as_bytes());
        self.push_item(&[epoch.as_slice(), &[self.options.separator], &moment].concat());
    }

    fn quoted_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.quoted(text.as_bytes())).into_owned()
    }

    fn item(&mut self, name: &str, value: &[u8]) {
        let item = self.named(name, value);
        self.push_item(&item);
    }

    fn push_item(&mut self, item: &[u8]) {
        self.separate();
        let shown = item.split(|byte| *byte == 0).next().unwrap_or_default();
        self.text.extend_from_slice(shown);
        self.pending = true;
    }

    fn named(&self, name: &str, value: &[u8]) -> Vec<u8> {
        [self.name(name).as_bytes(), &[self.options.equal], value].concat()
    }

    fn label(&mut self, name: &str) {
        let name = self.name(name);
        self.text.extend_from_slice(name.as_bytes());
        self.text.extend_from_slice(self.options.label.as_bytes());
        self.pending = false;
    }

    fn name(&self, name: &str) -> String {
        let shown = if self.options.new_names {
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
        } else {
            name.to_owned()
        };
        if self.options.quotes { format!("\"{shown}\"") } else { shown }
    }

    fn quoted(&self, value: &[u8]) -> Vec<u8> {
        if !self.options.quotes {
            return value.to_vec();
        }
        let mut quoted = vec![b'"'];
        for &byte in value {
            match byte {
                b'"' | b'\\' => quoted.extend_from_slice(&[b'\\', byte]),
                b'\r' => quoted.extend_from_slice(b"\\r"),
                b'\n' => quoted.extend_from_slice(b"\\n"),
                _ => quoted.push(byte),
            }
        }
        quoted.push(b'"');
        quoted
    }

    fn separate(&mut self) {
        if std::mem::take(&mut self.pending) {
            self.push_separator();
        }
    }

    fn push_separator(&mut self) {
        if self.options.separator != 0 {
            self.text.push(self.options.separator);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(api_opts: &str) -> String {
        let mut out = Output::new(api_opts.as_bytes());
        out.begin_object_group("collector");
        out.begin_named_list("backends");
        out.begin_object();
        out.text("Name", b"a\"b");
        out.number("Bytes/sec", 7);
        out.end_object();
        out.end_named_list();
        out.begin_named_object("update");
        out.list("Tags", &["x", "y"]);
        out.flag("On", true);
        out.end_object();
        out.end_object_group();
        String::from_utf8(out.frame()).unwrap()
    }

    #[test]
    fn output_is_that_of_the_stock_daemon() {
        let plain = "\ncollector:\n\nbackends: [\n\nName=a\"b\nBytes/sec=7\n]\n\nupdate:\n\nTags=x,y\nOn=true\n\n\nerror=0\n\
                     errmsg=\n\n\0";
        assert_eq!(sample(""), plain);
        assert_eq!(sample("jt1C"), plain);
        assert_eq!(
            sample("j"),
            "{\"collector\":{\"backends\":[{\"name\":\"a\\\"b\",\"bytes_sec\":7}],\"update\":{\"tags\":[\"x\",\"y\"],\
             \"on\":true}},\"error\":0,\"errmsg\":\"\"}\n\0"
        );
        assert_eq!(
            sample("s59e58l124S36"),
            "$collector$;backends: [\n$Name:a\"b;Bytes/sec:7$]\n;update$Tags:x,y;On:true$$;error:0;errmsg:$\n\0"
        );
        assert!(sample("js59S36").starts_with("$\"collector\":$,\"backends\":[$\"name\":"), "{}", sample("js59S36"));
        assert!(sample("je").ends_with("\"update\":{\"tags\",\"on\"}},\"error\",\"errmsg\"}\n\0"), "{}", sample("je"));
        assert!(sample("s300").starts_with(plain.get(..30).unwrap()));
    }

    #[test]
    fn times_are_two_items() {
        let mut out = Output::new(b"t1");
        out.time("started", 12);
        assert_eq!(out.frame(), b"started_epoch=12\nstarted=12\0");
        for (options, times) in
            [("t12", Times::Unix), ("t20", Times::Short), ("t01", Times::Iso), ("t2t", Times::Short)]
        {
            assert_eq!(Options::parse(options.as_bytes()).times, times, "{options}");
        }
        let mut out = Output::new(b"s");
        out.time("started", 12);
        assert_eq!(out.frame(), b"started_epoch=12\0");
        assert!(iso_date(0).starts_with("1970-01-01 ") || iso_date(0).starts_with("1969-12-31 "));
    }
}
