//! The house rules that neither the compiler nor clippy checks, one test each.
//!
//! They read the sources (with the tests taken out where a rule speaks of the program only), the
//! pages of `docs/`, and `cargo metadata`. Not here: whether the program works; that is what the
//! other tests are for.

mod circles;
mod citations;
mod code;
mod layout;
mod packages;
mod pages;
mod sources;
mod streams;
mod time;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use circles::circles;
use code::{
    Literal, literals, method_calls, named_paths, sent_end_of_data, silent_returns, test_functions, unsafe_places,
};
use packages::packages;
use sources::{Crate, Outcome, Source, files, in_sources, read, root, rust_files};

/// May hold `unsafe`: the system calls, the plugin ABI, and the multi-buffer kernels of the
/// digests.
const UNSAFE_PLACES: [&str; 3] = ["crates/fd-os/", "crates/fd-plugins/", "crates/fd-crypto/src/multi_buffer"];
/// Installed, and not in the daemon.
const PLUGIN: &str = "fd-s3";
/// Packages beside the sixteen: they test or measure them, or make manual pages. Nothing is built
/// on them.
const BESIDE: [&str; 8] = ["bed", "bench", "ferrofd-fuzz", "man-pages", MODELS, PORTS, SCRIPTS, SKIP];
/// With this a test says that it can't run here; each package's tests may.
const SKIP: &str = "skip";
/// Model checks run on this, with a feature that no program has.
const MODELS: &str = "models";
/// The package through which a test gets a port of its own.
const PORTS: &str = "ports";
/// Writes scripts that tests run.
const SCRIPTS: &str = "scripts";

fn none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

/// A rule about each source file of the crates and plugins by itself: what it finds there.
fn in_each_source(rule: impl Fn(&Source, &mut Vec<String>) + Send + 'static) -> Outcome<()> {
    none(&in_sources(move |sources| {
        let mut problems = Vec::new();
        sources.crates_and_plugins().flat_map(|member| &member.sources).for_each(|source| rule(source, &mut problems));
        Ok(problems)
    })?);
    Ok(())
}

/// The rows of every table in a page, their cells trimmed; heads and rulers included.
fn table_rows(page: &str) -> Vec<Vec<&str>> {
    page.lines()
        .filter_map(|line| line.trim().strip_prefix('|'))
        .map(|line| line.trim_end_matches('|').split('|').map(str::trim).collect())
        .collect()
}

/// The floor of each crate, as docs/architecture.md draws it: rows that begin with a number and a
/// name.
fn floors() -> Outcome<BTreeMap<String, u32>> {
    let page = read("docs/architecture.md")?;
    let rows = table_rows(&page);
    Ok(rows
        .iter()
        .filter_map(|row| {
            let floor = row.first()?.parse().ok()?;
            Some((row.get(1)?.trim_matches('`').to_owned(), floor))
        })
        .collect())
}

#[test]
fn the_floor_table_names_the_sixteen_crates() -> Outcome<()> {
    let drawn: BTreeSet<String> = floors()?.into_keys().collect();
    let built: BTreeSet<String> = packages()?
        .into_iter()
        .map(|package| package.name)
        .filter(|name| !BESIDE.contains(&name.as_str()) && name != PLUGIN)
        .collect();
    assert_eq!(drawn, built);
    assert_eq!(drawn.len(), 16);
    Ok(())
}

#[test]
fn a_crate_uses_lower_floors_only() -> Outcome<()> {
    let floors = floors()?;
    let mut problems = Vec::new();
    for package in packages()? {
        if BESIDE.contains(&package.name.as_str()) || package.name == PLUGIN {
            continue;
        }
        let Some(floor) = floors.get(&package.name) else {
            problems.push(format!("{} stands on no floor of docs/architecture.md", package.name));
            continue;
        };
        for dependency in package.ours().filter(|dependency| {
            !(dependency.development && [MODELS, PORTS, SCRIPTS, SKIP].contains(&dependency.name.as_str()))
        }) {
            let below = floors.get(&dependency.name);
            if below.is_none_or(|below| below >= floor) {
                let place = below.map_or_else(|| "no floor".to_owned(), |below| format!("floor {below}"));
                problems.push(format!("{} (floor {floor}) uses {} ({place})", package.name, dependency.name));
            }
        }
    }
    none(&problems);
    Ok(())
}

/// Files of one crate that use each other can only be read together; what they share belongs in a
/// file below them.
#[test]
fn no_crate_has_circles_of_files() -> Outcome<()> {
    none(&in_sources(|sources| {
        let of = |member: &Crate| {
            circles(&member.sources).into_iter().map(|circle| format!("{}: {circle}", member.name)).collect::<Vec<_>>()
        };
        Ok(sources.crates_and_tests().flat_map(of).collect::<Vec<_>>())
    })?);
    Ok(())
}

