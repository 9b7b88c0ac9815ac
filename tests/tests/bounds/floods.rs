//! What a user of the host gives to a file, and what a plugin says, takes little memory of the
//! daemon.

use bed::{
    Bed, BedError, BedOptions, ClientOptions, DIRECTOR, Fd, FileSet, Plugins, Result, build_plugin, mount_memory,
    reset_peak, usage,
};

/// Together 377,000,000 bytes. More names than these no file can have.
const ATTRIBUTES: (usize, usize) = (5_800, 65_000);
/// What a job of a small file takes is far less, and the sum of the attributes far more.
const MOST: u64 = 48 << 20;

#[test]
fn a_file_with_hundreds_of_megabytes_of_attributes_takes_little_memory() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon loses its connection at such a file");
    let mut options = BedOptions::new("attributes", [ClientOptions::new(Fd::Ours).named("test")])?;
    let source = options.source()?;
    mount_memory(&source)?;
    let file = source.join("f");
    std::fs::write(&file, "content").map_err(BedError::file("write", &file))?;
    let value = vec![7; ATTRIBUTES.1];
    let has_all = (0..ATTRIBUTES.0).all(|number| xattr::set(&file, format!("user.{number}"), &value).is_ok());
    skip::when!(!has_all, "no file system here holds so many attributes");
    let lines = ["Signature = MD5", "ACL Support = yes", "XATTR Support = yes"];
    options.file_sets = vec![FileSet::new("Attributes", &lines, &[&source])];
    let mut bed = Bed::start(options)?;
    let pid = bed.client("test")?.pid()?;
    bed.backup("test", "level=Full")?.must_be_good()?;
    reset_peak(pid)?;
    let before = usage(pid)?.peak_memory;
    let job = bed.backup("test", "level=Full")?;
    let taken = usage(pid)?.peak_memory.saturating_sub(before);
    assert!(taken < MOST, "{taken} bytes");
    // Those that fit are saved, and the others are told.
    let saved = bed.records(&job.row, "test")?.filter_map(std::result::Result::ok);
    let saved: usize = saved.filter(|record| record.stream == 1998).map(|record| record.data.len()).sum();
    assert!((900_000..=1_000_000).contains(&saved) && job.log.contains("user."), "{saved}: {}", job.log);
    Ok(())
}

/// Messages of a test plugin within one call, and what each has at least.
const MESSAGES: (u64, u64) = (5_000, 1_900);

#[test]
fn a_plugin_that_says_much_within_a_call_is_waited_for() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon has no bound");
    let mut client = ClientOptions::new(Fd::Ours).named("test");
    // The Director's own log leaves these out.
    client.messages.push(format!("Director = {DIRECTOR} = skipped"));
    let mut options = BedOptions::new("messages", [client])?;
    let plugins = options.folder.make("plugins")?;
    build_plugin("evil", &[], &plugins.join("evil-fd.so"))?;
    options.clients[0].plugins = Plugins::In(plugins);
    let set = |name: &str, how: &str| {
        let plugin = format!("Plugin = \"evil:{how}file=/@evil/{name},size=10\"");
        FileSet::new(name, &["Signature = MD5"], &[]).with(plugin)
    };
    options.file_sets = vec![set("Quiet", ""), set("Flood", "open=flood,")];
    let mut bed = Bed::start(options)?;
    let pid = bed.client("test")?.pid()?;
    bed.backup("test", "level=Full fileset=Quiet")?.must_be_good()?;
    reset_peak(pid)?;
    let before = usage(pid)?.peak_memory;
    let job = bed.backup("test", "level=Full fileset=Flood")?.must_be_good()?;
    let taken = usage(pid)?.peak_memory.saturating_sub(before);
    assert!(taken < MESSAGES.0 * MESSAGES.1 / 2, "{taken} bytes");
    assert_eq!(bed.catalog().log(job.row.id)?.matches("flood ").count() as u64, MESSAGES.0);
    Ok(())
}
