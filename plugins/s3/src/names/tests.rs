//! Names of keys, and keys of names.

use std::collections::BTreeSet;

use super::*;
use crate::wrong_name::wrong_name;

fn names(keys: &[&str]) -> Vec<String> {
    let mut namer = Namer::default();
    keys.iter().map(|key| String::from_utf8(namer.name("b", key.as_bytes()).0).unwrap()).collect()
}

#[test]
fn an_ordinary_key_is_its_own_name() {
    assert_eq!(names(&["a/b c/d.txt", "é/ü"]), ["/@s3/b/a/b c/d.txt", "/@s3/b/é/ü"]);
}

#[test]
fn what_no_path_can_have_is_escaped() {
    let keys = ["", "\n", "%", "%41", ".", "./..", "/", "//a", "a/", "a/.b/...", "a//b"];
    let expected = ["%", "%0A", "%25", "%2541", "%2E", "%2E/%2E%2E", "%/%", "%/%/a", "a/%", "a/.b/...", "a/%/b"];
    let mut sorted: Vec<_> = keys.iter().zip(expected).collect();
    sorted.sort();
    for (key, expected) in sorted {
        assert_eq!(names(&[key]), [format!("/@s3/b/{expected}")], "{key:?}");
    }
}

#[test]
fn an_object_and_those_below_its_name_do_not_meet() {
    let keys = ["a", "a!", "a!/x", "a/", "a//b", "a/b", "a/b/c", "a0"];
    let expected = ["a", "a!", "a!%/x", "a%/%", "a%/%%/b", "a%/b", "a%/b%/c", "a0"];
    assert_eq!(names(&keys), expected.map(|name| format!("/@s3/b/{name}")));
}

#[test]
fn a_part_of_any_length_fits_a_file_system() {
    for part in ["x".repeat(1024), "é".repeat(512), "\n".repeat(1024), "%".repeat(300), "x".repeat(250)] {
        let name = names(&[&part, &format!("{part}/y")]);
        for name in name {
            assert!(name.split('/').all(|part| part.len() <= 255), "{name}");
            assert!(name.len() < 4096 - 256);
        }
    }
}

#[test]
fn other_names_have_no_key() {
    for name in ["/@s3/b", "/etc/x", "/@s3/b/%4", "/@s3/b/%G0", "/@s3/b/%+1", "/@s3/b/a//b", "/@s3/b/"] {
        assert_eq!(key_of(name.as_bytes()), None, "{name}");
    }
}

/// What a part is cut behind is escaped like a part of its own.
#[test]
fn dots_behind_a_cut_are_escaped() {
    for dots in [".", ".."] {
        let key = format!("{}{dots}/0/invoice.txt", "x".repeat(239));
        let escaped = "%2E".repeat(dots.len());
        assert_eq!(names(&[&key]), [format!("/@s3/b/{}%+/{escaped}/0/invoice.txt", "x".repeat(239))]);
    }
}

#[test]
fn bytes_that_are_no_characters_fit_a_file_system() {
    for byte in [0x80, 0xBF, 0xFF] {
        let key = vec![byte; 1024];
        let name = Namer::default().name("b", &key).0;
        assert!(name.split(|byte| *byte == b'/').all(|part| part.len() <= 255), "{byte}");
        assert_eq!(key_of(&name), Some(("b".to_owned(), key)));
    }
}

/// Keys of the characters that matter, by numbers that look random.
fn random_keys(seed: u64, count: usize) -> BTreeSet<Vec<u8>> {
    let mut state = seed;
    let mut next = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let (cut, nearly) = ("x".repeat(239), "x".repeat(236));
    let pieces: [&[u8]; 19] = [
        b"/",
        b"/",
        b"a",
        b"b",
        b".",
        b"..",
        b"%",
        b"%+",
        b"+",
        b"\n",
        b"\x01",
        "é".as_bytes(),
        b" ",
        b"!",
        b"xxxxxxxxxxxxxxxxxxxxxxxxxx",
        b"%41",
        cut.as_bytes(),
        nearly.as_bytes(),
        &[0x80; 100],
    ];
    (0..count)
        .map(|_| {
            let most = if next(20) == 0 { 60 } else { 5 };
            let length = 1 + next(most);
            (0..length).flat_map(|_| pieces[next(pieces.len())].iter().copied()).collect()
        })
        .collect()
}

#[test]
fn each_key_comes_back_from_its_name_and_no_two_meet() {
    for seed in 0..200 {
        let keys = random_keys(seed, 300);
        let wrong = wrong_name(&keys).map(|(key, name)| (key.escape_ascii().to_string(), String::from_utf8(name)));
        assert_eq!(wrong, None, "seed {seed}");
    }
}
