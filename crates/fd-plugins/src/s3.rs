//! `s3`: the objects of a bucket, on any server that speaks S3, are saved as files; a restore makes
//! files of them, or objects.
//!
//! It runs in a plugin host: its library for requests has threads of its own, and none of them is
//! ever in the daemon.
//!
//! - `settings`: the file that a command names;
//! - `names`: between keys and the names of files;
//! - `client`, `error`, `work`: requests, and waiting for them;
//! - `listing`, `object`, `checksum`, `extras`: what a server says;
//! - `backup`: listing, comparing, and fetching ahead;
//! - `restore`, `upload`: the way back;
//! - `job`: the plugin's functions.

mod backup;
mod checksum;
mod client;
mod error;
mod extras;
mod job;
mod listing;
mod names;
mod object;
mod restore;
mod settings;
mod upload;
mod work;

use crate::api::call::{Called, Status};
use crate::api::host::Host;
use crate::api::plugin::{Instance, Offers, Plugin, PluginInfo};
use job::S3Job;
pub use listing::objects_in;
pub use names::wrong_name;

/// The plugin.
#[derive(Debug)]
pub(crate) struct S3Plugin {
    info: PluginInfo,
}

impl S3Plugin {
    /// The file that it would have.
    pub(crate) const FILE: &'static [u8] = b"s3-fd.so";

    pub(crate) fn new() -> Self {
        Self { info: PluginInfo { file: Self::FILE.to_vec(), version: b"1".to_vec() } }
    }
}

impl Plugin for S3Plugin {
    fn info(&self) -> &PluginInfo {
        &self.info
    }

    fn offers(&self) -> Offers {
        Offers {
            backup: true,
            restore: true,
            io: true,
            create_file: true,
            set_attributes: true,
            metadata: true,
            ..Offers::default()
        }
    }

    fn begin(&self, _host: &mut dyn Host) -> Called<(Box<dyn Instance>, Status)> {
        Ok((Box::new(S3Job::default()), Status::Ok))
    }
}
