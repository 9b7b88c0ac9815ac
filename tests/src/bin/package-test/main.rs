//! Installs, upgrades and removes the Debian packages on throw-away hosts, with the bed's Director
//! as their Director.
//!
//! `package-test ROOT DEB NEWER` takes an unpacked Debian (`scripts/package-root`) and two builds
//! of the package. It goes the way of an administrator: stock daemon, ferrofd over it, an upgrade
//! while a job runs, ferrofd removed, the stock daemon again; and once more, with the stock
//! package's leftovers purged. At every stop a backup must work, and restores of what either daemon
//! saved, also through bpipe, and `/etc/bacula` must be what it was, byte for byte.
//!
//! The init script of the stock package can only stop a daemon on its default port, so this runs in
//! a network of its own (`unshare --net`), where no other daemon has that port.
//!
//! Not here: how packages are made (`packaging/`), and what a backup holds (the other suites).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bed::road::{end, must, step};
use bed::{
    Bed, BedError, BedOptions, ClientOptions, DIRECTOR, FD_PASSWORD, Fd, FileSet, Host, PATIENCE, Result, Snapshot,
    TreeOptions, TreeRules, build_every_type, compare_trees, is_listening, wait_for,
};

/// What is saved, as the host sees it.
const DATA: &str = "/srv/data";
/// What a program prints for the backup.
const DUMP: &str = "a dump";
const CLIENT: &str = "host";
const PORT: u16 = 9102;
/// An administrator's own helper for snapshots, which has the name of ours.
const OWN_HELPER: &str = "#!/bin/sh\n# Our own.\n";

fn main() -> ExitCode {
    let words: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let outcome = match words.as_slice() {
        [root, deb, newer] => Road::new(root, deb, newer)
            .and_then(Road::walk)
            // Of today, also where `deb` is that of the release before (`scripts/upgrade-test`).
            .and_then(|()| fresh(root, newer))
            .and_then(|()| found_files(root, newer))
            .and_then(|()| upstream(root, newer)),
        _ => Err(BedError::Usage("package-test ROOT DEB NEWER".to_owned())),
    };
    end("package-test", outcome)
}

/// One host and the bed that backs it up.
struct Road {
    bed: Bed,
    host: Host,
    /// `/etc/bacula` as the administrator has left it.
    configuration: Snapshot,
    /// Every backup so far.
    saved: Vec<u32>,
    /// Every job so far whose end the daemon must remember.
    jobs: Vec<u32>,
}

impl Road {
    fn new(root: &Path, deb: &Path, newer: &Path) -> Result<Self> {
        let host = Host::new(root)?;
        host.bring(deb, "/ferrofd.deb")?;
        host.bring(newer, "/ferrofd-newer.deb")?;
        let mut client = ClientOptions::new(Fd::Ours).named(CLIENT);
        client.job.push("Client Run Before Job = \"/usr/local/bin/gate\"".to_owned());
        client.director_port = Some(PORT);
        let mut options = BedOptions::new("package", [client])?;
        let data =
            FileSet::new("Data", &["Signature = MD5", "AclSupport = yes", "XattrSupport = yes"], &[Path::new(DATA)]);
        options.file_sets = vec![data.with(format!("Plugin = \"bpipe:/dump:echo {DUMP}:cat >%w/dump\""))];
        let mut bed = Bed::prepare(options)?;
        bed.storage().start()?;
        bed.director().start()?;

        build_every_type(&host.path(DATA), &TreeOptions::default())?;
        // Debian 12's daemon is 9.6.7 and does not restore the attributes of a link.
        let link = host.path(DATA).join("attributes/link");
        fs::remove_file(&link).map_err(|error| BedError::Usage(format!("{}: {error}", link.display())))?;
        host.sh("setfacl -m u:nobody:rw,g:adm:r /srv/data/* 2>/dev/null || true; touch /srv/data/with-acl && \
                 setfacl -m u:1234:rwx,g:5678:r /srv/data/with-acl && mkdir -p /restored")?;
        // A job waits here as long as the gate is shut.
        host.write(
            "/usr/local/bin/gate",
            "#!/bin/sh\nif test -e /gate; then touch /waiting; fi\n\
                                           while test -e /gate; do sleep 0.1; done\n",
        )?;
        host.sh("chmod 755 /usr/local/bin/gate")?;
        Ok(Self { bed, host, configuration: Snapshot::new(), saved: Vec::new(), jobs: Vec::new() })
    }

