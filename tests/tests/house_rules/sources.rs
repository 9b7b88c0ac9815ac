//! The workspace's own sources, parsed: which files make each crate, and their code with the tests
//! taken out.
//!
//! Not here: any rule.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::LazyLock;
use std::sync::mpsc::{self, Sender};
use std::thread;

use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, File, Item};

/// What a rule may end with: any error names the place by itself.
pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// One source file that the program is built from.
pub(crate) struct Source {
    /// From the repository's root, for messages.
    pub(crate) path: PathBuf,
    /// Its module's name, after that of its target (`lib`, `main`, or a program's or a
    /// test's).
    pub(crate) module: Vec<String>,
    pub(crate) text: String,
    /// The file without what only a test build sees.
    pub(crate) code: File,
    /// The file as it is.
    pub(crate) whole: Rc<File>,
}

/// One package.
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) sources: Vec<Source>,
}

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Rust files by their path from the root.
type Files = BTreeMap<PathBuf, Rc<File>>;

/// All of them, parsed.
pub(crate) struct Sources {
    /// Every Rust file, in a module tree or not.
    pub(crate) files: Files,
    /// By name.
    crates: Vec<Crate>,
    plugins: Vec<Crate>,
    /// The bench and the bed.
    beside: Vec<Crate>,
}

impl Sources {
    fn parsed() -> Outcome<Self> {
        let parsed = |path: PathBuf| -> Outcome<(PathBuf, Rc<File>)> {
            let text = read(&path.to_string_lossy())?;
            let file = syn::parse_file(&text).map_err(|error| format!("{}: {error}", path.display()))?;
            Ok((path, Rc::new(file)))
        };
        let files = rust_files()?.into_iter().map(parsed).collect::<Outcome<Files>>()?;
        let package = |directory: &Path| package(directory, &files);
        let mut crates = Vec::new();
        for entry in fs::read_dir(root().join("crates"))? {
            crates.push(package(&entry?.path())?);
        }
        crates.sort_by(|a, b| a.name.cmp(&b.name));
        let mut bed = package(&root().join("tests"))?;
        for entry in fs::read_dir(root().join("tests/tests"))? {
            let file = entry?.path().join("main.rs");
            if let (true, Some(directory)) = (file.exists(), file.parent()) {
                let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
                follow(&file, directory, &[name], &files, &mut bed.sources)?;
            }
        }
        let plugins = vec![package(&root().join("plugins/s3"))?];
        let beside = vec![package(&root().join("bench"))?, bed];
        Ok(Self { files, crates, plugins, beside })
    }

    /// Every crate below `crates/` with the files that its module tree reaches outside tests.
    pub(crate) fn crates(&self) -> impl Iterator<Item = &Crate> {
        self.crates.iter()
    }

    /// The crates, and the plugins that are packaged.
    pub(crate) fn crates_and_plugins(&self) -> impl Iterator<Item = &Crate> {
        self.crates().chain(&self.plugins)
    }

    /// The crates, the plugins, the bench, and the bed with its tests.
    pub(crate) fn crates_and_tests(&self) -> impl Iterator<Item = &Crate> {
        self.crates_and_plugins().chain(&self.beside)
    }
}

/// What a rule asks of the sources, or of why they could not be parsed.
type Question = Box<dyn FnOnce(&Result<Sources, String>) + Send>;

/// What a rule finds in the sources. They are parsed once, by a thread that asks every rule: what
/// syn makes can't leave its thread.
pub(crate) fn in_sources<T: Send + 'static>(rule: impl FnOnce(&Sources) -> Outcome<T> + Send + 'static) -> Outcome<T> {
    static QUESTIONS: LazyLock<Sender<Question>> = LazyLock::new(|| {
        let (sender, questions) = mpsc::channel::<Question>();
        thread::spawn(move || {
            let sources = Sources::parsed().map_err(|error| error.to_string());
            for question in questions {
                question(&sources);
            }
        });
        sender
    });
    let (sender, found) = mpsc::channel();
    let question: Question = Box::new(move |sources| {
        let sources = sources.as_ref().map_err(Clone::clone);
        let answer = sources.and_then(|sources| rule(sources).map_err(|error| error.to_string()));
        // A test that has gone needs none.
        drop(sender.send(answer));
    });
    QUESTIONS.send(question).map_err(|_| "a rule has ended the thread that has the sources")?;
    Ok(found.recv()??)
}

/// The library and the programs of a package.
fn package(directory: &Path, files: &Files) -> Outcome<Crate> {
    let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut sources = Vec::new();
    for target in ["lib", "main"] {
        let file = directory.join(format!("src/{target}.rs"));
        if file.exists() {
            follow(&file, &directory.join("src"), &[target.to_owned()], files, &mut sources)?;
        }
    }
    let mut programs: Vec<PathBuf> = match fs::read_dir(directory.join("src/bin")) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?,
        Err(_) => Vec::new(),
    };
    programs.sort();
    for program in programs {
        let file = program.join("main.rs");
        if file.exists() {
            let target = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
            follow(&file, &program, &[target], files, &mut sources)?;
        }
    }
    Ok(Crate { name, sources })
}

