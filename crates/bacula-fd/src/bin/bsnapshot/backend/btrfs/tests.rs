//! What `btrfs` prints, with names that are no help. The rest is tested on a real file system:
//! `tests/tests/snapshot_truth` of the bed.

use super::*;

#[test]
fn paths_are_read_with_any_bytes() {
    let printed = b"ID 257 gen 7 top level 256 path a/d/b c\nID 259 gen 7 top level 256 path a/nl\ny\n\
        ID 260 gen 7 top level 256 path a/\xff\"\n";
    let paths = listed_paths(printed);
    let wanted = [&b"a/d/b c"[..], b"a/nl\ny", b"a/\xff\""].map(|path| PathBuf::from(OsStr::from_bytes(path)));
    assert_eq!(paths, wanted);
    for nonsense in [&b""[..], b"\n", b"ERROR\n", b"ID x gen 7 top level 5 path a\n", b"ID 1 gen 7 path a\n"] {
        assert!(listed_paths(nonsense).is_empty(), "{nonsense:?}");
    }
}

#[test]
fn a_path_of_the_file_system_is_found_below_the_mount() {
    let below = |path: &'static str, above: &str| below(Path::new(path), Path::new(above)).map(Path::to_owned);
    assert_eq!(below("@/var/lib/machines", "@"), Some("var/lib/machines".into()));
    assert_eq!(below("@home", "@"), None);
    assert_eq!(below("@", "@"), None);
    assert_eq!(below("a", ""), Some("a".into()));
}
