//! The seven digests over small files and over full blocks. `cargo bench -p fd-crypto`.

#![expect(clippy::unwrap_used, reason = "a bench, not a program")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput};
use fd_crypto::Digester;
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

fn main() {
    // `cargo test --benches` only checks that it starts.
    if std::env::args().any(|arg| arg == "--bench") {
        let mut criterion = Criterion::default()
            .sample_size(10)
            .warm_up_time(Duration::from_millis(200))
            .measurement_time(Duration::from_millis(600))
            .configure_from_args();
        bench(&mut criterion);
        criterion.final_summary();
    }
}
