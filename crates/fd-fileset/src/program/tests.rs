//! Commands of list programs: splitting, job codes, permission.

use super::*;

fn codes() -> JobCodes<'static> {
    JobCodes {
        client: b"my-fd",
        director: b"my-dir",
        status: b"Running",
        errors: 2,
        job_id: 42,
        job: b"Nightly.Save.2026-01-02_03.04.05_06",
        level: b"Full",
        since: b"2026-01-01 00:00:00",
        previous_job: b"",
        files: 7,
        bytes: 8,
        read_bytes: 9,
        job_type: b"Backup",
        volume: b"Vol-1",
        priority: 10,
        process: 4711,
        recipients: b"",
    }
}

fn expand(command: &str) -> String {
    String::from_utf8(expand_job_codes(command.as_bytes(), &codes())).unwrap()
}

#[test]
fn every_code() {
    assert_eq!(expand("%% %c %d %D %e %E %i"), "% my-fd my-fd my-dir Running 2 42");
    assert_eq!(expand("%j"), "Nightly.Save.2026-01-02_03.04.05_06");
    assert_eq!(expand("%l|%r|%s|%S|%F|%b|%t|%v|%o|%P|%R"), "Full||2026-01-01 00:00:00||7|8|Backup|Vol-1|10|4711|9");
}

#[test]
fn the_short_name_loses_date_and_sequence() {
    assert_eq!(expand("%n"), "Nightly.Save");
    let codes = JobCodes { job: b"a.b", ..codes() };
    assert_eq!(expand_job_codes(b"%n", &codes), b"a.b");
}

#[test]
fn unknown_codes_stay() {
    assert_eq!(expand("%z %"), "%z %");
    assert_eq!(expand("100%"), "100%");
    assert_eq!(expand("%%c"), "%c");
}

#[test]
fn arguments_end_at_blanks_and_quotes() {
    let split = |command: &str| -> Vec<String> {
        split_arguments(command.as_bytes()).into_iter().map(|word| String::from_utf8(word).unwrap()).collect()
    };
    assert_eq!(split("sh -c \"echo '$HOME' *\""), ["sh", "-c", "echo '$HOME' *"]);
    assert_eq!(split("  a \t b"), ["a", "b"]);
    assert_eq!(split("a\tb c"), ["a\tb", "c"]);
    assert_eq!(split("it's 'one word' \"open end"), ["it's", "one word", "open end"]);
    assert_eq!(split("\"a\"b"), ["a", "b"]);
    assert_eq!(split("'' x"), ["", "x"]);
    assert_eq!(split("a \"b c\"d"), ["a", "b c", "d"]);
    assert_eq!(split("a b'c d'"), ["a", "b'c", "d'"]);
    assert_eq!(split(" \t "), Vec::<String>::new());
    assert_eq!(split(&"w ".repeat(150)).len(), MOST_WORDS);
}

#[test]
fn allowed_script_directories() {
    let allowed = |command: &str, directories: &[&str]| check_allowed(command.as_bytes(), directories);
    assert_eq!(allowed("rm -rf / ; x", &[]), Ok(()));
    assert_eq!(allowed("/etc/bacula/list -a", &["/opt", "/etc/bacula"]), Ok(()));
    assert_eq!(allowed("/usr/bin/list", &["/etc/bacula"]), Err(ProgramNotAllowed::Path));
    assert_eq!(allowed("/etc//bacula/./list", &["/etc/bacula/"]), Ok(()));
    for around in ["/etc/bacula/../../bin/sh", "/etc/bacula-evil/list", "list", "", "\"/etc/bacula/../x\""] {
        assert_eq!(allowed(around, &["/etc/bacula"]), Err(ProgramNotAllowed::Path), "{around}");
    }
    assert_eq!(allowed("echo", &["echo"]), Err(ProgramNotAllowed::Path));
    for bad in ["$(x)", "a!b", "a;b", "a\\b", "a&b", "a|b", "a<b", "a>b", "a`b`", "(a)"] {
        assert_eq!(allowed(&format!("/x {bad}"), &["/x"]), Err(ProgramNotAllowed::Character), "{bad}");
    }
}
