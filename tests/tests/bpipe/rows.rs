//! What is saved through `bpipe`, and what comes of it.

/// A FileSet and how its jobs end.
pub(crate) struct Row {
    /// The FileSet's name.
    pub(crate) name: &'static str,
    /// The clients that save it: a letter behind their names.
    pub(crate) clients: &'static str,
    /// Directives of its options.
    pub(crate) options: &'static str,
    /// Its plugin commands; `ALLOWED` is a directory of scripts.
    pub(crate) commands: &'static [&'static str],
    /// Whether it is restored, too.
    pub(crate) is_restored: bool,
    /// Whether a restore of it fails.
    pub(crate) writer_fails: bool,
}

/// Clients with the default settings.
pub(crate) const PLAIN: &str = "";
/// Clients whose Director may only run the programs of one directory.
pub(crate) const ALLOWED: &str = "a";
/// Clients that encrypt.
pub(crate) const ENCRYPTED: &str = "p";

const TEXT: &str = "bpipe:/b/text:seq 1 60000:cat >%w/text";

pub(crate) const ROWS: [Row; 17] = [
    good(
        "good",
        "Signature = MD5",
        &[
            "bpipe:/x/y/s.nosave:echo strip:cat >%w/s.out",
            "bpipe:/b/empty:true:cat >%w/empty",
            "bpipe:/b/percent:echo 'b c':cat >%w/%r.%%x.%x; echo '%w' a:b | wc -l",
            "bpipe:/b/zeros:head -c 300000 /dev/zero:cat >%w/zeros",
            "bpipe:/b/talk:echo data; echo one >&2; echo two >&2:cat >%w/talk; echo three; echo four >&2",
            "bpipe:relative/name:cat; echo rel | tr a-z A-Z; head -c 3 /dev/zero:cat >%w/relative",
        ],
    ),
    good("packed", "Signature = SHA1; Compression = GZIP6; Sparse = yes", &[TEXT, "LZO"]),
    saved("nothing", "Verify = pins1", &[TEXT, "bpipe:/b/quote:echo 'a:b':cat >%w/quote"]),
    saved(
        "codes",
        "Signature = MD5",
        &[
            "bpipe:/x/a:echo five; exit 5:cat",
            "bpipe:/x/b:echo killed; kill -9 $$:cat",
            "bpipe:/x/c:/no/such/program:cat",
            "bpipe:/x/d:exec >&-; echo late >&2; exit 4:cat",
            "bpipe:/x/e:head -c 3 /dev/zero >&2:cat",
        ],
    ),
    failing("writers", &["bpipe:/w/exit:echo x:cat >/dev/null; echo no >&2; exit 3"]),
    failing("broken", &["bpipe:/w/broken:head -c 500000 /dev/zero:exec <&-; exit 0"]),
    saved("no-plugin-end", "Signature = MD5", &["bpipe"]),
    saved("no-file-end", "Signature = MD5", &["bpipe:/m/a"]),
    saved("no-reader-end", "Signature = MD5", &["bpipe:/m/a:echo b"]),
    saved("no-reader", "Signature = MD5", &["bpipe:/m/a::cat"]),
    saved("malformed", "Signature = MD5", &["bpipe x", ":x", "bpipe:/m/after:echo after:cat"]),
    saved("unknown", "Signature = MD5", &["bpipe:/m/before:echo before:cat", "nope:/a:b:c"]),
    good("allowed", "Signature = MD5", &["bpipe:/a/ok:ALLOWED/print 'one  two' three:ALLOWED/take %w"]).of(ALLOWED),
    saved("elsewhere", "Signature = MD5", &["bpipe:/a/elsewhere:/bin/echo x:cat"]).of(ALLOWED),
    saved("character", "Signature = MD5", &["bpipe:/a/character:ALLOWED/print x; id:cat"]).of(ALLOWED),
    failing("no-writer", &["bpipe:/a/writer:ALLOWED/print x:cat >%w/x"]).of(ALLOWED),
    good("encrypted", "Signature = MD5; Compression = GZIP6", &[TEXT]).of(ENCRYPTED),
];

impl Row {
    const fn of(self, clients: &'static str) -> Self {
        Self { clients, ..self }
    }

    /// The lines of its FileSet. A command `LZO` begins an Include of its own.
    pub(crate) fn lines(&self, scripts: &str) -> Vec<String> {
        let mut lines = vec!["Include {".to_owned(), "Options {".to_owned()];
        lines.extend(self.options.split("; ").map(ToOwned::to_owned));
        lines.push("}".to_owned());
        for command in self.commands {
            if *command == "LZO" {
                lines.extend(
                    ["}", "Include {", "Options {", "Signature = SHA1", "Compression = LZO", "}"].map(str::to_owned),
                );
                lines.push(format!("Plugin = \"{}\"", TEXT.replace("text", "lzo")));
            } else {
                lines.push(format!("Plugin = \"{}\"", command.replace("ALLOWED", scripts)));
            }
        }
        lines.push("}".to_owned());
        lines
    }
}

const fn good(name: &'static str, options: &'static str, commands: &'static [&'static str]) -> Row {
    Row { name, clients: PLAIN, options, commands, is_restored: true, writer_fails: false }
}

/// A row whose restores fail.
const fn failing(name: &'static str, commands: &'static [&'static str]) -> Row {
    Row { writer_fails: true, ..good(name, "Signature = MD5", commands) }
}

const fn saved(name: &'static str, options: &'static str, commands: &'static [&'static str]) -> Row {
    Row { is_restored: false, ..good(name, options, commands) }
}
