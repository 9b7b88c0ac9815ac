//! Rolls ferrofd out with the Ansible role, on a throw-away host with the bed's Director.
//!
//! `ansible-test ROOT ROLE DEB NEWER` takes an unpacked Debian with Ansible (`scripts/ansible-test`
//! makes it), the folder of the role, and two builds of the package. The host manages itself. It
//! begins with the stock daemon: refused while a job runs, rolled back after a test backup that
//! fails, switched, switched again without any change, upgraded, given back.
//!
//! Not here: what the package does by itself (`package-test`).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bed::road::{end, must, step};
use bed::{
    Bed, BedError, BedOptions, ClientOptions, DIRECTOR, FD_PASSWORD, Fd, FileSet, Host, PATIENCE, Result, Snapshot,
    TreeOptions, argv, build_every_type, run, wait_for,
};

const DATA: &str = "/srv/data";
const CLIENT: &str = "host";
const PORT: u16 = 9102;

fn main() -> ExitCode {
    let words: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let outcome = match words.as_slice() {
        [root, role, deb, newer] => Road::new(root, role, deb, newer).and_then(Road::walk),
        _ => Err(BedError::Usage("ansible-test ROOT ROLE DEB NEWER".to_owned())),
    };
    end("ansible-test", outcome)
}

/// What a play did to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// `changed=0`
    Unchanged,
    Changed,
    /// `failed=1`
    Failed,
}

/// A play that had the outcome it should have.
struct Played {
    told: String,
    /// How many backups the Director ran for it.
    backups: u32,
}

struct Road {
    bed: Bed,
    host: Host,
    /// `/etc/bacula` as the administrator has left it.
    configuration: Snapshot,
}

impl Road {
    fn new(root: &Path, role: &Path, deb: &Path, newer: &Path) -> Result<Self> {
        let host = Host::new(root)?;
        host.bring(deb, "/ferrofd.deb")?;
        host.bring(newer, "/ferrofd-newer.deb")?;
        let copied =
            run(&argv(["cp".as_ref(), "-r".as_ref(), role.as_os_str(), host.path("/ansible").as_os_str()]), b"")?;
        must(copied.status.success(), || copied.text())?;

        let mut client = ClientOptions::new(Fd::Ours).named(CLIENT);
        client.job.push("Client Run Before Job = \"/usr/local/bin/gate\"".to_owned());
        client.director_port = Some(PORT);
        let mut options = BedOptions::new("ansible", [client])?;
        options.file_sets = vec![FileSet::new("Data", &["Signature = MD5"], &[Path::new(DATA)])];
        let mut bed = Bed::prepare(options)?;
        bed.storage().start()?;
        bed.director().start()?;
        build_every_type(&host.path(DATA), &TreeOptions::default())?;
        // A job waits here as long as the gate is shut.
        host.write(
            "/usr/local/bin/gate",
            "#!/bin/sh\necho $PPID >>/served\nif test -e /gate; then touch /waiting; fi\n\
             while test -e /gate; do sleep 0.1; done\n",
        )?;
        host.sh("chmod 755 /usr/local/bin/gate")?;
        // The host's own console reaches the bed's Director.
        host.bring(&bed.folder().join("etc/bconsole.conf"), "/bconsole.conf")?;
        host.write(
            "/inventory",
            "[bacula_clients]\nhost ansible_connection=local\n[directors]\ndirector ansible_connection=local\n\
             [all:vars]\nansible_python_interpreter=/usr/bin/python3\nansible_become=false\n",
        )?;
        host.write(
            "/all.yml",
            "ferrofd_package_file: /ferrofd.deb\nferrofd_director_host: director\n\
             ferrofd_bconsole: bconsole -n -c /bconsole.conf\nferrofd_verify_job: backup-host\n\
             ferrofd_verify_level: Full\nferrofd_idle_retries: 2\nferrofd_idle_delay: 1\n",
        )?;
        Ok(Self { bed, host, configuration: Snapshot::new() })
    }

    fn walk(mut self) -> Result<()> {
        self.stock_first()?;
        self.a_busy_host_is_left_alone()?;
        self.a_failed_test_brings_the_stock_daemon_back()?;
        self.switch()?;
        self.settings()?;
        self.upgrade()?;
        self.the_stock_name_means_ours()?;
        self.back()
    }

