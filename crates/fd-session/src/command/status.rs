//! `.status` (reference 02 §4.18, §11.3).

use fd_bsock::scan::{Lenient, unbash_spaces};

/// What is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StatusGroup {
    /// The running jobs, in short.
    Current,
    /// The last job.
    Last,
    /// The daemon itself.
    Header,
    /// The running jobs.
    Running,
    /// The jobs that ran.
    Terminated,
    /// Collectors: of all Statistics resources, or of the one with this name.
    Statistics(Vec<u8>),
    /// The daemon's resource.
    Resources,
    /// What each running job does right now. Stock daemons do not have it.
    Activity,
}

/// A `.status` command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatusQuery {
    /// What is asked for.
    pub group: StatusGroup,
    /// API version.
    pub api: i32,
    /// API options.
    pub api_opts: Vec<u8>,
}

impl StatusQuery {
    pub(super) fn parse(frame: &[u8]) -> Option<Self> {
        let mut scan = Lenient::new(frame);
        let mut word = scan.text(".status ")?.word(1000).splitn(2, |byte| *byte == b'=');
        let group = match word.next()?.to_ascii_lowercase().as_slice() {
            b"current" => StatusGroup::Current,
            b"last" => StatusGroup::Last,
            b"header" => StatusGroup::Header,
            b"running" => StatusGroup::Running,
            b"terminated" => StatusGroup::Terminated,
            b"statistics" => StatusGroup::Statistics(unbash_spaces(word.next().unwrap_or_default())),
            b"resources" => StatusGroup::Resources,
            b"activity" => StatusGroup::Activity,
            _ => return None,
        };
        let api = scan.text(" api=").map_or(0, Lenient::i32);
        let api_opts = scan.text(" api_opts=").map(|scan| scan.word(1000).to_vec()).unwrap_or_default();
        Some(Self { group, api, api_opts })
    }
}