    fn walk(mut self) -> Result<()> {
        self.stock_first()?;
        self.switch("/ferrofd.deb")?;
        self.upgrade_while_a_job_runs()?;
        self.removed()?;
        self.stock_again()?;
        self.ours_is_purged()?;
        self.switch("/ferrofd-newer.deb")?;
        self.stock_files_are_updated()?;
        self.leftovers_are_purged()?;
        self.apt("install bacula-fd")?;
        // With its leftovers the stock package has forgotten that it knew the file, so it lays its
        // own beside it.
        self.host.sh("rm /etc/bacula/bacula-fd.conf.ucf-dist")?;
        self.look("the stock package without its leftovers", false)
    }

    /// A host as it is found: the stock daemon, configured.
    fn stock_first(&mut self) -> Result<()> {
        // Not started with the configuration of the package, whose port may be somebody else's
        // here.
        self.host.write("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n")?;
        self.host.sh("chmod 755 /usr/sbin/policy-rc.d")?;
        self.apt("install bacula-client")?;
        // Without systemd and without a word from the administrator, invoke-rc.d would start
        // nothing.
        self.host.write("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 0\n")?;
        let configuration = format!(
            "# Configured by hand.\nDirector {{ Name = {DIRECTOR}; Password = \"{FD_PASSWORD}\" }}\n\
             FileDaemon {{ Name = {CLIENT}-fd; FDport = {PORT}; FDAddress = 127.0.0.1; WorkingDirectory = /var/lib/bacula; \
             Pid Directory = /run/bacula; Plugin Directory = /usr/lib/bacula }}\n\
             Messages {{ Name = Standard; director = {DIRECTOR} = all, !skipped, !restored }}\n"
        );
        // In place: owner and mode stay those that the package gave it.
        fs::write(self.host.path("/etc/bacula/bacula-fd.conf"), configuration)
            .map_err(|error| BedError::Usage(format!("bacula-fd.conf: {error}")))?;
        self.configuration = self.host.snapshot("/etc/bacula")?;
        self.host.write("/usr/sbin/bsnapshot", OWN_HELPER)?;
        self.host.sh("invoke-rc.d bacula-fd start")?;
        let version = self.host.sh("dpkg-query -W -f '${Version}' bacula-fd")?;
        self.look(&format!("stock bacula-fd {version}, configured"), false)
    }

    /// One command, and the next job runs on ferrofd.
    fn switch(&mut self, deb: &str) -> Result<()> {
        let told = self.apt(&format!("install {deb}"))?;
        must(self.host.attempt("dpkg -s bacula-client")?.0, || format!("bacula-client did not stay:\n{told}"))?;
        let broken = self.host.sh("dpkg --audit; apt-get check -qq")?;
        must(broken.is_empty(), || format!("after the switch: {broken}"))?;
        self.look("ferrofd installed over it", true)
    }

    fn upgrade_while_a_job_runs(&mut self) -> Result<()> {
        let before = self.pid()?;
        self.host.write("/gate", "")?;
        let job = self.bed.queue(&format!("run job=backup-{CLIENT} yes"))?;
        let waiting = self.host.path("/waiting");
        wait_for("the job's script", PATIENCE, || Ok(if waiting.exists() { Ok(()) } else { Err(String::new()) }))?;
        let told = self.apt("install /ferrofd-newer.deb")?;
        must(told.contains("a job is running"), || format!("the upgrade said nothing of the job:\n{told}"))?;
        must(self.pid()? == before, || "the upgrade replaced the daemon under a running job".to_owned())?;
        fs::remove_file(self.host.path("/gate")).map_err(|error| BedError::Usage(error.to_string()))?;
        self.bed.wait(job)?.must_be_good()?;
        self.saved.push(job);
        self.jobs.push(job);
        wait_for("the new program to start when the job is over", PATIENCE, || {
            let (pid, program) = (self.pid().unwrap_or_default(), self.program().unwrap_or_default());
            let new = pid != before && program == "/usr/sbin/bacula-fd";
            Ok(if new { Ok(()) } else { Err(format!("{pid} {program}")) })
        })?;
        self.look("upgraded while a job ran, which ended well", true)
    }

