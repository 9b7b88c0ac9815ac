//! The plugins that a job has.

use std::sync::Arc;

use fd_plugins::{JobFacts, JobPlugins, RestoreFile};
use fd_records::{AttributesRecord, Stream};

/// The plugins of the job, and what the daemon tells them.
///
/// Of a restore, plugins are told `where` and `regexwhere` as the facts have them
/// (`Variable::Where`, `Variable::RegexWhere`).
#[derive(Clone, Debug)]
pub struct PluginAccess {
    /// The plugins, with their contexts in this job.
    pub plugins: Arc<JobPlugins>,
    /// What is the same at every place of the job.
    pub facts: Arc<dyn JobFacts>,
}

/// What plugins are told of a file, by its record alone.
pub(crate) fn told_of(stream: Stream, record: &AttributesRecord<'_>) -> RestoreFile {
    let number = |stream: Stream| i32::try_from(stream.number()).unwrap_or_default();
    RestoreFile {
        stream: number(stream.kind()),
        data_stream: number(record.lstat.data_stream),
        file_type: i32::from(record.type_code),
        file_index: i32::try_from(record.file_index).unwrap_or_default(),
        link_fi: record.lstat.link_fi,
        // The stock daemon never sets it.
        uid: 0,
        stat: record.lstat.stat,
        attr_ex: record.attr_ex.to_vec(),
        name: record.name.to_vec(),
        delta_seq: u32::try_from(record.delta_seq).unwrap_or_default(),
        ..RestoreFile::default()
    }
}
