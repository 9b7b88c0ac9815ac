//! What plugins may ask about a job (reference 07 §3.6).

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fd_config::RestoreCommands;
use fd_os::lock::Mutex;
use fd_plugins::{CommandOfVolume, JobFacts, Value, Variable};
use openssl::sha::sha256;

use crate::shared::debug::Debug;
use crate::shared::job::Job;
use crate::shared::known_commands::KnownCommands;
use crate::texts::{LONG_DATE, VERSION};

/// Commands for which a user may have filled in options in one restore. More are not known.
const MOST_FILLED_IN: usize = 1_000;

/// What is the same in all jobs.
#[derive(Debug)]
pub(crate) struct DaemonFacts {
    /// The name of the daemon.
    pub name: Vec<u8>,
    /// Its working directory.
    pub working_directory: Vec<u8>,
    /// Its plugin directory.
    pub plugin_directory: Option<Vec<u8>>,
    /// The directory of the program, with a final slash.
    pub program_directory: Vec<u8>,
    /// The directory of the configuration file, with a final slash.
    pub configuration_directory: Vec<u8>,
    /// The distribution and its release.
    pub distribution: Vec<u8>,
    /// Where debug output goes.
    pub debug: Arc<Debug>,
}

impl DaemonFacts {
    #[cfg(test)]
    pub(crate) fn of_a_test() -> Self {
        let quiet = tracing::level_filters::LevelFilter::WARN;
        Self {
            name: b"x-fd".to_vec(),
            working_directory: b"/w".to_vec(),
            plugin_directory: Some(b"/p".to_vec()),
            program_directory: b"/usr/sbin/".to_vec(),
            configuration_directory: b"/etc/bacula/".to_vec(),
            distribution: b"debian trixie".to_vec(),
            debug: Arc::new(Debug::new(quiet, None, b"", false, false)),
        }
    }

    /// The variables that are the same in all jobs.
    pub(crate) fn general(&self) -> Vec<(Variable, Value)> {
        const GENERAL: [Variable; 7] = [
            Variable::FdName,
            Variable::WorkingDir,
            Variable::PluginDir,
            Variable::ExePath,
            Variable::Version,
            Variable::DistName,
            Variable::SysConfigPath,
        ];
        GENERAL.into_iter().map(|variable| (variable, Value::Text(self.text(variable)))).collect()
    }

    fn text(&self, variable: Variable) -> Option<Vec<u8>> {
        match variable {
            Variable::FdName | Variable::Client => Some(self.name.clone()),
            Variable::WorkingDir => Some(self.working_directory.clone()),
            Variable::PluginDir => self.plugin_directory.clone(),
            Variable::ExePath => Some(self.program_directory.clone()),
            Variable::SysConfigPath => Some(self.configuration_directory.clone()),
            Variable::Version => Some(format!("{VERSION} ({LONG_DATE})").into_bytes()),
            Variable::DistName => Some(self.distribution.clone()),
            _ => None,
        }
    }
}

/// A path's directory, with a final slash.
pub(crate) fn directory_of(path: &Path) -> PathBuf {
    path.parent().map(|directory| directory.join("")).unwrap_or_default()
}

/// What plugins may ask about one job.
#[derive(Debug)]
pub(crate) struct Facts {
    daemon: Arc<DaemonFacts>,
    job: Arc<Job>,
    allowed_programs: Vec<Vec<u8>>,
    orders: Orders,
    interactive: AtomicBool,
    told: Mutex<Told>,
}

/// Which plugin commands of a volume may be run.
#[derive(Debug)]
pub(crate) struct Orders {
    /// The commands that Directors have sent.
    pub known: Arc<KnownCommands>,
    /// The Director of this job.
    pub director: Vec<u8>,
    /// What the settings say.
    pub rule: RestoreCommands,
}

