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
mod hostile;
mod real;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use bed::{
    Bed, BedOptions, ClientOptions, Fd, FileSet, Gateway, JobResult, Noise, ONLY_OURS, PATIENCE, Plugins, Result,
    children, idle, threads, wait_for,
};

use fake::{Fake, Fault, NO_SUCH_KEY, Object};

/// A file of bucket settings.
fn settings(folder: &Path, name: &str, port: u16, more: &str) -> PathBuf {
    let path = folder.join(name);
    Gateway::settings(&path, port, "bucket", more).unwrap();
    path
}

fn file_set(name: &str, path: &Path) -> FileSet {
    FileSet::new(name, &["Signature = MD5"], &[]).with(format!("Plugin = \"s3:{}\"", path.display()))
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
    Ok((bed.restore_own("ours", job.row.id, &to)?, to))
}

/// Restores into the bucket of this file, which is chosen where plugins are given options.
fn restored_into(bed: &Bed, job: &JobResult, bucket: &Path, replace: &str) -> Result<JobResult> {
    let command =
        format!("restore jobid={} client=ours-fd restoreclient=ours-fd replace={replace} all done", job.row.id);
    let said = bed.console(&[&command, "mod", "13", "mod", &bucket.to_string_lossy(), "yes", "yes"])?;
    let queued = said.split("Job queued. JobId=").nth(1).and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    assert!(queued.is_some(), "{said}");
    bed.wait(queued.unwrap())
}

/// What a bed with one daemon, which has the plugin, is made of.
fn options(label: &str) -> Result<BedOptions> {
    let mut client = ClientOptions::new(Fd::Ours);
    client.job.push("Accurate = yes".to_owned());
    let mut options = BedOptions::new(label, [client])?;
    options.clients[0].plugins = Plugins::s3(&options.folder)?;
    Ok(options)
}

