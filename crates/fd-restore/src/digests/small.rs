//! Digests of small files, made many at a time, which costs a fifth of making them one by one.
//!
//! The data of a file is kept beside writing it, and what the volume says of it. Once there is enough, all are digested
//! together. Until then it is not known which files are wrong, so what is told meanwhile is held (see [`crate::report`]).

use std::ops::Range;

use fd_crypto::Digester;
use fd_crypto::md5_lanes::Md5Lanes;
use fd_crypto::processor::Processor;
use fd_records::{DigestKind, DigestValue};

use super::checked::{Checked, Finding, Recorded, Ticket};

/// A file that turns out to be longer than this is digested while it is written, as large ones are.
const MOST_OF_ONE: usize = 512 << 10;
/// With so many bytes kept, the digests are made. Files of very different sizes fill the lanes well only if there are
/// many of them: with 512 KiB MD5 would take twice as long. With more than this the processor's own cache does not hold
/// them any more.
const MOST_BYTES: usize = 2 << 20;
/// And with so many files: what is told of them is held as long.
const MOST_FILES: usize = 1024;

/// See the module.
pub(super) struct SmallFiles {
    processor: Processor,
    /// The data and then the name of each file, and the data of the one that is being written.
    kept: Vec<u8>,
    /// Where that of the file that is being written begins.
    begun: usize,
    /// The files whose digests are not made yet.
    waiting: Vec<Waiting>,
}

struct Waiting {
    ticket: Ticket,
    data: Range<usize>,
    name: Range<usize>,
    kind: DigestKind,
    recorded: Recorded,
}

impl SmallFiles {
    pub(super) const fn new(processor: Processor) -> Self {
        Self { processor, kept: Vec::new(), begun: 0, waiting: Vec::new() }
    }

    /// The next data of the file that is being written. `false` if it is too long: nothing more of it is kept.
    pub(super) fn keep(&mut self, data: &[u8]) -> bool {
        let fits = self.current().len() + data.len() <= MOST_OF_ONE;
        if fits {
            self.kept.extend_from_slice(data);
        }
        fits
    }

    /// What is kept of the file that is being written.
    pub(super) fn current(&self) -> &[u8] {
        self.kept.get(self.begun..).unwrap_or_default()
    }

    /// Forgets it.
    pub(super) fn forget(&mut self) {
        self.kept.truncate(self.begun);
    }

    /// The file is complete and has this name.
    pub(super) fn add(&mut self, ticket: Ticket, kind: DigestKind, recorded: Recorded, name: &[u8]) {
        let data = self.begun..self.kept.len();
        self.kept.extend_from_slice(name);
        self.begun = self.kept.len();
        self.waiting.push(Waiting { ticket, name: data.end..self.begun, data, kind, recorded });
    }

    /// Whether there are files that wait.
    pub(super) const fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether they are enough for [`Self::settle`].
    pub(super) const fn are_many(&self) -> bool {
        self.kept.len() >= MOST_BYTES || self.waiting.len() >= MOST_FILES
    }

    /// Digests all files that wait, and says what came out.
    pub(super) fn settle(&mut self, said: &mut dyn FnMut(Checked<'_>)) {
        let bytes = |range: &Range<usize>| self.kept.get(range.clone()).unwrap_or_default();
        let messages: Vec<_> = self.waiting.iter().map(|file| (file.kind, bytes(&file.data))).collect();
        each_digest(&messages, self.processor, |number, value| {
            let Some(file) = self.waiting.get(number) else { return };
            let finding = value.map_or(Finding::None, Finding::Has);
            said(Checked { ticket: file.ticket, name: bytes(&file.name), recorded: &file.recorded, finding });
        });
        self.waiting.clear();
        self.kept.drain(..self.begun);
        self.begun = 0;
    }
}

/// Makes the digest of each message, and passes it on with the message's number: `None` where there is none.
fn each_digest(
    messages: &[(DigestKind, &[u8])],
    processor: Processor,
    mut done: impl FnMut(usize, Option<DigestValue>),
) {
    let lanes = Md5Lanes::new(processor);
    let length = |number: &usize| messages.get(*number).map_or(0, |(_, data)| data.len());
    let (mut together, mut apart): (Vec<usize>, Vec<usize>) = (0..messages.len())
        .partition(|number| lanes.is_some() && messages.get(*number).is_some_and(|(kind, _)| *kind == DigestKind::Md5));
    together.sort_unstable_by_key(|number| std::cmp::Reverse(length(number)));
    if let Some(lanes) = lanes {
        let outstanding = lanes.stand_out(together.iter().map(length));
        apart.extend(together.drain(..outstanding));
        let data = |number: &usize| messages.get(*number).map(|(_, data)| *data).unwrap_or_default();
        lanes.each(together.iter().map(data), |place, value| {
            if let Some(number) = together.get(place) {
                done(*number, DigestValue::from_bytes(DigestKind::Md5, &value));
            }
        });
    }
    let mut digesters: Vec<Digester> = Vec::new();
    for number in apart {
        let Some((kind, data)) = messages.get(number) else { continue };
        if !digesters.iter().any(|digester| digester.kind() == *kind) {
            digesters.extend(Digester::new(*kind));
        }
        let digester = digesters.iter_mut().find(|digester| digester.kind() == *kind);
        done(
            number,
            digester.and_then(|digester| {
                digester.update(data);
                digester.finish().ok()
            }),
        );
    }
}
