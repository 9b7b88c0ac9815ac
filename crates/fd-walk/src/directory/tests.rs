//! Reading directories, open and put aside.

use super::*;

/// A directory of this many files with long names, its path with a final slash.
fn folder(files: usize) -> (tempfile::TempDir, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..files {
        std::fs::write(folder.path().join(format!("{number} {}", "long".repeat(40))), "").unwrap();
    }
    let path = [folder.path().as_os_str().as_encoded_bytes(), b"/"].concat();
    (folder, path)
}

fn open_at(path: &[u8], scratch: &mut Scratch) -> Directory {
    let found = stat_at(CWD, path).unwrap();
    Directory::open(CWD, path, (found.st_dev, found.st_ino), scratch).unwrap()
}

fn rest(directory: &mut Directory, path: &[u8], scratch: &mut Scratch) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = Vec::new();
    let mut whole = path.to_vec();
    while directory.next_name(&mut whole, &ReadAt::default(), scratch)?.is_some() {
        names.push(whole.split_off(path.len()));
    }
    Ok(names)
}

#[test]
fn a_directory_put_aside_has_the_same_names_in_the_same_order() {
    // 900 files exceed the limit of held names, 100 don't.
    for files in [100, 900] {
        let (_folder, path) = folder(files);
        let mut scratch = Scratch::new();
        let plain = rest(&mut open_at(&path, &mut scratch), &path, &mut scratch).unwrap();
        assert_eq!(plain.len(), files);
        let mut aside = open_at(&path, &mut scratch);
        let mut first = path.clone();
        assert!(matches!(aside.next_name(&mut first, &ReadAt::default(), &mut scratch), Ok(Some(1..))));
        aside.put_aside(&mut scratch);
        assert!(aside.descriptor().is_none());
        assert_eq!(matches!(aside.state, State::Aside(_)), files == 900);
        assert!(aside.names.len() < MOST_HELD + CHUNK);
        let others = rest(&mut aside, &path, &mut scratch).unwrap();
        assert_eq!([vec![first.split_off(path.len())], others].concat(), plain);
    }
}

#[test]
fn a_replaced_directory_is_not_read_further() {
    let (folder, path) = folder(900);
    let mut scratch = Scratch::new();
    let mut directory = open_at(&path, &mut scratch);
    directory.put_aside(&mut scratch);
    let aside = folder.path().with_extension("aside");
    std::fs::rename(folder.path(), &aside).unwrap();
    std::fs::create_dir(folder.path()).unwrap();
    assert_eq!(rest(&mut directory, &path, &mut scratch), Err(Errno::STALE));
    assert_eq!(rest(&mut directory, &path, &mut scratch), Ok(Vec::new()), "told once");
    std::fs::remove_dir_all(&aside).unwrap();
}

#[test]
fn an_empty_directory_has_no_names_and_neither_has_a_removed_one() {
    let (folder, path) = folder(0);
    let mut scratch = Scratch::new();
    let mut directory = open_at(&path, &mut scratch);
    let mut removed = open_at(&path, &mut scratch);
    assert_eq!(rest(&mut directory, &path, &mut scratch), Ok(Vec::new()));
    folder.close().unwrap();
    assert_eq!(rest(&mut removed, &path, &mut scratch), Ok(Vec::new()));
}

#[test]
fn a_directory_replaced_by_a_link_is_followed_with_a_final_slash_only() {
    let (folder, path) = folder(1);
    let link = folder.path().with_extension("link");
    std::os::unix::fs::symlink(folder.path(), &link).unwrap();
    let link = link.as_os_str().as_encoded_bytes();
    let mut scratch = Scratch::new();
    assert_eq!(Directory::open(CWD, link, (0, 0), &mut scratch).err(), Some(Errno::NOTDIR));
    let slashed = [link, b"/"].concat();
    assert_eq!(rest(&mut open_at(&slashed, &mut scratch), &slashed, &mut scratch).unwrap().len(), 1);
    std::fs::remove_file(std::path::Path::new(std::str::from_utf8(link).unwrap())).unwrap();
    drop(path);
}