/// A bed whose FileSet is a bucket of this server, with keys that no path can have.
fn bed_with(fake: &Fake, more: &str) -> Result<Bed> {
    let mut options = options("s3-fake")?;
    let folder = options.folder.path().to_owned();
    settings(&folder, "copy.toml", fake.port(), "restore_prefix = \"copy/\"\nretries = 1");
    let impatient = settings(&folder, "impatient.toml", fake.port(), "timeout = 3\nretries = 1");
    let patient = settings(&folder, "patient.toml", fake.port(), "timeout = 3600");
    options.file_sets = vec![
        file_set("Bucket", &settings(&folder, "bucket.toml", fake.port(), more)),
        file_set("Impatient", &impatient),
        file_set("Patient", &patient),
    ];
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
    skip::when!(Fd::under_test()? == Fd::Stock, ONLY_OURS);
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

    restored_into(&bed, &full, &bed.folder().join("copy.toml"), "always")?.must_be_good()?;
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
fn as_many_objects_are_fetched_at_a_time_as_was_said() -> Result<()> {
    // Fewer than a page of the listing has.
    const PREFETCH: usize = 8;
    skip::when!(Fd::under_test()? == Fd::Stock, ONLY_OURS);
    let fake = Fake::start();
    for number in 0..96 {
        fake.put(&format!("far/{number:02}"), Object::new(b"data"));
    }
    let bed = bed_with(&fake, &format!("prefetch = {PREFETCH}"))?;
    // Requests that wait for their answer, and the most that there were. The first wait until as
    // many have come as may.
    let waiting = Arc::new((Mutex::new((0, 0)), Condvar::new()));
    let counts = Arc::clone(&waiting);
    fake.answer_with(move |_, method, target| {
        if method == "GET" && target.contains("/far") && !target.contains("list-type") {
            let (lock, news) = &*counts;
            let mut state = lock.lock().unwrap();
            state.0 += 1;
            state.1 = state.1.max(state.0);
            news.notify_all();
            let (mut state, _) = news.wait_timeout_while(state, PATIENCE, |state| state.1 < PREFETCH).unwrap();
            state.0 -= 1;
        }
        None
    });
    let job = bed.backup("ours", "level=Full")?.must_be_good()?;
    assert_eq!((job.row.files, waiting.0.lock().unwrap().1), (97, PREFETCH), "{}", job.log);
    Ok(())
}

#[test]
fn an_object_that_fails_is_named_and_the_others_are_saved() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, ONLY_OURS);
    let fake = Fake::start();
    let data: Vec<u8> = (0..400_000_u32).map(|number| number.to_le_bytes()[0]).collect();
    for number in 0..30 {
        fake.put(&format!("good/{number:02}"), Object::new(&data[number..]));
    }
    for (key, fault) in [
        ("busy", Fault::Busy(2)),
        ("deleted", Fault::Deleted),
        ("forbidden", Fault::Forbidden),
        ("gone", Fault::Gone(NO_SUCH_KEY)),
        ("grown", Fault::Grown),
        ("hidden", Fault::Gone("<html>Not Found</html>")),
        ("replaced", Fault::Replaced(1)),
        ("replaced-again", Fault::Replaced(u32::MAX)),
        ("short", Fault::Short(3)),
        ("unranged", Fault::Unranged),
        ("untagged", Fault::Untagged(1)),
        ("wrong", Fault::Wrong),
    ] {
        fake.put(key, Object::new(&data).with(fault));
    }
    // It does not fit into the memory of one object.
    fake.put("z/large", Object::new(&data.repeat(12)).with(Fault::Wrong));
    let bed = bed_with(&fake, "timeout = 30\nretries = 3")?;
    let full = bed.backup("ours", "level=Full")?;
    let job = &full;
    assert_eq!((job.row.errors, job.row.files), (8, 37), "{}", job.log);
    assert!(job.log.contains("Backup OK -- with warnings"), "{}", job.log);
    for text in [
        "Error: s3: Could not read /@s3/bucket/forbidden: the server answers 403 AccessDenied: not you",
        "s3: Deleted since it was listed: /@s3/bucket/deleted",
        "Error: s3: Could not read /@s3/bucket/gone: the server lists it, and does not have it",
        "Error: s3: Could not read /@s3/bucket/hidden: ",
        "Error: s3: Could not read /@s3/bucket/replaced-again: the object was replaced while it was read",
        "Error: s3: Could not read /@s3/bucket/unranged: ",
        "Error: s3: Could not read /@s3/bucket/wrong: the data is not what the object's MD5 says",
        "Warning: s3: Could not read /@s3/bucket/z/large: the data is not what the object's MD5 says",
        "Error: Read error on file /@s3/bucket/z/large.",
        "s3: Bucket bucket: 43 objects, 0 of them unchanged, 7 not read.",
    ] {
        assert!(job.log.contains(text), "{text}:\n{}", job.log);
    }
    let (_, to) = restored(&bed, job, "files")?;
    for key in ["busy", "grown", "replaced", "short", "untagged"] {
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

    // What could not be read is saved when it can be, although it has not changed since.
    for key in ["forbidden", "gone", "grown", "hidden", "replaced-again", "unranged", "wrong"] {
        fake.put(key, Object::new(&data));
    }
    let job = bed.backup("ours", "level=Incremental")?.must_be_good()?;
    let missing =
        ["forbidden", "gone", "hidden", "replaced-again", "unranged", "wrong"].map(|key| format!("/@s3/bucket/{key}"));
    assert_eq!(names(&bed, &job).0, missing);

    // What is torn on the volume does not take the place of an object that is whole.
    fake.put("copy/z/large", Object::new(b"whole"));
    let into = restored_into(&bed, &full, &bed.folder().join("copy.toml"), "always")?;
    assert!(into.log.contains("@s3/bucket/z/large: ") && into.log.contains(" bytes came"), "{}", into.log);
    assert_eq!(fake.objects()[&b"copy/z/large"[..]].data, b"whole");
    assert_eq!(fake.objects()[&b"copy/good/00"[..]].data, data);
    Ok(())
}

#[test]
fn whatever_goes_wrong_an_object_is_what_it_was_or_is_named() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, ONLY_OURS);
    let fake = Fake::start();
    let bed = bed_with(&fake, "")?;
    let rounds = std::env::var("BUCKET_ROUNDS").map_or(1, |text| text.parse().unwrap());
    (0..rounds).try_for_each(|round| drawn(&bed, &fake, round))
}

/// What ends its requests is no timeout.
#[test]
fn a_server_that_hangs_does_not_hold_up_a_cancel() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, ONLY_OURS);
    let fake = Fake::start();
    fake.put("good", Object::new(b"data"));
    let mut bed = bed_with(&fake, "")?;
    bed.backup("ours", "level=Full")?.must_be_good()?;
    let pid = bed.client("ours")?.pid()?;
    idle(pid)?;
    // The plugin host is the only process that it has started.
    let host = children(pid)?[0];
    let at_rest = threads(host)?;
    for number in 0..100 {
        fake.put(&format!("{number}"), Object::new(b"data").with(Fault::Hangs));
    }
    let job = bed.queue("run job=backup-ours level=Full fileset=Patient yes")?;
    // As many as a page of the listing has.
    let hang = |most| if fake.hanging() >= most { Ok(()) } else { Err(fake.hanging().to_string()) };
    wait_for("requests to hang", PATIENCE, || Ok(hang(10)))?;
    bed.console(&[&format!("cancel jobid={job} yes")])?;
    let ended = bed.wait(job)?;
    wait_for("nothing to hang", PATIENCE, || {
        Ok(if fake.hanging() == 0 { Ok(()) } else { Err(fake.hanging().to_string()) })
    })?;
    assert_eq!(ended.row.status, 'A');
    wait_for("the threads of the job to end", PATIENCE, || {
        let now = threads(host)?;
        Ok(if now <= at_rest { Ok(()) } else { Err(format!("{now} threads instead of {at_rest}")) })
    })?;
    bed.client("ours")?.daemon().process()?.must_run()
}

