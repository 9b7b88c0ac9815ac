//! Files on their way into a bucket.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Mutex;

use fd_records::Stat;

use super::*;
use crate::server::{Asked, Listener, settings};

#[test]
fn of_two_versions_of_a_key_the_later_one_is_stored_last() {
    const LARGE: usize = (8 << 20) + 9;
    for (replace, second) in [(b'a', 7), (b'a', LARGE), (b'n', 7)] {
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let seen = Arc::clone(&asked);
        let text = settings(move |asked| {
            let mut seen = seen.lock().unwrap();
            let puts = seen.iter().filter(|before| before.method == "PUT").count();
            seen.push(asked.clone());
            match (asked.method.as_str(), puts) {
                ("HEAD", 0) => Some((404, "", Vec::new())),
                ("PUT", 0) => Some((503, "", Vec::new())),
                ("POST", _) if asked.target.ends_with("?uploads=") => Some((
                    200,
                    "",
                    b"<InitiateMultipartUploadResult><UploadId>id</UploadId></InitiateMultipartUploadResult>".into(),
                )),
                ("POST", _) => Some((200, "", b"<CompleteMultipartUploadResult/>".into())),
                _ => Some((200, "ETag: \"x\"\r\n", Vec::new())),
            }
        });
        let path = std::env::temp_dir().join(format!("ferrofd-s3-restore-{}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let mut host = Listener::default();
        let mut restore = Restore::begin(Some(path.as_os_str().as_bytes()), &Cancel::default()).unwrap();
        let mut created = Vec::new();
        // One key by two names: `a` has come between the backups.
        for (name, size) in [("/@s3/b/a/b", 5), ("/@s3/b/a%/b", second)] {
            let stat = Stat { size: i64::try_from(size).unwrap(), ..Stat::default() };
            let file = RestoreFile { name: name.into(), stat, replace, ..RestoreFile::default() };
            created.push(restore.create(&mut host, &file, &mut Places::new()));
            if created.last() == Some(&CreateStatus::Extract) {
                let data = vec![7; size];
                for io in [Io::Write { data: &data }, Io::Close] {
                    assert_eq!(restore.io(&mut host, &io).errno, 0);
                }
            }
        }
        restore.end(&mut host);
        std::fs::remove_file(path).unwrap();
        let order: Vec<_> =
            asked.lock().unwrap().iter().map(|asked| (asked.method.clone(), asked.body.len())).collect();
        let place = |wanted: &str, length| order.iter().rposition(|(method, is)| method == wanted && *is == length);
        let first = place("PUT", 5);
        match (replace, second) {
            (b'n', _) => {
                assert_eq!(created, [CreateStatus::Extract, CreateStatus::Skip], "{order:?}");
                assert!(first < order.iter().rposition(|(method, _)| method == "HEAD"), "{order:?}");
            }
            (_, LARGE) => assert!(first < order.iter().rposition(|(method, _)| method == "POST"), "{order:?}"),
            _ => assert!(first < place("PUT", second), "{order:?}"),
        }
    }
}

#[test]
fn an_object_that_is_there_is_replaced_as_the_mode_says() {
    let text = settings(|asked| {
        let is_look = asked.method == "HEAD";
        Some((
            200,
            if is_look { "Last-Modified: Thu, 01 Jan 1970 00:01:40 GMT\r\n" } else { "ETag: \"x\"\r\n" },
            Vec::new(),
        ))
    });
    let path = std::env::temp_dir().join(format!("ferrofd-s3-replace-{}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut restore = Restore::begin(Some(path.as_os_str().as_bytes()), &Cancel::default()).unwrap();
    std::fs::remove_file(path).unwrap();
    let mut host = Listener::default();
    // For a saved object that is older than the one that is there, as old, and newer.
    for (replace, expected) in [
        (b'a', [true, true, true]),
        (b'w', [false, false, true]),
        (b'o', [true, false, false]),
        (b'n', [false, false, false]),
        (b'?', [true, true, true]),
    ] {
        let stored = [99, 100, 101].map(|mtime| {
            let stat = Stat { mtime, ..Stat::default() };
            let file = RestoreFile { name: b"/@s3/b/a".into(), stat, replace, ..RestoreFile::default() };
            let is_stored = restore.create(&mut host, &file, &mut Places::new()) == CreateStatus::Extract;
            restore.end(&mut host);
            is_stored
        });
        assert_eq!(stored, expected, "{}", char::from(replace));
    }
}
