//! Backs a host up and restores it through the container image, with the bed's Director.
//!
//! `container-test ARCHIVE IMAGE` takes the OCI archive that `packaging/build-container` has made,
//! and the name of the image in it. The host is a tree with every type of file, which only root may
//! read in part. It is mounted read-only at `/host`, as docs/containers.md says.
//!
//! Not here: how the image is made (`packaging/container/`), and what a backup holds (the other
//! suites).

mod podman;

use std::env;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bed::road::{end, must, step};
use bed::{
    Bed, BedError, BedOptions, ClientOptions, DIRECTOR, FD_PASSWORD, Fd, FileSet, JobResult, PATIENCE, Result,
    TreeOptions, TreeRules, argv, build_every_type, compare_trees, is_listening, measure_tree, run, wait_for,
};

use podman::{Mount, Podman, Rights};
use walkdir::WalkDir;

const CLIENT: &str = "node";
const PORT: u16 = 9102;
/// The user of the image.
const USER: u32 = 65532;
const HEALTHY: &str = "/usr/libexec/ferrofd/healthy";
/// As in `packaging/container/examples`.
const BACKUP: Rights = Rights { user: None, capabilities: &["DAC_READ_SEARCH"], more: &[AS_DOCKER] };
/// podman gives its capabilities to the first process, docker and Kubernetes only allow them. Here
/// the first process gives them up.
const AS_DOCKER: &str = "--entrypoint=[\"setpriv\", \"--inh-caps=-dac_read_search\", \
                         \"--ambient-caps=-dac_read_search\", \"tini-static\", \"-e\", \"15\", \"--\", \
                         \"/usr/sbin/bacula-fd\", \"-f\", \"-P\", \"-c\", \"/etc/bacula/bacula-fd.conf\"]";
const NO_NEW_PRIVILEGES: &str = "--security-opt=no-new-privileges";
const RESTORE: Rights = Rights {
    user: Some("0:0"),
    capabilities: &["CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "MKNOD", "SETFCAP"],
    more: &[],
};
/// `CAP_DAC_READ_SEARCH` alone, as the kernel prints it.
const ONE_CAPABILITY: &str = "0000000000000004";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let outcome = match words.as_slice() {
        [archive, image] => Road::new(Path::new(archive), image).and_then(Road::walk),
        _ => Err(BedError::Usage("container-test ARCHIVE IMAGE".to_owned())),
    };
    end("container-test", outcome)
}

fn io<'a>(what: &'a str, path: &'a Path) -> impl FnOnce(std::io::Error) -> BedError + 'a {
    move |error| BedError::Usage(format!("{what} {}: {error}", path.display()))
}

/// One host, its containers, and the bed that backs it up.
struct Road {
    podman: Podman,
    bed: Bed,
    /// What is `/host` in the containers.
    host: PathBuf,
    kept: PathBuf,
    /// `/etc/bacula`, `/var/lib/bacula` and `/restored` in the containers.
    etc: PathBuf,
    state: PathBuf,
    restored: PathBuf,
}

/// The jobs that are restored.
#[derive(Clone, Copy)]
struct Saved {
    host: u32,
    dump: u32,
}

impl Road {
    fn new(archive: &Path, image: &str) -> Result<Self> {
        let podman = Podman::new(archive, image)?;
        let mut client = ClientOptions::new(Fd::Ours).named(CLIENT);
        client.director_port = Some(PORT);
        client.job.push("Client Run Before Job = \"sh -c 'id -u >/var/lib/bacula/as-whom'\"".to_owned());
        let mut options = BedOptions::new("container", [client])?;
        let lines = ["Signature = SHA256", "AclSupport = yes", "XattrSupport = yes"];
        let host = FileSet::new("Host", &lines, &[Path::new("/host")]);
        let dump = FileSet::new("Dump", &lines, &[]).with("Plugin = \"bpipe:/dump:echo a dump:cat >%w/dump\"");
        options.file_sets = vec![host, dump];
        let folder = options.folder.path().to_owned();
        let mut bed = Bed::prepare(options)?;
        bed.storage().start()?;
        bed.director().start()?;

        let made = |name: &str| -> Result<PathBuf> {
            let path = folder.join(name);
            fs::create_dir_all(&path).map_err(io("make", &path))?;
            Ok(path)
        };
        let road = Self {
            podman,
            bed,
            host: made("host")?,
            kept: folder.join("kept"),
            etc: made("container-etc")?,
            state: made("container-state")?,
            restored: made("container-restored")?,
        };
        road.build_host()?;
        road.keep()?;
        road.configure()?;
        Ok(road)
    }

