//! A FileSet line by line, as Directors send it (reference 03 §1).

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    reason = "what helps a test fails the test, like the test itself"
)]

use std::ffi::CStr;

use fd_fileset::{
    BadFileSet, FileSet, Flags, LineError, ListFailure, ListKind, ListRequest, Parser, Reaction, Regex, RegexCompiler,
};
use fd_records::{Compression, DigestKind};

const MD5: Flags = Flags::of_digest(DigestKind::Md5);
const SHA1: Flags = Flags::of_digest(DigestKind::Sha1);
const SHA256: Flags = Flags::of_digest(DigestKind::Sha256);

/// Literal search in the place of regular expressions; notes when case is to be ignored.
struct Literal;

struct Needle(Vec<u8>, bool);

impl RegexCompiler for Literal {
    fn compile(&self, pattern: &[u8], ignore_case: bool) -> Result<Box<dyn Regex>, String> {
        if pattern == b"(" {
            return Err("Unmatched ( or \\(".to_owned());
        }
        Ok(Box::new(Needle(pattern.to_vec(), ignore_case)))
    }
}

impl Regex for Needle {
    fn is_match(&self, text: &CStr) -> bool {
        let text = text.to_bytes();
        let text = if self.1 { text.to_ascii_lowercase() } else { text.to_vec() };
        text.windows(self.0.len()).any(|part| part == self.0)
    }