    /// An update of `bacula-common`, which stays, is no purge: what the administrator has disabled
    /// and moved away stays so.
    fn stock_files_are_updated(&mut self) -> Result<()> {
        let link = "/etc/systemd/system/multi-user.target.wants/bacula-fd.service";
        let leads =
            self.host.sh(&format!("readlink {link} && rm {link} && cd /etc/bacula && mv bacula-fd.conf away"))?;
        self.host.sh("chmod -x /etc/init.d/bacula-fd")?;
        self.apt("install --reinstall bacula-common")?;
        let (is_back, told) = self.host.attempt(&format!("ls {link} /etc/bacula/bacula-fd.conf 2>/dev/null"))?;
        must(!is_back && told.is_empty(), || format!("back after an update of bacula-common:\n{told}"))?;
        self.host.sh("! test -x /etc/init.d/bacula-fd && chmod +x /etc/init.d/bacula-fd")?;
        self.host.sh(&format!("ln -s {} {link} && cd /etc/bacula && mv away bacula-fd.conf", leads.trim()))?;
        self.unchanged("bacula-common updated")
    }

    /// `apt purge '~c'` is a habit of tidy people. The stock package then deletes its
    /// configuration, which is ours.
    fn leftovers_are_purged(&mut self) -> Result<()> {
        // What came after the installation counts, also if the daemon was not started since.
        self.host
            .sh("echo '# Changed later.' >>/etc/default/bacula-fd && cd /etc/bacula && mv bacula-fd.conf /srv && \
             ln -s /srv/bacula-fd.conf bacula-fd.conf && echo '# Changed later.' >>bacula-fd.conf")?;
        self.configuration = self.host.snapshot("/etc/bacula")?;
        self.host.sh("dpkg --purge bacula-fd")?;
        self.host.sh("grep -qx '# Changed later.' /etc/default/bacula-fd && test -L /etc/bacula/bacula-fd.conf")?;
        self.host.sh("invoke-rc.d bacula-fd restart")?;
        let links = self.host.sh("ls /etc/rc2.d /etc/systemd/system/multi-user.target.wants")?;
        must(links.contains("S01bacula-fd") && links.contains("bacula-fd.service"), || {
            format!("not enabled:\n{links}")
        })?;
        self.look("leftovers of the stock package purged", true)?;
        self.host.sh("rm /etc/bacula/bacula-fd.conf && mv /srv/bacula-fd.conf /etc/bacula/")?;
        self.configuration = self.host.snapshot("/etc/bacula")?;
        Ok(())
    }

    fn removed(&mut self) -> Result<()> {
        self.apt("remove ferrofd")?;
        must(!is_listening(PORT)?, || "removed, but still listening".to_owned())?;
        must(!self.host.path("/usr/sbin/bacula-fd").exists(), || "the program is still there".to_owned())?;
        self.unchanged("ferrofd removed")
    }

    fn stock_again(&mut self) -> Result<()> {
        self.apt("install bacula-client")?;
        let changed = self.host.sh("dpkg --verify bacula-fd bacula-common")?;
        must(changed.is_empty(), || format!("files of the stock package are not its own:\n{changed}"))?;
        self.look("the stock package again", false)
    }

    fn ours_is_purged(&mut self) -> Result<()> {
        self.apt("purge ferrofd")?;
        let left = self.host.sh("find / -xdev -name '*ferrofd*' -not -path '/ferrofd*.deb' -not -path '/proc/*'")?;
        must(left.is_empty(), || format!("left of ferrofd after its purge:\n{left}"))?;
        self.look("ferrofd purged beside it", false)
    }

