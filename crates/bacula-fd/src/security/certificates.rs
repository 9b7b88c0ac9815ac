//! The certificates of the resources that have TLS with certificates, read once, at the start.
//!
//! At the start because `-u` may take the right to read the keys away, and because a daemon that
//! can't protect its connections as asked must not run.

use std::collections::BTreeMap;

use fd_config::{Config, Tls};
use fd_transport::{CertificateFiles, CertificateProblem, Certificates};

/// Certificates by resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResourceCertificates {
    own: Option<Certificates>,
    directors: BTreeMap<String, Certificates>,
    consoles: BTreeMap<String, Certificates>,
}

impl ResourceCertificates {
    /// Reads the files of every resource that names them.
    pub(crate) fn load(config: &Config) -> Result<Self, CertificateProblem> {
        Ok(Self {
            own: certificates(&config.file_daemon.tls)?,
            directors: each(config.directors.iter().map(|director| (&director.name, &director.tls)))?,
            consoles: each(config.consoles.iter().map(|console| (&console.name, &console.tls)))?,
        })
    }

    /// Towards Storage Daemons.
    pub(crate) const fn own(&self) -> Option<&Certificates> {
        self.own.as_ref()
    }

    /// Towards the Director of this name.
    pub(crate) fn of_director(&self, name: &str) -> Option<&Certificates> {
        self.directors.get(name)
    }

    /// Of the console of this name.
    pub(crate) fn of_console(&self, name: &str) -> Option<&Certificates> {
        self.consoles.get(name)
    }
}

fn each<'c>(
    resources: impl Iterator<Item = (&'c String, &'c Tls)>,
) -> Result<BTreeMap<String, Certificates>, CertificateProblem> {
    let read = resources.map(|(name, tls)| Ok(certificates(tls)?.map(|certificates| (name.clone(), certificates))));
    read.filter_map(Result::transpose).collect()
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
