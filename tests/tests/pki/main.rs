//! Encrypted and signed backups (reference 04 §12, 05 §11): what one daemon encrypts the other
//! decrypts, whatever the cipher, the digest, the compression; volumes hold the same once they are
//! decrypted; damage and wrong keys cause a message.
//!
//! With `FD_UNDER_TEST=stock` a second stock daemon takes its place.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what helps a test fails the test, like the test itself"
)]

mod volume;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use bed::{
    Bed, BedOptions, ClientOptions, Fd, FileSet, JobResult, JobRow, Keys, RecordRules, Restore, Result, Times,
    TreeOptions, TreeRules, below, build_every_type, build_many_files, compare_records, compare_trees, set_fixed_times,
    verify_job,
};
use volume::{Content, Item};

const CIPHERS: [&str; 3] = ["aes128", "aes192", "aes256"];
const DIGESTS: [&str; 3] = ["md5", "sha1", "sha256"];
/// Compression and holes; Debian's stock daemon has no ZSTD and stores plain data instead.
const FILE_SETS: [(&str, &[&str]); 8] = [
    ("plain", &["Signature = MD5"]),
    ("gzip", &["Signature = SHA256", "Compression = GZIP6"]),
    ("lzo", &["Signature = SHA1", "Compression = LZO"]),
    ("zstd", &["Signature = MD5", "Compression = ZSTD"]),
    ("sparse", &["Signature = SHA256", "Sparse = yes"]),
    ("sparse-gzip", &["Sparse = yes", "Compression = GZIP1"]),
    ("sparse-lzo", &["Signature = MD5", "Sparse = yes", "Compression = LZO"]),
    ("sparse-zstd", &["Sparse = yes", "Compression = ZSTD"]),
];

/// A client whose data is encrypted for `keys` and for the masters.
fn client(fd: Fd, name: &str, keys: &Keys, masters: &[&Keys], more: &[&str]) -> ClientOptions {
    let mut client = ClientOptions::new(fd).named(name);
    let file = |directive: &str, path: &Path| format!("{directive} = \"{}\"", path.display());
    client.file_daemon = vec![file("PKI Keypair", &keys.pair)];
    client.file_daemon.extend(masters.iter().map(|master| file("PKI Master Key", &master.certificate)));
    client.file_daemon.extend(more.iter().map(|&line| line.to_owned()));
    if fd == Fd::Stock {
        // Backup jobs that begin at the same moment share the stock daemon's place in its list of
        // master keys: session records then lack recipients, or name some twice (5 of 180 jobs with
        // 8 master keys on two processors, none of 180 one after the other). Such a client runs one
        // backup at a time.
        client.job.push("Maximum Concurrent Jobs = 1".to_owned());
    }
    client
}

fn file_sets(source: &Path) -> Vec<FileSet> {
    let metadata = ["AclSupport = yes", "XattrSupport = yes"];
    let set = |(name, options): &(&str, &[&str])| FileSet::new(name, &[options, &metadata[..]].concat(), &[source]);
    FILE_SETS.iter().map(set).collect()
}

/// Which ciphers go with which digests: each once, or with `PKI_ALL=1` all with all.
fn combinations() -> Vec<Combination> {
    let all = std::env::var_os("PKI_ALL").is_some();
    let pairs = CIPHERS.iter().enumerate().flat_map(|(row, cipher)| {
        DIGESTS
            .iter()
            .enumerate()
            .filter(move |(column, _)| all || row == *column)
            .map(|(_, digest)| (*cipher, *digest))
    });
    pairs.map(|(cipher, digest)| (format!("{cipher}-{digest}"), cipher, digest)).collect()
}

/// Small, but with every type of file, and with files that take several records.
fn tree(options: &BedOptions) -> Result<PathBuf> {
    let source = options.source()?;
    build_every_type(&source, &TreeOptions { longest_path: 1000, large_file: 700_003 })?;
    set_fixed_times(&source)?;
    Ok(source)
}

/// The daemons to be compared, and the names of their clients for a combination.
fn sides(fd: Fd, combination: &str) -> [(Fd, String); 2] {
    [(Fd::Stock, format!("reference-{combination}")), (fd, format!("test-{combination}"))]
}

fn good(bed: &Bed, jobs: Vec<u32>) -> Result<Vec<JobRow>> {
    jobs.into_iter().map(|job| Ok(bed.wait(job)?.must_be_good()?.row)).collect()
}

