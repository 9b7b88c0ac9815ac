//! What a plugin host may, and what it inherits.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_keepcaps;
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};

use super::group;
use crate::library::wire::Load;
use crate::texts;

/// Takes the control line from standard input, which becomes `/dev/null`, and closes what else was
/// inherited.
pub(super) fn take_control_line() -> io::Result<OwnedFd> {
    let control = io::stdin().as_fd().try_clone_to_owned()?;
    let null = OpenOptions::new().read(true).open("/dev/null")?;
    // SAFETY: both descriptors are open.
    if unsafe { libc::dup2(null.as_raw_fd(), 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    drop(null);
    let own = control.as_raw_fd();
    let keep = u32::try_from(own).map_err(|_| io::ErrorKind::InvalidData)?;
    // What the daemon forgot to close is nothing for a plugin.
    // SAFETY: nothing in this process has a descriptor yet but the three standard ones and this.
    unsafe { fd_os::daemonize::close(keep + 1, u32::MAX) };
    if keep > 3 {
        // SAFETY: as above.
        unsafe { fd_os::daemonize::close(3, keep - 1) };
    }
    Ok(control)
}

/// Takes away what the plugin may not have; the message, if that fails.
pub(super) fn confine(load: &Load) -> Result<(), Vec<u8>> {
    let failed = |what, error| texts::not_confined(&load.file.0, what, &error);
    // A plugin that dies in each job must not fill the disk.
    let _may_fail = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    if let Some(memory) = load.memory {
        setrlimit(Resource::RLIMIT_AS, memory, memory).map_err(|errno| failed("memory", errno.into()))?;
    }
    if !load.network {
        // A network of its own, without any device.
        unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| failed("network", errno.into()))?;
    }
    if load.reads_all {
        // What the plugin starts does not get it.
        fd_os::daemonize::keep_only_read_capability().map_err(|error| failed("capabilities", error))?;
    }
    if let Some((uid, groups)) = &load.user {
        let gid = groups.first().copied().unwrap_or(libc::gid_t::MAX);
        let uid = uid.unwrap_or_else(|| Uid::current().as_raw());
        become_user(uid, gid, groups, false).map_err(|error| failed("user", error))?;
    }
    Ok(())
}

/// Becomes this user, with these groups. All threads of the process do. With `reads_all` this
/// thread, and those that it starts later, may still read every file.
pub(super) fn become_user(uid: u32, gid: u32, groups: &[u32], reads_all: bool) -> io::Result<()> {
    if reads_all {
        set_keepcaps(true)?;
    }
    setgroups(&groups.iter().copied().map(Gid::from_raw).collect::<Vec<_>>())?;
    setgid(Gid::from_raw(gid))?;
    setuid(Uid::from_raw(uid))?;
    if reads_all {
        fd_os::daemonize::keep_only_read_capability()?;
    }
    group::end_with_the_daemon()
}
