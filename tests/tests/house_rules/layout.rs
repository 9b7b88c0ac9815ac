//! Rules of the layout: where modules and unit tests are, and one name, one dependency, one way for
//! one thing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use syn::{Item, Visibility};

use crate::code::{named_paths, structures, test_functions};
use crate::none;
use crate::packages::packages;
use crate::sources::{Outcome, Source, Sources, in_sources, is_test_only, read, rust_files};

/// Longest block of unit tests inside the file that they test, in lines.
const INLINE_TESTS: usize = 80;
/// The crate that uses both `nix` and `rustix`: only `nix` has users and groups, only `rustix`
/// extended attributes.
const USE_BOTH: [&str; 2] = ["fd-metadata", "fd-plugins"];

#[test]
fn a_module_with_children_stands_in_a_file_of_its_name() -> Outcome<()> {
    let found = rust_files()?.into_iter().filter(|path| path.ends_with("mod.rs"));
    none(&found.map(|path| format!("{}: move it to the module's name", path.display())).collect::<Vec<_>>());
    Ok(())
}

/// One place for unit tests: the module `tests`, at the end of the file or in a file of its own.
#[test]
fn unit_tests_stand_in_one_place() -> Outcome<()> {
    none(&in_sources(|sources| {
        let mut problems = Vec::new();
        for member in sources.crates_and_tests() {
            for source in &member.sources {
                let place = source.path.display();
                let modules = source.whole.items.iter().enumerate().filter_map(|(at, item)| match item {
                    Item::Mod(module) if is_test_only(&module.attrs) => Some((at, module)),
                    _ => None,
                });
                for (at, module) in modules {
                    let Some((braces, _)) = &module.content else { continue };
                    if module.ident != "tests" {
                        problems.push(format!("{place}: the tests' module is named {}, not tests", module.ident));
                    }
                    let lines = braces.span.close().start().line - braces.span.open().start().line;
                    if lines > INLINE_TESTS {
                        problems.push(format!("{place}: {lines} lines of unit tests belong in a file of their own"));
                    }
                    if at + 1 < source.whole.items.len() {
                        problems.push(format!("{place}: something stands behind the unit tests"));
                    }
                }
            }
        }
        Ok(problems)
    })?);
    Ok(())
}

/// The public types of each crate, with their places.
fn public_types() -> Outcome<BTreeMap<String, BTreeMap<String, String>>> {
    in_sources(|sources| {
        let mut types = BTreeMap::new();
        for member in sources.crates() {
            let of_crate: &mut BTreeMap<String, String> = types.entry(member.name.clone()).or_default();
            for source in &member.sources {
                for item in &source.code.items {
                    let (visibility, name) = match item {
                        Item::Enum(item) => (&item.vis, &item.ident),
                        Item::Struct(item) => (&item.vis, &item.ident),
                        Item::Trait(item) => (&item.vis, &item.ident),
                        Item::Type(item) => (&item.vis, &item.ident),
                        Item::Union(item) => (&item.vis, &item.ident),
                        _ => continue,
                    };
                    if matches!(visibility, Visibility::Public(_)) {
                        of_crate.insert(name.to_string(), source.path.display().to_string());
                    }
                }
            }
        }
        Ok(types)
    })
}

#[test]
fn crates_that_meet_have_no_public_types_of_one_name() -> Outcome<()> {
    let types = public_types()?;
    let mut problems = BTreeSet::new();
    for package in packages()? {
        // What one crate sees: its own types, and those of each crate that it depends on.
        let seen = package.ours().map(|dependency| dependency.name.as_str()).chain([package.name.as_str()]);
        let mut places: BTreeMap<&String, BTreeSet<&String>> = BTreeMap::new();
        for (name, place) in seen.filter_map(|name| types.get(name)).flatten() {
            places.entry(name).or_default().insert(place);
        }
        for (name, places) in places.into_iter().filter(|(_, places)| places.len() > 1) {
            problems.insert(format!("{name}: {places:?}"));
        }
    }
    none(&problems.into_iter().collect::<Vec<_>>());
    Ok(())
}

#[test]
fn system_calls_go_through_nix_or_rustix_in_a_crate() -> Outcome<()> {
    let mut problems = Vec::new();
    for package in packages()? {
        let uses = |name: &str| package.theirs().any(|dependency| dependency.name == name);
        if uses("nix") && uses("rustix") && !USE_BOTH.contains(&package.name.as_str()) {
            problems.push(format!("{} uses nix and rustix", package.name));
        }
    }
    none(&problems);
    Ok(())
}

