//! What an operator looks into the daemon with: debugging, statistics, the network test
//! (reference 02 §4.20, §4.21, §4.26).

use fd_bsock::scan::{Lenient, Strict};

/// What an operator looks into the daemon with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DiagnosticCommand {
    /// `caps`.
    Capabilities,
    /// `sm_dump`.
    MemoryDump,
    /// `setdebug=`.
    SetDebug(SetDebug),
    /// `statistics`.
    Statistics(MetricsQuery),
    /// `testnetwork`; `None` if it does not scan, which the Storage Daemon is told.
    TestNetwork(Option<NetworkTest>),
}

impl DiagnosticCommand {
    pub(super) fn set_debug(frame: &[u8]) -> Option<Self> {
        SetDebug::parse(frame).map(Self::SetDebug)
    }

    pub(super) fn statistics(frame: &[u8]) -> Option<Self> {
        MetricsQuery::parse(frame).map(Self::Statistics)
    }

    pub(super) fn test_network(frame: &[u8]) -> Self {
        Self::TestNetwork(NetworkTest::parse(frame))
    }
}

/// `setdebug=`: what is to change. The answer repeats it, with what is in force now.
#[derive(Clone, PartialEq, Eq, Debug)]
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

impl SetDebug {
    fn parse(frame: &[u8]) -> Option<Self> {
        let mut scan = Lenient::new(frame);
        let level = scan.text("setdebug=")?.i64();
        let trace = scan.text(" trace=")?.i64();
        let mut wanted = Self { level, trace, hangup: -1, blowup: -1, options: Vec::new(), tags: Vec::new() };
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

/// `statistics`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetricsQuery {
    /// How metrics are written.
    pub format: MetricFormat,
    /// Which ones; `None`: all.
    pub names: Option<Vec<Vec<u8>>>,
}

impl MetricsQuery {
    fn parse(frame: &[u8]) -> Option<Self> {
        let format = |word: &[u8]| match word {
            b"full" => MetricFormat::Full,
            b"json" => MetricFormat::Json,
            _ => MetricFormat::Simple,
        };
        if let Some(scan) = Lenient::new(frame).text("statistics all format=") {
            return Some(Self { format: format(scan.word(127)), names: None });
        }
        let mut scan = Lenient::new(frame);
        let format = format(scan.text("statistics format=")?.word(127));
        // A name counts if something stands behind it.
        let names = scan.rest().split_inclusive(u8::is_ascii_whitespace).filter_map(|name| {
            let name = name.split_last().filter(|(last, _)| last.is_ascii_whitespace())?.1;
            (!name.is_empty()).then(|| name.to_vec())
        });
        Some(Self { format, names: Some(names.collect()) })
    }
}

/// `testnetwork`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetworkTest {
    /// Bytes to send, and to receive.
    pub bytes: u64,
    /// Small packets to send there and back.
    pub rounds: u64,
}

impl NetworkTest {
    fn parse(frame: &[u8]) -> Option<Self> {
        let mut scan = Strict::new(frame);
        let bytes = scan.text("testnetwork bytes=")?.u64()?;
        let rounds = scan.text(" rtt=").and_then(Strict::u64).unwrap_or(0);
        Some(Self { bytes, rounds })
    }
}