/// What the Director's commands have said.
#[derive(Clone, Default, Debug)]
pub(crate) struct Told {
    /// Since when files count as changed, seconds since 1970.
    pub since: i64,
    /// Whether the job is accurate.
    pub accurate: bool,
    /// The job before.
    pub previous_job: Vec<u8>,
    /// `where` of a restore.
    pub place: Option<Vec<u8>>,
    /// `regexwhere` of a restore.
    pub regex_where: Option<Vec<u8>>,
    /// Whether links are prefixed.
    pub prefix_links: bool,
    /// The replace mode, a letter.
    pub replace: u8,
    /// Largest and smallest block of deduplication, by the Storage Daemon.
    pub dedup_blocks: (i32, i32),
    /// Whether it is an estimate.
    pub estimate: bool,
    /// Digests of the commands for which the user of a restore has filled in options: a Director
    /// may send long ones.
    pub filled_in: HashSet<[u8; 32]>,
}

impl Told {
    /// The user of this restore has filled in options for this command.
    pub(crate) fn fill_in(&mut self, command: &[u8]) {
        if self.filled_in.len() < MOST_FILLED_IN {
            self.filled_in.insert(sha256(command));
        }
    }
}

impl Facts {
    /// The facts of this job, which may run these programs; any if there are none.
    pub(crate) fn new(daemon: Arc<DaemonFacts>, job: Arc<Job>, allowed_programs: Vec<Vec<u8>>, orders: Orders) -> Self {
        let (interactive, told) = (AtomicBool::new(false), Mutex::default());
        Self { daemon, job, allowed_programs, orders, interactive, told }
    }

    /// Notes what the Director has said.
    pub(crate) fn tell(&self, change: impl FnOnce(&mut Told)) {
        change(&mut self.told.lock());
    }

    fn number(&self, variable: Variable) -> Option<i32> {
        let told = self.told.lock();
        Some(match variable {
            // As the plugin's 32 bits take it.
            Variable::JobId => self.job.identity.job_id.cast_signed(),
            Variable::Level => self.job.level().code().into(),
            Variable::Type => self.job.kind().code().into(),
            Variable::JobStatus => self.job.status().code().into(),
            Variable::SinceTime => truncated(told.since),
            Variable::Accurate => told.accurate.into(),
            Variable::PrefixLinks => told.prefix_links.into(),
            Variable::InteractiveSession => self.interactive.load(Ordering::Relaxed).into(),
            Variable::FileIndex => self.job.progress.files().cast_signed(),
            Variable::Replace => told.replace.into(),
            Variable::MaxDedupBlockSize => told.dedup_blocks.0,
            Variable::MinDedupBlockSize => told.dedup_blocks.1,
            Variable::IsCanceled => self.is_canceled().into(),
            Variable::Estimate => told.estimate.into(),
            _ => return None,
        })
    }

    fn text(&self, variable: Variable) -> Option<Vec<u8>> {
        match variable {
            Variable::JobName => Some(self.job.identity.name.clone()),
            Variable::Where => self.told.lock().place.clone(),
            Variable::RegexWhere => self.told.lock().regex_where.clone(),
            Variable::PrevJobName => Some(self.told.lock().previous_job.clone()),
            _ => self.daemon.text(variable),
        }
    }
}

