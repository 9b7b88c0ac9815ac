//! File systems and names without either.

use fd_fileset::{Parser, Regex, RegexCompiler};

use super::*;

struct NoRegex;

impl RegexCompiler for NoRegex {
    fn compile(&self, _: &[u8], _: bool) -> Result<Box<dyn Regex>, String> {
        Err(String::new())
    }
}

pub(in crate::job::snapshots) fn fileset(lines: &[&str]) -> FileSet {
    let mut parser = Parser::new(&NoRegex);
    for line in lines {
        let _reaction = parser.line(line.as_bytes()).unwrap();
    }
    parser.finish().unwrap()
}

/// Mounts as `number mount-point root`.
fn table(lines: &[&str]) -> MountTable {
    let mount = |line: &&str| {
        let [number, point, root] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let text = |text: &str| text.as_bytes().to_vec();
        Mount {
            device_number: number.parse().unwrap(),
            point: text(point),
            root: text(root),
            fs_type: text("ext4"),
            ..Mount::default()
        }
    };
    MountTable::new(lines.iter().map(mount).collect())
}

/// Where everything is read. Names are directories; `real` maps those that are reached by links.
/// The names that have no place come first.
fn read(
    lines: &[&str],
    table: &MountTable,
    mounted: &[(u64, &str)],
    real: &[(&str, &str)],
) -> (Vec<String>, Snapshots) {
    let fileset = fileset(lines);
    let of = |name: &[u8]| {
        let text = std::str::from_utf8(name).unwrap().trim_end_matches('/');
        let found = real.iter().find(|(from, _)| text.starts_with(from));
        found.map_or(text.to_owned(), |(from, to)| text.replacen(from, to, 1)).into_bytes()
    };
    let mut tops = Vec::new();
    for (number, include) in fileset.includes().iter().enumerate() {
        for name in include.names() {
            let real = of(name);
            let real = if real.is_empty() { b"/".to_vec() } else { real };
            let device_number = table.get(table.holding(&real).unwrap()).unwrap().device_number;
            tops.push(Top { include, number, name, real, device_number, inode: 7, is_directory: true });
        }
    }
    let questions = Questions {
        is_marked: &|directory, _| directory.ends_with(b"marked"),
        is_left_out: &|options, path| !options.fs_types.is_empty() && without_slashes(path).ends_with(b"/proc"),
    };
    let regions = regions(&fileset, &tops, table, &questions);
    let mounted = mounted.iter().map(|(number, path)| (*number, snapshot(path))).collect();
    let mut lost = Vec::new();
    let is_shown = |_: &Region, path: &[u8]| !path.ends_with(b"other");
    let tell = |name: &[u8], _: &Mount| lost.push(String::from_utf8(name.to_vec()).unwrap());
    let snapshots = readings(&regions, table, &mounted, &is_shown, tell);
    (lost, snapshots)
}

/// One of ours, unless it is a copy.
fn snapshot(path: &str) -> MountedSnapshot {
    MountedSnapshot { point: path.as_bytes().to_vec(), keeps_inodes: !path.contains("copy") }
}

/// Names are read in a snapshot at a path of it: `(name, real, snapshot, below)`.
fn expected(read: &[[&str; 4]], below: &[(&str, &[&str])], hidden: &[&str]) -> Snapshots {
    let mut snapshots = Snapshots::default();
    for [name, real, snapshot, below] in read {
        let path = format!("{snapshot}/{below}").into_bytes();
        snapshots.read_at(name.as_bytes(), real.as_bytes(), snapshot.as_bytes(), path);
    }
    for (name, mounts) in below {
        for mount in *mounts {
            snapshots.add_sub_mount(0, name.as_bytes(), mount.as_bytes());
        }
    }
    for path in hidden {
        snapshots.hide(path.as_bytes());
    }
    snapshots
}

