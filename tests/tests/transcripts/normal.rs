//! Transcripts without what belongs to one process, one moment or one name.

use bed::peer::Frame;

use crate::recorder::Conversation;

/// What precedes a run of characters that differs, which characters these are, and what they
/// become.
const RUNS: [(&str, &str, &str); 39] = [
    ("JobId=", DIGITS, "N"),
    ("JobId ", DIGITS, "N"),
    ("jobid\":", DIGITS, "N"),
    ("Full ", DIGITS, "N"),
    ("SDid=", DIGITS, "N"),
    ("SDtime=", DIGITS, "T"),
    ("level=", DIGITS, "T"),
    ("since_utime ", DIGITS, "T"),
    ("btime ", DIGITS, "T"),
    ("_epoch=", DIGITS, "T"),
    ("_epoch\":", DIGITS, "T"),
    ("_epoch\"=", DIGITS, "T"),
    // It holds the random numbers of the challenges, whose lengths differ.
    ("CommBytes=", DIGITS, "C"),
    ("FDPort:", DIGITS, "PORT"),
    ("pid\"=", DIGITS, "P"),
    ("Authorization=", "-ABCDEFGHIJKLMNOPQRSTUVWXYZ", "KEY"),
    ("port=", DIGITS, "PORT"),
    ("127.0.0.1:", DIGITS, "PORT"),
    ("FDPort=", DIGITS, "PORT"),
    ("fdport\":", DIGITS, "PORT"),
    ("pid=", DIGITS, "P"),
    ("pid\":", DIGITS, "P"),
    ("heap=", "0123456789,", "B"),
    ("smbytes=", "0123456789,", "B"),
    ("max_bytes=", "0123456789,", "B"),
    ("bufs=", "0123456789,", "B"),
    ("maxbytes=", DIGITS, "B"),
    ("value=", DIGITS, "B"),
    ("\"value\": ", DIGITS, "B"),
    ("duration=", "0123456789.ms", "D"),
    ("rtt=", "0123456789.ms", "D"),
    ("min=", "0123456789.ms", "D"),
    ("max=", "0123456789.ms", "D"),
    ("speed=", "0123456789. KMGB/s", "D"),
    ("nofile=", DIGITS, "L"),
    ("memlock=", "0123456789unlimited", "L"),
    ("fd=", DIGITS, "F"),
    ("ref=0x", "0123456789abcdef", "R"),
    ("jobid=", DIGITS, "N"),
];
const DIGITS: &str = "0123456789";

/// Both sides of a conversation from behind the login on, as lines.
pub(crate) fn lines(conversation: &Conversation, client: &str) -> (Vec<String>, Vec<String>) {
    let login = |frames: &[Frame], last: &[u8]| {
        let is_last = |frame: &Frame| matches!(frame, Frame::Data(text) if text.starts_with(last));
        frames.iter().position(is_last).map_or(0, |place| place + 1)
    };
    let (director, daemon) = (&conversation.director, &conversation.daemon);
    let said = |frames: &[Frame]| frames.iter().map(|frame| line(frame, client)).collect::<Vec<_>>();
    let behind = |frames: &[Frame], from: usize| said(frames.get(from..).unwrap_or_default());
    (behind(director, login(director, b"1000 OK auth")), behind(daemon, login(daemon, b"2000 OK Hello")))
}

/// One frame as a line.
pub(crate) fn line(frame: &Frame, client: &str) -> String {
    match frame {
        Frame::Signal(signal) => format!("signal {signal}"),
        Frame::Closed => "closed".to_owned(),
        Frame::Data(payload) => {
            let text = payload.escape_ascii().to_string().replace("\\\"", "\"").replace("\\\'", "'");
            normal(&row(&text.replace(client, "CLIENT")))
        }
    }
}

/// A row of a table without the number of its job: the number is right-aligned.
fn row(text: &str) -> String {
    let Some((number, rest)) = text.split_at_checked(6) else { return text.to_owned() };
    let is_number = number.starts_with(' ') && number.trim_start().parse::<u32>().is_ok();
    if is_number { format!("     N{rest}") } else { text.to_owned() }
}

fn normal(text: &str) -> String {
    let mut text = text.to_owned();
    for (head, run, put) in RUNS {
        text = replace_runs(&text, head, run, put);
    }
    let mut text = dates(&text);
    for head in ["time\":\"", "started\":\""] {
        text = replace_runs(&text, head, DIGITS, "T");
    }
    let cut = |text: String, from: &str, to: &str, put: &str| match text.split_once(from) {
        Some((head, rest)) => {
            let tail = rest.find(to).and_then(|end| rest.get(end..)).unwrap_or("");
            format!("{head}{from}{put}{tail}")
        }
        None => text,
    };
    // The machine and the libraries of each program.
    let text = cut(text, "2000 OK Job 15.0.3 (25Mar25) ", ";", "HOST");
    let text = cut(text, "15.0.3 (25 March 2025)  ", "\\n", "HOST");
    let text = cut(text, "uname=", "\\n", "HOST");
    let text = cut(text, "\"uname\":\"", "\"", "HOST");
    let text = cut(text, "\"uname\"=", "\\n", "HOST");
    let text = cut(text, "\"crypto\"=", "\\n", "LIBRARY");
    let text = cut(text, "crypto=", "\\n", "LIBRARY");
    cut(text, "\"crypto\":\"", "\"", "LIBRARY")
}

fn replace_runs(text: &str, head: &str, run: &str, put: &str) -> String {
    let mut out = String::new();
    let mut parts = text.split(head);
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let rest = part.trim_start_matches(|c| run.contains(c));
        out.push_str(head);
        if rest.len() < part.len() {
            out.push_str(put);
        }
        out.push_str(rest);
    }
    out
}

/// Dates of the three forms, and the date and number of a job's name.
fn dates(text: &str) -> String {
    const FORMS: [&str; 5] =
        ["0000-00-00_00.00.00_00", "0000-00-00 00:00:00", "00-Aaa-0000 00:00:00", "00-Aaa-00 00:00", "00-Aaa 00:00"];
    let fits = |rest: &[char], form: &str| {
        rest.len() >= form.len()
            && form.chars().zip(rest).all(|(wanted, found)| match wanted {
                '0' => found.is_ascii_digit(),
                'A' => found.is_ascii_uppercase(),
                'a' => found.is_ascii_lowercase(),
                other => other == *found,
            })
    };
    let all: Vec<char> = text.chars().collect();
    let (mut out, mut at) = (String::new(), 0);
    while let Some(rest) = all.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some(form) = FORMS.iter().find(|form| fits(rest, form)) {
            out.push_str("DATE");
            at += form.len();
        } else {
            out.extend(rest.first());
            at += 1;
        }
    }
    out
}
