//! Which entries the Options and Exclude blocks select (reference 03 §10).

use std::os::unix::fs::symlink;
use std::process::Command;

use fd_os::regex::{PosixRegex, RegexOptions};
use fd_records::{Compression, DigestKind};

use crate::tree::Tree;

/// The tree of reference 03 §10.
fn source_tree() -> Tree {
    let tree = Tree::new(&["src/a.o", "src/a.c", "src/obj/b.o", "doc/R.TXT", "doc/n.txt", "top.o"]);
    symlink("top.o", tree.path("lnk.o")).expect("a symlink");
    tree
}

/// All of it, sorted, without the tree's own name in front.
const ALL: [&str; 11] =
    ["", "doc/", "doc/R.TXT", "doc/n.txt", "lnk.o", "src/", "src/a.c", "src/a.o", "src/obj/", "src/obj/b.o", "top.o"];

/// What is saved, sorted, without the tree's own name in front.
fn saved(tree: &Tree, lines: &[&str]) -> Vec<String> {
    let mut names: Vec<_> = tree
        .entries(lines)
        .iter()
        .map(|entry| tree.short(&entry.record_names().name).trim_start_matches("/t/").to_owned())
        .collect();
    names.sort();
    names
}

fn but(left_out: &[&str]) -> Vec<&'static str> {
    ALL.into_iter().filter(|name| !left_out.contains(name)).collect()
}

#[test]
fn rejected_directories_are_not_entered_but_names_of_the_fileset_are_never_filtered() {
    let tree = Tree::new(&["src/a.o", "src/a.c", "doc/n.txt"]);
    assert_eq!(
        tree.sorted(&["I", "O e", "WF *.o", "N", "F /t"]),
        ["/t/", "/t/doc/", "/t/doc/n.txt", "/t/src/", "/t/src/a.c"]
    );
    assert_eq!(tree.sorted(&["I", "O e", "WD */src", "N", "F /t"]), ["/t/", "/t/doc/", "/t/doc/n.txt"]);
    assert_eq!(tree.full(&["I", "F /t/src/a.o", "N", "N", "E", "F *.o"]), ["/t/src/a.o"]);
    assert_eq!(tree.full(&["I", "F /t", "N", "N", "E", "F /t*"]), ["/t/"]);
}

/// Examples 1 to 29 of reference 03 §10, except 28, which is about file systems. Each was observed
/// with the stock daemon.
#[test]
fn examples_of_the_source_tree() {
    let objects = ["lnk.o", "src/a.o", "src/obj/b.o", "top.o"];
    let no_objects = but(&objects);
    let directories = vec!["", "doc/", "src/", "src/obj/"];
    let cases: [(u32, &[&str], Vec<&str>); 28] = [
        (1, &[], but(&[])),
        (2, &["O e", "WF *.o"], no_objects.clone()),
        (3, &["O e", "W *.o"], no_objects.clone()),
        (4, &["O e", "W a.o"], but(&[])),
        (5, &["O e", "WF */obj/*"], but(&["src/obj/b.o"])),
        (6, &["O e", "WD */obj"], but(&["src/obj/", "src/obj/b.o"])),
        (7, &["O e", "WD */obj/"], but(&[])),
        (8, &["O e", "WD */src/*"], but(&["src/obj/", "src/obj/b.o"])),
        (9, &["O ", "WF *.c", "N", "O e", "RF .*"], vec!["", "doc/", "src/", "src/a.c", "src/obj/"]),
        (10, &["O ", "WF *.c", "N", "O e"], vec![""]),
        (11, &["O ", "WF *.c", "WD *", "N", "O e"], vec!["", "doc/", "src/", "src/a.c", "src/obj/"]),
        (12, &["O e", "W *.o", "N", "O ", "W */top.o"], no_objects.clone()),
        (13, &["O ", "W */top.o", "N", "O e", "W *.o"], but(&objects[..3])),
        (14, &["O e", "WF *.txt"], but(&["doc/n.txt"])),
        (15, &["O ei", "WF *.txt"], but(&["doc/n.txt", "doc/R.TXT"])),
        (16, &["O e", "R /[ab]\\.o$"], but(&["src/a.o", "src/obj/b.o"])),
        (17, &["O ei", "RF \\.txt$"], but(&["doc/n.txt", "doc/R.TXT"])),
        (18, &["O e", "RD src$"], vec!["", "doc/", "doc/R.TXT", "doc/n.txt", "lnk.o", "top.o"]),
        (19, &["O e", "R ^a\\.c$"], but(&[])),
        (20, &["E", "F *.o", "F /t/doc"], vec!["", "src/", "src/a.c", "src/obj/"]),
        (21, &["E", "F /t/doc/"], but(&[])),
        (22, &["E", "F doc", "F a.c"], but(&[])),
        (23, &["E", "F /t"], but(&[])),
        (24, &["E", "F /t*"], vec![""]),
        (25, &["O ", "WF *.o", "N", "F /t", "N", "E", "F *.o"], but(&[])),
        (26, &["O e", "WF */lnk*"], but(&["lnk.o"])),
        (27, &["O e", "W /t"], but(&[])),
        (29, &["O e", "WF *"], directories),
    ];
    let tree = source_tree();
    for (number, lines, expected) in cases {
        let lines = match lines.first() {
            Some(&"E") => [["I", "F /t", "N", "N"].as_slice(), lines].concat(),
            _ if lines.contains(&"F /t") => [["I"].as_slice(), lines].concat(),
            _ => [["I"].as_slice(), lines, &["N", "F /t"]].concat(),
        };
        assert_eq!(saved(&tree, &lines), expected, "example {number}");
    }
}

