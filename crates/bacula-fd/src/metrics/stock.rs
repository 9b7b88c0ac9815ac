//! The daemon's metrics, as `statistics` shows them (reference 02 §12).

use crate::shared::platform::Platform;

/// One metric. All are whole numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Metric {
    /// `bacula.client.NAME.memory.heap`.
    pub name: String,
    /// Now.
    pub value: u64,
    /// `Number` or `Bytes`.
    pub unit: &'static str,
    /// For people.
    pub description: &'static str,
}

/// All metrics of the daemon of this name, as they are now. The two counts of the stock daemon's
/// own allocator are 0: there is no such allocator here.
pub(crate) fn metrics(daemon: &str) -> [Metric; 5] {
    let memory = Platform::memory();
    let metric = |what: &str, value, unit, description| Metric {
        name: format!("bacula.client.{daemon}.memory.{what}"),
        value,
        unit,
        description,
    };
    [
        metric("bufs", 0, "Number", "The number of buffers allocated."),
        metric("heap", memory.data, "Bytes", "The size of the heap."),
        metric("maxbufs", 0, "Number", "The maximum buffers allocated."),
        metric("maxbytes", memory.peak_resident, "Bytes", "The allocated memory size."),
        metric("smbytes", memory.resident, "Bytes", "The allocated memory size."),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_named_after_the_daemon() {
        let names: Vec<String> = metrics("x-fd").into_iter().map(|metric| metric.name).collect();
        assert_eq!(names.first().map(String::as_str), Some("bacula.client.x-fd.memory.bufs"));
        assert!(metrics("x-fd").iter().any(|metric| metric.value > 0));
    }
}
