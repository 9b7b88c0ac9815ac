//! The daemon's numbers in Prometheus' text format. Each metric has a row in docs/monitoring.md,
//! and is there with its kind and its words even while it has no value.

use std::fmt::{Display, Write as _};
use std::path::Path;

use fd_messages::{Pressure, Stage, short_job_name};
use fd_session::JobStatus;

use crate::clock;
use crate::metrics::process;
use crate::shared::daemon::Daemon;
use crate::shared::job::{Job, JobKind};
use crate::shared::past_jobs::{Past, PastJobs, is_good};
use crate::shared::platform::Platform;
use crate::texts::VERSION;

const STAGES: [(&str, Stage); 5] = [
    ("read", Stage::Read),
    ("wait_for_entries", Stage::WorkWaitsForEntries),
    ("wait_for_sender", Stage::WorkWaitsForSender),
    ("send", Stage::Send),
    ("wait_to_send", Stage::SendWaits),
];

/// A number of a running job.
type OfJob = (&'static str, &'static str, fn(&Job) -> i64);
/// A number of the last job of a name, if there is one.
type OfPast = (&'static str, &'static str, fn(&Past) -> Option<i64>);

const OF_JOBS: [OfJob; 6] = [
    ("job_start_time_seconds", "When a running job began.", |job| job.started),
    ("job_files", "Files sent or restored by a running job.", |job| job.progress.files().into()),
    ("job_files_examined", "Files that a running job has looked at.", |job| number(job.progress.files_examined())),
    ("job_bytes", "Bytes sent or written by a running job.", |job| number(job.progress.job_bytes())),
    ("job_read_bytes", "Bytes read or received by a running job.", |job| number(job.progress.read_bytes())),
    ("job_errors", "Errors of a running job.", |job| job.progress.errors().into()),
];

const OF_LAST: [OfPast; 8] = [
    ("last_job_end_time_seconds", "When the last job of this name ended.", |past| Some(past.last.end_time)),
    ("last_job_seconds", "How long it took.", |past| Some(past.last.end_time.saturating_sub(past.last.start_time))),
    ("last_job_good", "Whether it ended well: 1, or 0 if it failed, was canceled or stopped.", |past| {
        Some(is_good(&past.last).into())
    }),
    ("last_job_canceled", "Whether it was canceled or stopped: 1 or 0.", |past| {
        // Incomplete: the operator means to resume it.
        let status = JobStatus::from_code(past.last.job_status);
        Some(matches!(status, Some(JobStatus::Canceled | JobStatus::Incomplete)).into())
    }),
    ("last_job_files", "Files that it saved or restored.", |past| Some(past.last.job_files.into())),
    ("last_job_bytes", "Bytes that it saved or restored.", |past| Some(number(past.last.job_bytes))),
    ("last_job_errors", "Its errors.", |past| Some(past.last.errors.into())),
    ("last_job_warnings", "Its warnings.", |past| Some(past.warnings.into())),
];
const OF_LAST_GOOD: OfPast =
    ("last_good_job_end_time_seconds", "When the last job of this name that ended well did so.", |past| past.good_end);