#[test]
fn a_name_is_read_in_the_snapshot_of_its_own_file_system() {
    let table = table(&["1 / /", "2 /data /", "3 /data/sub /"]);
    let names = ["I", "F /data/d", "F /data/sub/x", "F /etc", "F /data/"];
    let (lost, found) = read(&names, &table, &[(2, "/snap/j")], &[]);
    assert!(lost.is_empty());
    assert_eq!(
        found,
        expected(&[["/data/d", "/data/d", "/snap/j", "d"], ["/data/", "/data", "/snap/j", ""]], &[], &[])
    );
}

#[test]
fn mounts_below_a_name_are_walked_after_it_if_the_walk_would_enter_them() {
    let table = table(&["1 / /", "2 /d /", "3 /d/s /", "4 /d/s/deep /", "5 /d/out /", "6 /d/marked/m /", "7 /d/l /"]);
    let lines = |options: &'static str| ["I", "Z no", options, "N", "F /d", "F /d/l", "N", "E", "F /d/out", "N"];
    let mounted = [(2, "/snap"), (4, "/deep")];
    let (_, found) = read(&lines("O f"), &table, &mounted, &[]);
    // `/d/s` is read as it is now, and would be entered, but not the mount in it.
    let below: [(&str, &[&str]); 1] = [("/d", &["/d/s/deep", "/d/s"])];
    assert_eq!(
        found,
        expected(
            &[["/d", "/d", "/snap", ""], ["/d/s/deep", "/d/s/deep", "/deep", ""]],
            &below,
            &["/d/s/deep", "/d/s", "/d/l"]
        )
    );
    let (_, found) = read(&lines("O M"), &table, &mounted, &[]);
    assert_eq!(found, expected(&[["/d", "/d", "/snap", ""]], &[], &["/d/l"]), "one file system");
}

/// Else the empty directory below a mount point is saved under its name, too.
#[test]
fn a_mount_that_is_walked_by_itself_is_hidden_in_the_snapshot_around_it() {
    let table = table(&["1 / /", "2 /d /", "3 /d/s /", "4 /e /", "5 /e/s /"]);
    let mounted = [(2, "/snap"), (3, "/s")];
    let own = [["/d", "/d", "/snap", ""], ["/d/s", "/d/s", "/s", ""]];
    let (_, found) = read(&["I", "O f", "N", "F /d"], &table, &mounted, &[]);
    assert_eq!(found, expected(&own, &[("/d", &["/d/s"])], &["/d/s"]));
    for options in ["O f", "O M"] {
        let (_, found) = read(&["I", options, "N", "F /d", "F /d/s", "F /e", "F /e/s"], &table, &mounted, &[]);
        assert_eq!(found, expected(&own, &[], &["/d/s"]), "{options}: what has no snapshot is read as without");
    }
}

/// A restored host needs its mount points: the empty directories that the snapshot has there.
#[test]
fn a_mount_point_that_fs_type_leaves_out_is_in_the_snapshot_around_it() {
    let table = table(&["1 / /", "2 /d /", "3 /d/proc /", "4 /d/s /"]);
    let mounted = [(2, "/snap"), (3, "/p"), (4, "/s")];
    let own = [["/d", "/d", "/snap", ""], ["/d/s", "/d/s", "/s", ""]];
    let options = ["I", "O f", "X ext2", "N", "F /d"];
    let (_, found) = read(&options, &table, &mounted, &[]);
    assert_eq!(found, expected(&own, &[("/d", &["/d/s"])], &["/d/s"]));
    // A name that the walk refuses isn't walked by itself.
    let (_, found) = read(&[&options[..], &["F /d/proc/"]].concat(), &table, &mounted, &[]);
    assert_eq!(found, expected(&own, &[("/d", &["/d/s"])], &["/d/s"]));
    let (_, found) = read(&["I", "O M", "X ext2", "N", "F /d", "F /d/proc"], &table, &mounted, &[]);
    assert_eq!(found, expected(&own[..1], &[], &[]));
    // The list of the block that decides about it counts, not that of the last block.
    let other = ["I", "O f", "WD /d/proc", "N", "O f", "X ext2", "N", "F /d"];
    let (_, found) = read(&other, &table, &mounted, &[]);
    let all = [own[0], ["/d/proc", "/d/proc", "/p", ""], own[1]];
    assert_eq!(found, expected(&all, &[("/d", &["/d/s", "/d/proc"])], &["/d/s", "/d/proc"]));
}

