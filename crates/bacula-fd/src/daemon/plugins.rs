//! The plugins are loaded: the daemon's own, and those of the *Plugin Directory* (reference 07 §2).

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use fd_config::{Bpipe as WhichBpipe, PluginSettings};
use fd_messages::MessageType;
use fd_plugins::{Bpipe, Plugin, PluginInfo};

use crate::texts;

/// The file of the plugin that the daemon has itself.
const BPIPE: &[u8] = b"bpipe-fd.so";

/// The plugins of a directory, in its order.
#[derive(Default, Debug)]
pub(crate) struct Loaded {
    /// The plugins.
    pub(crate) plugins: Vec<Arc<dyn Plugin>>,
    /// What is to be said of them, when the daemon can.
    pub(crate) said: Vec<(MessageType, Vec<u8>)>,
}

/// Loads the plugins of this directory. The daemon's own bpipe takes the place of the file of its
/// name, or else the first place.
///
/// # Errors
/// The directory can't be read.
pub(crate) fn load(directory: &Path, settings: &PluginSettings) -> io::Result<Loaded> {
    let mut loaded = Loaded::default();
    let files = files(directory)?;
    let has_bpipe = files.iter().any(|file| file == BPIPE);
    if settings.bpipe == WhichBpipe::Builtin && !has_bpipe {
        loaded.plugins.push(own_bpipe());
    }
    for file in files {
        match settings.bpipe {
            WhichBpipe::Builtin if file == BPIPE => loaded.plugins.push(own_bpipe()),
            WhichBpipe::Off if file == BPIPE => {}
            _ => {}
        }
    }
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
    Arc::new(Bpipe::new())
}
