//! Temporary trees, and walks over them as lists of words.

use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use fd_fileset::{FileSet, Parser, Regex, RegexCompiler};
use fd_os::regex::{PosixRegex, RegexOptions};
use fd_records::FileType;
use fd_walk::{
    Candidate, Comparison, Entry, Flow, HardLink, LinkState, WalkEvent, WalkHost, WalkSettings, WalkSummary, walk,
};

struct Posix;
struct Compiled(PosixRegex);

impl RegexCompiler for Posix {
    fn compile(&self, pattern: &[u8], ignore_case: bool) -> Result<Box<dyn Regex>, String> {
        let options = RegexOptions { ignore_case, newline: false };
        let regex = PosixRegex::new(pattern, options).map_err(|error| error.to_string())?;
        Ok(Box::new(Compiled(regex)))
    }
}

impl Regex for Compiled {
    fn is_match(&self, text: &CStr) -> bool {
        self.0.is_match_c(text).is_ok_and(|found| found)
    }

    fn memory(&self) -> usize {
        0
    }
}

/// The host of a walk.
#[derive(Default)]
pub(crate) struct Host {
    pub(crate) examined: Cell<u64>,
    pub(crate) cancel_after: Option<u64>,
    /// Paths with this end count as unchanged.
    pub(crate) unchanged: Option<&'static str>,
    /// Each compared key, and whether the FileSet accepts it.
    pub(crate) compared: RefCell<Vec<(Vec<u8>, bool)>>,
    /// What could not be examined, and how many components its Include strips.
    pub(crate) not_examined: RefCell<Vec<(Vec<u8>, u32)>>,
}

impl WalkHost for Host {
    fn is_canceled(&self) -> bool {
        self.cancel_after.is_some_and(|limit| self.examined.get() >= limit)
    }

    fn examined(&self, _path: &[u8]) {
        self.examined.set(self.examined.get() + 1);
    }

    fn not_examined(&self, path: &[u8], strip_path: u32) {
        self.not_examined.borrow_mut().push((path.to_vec(), strip_path));
    }

    fn compare(&self, candidate: &Candidate<'_>) -> Comparison {
        self.compared.borrow_mut().push((candidate.key().into_owned(), candidate.accepted));
        match self.unchanged {
            Some(name) if candidate.path.ends_with(name.as_bytes()) => Comparison::Unchanged,
            _ => Comparison::ByTime,
        }
    }
}

/// A tree, called `/t` in all arguments and results.
pub(crate) struct Tree {
    pub(crate) folder: tempfile::TempDir,
}

impl Tree {
    /// Files, each with its own name as content; a name with a final slash is an empty directory.
    pub(crate) fn new(names: &[&str]) -> Self {
        let tree = Self { folder: tempfile::tempdir().expect("a folder") };
        for name in names {
            let path = tree.path(name);
            let parent = if name.ends_with('/') { path.as_path() } else { path.parent().expect("a parent") };
            fs::create_dir_all(parent).expect("directories");
            if !name.ends_with('/') {
                fs::write(&path, name).expect("a file");
            }
        }
        tree
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn root(&self) -> &str {
        self.folder.path().to_str().expect("a plain temporary folder")
    }

    /// `text` with the tree's path for each `/t` that is a whole component.
    pub(crate) fn with_root(&self, text: &str) -> String {
        let mut placed = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("/t") {
            let is_root = !after.starts_with(|next: char| next.is_ascii_alphanumeric());
            placed.push_str(before);
            placed.push_str(if is_root { self.root() } else { "/t" });
            rest = after;
        }
        placed + rest
    }

    /// Bytes of a path or text with `/t` for the tree's path.
    pub(crate) fn short(&self, bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).replace(self.root(), "/t")
    }

    pub(crate) fn fileset(&self, lines: &[&str]) -> FileSet {
        let mut parser = Parser::new(&Posix);
        for line in lines {
            let _reaction = parser.line(self.with_root(line).as_bytes()).expect("a good line");
        }
        parser.finish().expect("a good FileSet")
    }

    /// The events of a walk, one word for each, with paths relative to the tree. Directories end in
    /// a slash, messages are in brackets.
    pub(crate) fn walk(&self, lines: &[&str], settings: &WalkSettings, host: &Host) -> (Vec<String>, WalkSummary) {
        let fileset = self.fileset(lines);
        let mut found = Vec::new();
        let mut file_index = 0;
        let summary = walk(&fileset, settings, host, &mut |event| {
            found.push(match event {
                WalkEvent::Entry(entry) => {
                    file_index += 1;
                    self.word(&entry, file_index)
                }
                WalkEvent::Message(message) => {
                    let mark = if message.error { "!" } else { "" };
                    let text = self.short(message.text);
                    format!("[{mark}{:?} {}]", message.kind, text.strip_suffix('\n').expect("a final newline"))
                }
                WalkEvent::Plugin(plugin) => self.short(plugin.command),
            });
            Flow::Continue
        });
        (found, summary)
    }

    /// Name and link. The first names of hard links count as saved.
    fn word(&self, entry: &Entry, file_index: i32) -> String {
        let mut word = self.short(&entry.record_names().name);
        match &entry.hard_link {
            Some(HardLink::First(slot)) => slot.set(LinkState::Saved { file_index, digest: None }),
            Some(HardLink::Later { slot, .. }) => {
                let LinkState::Saved { file_index, .. } = slot.get() else { panic!("the first name was saved") };
                write!(word, "={}#{file_index}", self.short(&entry.link)).expect("a string");
            }
            None if entry.file_type == FileType::Symlink => {
                write!(word, "->{}", self.short(&entry.link)).expect("a string");
            }
            None => {}
        }
        word
    }

    /// The entries of a full backup with their types.
    pub(crate) fn entries(&self, lines: &[&str]) -> Vec<Entry> {
        let mut entries = Vec::new();
        walk(&self.fileset(lines), &WalkSettings::default(), &Host::default(), &mut |event| {
            if let WalkEvent::Entry(entry) = event {
                entries.push(entry);
            }
            Flow::Continue
        });
        entries
    }

    /// The types of the entries, each after its name.
    pub(crate) fn types(&self, lines: &[&str]) -> Vec<(String, FileType)> {
        let typed = |entry: &Entry| (self.short(&entry.record_names().name), entry.file_type);
        self.entries(lines).iter().map(typed).collect()
    }

    pub(crate) fn full(&self, lines: &[&str]) -> Vec<String> {
        self.walk(lines, &WalkSettings::default(), &Host::default()).0
    }

    pub(crate) fn sorted(&self, lines: &[&str]) -> Vec<String> {
        let mut found = self.full(lines);
        found.sort();
        found
    }
}

/// Names of a directory in the kernel's order.
pub(crate) fn names_in_order(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("readable");
    entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name")).collect()
}
