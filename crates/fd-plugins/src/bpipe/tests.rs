//! Readers and writers that work, fail, hang and talk.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;
use crate::api::host::JobFacts;
use crate::api::packets::SavedObject;

/// What a job is to the plugin. It is canceled after so many questions.
#[derive(Default, Debug)]
struct Facts {
    canceled: AtomicBool,
    asked: AtomicUsize,
    cancel_at: Option<usize>,
    allowed: Vec<Vec<u8>>,
}

impl JobFacts for Facts {
    fn value(&self, _variable: Variable) -> Option<Value> {
        None
    }

    fn is_canceled(&self) -> bool {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        self.canceled.load(Ordering::Relaxed) || self.cancel_at.is_some_and(|limit| asked >= limit)
    }

    fn allowed_programs(&self) -> &[Vec<u8>] {
        &self.allowed
    }

    fn debug(&self, _level: i32, _text: &[u8]) {}
}

#[derive(Default)]
struct TestHost {
    facts: Facts,
    messages: Vec<(MessageType, String)>,
}

impl Host for TestHost {
    fn facts(&self) -> &dyn JobFacts {
        &self.facts
    }

    fn message(&mut self, kind: MessageType, text: &[u8]) {
        self.messages.push((kind, String::from_utf8(text.to_vec()).unwrap()));
    }
}

impl TestHost {
    /// Cancels the job when it has been asked for it three more times. The start of a program asks
    /// as well, on a busy host more often.
    fn cancel_soon(&mut self) {
        self.facts.cancel_at = Some(self.facts.asked.load(Ordering::Relaxed) + 3);
    }

    /// The messages, each with its type.
    fn said(&self) -> Vec<(MessageType, &str)> {
        self.messages.iter().map(|(kind, text)| (*kind, text.as_str())).collect()
    }
}

fn begin(host: &mut TestHost) -> Box<dyn Instance> {
    BpipePlugin::new().begin(host).unwrap().0
}

/// Begins to save what the command names, without an object, and opens its data.
fn open(host: &mut TestHost, job: &mut dyn Instance, command: &str) -> IoDone {
    assert_eq!(job.event(host, &Event::Level(b'I')), Ok(Status::Ok));
    assert_eq!(job.event(host, &Event::BackupCommand(command.as_bytes())), Ok(Status::Ok));
    let mut file = SavePacket::empty();
    assert_eq!(job.start_backup_file(host, command.as_bytes(), true, &mut file), Ok(Status::Ok));
    job.io(host, Io::Open { name: &file.name.unwrap(), flags: 0, mode: 0 }).unwrap()
}

/// Reads to the end: the lengths of the blocks, the data, and the last answer.
fn read_all(host: &mut TestHost, job: &mut dyn Instance) -> (Vec<usize>, Vec<u8>, IoDone) {
    let (mut lengths, mut data) = (Vec::new(), Vec::new());
    let mut buffer = vec![0; 65536];
    loop {
        let done = job.io(host, Io::Read { buffer: &mut buffer }).unwrap();
        let Some(count) = usize::try_from(done.status).ok().filter(|count| *count > 0) else {
            return (lengths, data, done);
        };
        lengths.push(count);
        data.extend_from_slice(&buffer[..count]);
    }
}

/// Saves what a reader prints: the data, and the status of closing.
fn save(host: &mut TestHost, reader: &str) -> (Vec<u8>, i32) {
    let mut job = begin(host);
    assert!(open(host, job.as_mut(), &format!("bpipe:/f:{reader}:w")).status >= 0);
    let (_, data, last) = read_all(host, job.as_mut());
    assert_eq!(last, IoDone::bytes(0));
    let closed = job.io(host, Io::Close).unwrap();
    assert_eq!(job.end_backup_file(host), Ok(Status::Ok));
    (data, closed.status)
}

/// Restores these blocks through a writer: the answers to the writes, and of closing.
fn restore(host: &mut TestHost, command: &str, place: Option<&str>, blocks: &[&[u8]]) -> (Vec<IoDone>, IoDone) {
    restore_with(host, command, place, blocks, |_| ())
}

