//! Tests give the time, or wait for an event: none compares real seconds, and none waits for an
//! event with a part of the patience that all have.

use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::{File, Item};

use crate::none;
use crate::sources::{Outcome, attributes, in_sources, is_test_only, read};

/// Tests that sleep or take the time, and why no result depends on how long that is.
const PLACES: [(&str, &str); 12] = [
    ("crates/fd-os/src/waiting.rs", "what the kernel says of a thread that waits is counted, not timed"),
    ("crates/fd-walk/src/ahead/depth/tests.rs", "the same"),
    ("crates/fd-walk/src/walk/tests.rs", "storage that answers late"),
    ("crates/fd-walk/src/walk/tests/models.rs", "a step of the model's clock"),
    ("crates/fd-plugins/tests/library/calls.rs", "a duration is printed"),
    ("tests/tests/compliance/main.rs", "the same"),
    ("tests/tests/restore_matrix/main.rs", "the same"),
    ("tests/tests/verify/main.rs", "the same"),
    ("tests/tests/hostile_peers/main.rs", "a pause between two looks for a caller"),
    ("tests/tests/monitoring/prometheus.rs", "a picture for the manual"),
    ("tests/tests/snapshot_truth/sqlite.rs", "the pauses of a program that changes files"),
    ("tests/tests/truth/living_host.rs", "the same"),
];

#[test]
fn tests_compare_no_real_time() -> Outcome<()> {
    none(&in_sources(|sources| {
        let mut problems = Vec::new();
        let mut places: Vec<&str> = PLACES.iter().map(|(place, _)| *place).collect();
        let judged = |path: &Path| path.starts_with("crates") || path.starts_with("tests/tests");
        for (path, file) in sources.files.iter().filter(|(path, _)| judged(path)) {
            let place = path.display().to_string();
            let found = clocks(&read(&place)?, file, is_of_tests(path))?;
            match places.iter().position(|known| *known == place) {
                Some(known) if !found.is_empty() => _ = places.swap_remove(known),
                _ => problems.extend(found.into_iter().map(|(line, word)| format!("{place}:{line}: {word} in a test"))),
            }
        }
        problems.extend(places.iter().map(|place| format!("{place} needs no exception any more")));
        Ok(problems)
    })?);
    let text = "fn a() { b.elapsed(); } #[test] fn c() { assert!(d.elapsed() < E); f.sleep(); thread::sleep(g); \
                h(PATIENCE / 20, PATIENCE, 1 / 2); }";
    let file = syn::parse_file(text)?;
    let words: Vec<String> = clocks(text, &file, false)?.into_iter().map(|(_, word)| word).collect();
    assert_eq!(words, ["elapsed", "sleep", PATIENCE], "the rule itself");
    assert_eq!(clocks(text, &file, true)?.len(), 4);
    Ok(())
}

/// Whether all of a file is for tests: in their folder, or `x/tests.rs`.
fn is_of_tests(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs")
}

/// The limit of each wait for an event.
const PATIENCE: &str = "PATIENCE";

/// Where a test takes the time since a moment, sleeps, or divides [`PATIENCE`], with the word.
fn clocks(text: &str, file: &File, is_test: bool) -> Outcome<Vec<(usize, String)>> {
    let mut found = Vec::new();
    if ["elapsed", "sleep", PATIENCE].iter().any(|word| text.contains(word)) {
        take(text.parse().map_err(|error: proc_macro2::LexError| error.to_string())?, &mut found);
        let mut tests = Vec::new();
        spans(&file.items, &mut tests);
        found.retain(|(at, _)| is_test || tests.iter().any(|(from, to)| (from..=to).contains(&at)));
    }
    Ok(found.into_iter().map(|((line, _), word)| (line, word)).collect())
}

/// A line and a column.
type Place = (usize, usize);

/// Where the items are that only a test build sees.
fn spans(items: &[Item], into: &mut Vec<(Place, Place)>) {
    for item in items {
        let (from, to) = (item.span().start(), item.span().end());
        if is_test_only(attributes(item)) {
            into.push(((from.line, from.column), (to.line, to.column)));
        } else if let Item::Mod(module) = item {
            spans(module.content.as_ref().map(|(_, items)| items.as_slice()).unwrap_or_default(), into);
        }
    }
}

/// The calls of `elapsed` and of functions named `sleep`, and parts of [`PATIENCE`]. A method of
/// that name is something else.
fn take(tokens: TokenStream, into: &mut Vec<(Place, String)>) {
    let mut before = ' ';
    let mut word: Option<(Place, String)> = None;
    let mut patience: Option<Place> = None;
    for token in tokens {
        let limit = patience.take();
        if let (TokenTree::Group(_), Some(called)) = (&token, word.take()) {
            into.push(called);
        }
        match token {
            TokenTree::Ident(ident) => {
                let name = ident.to_string();
                let start = ident.span().start();
                patience = (name == PATIENCE).then_some((start.line, start.column));
                if name == "elapsed" && before == '.' || name == "sleep" && before != '.' {
                    word = Some(((start.line, start.column), name));
                }
                before = ' ';
            }
            TokenTree::Punct(mark) => {
                before = mark.as_char();
                into.extend(limit.filter(|_| before == '/').map(|place| (place, PATIENCE.to_owned())));
            }
            TokenTree::Group(group) => {
                take(group.stream(), into);
                before = ' ';
            }
            TokenTree::Literal(_) => before = ' ',
        }
    }
}