/// The most fields of a structure.
const MOST_FIELDS: usize = 12;

/// Structures with more, and why.
const LARGE: [(&str, &str); 20] = [
    ("Cli", "an option of the command line each"),
    ("FileDaemon", "a directive each"),
    ("Director", "a directive each"),
    ("BucketSettings", "a setting each"),
    ("JobSettings", "a setting each"),
    ("Options", "a letter of a FileSet's options each"),
    ("BackupPlan", "what a caller decides about a backup"),
    ("JobCodes", "a job code each"),
    ("Stat", "a field of LStat each"),
    ("StatForm", "a field of the plugin interface's stat each"),
    ("SavePacket", "a field of the plugin interface's packet each"),
    ("SavePacketC", "the same in C's layout"),
    ("RestoreFile", "a field of the plugin interface's packet each"),
    ("RestorePacketC", "the same in C's layout"),
    ("IoPacket", "the same in C's layout"),
    ("PluginFunctions", "a function of the plugin interface each"),
    ("DaemonFunctions", "a function of the plugin interface each"),
    ("RemoteInstance", "a plugin's answer each"),
    ("Offers", "a function that a plugin has, or not, each"),
    ("Job", "what the threads of one job share"),
];

#[test]
fn structures_have_at_most_twelve_fields_or_a_reason() -> Outcome<()> {
    none(&in_sources(|sources| {
        let mut large = BTreeSet::new();
        let mut problems = Vec::new();
        for source in sources.crates_and_plugins().flat_map(|package| &package.sources) {
            for (name, fields) in structures(&source.code).into_iter().filter(|(_, fields)| *fields > MOST_FIELDS) {
                if !LARGE.iter().any(|(known, _)| *known == name) {
                    problems.push(format!("{}: {name} has {fields} fields", source.path.display()));
                }
                large.insert(name);
            }
        }
        let gone = LARGE.iter().filter(|(name, _)| !large.contains(*name));
        problems.extend(gone.map(|(name, _)| format!("{name} has no more than {MOST_FIELDS} fields")));
        Ok(problems)
    })?);
    Ok(())
}

/// A panic must not make a lock of the daemon unusable. Crates below `fd-os` have one each.
#[test]
fn locks_are_those_of_fd_os() -> Outcome<()> {
    none(&in_sources(|sources| {
        let mut problems = Vec::new();
        let below = ["fd-messages", "fd-crypto", "fd-session"];
        let packages = sources.crates_and_plugins().filter(|package| !below.contains(&package.name.as_str()));
        for source in packages.flat_map(|package| &package.sources) {
            if !source.path.ends_with("fd-os/src/lock.rs") {
                let locks = ["std::sync::Mutex", "std::sync::RwLock", "std::sync::Condvar", "std::sync::PoisonError"];
                let named = named_paths(&source.code).into_iter().filter(|(_, path)| locks.contains(&path.as_str()));
                problems.extend(named.map(|(line, path)| format!("{}:{line}: {path}", source.path.display())));
            }
        }
        Ok(problems)
    })?);
    Ok(())
}

#[test]
fn every_dependency_of_the_workspace_is_used() -> Outcome<()> {
    let workspace: toml::Table = read("Cargo.toml")?.parse()?;
    let table = |table: &toml::Table, key: &str| table.get(key).and_then(toml::Value::as_table).cloned();
    let listed = table(&workspace, "workspace").and_then(|workspace| table(&workspace, "dependencies"));
    let mut unused: BTreeSet<String> = listed.into_iter().flatten().map(|(name, _)| name).collect();
    assert!(!unused.is_empty(), "the manifest lists no dependency");
    for manifest in crate::sources::files()?.iter().filter(|path| path.ends_with("Cargo.toml")) {
        let manifest: toml::Table = read(&manifest.to_string_lossy())?.parse()?;
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for (name, value) in table(&manifest, kind).unwrap_or_default() {
                if value.get("workspace").is_some() {
                    unused.remove(&name);
                }
            }
        }
    }
    none(&unused.into_iter().map(|name| format!("{name}: no member uses it")).collect::<Vec<_>>());
    Ok(())
}

/// What may be skipped in continuous integration.
const MAY_SKIP: &str = ".ci/may-skip";

