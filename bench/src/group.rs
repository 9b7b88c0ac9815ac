//! The cells of one tree and variant on one bed: stock and ours in turn, replica after replica,
//! each a job of its own.
//!
//! Before each job the page cache is brought to the same state, because the stock daemon drops what
//! it reads. After the first replica of a cell what both have made is compared.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use bed::{
    Bed, BedError, BedOptions, ClientOptions, Console, Fd, FileRow, FileSet, JobResult, Keys, RecordRules, Result,
    Times, TreeRules, Usage, compare_records, compare_trees, reset_peak, usage,
};
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::{Pid, sync};

use crate::cell::{Cell, Codec, Level, Mechanism, Traffic, Variant};
use crate::changing::Changing;
use crate::connection::Watch;
use crate::far::{Line, Way};
use crate::floor::{self, Role, Stream};
use crate::order::delay;
use crate::places::Places;
use crate::problems::Problem;
use crate::restored::Restored;
use crate::sample::{Sample, Side};
use crate::statistics::float;
use crate::surroundings::{Stalls, Surroundings, asked, resident};
use crate::tree::{Kind, Standing, drop_caches, visit, warm};
use crate::volumes::remove_volumes;

/// A bed with one tree and one variant.
pub struct Group<'a> {
    // Dropped before the bed whose Director it talks to.
    console: Console,
    bed: Bed,
    tree: &'a Standing,
    cell: Cell,
    watch: &'a Watch,
    restored: &'a mut Restored,
    /// The newest Full of each side.
    full: BTreeMap<Side, JobResult>,
    /// The jobs of a chain that is restored: of each side, by what restores it.
    chains: BTreeMap<(Level, Side), Vec<JobResult>>,
    /// What the floor sends.
    stream: Option<Stream>,
    /// The tree and the restored files as the daemons see them.
    places: Places,
    /// Files of the tree that are asked how much of them is in the page cache.
    asked: Vec<PathBuf>,
    /// The ports through which the Director reaches hosts that are far away.
    ways: BTreeMap<Side, Way>,
    /// The same to the Storage Daemon.
    storage_way: Option<Way>,
}

/// One job of each side.
#[derive(Debug)]
pub struct Replica {
    /// What they took, in the order of their turns.
    pub samples: Vec<Sample>,
    /// What is wrong with jobs that did not end well, or with what they have made.
    pub problems: Vec<Problem>,
}

/// What a process has used, to the nanosecond, and how it is divided.
#[derive(Clone, Copy)]
pub(crate) struct Used {
    pub(crate) cpu: Duration,
    pub(crate) parts: Usage,
}

impl<'a> Group<'a> {
    /// Raises the bed for a cell and its neighbours; `settings` are lines of ours'
    /// `bacula-fd.toml`.
    pub fn start(
        cell: Cell,
        settings: &[String],
        tree: &'a Standing,
        watch: &'a Watch,
        restored: &'a mut Restored,
    ) -> Result<Self> {
        let places = Places::of(cell.variant, tree, restored)?;
        let mut clients = clients(cell, settings);
        let mut ways = BTreeMap::new();
        let mut storage = None;
        if let Variant::Far(round_trip, rate) = cell.variant {
            let line = Line::new(Duration::from_millis(round_trip.into()), rate);
            for (client, side) in clients.iter_mut().zip(Side::BOTH) {
                let way = line.way()?;
                client.director_port = Some(way.port);
                ways.insert(side, way);
            }
            storage = Some(line.way()?);
        }
        let mut options = BedOptions::new("bench", clients)?;
        options.storage_port = storage.as_ref().map(|way| way.port);
        if let Some(suite) = cell.variant.suite() {
            let path = options.folder.path().join("openssl.cnf");
            fs::write(&path, tls_with(suite)).map_err(BedError::file("write", &path))?;
            for client in &mut options.clients {
                client.environment.push(("OPENSSL_CONF".to_owned(), path.display().to_string()));
            }
        }
        if cell.variant.is_encrypted() {
            let pair = Keys::make(options.folder.path(), "bench")?.pair;
            for client in &mut options.clients {
                let lines =
                    ["PKI Signatures = yes", "PKI Encryption = yes", "PKI Cipher = aes256", "PKI Digest = sha256"];
                client.file_daemon.extend(lines.map(str::to_owned));
                client.file_daemon.push(format!("PKI Keypair = \"{}\"", pair.display()));
            }
        }
        options.tls_psk = cell.variant.has_tls();
        // A volume for each job, so that old ones can go.
        options.pool = vec!["Maximum Volume Jobs = 1".to_owned()];
        let words = cell.variant.options();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let busy = busy(restored);
        let mut saved = vec![places.tree.as_path()];
        if cell.variant.changer().is_some() {
            saved.push(&busy);
            fs::create_dir_all(&busy).map_err(BedError::file("create", &busy))?;
        }
        options.file_sets = vec![FileSet::new("Bench", &words, &saved)];
        let mut bed = Bed::start(options)?;
        for (side, way) in &ways {
            way.leads_to(bed.client(side.name())?.port());
        }
        if let Some(way) = &storage {
            way.leads_to(bed.storage().port());
        }
        if has_floor(cell) {
            // We take its place.
            bed.client(Side::Floor.name())?.daemon().kill()?;
        }
        let asked = asked(&places.cached)?;
        Ok(Self {
            console: Console::of(&bed)?,
            bed,
            tree,
            cell,
            watch,
            restored,
            full: BTreeMap::new(),
            chains: BTreeMap::new(),
            stream: None,
            places,
            asked,
            ways,
            storage_way: storage,
        })
    }

