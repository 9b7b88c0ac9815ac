//! What a File Daemon's own Messages resource does with a job's messages: files, mail and the
//! operator. The commands are a script that keeps its arguments and its input, which are compared
//! with those of the stock daemon.

#![expect(clippy::unwrap_used, reason = "a failed step of a test ends it")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use bed::{Bed, BedOptions, ClientOptions, Fd, FileSet, PATIENCE, Restore, Result, StockRecord, undated, wait_for};

/// Keeps what it is called with in a file of its own, named by its first argument.
const KEEPER: &str = r#"#!/bin/sh
out="$0.$1.$$"
{ printf '<%s>\n' "$@"; echo --; cat; } > "$out-new"
mv "$out-new" "$out"
"#;

/// The client.
const NAME: &str = "under";

/// The letters of a kind without times and numbers, in their order by content.
fn letters(folder: &Path, kind: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let wanted = format!("keeper.{kind}.");
    let of_kind = entries.filter(|entry| {
        let file = entry.file_name().to_string_lossy().into_owned();
        file.starts_with(&wanted) && !file.ends_with("-new")
    });
    let mut letters: Vec<_> = of_kind.map(|entry| normal(&fs::read_to_string(entry.path()).unwrap())).collect();
    letters.sort();
    letters
}

/// Dates become `DATE`, and digits `#`, so that numbers and process ids are alike.
fn normal(text: &str) -> String {
    undated(text)
        .chars()
        .map(|char| if char.is_ascii_digit() { '#' } else { char })
        .collect::<String>()
        .replace("##", "#")
}

