//! Debugging, statistics, queries and snapshots (reference 02 §4.5, §4.20 to §4.22).

use fd_fileset::{JobCodes, expand_job_codes};
use fd_session::command::{MetricFormat, SetDebug, SnapshotWish};
use fd_session::texts;

use super::{Conversation, Flow};
use crate::metrics::stock;

/// The snapshot helper without a `Snapshot Command`.
const SNAPSHOT_COMMAND: &[u8] = b"%ebsnapshot";

impl Conversation<'_> {
    pub(super) fn set_debug(&mut self, wanted: &SetDebug) -> Flow {
        let now = self.daemon.debug().change(wanted);
        let (hangup, blowup) = (self.daemon.debug().hang_up(), self.daemon.debug().blow_up());
        tracing::info!(level = now.level, trace = now.trace, hangup, blowup, "setdebug");
        self.replied(&texts::ok_setdebug(&now))
    }

    pub(super) fn statistics(&mut self, format: MetricFormat, names: Option<&[Vec<u8>]>) -> Flow {
        let metrics = stock::metrics(&self.daemon.config().file_daemon.name);
        let wanted: Vec<_> = match names {
            None => metrics.iter().collect(),
            Some(names) => names
                .iter()
                .filter_map(|name| metrics.iter().find(|metric| metric.name.as_bytes() == name.as_slice()))
                .collect(),
        };
        if format == MetricFormat::Json {
            self.queue(b"[");
        }
        for (place, metric) in wanted.into_iter().enumerate() {
            let (unit, description) = (metric.unit, metric.description);
            self.queue(&texts::metric(format, place == 0, &metric.name, metric.value, unit, description));
        }
        if format == MetricFormat::Json {
            self.queue(b"\n]\n");
        }
        self.end_of_data();
        Flow::GoOn
    }

    /// Asks a plugin. None of ours has anything to tell.
    pub(super) fn query(&mut self, parameter: &[u8], plugin: &[u8]) -> Flow {
        let (parameter, plugin) = (String::from_utf8_lossy(parameter), String::from_utf8_lossy(plugin));
        tracing::debug!(%parameter, %plugin, "no plugin answers this query");
        // Where there are no plugins at all the stock daemon looks for none, and says nothing.
        if !self.daemon.installed_plugins().is_empty() {
            self.queue(texts::PLUGIN_NOT_FOUND);
        }
        self.end_of_data();
        Flow::GoOn
    }

    /// What the stock daemon answers where its helper program is not installed; Debian does not ship one.
    pub(super) fn snapshot(&mut self, wish: SnapshotWish) -> Flow {
        let failed = |wish: &str| texts::snapshot_helper_failed(wish, &self.snapshot_helper());
        match wish {
            SnapshotWish::Retention => self.reply(texts::OK_SNAPSHOT_RETENTION),
            SnapshotWish::List | SnapshotWish::Content => self.end_of_data(),
            SnapshotWish::Query => {
                let reply = texts::snapshot_not_queried(&failed("query"));
                self.reply(&reply);
            }
            SnapshotWish::Delete => {
                let reply = texts::snapshot_not_deleted(&failed("delete"));
                self.reply(&reply);
            }
            SnapshotWish::Prune => self.reply(texts::SNAPSHOT_PRUNED),
        }
        Flow::GoOn
    }

    fn snapshot_helper(&self) -> Vec<u8> {
        use std::os::unix::ffi::OsStrExt as _;
        let command = self.daemon.config().file_daemon.snapshot_command.as_deref().unwrap_or(SNAPSHOT_COMMAND);
        let program = std::env::current_exe().unwrap_or_default();
        let directory = program.parent().map(|parent| parent.as_os_str().as_bytes().to_vec()).unwrap_or_default();
        let directory = [directory.as_slice(), b"/"].concat();
        expand_job_codes(command, &JobCodes { status: &directory, ..JobCodes::default() })
    }
}