    /// Whether the floor takes part in a cell: it is the last one, because it sends what the stock
    /// daemon has sent.
    pub fn has_floor(&self, level: Level) -> bool {
        matches!(level, Level::Full | Level::Restore) && has_floor(self.cell)
    }

    /// The process of a side.
    pub fn pid(&mut self, side: Side) -> Result<u32> {
        self.bed.client(side.name())?.pid()
    }

    /// Makes sure that there is a Full to build on.
    pub fn prepare(&mut self, level: Level) -> Result<()> {
        for side in Side::BOTH {
            let needs_one = level != Level::Full || self.cell.variant == Variant::PkiAgain;
            if needs_one && !self.full.contains_key(&side) {
                self.cell.tree.kind.warm(&self.places.cached)?;
                let result = self.judged(self.bed.backup(side.name(), "level=Full")?)?;
                self.full.insert(side, result);
            }
        }
        match level {
            Level::RestoreDifferential => self.chain(level, "Differential", 1),
            Level::RestoreIncrementals => self.chain(level, "Incremental", 3),
            _ => Ok(()),
        }
    }

    /// Saves what was touched so many times, upon the Full that is there.
    fn chain(&mut self, level: Level, saved: &str, times: usize) -> Result<()> {
        if self.chains.contains_key(&(level, Side::Ours)) {
            return Ok(());
        }
        for _ in 0..times {
            self.tree.touch(&self.places.cached)?;
            for side in Side::BOTH {
                let job = self.bed.backup(side.name(), &format!("level={saved}"))?.must_be_good()?;
                self.chains.entry((level, side)).or_default().push(job);
            }
        }
        Ok(())
    }

    /// One replica of a cell: a job of each side in this order. What jobs that ended well have made
    /// is compared.
    pub fn replica(&mut self, cell: Cell, replica: u32, turns: &[Side]) -> Result<Replica> {
        let touches = matches!(cell.level, Level::Differential | Level::Incremental);
        if touches && cell.variant.touches() {
            self.tree.touch(&self.places.cached)?;
        }
        self.restored.renew();
        let mut samples = Vec::new();
        let mut results = BTreeMap::new();
        let mut problems = Vec::new();
        for (turn, &side) in (1..).zip(turns) {
            if side == Side::Floor && cell.level == Level::Full {
                self.record(results.get(&Side::Stock))?;
            }
            if matches!(cell.variant, Variant::Pki | Variant::PkiLzo) {
                self.forget_signatures(side)?;
            }
            self.make_room(cell, side)?;
            self.bring_cache(cell, side)?;
            let (sample, result) = self.measure(cell, side, replica, turn)?;
            samples.push(sample);
            match self.judged(result) {
                Ok(result) => drop(results.insert(side, result)),
                Err(problem) => problems.push(Problem::failed(&problem)),
            }
        }
        if let Err(difference) = self.compare(cell, &results, replica == 1) {
            problems.push(Problem::differed(&difference));
        }
        for (side, result) in results {
            self.keep(cell, side, result)?;
        }
        Ok(Replica { samples, problems })
    }

