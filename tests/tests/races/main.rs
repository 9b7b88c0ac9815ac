//! What happens to a daemon between two of its system calls: another user changes the tree, a call
//! fails, the daemon is killed. The program `racer` stops it at each of them.

#![expect(clippy::unwrap_used, reason = "what helps a test fails the test, like the test itself")]

mod backups;
mod exhaustion;
mod faults;
mod judge;
mod own_files;
mod restores;
mod scene;