/// The low 32 bits, as the stock daemon hands a time to plugins.
fn truncated(time: i64) -> i32 {
    let [a, b, c, d, ..] = time.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

impl JobFacts for Facts {
    fn value(&self, variable: Variable) -> Option<Value> {
        Some(self.number(variable).map_or_else(|| Value::Text(self.text(variable)), Value::Number))
    }

    fn is_canceled(&self) -> bool {
        self.job.cancel.is_canceled()
    }

    fn allowed_programs(&self) -> &[Vec<u8>] {
        &self.allowed_programs
    }

    fn debug(&self, level: i32, text: &[u8]) {
        let debug = &self.daemon.debug;
        if level.saturating_abs() <= debug.level() {
            // A negative one asks for the text alone.
            let head = if level < 0 { String::new() } else { format!("{}: ", debug.name()) };
            debug.write(&[head.as_bytes(), text].concat());
        }
    }

    fn set_interactive(&self) {
        self.interactive.store(true, Ordering::Relaxed);
    }

    fn note_command(&self, command: &[u8]) {
        self.orders.known.note(&self.orders.director, std::iter::once(command));
    }

    fn command_of_volume(&self, command: &[u8]) -> CommandOfVolume {
        let Orders { known, director, rule } = &self.orders;
        let is_filled_in = || self.told.lock().filled_in.contains(&sha256(command));
        match rule {
            RestoreCommands::None => CommandOfVolume::Never,
            RestoreCommands::Any => CommandOfVolume::Ordered,
            RestoreCommands::Known if is_filled_in() || known.has(director, command) => CommandOfVolume::Ordered,
            RestoreCommands::Known => CommandOfVolume::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::job::{Identity, JobKind};

    #[test]
    fn variables_follow_the_job_and_the_director_s_commands() {
        let daemon = DaemonFacts::of_a_test();
        let identity = Identity { job_id: 7, name: b"j.1".to_vec(), ..Identity::default() };
        let job = Arc::new(Job::new(identity, 0));
        let facts = Facts::new(Arc::new(daemon), Arc::clone(&job), Vec::new(), orders(RestoreCommands::Known, "v"));
        let number = |variable| match facts.value(variable) {
            Some(Value::Number(number)) => number,
            other => panic!("{other:?}"),
        };
        let text = |variable| match facts.value(variable) {
            Some(Value::Text(text)) => text.map(|text| String::from_utf8(text).unwrap()),
            other => panic!("{other:?}"),
        };
        assert_eq!((number(Variable::JobId), number(Variable::Level), number(Variable::Type)), (7, 32, 73));
        assert_eq!((text(Variable::Where), text(Variable::PrevJobName).as_deref()), (None, Some("")));
        assert_eq!(text(Variable::ExePath).as_deref(), Some("/usr/sbin/"));
        assert_eq!(text(Variable::Version).as_deref(), Some("15.0.3 (25 March 2025)"));
        job.set_kind(JobKind::Restore);
        job.progress.set_files(3);
        facts.tell(|told| (told.place, told.since) = (Some(Vec::new()), (1 << 32) + 5));
        assert_eq!((number(Variable::Type), number(Variable::FileIndex), number(Variable::SinceTime)), (82, 3, 5));
        assert_eq!(text(Variable::Where).as_deref(), Some(""));
        facts.set_interactive();
        assert_eq!(number(Variable::InteractiveSession), 1);
        job.cancel.cancel();
        assert_eq!(number(Variable::IsCanceled), 1);
    }

    fn orders(rule: RestoreCommands, test: &str) -> Orders {
        let folder = std::env::temp_dir().join(format!("ferrofd-orders-{test}-{}", std::process::id()));
        Orders { known: Arc::new(KnownCommands::new(&folder, 1)), director: b"dir".to_vec(), rule }
    }

    #[test]
    fn a_command_of_a_volume_is_run_only_if_someone_else_has_said_it() {
        use CommandOfVolume::{Never, Ordered, Unknown};
        let command = b"bpipe:/x:r:w".as_slice();
        for (rule, unknown, known) in [
            (RestoreCommands::Any, Ordered, Ordered),
            (RestoreCommands::Known, Unknown, Ordered),
            (RestoreCommands::None, Never, Never),
        ] {
            let facts = || {
                let job = Arc::new(Job::new(Identity::default(), 0));
                Facts::new(Arc::new(DaemonFacts::of_a_test()), job, Vec::new(), orders(rule, "rule"))
            };
            let (by_fileset, by_user) = (facts(), facts());
            assert_eq!(by_fileset.command_of_volume(command), unknown);
            by_fileset.note_command(command);
            by_user.tell(|told| told.fill_in(command));
            for facts in [by_fileset, by_user] {
                assert_eq!(facts.command_of_volume(command), known);
                assert_eq!(facts.command_of_volume(&command[1..]), unknown);
            }
        }
    }
}
