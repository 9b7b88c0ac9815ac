//! Storage that answers late or wrongly: a folder seen through the program `slowfs`, which
//! `tests/src/bin/slowfs` describes. It is unmounted with its value.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};

use nix::mount::{MntFlags, umount2};

use crate::error::{BedError, Result};
use crate::patience::wait_for_input;
use crate::process::converse;

/// A mounted `slowfs`.
#[derive(Debug)]
pub struct SlowStorage {
    mountpoint: PathBuf,
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl SlowStorage {
    /// Why nothing can be mounted here, if so.
    pub fn missing() -> Option<&'static str> {
        if !nix::unistd::geteuid().is_root() {
            return Some("needs root");
        }
        let device = File::options().read(true).write(true).open("/dev/fuse");
        device.is_err().then_some("there is no /dev/fuse")
    }

    /// Shows `source` at `mountpoint`, which must be there. `program` is slowfs, `arguments` are
    /// those before the two folders.
    pub fn mount(program: &Path, arguments: &[&str], source: &Path, mountpoint: &Path) -> Result<Self> {
        // What a killed process has left there.
        let _ = umount2(mountpoint, MntFlags::MNT_DETACH);
        let mut argv: Vec<OsString> = vec![program.into()];
        argv.extend(arguments.iter().map(OsString::from));
        argv.extend([source.into(), mountpoint.into()]);
        let (child, commands, answers) = converse(&argv)?;
        let mut mounted = Self { mountpoint: mountpoint.to_owned(), child, commands, answers };
        mounted.expect("ready")?;
        Ok(mounted)
    }

    /// Gives it a command, as `delay 5` or `fault error:name`, and waits until it is obeyed.
    pub fn order(&mut self, command: &str) -> Result<()> {
        writeln!(self.commands, "{command}").map_err(|error| problem(error.to_string()))?;
        self.expect("ok")
    }

    /// Unmounts it. What it has not answered fails.
    pub fn take_away(&mut self) {
        // They fail only if it is gone already.
        let _ = umount2(&self.mountpoint, MntFlags::MNT_DETACH);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn expect(&mut self, wanted: &str) -> Result<()> {
        // It says one line for each order, so nothing is held back here.
        wait_for_input(&format!("{wanted:?} from slowfs"), self.answers.get_ref())?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|error| problem(error.to_string()))?;
        if line.trim_end() == wanted { Ok(()) } else { Err(problem(format!("expected {wanted:?}, got {line:?}"))) }
    }
}

impl Drop for SlowStorage {
    fn drop(&mut self) {
        self.take_away();
    }
}

fn problem(problem: String) -> BedError {
    BedError::Program { program: "slowfs".to_owned(), problem }
}
