//! With a real server.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use bed::{Authority, Bed, Distance, Fd, Gateway, JobResult, ONLY_OURS, ReservedPort, Result};

use crate::{file_set, names, options, restored, restored_into, settings};

/// The MD5 digest of the objects that are far away.
const FAR_AWAY: &str = "65f2aa14acc55b118fd0bc08cc1b7459";

/// A bucket with a few objects, and one with many that is far away, of a server with TLS.
struct Stage {
    bed: Bed,
    folder: PathBuf,
    gateway: Gateway,
    /// The settings for restores below `copy/` of the bucket.
    copy: PathBuf,
    large: Vec<u8>,
    /// The port of the bucket "Absent". Held, or another test's server gets it.
    _absent: ReservedPort,
}

impl Stage {
    /// `None`: there is no server.
    fn start() -> Result<Option<Self>> {
        let mut options = options("s3")?;
        let folder = options.folder.path().to_owned();
        Authority::new(&folder, "authority")?.sign("server", &["localhost"])?;
        Authority::new(&folder, "stranger")?;
        let tls = [folder.join("server.pem"), folder.join("server.key")];
        let tls = tls.each_ref().map(PathBuf::as_path);
        let Some(gateway) = Gateway::start(&options.folder, Some(tls))? else { return Ok(None) };
        let secure = |port, authority, more| {
            let ca_file = folder.join(authority);
            format!("endpoint = \"https://localhost:{port}\"\nca_file = \"{}\"\n{more}", ca_file.display())
        };
        let port = gateway.port();
        let path = settings(&folder, "bucket.toml", port, &secure(port, "authority.pem", "prefetch = 8"));
        let copy = settings(&folder, "copy.toml", port, &secure(port, "authority.pem", "restore_prefix = \"copy/\""));
        let strange = settings(&folder, "strange.toml", port, &secure(port, "stranger.pem", "retries = 0"));
        let clear = settings(&folder, "clear.toml", port, "retries = 0");
        let closed = ReservedPort::new()?;
        let absent = settings(&folder, "absent.toml", closed.number(), "retries = 0");
        let distance = Distance::to(gateway.port(), Duration::from_millis(10))?;
        let far = folder.join("far.toml");
        Gateway::settings(
            &far,
            distance.port(),
            "far-away",
            &secure(distance.port(), "authority.pem", "prefetch = 32"),
        )?;
        options.file_sets = vec![file_set("Bucket", &path), file_set("Far", &far)];
        options.file_sets.extend(
            [("Strange", &strange), ("Clear", &clear), ("Absent", &absent)].map(|(name, path)| file_set(name, path)),
        );
        Self::fill_far_away(&gateway)?;
        let large: Vec<u8> =
            (0..9_000_000_u32).map(|number| number.to_le_bytes()[usize::from(number % 3 == 0)]).collect();
        Self::fill(&gateway, &large)?;
        let bed = Bed::start(options)?;
        Ok(Some(Self { bed, folder, gateway, copy, large, _absent: closed }))
    }

    fn fill_far_away(gateway: &Gateway) -> Result<()> {
        gateway.make_bucket("far-away")?;
        for number in 0..200 {
            gateway.place("far-away", &format!("{number}"), b"far away", FAR_AWAY)?;
        }
        Ok(())
    }

    fn fill(gateway: &Gateway, large: &[u8]) -> Result<()> {
        gateway.make_bucket("bucket")?;
        gateway.put("bucket", "a/hello.txt", b"hello\n", &["Content-Type: text/plain", "X-Amz-Meta-Colour: red"])?;
        gateway.put("bucket", "a/large", large, &[])?;
        gateway.put("bucket", "b%20%C3%A9/%25%2B", b"odd", &[])?;
        gateway.put("bucket", "empty", b"", &[])?;
        gateway.put("bucket", "gone", b"gone", &[])?;
        Ok(())
    }

