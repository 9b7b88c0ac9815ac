//! Our codecs beside others, on blocks as a backup cuts them: `cargo bench -p fd-compress`.
//!
//! First a table: for each algorithm, level and kind of data the size and the speed of both,
//! measured in turns, each block by itself. `CODECS_DATA=DIR` takes the files of a folder, each a
//! kind of data, instead of its own data. Then criterion measures the same calls on some of the
//! data. `CODECS_TABLE=only` leaves that out, and `CODECS_ALGORITHM=lzo` every other algorithm.
//!
//! `lzo1x` is a port of the C library. `bench/codecs` compares with liblzo2 itself.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a bench, not a program"
)]

use std::cell::RefCell;
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use fd_compress::{Compressor, Decompressor};
use fd_records::{Compression, CompressionHeader};

/// What one `read()` of a backup takes.
const BLOCK: usize = 65536;
/// Of a kind of data, so much is measured, in whole blocks.
const SAMPLE: usize = 2 << 20;
/// Each block is measured in so many rounds, and the shortest time counts.
const ROUNDS: usize = 5;

struct Kind {
    name: String,
    data: Vec<u8>,
}

impl Kind {
    fn blocks(&self) -> impl Iterator<Item = &[u8]> {
        self.data.chunks(BLOCK)
    }
}

/// Text, a program, noise and zeros; or the files of `CODECS_DATA`.
fn kinds() -> Vec<Kind> {
    let kind = |name: &str, mut data: Vec<u8>| {
        data.truncate(data.len().min(SAMPLE) / BLOCK * BLOCK);
        Kind { name: name.to_owned(), data }
    };
    if let Some(folder) = std::env::var_os("CODECS_DATA") {
        let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        return files
            .iter()
            .map(|path| kind(&path.file_name().unwrap().to_string_lossy(), spread(&std::fs::read(path).unwrap())))
            .collect();
    }
    let mut text = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), &mut text);
    let mut state = 0x1234_5678_u32;
    let noise = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_be_bytes()[0]
    });
    vec![
        kind("text", text),
        kind("binary", spread(&std::fs::read(std::env::current_exe().unwrap()).unwrap())),
        kind("random", noise.take(SAMPLE).collect()),
        kind("zeros", vec![0; SAMPLE]),
    ]
}

/// Blocks from all parts of the data.
fn spread(data: &[u8]) -> Vec<u8> {
    let step = (data.len() / SAMPLE).max(1);
    data.chunks(BLOCK).step_by(step).flatten().copied().collect()
}

/// Our own sources and pages, in the order of their names.
fn sources(folder: &Path, text: &mut Vec<u8>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            sources(&path, text);
        } else if ["rs", "md", "toml"].iter().any(|wanted| path.extension().is_some_and(|ext| ext == *wanted)) {
            text.extend(std::fs::read(&path).unwrap());
        }
    }
}

/// The output of a codec, appended to an empty buffer. Returns the time if it is not that of the
/// call.
type Call = Box<dyn FnMut(&[u8], &mut Vec<u8>) -> Option<Duration>>;

/// A call that takes as long as it takes.
fn call(mut run: impl FnMut(&[u8], &mut Vec<u8>) + 'static) -> Call {
    Box::new(move |input, out| {
        run(input, out);
        None
    })
}

/// One way to compress a block and back.
struct Codec {
    algorithm: &'static str,
    level: i32,
    by: &'static str,
    compress: Call,
    decompress: Call,
}

fn ours(algorithm: &'static str, level: i32, mut compressor: Compressor) -> Codec {
    let mut decompressor = Decompressor::default();
    Codec {
        algorithm,
        level,
        by: "ours",
        compress: call(move |block, out| compressor.compress(block, out).unwrap()),
        decompress: call(move |record, out| match algorithm {
            "gzip" => decompressor.zlib(record, out).unwrap(),
            _ => decompressor.with_header(record, out).unwrap(),
        }),
    }
}

fn zlib(level: u8) -> Codec {
    let mut deflate = flate2::Compress::new(flate2::Compression::new(level.into()), true);
    let mut inflate = flate2::Decompress::new(true);
    Codec {
        algorithm: "gzip",
        level: level.into(),
        by: "zlib",
        compress: call(move |block, out| {
            deflate.reset();
            out.reserve(block.len() + block.len() / 100 + 100);
            deflate.compress_vec(block, out, flate2::FlushCompress::Finish).unwrap();
        }),
        decompress: call(move |record, out| {
            inflate.reset(true);
            out.reserve(BLOCK);
            inflate.decompress_vec(record, out, flate2::FlushDecompress::Finish).unwrap();
        }),
    }
}