    fn build_host(&self) -> Result<()> {
        build_every_type(&self.host.join("srv"), &TreeOptions::default())?;
        // Only CAP_SYS_ADMIN may read these; the page says that they are not saved.
        for entry in WalkDir::new(&self.host).into_iter().flatten() {
            for name in xattr::list(entry.path()).into_iter().flatten() {
                if name.as_encoded_bytes().starts_with(b"trusted.") {
                    xattr::remove(entry.path(), &name).map_err(io("change", entry.path()))?;
                }
            }
        }
        let secrets = self.host.join("root");
        fs::create_dir(&secrets).map_err(io("make", &secrets))?;
        fs::write(secrets.join("key"), "of root alone\n").map_err(io("write", &secrets))?;
        fs::set_permissions(secrets.join("key"), fs::Permissions::from_mode(0o000)).map_err(io("close", &secrets))?;
        fs::set_permissions(&secrets, fs::Permissions::from_mode(0o700)).map_err(io("close", &secrets))
    }

    /// A copy of the host, which no test changes.
    fn keep(&self) -> Result<()> {
        let words = ["cp".as_ref(), "-a".as_ref(), self.host.as_os_str(), self.kept.as_os_str()];
        let copied = run(&argv(words), b"")?;
        must(copied.status.success(), || copied.text())
    }

    /// A tree is what the host was; access times aside, which a reader that is not the owner
    /// changes.
    fn must_be_kept(&self, tree: &Path, what: &str) -> Result<()> {
        let rules = TreeRules { access_times: false, ..TreeRules::restored() };
        let differences = compare_trees(&self.kept, tree, rules)?;
        must(differences.is_empty(), || format!("{what}:\n{}", differences.join("\n")))
    }

