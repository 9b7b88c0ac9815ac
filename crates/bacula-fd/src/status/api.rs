//! The groups of `.status`: `header`, `running`, `terminated`, `resources`, `statistics`, and our
//! own `activity` (reference 02 §11.3).

use std::net::{Ipv6Addr, SocketAddr};

use fd_messages::{Said, short_job_name, shown};

use super::output::Output;
use super::plain::{current_file, seconds_of, status_word};
use crate::clock;
use crate::shared::daemon::Daemon;
use crate::shared::job::{Job, JobKind};
use crate::shared::platform::Platform;
use crate::shared::plugins::names;
use crate::shared::state_file::FinishedJob;
use crate::shared::supervisor::Session;
use crate::texts::{LONG_DATE, VERSION};

/// `.status header`: one frame.
pub(crate) fn header(daemon: &Daemon, api_opts: &[u8]) -> Vec<Vec<u8>> {
    let (supervisor, debug) = (&daemon.supervisor, &daemon.debug);
    let pki = &daemon.config().file_daemon.pki;
    let mut out = Output::new(api_opts);
    out.begin_object_group("header");
    out.text("name", daemon.config().file_daemon.name.as_bytes());
    out.text("version", format!("{VERSION} ({LONG_DATE})").as_bytes());
    out.text("uname", daemon.platform.spaced().as_bytes());
    out.time("started", supervisor.started);
    out.number("pid", std::process::id());
    out.number("jobs_run", supervisor.finished());
    out.number("jobs_running", u32::try_from(supervisor.running_jobs().len()).unwrap_or(u32::MAX));
    out.text("winver", b"");
    out.number("debug", debug.level());
    out.number("trace", u8::from(debug.traces()));
    out.list("tags", &debug.tag_names());
    out.number("bwlimit", daemon.jobs.default_bandwidth.get());
    out.list("plugins", &names(&daemon.plugins()));
    out.number("pkiencryption", u8::from(pki.encryption));
    out.number("pkisignature", u8::from(pki.encryption || pki.signatures));
    let (cipher, digest) = (pki.cipher.name(), pki.digest.directive().unwrap_or_default().to_ascii_lowercase());
    let is_used = pki.signatures;
    out.text("pkicipher", if is_used { cipher.as_bytes() } else { b"" });
    out.text("pkidigest", if is_used { digest.as_bytes() } else { b"" });
    out.number("fips", 0);
    out.text("crypto", Platform::crypto().as_bytes());
    out.flag("gpfs", false);
    out.end_object_group();
    vec![out.frame()]
}

/// `.status running`: a frame for the beginning, three for each job and one for each other
/// connection, one for the end.
pub(crate) fn running(daemon: &Daemon, api_opts: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Output::new(api_opts);
    out.begin_list_group("running");
    let mut frames = vec![out.frame()];
    for session in daemon.supervisor.sessions() {
        if let Some(job) = session.job.get().filter(|job| job.identity.job_id != 0) {
            running_job(&mut out, &mut frames, &session, job);
        } else {
            out.begin_object();
            out.time("DirectorConnected", session.connected);
            out.number("DirTLS", u8::from(session.encrypted));
            out.end_object();
            frames.push(out.frame());
        }
    }
    out.end_list_group();
    frames.push(out.frame());
    frames
}

fn running_job(out: &mut Output, frames: &mut Vec<Vec<u8>>, session: &Session, job: &Job) {
    let (progress, seconds) = (&job.progress, seconds_of(job));
    out.begin_object();
    out.number("JobId", job.identity.job_id);
    out.text("Job", &job.identity.name);
    out.number("VSS", 0);
    out.text("Level", &[job.level().code()]);
    out.text("Type", &[job.kind().code()]);
    out.text("Status", &[job.status().code()]);
    out.time("StartTime", job.started);
    frames.push(out.frame());
    out.number("JobFiles", progress.files());
    out.number("JobBytes", progress.job_bytes());
    out.number("Bytes/sec", progress.job_bytes() / seconds);
    out.number("Errors", progress.errors());
    out.number("Bwlimit", job.bandwidth.get());
    out.number("ReadBytes", progress.read_bytes());
    out.number("ReadBytes/sec", progress.read_bytes() / seconds);
    out.number("Files Examined", progress.files_examined());
    let expected = progress.files_expected();
    if job.kind() == JobKind::Restore && expected > 0 {
        out.number("Expected Files", expected);
        // Whole numbers, divided first: 0 until the end, as in the stock daemon.
        out.number("Percent Complete", 100 * (progress.files_examined() / u64::from(expected)));
    }
    if let Some(outlook) = job.outlook(clock::seconds()) {
        out.number("PercentDone", outlook.percent());
    }
    frames.push(out.frame());
    if progress.files() > 0 {
        out.text("Processing file", &shown(&current_file(job)));
    }
    match job.storage.view() {
        Some(storage) => {
            out.number("SDReadSeqNo", storage.frames_read);
            out.number("fd", storage.descriptor);
            out.number("SDtls", u8::from(storage.encrypted));
        }
        None => out.text("SDSocket", b"closed"),
    }
    out.number("DirTLS", u8::from(session.encrypted));
    out.end_object();
    frames.push(out.frame());
}

