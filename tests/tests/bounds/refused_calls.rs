//! Daemons in which the kernel refuses a young system call, or all of them: an old kernel answers
//! `ENOSYS`, a container runtime that does not know the call answers `EPERM`. Jobs do without them.

use std::fs;
use std::path::PathBuf;

use bed::{
    Bed, BedOptions, ClientOptions, Fd, FileSet, Plugins, RecordRules, Restore, Result, TreeOptions, TreeRules, below,
    build_every_type, build_many_files, build_plugin, compare_records, compare_trees, set_fixed_times,
};
use nix::libc;

/// The calls that came after Linux 3.10 and that the daemon, its libraries or the C library make,
/// or may make some day. `clone3` is left out for `EPERM`: there the C library starts no thread.
/// `getrandom` is left out: without it OpenSSL can't be used, and the stock daemon does not start.
const CALLS: [(&str, i64); 21] = [
    ("cachestat", 451),
    ("clone3", libc::SYS_clone3),
    ("close_range", libc::SYS_close_range),
    ("copy_file_range", libc::SYS_copy_file_range),
    ("epoll_pwait2", libc::SYS_epoll_pwait2),
    ("execveat", libc::SYS_execveat),
    ("faccessat2", libc::SYS_faccessat2),
    ("fchmodat2", libc::SYS_fchmodat2),
    ("memfd_create", libc::SYS_memfd_create),
    ("mlock2", libc::SYS_mlock2),
    ("openat2", libc::SYS_openat2),
    ("pidfd_open", libc::SYS_pidfd_open),
    ("pidfd_send_signal", libc::SYS_pidfd_send_signal),
    ("preadv2", libc::SYS_preadv2),
    ("pwritev2", libc::SYS_pwritev2),
    ("renameat2", libc::SYS_renameat2),
    ("rseq", libc::SYS_rseq),
    ("sched_getattr", libc::SYS_sched_getattr),
    ("sched_setattr", libc::SYS_sched_setattr),
    ("seccomp", libc::SYS_seccomp),
    ("statx", libc::SYS_statx),
];

const CODES: [(&str, i32); 2] = [("enosys", libc::ENOSYS), ("eperm", libc::EPERM)];

/// A client without any call refused, one for each call and code, and one for each code with all
/// calls.
fn clients(fd: Fd) -> Vec<ClientOptions> {
    let client = |name: &str| ClientOptions::new(fd).named(name);
    let mut clients = vec![client("all")];
    for (code, error) in CODES {
        let calls = CALLS.into_iter().filter(|(call, _)| (*call, code) != ("clone3", "eperm"));
        let mut calls: Vec<_> = calls.map(|(call, number)| (call.replace('_', "-"), number.to_string())).collect();
        let all = calls.iter().map(|(_, number)| number.as_str()).collect::<Vec<_>>().join(",");
        calls.push(("any".to_owned(), all));
        for (name, numbers) in calls {
            let mut client = client(&format!("{name}-{code}"));
            let program = env!("CARGO_BIN_EXE_refuse");
            client.wrapper = [program.to_owned(), numbers, error.to_string()].to_vec();
            clients.push(client);
        }
    }
    clients
}

/// A bed of these clients, and what all of them save.
fn raise() -> Result<(Bed, PathBuf, Vec<String>)> {
    let mut options = BedOptions::new("refused", clients(Fd::under_test()?))?;
    let source = options.source()?;
    build_every_type(&source.join("types"), &TreeOptions::default())?;
    build_many_files(&source.join("many"), 2, 100, 4000)?;
    set_fixed_times(&source)?;
    // The host of plugins is a process of its own, with memory that both share.
    let plugins = options.folder.make("plugins")?;
    build_plugin("cnotes", &[], &plugins.join("cnotes-fd.so"))?;
    for client in &mut options.clients {
        client.plugins = Plugins::In(plugins.clone());
    }
    let set = FileSet::new("Source", &["Signature = MD5", "AclSupport = yes", "XattrSupport = yes"], &[&source]);
    options.file_sets = vec![set.with("Plugin = \"cnotes:one=The first note\"")];
    options.device.push("Maximum Concurrent Jobs = 5".to_owned());
    let names = options.clients.iter().map(|client| client.name.clone()).collect();
    Ok((Bed::start(options)?, source, names))
}

/// Has each of them save it; the records are the same. Returns the jobs.
fn save(bed: &Bed, names: &[String]) -> Result<Vec<u32>> {
    let commands: Vec<_> = names.iter().map(|name| format!("run job=backup-{name} level=Full yes")).collect();
    let jobs = bed.run_all(&commands)?;
    let mut whole = None;
    for (name, job) in names.iter().zip(&jobs) {
        let result = bed.result(*job)?.must_be_good()?;
        assert_eq!(result.row.errors, 0, "{name}: {}", result.log);
        let row = result.row;
        let (first, first_name) = whole.get_or_insert_with(|| (row.clone(), name));
        let (first, this) = (bed.records(first, first_name)?, bed.records(&row, name)?);
        let comparison = compare_records(first, this, RecordRules { mask_atime: true })?;
        assert!(comparison.is_equal() && comparison.records > 100, "{name}: {}", comparison.text());
    }
    Ok(jobs)
}

#[test]
fn a_young_system_call_that_is_refused_costs_no_data() -> Result<()> {
    let (bed, source, names) = raise()?;
    let jobs = save(&bed, &names)?;
    let mut restores: Vec<_> = names.iter().zip(jobs).collect();
    // The second time everything is there, and is replaced.
    for _ in 0..2 {
        let command = |(name, job): &(&String, u32)| {
            let to = bed.folder().join(name);
            Restore { job: *job, from: name, onto: name, to: &to, replace: "always" }.command()
        };
        let commands: Vec<_> = restores.iter().map(command).collect();
        for ((name, _), job) in restores.iter().zip(bed.queue_all(&commands)?) {
            let result = bed.wait(job)?.must_be_good()?;
            assert_eq!(result.row.errors, 0, "{name}: {}", result.log);
            let to = bed.folder().join(name);
            let different = compare_trees(&source, &below(&to, &source), TreeRules::restored())?;
            assert_eq!(different, Vec::<String>::new(), "{name}");
            assert_eq!(fs::read(to.join("@notes/one")).ok().as_deref(), Some(&b"The first note"[..]), "{name}");
            // One call at a time need not do it again.
            if !name.starts_with("any-") {
                fs::remove_dir_all(to).map_err(|error| bed::BedError::Usage(error.to_string()))?;
            }
        }
        restores.retain(|(name, _)| name.starts_with("any-"));
    }
    Ok(())
}