    /// A job that ended well. If something changes files meanwhile, names that are gone when they
    /// are to be saved are warnings, and a file whose size changed while it was read is an error of
    /// its restore, with either daemon: on the volume its attributes come before its data.
    fn judged(&self, result: JobResult) -> Result<JobResult> {
        if self.cell.variant.changer().is_none() {
            return result.must_be_good();
        }
        let busy = busy(self.restored).display().to_string();
        let is_torn = |message: &String| message.contains(&busy) && message.contains(" not correct. Original ");
        let messages = Side::BOTH.map(|side| result.messages_of(&format!("{}-fd", side.name())));
        let torn = messages.iter().flatten().filter(|message| is_torn(message)).count();
        let are_all = torn > 0 && usize::try_from(result.row.errors).is_ok_and(|errors| errors == torn);
        if result.row.status == 'E' && are_all { Ok(result) } else { result.must_be('T') }
    }

    /// So that this job signs as if there had been none before it.
    fn forget_signatures(&self, side: Side) -> Result<()> {
        let folder = self.bed.folder().join("work").join(side.name());
        for entry in fs::read_dir(&folder).map_err(BedError::file("read", &folder))? {
            let path = entry.map_err(BedError::file("read", &folder))?.path();
            if path.extension().is_some_and(|extension| extension == "signatures") {
                fs::remove_file(&path).map_err(BedError::file("remove", &path))?;
            }
        }
        Ok(())
    }

    fn bring_cache(&self, cell: Cell, side: Side) -> Result<()> {
        // What earlier jobs have written is not to be written during this one.
        sync();
        if cell.variant.is_cold() {
            return drop_caches();
        }
        match cell.level {
            Level::Full => cell.tree.kind.warm(&self.places.cached),
            Level::Differential | Level::Incremental => self.tree.warm_touched(),
            _ => self.read_files(cell, side)?.iter().try_for_each(|path| warm(path)),
        }
    }

    /// Makes what the floor sends from the stock daemon's volume, once.
    fn record(&mut self, stock: Option<&JobResult>) -> Result<()> {
        if let (None, Some(job)) = (&self.stream, stock) {
            let records = self.bed.records(&job.row, Side::Stock.name())?;
            self.stream = Some(Stream::of(records, job.row.files, job.row.read_bytes, job.row.bytes)?);
        }
        Ok(())
    }

    /// What a job will read, as far as it is asked how much of it is in the page cache.
    fn read_files(&self, cell: Cell, side: Side) -> Result<Vec<PathBuf>> {
        if !cell.level.is_restore() {
            return Ok(self.asked.clone());
        }
        let (from, jobs) = self.restored_jobs(cell.level, side)?;
        let mut volumes = Vec::new();
        for job in jobs {
            volumes.extend(self.volumes(job, from)?);
        }
        Ok(volumes)
    }

    /// What a restore of a side restores, and whose it is.
    fn restored_jobs(&self, level: Level, side: Side) -> Result<(Side, Vec<&JobResult>)> {
        let (from, full) = self.full_of(side)?;
        let later = self.chains.get(&(level, from)).into_iter().flatten();
        Ok((from, [full].into_iter().chain(later).collect()))
    }

