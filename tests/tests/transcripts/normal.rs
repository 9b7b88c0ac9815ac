//! Transcripts without what belongs to the machine, to the client's name, or to another program.

use bed::peer::Frame;

use crate::recorder::Conversation;

/// What precedes a number that a program measures of its own memory. Another program has others.
const MEASURES: [&str; 7] = ["heap=", "smbytes=", "max_bytes=", "bufs=", "maxbytes=", "value=", "\"value\": "];

/// Both sides of a conversation from behind the login on, as lines.
pub(crate) fn lines(conversation: &Conversation, client: &str) -> (Vec<String>, Vec<String>) {
    let login = |frames: &[Frame], last: &[u8]| {
        let is_last = |frame: &Frame| matches!(frame, Frame::Data(text) if text.starts_with(last));
        frames.iter().position(is_last).map_or(0, |place| place + 1)
    };
    let (director, daemon) = (&conversation.director, &conversation.daemon);
    let said = |frames: &[Frame]| frames.iter().map(|frame| line(frame, client)).collect::<Vec<_>>();
    let behind = |frames: &[Frame], from: usize| said(frames.get(from..).unwrap_or_default());
    let mut of_director = behind(director, login(director, b"1000 OK auth"));
    // The files of its catalog, some of them packed, are no answer to what the daemon has said.
    let mut is_list = false;
    of_director.retain(|line| {
        let stays = !is_list || line.starts_with("signal");
        is_list = line.starts_with("accurate files=") || is_list && !stays;
        stays
    });
    (of_director, behind(daemon, login(daemon, b"2000 OK Hello")))
}

/// One frame as a line.
pub(crate) fn line(frame: &Frame, client: &str) -> String {
    match frame {
        Frame::Signal(signal) => format!("signal {signal}"),
        Frame::Closed => "closed".to_owned(),
        Frame::Data(payload) => {
            let text = payload.escape_ascii().to_string().replace("\\\"", "\"").replace("\\\'", "'");
            normal(&text.replace(client, "CLIENT"))
        }
    }
}

fn normal(text: &str) -> String {
    let text = MEASURES.iter().fold(text.to_owned(), |text, head| measured(&text, head));
    let text = without_speeds(&text);
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
    let text = cut(text, "nofile=", " ", "LIMIT");
    let text = cut(text, "\"uname\":\"", "\"", "HOST");
    let text = cut(text, "\"uname\"=", "\\n", "HOST");
    let text = cut(text, "\"crypto\"=", "\\n", "LIBRARY");
    let text = cut(text, "crypto=", "\\n", "LIBRARY");
    cut(text, "\"crypto\":\"", "\"", "LIBRARY")
}

/// The report of a test of the network with names only, where times and speeds are.
fn without_speeds(text: &str) -> String {
    match text.split_once("duration=").filter(|(head, _)| head.starts_with("2000 OK ")) {
        Some((head, rest)) => {
            let names: Vec<_> = rest.split(' ').filter_map(|word| word.split_once('=')).map(|(name, _)| name).collect();
            format!("{head}duration= {}", names.join(" "))
        }
        None => text.to_owned(),
    }
}

/// The text with `N` for each number behind `head`.
fn measured(text: &str, head: &str) -> String {
    let mut parts = text.split(head);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',');
        out.push_str(head);
        out.push_str(if rest.len() < part.len() { "N" } else { "" });
        out.push_str(rest);
    }
    out
}
