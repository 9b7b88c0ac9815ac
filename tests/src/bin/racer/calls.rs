//! The system calls that rules can name, and where their arguments say what they are about.

use nix::libc::{self, user_regs_struct};
use nix::unistd::Pid;

use crate::memory::{at, descriptor, text};

/// Where an object is named: by the argument of this number.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// A descriptor.
    Fd(usize),
    /// A path.
    Path(usize),
    /// A directory's descriptor, and a path.
    At(usize, usize),
}

use Place::{At, Fd, Path};

/// Name, number, and the objects.
type Row = (&'static str, libc::c_long, &'static [Place]);

const TABLE: &[Row] = &[
    ("read", libc::SYS_read, &[Fd(0)]),
    ("write", libc::SYS_write, &[Fd(0)]),
    ("open", libc::SYS_open, &[Path(0)]),
    ("close", libc::SYS_close, &[Fd(0)]),
    ("stat", libc::SYS_stat, &[Path(0)]),
    ("fstat", libc::SYS_fstat, &[Fd(0)]),
    ("lstat", libc::SYS_lstat, &[Path(0)]),
    ("lseek", libc::SYS_lseek, &[Fd(0)]),
    ("mmap", libc::SYS_mmap, &[Fd(4)]),
    ("ioctl", libc::SYS_ioctl, &[Fd(0)]),
    ("pread64", libc::SYS_pread64, &[Fd(0)]),
    ("pwrite64", libc::SYS_pwrite64, &[Fd(0)]),
    ("readv", libc::SYS_readv, &[Fd(0)]),
    ("writev", libc::SYS_writev, &[Fd(0)]),
    ("access", libc::SYS_access, &[Path(0)]),
    ("sendfile", libc::SYS_sendfile, &[Fd(1)]),
    ("connect", libc::SYS_connect, &[Fd(0)]),
    ("sendto", libc::SYS_sendto, &[Fd(0)]),
    ("recvfrom", libc::SYS_recvfrom, &[Fd(0)]),
    ("sendmsg", libc::SYS_sendmsg, &[Fd(0)]),
    ("recvmsg", libc::SYS_recvmsg, &[Fd(0)]),
    ("shutdown", libc::SYS_shutdown, &[Fd(0)]),
    ("fcntl", libc::SYS_fcntl, &[Fd(0)]),
    ("flock", libc::SYS_flock, &[Fd(0)]),
    ("fsync", libc::SYS_fsync, &[Fd(0)]),
    ("fdatasync", libc::SYS_fdatasync, &[Fd(0)]),
    ("truncate", libc::SYS_truncate, &[Path(0)]),
    ("ftruncate", libc::SYS_ftruncate, &[Fd(0)]),
    ("getdents64", libc::SYS_getdents64, &[Fd(0)]),
    ("chdir", libc::SYS_chdir, &[Path(0)]),
    ("rename", libc::SYS_rename, &[Path(0), Path(1)]),
    ("mkdir", libc::SYS_mkdir, &[Path(0)]),
    ("rmdir", libc::SYS_rmdir, &[Path(0)]),
    ("creat", libc::SYS_creat, &[Path(0)]),
    ("link", libc::SYS_link, &[Path(0), Path(1)]),
    ("unlink", libc::SYS_unlink, &[Path(0)]),
    ("symlink", libc::SYS_symlink, &[Path(1)]),
    ("readlink", libc::SYS_readlink, &[Path(0)]),
    ("chmod", libc::SYS_chmod, &[Path(0)]),
    ("fchmod", libc::SYS_fchmod, &[Fd(0)]),
    ("chown", libc::SYS_chown, &[Path(0)]),
    ("fchown", libc::SYS_fchown, &[Fd(0)]),
    ("lchown", libc::SYS_lchown, &[Path(0)]),
    ("mknod", libc::SYS_mknod, &[Path(0)]),
    ("utime", libc::SYS_utime, &[Path(0)]),
    ("utimes", libc::SYS_utimes, &[Path(0)]),
    ("statfs", libc::SYS_statfs, &[Path(0)]),
    ("fstatfs", libc::SYS_fstatfs, &[Fd(0)]),
    ("setxattr", libc::SYS_setxattr, &[Path(0)]),
    ("getxattr", libc::SYS_getxattr, &[Path(0)]),
    ("listxattr", libc::SYS_listxattr, &[Path(0)]),
    ("removexattr", libc::SYS_removexattr, &[Path(0)]),
    ("lsetxattr", libc::SYS_lsetxattr, &[Path(0)]),
    ("lgetxattr", libc::SYS_lgetxattr, &[Path(0)]),
    ("llistxattr", libc::SYS_llistxattr, &[Path(0)]),
    ("lremovexattr", libc::SYS_lremovexattr, &[Path(0)]),
    ("fsetxattr", libc::SYS_fsetxattr, &[Fd(0)]),
    ("fgetxattr", libc::SYS_fgetxattr, &[Fd(0)]),
    ("flistxattr", libc::SYS_flistxattr, &[Fd(0)]),
    ("fremovexattr", libc::SYS_fremovexattr, &[Fd(0)]),
    ("fadvise64", libc::SYS_fadvise64, &[Fd(0)]),
    ("fallocate", libc::SYS_fallocate, &[Fd(0)]),
    ("readahead", libc::SYS_readahead, &[Fd(0)]),
    ("openat", libc::SYS_openat, &[At(0, 1)]),
    ("openat2", libc::SYS_openat2, &[At(0, 1)]),
    ("mkdirat", libc::SYS_mkdirat, &[At(0, 1)]),
    ("mknodat", libc::SYS_mknodat, &[At(0, 1)]),
    ("fchownat", libc::SYS_fchownat, &[At(0, 1)]),
    ("futimesat", libc::SYS_futimesat, &[At(0, 1)]),
    ("newfstatat", libc::SYS_newfstatat, &[At(0, 1)]),
    ("unlinkat", libc::SYS_unlinkat, &[At(0, 1)]),
    ("renameat", libc::SYS_renameat, &[At(0, 1), At(2, 3)]),
    ("renameat2", libc::SYS_renameat2, &[At(0, 1), At(2, 3)]),
    ("linkat", libc::SYS_linkat, &[At(0, 1), At(2, 3)]),
    ("symlinkat", libc::SYS_symlinkat, &[At(1, 2)]),
    ("readlinkat", libc::SYS_readlinkat, &[At(0, 1)]),
    ("fchmodat", libc::SYS_fchmodat, &[At(0, 1)]),
    ("fchmodat2", libc::SYS_fchmodat2, &[At(0, 1)]),
    ("faccessat", libc::SYS_faccessat, &[At(0, 1)]),
    ("faccessat2", libc::SYS_faccessat2, &[At(0, 1)]),
    ("utimensat", libc::SYS_utimensat, &[At(0, 1)]),
    ("name_to_handle_at", libc::SYS_name_to_handle_at, &[At(0, 1)]),
    ("preadv", libc::SYS_preadv, &[Fd(0)]),
    ("pwritev", libc::SYS_pwritev, &[Fd(0)]),
    ("preadv2", libc::SYS_preadv2, &[Fd(0)]),
    ("pwritev2", libc::SYS_pwritev2, &[Fd(0)]),
    ("copy_file_range", libc::SYS_copy_file_range, &[Fd(0), Fd(2)]),
    ("statx", libc::SYS_statx, &[At(0, 1)]),
    ("clone", libc::SYS_clone, &[]),
    ("clone3", libc::SYS_clone3, &[]),
    ("socket", libc::SYS_socket, &[]),
    ("accept4", libc::SYS_accept4, &[Fd(0)]),
    ("pipe2", libc::SYS_pipe2, &[]),
    ("bind", libc::SYS_bind, &[Fd(0)]),
    ("listen", libc::SYS_listen, &[Fd(0)]),
    ("setsockopt", libc::SYS_setsockopt, &[Fd(0)]),
    ("poll", libc::SYS_poll, &[]),
    ("brk", libc::SYS_brk, &[]),
    ("mprotect", libc::SYS_mprotect, &[]),
    ("mremap", libc::SYS_mremap, &[]),
    ("epoll_create1", libc::SYS_epoll_create1, &[]),
    ("eventfd2", libc::SYS_eventfd2, &[]),
];

