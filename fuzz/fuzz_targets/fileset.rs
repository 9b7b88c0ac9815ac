#![no_main]
//! A FileSet line by line, with its lists answered, and then paths judged by whatever came out.

#[path = "shared/expressions.rs"]
mod expressions;

use expressions::Compiler;
use fd_fileset::{FileSet, ListFailure, Parser, Reaction, strip_path};
use fd_messages::{JobCodes, expand_job_codes, split_arguments};
use libfuzzer_sys::fuzz_target;

fn read(data: &[u8]) -> Option<FileSet> {
    let mut parser = Parser::new(&Compiler);
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        let Ok(Reaction::List(request)) = parser.line(line) else { continue };
        let _ = split_arguments(&expand_job_codes(&request.argument, &JobCodes::default()).unwrap_or_default());
        if request.argument.ends_with(b"!") {
            let failure = ListFailure::Status { status: 1, error: "no".to_owned() };
            assert!(parser.list_failed(failure).is_err());
        } else {
            let _ = parser
                .list_data(&request.argument)
                .and_then(|()| parser.list_data(b"\n/listed"))
                .and_then(|()| parser.list_end());
        }
    }
    parser.finish().ok()
}

fuzz_target!(|data: &[u8]| {
    let Some(fileset) = read(data) else { return };
    for include in fileset.includes() {
        for path in [&b"/"[..], b"/home", b"/home/a.tmp", b"/home/\xff/b.o", b"/listed"] {
            let _ = fileset.judge(include, path, path == b"/home");
            let _ = fileset.lists(path);
        }
        for name in include.names() {
            let _ = fileset.judge(include, name, true);
            let _ = strip_path(name, 2);
        }
    }
});
