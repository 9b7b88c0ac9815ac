//! The configuration files of a bed's daemons, one directive a line.

use std::path::Path;

use crate::options::{BedOptions, ClientOptions, FileSet, Plugins, quoted};
use crate::reports::REPORTS;
use crate::root::Root;

/// The Director's resource name in every bed.
pub const DIRECTOR: &str = "bed-dir";
const STORAGE: &str = "bed-sd";

/// The password between Director and File Daemons. It guards a loopback port for a minute and is no
/// secret. A byte above 0x7f is taken as it is.
pub const FD_PASSWORD: &str = "bed fd pässword";
const CONSOLE_PASSWORD: &str = "bed console password";
/// The password between Director and Storage Daemon.
pub const STORAGE_PASSWORD: &str = "bed sd password";

/// The job that restores what this client has saved, where there are several clients: each has a
/// queue of its own.
pub(crate) fn restore_job(client: &str) -> String {
    format!("restore-{client}")
}

/// What the files have to agree on.
pub(crate) struct Plan<'a> {
    pub(crate) options: &'a BedOptions,
    pub(crate) root: &'a Root,
    pub(crate) director_port: u16,
    pub(crate) storage_port: u16,
    /// One for each client, in their order.
    pub(crate) client_ports: &'a [u16],
}

/// A configuration file in the making.
#[derive(Default)]
struct Text {
    text: String,
}

impl Text {
    fn open(&mut self, kind: &str, name: &str) -> &mut Self {
        self.line(&format!("{kind} {{")).line(&format!("Name = {}", quoted(name)))
    }

    fn line(&mut self, line: &str) -> &mut Self {
        self.text.push_str(line);
        self.text.push('\n');
        self
    }

    fn lines<'l>(&mut self, lines: impl IntoIterator<Item = &'l String>) -> &mut Self {
        for line in lines {
            self.line(line);
        }
        self
    }

    fn set(&mut self, directive: &str, value: &str) -> &mut Self {
        self.line(&format!("{directive} = {}", quoted(value)))
    }

    fn port(&mut self, directive: &str, number: u16) -> &mut Self {
        self.line(&format!("{directive} = {number}"))
    }

    fn directory(&mut self, directive: &str, path: &Path) -> &mut Self {
        self.set(directive, &path.to_string_lossy())
    }

    fn close(&mut self) {
        self.line("}");
    }
}

