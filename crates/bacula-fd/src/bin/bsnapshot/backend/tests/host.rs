//! A host of recorded tools.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::stat::{major, minor};
use tempfile::TempDir;

use crate::answer::Answer;
use crate::backend::{Work, check_all, run};
use crate::request::{Action, Request};
use crate::settings::Settings;
use crate::tools::Tools;
use crate::trace::Trace;

/// The job's name.
pub(super) const NAME: &str = "Nightly.2026-11-21_02.13.24_12";

/// Says its arguments to the log. `PROGRAM.err` is said once, with failure, before `PROGRAM.err.2`;
/// then `PROGRAM.out` is printed.
const PROGRAM: &str = r#"here=@HERE@
name=${0##*/}
{
    printf '%s' "$name"
    for word in "$@"; do printf ' [%s]' "$word"; done
    printf '\n'
} >>"$here/log"
if [ -e "$here/$name.err" ]; then
    /bin/cat "$here/$name.err" >&2
    if [ -e "$here/$name.err.2" ]; then /bin/mv "$here/$name.err.2" "$here/$name.err"; else /bin/rm "$here/$name.err"; fi
    exit 5
fi
[ ! -e "$here/$name.out" ] || /bin/cat "$here/$name.out"
"#;

/// The host, and what the daemon wants of it.
pub(super) struct Host {
    folder: TempDir,
    pub(super) settings: Settings,
    pub(super) request: Request,
}

impl Host {
    /// With a file system of this kind.
    pub(super) fn new(file_system: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().canonicalize().unwrap();
        for directory in ["bin", "mnt", "run"] {
            fs::create_dir(here.join(directory)).unwrap();
        }
        fs::write(here.join("mountinfo"), "").unwrap();
        let settings =
            Settings { path: vec![here.join("bin")], private_dir: here.join("run/bsnapshot"), ..Settings::default() };
        let request = Request {
            name: NAME.into(),
            file_system: file_system.into(),
            mount_point: here.join("mnt"),
            ..Request::default()
        };
        let host = Self { folder, settings, request };
        for program in ["lvs", "vgs", "lvcreate", "lvremove", "zfs", "mount", "umount"] {
            host.script(program, &PROGRAM.replace("@HERE@", &here.to_string_lossy()));
        }
        host
    }

    /// A file of the host.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Another program.
    pub(super) fn script(&self, program: &str, text: &str) {
        scripts::write(&self.path("bin").join(program), text).unwrap();
    }

    /// What a program prints, or `PROGRAM.err`: what it says when it fails.
    pub(super) fn answers(&self, file: &str, text: &str) {
        let whole = if file.contains('.') { file.to_owned() } else { format!("{file}.out") };
        fs::write(self.path(&whole), text).unwrap();
    }

    /// The numbers of the device of the file system, and the kernel's word that it is LVM's.
    pub(super) fn is_lvm(&self) -> String {
        let device = fs::metadata(&self.request.mount_point).unwrap().dev();
        let directory = self.path(&format!("sys/dev/block/{}:{}/dm", major(device), minor(device)));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("uuid"), "LVM-gKx0\n").unwrap();
        format!("{}|{}", major(device), minor(device))
    }

    fn work<T>(&self, doing: impl FnOnce(&Work<'_>) -> T) -> T {
        let trace = Trace::default();
        let mut tools = Tools::new(&self.settings, &trace);
        tools.pause = Duration::ZERO;
        tools.mountinfo = self.path("mountinfo");
        tools.sysfs = self.path("sys");
        doing(&Work { request: &self.request, settings: &self.settings, tools: &tools })
    }

    /// Does an action.
    pub(super) fn run(&self, action: &str) -> Answer {
        let action = Action::named(action.as_ref()).unwrap();
        self.work(|work| run(work, action))
    }

    /// `-t`.
    pub(super) fn check(&self) -> Answer {
        self.work(check_all)
    }

    /// Does an action that succeeds; its text.
    pub(super) fn good(&self, action: &str) -> String {
        let (text, is_success) = self.said(action);
        assert!(is_success, "{text}");
        text
    }

    /// Does an action that fails; the error.
    pub(super) fn error(&self, action: &str) -> String {
        let (text, is_success) = self.said(action);
        assert!(!is_success, "{text}");
        let error = text.strip_prefix("status=0 error=\"").and_then(|rest| rest.strip_suffix("\"\n"));
        error.unwrap_or_else(|| panic!("{text}")).replace("\\\"", "\"").replace("\\\\", "\\")
    }

    /// What an action prints, of `support` without the directory of snapshots; and its success.
    fn said(&self, action: &str) -> (String, bool) {
        let answer = self.run(action);
        let mut text = String::from_utf8_lossy(answer.text()).into_owned();
        if let Some(end) = text.find("snapdirectory=").filter(|_| action == "support") {
            text.truncate(end);
        }
        (text, answer.is_success())
    }

    /// The directory of snapshots that `support` names.
    pub(super) fn named_directory(&self) -> Option<String> {
        let answer = self.run("support");
        let text = String::from_utf8_lossy(answer.text());
        let (_, named) = text.split_once("snapdirectory=\"")?;
        named.strip_suffix("\"\n").map(str::to_owned)
    }

    /// What was run, one program a line, arguments in brackets.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// The same without what only asks.
    pub(super) fn changes(&self) -> Vec<String> {
        let asks =
            |line: &&str| !(line.starts_with("lvs ") || line.starts_with("vgs ") || line.starts_with("zfs [list]"));
        self.log().lines().filter(asks).map(str::to_owned).collect()
    }
}