/// The items of a job's volume, sealed data opened.
fn items(bed: &Bed, row: &JobRow, client: &str, keys: &Keys) -> Result<(Vec<Item>, usize)> {
    Ok(volume::open(bed.records(row, client)?, &keys.id, &keys.key))
}

type Combination = (String, &'static str, &'static str);

/// Queues every backup by both daemons at once: most of a small job's time is waiting.
fn queue_all(bed: &Bed, fd: Fd, combinations: &[Combination]) -> Result<Vec<u32>> {
    let mut queued = Vec::new();
    for (name, ..) in combinations {
        for (set, _) in FILE_SETS {
            for (_, client) in sides(fd, name) {
                queued.push(bed.queue(&format!("run job=backup-{client} fileset={set} yes"))?);
            }
        }
    }
    Ok(queued)
}

/// Waits for the restores, and compares what they made with what was saved.
fn check_restores(bed: &Bed, source: &Path, restores: Vec<(String, u32, PathBuf)>) -> Result<()> {
    for (what, job, to) in restores {
        bed.wait(job)?.must_be_good()?;
        let differences = compare_trees(source, &below(&to, source), TreeRules::restored())?;
        assert_eq!(differences, Vec::<String>::new(), "{what}: {}", to.display());
        fs::remove_dir_all(&to).unwrap();
    }
    Ok(())
}

#[test]
fn what_one_daemon_encrypts_the_other_decrypts() -> Result<()> {
    let fd = Fd::under_test()?;
    let mut options = BedOptions::new("pki", [])?;
    let folder = options.folder.make("keys")?;
    let [own, master] = ["own", "master"].map(|name| Keys::make(&folder, name).unwrap());
    let combinations = combinations();
    for (name, cipher, digest) in &combinations {
        let (cipher, digest) = (format!("PKI Cipher = {cipher}"), format!("PKI Digest = {digest}"));
        for (fd, name) in sides(fd, name) {
            options.clients.push(client(fd, &name, &own, &[&master], &["PKI Encryption = yes", &cipher, &digest]));
        }
    }
    let source = tree(&options)?;
    options.file_sets = file_sets(&source);
    let bed = Bed::start(options)?;
    for (name, cipher, digest) in &combinations {
        for (_, client) in sides(fd, name) {
            let header = bed.console(&[&format!(".status client={client}-fd header")])?;
            let told = [("pkicipher", cipher), ("pkidigest", digest)];
            for line in told.map(|(key, value)| format!("{key}={}\n", value.to_lowercase())) {
                assert!(header.contains(&line), "{client}: no {line} in {header}");
            }
        }
    }

    let mut rows = good(&bed, queue_all(&bed, fd, &combinations)?)?.into_iter();
    let mut restores = Vec::new();
    for (name, ..) in &combinations {
        for (set, _) in FILE_SETS {
            let [reference, test] = sides(fd, name).map(|(_, client)| client);
            let what = format!("{name} {set}");
            let (left, right) = (rows.next().unwrap(), rows.next().unwrap());
            let zstd = set.contains("zstd");
            if !zstd || fd == Fd::Stock {
                compare(&what, items(&bed, &left, &reference, &own)?, items(&bed, &right, &test, &own)?, fd);
                assert_eq!(
                    bed.catalog().files(left.id)?,
                    bed.catalog().files(right.id)?,
                    "{what}: rows of the catalog"
                );
            }
            // The stock daemon of Debian can't undo ZSTD.
            let onto_reference = if zstd { None } else { Some((&right, &test, &reference)) };
            for (row, from, onto) in [Some((&left, &reference, &test)), onto_reference].into_iter().flatten() {
                let to = bed.folder().join(format!("restored/{}", row.id));
                let restore = Restore { job: row.id, from, onto, to: &to, replace: "always" };
                restores.push((what.clone(), bed.queue_restore(&restore)?, to));
            }
        }
    }
    check_restores(&bed, &source, restores)
}

