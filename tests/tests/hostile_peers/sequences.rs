//! Whole sessions of a Director that sends all commands in any order, with signals in between, and
//! leaves in the middle.
//!
//! The orders are drawn from fixed seeds; `SESSIONS=20000` draws more of them.

use bed::peer::{EOD, Frame, TERMINATE, logged_in};
use bed::{BedError, DIRECTOR, Fd, Noise, Result, in_parallel};

use super::{assert_unharmed, bed_in_clear, footprint_when_idle};

/// What a Director sends, and what is similar. Nothing here makes the daemon wait for a Storage
/// Daemon.
const LINES: [&[u8]; 48] = [
    b"JobId=0 Job=-Console-.2026-01-01_00.00.00_00 SDid=0 SDtime=0 Authorization=dummy",
    b"JobId=7 Job=seq.2026-01-01_00.00.00_07 SDid=1 SDtime=1 Authorization=FHDM-NHEO-KGBJ-ABPN-DFPH-IEFC-NMBL-EAPC",
    b"JobId=x",
    b"Hello Director bed-dir calling 10002 tlspsk=0\n",
    b"fileset vss=1\n",
    b"fileset\n",
    b"I\n",
    b"O MVpins5:\n",
    b"O Z9C:P:\n",
    b"R [\n",
    b"W *.o\n",
    b"N\n",
    b"E\n",
    b"F /etc/hostname",
    b"F \\|/bin/true",
    b"F </etc/hostname",
    b"P nosuch:x",
    b"level = full mtime_only=0\n",
    b"level = accurate_incremental mtime_only=0\n",
    b"level = since_utime 1000000 mtime_only=0 prev_job=x\n",
    b"level = bogus\n",
    b"accurate files=2\n",
    b"/x\0P4A A A A A A A A A A A A A A A\0\x000",
    b"/y\0\0",
    b"estimate listing=1\n",
    b"estimate listing=0\n",
    b"verify level=init\n",
    b"verify level=disk_to_catalog\n",
    b"verify level=data\n",
    b"backup FileIndex=0\n",
    b"restore files=7 replace=a prelinks=0 where=/tmp/no/such\n",
    b"restore files=1 replace=a prelinks=0 regexwhere=!a!b!\n",
    b"restoreobject JobId=4 3,3,1,28,0,1,nosuch:x\n",
    b"restoreobject end\n",
    b"restorefilelist plugin=nosuch-fd.so\n",
    b"endrestore",
    b"RunBeforeJob /bin/true\n",
    b"RunBeforeNow\n",
    b"Run OnSuccess=1 OnFailure=1 AbortOnError=0 When=2 Command=/bin/true\n",
    b"setbandwidth=1000000 Job=seq\n",
    b"setdebug=0 trace=0 hangup=0 blowup=0 options=0 tags=\n",
    b"status",
    b".status running api=2 api_opts=j",
    b"statistics all format=json\n",
    b"query parameter=\"x\" plugin=\"p\" value=\"v\"\n",
    b"cancel Job=seq.2026-01-01_00.00.00_07\n",
    b"PluginFeatures\n",
    b"component_info\n",
];

/// Numbers below a bound, from a seed.
struct Dice(Noise);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0.bytes(2).into_iter().fold(0, |sum, byte| sum * 256 + usize::from(byte)) % bound
    }

    /// One of the first so many lines.
    fn line(&mut self, among: usize) -> &'static [u8] {
        LINES.get(self.below(among)).copied().unwrap_or_default()
    }
}

/// One session. What the daemon says is read until it closes, however long that is.
fn session(port: u16, seed: u64) -> Result<usize> {
    let mut dice = Dice(Noise::new(seed));
    let mut peer = logged_in(port, DIRECTOR)?;
    if dice.below(4) > 0 {
        peer.send(dice.line(2))?;
    }
    let talked: Result<()> = (0..=dice.below(14)).try_for_each(|_| match dice.below(10) {
        0 => peer.signal(EOD),
        1 => peer.signal(-i32::try_from(dice.below(40)).unwrap_or(1)),
        2 => peer.send(&Noise::new(seed).bytes(dice.below(300))),
        _ => peer.send(dice.line(LINES.len())),
    });
    // It may have had enough.
    let _closed = talked.and_then(|()| peer.signal(TERMINATE)).and_then(|()| peer.finish());
    Ok(peer.rest()?.iter().filter(|frame| matches!(frame, Frame::Data(_))).count())
}

#[test]
fn commands_in_any_order_end_the_session_and_leave_the_daemon_up() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon ends after some dozens of these sessions");
    let wanted: u64 = std::env::var("SESSIONS").ok().map_or(400, |text| text.parse().unwrap());
    let mut bed = bed_in_clear("sequences")?;
    let before = footprint_when_idle(&mut bed)?;
    let port = bed.client("test")?.port();
    let seeds: Vec<_> = (0..wanted).collect();
    let heard = in_parallel(8, &seeds, |&seed| {
        session(port, seed).map_err(|error| BedError::Usage(format!("session {seed}: {error}")))
    })?;
    assert!(heard.iter().sum::<usize>() > seeds.len(), "hardly anything was answered");
    assert_unharmed(&mut bed, before)
}
