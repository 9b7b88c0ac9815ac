//! The instances of the plugin, and which of them a thread works for.
//!
//! A plugin names its instance by `bpContext.bContext`. That is a number, not an address: one that
//! is of no instance does no harm.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CString, c_char, c_void};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use fd_os::lock::Mutex;

use super::line::Line;
use super::mapping::Mapping;
use crate::api::host::Value;
use crate::library::abi::Context;
use crate::library::values::c_text;
use crate::library::wire::{Bytes, FromHost, Note, Reply, Request};
use crate::texts;

/// Most messages of threads that are in no call; half as many if they are texts for debugging.
const MOST_NOTES: usize = 1000;
/// Numbers of [`fd_messages::MessageType`].
const ABORT: i32 = 1;
const FATAL: i32 = 4;
const ERROR: i32 = 5;
const WARNING: i32 = 6;
const ERROR_TERM: i32 = 12;
const TERM: i32 = 13;
/// Most texts that an instance keeps for its plugin.
const MOST_TEXTS: usize = 4096;

/// Variables that are the same in every job.
pub(super) static GENERAL: OnceLock<Vec<(i32, Kept)>> = OnceLock::new();
static INSTANCES: LazyLock<Mutex<HashMap<usize, Arc<Shared>>>> = LazyLock::new(Mutex::default);

thread_local! {
    static CURRENT: RefCell<Option<(usize, Line)>> = const { RefCell::new(None) };
}

/// A value whose text the plugin may point to for ever.
#[derive(Debug)]
pub(super) enum Kept {
    Number(i32),
    Text(Option<CString>),
}

impl From<Value> for Kept {
    fn from(value: Value) -> Self {
        match value {
            Value::Number(number) => Self::Number(number),
            Value::Text(text) => Self::Text(text.map(|text| c_text(&text))),
        }
    }
}

/// What all threads know of an instance.
#[derive(Debug)]
pub(super) struct Shared {
    handle: usize,
    pub(super) context: Box<ContextCell>,
    pub(super) memory: Mapping,
    canceled: AtomicBool,
    /// Whether the plugin's context is freed. Held while the plugin is told of a cancel, which uses
    /// the context on another thread.
    freed: Mutex<bool>,
    allowed: Mutex<Vec<Vec<u8>>>,
    /// Values when the instance began.
    values: Mutex<Vec<(i32, Value)>>,
    /// Texts that the plugin may point to.
    texts: Mutex<Vec<CString>>,
    /// What threads have said that are in no call.
    notes: Mutex<Notes>,
}

/// What threads have said that are in no call.
#[derive(Default, Debug)]
struct Notes {
    held: Vec<Note>,
    /// The worst type of the messages that had no room.
    lost: Option<i32>,
}

impl Notes {
    /// Holds it if there is room. Texts for debugging, most of which are written nowhere, leave
    /// room for messages, and these for what is said without words.
    fn push(&mut self, note: Note) {
        let most = match note {
            Note::Debug(..) => MOST_NOTES / 2,
            Note::Message(..) => MOST_NOTES,
            Note::Verifies => MOST_NOTES + 1,
        };
        if self.held.len() < most {
            self.held.push(note);
        } else if let Note::Message(kind, _) = note {
            let kind = match kind {
                ABORT | FATAL | ERROR_TERM | TERM => FATAL,
                ERROR => ERROR,
                _ => WARNING,
            };
            self.lost = Some(self.lost.map_or(kind, |worst| worst.min(kind)));
        }
    }
}

/// The structure that the plugin gets with each call. Only the plugin changes it.
#[derive(Debug)]
pub(super) struct ContextCell(std::cell::UnsafeCell<Context>);

// SAFETY: its address is handed to C; no reference to what is in it is ever made here.
unsafe impl Sync for ContextCell {}
// SAFETY: the number in it is of no thread, and the plugin's pointer is the plugin's business.
unsafe impl Send for ContextCell {}

impl ContextCell {
    pub(super) fn address(&self) -> *mut Context {
        self.0.get()
    }
}

impl Shared {
    /// A new instance, known by its number.
    pub(super) fn begin(number: u64, memory: &File) -> io::Result<Arc<Self>> {
        let handle = handle_of(number);
        let context = Context { daemon: handle as *mut c_void, plugin: std::ptr::null_mut() };
        let shared = Arc::new(Self {
            handle,
            context: Box::new(ContextCell(std::cell::UnsafeCell::new(context))),
            memory: Mapping::new(memory)?,
            canceled: AtomicBool::new(false),
            freed: Mutex::default(),
            allowed: Mutex::default(),
            values: Mutex::default(),
            texts: Mutex::default(),
            notes: Mutex::default(),
        });
        INSTANCES.lock().insert(handle, Arc::clone(&shared));
        Ok(shared)
    }

    /// Frees the plugin's context, once nothing uses it on another thread.
    pub(super) fn free<T>(&self, free: impl FnOnce() -> T) -> T {
        let mut freed = self.freed.lock();
        *freed = true;
        free()
    }