    fn measure(&mut self, cell: Cell, side: Side, replica: u32, turn: u32) -> Result<(Sample, JobResult)> {
        let commands = [self.command(cell, side)?];
        let read = self.read_files(cell, side)?;
        let mut around = Surroundings { resident_before: resident(&read), ..Surroundings::found(self.bed.folder()) };
        let client = self.bed.client(side.name())?;
        let port = self.ways.get(&side).map_or(client.port(), |way| way.port);
        let fd = if side == Side::Floor { std::process::id() } else { client.pid()? };
        let storage = self.storage_way.as_ref().map_or(self.bed.storage().port(), |way| way.port);
        let sd = self.bed.storage().process()?.pid();
        let dir = self.bed.director().process()?.pid();
        sleep(delay(&cell.to_string(), replica));
        reset_peak(fd)?;
        let now = || -> Result<[Used; 3]> { Ok([used(fd)?, used(sd)?, used(dir)?]) };
        let before = now()?;
        let stalls = Stalls::now();
        let role = self.role(cell, side)?;
        let changing = self.changing(cell)?;
        let run = || self.console.run(&self.bed, &commands);
        let (clocked, connection) = self.watch.seen(fd, port, Some(storage), || match role {
            Some(role) => floor::during(port, role, run),
            None => run(),
        })?;
        let (job, queued) = (clocked.took, connection.started.map(|started| clocked.until(started)));
        let result = clocked.one()?;
        changing.map_or(Ok(()), Changing::end)?;
        let after = now()?;
        around.stalls = Stalls::now().since(stalls);
        around.resident_after = resident(&read);
        let [fd, sd, dir] = [0, 1, 2].map(|at| {
            let (Some(after), Some(before)) = (after.get(at), before.get(at)) else { return Duration::ZERO };
            after.cpu.saturating_sub(before.cpu)
        });
        let [parts, ..] = after;
        let [old, ..] = before;
        let sample = Sample {
            cell,
            side,
            replica,
            turn,
            outcome: Sample::outcome_of(&result.row),
            connection: connection.life.as_secs_f64() * 1e3,
            first: self
                .first_file(cell.level, side)?
                .map(|first| first.duration_since(connection.begun).unwrap_or_default().as_secs_f64() * 1e3),
            job: Some(job.as_secs_f64() * 1e3),
            queued,
            fd: fd.as_secs_f64(),
            fd_user: parts.parts.user.saturating_sub(old.parts.user).as_secs_f64(),
            fd_system: parts.parts.system.saturating_sub(old.parts.system).as_secs_f64(),
            sd: sd.as_secs_f64(),
            dir: dir.as_secs_f64(),
            rss: float(parts.parts.peak_memory),
            files: result.row.files,
            bytes: result.row.bytes,
            read_bytes: result.row.read_bytes,
            around,
            program: None,
            harness: None,
        };
        Ok((sample, result))
    }

    /// What changes files during a backup, at work.
    fn changing(&self, cell: Cell) -> Result<Option<Changing>> {
        let changer = cell.variant.changer().filter(|_| !cell.level.is_restore());
        let work = self.restored.all().with_file_name("changer");
        changer.map(|changer| Changing::start(changer, &busy(self.restored), &work)).transpose()
    }

    /// When the first file of a restore was made.
    fn first_file(&self, level: Level, side: Side) -> Result<Option<SystemTime>> {
        let folder = self.restored.folder(side.name());
        if !level.is_restore() || !folder.exists() {
            return Ok(None);
        }
        let mut first = None;
        visit(&folder, &mut |path| {
            let made = fs::metadata(path).and_then(|meta| meta.created()).ok();
            first = [first, made].into_iter().flatten().min();
            Ok(())
        })?;
        Ok(first)
    }

