//! What options, their values and mistakes come to.

use super::*;
use crate::texts;

fn parsed(arguments: &[&str]) -> Result<Cli, CliError> {
    parse(std::iter::once("/usr/sbin/bacula-fd").chain(arguments.iter().copied()).map(OsString::from))
}

fn good(arguments: &[&str]) -> Cli {
    parsed(arguments).unwrap()
}

fn complaint(arguments: &[&str]) -> String {
    match parsed(arguments) {
        Err(CliError::Usage { complaint }) => String::from_utf8(complaint).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_file_is_found_by_the_rules() {
    // reference 06 §4.2 and the further rows of §15
    assert_eq!(good(&[]).config_file, "/etc/bacula/bacula-fd.conf");
    assert_eq!(good(&["-c", "fd.conf"]).config_file, "/etc/bacula/fd.conf");
    assert_eq!(good(&["-c", "./fd.conf"]).config_file, "./fd.conf");
    assert_eq!(good(&["-c", "/x", "-c", "/y"]).config_file, "/y");
    assert_eq!(good(&["-t", "-c", "/nope", "/file"]).config_file, "/file");
    assert_eq!(good(&["-c", "/file", "extra"]).config_file, "/etc/bacula/extra");
    assert_eq!(good(&["-c", "|cat /file"]).config_file, "|cat /file");
    assert_eq!(good(&["-c", ""]).config_file, "");
    assert_eq!(good(&["-t", "-"]).config_file, "/etc/bacula/-");
    assert_eq!(good(&["-t", "--", "-t"]).config_file, "/etc/bacula/-t");
}

#[test]
fn options_join_and_stand_anywhere() {
    let cli = good(&["/file", "-fPc/other", "-vv", "-sTm", "-u", "bacula", "-gadm", "-k"]);
    assert!(cli.foreground && cli.no_pid_file && cli.no_signals && cli.trace && cli.show_traceback);
    assert_eq!(cli.config_file, "/file");
    assert_eq!(cli.verbose, 2);
    assert_eq!((cli.user.as_deref(), cli.group.as_deref(), cli.keep_read_all), (Some("bacula"), Some("adm"), true));
    assert!(!cli.wants_background());
    assert!(good(&["/file"]).wants_background());
    assert!(!good(&["-t"]).wants_background());
    assert!(good(&["-tc", "/file"]).test_only);
}

#[test]
fn debug_levels_are_at_least_one() {
    let level = |value: &str| good(&["-d", value]).debug_level;
    assert_eq!([level("5"), level("0"), level("-3"), level("x")], [Some(5), Some(1), Some(1), Some(1)]);
    let cli = good(&["-d10,lock,network", "-dt"]);
    assert_eq!(
        (cli.debug_level, cli.debug_tags.to_str(), cli.debug_timestamps),
        (Some(10), Some("lock,network"), true)
    );
    assert_eq!(good(&["-dtx"]).debug_level, None);
}

#[test]
fn mistakes_get_the_usage_and_getopts_line() {
    assert_eq!(complaint(&["-?"]), "");
    assert_eq!(complaint(&["-D", "5"]), "");
    assert_eq!(complaint(&["a", "b"]), "");
    assert_eq!(complaint(&["-t", "/file", ""]), "");
    assert_eq!(complaint(&["-z"]), "/usr/sbin/bacula-fd: invalid option -- 'z'");
    assert_eq!(complaint(&["-x"]), "/usr/sbin/bacula-fd: invalid option -- 'x'");
    assert_eq!(complaint(&["--help"]), "/usr/sbin/bacula-fd: invalid option -- '-'");
    assert_eq!(complaint(&["--version"]), "/usr/sbin/bacula-fd: invalid option -- '-'");
    assert_eq!(complaint(&["-t", "-c"]), "/usr/sbin/bacula-fd: option requires an argument -- 'c'");
    assert_eq!(complaint(&["-D"]), "/usr/sbin/bacula-fd: option requires an argument -- 'D'");
    let text = parsed(&["-z"]).unwrap_err().standard_error(texts::USAGE);
    // Scripts look for the version in this form, and in this line.
    let version = format!("ferrofd {}, ", env!("CARGO_PKG_VERSION"));
    let shown = String::from_utf8(text.clone()).unwrap();
    let lines: Vec<_> = shown.lines().take(4).collect();
    assert_eq!((lines[0], lines[2]), ("/usr/sbin/bacula-fd: invalid option -- 'z'", ""));
    assert!(lines[1].starts_with(&version) && lines[3] == "Version: 15.0.3 (25 March 2025)", "{shown}");
    assert!(shown.contains("--diagnose") && !shown.contains("Copyright"), "{shown}");
    assert!(text.ends_with(b"     -?               print this message.\n\n"));
}

#[test]
fn keeping_capabilities_needs_a_user() {
    let error = parsed(&["-t", "-k", "-c", "/file"]).unwrap_err();
    assert!(error.standard_error(texts::USAGE).is_empty());
    let message = error.message().unwrap();
    let expected = "bacula-fd: ERROR TERMINATION at filed.c:198\n-k option has no meaning without -u option.\n";
    assert_eq!(String::from_utf8_lossy(message.text()), expected);
    assert_eq!(complaint(&["-k", "a", "b"]), "");
    assert!(good(&["-k", "-u", ""]).keep_read_all);
}
