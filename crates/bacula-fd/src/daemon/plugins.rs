//! The plugins are loaded: the daemon's own, and those of the *Plugin Directory* (reference 07 §2).

use std::ffi::{CString, OsStr};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use fd_config::{Bpipe, PluginHostSettings, PluginSettings};
use fd_messages::MessageType;
use fd_os::io_error_text;
use fd_plugins::library::{Confinement, HostSettings, Library};
use fd_plugins::{BpipePlugin, Plugin, PluginInfo};
use nix::unistd::{Gid, Group, User, getgid, getgrouplist, getgroups, getuid};

use crate::shared::facts::DaemonFacts;
use crate::texts;

/// The file of the plugin that the daemon has itself.
pub(crate) const BPIPE: &[u8] = b"bpipe-fd.so";

/// The plugins of a directory, in its order.
#[derive(Default, Debug)]
pub(crate) struct Loaded {
    /// The plugins.
    pub(crate) plugins: Vec<Arc<dyn Plugin>>,
    /// Those that run in processes of their own.
    pub(crate) libraries: Vec<Arc<Library>>,
    /// What is to be said of them, when the daemon can.
    pub(crate) said: Vec<(MessageType, Vec<u8>)>,
}

impl Loaded {
    /// The next one of the directory.
    fn take(&mut self, load: Load<'_>) {
        let loaded = match load {
            Load::Own => return self.plugins.push(own_bpipe()),
            Load::Nothing => return,
            Load::Library(Ok(load)) => load.join().unwrap_or(Err(None)),
            Load::Library(Err(error)) => Err(Some(texts::no_thread_for_plugin(&io_error_text(&error)))),
        };
        match loaded {
            Ok(library) => {
                let library = Arc::new(library);
                self.libraries.push(Arc::clone(&library));
                self.plugins.push(library);
            }
            Err(Some(text)) => self.said.push((MessageType::Error, text)),
            Err(None) => {}
        }
    }

    /// Has their processes become what the daemon has become, which may read every file with
    /// `reads_all`.
    ///
    /// # Errors
    /// The message about it.
    pub(crate) fn drop_privileges(&self, reads_all: bool) -> Result<(), Vec<u8>> {
        let groups: Vec<u32> = getgroups().unwrap_or_default().into_iter().map(Gid::as_raw).collect();
        let (user, group) = (getuid().as_raw(), getgid().as_raw());
        self.libraries.iter().try_for_each(|library| library.become_user(user, group, &groups, reads_all))
    }
}

/// What has become of a library: it is there, or why not, if that is to be said.
type Outcome = Result<Library, Option<Vec<u8>>>;

/// A file of the directory.
enum Load<'s> {
    /// Another plugin takes its place.
    Own,
    /// It is not loaded.
    Nothing,
    /// It is being loaded, if there was a thread for that.
    Library(io::Result<ScopedJoinHandle<'s, Outcome>>),
}

/// How long loading the plugins of this directory may take.
pub(crate) fn longest_load(directory: &Path, settings: &PluginSettings) -> Duration {
    // Whoever can't read it says so when it loads.
    let files = files(directory).unwrap_or_default();
    let longest = files.iter().map(|file| settings.of(name_of(file)).start_timeout).max();
    Duration::from_secs(longest.unwrap_or_default().into())
}

/// Loads the plugins of this directory. The daemon's own bpipe takes the place of the file of its
/// name, or else the first place.
///
/// # Errors
/// The directory can't be read.
pub(crate) fn load(directory: &Path, settings: &PluginSettings, facts: &DaemonFacts) -> io::Result<Loaded> {
    let mut loaded = Loaded::default();
    let files = files(directory)?;
    let names: Vec<_> = files.iter().map(|file| name_of(file)).collect();
    for name in settings.unused(&names) {
        let text = texts::plugin_settings_unused(name, &names);
        tracing::error!("{}", text.trim_end());
        loaded.said.push((MessageType::Error, text.into_bytes()));
    }
    let has_bpipe = files.iter().any(|file| file == BPIPE);
    if settings.bpipe == Bpipe::Builtin && !has_bpipe {
        loaded.plugins.push(own_bpipe());
    }
    // All at the same time: one that hangs is waited for, and none behind it.
    thread::scope(|scope| {
        let load = |file: Vec<u8>| match settings.bpipe {
            Bpipe::Builtin if file == BPIPE => Load::Own,
            Bpipe::Off if file == BPIPE => Load::Nothing,
            _ => {
                let (host, settings) = (host(facts), settings.of(name_of(&file)));
                let work = move || {
                    let confinement =
                        confinement(settings).map_err(|why| Some(texts::plugin_host_unusable(&file, &why)))?;
                    Library::load(&directory.join(OsStr::from_bytes(&file)), host, confinement)
                };
                Load::Library(thread::Builder::new().name("plugin load".to_owned()).spawn_scoped(scope, work))
            }
        };
        let begun: Vec<_> = files.into_iter().map(load).collect();
        for load in begun {
            loaded.take(load);
        }
    });
    for plugin in &loaded.plugins {
        loaded.said.push((MessageType::Info, texts::plugin_loaded(&plugin.info().file)));
    }
    Ok(loaded)
}