    /// One stop: the right daemon runs, remembers its jobs, saves, restores what both daemons
    /// saved, and the configuration is untouched.
    fn look(&mut self, stop: &str, ours: bool) -> Result<()> {
        wait_for("the daemon to listen", PATIENCE, || {
            Ok(if is_listening(PORT)? { Ok(()) } else { Err(format!("no listener on port {PORT}")) })
        })?;
        let program = self.program()?;
        must(program == "/usr/sbin/bacula-fd", || format!("{stop}: what runs is {program}"))?;
        let owner = self.host.sh("dpkg -S /usr/sbin/bacula-fd")?;
        must(owner.starts_with("ferrofd:") == ours, || format!("{stop}: the program is of {owner}"))?;

        let status = self.bed.console(&[&format!("status client={CLIENT}-fd")])?;
        let ended = status.split_once("Terminated Jobs:").map(|(_, jobs)| jobs).unwrap_or_default();
        let known =
            |job: &u32| ended.lines().any(|line| line.split_ascii_whitespace().next() == Some(&job.to_string()));
        let recent = self.jobs.iter().rev().take(10);
        for job in recent {
            must(known(job), || format!("{stop}: job {job} is forgotten\n{status}"))?;
        }

        let helper = fs::read(self.host.path("/usr/sbin/bsnapshot")).unwrap_or_default();
        must(helper == OWN_HELPER.as_bytes(), || format!("{stop}: the helper is not the administrator's own"))?;
        must(self.host.path("/usr/sbin/bsnapshot.ferrofd").exists() == ours, || format!("{stop}: our helper"))?;

        let job = self.bed.backup(CLIENT, "")?.must_be_good()?.row.id;
        self.saved.push(job);
        self.jobs.push(job);
        self.restores(stop)?;
        self.unchanged(stop)
    }

    /// Restores the first backup, which is the stock daemon's, and the last two.
    fn restores(&mut self, stop: &str) -> Result<()> {
        let mut restored = self.saved.clone();
        restored.drain(1..restored.len().saturating_sub(2).max(1));
        for saved in restored {
            let to = format!("/restored/{saved}");
            let command = format!(
                "restore jobid={saved} client={CLIENT}-fd restoreclient={CLIENT}-fd where={to} replace=always all done yes"
            );
            self.jobs.push(self.bed.run(&command)?.must_be_good()?.row.id);
            let (left, right) = (self.host.path(DATA), self.host.path(&format!("{to}{DATA}")));
            // Comparing reads, and so do backups: access times are those of an earlier stop.
            let rules = TreeRules { access_times: false, ..TreeRules::restored() };
            let differences = compare_trees(&left, &right, rules)?;
            must(differences.is_empty(), || format!("{stop}: job {saved} restored:\n{}", differences.join("\n")))?;
            let dump = self.host.sh(&format!("cat {to}/dump"))?;
            must(dump == format!("{DUMP}\n"), || format!("{stop}: job {saved} restored by a program: {dump:?}"))?;
            let acl = self.host.sh(&format!("getfacl -cnp {to}{DATA}/with-acl"))?;
            must(acl.contains("user:1234:rwx") && acl.contains("group:5678:r--"), || format!("{stop}: {acl}"))?;
            self.host.sh(&format!("rm -rf {to}"))?;
        }
        Ok(())
    }

    fn unchanged(&self, stop: &str) -> Result<()> {
        let now = self.host.snapshot("/etc/bacula")?;
        must(now == self.configuration, || {
            let differing = now.iter().filter(|(path, file)| self.configuration.get(*path) != Some(file));
            let gone = self.configuration.keys().filter(|path| !now.contains_key(*path));
            let names: Vec<_> =
                differing.map(|(path, _)| path).chain(gone).map(|path| path.display().to_string()).collect();
            format!("{stop}: /etc/bacula has changed: {}", names.join(" "))
        })?;
        step(stop);
        Ok(())
    }

    fn apt(&self, command: &str) -> Result<String> {
        apt(&self.host, command)
    }

    fn pid(&self) -> Result<String> {
        Ok(self.host.sh("cat /run/bacula/bacula-fd.9102.pid")?.trim().to_owned())
    }

    /// What the running daemon was started from; the kernel adds a word when that file is gone.
    fn program(&self) -> Result<String> {
        Ok(self.host.sh(&format!("readlink /proc/{}/exe", self.pid()?))?.trim().to_owned())
    }
}

/// The stock packages were downloaded when the root was made, so nothing is fetched.
fn apt(host: &Host, command: &str) -> Result<String> {
    host.sh(&format!("apt-get -y --no-install-recommends {command}"))
}

/// A host with the package at hand, whose installation starts no daemon.
fn host_that_starts_nothing(root: &Path, deb: &Path) -> Result<Host> {
    let host = Host::new(root)?;
    host.bring(deb, "/ferrofd.deb")?;
    host.write("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n")?;
    host.sh("chmod 755 /usr/sbin/policy-rc.d")?;
    Ok(host)
}

