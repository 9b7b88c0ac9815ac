//! Command lines of the programs that jobs run: job codes, and splitting into arguments
//! (reference 03 §1.5.1).

use std::borrow::Cow;

/// The values of the `%` codes.
#[derive(Clone, Copy, Default, Debug)]
pub struct JobCodes<'a> {
    /// `%c`, `%d`: name of this File Daemon.
    pub client: &'a [u8],
    /// `%D`: name of the Director.
    pub director: &'a [u8],
    /// `%e`: status of the job in words.
    pub status: &'a [u8],
    /// `%E`: errors so far.
    pub errors: u32,
    /// `%i`: JobId.
    pub job_id: u32,
    /// `%j`: unique name of the job; `%n` is the same without its last three parts.
    pub job: &'a [u8],
    /// `%l`: level in words.
    pub level: &'a [u8],
    /// `%s`: since time.
    pub since: &'a [u8],
    /// `%S`: name of the previous job.
    pub previous_job: &'a [u8],
    /// `%F`: files so far.
    pub files: u32,
    /// `%b`: bytes saved so far.
    pub bytes: u64,
    /// `%R`: bytes read so far.
    pub read_bytes: u64,
    /// `%t`: type of the job in words.
    pub job_type: &'a [u8],
    /// `%v`: volume.
    pub volume: &'a [u8],
    /// `%o`: priority.
    pub priority: i32,
    /// `%P`: process id.
    pub process: u32,
    /// `%r`: recipients of a message; empty in scripts.
    pub recipients: &'a [u8],
}

impl<'a> JobCodes<'a> {
    /// The value of `%<code>`; `None` for an unknown code.
    fn value(&self, code: u8) -> Option<Cow<'a, [u8]>> {
        let number = |text: String| Cow::Owned(text.into_bytes());
        Some(match code {
            b'%' => Cow::Borrowed(b"%".as_slice()),
            b'r' => Cow::Borrowed(self.recipients),
            b'c' | b'd' => Cow::Borrowed(self.client),
            b'D' => Cow::Borrowed(self.director),
            b'e' => Cow::Borrowed(self.status),
            b'j' => Cow::Borrowed(self.job),
            b'n' => Cow::Borrowed(short_job_name(self.job)),
            b'l' => Cow::Borrowed(self.level),
            b's' => Cow::Borrowed(self.since),
            b'S' => Cow::Borrowed(self.previous_job),
            b't' => Cow::Borrowed(self.job_type),
            b'v' => Cow::Borrowed(self.volume),
            b'E' => number(self.errors.to_string()),
            b'i' => number(self.job_id.to_string()),
            b'F' => number(self.files.to_string()),
            b'b' => number(self.bytes.to_string()),
            b'R' => number(self.read_bytes.to_string()),
            b'o' => number(self.priority.to_string()),
            b'P' => number(self.process.to_string()),
            _ => return None,
        })
    }
}

/// What a command may come to, in bytes: Linux has no more room for arguments.
const LONGEST: usize = 6 << 20;

/// `command` with every `%` code replaced. Unknown codes stay as they are. `None`: it is longer
/// than any that the system runs, which a few megabytes of codes come to.
pub fn expand_job_codes(command: &[u8], codes: &JobCodes<'_>) -> Option<Vec<u8>> {
    let mut expanded = Vec::with_capacity(command.len());
    let mut rest = command;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match after.split_first() {
            Some((&code, after_code)) if byte == b'%' => {
                rest = after_code;
                match codes.value(code) {
                    Some(value) => expanded.extend_from_slice(&value),
                    None => expanded.extend_from_slice(&[b'%', code]),
                }
            }
            _ => expanded.push(byte),
        }
        if expanded.len() > LONGEST {
            return None;
        }
    }
    Some(expanded)
}

