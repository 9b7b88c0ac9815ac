//! The plugins that a job has.

use std::sync::Arc;

use fd_plugins::{JobFacts, JobPlugins};

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
