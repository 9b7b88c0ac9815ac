//! The real Icinga 2, with the command and the service of packaging/monitoring, `check_ferrofd`,
//! and a daemon whose clock is three days behind.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use openssl::base64;
use openssl::ssl::{SslConnector, SslMethod};
use serde_json::Value;

use crate::check::Check;
use crate::metrics::root;
use crate::watched::Watched;
use bed::{Authority, PATIENCE, Process, ReservedPort, Result, argv, faketime, run, wait_for};

/// As whom Debian's Icinga runs.
const USER: &str = "nagios";
/// Of monitoring-plugins: runs a check, and puts another state into what it says.
const NEGATE: &str = "/usr/lib/nagios/plugins/negate";
/// States of a service, as the exit statuses of checks.
const OK: u8 = 0;
const WARNING: u8 = 1;
const CRITICAL: u8 = 2;

/// The first process of its namespace. It stays, since Icinga itself would not end with what
/// started it: who becomes another user is not told.
const INIT: &str = r#""$@"; exit"#;
/// A server that is its own agent.
const SERVER: &str = r#"
const NodeName = "localhost"
const PluginDir = "PROGRAMS"
include <itl>
object Endpoint NodeName { }
object Zone NodeName { endpoints = [ NodeName ] }
object Zone "global-templates" { global = true }
object ApiListener "api" { bind_host = "127.0.0.1", bind_port = OWN }
object ApiUser "test" { password = "test", permissions = [ "objects/query/*" ] }
object CheckerComponent "checker" { }
"#;
/// The host, and beside the service that we ship one without an agent that has limits of its own.
const HOST: &str = r#"
object Host "localhost" { check_command = "dummy", vars.ferrofd = true, vars.ferrofd_port = METRICS }
object Service "patient" {
  host_name = "localhost"
  check_command = "ferrofd"
  check_interval = 1s
  retry_interval = 1s
  vars.ferrofd_host = "127.0.0.1"
  vars.ferrofd_warning = 48
  vars.ferrofd_critical = 100
  vars.ferrofd_name = "backup-test"
}
"#;

struct Icinga {
    _process: Process,
    port: ReservedPort,
    authority: String,
}

impl Icinga {
    /// In a namespace of process ids, where the programs that it starts end with it.
    fn start(folder: &Path, programs: &Path, metrics: u16) -> Result<Self> {
        let port = ReservedPort::new()?;
        let (certificates, zone) = (folder.join("data/certs"), folder.join("zones.d/localhost"));
        let templates = folder.join("zones.d/global-templates");
        let (run_time, cache) = (folder.join("run"), folder.join("cache"));
        for one in [&certificates, &zone, &templates, &run_time, &cache] {
            fs::create_dir_all(one).unwrap();
        }
        Authority::new(&certificates, "ca")?.sign("localhost", &["localhost"])?;
        for name in ["ca", "localhost"] {
            let path = certificates.join(name);
            fs::rename(path.with_extension("pem"), path.with_extension("crt")).unwrap();
        }
        let shipped = fs::read_to_string(root().join("packaging/monitoring/icinga2.conf")).unwrap();
        assert!(shipped.contains("interval = 10m") && shipped.contains("interval = 2m"));
        let shipped = shipped.replace("interval = 10m", "interval = 1s").replace("interval = 2m", "interval = 1s");
        // Each where it says that it belongs.
        let (command, service) = shipped.split_at(shipped.find("apply Service").unwrap());
        fs::write(templates.join("ferrofd.conf"), command).unwrap();
        fs::write(zone.join("ferrofd.conf"), service).unwrap();
        fs::write(zone.join("host.conf"), HOST.replace("METRICS", &metrics.to_string())).unwrap();
        let server = SERVER.replace("PROGRAMS", &programs.display().to_string());
        fs::write(folder.join("icinga2.conf"), server.replace("OWN", &port.number().to_string())).unwrap();

        let folder = folder.display().to_string();
        let owned = run(&argv(["chown", "-R", USER, &folder]), b"")?;
        assert!(owned.status.success(), "{}", owned.text());
        let alone = ["unshare", "--pid", "--mount-proc", "--fork", "--kill-child=KILL", "sh", "-c", INIT, "sh"];
        let mut words = alone.into_iter().chain(["icinga2", "daemon", "-c"]).map(str::to_owned).collect::<Vec<_>>();
        words.push(format!("{folder}/icinga2.conf"));
        for (name, place) in
            [("Data", "data"), ("Cache", "cache"), ("InitRun", "run"), ("Log", "log"), ("Zones", "zones.d")]
        {
            words.extend(["-D".to_owned(), format!("Configuration.{name}Dir={folder}/{place}")]);
        }
        let mut process = Process::start("icinga2", &argv(words), Path::new(&format!("{folder}.out")))?;
        process.must_listen(port.number())?;
        Ok(Self { _process: process, port, authority: format!("{folder}/data/certs/ca.crt") })
    }

