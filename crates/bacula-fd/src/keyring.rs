//! The certificates of the resources that have TLS with certificates, read once, at the start.
//!
//! At the start because `-u` may take the right to read the keys away, and because a daemon that can't protect its
//! connections as asked must not run.

use std::collections::BTreeMap;

use fd_config::{Config, Tls};
use fd_transport::{CertificateFiles, CertificateProblem, Certificates};

/// Certificates by resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keyring {
    own: Option<Certificates>,
    directors: BTreeMap<String, Certificates>,
}

impl Keyring {
    /// Reads the files of every resource that wants them.
    pub(crate) fn load(config: &Config) -> Result<Self, CertificateProblem> {
        let mut directors = BTreeMap::new();
        for director in &config.directors {
            if let Some(certificates) = certificates(&director.tls)? {
                directors.insert(director.name.clone(), certificates);
            }
        }
        Ok(Self { own: certificates(&config.file_daemon.tls)?, directors })
    }

    /// Towards Storage Daemons.
    pub(crate) const fn own(&self) -> Option<&Certificates> {
        self.own.as_ref()
    }

    /// Towards the Director of this name.
    pub(crate) fn of_director(&self, name: &str) -> Option<&Certificates> {
        self.directors.get(name)
    }
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
