//! The real Prometheus, with the rules of packaging/monitoring, reads a daemon that runs jobs. The
//! estimate of a running job is looked at on the way.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::metrics::{get, names_agree, root, sample};
use bed::{
    Authority, Bed, BedOptions, ClientOptions, Fd, FileSet, Noise, PATIENCE, Process, ReservedPort, Result, argv,
    fifo_writer, make_fifo, run, wait_for,
};

/// What the jobs save in pieces, bytes.
const PIECE: usize = 1 << 20;
/// Pieces of the first job.
const WHOLE: usize = 40;
/// In seconds.
const HOUR: i64 = 3600;
/// Where a picture of the dashboard's numbers goes, if one is wanted; see `make monitoring-test`.
const PICTURES: &str = "MONITORING_PICTURES";

/// A Prometheus that reads the daemon every second.
struct Server {
    _process: Process,
    port: ReservedPort,
}

impl Server {
    fn start(folder: &Path, metrics: u16) -> Result<Self> {
        let (rules, config) = (root().join("packaging/monitoring/ferrofd.rules.yml"), folder.join("prometheus.yml"));
        let shipped = fs::read_to_string(root().join("packaging/monitoring/prometheus.yml")).unwrap();
        // The example of the manual, with other places and intervals.
        let targets = "\"client1.example.org:19102\", \"client2.example.org:19102\"";
        assert!(shipped.contains(targets) && shipped.contains("30s") && shipped.contains("ferrofd.rules.yml"));
        let text = shipped.replace(targets, &format!("\"127.0.0.1:{metrics}\"")).replace("30s", "1s");
        let text = text.replace("ferrofd.rules.yml", &rules.canonicalize().unwrap().display().to_string());
        fs::write(&config, format!("global:\n  evaluation_interval: 1s\n{text}")).unwrap();
        let port = ReservedPort::new()?;
        let words = [
            "prometheus".to_owned(),
            format!("--config.file={}", config.display()),
            format!("--storage.tsdb.path={}", folder.join("prometheus").display()),
            format!("--web.listen-address={}", port.address()),
        ];
        let mut process = Process::start("prometheus", &argv(words), &folder.join("log/prometheus.out"))?;
        process.must_listen(port.number())?;
        Ok(Self { _process: process, port })
    }

    /// The series that an expression has now.
    fn query(&self, expression: &str) -> Vec<Value> {
        let escaped = escaped(expression);
        let answer = get(self.port.number(), &format!("/api/v1/query?query={escaped}"));
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        answer["data"]["result"].as_array().unwrap().clone()
    }

    /// Waits until an expression has a series.
    fn wait_for(&self, expression: &str) -> Result<Vec<Value>> {
        wait_for(expression, PATIENCE, || {
            let found = self.query(expression);
            Ok(if found.is_empty() { Err("no series".to_owned()) } else { Ok(found) })
        })
    }
}

/// A bed whose jobs read a FIFO that the test fills.
struct Stage {
    bed: Bed,
    fifo: PathBuf,
    metrics: ReservedPort,
}

impl Stage {
    fn new() -> Result<Self> {
        let port = ReservedPort::new()?;
        let mut client = ClientOptions::new(Fd::Ours).named("test");
        client.settings = ["log.level = \"info\"", "log.format = \"json\"", "[metrics]"].map(str::to_owned).to_vec();
        client.settings.push(format!("address = \"127.0.0.1:{}\"", port.number()));
        let mut options = BedOptions::new("prometheus", [client])?;
        let keys = options.folder.make("keys")?;
        let authority = Authority::new(&keys, "authority")?;
        authority.sign_for("soon", &["localhost"], 3)?;
        let tls = ["TLS Enable = yes".to_owned(), authority.trusted()].into_iter().chain(authority.identity("soon"));
        let tls: Vec<_> = tls.collect();
        options.clients.iter_mut().for_each(|client| client.fd_director.clone_from(&tls));
        let fifo = options.folder.path().join("fifo");
        make_fifo(&fifo)?;
        options.file_sets = vec![FileSet::new("fifo", &["Signature = MD5", "ReadFifo = yes"], &[&fifo])];
        Ok(Self { bed: Bed::start(options)?, fifo, metrics: port })
    }