/// Every Rust file that git tracks or would add, as paths from the root.
pub(crate) fn rust_files() -> Outcome<BTreeSet<PathBuf>> {
    Ok(files()?.into_iter().filter(|file| file.extension().is_some_and(|e| e == "rs")).collect())
}

/// Every file that git tracks or would add, as paths from the root.
pub(crate) fn files() -> Outcome<BTreeSet<PathBuf>> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()?;
    if !listed.status.success() {
        return Err(format!("git ls-files: {}", String::from_utf8_lossy(&listed.stderr)).into());
    }
    let names = String::from_utf8(listed.stdout)?;
    // A file may be deleted and not yet committed so.
    Ok(names.split_terminator('\0').map(PathBuf::from).filter(|file| root().join(file).is_file()).collect())
}

/// The text of a file named from the root.
pub(crate) fn read(path: &str) -> Outcome<String> {
    fs::read_to_string(root().join(path)).map_err(|error| format!("{path}: {error}").into())
}

/// Reads `file`, then the modules it declares; `directory` is where those are.
fn follow(file: &Path, directory: &Path, name: &[String], files: &Files, into: &mut Vec<Source>) -> Outcome<()> {
    let path = file.canonicalize()?.strip_prefix(root().canonicalize()?)?.to_owned();
    let text = read(&path.to_string_lossy())?;
    let whole = files.get(&path).ok_or_else(|| format!("{}: git does not list it", path.display()))?;
    let mut code = File::clone(whole);
    without_tests(&mut code);
    let modules: Vec<(String, Option<String>)> = code
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Mod(module) if module.content.is_none() => Some((module.ident.to_string(), path_of(module))),
            _ => None,
        })
        .collect();
    into.push(Source { path, module: name.to_owned(), text, code, whole: Rc::clone(whole) });
    for (module, elsewhere) in modules {
        let flat = directory.join(format!("{module}.rs"));
        let nested = directory.join(&module).join("mod.rs");
        let child = match elsewhere {
            Some(path) => file.parent().ok_or("a file without a folder")?.join(path),
            None if flat.exists() => flat,
            None => nested,
        };
        let name = [name, std::slice::from_ref(&module)].concat();
        follow(&child, &directory.join(&module), &name, files, into)?;
    }
    Ok(())
}

/// The file that an attribute names for a module.
fn path_of(module: &syn::ItemMod) -> Option<String> {
    let attribute = module.attrs.iter().find(|attribute| attribute.path().is_ident("path"))?;
    match &attribute.meta {
        syn::Meta::NameValue(syn::MetaNameValue {
            value: syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(path), .. }),
            ..
        }) => Some(path.value()),
        _ => None,
    }
}

/// Takes out of a file what is compiled for tests only.
pub(crate) fn without_tests(file: &mut File) {
    WithoutTests.visit_file_mut(file);
}

struct WithoutTests;

impl VisitMut for WithoutTests {
    fn visit_file_mut(&mut self, file: &mut File) {
        file.items.retain(|item| !is_test_only(attributes(item)));
        visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if let Some((_, items)) = &mut module.content {
            items.retain(|item| !is_test_only(attributes(item)));
        }
        visit_mut::visit_item_mod_mut(self, module);
    }

    fn visit_item_impl_mut(&mut self, block: &mut syn::ItemImpl) {
        block.items.retain(|item| match item {
            syn::ImplItem::Fn(function) => !is_test_only(&function.attrs),
            syn::ImplItem::Const(constant) => !is_test_only(&constant.attrs),
            _ => true,
        });
        visit_mut::visit_item_impl_mut(self, block);
    }
}

/// `#[test]`, or a `cfg` that names `test` without a `not`.
pub(crate) fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        if attribute.path().is_ident("test") {
            return true;
        }
        let words = match &attribute.meta {
            syn::Meta::List(list) if list.path.is_ident("cfg") => words(&list.tokens),
            _ => return false,
        };
        words.iter().any(|word| word == "test") && !words.iter().any(|word| word == "not")
    })
}

/// All identifiers of a token stream, however deep.
fn words(tokens: &proc_macro2::TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    for token in tokens.clone() {
        match token {
            proc_macro2::TokenTree::Ident(word) => found.push(word.to_string()),
            proc_macro2::TokenTree::Group(group) => found.extend(words(&group.stream())),
            _ => {}
        }
    }
    found
}

/// The attributes of an item of any kind that can carry some.
pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
