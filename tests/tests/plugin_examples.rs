//! The plugins that docs/plugins.md shows, in C and in Rust, each in the stock daemon and in the
//! daemon under test: what one has saved the other restores.

#![expect(clippy::unwrap_used, reason = "what helps a test fails the test, like the test itself")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bed::{Bed, BedOptions, ClientOptions, Fd, FileSet, Plugins, Restore, Result, build_plugin, line_differences};

const NAMES: [&str; 2] = ["refer", "under"];

/// The example in Rust: what `cargo test` has built, or else it is built now.
fn rust_example() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    // The test is in PROFILE/deps.
    let built = exe.parent().and_then(Path::parent).unwrap().join("examples/libnotes.so");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = built.parent().and_then(Path::parent).and_then(Path::parent).unwrap();
    let status = Command::new(cargo)
        // Of the whole workspace: for one package cargo builds dependencies with other features.
        .args(["build", "--quiet", "--workspace", "--example", "notes"])
        .args(built.components().any(|part| part.as_os_str() == "release").then_some("--release"))
        .arg("--target-dir")
        .arg(target)
        .status();
    assert!(built.exists(), "{status:?}");
    built
}

#[test]
fn the_examples_in_c_and_rust_do_the_same_in_both_daemons() -> Result<()> {
    let daemons = [Fd::Stock, Fd::under_test()?];
    let clients = daemons.into_iter().zip(NAMES).map(|(fd, name)| ClientOptions::new(fd).named(name));
    let mut options = BedOptions::new("examples", clients)?;
    let plugins = options.folder.make("plugins")?;
    build_plugin("cnotes", &[], &plugins.join("cnotes-fd.so"))?;
    fs::copy(rust_example(), plugins.join("notes-fd.so")).unwrap();
    for client in &mut options.clients {
        client.plugins = Plugins::In(plugins.clone());
    }
    let set = |name: &str, plugin: &str| {
        let set =
            FileSet::new(name, &["Signature = MD5"], &[]).with(format!("Plugin = \"{plugin}:one=The first note\""));
        set.with(format!("Plugin = \"{plugin}:a/second=\""))
    };
    options.file_sets = vec![set("c", "cnotes"), set("rust", "notes"), set("no text", "nothing")];
    options.file_sets.last_mut().unwrap().lines =
        ["Include {", "Plugin = \"notes:no text\"", "}"].map(str::to_owned).to_vec();
    let bed = Bed::start(options)?;
    let sides: Vec<_> = NAMES.into_iter().flat_map(|client| ["c", "rust"].map(|set| (client, set))).collect();
    let command = |(client, set): &(&str, &str)| format!("run job=backup-{client} fileset={set} yes");
    let backups = bed.run_all(&sides.iter().map(command).collect::<Vec<_>>())?;
    // Each daemon restores what the other has saved.
    let mut told: Vec<Vec<String>> = Vec::new();
    let mut commands = Vec::new();
    for ((client, set), job) in sides.iter().zip(backups) {
        let saved = bed.result(job)?.must_be_good()?;
        let records = bed.records(&saved.row, client)?.map(|record| {
            let record = record?;
            let data = record.data.escape_ascii().to_string();
            Ok(format!("{} {} {}", record.file_index, record.stream, data.replace("cnotes:", "notes:")))
        });
        told.push(records.collect::<Result<Vec<_>>>()?);
        let onto = NAMES.into_iter().find(|name| name != client).unwrap();
        let to = bed.folder().join(format!("restored-{client}-{set}"));
        commands.push(Restore { job, from: client, onto, to: &to, replace: "always" }.command());
    }
    let jobs = bed.run_all(&commands)?;
    for (((client, set), lines), job) in sides.iter().zip(&mut told).zip(jobs) {
        let restored = bed.result(job)?.must_be_good()?;
        let onto = NAMES.into_iter().find(|name| name != client).unwrap();
        let said = restored.plain_messages(onto).into_iter().filter(|line| line.contains("notes: "));
        lines.extend(said.map(|line| line.replace("cnotes", "notes")));
        for name in ["one", "a/second"] {
            let path = bed.folder().join(format!("restored-{client}-{set}/@notes/{name}"));
            lines.push(format!("{name} {:?}", fs::read_to_string(path).unwrap()));
        }
    }
    let first = told.first().unwrap();
    assert!(first.contains(&"one \"The first note\"".to_owned()), "{first:?}");
    let wrong: Vec<_> = told.iter().flat_map(|other| line_differences("example", first, other)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for client in NAMES {
        let failed = bed.backup(client, "fileset=\"no text\"")?;
        assert!(failed.row.status == 'f' && failed.log.contains("notes: the command has no text"), "{failed:?}");
    }
    Ok(())
}
