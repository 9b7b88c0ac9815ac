//! Whether a thread has waited.

use nix::sys::resource::{UsageWho, getrusage};

/// How often the calling thread has given its processor up by itself: for the disk, a server, a
/// lock. Losing it to another thread doesn't count. 0 if the kernel doesn't tell.
pub fn times_waited() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).ok();
    usage.and_then(|usage| u64::try_from(usage.voluntary_context_switches()).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_sleeps_has_waited_and_one_that_works_has_not() {
        let before = times_waited();
        std::thread::sleep(std::time::Duration::from_millis(1));
        let slept = times_waited();
        assert!(slept > before, "{before} {slept}");
        assert_eq!(std::hint::black_box((0..1000_u64).sum::<u64>()), 499_500);
        assert_eq!(times_waited(), slept);
    }
}