/// The rooms of each crate, as docs/architecture.md names them: a room is a module with files of
/// its own.
#[test]
fn the_table_of_rooms_names_every_room() -> Outcome<()> {
    let built = in_sources(|sources| {
        let mut built: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for member in sources.crates() {
            for source in &member.sources {
                if let [_, room, _, ..] = &source.module[..] {
                    built.entry(member.name.clone()).or_default().insert(room.clone());
                }
            }
        }
        Ok(built)
    })?;
    let page = read("docs/architecture.md")?;
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<_>>();
    let table =
        page.split("\n## ").find_map(|section| section.split_once("| crate | rooms |")).map_or("", |(_, table)| table);
    let drawn: BTreeMap<String, BTreeSet<String>> = table_rows(table)
        .iter()
        .filter_map(|row| Some((names(row.first()?).pop_first()?, names(row.get(1)?))))
        .collect();
    assert_eq!(drawn, built, "docs/architecture.md (left), the crates (right)");
    Ok(())
}

/// How a thread gets its name, up to the name.
const NAMED: [&str; 6] = [
    "Builder::new().name(\"",
    "Builder::new().name(format!(\"",
    "rename_this_thread(&format!(\"",
    "start(job, \"",
    "start(\"",
    "start_helper(\"",
];

/// Threads are named in debuggers and by the table of docs/architecture.md, which says what bounds
/// them.
#[test]
fn the_table_of_threads_names_every_thread() -> Outcome<()> {
    let built = in_sources(|sources| {
        let mut built = BTreeSet::new();
        for source in sources.crates().flat_map(|member| &member.sources) {
            let code = source.text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            for start in NAMED {
                let names = code.split(start).skip(1).filter_map(|rest| rest.split(['"', '{']).next());
                built.extend(names.map(|name| name.trim_end().to_owned()));
            }
        }
        Ok(built)
    })?;
    let page = read("docs/architecture.md")?;
    let table =
        page.split("\n## ").find_map(|section| section.split_once("| thread | owner |")).map_or("", |(_, table)| table);
    let rows = table_rows(table.split("\n\n").next().unwrap_or_default());
    let drawn: BTreeSet<&str> =
        rows.iter().filter_map(|row| row.first()).flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let is = |drawn: &str, built: &str| {
        drawn.strip_prefix(built).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let missing = built.iter().filter(|name| !drawn.iter().any(|row| is(row, name)));
    let gone = drawn.iter().filter(|row| **row != "job N" && !built.iter().any(|name| is(row, name)));
    let missing = missing.map(|name| format!("not in the table of threads: {name}"));
    none(&missing.chain(gone.map(|row| format!("no thread is named so: {row}"))).collect::<Vec<_>>());
    assert!(built.len() > 20, "threads get their names in another way: {built:?}");
    Ok(())
}

/// Floors 0 and 1 but fd-os.
fn sans_io() -> Outcome<BTreeSet<String>> {
    Ok(floors()?.into_iter().filter(|(name, floor)| *floor <= 1 && name != "fd-os").map(|(name, _)| name).collect())
}

#[test]
fn floors_0_and_1_use_no_file_socket_thread_or_clock() -> Outcome<()> {
    const FORBIDDEN: [&str; 8] = [
        "std::fs",
        "std::net",
        "std::thread",
        "std::process",
        "std::os::unix::net",
        "std::os::unix::fs",
        "std::time::Instant",
        "std::time::SystemTime",
    ];
    const FORBIDDEN_CRATES: [&str; 14] = [
        "chrono",
        "crossbeam-channel",
        "fd-os",
        "jiff",
        "libc",
        "mio",
        "nix",
        "rayon",
        "rustls",
        "rustix",
        "socket2",
        "time",
        "tokio",
        "walkdir",
    ];
    let mut problems = in_sources(|sources| {
        let members = sans_io()?;
        let mut problems = Vec::new();
        for source in sources.crates().filter(|c| members.contains(&c.name)).flat_map(|c| &c.sources) {
            for (line, path) in named_paths(&source.code) {
                let clock = path.split("::").any(|word| word == "Instant" || word == "SystemTime");
                if clock || FORBIDDEN.iter().any(|f| path == *f || path.starts_with(&format!("{f}::"))) {
                    problems.push(format!("{}:{line}: {path}", source.path.display()));
                }
            }
        }
        Ok(problems)
    })?;
    let members = sans_io()?;
    for package in packages()?.iter().filter(|p| members.contains(&p.name)) {
        for dependency in package.dependencies.iter().filter(|d| !d.development) {
            if FORBIDDEN_CRATES.contains(&dependency.name.as_str()) {
                problems.push(format!("{} uses the crate {}", package.name, dependency.name));
            }
        }
    }
    none(&problems);
    Ok(())
}

/// A sequence of frames ends with `BNET_EOD`; if it is forgotten on one path, its reader hangs. So
/// each kind of channel has one function that sends it and nothing else does: to see every place
/// that ends a sequence, look for the callers of these two.
#[test]
fn end_of_data_is_sent_by_one_function_a_channel() -> Outcome<()> {
    // The end of a dialogue's or a list's frames, and of one stream of records.
    const SENDERS: [&str; 2] = ["end_of_data", "end_stream"];
    let (problems, senders) = in_sources(|sources| {
        let mut problems = Vec::new();
        let mut senders = 0;
        // Not fd-bsock: the alphabet gives the signal its number and sends nothing.
        for source in sources.crates().filter(|c| c.name != "fd-bsock").flat_map(|c| &c.sources) {
            let path = source.path.display();
            let places = sent_end_of_data(&source.code);
            for (line, function) in &places {
                if !function.as_deref().is_some_and(|name| SENDERS.contains(&name)) {
                    let function = function.as_deref().unwrap_or("no function");
                    problems.push(format!("{path}:{line}: BNET_EOD in {function}, not in one of {SENDERS:?}"));
                }
            }
            if places.len() > 1 {
                problems.push(format!("{path}: BNET_EOD is sent in {} places", places.len()));
            }
            senders += places.len();
        }
        Ok((problems, senders))
    })?;
    none(&problems);
    assert!(senders > 0, "BNET_EOD is not sent anywhere: has the signal another name by now?");
    Ok(())
}

/// The status is a decimal character code that may be followed by anything; read wrongly, a failed
/// job looks good.
#[test]
fn the_close_status_is_parsed_in_one_place_that_has_its_own_test() -> Outcome<()> {
    const REPLY: &str = "3000 OK close Status = ";
    let (parsers, tested) = in_sources(|sources| {
        let mut parsers = Vec::new();
        let mut tested = BTreeSet::new();
        for member in sources.crates() {
            for source in &member.sources {
                if literals(&source.code).iter().any(|literal| literal.text.starts_with(REPLY)) {
                    parsers.push((member.name.clone(), source.path.clone()));
                }
                for (name, literals) in test_functions(&source.whole) {
                    // A test of the parser, not one that uses the reply on the way: it tries
                    // several statuses.
                    let tries = literals.iter().filter(|text| text.contains(REPLY.trim_end())).count();
                    if tries >= 3 && name.contains("close_status") {
                        tested.insert(member.name.clone());
                    }
                }
            }
        }
        Ok((parsers, tested))
    })?;
    assert_eq!(parsers.len(), 1, "parsed in {parsers:?}");
    assert!(parsers.iter().all(|(name, _)| tested.contains(name)), "no test …close_status… with three replies or more");
    Ok(())
}

/// Whether a literal is something that we say to an operator or a peer, in the shapes that the
/// stock daemon's texts have.
fn is_said(literal: &Literal) -> bool {
    let text = literal.text.as_str();
    let words = text.split_whitespace().count();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    // A reply of ours: 2000 OK …, 2999 Invalid command. (1xxx and 3xxx are the peers' and only
    // parsed.)
    let reply = digits == 4 && text.starts_with('2') && text.as_bytes().get(4).is_some_and(|b| b" -".contains(b));
    // A job message: it carries the system's words, or is a sentence with its newline.
    let sentence = words >= 3 && text.ends_with('\n') && text.bytes().next().is_some_and(|b| b.is_ascii_uppercase());
    reply || text.contains("ERR=") || sentence
}

#[test]
fn an_error_number_becomes_words_in_one_function() -> Outcome<()> {
    const PLACE: &str = "crates/fd-os/src/error_text.rs";
    in_each_source(|source, problems| {
        if source.path.ends_with(PLACE) {
            return;
        }
        let cuts = literals(&source.code).into_iter().filter(|literal| literal.text.contains("(os error"));
        // `desc` is nix's table, which has words of its own.
        let table = |(line, path): (usize, String)| {
            let is_table = |word: &str| word.starts_with("strerror");
            (path.ends_with("Errno::desc") || path.split("::").any(is_table)).then_some(line)
        };
        let tables = named_paths(&source.code).into_iter().filter_map(table);
        let lines = cuts.map(|literal| literal.line).chain(method_calls(&source.code, "desc")).chain(tables);
        problems.extend(lines.map(|line| format!("{}:{line}: {PLACE} does that", source.path.display())));
    })
}

#[test]
fn texts_for_users_are_in_one_table_a_crate() -> Outcome<()> {
    in_each_source(|source, problems| {
        let said = literals(&source.code).into_iter().filter(|literal| !is_text_table(source) && is_said(literal));
        problems.extend(said.map(|said| format!("{}:{}: {:?}", source.path.display(), said.line, said.text)));
    })
}

/// `texts.rs`; that of a diagnosis; the Hello's words, which fd-bsock both says and reads; and the
/// pages of a status, where the words can't be told from their places.
fn is_text_table(source: &Source) -> bool {
    source.path.ends_with("src/texts.rs")
        || source.path.ends_with("src/bin/bsnapshot/texts.rs")
        || source.path.ends_with("src/diagnose/texts.rs")
        || source.path == Path::new("crates/fd-bsock/src/hello.rs")
        || source.path.starts_with("crates/bacula-fd/src/status")
}

/// A child inherits the signals that the daemon's threads block, so one function unblocks them.
#[test]
fn programs_are_started_by_the_function_that_unblocks_signals() -> Outcome<()> {
    // The second is a program of its own, which blocks none.
    const PLACES: [&str; 2] = ["crates/fd-os/src/process.rs", "crates/bacula-fd/src/bin/bsnapshot/"];
    in_each_source(|source, problems| {
        let path = source.path.display().to_string();
        let elsewhere = !PLACES.iter().any(|place| path.starts_with(place));
        let paths = named_paths(&source.code).into_iter().filter(|_| elsewhere);
        let started = paths.filter(|(_, named)| named.ends_with("Command::new"));
        problems.extend(started.map(|(line, _)| format!("{path}:{line}: fd_os::process::command does that")));
    })
}

#[test]
fn unsafe_is_in_its_places_with_a_safety_comment() -> Outcome<()> {
    in_each_source(|source, problems| {
        for line in unsafe_places(&source.whole) {
            let place = format!("{}:{line}", source.path.display());
            if !UNSAFE_PLACES.iter().any(|allowed| place.starts_with(allowed)) {
                problems.push(format!("{place}: unsafe outside {UNSAFE_PLACES:?}"));
            } else if !is_justified(&source.text, line) {
                problems.push(format!("{place}: no SAFETY comment on it"));
            }
        }
    })
}

/// Whether the comment lines directly above `line` (1-based), or the statement's first line above
/// it, say SAFETY.
fn is_justified(text: &str, line: usize) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let above = lines.get(..line).unwrap_or_default();
    // A statement may begin some lines before its unsafe block; nine lines hold it and its comment.
    above.iter().rev().take(9).any(|line| line.contains("SAFETY:") || line.contains("# Safety"))
}

