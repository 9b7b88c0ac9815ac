//! What stays in the memory of a daemon when a job has ended: nothing of the password as it was
//! written, nothing of the key between the job's daemons, and the password's digest once, which the
//! next login needs.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;

use bed::peer::key_of_password;
use bed::{Bed, BedOptions, ClientOptions, FD_PASSWORD, Fd, PATIENCE, Result, wait_for};

/// Whether this has the form of the key between the daemons of a job:
/// `FHDM-NHEO-KGBJ-ABPN-DFPH-IEFC-NMBL-EAPC`.
fn is_key(text: &[u8]) -> bool {
    let fits = |(at, byte): (usize, &u8)| if at % 5 == 4 { *byte == b'-' } else { (b'A'..=b'P').contains(byte) };
    text.len() == KEY && text.iter().enumerate().all(fits)
}

/// Bytes of such a key.
const KEY: usize = 39;

/// How often the password, a key and the password's digest are in the writable memory of a process.
fn found(pid: u32) -> [usize; 3] {
    let memory = File::open(format!("/proc/{pid}/mem")).unwrap();
    let digest = key_of_password(FD_PASSWORD);
    let mut counts = [0; 3];
    for line in fs::read_to_string(format!("/proc/{pid}/maps")).unwrap().lines() {
        let (range, rest) = line.split_once(' ').unwrap();
        if !rest.starts_with("rw") {
            continue;
        }
        let (from, to) = range.split_once('-').unwrap();
        let at = |number: &str| u64::from_str_radix(number, 16).unwrap();
        let mut bytes = vec![0; usize::try_from(at(to) - at(from)).unwrap()];
        // The kernel's own pages can't be read.
        if memory.read_exact_at(&mut bytes, at(from)).is_err() {
            continue;
        }
        let times = |text: &str| bytes.windows(text.len()).filter(|window| *window == text.as_bytes()).count();
        let keys = bytes.windows(KEY).filter(|window| is_key(window)).count();
        for (count, more) in counts.iter_mut().zip([times(FD_PASSWORD), keys, times(&digest)]) {
            *count += more;
        }
    }
    counts
}

#[test]
fn secrets_do_not_stay_in_memory() -> Result<()> {
    for tls_psk in [true, false] {
        let mut options = BedOptions::new("secrets", [ClientOptions::new(Fd::under_test()?).named("test")])?;
        options.tls_psk = tls_psk;
        fs::write(options.source()?.join("file"), "data\n").unwrap();
        let mut bed = Bed::start(options)?;
        bed.backup("test", "")?.must_be_good()?;
        bed.wait_for_status("test", "No Jobs running.")?;
        let pid = bed.client("test")?.pid()?;
        // A thread that is about to end may still hold what it frees.
        wait_for("the secrets to go", PATIENCE, || {
            let counts = found(pid);
            let few = counts.iter().zip([0, 0, 1]).all(|(count, most)| *count <= most);
            Ok(if few { Ok(()) } else { Err(format!("TLS {tls_psk}: password, key, digest: {counts:?}")) })
        })?;
    }
    Ok(())
}
