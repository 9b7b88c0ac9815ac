#![no_main]
//! A whole read session into a real directory: whatever the records say, in whatever order, the restore ends, and
//! nothing beside its place comes to be.
//!
//! The input is a list of records: two bytes of stream number, two of length, and so many bytes of data. A stream number
//! with its highest bit is a frame of its own, so that headers may be missing or wrong.

use std::path::Path;
use std::sync::OnceLock;

use fd_messages::{CancelToken, JobLog, MessageType, Progress};
use fd_records::{AttributesRecord, FileType};
use fd_restore::{OutputNames, RecordSource, Replace, RestorePlan, RestoreState, SourceError, run};
use libfuzzer_sys::fuzz_target;

struct Frames(std::vec::IntoIter<Vec<u8>>, Vec<u8>);

impl RecordSource for Frames {
    fn next_frame(&mut self) -> Result<Option<&[u8]>, SourceError> {
        match self.0.next() {
            Some(frame) => {
                self.1 = frame;
                Ok(Some(&self.1))
            }
            None => Ok(None),
        }
    }
}

struct Silent;

impl JobLog for Silent {
    fn message(&self, _kind: MessageType, _text: &[u8]) {}
    fn wants(&self, _kind: MessageType) -> bool {
        true
    }
}

fn frames(mut data: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while let Some((&[s0, s1, l0, l1], rest)) = data.split_first_chunk::<4>() {
        let (stream, length) = (u16::from_be_bytes([s0, s1]), usize::from(u16::from_be_bytes([l0, l1])));
        let (record, rest) = rest.split_at(length.min(rest.len()));
        data = rest;
        // Devices of the host are not for a fuzzer, and a fifo waits a minute for its reader.
        let file_type = AttributesRecord::parse(record).ok().and_then(|record| record.file_type());
        if matches!(file_type, Some(FileType::Special | FileType::Raw | FileType::Fifo)) {
            continue;
        }
        if stream & 0x8000 == 0 {
            frames.push(format!("rechdr 1 2 3 {stream} {}", record.len()).into_bytes());
        }
        frames.push(record.to_vec());
    }
    frames
}

/// A folder for this process, with the place in it.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<std::path::PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("ferrofd-fuzz-restore-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder to restore to");
        folder
    })
}

fuzz_target!(|data: &[u8]| {
    let place = folder().join("place");
    std::fs::create_dir_all(&place).expect("the place");
    let plan = RestorePlan {
        output: OutputNames::below(place.to_string_lossy().into_owned().into_bytes()),
        prelinks: false,
        replace: Replace::Always,
        check_digests: true,
        keys: None,
    };
    let (progress, cancel) = (Progress::default(), CancelToken::new());
    let mut state = RestoreState::new(&plan);
    let _outcome =
        run(&plan, &mut state, &progress, &Silent, &cancel, &mut Frames(frames(data).into_iter(), Vec::new()));
    for entry in std::fs::read_dir(folder()).expect("the folder") {
        assert_eq!(entry.expect("an entry").file_name(), "place");
    }
    std::fs::remove_dir_all(&place).expect("what was restored can be removed");
});
