//! The same conversation with both File Daemons: for each action of a Director, a console or a
//! tool, what goes over the connection is recorded and compared, without times, numbers and names.
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

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::thread;

use bed::peer::Frame;
use bed::{Bed, BedOptions, ClientOptions, DIRECTOR, Fd, Result, set_fixed_times};
use console::Action;
use recorder::Recorder;

/// The clients' names: as long as each other, so that lengths and counters are the same.
const NAMES: [&str; 2] = ["refer", "under"];
/// As few actions as the suite may ever have.
const FEWEST: usize = 60;

/// The file with all events of a File Daemon.
fn log_of(bed: &Bed, name: &str) -> PathBuf {
    bed.folder().join("work").join(name).join("all.log")
}

struct Stage {
    bed: Bed,
    recorders: Vec<Recorder>,
}

impl Stage {
    fn set() -> Result<Self> {
        let recorders = NAMES.iter().map(|_| Recorder::new()).collect::<Result<Vec<_>>>()?;
        let client = |(fd, (name, recorder)): (Fd, (&&str, &Recorder))| {
            let mut options = ClientOptions::new(fd).named(name);
            options.director_port = Some(recorder.port());
            options.file_daemon = raw::more_directors();
            options.messages =
                vec![format!("Director = {DIRECTOR} = events"), "Append = @WORK@/all.log = all, events".to_owned()];
            options
        };
        let daemons = [Fd::Stock, Fd::under_test()?];
        let clients = daemons.into_iter().zip(NAMES.iter().zip(&recorders)).map(client);
        let mut options = BedOptions::new("transcripts", clients)?;
        options.tls_psk = false;
        options.director_resources = NAMES.iter().flat_map(|name| console::jobs(name)).collect();
        let source = options.source()?;
        fs::create_dir(source.join("sub")).unwrap();
        for (name, text) in [("empty", ""), ("hello.txt", "hello\n"), ("sub/with space.txt", "world data\n")] {
            fs::write(source.join(name), text).unwrap();
        }
        fs::hard_link(source.join("hello.txt"), source.join("hard")).unwrap();
        std::os::unix::fs::symlink("hello.txt", source.join("link")).unwrap();
        set_fixed_times(&source)?;
        let mut bed = Bed::start(options)?;
        for (name, recorder) in NAMES.iter().zip(&recorders) {
            recorder.lead_to(bed.client(name)?.port(), log_of(&bed, name));
        }
        Ok(Self { bed, recorders })
    }

    /// What both File Daemons and their Director said during one action: the conversations one
    /// after the other.
    fn transcripts(&self, action: &Action) -> Result<Vec<[String; 2]>> {
        // Both at once: most of the time goes by while a Director waits.
        thread::scope(|scope| {
            let acting: Vec<_> = NAMES.iter().map(|name| scope.spawn(|| action.run(&self.bed, name))).collect();
            acting.into_iter().try_for_each(|acting| acting.join().unwrap())
        })?;
        let mut both = Vec::new();
        for (name, recorder) in NAMES.iter().zip(&self.recorders) {
            let mut sides = [String::new(), String::new()];
            for conversation in recorder.take(action.name)? {
                let (director, daemon) = normal::lines(&conversation, name);
                for (side, said) in sides.iter_mut().zip([director, daemon]) {
                    writeln!(side, "-- connection\n{}", said.join("\n")).unwrap();
                }
            }
            both.push(sides);
        }
        Ok(both)
    }

    /// What the File Daemon wrote to a file of its own. The bed's looks at its port have no first
    /// frame, and what is said of them is left out.
    fn log(&self, client: usize) -> Result<String> {
        let name = NAMES[client];
        self.recorders[client].wait_for_ends()?;
        let text = fs::read(log_of(&self.bed, name)).unwrap();
        let lines = text.split(|byte| *byte == b'\n').map(|line| Frame::Data(line.to_vec()));
        let lines = lines.map(|line| normal::line(&line, name));
        Ok(lines.filter(|line| !line.contains("expecting Hello")).collect::<Vec<_>>().join("\n"))
    }
}

/// The first lines that differ, with those around them.
fn difference(what: &str, stock: &str, ours: &str) -> Option<String> {
    if stock == ours {
        return None;
    }
    let (left, right): (Vec<_>, Vec<_>) = (stock.lines().collect(), ours.lines().collect());
    let same = left.iter().zip(&right).take_while(|(left, right)| left == right).count();
    let around = |lines: &[&str]| {
        let from = same.saturating_sub(2);
        lines.iter().skip(from).take(5).map(|line| line.chars().take(400).collect::<String>()).collect::<Vec<_>>()
    };
    Some(format!("{what}, line {same}:\n stock {:#?}\n ours  {:#?}", around(&left), around(&right)))
}

#[test]
fn a_director_has_the_same_conversation_with_both() -> Result<()> {
    let stage = Stage::set()?;
    let (actions, talks) = (console::actions(), raw::talks());
    assert!(actions.len() + talks.len() >= FEWEST, "{} and {}", actions.len(), talks.len());
    let mut wrong = Vec::new();
    for action in &actions {
        let both = stage.transcripts(action)?;
        let [stock, ours] = both.as_slice() else { continue };
        assert!(stock.iter().all(|side| side.lines().count() > 1), "{}: nothing was said", action.name);
        for (side, (stock, ours)) in ["Director", "File daemon"].into_iter().zip(stock.iter().zip(ours)) {
            wrong.extend(difference(&format!("{}, {side}", action.name), stock, ours));
        }
    }
    for talk in &talks {
        let mut said = Vec::new();
        for (name, recorder) in NAMES.iter().zip(&stage.recorders) {
            said.push(talk.with(name, recorder.begin_session()?)?);
        }
        let [stock, ours] = said.as_slice() else { continue };
        wrong.extend(difference(talk.name, stock, ours));
    }
    let logs = [stage.log(0)?, stage.log(1)?];
    assert!(logs[0].lines().count() > 100, "{}", logs[0]);
    wrong.extend(difference("what the File daemons appended to a file", &logs[0], &logs[1]));
    println!("{} console actions and {} talks", actions.len(), talks.len());
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n\n"));
    Ok(())
}
