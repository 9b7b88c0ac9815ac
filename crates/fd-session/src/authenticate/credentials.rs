//! What a side proves itself with, and the challenges that it must not answer.

use std::sync::{Arc, Mutex, PoisonError};

use crate::need::Need;

/// What we bring to an authentication.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The daemon's own resource name; it stands in the challenge.
    pub own_name: String,
    /// The shared secret as text: 32 hex digits towards a Director, the session key towards a
    /// Storage Daemon.
    pub key: Vec<u8>,
    /// What our resource needs.
    pub need: Need,
    /// TLS is for the authentication only and is dropped after it.
    pub tls_authenticate: bool,
    /// Nothing is proven in clear, whatever else the needs allow (`tls.require` of
    /// `bacula-fd.toml`).
    pub require_tls: bool,
    /// Whether the peer may have our own name. Otherwise a challenge with that name is one of ours,
    /// perhaps of another process with the same configuration, and is not answered.
    pub peer_may_have_our_name: bool,
    /// All challenges of this process that wait for their answers.
    pub challenges: Challenges,
    /// A random number for our challenge.
    pub random: u32,
    /// Seconds since 1970, for our challenge.
    pub time: i64,
}

/// The challenges of all connections of a process that wait for their answers; clones share them.
///
/// CRAM-MD5 has the same answer in both directions. A peer without the key could let us call it,
/// send back a challenge of ours from another connection, and use our answer there. So a challenge
/// that is in here is never answered.
#[derive(Clone, Debug, Default)]
pub struct Challenges(Arc<Mutex<Vec<String>>>);

impl Challenges {
    pub(super) fn enter(&self, text: &str) -> InFlight {
        self.with(|texts| texts.push(text.to_owned()));
        InFlight { all: self.clone(), text: text.to_owned() }
    }

    pub(super) fn holds(&self, text: &[u8]) -> bool {
        self.with(|texts| texts.iter().any(|ours| ours.as_bytes() == text))
    }

    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Vec<String>) -> T) -> T {
        // Nothing can panic half-way through a change.
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One of the [`Challenges`], until this goes.
#[derive(Debug)]
pub(super) struct InFlight {
    all: Challenges,
    pub(super) text: String,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.all.with(|texts| {
            if let Some(place) = texts.iter().position(|text| *text == self.text) {
                texts.swap_remove(place);
            }
        });
    }
}