/// The one-call interface with a kept context, as the reference describes what the stock daemon
/// would do.
fn zstd(level: i32) -> Codec {
    let mut compressor = zstd::bulk::Compressor::new(level).unwrap();
    let mut decompressor = zstd::bulk::Decompressor::new().unwrap();
    Codec {
        algorithm: "zstd",
        level,
        by: "libzstd",
        compress: call(move |block, out| {
            out.reserve(zstd::zstd_safe::compress_bound(block.len()));
            compressor.compress_to_buffer(block, out).unwrap();
        }),
        decompress: call(move |record, out| {
            out.reserve(BLOCK);
            decompressor.decompress_to_buffer(record, out).unwrap();
        }),
    }
}

fn lzo1x() -> Codec {
    Codec {
        algorithm: "lzo",
        level: 1,
        by: "lzo1x",
        compress: call(|block, out| *out = lzo1x::compress(block, lzo1x::CompressLevel::default())),
        decompress: call(|record, out| {
            out.resize(BLOCK, 0);
            lzo1x::decompress(record, out).unwrap();
        }),
    }
}

fn lzokay() -> Codec {
    Codec {
        algorithm: "lzo",
        level: 1,
        by: "lzokay",
        compress: call(|block, out| *out = lzokay_native::compress(block).unwrap()),
        decompress: call(|record, out| *out = lzokay_native::decompress_all(record, Some(BLOCK)).unwrap()),
    }
}

/// The C library, in a process of its own.
struct Liblzo2(Child);

impl Drop for Liblzo2 {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

impl Liblzo2 {
    /// If there is one; see `bench/codecs`.
    fn start() -> Option<Self> {
        let program = std::env::var_os("LIBLZO2_CONTESTANT")?;
        Some(Self(Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()))
    }

    fn ask(&mut self, direction: u8, limit: usize, input: &[u8], out: &mut Vec<u8>) -> Duration {
        let number = |value: usize| u32::try_from(value).unwrap().to_le_bytes();
        let request = [&[direction], &number(limit)[..], &number(input.len()), input].concat();
        let (to, from) = (self.0.stdin.as_mut().unwrap(), self.0.stdout.as_mut().unwrap());
        to.write_all(&request).unwrap();
        let (mut status, mut nanos, mut len) = ([0; 4], [0; 8], [0; 4]);
        from.read_exact(&mut status).unwrap();
        from.read_exact(&mut nanos).unwrap();
        from.read_exact(&mut len).unwrap();
        assert_eq!(u32::from_le_bytes(status), 0, "the C library refused");
        out.resize(usize::try_from(u32::from_le_bytes(len)).unwrap(), 0);
        from.read_exact(out).unwrap();
        Duration::from_nanos(u64::from_le_bytes(nanos))
    }
}

fn liblzo2() -> Option<Codec> {
    let library = Rc::new(RefCell::new(Liblzo2::start()?));
    let same = Rc::clone(&library);
    let mut ours = Compressor::new(Compression::Lzo).unwrap();
    Some(Codec {
        algorithm: "lzo",
        level: 1,
        by: "liblzo2",
        compress: Box::new(move |block, out| {
            // It must read our streams too; that is not part of the time.
            let (mut record, mut back) = (Vec::new(), Vec::new());
            ours.compress(block, &mut record).unwrap();
            library.borrow_mut().ask(b'd', block.len(), &record[CompressionHeader::LENGTH..], &mut back);
            assert!(back == block, "liblzo2 reads something else from our stream");
            Some(library.borrow_mut().ask(b'c', block.len() + block.len() / 16 + 67, block, out))
        }),
        decompress: Box::new(move |stream, out| Some(same.borrow_mut().ask(b'd', BLOCK, stream, out))),
    })
}

/// Those that are compared with each other, ours first.
fn contests() -> Vec<Vec<Codec>> {
    let mut lzo = vec![ours("lzo", 1, Compressor::new(Compression::Lzo).unwrap())];
    lzo.extend(liblzo2());
    lzo.extend([lzo1x(), lzokay()]);
    let mut all = vec![lzo];
    all.extend((1..=9).map(|level| {
        vec![ours("gzip", level.into(), Compressor::new(Compression::Gzip(level)).unwrap()), zlib(level)]
    }));
    all.extend(
        [1, 3, 10, 19]
            .map(|level| vec![ours("zstd", level, Compressor::new(Compression::Zstd(level)).unwrap()), zstd(level)]),
    );
    if let Ok(algorithm) = std::env::var("CODECS_ALGORITHM") {
        all.retain(|codecs| codecs[0].algorithm == algorithm);
    }
    all
}

#[derive(Default, Clone)]
struct Score {
    size: usize,
    compress: Duration,
    decompress: Duration,
}

/// The shortest of three tries, or of fewer if they take long, where chance has little effect.
fn time(call: &mut Call, input: &[u8], out: &mut Vec<u8>) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..3 {
        out.clear();
        let start = Instant::now();
        let told = call(black_box(input), out);
        best = best.min(told.unwrap_or_else(|| start.elapsed()));
        if best > Duration::from_millis(2) {
            break;
        }
    }
    best
}

