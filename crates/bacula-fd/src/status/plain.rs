//! What `status client` shows.

use fd_messages::{short_job_name, shown};
use fd_session::JobStatus;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use crate::clock;
use crate::shared::daemon::Daemon;
use crate::shared::job::{Job, JobKind, JobLevel, StorageView};
use crate::shared::platform::Platform;
use crate::shared::plugins::names_and_versions;
use crate::shared::state_file::FinishedJob;
use crate::shared::supervisor::Session;
use crate::texts::{self, LONG_DATE, VERSION, commas};

/// The frames of `status`, without the `\n` before them and the `EOD` after them. Each carries a
/// NUL at its end.
pub(crate) fn plain(daemon: &Daemon) -> Vec<Vec<u8>> {
    let supervisor = &daemon.supervisor;
    let bytes = String::into_bytes;
    let mut frames: Vec<_> = header(daemon).into_iter().map(bytes).collect();
    frames.push(b"\nRunning Jobs:\n".to_vec());
    let mut jobs_listed = 0;
    for session in supervisor.sessions() {
        match session.job.get().filter(|job| job.identity.job_id != 0) {
            Some(job) => {
                jobs_listed += 1;
                frames.extend(running(job));
                if let Some(outlook) = job.outlook(clock::seconds()) {
                    frames.push(texts::estimate(outlook.percent(), outlook.left).into_bytes());
                }
                if daemon.settings.job.stage_times && job.kind() == JobKind::Backup {
                    frames.push(texts::stage_times(job.progress.stages()).into_bytes());
                    frames.extend(texts::gave_way(job.progress.stages(), clock::seconds() - job.started).map(bytes));
                }
            }
            None => frames.push(director(&session).into_bytes()),
        }
    }
    if jobs_listed == 0 {
        frames.push(b"No Jobs running.\n".to_vec());
    }
    frames.push(b"====\n".to_vec());
    frames.push(b"\nTerminated Jobs:\n".to_vec());
    let history = supervisor.history();
    if !history.is_empty() {
        frames.push(b" JobId  Level    Files      Bytes   Status   Finished        Name \n".to_vec());
        frames.push(b"===================================================================\n".to_vec());
        frames.extend(history.iter().map(|entry| terminated(entry, "  ", " ").into_bytes()));
    }
    frames.push(b"====\n".to_vec());
    frames.into_iter().map(with_nul).collect()
}

/// A text as a frame.
pub(super) fn with_nul(text: impl Into<Vec<u8>>) -> Vec<u8> {
    let mut frame = text.into();
    frame.push(0);
    frame
}

fn header(daemon: &Daemon) -> Vec<String> {
    let (supervisor, own, debug) = (&daemon.supervisor, &daemon.config().file_daemon, &daemon.debug);
    let memory = Platform::memory();
    let mut lines = vec![
        format!("{} Version: {VERSION} ({LONG_DATE})  {}\n", own.name, daemon.platform.spaced()),
        format!(
            "Daemon started {}. Jobs: run={} running={} max={}.\n",
            clock::day_and_time(supervisor.started),
            supervisor.finished(),
            supervisor.running_jobs().len(),
            own.max_concurrent_jobs
        ),
    ];
    if debug.level() > 0 {
        lines.push(ulimits());
    }
    lines.extend([
        format!(
            " Heap: heap={} smbytes={} max_bytes={} bufs=0 max_bufs=0\n",
            commas(memory.data),
            commas(memory.resident),
            commas(memory.peak_resident)
        ),
        format!(
            " Sizes: boffset_t=8 size_t=8 debug={} trace={} mode=0,0 bwlimit={}kB/s\n",
            debug.level(),
            u8::from(debug.traces()),
            commas(daemon.jobs.default_bandwidth.get() / 1024)
        ),
        format!(" Crypto: fips=N/A crypto={}\n", Platform::crypto()),
    ]);
    if debug.level() > 0 {
        lines.push(" APIs: !GPFS\n".to_owned());
    }
    let plugins = names_and_versions(&daemon.plugins());
    if !plugins.is_empty() {
        lines.push(texts::plugins(&plugins));
    }
    lines
}