/// As [`restore`]; `after_open` is called before the first write.
fn restore_with(
    host: &mut TestHost,
    command: &str,
    place: Option<&str>,
    blocks: &[&[u8]],
    after_open: impl FnOnce(&mut TestHost),
) -> (Vec<IoDone>, IoDone) {
    let mut job = begin(host);
    assert_eq!(job.event(host, &Event::RestoreCommand(command.as_bytes())), Ok(Status::Ok));
    assert_eq!(job.start_restore_file(host, command.as_bytes()), Ok(Status::Ok));
    let file = RestoreFile { place: place.map(Into::into), replace: b'a', ..RestoreFile::default() };
    assert_eq!(job.create_file(host, &file), Ok((Status::Ok, CreateStatus::Extract)));
    let opened = job.io(host, Io::Open { name: b"/f", flags: 0o1101, mode: 0o600 }).unwrap();
    if opened.status < 0 {
        return (Vec::new(), opened);
    }
    after_open(host);
    let written = blocks.iter().map(|data| job.io(host, Io::Write { data }).unwrap()).collect();
    (written, job.io(host, Io::Close).unwrap())
}

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ferrofd-bpipe-{name}-{}", std::process::id()));
    fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn a_full_saves_the_object_and_then_the_file() {
    let command = b"bpipe:/x/y/s:echo strip:cat >%w/s.out";
    for (event, level, objects) in [
        (Event::BackupCommand(command), b'F', 1),
        (Event::BackupCommand(command), b'I', 0),
        (Event::EstimateCommand(command), b'F', 0),
    ] {
        let mut host = TestHost::default();
        let mut job = begin(&mut host);
        // Twice: each command has its object.
        for _ in 0..2 {
            assert_eq!(job.event(&mut host, &Event::Level(level)), Ok(Status::Ok));
            assert_eq!(job.event(&mut host, &event), Ok(Status::Ok));
            for _ in 0..objects {
                let mut object = SavePacket::empty();
                assert_eq!(job.start_backup_file(&mut host, command, true, &mut object), Ok(Status::Ok));
                assert_eq!((object.file_type, object.object.data.len()), (27, 98));
                assert_eq!(job.end_backup_file(&mut host), Ok(Status::More));
            }
            let mut file = SavePacket::empty();
            assert_eq!(job.start_backup_file(&mut host, command, true, &mut file), Ok(Status::Ok));
            assert_eq!((file.file_type, file.name.as_deref()), (3, Some(b"/x/y/s".as_slice())));
            assert_eq!((file.stat.mode, file.stat.size, file.portable), (0o100_700, -1, true));
            assert_eq!(job.end_backup_file(&mut host), Ok(Status::Ok));
        }
    }
}

#[test]
fn a_malformed_command_is_refused_in_each_kind_of_job() {
    for event in
        [Event::BackupCommand(b"bpipe:/a"), Event::EstimateCommand(b"bpipe:/a"), Event::RestoreCommand(b"bpipe:/a")]
    {
        let mut host = TestHost::default();
        assert_eq!(begin(&mut host).event(&mut host, &event), Ok(Status::Error));
        assert_eq!(host.said(), [(MessageType::Fatal, "File terminator not found: bpipe:/a\n")]);
    }
}

#[test]
fn a_command_in_an_options_block_fails_the_job() {
    let mut host = TestHost::default();
    let status = begin(&mut host).handle_file(&mut host, b"bpipe:/a:b:c", &mut SavePacket::empty());
    assert_eq!(status, Ok(Status::Error));
    let text = "bpipe saves no files of an Options block, its command belongs into the Include: bpipe:/a:b:c\n";
    assert_eq!(host.said(), [(MessageType::Fatal, text)]);
}

