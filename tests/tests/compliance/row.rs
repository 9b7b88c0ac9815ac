//! One row of the matrix: a `FileSet`, the tree that it is about, the jobs that are run with it,
//! and what is expected.

use std::path::Path;

use bed::{Expect, FileSet, job_resource};

bed::named! {
    /// The trees that rows are about (see `trees.rs`), by their directories below `source`.
    pub(crate) Tree {
        Types = "types", // Every type of file, with ACLs and attributes.
        Match = "match", // The tree of the worked matching examples (reference 03 §10).
        Home = "match/home", // The home directories of the same examples.
        Walk = "walk", // What a walk can meet: mount points, flags, special files and more.
        Links = "links", // Hard links in every order.
        Levels = "levels", // Changes between the phases of the suite.
        Allowed = "allowed", // Examples of allowed and excluded directories (reference 03 §4.3).
        Private = "private", // What an ordinary user may not read.
        Written = "written", // A FIFO that is written while it is read, so that its times change.
    }
}

/// One row.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) tree: Tree,
    includes: Vec<Include>,
    excludes: Vec<&'static str>,
    /// Levels of its jobs, one for each phase, an empty text for none.
    pub(crate) levels: Vec<&'static str>,
    pub(crate) accurate: bool,
    pub(crate) expect: Expect,
    /// Its jobs run one by one, after all others.
    pub(crate) alone: bool,
    /// The state in which its jobs end.
    pub(crate) status: char,
    /// A stream that only ferrofd sends: counted, and then taken for what the stock daemon sends in
    /// its place.
    pub(crate) beyond: Option<i32>,
}

#[derive(Debug, Clone, Default)]
struct Include {
    settings: Vec<&'static str>,
    options: Vec<Vec<&'static str>>,
    files: Vec<&'static str>,
}

/// A row that saves its whole tree with a Full and without any option.
pub(crate) fn row(name: &'static str, tree: Tree) -> Row {
    Row {
        name,
        tree,
        includes: vec![Include::default()],
        excludes: Vec::new(),
        levels: vec!["Full"],
        accurate: false,
        expect: Expect::Equal,
        alone: false,
        status: 'T',
        beyond: None,
    }
}

impl Row {
    fn include(&mut self) -> &mut Include {
        if self.includes.is_empty() {
            self.includes.push(Include::default());
        }
        let last = self.includes.len() - 1;
        &mut self.includes[last]
    }

    /// Adds an Options block to the last Include; directives are separated by ` ; `.
    pub(crate) fn options(mut self, directives: &'static str) -> Self {
        let block = directives.split(" ; ").filter(|text| !text.is_empty()).collect();
        self.include().options.push(block);
        self
    }

    /// A directive of the last Include itself.
    pub(crate) fn setting(mut self, directive: &'static str) -> Self {
        self.include().settings.push(directive);
        self
    }

    /// A name of the last Include; `@` is the tree's path. Without any it is the tree.
    pub(crate) fn file(mut self, name: &'static str) -> Self {
        self.include().files.push(name);
        self
    }

    /// Begins another Include.
    pub(crate) fn and(mut self) -> Self {
        self.includes.push(Include::default());
        self
    }

    /// An entry of the Exclude block.
    pub(crate) fn exclude(mut self, name: &'static str) -> Self {
        self.excludes.push(name);
        self
    }