    fn stock_first(&mut self) -> Result<()> {
        self.host.write("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n")?;
        self.host.sh("chmod 755 /usr/sbin/policy-rc.d")?;
        self.host.sh("apt-get -y --no-install-recommends install bacula-client")?;
        self.host.write("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 0\n")?;
        let file = self.host.path("/etc/bacula/bacula-fd.conf");
        let text = format!(
            "# Configured by hand.\nDirector {{ Name = {DIRECTOR}; Password = \"{FD_PASSWORD}\" }}\n\
             FileDaemon {{ Name = {CLIENT}-fd; FDport = {PORT}; FDAddress = 127.0.0.1; \
             WorkingDirectory = /var/lib/bacula; Pid Directory = /run/bacula; Plugin Directory = /usr/lib/bacula }}\n\
             Messages {{ Name = Standard; director = {DIRECTOR} = all, !skipped, !restored }}\n"
        );
        // In place: owner and mode stay those that the package gave it.
        fs::write(&file, text).map_err(|error| BedError::Usage(format!("{}: {error}", file.display())))?;
        self.configuration = self.host.snapshot("/etc/bacula")?;
        self.host.sh("invoke-rc.d bacula-fd start")?;
        self.expect("stock, configured by hand", false)
    }

    /// A job that runs until the gate is opened.
    fn job_at_the_gate(&self) -> Result<u32> {
        let waiting = self.host.path("/waiting");
        self.host.sh("rm -f /waiting && touch /gate")?;
        let job = self.bed.queue(&format!("run job=backup-{CLIENT} yes"))?;
        wait_for("the job's script", PATIENCE, || Ok(if waiting.exists() { Ok(()) } else { Err(String::new()) }))?;
        Ok(job)
    }

    fn a_busy_host_is_left_alone(&self) -> Result<()> {
        let job = self.job_at_the_gate()?;
        self.play("site.yml", "", Outcome::Failed)?;
        // What takes time comes before the last look, and not between that and the switch.
        self.host.sh("ls /var/cache/apt/archives/ferrofd_*.deb && rm /gate")?;
        self.bed.wait(job)?.must_be_good()?;
        self.expect("a job runs: refused, and the job ends well", false)
    }

    fn a_failed_test_brings_the_stock_daemon_back(&self) -> Result<()> {
        let variables = "{\"ferrofd_verify_job\": \"no-such-job\", \"ferrofd_backup_only\": true}";
        let told = self.play("site.yml", variables, Outcome::Failed)?.told;
        must(told.contains("The stock daemon is back."), || told.clone())?;
        must(told.contains("Take the host's rights to write"), || told.clone())?;
        self.host.sh("test ! -e /etc/systemd/system/bacula-fd.service.d/backup-only.conf")?;
        self.expect("the test backup fails: rolled back", false)
    }

    fn switch(&self) -> Result<()> {
        self.play("site.yml --check", "", Outcome::Changed)?;
        self.expect("a dry run: nothing changes", false)?;
        let played = self.play("site.yml", "", Outcome::Changed)?;
        must(played.backups == 1, || format!("the role ran {} test backups\n{}", played.backups, played.told))?;
        self.expect("switched, with a test backup", true)?;
        let played = self.play("site.yml", "", Outcome::Unchanged)?;
        must(played.backups == 0, || format!("the second run ran a backup\n{}", played.told))?;
        self.expect("once more: nothing changes", true)
    }

    fn settings(&self) -> Result<()> {
        let variable = "{\"ferrofd_settings\": \"job.workers = 2\\n\", \"ferrofd_idle_retries\": 120}";
        self.change_while_a_job_runs(variable)?;
        let again = self.play("site.yml", variable, Outcome::Unchanged)?;
        must(again.backups == 0, || again.told.clone())?;
        for backup_only in [true, false] {
            let rights = format!("{{\"ferrofd_backup_only\": {backup_only}, \"ferrofd_idle_retries\": 120}}");
            let played = self.play("site.yml", &rights, Outcome::Changed)?;
            must(played.backups == 1, || played.told.clone())?;
        }
        let wrong = self.play("site.yml", "{\"ferrofd_settings\": \"job.nonsense = 1\n\"}", Outcome::Failed)?;
        must(wrong.told.contains("nonsense"), || wrong.told.clone())?;
        let made = self.host.sh("cat /etc/bacula/bacula-fd.toml && rm /etc/bacula/bacula-fd.toml")?;
        must(made == "job.workers = 2\n", || made)?;
        self.expect("settings written once, and those with an error not at all", true)
    }

    /// Until the job ends, the daemon is the one from before. The test backup must come behind it.
    fn change_while_a_job_runs(&self, variables: &str) -> Result<()> {
        let job = self.job_at_the_gate()?;
        // The gate is opened when the play waits, or does not.
        let open = "until grep -qs \"Wait until the daemon has been restarted\\|Queue it\" /plays; do \
                    sleep 0.1; done; rm /gate";
        self.host.sh(&format!("rm -f /plays /served; setsid sh -c '{open}' </dev/null >/dev/null 2>&1 &"))?;
        let served_first = self.host.sh("cat /run/bacula/bacula-fd.9102.pid")?;
        let played = self.play("site.yml", variables, Outcome::Changed)?;
        must(played.backups == 1, || format!("the role ran {} test backups\n{}", played.backups, played.told))?;
        self.bed.wait(job)?.must_be_good()?;
        let served = self.host.sh("cat /served")?;
        must(served.trim() != served_first.trim(), || {
            format!("the test backup is of the daemon from before\n{}", played.told)
        })
    }

