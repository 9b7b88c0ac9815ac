//! The trees of the matrix, and what happens to one of them between the phases.
//!
//! Access times are in the future, so reading does not change them (see the bed's `tree.rs`).

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use bed::{Noise, Result, TreeOptions, argv, build_every_type, in_order_of_names, mount_memory, run, set_fixed_times};
use nix::fcntl::AT_FDCWD;
use nix::mount::MsFlags;
use nix::sys::stat::{Mode, UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::mkfifo;
use walkdir::WalkDir;

use crate::row::Tree;

/// 2035-06-07, for access times.
const ATIME: i64 = 2_064_787_200;
/// 2023-11-14, for modification times.
const MTIME: i64 = 1_700_000_000;

/// Builds all of them.
pub(crate) fn build(source: &Path) -> Result<()> {
    let place = |tree: Tree| source.join(tree.name());
    let types = place(Tree::Types);
    // The same names wherever the tree is.
    let longest_path = types.as_os_str().len() + 1400;
    build_every_type(&types, &TreeOptions { large_file: 150_003, longest_path })?;
    matching(&place(Tree::Match));
    links(&place(Tree::Links));
    levels(&place(Tree::Levels));
    for name in ["a/f", "a/in/g", "ab/h", "o/p/i", "rootf"] {
        write(&place(Tree::Allowed).join(name), name.as_bytes());
    }
    private(&place(Tree::Private));
    walk(&place(Tree::Walk))?;
    let written = place(Tree::Written);
    fs::create_dir_all(&written).unwrap();
    mkfifo(&written.join("fifo"), Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    for tree in ["match", "links", "levels", "walk", "allowed", "private", "written"] {
        fixed_times(&source.join(tree))?;
    }
    set_fixed_times(source)
}

fn write(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// The trees of reference 03 §10.
fn matching(top: &Path) {
    for name in ["src/a.o", "src/a.c", "src/obj/b.o", "doc/R.TXT", "doc/n.txt", "top.o"] {
        write(&top.join(name), name.as_bytes());
    }
    symlink("top.o", top.join("lnk.o")).unwrap();
    for name in ["home/u1/.cache/c", "home/u1/doc.odt", "home/u2/song.MP3", "home/u2/a.mp3", "home/u2/keep.mp3"] {
        write(&top.join(name), name.as_bytes());
    }
    for name in ["two/a/x.tmp", "two/b/x.tmp", "two/b/y", "odd/br[a]ck{e}t", "odd/back\\slash", "odd/star*", "odd/.dot"]
    {
        write(&top.join(name), name.as_bytes());
    }
    write(&top.join("list.dat"), b"");
}

/// Hard links whose names a walk meets in and out of the usual order.
fn links(top: &Path) {
    let link = |from: &str, to: &str| {
        fs::create_dir_all(top.join(to).parent().unwrap()).unwrap();
        fs::hard_link(top.join(from), top.join(to)).unwrap();
    };
    write(&top.join("only/x"), b"first of two\n");
    link("only/x", "other/y");
    write(&top.join("three/a"), &Noise::new(4).text(70_000));
    link("three/a", "three/b");
    link("three/a", "four/c");
    write(&top.join("empty/one"), b"");
    link("empty/one", "empty/two");
    symlink("three/a", top.join("soft-one")).unwrap();
    fs::hard_link(top.join("soft-one"), top.join("soft-two")).unwrap();
    mkfifo(&top.join("fifo-one"), Mode::S_IRUSR).unwrap();
    link("fifo-one", "fifo-two");
}

/// Files and directories that only root may read (reference 03 §11.6).
fn private(top: &Path) {
    for name in ["some/noopen/f", "some/secret", "some/noexec/f", "some/public", "some/deep/er/secret", "linked/one"] {
        write(&top.join(name), name.as_bytes());
    }
    write(&top.join("some/es"), b"");
    fs::hard_link(top.join("linked/one"), top.join("linked/two")).unwrap();
    symlink("noopen/f", top.join("some/link")).unwrap();
    for (name, bits) in [
        ("some/noopen", 0o700),
        ("some/secret", 0o600),
        ("some/noexec", 0o744),
        ("some/es", 0o600),
        ("some/deep/er/secret", 0),
        ("linked/one", 0o600),
    ] {
        mode(&top.join(name), bits);
    }
}

/// Mount points, flags, ignored directories, special files, names from a list.
fn walk(top: &Path) -> Result<()> {
    for name in
        ["x/inside-x", "m/hidden-below", "ignored/.nobackup", "ignored/sub/file", "half/sub/.nobackup", "half/f"]
    {
        write(&top.join(name), name.as_bytes());
    }
    for name in ["nodump-file", "nodump-directory/file", "plain"] {
        write(&top.join(name), &Noise::new(5).text(3000));
    }
    fs::create_dir(top.join("bind")).unwrap();
    symlink("nothing", top.join("half/.ignore-link")).unwrap();
    mkfifo(&top.join("fifo"), Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    let lines = ["plain", "x", "", "no/such/name", "half  "].map(|name| match name {
        "" => String::new(),
        name => top.join(name).display().to_string(),
    });
    // Beside the tree: what names it is of another length in each bed.
    let lists = top.with_file_name("lists");
    write(&lists.join("names"), format!("{}\n", lines.join("\n")).as_bytes());
    write(&lists.join("patterns"), b"*.nobackup\n*/sub\n");
    // Where the file system has no such flag, the rows about it show less.
    run(&argv(["chattr".as_ref(), "+d".as_ref(), top.join("nodump-file").as_os_str()]), b"")?;
    run(&argv(["chattr".as_ref(), "+d".as_ref(), top.join("nodump-directory").as_os_str()]), b"")?;
    Ok(())
}

/// Mounts in the tree what a walk meets there, when everything else has its order.
pub(crate) fn mount(source: &Path) -> Result<()> {
    let top = source.join(Tree::Walk.name());
    let point = top.join("m");
    mount_memory(&point)?;
    write(&point.join("inside"), b"inside\n");
    write(&point.join("sub/deeper"), b"deeper\n");
    in_order_of_names(&point)?;
    fixed_times(&point)?;
    let (from, bind) = (top.join("x"), top.join("bind"));
    nix::mount::mount(Some(&from), &bind, None::<&str>, MsFlags::MS_BIND, None::<&str>).unwrap();
    Ok(())
}

/// What the first phase saves of the tree that changes.
fn levels(top: &Path) {
    let names = [
        "keep",
        "grow",
        "shrink",
        "edit",
        "edit-quietly",
        "touch",
        "touch-back",
        "chmod",
        "chown",
        "atime",
        "renamed/rename-old",
        "replaced/replace",
        "deleted/delete-me",
        "gone/a",
        "gone/b/c",
        "kept/f",
        "kept/deep/g",
        "hard-a",
        "retyped/type-changes",
        "twice",
    ];
    for (number, name) in names.into_iter().enumerate() {
        write(&top.join(name), &Noise::new(number as u64 + 10).text(2000 + number));
    }
    // What is made later comes into a directory of its own: the order of two would be the kernel's.
    for name in ["chmod-directory", "empty-directory", "turned", "made", "made-deep", "made-linked", "made-last"] {
        fs::create_dir(top.join(name)).unwrap();
    }
    write(&top.join("empty"), b"");
    fs::hard_link(top.join("hard-a"), top.join("hard-b")).unwrap();
    symlink("keep", top.join("link-kept")).unwrap();
    symlink("keep", top.join("turned/link-turned")).unwrap();
    mkfifo(&top.join("fifo"), Mode::S_IRUSR).unwrap();
    for number in 0..40 {
        write(&top.join(format!("many/file-{number}")), format!("{number}\n").as_bytes());
    }
}

/// What happens between the phases: `phase` is the one that comes next.
pub(crate) fn change(source: &Path, phase: usize) -> Result<()> {
    let top = source.join(Tree::Levels.name());
    let at = |name: &str| top.join(name);
    if phase == 1 {
        write(&at("grow"), &Noise::new(90).text(9000));
        write(&at("shrink"), b"less");
        write(&at("edit"), &Noise::new(91).text(2003));
        let before = fs::metadata(at("edit-quietly")).unwrap().modified().unwrap();
        write(&at("edit-quietly"), &Noise::new(92).text(2004));
        fs::File::open(at("edit-quietly")).unwrap().set_modified(before).unwrap();
        set_times(&at("touch"), ATIME, Some(MTIME + 500))?;
        set_times(&at("touch-back"), ATIME, Some(MTIME - 500_000_000))?;
        set_times(&at("atime"), ATIME + 7, None)?;
        mode(&at("chmod"), 0o600);
        mode(&at("chmod-directory"), 0o700);
        std::os::unix::fs::chown(at("chown"), Some(7), Some(8)).unwrap();
        fs::rename(at("renamed/rename-old"), at("renamed/rename-new")).unwrap();
        fs::remove_file(at("replaced/replace")).unwrap();
        write(&at("replaced/replace"), &Noise::new(20).text(2010));
        fs::remove_file(at("deleted/delete-me")).unwrap();
        fs::remove_dir_all(at("gone")).unwrap();
        fs::remove_file(at("retyped/type-changes")).unwrap();
        symlink("keep", at("retyped/type-changes")).unwrap();
        fs::remove_file(at("turned/link-turned")).unwrap();
        symlink("grow", at("turned/link-turned")).unwrap();
        // The name that a walk meets last: without the first one the stock daemon loses the other.
        fs::remove_file(at("hard-b")).unwrap();
        write(&at("made/new"), b"new\n");
        write(&at("made-deep/fresh/file"), b"fresh\n");
        fs::hard_link(at("made/new"), at("made-linked/new-too")).unwrap();
        for number in 0..10 {
            fs::remove_file(at(&format!("many/file-{}", number * 3))).unwrap();
        }
        write(&at("twice"), b"once\n");
        for name in [
            "made/new",
            "replaced/replace",
            "retyped/type-changes",
            "turned/link-turned",
            "made-deep/fresh/file",
            "made-deep/fresh",
        ] {
            set_times(&at(name), ATIME, None)?;
        }
    } else {
        write(&at("twice"), b"twice\n");
        fs::remove_file(at("made/new")).unwrap();
        write(&at("made-last/second"), b"second\n");
        set_times(&at("made-last/second"), ATIME, None)?;
        mode(&at("keep"), 0o640);
        write(&at("deleted/delete-me"), b"back again\n");
        set_times(&at("deleted/delete-me"), ATIME, None)?;
        fs::remove_dir_all(at("many")).unwrap();
    }
    Ok(())
}

fn mode(path: &Path, bits: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
}

/// Gives everything below a directory, and the directory, times that do not depend on the clock.
fn fixed_times(top: &Path) -> Result<()> {
    for entry in WalkDir::new(top).contents_first(true) {
        let entry = entry.unwrap();
        let name = entry.path().strip_prefix(top).unwrap().as_os_str().len();
        let more = if entry.file_type().is_dir() { 0 } else { i64::try_from(name).unwrap() };
        set_times(entry.path(), ATIME, Some(MTIME + more))?;
    }
    Ok(())
}

/// Seconds; without `mtime` that one stays.
fn set_times(path: &Path, atime: i64, mtime: Option<i64>) -> Result<()> {
    let mtime = mtime.map_or(TimeSpec::UTIME_OMIT, |seconds| TimeSpec::new(seconds, 123_456_789));
    utimensat(AT_FDCWD, path, &TimeSpec::new(atime, 5), &mtime, UtimensatFlags::NoFollowSymlink)
        .map_err(|errno| bed::BedError::Usage(format!("cannot set times of {}: {errno}", path.display())))
}
