//! Measures the pipeline alone: backs up a directory into nothing and prints how long that took.
//!
//! `cargo build --release -p fd-backup --example null_sink`, then `/usr/bin/time -v
//! target/release/examples/null_sink DIRECTORY [LETTERS [WORKERS [lz4]]]`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use fd_backup::{BackupPlan, FrameSink, SinkError};
use fd_bsock::CommCount;
use fd_fileset::{Parser, Regex, RegexCompiler};
use fd_messages::{CancelToken, JobLog, MessageType, Progress};
use fd_walk::WalkSettings;

#[derive(Default)]
struct Nothing {
    bytes: usize,
    calls: usize,
}

impl FrameSink for Nothing {
    fn send_encoded(&mut self, frames: &[u8], _: CommCount) -> Result<(), SinkError> {
        self.bytes += frames.len();
        self.calls += 1;
        Ok(())
    }
}

struct Terminal;

impl JobLog for Terminal {
    fn message(&self, kind: MessageType, text: &[u8]) {
        eprint!("{kind:?}: {}", String::from_utf8_lossy(text));
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

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("which directory?")?;
    let letters = arguments.next().unwrap_or_else(|| "M".to_owned());
    let workers = arguments.next().map_or(Ok(2), |text| text.parse())?;
    let comm_compression = arguments.next().is_some();
    let mut parser = Parser::new(&NoRegex);
    for line in ["I", &format!("O {letters}"), "N", &format!("F {directory}"), "N", "N"] {
        let _accepted = parser.line(line.as_bytes())?;
    }
    let fileset = Arc::new(parser.finish()?);
    let plan = BackupPlan { workers, comm_compression, ..BackupPlan::new(fileset, WalkSettings::default()) };
    let progress = Arc::<Progress>::default();
    let mut sink = Nothing::default();
    let started = Instant::now();
    fd_backup::run(&plan, &progress, &Terminal, &CancelToken::new(), &mut sink)?;
    let wall = started.elapsed().as_secs_f64();
    println!(
        "files {} read {} sent {} calls {} wall {wall:.3}",
        progress.files(),
        progress.read_bytes(),
        sink.bytes,
        sink.calls,
    );
    Ok(())
}