    fn configure(&self) -> Result<()> {
        let file = self.etc.join("bacula-fd.conf");
        let text = format!(
            "Director {{ Name = {DIRECTOR}; Password = \"{FD_PASSWORD}\" }}\n\
             FileDaemon {{ Name = {CLIENT}-fd; FDport = {PORT}; WorkingDirectory = /var/lib/bacula; \
             Pid Directory = /run/bacula; Plugin Directory = /usr/lib/bacula }}\n\
             Messages {{ Name = Standard; director = {DIRECTOR} = all, !skipped, !restored }}\n"
        );
        fs::write(&file, text).map_err(io("write", &file))?;
        fs::write(self.etc.join("bacula-fd.toml"), "tls.require = true\n").map_err(io("write", &file))?;
        for path in [&file, &self.etc.join("bacula-fd.toml")] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o640)).map_err(io("close", path))?;
            chown(path, Some(0), Some(USER)).map_err(io("give", path))?;
        }
        chown(&self.state, Some(USER), Some(USER)).map_err(io("give", &self.state))
    }

    fn walk(self) -> Result<()> {
        self.refused_without_its_capability()?;
        let saved = self.backs_up()?;
        self.restores(saved)?;
        Ok(())
    }

    fn mounts(&self, writable: bool) -> [Mount<'_>; 4] {
        [
            Mount { from: &self.etc, to: "/etc/bacula", writable: false },
            Mount { from: &self.state, to: "/var/lib/bacula", writable: true },
            Mount { from: &self.host, to: "/host", writable },
            Mount { from: &self.restored, to: "/restored", writable: true },
        ]
    }

    /// A daemon that could not read everything must not look as if it could.
    fn refused_without_its_capability(&self) -> Result<()> {
        let without = Rights { capabilities: &[], more: &[], ..BACKUP };
        self.podman.start("without", &without, &self.mounts(false))?;
        let code = self.podman.must(&["wait", "without"])?;
        let said = self.podman.must(&["logs", "without"])?;
        must(code.trim() != "0" && said.contains("Operation not permitted"), || {
            format!("without its capability it ended with {code}: {said}")
        })?;
        step("without CAP_DAC_READ_SEARCH: does not start");
        let gained = Rights { more: &[NO_NEW_PRIVILEGES], ..BACKUP };
        self.starts("gained", &gained, false)?;
        self.stops("gained")?;
        self.podman.start(
            "powerless",
            &Rights { more: &[AS_DOCKER, NO_NEW_PRIVILEGES], ..BACKUP },
            &self.mounts(false),
        )?;
        wait_for("the daemon to listen", PATIENCE, || {
            Ok(if is_listening(PORT)? { Ok(()) } else { Err("no listener".to_owned()) })
        })?;
        let told = self.podman.run(&["exec", "powerless", HEALTHY])?;
        must(!told.status.success() && told.text().contains("no CAP_DAC_READ_SEARCH"), || told.text())?;
        self.podman.must(&["exec", "--env=HEALTH_CAPABILITY=no", "powerless", HEALTHY])?;
        self.stops("powerless")?;
        step("without new privileges: as podman starts it, it can read everything; as docker does, it is not healthy");
        Ok(())
    }

    fn starts(&self, name: &str, rights: &Rights, writable: bool) -> Result<()> {
        let started = self.podman.start(name, rights, &self.mounts(writable))?;
        must(started.status.success(), || format!("{name}: {}", started.text()))?;
        wait_for("the daemon to listen", PATIENCE, || {
            let listens = is_listening(PORT)?;
            Ok(if listens { Ok(()) } else { Err(self.podman.must(&["logs", name]).unwrap_or_default()) })
        })?;
        self.podman.must(&["exec", name, HEALTHY])?;
        let wrong = self.podman.run(&["exec", "--env=HEALTH_PORT=1", name, HEALTHY])?;
        must(!wrong.status.success(), || "healthy on a port that has no listener".to_owned())
    }

    fn stops(&self, name: &str) -> Result<()> {
        self.podman.must(&["stop", "--time=30", name])?;
        let code = self.podman.must(&["inspect", "--format={{.State.ExitCode}}", name])?;
        must(code.trim() == "0", || format!("{name} ended with {code}"))?;
        must(!is_listening(PORT)?, || format!("{name} is stopped, but still listening"))
    }

    /// The daemon of the container `node` has no right that a backup does not need.
    fn is_confined(&self) -> Result<()> {
        // The daemon is the child of the first process.
        let status = self.podman.must(&["exec", "node", "sh", "-c", "cat /proc/$(pidof bacula-fd)/status"])?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.split_ascii_whitespace().next().unwrap_or_default().to_owned()
        };
        must(field("Uid:") == USER.to_string(), || format!("it runs as {}", field("Uid:")))?;
        for set in ["CapPrm:", "CapEff:", "CapBnd:"] {
            must(field(set) == ONE_CAPABILITY, || format!("{set} {}", field(set)))?;
        }
        must(field("Seccomp:") == "2", || "it runs without a filter of system calls".to_owned())?;
        step("the daemon: not root, one capability, the runtime's own filter of system calls");
        Ok(())
    }

    fn backs_up(&self) -> Result<Saved> {
        self.starts("node", &BACKUP, false)?;
        self.is_confined()?;
        let full = self.bed.backup(CLIENT, "level=Full")?.must_be_good()?;
        let whom = fs::read_to_string(self.state.join("as-whom")).unwrap_or_default();
        must(whom.trim() == USER.to_string(), || format!("the run script ran as {whom:?}"))?;
        let dump = self.bed.backup(CLIENT, "level=Full fileset=Dump")?.must_be_good()?;
        let (entries, bytes) = measure_tree(&self.host)?;
        step(&format!("Full of /host: {entries} entries, {bytes} bytes of files; a run script, a bpipe"));
        self.is_read_only(full.row.id)?;
        let added = self.host.join("root/added");
        fs::write(&added, "later\n").map_err(io("write", &added))?;
        let incremental = self.bed.backup(CLIENT, "level=Incremental")?.must_be_good()?;
        let names = self.bed.catalog().files(incremental.row.id)?;
        must(names.iter().any(|file| file.path == b"/host/root/added"), || format!("saved: {names:?}"))?;
        fs::remove_file(&added).map_err(io("remove", &added))?;
        self.stops("node")?;
        step("an Incremental; a restore onto the host is refused; stopped with status 0");
        Ok(Saved { host: full.row.id, dump: dump.row.id })
    }

    /// A restore onto the host has errors, and changes nothing.
    fn is_read_only(&self, saved: u32) -> Result<()> {
        let refused = self.restore(saved, "where=/")?;
        must(refused.row.status != 'T' || refused.row.errors > 0, || {
            "a restore onto a read-only host ended well".to_owned()
        })?;
        self.must_be_kept(&self.host, "a refused restore")
    }

    /// Restores a whole job.
    fn restore(&self, job: u32, place: &str) -> Result<JobResult> {
        let client = format!("client={CLIENT}-fd restoreclient={CLIENT}-fd");
        self.bed.run(&format!("restore jobid={job} {client} {place} replace=always all done yes"))
    }

    fn restores(&self, saved: Saved) -> Result<()> {
        // The state is not root's.
        chown(&self.state, Some(0), Some(0)).map_err(io("give", &self.state))?;
        self.starts("restore", &RESTORE, true)?;
        for (place, below) in [("where=/restored/a", "a/host"), ("strip_prefix=/host add_prefix=/restored/b", "b")] {
            self.restore(saved.host, place)?.must_be_good()?;
            self.must_be_kept(&self.restored.join(below), place)?;
            step(&format!("restored with {place}: no difference"));
        }

        self.restore(saved.dump, "where=/restored")?.must_be_good()?;
        let dump = fs::read_to_string(self.restored.join("dump")).unwrap_or_default();
        must(dump == "a dump\n", || format!("restored by a bpipe: {dump:?}"))?;
        step("restored by a bpipe");

        fs::remove_dir_all(self.host.join("srv")).map_err(io("remove", &self.host))?;
        self.restore(saved.host, "where=/")?.must_be_good()?;
        self.must_be_kept(&self.host, "onto the host")?;
        self.stops("restore")?;
        step("restored onto the host, after its files were deleted: no difference");
        Ok(())
    }
}
