//! Buckets through the plugin `s3`: with a real server (versitygw), and with one of the test's own
//! that has any key and makes any fault.
//!
//! The stock daemon has no such plugin.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::format_push_string,
    clippy::format_collect,
    reason = "what helps a test fails the test, like the test itself, and need not be fast"
)]

mod fake;
mod real;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bed::{
    Bed, BedOptions, ClientOptions, Fd, FileSet, Gateway, JobResult, ONLY_OURS, PATIENCE, Restore, Result, wait_for,
};

use fake::{Fake, Fault, Object};

/// A file of bucket settings.
fn settings(folder: &Path, name: &str, port: u16, more: &str) -> PathBuf {
    let path = folder.join(name);
    Gateway::settings(&path, port, "bucket", more).unwrap();
    path
}

fn file_set(name: &str, path: &Path) -> FileSet {
    let lines = ["Include {", "Options {", "Signature = MD5", "}"].map(str::to_owned);
    let plugin = format!("Plugin = \"s3:{}\"", path.display());
    FileSet { name: name.to_owned(), lines: lines.into_iter().chain([plugin, "}".to_owned()]).collect() }
}

/// Names of the files that a job has saved, and of those that it has found deleted.
fn names(bed: &Bed, job: &JobResult) -> (Vec<String>, Vec<String>) {
    let files = bed.catalog().files(job.row.id).unwrap();
    let name = |path: &[u8]| String::from_utf8(path.to_vec()).unwrap();
    let (deleted, saved): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.file_index <= 0);
    let sorted = |files: Vec<bed::FileRow>| {
        files.iter().map(|file| name(&file.path)).collect::<BTreeSet<_>>().into_iter().collect()
    };
    (sorted(saved), sorted(deleted))
}

fn restored(bed: &Bed, job: &JobResult, to: &str) -> Result<(JobResult, PathBuf)> {
    let to = bed.folder().join(to);
    let restore = Restore { job: job.row.id, from: "ours", onto: "ours", to: &to, replace: "always" };
    Ok((bed.restore(&restore)?, to))
}

/// A bed whose FileSet is a bucket of this server, with keys that no path can have.
fn bed_with(fake: &Fake, more: &str) -> Result<Bed> {
    let mut client = ClientOptions::new(Fd::Ours);
    client.job.push("Accurate = yes".to_owned());
    let mut options = BedOptions::new("s3-fake", [client])?;
    let folder = options.folder.path().to_owned();
    settings(&folder, "copy.toml", fake.port(), "restore_prefix = \"copy/\"");
    options.file_sets = vec![file_set("Bucket", &settings(&folder, "bucket.toml", fake.port(), more))];
    Bed::start(options)
}

/// Keys, and the names of their files.
const ODD: [(&str, &str); 14] = [
    ("", "%"),
    ("\n\u{7f}", "%0A%7F"),
    ("%2F", "%252F"),
    (".", "%2E"),
    ("..", "%2E%2E"),
    ("../../etc/x", "%2E%2E%/%2E%2E/etc/x"),
    ("/", "%/%"),
    ("/first", "%/first"),
    ("a", "a"),
    ("a/", "a%/%"),
    ("a//b", "a%/%%/b"),
    ("a/b", "a%/b"),
    ("a/b/c", "a%/b%/c"),
    ("日本 +", "日本 +"),
];

#[test]
fn any_key_becomes_a_file_and_an_object_again() -> Result<()> {
    if Fd::under_test()? == Fd::Stock {
        return skip::test(ONLY_OURS);
    }
    let fake = Fake::start();
    let long = "x".repeat(1000);
    let keys: Vec<&str> = ODD.iter().map(|(key, _)| *key).filter(|key| !key.is_empty()).chain([&*long]).collect();
    for key in &keys {
        let mut object = Object::new(format!("data of {key}").as_bytes());
        object.headers.push(("x-amz-meta-key".to_owned(), format!("{}", key.len())));
        fake.put(key, object);
    }
    fake.put("y/large", Object::new(&vec![7; 17 << 20]));
    let bed = bed_with(&fake, "")?;
    let full = bed.backup("ours", "level=Full")?.must_be_good()?;
    let long_name = ["x".repeat(239), "x".repeat(239), "x".repeat(239), "x".repeat(239), "x".repeat(44)].join("%+/");
    let mut expected: Vec<_> = ODD.iter().filter(|(key, _)| !key.is_empty()).map(|(_, name)| *name).collect();
    expected.extend([&*long_name, "y/large"]);
    let expected: BTreeSet<_> = expected.into_iter().map(|name| format!("/@s3/bucket/{name}")).collect();
    assert_eq!(names(&bed, &full).0, expected.iter().cloned().collect::<Vec<_>>());
    let (job, to) = restored(&bed, &full, "files")?;
    job.must_be_good()?;
    for (key, name) in ODD.iter().filter(|(key, _)| !key.is_empty()) {
        let data = fs::read(to.join("@s3/bucket").join(name)).unwrap();
        assert_eq!(String::from_utf8(data).unwrap(), format!("data of {key}"));
    }

    // Into a bucket, which is chosen where plugins are given options.
    let copy = bed.folder().join("copy.toml");
    let command = format!("restore jobid={} client=ours-fd restoreclient=ours-fd all done", full.row.id);
    let said = bed.console(&[&command, "mod", "13", "mod", &copy.to_string_lossy(), "yes", "yes"])?;
    let queued = said.split("Job queued. JobId=").nth(1).unwrap_or_else(|| panic!("{said}"));
    let number = queued.split_whitespace().next().unwrap().parse().unwrap();
    bed.wait(number)?.must_be_good()?;
    let objects = fake.objects();
    for (key, object) in objects.iter().filter(|(key, _)| !key.starts_with(b"copy/")) {
        let copy = objects.get(&[b"copy/", &key[..]].concat());
        let shown = String::from_utf8_lossy(key);
        let copy = copy.unwrap_or_else(|| panic!("{shown:?} was not restored"));
        assert!(copy.data == object.data, "{shown:?}");
        let has = |header: &(String, String)| copy.headers.contains(header);
        assert!(object.headers.iter().all(has), "{shown:?}: {:?}", copy.headers);
    }
    Ok(())
}

