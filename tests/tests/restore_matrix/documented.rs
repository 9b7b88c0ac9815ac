//! Where ferrofd restores otherwise than the stock daemon on purpose.

/// Cells that differ, and how.
pub(crate) struct Documented {
    /// Words that the row's name begins with, word by word; `*` is any word, `a|b` one of two.
    pub(crate) rows: &'static str,
    /// Each difference of the row holds one of these, and each of these is in one.
    pub(crate) found: &'static [&'static str],
    /// What a row of `docs/differences.md` says.
    pub(crate) text: &'static str,
}

/// All of them; the first that matches a row counts.
pub(crate) const DOCUMENTED: &[Documented] = &[
    Documented {
        rows: "form in-place-regex-to-nothing",
        found: &["ours: Warning: File bare not restored: the name has no directory."],
        text: "A file whose name has no directory after `regexwhere` is not restored, and no message says so.",
    },
    Documented {
        rows: "form where-dots",
        found: &["only of stock: a/b: "],
        text: "Makes every directory that `where` goes through, also those that a `..` behind them leaves again.",
    },
    Documented {
        rows: "form regex-to-one-name",
        found: &[
            "Could not hard link @/one -> @/one",
            "@/one",
            "FD Errors: ",
            "termination status: ",
            "Termination: ",
            "status ",
        ],
        text: GONE,
    },
    // The first name can't be made: the same error, at the end.
    Documented {
        rows: "always|ifnewer|ifolder|never immutable-parent hard-link",
        found: &["Could not hard link @SRC/immutable-parent/hard-link/y -> @SRC/immutable-parent/hard-link/x"],
        text: "The record of a hard link can come before that of its first name",
    },
    // The first name can't be replaced, so it means another file than was saved.
    Documented { rows: "always immutable hard-link", found: &["ours: y: ", "hard-link/y"], text: GONE },
    Documented { rows: "ifnewer immutable hard-link", found: &["ours: y: ", "hard-link/", "(top): "], text: GONE },
    Documented { rows: "always|ifnewer read-only-mount hard-link", found: &["hard-link/y"], text: GONE },
    // A directory that is kept has what it had.
    Documented {
        rows: "ifnewer|never empty-directory|full-directory|link-to-directory|same-age|same-but-newer|same-but-older \
               directory",
        found: METADATA,
        text: KEPT_DIRECTORY,
    },
    Documented { rows: "ifolder|never immutable directory", found: REFUSED, text: KEPT_DIRECTORY },
    Documented { rows: "ifolder|never job", found: SUMMARY, text: KEPT_DIRECTORY },
    Documented {
        rows: "* immutable directory",
        found: &["stock: Warning: bxattr_linux.c:298 setxattr error on file", "attribute \"user.saved\": ERR="],
        text: ATTRIBUTES,
    },
    // The summary counts what was not set.
    Documented {
        rows: "* job",
        found: &["Encountered 7 acl errors while doing restore", "Encountered 7 xattr errors while doing restore"],
        text: ATTRIBUTES,
    },
    // The first name is something that was there before and stays; the second becomes another name
    // of it.
    Documented { rows: "ifolder|never link-to-directory|link-to-file hard-link", found: LINKED_VICTIM, text: KEPT },
    Documented { rows: "ifolder|never fifo hard-link", found: LINKED_FIFO, text: KEPT },
    Documented { rows: "ifolder|never dangling-link hard-link", found: &[WARNED], text: KEPT },
];

const GONE: &str =
    "an existing name is gone where its first name was not restored, and the file itself where both are one name.";
const ATTRIBUTES: &str =
    "If an extended attribute can't be set, those behind it are left out, and the warning names only the file.";
const KEPT: &str =
    "the next name becomes a name of the kept file, and gives it the owner, mode and times on the volume.";
const KEPT_DIRECTORY: &str =
    "A directory or symbolic link that was kept gets the ACLs and extended attributes of the volume's.";
const METADATA: &[&str] = &[": attributes {"];
const REFUSED: &[&str] = &["acl_set_file error on file", "setxattr error on file"];
const SUMMARY: &[&str] = &["acl errors while doing restore", "xattr errors while doing restore"];
const WARNED: &str = "hard-link/y is a name of @SRC";
const LINKED_VICTIM: &[&str] = &["victim: mtime", "victim: atime", WARNED];
const LINKED_FIFO: &[&str] =
    &["x: mode", "x: owner", "x: mtime", "x: atime", "y: mode", "y: owner", "y: mtime", "y: atime", WARNED];

/// The one for a row.
pub(crate) fn of_row(name: &str) -> Option<&'static Documented> {
    DOCUMENTED.iter().find(|documented| {
        let mut words = name.split(' ');
        let is_one = |wanted: &str, word| wanted.split('|').any(|wanted| wanted == "*" || wanted == word);
        documented.rows.split(' ').all(|wanted| words.next().is_some_and(|word| is_one(wanted, word)))
    })
}
