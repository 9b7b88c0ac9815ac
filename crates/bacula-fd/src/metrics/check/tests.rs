//! What the check makes of answers and of its command line.

use std::net::TcpListener;
use std::thread;

use super::*;

const NOW: i64 = 1_800_000_000;

fn metrics(age_of_good: i64, more: &str) -> String {
    format!(
        "# TYPE bacula_fd_start_time_seconds gauge\nbacula_fd_start_time_seconds {}\nbacula_fd_jobs_running 1\n\
         bacula_fd_last_good_job_end_time_seconds{{name=\"web \\\"1\\\"\",type=\"Backup\"}} {}\n\
         bacula_fd_last_good_job_end_time_seconds{{name=\"back\",type=\"Restore\"}} {NOW}\n{more}",
        NOW - 2 * HOUR,
        NOW - age_of_good
    )
}

fn judged(answer: &str, wish: &Wish) -> (String, u8) {
    judge(answer, NOW, wish).finish()
}

#[test]
fn the_age_of_the_last_good_backup_decides() {
    let wish = Wish::default();
    let (text, status) = judged(&metrics(5 * HOUR, ""), &wish);
    let numbers = "'age'=18000s;93600;180000;0 'errors'=0;0;;0 'warnings'=0;0;;0 'running'=1;;;0";
    let expected = "FERROFD OK - the last good backup, web \"1\", ended 5 hours ago";
    assert_eq!((text, status), (format!("{expected} | {numbers}\n"), 0));
    for (age, status) in [(26 * HOUR - 1, 0), (26 * HOUR, 1), (50 * HOUR - 1, 1), (3 * DAY, 2), (-5, 0)] {
        assert_eq!(judged(&metrics(age, ""), &wish).1, status, "{age}");
    }
    // None of that name, and none at all: as long as the daemon runs.
    let of_name = |critical| Wish { name: Some("db".to_owned()), warning: HOUR, critical, ..Wish::default() };
    assert_eq!(judged(&metrics(0, ""), &of_name(2 * HOUR)).1, 2);
    assert_eq!(judged(&metrics(0, ""), &of_name(3 * HOUR)).1, 1);
    assert_eq!(judged("bacula_fd_start_time_seconds 5\n", &wish).1, 2);
}

#[test]
fn what_is_wrong_is_told_the_worst_first() {
    let more = format!(
        "bacula_fd_last_job_good{{name=\"a\",type=\"Backup\"}} 0\nbacula_fd_last_job_canceled{{name=\"a\",type=\"Backup\"}} 1\n\
         bacula_fd_last_job_errors{{name=\"b\",type=\"Backup\"}} 3\nbacula_fd_last_job_good{{name=\"c|d\",type=\"Backup\"}} 0\n\
         bacula_fd_last_job_good{{name=\"r\",type=\"Restore\"}} 0\n\
         bacula_fd_certificate_end_time_seconds{{resource=\"Director\",name=\"dir\",of=\"daemon\"}} {}\n",
        NOW + 2 * DAY
    );
    let (text, status) = judged(&metrics(0, &more), &Wish::default());
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(status, 2);
    assert!(lines[0].starts_with("FERROFD CRITICAL - the last backup c/d failed | 'age'=0s;"), "{text}");
    assert!(lines[0].contains("'errors'=3;0;;0"), "{text}");
    assert_eq!(
        lines[1..],
        [
            "the last backup a was canceled",
            "the last backup b had 3 errors",
            "a certificate of Director dir ends in 2 days",
            "the last good backup, web \"1\", ended 0 hours ago"
        ]
    );
}

#[test]
fn another_answer_is_unknown() {
    for answer in ["", "HTTP/1.0 404 Not Found\r\n\r\n", "bacula_fd_start_time_seconds x\n", "bacula_fd_x{a=\"\n"] {
        assert_eq!(judged(answer, &Wish::default()).1, 3, "{answer}");
    }
}

#[test]
fn the_command_line_says_whom_to_ask_and_what_is_old() {
    let parse = |line: &str| Wish::parse(line.split(' ').map(OsString::from));
    assert_eq!(parse("check_ferrofd"), Some(Wish::default()));
    let asked = parse("check_ferrofd -H web1 -p 9200 -w 1 -c 2 -n Nightly -t 3").unwrap();
    let expected = Wish {
        host: "web1".to_owned(),
        port: 9200,
        warning: HOUR,
        critical: 2 * HOUR,
        name: Some("Nightly".to_owned()),
        timeout: Duration::from_secs(3),
    };
    assert_eq!(asked, expected);
    for wrong in ["-h", "-w 3 -c 2", "-w x", "-p 70000", "-t 0", "-x", "more"] {
        assert_eq!(parse(&format!("check_ferrofd {wrong}")), None, "{wrong}");
    }
}

/// What is fetched of a server that sends this and closes.
fn fetched(answer: &[u8]) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let wish = Wish { port: listener.local_addr().unwrap().port(), ..Wish::default() };
    thread::scope(|scope| {
        scope.spawn(move || {
            let (mut caller, _) = listener.accept().unwrap();
            // Else the end would be a reset.
            caller.read_exact(&mut vec![0; texts::REQUEST_FOR_METRICS.len()]).unwrap();
            caller.write_all(answer).unwrap();
        });
        fetch(&wish)
    })
}

#[test]
fn an_answer_that_was_cut_off_is_no_answer() {
    let body = metrics(0, "bacula_fd_last_job_good{name=\"a\",type=\"Backup\"} 0\n");
    let answer = texts::http_head("200 OK", body.len()) + &body;
    assert_eq!(fetched(answer.as_bytes()).unwrap(), answer);
    let cut = body.find("bacula_fd_last_job_good").unwrap();
    for missing in [1, body.len() - cut, body.len()] {
        let error = fetched(&answer.as_bytes()[..answer.len() - missing]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "without {missing} bytes");
    }
}
