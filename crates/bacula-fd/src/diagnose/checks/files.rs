//! What other users may read and change of the configuration and the keys.

use std::path::{Path, PathBuf};

use fd_config::Tls;
use fd_os::io_error_text;

use super::case::Case;
use crate::diagnose::finding::Finding;
use crate::diagnose::texts::{self, FILES};
use crate::diagnose::world::{About, World};

const OTHERS_READ: u32 = 0o004;
const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;
const STICKY: u32 = 0o1000;

pub(super) fn check(case: &Case<'_>) -> Vec<Finding> {
    let config = case.config();
    let keys = config.tls_resources().filter_map(|(_, _, tls)| key(tls));
    let pki = &config.file_daemon.pki;
    let (with_key, signers): (Vec<_>, Vec<_>) =
        pki.signers.iter().partition(|file| case.world.mentions_private_key(file));
    let mut secret: Vec<&PathBuf> = case.read.files.iter().chain(keys).chain(&pki.key_pair).chain(with_key).collect();
    secret.sort();
    secret.dedup();
    // Whoever can change them decides who reads what is encrypted, and whose signatures are good.
    let mut public: Vec<&PathBuf> = signers.into_iter().chain(&pki.master_keys).collect();
    public.sort();
    public.dedup();
    public.retain(|file| !secret.contains(file));
    let user = case.world.process().rights.uid;
    let mut findings: Vec<_> = secret.iter().filter_map(|file| of_file(file, true, user, case.world)).collect();
    findings.extend(public.iter().filter_map(|file| of_file(file, false, user, case.world)));
    findings.extend(of_file(&case.read.settings_file, false, user, case.world));
    let mut folders: Vec<&Path> = secret.iter().chain(&public).filter_map(|file| folder(file)).collect();
    folders.sort();
    folders.dedup();
    findings.extend(folders.into_iter().filter_map(|folder| of_folder(folder, user, case.world)));
    if findings.is_empty() {
        findings.push(Finding::good(FILES, texts::files_are_closed(secret.len())));
    }
    findings
}

const fn key(tls: &Tls) -> Option<&PathBuf> {
    if tls.enable || tls.authenticate { tls.key.as_ref() } else { None }
}

/// What is wrong with a file's permissions. One that can't be found is another check's.
fn of_file(file: &Path, is_secret: bool, user: u32, world: &dyn World) -> Option<Finding> {
    let about = match world.about(file) {
        Ok(about) => about,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => {
            let text = texts::unreadable(file, &io_error_text(&error));
            return Some(Finding::fault(FILES, text, texts::hint(&error, texts::HINT_FILES)));
        }
    };
    let is_open = is_secret && about.mode & OTHERS_READ != 0;
    let read = || Finding::warning(FILES, texts::others_read(file, about.mode), texts::chmod_640(file));
    changed_by_others(FILES, file, about, user, texts::chmod_640(file)).or_else(|| is_open.then(read))
}

/// Who else than root and the daemon's user can change this. A plain group may be that of the
/// administrators; every member can become root then.
pub(super) fn changed_by_others(
    area: &'static str,
    path: &Path,
    about: About,
    user: u32,
    close: String,
) -> Option<Finding> {
    if about.mode & (OTHERS_WRITE | GROUP_WRITES) != 0 {
        return Some(Finding::fault(area, texts::others_write(path, about.mode), close));
    }
    (about.uid != 0 && about.uid != user)
        .then(|| Finding::fault(area, texts::other_owner(path, about.uid), texts::chown_root(path)))
}

/// Where a file is.
fn folder(file: &Path) -> Option<&Path> {
    let parent = file.parent()?;
    Some(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
}

/// Who may write to a directory can put another file into the place of any in it, but for those of
/// others in a sticky one. One that can't be looked at is another check's.
fn of_folder(folder: &Path, user: u32, world: &dyn World) -> Option<Finding> {
    let about = world.about(folder).ok()?;
    let not_by_mode = if about.mode & STICKY == 0 { 0 } else { OTHERS_WRITE | GROUP_WRITES };
    let about = About { mode: about.mode & !not_by_mode, ..about };
    changed_by_others(FILES, folder, about, user, texts::chmod_755(folder))
}
