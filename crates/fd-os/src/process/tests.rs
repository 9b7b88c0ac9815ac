//! Programs that end, hang, or are not wanted any more.

use std::cell::Cell;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;

use super::*;

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

#[test]
fn a_program_has_no_signal_blocked_although_its_parent_has() {
    let blocked = [Signal::SIGTERM, Signal::SIGPIPE, Signal::SIGHUP].into_iter().collect::<SigSet>();
    blocked.thread_block().unwrap();
    let mut program = command("grep");
    let output = program.args(["SigBlk", "/proc/self/status"]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "SigBlk:\t0000000000000000\n");
}

#[test]
fn a_program_ends_when_the_reader_of_its_pipe_has_gone() {
    let mut program = command("yes");
    let mut yes = program.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(yes.stdout.take());
    assert_eq!(yes.wait().unwrap().signal(), Some(Signal::SIGPIPE as i32));
}

/// Says yes so many times.
fn times(count: u32) -> impl Fn() -> bool {
    let left = Cell::new(count);
    move || left.replace(left.get().saturating_sub(1)) > 0
}

#[test]
fn an_error_of_the_kernel_is_no_cancel() {
    assert!(!is_unwanted(&io::Error::from_raw_os_error(libc::ECONNABORTED)) && is_unwanted(&unwanted()));
}

#[test]
fn reads_from_endless_and_silent_programs_end_when_not_wanted() {
    for script in ["exec yes", "exec sleep 1000", "sleep 1000 & exit 0"] {
        let mut program = Program::start(&mut shell(script), Group::Ends).unwrap();
        let wanted = times(2);
        let mut output = Watched::new(program.take_output().unwrap(), &wanted);
        let error = io::copy(&mut output, &mut io::sink()).unwrap_err();
        assert!(is_unwanted(&error), "{script}: {error}");
        let status = program.end().unwrap();
        assert!(status.success() == script.ends_with("exit 0"), "{script}: {status}");
    }
}

#[test]
fn a_program_that_ignores_sigterm_is_killed_with_its_group() {
    let script = "trap '' TERM; sleep 1000 & echo $!; wait; wait";
    let mut program = Program::start(&mut shell(script), Group::Ends).unwrap();
    let mut output = program.take_output().unwrap();
    let mut number = Vec::new();
    while !number.ends_with(b"\n") {
        let mut byte = [0];
        output.read_exact(&mut byte).unwrap();
        number.push(byte[0]);
    }
    assert_eq!(program.end().and_then(|status| status.signal()), Some(9));
    // The pipe ends when no process of the group is left.
    assert_eq!(output.read(&mut [0]).unwrap(), 0);
}

#[test]
fn processes_that_a_script_started_stay() {
    let mut program = Program::start(&mut shell("sleep 1000 & echo $!"), Group::Stays).unwrap();
    let wanted = times(2);
    let mut text = Vec::new();
    let mut output = Watched::new(program.take_output().unwrap(), &wanted);
    assert!(is_unwanted(&output.read_to_end(&mut text).unwrap_err()));
    assert!(program.end().is_some_and(|status| status.success()));
    let number: i32 = String::from_utf8(text).unwrap().trim().parse().unwrap();
    nix::sys::signal::kill(Pid::from_raw(number), Signal::SIGKILL).unwrap();
}

#[test]
fn a_program_that_is_slow_to_start_is_waited_for_while_it_is_wanted() {
    let slow = || {
        let (hears, go) = io::pipe().unwrap();
        let mut program = shell("exit 3");
        // SAFETY: it only reads from a pipe.
        unsafe {
            program.pre_exec(move || {
                nix::unistd::read(&hears, &mut [0])?;
                Ok(())
            });
        }
        (program, go)
    };
    let (program, go) = slow();
    let wanted = || (&go).write_all(b"!").is_ok();
    let started = Program::start_while(|| io::Result::Ok(program), Group::Ends, &wanted).unwrap();
    assert_eq!(started.wait(&|| true).unwrap().code(), Some(3));
    let (program, mut go) = slow();
    assert!(is_unwanted(&Program::start_while(|| Ok(program), Group::Ends, &times(2)).unwrap_err()));
    go.write_all(b"!").unwrap();
    let missing = || Ok(command("/no/such/program"));
    let error: io::Error = Program::start_while(missing, Group::Ends, &|| true).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_program_that_is_made_when_it_is_not_wanted_any_more_is_not_started() {
    let (hears, mut go) = io::pipe().unwrap();
    let (mut told, tells) = io::pipe().unwrap();
    let make = move || {
        (&hears).read_exact(&mut [0])?;
        let mut program = shell("exit 3");
        // SAFETY: it only writes to a pipe.
        unsafe {
            program.pre_exec(move || Ok(nix::unistd::write(&tells, b"!").map(drop)?));
        }
        Ok(program)
    };
    assert!(is_unwanted(&Program::start_while(make, Group::Ends, &times(2)).unwrap_err()));
    go.write_all(b"!").unwrap();
    // Its end comes when the command is gone, and with it the writer.
    let mut said = Vec::new();
    told.read_to_end(&mut said).unwrap();
    assert!(said.is_empty(), "it was started");
}

#[test]
fn a_wait_ends_when_it_is_not_wanted() {
    let program = Program::start(&mut shell("exec >&-; exec sleep 1000"), Group::Ends).unwrap();
    assert_eq!(program.wait(&times(2)).unwrap().signal(), Some(15));
    let program = Program::start(&mut shell("exec >&-; exit 3"), Group::Ends).unwrap();
    assert_eq!(program.wait(&|| true).unwrap().code(), Some(3));
}

#[test]
fn patience_for_the_first_byte_ends() {
    let (reader, _writer) = io::pipe().unwrap();
    let mut watched = Watched::new(reader, &|| true).with_patience(GLANCE);
    assert_eq!(watched.read(&mut [0]).unwrap_err().raw_os_error(), Some(Errno::ETIMEDOUT as i32));
}

#[test]
fn a_program_does_not_hear_of_the_manager_of_services() {
    let command = command("true");
    let removed: Vec<_> = command.get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
    assert!(OF_MANAGER.iter().all(|name| removed.contains(&OsStr::new(name))), "{removed:?}");
}
