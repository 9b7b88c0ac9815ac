//! Where a restore may write, and what its expressions are.

use fd_os::regex::PosixRegex;

use super::*;

#[test]
fn a_pattern_leads_to_what_lies_below_it() {
    let allowed = |path: &str| [&b"/tmp/rf"[..], b"/opt/*"].iter().any(|pattern| leads_to(pattern, path.as_bytes()));
    for good in ["/tmp/rf", "/tmp/rf/sub", "/opt/a", "/opt/a/b"] {
        assert!(allowed(good), "{good}");
    }
    for bad in ["/tmp/rfx", "/tmp", "/opt", "", "/", "!^!/tmp/rf!"] {
        assert!(!allowed(bad), "{bad}");
    }
}

#[test]
fn dots_links_and_expressions_stay_in_the_allowed_directories() {
    let folder = std::env::temp_dir().join(format!("ferrofd-where-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("ok/sub")).unwrap();
    std::fs::create_dir_all(folder.join("other/deep")).unwrap();
    let folder = std::fs::canonicalize(&folder).unwrap();
    std::os::unix::fs::symlink(folder.join("other/deep"), folder.join("ok/link")).unwrap();
    std::os::unix::fs::symlink(folder.join("ok"), folder.join("alias")).unwrap();
    let at = |path: &str| format!("{}/{path}", folder.display()).into_bytes();
    let may = |allowed: &str, path: &str| may_restore_to(&[at(allowed)], &at(path));
    for (allowed, good) in [
        ("ok", "ok"),
        ("ok", "ok/sub/new"),
        ("ok", "ok//sub/../new/./x"),
        ("ok/*", "ok/sub/../new"),
        ("alias", "alias/sub"),
        ("alias/*", "alias/sub"),
        ("ok/", "ok/sub/"),
        ("ok//", "ok"),
        ("o*/", "ok/sub/new"),
        ("alias/", "alias/sub"),
    ] {
        assert!(may(allowed, good), "{allowed} {good}");
    }
    assert!(!may("al*", "alias"), "a link that a wildcard finds is not allowed for that");
    assert!(may_restore_to(&[b"/".to_vec()], &at("ok")) && !may("ok/", "other"));
    for bad in ["ok/../zz", "ok/sub/../../zz", "ok-evil", "ok/link", "ok/link/x", "ok/link/../x", "ok/new/../../z"] {
        assert!(!may("ok", bad), "{bad}");
        assert!(!may("ok/*", bad), "{bad}");
    }
    // A restore takes the dots out first, so that what is before them need not exist.
    for bad in ["ok/missing/../link", "ok/missing/../link/x", "ok/sub/missing/../../link"] {
        assert!(!may("ok", bad), "{bad}");
        assert!(!may("ok/*", bad), "{bad}");
    }
    assert!(!may_restore_to(&[b"*".to_vec()], b"a/../../etc"));
    let limited = [b"/tmp/ok".to_vec()];
    let is_allowed = |allowed: &[Vec<u8>], place: &Where| links_in(allowed, place).is_some();
    assert!(!is_allowed(&limited, &Where::Regex(b"/tmp/ok/".to_vec())));
    assert!(!is_allowed(&limited, &Where::Folder(Vec::new())));
    assert!(is_allowed(&limited, &Where::Folder(b"/tmp/ok/x".to_vec())));
    assert!(is_allowed(&[], &Where::Regex(b"/tmp/ok/".to_vec())));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_expression_list_without_an_expression_is_refused() {
    let mut compile = |pattern: &[u8], options| -> Result<Option<fd_restore::NameRegex>, Vec<u8>> {
        let Ok(regex) = PosixRegex::new(pattern, options) else { return Ok(None) };
        Ok(Some(Box::new(move |name| regex.captures(name).map_err(|_| fd_restore::Undecided))))
    };
    let mut regex =
        |text: &str| plan(Replace::Always, false, &Where::Regex(text.as_bytes().to_vec()), None, &mut compile);
    assert!(regex("!^/src!/tmp/x!").is_ok());
    assert!(regex("!(!x!").is_err());
}