    fn memory(&self) -> usize {
        self.0.len()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A parser that has read these lines, all of them good.
fn after<'c>(lines: &[&str]) -> Parser<'c> {
    let mut parser = Parser::new(&Literal);
    for line in lines {
        assert_eq!(parser.line(line.as_bytes()), Ok(Reaction::Accepted), "{line}");
    }
    parser
}

fn fileset(lines: &[&str]) -> FileSet {
    after(lines).finish().expect("a good FileSet")
}

fn names(fileset: &FileSet, include: usize) -> Vec<String> {
    fileset.includes()[include].names().iter().map(|name| text(name)).collect()
}

fn list(parser: &mut Parser<'_>, line: &str) -> ListRequest {
    match parser.line(line.as_bytes()) {
        Ok(Reaction::List(request)) => request,
        other => panic!("{line} gave {other:?}"),
    }
}

/// Expressions that take 100 MiB each, or nothing.
struct Greedy(usize);

impl RegexCompiler for Greedy {
    fn compile(&self, _: &[u8], _: bool) -> Result<Box<dyn Regex>, String> {
        Ok(Box::new(Self(self.0)))
    }
}

impl Regex for Greedy {
    fn is_match(&self, _: &CStr) -> bool {
        false
    }

    fn memory(&self) -> usize {
        self.0
    }
}

#[test]
fn the_memory_of_a_compiled_expression_counts_for_the_bound() {
    for (memory, refused_at) in [(100 << 20, Some(2)), (0, None)] {
        let compiler = Greedy(memory);
        let mut parser = Parser::new(&compiler);
        assert_eq!(parser.line(b"I\n"), Ok(Reaction::Accepted));
        let refused = (0..10).find(|_| parser.line(b"R a\n") == Err(LineError::TooLarge));
        assert_eq!(refused, refused_at);
    }
}

/// A set or an Options block takes many times the memory of its line.
#[test]
fn the_memory_of_compiled_patterns_counts_for_the_bound() {
    let sets = format!("W {}\n", "[a]".repeat(300_000));
    for (first, lines, at_most) in [("I\n", [sets.as_str(), "W x\n"], 10), ("I\n", ["W x\n", "N\n"], 250_000)] {
        let mut parser = Parser::new(&Greedy(0));
        assert_eq!(parser.line(first.as_bytes()), Ok(Reaction::Accepted));
        let refused = (0..at_most).any(|_| lines.iter().any(|line| parser.line(line.as_bytes()).is_err()));
        assert!(refused, "{}", &lines[0][..3]);
    }
    // The names of an Exclude are such patterns, and plain ones are not.
    for (name, at_most) in [("[a]".repeat(300_000), 10), ("a".repeat(900_000), 100)] {
        let mut parser = Parser::new(&Greedy(0));
        assert_eq!(parser.line(b"E\n"), Ok(Reaction::Accepted));
        let refused = (0..at_most).any(|_| parser.line(format!("F {name}\n").as_bytes()).is_err());
        assert_eq!(refused, at_most == 10);
    }
}

#[test]
fn what_is_kept_several_times_counts_as_often() {
    let long = "x".repeat(900_000);
    for (first, line, at_most) in [("I\n", "X ", 100), ("I\n", "XD ", 100), ("E\n", "F ", 150)] {
        let mut parser = Parser::new(&Greedy(0));
        assert_eq!(parser.line(first.as_bytes()), Ok(Reaction::Accepted));
        let taken = (0..at_most).take_while(|_| parser.line(format!("{line}{long}\n").as_bytes()).is_ok()).count();
        assert!(taken > at_most / 2 && taken < at_most, "{line}: {taken}");
    }
}

/// The transcript of reference 03 §1.7.
#[test]
fn every_directive_is_parsed() {
    let mut parser = after(&[
        "I\n",
        "Z .nobackup\n",
        "O S2Z9fhsHwrpmk0AXiRKKcNd2Vpins1:Cmcs:Jpm:P2:\n",
        "R a.*b\n",
        "RD rd\n",
        "RF rf\n",
        "W w*\n",
        "WD /wd*\n",
        "WF /x/y*\n",
        "WF noslash*.o\n",
        "B bb\n",
        "X ext4\n",
        "X tmpfs\n",
        "XD fixed\n",
        "G optplug: a=b\n",
        "N\n",
        "O ZtSe\n",
        "W zz*\n",
        "N\n",
        "F /t",
        "F /t/d1\n",
        "F   /lead  \n",
        "F \n",
    ]);
    assert_eq!(list(&mut parser, "F </etc/list").kind, ListKind::File);
    parser.list_data(b"/from/list\n").expect("names");
    parser.list_end().expect("the end");
    let program = list(&mut parser, "F |echo /t/%n/d1");
    assert_eq!((program.kind, text(&program.argument)), (ListKind::Program, "echo /t/%n/d1".to_owned()));
    parser.list_data(b"/from/program\n\n").expect("names");
    parser.list_end().expect("the end");
    for line in [
        "N\n",
        "P bpipe:file=/x:echo a:cat",
        "N\n",
        "I\n",
        "F /t/h1",
        "N\n",
        "N\n",
        "E\n",
        "F /t/l1",
        "F *.o",
        "N\n",
        "N\n",
    ] {
        assert_eq!(parser.line(line.as_bytes()), Ok(Reaction::Accepted), "{line}");
    }
    let fileset = parser.finish().expect("a good FileSet");
    assert_eq!((fileset.includes().len(), fileset.excludes().len()), (2, 1));
    assert_eq!(names(&fileset, 0), ["/t", "/t/d1", "  /lead", "", "/from/list", "/from/program"]);
    assert_eq!(names(&fileset, 1), ["/t/h1"]);
    assert_eq!(fileset.excludes()[0].names(), [b"/t/l1".to_vec(), b"*.o".to_vec()]);
    let include = &fileset.includes()[0];
    assert_eq!(include.ignore_dir(), Some(b".nobackup".as_slice()));
    assert_eq!(include.plugins(), [b"bpipe:file=/x:echo a:cat"]);
    let blocks: Vec<_> = include.options().collect();
    assert_eq!(blocks.len(), 2);
    assert_eq!(blocks[0].compression, Some(Compression::Gzip(9)));
    assert_eq!(blocks[0].base, [b"bb"]);
    assert_eq!(blocks[0].fs_types, [b"ext4".to_vec(), b"tmpfs".to_vec()]);
    assert_eq!(blocks[0].drive_types, [b"fixed"]);
    assert_eq!(blocks[0].plugin.as_deref(), Some(b"optplug: a=b".as_slice()));
    assert_eq!(blocks[1].compression, Some(Compression::Zstd(19)));
    assert!(blocks[1].flags.contains(Flags::EXCLUDE | SHA1));
}

#[test]
fn letters_of_one_block_accumulate_and_a_line_after_names_opens_another_block() {
    let fileset = fileset(&["I", "O M", "O s", "N", "F /a", "O S2", "F /b", "D old reader", "T old writer", "N"]);
    let include = &fileset.includes()[0];
    let flags: Vec<_> = include.options().map(|block| block.flags).collect();
    assert_eq!(flags, [MD5 | Flags::SPARSE, SHA256, Flags::NONE]);
    assert_eq!(names(&fileset, 0), ["/a", "/b"]);
}

#[test]
fn sub_codes_are_ignored_where_the_reference_ignores_them() {
    let fileset = fileset(&["I", "OD M", "Nx", "FD /x", "Zx .no", "BX b", "Gq plugin", "N", "Pq plug", "N"]);
    assert_eq!(names(&fileset, 0), ["/x"]);
    assert_eq!(fileset.includes()[0].plugins(), [b"plug"]);
    assert_eq!(fileset.includes()[0].ignore_dir(), Some(b".no".as_slice()));
    assert!(fileset.includes()[0].options().next().is_some_and(|block| block.flags == MD5));
}

#[test]
fn the_last_marker_name_is_used() {
    assert_eq!(fileset(&["I", "Z .a", "Z .b"]).includes()[0].ignore_dir(), Some(b".b".as_slice()));
}

#[test]
fn unknown_lines_are_reported_without_their_code() {
    for (line, told) in [
        ("Q foo bar\n", "Invalid FileSet command: foo bar\n"),
        ("\n", "Invalid FileSet command: \n"),
        ("", "Invalid FileSet command: \n"),
        (" foo", "Invalid FileSet command: oo\n"),
        ("i", "Invalid FileSet command: \n"),
    ] {
        let mut parser = after(&["I"]);
        let error = parser.line(line.as_bytes()).expect_err(line);
        assert_eq!(text(&error.text()), told);
        assert_eq!(parser.line(b"Q again"), Ok(Reaction::Accepted), "thrown away");
        assert_eq!(parser.finish().err(), Some(BadFileSet::Told));
    }
}

#[test]
fn unknown_sub_codes_are_refused_silently() {
    for lines in [
        ["Ix"].as_slice(),
        &["Ex"],
        &["I", "RB x"],
        &["I", "Rq x"],
        &["I", "Wq x"],
        &["I", "XF x"],
        // And what comes before any block: the reference crashes.
        &["O M"],
        &["F /x"],
        &["R x"],
        &["W x"],
        &["Z x"],
        &["P x"],
        &["F <list"],
    ] {
        let mut parser = after(lines);
        assert_eq!(parser.line(b"Q anything"), Ok(Reaction::Accepted), "{lines:?}");
        assert_eq!(parser.finish().err(), Some(BadFileSet::Silent), "{lines:?}");
    }
}

#[test]
fn a_bad_expression_is_reported_even_with_an_unknown_sub_code() {
    for line in ["R (", "RD (", "Rq ("] {
        let mut parser = after(&["I"]);
        let error = parser.line(line.as_bytes()).expect_err(line);
        assert_eq!(text(&error.text()), "REGEX ( compile error. ERR=Unmatched ( or \\(\n");
        assert_eq!(parser.finish().err(), Some(BadFileSet::Told));
    }
}

#[test]
fn unknown_letters_are_reported_and_the_job_continues() {
    let mut parser = after(&["I"]);
    assert_eq!(parser.line(b"O MqTs\n"), Ok(Reaction::UnknownLetters(b"qT".to_vec())));
    assert_eq!(text(&fd_fileset::texts::unknown_letter(b'q')), "job.c:2141 Unknown include/exclude option: q\n");
    let fileset = parser.finish().expect("no error state");
    assert!(fileset.includes()[0].options().next().is_some_and(|block| block.flags == MD5 | Flags::SPARSE));
}

#[test]
fn names_of_a_list_file_are_added() {
    let mut parser = after(&["E"]);
    let request = list(&mut parser, "F </etc/list of names\n");
    assert_eq!((request.kind, text(&request.argument)), (ListKind::File, "/etc/list of names".to_owned()));
    let long = "x".repeat(1000);
    for chunk in ["/a\r\n\n  /le", "ad\n", &long, "\n/last"] {
        parser.list_data(chunk.as_bytes()).expect("names");
    }
    parser.list_end().expect("the end");
    let fileset = parser.finish().expect("a good FileSet");
    let found: Vec<_> = fileset.excludes()[0].names().iter().map(|name| text(name)).collect();
    assert_eq!(found, ["/a", "", "  /lead", &long[..999], "x", "/last"]);
}

#[test]
fn empty_lines_of_a_program_are_dropped() {
    let mut parser = after(&["I"]);
    list(&mut parser, "F |prog\n");
    parser.list_data(b"/a\n\n \n/b\n").expect("names");
    parser.list_end().expect("the end");
    assert_eq!(names(&parser.finish().expect("a good FileSet"), 0), ["/a", "/b"]);
}

#[test]
fn lists_that_cannot_be_read_fail_the_fileset() {
    let told = |line: &str, failure: ListFailure| {
        let mut parser = after(&["I"]);
        list(&mut parser, line);
        let error = parser.list_failed(failure).expect_err("an error");
        assert_eq!(parser.line(b"Q"), Ok(Reaction::Accepted));
        assert_eq!(parser.finish().err(), Some(BadFileSet::Told));
        text(&error.text())
    };
    let start = |error: &str| ListFailure::CannotStart { error: error.to_owned() };
    assert_eq!(
        told("F </no", start("No such file or directory")),
        "Cannot open FileSet input file: /no. ERR=No such file or directory\n"
    );
    assert_eq!(told("F |p %n", start("Not in allowed paths")), "Cannot run program: p %n. ERR=Not in allowed paths\n");
    assert_eq!(
        told("P |p", ListFailure::Status { status: 3, error: "Child exited with code 3".to_owned() }),
        "Error running program: p. stat=3: ERR=Child exited with code 3\n"
    );
}

#[test]
fn plugin_commands_need_a_plugin_directory() {
    let mut parser = Parser::new(&Literal).without_plugins();
    assert_eq!(parser.line(b"I"), Ok(Reaction::Accepted));
    let error = parser.line(b"P bpipe:x").expect_err("no directory");
    assert_eq!(error, LineError::NoPluginDirectory { command: b"bpipe:x".to_vec() });
    assert_eq!(text(&error.text()), "Plugin Directory not defined. Cannot use plugin: \"bpipe:x\"\n");
    parser.line(b"P bpipe:y").expect_err("each is told");
    assert!(parser.finish().is_ok_and(|fileset| fileset.includes().iter().all(|include| include.plugins().is_empty())));
    // Also when the command comes out of a list.
    let mut parser = Parser::new(&Literal).without_plugins();
    assert_eq!(parser.line(b"I"), Ok(Reaction::Accepted));
    list(&mut parser, "P <list");
    parser.list_data(b"plug").expect("no whole name yet");
    parser.list_end().expect_err("no directory");
    assert!(parser.finish().is_ok());
}

#[test]
fn a_list_without_an_answer_counts_as_empty() {
    let mut parser = after(&["I"]);
    list(&mut parser, "F <list");
    assert_eq!(parser.line(b"F /x"), Ok(Reaction::Accepted));
    parser.list_data(b"/too late\n").expect("ignored");
    assert_eq!(names(&parser.finish().expect("a good FileSet"), 0), ["/x"]);
}

#[test]
fn case_of_expressions_is_ignored_from_the_letter_on() {
    let fileset = fileset(&["I", "R early", "O ei", "R late", "N", "F /t"]);
    let include = &fileset.includes()[0];
    let rejected = |path: &str| !fileset.judge(include, path.as_bytes(), false).accepted;
    assert!(rejected("/early") && rejected("/late") && rejected("/LATE"));
    assert!(!rejected("/EARLY"), "compiled before the letter");
}

/// Reference 03 §3.2: the options for the names of an Include themselves.
#[test]
fn top_level_options_are_the_sum_of_the_blocks() {
    let fileset = fileset(&[
        "I",
        "O MZ6Vpin:Cmcs1:P2:d2",
        "X xfs",
        "G one",
        "N",
        "O S2AVsug:Jp:P3:",
        "W never",
        "X ext2",
        "N",
        "O ZoXd1",
        "N",
        "F /t",
        "N",
        "I",
        "F /u",
    ]);
    let top = fileset.includes()[0].top_level();
    assert!(top.has(MD5 | SHA256 | Flags::ACL | Flags::XATTR | Flags::COMPRESS));
    assert_eq!(top.digest, Some(DigestKind::Md5));
    assert_eq!(top.compression, Some(Compression::Lzo), "the last one that has any");
    assert_eq!(top.dedup_level, 1);
    assert_eq!(top.strip_path, 0, "the last block's number, even where it is 0");
    assert!(top.fs_types.is_empty(), "the last block's list, even where it is empty");
    assert_eq!(text(&top.verify), "VVpinVsug");
    assert_eq!(text(&top.accurate), "Cmcs1");
    assert_eq!(text(&top.base_job), "Jp");
    assert_eq!(top.plugin.as_deref(), Some(b"one".as_slice()));
    // The second Include is independent of the first.
    let plain = fileset.includes()[1].top_level();
    assert_eq!(plain.flags, Flags::NONE);
    assert_eq!((plain.digest, plain.compression), (None, None));
    assert_eq!((text(&plain.accurate), text(&plain.base_job)), ("mcs".to_owned(), "Jspug5".to_owned()));
}

#[test]
fn texts_in_force_are_cut_at_19_bytes() {
    let fileset = fileset(&["I", "O Vpinugsamcd5:Cpinugsamcd5123pinugs:", "N", "O Vpinugsamcd5:", "N", "F /t"]);
    let top = fileset.includes()[0].top_level();
    assert_eq!(text(&top.verify), "VVpinugsamcd5Vpinug");
    assert_eq!(text(&top.accurate), "Cpinugsamcd5123pinu");
}

/// The options of an entry depend on its own path and Include, never on earlier entries.
#[test]
fn options_of_an_entry_do_not_depend_on_other_entries() {
    let fileset = fileset(&["I", "O MZ6P2:", "WF *.a", "N", "O S2H", "WF *.b", "N", "O sP1:", "N", "F /t"]);
    let include = &fileset.includes()[0];
    let options = |path: &str| {
        let verdict = fileset.judge(include, path.as_bytes(), false);
        assert!(verdict.accepted);
        verdict.options
    };
    for _ in 0..2 {
        let (a, b, other) = (options("/t/x.a"), options("/t/x.b"), options("/t/x.c"));
        assert_eq!((a.digest, a.compression, a.strip_path), (Some(DigestKind::Md5), Some(Compression::Gzip(6)), 1));
        assert_eq!((b.digest, b.compression, b.strip_path), (Some(DigestKind::Sha256), None, 0));
        assert_eq!((other.digest, other.strip_path, other.flags), (None, 1, Flags::SPARSE | Flags::STRIP_PATH));
    }
}

#[test]
fn options_of_an_exclude_block_have_wild_cards_only() {
    let fileset = fileset(&["I", "F /t", "N", "N", "E", "O i", "W *.O", "WF *.c", "R doc", "N", "F /T/NAME", "N", "N"]);
    let include = &fileset.includes()[0];
    let accepted = |path: &str| fileset.judge(include, path.as_bytes(), false).accepted;
    assert!(!accepted("/t/a.o"));
    assert!(accepted("/t/a.c"));
    assert!(accepted("/t/doc"));
    assert!(!accepted("/t/name"), "names fold like the last Options block");
}

/// Reference 03 §4.4.3, the three rows about base names.
#[test]
fn base_name_patterns_match_as_in_the_reference() {
    let rejected = |options: &str, path: &str| {
        let fileset = fileset(&["I", options, "WB *.o", "N", "F /t"]);
        let accepted = fileset.judge(&fileset.includes()[0], path.as_bytes(), false).accepted;
        let directory = fileset.judge(&fileset.includes()[0], path.as_bytes(), true).accepted;
        assert!(directory, "only files have base name patterns");
        !accepted
    };
    for path in ["/t/d/a.o", "/t/d/sub/c.o"] {
        assert!(rejected("O eW", path), "the base name");
        assert!(rejected("O e", path), "the full path");
    }
    assert!(!rejected("O eW", "/t/d/b.c"));
}

#[test]
fn names_of_all_blocks_are_listed() {
    let fileset = fileset(&["I", "F /a", "N", "N", "I", "F /b", "N", "N", "E", "F /c"]);
    for name in ["/a", "/b", "/c"] {
        assert!(fileset.lists(name.as_bytes()));
    }
    assert!(!fileset.lists(b"/a/"));
}