    /// Uses the plugin's context on another thread than that of the instance, unless it is freed.
    pub(super) fn beside<T>(&self, with: impl FnOnce() -> T) -> Option<T> {
        let freed = self.freed.lock();
        if *freed { None } else { Some(with()) }
    }

    /// The instance is over.
    pub(super) fn end(&self) {
        INSTANCES.lock().remove(&self.handle);
    }

    /// The instance of this number.
    pub(super) fn of_number(number: u64) -> Option<Arc<Self>> {
        INSTANCES.lock().get(&handle_of(number)).cloned()
    }

    /// The instance that this context is of.
    ///
    /// # Safety
    /// It points to a context, or is null.
    pub(super) unsafe fn of_context(context: *mut Context) -> Option<Arc<Self>> {
        // SAFETY: the caller vouches for it.
        let context = unsafe { context.as_ref() }?;
        INSTANCES.lock().get(&(context.daemon as usize)).cloned()
    }

    /// The instance that this thread works for.
    pub(super) fn of_this_thread() -> Option<Arc<Self>> {
        let handle = CURRENT.with_borrow(|current| current.as_ref().map(|(handle, _)| *handle))?;
        INSTANCES.lock().get(&handle).cloned()
    }

    /// From now on this thread works for the instance, over this line.
    pub(super) fn enter(&self, line: Line) {
        CURRENT.set(Some((self.handle, line)));
    }

    /// This thread works for it no longer.
    pub(super) fn leave() {
        CURRENT.set(None);
    }

    pub(super) fn set_job(&self, values: Vec<(i32, Value)>, allowed: Vec<Vec<u8>>) {
        *self.values.lock() = values;
        *self.allowed.lock() = allowed;
    }

    pub(super) fn set_canceled(&self) {
        self.canceled.store(true, Ordering::Relaxed);
    }

    /// Works with *Allowed Script Directories* of the job that this thread works for; none if it
    /// works for none.
    pub(super) fn allowed_here<T>(work: impl FnOnce(&[Vec<u8>]) -> T) -> T {
        match Self::of_this_thread() {
            Some(shared) => work(&shared.allowed.lock()),
            None => work(&[]),
        }
    }

    /// What a thread may know that is in no call.
    pub(super) fn snapshot(&self, variable: i32) -> Option<Value> {
        const IS_CANCELED: i32 = 27;
        if variable == IS_CANCELED && self.canceled.load(Ordering::Relaxed) {
            return Some(Value::Number(1));
        }
        self.values.lock().iter().find(|(known, _)| *known == variable).map(|(_, value)| value.clone())
    }

    /// The address of a text that stays as long as the instance.
    pub(super) fn keep(&self, text: &[u8]) -> *const c_char {
        let mut texts = self.texts.lock();
        if let Some(known) = texts.iter().find(|known| known.as_bytes() == text) {
            return known.as_ptr();
        }
        if texts.len() >= MOST_TEXTS {
            texts.remove(0);
        }
        let new = c_text(text);
        let address = new.as_ptr();
        texts.push(new);
        address
    }

    /// Says something that needs no answer.
    pub(super) fn note(&self, note: Note) {
        let foreign = with_line(self.handle, |line| {
            // Without the daemon nobody hears it.
            let _gone = line.say(&FromHost::Note(note.clone())).and_then(|()| line.flush());
        })
        .is_none();
        if foreign {
            self.notes.lock().push(note);
        }
    }

    /// Asks the daemon. `None` for a thread that is in no call, and without the daemon.
    pub(super) fn ask(&self, request: Request) -> Option<Reply> {
        with_line(self.handle, |line| line.ask(request).ok()).flatten()
    }

    /// Says what threads of the plugin in this file have said meanwhile that are in no call.
    pub(super) fn say_notes(&self, file: &[u8]) {
        let Notes { held, lost } = std::mem::take(&mut *self.notes.lock());
        let lost = lost.map(|kind| Note::Message(kind, Bytes(texts::threads_say_too_much(file))));
        for note in held.into_iter().chain(lost) {
            self.note(note);
        }
    }

    /// Works with this thread's line.
    pub(super) fn with_line<T>(&self, work: impl FnOnce(&mut Line) -> io::Result<T>) -> io::Result<T> {
        with_line(self.handle, work).unwrap_or_else(|| Err(io::ErrorKind::NotConnected.into()))
    }
}

fn handle_of(number: u64) -> usize {
    // Never null, and no number that a plugin makes up.
    usize::try_from(0x5eed_0000_0000_u64.wrapping_add(number)).unwrap_or(usize::MAX)
}

fn with_line<T>(handle: usize, work: impl FnOnce(&mut Line) -> T) -> Option<T> {
    CURRENT.with(|current| match &mut *current.try_borrow_mut().ok()? {
        Some((of, line)) if *of == handle => Some(work(line)),
        _ => None,
    })
}
