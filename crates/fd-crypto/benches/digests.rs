//! The seven digests over small files and over full blocks, digests side by side, and batches, with
//! each set of instructions. `cargo bench -p fd-crypto`.

#![expect(clippy::unwrap_used, reason = "a bench, not a program")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput};
use fd_crypto::multi_buffer::{BLOCK, SideBySide};
use fd_crypto::processor::Processor;
use fd_crypto::{DigestBatch, DigestSet, Digester};
use fd_records::DigestKind;

fn bench(criterion: &mut Criterion) {
    let data = vec![0x5a; 1 << 20];
    let mut group = criterion.benchmark_group("digest");
    for (name, len) in [("1 KiB file", 1 << 10), ("16 KiB file", 1 << 14), ("1 MiB file", 1 << 20)] {
        let file = data.split_at(len).0;
        group.throughput(Throughput::Bytes(len as u64));
        for kind in DigestKind::ALL {
            let mut digester = Digester::new(kind).unwrap();
            group.bench_function(BenchmarkId::new(format!("{kind:?}"), name), |bencher| {
                bencher.iter(|| {
                    digester.restart();
                    for block in black_box(file).chunks(65536) {
                        digester.update(block);
                    }
                    digester.finish().unwrap()
                });
            });
        }
    }
    group.finish();
}

/// Parts of 128 KiB of so many messages.
fn side_by_side(criterion: &mut Criterion) {
    let data = vec![vec![0x5a; 128 << 10]; SideBySide::WIDEST];
    let mut group = criterion.benchmark_group("side by side");
    for (processor, kind) in Processor::variants().flat_map(|one| DigestKind::ALL.map(|kind| (one, kind))) {
        let Some(begun) = SideBySide::begin(DigestSet::EMPTY.with(kind), processor) else { continue };
        for count in 1..=SideBySide::width(processor) {
            group.throughput(Throughput::Bytes((count * (128 << 10)) as u64));
            group.bench_function(BenchmarkId::new(format!("{kind:?} {processor}"), count), |bencher| {
                let mut digests = vec![begun; count];
                let blocks: Vec<_> = data.iter().map(|data| data.as_chunks::<BLOCK>().0).collect();
                bencher.iter(|| SideBySide::advance(digests.iter_mut().zip(black_box(&blocks).iter().copied())));
            });
        }
    }
    group.finish();
}

/// 128 messages of 1 to 20 KiB.
fn batch(criterion: &mut Criterion) {
    let data = vec![0x5a; 20 << 10];
    let messages: Vec<&[u8]> = (0..128).map(|number| data.split_at(1000 + number * 7919 % 19_000).0).collect();
    let mut group = criterion.benchmark_group("batch");
    group.throughput(Throughput::Bytes(messages.iter().map(|message| message.len() as u64).sum()));
    for (processor, kind) in
        Processor::variants().flat_map(|one| [DigestKind::Md5, DigestKind::Sha256].map(|kind| (one, kind)))
    {
        let kinds = DigestSet::EMPTY.with(kind);
        let mut batch = DigestBatch::new(processor);
        group.bench_function(format!("{kind:?} {processor}"), |bencher| {
            bencher.iter(|| {
                for message in &messages {
                    batch.begin(kinds);
                    batch.push(black_box(message));
                    batch.end(kinds, ());
                }
                batch.finish(|(), values| black_box(values.get(kind)).map(drop).ok_or(())).unwrap();
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
            .warm_up_time(Duration::from_millis(200))
            .measurement_time(Duration::from_millis(600))
            .configure_from_args();
        bench(&mut criterion);
        side_by_side(&mut criterion);
        batch(&mut criterion);
        criterion.final_summary();
    }
}
