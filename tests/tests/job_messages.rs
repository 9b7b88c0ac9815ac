//! What a File Daemon's own Messages resource does with a job's messages: files, mail and the
//! operator. The commands are a script that keeps its arguments and its input; both daemons' are
//! compared.

#![expect(clippy::unwrap_used, reason = "a failed step of a test ends it")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use bed::{Bed, BedOptions, ClientOptions, Fd, FileSet, PATIENCE, Result, wait_for};

/// Keeps what it is called with in a file of its own, named by its first argument.
const KEEPER: &str = r#"#!/bin/sh
out="$0.$1.$$"
{ printf '<%s>\n' "$@"; echo --; cat; } > "$out-new"
mv "$out-new" "$out"
"#;

/// The letters of a kind, each with what is different in each job or daemon left out, in their
/// order by content.
fn letters(folder: &Path, kind: &str, name: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let wanted = format!("keeper-{name}.{kind}.");
    let of_kind = entries.filter(|entry| {
        let file = entry.file_name().to_string_lossy().into_owned();
        file.starts_with(&wanted) && !file.ends_with("-new")
    });
    let mut letters: Vec<_> = of_kind.map(|entry| normal(&fs::read_to_string(entry.path()).unwrap(), name)).collect();
    letters.sort();
    letters
}

/// Digits become `#`, so that times, numbers and process ids are alike.
fn normal(text: &str, name: &str) -> String {
    let text = text.replace(name, "CLIENT");
    text.chars().map(|char| if char.is_ascii_digit() { '#' } else { char }).collect::<String>().replace("##", "#")
}

#[test]
fn messages_by_mail_and_to_the_operator_are_those_of_the_stock_daemon() -> Result<()> {
    let clients = [("refer", Fd::Stock), ("under", Fd::under_test()?)];
    let mut options = BedOptions::new("job-messages", clients.map(|(name, fd)| ClientOptions::new(fd).named(name)))?;
    let place = options.folder.make("letters")?;
    for (client, (name, _)) in options.clients.iter_mut().zip(clients) {
        let keeper = place.join(format!("keeper-{name}"));
        fs::write(&keeper, KEEPER).unwrap();
        fs::set_permissions(&keeper, fs::Permissions::from_mode(0o755)).unwrap();
        let keeper = keeper.display();
        let codes = "%c|%d|%e|%i|%j|%l|%n|%r|%t|%v|%%";
        client.messages = vec![
            format!("Mail Command = \"{keeper} mail \\\"{codes}\\\"\""),
            format!("Operator Command = \"{keeper} operator \\\"{codes}\\\"\""),
            "Mail = root@here = all, !skipped".to_owned(),
            "Mail On Error = boss@here = all".to_owned(),
            "Mail On Success = happy@here = all".to_owned(),
            "Operator = op@here = error, warning, notsaved, fatal".to_owned(),
            format!("Append = {}/all-{name} = all", place.display()),
        ];
    }
    let tree = options.folder.make("tree")?;
    fs::create_dir(tree.join("below")).unwrap();
    fs::write(tree.join("file"), "content").unwrap();
    let alone = ["Signature = MD5", "Recurse = no"];
    options.file_sets = vec![FileSet::new("Gone", &alone, &[&tree, &tree.join("not there")])];
    let bed = Bed::start(options)?;
    let mut told = Vec::new();
    for (name, _) in clients {
        bed.backup(name, "level=Full")?;
        bed.backup(name, "level=Incremental")?;
        // The session's end, which sends the mail, comes after the Director's report.
        let found = wait_for("the letters of a job", PATIENCE, || {
            let found = ["mail", "operator"].map(|kind| letters(&place, kind, name));
            // Two jobs: for the boss and for root, and one line for the operator.
            let all = found.iter().map(Vec::len).eq([4, 2]);
            Ok(if all { Ok(found) } else { Err(format!("{found:?}")) })
        })?;
        let kept = normal(&fs::read_to_string(place.join(format!("all-{name}"))).unwrap_or_default(), name);
        told.push((found, kept));
    }
    let [stock, ours] = told.as_slice() else { panic!("two sides, not {told:?}") };
    assert_eq!(stock, ours);
    Ok(())
}
