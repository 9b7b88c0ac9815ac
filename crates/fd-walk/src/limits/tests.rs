//! Which directories a Director may read.

use std::os::unix::fs::symlink;

use super::*;

fn limits(allowed: &[&str], excluded: &[&str]) -> DirectoryLimits {
    let bytes = |list: &[&str]| list.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>();
    DirectoryLimits::new(&bytes(allowed), &bytes(excluded))
}

/// Checks a name of the FileSet.
fn check(limits: &DirectoryLimits, path: &str) -> Result<(), OutOfLimits> {
    limits.check(path.as_bytes(), &limits.real_top(path.as_bytes()))
}

#[test]
fn allowed_directories_are_compared_part_by_part() {
    for allowed in [limits(&["/t/a"], &[]), limits(&["/t//b/../a/"], &[])] {
        for inside in ["/t", "/t/", "/t/a", "/t/a/", "/t/a/f", "/", "/u/..", "/t/o/../a/f", "//t/./a"] {
            assert_eq!(check(&allowed, inside), Ok(()), "{inside}");
        }
        for outside in ["/t/o", "/t/rootf", "/u", "/t/ab", "/t/ab/h", "/t/a/../o", "/t/a/../../etc/shadow"] {
            assert_eq!(check(&allowed, outside), Err(OutOfLimits::NotAllowed), "{outside}");
        }
    }
    assert_eq!(check(&limits(&["/"], &[]), "/anything"), Ok(()));
}

#[test]
fn excluded_wins_over_allowed_and_is_a_prefix() {
    let both = limits(&["/t/a", "/t/o"], &["/t/a/in"]);
    assert_eq!(check(&both, "/t/a/f"), Ok(()));
    for excluded in ["/t/a/in/g", "/t/a/inner", "/t/o/../a/in/g", "/t//a/in"] {
        assert_eq!(check(&both, excluded), Err(OutOfLimits::Excluded), "{excluded}");
    }
    assert_eq!(check(&limits(&[], &["/t/a"]), "/t/ab"), Err(OutOfLimits::Excluded));
    assert_eq!(check(&limits(&[], &[]), "/anything"), Ok(()));
}

#[test]
fn a_slash_ends_an_excluded_directory() {
    for excluded in [limits(&[], &["/t/a/"]), limits(&[], &["/t/o/..//a/"])] {
        for there in ["/t/a", "/t/ab", "/t/a.tar", "/t"] {
            assert_eq!(check(&excluded, there), Ok(()), "{there}");
        }
        for inside in ["/t/a/f", "/t/o/../a/f", "/t//a/f"] {
            assert_eq!(check(&excluded, inside), Err(OutOfLimits::Excluded), "{inside}");
        }
    }
}

#[test]
fn what_an_excluded_link_leads_to_is_excluded_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    for name in ["run", "runner", "a"] {
        fs::create_dir(root.join(name)).unwrap();
    }
    symlink(root.join("run"), root.join("var-run")).unwrap();
    let at = |path: &str| format!("{}/{path}", root.display());
    let excluded = limits(&[], &[&at("var-run")]);
    for inside in ["run", "run/f", "var-run", "var-run/f", "var-run-2", "a/../run/f"] {
        assert_eq!(check(&excluded, &at(inside)), Err(OutOfLimits::Excluded), "{inside}");
    }
    assert_eq!(check(&excluded, &at("runner")), Ok(()));
    let inside_only = limits(&[], &[&at("var-run/")]);
    assert_eq!(check(&inside_only, &at("run/f")), Err(OutOfLimits::Excluded));
    assert_eq!((check(&inside_only, &at("run")), check(&inside_only, &at("runner"))), (Ok(()), Ok(())));
    // The beginning of names that are there stays one.
    let beginning = limits(&[], &[&at("a/../ru")]);
    assert_eq!(check(&beginning, &at("runner")), Err(OutOfLimits::Excluded));
}

