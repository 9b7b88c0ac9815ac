//! The conversations of a Director, a console or a tool with the File Daemon: for each action, what
//! goes over the connection is recorded, and compared with what the stock daemon said.
//!
//! Not here: what goes to the Storage Daemon (the compliance matrix compares volumes), and TLS.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what helps a test fails the test, like the test itself"
)]

mod console;
mod normal;
mod plugins;
mod raw;
mod recorder;

use std::fs;
use std::path::PathBuf;

use bed::peer::Frame;
use bed::{Bed, BedOptions, ClientOptions, DIRECTOR, Fd, FileSet, Result, StockRecord, set_fixed_times};
use console::Action;
use recorder::Recorder;

/// The client. Others in this suite have names of the same length.
const NAME: &str = "under";
/// As few actions as the suite may ever have.
const FEWEST: usize = 60;

struct Stage {
    bed: Bed,
    recorder: Recorder,
    /// The file with all events of the File Daemon.
    log: PathBuf,
    record: StockRecord,
}

impl Stage {
    fn set() -> Result<Self> {
        let recorder = Recorder::new()?;
        let mut client = ClientOptions::new(Fd::under_test()?).named(NAME);
        client.director_port = Some(recorder.port());
        client.file_daemon = raw::more_directors();
        client.messages =
            vec![format!("Director = {DIRECTOR} = events"), "Append = @WORK@/all.log = all, events".to_owned()];
        let mut options = BedOptions::new("transcripts", [client])?.in_clear();
        options.director_resources = console::jobs(NAME);
        let source = options.source()?;
        fs::create_dir(source.join("sub")).unwrap();
        fs::create_dir(source.join("later")).unwrap();
        for (name, text) in [("empty", ""), ("hello.txt", "hello\n"), ("sub/with space.txt", "world data\n")] {
            fs::write(source.join(name), text).unwrap();
        }
        fs::hard_link(source.join("hello.txt"), source.join("hard")).unwrap();
        std::os::unix::fs::symlink("hello.txt", source.join("link")).unwrap();
        set_fixed_times(&source)?;
        // Each by its name: the order within a directory is that of the file system.
        let names = ["empty", "hello.txt", "hard", "link", "sub", "later"].map(|name| source.join(name));
        let names = names.each_ref().map(PathBuf::as_path);
        options.file_sets = vec![FileSet::new("Source", &["Signature = MD5", "AclSupport = yes"], &names)];
        let mut bed = Bed::start(options)?;
        let log = bed.folder().join("work").join(NAME).join("all.log");
        recorder.lead_to(bed.client(NAME)?.port(), log.clone());
        Ok(Self { bed, recorder, log, record: StockRecord::open("transcripts")? })
    }

    /// What the Director and the File Daemon said during one action: the conversations one after
    /// the other.
    fn transcripts(&self, action: &Action) -> Result<[Vec<String>; 2]> {
        action.run(&self.bed, NAME)?;
        let mut sides = [Vec::new(), Vec::new()];
        for conversation in self.recorder.take(action.name)? {
            let (director, daemon) = normal::lines(&conversation, NAME);
            for (side, said) in sides.iter_mut().zip([director, daemon]) {
                side.push("-- connection".to_owned());
                side.extend(said);
            }
        }
        Ok(sides)
    }

    /// What the File Daemon wrote to a file of its own. The bed's looks at its port have no first
    /// frame, and what is said of them is left out.
    fn log(&self) -> Result<Vec<String>> {
        self.recorder.wait_for_ends()?;
        let text = fs::read(&self.log).unwrap();
        let lines = text.split(|byte| *byte == b'\n').map(|line| Frame::Data(line.to_vec()));
        let lines = lines.map(|line| normal::line(&line, NAME));
        Ok(lines.filter(|line| !line.contains("expecting Hello")).collect())
    }

    /// What differs from the stock daemon; the bed's folder is `@`.
    fn differences(&self, row: &str, what: &str, input: &str, lines: &[String]) -> Result<Vec<String>> {
        let folder = self.bed.folder().display().to_string();
        let lines: Vec<_> = lines.iter().map(|line| line.replace(&folder, "@")).collect();
        let told = self.record.differences(row, what, input, &lines)?;
        Ok(told.into_iter().map(|text| format!("{row}: {text}")).collect())
    }
}

#[test]
fn a_director_has_the_conversation_that_it_has_with_the_stock_daemon() -> Result<()> {
    let stage = Stage::set()?;
    let (actions, talks) = (console::actions(), raw::talks());
    assert!(actions.len() + talks.len() >= FEWEST, "{} and {}", actions.len(), talks.len());
    let mut wrong = Vec::new();
    for action in &actions {
        let sides = stage.transcripts(action)?;
        assert!(sides.iter().all(|side| side.len() > 1), "{}: nothing was said", action.name);
        let input = format!("{action:?}");
        for (side, said) in ["Director", "File Daemon"].into_iter().zip(&sides) {
            wrong.extend(stage.differences(action.name, side, &input, said)?);
        }
    }
    for talk in &talks {
        let said = talk.with(NAME, stage.recorder.begin_session()?)?;
        let row = format!("talk: {}", talk.name);
        wrong.extend(stage.differences(&row, "File Daemon", &format!("{talk:?}"), &said)?);
    }
    let log = stage.log()?;
    assert!(log.len() > 100, "{log:#?}");
    wrong.extend(stage.differences("all.log", "File Daemon", "", &log)?);
    println!("{} console actions and {} talks", actions.len(), talks.len());
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}