/// Example 28: a block that rejects and has no patterns rejects each entry, even if it lists a file
/// system.
#[test]
fn a_rejecting_block_without_patterns() {
    let tree = source_tree();
    let fileset = tree.fileset(&["I", "O e", "X ext2", "N", "F /t"]);
    for is_directory in [true, false] {
        let path = tree.with_root("/t/src");
        assert!(!fileset.judge(&fileset.includes()[0], path.as_bytes(), is_directory).accepted);
    }
}

fn home_tree() -> Tree {
    Tree::new(&["home/u1/.cache/c", "home/u1/doc.odt", "home/u2/song.MP3", "home/u2/a.mp3", "home/u2/keep.mp3"])
}

/// Example 30, with the options of each entry.
#[test]
fn each_entry_has_the_options_of_the_block_that_decided() {
    let tree = home_tree();
    let lines = [
        "I",
        "O M",
        "WF */keep.*",
        "N",
        "O ei",
        "WF *.mp3",
        "RD /home/[^/]+/\\.cache$",
        "N",
        "O SZ6",
        "N",
        "F /t/home",
    ];
    let mut found: Vec<_> = tree
        .entries(&lines)
        .iter()
        .map(|entry| (tree.short(&entry.record_names().name), entry.options.digest, entry.options.compression))
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    let (md5, sha1, gzip) = (Some(DigestKind::Md5), Some(DigestKind::Sha1), Some(Compression::Gzip(6)));
    let expected = [
        // A name of the FileSet itself has the options of all blocks.
        ("/t/home/", md5, gzip),
        ("/t/home/u1/", sha1, gzip),
        ("/t/home/u1/doc.odt", sha1, gzip),
        ("/t/home/u2/", sha1, gzip),
        ("/t/home/u2/keep.mp3", md5, None),
    ];
    assert_eq!(found, expected.map(|(name, digest, compression)| (name.to_owned(), digest, compression)));
}

#[test]
fn examples_31_and_32() {
    let tree = home_tree();
    let lines = ["I", "O ", "W /t/home", "W /t/home/u1", "W /t/home/u1/*", "N", "O e", "RD .*", "RF .*", "N", "F /t"];
    assert_eq!(
        saved(&tree, &lines),
        ["", "home/", "home/u1/", "home/u1/.cache/", "home/u1/.cache/c", "home/u1/doc.odt"]
    );
    let lines = ["I", "O ", "RD .*", "RF ^/t/.*\\.(mp3|odt)$", "N", "O e", "W *", "N", "F /t"];
    assert_eq!(
        saved(&tree, &lines),
        [
            "",
            "home/",
            "home/u1/",
            "home/u1/.cache/",
            "home/u1/doc.odt",
            "home/u2/",
            "home/u2/a.mp3",
            "home/u2/keep.mp3"
        ]
    );
}