    fn upgrade(&self) -> Result<()> {
        let newer = "ferrofd_package_file=/ferrofd-newer.deb ferrofd_idle_retries=120";
        // A link, as configuration management often has it, is no other configuration.
        self.host.sh("cd /etc/bacula && mv bacula-fd.conf /srv/ && ln -s /srv/bacula-fd.conf bacula-fd.conf")?;
        self.change_while_a_job_runs(newer)?;
        self.host.sh("cd /etc/bacula && rm bacula-fd.conf && mv /srv/bacula-fd.conf .")?;
        self.play("site.yml", newer, Outcome::Unchanged)?;
        let version = self.host.sh("dpkg-query -W -f '${Version}' ferrofd")?;
        must(version == "99-1", || format!("upgraded to {version}"))?;
        self.expect("upgraded, and once more: nothing changes", true)
    }

    /// docs/migrating.md: configuration management that wants the package `bacula-fd`.
    fn the_stock_name_means_ours(&self) -> Result<()> {
        let page = include_str!("../../../../docs/migrating.md");
        let pin = page.lines().find(|line| line.starts_with("printf 'Package: bacula-fd")).unwrap_or_default();
        self.host.sh(pin)?;
        self.host
            .sh("puppet apply --detailed-exitcodes -e 'package { \"bacula-fd\": ensure => present }' || test $? = 2")?;
        self.expect("wanted by its stock name by Puppet: it stays", true)?;
        let wish = "ansible -i /inventory host -m ansible.builtin.apt -a 'name=bacula-fd state=present'";
        let (good, told) = self.host.attempt(wish)?;
        must(!good && told.contains("no available installation candidate"), || told)?;
        self.expect("wanted by its stock name by Ansible: refused, and it stays", true)?;
        self.host.sh("rm /etc/apt/preferences.d/ferrofd").map(drop)
    }

    fn back(&self) -> Result<()> {
        self.play("back.yml", "", Outcome::Changed)?;
        self.expect("given back", false)?;
        self.play("back.yml", "", Outcome::Unchanged)?;
        self.expect("once more: nothing changes", false)
    }

    /// Runs a playbook, which must have this outcome.
    fn play(&self, book: &str, variables: &str, expected: Outcome) -> Result<Played> {
        let before = self.backups()?;
        let more = if variables.is_empty() { String::new() } else { format!("-e '{variables}'") };
        let (good, told) = self.host.attempt(&format!(
            "cd /ansible && ANSIBLE_NOCOLOR=1 ANSIBLE_LOG_PATH=/plays \
             ansible-playbook -i /inventory -e @/all.yml {more} {book}"
        ))?;
        let recap =
            told.lines().find(|line| line.starts_with("host ") && line.contains("changed=")).unwrap_or_default();
        let count = |name: &str| -> u32 {
            let rest = recap.split_once(name).map(|(_, rest)| rest).unwrap_or_default();
            rest.split_ascii_whitespace().next().and_then(|digits| digits.parse().ok()).unwrap_or(u32::MAX)
        };
        let outcome = match (count("failed="), count("changed=")) {
            (0, 0) => Outcome::Unchanged,
            (0, _) => Outcome::Changed,
            _ => Outcome::Failed,
        };
        must(outcome == expected && good == (expected != Outcome::Failed), || {
            format!("{book} {variables}: {outcome:?}, not {expected:?}\n{told}")
        })?;
        Ok(Played { told, backups: self.backups()? - before })
    }

    /// How many backups the catalog has.
    fn backups(&self) -> Result<u32> {
        let rows = self.bed.catalog().rows(&["COUNT(*)"], "FROM Job WHERE Type = 'B'")?;
        let text = rows.first().and_then(|row| row.first()).cloned().unwrap_or_default();
        Ok(String::from_utf8_lossy(&text).parse().unwrap_or_default())
    }

    /// The right daemon runs and saves, and the configuration is untouched.
    fn expect(&self, stop: &str, ours: bool) -> Result<()> {
        let owner = self.host.sh("dpkg -S /usr/sbin/bacula-fd")?;
        must(owner.starts_with("ferrofd:") == ours, || format!("{stop}: the program is of {owner}"))?;
        let running = self.host.sh("readlink /proc/$(cat /run/bacula/bacula-fd.9102.pid)/exe")?;
        must(running.trim() == "/usr/sbin/bacula-fd", || format!("{stop}: what runs is {running}"))?;
        self.bed.backup(CLIENT, "")?.must_be_good()?;
        let now = self.host.snapshot("/etc/bacula")?;
        must(now == self.configuration, || format!("{stop}: /etc/bacula has changed"))?;
        step(stop);
        Ok(())
    }
}