impl Plan<'_> {
    fn psk(&self, text: &mut Text) {
        if !self.options.tls_psk {
            text.line("TLS PSK Enable = no");
        }
    }

    fn folder(&self, name: &str) -> std::path::PathBuf {
        self.options.folder.path().join(name)
    }

    /// `bacula-dir.conf`.
    pub(crate) fn director(&self) -> String {
        let mut text = Text::default();
        text.open("Director", DIRECTOR)
            .port("DirPort", self.director_port)
            .line("DirAddress = 127.0.0.1")
            .directory("QueryFile", &self.root.inside("etc/bacula/scripts/query.sql"))
            .directory("WorkingDirectory", &self.folder("work/dir"))
            .directory("PidDirectory", &self.folder("work/dir"))
            .line("Maximum Concurrent Jobs = 20")
            .set("Password", CONSOLE_PASSWORD)
            .set("Messages", "Standard")
            .lines(&self.options.director);
        self.psk(&mut text);
        text.close();
        text.open("Catalog", "Catalog").set("DB Name", "bacula").set("DB User", "").set("DB Password", "").close();
        text.open("Messages", "Standard")
            .line(if self.options.every_message { "Catalog = all, saved" } else { "Catalog = all" })
            .line("Console = all, !skipped, !saved, !restored")
            .line(&format!("Append = \"{}\" = all, !skipped, !saved, !restored", self.folder(REPORTS).display()))
            .close();
        for (client, &port) in self.options.clients.iter().zip(self.client_ports) {
            self.client_resources(&mut text, client, port);
        }
        let names: Vec<_> = self.options.clients.iter().map(|client| client.name.as_str()).collect();
        let any = names.first().copied().unwrap_or_default();
        self.restore_job(&mut text, "restore", any);
        if names.len() > 1 {
            for name in &names {
                self.restore_job(&mut text, &restore_job(name), name);
            }
        }
        for set in self.file_sets() {
            text.open("FileSet", &set.name).lines(&set.lines).close();
        }
        text.lines(&self.options.director_resources);
        let with_port = |text: String, (client, port): (&ClientOptions, &u16)| {
            text.replace(&format!("@port-of-{}@", client.name), &port.to_string())
        };
        self.options.clients.iter().zip(self.client_ports).fold(text.text, with_port)
    }

    /// A restore of what a client has saved.
    fn restore_job(&self, text: &mut Text, name: &str, client: &str) {
        text.open("Job", name)
            .line("Type = Restore")
            .set("Client", &format!("{client}-fd"))
            .set("FileSet", &self.first_file_set())
            .set("Storage", client)
            .set("Pool", client)
            .set("Messages", "Standard")
            .directory("Where", &self.folder("restored"))
            // The Storage Daemon lets a second reader of a volume ask again in 30 s, whereas the
            // Director begins the next job of its queue at once.
            .line("Maximum Concurrent Jobs = 1")
            .close();
    }

    /// The Director's resources for one client.
    fn client_resources(&self, text: &mut Text, client: &ClientOptions, port: u16) {
        let name = &client.name;
        text.open("Client", &client.daemon_name())
            .line("Address = 127.0.0.1")
            .port("FDPort", client.director_port.unwrap_or(port))
            .set("Catalog", "Catalog")
            .set("Password", FD_PASSWORD)
            .line("Maximum Concurrent Jobs = 20")
            .line("AutoPrune = no")
            .lines(&client.dir_client);
        self.psk(text);
        text.close();
        text.open("Storage", name)
            .line("Address = 127.0.0.1")
            .port("SDPort", self.options.storage_port.unwrap_or(self.storage_port))
            .set("Password", STORAGE_PASSWORD)
            .set("Device", name)
            .set("Media Type", name)
            .line("Maximum Concurrent Jobs = 20");
        self.psk(text);
        text.close();
        text.open("Pool", name)
            .line("Pool Type = Backup")
            .line("Recycle = no")
            .line("AutoPrune = no")
            .set("Label Format", &format!("{name}-"))
            .lines(&self.options.pool)
            .close();
        text.open("Job", &format!("backup-{name}"))
            .line("Type = Backup")
            .line("Level = Full")
            .set("Client", &client.daemon_name())
            .set("FileSet", &self.first_file_set())
            .set("Storage", name)
            .set("Pool", name)
            .set("Messages", "Standard")
            .line("Maximum Concurrent Jobs = 10")
            .lines(&client.job)
            .close();
    }

    fn first_file_set(&self) -> String {
        self.file_sets().first().map(|set| set.name.clone()).unwrap_or_default()
    }

    fn file_sets(&self) -> Vec<FileSet> {
        if self.options.file_sets.is_empty() {
            let options = ["Signature = MD5", "AclSupport = yes", "XattrSupport = yes"];
            vec![FileSet::new("Source", &options, &[&self.folder("source")])]
        } else {
            self.options.file_sets.clone()
        }
    }

    /// `bacula-sd.conf`.
    pub(crate) fn storage(&self) -> String {
        let mut text = Text::default();
        text.open("Storage", STORAGE)
            .port("SDPort", self.storage_port)
            .line("SDAddress = 127.0.0.1")
            .directory("WorkingDirectory", &self.folder("work/sd"))
            .directory("PidDirectory", &self.folder("work/sd"))
            .line("Maximum Concurrent Jobs = 20")
            .lines(&self.options.storage);
        self.psk(&mut text);
        text.close();
        text.open("Director", DIRECTOR).set("Password", STORAGE_PASSWORD);
        self.psk(&mut text);
        text.close();
        for client in &self.options.clients {
            text.open("Device", &client.name)
                .set("Media Type", &client.name)
                .directory("Archive Device", &self.folder("volumes").join(&client.name))
                .line("Label Media = yes")
                .line("Random Access = yes")
                .line("Automatic Mount = yes")
                .line("Removable Media = no")
                .line("Always Open = no")
                .line("Maximum Concurrent Jobs = 10")
                .lines(&self.options.device)
                .close();
        }
        text.open("Messages", "Standard").line(&format!("Director = {DIRECTOR} = all")).close();
        text.text
    }

    /// `bconsole.conf`.
    pub(crate) fn console(&self) -> String {
        let mut text = Text::default();
        text.open("Director", DIRECTOR)
            .port("DirPort", self.director_port)
            .line("Address = 127.0.0.1")
            .set("Password", CONSOLE_PASSWORD);
        self.psk(&mut text);
        text.close();
        text.text
    }

    /// `bacula-fd.conf` of one client.
    pub(crate) fn file_daemon(&self, client: &ClientOptions, port: u16) -> String {
        let mut text = Text::default();
        text.open("Director", DIRECTOR).set("Password", FD_PASSWORD).lines(&client.fd_director);
        self.psk(&mut text);
        text.close();
        let work = self.folder("work").join(&client.name);
        text.open("FileDaemon", &client.daemon_name())
            .port("FDPort", port)
            .line("FDAddress = 127.0.0.1")
            .directory("WorkingDirectory", &work)
            .directory("Pid Directory", &work)
            .line("Maximum Concurrent Jobs = 20");
        match &client.plugins {
            Plugins::OfThePackages => _ = text.directory("Plugin Directory", &self.root.inside("usr/lib/bacula")),
            Plugins::In(directory) => _ = text.directory("Plugin Directory", directory),
            Plugins::NoDirectory => {}
        }
        // These may end the resource and begin others.
        text.lines(&client.file_daemon);
        self.psk(&mut text);
        text.close();
        let classes = if self.options.every_message { "all, saved" } else { "all, !skipped, !restored, !saved" };
        let here = |line: &String| line.replace("@WORK@", &work.to_string_lossy());
        let more: Vec<String> = client.messages.iter().map(here).collect();
        text.open("Messages", "Standard").line(&format!("Director = {DIRECTOR} = {classes}")).lines(&more).close();
        text.text.replace("@director-port@", &self.director_port.to_string())
    }
}
