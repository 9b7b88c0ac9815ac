//! The rows.

use crate::row::{Row, Tree, row};

/// Rows in which ferrofd does what it should not, each with the reason. The test sees to it that
/// they still differ.
pub(crate) const KNOWN_FAULTS: &[(&str, &str)] = &[];

/// Whether a row is also run with one worker and with eight: what is read, transformed and put in
/// order depends on them, what is selected does not.
pub(crate) fn has_all_worker_counts(row: &Row) -> bool {
    let names = ["incremental-gzip", "accurate-chain", "accurate-5-gzip", "accurate-all-letters", "base-sha1-gzip"];
    matches!(row.tree, Tree::Types | Tree::Links) || names.contains(&row.name)
}

/// What differs in a row whose attributes name another data stream.
const OTHER_STREAM: &[&str] = &[
    "record only of stock: 1 UATTR 5 @/doc/: ",
    "record only of ours: 1 UATTR 5 @/doc/: ",
    "catalog only of stock: @/doc/: ",
    "catalog only of ours: @/doc/: ",
];

/// The matrix.
pub(crate) fn rows() -> Vec<Row> {
    [streams(), examples(), patterns(), walks(), lists(), links(), levels(), accurate(), bases()].concat()
}

/// Every digest, compression, and choice of metadata, alone and together (reference 04 §7–11).
fn streams() -> Vec<Row> {
    let types = |name| row(name, Tree::Types);
    vec![
        types("no-options"),
        types("empty-options").options(""),
        types("md5").options("Signature = MD5"),
        types("sha1").options("Signature = SHA1"),
        types("sha256").options("Signature = SHA256"),
        types("sha512").options("Signature = SHA512"),
        types("xxh64").options("Signature = XXHASH64"),
        types("xxh3-128").options("Signature = XXH3_128"),
        types("md5-and-sha512").options("Signature = MD5 ; Signature = SHA512"),
        types("gzip1").options("Compression = GZIP1"),
        types("gzip6-md5").options("Signature = MD5 ; Compression = GZIP"),
        types("gzip9-sha1").options("Signature = SHA1 ; Compression = GZIP9"),
        types("gzip-sparse").options("Compression = GZIP6 ; Sparse = yes ; Signature = MD5"),
        types("lzo").options("Compression = LZO"),
        types("lzo-sha256").options("Compression = LZO ; Signature = SHA256"),
        types("lzo-sparse").options("Compression = LZO ; Sparse = yes ; Signature = SHA1"),
        types("lzo-after-gzip").options("Compression = GZIP9 ; Compression = LZO"),
        types("sparse").options("Sparse = yes"),
        types("sparse-md5").options("Sparse = yes ; Signature = MD5"),
        types("acl").options("AclSupport = yes"),
        types("xattr").options("XattrSupport = yes"),
        types("acl-xattr").options("AclSupport = yes ; XattrSupport = yes"),
        types("acl-xattr-gzip-sparse-md5")
            .options("AclSupport = yes ; XattrSupport = yes ; Compression = GZIP1 ; Sparse = yes ; Signature = MD5"),
        types("acl-lzo").options("AclSupport = yes ; Compression = LZO"),
        types("noatime").options("NoAtime = yes ; Signature = MD5"),
        types("keepatime").options("KeepAtime = yes ; Signature = MD5"),
        types("enhanced-wild").options("EnhancedWild = yes ; Signature = MD5 ; Exclude = no"),
        types("portable").options("Portable = yes ; Signature = SHA1"),
        types("no-hard-links").options("HardLinks = no ; Signature = MD5"),
        types("hard-links-said").options("HardLinks = yes ; OneFS = yes ; Recurse = yes ; Sparse = no"),
        types("check-file-changes").options("CheckFileChanges = yes ; Signature = MD5"),
        types("replace-letters").options("Replace = IfNewer ; Signature = MD5"),
        types("dedup-letters").options("Dedup = BothSides ; Signature = MD5"),
        types("verify-letters").options("Verify = pins5 ; Signature = SHA1"),
        types("hfs").options("HfsPlusSupport = yes"),
        types("all-switches").options(
            "Signature = SHA256 ; Compression = GZIP2 ; Sparse = yes ; AclSupport = yes ; XattrSupport = yes ; \
             NoAtime = yes ; CheckFileChanges = yes ; HardLinks = no ; OneFS = no ; MtimeOnly = yes",
        ),
        types("compressed-by-kind")
            .options("WildFile = \"*words\" ; Compression = GZIP9 ; Signature = MD5")
            .options("WildFile = \"*zeros\" ; Compression = LZO ; Signature = SHA1")
            .options("WildFile = \"*/sparse/*\" ; Sparse = yes ; Signature = SHA512")
            .options("WildFile = \"*noise*\" ; Signature = XXH3_128")
            .options("AclSupport = yes"),
        types("xxh3-64").options("Signature = XXH3_64").beyond(40).differs(
            "`Signature = XXH3_64` never works",
            &[
                "records of stream 40",
                "catalog only of",
                "message only of stock: fd: Error: crypto.c:655 Unsupported digest type: 7",
                "message only of stock: fd: Warning: XXH3_64 digest digest initialization failed",
                "count only of",
            ],
        ),
        types("zstd")
            .options("Compression = ZSTD")
            .beyond(29)
            .differs("`Compression = ZSTD` is ignored", &["records of stream 29", "record only of", "catalog only of"]),
    ]
}