    /// What we do in place of a File Daemon, if we are one.
    fn role(&self, cell: Cell, side: Side) -> Result<Option<Role<'_>>> {
        match (side, cell.level, &self.stream) {
            (Side::Floor, Level::Restore, _) => Ok(Some(Role::Drop(self.full_of(side)?.1.row.files))),
            (Side::Floor, _, Some(stream)) => Ok(Some(Role::Send(stream))),
            _ => Ok(None),
        }
    }

    /// The console's command.
    fn command(&self, cell: Cell, side: Side) -> Result<String> {
        let name = side.name();
        let level = match cell.level {
            Level::Full => "Full",
            Level::Differential => "Differential",
            Level::Incremental => "Incremental",
            _ => {
                let (from, jobs) = self.restored_jobs(cell.level, side)?;
                let ids: Vec<_> = jobs.iter().map(|job| job.row.id.to_string()).collect();
                let to = self.places.restored.join(self.restored.name(name));
                let what = match cell.level {
                    Level::RestoreFile => format!("file={}", self.one_file()?.display()),
                    _ => "all done".to_owned(),
                };
                return Ok(format!(
                    "restore jobid={} client={}-fd restoreclient={name}-fd where={} replace=always {what} yes",
                    ids.join(","),
                    from.name(),
                    to.display()
                ));
            }
        };
        Ok(format!("run job=backup-{name} level={level} yes"))
    }

    /// The file that is restored alone, as the daemons see it.
    fn one_file(&self) -> Result<PathBuf> {
        let one = self.asked.get(self.asked.len() / 2).and_then(|path| path.strip_prefix(&self.places.cached).ok());
        one.map(|one| self.places.tree.join(one)).ok_or_else(|| BedError::Usage("the tree has no file".to_owned()))
    }

    /// The Full that a side restores, and whose it is: the floor has the stock daemon's.
    fn full_of(&self, side: Side) -> Result<(Side, &JobResult)> {
        let from = if side == Side::Floor { Side::Stock } else { side };
        let full = self.full.get(&from).ok_or_else(|| BedError::Usage(format!("{} has no Full yet", from.name())))?;
        Ok((from, full))
    }

    fn volumes(&self, job: &JobResult, side: Side) -> Result<Vec<PathBuf>> {
        let folder = self.bed.folder().join("volumes").join(side.name());
        Ok(self.bed.catalog().volumes(job.row.id)?.into_iter().map(|name| folder.join(name)).collect())
    }

    /// Fails if the two daemons have not made the same.
    fn compare(&self, cell: Cell, results: &BTreeMap<Side, JobResult>, whole: bool) -> Result<()> {
        let (Some(stock), Some(ours)) = (results.get(&Side::Stock), results.get(&Side::Ours)) else { return Ok(()) };
        // What a restore has read is what is on the volume, which may be compressed by another
        // encoder.
        let counts = |result: &JobResult| {
            let read = if cell.level.is_restore() { 0 } else { result.row.read_bytes };
            (result.row.files, read)
        };
        let [left, right] = [stock, ours].map(|job| job.row.bytes);
        let unequal_bytes = cell.variant.same_bytes() && left != right;
        if cell.variant.changer().is_none() && (counts(stock) != counts(ours) || unequal_bytes) {
            return Err(BedError::Usage(format!(
                "{cell}: files and bytes differ: stock {:?}, {}; ours {:?}, {}",
                counts(stock),
                left,
                counts(ours),
                right
            )));
        }
        if !whole {
            return Ok(());
        }
        let differences = match cell.level {
            Level::RestoreFile => self.compare_file()?,
            level if level.is_restore() => self.compare_restored()?,
            _ if cell.variant.same_bytes() => self.compare_volumes(stock, ours)?,
            _ => self.compare_rows(stock, ours)?,
        };
        if differences.is_empty() {
            Ok(())
        } else {
            Err(BedError::Usage(format!("{cell}: what stock and ours made differs:\n{}", differences.join("\n"))))
        }
    }

    fn compare_restored(&self) -> Result<Vec<String>> {
        let mut differences = Vec::new();
        // A part of the tree has been touched since the Full.
        let rules = TreeRules { times: Times::Ignored, ..TreeRules::restored() };
        for side in Side::BOTH {
            let below = self.places.tree.strip_prefix("/").unwrap_or(&self.places.tree);
            let found = compare_trees(&self.tree.path, &self.restored.folder(side.name()).join(below), rules)?;
            differences.extend(found.into_iter().map(|difference| format!("{}: {difference}", side.name())));
        }
        Ok(differences)
    }

    fn compare_file(&self) -> Result<Vec<String>> {
        let one = self.one_file()?;
        let below = one.strip_prefix("/").unwrap_or(&one);
        let read = |path: &Path| fs::read(path).map_err(BedError::file("read", path));
        let mut differences = Vec::new();
        for side in Side::BOTH {
            let restored = self.restored.folder(side.name()).join(below);
            if read(&restored)? != read(&one)? {
                differences.push(format!("{}: {} differs", side.name(), restored.display()));
            }
        }
        Ok(differences)
    }

    fn compare_volumes(&self, stock: &JobResult, ours: &JobResult) -> Result<Vec<String>> {
        if stock.row.files == 0 {
            return Ok(Vec::new()); // Nothing was written, and how many files ours has was compared already.
        }
        let left = self.bed.records(&stock.row, Side::Stock.name())?;
        let right = self.bed.records(&ours.row, Side::Ours.name())?;
        let comparison = compare_records(left, right, RecordRules::default())?;
        Ok(if comparison.is_equal() { Vec::new() } else { vec![comparison.text()] })
    }

    fn compare_rows(&self, stock: &JobResult, ours: &JobResult) -> Result<Vec<String>> {
        let [left, right] = [stock, ours].map(|job| self.bed.catalog().files(job.row.id));
        let zstd = self.cell.variant.codec() == Codec::Zstd;
        // What changes while it is saved is not the same in two jobs.
        let busy = busy(self.restored).into_os_string().into_encoded_bytes();
        let is_quiet = |row: &&FileRow| !row.path.starts_with(&busy);
        let [left, right] =
            [left?, right?].map(|rows| rows.iter().filter(is_quiet).map(|row| shown(row, zstd)).collect::<Vec<_>>());
        let unequal = left.iter().zip(&right).filter(|(left, right)| left != right).take(5);
        let mut differences: Vec<_> = unequal.map(|(left, right)| format!("{left}\n{right}")).collect();
        if left.len() != right.len() {
            differences.push(format!("{} against {} rows", left.len(), right.len()));
        }
        Ok(differences)
    }

    /// Makes room of a restored tree; keeps a Full for what builds on it.
    fn keep(&mut self, cell: Cell, side: Side, result: JobResult) -> Result<()> {
        match cell.level {
            Level::Full => {
                self.full.insert(side, result).map_or(Ok(()), |old| remove_volumes(&self.bed, &old, side.name()))
            }
            level if level.is_restore() && side != Side::Floor => self.restored.empty(side.name()),
            _ => Ok(()),
        }
    }

    /// Makes room before another Full of a large file is saved. A volume of some GiB takes that
    /// much memory, too: the job after one that was removed would find free pages that the host has
    /// not taken back, and the other daemon's would not.
    fn make_room(&mut self, cell: Cell, side: Side) -> Result<()> {
        if !matches!(cell.tree.kind, Kind::Single | Kind::Holes) || cell.level != Level::Full {
            return Ok(());
        }
        self.full.remove(&side).map_or(Ok(()), |old| remove_volumes(&self.bed, &old, side.name()))
    }
}