    /// Its services, by its own interface.
    fn services(&self) -> Value {
        let mut connector = SslConnector::builder(SslMethod::tls()).unwrap();
        connector.set_ca_file(&self.authority).unwrap();
        let stream = TcpStream::connect(self.port.address()).unwrap();
        let mut peer = connector.build().connect("localhost", stream).unwrap();
        let login = base64::encode_block(b"test:test");
        write!(
            peer,
            "GET /v1/objects/services HTTP/1.0\r\nAccept: application/json\r\nAuthorization: Basic {login}\r\n"
        )
        .unwrap();
        write!(peer, "Host: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        // The server may close without the end of TLS: what the answer lacks then is seen below.
        let _ = peer.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let body: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"));
        body["results"].clone()
    }

    /// Waits until a service has this state and says so.
    fn must_tell(&self, name: &str, state: u8, words: &str) -> Result<Value> {
        wait_for(&format!("{name} with state {state}: {words}"), PATIENCE, || {
            let services = self.services();
            let mut attributes = services.as_array().unwrap().iter().map(|one| &one["attrs"]);
            let service = attributes.find(|one| one["name"] == name).unwrap_or(&Value::Null);
            let result = &service["last_check_result"];
            let is_it = service["state"] == state && result["output"].as_str().is_some_and(|said| said.contains(words));
            Ok(if is_it { Ok(result.clone()) } else { Err(services.to_string()) })
        })
    }
}

#[test]
fn icinga_tells_of_a_host_s_backups() -> Result<()> {
    if [faketime::LIBRARY, NEGATE, "/usr/sbin/icinga2"].iter().any(|path| !Path::new(path).exists()) {
        return skip::test("Icinga is not installed");
    }
    let mut host = Watched::start("icinga")?;
    host.save()?;
    let check = Check::new(host.port.number())?;
    let icinga = Icinga::start(&host.folder, check.folder(), host.port.number())?;
    let old = "the last good backup, backup-test, ended 72 hours ago";
    let result = icinga.must_tell("backup", CRITICAL, &format!("FERROFD CRITICAL - {old}"))?;
    // It has taken apart what is behind the bar.
    let of_age = result["performance_data"][0].as_str().unwrap();
    let (age, limits) = of_age.strip_prefix("age=").and_then(|rest| rest.split_once('s')).unwrap();
    assert!(age.parse::<u64>().unwrap() >= 3 * 86_400 && limits == ";93600;180000;0", "{result}");
    icinga.must_tell("patient", WARNING, &format!("FERROFD WARNING - {old}"))?;

    host.correct_clock()?;
    host.save()?;
    for name in ["backup", "patient"] {
        icinga.must_tell(name, OK, "FERROFD OK - the last good backup, backup-test, ended 0 hours ago")?;
    }
    // The state is where other programs expect it.
    let done =
        run(&argv([NEGATE, "--substitute", "--ok=WARNING"].map(str::to_owned).into_iter().chain(check.words())), b"")?;
    assert!(done.status.code() == Some(1) && done.text().starts_with("FERROFD WARNING - "), "{}", done.text());

    host.save_what_is_gone()?;
    icinga.must_tell("backup", WARNING, "FERROFD WARNING - the last backup backup-test had 1 errors")?;
    host.end()?;
    icinga.must_tell("backup", CRITICAL, "FERROFD CRITICAL - no metrics of ferrofd").map(drop)
}