/// All codecs over all blocks, in turns, so that other load affects them alike.
fn compete(codecs: &mut [Codec], kind: &Kind) -> Vec<Score> {
    let mut scores = vec![Score::default(); codecs.len()];
    let (mut record, mut out) = (Vec::new(), Vec::new());
    for block in kind.blocks() {
        let mut best = vec![[Duration::MAX; 2]; codecs.len()];
        for round in 0..ROUNDS {
            for ((codec, best), score) in codecs.iter_mut().zip(&mut best).zip(&mut scores) {
                best[0] = best[0].min(time(&mut codec.compress, block, &mut record));
                best[1] = best[1].min(time(&mut codec.decompress, &record, &mut out));
                if round == 0 {
                    score.size += record.len();
                    assert_eq!(out.get(..block.len()), Some(block), "{} {}", codec.algorithm, codec.by);
                }
            }
        }
        for (score, [compress, decompress]) in scores.iter_mut().zip(best) {
            score.compress += compress;
            score.decompress += decompress;
        }
    }
    scores
}

fn table(kinds: &[Kind]) {
    println!("| data | algorithm | level | by | ratio | to the first | compress MB/s | decompress MB/s |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for kind in kinds {
        for mut codecs in contests() {
            let scores = compete(&mut codecs, kind);
            let rate = |time: Duration| kind.data.len() as f64 / 1e6 / time.as_secs_f64();
            for (codec, score) in codecs.iter().zip(&scores) {
                println!(
                    "| {} | {} | {} | {} | {:.4} | {:.3} | {:.0} | {:.0} |",
                    kind.name,
                    codec.algorithm,
                    codec.level,
                    codec.by,
                    score.size as f64 / kind.data.len() as f64,
                    scores[0].size as f64 / score.size as f64,
                    rate(score.compress),
                    rate(score.decompress),
                );
            }
        }
    }
}

/// One pass over 16 blocks of each kind.
fn criterion(kinds: &[Kind]) {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600))
        .configure_from_args();
    for mut codecs in contests() {
        let (algorithm, level) = (codecs[0].algorithm, codecs[0].level);
        if algorithm == "gzip" && ![1, 6, 9].contains(&level) {
            continue;
        }
        let mut group = criterion.benchmark_group(format!("{algorithm}{level}"));
        for kind in kinds {
            let blocks: Vec<&[u8]> = kind.blocks().take(16).collect();
            group.throughput(Throughput::Bytes(blocks.iter().map(|block| block.len() as u64).sum()));
            // The time of a pipe is not that of the C library.
            for codec in codecs.iter_mut().filter(|codec| codec.by != "liblzo2") {
                let records: Vec<Vec<u8>> = blocks
                    .iter()
                    .map(|block| {
                        let mut record = Vec::new();
                        (codec.compress)(block, &mut record);
                        record
                    })
                    .collect();
                let mut out = Vec::with_capacity(2 * BLOCK);
                group.bench_function(BenchmarkId::new(format!("compress {}", codec.by), &kind.name), |bencher| {
                    bencher.iter(|| {
                        for block in &blocks {
                            out.clear();
                            (codec.compress)(block, &mut out);
                        }
                    });
                });
                group.bench_function(BenchmarkId::new(format!("decompress {}", codec.by), &kind.name), |bencher| {
                    bencher.iter(|| {
                        for record in &records {
                            out.clear();
                            (codec.decompress)(record, &mut out);
                        }
                    });
                });
            }
        }
        group.finish();
    }
    criterion.final_summary();
}

fn main() {
    // `cargo test --benches` only checks that it starts.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let kinds = kinds();
    table(&kinds);
    if std::env::var("CODECS_TABLE").is_ok_and(|value| value == "only") {
        return;
    }
    criterion(&kinds);
}