/// `.status terminated` from API 2 on: a frame for the beginning, one for each job, one for the
/// end.
pub(crate) fn terminated(history: &[FinishedJob], api_opts: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Output::new(api_opts);
    out.begin_list_group("terminated");
    let mut frames = vec![out.frame()];
    for entry in history {
        out.begin_object();
        out.number("jobid", entry.job_id);
        out.text("level", &[entry.job_level]);
        out.text("type", &[entry.job_type]);
        out.text("status", &[entry.job_status]);
        out.text("status_desc", status_word(entry.job_status).as_bytes());
        out.number("jobbytes", entry.job_bytes);
        out.number("jobfiles", entry.job_files);
        out.text("job", &entry.job);
        out.text("name", String::from_utf8_lossy(short_job_name(&entry.job)).as_bytes());
        out.time("starttime", entry.start_time);
        out.time("endtime", entry.end_time);
        out.number("errors", entry.errors);
        out.end_object();
        frames.push(out.frame());
    }
    out.end_list_group();
    frames.push(out.frame());
    frames
}

/// `.status resources`: one frame.
pub(crate) fn resources(daemon: &Daemon, api_opts: &[u8]) -> Vec<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt as _;
    let own = &daemon.config().file_daemon;
    let path = |path: Option<&std::path::PathBuf>| path.map_or(&b""[..], |path| path.as_os_str().as_bytes()).to_vec();
    let mut out = Output::new(api_opts);
    out.begin_object_group("resource");
    out.text("Name", own.name.as_bytes());
    out.text("WorkingDirectory", &path(Some(&own.working_directory)));
    out.text("PidDirectory", &path(Some(&own.pid_directory)));
    out.text("SubsysDirectory", &path(own.subsys_directory.as_ref()));
    out.text("ScriptsDirectory", &path(own.scripts_directory.as_ref()));
    out.text("PluginDirectory", &path(own.plugin_directory.as_ref()));
    out.number("HeartbeatInterval", own.heartbeat_interval.as_secs());
    out.number("MaximumConcurrentJobs", own.max_concurrent_jobs);
    out.number("FDPort", own.port());
    out.text("FDAddress", fd_address(&own.addresses));
    out.number("SDConnectTimeout", own.sd_connect_timeout.as_secs());
    out.number("MaximumNetworkBufferSize", own.max_network_buffer_size);
    out.number("MaximumBandwidthPerJob", daemon.jobs.default_bandwidth.get());
    out.flag("CommCommpression", own.comm_compression);
    out.list("DisableCommand", &own.disable_command);
    out.flag("TLSEnable", own.tls.enable);
    out.flag("TLSPSKEnable", own.tls.psk_enable);
    out.flag("TLSRequire", own.tls.require);
    out.flag("TLSAuthenticate", own.tls.authenticate);
    out.end_object_group();
    vec![out.frame()]
}

/// `.status activity`, which the stock daemon doesn't have: what each job does right now, and for
/// how long nothing has moved. A file's name is one line: what reads this must not take a part of
/// it for another field.
pub(crate) fn activity(daemon: &Daemon, api_opts: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Output::new(api_opts);
    out.begin_list_group("activity");
    let mut frames = vec![out.frame()];
    for job in daemon.supervisor.running_jobs() {
        let progress = &job.progress;
        let last = progress.last_activity().max(job.course.phase_since());
        out.begin_object();
        out.number("JobId", job.identity.job_id);
        out.text("Job", &job.identity.name);
        out.text("Phase", job.course.phase().words().as_bytes());
        out.text("File", Said::of_bytes(&current_file(&job)).as_str().as_bytes());
        out.number("JobFiles", progress.files());
        out.number("JobBytes", progress.job_bytes());
        out.number("SecondsSinceProgress", (clock::seconds() - last).max(0));
        if let Some(outlook) = job.outlook(clock::seconds()) {
            out.number("PercentDone", outlook.percent());
            if let Some(left) = outlook.left {
                out.number("SecondsLeft", left);
            }
        }
        out.flag("Canceled", job.cancel.is_canceled());
        out.end_object();
        frames.push(out.frame());
    }
    out.end_list_group();
    frames.push(out.frame());
    frames
}

/// Empty in the stock daemon, too, but for the wildcard of IPv6.
fn fd_address(addresses: &[SocketAddr]) -> &'static [u8] {
    match addresses {
        [only] if only.ip() == Ipv6Addr::UNSPECIFIED => b"::",
        _ => b"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_wildcard_of_ipv6_is_told() {
        for (addresses, expected) in [
            (&["[::]:9102"][..], &b"::"[..]),
            (&["0.0.0.0:9102"], b""),
            (&["127.0.0.1:9102"], b""),
            (&["127.0.0.1:9102", "[::1]:9102"], b""),
        ] {
            let parsed: Vec<SocketAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
            assert_eq!(fd_address(&parsed), expected, "{addresses:?}");
        }
    }
}