#[test]
fn limits_apply_to_the_real_path_of_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    for name in ["ok", "secret", "secret/in"] {
        fs::create_dir(root.join(name)).unwrap();
    }
    symlink(root.join("secret"), root.join("ok/link")).unwrap();
    symlink(root.join("ok"), root.join("alias")).unwrap();
    let at = |path: &str| format!("{}/{path}", root.display());
    for allowed in [limits(&[&at("ok")], &[]), limits(&[&at("alias")], &[])] {
        for inside in ["ok/link", "ok/f", "alias/f", "alias/"] {
            assert_eq!(check(&allowed, &at(inside)), Ok(()), "{inside}");
        }
        for outside in ["ok/link/", "ok/link/.", "ok/link/in", "ok/link/in/f", "alias/link/in", "ok/link/../x"] {
            assert_eq!(check(&allowed, &at(outside)), Err(OutOfLimits::NotAllowed), "{outside}");
        }
    }
    assert_eq!(check(&limits(&[&at("ok")], &[]), &at("alias")), Err(OutOfLimits::NotAllowed));
    assert_eq!(check(&limits(&[&at("alias")], &[]), &at("alias")), Ok(()));
    let excluded = limits(&[], &[&at("secret")]);
    assert_eq!(check(&excluded, &at("ok/link/in")), Err(OutOfLimits::Excluded));
    // Below a name, the path is compared as it is written, after the real path of the name.
    let top = excluded.real_top(at("ok/").as_bytes());
    assert_eq!(excluded.check(at("ok/link").as_bytes(), &top), Ok(()));
}

#[test]
fn a_file_in_a_directory_is_seen_within_the_limits() {
    let folder = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    fs::create_dir_all(root.join("ok/sub")).unwrap();
    for name in ["ok/own", "ok/sub/own", "secret"] {
        fs::write(root.join(name), "").unwrap();
    }
    symlink("../secret", root.join("ok/link")).unwrap();
    symlink("ok", root.join("alias")).unwrap();
    let at = |path: &str| format!("{}/{path}", root.display());
    let seen =
        |limits: &DirectoryLimits, directory: &str, file: &str| limits.shows(at(directory).as_bytes(), file.as_bytes());
    let files = ["own", "sub/own", "/own", "gone", "link", "../secret"];
    let all = |limits: &DirectoryLimits, directory| files.map(|file| seen(limits, directory, file));
    assert_eq!(all(&limits(&[], &[]), "ok"), [true, true, true, false, true, true]);
    for limits in [limits(&[&at("ok")], &[]), limits(&[], &[&at("secret")])] {
        for directory in ["ok", "ok/", "alias"] {
            assert_eq!(all(&limits, directory), [true, true, true, false, false, false], "{directory}");
        }
        assert!(!seen(&limits, "", "secret"));
    }
}

/// Of names, none outside of the allowed directories is told; of commands each one is.
#[test]
fn a_list_of_commands_is_read_in_allowed_directories_only() {
    let folder = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    fs::create_dir(root.join("ok")).unwrap();
    for name in ["ok/list", "secret", "ok-evil"] {
        fs::write(root.join(name), "line\n").unwrap();
    }
    symlink(root.join("secret"), root.join("ok/link")).unwrap();
    let at = |path: &str| format!("{}/{path}", root.display());
    let open =
        |limits: &DirectoryLimits, path: &str, commands| limits.open_list(at(path).as_bytes(), commands).unwrap();
    let allowed = limits(&[&at("ok")], &[]);
    let outside = ["secret", "ok-evil", "ok/link", "ok/../secret"];
    for list in outside {
        assert_eq!(open(&allowed, list, true).unwrap_err(), OutOfLimits::NotAllowed, "{list}");
    }
    for limits in [limits(&[&at("ok"), &at("ok-evil")], &[&at("secret")]), limits(&[], &[&at("secret")])] {
        for commands in [true, false] {
            assert_eq!(open(&limits, "ok/link", commands).unwrap_err(), OutOfLimits::Excluded);
            assert!(open(&limits, "ok-evil", commands).is_ok() && open(&limits, "ok/list", commands).is_ok());
        }
    }
    assert!(open(&allowed, "ok/list", true).is_ok());
    // Nor does a message tell whether there is a file that may be no list.
    assert_eq!(open(&allowed, "gone", true).unwrap_err(), OutOfLimits::NotAllowed);
    assert_eq!(open(&limits(&[], &[&at("")]), "gone", false).unwrap_err(), OutOfLimits::Excluded);
    for list in outside {
        assert!(open(&allowed, list, false).is_ok() && open(&limits(&[], &[]), list, true).is_ok(), "{list}");
    }
}

/// A restore can make a node of any disk in an allowed directory.
#[test]
fn with_limits_a_device_is_no_list() {
    let device = b"/dev/null";
    assert_eq!(limits(&["/dev"], &[]).open_list(device, true).unwrap_err(), Errno::PERM);
    assert_eq!(limits(&[], &["/secret"]).open_list(device, false).unwrap_err(), Errno::PERM);
    assert!(limits(&[], &[]).open_list(device, true).unwrap().is_ok());
}