/// A record that lacks a master key can't be restored when the client's own key is lost.
#[test]
fn jobs_side_by_side_encrypt_for_every_recipient() -> Result<()> {
    const MASTERS: usize = 8;
    const JOBS: usize = 30;
    let fd = Fd::under_test()?;
    skip::when!(fd == Fd::Stock, bed::ONLY_OURS);
    let mut options = BedOptions::new("pki-recipients", [])?;
    let folder = options.folder.make("keys")?;
    let own = Keys::make(&folder, "own")?;
    let masters: Vec<Keys> =
        (0..MASTERS).map(|number| Keys::make(&folder, &format!("master-{number}"))).collect::<Result<_>>()?;
    let masters: Vec<&Keys> = masters.iter().collect();
    options.clients.push(client(fd, "test", &own, &masters, &["PKI Encryption = yes"]));
    fs::write(options.source()?.join("file"), "content\n").unwrap();
    let bed = Bed::start(options)?;

    let jobs = bed.run_all(&vec!["run job=backup-test yes".to_owned(); JOBS])?;
    let configured: BTreeSet<&[u8]> = masters.iter().chain([&&own]).map(|keys| keys.id.as_slice()).collect();
    assert_eq!(configured.len(), MASTERS + 1);
    for job in jobs {
        let row = bed.result(job)?.must_be_good()?.row;
        let (items, _) = items(&bed, &row, "test", &own)?;
        let mut sessions = 0;
        for item in &items {
            if let Content::Session { recipients, .. } = &item.content {
                sessions += 1;
                assert_eq!(recipients.len(), configured.len(), "job {}", row.id);
                assert_eq!(recipients.iter().map(Vec::as_slice).collect::<BTreeSet<_>>(), configured, "job {}", row.id);
            }
        }
        assert_eq!(sessions, 1, "job {}", row.id);
    }
    Ok(())
}

/// Two volumes hold the same; the stock daemon uses one initialisation vector for all files, ours
/// one for each.
fn compare(what: &str, left: (Vec<Item>, usize), right: (Vec<Item>, usize), fd: Fd) {
    let ((left, left_vectors), (right, right_vectors)) = (left, right);
    let sessions = left.iter().filter(|item| item.stream == volume::SESSION).count();
    assert!(sessions > 10, "{what}: {sessions} encrypted files");
    assert!(left.iter().any(|item| item.stream == volume::SIGNATURE), "{what}: no signature");
    let encrypted = |item: &&Item| matches!(&item.content, Content::Data { blocks, .. } if blocks.len() > 1);
    assert!(left.iter().any(|item| encrypted(&item)), "{what}: no encrypted file of several blocks");
    let unequal = left.iter().zip(&right).find(|(one, other)| one != other);
    assert!(unequal.is_none(), "{what}: the stock daemon has, and the other: {unequal:?}");
    assert_eq!(left.len(), right.len(), "{what}");
    assert_eq!((left_vectors, right_vectors), (1, if fd == Fd::Ours { sessions } else { 1 }), "{what}: vectors");
}

/// Restores a job somewhere of its own.
fn restore_onto(bed: &Bed, job: u32, from: &str, onto: &str) -> Result<(JobResult, PathBuf)> {
    let to = bed.folder().join(format!("restored/{onto}-{job}"));
    let result = bed.restore(&Restore { job, from, onto, to: &to, replace: "always" })?;
    Ok((result, to))
}

/// The texts of a restore's messages, without the lines that OpenSSL words differently in each
/// version, and how often each came.
fn told(result: &JobResult, client: &str, to: &Path) -> BTreeMap<String, usize> {
    let mut told = BTreeMap::new();
    for line in result.messages_of(&format!("{client}-fd")) {
        let line = line.replace(&*to.to_string_lossy(), "TO");
        if !line.contains("openssl.c:108") && !line.contains("Connected to Storage") {
            *told.entry(line).or_insert(0) += 1;
        }
    }
    told
}

