//! A real S3 server: versitygw, which keeps the objects of a bucket as files of a directory. Its
//! keys are `key` and `secretsecret`.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ports::ReservedPort;

use crate::error::{BedError, Result};
use crate::folder::Folder;
use crate::patience::{PATIENCE, wait_for};
use crate::process::{Process, argv};

/// Keys of the server.
const KEYS: [&str; 2] = ["key", "secretsecret"];
/// What `scripts/s3-server` makes.
const BUILT: &str = "/var/cache/ferrofd-bed/bin";

/// A server that runs.
#[derive(Debug)]
pub struct Gateway {
    process: Option<Process>,
    port: ReservedPort,
    scheme: &'static str,
    objects: PathBuf,
}

impl Gateway {
    /// What is said where it is not installed.
    pub const MISSING: &str = "needs versitygw and curl (scripts/s3-server)";

    /// Why it can't be started here, if so.
    pub fn missing() -> Option<&'static str> {
        program().is_none().then_some(Self::MISSING)
    }

    /// Starts it with an empty directory in this folder; with TLS if there are a certificate and
    /// its key. `None` if it is not installed.
    pub fn start(folder: &Folder, tls: Option<[&Path; 2]>) -> Result<Option<Self>> {
        let Some(program) = program() else {
            return Ok(None);
        };
        let (port, objects) = (ReservedPort::new()?, folder.make("objects")?);
        let address = format!("127.0.0.1:{}", port.number());
        let [access, secret] = KEYS;
        let mut words = argv([program.as_os_str()]);
        words.extend(argv(["--quiet", "--keep-alive", "--port", &address, "--access", access, "--secret", secret]));
        if let Some([certificate, key]) = tls {
            words.extend(["--cert".into(), certificate.into(), "--key".into(), key.into()]);
        }
        words.extend(["posix".into(), objects.clone().into_os_string()]);
        let process = Process::start("versitygw", &words, &folder.path().join("versitygw.log"))?;
        wait_for("versitygw to listen", PATIENCE, || {
            Ok(TcpStream::connect(&address).map(drop).map_err(|error| error.to_string()))
        })?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        Ok(Some(Self { process: Some(process), port, scheme, objects }))
    }

    /// Its port of 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// A file of settings for the plugin `s3`, which only its owner can read: a bucket on this port
    /// of 127.0.0.1. `more` are further lines.
    pub fn settings(path: &Path, port: u16, bucket: &str, more: &str) -> Result<()> {
        let [access, secret] = KEYS;
        let endpoint =
            if more.contains("endpoint") { "" } else { &format!("endpoint = \"http://127.0.0.1:{port}\"\n") };
        let text = format!("{endpoint}bucket = {bucket:?}\naccess_key = {access:?}\nsecret_key = {secret:?}\n{more}\n");
        fs::write(path, text).map_err(BedError::file("write", path))?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(BedError::file("change", path))
    }

    /// Makes a bucket.
    pub fn make_bucket(&self, bucket: &str) -> Result<()> {
        self.ask("PUT", bucket, &[], b"").map(drop)
    }

    /// Stores an object; its key as it stands in an address.
    pub fn put(&self, bucket: &str, key: &str, data: &[u8], headers: &[&str]) -> Result<()> {
        self.ask("PUT", &format!("{bucket}/{key}"), headers, data).map(drop)
    }

    /// Removes an object.
    pub fn delete(&self, bucket: &str, key: &str) -> Result<()> {
        self.ask("DELETE", &format!("{bucket}/{key}"), &[], b"").map(drop)
    }

    /// Puts an object into the server's directory: what [`Self::put`] would leave there, but many
    /// times faster. The bucket must be there.
    pub fn place(&self, bucket: &str, key: &str, data: &[u8], md5: &str) -> Result<()> {
        let path = self.place_of(bucket, key)?;
        fs::write(&path, data).map_err(BedError::file("write", &path))?;
        let etag = format!("\"{md5}\"");
        for (name, value) in [("user.etag", etag.as_str()), ("user.content-type", "application/octet-stream")] {
            xattr::set(&path, name, value.as_bytes()).map_err(BedError::file("set an attribute of", &path))?;
        }
        Ok(())
    }

    /// Puts an object there that is the same as another one, and takes no room of its own.
    pub fn place_again(&self, bucket: &str, key: &str, other: &str) -> Result<()> {
        let (path, other) = (self.place_of(bucket, key)?, self.objects.join(bucket).join(other));
        fs::hard_link(other, &path).map_err(BedError::file("link", &path))
    }

    fn place_of(&self, bucket: &str, key: &str) -> Result<PathBuf> {
        let path = self.objects.join(bucket).join(key);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(BedError::file("create", parent))?;
        }
        Ok(path)
    }

    /// Asks the server; its answer, headers first.
    pub fn ask(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Result<Vec<u8>> {
        let failed = |problem: String| BedError::Program {
            program: "curl".to_owned(),
            problem: format!("{method} {path}: {problem}"),
        };
        let mut curl = Command::new("curl");
        // `--insecure`: the plugin's view of the certificate is what is tested, not curl's.
        curl.args(["--silent", "--show-error", "--fail-with-body", "--include", "--insecure"]);
        curl.args(["--user", &KEYS.join(":"), "--aws-sigv4", "aws:amz:us-east-1:s3"]);
        curl.args(["--header", "X-Amz-Content-Sha256: UNSIGNED-PAYLOAD"]);
        curl.args(headers.iter().flat_map(|header| ["--header", header]));
        curl.args(["--request", method, "--data-binary", "@-"]);
        if !headers.iter().any(|header| header.starts_with("Content-Type")) {
            curl.args(["--header", "Content-Type: application/octet-stream"]);
        }
        curl.arg(format!("{}://127.0.0.1:{}/{path}", self.scheme, self.port()));
        let mut child =
            curl.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(|error| failed(error.to_string()))?;
        // A server that refuses does not read on; what it says is judged.
        let _ = child.stdin.take().map(|mut pipe| pipe.write_all(body));
        let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(failed(String::from_utf8_lossy(&output.stdout).into_owned()))
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            // It is killed if it does not end.
            let _ = process.stop(PATIENCE);
        }
    }
}

/// The program: in the `PATH`, or where `scripts/s3-server` puts it. It is of no use without curl.
fn program() -> Option<PathBuf> {
    Command::new("curl").arg("--version").output().ok()?;
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&paths).chain([PathBuf::from(BUILT)]);
    places.find_map(|place| Some(place.join("versitygw")).filter(|path| path.exists()))
}
