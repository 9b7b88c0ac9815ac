//! Finds records by the hash of their name.

/// The index has five places for four records.
const PLACES_PER_RECORD: (usize, usize) = (5, 4);

/// Open addressing. A general table has a power of two of places, up to twice as many. Beside each
/// place there is one byte of the hash, which excludes most other records without reading them.
#[derive(Default)]
pub(super) struct Index {
    tags: Vec<u8>,
    places: Vec<u32>,
}

impl Index {
    pub(super) fn for_records(count: usize) -> Self {
        let len = places_for(count);
        Self { tags: vec![0; len], places: vec![0; len] }
    }

    /// Bytes of memory of an index for so many records.
    pub(super) fn memory(count: usize) -> usize {
        places_for(count) * size_of::<(u8, [u8; 4])>()
    }

    pub(super) fn enter(&mut self, hash: u64, number: u32) {
        let mut place = self.start(hash);
        while self.tags.get(place).is_some_and(|tag| *tag != 0) {
            place = self.next(place);
        }
        if let (Some(tag), Some(slot)) = (self.tags.get_mut(place), self.places.get_mut(place)) {
            *tag = tag_of(hash);
            *slot = number;
        }
    }

    /// The records that may have this hash.
    pub(super) fn candidates(&self, hash: u64) -> impl Iterator<Item = u32> {
        let tag = tag_of(hash);
        let first = (!self.tags.is_empty()).then(|| self.start(hash));
        std::iter::successors(first, |place| Some(self.next(*place)))
            .map_while(|place| self.tags.get(place).filter(|tag| **tag != 0).map(|tag| (place, *tag)))
            .filter(move |(_, found)| *found == tag)
            .filter_map(|(place, _)| self.places.get(place).copied())
    }

    /// Maps the hash to the places, whose number is no power of two.
    fn start(&self, hash: u64) -> usize {
        usize::try_from((u128::from(hash) * self.tags.len() as u128) >> 64).unwrap_or_default()
    }

    fn next(&self, place: usize) -> usize {
        if place + 1 < self.tags.len() { place + 1 } else { 0 }
    }
}

fn places_for(count: usize) -> usize {
    let (places, records) = PLACES_PER_RECORD;
    // At least one place stays free: it ends a search.
    count / records * places + places
}

/// A byte of the hash other than 0, which marks a free place. The place depends on other bits.
fn tag_of(hash: u64) -> u8 {
    (hash & 0xFF).max(1) as u8
}
