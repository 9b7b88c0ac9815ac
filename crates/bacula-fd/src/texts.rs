//! What the program itself says; what it says to a Director stands in `fd-session`.

/// What `-?` and every mistake print on standard error.
pub(crate) const USAGE: &str = "\
Copyright (C) 2000-2025 Kern Sibbald.

Version: 15.0.3 (25 March 2025)

Usage: bacula-fd [-f -s] [-c config_file] [-d debug_level]
     -c <file>        use <file> as configuration file
     -d <n>[,<tags>]  set debug level to <nn>, debug tags to <tags>
     -dt              print a timestamp in debug output
     -f               run in foreground (for debugging)
     -g               groupid
     -k               keep readall capabilities
     -m               print kaboom output (for debugging)
     -P               do not create pid file
     -s               no signals (for debugging)
     -t               test configuration file and exit
     -T               set trace on
     -u               userid
     -v               verbose user messages
     -?               print this message.

";