/// Its next Incremental would not look for what it has missed.
#[test]
fn a_full_of_which_nothing_could_be_read_does_not_end_well() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, ONLY_OURS);
    let fake = Fake::start();
    fake.put("forbidden", Object::new(b"data").with(Fault::Forbidden));
    let bed = bed_with(&fake, "")?;
    let job = bed.backup("ours", "level=Full")?.must_be('f')?;
    let text = "Fatal error: s3: 1 object(s) could not be read, and the job has saved nothing else";
    assert!(job.log.contains(text), "{}", job.log);
    fake.put("other", Object::new(b"data"));
    let job = bed.backup("ours", "level=Full")?;
    assert!(job.log.contains("Backup OK -- with warnings") && !job.log.contains(text), "{}", job.log);
    Ok(())
}

#[test]
fn a_full_that_is_resumed_goes_on_in_its_bucket() -> Result<()> {
    const SAVED: usize = 20;
    skip::when!(Fd::under_test()? == Fd::Stock, ONLY_OURS);
    let fake = Fake::start();
    let data = vec![7; 100_000];
    for number in 0..SAVED {
        fake.put(&format!("a/{number:02}"), Object::new(&data));
    }
    fake.put("b/held", Object::new(&data).with(Fault::Hangs));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    fake.answer_with(move |_, _, target| {
        if !target.contains("list-type") {
            noted.lock().unwrap().push(target.split('?').next().unwrap().to_owned());
        }
        None
    });
    let bed = bed_with(&fake, "timeout = 3600")?;
    let job = bed.queue("run job=backup-ours level=Full yes")?;
    wait_for("the storage to have objects", PATIENCE, || {
        let shown = bed.console(&["status storage"])?;
        // The option's object is a file, too, and the last one may be cut.
        let has_some = (3..=SAVED + 1).any(|files| shown.contains(&format!("Files={files} ")));
        Ok(if has_some { Ok(()) } else { Err(shown) })
    })?;
    bed.console(&[&format!("stop jobid={job} yes")])?;
    let stopped = bed.wait(job)?.must_be('I')?;
    let saved = names(&bed, &stopped).0;
    assert!(!saved.is_empty() && saved.len() <= SAVED, "{saved:?} {:?}\n{}", stopped.row, stopped.log);

    fake.put("b/held", Object::new(&data));
    asked.lock().unwrap().clear();
    let reports = bed.reports_of(job)?;
    bed.console(&[&format!("resume incomplete jobid={job} yes")])?;
    let resumed = bed.wait_again(job, reports)?.must_be_good()?;
    let paths: Vec<_> = bed.catalog().files(job)?.into_iter().map(|file| file.path).collect();
    assert_eq!(paths.iter().collect::<BTreeSet<_>>().len(), paths.len(), "{}", resumed.log);
    assert_eq!(names(&bed, &resumed).0.len(), SAVED + 1, "{}", resumed.log);
    let again: Vec<_> = saved.iter().map(|name| name.replace("/@s3", "")).collect();
    let again: Vec<_> = asked.lock().unwrap().iter().filter(|path| again.contains(path)).cloned().collect();
    assert!(again.is_empty(), "{again:?}");
    Ok(())
}

