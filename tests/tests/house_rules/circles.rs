//! Which file of a crate uses which other, and the circles among them.
//!
//! A file uses another if it names an item that is defined there: in an import, or by a path in
//! code. A re-export counts as the file that defines the item. A `mod` declaration and a `pub use`
//! are no use, so a parent that only declares and re-exports is free. What only a test build sees
//! is left out.
//!
//! A method that is called on `self` or by its type's name counts as the file of its `impl` block.
//! A call on another value is not seen.

#![expect(clippy::indexing_slicing, reason = "a module's name is never empty")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Spacing, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{
    Attribute, Expr, ExprMethodCall, File, ImplItem, Item, ItemImpl, ItemMod, ItemUse, Macro, Type, UseTree, Visibility,
};

use crate::sources::Source;

/// One circle: files that reach each other, and what ties them.
pub(crate) struct Circle {
    /// User, used file, and the names.
    pub(crate) arrows: Vec<(PathBuf, PathBuf, BTreeSet<String>)>,
}

impl std::fmt::Display for Circle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let files: BTreeSet<_> = self.arrows.iter().map(|(user, ..)| user).collect();
        writeln!(f, "{} files use each other:", files.len())?;
        for (user, used, names) in &self.arrows {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            writeln!(f, "    {} -> {}: {}", user.display(), used.display(), names.join(", "))?;
        }
        Ok(())
    }
}

/// The circles of files of one crate, its library, its program and its tests.
pub(crate) fn circles(sources: &[Source]) -> Vec<Circle> {
    let mut tree = Tree::default();
    for source in sources {
        tree.add(&source.path, &source.module, &source.code);
    }
    tree.circles()
}

type Name = Vec<String>;

/// The modules of a crate. The first word of a module's name is its target's (`lib`, `main`, a
/// test's name).
#[derive(Default)]
struct Tree {
    modules: BTreeMap<Name, Module>,
    /// Macros, which are seen below their definition without a path, by name.
    macros: BTreeMap<(String, String), Defined>,
}

#[derive(Default)]
struct Module {
    file: PathBuf,
    items: BTreeSet<String>,
    /// What an import calls it here, and what it names.
    imports: Vec<(String, Name)>,
    globs: Vec<Name>,
    /// Every path that the module names.
    used: Vec<Name>,
    /// The methods of each `impl` block that is for a type alone, after the type's path.
    methods: Vec<(Name, String)>,
}

/// What a path leads to.
enum Target {
    Module(Name),
    Item(Defined),
}

/// An item: its file and its name there.
type Defined = (PathBuf, String);
/// The files with `impl` blocks of a type, by the names of its methods.
type Methods = BTreeMap<(Defined, String), PathBuf>;

impl Tree {
    fn add(&mut self, file: &Path, name: &[String], code: &File) {
        let mut reader = Reader::new(file);
        reader.visit_file(code);
        self.keep(name, reader);
    }

    fn keep(&mut self, name: &[String], reader: Reader) {
        let Reader { module, inner, .. } = reader;
        for (child, reader) in inner {
            self.keep(&[name, &[child]].concat(), reader);
        }
        for item in &module.items {
            if let Some(text) = item.strip_suffix('!') {
                self.macros.insert((name[0].clone(), text.to_owned()), (module.file.clone(), item.clone()));
            }
        }
        self.modules.insert(name.to_owned(), module);
    }