#[test]
fn encrypted_data_is_restored_with_the_right_keys_only() -> Result<()> {
    let fd = Fd::under_test()?;
    let mut options = BedOptions::new("pki-keys", [])?;
    let folder = options.folder.make("keys")?;
    let [own, master, stranger] = ["own", "master", "stranger"].map(|name| Keys::make(&folder, name).unwrap());
    let encrypting: &[&str] = &["PKI Encryption = yes"];
    let signer = format!("PKI Signer = \"{}\"", own.certificate.display());
    for (fd, side) in [(Fd::Stock, "reference"), (fd, "test")] {
        let mut add = |name: &str, keys: &Keys, masters: &[&Keys], more: &[&str]| {
            options.clients.push(client(fd, &format!("{side}-{name}"), keys, masters, more));
        };
        add("own", &own, &[&master], encrypting);
        add("signing", &own, &[], &["PKI Signatures = yes"]);
        add("master", &master, &[], &["PKI Encryption = yes", &signer]);
        add("stranger", &stranger, &[], encrypting);
        options.clients.push(ClientOptions::new(fd).named(&format!("{side}-none")));
    }
    let source = options.source()?;
    for (name, content) in [("one", "the first file\n"), ("empty", ""), ("three", "the third one\n")] {
        fs::write(source.join(name), content).unwrap();
    }
    set_fixed_times(&source)?;
    let bed = Bed::start(options)?;
    let backup = |client: &str| bed.backup(client, "")?.must_be_good();
    let cases = [
        // The client that saved, and the client that restores.
        ("own", "own"),
        ("own", "master"),
        ("own", "stranger"),
        ("own", "none"),
        ("signing", "signing"),
        ("signing", "none"),
        ("none", "signing"),
        ("none", "own"),
    ];
    for saved in ["own", "signing", "none"] {
        let rows = [backup(&format!("reference-{saved}"))?.row, backup(&format!("test-{saved}"))?.row];
        for (_, onto) in cases.iter().filter(|(from, _)| *from == saved) {
            // Each restores what the stock daemon has saved.
            let (by_reference, one) =
                restore_onto(&bed, rows[0].id, &format!("reference-{saved}"), &format!("reference-{onto}"))?;
            let (by_test, other) =
                restore_onto(&bed, rows[0].id, &format!("reference-{saved}"), &format!("test-{onto}"))?;
            let what = format!("{saved} restored by {onto}");
            assert_eq!(
                told(&by_reference, &format!("reference-{onto}"), &one),
                told(&by_test, &format!("test-{onto}"), &other),
                "{what}\n{}\n{}",
                by_reference.log,
                by_test.log
            );
            assert_eq!(by_reference.row.status, by_test.row.status, "{what}\n{}\n{}", by_reference.log, by_test.log);
            let (one, other) = (below(&one, &source), below(&other, &source));
            if fs::exists(&one).unwrap() {
                // What was given up has the times of the restore. The stock daemon reads what it
                // has restored once more to check a signature, which changes the access times.
                let times = if by_test.row.status == 'T' { Times::Seconds } else { Times::Ignored };
                let rules = TreeRules { times, access_times: false, ..TreeRules::restored() };
                let mut found = compare_trees(&one, &other, rules)?;
                if fd == Fd::Ours {
                    // What was given up stays marked as not complete (docs/differences.md).
                    found.retain(|text| !text.ends_with(": mode 0600 against 1600"));
                }
                assert_eq!(found, Vec::<String>::new(), "{what}");
            }
        }
    }
    Ok(())
}

/// On a host that takes the place of one that is gone, beside its own key.
#[test]
fn the_private_key_of_a_signer_decrypts_with_ours_only() -> Result<()> {
    let fd = Fd::under_test()?;
    let mut options = BedOptions::new("pki-heir", [])?;
    let folder = options.folder.make("keys")?;
    let [gone, heir] = ["gone", "heir"].map(|name| Keys::make(&folder, name).unwrap());
    let signer = format!("PKI Signer = \"{}\"", gone.pair.display());
    let encrypting = "PKI Encryption = yes";
    options.clients =
        vec![client(fd, "gone", &gone, &[], &[encrypting]), client(fd, "heir", &heir, &[], &[encrypting, &signer])];
    fs::write(options.source()?.join("file"), "its data\n").unwrap();
    let bed = Bed::start(options)?;
    let job = bed.backup("gone", "")?.must_be_good()?.row.id;
    let (restored, _) = restore_onto(&bed, job, "gone", "heir")?;
    let expected = if fd == Fd::Ours { 'T' } else { 'E' };
    assert_eq!(restored.row.status, expected, "{}", restored.log);
    Ok(())
}

