//! Where the objects of a job go.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Mutex;

use fd_plugins::{AccurateAttributes, JobFacts, SavedObject};
use fd_records::{FileType, Stat};

use super::*;
use crate::server::{Listener, settings};

#[test]
fn each_command_goes_where_its_own_option_says() {
    let (mut job, mut host, mut offered) = (S3Job::default(), Listener::default(), SavePacket::empty());
    RESTORE_INTO.offer(&mut offered);
    let object = SavedObject {
        name: offered.object.name.unwrap(),
        data: b"restore_into=/no/such/bucket.toml\n".to_vec(),
        command: b"s3:/etc/b.toml".to_vec(),
        object_type: i32::from(FileType::PluginConfigFilled.code()),
        ..SavedObject::default()
    };
    assert_eq!(job.event(&mut host, &Event::RestoreObject(Some(&object))), Ok(Status::Ok));
    // To files, and into a bucket whose description can't be read.
    for (command, status) in [(&b"s3:/etc/a.toml"[..], Status::Ok), (b"s3:/etc/b.toml", Status::Error)] {
        assert_eq!(job.event(&mut host, &Event::RestoreCommand(command)), Ok(status), "{}", command.escape_ascii());
    }
    assert_eq!(host.kinds, [MessageType::Info, MessageType::Fatal]);
}

#[test]
fn objects_of_two_buckets_are_not_mixed_in_one() {
    let keys = "access_key = \"a\"\nsecret_key = \"s\"\n";
    let path = |name: &str, more: &str| {
        let path = std::env::temp_dir().join(format!("ferrofd-s3-job-{}-{name}", std::process::id()));
        std::fs::write(&path, format!("bucket = \"to\"\n{keys}{more}")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    };
    let (all, apart) = (path("all", ""), path("apart", "restore_prefix = \"two/\""));
    let (mut job, mut host, mut offered) = (S3Job::default(), Listener::default(), SavePacket::empty());
    RESTORE_INTO.offer(&mut offered);
    for (command, into) in [("s3:/one", &all), ("s3:/two", &all), ("s3:/apart", &apart)] {
        let object = SavedObject {
            name: offered.object.name.clone().unwrap(),
            data: format!("restore_into={}\n", into.display()).into(),
            command: command.into(),
            object_type: i32::from(FileType::PluginConfigFilled.code()),
            ..SavedObject::default()
        };
        assert_eq!(job.event(&mut host, &Event::RestoreObject(Some(&object))), Ok(Status::Ok));
    }
    host.kinds.clear();
    for (command, name, created) in [
        ("s3:/one", "/@s3/one/index", CreateStatus::Extract),
        ("s3:/two", "/@s3/two/index", CreateStatus::Skip),
        // The description of a bucket may name another one than before.
        ("s3:/one", "/@s3/two/index", CreateStatus::Skip),
        ("s3:/one", "/@s3/one/more", CreateStatus::Extract),
        ("s3:/apart", "/@s3/two/index", CreateStatus::Extract),
        ("s3:/two", "/@s3/two/other", CreateStatus::Skip),
    ] {
        assert_eq!(job.event(&mut host, &Event::RestoreCommand(command.as_bytes())), Ok(Status::Ok));
        let file = RestoreFile { name: name.into(), replace: b'a', ..RestoreFile::default() };
        assert_eq!(job.create_file(&mut host, &file), Ok((Status::Ok, created)), "{command} {name}");
    }
    assert_eq!(host.kinds, [MessageType::Error; 3]);
    for path in [all, apart] {
        std::fs::remove_file(path).unwrap();
    }
}

/// A file with these settings.
fn file_of(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ferrofd-s3-job-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

fn begin(job: &mut S3Job, host: &mut dyn Host, path: &Path) -> Status {
    let command = format!("s3:{}", path.display());
    job.event(host, &Event::BackupCommand(command.as_bytes())).unwrap()
}

#[test]
fn objects_of_two_servers_do_not_get_one_name() {
    let keys = "bucket = \"data\"\naccess_key = \"a\"\nsecret_key = \"s\"\nretries = 0\n";
    let other = keys.replace("\"data\"", "\"other\"");
    let (mut job, mut host) = (S3Job::default(), Listener::default());
    for (name, text, is_taken) in [
        ("servers-one", format!("{keys}endpoint = \"http://127.0.0.1:1\"\nprefixes = [\"a/\", \"b/\"]"), false),
        // Another part of the same one, and another bucket.
        ("servers-more", format!("{keys}endpoint = \"http://127.0.0.1:1\"\nprefixes = [\"b/c\"]"), false),
        ("servers-else", format!("{other}endpoint = \"http://127.0.0.1:2\""), false),
        ("servers-apart", format!("{keys}endpoint = \"http://127.0.0.1:2\"\nprefixes = [\"c/\"]"), false),
        ("servers-within", format!("{keys}endpoint = \"http://127.0.0.1:2\"\nprefixes = [\"b/d\"]"), true),
        ("servers-all", format!("{keys}endpoint = \"http://127.0.0.1:2\""), true),
        ("servers-again", format!("{keys}endpoint = \"http://127.0.0.1:1\"\nprefixes = [\"a/\"]"), false),
    ] {
        let path = file_of(name, &text);
        let status = if is_taken { Status::Error } else { Status::Ok };
        assert_eq!(begin(&mut job, &mut host, &path), status, "{name}: {:?}", host.texts);
        std::fs::remove_file(path).unwrap();
    }
    assert_eq!(host.kinds, [MessageType::Fatal; 2]);
    assert!(host.texts[0].contains("bucket data at another address") && host.texts[0].contains("prefixes"));
}

/// A job with or without a list, and what of it is unchanged.
#[derive(Default)]
struct Listing {
    listener: Listener,
    is_accurate: bool,
    unchanged: &'static [&'static str],
    /// The job's files and objects at its end.
    files: i32,
    asked: Stat,
    seen: Vec<String>,
}

impl Host for Listing {
    fn facts(&self) -> &dyn JobFacts {
        self.listener.facts()
    }

    fn message(&mut self, kind: MessageType, text: &[u8]) {
        self.listener.message(kind, text);
    }

    fn value(&mut self, variable: Variable) -> Option<Value> {
        match variable {
            Variable::Accurate => Some(Value::Number(self.is_accurate.into())),
            Variable::FileIndex => Some(Value::Number(self.files)),
            _ => None,
        }
    }

    fn mark_seen(&mut self, name: &[u8]) -> Status {
        self.seen.push(String::from_utf8_lossy(name).into_owned());
        Status::Ok
    }

    fn check_changes(&mut self, file: &mut SavePacket) -> Status {
        self.asked = file.stat;
        let name = file.name.as_deref().and_then(|name| name.strip_prefix(b"/@s3/b/")).unwrap();
        if self.unchanged.iter().any(|key| key.as_bytes() == name) { Status::Seen } else { Status::Ok }
    }

    fn accurate_attributes(&mut self, _name: &[u8]) -> Option<AccurateAttributes> {
        Some(AccurateAttributes { stat: self.asked, ..AccurateAttributes::default() })
    }
}

/// Saves a bucket with the objects `a`, `b` and `c`, of which only `a` may be read, and that only
/// sometimes. What the plugin says to each file behind its own, and which objects it has asked for.
fn save(name: &str, level: u8, may_read: bool, host: &mut Listing) -> (Vec<Status>, Vec<String>) {
    let fetched: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&fetched);
    let text = settings(move |asked| {
        if asked.target.contains("list-type=2") {
            let entries = ["a", "b", "c"].map(|key| {
                format!(
                    "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
                     <ETag>{key}</ETag><Size>1</Size></Contents>"
                )
            });
            return Some((200, "", format!("<ListBucketResult>{}</ListBucketResult>", entries.concat()).into()));
        }
        let key = asked.target.trim_start_matches("/b/").split('?').next().unwrap().to_owned();
        let is_read = may_read && key == "a";
        seen.lock().unwrap().push(key);
        let refusal = "<Error><Code>AccessDenied</Code></Error>";
        Some(if is_read { (200, "ETag: \"a\"\r\n", b"x".to_vec()) } else { (403, "", refusal.into()) })
    });
    let path = file_of(name, &text);
    let mut job = S3Job::default();
    assert_eq!(job.event(host, &Event::Level(level)), Ok(Status::Ok));
    assert_eq!(begin(&mut job, host, &path), Status::Ok);
    std::fs::remove_file(path).unwrap();
    if level == b'F' {
        assert_eq!(job.start_backup_file(host, b"", true, &mut SavePacket::empty()), Ok(Status::Ok));
    }
    let mut said = Vec::new();
    while said.last().is_none_or(|status| *status == Status::Ok) {
        said.push(job.start_backup_file(host, b"", true, &mut SavePacket::empty()).unwrap());
    }
    assert!(!host.listener.kinds.contains(&MessageType::Fatal), "what comes behind it is saved, too");
    assert_eq!(job.event(host, &Event::EndBackupJob), Ok(Status::Ok));
    let mut fetched = std::mem::take(&mut *fetched.lock().unwrap());
    fetched.sort();
    (said, fetched)
}

