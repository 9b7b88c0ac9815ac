//! Digests made before their file's turn.

use std::cell::Cell;
use std::fs;
use std::thread;

use fd_crypto::Digester;
use fd_messages::CancelToken;

use super::*;
use crate::digests::streamed::StreamedDigests;
use crate::pipeline::worker_pool::start_digests_ahead;
use crate::shared::job::Job;
use crate::tests::support::{Bed, Log, fileset};

const BLOCK_LEN: usize = 65_536;
/// The kinds of the files in turn; in each there is one that can be made side by side.
const KINDS: [&[DigestKind]; 3] =
    [&[DigestKind::Md5], &[DigestKind::Md5, DigestKind::Sha256], &[DigestKind::Sha1, DigestKind::Md5]];

fn kinds(number: usize) -> DigestSet {
    KINDS[number % KINDS.len()].iter().copied().collect()
}

/// Some files of these lengths, with their contents, and what is to be made of them.
struct Files {
    directory: tempfile::TempDir,
    contents: Vec<Vec<u8>>,
}

impl Files {
    fn new(lens: &[usize]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let content = |(seed, len): (usize, &usize)| {
            (0..*len).map(|at| (at.wrapping_mul(31 + seed) >> 5).to_le_bytes()[0]).collect::<Vec<u8>>()
        };
        let contents: Vec<_> = lens.iter().enumerate().map(content).collect();
        for (number, content) in contents.iter().enumerate() {
            fs::write(directory.path().join(number.to_string()), content).unwrap();
        }
        Self { directory, contents }
    }

    fn push(&self, ahead: &DigestsAhead) -> Vec<Arc<FileAhead>> {
        let mut entries = entries(self.directory.path());
        entries.sort_by_key(name);
        assert_eq!(entries.len(), self.contents.len());
        let push = |entry: Entry| {
            let kinds = kinds(name(&entry));
            ahead.push(entry, kinds).unwrap()
        };
        entries.into_iter().map(push).collect()
    }
}

fn name(entry: &Entry) -> usize {
    let path = std::str::from_utf8(&entry.path).unwrap();
    path.rsplit('/').next().unwrap().parse().unwrap()
}

/// What a walk finds in a directory.
fn entries(directory: &std::path::Path) -> Vec<Entry> {
    let fileset = fileset(directory, &["I", "O M", "N", "F @", "N", "N"]);
    let mut entries = Vec::new();
    fd_walk::walk(&fileset, &fd_walk::WalkSettings::default(), &Going, &mut |event| {
        if let fd_walk::WalkEvent::Entry(entry) = event
            && entry.file_type == FileType::Regular
        {
            entries.push(entry);
        }
        fd_walk::Flow::Continue
    });
    entries
}

/// A walk that is not stopped.
struct Going;

impl fd_walk::WalkHost for Going {
    fn is_canceled(&self) -> bool {
        false
    }
}

fn digest(kind: DigestKind, data: &[u8]) -> Vec<u8> {
    let mut digester = Digester::new(kind).unwrap();
    digester.update(data);
    digester.finish().unwrap().as_bytes().to_vec()
}

/// What the stream gets of a file that is no longer what it was, in some way or other: its blocks
/// as they are read.
fn sent(number: usize, content: &[u8]) -> Vec<Vec<u8>> {
    let mut blocks: Vec<Vec<u8>> = content.chunks(BLOCK_LEN).map(<[u8]>::to_vec).collect();
    match number % 6 {
        0 => blocks[1][17] ^= 1,
        1 => blocks.truncate(2),
        2 => blocks.push(vec![9; 1000]),
        3 => blocks[0].truncate(100),
        4 => blocks.last_mut().unwrap()[0] ^= 1,
        _ => {}
    }
    blocks
}

#[test]
fn a_thread_without_files_does_not_hide_from_the_watchdog_that_all_others_wait() {
    let bed = Bed::new("M");
    let log = Log::new(Arc::default());
    let job = Job::new(bed.plan.clone(), Arc::clone(&bed.progress), CancelToken::new(), &log).unwrap();
    let job = Arc::new(job);
    let Some(ahead) = &job.digests_ahead else { return skip::test("needs AVX2") };
    let files = Files::new(&[3 * BLOCK_LEN; WORTH_IT]).push(ahead);
    start_digests_ahead(&job);
    // By then the thread has begun.
    let _first = files[0].mark(0);
    let stages = bed.progress.stages();
    let _sender = stages.take_part();
    let _waits = stages.wait();
    let standstill = stages.standstill();
    ahead.no_more();
    assert!(standstill.is_some());
}

/// In each variant of the processor that has the kernel.
fn each_variant(check: impl Fn(&DigestsAhead)) {
    let all: Vec<_> = Processor::variants().filter_map(|variant| DigestsAhead::new(BLOCK_LEN, variant)).collect();
    if all.is_empty() {
        return skip::test("needs AVX2");
    }
    all.iter().for_each(check);
}

/// A mark of 96 bytes for each block of 1,024 bytes of 1 GiB would take 100 MB.
#[test]
fn the_marks_of_all_files_ahead_take_few_megabytes() {
    each_variant(|ahead| {
        for record_len in [1024, 4096, BLOCK_LEN, 4 * BLOCK_LEN] {
            let Some(made) = DigestsAhead::new(record_len, ahead.processor) else { continue };
            let marks = (LEAD + LARGEST) / made.block_len as u64;
            assert!(marks * size_of::<Mark>() as u64 <= 2 << 20, "{record_len}");
        }
    });
}

