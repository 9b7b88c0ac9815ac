//! `s3`: the objects of a bucket, on any server that speaks S3, are saved as files; a restore makes
//! files of them, or objects.
//!
//! A library for the `Plugin Directory`, of the package `ferrofd-s3`. It is a plugin like any
//! other: the daemon loads it in a plugin host, so that nothing of its requests, their TLS and
//! their threads is ever in the daemon.
//!
//! - `settings`: the file that a command names;
//! - `names`: between keys and the names of files;
//! - `client`, `error`, `work`: requests, and waiting for them;
//! - `listing`, `object`, `checksum`, `extras`: what a server says;
//! - `backup`: listing, comparing, and fetching ahead;
//! - `restore`, `upload`: the way back;
//! - `job`: the plugin's functions.

#![cfg(target_arch = "x86_64")]

mod backup;
mod checksum;
mod client;
mod error;
mod extras;
mod job;
mod listing;
mod names;
mod object;
mod patience;
mod restore;
#[cfg(test)]
mod server;
mod settings;
mod texts;
mod upload;
mod work;
#[cfg(any(test, fuzzing))]
mod wrong_name;

use fd_plugins::{Called, Host, Instance, Offers, Plugin, PluginInfo, Status};

use job::S3Job;
#[cfg(fuzzing)]
pub use listing::objects_in;
#[cfg(any(test, fuzzing))]
pub use wrong_name::wrong_name;

/// The plugin.
#[derive(Debug)]
struct S3Plugin {
    info: PluginInfo,
}

fd_plugins::export!(S3Plugin { info: PluginInfo { file: b"s3-fd.so".to_vec(), version: b"1".to_vec() } });

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
