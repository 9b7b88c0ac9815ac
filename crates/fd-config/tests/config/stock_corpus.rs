//! Every input of the corpus, against the messages of the stock programs (tests/corpus/record.py
//! recorded it).

use std::collections::HashMap;

use fd_config::JsonOptions;
use serde::Deserialize;

use crate::world::{DIRECTORY, World};

#[derive(Deserialize)]
struct Inputs {
    base: String,
    case: Vec<Input>,
}

#[derive(Deserialize)]
struct Input {
    name: String,
    at: String,
    text: String,
    #[serde(default)]
    files: HashMap<String, String>,
}

#[derive(Deserialize)]
struct Recorded {
    case: Vec<Stock>,
}

#[derive(Deserialize)]
struct Stock {
    name: String,
    status: u8,
    stdout: String,
    json: Option<String>,
}

/// The corpus writes bytes as the characters U+0000 to U+00FF.
fn bytes(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect()
}

fn characters(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// The whole file, as `build` in record.py makes it.
fn whole(base: &str, input: &Input) -> String {
    let text = &input.text;
    let lines: Vec<&str> = base.split('\n').collect();
    let replaced = |from: usize, to: usize| {
        let line = format!("  {text}");
        [&lines[..from], &[line.as_str()], &lines[to..]].concat().join("\n")
    };
    match input.at.as_str() {
        "only" => text.clone(),
        "top" => format!("{text}\n{base}"),
        "director" => format!("Director {{\n Name = q\n Password = p\n {text}\n}}\n{base}"),
        "schedule" => format!("Schedule {{\n Name = s\n {text}\n}}\n{base}"),
        "statistics" => format!("Statistics {{\n Name = s\n {text}\n}}\n{base}"),
        "daemon" => replaced(10, 10),
        "addresses" => replaced(6, 8),
        "messages" => replaced(13, 14),
        other => panic!("{other}"),
    }
}

fn corpus() -> Vec<(Input, World, Stock)> {
    let inputs: Inputs = toml::from_str(include_str!("../corpus/inputs.toml")).unwrap();
    let recorded: Recorded = toml::from_str(include_str!("../corpus/stock.toml")).unwrap();
    assert_eq!(inputs.case.len(), recorded.case.len());
    let world = |input: &Input| {
        let mut files: HashMap<Vec<u8>, Vec<u8>> =
            input.files.iter().map(|(name, text)| (bytes(&format!("{DIRECTORY}/{name}")), bytes(text))).collect();
        files.insert(file_name(), bytes(&whole(&inputs.base, input)));
        files.insert(b"/dev/null".to_vec(), Vec::new());
        World { files, ..World::default() }
    };
    let worlds: Vec<World> = inputs.case.iter().map(world).collect();
    inputs
        .case
        .into_iter()
        .zip(worlds)
        .zip(recorded.case)
        .map(|((input, world), stock)| (input, world, stock))
        .collect()
}

fn file_name() -> Vec<u8> {
    format!("{DIRECTORY}/fd.conf").into_bytes()
}

/// Whether ours is the stock daemon's text with some parts hidden.
fn is_hidden(ours: &str, mut stock: &str) -> bool {
    let mut parts = ours.split("(hidden)");
    let mut is_part = |part| {
        let found = stock.split_once(part);
        stock = found.map_or(stock, |(_, rest)| rest);
        found.is_some()
    };
    ours.contains("(hidden)") && parts.all(&mut is_part)
}

#[test]
fn messages_are_those_of_the_stock_daemon() {
    let (mut wrong, mut hidden) = (Vec::new(), 0);
    for (input, mut world, stock) in corpus() {
        assert_eq!(input.name, stock.name);
        let mut surroundings = World::default();
        let (status, stdout) = match fd_config::load(&file_name(), &mut world, &mut surroundings) {
            Ok(_) => (0, Vec::new()),
            Err(error) => {
                let messages = error.messages();
                // Of an abort only the first copy is recorded: the rest is the report of a crash.
                let printed = messages.iter().flat_map(|message| match error.exit_status() {
                    11 => message.text().to_vec(),
                    _ => message.print("DD-Mon HH:MM"),
                });
                (error.exit_status(), printed.collect())
            }
        };
        // Lines with a password.
        if status == stock.status && is_hidden(&characters(&stdout), &stock.stdout) {
            hidden += 1;
        } else if (status, characters(&stdout)) != (stock.status, stock.stdout.clone()) {
            wrong.push(format!(
                "{}\nstock: {} {}\nours:  {status} {}",
                stock.name,
                stock.status,
                stock.stdout,
                characters(&stdout)
            ));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n\n"));
    assert_eq!(hidden, 16);
}

#[test]
fn the_json_view_is_that_of_bfdjson() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (_, mut world, stock) in corpus() {
        let Some(expected) = stock.json else { continue };
        let document = fd_config::parse_for_json(&file_name(), &mut world).unwrap();
        document.check_for_json().unwrap();
        let json = characters(&document.to_json(&JsonOptions::default()));
        let named = |directive: &str| directive.contains("Name");
        let (all, none) = (JsonOptions::default(), Some(b"nothing-here".as_slice()));
        let client = Some(b"fileDaemon".as_slice());
        for (what, options) in [
            ("all", JsonOptions { data_only: false, ..all }),
            ("-D", JsonOptions { data_only: true, ..all }),
            ("-r", JsonOptions { resource: client, ..all }),
            ("-r, none", JsonOptions { resource: none, ..all }),
            ("-n, none", JsonOptions { name: none, ..all }),
            ("-D -n", JsonOptions { data_only: true, name: Some(b"d-dir"), ..all }),
            ("-r -l", JsonOptions { resource: client, directives: Some(&named), ..all }),
            ("-D -r -l", JsonOptions { data_only: true, resource: client, directives: Some(&named), ..all }),
            ("-r -n", JsonOptions { resource: Some(b"director"), name: Some(b"d-dir"), ..all }),
            ("-r -n -l", JsonOptions { resource: client, name: Some(b"x-fd"), directives: Some(&named), ..all }),
            ("-r -l, none", JsonOptions { resource: client, directives: Some(&|_| false), ..all }),
        ] {
            let json = characters(&document.to_json(&options));
            if let Err(error) = is_json(&json) {
                wrong.push(format!("{}, {what}: {error}\n{json}", stock.name));
            }
        }
        // Where the stock program writes invalid JSON, ours writes what was meant.
        if is_json(&expected).is_err() {
            continue;
        }
        compared += 1;
        if json != expected {
            wrong.push(format!("{}\nstock: {expected}\nours:  {json}", stock.name));
        }
    }
    assert!(compared > 300);
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n\n"));
}

/// The mistakes of the stock program: an object that ends without a line of its own, a comma before
/// a brace, numbers that it can't write, and control characters.
fn is_json(text: &str) -> Result<(), serde_json::Error> {
    serde_json::from_str::<serde_json::Value>(text).map(drop)
}

#[test]
fn every_error_has_an_explanation() {
    for (input, mut world, stock) in corpus() {
        let Err(error) = fd_config::load(&file_name(), &mut world, &mut World::default()) else { continue };
        let explanation = error.explanation();
        assert!(explanation.is_empty() || !error.to_string().contains("Cannot open config file"));
        if let fd_config::LoadError::Syntax(syntax) = &error {
            assert_eq!(explanation.ends_with('\n'), !explanation.is_empty(), "{}", input.name);
            assert!(explanation.lines().count() <= 8, "{}: {explanation}", input.name);
            if syntax.place().is_some() {
                assert!(explanation.contains('^'), "{}: {explanation}", stock.name);
            }
        }
    }
}

/// A configuration without a fault.
const WHOLE: &str = "FileDaemon {\n Name = f\n WorkingDirectory = /w\n Pid Directory = /p\n}\n\
    Director {\n Name = d\n Password = p\n}\nMessages {\n Name = m\n director = d = all\n}\n";

/// What is wrong with a file of this text.
fn error(text: &str) -> fd_config::LoadError {
    let mut world = World::default();
    world.files.insert(b"fd.conf".to_vec(), text.as_bytes().to_vec());
    fd_config::load(b"fd.conf", &mut world, &mut World::default()).unwrap_err()
}

/// What an error explains, for a file of this text.
fn explained(text: &str) -> String {
    error(text).explanation()
}

#[test]
fn an_explanation_shows_the_line_and_what_was_probably_meant() {
    let explanation = explained("Director {\n\tName = d\n\tMonitr = yes\n}\n");
    let expected = "fd.conf:3:8: Keyword \"Monitr\" not permitted in this resource. \
                    Perhaps you left the trailing brace off of the previous resource.\n  \
                    |\n3 |  Monitr = yes\n  |  ^\n  hint: did you mean \"Monitor\"?\n";
    assert_eq!(explanation, expected);
    let explanation = explained("Director {\n Name = d\n Password = x\nDirector {\n");
    assert!(explanation.contains("is the closing brace of the Director resource missing?"), "{explanation}");
    let explanation = explained("FileDaemon {\n Name = f\n Monitor = yes\n}\n");
    assert!(explanation.contains("this is a directive of Director, not of FileDaemon"), "{explanation}");
}

#[test]
fn an_explanation_says_what_to_write() {
    for (text, advice) in [
        ("FileDaemon {\n Name = f\n WorkingDirectory /w\n}\n", "an = is missing; write: WorkingDirectory = value"),
        ("FileDaemon {\n Name f\n}\n", "an = is missing; write: Name = value"),
        ("Director {\n Name = d\n Password \"x\"\n}\n", "an = is missing; write: Password = value"),
        ("@/gone.conf\n", "make the file, or take the line out"),
        ("@gone.conf\n", "write a name that begins with /"),
        ("FileDaemon {\n Name = f\n PidDirectory = /w\n}\n", "WorkingDirectory = /var/lib/bacula"),
        ("FileDaemon {\n FDAddress = 300.1.1.1\n}\n", "write an address of this host"),
        ("FileDaemon {\n FDSourceAddress = 300.1.1.1\n}\n", "look up, or leave the line out"),
        ("FileDaemon {\n FDPort = nosvc\n}\n", "a port is a number from 1 to 65534"),
        ("", "write: FileDaemon { Name = NAME-fd;"),
        ("", "write: Director { Name = NAME-dir;"),
        (
            &format!("{WHOLE}Director {{\n Name = q\n Password = p\n TLS Enable = yes\n}}\n"),
            "write: TLS Certificate = FILE",
        ),
        (&format!("{WHOLE}Console {{\n Name = q\n Password = p\n TLS Enable = yes\n}}\n"), "write: TLS Key = FILE"),
        (&WHOLE.replace(" Name = f\n", " Name = f\n PKI Signatures = yes\n"), "write: PKI Keypair = FILE"),
    ] {
        let explanation = explained(text);
        assert!(explanation.contains("  hint: ") && explanation.contains(advice), "{text}: {explanation}");
        assert!(!explanation.contains("if the line before is a port"), "{text}: {explanation}");
    }
}

#[test]
fn an_explanation_of_addresses_in_two_styles_opens_no_port_to_all() {
    let several = "FDAddresses = { ip = { addr = 127.0.0.1; port = 9103; } }";
    for single in ["FDPort = 9103", "FDAddress = 127.0.0.1"] {
        for lines in [format!("{single}\n {several}"), format!("{several}\n {single}")] {
            let explanation = explained(&WHOLE.replace(" Name = f\n", &format!(" Name = f\n {lines}\n")));
            assert!(explanation.contains("FDPort and FDAddress can't stand beside FDAddresses"), "{explanation}");
            let hints = explanation.lines().filter(|line| line.contains("hint: ")).count();
            assert!(hints == 1 && !explanation.contains("leave the line out"), "{explanation}");
        }
    }
}

#[test]
fn an_explanation_hides_passwords() {
    for text in WITH_PASSWORDS {
        let explanation = explained(text);
        assert!(!explanation.contains("123456") && !explanation.contains("s3cret"), "{explanation}");
        assert!(explanation.contains("(hidden)"), "{explanation}");
    }
}

#[test]
fn a_message_about_a_line_hides_passwords() {
    // Of "s3cret".
    const MD5: &str = "33e1b232a4e6fa0028a6670753749a17";
    for text in WITH_PASSWORDS {
        let messages = error(text).messages();
        let message: String = messages.iter().map(|message| characters(message.text())).collect();
        assert!(!["123456", "s3cret", MD5].iter().any(|secret| message.contains(secret)), "{message}");
        assert!(message.contains("(hidden)") && message.contains(": line "), "{message}");
    }
}

/// Mistakes in lines with passwords.
const WITH_PASSWORDS: [&str; 10] = [
    "Director {\n Password = 123456\n}",
    "Director {\n Password = s3cret\n Password = 123456 }",
    "Director {\n Password\n s3cret\n}",
    "Director { Name = d; Password = s3cret; Disable Command = cancel }",
    "@|\"echo --password=s3cret\"\n",
    "Director {\n Passowrd = \"s3cret\"\n}",
    "Director {\n Pasword = s3cret\n}",
    "Director {\n Name = d\n Password = \"x\n s3cret\"; Bogus = 1\n}",
    "Director {\n Name = d\n Password =\\\n \"s3cret\"; Bogus = 1\n}",
    "Director {\n Name = d\n Password\n = \"s3cret\"; Bogus = 1\n}",
];
