//! A file for which there is no descriptor keeps its copy of an earlier job. A program of its own:
//! the limit is that of its process.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, OpenOptions};
use std::sync::{Arc, Mutex};
use std::thread;

use fd_backup::{BackupPlan, FrameSink, SinkError};
use fd_bsock::CommCount;
use fd_fileset::{Parser, Regex, RegexCompiler};
use fd_messages::{CancelToken, JobLog, MessageType, Progress};
use fd_walk::WalkSettings;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Takes what a job sends.
#[derive(Default)]
struct Sent(Vec<u8>);

impl FrameSink for Sent {
    fn send_encoded(&mut self, frames: &[u8], _: CommCount) -> Result<(), SinkError> {
        self.0.extend_from_slice(frames);
        Ok(())
    }
}

/// Takes what a job says.
#[derive(Default)]
struct Said(Mutex<Vec<String>>);

impl JobLog for Said {
    fn message(&self, _: MessageType, text: &[u8]) {
        self.0.lock().unwrap().push(String::from_utf8_lossy(text).into_owned());
    }

    fn wants(&self, kind: MessageType) -> bool {
        !matches!(kind, MessageType::Saved | MessageType::Skipped)
    }
}

struct NoRegex;

impl RegexCompiler for NoRegex {
    fn compile(&self, _: &[u8], _: bool) -> Result<Box<dyn Regex>, String> {
        Err("no regular expressions here".to_owned())
    }
}

/// An Incremental that has no descriptor for any file once its walk is complete.
#[test]
fn a_file_without_a_descriptor_keeps_its_copy_of_an_earlier_job() {
    let folder = tempfile::tempdir().unwrap();
    let (gate, tree) = (folder.path().join("gate"), folder.path().join("tree"));
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("precious"), "data").unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &gate, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let mut parser = Parser::new(&NoRegex);
    for line in ["I", "O rM", "N", &format!("F {}", gate.display()), &format!("F {}", tree.display()), "N", "N"] {
        let _accepted = parser.line(line.as_bytes()).unwrap();
    }
    let walk = WalkSettings { incremental: true, ..WalkSettings::default() };
    let plan = BackupPlan { workers: 1, ..BackupPlan::new(Arc::new(parser.finish().unwrap()), walk) };
    let (progress, said, mut sent) = (Arc::<Progress>::default(), Said::default(), Sent::default());
    let before = getrlimit(Resource::Nofile);
    let examined = Arc::clone(&progress);
    thread::scope(|scope| {
        // The job reads the fifo first, which ends when this has closed it.
        scope.spawn(|| {
            while examined.files_examined() < 3 {
                thread::yield_now();
            }
            let _gate = OpenOptions::new().write(true).open(&gate).unwrap();
            // What is open stays so.
            setrlimit(Resource::Nofile, Rlimit { current: Some(3), ..before }).unwrap();
        });
        fd_backup::run(&plan, &progress, &said, &CancelToken::new(), &mut sent).unwrap();
    });
    setrlimit(Resource::Nofile, before).unwrap();
    let said = said.0.into_inner().unwrap();
    assert!(said.iter().any(|text| text.contains("/precious\": ERR=Too many open files")), "{said:?}");
    assert!(sent.0.windows(4).any(|part| part == b"gate"), "nothing was sent");
    assert!(!sent.0.windows(8).any(|part| part == b"precious"), "it has a record");
}