/// A call that a thread is about to make.
#[derive(Debug)]
pub(crate) struct Call {
    /// As in the kernel's manual.
    pub(crate) name: &'static str,
    arguments: [u64; 6],
    places: &'static [Place],
}

impl Call {
    /// The call that these registers make, if rules can name it.
    pub(crate) fn read(registers: &user_regs_struct) -> Option<Self> {
        let number = libc::c_long::try_from(registers.orig_rax).ok()?;
        let (name, _, places) = TABLE.iter().find(|(_, row, _)| *row == number)?;
        let user_regs_struct { rdi, rsi, rdx, r10, r8, r9, .. } = *registers;
        Some(Self { name, arguments: [rdi, rsi, rdx, r10, r8, r9], places })
    }

    /// What it is about: paths, or as `socket:[123]`. A rename has two.
    pub(crate) fn objects(&self, pid: Pid) -> Vec<Vec<u8>> {
        let object = |place: &Place| match *place {
            Fd(number) => descriptor(pid, self.descriptor(number)),
            Path(number) => at(pid, libc::AT_FDCWD, &text(pid, self.argument(number))),
            At(directory, name) => at(pid, self.descriptor(directory), &text(pid, self.argument(name))),
        };
        self.places.iter().map(object).collect()
    }

    fn argument(&self, number: usize) -> u64 {
        self.arguments.get(number).copied().unwrap_or_default()
    }

    /// The lower half of the register: a number with a sign.
    fn descriptor(&self, number: usize) -> i32 {
        let [a, b, c, d, ..] = self.argument(number).to_le_bytes();
        i32::from_le_bytes([a, b, c, d])
    }
}
