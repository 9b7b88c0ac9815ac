//! Whether names of keys hold, for the tests and the fuzz target.

use std::collections::BTreeSet;

use crate::names::{Namer, key_of};

/// The first of these keys of a bucket whose name does not hold: it is not the key's alone, does
/// not come back to it, or could not be a file beside those of the other keys.
pub fn wrong_name(keys: &BTreeSet<Vec<u8>>) -> Option<(Vec<u8>, Vec<u8>)> {
    const BUCKET: &str = "bucket.x";
    let mut namer = Namer::default();
    let files: Vec<_> = keys.iter().map(|key| (key, namer.name(BUCKET, key).0)).collect();
    // What the kernel makes of them.
    let place = |name: &[u8]| {
        let mut place: Vec<Vec<u8>> = Vec::new();
        for part in name.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." => drop(place.pop()),
                part => place.push(part.to_vec()),
            }
        }
        place
    };
    let all: BTreeSet<_> = files.iter().map(|(_, name)| place(name)).collect();
    let is_wrong = |key: &[u8], name: &[u8]| {
        let place = place(name);
        let fits = |part: &Vec<u8>| part.len() <= 255 && !part.iter().any(u8::is_ascii_control);
        // No file is where another one needs a directory.
        let is_in_the_way = (1..place.len()).any(|above| place.get(..above).is_some_and(|above| all.contains(above)));
        let is_whole = [b"/".as_slice(), &place.join(&b'/')].concat() == name;
        let is_back = key_of(name).is_some_and(|(bucket, back)| bucket == BUCKET && back == key);
        !is_whole || is_in_the_way || !is_back || !place.iter().all(fits)
    };
    if all.len() != files.len() {
        let mut seen = BTreeSet::new();
        let twice = files.into_iter().find(|(_, name)| !seen.insert(place(name)));
        return twice.map(|(key, name)| (key.clone(), name));
    }
    files.into_iter().find(|(key, name)| is_wrong(key, name)).map(|(key, name)| (key.clone(), name))
}