#[test]
fn a_directory_that_is_mounted_once_more_is_read_in_the_snapshot_too() {
    let table = table(&["1 / /", "2 /bound /d", "2 /data /", "2 /data/again /d/e"]);
    let names = ["I", "O M", "N", "F /bound/x", "F /data"];
    let (lost, found) = read(&names, &table, &[(2, "/snap")], &[]);
    assert!(lost.is_empty());
    let places = [
        ["/bound/x", "/bound/x", "/snap", "d/x"],
        ["/data", "/data", "/snap", ""],
        ["/data/again", "/data/again", "/snap", "d/e"],
    ];
    assert_eq!(found, expected(&places, &[("/data", &["/data/again"])], &["/data/again"]));
}

#[test]
fn a_name_that_leads_over_a_link_is_read_in_the_snapshot() {
    let table = table(&["1 / /", "2 /data /", "3 /data/d/s /"]);
    let (_, found) = read(&["I", "O f", "N", "F /link/d"], &table, &[(2, "/snap"), (3, "/s")], &[("/link", "/data")]);
    let places = [["/link/d", "/data/d", "/snap", "d"], ["/link/d/s", "/data/d/s", "/s", ""]];
    assert_eq!(found, expected(&places, &[("/link/d", &["/link/d/s"])], &["/link/d/s"]));
}

#[test]
fn links_and_dots_of_a_name_are_those_of_this_host() {
    let table = table(&["1 / /", "2 /data /"]);
    let real = [("/data/a/../../etc", "/etc"), ("/data/link", "/data/d")];
    let (_, found) = read(&["I", "F /data/a/../../etc/f", "F /data/link/f"], &table, &[(1, "/r"), (2, "/snap")], &real);
    let places = [["/data/a/../../etc/f", "/etc/f", "/r", "etc/f"], ["/data/link/f", "/data/d/f", "/snap", "d/f"]];
    assert_eq!(found, expected(&places, &[], &[]));
}

#[test]
fn a_part_that_the_snapshot_does_not_show_is_told() {
    let table = table(&["1 / /", "2 /a /one", "2 /b /second"]);
    let (lost, found) = read(&["I", "F /a", "F /b/f"], &table, &[(2, "/snap")], &[]);
    assert_eq!((lost, found), (vec!["/b/f".to_owned()], expected(&[["/a", "/a", "/snap", ""]], &[], &[])));
}

#[test]
fn a_subvolume_that_is_mounted_by_itself_is_read_at_the_top_of_its_snapshot() {
    let mut table = table(&["1 / /", "2 /pool /", "3 /home /@home"]);
    let root = b"/@home".to_vec();
    assert!(table.push(Mount { device_number: 3, point: b"/pool/@home".to_vec(), root, ..Mount::default() }));
    let mounted = [(2, "/p"), (3, "/s")];
    let (lost, found) = read(&["I", "O f", "N", "F /home", "F /pool"], &table, &mounted, &[]);
    assert!(lost.is_empty());
    let places = [["/home", "/home", "/s", ""], ["/pool", "/pool", "/p", ""], ["/pool/@home", "/pool/@home", "/s", ""]];
    assert_eq!(found, expected(&places, &[("/pool", &["/pool/@home"])], &["/pool/@home"]));
    assert_eq!(table.main(3), Some(2), "the helper knows it by its own mount");
}

#[test]
fn a_place_that_has_another_inode_in_the_snapshot_is_told_and_read_as_it_is_now() {
    let table = table(&["1 / /", "2 /data /"]);
    let names = ["I", "F /data/d", "F /data/other"];
    let own = ["/data/d", "/data/d", "/snap", "d"];
    let (lost, found) = read(&names, &table, &[(2, "/snap")], &[]);
    assert_eq!((lost, found), (vec!["/data/other".to_owned()], expected(&[own], &[], &[])));
    // What another helper has copied has other inodes.
    let (lost, _) = read(&names, &table, &[(2, "/copy")], &[]);
    assert!(lost.is_empty());
}

