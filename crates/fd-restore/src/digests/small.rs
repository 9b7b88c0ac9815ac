//! The MD5 of small files, made many at a time, which costs a fifth of making them one by one.
//!
//! The data of a file is kept beside writing it, and what its digest record says. Once there is enough, all are made
//! together and compared. Until then nobody knows which files are wrong, so whoever tells has to hold back what comes
//! behind (see [`crate::report`]). Not here: which files are small, and any other kind of digest.

use fd_records::{DigestKind, DigestValue};
use std::ops::Range;

use fd_crypto::Digester;
use fd_crypto::md5_lanes::{Md5Lanes, VALUE_LEN};

/// A file that turns out to be longer than this is digested while it is written, as large ones are.
const MOST_OF_ONE: usize = 512 << 10;
/// With so many bytes kept, the digests are made. Files of very different sizes fill the lanes well only if there are
/// many of them: with 512 KiB MD5 would take twice as long. With more than this the processor's own cache does not hold
/// them any more.
const MOST_BYTES: usize = 2 << 20;
/// And with so many files: what is told of them waits as long.
const MOST_FILES: usize = 1024;

/// An MD5.
pub(crate) type Md5Value = [u8; VALUE_LEN];

/// See the module.
#[derive(Default)]
pub(crate) struct LateDigests {
    lanes: Option<Md5Lanes>,
    /// The data and then the name of each file, and the data of the one that is being written.
    kept: Vec<u8>,
    /// Where that of the file that is being written begins.
    begun: usize,
    promises: Vec<Promise>,
    /// The numbers of the promises, the longest first.
    order: Vec<usize>,
    /// For a file that stands out among the others.
    alone: Option<Digester>,
}

/// A digest that is still to be compared.
struct Promise {
    data: Range<usize>,
    name: Range<usize>,
    recorded: Md5Value,
    /// `None` where OpenSSL does not make it.
    computed: Option<Md5Value>,
}

/// A file whose data is not what was saved.
pub(crate) struct WrongFile<'l> {
    /// Its name, as messages show it.
    pub(crate) name: &'l [u8],
    /// The digest on the volume.
    pub(crate) recorded: &'l [u8],
    /// That of what was restored.
    pub(crate) restored: DigestValue,
}

impl LateDigests {
    /// In these lanes, if there are any.
    pub(crate) fn new(lanes: Option<Md5Lanes>) -> Self {
        Self { lanes, ..Self::default() }
    }

    /// Whether digests may be made later.
    pub(crate) const fn are_possible(&self) -> bool {
        self.lanes.is_some()
    }

    /// Forgets the data of the file that is being written.
    pub(crate) fn forget(&mut self) {
        self.kept.truncate(self.begun);
    }

    /// The next data of the file that is being written. `false` if it is too long: nothing more of it is kept.
    pub(crate) fn keep(&mut self, data: &[u8]) -> bool {
        let fits = self.current().len() + data.len() <= MOST_OF_ONE;
        if fits {
            self.kept.extend_from_slice(data);
        }
        fits
    }

    /// The digest of the file that is being written, made now.
    pub(crate) fn make_now(&mut self) -> Option<Md5Value> {
        md5(&mut self.alone, self.kept.get(self.begun..).unwrap_or_default())
    }

    /// What is kept of the file that is being written.
    pub(crate) fn current(&self) -> &[u8] {
        self.kept.get(self.begun..).unwrap_or_default()
    }

    /// The file is complete and has this name; its digest is to be this one.
    pub(crate) fn promise(&mut self, recorded: Md5Value, name: &[u8]) {
        let data = self.begun..self.kept.len();
        self.kept.extend_from_slice(name);
        self.begun = self.kept.len();
        self.promises.push(Promise { name: data.end..self.begun, data, recorded, computed: None });
    }

    /// Whether there are files that are not compared yet.
    pub(crate) const fn has_promises(&self) -> bool {
        !self.promises.is_empty()
    }

    /// Whether it is time to settle.
    pub(crate) const fn are_many(&self) -> bool {
        self.kept.len() >= MOST_BYTES || self.promises.len() >= MOST_FILES
    }

    /// Makes the digests of all files that were promised.
    pub(crate) fn settle(&mut self) {
        let Self { lanes, kept, promises, order, alone, .. } = self;
        let length = |number: usize| promises.get(number).map_or(0, |promise: &Promise| promise.data.len());
        order.clear();
        order.extend(0..promises.len());
        order.sort_unstable_by_key(|number| std::cmp::Reverse(length(*number)));
        let lengths = order.iter().map(|number| length(*number));
        let apart = lanes.map_or(order.len(), |lanes| lanes.stand_out(lengths));
        let (apart, together) = order.split_at_checked(apart).unwrap_or((order, &[]));
        for number in apart {
            if let Some(promise) = promises.get_mut(*number) {
                promise.computed = md5(alone, kept.get(promise.data.clone()).unwrap_or_default());
            }
        }
        let data = |number: &usize| {
            let promise = promises.get(*number);
            promise.and_then(|promise| kept.get(promise.data.clone())).unwrap_or_default()
        };
        let mut values = Vec::with_capacity(together.len());
        if let Some(lanes) = lanes {
            lanes.each(together.iter().map(data), |place, value| values.push((place, value)));
        }
        for (place, value) in values {
            if let Some(promise) = together.get(place).and_then(|number| promises.get_mut(*number)) {
                promise.computed = Some(value);
            }
        }
    }

    /// What came out for the file that was promised as the `number`th, counted from 0: something only if it is wrong.
    pub(crate) fn wrong(&self, number: usize) -> Option<WrongFile<'_>> {
        let promise = self.promises.get(number)?;
        let computed = promise.computed.filter(|computed| *computed != promise.recorded)?;
        Some(WrongFile {
            name: self.kept.get(promise.name.clone()).unwrap_or_default(),
            recorded: &promise.recorded,
            restored: DigestValue::from_bytes(DigestKind::Md5, &computed)?,
        })
    }

    /// Forgets the files that were promised, but not the one that is being written.
    pub(crate) fn clear(&mut self) {
        self.promises.clear();
        self.kept.drain(..self.begun);
        self.begun = 0;
    }
}

fn md5(digester: &mut Option<Digester>, data: &[u8]) -> Option<Md5Value> {
    if digester.is_none() {
        *digester = Digester::new(DigestKind::Md5).ok();
    }
    let digester = digester.as_mut()?;
    digester.update(data);
    digester.finish().ok()?.as_bytes().try_into().ok()
}