/// The worked examples of reference 03 §10, by their numbers.
fn examples() -> Vec<Row> {
    let tree = |name| row(name, Tree::Match);
    let home = |name| row(name, Tree::Home);
    vec![
        tree("example-01"),
        tree("example-02").options(r#"Exclude = yes ; WildFile = "*.o""#),
        tree("example-03").options(r#"Exclude = yes ; Wild = "*.o""#),
        tree("example-04").options(r#"Exclude = yes ; Wild = "a.o""#),
        tree("example-05").options(r#"Exclude = yes ; WildFile = "*/obj/*""#),
        tree("example-06").options(r#"Exclude = yes ; WildDir = "*/obj""#),
        tree("example-07").options(r#"Exclude = yes ; WildDir = "*/obj/""#),
        tree("example-08").options(r#"Exclude = yes ; WildDir = "*/src/*""#),
        tree("example-09").options(r#"WildFile = "*.c""#).options(r#"Exclude = yes ; RegexFile = ".*""#),
        tree("example-10").options(r#"WildFile = "*.c""#).options("Exclude = yes"),
        tree("example-11").options(r#"WildFile = "*.c" ; WildDir = "*""#).options("Exclude = yes"),
        tree("example-12").options(r#"Exclude = yes ; Wild = "*.o""#).options(r#"Wild = "*/top.o""#),
        tree("example-13").options(r#"Wild = "*/top.o""#).options(r#"Exclude = yes ; Wild = "*.o""#),
        tree("example-14").options(r#"Exclude = yes ; WildFile = "*.txt""#),
        tree("example-15").options(r#"Exclude = yes ; IgnoreCase = yes ; WildFile = "*.txt""#),
        tree("example-16").options(r#"Exclude = yes ; Regex = "/[ab]\\.o$""#),
        tree("example-17").options(r#"Exclude = yes ; IgnoreCase = yes ; RegexFile = "\\.txt$""#),
        tree("example-18").options(r#"Exclude = yes ; RegexDir = "src$""#),
        tree("example-19").options(r#"Exclude = yes ; Regex = "^a\\.c$""#),
        tree("example-20").exclude("*.o").exclude("@/doc"),
        tree("example-21").exclude("@/doc/"),
        tree("example-22").exclude("doc").exclude("a.c"),
        tree("example-23").exclude("@"),
        tree("example-24").exclude("@*"),
        tree("example-25").options(r#"WildFile = "*.o""#).exclude("*.o"),
        tree("example-26").options(r#"Exclude = yes ; WildFile = "*/lnk*""#),
        tree("example-27").options(r#"Exclude = yes ; Wild = "@""#),
        tree("example-28").options("Exclude = yes ; FsType = ext2"),
        tree("example-29").options(r#"Exclude = yes ; WildFile = "*""#),
        home("example-30")
            .options(r#"Signature = MD5 ; WildFile = "*/keep.*""#)
            .options(r#"Exclude = yes ; IgnoreCase = yes ; WildFile = "*.mp3" ; RegexDir = "/home/[^/]+/\\.cache$""#)
            .options("Signature = SHA1 ; Compression = GZIP6"),
        tree("example-31")
            .options(r#"Wild = "@/home" ; Wild = "@/home/u1" ; Wild = "@/home/u1/*""#)
            .options(r#"Exclude = yes ; RegexDir = ".*" ; RegexFile = ".*""#),
        tree("example-32")
            .options(r#"RegexDir = ".*" ; RegexFile = "^@/.*\\.(mp3|odt)$""#)
            .options(r#"Exclude = yes ; Wild = "*""#),
        tree("example-33").file("@/two/a").and().file("@/two/b").exclude("*.tmp"),
    ]
}

/// More of the pattern dialects, and the order in which blocks decide.
fn patterns() -> Vec<Row> {
    let tree = |name| row(name, Tree::Match);
    vec![
        tree("wild-set").options(r#"Exclude = yes ; Wild = "*/[a-c].o""#),
        tree("wild-negated-set").options(r#"Exclude = yes ; Wild = "*/[!a].o""#),
        tree("wild-question").options(r#"Exclude = yes ; WildFile = "*/?.c""#),
        tree("wild-escaped").options(r#"Exclude = yes ; WildFile = "*/star\\*" ; WildFile = "*/br\\[a\\]*""#),
        tree("wild-open-bracket").options(r#"Exclude = yes ; WildFile = "*/br[a*""#),
        tree("wild-dot").options(r#"Exclude = yes ; WildFile = "*/*dot""#),
        tree("wild-backslash").options(r#"Exclude = yes ; Wild = "*back\\\\slash""#),
        tree("wild-dir-keeps-top").options(r#"Exclude = yes ; WildDir = "*""#),
        tree("wild-case").options(r#"Exclude = yes ; IgnoreCase = yes ; Wild = "*/SRC/*.[CO]""#),
        tree("regex-icase-class").options(r#"Exclude = yes ; IgnoreCase = yes ; Regex = "/[[:upper:]]+\\.txt$""#),
        tree("regex-alternatives").options(r#"Exclude = yes ; RegexFile = "(a|top)\\.(o|c)$""#),
        tree("regex-interval").options(r#"Exclude = yes ; RegexFile = "/[a-z]{1,3}\\.o$""#),
        tree("regex-back-reference").options(r#"Exclude = yes ; Regex = "(o)b(j)""#),
        tree("regex-empty-alternative").options(r#"Exclude = yes ; RegexFile = "^.*/(a|b)?\\.dot$""#),
        tree("three-blocks")
            .options(r#"Signature = MD5 ; Wild = "*.c""#)
            .options(r#"Exclude = yes ; Wild = "*/obj" ; Wild = "*.mp3""#)
            .options(r#"Signature = SHA1 ; Compression = GZIP ; Wild = "*""#),
        tree("excluded-by-block-and-list")
            .options(r#"Exclude = yes ; Wild = "*.c""#)
            .exclude("*.o")
            .exclude("*/home/*"),
        tree("exclude-name-in-middle").exclude("@/home/u1").exclude("@/src/obj/b.o"),
        tree("exclude-wild-directory").exclude("@/h*"),
        tree("exclude-question").exclude("@/src/?.o"),
        tree("top-level-file").options("Signature = MD5").file("@/top.o").file("@/src/a.c"),
        tree("top-level-link").options("Signature = MD5").file("@/lnk.o").differs(OF_PARENTS, &MODE_OF_A_LINK),
        tree("top-level-slash").options("Signature = MD5").file("@/src/").file("@//doc"),
        tree("top-level-missing").options("Signature = MD5").file("@/no/such").file("@/doc"),
        tree("overlapping-names").options("Signature = MD5").file("@").file("@/src").file("@/src/obj/b.o"),
        tree("same-name-twice").options("Signature = MD5").file("@/src").file("@/src"),
        tree("two-includes")
            .options("Signature = MD5")
            .file("@/src")
            .and()
            .options("Signature = SHA1 ; Compression = LZO")
            .file("@/doc"),
        tree("includes-with-patterns")
            .options(r#"Exclude = yes ; Wild = "*.o""#)
            .file("@/src")
            .and()
            .options(r#"Exclude = yes ; Wild = "*.c""#)
            .file("@/src")
            .and()
            .options("Signature = MD5")
            .file("@/home"),
        tree("options-leak")
            .options("Compression = GZIP")
            .file("@/src")
            .and()
            .options("Signature = MD5")
            .file("@/top.o")
            .file("@/doc")
            .differs(
                "Options leak from one entry or Include",
                &[
                    "record only of stock: 1 UATTR",
                    "record only of ours: 1 UATTR",
                    "4 GZIP top.o",
                    "2 DATA top.o",
                    "catalog only of",
                ],
            ),
        tree("data-stream-of-first-block")
            .options(r#"WildFile = "*.c" ; Compression = GZIP"#)
            .options("Signature = MD5"),
        tree("data-stream-of-last-block")
            .options(r#"WildFile = "*.c" ; Signature = MD5"#)
            .options("Compression = GZIP"),
        tree("data-stream-of-both-blocks").options(r#"WildFile = "*.c" ; Sparse = yes"#).options("Compression = GZIP"),
        tree("data-stream-of-excluding-block")
            .options(r#"Exclude = yes ; WildFile = "*.c" ; Sparse = yes"#)
            .options("Compression = GZIP"),
        tree("data-stream-of-names").options("Compression = GZIP").file("@/top.o").file("@/src").file("@/doc"),
        tree("data-stream-of-later-names")
            .options(r#"WildFile = "*.c" ; Compression = GZIP"#)
            .options("Signature = MD5")
            .file("@/src")
            .file("@/doc")
            .differs("names a data stream that belongs to the entry before", OTHER_STREAM),
        tree("data-stream-of-another-include")
            .options("Sparse = yes")
            .file("@/src")
            .and()
            .options("Compression = GZIP")
            .file("@/doc")
            .differs("names a data stream that belongs to the entry before", OTHER_STREAM),
        tree("strip-1").options("StripPath = 1 ; Signature = MD5"),
        tree("strip-2").options("StripPath = 2 ; Signature = MD5"),
        tree("strip-3").options("StripPath = 3 ; Signature = MD5"),
        tree("strip-5").options("StripPath = 5 ; Signature = MD5"),
        tree("strip-first-block-only").options(r#"StripPath = 2 ; Wild = "*.o""#).options("Signature = MD5"),
        tree("strip-last-block-only")
            .options(r#"Wild = "*.o""#)
            .options("StripPath = 2 ; Signature = MD5")
            .differs(OF_PARENTS, &MODE_OF_A_LINK),
    ]
}

/// Mount points, flags, special files, recursion (reference 03 §5).
fn walks() -> Vec<Row> {
    let tree = |name| row(name, Tree::Walk);
    let written = |name| row(name, Tree::Written).file("@/fifo").alone();
    vec![
        tree("walk-plain").options("Signature = MD5"),
        tree("onefs-no").options("OneFS = no ; Signature = MD5"),
        tree("mount-named").options("Signature = MD5").file("@").file("@/m"),
        tree("mount-excluded").options("Signature = MD5").exclude("@/m"),
        tree("fstype-ext2").options("OneFS = no ; FsType = ext2"),
        tree("fstype-two").options("OneFS = no ; FsType = ext2 ; FsType = tmpfs"),
        tree("fstype-tmpfs").options("FsType = tmpfs").file("@").file("@/m"),
        tree("fstype-ext4").options("FsType = ext4"),
        tree("drivetype").options("DriveType = fixed"),
        tree("recurse-no").options("Recurse = no ; Signature = MD5"),
        tree("recurse-no-of-some").options(r#"Recurse = no ; WildDir = "*/half""#).options("Signature = MD5"),
        tree("nodump").options("HonorNoDumpFlag = yes ; Signature = MD5"),
        tree("nodump-top")
            .options("HonorNoDumpFlag = yes")
            .file("@/nodump-file")
            .file("@/nodump-directory")
            .file("@/x"),
        tree("ignored-directory").setting("ExcludeDirContaining = .nobackup").options("Signature = MD5"),
        tree("ignored-deeper").setting("ExcludeDirContaining = sub/.nobackup").options("Signature = MD5"),
        tree("ignored-link").setting("ExcludeDirContaining = .ignore-link").options("Signature = MD5"),
        tree("ignored-in-one-include")
            .setting("ExcludeDirContaining = .nobackup")
            .options("Signature = MD5")
            .file("@/ignored")
            .file("@/half")
            .and()
            .options("Signature = MD5")
            .file("@/half"),
        tree("ignored-and-excluded")
            .setting("ExcludeDirContaining = .nobackup")
            .options(r#"Exclude = yes ; WildDir = "*/ignored""#),
        tree("fifo-top").options("Signature = MD5").file("@/fifo"),
        tree("fifo-nested-read").options("ReadFifo = yes ; Signature = MD5"),
        written("fifo-read").options("ReadFifo = yes ; Signature = MD5"),
        written("fifo-read-gzip").options("ReadFifo = yes ; Compression = GZIP"),
        written("fifo-read-sparse").options("ReadFifo = yes ; Sparse = yes"),
        row("device-top", Tree::Types).options("Signature = MD5").file("@/special/character-device"),
        row("socket-top", Tree::Types).options("Signature = MD5").file("@/special/socket").file("@/special"),
    ]
}

/// Names that the File Daemon reads from a file or a program (reference 03 §1.5).
fn lists() -> Vec<Row> {
    let tree = |name| row(name, Tree::Walk).options("Signature = MD5");
    vec![
        tree("list-of-client").file(r"\\<@/../lists/names"),
        tree("list-of-director").file("<@/../lists/names"),
        tree("list-missing").file(r"\\<@/../lists/none").ends('f'),
        tree("program-of-client").file(r"\\|echo @/plain"),
        tree("program-words").file(r"\\|sh -c 'echo @/x; echo; echo @/half'"),
        tree("program-codes").file(r"\\|echo @/%% @/%d %l"),
        tree("program-fails").file(r"\\|sh -c 'echo @/x; exit 3'").ends('f'),
        tree("program-missing").file(r"\\|/no/such/program").ends('f'),
        tree("exclude-list").exclude(r"\\<@/../lists/patterns"),
        tree("exclude-program").exclude(r"\\|echo *.nobackup"),
    ]
}

/// Hard links in and out of order.
fn links() -> Vec<Row> {
    let tree = |name| row(name, Tree::Links);
    vec![
        tree("links-plain").options("Signature = MD5"),
        tree("links-gzip").options("Signature = SHA1 ; Compression = GZIP"),
        tree("links-off").options("HardLinks = no ; Signature = MD5"),
        tree("links-strip").options("StripPath = 3 ; Signature = MD5"),
        tree("links-xattr").options("XattrSupport = yes ; AclSupport = yes"),
        tree("links-by-name").options("Signature = MD5").file("@/three/a").file("@/three/b").file("@/four"),
        tree("links-last-of-directory").options("Signature = MD5").file("@/only").file("@/other").differs(
            "names the directory's number instead of the file's",
            &[
                "record only of stock: 1 UATTR 1 @/other/y: as on the disk [2, ",
                "record only of ours: 1 UATTR 1 @/other/y: as on the disk [1, ",
                "catalog only of stock: @/other/y: ",
                "catalog only of ours: @/other/y: ",
            ],
        ),
        tree("links-first-name-left-out")
            .options(r#"Exclude = yes ; WildFile = "*/three/*""#)
            .options("Signature = MD5")
            .file("@/three")
            .file("@/four")
            .differs(
                "first name is left out by the Options",
                &[
                    "record only of stock: 1 UATTR 1 @/four/c: ",
                    "record only of ours: 1 UATTR 3 @/four/c: ",
                    "record only of ours: 2 DATA",
                    "record only of ours: 3 MD5",
                    "catalog only of stock: @/four/c: ",
                    "catalog only of ours: @/four/c: ",
                    "count only of",
                    "restored only of stock: status E",
                    "restored only of ours",
                ],
            ),
    ]
}

/// A name that is gone since the Full leads to a file that a later job has saved.
const LATE_LINK: &str = "The record of a hard link can come before that of its first name";
const LINKED: [&str; 2] = ["restored only of ours: source/levels/hard-", ": status "];

/// Levels without a list of files (reference 03 §6).
fn levels() -> Vec<Row> {
    let tree = |name| row(name, Tree::Levels);
    let all = ["Full", "Incremental", "Differential"];
    vec![
        tree("incremental").options("Signature = MD5").incremental().differs(LATE_LINK, &LINKED),
        tree("incremental-twice")
            .options("Signature = MD5")
            .levels(&["Full", "Incremental", "Incremental"])
            .differs(LATE_LINK, &LINKED),
        tree("differential")
            .options("Signature = MD5")
            .levels(&["Full", "Differential", "Differential"])
            .differs(LATE_LINK, &LINKED),
        tree("incremental-differential").options("Signature = SHA1").levels(&all).differs(LATE_LINK, &LINKED),
        tree("differential-incremental").levels(&["Full", "Differential", "Incremental"]).differs(LATE_LINK, &LINKED),
        tree("incremental-without-full").options("Signature = MD5").levels(&["", "Incremental"]),
        tree("incremental-mtime-only").options("MtimeOnly = yes ; Signature = MD5").incremental(),
        tree("incremental-no-hard-links").options("HardLinks = no ; Signature = MD5").incremental(),
        tree("incremental-gzip")
            .options("Compression = GZIP ; Signature = MD5")
            .incremental()
            .differs(LATE_LINK, &LINKED),
        tree("incremental-lzo-sparse")
            .options("Compression = LZO ; Sparse = yes")
            .levels(&all)
            .differs(LATE_LINK, &LINKED),
        tree("incremental-excluding")
            .options(r#"Exclude = yes ; WildDir = "*/many""#)
            .incremental()
            .differs(LATE_LINK, &LINKED),
        tree("incremental-strip").options("StripPath = 2 ; Signature = MD5").incremental().differs(LATE_LINK, &LINKED),
        tree("incremental-recurse-no").options("Recurse = no").incremental().differs(LATE_LINK, &LINKED),
        tree("incremental-onefs-no")
            .options("OneFS = no ; AclSupport = yes ; XattrSupport = yes")
            .incremental()
            .differs(LATE_LINK, &LINKED),
        tree("incremental-two-names")
            .options("Signature = MD5")
            .file("@/kept")
            .file("@/edit")
            .file("@/keep")
            .incremental(),
        row("incremental-unchanged", Tree::Types).options("Signature = MD5").incremental(),
        row("incremental-mounts", Tree::Walk).options("Signature = MD5").incremental(),
        row("differential-mounts", Tree::Walk).options("OneFS = no").levels(&["Full", "Differential"]),
    ]
}

/// Where checksum letters have no digest to compare, ours saves what has another change time.
const WITHOUT_A_SIGNATURE: &str = "Checksum letters do nothing without a signature";
const SAVED_BY_CHANGE_TIME: [&str; 7] = [
    "record only of",
    "catalog only of",
    "message only of stock: fd: ",
    "message only of ours: fd: -rw",
    "turned/link-turned",
    "count only of",
    "restored only of",
];
/// The directory of a link has no record of its own.
const OF_PARENTS: &str = "The missing parent of an object gets its owner and mode at once";
const MODE_OF_A_LINK: [&str; 1] = ["source/match: mode 07"];
/// A link that leads to another name of the same length.
const OF_LINKS: &str = "The same for links and devices";
/// Its directory has the time of the restore where the stock daemon has restored it.
const TURNED_LINK: [&str; 2] = ["/turned", "count only of"];

/// Accurate jobs: each letter, deleted files (reference 04 §13).
fn accurate() -> Vec<Row> {
    let tree = |name| row(name, Tree::Levels).accurate();
    let all = ["Full", "Incremental", "Differential"];
    vec![
        tree("accurate").options("Signature = MD5"),
        tree("accurate-chain").options("Signature = MD5").levels(&all),
        tree("accurate-incrementals").options("Signature = SHA1").levels(&["Full", "Incremental", "Incremental"]),
        tree("accurate-differentials").levels(&["Full", "Differential", "Differential"]),
        tree("accurate-no-options"),
        tree("accurate-i").options("Accurate = i"),
        tree("accurate-p").options("Accurate = p"),
        tree("accurate-n").options("Accurate = n"),
        tree("accurate-u").options("Accurate = u"),
        tree("accurate-g").options("Accurate = g"),
        tree("accurate-s").options("Accurate = s"),
        tree("accurate-a").options("Accurate = a"),
        tree("accurate-m").options("Accurate = m"),
        tree("accurate-c").options("Accurate = c"),
        tree("accurate-d").options("Accurate = d"),
        tree("accurate-M").options("Accurate = M"),
        tree("accurate-M-mtime-only").options("Accurate = M ; MtimeOnly = yes"),
        tree("accurate-A").options("Accurate = A"),
        tree("accurate-mcs").options("Accurate = mcs ; Signature = MD5"),
        tree("accurate-pins5-md5").options("Accurate = pins5 ; Signature = MD5"),
        tree("accurate-s1-sha1").options("Accurate = s1 ; Signature = SHA1").differs(OF_LINKS, &TURNED_LINK),
        tree("accurate-s2-sha256").options("Accurate = s2 ; Signature = SHA256").differs(OF_LINKS, &TURNED_LINK),
        tree("accurate-s3-sha512").options("Accurate = s3 ; Signature = SHA512").differs(OF_LINKS, &TURNED_LINK),
        tree("accurate-5-xxh64").options("Accurate = s5 ; Signature = XXHASH64").differs(
            "Checksum letters do nothing",
            &[
                "record only of",
                "catalog only of",
                "message only of stock: fd:      Unchanged file skipped: @/edit",
                "message only of stock: fd:      Unchanged file skipped: @/edit-quietly",
                "message only of ours: fd: -rw-r--r--   1 root     root                   200",
                "turned/link-turned",
                "count only of",
                "restored only of",
            ],
        ),
        tree("accurate-5-sparse")
            .options("Accurate = s5 ; Signature = MD5 ; Sparse = yes")
            .differs(OF_LINKS, &TURNED_LINK),
        tree("accurate-5-no-signature").options("Accurate = s5").differs(WITHOUT_A_SIGNATURE, &SAVED_BY_CHANGE_TIME),
        tree("accurate-5-gzip").options("Accurate = pins5 ; Signature = MD5 ; Compression = GZIP"),
        tree("accurate-all-letters").options("Accurate = ipnugsamcd5 ; Signature = MD5").levels(&all),
        tree("accurate-strip").options("StripPath = 2 ; Signature = MD5"),
        tree("accurate-strip-list").options("StripPath = 2 ; Signature = MD5 ; Accurate = pins5").levels(&all),
        tree("accurate-excluding").options(r#"Exclude = yes ; WildDir = "*/many""#).options("Signature = MD5"),
        tree("accurate-last-letters-win").options(r#"Accurate = A ; Wild = "*.none""#).options("Accurate = s"),
        tree("accurate-no-hard-links").options("HardLinks = no ; Signature = MD5 ; Accurate = pinms"),
        row("accurate-unchanged", Tree::Types).options("Signature = MD5 ; Accurate = pinsm5").accurate(),
        row("accurate-mounts", Tree::Walk).options("Signature = MD5").accurate(),
        row("accurate-links", Tree::Links).options("Signature = MD5 ; Accurate = pinsm5").accurate(),
        tree("accurate-o").options("Accurate = pinugsmo5 ; Signature = MD5").differs(
            "every later entry of the job is sent without data",
            // Other data under the old times is compared, too.
            &["record only of", "catalog only of", "count only of", "restored only of", "@/edit-quietly"],
        ),
    ]
}

/// Full jobs on a base (reference 04 §13.7).
fn bases() -> Vec<Row> {
    let tree = |name| row(name, Tree::Levels).levels(&["Base", "Full"]);
    vec![
        tree("base").options("Signature = MD5").differs(OF_LINKS, &["turned/link-turned", "restored only of"]),
        tree("base-no-options").differs(WITHOUT_A_SIGNATURE, &SAVED_BY_CHANGE_TIME),
        tree("base-letters")
            .options("Signature = MD5 ; BaseJob = pmugcs5 ; Accurate = mcs")
            .differs(LATE_LINK, &[": status "]),
        tree("base-size-only").options("BaseJob = s"),
        tree("base-sha1-gzip")
            .options("Signature = SHA1 ; BaseJob = pins1 ; Compression = GZIP")
            .differs(LATE_LINK, &[": status "]),
        tree("base-incremental")
            .options("Signature = MD5")
            .levels(&["Base", "Full", "Incremental"])
            .differs(OF_LINKS, &["/turned", "count only of", "restored only of"]),
        row("base-unchanged", Tree::Types).options("Signature = MD5 ; XattrSupport = yes").levels(&["Base", "Full"]),
    ]
}

/// Rows under directives of the File Daemon's Director resource, `@` being the tree (reference 03
/// §4.3, §1.5.1).
pub(crate) fn allowed_rows() -> Vec<(&'static [&'static str], Vec<Row>)> {
    let tree = |name| row(name, Tree::Allowed).options("Signature = MD5");
    // `/ab` for `/a`.
    let by_parts = |row: Row| {
        row.differs(
            "`Allowed Backup Directories` are compared",
            &["record only of", "catalog only of", "message only of", "count only of"],
        )
    };
    vec![
        (
            &[r#"AllowedBackupDirectories = "@/a""#],
            vec![
                by_parts(tree("allowed-whole")),
                tree("allowed-names").file("@/o").file("@/rootf").file("@/a/f"),
                by_parts(tree("allowed-above").file("@/../allowed")),
                by_parts(tree("allowed-incremental").incremental()),
            ],
        ),
        (
            &[r#"AllowedBackupDirectories = "@/a/""#],
            vec![tree("allowed-slash"), tree("allowed-slash-name").file("@/a")],
        ),
        (
            &[r#"ExcludedBackupDirectories = "@/a""#],
            vec![tree("excluded-whole"), tree("excluded-names").file("@/a").file("@/ab/h")],
        ),
        (
            &[r#"AllowedBackupDirectories = "@/a", "@/o""#, r#"ExcludedBackupDirectories = "@/a/in""#],
            vec![
                by_parts(tree("allowed-and-excluded")),
                tree("allowed-and-excluded-names").file("@/a/in/g").file("@/o/p"),
            ],
        ),
        (
            &["AllowedScriptDirectories = /bin"],
            vec![
                tree("script-allowed").file(r"\\|/bin/echo @/a"),
                tree("script-elsewhere").file(r"\\|/usr/bin/echo @/a").ends('f'),
                tree("script-around")
                    .file(r"\\|/bin/../no-such-directory/echo @/a")
                    .ends('f')
                    .differs("`Allowed Script Directories` let", &["Cannot run program", "Error running program"]),
                tree("script-by-name").file(r"\\|echo @/a").ends('f'),
                tree("script-characters").file(r"\\|/bin/sh -c 'echo @/a; echo @/o'").ends('f'),
            ],
        ),
    ]
}

/// Files that a Full can't open, and that the accurate job behind it tries again.
const NO_CHANGE_TIME: [&str; 8] = [
    "0 Full record only of stock: 1 UATTR 3 ",
    "0 Full catalog only of stock: ",
    "secret: ctime 0 [0, 0, 2] ||0|",
    "secret: ctime 0 [0, 0, 2] 0 0",
    "1 Incremental message only of stock: fd:      Unchanged file skipped: ",
    "1 Incremental message only of ours: fd:      Cannot open ",
    "1 Incremental count only of stock: ",
    "1 Incremental count only of ours: ",
];

/// Rows of daemons that run as an ordinary user (reference 03 §11.6).
pub(crate) fn private_rows() -> Vec<Row> {
    let tree = |name| row(name, Tree::Private).options("Signature = MD5");
    let documented = "In a Full the record of one that can't be opened has no change time";
    let not_opened = |row: Row| row.differs(documented, NO_CHANGE_TIME.split_at(4).0);
    vec![
        not_opened(tree("private").file("@/some")),
        // One that can be read: a job that can read no file fails.
        not_opened(
            tree("private-names")
                .file("@/some/secret")
                .file("@/some/noopen")
                .file("@/some/noexec/f")
                .file("@/some/es")
                .file("@/some/public"),
        ),
        not_opened(
            row("private-metadata", Tree::Private)
                .options("AclSupport = yes ; XattrSupport = yes ; NoAtime = yes")
                .file("@/some"),
        ),
        tree("private-accurate").file("@/some").accurate().differs(documented, &NO_CHANGE_TIME),
        tree("private-links").file("@/some/public").file("@/linked").differs(
            "The same when the first name could not be opened",
            &["record only of", "catalog only of", "message only of ours: fd:      Cannot open", "count only of"],
        ),
    ]
}