#[test]
fn a_job_that_reads_no_object_and_saves_nothing_else_fails_at_its_end() {
    for (level, is_accurate, unchanged, may_read, files, fails) in [
        // The first of a Full's files is what asks for another bucket at a restore.
        (b'F', false, &[][..], false, 1, true),
        (b'F', false, &[], false, 2, false),
        (b'F', false, &[], true, 2, false),
        (b'I', false, &[], false, 0, true),
        (b'I', false, &[], false, 1, false),
        (b'I', false, &["a"], false, 0, false),
        (b'I', true, &[], false, 0, false),
    ] {
        let mut host = Listing { is_accurate, unchanged, files, ..Listing::default() };
        let read = [Status::Ok, Status::Stop];
        assert_eq!(save("unread", level, may_read, &mut host).0, read[usize::from(!may_read)..], "{files}");
        let fatal = host.listener.texts.iter().filter(|text| text.ends_with("has saved nothing else\n")).count();
        assert_eq!(fatal, usize::from(fails), "{} {files}: {:?}", char::from(level), host.listener.texts);
        assert_eq!(host.listener.kinds.contains(&MessageType::Fatal), fails);
        // What was not read stays as the list has it.
        if is_accurate {
            assert_eq!(host.seen, ["/@s3/b/a", "/@s3/b/b", "/@s3/b/c"]);
        }
    }
}

#[test]
fn a_full_that_is_resumed_asks_for_no_object_that_it_has() {
    let mut host = Listing { is_accurate: true, unchanged: &["b", "c"], ..Listing::default() };
    assert_eq!(save("resumed", b'F', true, &mut host), (vec![Status::Ok, Status::Stop], vec!["a".to_owned()]));
    // One that begins has no list, and saves what has not changed, too.
    host.is_accurate = false;
    assert_eq!(save("resumed", b'F', true, &mut host).1, ["a", "b", "c"]);
}