#[test]
fn what_a_reader_prints_is_saved_and_what_it_says_is_told() {
    let mut host = TestHost::default();
    assert_eq!(save(&mut host, "printf 'a\\0b'; echo one >&2; cat"), (b"a\0b".to_vec(), 0));
    assert_eq!(host.said(), [(MessageType::Info, "/f: one\n")]);
    let mut host = TestHost::default();
    assert_eq!(save(&mut host, "exit 5"), (Vec::new(), 268_435_461));
    assert_eq!(save(&mut host, "echo x; kill -9 $$"), (b"x\n".to_vec(), 134_217_737));
    let failed = "bpipe-fd: Error closing for file /f: ";
    assert_eq!(
        host.said(),
        [
            (MessageType::Error, format!("{failed}268435461\n").as_str()),
            (MessageType::Error, format!("{failed}134217737\n").as_str())
        ]
    );
    let mut host = TestHost::default();
    assert_eq!(save(&mut host, "/no/such/program").1, 268_435_583);
    let words = "/f: /bin/sh: 1: /no/such/program: not found\n";
    assert_eq!(host.said().first(), Some(&(MessageType::Info, words)));
}

#[test]
fn blocks_are_full_whatever_the_reader_s_writes_are() {
    let mut host = TestHost::default();
    let mut job = begin(&mut host);
    open(
        &mut host,
        job.as_mut(),
        "bpipe:/f:for i in 1 2 3 4 5 6 7 8 9; do head -c 20000 /dev/zero; sleep 0.02; done:w",
    );
    let (lengths, ..) = read_all(&mut host, job.as_mut());
    assert_eq!(lengths, [65536, 65536, 180_000 - 2 * 65536]);
}

#[test]
fn a_reader_that_only_talks_is_heard_to_the_end() {
    let mut host = TestHost::default();
    // More than the pipes hold, in one line.
    let reader = "head -c 1048576 /dev/zero | tr '\\0' e >&2";
    assert_eq!(save(&mut host, reader), (Vec::new(), 0));
    assert!(host.messages.iter().all(|(_, text)| text.len() <= 1024 + "/f: \n".len()));
    let letters: usize = host.messages.iter().map(|(_, text)| text.matches('e').count()).sum();
    assert_eq!(letters, 1 << 20);
    // Data and words at the same time.
    let mut host = TestHost::default();
    let both = "(head -c 500000 /dev/zero | tr '\\0' e >&2) & head -c 3000000 /dev/zero; wait";
    assert_eq!(save(&mut host, both).0.len(), 3_000_000);
    let letters: usize = host.messages.iter().map(|(_, text)| text.matches('e').count()).sum();
    assert_eq!(letters, 500_000);
}

#[test]
fn a_reader_that_goes_on_after_its_data_is_waited_for() {
    let mut host = TestHost::default();
    assert_eq!(save(&mut host, "echo x; exec >&-; sleep 0.2; echo late >&2; exit 4"), (b"x\n".to_vec(), 268_435_460));
    assert_eq!(host.said().first(), Some(&(MessageType::Info, "/f: late\n")));
    assert_eq!(save(&mut host, "exec >&- 2>&-; sleep 0.2; exit 4"), (Vec::new(), 268_435_460));
}

#[test]
fn a_service_that_a_reader_leaves_behind_holds_no_job() {
    // One that says more than is heard, when the reader ends.
    let talks = "trap 'exit 0' USR1; sh -c 'trap \"\" PIPE; echo $$; exec >&-; line=$(printf %04096d 0); \
                 for n in $(seq 99); do echo $line >&2; done; kill -USR1 $PPID; while true; do echo $line >&2; done' & \
                 exec >&-; wait";
    for reader in ["sleep 1000000 >&- & echo $!", talks] {
        let (data, closed) = save(&mut TestHost::default(), reader);
        assert_eq!(closed, 0);
        let number: i32 = String::from_utf8(data).unwrap().trim().parse().unwrap();
        // It still runs.
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(number), nix::sys::signal::Signal::SIGKILL).unwrap();
    }
}