    /// A job that has taken so many pieces and waits for more.
    fn begin(&self, pieces: usize) -> Result<(u32, File)> {
        let job = self.bed.queue("run job=backup-test yes")?;
        let mut writer = fifo_writer(&self.fifo)?;
        let mut noise = Noise::new(3);
        (0..pieces).for_each(|_| writer.write_all(&noise.bytes(PIECE)).unwrap());
        Ok((job, writer))
    }

    fn exposition(&self) -> String {
        get(self.metrics.number(), "/metrics")
    }
}

#[test]
fn jobs_are_seen_by_status_metrics_alerts_and_dashboard() -> Result<()> {
    let mut stage = Stage::new()?;
    names_agree(&stage.exposition());
    let has_prometheus = Command::new("prometheus").arg("--version").output().is_ok();
    if !has_prometheus {
        skip::part("Prometheus is not installed");
    }
    let server = has_prometheus.then(|| Server::start(stage.bed.folder(), stage.metrics.number())).transpose()?;
    if server.is_some() {
        rules_are_good(&root().join("packaging/monitoring"))?;
        let done = run(&argv(["promtool", "check", "metrics"]), stage.exposition().as_bytes())?;
        assert!(done.status.success(), "{}", done.text());
    }
    let (job, writer) = stage.begin(WHOLE)?;
    drop(writer);
    stage.bed.wait(job)?.must_be_good()?;
    a_job_that_has_ended_is_seen(&stage);
    the_process_is_seen(&mut stage)?;
    its_beginning_and_end_are_logged(&mut stage, job)?;

    let (job, mut writer) = stage.begin(WHOLE / 2)?;
    a_running_job_is_seen(&stage, job)?;
    if let Some(server) = &server {
        let running = server.wait_for("bacula_fd_job_done_ratio > 0.4")?;
        assert_eq!(running[0]["metric"]["name"], "backup-test", "{running:?}");
        every_panel_has_data(server)?;
        take_picture(server, &mut writer);
    }
    let cancel = stage.bed.console(&[&format!("cancel jobid={job} yes")])?;
    assert!(cancel.contains("marked to be canceled"), "{cancel}");
    drop(writer);
    stage.bed.wait(job)?.must_be('A')?;
    let canceled = "bacula_fd_last_job_good{name=\"backup-test\",type=\"Backup\"}";
    wait_for("the end of the canceled job", PATIENCE, || {
        let now = stage.exposition();
        Ok(if sample::<u64>(&now, canceled) == 0 { Ok(()) } else { Err(now) })
    })?;
    let now = stage.exposition();
    assert_eq!(sample::<u64>(&now, "bacula_fd_jobs_failed_total "), 1, "{now}");
    let good_end: u64 = sample(&now, "bacula_fd_last_good_job_end_time_seconds");
    assert!(good_end > 0 && good_end <= sample(&now, "bacula_fd_last_job_end_time_seconds"), "{now}");
    names_agree(&now);
    if let Some(server) = &server {
        for (alert, what) in [("BaculaJobCanceled", "backup-test"), ("BaculaCertificateEnds", "bed-dir")] {
            let fires = format!("ALERTS{{alertname=\"{alert}\",alertstate=\"firing\",name=\"{what}\"}}");
            server.wait_for(&fires)?;
        }
        let others = "ALERTS{alertname!~\"BaculaJobCanceled|BaculaCertificateEnds\"}";
        assert_eq!(server.query(others), Vec::<Value>::new());
    }
    everything_is_logged_as_json(&mut stage)
}

/// `promtool` has nothing against the rules, and their tests are good.
fn rules_are_good(folder: &Path) -> Result<()> {
    for words in [["check", "rules", "ferrofd.rules.yml"], ["test", "rules", "ferrofd.rules.test.yml"]] {
        let shell = format!("cd {} && exec promtool {}", folder.display(), words.join(" "));
        let done = run(&argv(["sh", "-c", &shell]), b"")?;
        assert!(done.status.success() && done.text().contains("SUCCESS"), "{}", done.text());
    }
    Ok(())
}

