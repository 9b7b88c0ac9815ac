//! With a real server.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use bed::{Bed, BedOptions, ClientOptions, Fd, ONLY_OURS, Result};

use crate::delay::Distance;
use crate::gateway::{self, Gateway};
use crate::{file_set, names, restored, settings};

#[test]
fn a_bucket_is_saved_by_what_has_changed_and_restored() -> Result<()> {
    if Fd::under_test()? == Fd::Stock {
        return skip::test(ONLY_OURS);
    }
    let mut options = BedOptions::new("s3", [ClientOptions::new(Fd::Ours)])?;
    let Some(gateway) = Gateway::start(&options.folder)? else { return skip::test(gateway::MISSING) };
    let folder = options.folder.path().to_owned();
    let path = settings(&folder, "bucket.toml", gateway.port(), "prefetch = 8");
    for client in &mut options.clients {
        client.job.push("Accurate = yes".to_owned());
    }
    let distance = Distance::to(gateway.port(), Duration::from_millis(10));
    let far = settings(&folder, "far.toml", distance.port, "prefetch = 32");
    fs::write(&far, fs::read_to_string(&far).unwrap().replace("\"bucket\"", "\"far-away\"")).unwrap();
    options.file_sets = vec![file_set("Bucket", &path), file_set("Far", &far)];
    gateway.make_bucket("far-away");
    gateway.put_many("far-away", 200, 590, &options.folder);
    gateway.make_bucket("bucket");
    let large: Vec<u8> = (0..9_000_000_u32).map(|number| number.to_le_bytes()[usize::from(number % 3 == 0)]).collect();
    gateway.put("bucket", "a/hello.txt", b"hello\n", &["Content-Type: text/plain", "X-Amz-Meta-Colour: red"]);
    gateway.put("bucket", "a/large", &large, &[]);
    gateway.put("bucket", "b%20%C3%A9/%25%2B", b"odd", &[]);
    gateway.put("bucket", "empty", b"", &[]);
    gateway.put("bucket", "gone", b"gone", &[]);
    let bed = Bed::start(options)?;

    let full = bed.backup("ours", "level=Full")?.must_be_good()?;
    let all = ["/@s3/bucket/a/hello.txt", "/@s3/bucket/a/large", "/@s3/bucket/b é/%25+", "/@s3/bucket/empty"];
    let with_gone: Vec<_> = all.into_iter().chain(["/@s3/bucket/gone"]).collect();
    assert_eq!(names(&bed, &full).0, with_gone);
    let (job, to) = restored(&bed, &full, "first")?;
    job.must_be_good()?;
    let hello = to.join("@s3/bucket/a/hello.txt");
    assert_eq!(fs::read(&hello).unwrap(), b"hello\n");
    assert_eq!(fs::metadata(&hello).unwrap().permissions().mode() & 0o7777, 0o600);
    let attribute = |name| xattr::get(&hello, name).unwrap().map(|value| String::from_utf8(value).unwrap());
    assert_eq!(attribute("user.s3.content-type"), Some("text/plain".to_owned()));
    assert_eq!(attribute("user.s3.x-amz-meta-colour"), Some("red".to_owned()));
    assert!(fs::read(to.join("@s3/bucket/a/large")).unwrap() == large);
    assert_eq!(fs::read(to.join("@s3/bucket/b é/%25+")).unwrap(), b"odd");
    assert_eq!(fs::read(to.join("@s3/bucket/empty")).unwrap(), b"");

    // Nothing has changed.
    let unchanged = bed.backup("ours", "level=Incremental")?.must_be_good()?;
    assert_eq!(names(&bed, &unchanged), (vec![], vec![]), "{}", unchanged.log);
    assert!(unchanged.log.contains("s3: Bucket bucket: 5 objects, 5 of them unchanged, 0 not read."));
    // One is replaced by as many bytes, one is new, one is gone.
    gateway.put("bucket", "a/hello.txt", b"HELLO\n", &[]);
    gateway.put("bucket", "new", b"new", &[]);
    gateway.delete("bucket", "gone");
    let changed = bed.backup("ours", "level=Incremental")?.must_be_good()?;
    let saved = ["/@s3/bucket/a/hello.txt", "/@s3/bucket/new"].map(str::to_owned).to_vec();
    assert_eq!(names(&bed, &changed), (saved, vec!["/@s3/bucket/gone".to_owned()]), "{}", changed.log);
    let (job, to) = restored(&bed, &changed, "second")?;
    job.must_be_good()?;
    assert_eq!(fs::read(to.join("@s3/bucket/a/hello.txt")).unwrap(), b"HELLO\n");

    // Of a server that is far away many are fetched at the same time, as many as was said.
    let far = bed.backup("ours", "level=Full fileset=Far")?.must_be_good()?;
    assert_eq!(far.row.files, 201);
    assert!((30..=34).contains(&distance.most()), "{}", distance.most());
    Ok(())
}

/// Not a test of what is right, but of how long it takes: `S3_OBJECTS=30000 S3_SIZE=590
/// S3_PREFETCH=64,256 cargo test -p bed --test s3 -- --ignored --nocapture`.
#[test]
#[ignore = "measures, and takes long"]
fn a_bucket_behind_round_trips() -> Result<()> {
    let number = |name: &str, usual: usize| {
        std::env::var(name).map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name}")))
    };
    let mut options = BedOptions::new("s3-measured", [ClientOptions::new(Fd::Ours)])?;
    let Some(gateway) = Gateway::start(&options.folder)? else { return skip::test(gateway::MISSING) };
    let folder = options.folder.path().to_owned();
    let round_trip = Duration::from_millis(number("S3_ROUND_TRIP", 10).try_into().unwrap());
    let distance = Distance::to(gateway.port(), round_trip);
    gateway.make_bucket("bucket");
    gateway.put_many("bucket", number("S3_OBJECTS", 1000), number("S3_SIZE", 590), &options.folder);
    let prefetch = std::env::var("S3_PREFETCH").unwrap_or_else(|_| "64".to_owned());
    for count in prefetch.split(',') {
        let path = settings(&folder, &format!("{count}.toml"), distance.port, &format!("prefetch = {count}"));
        options.file_sets.push(file_set(&format!("Ahead-{count}"), &path));
    }
    let bed = Bed::start(options)?;
    for level in ["Full", "Incremental"] {
        for count in prefetch.split(',') {
            let begun = Instant::now();
            let job = bed.backup("ours", &format!("level={level} fileset=Ahead-{count}"))?.must_be_good()?;
            let seconds = begun.elapsed().as_secs_f64();
            let (files, bytes) = (job.row.files, job.row.bytes);
            println!("{level} prefetch {count}: {seconds:.2} s, {files} files, {bytes} bytes");
        }
    }
    Ok(())
}
