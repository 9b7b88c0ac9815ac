//! Frames made and read, in clear and with LZ4: attribute records and full blocks.
//! `cargo bench -p fd-bsock`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a bench, not a program")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput};
use fd_bsock::{Encoder, Parsed, decompress, parse};

/// Frames in one buffer, as one write to the socket carries them.
const FRAMES: usize = 64;

/// A payload that compresses to about a third: a list of names and numbers.
fn payload(len: usize) -> Vec<u8> {
    let lines = (0_u32..).flat_map(|at| {
        let number = at.wrapping_mul(2_654_435_761);
        format!("/usr/share/doc/package-{}/file-{number:x}.txt\n", number >> 24).into_bytes()
    });
    lines.take(len).collect()
}

fn frames(payload: &[u8], compress: bool) -> Vec<u8> {
    let (mut encoder, mut out) = (Encoder::new(compress), Vec::new());
    for _ in 0..FRAMES {
        encoder.data(&mut out, payload).unwrap();
    }
    out
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("frames");
    for (name, len) in [("attributes", 150), ("block", 65536)] {
        let payload = payload(len);
        group.throughput(Throughput::Bytes((FRAMES * len) as u64));
        for (kind, compress) in [("clear", false), ("lz4", true)] {
            let mut encoder = Encoder::new(compress);
            let mut out = Vec::new();
            group.bench_function(format!("make {name} {kind}"), |bencher| {
                bencher.iter(|| {
                    out.clear();
                    for _ in 0..FRAMES {
                        encoder.data(&mut out, black_box(&payload)).unwrap();
                    }
                });
            });
            let buffer = frames(&payload, compress);
            let mut plain = Vec::new();
            group.bench_function(format!("read {name} {kind}"), |bencher| {
                bencher.iter(|| {
                    let mut rest = black_box(buffer.as_slice());
                    while let Some((payload, compressed, consumed)) = next(rest) {
                        if compressed {
                            plain.clear();
                            decompress(payload, &mut plain).unwrap();
                        }
                        black_box((payload, &plain));
                        rest = rest.split_at(consumed).1;
                    }
                    assert!(rest.is_empty());
                });
            });
        }
    }
    group.finish();
}

fn next(buffer: &[u8]) -> Option<(&[u8], bool, usize)> {
    match parse(buffer).unwrap() {
        Parsed::Data { payload, compressed, consumed } => Some((payload, compressed, consumed)),
        Parsed::Need(_) => None,
        other => panic!("{other:?}"),
    }
}

fn main() {
    // `cargo test --benches` only checks that it starts.
    if std::env::args().any(|arg| arg == "--bench") {
        let mut criterion = Criterion::default()
            .sample_size(20)
            .warm_up_time(Duration::from_millis(300))
            .measurement_time(Duration::from_secs(1))
            .configure_from_args();
        bench(&mut criterion);
        criterion.final_summary();
    }
}
