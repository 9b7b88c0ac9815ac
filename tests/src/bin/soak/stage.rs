//! The bed of a round: clients, what they save, jobs.

use std::fs;
use std::path::{Path, PathBuf};

use bed::{
    Bed, BedError, BedOptions, ClientOptions, Fd, FileSet, Keys, Noise, Result, faketime, job_resource, make_fifo,
};

use crate::compare::Key;
use crate::living;
use crate::plan::{HELD, Lane, Pair, Plan};

/// A raised bed, and what it is about.
pub(crate) struct Stage {
    pub(crate) bed: Bed,
    pub(crate) tree: PathBuf,
    pub(crate) key: Key,
    /// How far the clock of the pair [`Pair::Clock`] is off, as libfaketime reads it; `None` where
    /// that is not installed.
    pub(crate) clock: Option<PathBuf>,
}

impl Stage {
    /// Makes the tree, and starts the daemons.
    pub(crate) fn raise(plan: &Plan) -> Result<Self> {
        let mut options = BedOptions::new("soak", [])?;
        options.every_message = plan.every_message;
        let tree = options.source()?.join("tree");
        living::build(&tree, plan.seed, plan.tree.every_type)?;
        let keys = Keys::make(&options.folder.make("keys")?, "own")?;
        let clock = Path::new(faketime::LIBRARY).exists().then(|| options.folder.path().join("clock"));
        if let Some(clock) = &clock {
            faketime::set(clock, "+0")?;
        }
        for pair in Pair::ALL {
            for (fd, name) in Fd::BOTH.into_iter().zip(pair.clients()) {
                let mut client = ClientOptions::new(fd).named(name);
                match pair {
                    Pair::Plain => {}
                    Pair::Sealed => {
                        client.file_daemon.push(format!("PKI Keypair = \"{}\"", keys.pair.display()));
                        client.file_daemon.push("PKI Signatures = yes".to_owned());
                        client.file_daemon.push("PKI Encryption = yes".to_owned());
                    }
                    Pair::Clock => client.environment = clock.as_deref().map(faketime::variables).unwrap_or_default(),
                }
                options.clients.push(client);
            }
        }
        for (fd, name) in Fd::BOTH.into_iter().zip(HELD) {
            options.clients.push(ClientOptions::new(fd).named(name));
        }
        // The first one is that of the jobs that the bed makes.
        for lane in &plan.lanes {
            options.file_sets.push(file_set(lane, &tree, options.folder.path()));
            options.director_resources.extend(lane.pair.clients().into_iter().flat_map(|client| jobs(lane, client)));
        }
        let few = options.folder.make("source/few")?;
        let mut noise = Noise::new(plan.seed);
        for number in 0..10 {
            let path = few.join(format!("file {number}"));
            fs::write(&path, noise.text(2000)).map_err(BedError::file("write", &path))?;
        }
        for client in HELD {
            let gate = options.folder.path().join(gate_name(client));
            make_fifo(&gate)?;
            let set = FileSet::new(client, &["Signature = MD5", "ReadFifo = yes"], &[&few, &gate]);
            options.file_sets.push(set);
            options.director_resources.push(job("held", client, client, "Type = Backup\nLevel = Full"));
        }
        // So that the queue is never what is waited for.
        options.director.push("Maximum Concurrent Jobs = 60".to_owned());
        options.storage.push("Maximum Concurrent Jobs = 90".to_owned());
        let bed = Bed::start(options)?;
        Ok(Self { bed, tree, key: Key { id: keys.id, key: keys.key }, clock })
    }

    /// The pipe that a client's held job reads.
    pub(crate) fn gate(&self, client: &str) -> PathBuf {
        self.bed.folder().join(gate_name(client))
    }
}

fn gate_name(client: &str) -> String {
    format!("gate-{client}")
}

fn file_set(lane: &Lane, tree: &Path, folder: &Path) -> FileSet {
    let mut lines = vec!["Include {".to_owned()];
    if let Some(pattern) = lane.excluding {
        lines.extend(["Options {", "Exclude = yes"].map(str::to_owned));
        lines.extend([pattern.to_owned(), "}".to_owned()]);
    }
    lines.push("Options {".to_owned());
    lines.extend(lane.options.iter().map(|&line| line.to_owned()));
    lines.push("}".to_owned());
    lines.push(format!("File = \"{}\"", tree.display()));
    if lane.bpipe {
        let file = folder.join("source/few/file 3");
        let reader = format!("cat '{}' '{}'", file.display(), file.display());
        lines.push(format!("Plugin = \"bpipe:/few/{}:{reader}:mkdir -p %w; cat >%w/from-bpipe\"", lane.name));
    }
    lines.push("}".to_owned());
    FileSet { name: lane.name.clone(), lines }
}

fn job(name: &str, client: &str, set: &str, more: &str) -> String {
    job_resource(&format!("{name}-{client}"), client, set, &format!("Maximum Concurrent Jobs = 10\n{more}"))
}

/// A lane's jobs of one client.
fn jobs(lane: &Lane, client: &str) -> Vec<String> {
    let set = &lane.name;
    let accurate = if lane.accurate { "\nAccurate = yes" } else { "" };
    vec![
        job(set, client, set, &format!("Type = Backup\nLevel = Full{accurate}")),
        job(&format!("{set}-disk"), client, set, "Type = Verify\nLevel = InitCatalog"),
        job(&format!("{set}-check"), client, set, &format!("Type = Verify\nLevel = Data\nVerify Job = {set}-{client}")),
    ]
}
