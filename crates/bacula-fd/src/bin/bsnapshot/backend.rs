//! The actions, and which backend does them (reference 07 §12.7).

mod actions;
mod btrfs;
mod lvm;
mod names;
mod privately;
mod work;
mod zfs;

use crate::answer::Answer;
use crate::backend::actions::Backend;
use crate::failure::Failure;
use crate::mounts::Mounts;
use crate::request::{Action, Request};

pub(crate) use work::Work;

/// By the type, else by the file system.
fn backend(request: &Request) -> Option<&'static dyn Backend> {
    match request.kind.to_str() {
        Some("btrfs") => return Some(&btrfs::Btrfs),
        Some("lvm") => return Some(&lvm::Lvm),
        Some("zfs") => return Some(&zfs::Zfs),
        Some("") => {}
        _ => return None,
    }
    match request.file_system.to_str()? {
        "btrfs" => Some(&btrfs::Btrfs),
        "ext3" | "ext4" | "xfs" => Some(&lvm::Lvm),
        "zfs" | "fuse.zfs" => Some(&zfs::Zfs),
        _ => None,
    }
}

/// Does one action.
pub(crate) fn run(work: &Work<'_>, action: Action) -> Answer {
    let failed = |failure| {
        let fail_job = work.settings.fail_job_on_error && !matches!(failure, Failure::Prevented(_));
        Answer::failed(action, fail_job, &failure)
    };
    let backend = backend(work.request);
    let says_so_itself = action == Action::Support && backend.is_some();
    if work.settings.disabled && action.starts_something() && !says_so_itself {
        return failed(Failure::Disabled);
    }
    let Some(backend) = backend else {
        // Not a failure: the daemon asks about every file system.
        return Answer::new().bare("status", "0").error(&Failure::NoBackend).end_line();
    };
    let done = match action {
        Action::Subvolumes => backend.subvolumes(work),
        Action::Support => return support(work, backend, failed),
        // Of what is installed and works, too.
        Action::Check => {
            let supported = work.must_not_be_skipped().and_then(|()| backend.support(work));
            supported.and_then(|answer| backend.list(work).map(|_| answer))
        }
        Action::Create => work.must_not_be_skipped().and_then(|()| backend.create(work)),
        Action::Mount => backend.mount(work),
        Action::Unmount => backend.unmount(work),
        Action::Delete => backend.delete(work),
        Action::List => backend.list(work),
        Action::Query => backend.query(work),
    };
    done.unwrap_or_else(failed)
}

/// Whether there can be a snapshot. The directory of earlier ones is named also where the settings
/// want none, if it has some: the daemon leaves it out of what it reads as it is now.
fn support(work: &Work<'_>, backend: &dyn Backend, failed: impl Fn(Failure) -> Answer) -> Answer {
    let wanted = if work.settings.disabled { Err(Failure::Disabled) } else { work.must_not_be_skipped() };
    let possible = wanted.and_then(|()| backend.support(work));
    let directory = match possible {
        Ok(_) => backend.directory(work),
        Err(Failure::Disabled | Failure::Skipped(_)) => backend.directory_of_kept(work),
        Err(_) => None,
    };
    let answer = possible.unwrap_or_else(failed);
    let named = directory.map_or_else(Answer::new, |path| Answer::new().quoted("snapdirectory", path).end_line());
    answer.and(&named)
}

/// `-t`: one line for each mounted file system that a backend is for.
pub(crate) fn check_all(work: &Work<'_>) -> Answer {
    let mounts = match Mounts::read(work.tools) {
        Ok(mounts) => mounts,
        Err(failure) => return Answer::failed(Action::Check, true, &failure),
    };
    let mut answer = Answer::new();
    for mount in mounts.all() {
        let request = Request {
            device: mount.source.clone(),
            file_system: mount.kind.clone(),
            mount_point: mount.at.clone(),
            ..Request::default()
        };
        if let Some(backend) = backend(&request) {
            let about = Answer::new().quoted("mountpoint", &mount.at).quoted("fstype", &mount.kind);
            let about = about.bare("backend", backend.name());
            answer = answer.and(&about).and(&run(&Work { request: &request, ..*work }, Action::Check));
        }
    }
    answer
}

#[cfg(test)]
mod tests;
