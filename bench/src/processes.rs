//! A File Daemon and the processes that work for it.

use std::collections::BTreeMap;
use std::time::Duration;

use bed::{Bed, Result, reset_peak};

use crate::group::used;

/// CPU seconds that a bed's Storage Daemon and its Director have used.
pub(crate) fn used_by_others(bed: &mut Bed) -> Result<[f64; 2]> {
    let [sd, dir] = [bed.storage().process()?.pid(), bed.director().process()?.pid()];
    Ok([used(sd)?.cpu.as_secs_f64(), used(dir)?.cpu.as_secs_f64()])
}

/// CPU time and peak memory of some processes during a job.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    /// Seconds.
    pub(crate) cpu: f64,
    /// Bytes, of all of them together.
    pub(crate) peak: u64,
}

/// What processes had used before a job.
pub(crate) struct Before(BTreeMap<u32, Duration>);

impl Before {
    /// Looks at these processes, whose peak memory begins anew.
    pub(crate) fn of(processes: &[u32]) -> Result<Self> {
        let look = |&pid| {
            reset_peak(pid)?;
            Ok((pid, used(pid)?.cpu))
        };
        Ok(Self(processes.iter().map(look).collect::<Result<_>>()?))
    }

    /// What these processes have used since. Those that are new have used it all.
    pub(crate) fn until_now(&self, processes: &[u32]) -> Result<Cost> {
        let mut cost = Cost::default();
        for pid in processes {
            let now = used(*pid)?;
            let before = self.0.get(pid).copied().unwrap_or_default();
            cost.cpu += now.cpu.saturating_sub(before).as_secs_f64();
            cost.peak += now.parts.peak_memory;
        }
        Ok(cost)
    }
}
