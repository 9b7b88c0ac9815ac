//! The cost of a FileSet with many patterns: 100,000 paths against 1,000 wild-cards, 1,000
//! expressions, and half of each, matched as in a walk, and one by one as in the stock daemon:
//! `cargo bench -p fd-walk`.
//!
//! For the time that both daemons need for an estimate with such a FileSet: `cargo run --release -p
//! bed -- matching`.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench, not a program")]

use std::ffi::CStr;
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput};
use fd_fileset::{FileSet, Parser, Regex, RegexCompiler, Wildcard, WildcardFlags};
use fd_os::regex::{PosixRegex, RegexOptions};

const PATTERNS: usize = 1000;
const PATHS: usize = 100_000;

struct Posix;
struct Compiled(PosixRegex);

impl RegexCompiler for Posix {
    fn compile(&self, pattern: &[u8], ignore_case: bool) -> Result<Box<dyn Regex>, String> {
        let options = RegexOptions { ignore_case, newline: false };
        Ok(Box::new(Compiled(PosixRegex::new(pattern, options).map_err(|error| error.to_string())?)))
    }
}

impl Regex for Compiled {
    fn is_match(&self, text: &CStr) -> bool {
        self.0.is_match_c(text).is_ok_and(|found| found)
    }

    fn memory(&self) -> usize {
        0
    }
}

/// Paths of homes with projects. No pattern matches any of them, so each is compared with all
/// patterns.
fn paths() -> Vec<String> {
    (0..PATHS)
        .map(|at| {
            let (user, project, file) = (at % 97, at / 97 % 211, at % 1009);
            let kind = ["c", "o", "txt", "html", "jpeg", "log"][at % 6];
            format!("/home/user{user}/projects/project-{project}/src/module{}/file_{file}.{kind}", at % 13)
        })
        .collect()
}

/// The wild-cards and the expressions.
fn patterns() -> (Vec<String>, Vec<String>) {
    let wild = (0..PATTERNS).map(|at| match at % 4 {
        0 => format!("*.ext{at}"),
        1 => format!("/home/*/cache-{at}/*"),
        2 => format!("*/build-{at}/*.o"),
        _ => format!("/srv/data{at}/[a-f]*"),
    });
    let regex = (0..PATTERNS).map(|at| match at % 4 {
        0 => format!("\\.bak{at}$"),
        1 => format!("^/home/[^/]+/\\.trash{at}/"),
        2 => format!("/tmp-{at}/.*\\.(o|a|so)$"),
        _ => format!("^/srv/(www|ftp){at}/"),
    });
    (wild.collect(), regex.collect())
}

fn fileset(wild: &[String], regex: &[String]) -> FileSet {
    let mut parser = Parser::new(&Posix);
    let mut lines = "I\nO e\n".to_owned();
    for pattern in wild {
        writeln!(lines, "WF {pattern}").unwrap();
    }
    for pattern in regex {
        writeln!(lines, "RF {pattern}").unwrap();
    }
    lines.push_str("N\nF /home\nN");
    for line in lines.lines() {
        let _reaction = parser.line(line.as_bytes()).unwrap();
    }
    parser.finish().unwrap()
}

fn bench(criterion: &mut Criterion) {
    let (wild, regex) = patterns();
    let paths = paths();
    let mut group = criterion.benchmark_group("matching");
    group.throughput(Throughput::Elements(paths.len() as u64));
    let half = [&wild[..PATTERNS / 2], &regex[..PATTERNS / 2]];
    for (name, wild, regex) in [("wild", &wild[..], &[][..]), ("regex", &[], &regex), ("both", half[0], half[1])] {
        let fileset = fileset(wild, regex);
        group.bench_function(format!("ours {name}"), |bencher| {
            bencher.iter(|| {
                let accepted = paths
                    .iter()
                    .filter(|path| fileset.judge(&fileset.includes()[0], black_box(path.as_bytes()), false).accepted);
                assert_eq!(accepted.count(), PATHS);
            });
        });
    }
    // One by one, a hundredth of the paths takes long enough.
    let some: Vec<_> = paths.iter().step_by(100).map(String::as_bytes).collect();
    group.throughput(Throughput::Elements(some.len() as u64));
    let cards: Vec<_> = wild.iter().map(|card| Wildcard::new(card.as_bytes(), WildcardFlags::default())).collect();
    group.bench_function("one by one wild", |bencher| {
        bencher.iter(|| some.iter().filter(|path| cards.iter().any(|card| card.is_match(black_box(path)))).count());
    });
    let expressions: Vec<_> =
        regex.iter().map(|text| PosixRegex::new(text.as_bytes(), RegexOptions::default()).unwrap()).collect();
    group.bench_function("one by one regex", |bencher| {
        bencher.iter(|| some.iter().filter(|path| expressions.iter().any(|one| one.is_match(black_box(path)))).count());
    });
    group.finish();
    criterion.bench_function("matching/compile 1000 patterns", |bencher| bencher.iter(|| fileset(half[0], half[1])));
}

fn main() {
    // `cargo test --benches` only checks that it starts.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    bench(&mut criterion);
    criterion.final_summary();
}
