//! Arbitrary bytes: the parser ends without a panic, and explains what it refuses.

use fd_config::{JsonOptions, LoadError};

use crate::world::World;

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % below
    }
}

const PIECES: [&str; 47] = [
    "Director",
    "FileDaemon",
    "Messages",
    "Console",
    "Schedule",
    "Statistics",
    "Name",
    "Password",
    "Connect",
    "Metrics",
    "FdAddresses",
    "FdPort",
    "stdout",
    "append",
    "HeartbeatInterval",
    "MaximumBandwidthPerJob",
    "DisableCommand",
    "Working Directory",
    " = ",
    "=",
    "{",
    "}",
    ";",
    ",",
    "\n",
    " ",
    "\t",
    "\"",
    "\\",
    "#",
    "@",
    "@\"|echo x = y\"",
    "@twice",
    "all, !info",
    "events.a",
    "5",
    "5 min",
    "1.5 kb/s",
    "w05-w10",
    "at 1:00",
    "mon-fri",
    "ip = { addr = ::1 }",
    "\0",
    "\r",
    "\u{feff}",
    "é",
    "\"\"",
];

fn load(bytes: &[u8]) -> Result<(), LoadError> {
    let mut world = World::default();
    world.files.insert(b"main".to_vec(), bytes.to_vec());
    world.files.insert(b"loop".to_vec(), b"@loop".to_vec());
    world.files.insert(b"twice".to_vec(), b"\n# x\nName\n".to_vec());
    if let Ok(document) = fd_config::parse_for_json(b"main", &mut world) {
        assert!(document.to_json(&JsonOptions::default()).ends_with(b"]\n"));
    }
    let loaded = fd_config::load(b"main", &mut world, &mut World::default());
    if let Err(error) = &loaded {
        assert!(!error.messages().is_empty());
        assert!(!error.to_string().is_empty());
        assert!(error.explanation().len() < 4000);
    }
    loaded.map(|_| ())
}

#[test]
fn random_pieces_never_panic() {
    let mut numbers = Numbers(1);
    for _ in 0..3_000 {
        let length = 1 + numbers.next(40);
        let text: String = (0..length).map(|_| PIECES[numbers.next(PIECES.len())]).collect();
        let _refused = load(text.as_bytes());
    }
}

#[test]
fn random_bytes_in_a_good_file_never_panic() {
    let inputs: toml::Table = toml::from_str(include_str!("../corpus/inputs.toml")).unwrap();
    let base = inputs["base"].as_str().unwrap().as_bytes();
    assert_eq!(load(base), Ok(()));
    let mut numbers = Numbers(2);
    for _ in 0..3_000 {
        let mut bytes = base.to_vec();
        for _ in 0..=numbers.next(3) {
            let at = numbers.next(bytes.len());
            match numbers.next(3) {
                0 => bytes[at] = u8::try_from(numbers.next(256)).unwrap(),
                1 => drop(bytes.drain(at..(at + 1 + numbers.next(8)).min(bytes.len()))),
                _ => drop(bytes.splice(at..at, PIECES[numbers.next(PIECES.len())].bytes())),
            }
        }
        let _refused = load(&bytes);
    }
}

#[test]
fn parsing_ends_with_every_prefix_of_a_file() {
    let inputs: toml::Table = toml::from_str(include_str!("../corpus/inputs.toml")).unwrap();
    let base = inputs["base"].as_str().unwrap().as_bytes();
    for length in 0..base.len() {
        assert_eq!(load(&base[..length]).is_ok(), length + 1 == base.len(), "{length}");
    }
}

#[test]
fn an_include_that_includes_itself_ends_like_too_many_open_files() {
    let error = load(b"@loop").unwrap_err();
    assert!(error.to_string().contains("Cannot open included config file loop: Too many open files"), "{error}");
    assert!(error.explanation().contains("include each other"));
}

#[test]
fn parsing_ends_with_files_that_include_each_other_twice() {
    let mut world = World::default();
    for level in 0..64 {
        let next = format!("@f{0}\n@f{0}\n", level + 1);
        world.files.insert(format!("f{level}").into_bytes(), next.into_bytes());
    }
    let error = fd_config::load(b"f0", &mut world, &mut World::default()).unwrap_err();
    assert!(error.to_string().contains("Cannot open included config file"), "{error}");
}

#[test]
fn parsing_ends_with_big_files() {
    let lines = "# comment\n".repeat(200_000);
    let quoted = format!("Director {{ Name = d; Description = \"{}\" }}", "x".repeat(2_000_000));
    let braces = format!("Director {}", "{".repeat(1_000_000));
    assert!(load(lines.as_bytes()).is_err());
    let error = load(quoted.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("Config token too long"), "{error}");
    assert!(load(braces.as_bytes()).is_err());
}
