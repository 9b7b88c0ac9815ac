//! What plugins add to a FileSet.

use super::*;
use crate::matching::regex::RegexCompiler;
use crate::parse::parser::{Parser, Reaction};

struct NoRegex;

impl RegexCompiler for NoRegex {
    fn compile(&self, _: &[u8], _: bool) -> Result<Box<dyn Regex>, String> {
        Err("none".to_owned())
    }
}

fn draft(lines: &[&str]) -> Draft {
    let mut parser = Parser::new(&NoRegex);
    for line in lines {
        assert_eq!(parser.line(line.as_bytes()), Ok(Reaction::Accepted), "{line}");
    }
    parser.into_draft().unwrap()
}

/// The names of each block: Includes with `+`, then Excludes with `-`.
fn names(draft: Draft) -> Vec<String> {
    let fileset = draft.complete();
    let text = |names: &[Vec<u8>]| names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    let joined = |sign: &str, names: Vec<String>| format!("{sign}{}", names.join(" "));
    let includes = fileset.includes().iter().map(|include| joined("+", text(include.names())));
    includes.chain(fileset.excludes().iter().map(|exclude| joined("-", text(exclude.names())))).collect()
}

#[test]
fn each_plugin_has_an_exclude_block_of_its_own_and_the_include_that_was_current() {
    let mut set = draft(&["I", "F /a", "I", "F /b", "N"]);
    for (plugin, addition, name) in [
        ("p", Addition::Include, "/p1"),
        ("p", Addition::Exclude, "/px"),
        ("q", Addition::Exclude, "/qx"),
        ("p", Addition::Exclude, "/py"),
    ] {
        assert_eq!(set.add(plugin.as_bytes(), addition, name.as_bytes()), Ok(Added::Done));
    }
    assert_eq!(names(set), ["+/a", "+/b /p1", "-/px /py", "-/qx"]);
}

#[test]
fn a_new_include_is_the_plugin_s_and_the_current_one() {
    let mut set = draft(&["I", "F /a", "N"]);
    set.new_include(b"p", false).unwrap();
    assert_eq!(set.add_options(b"M"), Some(Vec::new()));
    assert_eq!(set.add(b"p", Addition::Include, b"/p"), Ok(Added::Done));
    assert_eq!(set.add(b"q", Addition::Include, b"/q"), Ok(Added::Done));
    set.new_include(b"q", true).unwrap();
    assert_eq!(set.add_options(b"S"), Some(Vec::new()));
    assert_eq!(set.add(b"q", Addition::Include, b"/first"), Ok(Added::Done));
    assert_eq!(set.add(b"p", Addition::Include, b"/p2"), Ok(Added::Done));
    assert_eq!(set.outline().includes().len(), 3);
    assert_eq!(names(set), ["+/first", "+/a", "+/p /q /p2"]);
}

#[test]
fn without_a_block_a_plugin_can_add_nothing() {
    let mut set = Draft::default();
    assert_eq!(set.add(b"p", Addition::Include, b"/p"), Ok(Added::NoBlock));
    assert_eq!((set.add_options(b"M"), set.new_options(), set.add_wild(b"*", b' ')), (None, Ok(false), Ok(false)));
    assert_eq!(names(set), Vec::<String>::new());
}

#[test]
fn patterns_and_letters_go_to_the_current_options() {
    let mut set = draft(&["I", "O M", "N", "F /a", "N"]);
    assert_eq!(set.new_options(), Ok(true));
    assert_eq!(set.add_options(b"eq"), Some(b"q".to_vec()));
    assert_eq!(set.add_wild(b"*.o", b'F'), Ok(true));
    assert_eq!(set.add_wild(b"*.o", b'Q'), Ok(false));
    assert!(set.add_regex(b"(", b' ', |_| Err("bad".to_owned())).is_err());
    let set = set.complete();
    let judged = |path: &[u8]| set.judge(&set.includes()[0], path, false).accepted;
    assert_eq!(set.includes()[0].options().count(), 2);
    assert_eq!((judged(b"/a/x.o"), judged(b"/a/x.c")), (false, true));
    // What the plugin's block does not match has the options of the Director's, which is the last.
    assert!(set.judge(&set.includes()[0], b"/a/x.c", false).options.digest.is_some());
}

#[test]
fn a_list_of_a_plugin_goes_to_its_block_and_may_fail() {
    let mut set = draft(&["I", "F /a", "N"]);
    let Ok(Added::List(request)) = set.add(b"p", Addition::Exclude, b"<list") else { panic!("no list") };
    assert_eq!((request.kind, request.argument.as_slice()), (ListKind::File, b"list".as_slice()));
    set.list_data(b"/x\n/y").unwrap();
    set.list_end().unwrap();
    assert!(matches!(set.add(b"p", Addition::Command, b"|no"), Ok(Added::List(_))));
    set.list_failed(ListFailure::CannotStart { error: "no".to_owned() }).unwrap_err();
    assert_eq!(set.add(b"p", Addition::Command, b"p:x"), Ok(Added::Done));
    let new = set.new_command().unwrap();
    assert_eq!((new.command.as_slice(), set.new_command()), (b"p:x".as_slice(), None));
    assert_eq!(names(set), ["+/a", "-/x /y"]);
}

#[test]
fn commands_of_lines_and_lists_come_into_the_block_when_they_are_accepted() {
    let mut parser = Parser::new(&NoRegex);
    for line in ["I", "P a:1"] {
        assert_eq!(parser.line(line.as_bytes()), Ok(Reaction::Accepted));
    }
    let draft = parser.draft();
    let first = draft.new_command().unwrap();
    draft.new_include(b"b", false).unwrap();
    assert_eq!(draft.add(b"b", Addition::Command, b"b:1"), Ok(Added::Done));
    let second = draft.new_command().unwrap();
    draft.accept(second);
    draft.accept(first);
    assert!(matches!(parser.line(b"P <list"), Ok(Reaction::List(_))));
    parser.list_data(b"a:2\n").unwrap();
    parser.list_end().unwrap();
    let set = parser.finish().unwrap();
    let commands = |include: usize| set.includes()[include].plugins().join(&b" "[..]);
    assert_eq!((commands(0), commands(1)), (b"a:1".to_vec(), b"b:1 a:2".to_vec()));
}