/// A renewal gone wrong: the first certificate of the file is new, the first key old. The stock
/// daemon says nothing until a restore fails.
#[test]
fn keys_that_do_not_belong_together_are_an_error_of_each_backup() -> Result<()> {
    let fd = Fd::under_test()?;
    let mut options = BedOptions::new("pki-two-pairs", [])?;
    let folder = options.folder.make("keys")?;
    let [mut new, old] = ["new", "old"].map(|name| Keys::make(&folder, name).unwrap());
    let both = [&new.certificate, &old.pair].map(|path| fs::read(path).unwrap()).concat();
    new.pair = folder.join("both.pem");
    fs::write(&new.pair, both).unwrap();
    options.clients = vec![client(fd, "renewed", &new, &[], &["PKI Encryption = yes"])];
    fs::write(options.source()?.join("file"), "its data\n").unwrap();
    let bed = Bed::start(options)?;
    let job = bed.backup("renewed", "")?.must_be('T')?;
    let is_told = job.log.contains("in the file of PKI Keypair do not belong together");
    assert_eq!((is_told, job.row.errors), if fd == Fd::Ours { (true, 1) } else { (false, 0) }, "{}", job.log);
    Ok(())
}

/// Encrypted data has no addresses: no block of zeros is left out of it, nor of what an accurate
/// job compares with it later. The stock daemon saves every second of these files again.
#[test]
fn an_encrypted_file_of_zeros_is_no_difference_with_the_real_storage_daemon() -> Result<()> {
    let fd = Fd::under_test()?;
    let mut options = BedOptions::new("pki-zeros", [])?;
    let own = Keys::make(&options.folder.make("keys")?, "own")?;
    for (fd, name) in [(Fd::Stock, "reference"), (fd, "test")] {
        let mut client = client(fd, name, &own, &[], &["PKI Encryption = yes"]);
        client.job.push("Accurate = yes".to_owned());
        options.clients.push(client);
    }
    let source = options.source()?;
    fs::write(source.join("zeros"), vec![0; 1_000_000]).unwrap();
    fs::write(source.join("between"), [vec![1; 70_000], vec![0; 200_000], vec![2; 300]].concat()).unwrap();
    set_fixed_times(&source)?;
    let compared = ["Signature = MD5", "Sparse = yes", "Accurate = pins5", "Verify = pins5"];
    options.file_sets = vec![FileSet::new("Source", &compared, &[&source])];
    options.director_resources = ["reference", "test"].map(|client| verify_job(client, "Source", "")).to_vec();
    let bed = Bed::start(options)?;
    let jobs = |client: &str| -> Result<_> {
        let full = bed.backup(client, "level=Full")?.must_be_good()?;
        let unchanged = bed.backup(client, "level=Incremental")?.must_be_good()?;
        let verified = bed.run(&format!("run job=verify-{client} level=DiskToCatalog jobid={} yes", full.row.id))?;
        let said = verified.messages_of(&format!("{client}-fd"));
        Ok(([full, unchanged].map(|job| (job.row.files, job.row.bytes)), verified.row.status, said))
    };
    let ([full, again], verified, said) = jobs("reference")?;
    let test = jobs("test")?;
    assert_eq!(test.0[0], full);
    // A Verify job of the stock daemon's leaves them out, too. What differs is no fault of the
    // disk.
    assert_eq!((verified, test.1), ('D', if fd == Fd::Ours { 'T' } else { 'D' }), "{said:?} {:?}", test.2);
    assert_eq!(again.0, 1);
    assert_eq!(test.0[1], if fd == Fd::Ours { (0, 0) } else { again });
    Ok(())
}

/// The stock daemon checks such a signature against the whole file, holes included, and refuses it.
#[test]
fn a_signature_of_a_file_with_holes_is_good() -> Result<()> {
    let fd = Fd::under_test()?;
    let mut options = BedOptions::new("pki-holes", [])?;
    let folder = options.folder.make("keys")?;
    let own = Keys::make(&folder, "own")?;
    for (fd, name) in [(Fd::Stock, "reference"), (fd, "test")] {
        options.clients.push(client(fd, name, &own, &[], &["PKI Signatures = yes"]));
    }
    let source = options.source()?;
    let file = fs::File::create(source.join("holes")).unwrap();
    file.set_len(1_000_000).unwrap();
    drop(file);
    set_fixed_times(&source)?;
    options.file_sets = vec![FileSet::new("Source", &["Signature = MD5", "Sparse = yes"], &[&source])];
    let bed = Bed::start(options)?;
    for saved in ["reference", "test"] {
        let row = bed.backup(saved, "")?.must_be_good()?.row;
        for onto in ["reference", "test"] {
            let (result, _) = restore_onto(&bed, row.id, saved, onto)?;
            let refused = result.log.contains("Signature validation failed for file ");
            let by_stock = onto == "reference" || fd == Fd::Stock;
            assert_eq!(refused, by_stock, "{saved} by {onto}: {}", result.log);
        }
    }
    Ok(())
}

