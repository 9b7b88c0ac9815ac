//! The commands beside backup and restore: debugging, statistics, queries, snapshots, the network test (reference 02
//! §4.5, §4.20 to §4.22, §4.26).

use fd_bsock::scan::{Lenient, Strict};

use super::{Command, Refusal, Word};
use crate::texts::{self, BadCommand};

/// `setdebug=`: what is to change. The answer repeats it, with what is in force now.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SetDebug {
    /// Debug level; a negative number leaves it.
    pub level: i64,
    /// 1: into the trace file, 0: not; a negative number leaves it.
    pub trace: i64,
    /// Test aid; -1 leaves it.
    pub hangup: i64,
    /// Test aid; -1 leaves it.
    pub blowup: i64,
    /// Letters, at most 55.
    pub options: Vec<u8>,
    /// Comma list of tags, at most 511 bytes.
    pub tags: Vec<u8>,
}

/// How `statistics` writes a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricFormat {
    /// `NAME=VALUE`, also for unknown words.
    Simple,
    /// With type, unit and description.
    Full,
    /// A JSON array.
    Json,
}

/// What a `snapshot` command wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SnapshotWish {
    /// How long snapshots are kept.
    Retention,
    /// The snapshots of this host.
    List,
    /// One snapshot's state and size.
    Query,
    /// What is in a snapshot.
    Content,
    /// A snapshot is to be deleted.
    Delete,
    /// Old snapshots are to be deleted.
    Prune,
}

impl Command {
    /// Reads the values of one of the commands of this module.
    pub(super) fn parse_tool(word: Word, frame: &[u8]) -> Result<Self, Refusal> {
        let reply = |text: &[u8]| Refusal { fatal: None, reply: Some(text.to_vec()) };
        match word {
            Word::SetDebug => set_debug(frame).map(Self::SetDebug).ok_or_else(|| reply(&texts::bad_setdebug(frame))),
            Word::Statistics => statistics(frame).ok_or_else(|| {
                let fatal = texts::bad_command(BadCommand::Statistics, frame);
                Refusal { fatal: Some(fatal), reply: Some(texts::BAD_STATISTICS.to_vec()) }
            }),
            Word::Query => query(frame).ok_or_else(|| reply(texts::BAD_QUERY)),
            Word::TestNetwork => Ok(test_network(frame)),
            Word::Snapshot => snapshot(frame).map(Self::Snapshot).ok_or_else(|| reply(texts::BAD_SNAPSHOT)),
            other => Ok(Self::Plain(other)),
        }
    }
}

fn set_debug(frame: &[u8]) -> Option<SetDebug> {
    let mut scan = Lenient::new(frame);
    let level = scan.text("setdebug=")?.i64();
    let trace = scan.text(" trace=")?.i64();
    let mut wanted = SetDebug { level, trace, hangup: -1, blowup: -1, ..SetDebug::default() };
    // The older forms stop at some point; what stands there counts.
    let _older_form = (|| {
        wanted.hangup = scan.text(" hangup=")?.i64();
        wanted.blowup = scan.text(" blowup=")?.i64();
        wanted.options = scan.text(" options=")?.word(55).to_vec();
        wanted.tags = scan.text(" tags=")?.word(511).to_vec();
        Some(())
    })();
    Some(wanted)
}

fn statistics(frame: &[u8]) -> Option<Command> {
    let format = |word: &[u8]| match word {
        b"full" => MetricFormat::Full,
        b"json" => MetricFormat::Json,
        _ => MetricFormat::Simple,
    };
    if let Some(scan) = Lenient::new(frame).text("statistics all format=") {
        return Some(Command::Statistics { format: format(scan.word(127)), names: None });
    }
    let mut scan = Lenient::new(frame);
    let format = format(scan.text("statistics format=")?.word(127));
    // A name counts if something stands behind it.
    let rest = scan.rest();
    let names = rest.split_inclusive(u8::is_ascii_whitespace).filter_map(|name| {
        let name = name.split_last().filter(|(last, _)| last.is_ascii_whitespace())?.1;
        (!name.is_empty()).then(|| name.to_vec())
    });
    Some(Command::Statistics { format, names: Some(names.collect()) })
}

fn query(frame: &[u8]) -> Option<Command> {
    let (mut parameter, mut plugin, mut value) = (None, None, Vec::new());
    let mut rest = frame.strip_prefix(b"query")?;
    loop {
        rest = rest.trim_ascii_start();
        let Some(equal) = rest.iter().position(|byte| *byte == b'=') else { break };
        let (key, behind) = rest.split_at_checked(equal)?;
        let (text, behind) = quoted(behind.get(1..)?);
        match key {
            b"parameter" => parameter = Some(text),
            b"plugin" => plugin = Some(text),
            b"value" => value = text,
            _ => {}
        }
        rest = behind;
    }
    Some(Command::Query { parameter: parameter?, plugin: plugin?, value })
}

/// A value in double quotes, `\` before any byte taken literally, or a bare word; and what stands behind it.
fn quoted(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let Some(inner) = text.strip_prefix(b"\"") else {
        let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
        let (word, rest) = text.split_at_checked(end).unwrap_or((text, &[]));
        return (word.to_vec(), rest);
    };
    let (mut value, mut rest) = (Vec::new(), inner);
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match (byte, behind.split_first()) {
            (b'"', _) => break,
            (b'\\', Some((&next, behind))) => {
                value.push(next);
                rest = behind;
            }
            _ => value.push(byte),
        }
    }
    (value, rest)
}

