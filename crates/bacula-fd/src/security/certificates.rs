//! The certificates of the resources that have TLS with certificates, read at the start, and again
//! when the administrator asks for it.
//!
//! At the start because `-u` may take the right to read the keys away, and because a daemon that
//! can't protect its connections as asked must not run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use fd_config::{Config, Tls};
use fd_os::lock::Mutex;
use fd_transport::{CertificateFiles, CertificateProblem, Certificates};

use crate::security::certificate_dates::{Validity, validities};

/// When what a resource uses for TLS ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CertificateEnd {
    /// `FileDaemon`, `Director` or `Console`.
    pub resource: &'static str,
    /// The resource's name.
    pub name: String,
    /// Whether it is that of the authorities (the last of them), not our own certificate's.
    pub of_authorities: bool,
    /// Seconds since 1970.
    pub time: i64,
}

/// Certificates by resource. A connection keeps those that it began with.
#[derive(Debug)]
pub(crate) struct ResourceCertificates {
    loaded: Mutex<Loaded>,
    /// How many readings have begun.
    readings: AtomicU64,
}

/// What was read.
#[derive(Debug)]
struct Loaded {
    /// The number of the reading.
    reading: u64,
    own: Option<Certificates>,
    directors: BTreeMap<String, Certificates>,
    consoles: BTreeMap<String, Certificates>,
    ends: Vec<CertificateEnd>,
}

impl ResourceCertificates {
    /// Reads the files of every resource that names them.
    ///
    /// # Errors
    /// The first file that can't be used.
    pub(crate) fn load(config: &Config) -> Result<Self, CertificateProblem> {
        Loaded::read(config, 0).map(|loaded| Self { loaded: Mutex::new(loaded), readings: AtomicU64::new(0) })
    }

    /// Reads the same files again, for connections that begin from now on. Of two readings at a
    /// time the one that began later counts: the other may have read a file before it was replaced.
    ///
    /// # Errors
    /// The first file that can't be used. All stay as they are then.
    pub(crate) fn load_again(&self, config: &Config) -> Result<(), CertificateProblem> {
        let reading = self.readings.fetch_add(1, Ordering::SeqCst).saturating_add(1);
        let read = Loaded::read(config, reading)?;
        let mut loaded = self.loaded.lock();
        if loaded.reading < reading {
            *loaded = read;
        }
        Ok(())
    }

    /// When they end.
    pub(crate) fn ends(&self) -> Vec<CertificateEnd> {
        self.loaded.lock().ends.clone()
    }

    /// Towards Storage Daemons.
    pub(crate) fn own(&self) -> Option<Certificates> {
        self.loaded.lock().own.clone()
    }

    /// Towards the Director of this name.
    pub(crate) fn of_director(&self, name: &str) -> Option<Certificates> {
        self.loaded.lock().directors.get(name).cloned()
    }

    /// Of the console of this name.
    pub(crate) fn of_console(&self, name: &str) -> Option<Certificates> {
        self.loaded.lock().consoles.get(name).cloned()
    }
}

impl Loaded {
    fn read(config: &Config, reading: u64) -> Result<Self, CertificateProblem> {
        Ok(Self {
            reading,
            own: certificates(&config.file_daemon.tls)?,
            directors: each(config.directors.iter().map(|director| (&director.name, &director.tls)))?,
            consoles: each(config.consoles.iter().map(|console| (&console.name, &console.tls)))?,
            ends: ends(config),
        })
    }
}

fn each<'c>(
    resources: impl Iterator<Item = (&'c String, &'c Tls)>,
) -> Result<BTreeMap<String, Certificates>, CertificateProblem> {
    let read = resources.map(|(name, tls)| Ok(certificates(tls)?.map(|certificates| (name.clone(), certificates))));
    read.filter_map(Result::transpose).collect()
}

fn ends(config: &Config) -> Vec<CertificateEnd> {
    let mut ends = Vec::new();
    for (resource, name, tls) in config.tls_resources() {
        if tls.enable || tls.authenticate {
            let first = tls.cert.as_deref().and_then(|file| dates(file).first().copied());
            let last = tls.ca_file.as_deref().and_then(|file| dates(file).into_iter().max_by_key(|one| one.end));
            for (of_authorities, found) in [(false, first), (true, last)] {
                let end = |Validity { end, .. }| CertificateEnd {
                    resource,
                    name: name.to_owned(),
                    of_authorities,
                    time: end,
                };
                ends.extend(found.map(end));
            }
        }
    }
    ends
}

/// Of a file that was loaded a moment ago.
fn dates(file: &Path) -> Vec<Validity> {
    fs::read(file).ok().and_then(|pem| validities(&pem).ok()).unwrap_or_default()
}

/// What the `TLS …` directives of a resource name; `None` if they ask for no certificates.
pub(crate) fn certificates(tls: &Tls) -> Result<Option<Certificates>, CertificateProblem> {
    if !tls.enable && !tls.authenticate {
        return Ok(None);
    }
    let files = CertificateFiles {
        ca_file: tls.ca_file.clone(),
        ca_dir: tls.ca_dir.clone(),
        certificate: tls.cert.clone(),
        key: tls.key.clone(),
        dh: tls.dh.clone(),
        verify_peer: tls.verify_peer,
        allowed_cn: tls.allowed_cn.clone(),
    };
    Certificates::load(&files).map(Some)
}

#[cfg(test)]
mod tests;