    /// Follows a path from a module as far as it leads through modules, and gives what is left of
    /// it. `seen` ends imports that lead back to themselves.
    fn resolve<'p>(
        &self,
        from: &Name,
        path: &'p [String],
        seen: &mut BTreeSet<(Name, String)>,
    ) -> Option<(Target, &'p [String])> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Target::Module(from[..1].to_vec()),
            "self" => Target::Module(from.clone()),
            "super" => Target::Module(from[..from.len() - 1].to_vec()),
            name => self.name(from, name, seen)?,
        };
        while let (Target::Module(module), Some((next, after))) = (&at, rest.split_first()) {
            at = match next.as_str() {
                "super" => Target::Module(module[..module.len() - 1].to_vec()),
                name => self.name(module, name, seen)?,
            };
            rest = after;
        }
        Some((at, rest))
    }

    /// What a name means in a module.
    fn name(&self, module: &Name, name: &str, seen: &mut BTreeSet<(Name, String)>) -> Option<Target> {
        if !seen.insert((module.clone(), name.to_owned())) {
            return None;
        }
        let child = [&module[..], &[name.to_owned()]].concat();
        if self.modules.contains_key(&child) {
            return Some(Target::Module(child));
        }
        let here = self.modules.get(module)?;
        if here.items.contains(name) {
            return Some(Target::Item((here.file.clone(), name.to_owned())));
        }
        let mut imports = here.imports.iter().filter(|(alias, _)| alias == name);
        let found = imports.find_map(|(_, path)| Some(self.resolve(module, path, seen)?.0));
        found
            .or_else(|| {
                let globs = here.globs.iter().filter_map(|glob| self.resolve(module, glob, &mut seen.clone()));
                let mut modules = globs.filter_map(|(target, _)| match target {
                    Target::Module(module) => Some(module),
                    Target::Item(_) => None,
                });
                modules.find_map(|module| self.name(&module, name, &mut seen.clone()))
            })
            .or_else(|| {
                let text = name.strip_suffix('!')?;
                self.macros.get(&(module[0].clone(), text.to_owned())).cloned().map(Target::Item)
            })
    }

    /// The files of the methods.
    fn methods(&self) -> Methods {
        let mut methods = Methods::new();
        for (name, module) in &self.modules {
            for (path, method) in &module.methods {
                if let Some((Target::Item(item), [])) = self.resolve(name, path, &mut BTreeSet::new()) {
                    methods.insert((item, method.clone()), module.file.clone());
                }
            }
        }
        methods
    }

    /// Which file uses what of which other.
    fn arrows(&self) -> BTreeMap<(&PathBuf, PathBuf), BTreeSet<String>> {
        let methods = self.methods();
        let mut arrows: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        for (name, module) in &self.modules {
            for path in &module.used {
                let Some((Target::Item(item), rest)) = self.resolve(name, path, &mut BTreeSet::new()) else { continue };
                if let [method] = rest
                    && let Some((((_, owner), _), file)) = methods.get_key_value(&(item.clone(), method.clone()))
                    && *file != module.file
                {
                    arrows.entry((&module.file, file.clone())).or_default().insert(format!("{owner}::{method}"));
                }
                let (file, item) = item;
                if file != module.file {
                    arrows.entry((&module.file, file)).or_default().insert(item);
                }
            }
        }
        arrows
    }

    fn circles(&self) -> Vec<Circle> {
        let arrows = self.arrows();
        let mut reached: BTreeMap<&PathBuf, BTreeSet<&PathBuf>> = BTreeMap::new();
        for file in arrows.keys().map(|(user, _)| *user) {
            let mut next = vec![file];
            let all = reached.entry(file).or_default();
            while let Some(file) = next.pop() {
                let used = arrows.keys().filter(|(user, _)| *user == file).map(|(_, used)| used);
                next.extend(used.filter(|used| all.insert(used)));
            }
        }
        let is_reached = |from: &PathBuf, to: &PathBuf| reached.get(from).is_some_and(|all| all.contains(to));
        let mut circles = Vec::new();
        let mut done = BTreeSet::new();
        for (file, all) in &reached {
            if !all.contains(file) || done.contains(file) {
                continue;
            }
            let files: BTreeSet<&PathBuf> = all.iter().copied().filter(|other| is_reached(other, file)).collect();
            let within = arrows.iter().filter(|((user, used), _)| files.contains(user) && files.contains(used));
            let arrows = within.map(|((user, used), names)| ((*user).clone(), used.clone(), names.clone()));
            circles.push(Circle { arrows: arrows.collect() });
            done.extend(files);
        }
        circles
    }
}

/// Reads one module, and the modules inside it.
struct Reader {
    module: Module,
    /// The type of the `impl` block being read.
    implemented: Option<Name>,
    inner: Vec<(String, Reader)>,
}

impl Reader {
    fn new(file: &Path) -> Self {
        let module = Module { file: file.to_owned(), ..Module::default() };
        Self { module, implemented: None, inner: Vec::new() }
    }

