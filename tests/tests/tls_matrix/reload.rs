//! Certificates that are replaced while the daemon runs, as happens every few weeks.

use std::fs;

use bed::{Bed, BedOptions, ClientOptions, Fd, FileSet, Folder, PATIENCE, Result, fifo_writer, make_fifo, wait_for};
use nix::sys::signal::Signal;

use crate::papers;
use crate::states::State;

/// Asks the Director for the client's status until it is so that the certificate is trusted.
fn is_trusted(bed: &Bed, expected: bool) -> Result<()> {
    wait_for(&format!("the certificate to be trusted: {expected}"), PATIENCE, || {
        let status = bed.console(&["status client=test-fd"])?;
        Ok(if status.contains("Daemon started ") == expected { Ok(()) } else { Err(status) })
    })
}

fn hang_up(bed: &mut Bed) -> Result<()> {
    bed.client("test")?.daemon().process()?.signal(Signal::SIGHUP)
}

/// The stock daemon ignores SIGHUP, and has to be started again.
#[test]
fn certificates_are_read_again_at_sighup_and_no_job_notices() -> Result<()> {
    let is_ours = Fd::under_test()? == Fd::Ours;
    let folder = Folder::new("tls-reload")?;
    let papers = papers(&folder)?;
    let mut client = ClientOptions::new(Fd::under_test()?).named("test");
    client.fd_director = State::of("certreq").lines(&papers, "fd");
    client.dir_client = State::of("certreq").lines(&papers, "Director");
    let mut options = BedOptions::new("reload", [client])?;
    let fifo = folder.path().join("fifo");
    make_fifo(&fifo)?;
    options.file_sets = vec![FileSet::new("Fifo", &["Signature = MD5", "ReadFifo = yes"], &[&fifo])];
    let mut bed = Bed::start(options)?;
    is_trusted(&bed, true)?;

    // A job is in the middle of a file.
    let job = bed.queue("run job=backup-test fileset=Fifo level=Full yes")?;
    let mut writer = fifo_writer(&fifo)?;

    // A file that is no certificate: the one from before stays, and the log says why.
    let certificate = folder.path().join("fd.pem");
    fs::write(&certificate, "half of a file").unwrap();
    hang_up(&mut bed)?;
    if is_ours {
        wait_for("the daemon to refuse the file", PATIENCE, || {
            let output = bed.client("test")?.daemon().output();
            Ok(if output.contains("those from before stay in use") { Ok(()) } else { Err(output) })
        })?;
    }
    is_trusted(&bed, true)?;

    // One of an authority that the Director does not trust, and one that it does.
    for (authority, expected) in [(&papers.other, !is_ours), (&papers.ours, true)] {
        authority.sign("fd", &["localhost"])?;
        hang_up(&mut bed)?;
        is_trusted(&bed, expected)?;
    }

    std::io::Write::write_all(&mut writer, b"the rest").unwrap();
    drop(writer);
    let job = bed.wait(job)?.must_be_good()?;
    assert_eq!(job.row.files, 1, "{}", job.log);
    Ok(())
}