#[test]
fn a_canceled_job_ends_the_reader_and_all_that_it_started() {
    for reader in ["sleep 1000", "trap '' TERM; sleep 1000 & sleep 1000", "sleep 1000 & exit 0"] {
        let mut host = TestHost::default();
        let mut job = begin(&mut host);
        assert!(open(&mut host, job.as_mut(), &format!("bpipe:/f:{reader}:w")).status >= 0);
        host.cancel_soon();
        let (_, data, last) = read_all(&mut host, job.as_mut());
        assert_eq!((data, last.errno), (Vec::new(), Errno::ECANCELED as i32));
        assert_eq!(job.io(&mut host, Io::Close).unwrap().status, 0);
        assert_eq!(host.said(), []);
    }
}

#[test]
fn a_reader_that_is_not_read_to_its_end_is_ended() {
    let mut host = TestHost::default();
    let mut job = begin(&mut host);
    assert!(open(&mut host, job.as_mut(), "bpipe:/f:exec yes:w").status >= 0);
    job.io(&mut host, Io::Read { buffer: &mut [0; 100] }).unwrap();
    assert_eq!(job.io(&mut host, Io::Close).unwrap().status, 0);
    assert_eq!(host.said(), []);
    // So is one whose job just ends.
    let folder = folder("ends");
    let number = folder.join("number");
    let reader = format!("bpipe:/f:echo $$ > {}; exec cat /dev/zero:w", number.display());
    open(&mut host, job.as_mut(), &reader);
    job.io(&mut host, Io::Read { buffer: &mut [0; 100] }).unwrap();
    job.end(&mut host).unwrap();
    let number: i32 = fs::read_to_string(number).unwrap().trim().parse().unwrap();
    assert!(nix::sys::signal::kill(nix::unistd::Pid::from_raw(number), None).is_err());
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn readers_at_the_same_time_get_no_descriptor_of_each_other() {
    // The standard ones, that of the folder, and what the tests were started with.
    let mut alone = std::process::Command::new("/bin/sh");
    let alone = alone.args(["-c", "ls /proc/self/fd"]).stdin(std::process::Stdio::null()).output().unwrap().stdout;
    let threads: Vec<_> = (0..20)
        .map(|_| {
            std::thread::spawn(|| {
                let mut host = TestHost::default();
                let (data, closed) = save(&mut host, "ls /proc/self/fd; head -c 200000 /dev/zero");
                (data[..data.len() - 200_000].to_vec(), closed)
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), (alone.clone(), 0));
    }
}

#[test]
fn a_writer_gets_the_data_the_place_and_the_replace_mode() {
    let folder = folder("writer");
    let place = folder.to_str().unwrap();
    let mut host = TestHost::default();
    let big = vec![b'x'; 3_000_000];
    let command = "bpipe:/f:r:cat > %w/out.%r; echo wrote %%; echo too >&2";
    let (written, closed) = restore(&mut host, command, Some(place), &[b"one", &big, b""]);
    assert_eq!(written.iter().map(|done| done.status).collect::<Vec<_>>(), [3, 3_000_000, 0]);
    assert_eq!(closed, IoDone::bytes(0));
    assert_eq!(fs::read(folder.join("out.a")).unwrap(), [b"one".as_slice(), &big].concat());
    let said: String = host.messages.iter().map(|(_, text)| text.replace("/f: ", "")).collect();
    assert_eq!(said, "wrote %\ntoo\n");
    // Without a place, as with `regexwhere`.
    let mut host = TestHost::default();
    let command = "bpipe:/f:r:cat; echo \"<%w>\"";
    assert_eq!(restore(&mut host, command, None, &[b"data\n"]).1, IoDone::bytes(0));
    let said: String = host.messages.iter().map(|(_, text)| text.replace("/f: ", "")).collect();
    assert_eq!(said, "data\n<>\n");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_long_where_is_not_cut() {
    let place = format!("/{}", "w".repeat(3000));
    let mut host = TestHost::default();
    assert_eq!(restore(&mut host, "bpipe:/f:r:cat; echo '%w' | wc -c", Some(&place), &[b""]).1, IoDone::bytes(0));
    assert_eq!(host.said(), [(MessageType::Info, "/f: 3002\n")]);
}

#[test]
fn a_writer_that_fails_is_told() {
    let mut host = TestHost::default();
    let (_, closed) = restore(&mut host, "bpipe:/f:r:cat > /dev/null; exit 3", None, &[b"x"]);
    assert_eq!(closed.status, 268_435_459);
    assert_eq!(host.said(), [(MessageType::Error, "bpipe-fd: Error closing for file /f: 268435459\n")]);
    let mut host = TestHost::default();
    let big = vec![0; 3_000_000];
    let (written, _) = restore(&mut host, "bpipe:/f:r:exec <&-; sleep 0.1", None, &[&big]);
    assert_eq!((written[0].status, written[0].errno), (-1, Errno::EPIPE as i32));
    assert_eq!(host.said(), [(MessageType::Fatal, "Pipe write error: ERR=Broken pipe\n")]);
}

#[test]
fn a_writer_that_talks_while_it_is_fed_does_not_stop() {
    let mut host = TestHost::default();
    let big = vec![b'e'; 2_000_000];
    assert_eq!(restore(&mut host, "bpipe:/f:r:cat", None, &[&big]).1, IoDone::bytes(0));
    let letters: usize = host.messages.iter().map(|(_, text)| text.matches('e').count()).sum();
    assert_eq!(letters, 2_000_000);
}

#[test]
fn a_canceled_job_ends_the_writer() {
    let mut host = TestHost::default();
    let big = vec![0; 3_000_000];
    let (written, closed) = restore_with(&mut host, "bpipe:/f:r:sleep 1000", None, &[&big], TestHost::cancel_soon);
    assert_eq!((written[0].errno, closed.status), (Errno::ECANCELED as i32, 0));
    assert_eq!(host.said(), []);
}

#[test]
fn a_user_s_restore_command_replaces_the_writer_of_its_command_only() {
    let folder = folder("user");
    let mut host = TestHost::default();
    let mut job = begin(&mut host);
    let command = b"bpipe:/f:r:cat > /dev/null".as_slice();
    let object = SavedObject {
        name: b"RestoreOptions".to_vec(),
        data: format!("# x\nrestore_command=\"cat > {}/user.%r\"\n\n", folder.display()).into_bytes(),
        command: command.to_vec(),
        object_type: 28,
        ..SavedObject::default()
    };
    // What a backup has saved is no order, whatever its name.
    let saved = SavedObject { object_type: 25, ..object.clone() };
    assert_eq!(job.event(&mut host, &Event::RestoreObject(Some(&saved))), Ok(Status::Ok));
    assert_eq!((host.said(), job.program_of_volume(command)), (vec![], Some(b"cat > /dev/null".to_vec())));
    assert_eq!(job.event(&mut host, &Event::RestoreObject(Some(&object))), Ok(Status::Ok));
    assert_eq!(job.program_of_volume(command), None);
    assert_eq!(job.event(&mut host, &Event::RestoreObject(None)), Ok(Status::Ok));
    let text = format!("Using user supplied restore command: \"cat > {}/user.%r\"\n", folder.display());
    assert_eq!(host.said(), [(MessageType::Info, text.as_str())]);
    for (command, exists) in [(b"bpipe:/g:r:cat > /dev/null".as_slice(), false), (command, true)] {
        assert_eq!(job.event(&mut host, &Event::RestoreCommand(command)), Ok(Status::Ok));
        job.create_file(&mut host, &RestoreFile { replace: b'n', ..RestoreFile::default() }).unwrap();
        job.io(&mut host, Io::Open { name: b"", flags: 0o1101, mode: 0o600 }).unwrap();
        job.io(&mut host, Io::Write { data: b"x" }).unwrap();
        job.io(&mut host, Io::Close).unwrap();
        assert_eq!(folder.join("user.n").exists(), exists);
    }
    for (data, text) in [
        (b"nonsense=1\n".as_slice(), "Unable to parse the User supplied restore options\n"),
        (b"# empty\n", "User supplied restore options are not valid\n"),
    ] {
        let mut host = TestHost::default();
        let object = SavedObject { data: data.to_vec(), ..object.clone() };
        assert_eq!(job.event(&mut host, &Event::RestoreObject(Some(&object))), Ok(Status::Error));
        assert_eq!(host.said(), [(MessageType::Fatal, text)]);
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_program_that_is_not_allowed_is_not_started() {
    let folder = folder("allowed");
    let host = || TestHost {
        facts: Facts { allowed: vec![folder.as_os_str().as_bytes().to_vec()], ..Facts::default() },
        ..TestHost::default()
    };
    let place = folder.display();
    for (reader, number) in
        [("id".to_owned(), 67_108_865), (format!("{place}/x | id"), 67_108_866), (format!("{place}/x"), 2)]
    {
        let mut host = host();
        let mut job = begin(&mut host);
        let opened = open(&mut host, job.as_mut(), &format!("bpipe:/f:{reader}:w"));
        assert_eq!((opened.status, opened.errno), (-1, number));
        let words =
            if number == 2 { "No such file or directory".to_owned() } else { format!("Unknown error {number}") };
        assert_eq!(
            host.said(),
            [(MessageType::Fatal, format!("Open pipe reader={reader} failed: ERR={words}\n").as_str())]
        );
    }
    let mut host = host();
    assert_eq!(restore(&mut host, "bpipe:/f:r:cat >%w/x", Some("/tmp"), &[]).1.errno, 67_108_865);
    assert_eq!(
        host.said(),
        [(MessageType::Fatal, "Open pipe writer=cat >/tmp/x failed: ERR=Unknown error 67108865\n")]
    );
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn calls_without_a_program_are_refused() {
    let mut host = TestHost::default();
    let mut job = begin(&mut host);
    assert_eq!(open(&mut host, job.as_mut(), "bpipe:/f::w").errno, 2);
    for io in [Io::Read { buffer: &mut [0] }, Io::Write { data: b"x" }, Io::Close] {
        assert_eq!(job.io(&mut host, io).unwrap().status, -1);
    }
    let texts: Vec<_> = host.said().into_iter().map(|(_, text)| text.to_owned()).collect();
    assert_eq!(
        texts,
        [
            "Open pipe reader= failed: ERR=No such file or directory\n",
            "Logic error: NULL read FD\n",
            "Logic error: NULL write FD\n",
            "Logic error: NULL FD on bpipe close\n"
        ]
    );
}

#[test]
fn a_writer_takes_no_part_of_its_data_for_all_of_it() {
    let folder = folder("given-up");
    let (script, done) = (folder.join("writer"), folder.join("done"));
    fs::write(&script, format!("trap '' TERM; cat >/dev/null; touch {}\n", done.display())).unwrap();
    let command = format!("bpipe:/f:r:/bin/sh {}", script.display());
    for (ending, is_done) in [("given up", false), ("canceled", false), ("whole", true)] {
        let mut host = TestHost::default();
        let mut job = begin(&mut host);
        assert_eq!(job.event(&mut host, &Event::RestoreCommand(command.as_bytes())), Ok(Status::Ok));
        assert_eq!(job.create_file(&mut host, &RestoreFile::default()), Ok((Status::Ok, CreateStatus::Extract)));
        assert!(job.io(&mut host, Io::Open { name: b"/f", flags: 0o1101, mode: 0o600 }).unwrap().status >= 0);
        assert_eq!(job.io(&mut host, Io::Write { data: b"half" }).unwrap(), IoDone::bytes(4));
        host.facts.canceled.store(ending == "canceled", Ordering::Relaxed);
        let closed = if ending == "given up" { job.give_up(&mut host) } else { job.io(&mut host, Io::Close) };
        assert_eq!(closed, Ok(IoDone::bytes(0)), "{ending}");
        assert_eq!(done.exists(), is_done, "{ending}");
    }
    fs::remove_dir_all(folder).unwrap();
}