/// A host that never had Bacula: everything is made, nothing is guessable, and a purge leaves
/// nothing.
fn fresh(root: &Path, deb: &Path) -> Result<()> {
    let mut passwords = Vec::new();
    let name = deb.file_name().unwrap_or_default().to_string_lossy();
    let plugin = deb.with_file_name(name.replacen("ferrofd_", "ferrofd-s3_", 1));
    for _ in 0..2 {
        let host = host_that_starts_nothing(root, deb)?;
        host.bring(&plugin, "/ferrofd-s3.deb")?;
        apt(&host, "install /ferrofd.deb /ferrofd-s3.deb")?;
        let modes = host.sh("stat -c '%a %U:%G %n' /etc/bacula/* /var/lib/bacula /run/bacula /var/log/bacula")?;
        let expected = "600 root:root /etc/bacula/common_default_passwords\n640 root:bacula /etc/bacula/bacula-fd.conf\n\
                        640 root:bacula /etc/bacula/bacula-fd.toml\n644 root:root /etc/bacula/bsnapshot.conf\n755 root:root /etc/bacula/scripts\n700 bacula:bacula /var/lib/bacula\n\
                        2775 bacula:bacula /run/bacula\n750 bacula:adm /var/log/bacula\n";
        let sorted = |text: &str| {
            let mut lines: Vec<_> = text.lines().map(ToOwned::to_owned).collect();
            lines.sort();
            lines
        };
        must(sorted(&modes) == sorted(expected), || format!("made on a fresh host:\n{modes}"))?;
        host.sh("bacula-fd -t -c /etc/bacula/bacula-fd.conf && id bacula")?;
        host.sh("grep -qx 'require = true' /etc/bacula/bacula-fd.toml")?;
        // Reads its configuration, and finds no file system that it could do anything for.
        host.sh("SNAPSHOT_ACTION=support SNAPSHOT_FSTYPE=nfs bsnapshot | grep -qx 'status=0 error=\"Unable to detect snapshot backend\"'")?;
        let said = host.sh("sed -n 's/.*Password = \"\\(.*\\)\"/\\1/p' /etc/bacula/bacula-fd.conf")?;
        passwords.extend(said.lines().map(ToOwned::to_owned));
        its_own_init_script(&host)?;
        a_failed_upgrade_changes_nothing(&host)?;
        a_failed_removal_leaves_a_script_switched_off(&host)?;
        // A link where the package has made a folder: what it leads to is the administrator's.
        host.sh("mv /var/log/bacula /srv/log && ln -s /srv/log /var/log/bacula")?;
        apt(&host, "purge ferrofd ferrofd-s3")?;
        let left = host.sh("find /etc /var /usr /run -xdev \\( -name '*bacula*' -o -name '*ferrofd*' \\) \
                            -not -path '/var/cache/*' -not -path '/var/lib/apt/*' -not -path '/var/log/*'")?;
        must(left.is_empty(), || format!("left after a purge:\n{left}"))?;
    }
    passwords.sort();
    passwords.dedup();
    must(passwords.len() == 4 && passwords.iter().all(|word| word.len() == 33), || {
        format!("passwords: {passwords:?}")
    })?;
    step("a host that never had Bacula: installed with s3, run by its own init script, purged without a trace");
    Ok(())
}

/// Run by our init script.
fn its_own_init_script(host: &Host) -> Result<()> {
    host.sh(
        "sed -i 's/9102/0/; s/FDport = 0/FDport = 19102/' /etc/bacula/bacula-fd.conf && /etc/init.d/bacula-fd start && \
             /etc/init.d/bacula-fd status && test -s /run/bacula/bacula-fd.19102.pid && \
             test -n \"$(cat /proc/$(cat /run/bacula/bacula-fd.19102.pid)/task/*/children)\" && \
             /etc/init.d/bacula-fd restart && /etc/init.d/bacula-fd stop && ! /etc/init.d/bacula-fd status",
    )?;
    an_upgrade_stops_nothing_that_would_not_start(host)?;
    an_upgrade_finds_the_pid_file(host)?;
    an_upgrade_leaves_a_script_switched_off(host)?;
    // The number of a process that is gone, and a daemon that ends in the background.
    let (good, told) = host.attempt(
        "sed -i 's|Plugin Directory = .*|Plugin Directory = /none|' /etc/bacula/bacula-fd.conf && \
         sh -c 'echo $$' >/run/bacula/bacula-fd.19102.pid && /etc/init.d/bacula-fd start",
    )?;
    must(!good, || format!("the init script is content with a daemon that did not start:\n{told}"))?;
    host.sh("rm -f /run/bacula/bacula-fd.19102.pid").map(drop)
}

