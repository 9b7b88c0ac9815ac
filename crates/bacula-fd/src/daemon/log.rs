//! The program's own log: what is no message to the operator. Lines look like the stock daemon's
//! debug lines.

use std::fmt;
use std::io;
use std::sync::Arc;

use fd_config::LogFormat;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::layer::{Context, Filter, Layer as _, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::clock;
use crate::print::use_json;
use crate::shared::debug::Debug;

/// Sends every thread's log to `debug` from now on. To be called once.
pub(crate) fn init(debug: &Arc<Debug>, format: LogFormat) {
    let lines = tracing_subscriber::fmt::layer().with_writer(Out(Arc::clone(debug)));
    let filter = ByLevel(Arc::clone(debug));
    let log = tracing_subscriber::registry();
    match format {
        LogFormat::Text => log.with(lines.event_format(StockLines(Arc::clone(debug))).with_filter(filter)).init(),
        LogFormat::Json => {
            use_json();
            log.with(lines.json().with_filter(filter)).init();
        }
    }
}

/// Filters by the current debug level.
struct ByLevel(Arc<Debug>);

impl<S> Filter<S> for ByLevel {
    fn enabled(&self, metadata: &Metadata<'_>, _context: &Context<'_, S>) -> bool {
        *metadata.level() <= self.0.filter()
    }
}

/// Where whole lines go.
struct Out(Arc<Debug>);

impl<'w> MakeWriter<'w> for Out {
    type Writer = OutLine<'w>;

    fn make_writer(&'w self) -> Self::Writer {
        OutLine(&self.0)
    }
}

struct OutLine<'d>(&'d Debug);

impl io::Write for OutLine<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `[21-Nov-2026 02:00:41 ]x-fd[[ThreadId(3)]]: bacula_fd::daemon::start:82 WARN text`
/// (reference 06 §8.2).
struct StockLines(Arc<Debug>);

impl<S, N> FormatEvent<S, N> for StockLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        if self.0.has_timestamps() {
            write!(out, "{} ", clock::full_date(clock::seconds()))?;
        }
        write!(out, "{}", self.0.name())?;
        if self.0.has_thread_ids() {
            write!(out, "[{:?}]", std::thread::current().id())?;
        }
        let metadata = event.metadata();
        let line = metadata.line().unwrap_or(0);
        write!(out, ": {}:{line} {} ", metadata.target(), metadata.level())?;
        context.format_fields(out.by_ref(), event)?;
        writeln!(out)
    }
}