/// All metrics as text.
pub(super) fn exposition(daemon: &Daemon) -> String {
    let jobs = daemon.supervisor.running_jobs();
    let mut out = Exposition::default();
    of_the_daemon(&mut out, daemon, jobs.len());
    for (name, kind, help, value) in process::numbers(Path::new("/proc")) {
        out.of_process(name, kind, help, value);
    }
    out.describe("certificate_end_time_seconds", "gauge", "When a certificate of TLS ends.");
    for end in daemon.certificates.ends() {
        let of = if end.of_authorities { "authorities" } else { "daemon" };
        let labels = [("resource", end.resource), ("name", end.name.as_str()), ("of", of)];
        out.line("certificate_end_time_seconds", &labels, &end.time);
    }
    of_past_jobs(&mut out, &daemon.supervisor.past());
    for (name, help, value) in OF_JOBS {
        out.describe(name, "gauge", help);
        for job in &jobs {
            out.of_job(name, job, &[], &value(job));
        }
    }
    out.describe("job_done_ratio", "gauge", "Which part of its work a running job has done, if an estimate is known.");
    for job in &jobs {
        if let Some(outlook) = job.outlook(clock::seconds()) {
            out.of_job("job_done_ratio", job, &[], &outlook.ratio);
        }
    }
    out.describe("job_stage_seconds", "gauge", "Where the time of a running backup goes.");
    for job in &jobs {
        for (stage, kind) in STAGES {
            let seconds = job.progress.stages().get(kind).as_secs_f64();
            out.of_job("job_stage_seconds", job, &[("stage", stage)], &seconds);
        }
    }
    out.describe("job_gave_way_seconds", "gauge", "What a running backup has given away to others.");
    for job in &jobs {
        for to in Pressure::ALL {
            let seconds = job.progress.stages().gave_way(to).as_secs_f64();
            out.of_job("job_gave_way_seconds", job, &[("pressure", to.word())], &seconds);
        }
    }
    out.text
}

fn of_the_daemon(out: &mut Exposition, daemon: &Daemon, running: usize) {
    let supervisor = &daemon.supervisor;
    let memory = number(Platform::memory().resident);
    let running = i64::try_from(running).unwrap_or(i64::MAX);
    out.describe("build_info", "gauge", "Which program it is: always 1.");
    let labels = [("version", env!("CARGO_PKG_VERSION")), ("bacula", VERSION), ("os", &daemon.platform.distribution())];
    out.line("build_info", &labels, &1);
    for (name, kind, help, value) in [
        ("start_time_seconds", "gauge", "When the daemon began.", supervisor.started),
        ("resident_memory_bytes", "gauge", "Memory of the daemon.", memory),
        ("director_seen_time_seconds", "gauge", "When a Director has logged in last.", supervisor.director_seen()),
        ("jobs_finished_total", "counter", "Jobs that have ended.", number(supervisor.ended())),
        (
            "jobs_failed_total",
            "counter",
            "Those of them that failed, were canceled or stopped.",
            number(supervisor.failed()),
        ),
        ("jobs_running", "gauge", "Jobs that run now.", running),
    ] {
        out.describe(name, kind, help);
        out.line(name, &[], &value);
    }
}

fn of_past_jobs(out: &mut Exposition, past: &PastJobs) {
    for metric in OF_LAST {
        out.of_past(metric, past.told());
    }
    out.of_past(OF_LAST_GOOD, past.iter());
}

/// Metrics are 64-bit floating point numbers in the end.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The text in the making.
#[derive(Default)]
struct Exposition {
    text: String,
}

impl Exposition {
    fn describe(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string can't fail.
        let _ = write!(self.text, "# HELP bacula_fd_{name} {help}\n# TYPE bacula_fd_{name} {kind}\n");
    }

    /// Its name is that of every program.
    fn of_process(&mut self, name: &str, kind: &str, help: &str, value: Option<f64>) {
        let _ = write!(self.text, "# HELP process_{name} {help}\n# TYPE process_{name} {kind}\n");
        if let Some(value) = value {
            let _ = writeln!(self.text, "process_{name} {value}");
        }
    }

    fn of_job(&mut self, name: &str, job: &Job, more: &[(&str, &str)], value: &dyn Display) {
        let number = job.identity.job_id.to_string();
        let short = String::from_utf8_lossy(short_job_name(&job.identity.name));
        let labels = [("name", &*short), ("jobid", number.as_str()), ("type", job.aim().words())];
        self.line(name, &[labels.as_slice(), more].concat(), value);
    }