fn test_network(frame: &[u8]) -> Command {
    let mut scan = Strict::new(frame);
    let bytes = scan.text("testnetwork bytes=").and_then(Strict::u64);
    let rounds = scan.text(" rtt=").and_then(Strict::u64).unwrap_or(0);
    Command::TestNetwork(bytes.map(|bytes| (bytes, rounds)))
}

fn snapshot(frame: &[u8]) -> Option<SnapshotWish> {
    if frame.starts_with(b"snapshot list") {
        return Some(SnapshotWish::List);
    }
    let form = |head: &str, fields: &[&str]| {
        let mut scan = Lenient::new(frame);
        scan.text(head)?;
        for field in fields {
            scan.text(field)?.word(1000);
        }
        Some(())
    };
    let named = [" name=", " volume=", " device=", " tdate=", " type="];
    let with_path = [" name=", " volume=", " device=", " tdate=", " type=", " path="];
    let forms: [(SnapshotWish, &str, &[&str]); 5] = [
        (SnapshotWish::Retention, "snapshot ", &["retention="]),
        (SnapshotWish::Query, "snapshot query", &named),
        (SnapshotWish::Content, "snapshot ls", &with_path),
        (SnapshotWish::Delete, "snapshot del", &named),
        (SnapshotWish::Prune, "snapshot prune", &[" volume=", " type="]),
    ];
    forms.into_iter().find(|(_, head, fields)| form(head, fields).is_some()).map(|(wish, ..)| wish)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(frame: &[u8]) -> Result<Command, Refusal> {
        Command::parse(Word::of(frame).expect("a known command"), frame)
    }

    fn reply(frame: &[u8]) -> String {
        String::from_utf8(parse(frame).expect_err("refused").reply.unwrap_or_default()).unwrap()
    }

    #[test]
    fn debugging() {
        let wanted = |frame: &[u8]| match parse(frame) {
            Ok(Command::SetDebug(wanted)) => wanted,
            other => panic!("{other:?}"),
        };
        let all = wanted(b"setdebug=20 trace=1 hangup=-1 blowup=-1 options=tc tags=network,protocol\n");
        assert_eq!((all.level, all.trace, all.hangup, all.blowup), (20, 1, -1, -1));
        assert_eq!((all.options.as_slice(), all.tags.as_slice()), (&b"tc"[..], &b"network,protocol"[..]));
        assert_eq!(wanted(b"setdebug=5 trace=0 hangup=3\n").hangup, 3);
        assert_eq!(wanted(b"setdebug=5 trace=0\n").hangup, -1);
        assert_eq!(reply(b"setdebug=x y\n"), "2991 Bad setdebug command: setdebug=x y\n\n");
    }

    #[test]
    fn statistics_by_name_and_all() {
        let metrics = |frame: &[u8]| match parse(frame) {
            Ok(Command::Statistics { format, names }) => (format, names),
            other => panic!("{other:?}"),
        };
        assert_eq!(metrics(b"statistics all format=json\n"), (MetricFormat::Json, None));
        assert_eq!(metrics(b"statistics all format=bogus"), (MetricFormat::Simple, None));
        let names = |frame: &[u8]| metrics(frame).1.unwrap();
        assert_eq!(names(b"statistics format=full a  b\n"), [b"a".to_vec(), b"b".to_vec()]);
        assert_eq!(names(b"statistics format=full a b"), [b"a".to_vec()]);
        assert!(names(b"statistics format=\n").is_empty());
        assert_eq!(reply(b"statistics foo\n"), "2900 Bad statistics command, missing argument.\n");
    }

    #[test]
    fn queries() {
        assert_eq!(
            parse(b"query plugin=\"p q\" parameter=\"a\\\"b\" value=v\n"),
            Ok(Command::Query { parameter: b"a\"b".to_vec(), plugin: b"p q".to_vec(), value: b"v".to_vec() })
        );
        assert!(parse(b"query parameter=\"x\" plugin=\"\"\n").is_ok());
        for bad in [&b"query\n"[..], b"query plugin=\"x\"\n", b"query parameter=x\n"] {
            assert_eq!(reply(bad), "2992 Bad query command\n");
        }
    }

    #[test]
    fn network_tests_are_strict() {
        assert_eq!(parse(b"testnetwork bytes=100 rtt=7\n"), Ok(Command::TestNetwork(Some((100, 7)))));
        assert_eq!(parse(b"testnetwork bytes=100\n"), Ok(Command::TestNetwork(Some((100, 0)))));
        assert_eq!(parse(b"testnetwork bytes= rtt=7\n"), Ok(Command::TestNetwork(None)));
    }

    #[test]
    fn snapshots() {
        let query = b"snapshot query name=a volume=/ device=/dev/x tdate=1 type=btrfs";
        assert_eq!(parse(query), Ok(Command::Snapshot(SnapshotWish::Query)));
        assert_eq!(parse(b"snapshot retention=5\n"), Ok(Command::Snapshot(SnapshotWish::Retention)));
        assert_eq!(parse(b"snapshot list\n"), Ok(Command::Snapshot(SnapshotWish::List)));
        assert_eq!(parse(b"snapshot prune volume=/ type=btrfs"), Ok(Command::Snapshot(SnapshotWish::Prune)));
        assert_eq!(reply(b"snapshot sync volume=/\n"), "2999 Snapshot command not found\n");
    }
}
