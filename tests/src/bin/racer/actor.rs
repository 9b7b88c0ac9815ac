//! The other user: a process with the rights of `--uid`, which does one thing at a time while the
//! watched process stands still.
//!
//! What was in a place is never removed but moved to `--grave`, so that no inode number is used
//! twice.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::sys::stat::Mode;
use nix::unistd::{Gid, Uid, mkfifo, setgid, setgroups, setuid};

use crate::arguments::Arguments;

/// The process of the other user.
#[derive(Debug)]
pub(crate) struct Actor {
    _child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Actor {
    /// Starts it with the arguments of this process.
    pub(crate) fn start() -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--act").args(std::env::args_os().skip(1)).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let gone = || io::Error::other("the other user has no pipes");
        let orders = child.stdin.take().ok_or_else(gone)?;
        let answers = BufReader::new(child.stdout.take().ok_or_else(gone)?);
        Ok(Self { _child: child, orders, answers })
    }

    /// Has something done to a path, for the rule of this folder. Gives what came of it: `done` or
    /// an error.
    pub(crate) fn act(&mut self, what: &[u8], unit: &[u8], path: &[u8]) -> io::Result<Vec<u8>> {
        let order = [what, unit, path].join(&b'\t');
        self.orders.write_all(&order)?;
        self.orders.write_all(b"\n")?;
        let mut answer = Vec::new();
        self.answers.read_until(b'\n', &mut answer)?;
        answer.pop();
        Ok(answer)
    }
}

/// Takes orders until there are no more.
pub(crate) fn obey(arguments: &Arguments) -> io::Result<()> {
    let group = Gid::from_raw(arguments.uid);
    setgroups(&[])?;
    setgid(group)?;
    setuid(Uid::from_raw(arguments.uid))?;
    for (number, line) in io::stdin().lock().split(b'\n').enumerate() {
        let line = line?;
        let mut words = line.splitn(3, |byte| *byte == b'\t');
        let mut word = || PathBuf::from(std::ffi::OsString::from_vec(words.next().unwrap_or_default().to_vec()));
        let [what, unit, path] = [word(), word(), word()];
        let scene = Scene { arguments, unit: unit.file_name().unwrap_or_default(), number };
        let answer = match scene.act(&what.to_string_lossy(), &path) {
            Ok(()) => "done".to_owned(),
            Err(error) => error.kind().to_string().replace(' ', "-"),
        };
        writeln!(io::stdout(), "{answer}")?;
    }
    Ok(())
}

/// An act that changes the file itself.
fn change(what: &str, path: &Path) -> io::Result<()> {
    // Opening a FIFO would wait for its other end.
    if !path.symlink_metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    match what {
        "truncate" => {
            let file = OpenOptions::new().write(true).open(path)?;
            file.set_len(file.metadata()?.len() / 2)
        }
        "append" => append(path),
        "touch" => {
            let now = std::time::SystemTime::now();
            File::open(path)?.set_times(fs::FileTimes::new().set_modified(now))
        }
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// What an act needs to know.
struct Scene<'a> {
    arguments: &'a Arguments,
    unit: &'a OsStr,
    number: usize,
}

impl Scene<'_> {
    fn act(&self, what: &str, path: &Path) -> io::Result<()> {
        let parent = path.parent().unwrap_or(path);
        let name = path.file_name().unwrap_or_default();
        let spare = self.arguments.spare.join(self.unit);
        match what {
            "link" => self.bury(path).and_then(|()| symlink(self.arguments.lure.join(name), path)),
            "dangling" => {
                let target = self.arguments.lure.join(format!("new-{}", self.number));
                self.bury(path).and_then(|()| symlink(target, path))
            }
            "hardlink" => self.bury(path).and_then(|()| fs::hard_link(self.arguments.lure.join("anyones"), path)),
            "fifo" => self.bury(path).and_then(|()| Ok(mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR)?)),
            "directory" => {
                self.bury(path)?;
                fs::create_dir(path)?;
                fs::write(path.join("inside"), "inside of a directory\n")
            }
            "socket" => self.bury(path).and_then(|()| std::os::unix::net::UnixListener::bind(path).map(drop)),
            "replace" => exchange(&spare.join("file"), path),
            "rename-over" => {
                fs::hard_link(path, self.grave())?;
                fs::rename(spare.join("file"), path)
            }
            "exchange" => exchange(&spare.join("dir"), path),
            "remove" => self.bury(path),
            "parent-link" => self.bury(parent).and_then(|()| symlink(&self.arguments.lure, parent)),
            "parent-exchange" => exchange(&spare.join("dir"), parent),
            "parent-away" => self.bury(parent),
            _ => change(what, path),
        }
    }

    fn bury(&self, path: &Path) -> io::Result<()> {
        fs::rename(path, self.grave())
    }

    /// A new name.
    fn grave(&self) -> PathBuf {
        let mut name = self.unit.to_owned();
        name.push(format!("-{}", self.number));
        self.arguments.grave.join(name)
    }
}

fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    Ok(renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE)?)
}

/// A hundred times what the file begins with, so that its bytes still tell which file it is.
fn append(path: &Path) -> io::Result<()> {
    let mut first = Vec::new();
    BufReader::new(File::open(path)?.take(1000)).read_until(b'\n', &mut first)?;
    OpenOptions::new().append(true).open(path)?.write_all(&first.repeat(100))
}
