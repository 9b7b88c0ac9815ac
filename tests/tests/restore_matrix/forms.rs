//! Where to: `where`, `regexwhere`, prefixes and suffixes, links with `Prefix Links`, limits.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use crate::cells::{SAVED, set_time};

/// One restore.
#[derive(Debug, Clone, Default)]
pub(crate) struct Form {
    pub(crate) name: &'static str,
    /// The console's arguments. `@` is the restore's own place, `SRC` the tree's path, `BED` the
    /// bed's folder.
    arguments: &'static str,
    /// What is done to its place before.
    ground: Ground,
    /// By a client with `AllowedRestoreDirectories`.
    pub(crate) limited: bool,
    /// It changes the saved tree itself.
    pub(crate) in_place: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Ground {
    #[default]
    Missing,
    /// An empty directory.
    Empty,
    /// A link to a directory beside it.
    Link,
    /// A regular file.
    File,
    /// Open to all users.
    Sticky,
    /// The same tree with other content.
    Full,
}

fn form(name: &'static str, arguments: &'static str) -> Form {
    Form { name, arguments, ..Form::default() }
}

impl Form {
    fn on(self, ground: Ground) -> Self {
        Self { ground, ..self }
    }

    fn limited(self) -> Self {
        Self { limited: true, ..self }
    }

    fn in_place(self) -> Self {
        Self { in_place: true, ..self }
    }

    /// The arguments for one place.
    pub(crate) fn arguments(&self, to: &Path, source: &Path, bed: &Path) -> String {
        let text = |path: &Path| path.display().to_string();
        let job = if self.arguments.contains("restorejob=") { "" } else { " restorejob=restore" };
        format!("{}{job}", self.arguments)
            .replace("SRC", &text(source))
            .replace("BED", &text(bed))
            .replace('@', &text(to))
    }

