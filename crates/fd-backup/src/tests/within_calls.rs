//! What a plugin says and changes while one of its functions is called (reference 07 §3.5).

use std::fs;
use std::sync::{Arc, Mutex};

use fd_fileset::{Added, Addition, Draft, FileSet};
use fd_messages::MessageType;
use fd_plugins::{Change, FileSetChange, Status};

use super::fake::{Fake, FakeFile, job_plugins};
use super::support::{Bed, Record};
use crate::LateIncludes;

/// Includes as the program makes them.
#[derive(Debug, Default)]
struct Late(Mutex<Draft>);

impl LateIncludes for Late {
    fn change(&self, plugin: &[u8], change: FileSetChange<'_>, _: &mut dyn FnMut(MessageType, &[u8])) -> Status {
        let mut draft = self.0.lock().unwrap();
        let done = match change.how {
            Change::NewInclude => draft.new_include(plugin, false).is_ok(),
            Change::Options => draft.add_options(change.item).is_some(),
            Change::Include => matches!(draft.add(plugin, Addition::Include, change.item), Ok(Added::Done)),
            _ => false,
        };
        if done { Status::Ok } else { Status::Error }
    }

    fn take(&self) -> Option<FileSet> {
        let fileset = std::mem::take(&mut *self.0.lock().unwrap()).complete();
        (!fileset.includes().is_empty()).then_some(fileset)
    }
}

#[test]
fn an_include_that_a_plugin_makes_late_is_walked_at_the_end() {
    for call in ["event 9", "start", "read 65536"] {
        let lines = ["I", "O M", "N", "F @/a", "N", "P tp:x", "N", "I", "O M", "N", "F @/b", "N"];
        let mut bed = Bed::with_lines(&lines);
        for name in ["a", "b", "late"] {
            fs::create_dir(bed.path(name)).unwrap();
            bed.file(&format!("{name}/file"), b"data");
        }
        let late = bed.name("late");
        let mut is_done = false;
        let plugin = Fake::with_files([FakeFile::regular("/f", b"data")]).hooked(move |at, host| {
            if at == call && !std::mem::replace(&mut is_done, true) {
                assert_eq!(
                    host.change_fileset(b"tp-fd.so", FileSetChange::new(Change::Include, b"/lost")),
                    Status::Error
                );
                for change in [
                    FileSetChange::new(Change::NewInclude, b""),
                    FileSetChange::new(Change::Options, b"S"),
                    FileSetChange::new(Change::Include, late.as_bytes()),
                ] {
                    assert_eq!(host.change_fileset(b"tp-fd.so", change), Status::Ok, "{change:?}");
                }
            }
        });
        bed.plan.late = Some(Arc::new(Late::default()));
        bed.plan.plugins = job_plugins([plugin]);
        let names = ["a/file", "a/", "b/file", "b/", "late/file", "late/"].map(|name| bed.name(name));
        let outcome = bed.run();
        let saved: Vec<String> =
            outcome.records().iter().filter(|record| record.stream == 1).map(Record::name).collect();
        assert_eq!(saved, [&names[..2], &["/f".to_owned()], &names[2..]].concat(), "{call}");
        assert_eq!(outcome.streams(&names[4]).last(), Some(&10), "its own options");
        let text = "Plugin tp-fd.so could not change the FileSet with AddInclude(/lost): it is not possible at this \
                    time, or no Include was begun for it.\n";
        assert_eq!(outcome.messages, [(MessageType::Warning, text.to_owned())], "what is refused is said");
    }
}

#[test]
fn an_include_of_an_option_plugin_is_walked_at_the_end() {
    let mut bed = Bed::with_lines(&["I", "O M", "G tp:option", "N", "F @/a", "N"]);
    for name in ["a", "late"] {
        fs::create_dir(bed.path(name)).unwrap();
        bed.file(&format!("{name}/file"), b"data");
    }
    let late = bed.name("late");
    let plugin = Fake::new("tp").hooked(move |at, host| {
        if at.starts_with("handle") {
            for change in
                [FileSetChange::new(Change::NewInclude, b""), FileSetChange::new(Change::Include, late.as_bytes())]
            {
                assert_eq!(host.change_fileset(b"tp-fd.so", change), Status::Ok, "{change:?}");
            }
        }
    });
    plugin.script.lock().unwrap().handled = vec![("file", Status::Core)];
    bed.plan.late = Some(Arc::new(Late::default()));
    bed.plan.plugins = job_plugins([plugin]);
    let names = ["a/file", "a/", "late/file", "late/"].map(|name| bed.name(name));
    let saved: Vec<String> = bed.run().records().iter().filter(|record| record.stream == 1).map(Record::name).collect();
    assert_eq!(saved, names);
}

/// The stock daemon knows the inodes of a job until its end.
#[test]
fn other_names_of_saved_files_in_a_late_include_are_hard_links() {
    let mut bed = Bed::with_lines(&["I", "O M", "N", "F @/a", "N", "P tp:x", "N"]);
    for name in ["a", "late"] {
        fs::create_dir(bed.path(name)).unwrap();
    }
    bed.file("a/file", b"data");
    fs::hard_link(bed.path("a/file"), bed.path("late/other")).unwrap();
    let late = bed.name("late");
    let mut is_done = false;
    let plugin = Fake::with_files([FakeFile::regular("/f", b"data")]).hooked(move |at, host| {
        if at == "start" && !std::mem::replace(&mut is_done, true) {
            for change in
                [FileSetChange::new(Change::NewInclude, b""), FileSetChange::new(Change::Include, late.as_bytes())]
            {
                assert_eq!(host.change_fileset(b"tp-fd.so", change), Status::Ok, "{change:?}");
            }
        }
    });
    bed.plan.late = Some(Arc::new(Late::default()));
    bed.plan.plugins = job_plugins([plugin]);
    let (first, other) = (bed.name("a/file"), bed.name("late/other"));
    let outcome = bed.run();
    assert!(outcome.streams(&first).contains(&2), "the data");
    assert!(!outcome.streams(&other).contains(&2), "{:?}", outcome.streams(&other));
    assert_eq!(outcome.messages, []);
}

/// Nothing piles up: the plugin waits until the operator has what it has said.
#[test]
fn messages_go_on_while_the_call_does() {
    const MANY: u32 = 5000;
    // With the last budget there is one piece, which the plugin's file has.
    for (letters, budget) in [("", None), ("Z6", None), ("", Some(1))] {
        let mut bed = Bed::with_lines(&["I", &format!("O {letters}"), "N", "P tp:x", "N"]);
        bed.plan.memory_budget = budget.unwrap_or(bed.plan.memory_budget);
        let progress = Arc::clone(&bed.progress);
        let mut is_done = false;
        let plugin = Fake::with_files([FakeFile::regular("/f", b"data")]).hooked(move |at, host| {
            if at.starts_with("read") && !std::mem::replace(&mut is_done, true) {
                for number in 0..MANY {
                    host.message(MessageType::Error, format!("{number}\n").as_bytes());
                }
                assert!(progress.errors() > MANY - 100, "{} of {MANY} are there", progress.errors());
            }
        });
        bed.plan.plugins = job_plugins([plugin]);
        let outcome = bed.run();
        let texts = outcome.texts(MessageType::Error);
        assert!(texts.into_iter().eq((0..MANY).map(|number| format!("{number}\n"))), "in their order, and all");
        assert_eq!(outcome.records().len(), 4, "the file is whole");
    }
}