/// Splits a command into the program and its arguments. No shell is involved.
///
/// Blanks and tabs separate words. A word that starts with a quote runs to the next quote of the
/// same kind; any other word ends at a blank only. The stock daemon fails where there are
/// more than a hundred.
pub fn split_arguments(command: &[u8]) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut rest = command;
    while let Some(start) = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t')) {
        rest = rest.get(start..).unwrap_or_default();
        let end = match rest.split_first() {
            Some((&quote @ (b'"' | b'\''), after)) => {
                rest = after;
                quote
            }
            _ => b' ',
        };
        let mut parts = rest.splitn(2, |byte| *byte == end);
        words.push(parts.next().unwrap_or_default().to_vec());
        rest = parts.next().unwrap_or_default();
    }
    words
}

/// The job name without date and sequence: its last three `.`-separated parts are cut
/// (reference 02 §11.1).
pub fn short_job_name(job: &[u8]) -> &[u8] {
    job.rsplitn(4, |byte| *byte == b'.').nth(3).unwrap_or(job)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes() -> JobCodes<'static> {
        JobCodes {
            client: b"my-fd",
            director: b"my-dir",
            status: b"Running",
            errors: 2,
            job_id: 42,
            job: b"Nightly.Save.2026-01-02_03.04.05_06",
            level: b"Full",
            since: b"2026-01-01 00:00:00",
            previous_job: b"",
            files: 7,
            bytes: 8,
            read_bytes: 9,
            job_type: b"Backup",
            volume: b"Vol-1",
            priority: 10,
            process: 4711,
            recipients: b"",
        }
    }

    fn expand(command: &str) -> String {
        String::from_utf8(expand_job_codes(command.as_bytes(), &codes()).unwrap()).unwrap()
    }

    #[test]
    fn every_code() {
        assert_eq!(expand("%% %c %d %D %e %E %i"), "% my-fd my-fd my-dir Running 2 42");
        assert_eq!(expand("%j"), "Nightly.Save.2026-01-02_03.04.05_06");
        assert_eq!(expand("%l|%r|%s|%S|%F|%b|%t|%v|%o|%P|%R"), "Full||2026-01-01 00:00:00||7|8|Backup|Vol-1|10|4711|9");
    }

    #[test]
    fn the_short_name_loses_date_and_sequence() {
        assert_eq!(expand("%n"), "Nightly.Save");
        let codes = JobCodes { job: b"a.b", ..codes() };
        assert_eq!(expand_job_codes(b"%n", &codes).unwrap(), b"a.b");
    }

    #[test]
    fn unknown_codes_stay() {
        assert_eq!(expand("%z %"), "%z %");
        assert_eq!(expand("100%"), "100%");
        assert_eq!(expand("%%c"), "%c");
    }

    #[test]
    fn arguments_end_at_blanks_and_quotes() {
        let split = |command: &str| -> Vec<String> {
            split_arguments(command.as_bytes()).into_iter().map(|word| String::from_utf8(word).unwrap()).collect()
        };
        assert_eq!(split("sh -c \"echo '$HOME' *\""), ["sh", "-c", "echo '$HOME' *"]);
        assert_eq!(split("  a \t b"), ["a", "b"]);
        assert_eq!(split("a\tb c"), ["a\tb", "c"]);
        assert_eq!(split("it's 'one word' \"open end"), ["it's", "one word", "open end"]);
        assert_eq!(split("\"a\"b"), ["a", "b"]);
        assert_eq!(split("'' x"), ["", "x"]);
        assert_eq!(split("a \"b c\"d"), ["a", "b c", "d"]);
        assert_eq!(split("a b'c d'"), ["a", "b'c", "d'"]);
        assert_eq!(split(" \t "), Vec::<String>::new());
        assert_eq!(split(&"w ".repeat(150)).len(), 150);
    }

    #[test]
    fn job_names_lose_their_date() {
        assert_eq!(short_job_name(b"acc.2026-11-21_02.19.56_04"), b"acc");
        assert_eq!(short_job_name(b"a.b.2026-11-21_02.19.56_04"), b"a.b");
        assert_eq!(short_job_name(b"odd"), b"odd");
    }
}