    fn saves_and_restores_all(&self) -> Result<JobResult> {
        let full = self.bed.backup("ours", "level=Full")?.must_be_good()?;
        let all = ["/@s3/bucket/a/hello.txt", "/@s3/bucket/a/large", "/@s3/bucket/b é/%25+", "/@s3/bucket/empty"];
        let with_gone: Vec<_> = all.into_iter().chain(["/@s3/bucket/gone"]).collect();
        assert_eq!(names(&self.bed, &full).0, with_gone);
        let (job, to) = restored(&self.bed, &full, "first")?;
        job.must_be_good()?;
        let hello = to.join("@s3/bucket/a/hello.txt");
        assert_eq!(fs::read(&hello).unwrap(), b"hello\n");
        assert_eq!(fs::metadata(&hello).unwrap().permissions().mode() & 0o7777, 0o600);
        let attribute = |name| xattr::get(&hello, name).unwrap().map(|value| String::from_utf8(value).unwrap());
        assert_eq!(attribute("user.s3.content-type"), Some("text/plain".to_owned()));
        assert_eq!(attribute("user.s3.x-amz-meta-colour"), Some("red".to_owned()));
        assert!(fs::read(to.join("@s3/bucket/a/large")).unwrap() == self.large);
        assert_eq!(fs::read(to.join("@s3/bucket/b é/%25+")).unwrap(), b"odd");
        assert_eq!(fs::read(to.join("@s3/bucket/empty")).unwrap(), b"");
        Ok(full)
    }

    fn saves_what_has_changed(&self) -> Result<()> {
        // Nothing has changed.
        let unchanged = self.bed.backup("ours", "level=Incremental")?.must_be_good()?;
        assert_eq!(names(&self.bed, &unchanged), (vec![], vec![]), "{}", unchanged.log);
        assert!(unchanged.log.contains("s3: Bucket bucket: 5 objects, 5 of them unchanged, 0 not read."));
        // One is replaced by as many bytes, one is new, one is gone.
        self.gateway.put("bucket", "a/hello.txt", b"HELLO\n", &[])?;
        self.gateway.put("bucket", "new", b"new", &[])?;
        self.gateway.delete("bucket", "gone")?;
        let changed = self.bed.backup("ours", "level=Incremental")?.must_be_good()?;
        let saved = ["/@s3/bucket/a/hello.txt", "/@s3/bucket/new"].map(str::to_owned).to_vec();
        assert_eq!(names(&self.bed, &changed), (saved, vec!["/@s3/bucket/gone".to_owned()]), "{}", changed.log);
        let (job, to) = restored(&self.bed, &changed, "second")?;
        job.must_be_good()?;
        assert_eq!(fs::read(to.join("@s3/bucket/a/hello.txt")).unwrap(), b"HELLO\n");
        Ok(())
    }

    fn restores_into_the_bucket(&self, full: &JobResult) -> Result<()> {
        // Back into the bucket, a large object in parts; and what is there already is obeyed.
        let into = |replace| restored_into(&self.bed, full, &self.copy, replace)?.must_be_good();
        into("always")?;
        let object = |key: &str| fs::read(self.folder.join("objects/bucket/copy").join(key)).unwrap();
        assert_eq!(object("a/hello.txt"), b"hello\n");
        assert!(object("a/large") == self.large);
        assert_eq!((object("b é/%+"), object("empty")), (b"odd".to_vec(), Vec::new()));
        let answer = self.gateway.ask("GET", "bucket/copy/a/hello.txt", &[], b"")?;
        let answer = String::from_utf8(answer).unwrap().to_ascii_lowercase();
        assert!(answer.contains("content-type: text/plain") && answer.contains("x-amz-meta-colour: red"), "{answer}");
        self.gateway.put("bucket", "copy/empty", b"newer", &[])?;
        for replace in ["never", "ifnewer"] {
            into(replace)?;
            assert_eq!(object("empty"), b"newer");
        }
        into("ifolder")?;
        assert_eq!(object("empty"), b"");
        Ok(())
    }

    fn tells_of_servers_that_are_not_what_they_should_be(&self) -> Result<()> {
        // A server that is not what it should be, or none.
        for (set, text) in [
            ("Strange", "invalid peer certificate: UnknownIssuer"),
            ("Clear", "Could not list bucket bucket: "),
            ("Absent", "Connection refused"),
        ] {
            let job = self.bed.backup("ours", &format!("level=Full fileset={set}"))?.must_be('f')?;
            assert!(job.log.contains("s3: Could not list bucket bucket: ") && job.log.contains(text), "{}", job.log);
        }
        Ok(())
    }

    fn saves_what_is_far_away(&self) -> Result<()> {
        let far = self.bed.backup("ours", "level=Full fileset=Far")?.must_be_good()?;
        assert_eq!(far.row.files, 201);
        Ok(())
    }
}

#[test]
fn a_bucket_is_saved_by_what_has_changed_and_restored() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, ONLY_OURS);
    let Some(stage) = Stage::start()? else { return skip::test(Gateway::MISSING) };
    let full = stage.saves_and_restores_all()?;
    stage.saves_what_has_changed()?;
    stage.restores_into_the_bucket(&full)?;
    stage.tells_of_servers_that_are_not_what_they_should_be()?;
    stage.saves_what_is_far_away()
}
