//! What a file of bucket settings may say.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

const LEAST: &str = "bucket = \"b\"\naccess_key = \"a\"\nsecret_key = \"s\"\n";

#[test]
fn the_least_has_defaults() {
    let settings = BucketSettings::parse(LEAST).unwrap();
    assert_eq!(settings.endpoint(), "https://s3.us-east-1.amazonaws.com");
    assert_eq!((settings.prefetch, settings.memory(), settings.retries), (64, 64 << 20, 10));
    assert_eq!((settings.prefixes(), settings.timeout()), (vec![String::new()], Duration::from_secs(60)));
    assert!(!format!("{settings:?}").contains("\"s\""));
}

#[test]
fn prefixes_are_sorted_and_none_is_in_another() {
    let text = format!("{LEAST}prefixes = [\"b/\", \"a/x\", \"a/\", \"b/\"]");
    assert_eq!(BucketSettings::parse(&text).unwrap().prefixes(), ["a/", "b/"]);
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    for (line, number, what) in [
        ("prefetch = 1025", 4, "prefetch: 1025 is not 1 to 1024"),
        ("prefetch = \"x\"", 4, "invalid type"),
        ("colour = 1", 4, "unknown field `colour`"),
        ("endpoint = \"ftp://x\"", 4, "endpoint: "),
        ("endpoint = \"http://x/path\"", 4, "endpoint: "),
        ("bucket = \"c\"", 4, "duplicate key"),
        ("memory = 1", 4, "memory: "),
        ("timeout = 0", 4, "timeout: "),
        ("region = \"a\\nb\"", 4, "region: it must have printable ASCII characters"),
        ("endpoint = \"http://x\"\nregion = \"Zürich\"", 5, "region: "),
    ] {
        let (at, said) = BucketSettings::parse(&format!("{LEAST}{line}\n")).unwrap_err();
        assert!(at == number && said.starts_with(what), "{line}: {at} {said}");
    }
    let (_, said) = BucketSettings::parse("bucket = \"b\"").unwrap_err();
    assert_eq!(said, "missing field `access_key`");
    let (at, said) = BucketSettings::parse(&LEAST.replace("\"b\"", "\"a/b\"")).unwrap_err();
    assert!(at == 1 && said.starts_with("bucket: "), "{at} {said}");
}

#[test]
fn a_message_about_a_key_does_not_have_it() {
    for name in ["access_key", "secret_key", "session_token"] {
        for wrong in [
            "8877",
            "88.77",
            "true",
            "[\"8877\"]",
            "8877x",
            "\"8877",
            "'8877",
            "\"88\\q77\"",
            "{x = 8877}",
            "8877-01-01",
        ] {
            let others: String =
                LEAST.lines().filter(|line| !line.starts_with(name)).flat_map(|line| [line, "\n"]).collect();
            let (at, said) = BucketSettings::parse(&format!("{others}{name} = {wrong}\n")).unwrap_err();
            assert!(at > 0 && !said.contains("77") && !said.contains("true"), "{name} = {wrong}: {at} {said}");
        }
    }
}

#[test]
fn a_file_that_others_can_read_is_refused() {
    let path = std::env::temp_dir().join(format!("ferrofd-s3-settings-{}", std::process::id()));
    std::fs::write(&path, LEAST).unwrap();
    let read = |mode| {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        BucketSettings::read(&path).map_err(|text| String::from_utf8(text).unwrap())
    };
    for mode in [0o600, 0o400, 0o640] {
        assert!(read(mode).is_ok(), "{mode:o}");
    }
    for mode in [0o644, 0o602, 0o660, 0o601] {
        assert!(read(mode).unwrap_err().contains(&format!("mode {mode:04o}")), "{mode:o}");
    }
    std::fs::remove_file(&path).unwrap();
    assert!(read_error(&path).contains("No such file"));
    assert!(read_error(Path::new("/tmp")).contains("not a file"));
}

fn read_error(path: &Path) -> String {
    String::from_utf8(BucketSettings::read(path).unwrap_err()).unwrap()
}