#[test]
fn every_source_file_begins_with_its_purpose() -> Outcome<()> {
    let mut problems = Vec::new();
    for path in rust_files()? {
        let text = read(&path.to_string_lossy())?;
        let first = text.lines().find(|line| !line.is_empty()).unwrap_or_default();
        // A fuzz target must begin with an attribute.
        if !first.starts_with("//!") && !path.starts_with("fuzz") {
            problems.push(format!("{}: begins with {first:?}", path.display()));
        }
    }
    none(&problems);
    Ok(())
}

/// A test that can't run here says so through the package `skip`, which is counted.
#[test]
fn a_test_that_returns_early_is_counted_as_skipped() -> Outcome<()> {
    none(&in_sources(|sources| {
        let mut problems = Vec::new();
        for (path, file) in sources.files.iter().filter(|(path, _)| !path.starts_with("tests/skip")) {
            let place = path.display();
            let silent = silent_returns(file).into_iter();
            problems.extend(silent.map(|(test, line)| format!("{place}:{line}: {test} returns without skip::test")));
            let told = literals(file).into_iter().filter(|literal| {
                ["skipped:", "left out:"].iter().any(|word| literal.text.starts_with(word) && literal.text != *word)
            });
            let told = told.map(|literal| format!("{place}:{}: {:?} is for skip::test", literal.line, literal.text));
            problems.extend(told);
        }
        Ok(problems)
    })?);
    let text = "#[test] fn a() { if b { return; } let c = || { return; }; }
        #[test] fn d() -> R { if b { return Ok(()); } if c { return skip::test(e); } Ok(()) } fn f() { return; }";
    let found = silent_returns(&syn::parse_file(text)?);
    assert_eq!(found, [("a".to_owned(), 1), ("d".to_owned(), 2)], "the rule itself");
    Ok(())
}