#[test]
fn a_mount_below_a_name_is_walked_once_in_each_include_whose_options_enter_it() {
    let table = table(&["1 / /", "2 /d /", "3 /d/s /"]);
    let mut wanted = expected(&[["/d", "/d", "/snap", ""]], &[("/d", &["/d/s"])], &["/d/s"]);
    wanted.add_sub_mount(2, b"/d", b"/d/s");
    let crosses = ["I", "O f", "N", "F /d", "F /d", "N"];
    let lines = [&crosses[..], &["I", "O M", "N", "F /d", "N"], &crosses[..]].concat();
    assert_eq!(read(&lines, &table, &[(2, "/snap")], &[]).1, wanted);
}

/// What its own Include leaves out of it is in the job all the same, as without snapshots.
#[test]
fn a_name_of_another_include_is_walked_in_each_one_that_crosses_into_it() {
    let table = table(&["1 / /", "2 /d /", "3 /d/s /", "4 /d/s/t /"]);
    let mounted = [(2, "/snap"), (3, "/s"), (4, "/t")];
    let own = [["/d", "/d", "/snap", ""], ["/d/s", "/d/s", "/s", ""], ["/d/s/t", "/d/s/t", "/t", ""]];
    let lines = ["I", "O f", "N", "F /d", "N", "I", "O M", "N", "F /d/s", "N"];
    let (_, found) = read(&lines, &table, &mounted, &[]);
    assert_eq!(found, expected(&own, &[("/d", &["/d/s/t", "/d/s"])], &["/d/s", "/d/s/t"]));
}

#[test]
fn places_of_snapshots_are_hidden_as_named_and_as_read() {
    let table = table(&["1 / /", "2 /data /"]);
    let mut snapshots = Snapshots::default();
    let mounted = [(2, snapshot("/snap"))].into_iter().collect();
    let places = ["/data/.snapshots", "/run/other"].map(|place| place.as_bytes().to_vec());
    hide(&mut snapshots, &places, &table, &mounted);
    assert_eq!(snapshots, expected(&[], &[], &["/run/other", "/data/.snapshots", "/snap/.snapshots"]));
}

#[test]
fn a_file_system_is_asked_for_once_however_many_names_it_has_that_are_not_in_its_snapshot() {
    let stray = |name: &str, device_number| (name.as_bytes().to_vec(), Mount { device_number, ..Mount::default() });
    let strays = [stray("/p/1", 2), stray("/q/1", 3), stray("/p/2", 2), stray("/q/2", 3)];
    let asked = std::cell::RefCell::new(Vec::new());
    let has_support = |mount: &Mount| {
        asked.borrow_mut().push(mount.device_number);
        mount.device_number == 2
    };
    let told: Vec<_> = without_snapshot(&strays, has_support).map(|(name, _)| name.as_slice()).collect();
    assert_eq!((told, asked.take()), (vec![&b"/p/1"[..], b"/p/2"], vec![2, 3]));
}

#[test]
fn file_systems_are_asked_for_in_the_order_of_names_and_mounts() {
    let table = table(&["9 / /", "5 /d /", "7 /d/b /", "6 /d/a /", "5 /again /"]);
    let fileset = fileset(&["I", "O f", "N", "F /again", "F /d", "F /x"]);
    let tops: Vec<Top<'_>> = fileset.includes()[0]
        .names()
        .iter()
        .map(|name| {
            let device_number = table.get(table.holding(name).unwrap()).unwrap().device_number;
            let (include, number, real) = (&fileset.includes()[0], 0, name.clone());
            Top { include, number, name, real, device_number, inode: 7, is_directory: true }
        })
        .collect();
    let questions = Questions { is_marked: &|_, _| false, is_left_out: &|_, _| false };
    assert_eq!(devices(&regions(&fileset, &tops, &table, &questions), &table), [5, 7, 6, 9]);
}