/// The names of files that hold plugins, in the directory's order. Links are none.
fn files(directory: &Path) -> io::Result<Vec<Vec<u8>>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let Ok(entry) = entry else { continue };
        let name = entry.file_name().as_bytes().to_vec();
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && name.len() > PluginInfo::FILE_END.len() && name.ends_with(PluginInfo::FILE_END) {
            files.push(name);
        }
    }
    Ok(files)
}

fn own_bpipe() -> Arc<dyn Plugin> {
    Arc::new(BpipePlugin::new())
}

/// The name of the plugin in this file.
fn name_of(file: &[u8]) -> &[u8] {
    file.strip_suffix(PluginInfo::FILE_END).unwrap_or(file)
}

/// How the processes of plugins are run.
fn host(facts: &DaemonFacts) -> HostSettings {
    HostSettings {
        program: fd_os::process::own_program(),
        daemon: facts.name.clone(),
        working_directory: facts.working_directory.clone(),
        general: facts.general(),
        grace: HostSettings::GRACE,
        output: Arc::new(|file, line| {
            tracing::info!(plugin = %String::from_utf8_lossy(file), "{}", String::from_utf8_lossy(line));
        }),
    }
}

/// What a plugin may, by its settings.
///
/// # Errors
/// Its user or group is unknown.
pub(crate) fn confinement(settings: PluginHostSettings) -> Result<Confinement, String> {
    let PluginHostSettings { user, group, memory, network, start_timeout, call_timeout } = settings;
    let gid = match &group {
        Some(name) => Some(Group::from_name(name).ok().flatten().ok_or_else(|| texts::unknown_group(name))?.gid),
        None => None,
    };
    let user = match &user {
        Some(name) => {
            let user = User::from_name(name).ok().flatten().ok_or_else(|| texts::unknown_user(name))?;
            let gid = gid.unwrap_or(user.gid);
            let listed = CString::new(name.as_str()).ok().and_then(|name| getgrouplist(&name, gid).ok());
            let others = listed.unwrap_or_default().into_iter().filter(|other| *other != gid);
            Some((Some(user.uid.as_raw()), [gid].into_iter().chain(others).map(Gid::as_raw).collect()))
        }
        None => gid.map(|gid| (None, vec![gid.as_raw()])),
    };
    Ok(Confinement {
        user,
        memory,
        network,
        start_timeout: Duration::from_secs(start_timeout.into()),
        call_timeout: call_timeout.map(|seconds| Duration::from_secs(seconds.into())),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_directories_and_short_names_hold_no_plugins() {
        let folder = std::env::temp_dir().join(format!("ferrofd-plugins-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        for name in ["a-fd.so", "-fd.so", "b-fd.so.old", "libc.so"] {
            fs::write(folder.join(name), "").unwrap();
        }
        fs::create_dir(folder.join("d-fd.so")).unwrap();
        symlink("a-fd.so", folder.join("l-fd.so")).unwrap();
        assert_eq!(files(&folder).unwrap(), [b"a-fd.so"]);
        fs::remove_dir_all(&folder).unwrap();
        assert!(files(&folder).is_err());
    }

    #[test]
    fn settings_of_no_plugin_are_an_error_that_names_what_there_is() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a-fd.so"), "no library").unwrap();
        let said = |name: &str| {
            let settings = [(name.to_owned(), PluginHostSettings::default())].into();
            let settings = PluginSettings { bpipe: Bpipe::Off, settings, ..PluginSettings::default() };
            let loaded = load(folder.path(), &settings, &DaemonFacts::of_a_test()).unwrap();
            let texts = loaded.said.into_iter().filter(|(kind, _)| *kind == MessageType::Error);
            texts.map(|(_, text)| String::from_utf8(text).unwrap()).find(|text| text.contains("settings"))
        };
        assert_eq!(said("a"), None);
        assert_eq!(said("bpipe"), None);
        let text = said("a-fd").unwrap_or_default();
        assert!(text.contains("plugins.settings.a-fd") && text.contains("plugins: a\n"), "{text}");
    }

    #[test]
    fn the_daemon_s_own_bpipe_needs_no_file() {
        let folder = std::env::temp_dir().join(format!("ferrofd-bpipe-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let facts = DaemonFacts::of_a_test();
        let loaded = |bpipe| {
            let settings = PluginSettings { bpipe, ..PluginSettings::default() };
            let loaded = load(&folder, &settings, &facts).unwrap();
            (loaded.plugins.iter().map(|plugin| plugin.info().name().to_vec()).collect::<Vec<_>>(), loaded.said.len())
        };
        for _ in 0..2 {
            assert_eq!(loaded(Bpipe::Builtin), (vec![b"bpipe".to_vec()], 1));
            assert_eq!(loaded(Bpipe::Off), (Vec::new(), 0));
            fs::write(folder.join("bpipe-fd.so"), "no library").unwrap();
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
