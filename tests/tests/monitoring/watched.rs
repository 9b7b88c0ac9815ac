//! A daemon that real monitoring programs watch, with a clock of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use bed::{Bed, BedOptions, ClientOptions, Fd, FileSet, ReservedPort, Result, faketime};

pub(crate) struct Watched {
    pub(crate) bed: Bed,
    /// Where its metrics are.
    pub(crate) port: ReservedPort,
    /// Of the bed, for the monitoring program. Other users may pass.
    pub(crate) folder: PathBuf,
    clock: PathBuf,
}

impl Watched {
    /// Its clock is three days behind.
    pub(crate) fn start(name: &str) -> Result<Self> {
        let port = ReservedPort::new()?;
        let mut client = ClientOptions::new(Fd::Ours).named("test");
        client.settings = vec![format!("metrics.address = \"127.0.0.1:{}\"", port.number())];
        let mut options = BedOptions::new(name, [client])?;
        let clock = options.folder.path().join("clock");
        faketime::set(&clock, "-3d")?;
        options.clients[0].environment = faketime::variables(&clock);
        let source = options.source()?;
        fs::write(source.join("f"), "data").unwrap();
        let gone = source.join("gone");
        let sets = [("All", &source), ("Gone", &gone)];
        options.file_sets = sets.map(|(name, path)| FileSet::new(name, &["Signature = MD5"], &[path])).to_vec();
        let folder = options.folder.make(name)?;
        fs::set_permissions(options.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Ok(Self { bed: Bed::start(options)?, port, folder, clock })
    }

    /// A good backup.
    pub(crate) fn save(&self) -> Result<()> {
        self.bed.backup("test", "level=Full")?.must_be_good().map(drop)
    }

    /// One that can't save what it is to.
    pub(crate) fn save_what_is_gone(&self) -> Result<()> {
        self.bed.backup("test", "level=Full fileset=Gone")?.must_be('T').map(drop)
    }

    /// From now on it has the time of day.
    pub(crate) fn correct_clock(&self) -> Result<()> {
        faketime::set(&self.clock, "+0")
    }

    /// The daemon is gone.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.bed.client("test")?.daemon().stop().map(drop)
    }
}
