//! Debug output: its level, its tags, and where it goes; what `-d`, `-dt`, `-T` and `setdebug`
//! change (reference 06 §8, 02 §4.20).
//!
//! The lines come from `tracing`. Their texts are ours, and no part of the interface.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32, Ordering};

use fd_os::lock::Mutex;
use fd_session::command::SetDebug;
use tracing::level_filters::LevelFilter;

use crate::delivery::writer::Writer;
use crate::print::tell;
use crate::security::own_file;
use crate::texts;

/// Tags in the order in which status lists them, and their bits.
const TAGS: [(&str, u32); 13] = [
    ("cloud", 1 << 17),
    ("lock", 1 << 30),
    ("network", 1 << 29),
    ("plugin", 1 << 28),
    ("volume", 1 << 27),
    ("sql", 1 << 26),
    ("bvfs", 1 << 25),
    ("memory", 1 << 24),
    ("scheduler", 1 << 23),
    ("protocol", 1 << 22),
    ("snapshot", 1 << 19),
    ("record", 1 << 18),
    ("all", ALL_TAGS),
];
/// The bits of the tag `all`: more than those that have a name of their own.
const ALL_TAGS: u32 = 0x7fff_0000;

/// What is in force. One for the whole process; every part can be changed at any time.
#[derive(Debug)]
pub(crate) struct Debug {
    level: AtomicI32,
    /// The filter at debug level 0.
    base: LevelFilter,
    tags: AtomicU32,
    hangup: AtomicI64,
    blowup: AtomicI64,
    timestamps: AtomicBool,
    thread_ids: AtomicBool,
    place: Mutex<Place>,
}

/// Where lines go.
#[derive(Debug)]
struct Place {
    /// Into the file; else to standard error.
    trace: bool,
    path: PathBuf,
    file: Option<File>,
    /// The name before each line.
    name: String,
}

impl Debug {
    /// As the command line says; `base` is what counts at level 0.
    pub(crate) fn new(base: LevelFilter, level: Option<i32>, tags: &[u8], timestamps: bool, trace: bool) -> Self {
        let directory = std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
        let path = directory.join("bacula-fd.trace");
        Self {
            level: AtomicI32::new(level.unwrap_or(0)),
            base,
            tags: AtomicU32::new(parse_tags(tags).unwrap_or(0)),
            hangup: AtomicI64::new(0),
            blowup: AtomicI64::new(0),
            timestamps: AtomicBool::new(timestamps),
            thread_ids: AtomicBool::new(false),
            place: Mutex::new(Place { trace, path, file: None, name: "bacula-fd".to_owned() }),
        }
    }

    /// Says what the tags of the command line do, at the level at which the stock daemon does.
    pub(crate) fn tell_tags(&self, tags: &[u8]) {
        const TOLD_FROM: i32 = 8;
        if self.level() < TOLD_FROM || tags.is_empty() {
            return;
        }
        for line in tag_lines(tags) {
            if self.traces() { self.write(&line) } else { tell("DEBUG", &line) }
        }
    }

    /// Sets the daemon's name and moves the trace file to its working directory.
    pub(crate) fn settle(&self, name: &str, working_directory: &Path) {
        let mut place = self.place.lock();
        place.path = working_directory.join(format!("{name}.trace"));
        place.file = None;
        name.clone_into(&mut place.name);
    }

    /// Makes the change that the Director asks for; returns the answer: level, trace, hangup and
    /// blowup as they are now.
    pub(crate) fn change(&self, wanted: &SetDebug) -> SetDebug {
        if let Ok(level) = i32::try_from(wanted.level)
            && level >= 0
        {
            self.level.store(level, Ordering::Relaxed);
        }
        if wanted.trace >= 0 {
            let mut place = self.place.lock();
            place.trace = wanted.trace > 0;
            // A file that is open stays so: the letter `c` truncates it.
            if !place.trace {
                place.file = None;
            }
        }
        for (kept, number) in [(&self.hangup, wanted.hangup), (&self.blowup, wanted.blowup)] {
            if number != -1 {
                kept.store(number, Ordering::Relaxed);
            }
        }
        self.set_options(&wanted.options);
        let tags = parse_tags(&wanted.tags);
        self.tags.store(tags.unwrap_or(0), Ordering::Relaxed);
        SetDebug {
            level: wanted.level,
            trace: i64::from(self.traces()),
            hangup: self.hangup.load(Ordering::Relaxed),
            blowup: self.blowup.load(Ordering::Relaxed),
            options: wanted.options.clone(),
            tags: if tags.is_some() { wanted.tags.clone() } else { Vec::new() },
        }
    }

    fn set_options(&self, letters: &[u8]) {
        for letter in letters {
            match letter {
                b't' => self.timestamps.store(true, Ordering::Relaxed),
                b'T' => self.timestamps.store(false, Ordering::Relaxed),
                b'h' => self.thread_ids.store(true, Ordering::Relaxed),
                b'H' => self.thread_ids.store(false, Ordering::Relaxed),
                b'c' => self.truncate(),
                // Options for locks that don't exist here, and for another platform.
                _ => {}
            }
        }
    }

    fn truncate(&self) {
        let truncated = self.place.lock().truncate();
        // Not before the lock is released: a line of the log needs it.
        if let Err(error) = truncated {
            tracing::debug!(%error, "the trace file can't be truncated");
        }
    }