#[test]
fn an_object_that_fails_is_named_and_the_others_are_saved() -> Result<()> {
    if Fd::under_test()? == Fd::Stock {
        return skip::test(ONLY_OURS);
    }
    let fake = Fake::start();
    let data: Vec<u8> = (0..400_000_u32).map(|number| number.to_le_bytes()[0]).collect();
    for number in 0..30 {
        fake.put(&format!("good/{number:02}"), Object::new(&data[number..]));
    }
    for (key, fault) in [
        ("busy", Fault::Busy(2)),
        ("forbidden", Fault::Forbidden),
        ("gone", Fault::Gone),
        ("replaced", Fault::Replaced),
        ("short", Fault::Short(3)),
        ("wrong", Fault::Wrong),
    ] {
        fake.put(key, Object::new(&data).with(fault));
    }
    let mut bed = bed_with(&fake, "timeout = 30")?;
    let job = bed.backup("ours", "level=Full")?;
    assert_eq!((job.row.errors, job.row.files), (5, 35), "{}", job.log);
    assert!(job.log.contains("Backup OK -- with warnings"), "{}", job.log);
    for text in [
        "Error: s3: Could not read /@s3/bucket/forbidden: the server answers 403 AccessDenied: not you",
        "s3: Deleted since it was listed: /@s3/bucket/gone",
        "Warning: s3: Could not read /@s3/bucket/replaced: the object was replaced while it was read",
        "Error: Read error on file /@s3/bucket/replaced.",
        "Warning: s3: Could not read /@s3/bucket/wrong: the data is not what the object's MD5 says",
        "Error: Read error on file /@s3/bucket/wrong.",
        "s3: Bucket bucket: 36 objects, 0 of them unchanged, 3 not read.",
    ] {
        assert!(job.log.contains(text), "{text}:\n{}", job.log);
    }
    let (_, to) = restored(&bed, &job, "files")?;
    for key in ["busy", "short"] {
        assert!(fs::read(to.join("@s3/bucket").join(key)).unwrap() == data, "{key}");
    }
    for number in 0..30 {
        assert!(fs::read(to.join(format!("@s3/bucket/good/{number:02}"))).unwrap() == data[number..]);
    }

    // A listing that ends early is not taken for the whole: nothing counts as deleted.
    fake.fail_after(Some(2));
    let job = bed.backup("ours", "level=Incremental")?.must_be('f')?;
    let text = "s3: Could not list bucket bucket: the server answers 403 AccessDenied: not you";
    assert!(job.log.contains(text), "{}", job.log);
    assert_eq!(names(&bed, &job).1, Vec::<String>::new());
    fake.fail_after(None);

    // A server that hangs does not hold up a cancel.
    fake.remove_all();
    for number in 0..100 {
        fake.put(&format!("{number}"), Object::new(&data).with(Fault::Hangs));
    }
    let job = bed.queue("run job=backup-ours level=Full yes")?;
    // As many as a page of the listing has.
    let hang = |most| if fake.hanging() >= most { Ok(()) } else { Err(fake.hanging().to_string()) };
    wait_for("requests to hang", PATIENCE, || Ok(hang(10)))?;
    let begun = Instant::now();
    bed.console(&[&format!("cancel jobid={job} yes")])?;
    let ended = bed.wait(job)?;
    let idle = wait_for("nothing to hang", PATIENCE, || {
        Ok(if fake.hanging() == 0 { Ok(()) } else { Err(fake.hanging().to_string()) })
    });
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}: {}", begun.elapsed(), ended.log);
    idle?;
    assert_eq!(ended.row.status, 'A');
    bed.client("ours")?.daemon().process()?.must_run()
}
