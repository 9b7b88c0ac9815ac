//! What the watched process means by the arguments of a call: names in its memory, and what its
//! descriptors are.

use std::fs;
use std::io::IoSliceMut;
use std::os::unix::ffi::OsStringExt as _;

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

const PAGE: usize = 4096;
const AT_FDCWD: i32 = nix::libc::AT_FDCWD;

/// The text at an address, without the NUL that ends it; as much as can be read.
pub(crate) fn text(pid: Pid, address: u64) -> Vec<u8> {
    let mut text = Vec::new();
    let Ok(mut base) = usize::try_from(address) else { return text };
    while base != 0 && text.len() < 2 * PAGE {
        // Not over the end of a page, behind which there may be nothing.
        let mut page = vec![0; PAGE - base % PAGE];
        let remote = RemoteIoVec { base, len: page.len() };
        let got = process_vm_readv(pid, &mut [IoSliceMut::new(&mut page)], &[remote]).unwrap_or(0);
        page.truncate(got);
        let end = page.iter().position(|byte| *byte == 0);
        text.extend_from_slice(page.get(..end.unwrap_or(got)).unwrap_or_default());
        if end.is_some() || got == 0 {
            break;
        }
        base += got;
    }
    text
}

/// What a descriptor is: a path, or as `socket:[123]`.
pub(crate) fn descriptor(pid: Pid, number: i32) -> Vec<u8> {
    let link = if number == AT_FDCWD { format!("/proc/{pid}/cwd") } else { format!("/proc/{pid}/fd/{number}") };
    fs::read_link(link).map(|path| path.into_os_string().into_vec()).unwrap_or_default()
}

/// The path that a directory's descriptor and a name make.
pub(crate) fn at(pid: Pid, directory: i32, name: &[u8]) -> Vec<u8> {
    if let Some(number) = own_descriptor(name) {
        return descriptor(pid, number);
    }
    if name.starts_with(b"/") {
        return name.to_vec();
    }
    let mut path = descriptor(pid, directory);
    if !name.is_empty() {
        path.push(b'/');
        path.extend_from_slice(name);
    }
    path
}

/// The number in `/proc/self/fd/N`.
fn own_descriptor(name: &[u8]) -> Option<i32> {
    let rest = name.strip_prefix(b"/proc/")?;
    let at = rest.windows(4).position(|part| part == b"/fd/")?;
    std::str::from_utf8(rest.get(at + 4..)?).ok()?.parse().ok()
}
