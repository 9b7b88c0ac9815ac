//! The directories that the daemon writes to, and that of its plugins.

use std::iter;
use std::path::Path;

use fd_config::{Bpipe, PluginSettings};
use fd_os::io_error_text;

use super::case::Case;
use super::files::changed_by_others;
use crate::daemon::plugins::BPIPE;
use crate::diagnose::finding::{Finding, State};
use crate::diagnose::texts::{self, PID_DIRECTORY, PLUGINS, WORKING_DIRECTORY};
use crate::diagnose::world::{Whose, World};
use crate::texts::{plugin_host_unusable, plugin_settings_unused};

const OTHERS_WRITE: u32 = 0o002;
/// Less is a warning, in bytes: spooled mails and lists of a job may need it.
const FREE_SPACE: u64 = 64 << 20;
/// How the file of a plugin ends.
const PLUGIN: &[u8] = b"-fd.so";

pub(super) fn check(case: &Case<'_>) -> Vec<Finding> {
    let own = &case.config().file_daemon;
    let mut findings = vec![working_directory(&own.working_directory, case.world)];
    if own.pid_directory != own.working_directory {
        findings.extend(pid_directory(&own.pid_directory, case.world));
    }
    match &own.plugin_directory {
        None => findings.push(Finding::good(PLUGINS, texts::NO_PLUGIN_DIRECTORY)),
        Some(directory) => findings.extend(plugins(directory, &case.read.settings.plugins, case.world)),
    }
    findings
}

fn working_directory(path: &Path, world: &dyn World) -> Finding {
    if let Some(finding) = wrong(WORKING_DIRECTORY, path, world) {
        return finding;
    }
    match world.free_space(path) {
        Ok(free) if free < FREE_SPACE => {
            Finding::warning(WORKING_DIRECTORY, texts::little_space(path, free >> 20), texts::HINT_SPACE)
        }
        Ok(free) => Finding::good(WORKING_DIRECTORY, texts::writable(path, free >> 20)),
        Err(error) => {
            let text = texts::unreadable(path, &io_error_text(&error));
            Finding::warning(WORKING_DIRECTORY, text, texts::hint(&error, texts::HINT_SPACE))
        }
    }
}

/// A file of a few bytes is kept there, and not even that by a daemon that the unit starts. One
/// that runs needs it no more.
fn pid_directory(path: &Path, world: &dyn World) -> Option<Finding> {
    let found = wrong(PID_DIRECTORY, path, world)?;
    let is_needed = world.process().whose == Whose::This;
    Some(if is_needed { found } else { Finding { state: State::Warning, ..found } })
}

/// What is wrong with a directory that the daemon writes to.
fn wrong(area: &'static str, path: &Path, world: &dyn World) -> Option<Finding> {
    let about = match world.about(path) {
        Ok(about) => about,
        Err(error) => {
            let text = texts::unreadable(path, &io_error_text(&error));
            return Some(Finding::fault(area, text, texts::hint(&error, &texts::make_directory(path))));
        }
    };
    if !about.is_directory {
        return Some(Finding::fault(area, texts::no_directory(path), texts::make_directory(path)));
    }
    if let Err(error) = world.may_write(path) {
        let text = texts::not_writable(path, &io_error_text(&error));
        return Some(Finding::fault(area, text, texts::hint(&error, texts::HINT_NOT_WRITABLE)));
    }
    (about.mode & OTHERS_WRITE != 0)
        .then(|| Finding::warning(area, texts::others_write(path, about.mode), texts::chmod_750(path)))
}

/// What other users can put there runs as the daemon; and so does a plugin whose settings have
/// another name. One whose settings can't be kept does not run at all.
fn plugins(directory: &Path, settings: &PluginSettings, world: &dyn World) -> Vec<Finding> {
    let files = match world.files(directory) {
        Ok(files) => files,
        Err(error) => {
            let text = texts::unreadable(directory, &io_error_text(&error));
            return vec![Finding::fault(PLUGINS, text, texts::hint(&error, &texts::make_directory(directory)))];
        }
    };
    let mut plugins: Vec<_> = files.into_iter().filter(|name| name.ends_with(PLUGIN)).collect();
    plugins.sort();
    let paths = plugins.iter().map(|name| directory.join(String::from_utf8_lossy(name).as_ref()));
    let user = world.process().rights.uid;
    for path in iter::once(directory.to_owned()).chain(paths) {
        let Ok(about) = world.about(&path) else { continue };
        if let Some(finding) = changed_by_others(PLUGINS, &path, about, user, texts::chmod_755(&path)) {
            return vec![finding];
        }
    }
    let files: Vec<_> = plugins.iter().map(Vec::as_slice).collect();
    let loaded = |file: &&&[u8]| settings.bpipe != Bpipe::Off || **file != BPIPE;
    let shown: Vec<_> = files.iter().filter(loaded).map(|file| String::from_utf8_lossy(file)).collect();
    let mut findings = vec![Finding::good(PLUGINS, texts::plugins(directory, &shown.join(", "), settings.bpipe))];
    if settings.bpipe == Bpipe::Library && !files.contains(&BPIPE) {
        findings.push(Finding::warning(PLUGINS, texts::NO_BPIPE, texts::HINT_NO_BPIPE));
    }
    let names: Vec<_> = files.iter().filter_map(|file| file.strip_suffix(PLUGIN)).collect();
    findings.extend(settings.unused(&names).map(|name| {
        let text = plugin_settings_unused(name, &names);
        Finding::warning(PLUGINS, text.trim_end(), texts::HINT_PLUGIN_SETTINGS)
    }));
    let in_hosts = files.iter().filter(|file| settings.bpipe == Bpipe::Library || **file != BPIPE);
    findings.extend(in_hosts.filter_map(|file| confined(file, settings, world)));
    findings
}

/// Why a plugin is not loaded with its settings.
fn confined(file: &[u8], settings: &PluginSettings, world: &dyn World) -> Option<Finding> {
    let own = settings.of(file.strip_suffix(PLUGIN)?);
    if let Err(why) = world.plugin_user(&own) {
        let text = plugin_host_unusable(file, &why);
        return Some(Finding::fault(PLUGINS, String::from_utf8_lossy(&text).trim_end(), texts::HINT_PLUGIN_USER));
    }
    let needs_root = [("user", own.user.is_some()), ("group", own.group.is_some()), ("network", !own.network)];
    let (setting, _) = needs_root.into_iter().find(|(_, is_set)| *is_set)?;
    let process = world.process();
    let text = texts::only_root_loads(&String::from_utf8_lossy(file), setting);
    // A daemon that runs may have been root until it had loaded its plugins.
    let never_root = process.whose == Whose::Unit && process.rights.uid != 0;
    never_root.then(|| Finding::fault(PLUGINS, text, texts::HINT_ONLY_ROOT))
}
