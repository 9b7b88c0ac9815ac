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

#[test]
fn what_was_saved_with_an_object_comes_back_at_any_place() {
    let root = std::env::temp_dir().join(format!("ferrofd-s3-extras-{}", std::process::id()));
    std::fs::create_dir_all(root.join("real/@s3/b")).unwrap();
    // Whatever the umask.
    std::fs::set_permissions(&root, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(root.join("real/@s3/b/a"), b"data").unwrap();
    std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
    std::os::unix::fs::symlink("a", root.join("real/@s3/b/l")).unwrap();
    let link_to = |target: &str, name: &str| std::os::unix::fs::symlink(target, root.join(name)).unwrap();
    link_to("loop", "loop");
    link_to("real/../link", "chain");
    // A link of another user, a link to it, and one that another user may have moved.
    link_to("real", "foreign");
    link_to("foreign", "behind");
    std::fs::create_dir(root.join("open")).unwrap();
    link_to("../real", "open/link");
    std::fs::set_permissions(root.join("open"), std::fs::Permissions::from_mode(0o777)).unwrap();
    let is_foreign = std::os::unix::fs::lchown(root.join("foreign"), Some(65_534), None).is_ok();
    rustix::fs::mknodat(CWD, root.join("real/@s3/b/fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let path = |name: &str| root.join(name).into_os_string().into_encoded_bytes();
    for (place, name, is_found) in [
        (Some(path("real")), "real/@s3/b/a", true),
        (Some(path("real/")), "real/@s3/b/a", true),
        (Some(path("link")), "link/@s3/b/a", true),
        // `where=/`, and `RegexWhere`.
        (Some(Vec::new()), "real/@s3/b/a", true),
        (Some(Vec::new()), "link/@s3/b/a", true),
        (None, "link/@s3/b/a", true),
        (None, "chain/@s3/b/a", true),
        (None, "foreign/@s3/b/a", !is_foreign),
        (None, "behind/@s3/b/a", !is_foreign),
        (None, "open/link/@s3/b/a", false),
        (None, "loop/@s3/b/a", false),
        // Below the place, and at its end, no link is followed, nor is anything above it reached.
        (Some(path("")), "link/@s3/b/a", false),
        (Some(path("real/@s3")), "real/@s3/../@s3/b/a", false),
        (Some(path("real")), "real/@s3/b/l", false),
        (None, "real/@s3/b/l", false),
        (None, "real/@s3/b", false),
        (None, "real/@s3/b/fifo", false),
        (None, "real/@s3/b/a/a", false),
        (None, "real/@s3/b/other", false),
        (Some(path("real/@s3/b/a")), "real/@s3/b/a", false),
    ] {
        let file = RestoreFile { name: path(name), place, ..RestoreFile::default() };
        let set = set_extras(&file, &Extras::default());
        let place = file.place.as_deref().map(String::from_utf8_lossy);
        assert_eq!(set.is_ok(), is_found, "{place:?} {name}: {set:?}");
    }
    std::fs::remove_dir_all(root).unwrap();
}

/// Restores what this text says, which can't be done in whole, with a file: the names of what it
/// has then. `None`: it can have no attributes.
fn attributes_of_file_with(text: &str) -> Option<Vec<String>> {
    let path = std::env::temp_dir().join(format!("ferrofd-s3-attributes-{}", std::process::id()));
    let kept = File::create(&path).unwrap();
    let can_have = fsetxattr(&kept, "user.s3", b"", XattrFlags::empty()).is_ok();
    let extras = Extras::of_text(text.as_bytes()).unwrap();
    let file = RestoreFile { name: path.as_os_str().as_bytes().to_vec(), ..RestoreFile::default() };
    let set = set_extras(&file, &extras);
    let mut names = vec![0; 4096];
    let length = rustix::fs::flistxattr(&kept, &mut names).unwrap_or_default();
    std::fs::remove_file(path).unwrap();
    assert!(set.is_err(), "{text}");
    let names = names.get(..length).unwrap_or_default().split(|byte| *byte == 0);
    let names = names.filter(|name| name.starts_with(b"user.s3.")).map(|name| String::from_utf8_lossy(name).into());
    can_have.then(|| names.collect())
}

#[test]
fn an_attribute_that_fails_costs_only_itself() {
    let long = "a".repeat(300);
    let text = format!("s3 1\nx-amz-meta-{long}: value\nx-amz-meta-b: value\n");
    let Some(names) = attributes_of_file_with(&text) else {
        return skip::part("the temporary folder has no extended attributes of users");
    };
    assert_eq!(names, ["user.s3.x-amz-meta-b"]);
}

#[test]
fn of_many_files_without_their_attributes_some_are_named_and_all_are_counted() {
    let (mut restore, mut host) = (Restore::begin(None, &Cancel::default()).unwrap(), Listener::default());
    let file = RestoreFile { name: b"/no/such/object".into(), ..RestoreFile::default() };
    for _ in 0..30 {
        assert_eq!(restore.create(&mut host, &file, &mut Places::new()), CreateStatus::Core);
        assert_eq!(restore.set_attributes(&mut host, &file), CreateStatus::Core);
    }
    restore.end(&mut host);
    assert_eq!(host.kinds, [MessageType::Warning; 26]);
    assert_eq!(host.texts[25], "s3: Content type and user metadata not restored for 30 files in all\n");
}
