//! A restore onto storage whose clock is behind this host's.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Mutex;

use fd_crypto::processor::Processor;
use fd_messages::{CancelToken, JobLog, MessageType, Progress};
use fd_records::{Attributes, FileType, LStat, Replace, Stat, Stream};

use super::{RestoreState, run};
use crate::names::OutputNames;
use crate::plan::RestorePlan;
use crate::stream::{RecordSource, SourceError};
use crate::tree::LinkRule;

struct Records(Vec<Vec<u8>>, usize);

impl RecordSource for Records {
    fn next_frame(&mut self) -> Result<Option<&[u8]>, SourceError> {
        self.1 += 1;
        Ok(self.0.get(self.1 - 1).map(Vec::as_slice))
    }
}

impl Records {
    fn put(&mut self, index: i32, stream: Stream, record: &[u8]) {
        let header = format!("rechdr 1 1795226230 {index} {} {}", stream.number(), record.len());
        self.0.extend([header.into_bytes(), record.to_vec()]);
    }

    fn file(&mut self, index: i32, stream: Stream, name: &[u8], mode: u32) {
        let (uid, gid) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
        let stat = Stat { mode, nlink: 1, uid, gid, size: 4, mtime: 1_000_000_000, ..Stat::default() };
        let mut record = Vec::new();
        Attributes {
            file_index: index,
            file_type: FileType::Regular,
            name,
            lstat: LStat { stat, data_stream: Stream::FILE_DATA, ..LStat::default() },
            link: b"",
            attr_ex: b"",
            delta_seq: 0,
        }
        .encode(&mut record);
        self.put(index, stream, &record);
    }
}

#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl JobLog for Log {
    fn message(&self, kind: MessageType, text: &[u8]) {
        self.0.lock().unwrap().push(format!("{kind:?} {}", String::from_utf8_lossy(text)));
    }

    fn wants(&self, kind: MessageType) -> bool {
        kind != MessageType::Restored
    }
}

/// What the job has made there looks older than the job.
#[test]
fn what_the_job_has_made_where_a_clock_is_behind_gets_its_updates() {
    for depth in [1, 16] {
        let folder = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(folder.path()).unwrap();
        let mut records = Records(Vec::new(), 0);
        for (index, name) in [(1, b"/f"), (2, b"/g")] {
            records.file(index, Stream::ATTRIBUTES, name, 0o100_644);
            records.put(index, Stream::FILE_DATA, b"data");
        }
        records.file(3, Stream::ATTRIBUTES_UPDATE, b"/f", 0o100_600);
        records.file(4, Stream::ATTRIBUTES_UPDATE, b"/g", 0o100_600);
        let plan = RestorePlan {
            output: OutputNames::below(place.to_str().unwrap().as_bytes().to_vec()),
            prelinks: false,
            replace: Replace::Never,
            check_digests: true,
            digests: None,
            keys: None,
            processor: Processor::chosen(),
            writing_depth: core::num::NonZeroU16::new(depth),
            plugins: None,
        };
        let mut state = RestoreState::new(&plan, LinkRule::from_now());
        state.directories.be_ahead_of_storage(3600);
        let log = Log::default();
        let outcome = run(&plan, &mut state, &Progress::default(), &log, &CancelToken::new(), &mut records).unwrap();
        assert_eq!((log.0.into_inner().unwrap(), outcome.queued.len()), (Vec::<String>::new(), 0), "{depth}");
        for name in ["f", "g"] {
            assert_eq!(fs::metadata(place.join(name)).unwrap().permissions().mode(), 0o100_600, "{depth}");
        }
    }
}
