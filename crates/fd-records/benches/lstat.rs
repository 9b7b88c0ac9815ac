//! LStat texts and attribute records, made and read: once for each entry of a job. `cargo bench -p
//! fd-records`.

#![expect(clippy::unwrap_used, reason = "a bench, not a program")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput};
use fd_records::{Attributes, AttributesRecord, FileType, LStat};

/// The reference's example (04 §6.3).
const LSTAT: &[u8] = b"P4A mwnN IGk B A A A P BAA I BlU/EA BlU/EA BrAQOo A A C";

fn bench(criterion: &mut Criterion) {
    let lstat = LStat::decode(LSTAT).unwrap();
    let attributes = Attributes {
        file_index: 123_456,
        file_type: FileType::Regular,
        name: b"/usr/share/doc/some-package/examples/a-file-with-a-usual-name.txt",
        lstat,
        link: b"",
        attr_ex: b"",
        delta_seq: 0,
    };
    let mut record = Vec::new();
    attributes.encode(&mut record);
    let mut group = criterion.benchmark_group("lstat");
    group.throughput(Throughput::Elements(1));
    let mut out = Vec::new();
    group.bench_function("encode", |bencher| {
        bencher.iter(|| {
            out.clear();
            black_box(&lstat).encode(&mut out);
        });
    });
    assert_eq!(out, LSTAT);
    group.bench_function("decode", |bencher| bencher.iter(|| LStat::decode(black_box(LSTAT)).unwrap()));
    group.bench_function("make an attribute record", |bencher| {
        bencher.iter(|| {
            out.clear();
            black_box(&attributes).encode(&mut out);
        });
    });
    group.bench_function("read an attribute record", |bencher| {
        bencher.iter(|| black_box(AttributesRecord::parse(black_box(&record)).unwrap().file_type()));
    });
    group.finish();
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