#[test]
fn an_object_that_is_wrong_or_torn_is_never_whole_on_the_volume() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, ONLY_OURS);
    let fake = Fake::start();
    // They do not fit into the memory of one object. The last bytes that the daemon reads of the
    // first one are as many as it reads at a time.
    let large = Object::new(&vec![7; 8 << 20]);
    for key in ["begun", "none", "wrong"] {
        fake.put(key, large.clone().with(Fault::Wrong));
    }
    // Of two of them the connection brings some bytes, and then nothing.
    fake.answer_with(|mut stream, _, target| {
        let body: &[u8] = match target.split('?').next() {
            Some("/bucket/begun") => &[7; 100],
            Some("/bucket/none") => b"",
            _ => return None,
        };
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\nETag: \"x\"\r\n\r\n";
        Some(stream.write_all(&[head, body].concat()).is_err())
    });
    let bed = bed_with(&fake, "retries = 1")?;
    let full = bed.backup("ours", "level=Full")?.must_be('T')?;
    for text in [
        "Error: s3: Could not read /@s3/bucket/begun: ",
        "Error: s3: Could not read /@s3/bucket/none: ",
        "Warning: s3: Could not read /@s3/bucket/wrong: the data is not what the object's MD5 says",
        "Error: Read error on file /@s3/bucket/wrong.",
    ] {
        assert!(full.log.contains(text), "{text}:\n{}", full.log);
    }
    assert_eq!(names(&bed, &full).0, ["/@s3/bucket/wrong"]);
    let (job, to) = restored(&bed, &full, "files")?;
    let length = fs::metadata(to.join("@s3/bucket/wrong")).unwrap().len();
    assert!(length > 0 && length < 8 << 20, "{length}");
    assert!(job.row.errors > 0 && job.log.contains("@s3/bucket/wrong not correct."), "{}", job.log);

    fake.put("copy/wrong", Object::new(b"whole"));
    let into = restored_into(&bed, &full, &bed.folder().join("copy.toml"), "always")?;
    assert!(into.log.contains("@s3/bucket/wrong: ") && into.log.contains(" bytes came"), "{}", into.log);
    assert_eq!(fake.objects()[&b"copy/wrong"[..]].data, b"whole");
    Ok(())
}

/// Saves objects with faults that are drawn, the same for the same number, and restores what was
/// saved.
fn drawn(bed: &Bed, fake: &Fake, round: u64) -> Result<()> {
    let mut noise = Noise::new(500 + round);
    fake.remove_all();
    for number in 0..120 {
        let size = if number % 50 == 0 { 5 << 20 } else { noise.below(40_000) };
        let object = Object::new(&noise.bytes(size));
        let times = u32::try_from(noise.below(6)).unwrap();
        let fault = match noise.below(22) {
            0 => Fault::Busy(times),
            1 => Fault::Forbidden,
            2 => Fault::Short(times),
            3 => Fault::Hangs,
            4 => Fault::Replaced(times),
            5 => Fault::Wrong,
            6 => Fault::Gone(NO_SUCH_KEY),
            7 => Fault::Silent,
            8 => Fault::Untagged(times),
            9 => Fault::Unranged,
            10 => Fault::Grown,
            _ => Fault::Busy(0),
        };
        fake.put(&format!("{}/{number:03}", number / 20), object.with(fault));
    }
    let job = bed.backup("ours", "level=Full fileset=Impatient")?.must_be('T')?;
    let (back, to) = restored(bed, &job, &format!("drawn-{round}"))?;
    assert!(!back.log.contains("digest"), "{}", back.log);
    for (key, object) in fake.objects() {
        let name = format!("@s3/bucket/{}", String::from_utf8(key).unwrap());
        let is_named = job.log.contains(&format!("/{name}:")) || job.log.contains(&format!("listed: /{name}\n"));
        let data = fs::read(to.join(&name)).ok();
        // What does not fit into the memory of one object has begun already when it fails.
        let is_right = data.as_ref() == Some(&object.data);
        let fits = object.data.len() <= 4 << 20;
        assert!(is_right || is_named && (data.is_none() || !fits), "{name}, {:?}: {}", object.fault, job.log);
    }
    fs::remove_dir_all(to).unwrap();
    Ok(())
}

#[test]
fn a_job_whose_daemon_has_no_s3_names_the_package() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, ONLY_OURS);
    let fake = Fake::start();
    fake.put("a", Object::new(b"data"));
    let mut bed = bed_with(&fake, "")?;
    let full = bed.backup("ours", "level=Full")?.must_be_good()?;
    fs::remove_file(bed.folder().join("plugins/s3-fd.so")).unwrap();
    bed.client("ours")?.daemon().stop()?;
    bed.client("ours")?.daemon().start()?;
    let said = bed.backup("ours", "level=Full")?.must_be('f')?.log;
    let command = format!("s3:{}", bed.folder().join("bucket.toml").display());
    assert!(said.contains(&format!("{command}\" not found. It is in the package ferrofd-s3.\n")), "{said}");
    let said = restored(&bed, &full, "files")?.0.log;
    assert!(said.contains(&format!("Plugin={command} not found. It is in the package ferrofd-s3.\n")), "{said}");
    Ok(())
}
