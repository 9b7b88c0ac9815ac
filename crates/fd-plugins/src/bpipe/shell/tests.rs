//! Lines that are taken and refused.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::*;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ferrofd-bpipe-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _left = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn without_allowed_directories_the_shell_gets_any_line() {
    let output = prepare(b"echo a; echo 'b  c'; exit 3", &[]).unwrap().output().unwrap();
    assert_eq!((output.stdout.as_slice(), output.status.code()), (b"a\nb  c\n".as_slice(), Some(3)));
    assert_eq!(prepare(b"", &[]).unwrap_err().words, "No such file or directory");
    assert_eq!(prepare(b"a\0b", &[]).unwrap_err().errno, 22);
}

#[test]
fn with_allowed_directories_no_line_runs_another_program() {
    let folder = Folder::new("allowed");
    let (ok, evil) = (folder.0.join("ok"), folder.0.join("ok-evil"));
    for directory in [&ok, &evil] {
        fs::create_dir_all(directory).unwrap();
        scripts::write(&directory.join("list"), "for word in \"$@\"; do echo \"<$word>\"; done").unwrap();
    }
    symlink(evil.join("list"), ok.join("link")).unwrap();
    symlink("list", ok.join("alias")).unwrap();
    let at = |path: &str| format!("{}/{path}", folder.0.display());
    let allowed = [at("ok").into_bytes()];
    let output = |line: String| {
        let output = prepare(line.as_bytes(), &allowed).map_err(|refused| refused.errno)?.output().unwrap();
        Ok::<_, i32>(String::from_utf8(output.stdout).unwrap())
    };
    for program in [at("ok/list"), at("ok//./alias"), format!("'{}'", at("ok/list")), format!("\"{}\"", at("ok/list"))]
    {
        assert_eq!(output(format!("{program} a --b=\"c d\"")), Ok("<a>\n<--b=c d>\n".to_owned()), "{program}");
    }
    for program in [
        at("ok-evil/list"),
        at("ok/../ok-evil/list"),
        at("ok/link"),
        format!("'{}'../ok-evil/list", at("ok/")),
        format!("{}'/../ok-evil/list'", at("ok")),
        format!("x=1 {}", at("ok/list")),
        at("o*/list"),
    ] {
        assert_eq!(output(program.clone()), Err(NOT_IN_ALLOWED_PATHS), "{program}");
    }
    for end in ["; id", "\nid", " > /x", " $(id)", " `id`", " & id", " | id"] {
        assert_eq!(output(at("ok/list") + end), Err(NOT_ALLOWED_CHARACTER), "{end}");
    }
    assert_eq!(output(at("ok/none")), Err(2));
}
