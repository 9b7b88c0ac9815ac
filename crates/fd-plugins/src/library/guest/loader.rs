//! Loading the plugin, and what is checked (reference 07 §2.3, §2.4).

use std::error::Error as _;
use std::ffi::OsStr;
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::{companions, functions, libbac};
use crate::api::plugin::Offers;
use crate::library::abi::{
    DaemonFunctions, DaemonInfo, LICENSES, LoadPlugin, MAGIC, PluginFunctions, PluginInfoPacket, UnloadPlugin, VERSION,
};
use crate::library::values::text;
use crate::library::wire::Load;
use crate::texts;

/// A plugin that is loaded.
pub(super) struct Loaded {
    pub(super) functions: &'static PluginFunctions,
    pub(super) version: Vec<u8>,
    unload: UnloadPlugin,
    /// Closed by the end of the process only: threads may still be in it.
    _library: ManuallyDrop<Library>,
}

/// Why a plugin is refused: the message, if there is one.
pub(super) type Refusal = Option<Vec<u8>>;

impl Loaded {
    /// Loads a plugin.
    pub(super) fn load(load: &Load) -> Result<Self, Refusal> {
        let (path, file) = (load.path.0.as_slice(), load.file.0.as_slice());
        let library = open(path).or_else(|error| {
            if !companions::are_missing(&error) {
                return Err(error);
            }
            companions::load(Path::new(OsStr::from_bytes(path)), &load.working_directory.0, &load.daemon.0);
            open(path)
        });
        let library = ManuallyDrop::new(library.map_err(|error| Some(texts::dlopen_failed(path, &error)))?);
        libbac::set_up(&library);
        // SAFETY: a plugin's function of this name is of this type.
        let begin = unsafe { library.get::<LoadPlugin>(b"loadPlugin\0") };
        let begin = *begin.map_err(|_| Some(texts::no_function("loadPlugin", path)))?;
        // SAFETY: as above.
        let unload = unsafe { library.get::<UnloadPlugin>(b"unloadPlugin\0") };
        let unload = *unload.map_err(|_| Some(texts::no_function("unloadPlugin", path)))?;
        // The plugin may keep the addresses of both.
        let table: &'static DaemonFunctions = Box::leak(Box::new(functions::table()));
        let info: &'static mut DaemonInfo = Box::leak(Box::new(DaemonInfo { size: 8, version: VERSION }));
        let mut plugin_info: *mut PluginInfoPacket = std::ptr::null_mut();
        let mut plugin_functions: *mut PluginFunctions = std::ptr::null_mut();
        // SAFETY: the plugin's function, with what it wants.
        let code = unsafe { begin(info, table, &raw mut plugin_info, &raw mut plugin_functions) };
        let refused = |why: Refusal| {
            // SAFETY: the plugin's function; nothing else of it is called any more.
            unsafe { unload() };
            Err(why)
        };
        if code != 0 {
            return refused(None);
        }
        // SAFETY: the plugin has set it to a structure that stays, or has left it null.
        let info = unsafe { plugin_info.as_ref() };
        // SAFETY: as above.
        let functions = unsafe { plugin_functions.as_ref() };
        let (Some(info), Some(functions)) = (info, functions) else {
            return refused(Some(texts::no_structures(file)));
        };
        if let Err(why) = check(info, file) {
            return refused(Some(why));
        }
        // SAFETY: a text, or null.
        let version = unsafe { text(info.plugin_version) }.unwrap_or_default();
        Ok(Self { functions, version, unload, _library: library })
    }

    /// Which functions it has.
    pub(super) fn offers(&self) -> Offers {
        let functions = self.functions;
        Offers {
            backup: functions.start_backup_file.is_some() && functions.end_backup_file.is_some(),
            restore: functions.start_restore_file.is_some() && functions.end_restore_file.is_some(),
            io: functions.plugin_io.is_some(),
            create_file: functions.create_file.is_some(),
            set_attributes: functions.set_file_attributes.is_some(),
            check_file: functions.check_file.is_some(),
            xacl: functions.handle_xacl_data.is_some(),
            restore_file_list: functions.restore_file_list.is_some(),
            check_stream: functions.check_stream.is_some(),
            query: functions.query_parameter.is_some(),
            metadata: functions.metadata_restore.is_some(),
            start_verify: functions.start_verify_file.is_some(),
            end_verify: functions.end_verify_file.is_some(),
        }
    }

    /// Unloads it. It is not called any more.
    pub(super) fn unload(&self) {
        // SAFETY: the plugin's function.
        unsafe { (self.unload)() };
    }
}

fn open(path: &[u8]) -> Result<Library, String> {
    // SAFETY: whoever may put a library into the plugin directory may run code here; that is what
    // the directory is for.
    let library = unsafe { Library::open(Some(OsStr::from_bytes(path)), RTLD_NOW | RTLD_LOCAL) };
    // The system's own words.
    library.map_err(|error| error.source().map_or_else(|| error.to_string(), ToString::to_string))
}

/// The checks of reference 07 §2.4; the first that fails is reported.
fn check(info: &PluginInfoPacket, file: &[u8]) -> Result<(), Vec<u8>> {
    // SAFETY: a text, or null.
    let magic = unsafe { text(info.magic) }.unwrap_or_default();
    if magic != MAGIC {
        return Err(texts::wrong_magic(file, &magic));
    }
    if info.version != VERSION {
        return Err(texts::wrong_version(file, info.version));
    }
    // SAFETY: as above.
    let license = unsafe { text(info.license) }.unwrap_or_default();
    if !LICENSES.contains(&license.as_slice()) {
        return Err(texts::wrong_license(file, &license));
    }
    if info.size as usize != size_of::<PluginInfoPacket>() {
        return Err(texts::wrong_size(file, info.size));
    }
    Ok(())
}
