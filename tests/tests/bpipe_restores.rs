//! Where a restore through `bpipe` goes: what its writer is told with each form of the restore
//! command, beside the stock daemon, a writer that the user gives, and what becomes of the data
//! without `bpipe`.
//!
//! With `FD_UNDER_TEST=stock` a second stock daemon takes the place of ours.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what helps a test fails the test, like the test itself"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use bed::{
    Bed, BedOptions, ClientOptions, Fd, FileSet, JobResult, PATIENCE, Plugins, Result, line_differences, wait_for,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The clients' names: as long as each other.
const NAMES: [&str; 2] = ["refer", "under"];
/// The client without `bpipe`.
const BARE: &str = "plain";

/// A FileSet whose writer notes what it is told, and keeps the data.
fn file_set(name: &str, got: &Path) -> FileSet {
    let got = got.display();
    let command = format!("bpipe:/b/numbers:seq 1 60000:echo '<%w|%r|%%|%x>' >>{got}/told; cat >>{got}/data");
    FileSet::new(name, &["Signature = SHA1"], &[]).with(format!("Plugin = \"{command}\""))
}

fn raise() -> Result<Bed> {
    let daemons = [Fd::Stock, Fd::under_test()?];
    let clients = daemons.into_iter().zip(NAMES).map(|(fd, name)| ClientOptions::new(fd).named(name));
    let mut options = BedOptions::new("bpipe-restores", clients)?;
    let mut bare = ClientOptions::new(Fd::under_test()?).named(BARE);
    bare.plugins = Plugins::In(options.folder.make("no-plugins")?);
    bare.settings = vec!["plugins.bpipe = \"off\"".to_owned()];
    options.clients.push(bare);
    for name in NAMES {
        let got = options.folder.make(&format!("got-{name}"))?;
        options.file_sets.push(file_set(&format!("numbers-{name}"), &got));
    }
    Bed::start(options)
}

/// What a writer was told and given, and what the daemon says, without the names of places.
fn told(bed: &Bed, job: &JobResult, client: &str) -> Vec<String> {
    let got = bed.folder().join(format!("got-{client}"));
    let read = |name: &str| {
        let text = fs::read_to_string(got.join(name)).unwrap_or_default();
        let _gone = fs::remove_file(got.join(name));
        text
    };
    let data = read("data");
    let mut lines =
        vec![format!("status {}", job.row.status), format!("data {} {}", data.len(), data.ends_with("60000\n"))];
    lines.extend(read("told").lines().map(ToOwned::to_owned));
    // The lines of restored files have the time of the backup.
    let own = job.plain_messages(client).into_iter().filter(|line| line.starts_with("fd: ") && !line.contains(" -1 "));
    // The stock daemon does not say what the volume makes it run (docs/differences.md).
    let only_ours = ["Connected to Storage", "The volume asks plugin "];
    lines.extend(own.filter(|line| !only_ours.iter().any(|part| line.contains(part))));
    lines
}

/// What a user types at the console to have this writer: the parameter *Plugin Options* (13) of the
/// restore, of which bpipe has one.
fn typed(writer: &str) -> String {
    ["mod", "13", "mod", writer, "yes", "yes"].join("\n")
}

/// Restores what each daemon has saved with a writer of the user's; what differs between the
/// daemons.
fn with_a_user_s_writer(bed: &Bed, saved: &[u32]) -> Result<Vec<String>> {
    let to = bed.folder().join("by-the-user");
    fs::create_dir(&to).unwrap();
    let mut sides = Vec::new();
    for (from, onto) in [(0, 0), (0, 1), (1, 1)] {
        let command = format!(
            "restore jobid={} client={}-fd restoreclient={}-fd where={} replace=always all done\n{}",
            saved.get(from).unwrap(),
            NAMES[from],
            NAMES[onto],
            to.display(),
            typed("cat >%w/user-%r; echo done: \"%w\"")
        );
        let job = bed.queue(&command)?;
        let told = told(bed, &bed.wait(job)?, NAMES[onto]);
        let data = fs::read_to_string(to.join("user-a")).unwrap_or_default();
        assert!(data.ends_with("59999\n60000\n") && data.len() == 348_894, "{told:#?}");
        assert!(told.iter().any(|line| line.contains("Using user supplied restore command: \"cat >%w/")), "{told:#?}");
        // The command's own writer got nothing.
        assert_eq!(told[1], "data 0 false");
        fs::remove_file(to.join("user-a")).unwrap();
        sides.push(told);
    }
    let wrong = [1, 2].map(|side| line_differences("a user's writer", &sides[0], &sides[side]));
    Ok(wrong.concat())
}