fn a_job_that_has_ended_is_seen(stage: &Stage) {
    let now = stage.exposition();
    let of_job =
        |metric: &str| -> i64 { sample(&now, &format!("bacula_fd_{metric}{{name=\"backup-test\",type=\"Backup\"}}")) };
    assert_eq!((of_job("last_job_good"), of_job("last_job_files"), of_job("last_job_errors")), (1, 1, 0));
    assert!(of_job("last_job_bytes") >= i64::try_from(WHOLE * PIECE).unwrap(), "{now}");
    assert_eq!(of_job("last_job_end_time_seconds"), of_job("last_good_job_end_time_seconds"));
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let since = |time: i64| i64::try_from(seconds).unwrap() - time;
    for recent in [of_job("last_job_end_time_seconds"), sample(&now, "bacula_fd_director_seen_time_seconds")] {
        assert!((0..300).contains(&since(recent)), "{now}");
    }
    assert_eq!(sample::<u64>(&now, "bacula_fd_jobs_failed_total "), 0);
    let certificate = "bacula_fd_certificate_end_time_seconds{resource=\"Director\",name=\"bed-dir\",of=";
    let hours = |of: &str| -since(sample(&now, &format!("{certificate}\"{of}\"}}"))) / HOUR;
    assert!((70..=72).contains(&hours("daemon")) && (718..=720).contains(&hours("authorities")), "{now}");
}

/// What every program tells of itself is true of the daemon.
fn the_process_is_seen(stage: &mut Stage) -> Result<()> {
    let pid = stage.bed.client("test")?.pid()?;
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let now = stage.exposition();
    let value = |metric: &str| -> f64 { sample(&now, &format!("{metric} ")) };
    assert_eq!(value("process_max_fds").to_string(), files.split_whitespace().next().unwrap());
    assert!((4.0..value("process_max_fds")).contains(&value("process_open_fds")), "{now}");
    assert!(value("process_cpu_seconds_total") > 0.0, "{now}");
    assert!(value("process_virtual_memory_bytes") > value("process_resident_memory_bytes"), "{now}");
    // The kernel rounds when it was booted.
    assert!(value("process_start_time_seconds") < value("bacula_fd_start_time_seconds") + 2.0, "{now}");
    assert!(value("process_start_time_seconds") > 1e9, "{now}");
    Ok(())
}

/// With `log.level = "info"`, as JSON.
fn its_beginning_and_end_are_logged(stage: &mut Stage, job: u32) -> Result<()> {
    let daemon = stage.bed.client("test")?.daemon();
    let of_job = wait_for("the two lines", PATIENCE, || {
        let said = daemon.output();
        let lines = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let fields = lines.map(|line| line["fields"].clone()).filter(|fields| fields["jobid"] == job);
        let of_job: Vec<_> = fields.collect();
        Ok(if of_job.len() == 2 { Ok(of_job) } else { Err(said) })
    })?;
    let (begin, end) = (&of_job[0], &of_job[1]);
    assert_eq!((begin["message"].as_str(), end["message"].as_str()), (Some("job begins"), Some("job ends")));
    assert!(begin["name"].as_str().unwrap().starts_with("backup-test."), "{begin}");
    assert_eq!(
        (&end["name"], end["kind"].as_str(), end["level"].as_str()),
        (&begin["name"], Some("Backup"), Some("F"))
    );
    assert_eq!((end["status"].as_str(), end["files"].as_u64(), end["errors"].as_u64()), (Some("OK"), Some(1), Some(0)));
    assert!(end["bytes"].as_u64().unwrap() >= u64::try_from(WHOLE * PIECE).unwrap(), "{end}");
    assert!(end["seconds"].is_i64() || end["seconds"].is_u64(), "{end}");
    Ok(())
}