/// Which beds have a client that sends what was recorded: those whose Full is saved with all
/// defaults.
fn has_floor(cell: Cell) -> bool {
    cell.variant == Variant::Default
        && matches!(cell.tree.kind, Kind::Manyfiles | Kind::Media | Kind::Mixed | Kind::Empty)
}

/// The daemons of a bed, and the floor's stand-in.
fn clients(cell: Cell, settings: &[String]) -> Vec<ClientOptions> {
    let mut clients: Vec<_> = Fd::BOTH.map(ClientOptions::new).into();
    if cell.variant.is_accurate() {
        for client in &mut clients {
            client.job.push("Accurate = yes".to_owned());
        }
    }
    if has_floor(cell) {
        clients.push(ClientOptions::new(Fd::Stock).named(Side::Floor.name()));
    }
    if let Variant::Workers(_, count) = cell.variant {
        clients = clients.into_iter().map(|client| client.with_workers(count)).collect();
    }
    let own = match cell.variant {
        Variant::OnImage(_, image) if image.is_walked() => Some("job.inode_scan = \"off\""),
        Variant::Without(mechanism) => mechanism.setting(),
        _ => None,
    };
    for client in &mut clients {
        client.in_root = matches!(cell.variant, Variant::InRoot(_));
        client.settings.extend(settings.iter().cloned().chain(own.map(str::to_owned)));
        match cell.variant {
            Variant::Without(Mechanism::LineCompression) | Variant::InRoot(Traffic::NotCompressed) => {
                client.file_daemon.push("Comm Compression = no".to_owned());
            }
            Variant::Without(mechanism) => {
                let masked = mechanism.processor().map(|names| ("FERROFD_CPU".to_owned(), names.to_owned()));
                client.environment.extend(masked);
            }
            _ => {}
        }
    }
    clients
}

/// Where a suite changes files.
fn busy(restored: &Restored) -> PathBuf {
    restored.all().with_file_name("busy")
}

/// A row of the catalog as text. The stock daemon of Debian does not compress with ZSTD, so for
/// that the last number of `LStat`, which names the data's stream, is left out.
fn shown(row: &FileRow, zstd: bool) -> String {
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let lstat = text(&row.lstat);
    let known = if zstd { lstat.rsplit_once(' ').map_or("", |(head, _)| head) } else { &lstat };
    format!("{} {} {known} {}", row.file_index, text(&row.path), text(&row.digest))
}

/// A configuration of OpenSSL that allows one cipher suite of TLS 1.3 only.
fn tls_with(suite: &str) -> String {
    format!(
        "openssl_conf = main\n[main]\nssl_conf = ssl\n[ssl]\nsystem_default = all\n[all]\n\
         MinProtocol = TLSv1.3\nCiphersuites = {suite}\n"
    )
}

/// CPU time from the process's own clock: ended threads count, and it is finer than the kernel's
/// ticks.
pub(crate) fn used(pid: u32) -> Result<Used> {
    let raw = i32::try_from(pid).map_err(|error| BedError::Usage(error.to_string()))?;
    let now = clock_getcpuclockid(Pid::from_raw(raw)).and_then(ClockId::now);
    let time = now.map_err(|source| BedError::System { what: "the CPU clock of a process", source })?;
    Ok(Used { cpu: Duration::from(time), parts: usage(pid)? })
}