/// Every test as its thread is called, with its text literals.
fn tests() -> Outcome<&'static BTreeMap<String, Vec<String>>> {
    static TESTS: LazyLock<Result<BTreeMap<String, Vec<String>>, String>> =
        LazyLock::new(|| in_sources(|sources| Ok(read_tests(sources))).map_err(|error| error.to_string()));
    Ok(TESTS.as_ref().map_err(Clone::clone)?)
}

fn read_tests(sources: &Sources) -> BTreeMap<String, Vec<String>> {
    let mut tests = BTreeMap::new();
    for (path, file) in &sources.files {
        // Unit tests are in a module of their own; those of a suite, or of a crate's public face,
        // are not.
        let below = |folder: &str| path.iter().skip_while(|part| *part != folder).skip(1).collect::<Vec<_>>();
        let is_unit = path.iter().any(|part| part == "src");
        let parts = if is_unit { below("src") } else { below("tests") };
        // A suite of several files, or one.
        let of_suite = if path.starts_with("tests/tests") { 2 } else { 1 };
        let parts = parts.into_iter().skip(if is_unit { 0 } else { of_suite });
        let module: Vec<_> = parts.map(|part| part.to_string_lossy().replace(".rs", "")).collect();
        let apart = !is_unit || module.iter().any(|name| name == "tests");
        let inside = if apart { "" } else { "::tests" };
        let mut functions = test_functions(file);
        for item in &file.items {
            if let Item::Mod(syn::ItemMod { content: Some((_, items)), .. }) = item {
                let file = syn::File { shebang: None, attrs: Vec::new(), items: items.clone() };
                functions.extend(test_functions(&file));
            }
        }
        let module = module.iter().flat_map(|name| [name, "::"]).collect::<String>();
        let inside = inside.strip_prefix("::").map(|inside| format!("{inside}::")).unwrap_or_default();
        tests.extend(functions.into_iter().map(|(name, texts)| (format!("{module}{inside}{name}"), texts)));
    }
    tests
}

/// Whether a line of the list, whose name may end in a star, means a test.
fn means(line: &str, test: &str) -> bool {
    line.strip_suffix('*').map_or(line == test, |beginning| test.starts_with(beginning))
}

/// A test that moved would otherwise fail in continuous integration only, on a machine that lacks
/// something.
#[test]
fn every_permitted_skip_names_tests_that_exist() -> Outcome<()> {
    let (tests, list) = (tests()?, read(MAY_SKIP)?);
    let names = list.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split(" | ").next());
    let gone = names.filter(|name| !tests.keys().any(|test| means(name, test)));
    none(&gone.map(|name| format!("{MAY_SKIP}: there is no test {name}")).collect::<Vec<_>>());
    Ok(())
}

/// What a machine may lack, it lacks for each test that needs it: a test that has a reason of the
/// list in its text is on the list with it.
#[test]
fn a_permitted_reason_is_permitted_to_each_test_that_gives_it() -> Outcome<()> {
    let list = read(MAY_SKIP)?;
    let rows: Vec<Vec<&str>> =
        list.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(" | ").collect()).collect();
    let mut problems = Vec::new();
    for (test, texts) in tests()? {
        for text in texts {
            let mut given = rows.iter().filter(|row| text.contains(row[1])).peekable();
            if given.peek().is_some() && !given.any(|row| means(row[0], test)) {
                problems.push(format!("{MAY_SKIP}: {test} is not on it, and may say: {text}"));
            }
        }
    }
    none(&problems);
    Ok(())
}

/// What a room uses never uses that room, directly or through others.
#[test]
fn no_crate_has_circles_of_rooms() -> Outcome<()> {
    none(&in_sources(|sources| {
        let mut round = Vec::new();
        for member in sources.crates() {
            let inside = |source: &&Source| source.module.len() > 2;
            let rooms: BTreeSet<_> =
                member.sources.iter().filter(inside).map(|source| source.module[1].clone()).collect();
            let mut arrows: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
            for source in &member.sources {
                let Some(room) = source.module.get(1).and_then(|room| rooms.get(room)) else { continue };
                for (_, path) in named_paths(&source.code) {
                    let used = path.strip_prefix("crate::").and_then(|rest| rest.split("::").next());
                    if let Some(used) = used.and_then(|used| rooms.get(used)).filter(|used| *used != room) {
                        arrows.entry(room).or_default().insert(used.clone());
                    }
                }
            }
            // What arrows nothing that is left is at the ground, and is taken away.
            while let Some(ground) =
                arrows.iter().find(|(_, used)| used.iter().all(|used| !arrows.contains_key(&**used)))
            {
                let ground = *ground.0;
                arrows.remove(ground);
            }
            round.extend((!arrows.is_empty()).then(|| format!("{}: {arrows:?}", member.name)));
        }
        Ok(round)
    })?);
    Ok(())
}