#[test]
fn the_digest_is_that_of_the_data_sent() {
    each_variant(|ahead| {
        let lens: Vec<usize> = (0..24).map(|number| (3 + number / 4) * BLOCK_LEN + number % 5 * 1000).collect();
        let files = Files::new(&lens);
        let pushed = files.push(ahead);
        assert!(ahead.wants_thread() && !ahead.wants_thread(), "one thread");
        ahead.no_more();
        thread::scope(|scope| {
            scope.spawn(|| ahead.run(&|| false, || ()));
            let mut streamed = StreamedDigests::default();
            for (number, (file, content)) in pushed.into_iter().zip(&files.contents).enumerate() {
                let kinds = kinds(number);
                streamed.begin(kinds, ahead.follow(file, kinds)).unwrap();
                let blocks = sent(number, content);
                for block in &blocks {
                    streamed.update(block);
                }
                for kind in kinds.iter() {
                    let value = streamed.finish(kind).unwrap();
                    assert_eq!(value.as_bytes(), digest(kind, &blocks.concat()), "{kind} of file {number}");
                }
            }
        });
    });
}

/// All of equal length, so that no one is left alone.
#[test]
fn an_unchanged_file_is_not_digested_again() {
    each_variant(|ahead| {
        let files = Files::new(&[4 * BLOCK_LEN; SideBySide::WIDEST]);
        let pushed = files.push(ahead);
        assert!(ahead.wants_thread());
        ahead.no_more();
        thread::scope(|scope| {
            scope.spawn(|| ahead.run(&|| false, || ()));
            for (file, content) in pushed.into_iter().zip(&files.contents) {
                let kinds = file.kinds;
                let mut follower = ahead.follow(file, kinds).unwrap();
                for (number, block) in content.chunks(BLOCK_LEN).enumerate() {
                    assert!(follower.passes(block), "block {number}");
                }
                assert!(!follower.passes(&content[..BLOCK_LEN]), "there are no more marks");
            }
        });
    });
}

#[test]
fn fewer_than_three_files_are_left_to_their_workers() {
    each_variant(|ahead| {
        let files = Files::new(&[4 * BLOCK_LEN; WORTH_IT - 1]);
        let pushed = files.push(ahead);
        assert!(!ahead.wants_thread());
        for file in pushed {
            let kinds = file.kinds;
            assert!(ahead.follow(file, kinds).is_none());
        }
        assert!(ahead.state.lock().waiting.is_empty(), "they are not read");
    });
}

/// Another file that the thread reads may lie on storage that does not answer: here the thread
/// never comes at all.
#[test]
fn a_worker_gives_up_on_a_thread_that_makes_no_marks() {
    each_variant(|ahead| {
        let files = Files::new(&[4 * BLOCK_LEN; WORTH_IT]);
        let pushed = files.push(ahead);
        assert!(ahead.wants_thread());
        assert!(ahead.follow(Arc::clone(&pushed[0]), pushed[0].kinds).is_none());
        assert!(pushed[0].marks.lock().is_over, "it is not waited for again");
    });
}

/// Marks belong to the inode and the change time of the walk.
#[test]
fn a_file_that_was_replaced_or_changed_has_no_marks() {
    each_variant(|ahead| {
        let files = Files::new(&[4 * BLOCK_LEN; WORTH_IT]);
        let pushed = files.push(ahead);
        let path = |number: usize| files.directory.path().join(number.to_string());
        fs::write(path(WORTH_IT), &files.contents[0]).unwrap();
        fs::rename(path(WORTH_IT), path(0)).unwrap();
        let changed = fs::File::options().append(true).open(path(1)).unwrap();
        changed.set_len(files.contents[1].len() as u64 - 1).unwrap();
        assert!(ahead.wants_thread());
        ahead.no_more();
        ahead.run(&|| false, || ());
        for file in &pushed[..2] {
            assert!(file.marks.lock().of_blocks.is_empty() && file.marks.lock().is_over);
            assert!(ahead.follow(Arc::clone(file), file.kinds).is_none());
        }
    });
}

#[test]
fn a_worker_digests_itself_after_the_thread_has_ended() {
    each_variant(|ahead| {
        let files = Files::new(&[4 * BLOCK_LEN; WORTH_IT]);
        let pushed = files.push(ahead);
        assert!(ahead.wants_thread());
        let rounds = Cell::new(0);
        ahead.run(&|| rounds.get() == 2, || rounds.set(rounds.get() + 1));
        let content = &files.contents[0];
        let (first, other) = (Arc::clone(&pushed[0]), Arc::clone(&pushed[1]));
        let mut first = ahead.follow(first, pushed[0].kinds).unwrap();
        content.chunks(BLOCK_LEN).for_each(|block| first.update(block));
        assert!(!first.is_marked);
        let value = first.values().get(DigestKind::Md5).unwrap();
        assert_eq!(value.as_bytes(), digest(DigestKind::Md5, content));
        other.marks.lock().of_blocks.clear();
        assert!(ahead.follow(other, pushed[1].kinds).is_none());
    });
}