/// What a program left behind must not be committed with the rest.
#[test]
fn no_file_has_more_than_two_mebibytes() -> Outcome<()> {
    let mut problems = Vec::new();
    for path in files()? {
        let size = std::fs::symlink_metadata(root().join(&path))?.len();
        if size > 2 << 20 {
            problems.push(format!("{}: {size} bytes", path.display()));
        }
    }
    none(&problems);
    Ok(())
}

/// The tree must mean the same on every machine.
#[test]
fn no_file_names_a_path_of_one_machine() -> Outcome<()> {
    // In pieces, so that this file does not name them.
    let places = [["/wo", "rk/"], ["/tmp/", "setup"], ["/home/", "runner"], ["/.car", "go/bin"]].map(|p| p.concat());
    let mut problems = Vec::new();
    for path in files()? {
        let Ok(text) = read(&path.to_string_lossy()) else { continue }; // not text
        for (number, line) in text.lines().enumerate() {
            if let Some(place) = places.iter().find(|place| line.contains(place.as_str())) {
                problems.push(format!("{}:{}: names {place}", path.display(), number + 1));
            }
        }
    }
    none(&problems);
    Ok(())
}

/// The names in backticks at the head of the rows below a heading.
fn first_cells(page: &str, heading: &str) -> BTreeSet<String> {
    let section = page.split("\n## ").find(|section| section.starts_with(heading)).unwrap_or_default();
    table_rows(section)
        .iter()
        .filter_map(|row| Some(row.first()?.strip_prefix('`')?.strip_suffix('`')?.to_owned()))
        .collect()
}

