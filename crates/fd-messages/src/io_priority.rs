//! The share of the disks that a thread gets.

/// The kernel's classes of input and output, as `ioprio_set(2)` has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoPriority {
    /// As the thread's nice value says.
    Unset,
    /// A share; level 0 is the most, 7 the least.
    BestEffort(u8),
    /// Only what no other process uses.
    Idle,
}