/// The head of the program lists its rooms from the top; what runs on lower ones can be read
/// without the upper ones.
#[test]
fn a_room_of_the_program_uses_lower_rooms_only() -> Outcome<()> {
    none(&in_sources(|sources| {
        let head = read("crates/bacula-fd/src/main.rs")?;
        let lines = head.lines().filter_map(|line| line.strip_prefix("//! - [`"));
        let rooms: BTreeMap<&str, usize> = lines
            .enumerate()
            .flat_map(|(level, line)| {
                line.split(", [`").map(move |rest| (rest.split('`').next().unwrap_or_default(), level))
            })
            .collect();
        if rooms.len() < 8 {
            return Err(format!("the rooms are listed in another form: {rooms:?}").into());
        }
        let mut problems = Vec::new();
        for source in sources.crates().filter(|member| member.name == "bacula-fd").flat_map(|member| &member.sources) {
            let Some((room, level)) = source.module.get(1).and_then(|room| rooms.get_key_value(room.as_str())) else {
                continue;
            };
            for (line, path) in named_paths(&source.code) {
                let used = path.strip_prefix("crate::").and_then(|rest| rest.split("::").next());
                let used = used.and_then(|used| rooms.get_key_value(used)).filter(|(used, _)| *used != room);
                if let Some((used, _)) = used.filter(|(_, below)| *below <= level) {
                    problems
                        .push(format!("{}:{line}: {room} uses {used}, which is not below it", source.path.display()));
                }
            }
        }
        Ok(problems)
    })?);
    Ok(())
}

#[test]
fn comments_have_at_most_100_columns() -> Outcome<()> {
    const COLUMNS: usize = 100;
    let mut problems = Vec::new();
    for path in rust_files()? {
        for (at, line) in read(&path.to_string_lossy())?.lines().enumerate() {
            let columns = line.chars().count();
            if line.trim_start().starts_with("//") && columns > COLUMNS {
                problems.push(format!("{}:{}: {columns} columns", path.display(), at + 1));
            }
        }
    }
    none(&problems);
    Ok(())
}

/// Where `CARGO_TARGET_DIR` names another folder, what lies in `target/release` is of an earlier
/// day: a test would be green for a program that was not built.
#[test]
fn scripts_take_programs_from_where_cargo_puts_them() -> Outcome<()> {
    let mut problems = Vec::new();
    let places = [".ci", "scripts", "packaging"];
    for path in crate::sources::files()?.into_iter().filter(|path| places.iter().any(|place| path.starts_with(place))) {
        let place = path.display().to_string();
        let Ok(text) = read(&place) else { continue };
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim_start().starts_with('#')) {
            // `$target/release` is where cargo puts them, and `release-…` another folder.
            let others = line.replace("$target/release", "").replace("target/release-", "");
            if others.contains("target/release") {
                problems.push(format!("{place}:{number}: {line}"));
            }
        }
    }
    none(&problems);
    Ok(())
}

/// Under `set -e` a shell goes on when what stands before `&&` fails: a test of packages would be
/// as good as one that has not looked.
#[test]
fn scripts_give_package_managers_a_line_of_their_own() -> Outcome<()> {
    const MANAGERS: [&str; 5] = ["rpm", "dpkg", "dpkg-query", "apt-get", "dnf"];
    let mut problems = Vec::new();
    for path in crate::sources::files()?.into_iter().filter(|path| path.starts_with("scripts")) {
        let place = path.display().to_string();
        for (number, line) in (1..).zip(read(&place)?.lines()) {
            // As the last word of a list it ends the script.
            let begins = line.split_once(" && ").and_then(|(first, _)| first.split_whitespace().next());
            if begins.is_some_and(|word| MANAGERS.contains(&word)) && !line.contains(" || ") {
                problems.push(format!("{place}:{number}: {line}"));
            }
        }
    }
    none(&problems);
    Ok(())
}