#[test]
fn bpipe_restores_to_any_place_as_the_stock_daemon_does() -> Result<()> {
    let bed = raise()?;
    let save = NAMES.map(|name| format!("run job=backup-{name} fileset=numbers-{name} yes"));
    let saved = bed.run_all(&save)?;
    let restore = |side: usize, onto: &str, how: &str| {
        let job = saved.get(side).unwrap();
        format!("restore jobid={job} client={}-fd restoreclient={onto}-fd {how} all done yes", NAMES[side])
    };
    let to = bed.folder().join("to");
    let mut wrong = Vec::new();
    for how in [
        "where=/ replace=always",
        &format!("where={} replace=ifnewer", to.display()),
        "where=/tmp/a%wb%% replace=never",
    ] {
        let jobs = bed.run_all(&[0, 1].map(|side| restore(side, NAMES[side], how)))?;
        let told = |side: usize| -> Result<Vec<String>> {
            Ok(told(&bed, &bed.result(*jobs.get(side).unwrap())?, NAMES[side]))
        };
        let sides: [Vec<String>; 2] = [told(0)?, told(1)?];
        assert!(sides[0].iter().any(|line| line == "data 348894 true"), "{how}: {sides:?}");
        wrong.extend(line_differences(how, &sides[0], &sides[1]));
    }
    wrong.extend(with_a_user_s_writer(&bed, &saved)?);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // What the stock daemon has saved is an ordinary file without `bpipe`.
    let job = bed.run(&restore(0, BARE, &format!("where={} replace=always", to.display())))?;
    let file = to.join("b/numbers");
    assert_eq!((job.row.status, fs::read(&file).unwrap().len()), ('T', 348_894), "{}", job.log);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode(), 0o100_700);
    if Fd::under_test()? == Fd::Ours {
        // The stock daemon dies of this.
        let name = NAMES[1];
        let told = told(&bed, &bed.run(&restore(1, name, "regexwhere=!/b!/c! replace=always"))?, name);
        assert_eq!(told[..1], ["status T"], "{told:?}");
    }
    Ok(())
}

/// The Director cancels first the File Daemon's part, then that of the Storage Daemon, which must
/// not lose the connection between the two.
#[test]
fn a_canceled_restore_gives_the_storage_daemon_no_error() -> Result<()> {
    let daemons = [Fd::Stock, Fd::under_test()?];
    let clients = daemons.into_iter().zip(NAMES).map(|(fd, name)| ClientOptions::new(fd).named(name));
    let mut options = BedOptions::new("bpipe-canceled", clients)?;
    let begun = options.folder.path().join("begun");
    // More than all buffers on the way hold; the writer takes none of it.
    let command = format!(
        "bpipe:/b/zeros:head -c 30000000 /dev/zero:echo $$ >{0}.new; mv {0}.new {0}; exec sleep 1000",
        begun.display()
    );
    let lines = ["Include {".to_owned(), format!("Plugin = \"{command}\""), "}".to_owned()].to_vec();
    options.file_sets.push(FileSet { name: "zeros".to_owned(), lines });
    let bed = Bed::start(options)?;
    for name in NAMES {
        let saved = bed.wait(bed.queue(&format!("run job=backup-{name} fileset=zeros yes"))?)?.must_be_good()?;
        let job = bed.queue(&format!("restore jobid={} client={name}-fd where=/ all done yes", saved.row.id))?;
        let writer =
            wait_for("the writer", PATIENCE, || Ok(fs::read_to_string(&begun).map_err(|error| error.to_string())))?;
        bed.console(&[&format!("cancel jobid={job} yes")])?;
        // The stock daemon waits until it ends by itself; ours may have ended it.
        let _gone = kill(Pid::from_raw(writer.trim().parse().unwrap()), Signal::SIGKILL);
        bed.wait(job)?.must_be('A')?;
        fs::remove_file(&begun).unwrap();
        let log = bed.catalog().log(job)?;
        let of_storage = format!("bed-sd JobId {job}: ");
        let errors = log.lines().filter(|line| line.contains(&of_storage) && line.contains("rror: "));
        assert_eq!(errors.collect::<Vec<_>>(), Vec::<&str>::new(), "{name}");
    }
    Ok(())
}