/// Only the end of the records says that no more of it comes.
#[test]
fn an_encrypted_file_that_is_restored_alone_is_whole_without_a_digest() -> Result<()> {
    let fd = Fd::under_test()?;
    let mut options = BedOptions::new("pki-alone", [])?;
    let folder = options.folder.make("keys")?;
    let own = Keys::make(&folder, "own")?;
    for (fd, name) in [(Fd::Stock, "reference"), (fd, "test")] {
        options.clients.push(client(fd, name, &own, &[], &["PKI Signatures = yes", "PKI Encryption = yes"]));
    }
    let file = options.source()?.join("alone");
    fs::write(&file, "content\n").unwrap();
    options.file_sets = vec![FileSet::new("Source", &[], &[&file])];
    let bed = Bed::start(options)?;
    for saved in ["reference", "test"] {
        let row = bed.backup(saved, "")?.must_be_good()?.row;
        for onto in ["reference", "test"] {
            let (result, to) = restore_onto(&bed, row.id, saved, onto)?;
            let content = fs::read_to_string(below(&to, &file)).unwrap();
            assert_eq!((result.row.status, content.as_str()), ('T', "content\n"), "{saved} by {onto}: {}", result.log);
        }
    }
    Ok(())
}

/// Ours keeps signatures in its working directory; whatever becomes of that file, the volume is
/// that of the stock daemon, which signs everything each time.
#[test]
fn signatures_of_an_earlier_backup_change_nothing_on_the_volume() -> Result<()> {
    const FILES: usize = 300;
    let fd = Fd::under_test()?;
    let mut options = BedOptions::new("pki-kept", [])?;
    let folder = options.folder.make("keys")?;
    let own = Keys::make(&folder, "own")?;
    for (fd, name) in [(Fd::Stock, "reference"), (fd, "test")] {
        options.clients.push(client(fd, name, &own, &[], &["PKI Signatures = yes"]));
    }
    options.clients[1].settings.push("log.level = \"debug\"".to_owned());
    let source = options.source()?;
    build_many_files(&source, 1, FILES, 4000)?;
    set_fixed_times(&source)?;
    options.file_sets = vec![FileSet::new("Source", &["Signature = MD5"], &[&source])];
    let mut bed = Bed::start(options)?;
    let port = bed.client("test")?.port();
    let kept = bed.folder().join(format!("work/test/bacula-fd.{port}.signatures"));
    // How many signatures each of our jobs has found and made, in the daemon's own words.
    let mut counts = Vec::new();
    for round in ["first", "changed", "damaged"] {
        match round {
            "changed" => {
                bed.client("test")?.daemon().stop()?;
                bed.client("test")?.daemon().start()?;
                let entry = fs::read_dir(source.join("0/0")).unwrap().next().unwrap().unwrap();
                fs::write(entry.path(), "other content").unwrap();
            }
            "damaged" if fd == Fd::Ours => {
                let rubbish = fs::read(&kept).unwrap().iter().map(|byte| byte ^ 0x5a).collect::<Vec<_>>();
                fs::write(&kept, rubbish).unwrap();
            }
            _ => {}
        }
        let jobs = ["reference", "test"].map(|name| bed.queue(&format!("run job=backup-{name} level=Full yes")));
        let [left, right] = jobs.map(|job| bed.wait(job?)?.must_be_good());
        let (left, right) = (bed.records(&left?.row, "reference")?, bed.records(&right?.row, "test")?);
        let comparison = compare_records(left, right, RecordRules::default())?;
        assert!(comparison.is_equal(), "{round}: {}", comparison.text());
        assert!(comparison.records > 3 * FILES as u64, "{round}: {comparison:?}");
        if fd == Fd::Ours {
            assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o7777, 0o600, "{round}");
            let output = bed.client("test")?.daemon().output();
            let words = output.lines().rfind(|line| line.contains("signatures found=")).unwrap();
            let number = |name| words.split_once(name).and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
            counts.push(["found=", "made="].map(number));
        }
    }
    if fd == Fd::Ours {
        assert_eq!(counts, [[0, FILES], [FILES - 1, 1], [0, FILES]].map(|counts| counts.map(Some)));
    }
    Ok(())
}
