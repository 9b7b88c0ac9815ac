//! The inode scan: which inodes of a file system have not changed for long, read in bulk from what
//! the file system itself knows. A walk that leaves out what has not changed need not look those
//! up.
//!
//! **Why nothing is lost.** An entry is left out without a lookup only if its directory says that
//! it is no directory, and the scan has found its inode with both times before the job's "since".
//! So it is treated as if it had been looked up when the scan has read its inode. Whatever makes
//! this wrong afterwards (the inode changes, gets this name by a rename or a link, is freed and
//! used for another file) sets the inode's change time to a time after the scan began, thus after
//! the job began; no user can set this time. The next job has the start of this one as its "since",
//! and saves the entry. It is the same as with a file that changes just after its lookup, only that
//! the moment is earlier. What a scan does not know is looked up: directories, names of unknown
//! type, what has changed, what is new, what is mounted over, and everything if options, the
//! accurate list, snapshots or plugins ask for more than an inode's attributes. Where only the
//! mtime counts, the argument does not hold, and there is no scan.
//!
//! **In an accurate job** the list decides, and an entry is left out only if it is old *and* as the
//! list has it. The scan keeps for each old inode a fingerprint of both times and of what else the
//! letters compare; that of the list's record of the entry's path must be the same. Then the list
//! compares the entry with these attributes, as if they had been looked up: it counts as seen, a
//! hard link needs its first name, and so on. So all of the above holds here, too, and more: the
//! record stays in the list until the entry is saved again, so the next accurate job compares
//! whatever has changed meanwhile with it once more. That an entry is old by the times adds
//! nothing to what the list says; but almost all that is as the list has it is old, and what is
//! not old is so looked up ahead of the walk. (What is old and not as the list has it is not.) A
//! list that compares data, access times, or the times with "since", has no scan, nor has a Full
//! on a base.
//!
//! Only a clock that is set back could give such a change an earlier time. So nothing is left out
//! any more once the clock has been. (Back and forward again between two entries isn't noticed.)
//!
//! All that gives a name another inode of ext4 or btrfs sets that inode's change time: renames,
//! exchanges and links. A mount does not; one that is made after the scan counts as made behind the
//! walk.
//!
//! **The device of a btrfs subvolume** is given to another one once it is deleted, which may have
//! the same inodes (a newer snapshot). So before an entry is left out there, the directory that the
//! scan holds is asked for its device: if it still has it, the entry's directory, which is open, is
//! of that subvolume.
//!
//! **A change that hangs** from before the job until after the scan, on space, on a journal that is
//! full, on a slow page, can show later with the time at which it began. It is left out here and in
//! the next job. A lookup would have found the time of some: the file system is written out first.
//!
//! **It is doubted.** What is looked up, above all every directory, is compared with the scan, and
//! one of 256 entries that would be left out is looked up for that. If one differs, and not because
//! it has changed since, the scan is thrown away. The walk goes on without it, and then once more
//! through the tree, for those that were left out by any scan; all names of a file belong to one of
//! the two walks. The file system isn't scanned again by this process.
//!
//! **Why there is none of XFS.** `XFS_IOC_BULKSTAT` makes an inode in memory of each, as a lookup
//! does, so hardly any time is saved (docs/performance.md). And exchanges there (`RENAME_EXCHANGE`)
//! change no time of two files that are no directories, so the argument above does not hold.
//!
//! **An error means: no scan**, and the walk is as ever.
//!
//! - `scans`: when a walk has one, and what it leaves out by it;
//! - `run`: the thread that reads; `open`: what it reads from;
//! - `table`: what a kind of file system tells; `ext4`, `checksum`, `btrfs`: those that are known;
//! - `known`, `inodes`, `prints`, `mounts`: what is known then.

mod btrfs;
mod checksum;
mod ext4;
mod inodes;
mod known;
mod mounts;
mod open;
mod prints;
mod run;
mod scans;
mod table;

pub(crate) use known::Known;
pub(crate) use scans::Scans;