    fn import(&mut self, tree: &UseTree, prefix: &[String], public: bool) {
        let below = |name: &syn::Ident| [prefix, &[name.to_string()]].concat();
        let (alias, path) = match tree {
            UseTree::Path(path) => return self.import(&path.tree, &below(&path.ident), public),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|item| self.import(item, prefix, public));
            }
            UseTree::Glob(_) => return self.module.globs.push(prefix.to_vec()),
            UseTree::Name(name) if name.ident == "self" => {
                (prefix.last().cloned().unwrap_or_default(), prefix.to_vec())
            }
            UseTree::Name(name) => (name.ident.to_string(), below(&name.ident)),
            UseTree::Rename(rename) if rename.ident == "self" => (rename.rename.to_string(), prefix.to_vec()),
            UseTree::Rename(rename) => (rename.rename.to_string(), below(&rename.ident)),
        };
        if !public {
            self.module.used.push(path.clone());
        }
        // An import brings a macro of its name too.
        let call = |name: &str| format!("{name}!");
        let (last, before) = path.split_last().map_or((String::new(), &[][..]), |(last, before)| (call(last), before));
        self.module.imports.push((call(&alias), [before, &[last]].concat()));
        self.module.imports.push((alias, path));
    }

    /// The paths in a macro's arguments: those with `::`, and single words that only a type or a
    /// constant can be.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Name = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match &token {
                TokenTree::Ident(word) => {
                    if colons != 2 {
                        self.path(&mut path);
                    }
                    path.push(word.to_string());
                }
                TokenTree::Punct(mark)
                    if mark.as_char() == ':' && (colons == 1 || mark.spacing() == Spacing::Joint) =>
                {
                    colons += 1;
                    continue;
                }
                TokenTree::Punct(mark) if mark.as_char() == '!' && !path.is_empty() => {
                    if let Some(name) = path.last_mut() {
                        name.push('!');
                    }
                    self.path(&mut path);
                }
                TokenTree::Group(group) => {
                    self.path(&mut path);
                    self.tokens(group.stream());
                }
                _ => self.path(&mut path),
            }
            colons = 0;
        }
        self.path(&mut path);
    }

    fn path(&mut self, path: &mut Name) {
        let single =
            path.len() == 1 && path[0].starts_with(|first: char| first.is_lowercase()) && !path[0].ends_with('!');
        if !path.is_empty() && !single {
            self.module.used.push(std::mem::take(path));
        }
        path.clear();
    }
}

impl<'a> Visit<'a> for Reader {
    fn visit_attribute(&mut self, _: &'a Attribute) {}

    fn visit_item_use(&mut self, import: &'a ItemUse) {
        if import.leading_colon.is_none() {
            self.import(&import.tree, &[], !matches!(import.vis, Visibility::Inherited));
        }
    }

    fn visit_item_mod(&mut self, module: &'a ItemMod) {
        if let Some((_, items)) = &module.content {
            let mut reader = Self::new(&self.module.file);
            for item in items {
                reader.visit_item(item);
            }
            self.inner.push((module.ident.to_string(), reader));
        }
    }

    fn visit_item(&mut self, item: &'a Item) {
        let name = match item {
            Item::Const(item) => Some(&item.ident),
            Item::Enum(item) => Some(&item.ident),
            Item::Fn(item) => Some(&item.sig.ident),
            Item::Static(item) => Some(&item.ident),
            Item::Struct(item) => Some(&item.ident),
            Item::Trait(item) => Some(&item.ident),
            Item::Type(item) => Some(&item.ident),
            Item::Union(item) => Some(&item.ident),
            _ => None,
        };
        self.module.items.extend(name.map(ToString::to_string));
        if let Item::Macro(item) = item
            && let Some(name) = &item.ident
        {
            self.module.items.insert(format!("{name}!"));
        }
        visit::visit_item(self, item);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        // A small word by itself is a variable, or an item that an import names.
        if !matches!(expr, Expr::Path(path) if path.path.get_ident().is_some_and(|name| name.to_string().starts_with(char::is_lowercase)))
        {
            visit::visit_expr(self, expr);
        }
    }

    fn visit_item_impl(&mut self, block: &'a ItemImpl) {
        let outer = self.implemented.take();
        if let Type::Path(path) = &*block.self_ty {
            let path = words(&path.path);
            if block.trait_.is_none() {
                let methods = block.items.iter().filter_map(|item| match item {
                    ImplItem::Fn(method) => Some((path.clone(), method.sig.ident.to_string())),
                    _ => None,
                });
                self.module.methods.extend(methods);
            }
            self.implemented = Some(path);
        }
        visit::visit_item_impl(self, block);
        self.implemented = outer;
    }

    fn visit_expr_method_call(&mut self, call: &'a ExprMethodCall) {
        if let (Expr::Path(path), Some(owner)) = (&*call.receiver, &self.implemented)
            && path.path.is_ident("self")
        {
            self.module.used.push([&owner[..], &[call.method.to_string()]].concat());
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.leading_colon.is_none() {
            let mut path = words(path);
            if let (Some("Self"), Some(owner)) = (path.first().map(String::as_str), &self.implemented) {
                path.splice(..1, owner.iter().cloned());
            }
            self.module.used.push(path);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'a Macro) {
        let mut path = words(&call.path);
        if let Some(name) = path.last_mut() {
            name.push('!');
        }
        self.module.used.push(path);
        self.tokens(call.tokens.clone());
    }
}

fn words(path: &syn::Path) -> Name {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

#[cfg(test)]
mod tests;