    /// Lays out its place; `top` is where the tree lands with `where=`.
    pub(crate) fn prepare(&self, to: &Path, top: &Path) {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        match self.ground {
            Ground::Missing => {}
            Ground::Empty => fs::create_dir(to).unwrap(),
            Ground::Link => {
                fs::create_dir_all(to.join("real")).unwrap();
                symlink("real", to.join("link")).unwrap();
            }
            Ground::File => {
                fs::create_dir(to).unwrap();
                fs::write(to.join("file"), b"no directory\n").unwrap();
            }
            Ground::Sticky => {
                fs::create_dir(to).unwrap();
                fs::set_permissions(to, fs::Permissions::from_mode(0o1777)).unwrap();
            }
            Ground::Full => {
                fs::create_dir_all(top).unwrap();
                build_source(top);
                spoil(top);
            }
        }
    }
}

/// Lays out the tree that is saved.
pub(crate) fn build_source(top: &Path) {
    fs::create_dir_all(top.join("sub dir/deep")).unwrap();
    for (name, content) in [
        ("File.txt", "file\n"),
        ("sub dir/a b.TXT", "spaces\n"),
        ("sub dir/deep/file", "deep\n"),
        ("hard", "hard\n"),
        ("sub dir/plain", ""),
    ] {
        fs::write(top.join(name), content).unwrap();
    }
    // The saved tree's own path, wherever this copy is.
    fs::hard_link(top.join("hard"), top.join("sub dir/hard-too")).unwrap();
    symlink("File.txt", top.join("relative")).unwrap();
    symlink("/elsewhere/File.txt", top.join("absolute")).unwrap();
    symlink("/", top.join("root")).unwrap();
    fs::set_permissions(top.join("sub dir"), fs::Permissions::from_mode(0o750)).unwrap();
    for name in [
        "File.txt",
        "sub dir/a b.TXT",
        "sub dir/deep/file",
        "sub dir/plain",
        "hard",
        "relative",
        "absolute",
        "root",
        "sub dir/deep",
        "sub dir",
        "",
    ] {
        set_time(&top.join(name), SAVED);
    }
}

/// Changes a copy of the tree, so that a restore has something to do.
pub(crate) fn spoil(top: &Path) {
    fs::write(top.join("File.txt"), b"changed\n").unwrap();
    set_time(&top.join("File.txt"), SAVED - 5);
    fs::remove_dir_all(top.join("sub dir/deep")).unwrap();
    fs::remove_file(top.join("relative")).unwrap();
    symlink("changed", top.join("relative")).unwrap();
    set_time(&top.join("relative"), SAVED + 5);
    set_time(top, SAVED - 5);
}

/// A restore job with `Prefix Links`.
pub(crate) fn resources(bed: &Path) -> Vec<String> {
    let place = bed.join("restored");
    let more =
        format!("Type = Restore\nWhere = \"{}\"\nPrefix Links = yes\nMaximum Concurrent Jobs = 1", place.display());
    vec![bed::job_resource("restore-prelinks", "test", "forms", &more)]
}

/// All of them. What an expression finds is in the tree, not in the path that leads to the bed.
pub(crate) fn rows() -> Vec<Form> {
    let mut rows = vec![
        form("where", "where=@"),
        form("where-empty-directory", "where=@").on(Ground::Empty),
        form("where-with-slash", "where=@/"),
        form("where-with-slashes", "where=@//x///"),
        form("where-with-spaces", "where=\"@/with a space\""),
        form("where-deep", "where=@/a/b/c/d/e"),
        form("where-dots", "where=@/a/./b/../c").on(Ground::Empty),
        form("where-sticky", "where=@").on(Ground::Sticky),
        form("where-is-link", "where=@/link").on(Ground::Link),
        form("where-below-link", "where=@/link/new").on(Ground::Link),
        form("where-is-file", "where=@/file").on(Ground::File),
        form("where-below-file", "where=@/file/new").on(Ground::File),
        form("prelinks", "where=@ restorejob=restore-prelinks"),
        form("prelinks-in-a-full-tree", "where=@ restorejob=restore-prelinks").on(Ground::Full),
        form("prelinks-regex", "regexwhere=!^SRC!@! restorejob=restore-prelinks"),
        form("regex", "regexwhere=!^SRC!@!"),
        form("regex-three", "regexwhere=!^SRC!@!,!File!Renamed!,!([^/])$!$1.bak!"),
        form("regex-ignoring-case", "regexwhere=!^SRC!@!,!txt!X!i"),
        form("regex-keeping-case", "regexwhere=!^SRC!@!,!txt!X!"),
        form("regex-groups", "regexwhere=|^SRC/(.*)|@/$1-\\1|"),
        form("regex-whole", "regexwhere=|^SRC/(.*)|@/$1|,|File|[$0]|"),
        form("regex-mtime", "regexwhere=!^SRC!@/at-$m!"),
        form("regex-longest", "regexwhere=!^SRC!@!,!/F|/Fil|/File.t!/long!"),
        form("regex-optional-group", "regexwhere=!^SRC!@!,!File(x)?!E$1e!"),
        // The Director takes one of two backslashes away. At the end of a name, since the path of
        // the bed must not match.
        form("regex-twice-the-same", "regexwhere=!^SRC!@!,!(o)\\\\1$!$1-$0!"),
        form("regex-second-broken", "regexwhere=!^SRC!@/p!,!(!x!"),
        form("regex-broken", "regexwhere=!(!x!"),
        form("regex-unfinished", "regexwhere=!^!@"),
        form("regex-to-one-name", "regexwhere=!^SRC/.*[^/]$!@/one!,!^SRC!@!"),
        form("regex-global", "regexwhere=!^SRC!@!,!d[ie][er]!D!g"),
        form("regex-below-link", "regexwhere=!^SRC!@/link!").on(Ground::Link),
        form("strip-prefix", "strip_prefix=SRC add_prefix=@"),
        form("add-prefix", "add_prefix=@"),
        form("add-prefix-with-slash", "add_prefix=@/"),
        form("add-suffix", "add_prefix=@ add_suffix=.old"),
        form("strip-and-both", "strip_prefix=SRC add_prefix=@ add_suffix=.old"),
        form("strip-of-something-else", "strip_prefix=/no/such add_prefix=@"),
        form("suffix-with-space", "add_prefix=@ add_suffix=\" old\""),
        form("full-tree-always", "where=@ replace=always").on(Ground::Full),
        form("full-tree-never", "where=@ replace=never").on(Ground::Full),
        form("full-tree-ifnewer", "where=@ replace=ifnewer").on(Ground::Full),
        form("full-tree-ifolder", "where=@ replace=ifolder").on(Ground::Full),
        form("new-tree-never", "where=@ replace=never"),
        form("new-tree-ifnewer", "where=@ replace=ifnewer"),
        form("new-tree-ifolder", "where=@ replace=ifolder"),
        form("allowed", "where=BED/allowed/yes").limited(),
        form("allowed-below", "where=BED/allowed/yes/a/b").limited(),
        form("allowed-pattern", "where=BED/allowed/some/thing/x").limited(),
        form("allowed-dots", "where=BED/allowed/yes/../yes/dots").limited(),
        form("not-allowed", "where=BED/allowed/yes-not").limited(),
        form("not-allowed-above", "where=BED/allowed").limited(),
        form("not-allowed-pattern-itself", "where=BED/allowed/some").limited(),
        form("not-allowed-in-place", "where=/").limited(),
        form("not-allowed-regex", "regexwhere=!^SRC!BED/allowed/yes!").limited(),
    ];
    for mode in [
        form("in-place-always", "where=/ replace=always"),
        form("in-place-never", "where=/ replace=never"),
        form("in-place-ifnewer", "where=/ replace=ifnewer"),
        form("in-place-ifolder", "where=/ replace=ifolder"),
        form("in-place-suffix", "add_suffix=.old"),
        form("in-place-regex-to-nothing", "regexwhere=!^SRC/File.txt!bare!"),
    ] {
        rows.push(mode.in_place());
    }
    rows
}
