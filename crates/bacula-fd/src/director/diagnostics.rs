//! What an operator looks into the daemon with (reference 02 §4.20, §4.21, §4.24 to §4.27).

use fd_bsock::{Signal, hello};
use fd_session::command::{DiagnosticCommand, MetricFormat, MetricsQuery, SetDebug};

use super::conversation::{Conversation, Flow};
use crate::metrics::stock;
use crate::texts;

impl Conversation<'_> {
    pub(super) fn diagnose(&mut self, command: DiagnosticCommand) -> Flow {
        match command {
            DiagnosticCommand::Capabilities => self.capabilities(),
            DiagnosticCommand::MemoryDump => self.replied(texts::OK_SM_DUMP),
            DiagnosticCommand::SetDebug(wanted) => self.set_debug(&wanted),
            DiagnosticCommand::Statistics(query) => self.statistics(&query),
            DiagnosticCommand::TestNetwork(wanted) => self.test_network(wanted),
        }
    }

    fn capabilities(&mut self) -> Flow {
        self.queue(&hello::file_daemon_capabilities(self.resource.remote));
        self.signal(Signal::CmdOk);
        Flow::GoOn
    }

    fn set_debug(&mut self, wanted: &SetDebug) -> Flow {
        let now = self.daemon.debug.change(wanted);
        let (hangup, blowup) = (self.daemon.debug.hang_up(), self.daemon.debug.blow_up());
        tracing::info!(level = now.level, trace = now.trace, hangup, blowup, "setdebug");
        self.replied(&texts::ok_setdebug(&now))
    }

    fn statistics(&mut self, query: &MetricsQuery) -> Flow {
        let format = query.format;
        let metrics = stock::metrics(&self.daemon.config().file_daemon.name);
        let wanted: Vec<_> = match &query.names {
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
        self.end_of_data()
    }
}