/// Hosts with some of the files that the package would make.
fn found_files(root: &Path, deb: &Path) -> Result<()> {
    let host = host_that_starts_nothing(root, deb)?;
    // An installation that was cut off.
    host.sh("mkdir -p /etc/bacula && : >/etc/bacula/common_default_passwords")?;
    apt(&host, "install /ferrofd.deb")?;
    let made = || host.sh("sed -n 's/^ *Password = \"\\(.*\\)\"$/\\1/p' /etc/bacula/bacula-fd.conf");
    let passwords = made()?;
    let lengths: Vec<_> = passwords.lines().map(str::len).collect();
    must(lengths == [33, 33], || format!("passwords beside an empty file of passwords: {passwords:?}"))?;

    // Characters that mean something to programs.
    host.write("/etc/bacula/common_default_passwords", "FDPASSWD=a/b&c\nFDMPASSWD=\"d\\e\n")?;
    host.sh("rm /etc/bacula/bacula-fd.conf && dpkg -i /ferrofd.deb && bacula-fd -t")?;
    let passwords = made()?;
    must(passwords == "a/b&c\n\\\"d\\\\e\n", || format!("passwords of a file: {passwords:?}"))?;

    a_configuration_elsewhere(&host)?;
    step("a host with a file of passwords that was cut off, with odd passwords, and with a configuration elsewhere");
    Ok(())
}

/// A configuration in another place, which may depend on clear text: none is made beside it.
fn a_configuration_elsewhere(host: &Host) -> Result<()> {
    host.sh("cd /etc/bacula && mv bacula-fd.conf client.conf && rm bacula-fd.toml common_default_passwords && \
             echo 'CONFIG=\"/etc/bacula/client.conf\"' >/etc/default/bacula-fd && dpkg -i /ferrofd.deb")?;
    let made = host.sh("ls /etc/bacula")?;
    must(made == "bsnapshot.conf\nclient.conf\nscripts\n", || format!("made beside client.conf:\n{made}"))?;

    // The same, named by drop-ins.
    for (setting, defaults) in [
        ("ExecStart=/usr/sbin/bacula-fd -fP -c /etc/bacula/client.conf", "CONFIG=/etc/bacula/client.conf\n"),
        ("Environment=OTHER=1 \"CONFIG=/etc/bacula/client.conf\"", ""),
    ] {
        host.sh("rm /etc/default/bacula-fd; mkdir -p /etc/systemd/system/bacula-fd.service.d")?;
        host.write("/etc/systemd/system/bacula-fd.service.d/site.conf", &format!("[Service]\n{setting}\n"))?;
        host.sh("dpkg -i /ferrofd.deb")?;
        let made = host.sh("ls /etc/bacula && cat /etc/default/bacula-fd 2>/dev/null || true")?;
        must(made == format!("bsnapshot.conf\nclient.conf\nscripts\n{defaults}"), || {
            format!("made where a drop-in has {setting}:\n{made}")
        })?;
    }
    host.sh("rm -r /etc/systemd/system/bacula-fd.service.d")?;

    // A link to where nothing is mounted now.
    host.sh("rm -f /etc/default/bacula-fd && cd /etc/bacula && mv client.conf /srv/ && \
             ln -s /srv/away/client.conf bacula-fd.conf && dpkg -i /ferrofd.deb")?;
    let made = host.sh("ls /etc/bacula && readlink /etc/bacula/bacula-fd.conf")?;
    must(made == "bacula-fd.conf\nbsnapshot.conf\nscripts\n/srv/away/client.conf\n", || {
        format!("made in the place of a link:\n{made}")
    })
}

