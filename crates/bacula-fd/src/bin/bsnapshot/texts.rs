//! What the program says about itself. Errors have their texts where they are defined.

/// Standard error of a wrong use.
pub(crate) const USAGE: &str = "\
Usage: bsnapshot [-d LEVEL] [-o LOGFILE] [-c CONFFILE] [-V VOLUME] [-T TYPE] [-stv]

Makes snapshots for bacula-fd, which says in environment variables what to do:
SNAPSHOT_ACTION is subvolumes, support, create, mount, unmount, delete, list or query.

  -c CONFFILE  configuration, instead of /etc/bacula/bsnapshot.conf or
               /opt/bacula/etc/bsnapshot.conf
  -d LEVEL     write what is done into the log, above 0
  -o LOGFILE   the log
  -s           run the tools with sudo
  -t           say of each mounted btrfs, ext3, ext4, XFS or ZFS whether it can have snapshots
  -T TYPE      btrfs, lvm or zfs, instead of SNAPSHOT_TYPE
  -v           as -d 1; twice for more
  -V VOLUME    instead of SNAPSHOT_VOLUME
  -?           print this message
See bsnapshot(8).
";
