//! Levels, tags, and the trace file.

use super::*;

fn debug() -> Debug {
    Debug::new(LevelFilter::WARN, None, b"", false, false)
}

fn wanted(level: i64, trace: i64, hangup: i64, options: &str, tags: &str) -> SetDebug {
    let (options, tags) = (options.as_bytes().to_vec(), tags.as_bytes().to_vec());
    SetDebug { level, trace, hangup, blowup: -1, options, tags }
}

#[test]
fn negative_values_change_nothing() {
    let debug = debug();
    let answer = debug.change(&wanted(20, -1, 3, "th", "network,protocol"));
    assert_eq!((answer.level, answer.trace, answer.hangup, answer.blowup), (20, 0, 3, 0));
    assert!(debug.has_timestamps() && debug.has_thread_ids());
    assert_eq!(debug.tag_names(), ["network", "protocol"]);
    let answer = debug.change(&wanted(-7, -1, -1, "TH", "nonsense"));
    assert_eq!((answer.level, answer.hangup, answer.tags.len()), (-7, 3, 0));
    assert_eq!((debug.level(), debug.tag_names().len()), (20, 0));
    assert!(!debug.has_timestamps() && !debug.has_thread_ids());
}

#[test]
fn blowup_is_kept_and_shown() {
    let debug = debug();
    let answer = debug.change(&SetDebug { blowup: 5, ..wanted(1, -1, -1, "", "") });
    assert_eq!(answer.blowup, 5);
    assert_eq!(debug.change(&wanted(1, -1, -1, "", "")).blowup, 5);
}

#[test]
fn tags_are_added_and_taken_away() {
    assert_eq!(parse_tags(b""), Some(0));
    assert_eq!(parse_tags(b"NETWORK,,lock"), Some(1 << 29 | 1 << 30));
    assert_eq!(parse_tags(b"cloud+lock-lock"), Some(1 << 17));
    assert_eq!(parse_tags(b"all,!network"), Some(ALL_TAGS & !(1 << 29)));
    assert_eq!(parse_tags(b"!all"), Some(0));
    assert_eq!(parse_tags(b"network,"), Some(1 << 29));
    let told = |text: &[u8]| String::from_utf8(tag_lines(text).concat()).unwrap();
    let line = |rest: &str| format!("bacula-fd: message.c:2024-0 {rest}\n");
    assert_eq!(told(b"lock,"), line("add=1 tag=lock level=0"));
    let signs = ["add=1 tag=lock level=0", "add=1 tag= level=1073741824", "add=0 tag=sql level=1073741824"];
    assert_eq!(told(b"lock,!sql"), signs.map(line).concat());
    assert_eq!(told(b"lock1,sql"), "bacula-fd: message.c:2112-0 invalid 1\n");
    assert_eq!((parse_tags(b"foo"), parse_tags(b"lock;")), (None, None));
}

#[test]
fn the_tag_all_is_listed_when_none_of_its_bits_is_missing() {
    let debug = debug();
    debug.change(&wanted(0, 0, -1, "", "all"));
    assert_eq!(debug.tag_names(), TAGS.map(|(name, _)| name));
    assert_eq!(debug.tag_names().last(), Some(&"all"));
    debug.change(&wanted(0, 0, -1, "", "all,!sql"));
    let names = debug.tag_names();
    assert!(names.len() == 11 && !names.contains(&"sql") && !names.contains(&"all"), "{names:?}");
}

#[test]
fn the_trace_file_is_appended_to_and_truncated_on_demand() {
    let directory = std::env::temp_dir().join(format!("ferrofd-trace-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let debug = debug();
    debug.settle("x-fd", &directory);
    debug.change(&wanted(1, 1, -1, "", ""));
    debug.write(b"one\n");
    debug.write(b"two\n");
    let path = directory.join("x-fd.trace");
    assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
    debug.change(&wanted(1, -1, -1, "c", ""));
    debug.write(b"three\n");
    assert_eq!(std::fs::read(&path).unwrap(), b"three\n");
    debug.change(&wanted(1, 1, -1, "c", ""));
    debug.write(b"four\n");
    assert_eq!(std::fs::read(&path).unwrap(), b"four\n");
    // A file that is not open is not truncated.
    debug.change(&wanted(1, 0, -1, "c", ""));
    debug.change(&wanted(1, 1, -1, "c", ""));
    debug.write(b"five\n");
    assert_eq!(std::fs::read(&path).unwrap(), b"four\nfive\n");
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_trace_file_that_can_not_be_truncated_is_told_and_holds_nothing_up() {
    let debug = std::sync::Arc::new(debug());
    debug.place.lock().file = Some(File::open("/dev/null").unwrap());
    let (told, is_told) = std::sync::mpsc::channel();
    let log = std::sync::Arc::clone(&debug);
    // As the daemon's own log does for each line.
    let write = move || {
        told.send(log.name()).unwrap();
        io::sink()
    };
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(write).finish();
    tracing::subscriber::with_default(subscriber, || debug.change(&wanted(1, -1, -1, "c", "")));
    assert_eq!(is_told.try_iter().collect::<Vec<_>>(), ["bacula-fd"]);
}

#[test]
fn a_link_or_fifo_in_place_of_the_trace_file_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path();
    let (path, victim) = (directory.join("x-fd.trace"), directory.join("victim"));
    std::fs::write(&victim, "precious").unwrap();
    for is_link in [true, false] {
        if is_link {
            std::os::unix::fs::symlink(&victim, &path).unwrap();
        } else {
            nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        }
        let debug = debug();
        debug.settle("x-fd", directory);
        debug.change(&wanted(1, 1, -1, "", ""));
        debug.write(b"one\n");
        assert_eq!(std::fs::read(&path).unwrap(), b"one\n");
        std::fs::remove_file(&path).unwrap();
    }
    assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
}

#[test]
fn levels_choose_the_filter() {
    let debug = debug();
    assert_eq!(debug.filter(), LevelFilter::WARN);
    for (level, filter) in [(1, LevelFilter::INFO), (150, LevelFilter::DEBUG), (999, LevelFilter::TRACE)] {
        debug.change(&wanted(level, -1, -1, "", ""));
        assert_eq!(debug.filter(), filter);
    }
}
