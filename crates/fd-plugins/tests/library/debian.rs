//! Debian's own `bpipe-fd.so`, unmodified, and a plugin that uses Debian's libbac, in the Debian
//! that the bed has unpacked (reference 07 §3.9).

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use fd_plugins::{Event, Instance, Io, SavePacket, Status};

use crate::Test;
use crate::bed::{Daemon, begun, confinement, load};

pub(crate) const TESTS: &[Test] = &[
    ("debian_s_bpipe_saves_what_allowed_programs_print", debian_s_bpipe_saves_what_allowed_programs_print),
    (
        "a_plugin_has_threads_timers_locks_and_sockets_of_libbac",
        a_plugin_has_threads_timers_locks_and_sockets_of_libbac,
    ),
];

/// With this argument the program is inside of that Debian.
pub(crate) const INSIDE: &str = "--inside";
/// Where the bed has unpacked it.
const DEBIAN: &str = "/var/cache/ferrofd-bed/trixie-15.0.3";
/// Runs this program inside. What it mounts is seen by it alone.
const GO_INSIDE: &str = "set -e\n\
    mount --make-rprivate /\n\
    mount -t tmpfs tmpfs $1/tmp\n\
    cp \"$2\" $1/tmp/test\n\
    test -z \"$4\" || cp \"$4\" $1/tmp/lib-fd.so\n\
    mount -t proc proc $1/proc\n\
    mount --rbind /dev $1/dev\n\
    exec chroot $1 /tmp/test $3";
/// The plugin that uses libbac, inside.
const LIB: &str = "/tmp/lib-fd.so";

fn debian_s_bpipe_saves_what_allowed_programs_print() {
    go_inside("");
}

fn a_plugin_has_threads_timers_locks_and_sockets_of_libbac() {
    let plugin = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lib-{}-fd.so", std::process::id()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/plugins/lib.c");
    let done = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-w", "-o"]).arg(&plugin).arg(source).status();
    assert!(done.unwrap().success());
    go_inside(&plugin.to_string_lossy());
}

/// Runs [`inside`], with this plugin.
fn go_inside(plugin: &str) {
    if !Path::new(DEBIAN).join("usr/lib/bacula/bpipe-fd.so").exists() || !nix::unistd::geteuid().is_root() {
        return skip::test("needs root, and the Debian that the bed unpacks");
    }
    let program = std::env::current_exe().unwrap();
    let arguments = ["-m", "sh", "-c", GO_INSIDE, "sh", DEBIAN];
    let ran = Command::new("unshare").args(arguments).arg(program).arg(INSIDE).arg(plugin).status();
    assert!(ran.unwrap().success());
}

pub(crate) fn inside() {
    if Path::new(LIB).exists() { uses_libbac() } else { bpipe() }
}

/// What the stock daemon's job log has of the same plugin.
fn uses_libbac() {
    let plugin = load(Path::new(LIB), confinement()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for (command, said) in [
        ("lib:do=thread".to_owned(), "a thread"),
        ("lib:do=lock".to_owned(), "a thread"),
        ("lib:do=timer".to_owned(), "wait: Interrupted system call"),
        (format!("lib:do=socket,port={port}"), "connected: 1"),
    ] {
        let mut daemon = Daemon::default();
        let instance = begun(&plugin, &mut daemon, &command);
        let data = instance.map(|mut instance| data(&mut instance, &mut daemon, &command));
        let shown = data.map(|data| String::from_utf8_lossy(&data).into_owned());
        assert_eq!(
            shown.map_err(|gone| String::from_utf8_lossy(&gone.text).into_owned()),
            Ok(said.to_owned()),
            "{command}"
        );
    }
}

fn bpipe() {
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