/// One form for all, those of the start and the end included.
fn everything_is_logged_as_json(stage: &mut Stage) -> Result<()> {
    let daemon = stage.bed.client("test")?.daemon();
    daemon.stop()?;
    let said = daemon.output();
    let other = said.lines().find(|line| serde_json::from_str::<Value>(line).is_err());
    assert_eq!(other, None, "{said}");
    assert!(said.contains("Shutting down Bacula service: test-fd ..."), "{said}");
    Ok(())
}

/// The status says how far it is, and so do the metrics.
fn a_running_job_is_seen(stage: &Stage, job: u32) -> Result<()> {
    let estimate = wait_for("an estimate", PATIENCE, || {
        let status = stage.bed.console(&["status client=test-fd"])?;
        let line = status.lines().find(|line| line.starts_with("    Estimate: Done="));
        Ok(line.map(str::to_owned).ok_or(status))
    })?;
    // Half of it, but for what is still on its way.
    let percent = estimate.split(['=', '%']).nth(1).unwrap().parse::<u32>().unwrap();
    assert!((40..=50).contains(&percent) && estimate.contains("% Left=0:"), "{estimate}");
    let activity = stage.bed.console(&[".status client=test-fd activity"])?;
    assert!(activity.contains(&format!("PercentDone={percent}\n")), "{activity}");
    let running = stage.bed.console(&[".status client=test-fd running"])?;
    assert!(running.contains(&format!("PercentDone={percent}\n")), "{running}");
    let ratio = format!("bacula_fd_job_done_ratio{{name=\"backup-test\",jobid=\"{job}\",type=\"Backup\"}}");
    let ratio: f64 = sample(&stage.exposition(), &ratio);
    assert!((0.4..=0.5).contains(&ratio), "{ratio}");
    Ok(())
}

/// An expression as a part of an address.
fn escaped(expression: &str) -> String {
    expression.bytes().map(|byte| format!("%{byte:02x}")).collect::<Vec<_>>().concat()
}

/// The expressions of the dashboard with their panels' titles.
fn panels() -> Vec<(String, String)> {
    let file = fs::read_to_string(root().join("packaging/monitoring/grafana-dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&file).unwrap();
    let mut found = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap().replace("$instance", ".*");
            // Grafana fills in four times the interval of the scrapes, or more.
            let expression = expression.replace("$__rate_interval", "1m");
            assert!(!expression.contains('$'), "{title}: {expression}");
            found.push((title.to_owned(), expression));
        }
    }
    found
}

fn every_panel_has_data(server: &Server) -> Result<()> {
    let panels = panels();
    assert!(panels.len() > 12, "{panels:?}");
    panels.iter().try_for_each(|(_, expression)| server.wait_for(expression).map(drop))
}

/// A picture for the manual: the panels' expressions on Prometheus' own page, in a browser. The job
/// goes on meanwhile, slowly, so that there is something to be seen.
fn take_picture(server: &Server, writer: &mut File) {
    let Some(folder) = std::env::var_os(PICTURES).filter(|folder| !folder.is_empty()) else { return };
    fs::create_dir_all(&folder).unwrap();
    let mut noise = Noise::new(4);
    for _ in 0..WHOLE * 2 / 5 {
        // The speed of a slow disk: this is for the eye, no test depends on it.
        std::thread::sleep(std::time::Duration::from_secs(4));
        writer.write_all(&noise.bytes(PIECE)).unwrap();
    }
    let wanted = ["Read by running jobs", "Progress of running jobs"];
    let mut graphs = Vec::new();
    for (at, (_, expression)) in panels().into_iter().filter(|(title, _)| wanted.contains(&title.as_str())).enumerate()
    {
        graphs.push(format!("g{at}.range_input=2m&g{at}.tab=0&g{at}.expr={}", escaped(&expression)));
    }
    let picture = Path::new(&folder).join("monitoring-prometheus.png");
    let url = format!("http://{}/graph?{}", server.port.address(), graphs.join("&"));
    let done = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1200,1500"])
        .args(["--virtual-time-budget=15000", &format!("--screenshot={}", picture.display()), &url])
        .output()
        .unwrap();
    assert!(picture.exists(), "{}", String::from_utf8_lossy(&done.stderr));
}