    /// The levels of its jobs, phase by phase.
    pub(crate) fn levels(mut self, levels: &[&'static str]) -> Self {
        self.levels = levels.to_vec();
        self
    }

    /// A Full and an Incremental.
    pub(crate) fn incremental(self) -> Self {
        self.levels(&["Full", "Incremental"])
    }

    /// The same with `Accurate = yes`.
    pub(crate) fn accurate(mut self) -> Self {
        self.accurate = true;
        self.incremental()
    }

    pub(crate) fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    pub(crate) fn ends(mut self, status: char) -> Self {
        self.status = status;
        self
    }

    /// The stream that the stock daemon doesn't have.
    pub(crate) fn beyond(mut self, stream: i32) -> Self {
        self.beyond = Some(stream);
        self
    }

    /// See [`Expect::Differs`]; `@` in the texts is the tree's path.
    pub(crate) fn differs(mut self, documented: &'static str, found: &'static [&'static str]) -> Self {
        self.expect = Expect::Differs { documented, found };
        self
    }

    /// Whether blocks are compressed, so that their lengths may differ.
    pub(crate) fn is_compressed(&self) -> bool {
        self.includes.iter().flat_map(|include| &include.options).flatten().any(|line| line.starts_with("Compression"))
    }

    /// Whether the stock daemon can't read its volumes: Debian's build has no ZSTD.
    pub(crate) fn is_for_ferrofd_only(&self) -> bool {
        self.beyond == Some(29)
    }

    /// Whether it has a base job.
    pub(crate) fn has_base(&self) -> bool {
        self.levels.contains(&"Base")
    }

    /// What its record stands for.
    pub(crate) fn input(&self) -> String {
        format!("{:?} {:?} {:?} {:?} {}", self.tree, self.includes, self.excludes, self.levels, self.accurate)
    }

    /// The Director's resource. `deeper` more directories are stripped where some are.
    pub(crate) fn file_set(&self, tree: &Path, deeper: usize) -> FileSet {
        let tree = tree.to_string_lossy();
        let stripped = |text: &str| {
            let count = text.strip_prefix("StripPath = ").and_then(|count| count.parse::<usize>().ok());
            count.map_or_else(|| text.to_owned(), |count| format!("StripPath = {}", count + deeper))
        };
        let here = |text: &str| stripped(text).replace('@', &tree);
        let quoted = |text: &str| format!("File = \"{}\"", here(text));
        let mut lines = Vec::new();
        for include in &self.includes {
            lines.push("Include {".to_owned());
            lines.extend(include.settings.iter().map(|line| here(line)));
            for block in &include.options {
                lines.push("Options {".to_owned());
                lines.extend(block.iter().map(|line| here(line)));
                lines.push("}".to_owned());
            }
            let files: &[&str] = if include.files.is_empty() { &["@"] } else { &include.files };
            lines.extend(files.iter().map(|file| quoted(file)));
            lines.push("}".to_owned());
        }
        if !self.excludes.is_empty() {
            lines.push("Exclude {".to_owned());
            lines.extend(self.excludes.iter().map(|file| quoted(file)));
            lines.push("}".to_owned());
        }
        FileSet { name: self.name.to_owned(), lines }
    }

    /// The row's jobs for one client; a base job has a name of its own.
    pub(crate) fn jobs(&self, client: &str) -> Vec<String> {
        let job = |name: &str, more: &str| {
            let more = format!("Type = Backup\nLevel = Full\nMaximum Concurrent Jobs = 10\n{more}");
            job_resource(name, client, self.name, &more)
        };
        let (own, base) = (format!("{}-{client}", self.name), format!("{}-base-{client}", self.name));
        if self.has_base() {
            return vec![job(&base, ""), job(&own, &format!("Base = \"{base}\"\nAccurate = yes"))];
        }
        vec![job(&own, if self.accurate { "Accurate = yes" } else { "" })]
    }

    /// The console's command for the job of a phase, if there is one.
    pub(crate) fn command(&self, phase: usize, client: &str) -> Option<String> {
        let level = self.levels.get(phase).filter(|level| !level.is_empty())?;
        let base = if *level == "Base" { "-base" } else { "" };
        Some(format!("run job={}{base}-{client} level={level} yes", self.name))
    }
}

/// A phase of a row.
pub(crate) struct Done {
    /// Number of the row in its share.
    pub(crate) row: usize,
    pub(crate) phase: usize,
    /// One for each client that saves the row.
    pub(crate) jobs: Vec<u32>,
}