/// What this process may have open and lock.
fn ulimits() -> String {
    let limit = |resource| match getrlimit(resource) {
        Ok((soft, _)) if soft == RLIM_INFINITY => "unlimited".to_owned(),
        Ok((soft, _)) => soft.to_string(),
        Err(_) => "0".to_owned(),
    };
    let files = limit(Resource::RLIMIT_NOFILE);
    let few = files.parse::<u64>().is_ok_and(|files| files < 1000);
    let verdict = if few { "nofile" } else { "ok" };
    format!(" Ulimits: nofile={files} memlock={} status={verdict}\n", limit(Resource::RLIMIT_MEMLOCK))
}

/// For how many seconds a job has run, at least one.
pub(super) fn seconds_of(job: &Job) -> u64 {
    u64::try_from(clock::seconds() - job.started).unwrap_or(0).max(1)
}

/// The file that a job is at, without passwords.
pub(super) fn current_file(job: &Job) -> Vec<u8> {
    mask_passwords(&job.progress.current_file())
}

fn director(session: &Session) -> String {
    let how = if session.encrypted { " using TLS" } else { "" };
    format!("Director connected{how} at: {}\n", clock::day_and_time(session.connected))
}

fn running(job: &Job) -> Vec<Vec<u8>> {
    let progress = &job.progress;
    let rate = commas(progress.job_bytes() / seconds_of(job));
    let last_rate = commas(job.last_rate(clock::seconds()));
    let mut frames = [
        format!("JobId {} Job {} is running.\n", job.identity.job_id, job.name()),
        format!(
            "    {} {} Job started: {}\n",
            job.level().words(),
            job.kind().words(),
            clock::day_and_time(job.started)
        ),
        format!(
            "    Files={} Bytes={} AveBytes/sec={rate} LastBytes/sec={last_rate} Errors={}\n    Bwlimit={} ReadBytes={}\n",
            commas(progress.files().into()),
            commas(progress.job_bytes()),
            progress.errors(),
            commas(job.bandwidth.get()),
            commas(progress.read_bytes())
        ),
        files_line(job),
    ]
    .map(String::into_bytes)
    .to_vec();
    if progress.files() > 0 {
        frames.push([b"    Processing file: ", &shown(&current_file(job))[..], b"\n"].concat());
    }
    let storage = match job.storage.view() {
        Some(StorageView { frames_read, descriptor, encrypted }) => {
            format!("    SDReadSeqNo={frames_read} fd={descriptor} SDtls={}\n", u8::from(encrypted))
        }
        None => "    SDSocket closed.\n".to_owned(),
    };
    frames.push(storage.into_bytes());
    frames
}

fn files_line(job: &Job) -> String {
    let progress = &job.progress;
    let (done, expected) = (u64::from(progress.files()), u64::from(progress.files_expected()));
    if job.kind() != JobKind::Restore {
        return format!("    Files: Examined={} Backed up={}\n", commas(progress.files_examined()), commas(done));
    }
    if expected == 0 {
        return format!("    Files: Restored={}\n", commas(done));
    }
    let examined = progress.files_examined();
    let percent = examined.saturating_mul(100) / expected;
    format!("    Files: Restored={} Expected={} Completed={percent}%\n", commas(examined), commas(expected))
}

/// A plug-in's command line may hold passwords; status shows none. Other bytes stay as they are.
fn mask_passwords(mut path: &[u8]) -> Vec<u8> {
    const WORD: &[u8] = b"password=";
    let mut masked = Vec::new();
    while let Some(at) = path.windows(WORD.len()).position(|word| word.eq_ignore_ascii_case(WORD)) {
        let (head, tail) = path.split_at_checked(at.saturating_add(WORD.len())).unwrap_or((path, &[]));
        masked.extend_from_slice(head);
        masked.extend_from_slice(b"***");
        path = tail.iter().position(|byte| *byte == b' ').and_then(|end| tail.get(end..)).unwrap_or_default();
    }
    masked.extend_from_slice(path);
    masked
}

