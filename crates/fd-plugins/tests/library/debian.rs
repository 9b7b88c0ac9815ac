//! Debian's own `bpipe-fd.so`, unmodified, in the Debian that the bed has unpacked (reference 07
//! §3.9).

use std::path::Path;
use std::process::Command;

use fd_plugins::{Event, Instance, Io, SavePacket, Status};

use crate::Test;
use crate::bed::{Daemon, begun, confinement, load};

pub(crate) const TESTS: &[Test] =
    &[("debian_s_bpipe_saves_what_allowed_programs_print", debian_s_bpipe_saves_what_allowed_programs_print)];

/// With this argument the program is inside of that Debian.
pub(crate) const INSIDE: &str = "--inside";
/// Where the bed has unpacked it.
const DEBIAN: &str = "/var/cache/ferrofd-bed/trixie-15.0.3";
/// Runs this program inside. What it mounts is seen by it alone.
const GO_INSIDE: &str = "set -e\n\
    mount --make-rprivate /\n\
    mount -t tmpfs tmpfs $1/tmp\n\
    cp \"$2\" $1/tmp/test\n\
    mount -t proc proc $1/proc\n\
    mount --rbind /dev $1/dev\n\
    exec chroot $1 /tmp/test $3";

fn debian_s_bpipe_saves_what_allowed_programs_print() {
    if !Path::new(DEBIAN).join("usr/lib/bacula/bpipe-fd.so").exists() || !nix::unistd::geteuid().is_root() {
        return skip::test("needs root, and the Debian that the bed unpacks");
    }
    let program = std::env::current_exe().unwrap();
    let ran =
        Command::new("unshare").args(["-m", "sh", "-c", GO_INSIDE, "sh", DEBIAN]).arg(program).arg(INSIDE).status();
    assert!(ran.unwrap().success());
}

pub(crate) fn inside() {
    let plugin = load(Path::new("/usr/lib/bacula/bpipe-fd.so"), confinement()).unwrap();
    let mut daemon = Daemon::default();
    let command = "bpipe:/x/y:sh -c 'echo oops >&2; head -c 300000 /dev/zero':cat";
    assert_eq!(data(&mut begun(&plugin, &mut daemon, command).unwrap(), &mut daemon, command), vec![0; 300_000]);
    assert_eq!(daemon.said, ["Info /x/y: oops\n"]);

    let allowed = || Daemon::allowing(b"/usr/bin/");
    let (mut daemon, command) = (allowed(), "bpipe:/x/y:/usr/bin/seq 3:cat");
    assert_eq!(data(&mut begun(&plugin, &mut daemon, command).unwrap(), &mut daemon, command), b"1\n2\n3\n");
    let (mut daemon, command) = (allowed(), "bpipe:/x/y:/sbin/ldconfig -p:cat");
    assert_eq!(data(&mut begun(&plugin, &mut daemon, command).unwrap(), &mut daemon, command), b"");
    let refusal = "Fatal Open pipe reader=/sbin/ldconfig -p failed: ERR=Unknown error 67108865\n";
    assert_eq!(daemon.said.first().map(String::as_str), Some(refusal));
}

/// The data of the command's file, which comes after an object.
fn data(instance: &mut Box<dyn Instance>, daemon: &mut Daemon, command: &str) -> Vec<u8> {
    const FILE: i32 = 3;
    instance.event(daemon, &Event::Level(b'I')).unwrap();
    let mut packet = SavePacket::empty();
    while packet.file_type != FILE {
        if packet.file_type != 0 {
            assert_eq!(instance.end_backup_file(daemon).unwrap(), Status::More);
        }
        packet = SavePacket::empty();
        assert_eq!(instance.start_backup_file(daemon, command.as_bytes(), true, &mut packet).unwrap(), Status::Ok);
    }
    instance.io(daemon, Io::Open { name: &packet.name.unwrap(), flags: 0, mode: 0 }).unwrap();
    let (mut data, mut buffer) = (Vec::new(), vec![0; 65_536]);
    while let Ok(count @ 1..) = usize::try_from(instance.io(daemon, Io::Read { buffer: &mut buffer }).unwrap().status) {
        data.extend_from_slice(buffer.get(..count).unwrap());
    }
    instance.io(daemon, Io::Close).unwrap();
    assert_eq!(instance.end_backup_file(daemon).unwrap(), Status::Ok);
    data
}