/// Run by its init script, whose configuration got an error since.
fn an_upgrade_stops_nothing_that_would_not_start(host: &Host) -> Result<()> {
    host.write("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 0\n")?;
    let pid = || host.sh("cat /run/bacula/bacula-fd.19102.pid");
    host.sh("/etc/init.d/bacula-fd start")?;
    let before = pid()?;
    host.sh("cp -p /etc/bacula/bacula-fd.conf /srv/good && echo Nonsense >>/etc/bacula/bacula-fd.conf")?;
    let told = host.sh("dpkg -i /ferrofd.deb")?;
    must(told.contains("the old one goes on"), || format!("over a configuration with an error:\n{told}"))?;
    host.sh(&format!("test -e /proc/{}", before.trim()))?;
    host.sh("cp -p /srv/good /etc/bacula/bacula-fd.conf && dpkg -i /ferrofd.deb")?;
    must(pid()? != before, || "the old program goes on over a good configuration, too".to_owned())?;
    host.sh("/etc/init.d/bacula-fd stop")?;
    host.write("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n")
}

/// Without systemd a daemon is known by its pid file, which old configurations have elsewhere.
fn an_upgrade_finds_the_pid_file(host: &Host) -> Result<()> {
    host.write("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 0\n")?;
    host.sh("mkdir '/srv/the pids' && cp -p /etc/bacula/bacula-fd.conf /srv/good && \
             sed -i 's|Pid Directory = .*|Pid Directory = \"/srv/the pids\"|' /etc/bacula/bacula-fd.conf && /etc/init.d/bacula-fd start")?;
    let pid = || host.sh("cat '/srv/the pids/bacula-fd.19102.pid'");
    let before = pid()?;
    host.sh("dpkg -i /ferrofd.deb")?;
    must(pid()? != before, || "the old program goes on after an upgrade".to_owned())?;
    host.sh("/etc/init.d/bacula-fd stop && cp -p /srv/good /etc/bacula/bacula-fd.conf")?;
    host.write("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n")
}

/// Administrators switch a daemon off with `chmod -x`: our script, and one that is not ours.
fn an_upgrade_leaves_a_script_switched_off(host: &Host) -> Result<()> {
    for change in ["true", "echo '# Changed.' >>/etc/init.d/bacula-fd"] {
        host.sh(&format!("{change} && chmod -x /etc/init.d/bacula-fd && dpkg -i /ferrofd.deb"))?;
        host.sh("test -e /etc/init.d/bacula-fd && ! test -x /etc/init.d/bacula-fd")?;
    }
    host.sh("rm /etc/init.d/bacula-fd && dpkg -i /ferrofd.deb && test -x /etc/init.d/bacula-fd")?;
    // A link has no mode of its own.
    host.sh(
        "install -m 755 /usr/share/ferrofd/bacula-fd.init /srv/ && ln -sf /srv/bacula-fd.init /etc/init.d/bacula-fd && \
             dpkg -i /ferrofd.deb && test \"$(stat -Lc %a /etc/init.d/bacula-fd)\" = 755",
    )
    .map(drop)
}

/// A package that can't be unpacked: the init script that was taken away for it is there again, and
/// what did not run does not run.
fn a_failed_upgrade_changes_nothing(host: &Host) -> Result<()> {
    host.sh("dpkg-deb -R /ferrofd.deb /broken && sed -i 's/^Version: .*/Version: 100/' /broken/DEBIAN/control && \
             printf '#!/bin/sh\nexit 1\n' >/broken/DEBIAN/preinst && dpkg-deb -b /broken /broken.deb")?;
    let (done, told) = host.attempt("dpkg -i /broken.deb")?;
    must(!done, || format!("a broken package was installed:\n{told}"))?;
    host.sh("test -x /etc/init.d/bacula-fd && dpkg -s ferrofd | grep -qx 'Status: install ok installed' && \
             ls /etc/rc2.d/S??bacula-fd && ! /etc/init.d/bacula-fd status && rm -r /broken /broken.deb")?;
    Ok(())
}