/// One row of the history; `wide` separates the first columns, `narrow` the others.
pub(super) fn terminated(entry: &FinishedJob, wide: &str, narrow: &str) -> String {
    format!(
        "{:>6}{wide}{:<6}{narrow}{:>8}{narrow}{:>10}{wide}{:<7}{wide}{:<8}{narrow}{}\n",
        entry.job_id,
        level_column(entry),
        commas(entry.job_files.into()),
        with_suffix(entry.job_bytes),
        status_word(entry.job_status),
        clock::day_and_time(entry.end_time),
        String::from_utf8_lossy(short_job_name(&entry.job))
    )
}

fn level_column(entry: &FinishedJob) -> &'static str {
    match entry.job_type {
        b'R' => "Rest",
        b'D' => "Admn",
        _ => {
            let words = JobLevel::from_code(entry.job_level).words();
            words.get(..4).unwrap_or(words)
        }
    }
}

pub(super) fn status_word(code: u8) -> &'static str {
    match JobStatus::from_code(code) {
        Some(JobStatus::Created) => "Created",
        Some(JobStatus::Error | JobStatus::Fatal) => "Error",
        Some(JobStatus::Differences) => "Diffs",
        Some(JobStatus::Canceled) => "Cancel",
        Some(JobStatus::Terminated) => "OK",
        Some(JobStatus::Warnings) => "OK -- with warnings",
        Some(JobStatus::Incomplete) => "Incomplete",
        _ => "Other",
    }
}

/// A number with its unit, five characters and a blank before the unit (reference 02 §11.5).
pub(crate) fn with_suffix(number: u64) -> String {
    let text = commas(number);
    let thousands = text.matches(',').count();
    let unit = ["", "K", "M", "G", "T", "P", "E"].get(thousands).unwrap_or(&"");
    let shown: String = text.replacen(',', ".", 1).replace(',', "").chars().take(5).collect();
    format!("{shown} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::job::Identity;

    #[test]
    fn numbers_with_units() {
        assert_eq!(with_suffix(29), "29 ");
        assert_eq!(with_suffix(851_968), "851.9 K");
        assert_eq!(with_suffix(5_111_808), "5.111 M");
        assert_eq!(with_suffix(12_345_678), "12.34 M");
    }

    #[test]
    fn a_row_of_the_history() {
        let entry = FinishedJob {
            job_id: 1,
            job_type: b'B',
            job_level: b'F',
            job_status: b'T',
            job_files: 7,
            job_bytes: 17,
            end_time: 0,
            job: b"acc.2026-11-21_02.19.56_04".to_vec(),
            ..FinishedJob::default()
        };
        let row = terminated(&entry, "  ", " ");
        assert!(row.starts_with("     1  Full          7        17   OK       "), "{row}");
        assert!(row.ends_with(" acc\n"), "{row}");
    }

    #[test]
    fn passwords_are_not_shown() {
        let job = Job::new(Identity::default(), 0);
        job.progress.set_current_file(b"p:/x:password=secret");
        assert_eq!(current_file(&job), b"p:/x:password=***");
        assert_eq!(mask_passwords(b"/x\xff"), b"/x\xff");
        assert_eq!(mask_passwords(b"p:Password=secret tail\xff"), b"p:Password=*** tail\xff");
        assert_eq!(mask_passwords(b"password=secret"), b"password=***");
        let two = b"p: user_password=a host=h admin_PASSWORD=b password= end";
        assert_eq!(mask_passwords(two), b"p: user_password=*** host=h admin_PASSWORD=*** password=*** end");
    }
}
