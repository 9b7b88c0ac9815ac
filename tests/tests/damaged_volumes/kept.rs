//! What a replace mode keeps gets nothing that a volume has for the file that was not restored.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use bed::peer::Frame;
use bed::{Bed, BedError, BedOptions, ClientOptions, DIRECTOR, Fd, Result};
use nix::time::{ClockId, clock_gettime};

use crate::records::{Record, attributes, record, session_of, whole_file};
use crate::{Outcome, begin_reading, director, hear};

/// Restores `records` to `to` with a replace mode.
fn restore(fd: u16, job: usize, to: &Path, replace: char, records: &[Record]) -> Result<Outcome> {
    let mut peer = director(fd, DIRECTOR, job)?;
    let command = format!("restore files=3 replace={replace} prelinks=0 where={}\n", to.display());
    let (storage, mut messages) = begin_reading(&mut peer, session_of(records), true, &command, b"2000 OK restore\n")?;
    let end = loop {
        match hear(&mut peer, &mut messages)? {
            Frame::Data(bytes) if bytes.starts_with(b"2800 End Job") => break String::from_utf8(bytes).unwrap(),
            Frame::Closed => return Err(BedError::Usage(format!("gone after {messages:?}"))),
            _ => {
                let _gone = peer.send(b"endrestore");
            }
        }
    };
    storage.join().unwrap()?;
    Ok(Outcome { messages, end })
}

/// Waits until the clock of the file systems has gone on, so that the file is older than the job.
fn let_it_be_old() {
    let now = |clock| clock_gettime(clock).map(Duration::from).unwrap();
    let start = now(ClockId::CLOCK_REALTIME);
    while now(ClockId::CLOCK_REALTIME_COARSE) <= start {
        std::thread::yield_now();
    }
}

#[test]
fn a_kept_file_is_not_changed_by_what_follows_on_the_volume() -> Result<()> {
    let is_stock = Fd::under_test()? == Fd::Stock;
    let options = BedOptions::new("kept", [ClientOptions::new(Fd::under_test()?).named("test")])?.in_clear();
    let mut bed = Bed::start(options)?;
    let fd = bed.client("test")?.port();
    // An update with the delta sequence of a backup's first one.
    let mut update = attributes(3, "/f", 0o104_711, "", 2);
    update.stream = 37;
    let end = update.data.len() - 2;
    update.data.splice(end.., *b"1\0");
    // A file that is sent whole behind one, which the stock daemon takes for a patch.
    let mut whole = attributes(3, "/f", 0o104_711, "", 2);
    whole.data.splice(end.., *b"1\0");
    let kinds = [vec![update], vec![whole, record(2, *b"EVIL content")]];
    // What the volume has is older than what is there.
    let modes = ['n', 'w', 'a'];
    for (job, (replace, later)) in modes.iter().flat_map(|mode| kinds.iter().map(move |kind| (*mode, kind))).enumerate()
    {
        let to = bed.folder().join(format!("to-{job}"));
        fs::create_dir(&to).unwrap();
        fs::write(to.join("f"), b"kept by hand\n").unwrap();
        let before = fs::metadata(to.join("f")).unwrap();
        let_it_be_old();
        let records = [whole_file("/f"), later.clone()].concat();
        let outcome = restore(fd, job + 1, &to, replace, &records)?;
        let after = fs::metadata(to.join("f")).unwrap();
        let is_changed = after.mode() & 0o7777 == 0o4711;
        if is_stock {
            // It gives the kept file the mode of both.
            assert!(is_changed, "{replace}: {outcome:?}");
            continue;
        }
        assert_eq!(is_changed, replace == 'a', "{replace}: {outcome:?}");
        if replace != 'a' {
            assert_eq!(fs::read(to.join("f")).unwrap(), b"kept by hand\n", "{outcome:?}");
            assert_eq!((after.mode(), after.ctime_nsec()), (before.mode(), before.ctime_nsec()), "{outcome:?}");
        }
        assert_eq!(outcome.field("TermCode"), 84, "{outcome:?}");
    }
    Ok(())
}
