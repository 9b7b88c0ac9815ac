//! A real server: versitygw, which keeps objects in a directory.

use std::io::Write as _;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use bed::{Folder, PATIENCE, Process, ReservedPort, Result, argv, wait_for};

/// What is said where it is not installed.
pub(crate) const MISSING: &str = "needs versitygw and curl (scripts/s3-server)";

/// A server that runs.
pub(crate) struct Gateway {
    process: Option<Process>,
    port: ReservedPort,
}

/// The program: in the `PATH`, or where `scripts/s3-server` puts it.
fn program() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let own = PathBuf::from("/var/cache/ferrofd-bed/bin");
    let mut places = std::env::split_paths(&paths).chain([own]);
    places.find_map(|place| Some(place.join("versitygw")).filter(|path| path.exists()))
}

impl Gateway {
    /// Starts it with an empty directory in this folder. `None` if it is not installed.
    pub(crate) fn start(folder: &Folder) -> Result<Option<Self>> {
        let Some(program) = program().filter(|_| Command::new("curl").arg("--version").output().is_ok()) else {
            return Ok(None);
        };
        let (port, objects) = (ReservedPort::new()?, folder.make("objects")?);
        let address = format!("127.0.0.1:{}", port.number());
        let (program, objects) = (program.to_string_lossy().into_owned(), objects.to_string_lossy().into_owned());
        let keys = ["--access", "key", "--secret", "secretsecret"];
        let words = [&[program.as_str(), "--quiet", "--keep-alive", "--port", &address][..], &keys].concat();
        let words = [&words[..], &["posix", &objects]].concat();
        let process = Process::start("versitygw", &argv(words), &folder.path().join("versitygw.log"))?;
        wait_for("versitygw to listen", PATIENCE, || {
            Ok(TcpStream::connect(&address).map(drop).map_err(|error| error.to_string()))
        })?;
        Ok(Some(Self { process: Some(process), port }))
    }

    pub(crate) fn port(&self) -> u16 {
        self.port.number()
    }

    pub(crate) fn make_bucket(&self, bucket: &str) {
        self.ask("PUT", bucket, &[], b"");
    }

    /// Stores an object; its key as it stands in an address.
    pub(crate) fn put(&self, bucket: &str, key: &str, data: &[u8], headers: &[&str]) {
        self.ask("PUT", &format!("{bucket}/{key}"), headers, data);
    }

    /// Stores so many small objects, many at the same time: `d000/o000000` and so on.
    pub(crate) fn put_many(&self, bucket: &str, count: usize, size: usize, folder: &Folder) {
        let data = folder.path().join("object");
        let config = folder.path().join("objects.curl");
        std::fs::write(&data, vec![b'x'; size]).unwrap();
        let base = format!("http://127.0.0.1:{}/{bucket}", self.port());
        let entry = |number| {
            let key = format!("d{:03}/o{number:06}", number / 1000);
            format!(
                "upload-file = \"{}\"\nurl = \"{base}/{key}\"\nuser = \"key:secretsecret\"\n\
                 aws-sigv4 = \"aws:amz:us-east-1:s3\"\nheader = \"X-Amz-Content-Sha256: UNSIGNED-PAYLOAD\"\n\
                 silent\nfail\n",
                data.display()
            )
        };
        let entries: Vec<String> = (0..count).map(entry).collect();
        std::fs::write(&config, entries.join("next\n")).unwrap();
        let mut curl = Command::new("curl");
        curl.args(["--parallel", "--parallel-max", "16", "--config"]).arg(&config);
        let output = curl.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    pub(crate) fn delete(&self, bucket: &str, key: &str) {
        self.ask("DELETE", &format!("{bucket}/{key}"), &[], b"");
    }

    /// The answer of the server, its headers first.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--fail-with-body", "--include", "--user", "key:secretsecret"]);
        curl.args(["--aws-sigv4", "aws:amz:us-east-1:s3", "--header", "X-Amz-Content-Sha256: UNSIGNED-PAYLOAD"]);
        curl.args(headers.iter().flat_map(|header| ["--header", header]));
        curl.args(["--request", method, "--data-binary", "@-"]);
        if !headers.iter().any(|header| header.starts_with("Content-Type")) {
            curl.args(["--header", "Content-Type: application/octet-stream"]);
        }
        curl.arg(format!("http://127.0.0.1:{}/{path}", self.port()));
        let mut child = curl.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(body).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{method} {path}: {}", String::from_utf8_lossy(&output.stdout));
        output.stdout
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            let _ended = process.stop(PATIENCE);
        }
    }
}