    fn of_past<'p>(&mut self, (name, help, value): OfPast, jobs: impl Iterator<Item = (&'p [u8], &'p Past)>) {
        self.describe(name, "gauge", help);
        for (job, past) in jobs {
            let kind = JobKind::from_code(past.last.job_type).words();
            let job = String::from_utf8_lossy(job);
            if let Some(value) = value(past) {
                // Not `job`: Prometheus has a label of that name itself.
                self.line(name, &[("name", &job), ("type", kind)], &value);
            }
        }
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: &dyn Display) {
        let labels: Vec<_> = labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.text, "bacula_fd_{name}{labels} {value}");
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::job::Identity;
    use crate::shared::past_jobs::Seen;
    use crate::shared::state_file::FinishedJob;

    /// What is told of a backup that is the last one of its name.
    fn told_of(status: JobStatus) -> String {
        let (job, job_type, job_status) = (b"n.2026-11-21_02.19.56_04".to_vec(), b'B', status.code());
        let ended = FinishedJob { job_type, job_status, job, ..FinishedJob::default() };
        let (mut out, mut past) = (Exposition::default(), PastJobs::default());
        past.note(&ended, Seen::default());
        of_past_jobs(&mut out, &past);
        out.text
    }

    #[test]
    fn of_a_job_that_is_told_no_more_the_last_good_one_stays() {
        let ended = |name: &str, job_status, end_time| {
            let job = format!("{name}.2026-11-21_02.19.56_04").into_bytes();
            FinishedJob { job, job_type: b'B', job_status, end_time, ..FinishedJob::default() }
        };
        let (mut out, year) = (Exposition::default(), 365 * 86_400);
        let jobs = [ended("old", b'T', 10), ended("old", b'f', 20), ended("new", b'T', year)];
        of_past_jobs(&mut out, &PastJobs::of_history(&jobs));
        let of_old: Vec<_> = out.text.lines().filter(|line| line.contains("\"old\"")).collect();
        assert_eq!(of_old, ["bacula_fd_last_good_job_end_time_seconds{name=\"old\",type=\"Backup\"} 10"]);
    }

    #[test]
    fn a_job_that_was_stopped_is_told_as_a_canceled_one() {
        for (status, is_canceled) in
            [(JobStatus::Incomplete, 1), (JobStatus::Canceled, 1), (JobStatus::Fatal, 0), (JobStatus::Error, 0)]
        {
            let told = told_of(status);
            for (metric, value) in [("last_job_good", 0), ("last_job_canceled", is_canceled)] {
                let line = format!("\nbacula_fd_{metric}{{name=\"n\",type=\"Backup\"}} {value}\n");
                assert!(told.contains(&line), "{status:?}: {line} in {told}");
            }
        }
    }

    #[test]
    fn labels_are_escaped_and_a_metric_without_any_has_no_braces() {
        let mut out = Exposition::default();
        out.describe("x", "gauge", "An x.");
        out.line("x", &[], &1);
        out.line("x", &[("a", "b\"\\\n"), ("c", "d")], &2.5);
        let expected = "# HELP bacula_fd_x An x.\n# TYPE bacula_fd_x gauge\nbacula_fd_x 1\n\
                        bacula_fd_x{a=\"b\\\"\\\\\\n\",c=\"d\"} 2.5\n";
        assert_eq!(out.text, expected);
    }

    /// Else its series would be another one from its command on, which begins without a past.
    #[test]
    fn a_job_has_its_type_from_its_first_command_on() {
        let type_of = |job: &Job| {
            let mut out = Exposition::default();
            out.of_job("x", job, &[], &1);
            out.text.split('"').nth(5).unwrap().to_owned()
        };
        let job =
            Job::new(Identity { job_id: 7, name: b"n.2026-11-21_02.19.56_04".to_vec(), ..Identity::default() }, 0);
        assert_eq!(type_of(&job), "System or Console");
        job.note_aim(JobKind::Backup);
        assert_eq!(type_of(&job), "Backup");
        job.set_kind(JobKind::Backup);
        assert_eq!(type_of(&job), "Backup");
    }
}
