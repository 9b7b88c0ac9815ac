//! The cost of the order of the stream: a backup of many empty files into nothing, by one worker
//! and by several. Without data, what is left is the walk, the exchange between walker, workers and
//! sender, and the records. `cargo bench -p fd-backup`; for another tree: the example `null_sink`.

#![expect(clippy::unwrap_used, reason = "a bench, not a program")]

use std::sync::Arc;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput};
use fd_backup::{BackupPlan, FrameSink, SinkError};
use fd_bsock::CommCount;
use fd_fileset::{Parser, Regex, RegexCompiler};
use fd_messages::{CancelToken, JobLog, MessageType, Progress};
use fd_walk::WalkSettings;

const DIRECTORIES: usize = 20;
const FILES_IN_EACH: usize = 500;

struct Nobody;

impl JobLog for Nobody {
    fn message(&self, _: MessageType, _: &[u8]) {}

    fn wants(&self, _: MessageType) -> bool {
        false
    }
}

/// Counts the bytes of the stream.
struct Nothing(usize);

impl FrameSink for Nothing {
    fn send_encoded(&mut self, frames: &[u8], _: CommCount) -> Result<(), SinkError> {
        self.0 += frames.len();
        Ok(())
    }
}

struct NoRegex;

impl RegexCompiler for NoRegex {
    fn compile(&self, _: &[u8], _: bool) -> Result<Box<dyn Regex>, String> {
        Err("no regular expressions here".to_owned())
    }
}

fn bench(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    for directory in 0..DIRECTORIES {
        let directory = folder.path().join(format!("directory-{directory}"));
        std::fs::create_dir(&directory).unwrap();
        for file in 0..FILES_IN_EACH {
            std::fs::write(directory.join(format!("file-{file}")), "").unwrap();
        }
    }
    let mut parser = Parser::new(&NoRegex);
    for line in ["I", "O ", "N", &format!("F {}", folder.path().display()), "N", "N"] {
        let _reaction = parser.line(line.as_bytes()).unwrap();
    }
    let fileset = Arc::new(parser.finish().unwrap());
    let mut group = criterion.benchmark_group("sequencer");
    let entries = DIRECTORIES * (FILES_IN_EACH + 1) + 1;
    group.throughput(Throughput::Elements(entries as u64));
    for workers in [1, 2, 4] {
        let plan = BackupPlan { workers, ..BackupPlan::new(Arc::clone(&fileset), WalkSettings::default()) };
        group.bench_function(BenchmarkId::new("workers", workers), |bencher| {
            bencher.iter(|| {
                let (progress, mut sink) = (Arc::<Progress>::default(), Nothing(0));
                fd_backup::run(&plan, &progress, &Nobody, &CancelToken::new(), &mut sink).unwrap();
                assert_eq!(usize::try_from(progress.files()).unwrap(), entries);
                assert!(sink.0 > entries * 60);
            });
        });
    }
    group.finish();
}

fn main() {
    // `cargo test --benches` only checks that it starts.
    if std::env::args().any(|arg| arg == "--bench") {
        let mut criterion = Criterion::default()
            .sample_size(10)
            .warm_up_time(Duration::from_millis(300))
            .measurement_time(Duration::from_secs(2))
            .configure_from_args();
        bench(&mut criterion);
        criterion.final_summary();
    }
}