    /// The level, 0 for none.
    pub(crate) fn level(&self) -> i32 {
        self.level.load(Ordering::Relaxed)
    }

    /// Whether lines go into the trace file.
    pub(crate) fn traces(&self) -> bool {
        self.place.lock().trace
    }

    /// Whether lines carry date and time.
    pub(crate) fn has_timestamps(&self) -> bool {
        self.timestamps.load(Ordering::Relaxed)
    }

    /// Whether lines carry the number of their thread.
    pub(crate) fn has_thread_ids(&self) -> bool {
        self.thread_ids.load(Ordering::Relaxed)
    }

    /// The test aid `hangup`: after how many files (negative: KiB) a backup's connection is cut; 0
    /// for never.
    pub(crate) fn hang_up(&self) -> i64 {
        self.hangup.load(Ordering::Relaxed)
    }

    /// Takes it, if it is still this number: it works once.
    pub(crate) fn take_hang_up(&self, number: i64) -> bool {
        self.hangup.compare_exchange(number, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// The test aid `blowup`: kept and shown, without effect.
    pub(crate) fn blow_up(&self) -> i64 {
        self.blowup.load(Ordering::Relaxed)
    }

    /// The tags in force.
    pub(crate) fn tag_names(&self) -> Vec<&'static str> {
        let tags = self.tags.load(Ordering::Relaxed);
        TAGS.iter().filter(|(_, bits)| tags & bits == *bits).map(|(name, _)| *name).collect()
    }

    /// Whether a tag is in force.
    pub(crate) fn has_tag(&self, name: &str) -> bool {
        self.tag_names().contains(&name)
    }

    /// The name before each line.
    pub(crate) fn name(&self) -> String {
        self.place.lock().name.clone()
    }

    /// The filter in force.
    pub(crate) fn filter(&self) -> LevelFilter {
        match self.level() {
            ..=0 => self.base,
            1..100 => self.base.max(LevelFilter::INFO),
            100..200 => self.base.max(LevelFilter::DEBUG),
            200.. => LevelFilter::TRACE,
        }
    }

    /// Writes a line where lines go now. A file that can't be opened switches the trace off.
    pub(crate) fn write(&self, line: &[u8]) {
        let mut place = self.place.lock();
        if place.trace {
            match place.open().and_then(|file| file.write_all(line)) {
                Ok(()) => return,
                Err(_) => place.trace = false,
            }
        }
        drop(place);
        let line = line.to_vec();
        Writer::of_the_process().hand_over(move || {
            // Without standard error the line is lost.
            let _unread = io::stderr().lock().write_all(&line);
        });
    }
}

impl Place {
    fn open(&mut self) -> io::Result<&mut File> {
        if self.file.is_none() {
            self.file = Some(own_file::open_to_append(&self.path, 0o600)?);
        }
        self.file.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn truncate(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.set_len(0))
    }
}

/// A list such as `network,plugin`, `all,!sql` or `cloud+lock-lock`; `None` if a name or a
/// character is unknown.
fn parse_tags(text: &[u8]) -> Option<u32> {
    let (steps, stray) = tag_steps(text);
    let tags = steps.iter().try_fold(0, |tags, step| step.apply(tags));
    tags.filter(|_| stray.is_none())
}

/// One name of a list of tags; an empty one comes before a sign, and between two of them.
struct TagStep<'t> {
    add: bool,
    name: &'t [u8],
}

impl TagStep<'_> {
    /// The tags after it; `None` if its name is unknown.
    fn apply(&self, tags: u32) -> Option<u32> {
        let is = |known: &str| known.as_bytes().eq_ignore_ascii_case(self.name);
        let bit = match self.name {
            [] => 0,
            _ => TAGS.iter().find(|(known, _)| is(known)).map(|(_, bit)| *bit)?,
        };
        Some(if self.add { tags | bit } else { tags & !bit })
    }
}

/// The names of a list of tags, and the character that ends it because it belongs nowhere.
fn tag_steps(text: &[u8]) -> (Vec<TagStep<'_>>, Option<u8>) {
    let mut steps = Vec::new();
    let (mut add, mut rest) = (true, text);
    loop {
        let end = rest.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (name, behind) = rest.split_at_checked(end).unwrap_or((rest, &[]));
        match behind.split_first() {
            None if name.is_empty() => return (steps, None),
            None => {
                steps.push(TagStep { add, name });
                return (steps, None);
            }
            Some((sign @ (b',' | b'+' | b'-' | b'!'), behind)) => {
                steps.push(TagStep { add, name });
                add = matches!(sign, b',' | b'+');
                rest = behind;
            }
            Some((stray, _)) => return (steps, Some(*stray)),
        }
    }
}

/// What the stock daemon says of a list of tags at its start (reference 06 §15, row 181).
fn tag_lines(text: &[u8]) -> Vec<Vec<u8>> {
    let (steps, stray) = tag_steps(text);
    let mut tags = 0;
    let mut lines = Vec::new();
    for step in steps {
        lines.push(texts::debug_tag(step.add, step.name, tags));
        tags = step.apply(tags).unwrap_or(tags);
    }
    lines.extend(stray.map(texts::debug_tags_end));
    lines
}

#[cfg(test)]
mod tests;