/// A package that would take its place, and can't be unpacked: the init script comes back as it
/// was, ours, one that is not, and one that was made executable for ours.
fn a_failed_removal_leaves_a_script_switched_off(host: &Host) -> Result<()> {
    let fields = "Package: other\nVersion: 1\nArchitecture: all\nMaintainer: Other <other@example.org>\n\
                  Description: takes its place\nConflicts: ferrofd\nReplaces: ferrofd\nProvides: ferrofd\n";
    host.sh(&format!(
        "mkdir -p /other/DEBIAN && printf '{fields}' >/other/DEBIAN/control && \
         printf '#!/bin/sh\necho refused\nexit 1\n' >/other/DEBIAN/preinst && chmod 755 /other/DEBIAN/preinst && dpkg-deb -b /other /other.deb"
    ))?;
    let script = "/etc/init.d/bacula-fd";
    for (change, mode) in [
        ("chmod 644", "644"),
        ("chmod 700", "700"),
        ("echo '# Changed.' >>/etc/init.d/bacula-fd && chmod 644", "644"),
        (": >/var/lib/ferrofd/init-script-made-executable && chmod 755", "755"),
        ("rm /etc/init.d/bacula-fd && install -m 755 /usr/share/ferrofd/bacula-fd.init", "755"),
    ] {
        host.sh(&format!("{change} {script}"))?;
        let (done, told) = host.attempt("dpkg -i --auto-deconfigure /other.deb")?;
        must(!done && told.contains("refused"), || format!("ferrofd was not to be removed:\n{told}"))?;
        let now = host.sh(&format!("stat -c %a {script} && dpkg -s ferrofd | grep ^Status:"))?;
        must(now == format!("{mode}\nStatus: install ok installed\n"), || format!("after {change}: {now}{told}"))?;
    }
    host.sh("rm -r /other /other.deb").map(drop)
}

/// A host with bacula.org's own package, of which the file names are played. It is not replaced
/// behind the administrator's back, and its configuration is used where it is.
fn upstream(root: &Path, deb: &Path) -> Result<()> {
    let host = host_that_starts_nothing(root, deb)?;
    let conf = "Director { Name = d; Password = \"theirs\" }\n\
                FileDaemon { Name = f; WorkingDirectory = /opt/bacula/working; Pid Directory = /opt/bacula/working; \
                Plugin Directory = /opt/bacula/plugins }\nMessages { Name = m; director = d = all }\n";
    host.sh("cd / && mkdir -p u/DEBIAN u/usr/lib/systemd/system u/opt/bacula/bin \
             u/opt/bacula/etc u/opt/bacula/working u/opt/bacula/plugins && echo stock >u/opt/bacula/bin/bacula-fd && \
             echo '[Service]' >u/usr/lib/systemd/system/bacula-fd.service && \
             echo /opt/bacula/etc/bacula-fd.conf >u/DEBIAN/conffiles && \
             printf '%s\\n' 'Package: bacula-client' 'Version: 15.0.3-1' 'Architecture: all' 'Maintainer: a <a@b>' \
             'Description: a stand-in' >u/DEBIAN/control")?;
    host.write("/u/opt/bacula/etc/bacula-fd.conf", conf)?;
    host.sh("dpkg-deb -b /u /u.deb && dpkg -i /u.deb")?;
    let (done, told) = host.attempt("apt-get -y --no-install-recommends install /ferrofd.deb")?;
    must(!done && told.contains("apt remove bacula-client"), || format!("not refused:\n{told}"))?;
    host.sh("dpkg -s bacula-client | grep -qx 'Status: install ok installed' && test ! -e /etc/bacula && \
             grep -qx stock /opt/bacula/bin/bacula-fd && dpkg --verify bacula-client")?;

    apt(&host, "remove bacula-client")?;
    apt(&host, "install /ferrofd.deb")?;
    let named = host.sh("cat /etc/default/bacula-fd; ls /etc/bacula; ls -d /opt/bacula/working /opt/bacula/plugins")?;
    must(
        named == "CONFIG=/opt/bacula/etc/bacula-fd.conf\nscripts\n/opt/bacula/plugins\n/opt/bacula/working\n",
        || format!("in the place of bacula.org's package:\n{named}"),
    )?;
    host.sh("bacula-fd -t -c /opt/bacula/etc/bacula-fd.conf")?;
    apt(&host, "purge ferrofd")?;
    apt(&host, "install /u.deb")?;
    let back =
        host.sh("cat /opt/bacula/etc/bacula-fd.conf; dpkg --verify bacula-client; ls -d /etc/default/bacula-fd || :")?;
    must(back.starts_with(conf) && back.contains("No such file"), || format!("bacula.org's package is back:\n{back}"))?;
    step("a host with bacula.org's package: refused with a word; its configuration is used when it is gone");
    Ok(())
}