#[test]
fn every_dependency_has_its_reason() -> Outcome<()> {
    let page = read("docs/dependencies.md")?;
    let (mut program, mut tests) = (BTreeSet::new(), BTreeSet::new());
    for package in packages()? {
        let beside = BESIDE.contains(&package.name.as_str());
        for dependency in package.theirs() {
            let side = if beside || dependency.development { &mut tests } else { &mut program };
            side.insert(dependency.name.clone());
        }
    }
    let tests: BTreeSet<String> = tests.difference(&program).cloned().collect();
    assert_eq!(
        first_cells(&page, "In the program and its plugin"),
        program,
        "docs/dependencies.md (left), Cargo.toml (right)"
    );
    assert_eq!(first_cells(&page, "For tests"), tests, "docs/dependencies.md (left), Cargo.toml (right)");
    Ok(())
}

/// docs/differences.md names a test for each difference, and the paper one for each fault; a test
/// that is renamed or gone leaves a claim without proof.
#[test]
fn every_difference_names_a_test_that_exists() -> Outcome<()> {
    let mut known = BTreeSet::new();
    for path in rust_files()? {
        let text = read(&path.to_string_lossy())?;
        let names = text.lines().filter_map(|line| line.trim_start().strip_prefix("fn ")?.split('(').next());
        known.extend(names.map(str::to_owned));
    }
    let page = read("docs/differences.md")?;
    let mut problems = Vec::new();
    for row in table_rows(&page).iter().filter(|row| row.len() >= 4) {
        let cell = row.last().copied().unwrap_or_default();
        for name in cell.split('`').skip(1).step_by(2) {
            if !known.contains(name) {
                problems.push(format!("docs/differences.md names the test {name}, which does not exist"));
            }
        }
    }
    for name in read("paper/perf-analysis/faults.csv")?.lines().skip(1).filter_map(|line| line.split(',').nth(3)) {
        if !known.contains(name) {
            problems.push(format!("faults.csv names the test {name}, which does not exist"));
        }
    }
    none(&problems);
    Ok(())
}

#[test]
fn every_fuzz_target_has_seeds() -> Outcome<()> {
    let manifest = read("fuzz/Cargo.toml")?;
    let targets: Vec<&str> = manifest
        .lines()
        .filter_map(|line| line.strip_prefix("path = \"fuzz_targets/")?.strip_suffix(".rs\""))
        .collect();
    let mut problems = Vec::new();
    for target in &targets {
        let seeds = root().join("fuzz/seeds").join(target);
        let count = std::fs::read_dir(&seeds).map(Iterator::count).unwrap_or_default();
        if count == 0 {
            problems.push(format!("{} is empty or missing", seeds.display()));
        }
    }
    for path in rust_files()? {
        if path.parent() == Some(Path::new("fuzz/fuzz_targets")) {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            if !targets.contains(&stem.as_ref()) {
                problems.push(format!("{} is not in fuzz/Cargo.toml", path.display()));
            }
        }
    }
    none(&problems);
    Ok(())
}