#[test]
fn messages_by_mail_and_to_the_operator_are_those_of_the_stock_daemon() -> Result<()> {
    let mut options = BedOptions::new("job-messages", [ClientOptions::new(Fd::under_test()?).named(NAME)])?;
    let place = options.folder.make("letters")?;
    let keeper = place.join("keeper");
    scripts::write(&keeper, KEEPER).unwrap();
    let keeper = keeper.display();
    let codes = "%c|%d|%e|%i|%j|%l|%n|%r|%t|%v|%%";
    let messages = vec![
        format!("Mail Command = \"{keeper} mail \\\"{codes}\\\"\""),
        format!("Operator Command = \"{keeper} operator \\\"{codes}\\\"\""),
        "Mail = root@here = all, !skipped".to_owned(),
        "Mail On Error = boss@here = all".to_owned(),
        "Mail On Success = happy@here = all".to_owned(),
        "Operator = op@here = error, warning, notsaved, fatal".to_owned(),
        format!("Append = {}/all = all", place.display()),
    ];
    let folder = options.folder.path().display().to_string();
    let input = messages.join("\n").replace(&folder, "@");
    options.clients[0].messages = messages;
    let tree = options.folder.make("tree")?;
    fs::create_dir(tree.join("below")).unwrap();
    fs::write(tree.join("file"), "content").unwrap();
    let alone = ["Signature = MD5", "Recurse = no"];
    options.file_sets = vec![FileSet::new("Gone", &alone, &[&tree, &tree.join("not there")])];
    let bed = Bed::start(options)?;
    bed.backup(NAME, "level=Full")?;
    bed.backup(NAME, "level=Incremental")?;
    // The session's end, which sends the mail, comes after the Director's report.
    let [mail, operator] = wait_for("the letters of a job", PATIENCE, || {
        let found = ["mail", "operator"].map(|kind| letters(&place, kind));
        // Two jobs: for the boss and for root, and one line for the operator.
        let all = found.iter().map(Vec::len).eq([4, 2]);
        Ok(if all { Ok(found) } else { Err(format!("{found:?}")) })
    })?;
    let kept = normal(&fs::read_to_string(place.join("all")).unwrap_or_default());
    let kept = kept.lines().map(ToOwned::to_owned).collect();
    let record = StockRecord::open("job_messages")?;
    let folder = normal(&folder);
    let mut wrong = Vec::new();
    for (what, lines) in [("mail", mail), ("operator", operator), ("append", kept)] {
        let lines: Vec<_> = lines.iter().map(|line| line.replace(&folder, "@")).collect();
        wrong.extend(record.differences("two jobs", what, &input, &lines)?);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

/// A script may write what looks like one of them.
#[test]
fn only_indented_lines_about_what_is_left_out_have_no_date() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let mut options = BedOptions::new("dates", [ClientOptions::new(Fd::under_test()?).named(NAME)])?;
    let (place, tree) = (options.folder.make("place")?, options.folder.make("tree")?);
    let script = place.join("script");
    scripts::write(&script, "echo '      from the script'; echo 'a total:      5'").unwrap();
    let client = &mut options.clients[0];
    client.mount_first(&format!(
        "mount -t tmpfs none '{tree}' && mkdir -p '{tree}'/other '{tree}'/ignored '{tree}'/top/below && \
         mount -t proc none '{tree}/other' && touch '{tree}/ignored/.nobackup' '{tree}/top/file'",
        tree = tree.display()
    ));
    client.messages = vec![format!("Append = {}/all = all", place.display())];
    client.job = vec![format!("Client Run Before Job = \"{}\"", script.display())];
    let set = |name: &str, options: &[&str], top: &Path| {
        FileSet::new(name, options, &[top]).with("Exclude Dir Containing = .nobackup")
    };
    options.file_sets = vec![
        set("One", &["OneFS = yes"], &tree),
        set("Types", &["OneFS = no", "FS Type = tmpfs"], &tree),
        set("Flat", &["Recurse = no"], &tree.join("top")),
    ];
    let back = options.folder.make("back")?;
    let bed = Bed::start(options)?;
    for name in ["One", "Types", "Flat"] {
        let job = bed.backup(NAME, &format!("level=Full fileset={name}"))?.row.id;
        bed.restore(&Restore { job, from: NAME, onto: NAME, to: &back, replace: "never" })?;
    }
    for (text, has_date) in [
        ("is a different filesystem. Will not descend", false),
        ("Disallowed filesystem. Will not descend", false),
        ("Recursion turned off. Will not descend", false),
        ("Skipping ignored directory", true),
        ("File skipped. Already exists", true),
        ("      from the script", true),
        ("a total:      5", true),
    ] {
        let line = wait_for(text, PATIENCE, || {
            let all = fs::read_to_string(place.join("all")).unwrap_or_default();
            Ok(all.lines().find(|line| line.contains(text)).map(undated).ok_or(all))
        })?;
        assert_eq!(line.starts_with("DATE "), has_date, "{line}");
    }
    Ok(())
}

/// The stock Director writes what jobs say at the same time into one file, at times a line of one
/// into the report of another: such a report is never found in the file.
#[test]
fn the_end_of_a_job_is_known_even_if_the_director_s_file_lacks_its_report() -> Result<()> {
    let options = BedOptions::new("no-reports", [ClientOptions::new(Fd::under_test()?).named("test")])?;
    options.source()?;
    let bed = Bed::start(options)?;
    let file = bed.folder().join("work/dir/messages");
    symlink("/dev/null", &file).unwrap();
    let job = bed.backup("test", "")?.must_be_good()?;
    assert!(file.is_symlink() && job.log.contains("  Termination: "), "{}", job.log);
    Ok(())
}

/// The job has no files, and what it has sent ends as it should.
#[test]
fn a_script_that_fails_before_the_first_file_is_no_error_of_the_storage() -> Result<()> {
    let mut client = ClientOptions::new(Fd::under_test()?).named("test");
    let script = ["RunScript {", "Runs On Client = yes", "Runs When = AfterVSS", "Command = \"/bin/false\"", "}"];
    client.job = script.map(ToOwned::to_owned).to_vec();
    let options = BedOptions::new("failed-script", [client])?;
    options.source()?;
    let job = Bed::start(options)?.backup("test", "")?;
    let said = &job.log;
    assert!(said.contains("Runscript: ClientAfterVSS returned non-zero status=1."), "{said}");
    assert!(!said.contains("Error reading data header from FD"), "{said}");
    assert_eq!((job.row.status, job.row.files), ('E', 0), "{said}");
    Ok(())
}