/// Example 33.
#[test]
fn excludes_apply_to_all_includes() {
    let tree = Tree::new(&["a/x.tmp", "b/x.tmp", "b/y"]);
    let found = tree.full(&["I", "F /t/a", "N", "N", "I", "F /t/b", "N", "N", "E", "F *.tmp"]);
    assert_eq!(found, ["/t/a/", "/t/b/y", "/t/b/"]);
}

/// Many expressions of a block are matched together; the result must be the same as one by one. The
/// locale belongs to the process, so each one gets a process of its own.
#[test]
fn many_expressions_are_each_one_of_them() {
    for name in ["C", "C.UTF-8"] {
        let program = std::env::current_exe().expect("this program");
        let arguments = ["--exact", "matching::many_expressions_in_the_locale_of_this_process"];
        let status = Command::new(program).args(arguments).env("LC_ALL", name).status();
        assert!(status.expect("a process").success(), "{name}");
    }
}

#[test]
fn many_expressions_in_the_locale_of_this_process() {
    if !["C", "C.UTF-8"].contains(&std::env::var("LC_ALL").as_deref().unwrap_or_default()) {
        return skip::unasked();
    }
    fd_os::locale::set_from_environment();
    let tree = Tree::new(&[]);
    let mut state = 0x1234_5678_u32;
    let mut below = |end: usize| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        usize::try_from(state).expect("a small number") % end
    };
    let pieces = [
        "a",
        "b",
        "K",
        "s",
        "ab",
        "/",
        "\\.",
        ".",
        "[ab]",
        "[^]a]",
        "[[:alpha:]]",
        "(ab|K)",
        "(a(b)?)",
        "^",
        "$",
        "\\b",
        "\\<",
        "\\w",
        "é",
        "{0,1}",
        "*",
        "?",
        "+",
        "{2}",
        "|",
        ")",
        "-",
        "~",
        "\\\\",
        "[)(]",
        "[\\]",
    ];
    let words =
        ["a", "b", "k", "K", "s", "S", "i", "/", ".", "é", "x", "~", "-", "\\", ")", "ab", "\u{17f}", "\u{212a}"];
    let (mut expressions, mut hits, mut misses) = (Vec::new(), 0, 0);
    while expressions.len() < 1200 {
        let expression: String = (0..3 + below(5)).map(|_| pieces[below(pieces.len())]).collect();
        if PosixRegex::new(expression.as_bytes(), RegexOptions::default()).is_ok() {
            expressions.push(expression);
        }
    }
    let texts: Vec<String> = (0..300).map(|_| (0..below(9)).map(|_| words[below(words.len())]).collect()).collect();
    for (number, some) in expressions.chunks(9).enumerate() {
        let ignore_case = number % 2 == 1;
        let letters = if ignore_case { "O ei" } else { "O e" };
        let lines: Vec<String> = some.iter().map(|expression| format!("RF {expression}")).collect();
        let lines: Vec<&str> = ["I", letters].into_iter().chain(lines.iter().map(String::as_str)).collect();
        let fileset = tree.fileset(&[&lines[..], &["N"]].concat());
        let alone: Vec<_> = some
            .iter()
            .map(|expression| {
                let options = RegexOptions { ignore_case, newline: false };
                PosixRegex::new(expression.as_bytes(), options).expect("a good one")
            })
            .collect();
        for text in &texts {
            let wanted = alone.iter().any(|expression| expression.is_match(text.as_bytes()));
            let found = !fileset.judge(&fileset.includes()[0], text.as_bytes(), false).accepted;
            assert_eq!(found, wanted, "{text:?} with {some:?}");
            hits += usize::from(found);
            misses += usize::from(!found);
        }
    }
    assert!(hits > 5000 && misses > 5000, "{hits} hits, {misses} misses");
}
