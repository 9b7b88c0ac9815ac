//! Where the objects of a job go.

use std::os::unix::fs::PermissionsExt as _;

use fd_plugins::SavedObject;
use fd_records::FileType;

use super::*;
use crate::server::Listener;

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
