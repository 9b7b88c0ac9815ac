//! Questions to a parsed source file: its literals, paths, `unsafe` and ends of data.

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Expr, ExprMethodCall, ExprPath, File, Lit, Macro, Pat, UseTree};

/// A text literal (string, byte string or C string).
pub(crate) struct Literal {
    pub(crate) line: usize,
    /// Bytes that are not UTF-8 are replaced.
    pub(crate) text: String,
}

/// The text literals of a file, those inside macro calls included, those of attributes (and so of
/// doc comments and of error types) not.
pub(crate) fn literals(file: &File) -> Vec<Literal> {
    let mut finder = Literals::default();
    finder.visit_file(file);
    finder.found
}

#[derive(Default)]
struct Literals {
    found: Vec<Literal>,
}

impl Literals {
    fn take(&mut self, literal: &Lit) {
        let text = match literal {
            Lit::Str(text) => text.value(),
            Lit::ByteStr(bytes) => String::from_utf8_lossy(&bytes.value()).into_owned(),
            Lit::CStr(text) => text.value().to_string_lossy().into_owned(),
            _ => return,
        };
        self.found.push(Literal { line: literal.span().start().line, text });
    }

    fn take_tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Literal(literal) => self.take(&Lit::new(literal)),
                TokenTree::Group(group) => self.take_tokens(group.stream()),
                _ => {}
            }
        }
    }
}

impl<'a> Visit<'a> for Literals {
    fn visit_attribute(&mut self, _: &'a Attribute) {}

    fn visit_lit(&mut self, literal: &'a Lit) {
        self.take(literal);
    }

    fn visit_macro(&mut self, call: &'a Macro) {
        self.take_tokens(call.tokens.clone());
    }
}

/// The lines on which a method of this name is called, macro calls not looked into.
pub(crate) fn method_calls(file: &File, name: &'static str) -> Vec<usize> {
    struct Calls(&'static str, Vec<usize>);
    impl<'a> Visit<'a> for Calls {
        fn visit_expr_method_call(&mut self, call: &'a ExprMethodCall) {
            if call.method == self.0 {
                self.1.push(call.method.span().start().line);
            }
            visit::visit_expr_method_call(self, call);
        }
    }
    let mut calls = Calls(name, Vec::new());
    calls.visit_file(file);
    calls.1
}

/// Every path that a file names, with its line: imports spelled out (`use std::{fs, io}` is two),
/// paths in code and in macro calls as they stand.
pub(crate) fn named_paths(file: &File) -> Vec<(usize, String)> {
    let mut finder = Paths::default();
    finder.visit_file(file);
    finder.found
}

#[derive(Default)]
struct Paths {
    found: Vec<(usize, String)>,
}

impl Paths {
    fn take_import(&mut self, tree: &UseTree, prefix: &str) {
        let line = tree.span().start().line;
        match tree {
            UseTree::Path(path) => self.take_import(&path.tree, &format!("{prefix}{}::", path.ident)),
            UseTree::Name(name) => self.found.push((line, format!("{prefix}{}", name.ident))),
            UseTree::Rename(rename) => self.found.push((line, format!("{prefix}{}", rename.ident))),
            UseTree::Glob(_) => self.found.push((line, format!("{prefix}*"))),
            UseTree::Group(group) => group.items.iter().for_each(|item| self.take_import(item, prefix)),
        }
    }

    fn take_tokens(&mut self, tokens: TokenStream) {
        let mut path = String::new();
        let mut line = 0;
        for token in tokens {
            match &token {
                TokenTree::Ident(word) => {
                    if !path.ends_with("::") {
                        self.finish(line, &mut path);
                        line = word.span().start().line;
                    }
                    path.push_str(&word.to_string());
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => path.push(':'),
                TokenTree::Group(group) => self.take_tokens(group.stream()),
                _ => self.finish(line, &mut path),
            }
        }
        self.finish(line, &mut path);
    }

    fn finish(&mut self, line: usize, path: &mut String) {
        if !path.is_empty() {
            self.found.push((line, std::mem::take(path)));
        }
    }
}

impl<'a> Visit<'a> for Paths {
    fn visit_attribute(&mut self, _: &'a Attribute) {}

    fn visit_item_use(&mut self, import: &'a syn::ItemUse) {
        self.take_import(&import.tree, "");
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let words: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.found.push((path.span().start().line, words.join("::")));
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'a Macro) {
        self.take_tokens(call.tokens.clone());
    }
}

/// Where a file makes the value `Signal::Eod` in order to send it: the line, and the function
/// around it. Patterns and comparisons only look at one, and `Some(Signal::Eod)` or `Ok(…)` hands
/// over one that was received.
pub(crate) fn sent_end_of_data(file: &File) -> Vec<(usize, Option<String>)> {
    let mut finder = EndsOfData::default();
    finder.visit_file(file);
    finder.found
}

#[derive(Default)]
struct EndsOfData {
    functions: Vec<String>,
    found: Vec<(usize, Option<String>)>,
}

impl EndsOfData {
    fn within(&mut self, name: &syn::Ident, visit: impl FnOnce(&mut Self)) {
        self.functions.push(name.to_string());
        visit(self);
        self.functions.pop();
    }

    fn take(&mut self, line: usize) {
        self.found.push((line, self.functions.last().cloned()));
    }

    fn is_end_of_data(path: &ExprPath) -> bool {
        let mut words = path.path.segments.iter().rev().map(|segment| segment.ident.to_string());
        words.next().as_deref() == Some("Eod") && words.next().as_deref() == Some("Signal")
    }
}

impl<'a> Visit<'a> for EndsOfData {
    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        self.within(&function.sig.ident, |this| visit::visit_item_fn(this, function));
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        self.within(&function.sig.ident, |this| visit::visit_impl_item_fn(this, function));
    }

    fn visit_trait_item_fn(&mut self, function: &'a syn::TraitItemFn) {
        self.within(&function.sig.ident, |this| visit::visit_trait_item_fn(this, function));
    }

    fn visit_pat(&mut self, _: &'a Pat) {}

    fn visit_expr_binary(&mut self, binary: &'a syn::ExprBinary) {
        let compares = matches!(binary.op, BinOp::Eq(_) | BinOp::Ne(_));
        for side in [&binary.left, &binary.right] {
            if !(compares && matches!(&**side, Expr::Path(path) if Self::is_end_of_data(path))) {
                self.visit_expr(side);
            }
        }
    }

    fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
        let wraps = matches!(&*call.func, Expr::Path(path) if path.path.is_ident("Some") || path.path.is_ident("Ok"));
        let received = call.args.iter().all(|arg| matches!(arg, Expr::Path(path) if Self::is_end_of_data(path)));
        if !(wraps && received) {
            visit::visit_expr_call(self, call);
        }
    }

    fn visit_expr_path(&mut self, path: &'a ExprPath) {
        if Self::is_end_of_data(path) {
            self.take(path.span().start().line);
        }
    }

    fn visit_macro(&mut self, call: &'a Macro) {
        let looks_only = call.path.segments.last().is_some_and(|name| {
            let name = name.ident.to_string();
            name == "matches" || name.starts_with("assert") || name.starts_with("debug_assert")
        });
        if !looks_only {
            let mut paths = Paths::default();
            paths.take_tokens(call.tokens.clone());
            for (line, path) in paths.found {
                if path.ends_with("Signal::Eod") {
                    self.take(line);
                }
            }
        }
    }
}

/// The lines of every `unsafe` block, function, trait and implementation.
pub(crate) fn unsafe_places(file: &File) -> Vec<usize> {
    let mut finder = Unsafe::default();
    finder.visit_file(file);
    finder.found
}

#[derive(Default)]
struct Unsafe {
    found: Vec<usize>,
}

impl<'a> Visit<'a> for Unsafe {
    fn visit_expr_unsafe(&mut self, block: &'a syn::ExprUnsafe) {
        self.found.push(block.unsafe_token.span().start().line);
        visit::visit_expr_unsafe(self, block);
    }

    fn visit_signature(&mut self, signature: &'a syn::Signature) {
        self.found.extend(signature.unsafety.map(|word| word.span().start().line));
        visit::visit_signature(self, signature);
    }

    fn visit_item_impl(&mut self, block: &'a syn::ItemImpl) {
        self.found.extend(block.unsafety.map(|word| word.span().start().line));
        visit::visit_item_impl(self, block);
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        self.found.extend(item.unsafety.map(|word| word.span().start().line));
        visit::visit_item_trait(self, item);
    }
}

/// The structures of a file that name their fields, and how many these are.
pub(crate) fn structures(file: &File) -> Vec<(String, usize)> {
    #[derive(Default)]
    struct Structures(Vec<(String, usize)>);
    impl<'a> Visit<'a> for Structures {
        fn visit_item_struct(&mut self, structure: &'a syn::ItemStruct) {
            if matches!(structure.fields, syn::Fields::Named(_)) {
                self.0.push((structure.ident.to_string(), structure.fields.len()));
            }
        }
    }
    let mut structures = Structures::default();
    structures.visit_file(file);
    structures.0
}

/// The names of the functions with `#[test]`, each with its text literals.
pub(crate) fn test_functions(file: &File) -> Vec<(String, Vec<String>)> {
    let mut finder = Tests::default();
    finder.visit_file(file);
    finder.found
}

#[derive(Default)]
struct Tests {
    found: Vec<(String, Vec<String>)>,
}

impl<'a> Visit<'a> for Tests {
    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        if function.attrs.iter().any(|attribute| attribute.path().is_ident("test")) {
            let mut literals = Literals::default();
            literals.visit_block(&function.block);
            let texts = literals.found.into_iter().map(|literal| literal.text).collect();
            self.found.push((function.sig.ident.to_string(), texts));
        }
    }
}

/// The `return`s in functions with `#[test]` that end the test as if it had passed, and say
/// nothing.
pub(crate) fn silent_returns(file: &File) -> Vec<(String, usize)> {
    let mut finder = TestReturns::default();
    finder.visit_file(file);
    finder.found
}

#[derive(Default)]
struct TestReturns {
    test: Option<String>,
    found: Vec<(String, usize)>,
}

/// Nothing, or `Ok(())`.
fn is_silent(value: Option<&syn::Expr>) -> bool {
    match value {
        None => true,
        Some(syn::Expr::Call(call)) => {
            let is_ok = matches!(&*call.func, syn::Expr::Path(path) if path.path.is_ident("Ok"));
            is_ok && matches!(call.args.first(), Some(syn::Expr::Tuple(tuple)) if tuple.elems.is_empty())
        }
        Some(_) => false,
    }
}

impl<'a> Visit<'a> for TestReturns {
    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        let is_test = function.attrs.iter().any(|attribute| attribute.path().is_ident("test"));
        let outer = std::mem::replace(&mut self.test, is_test.then(|| function.sig.ident.to_string()));
        visit::visit_item_fn(self, function);
        self.test = outer;
    }

    fn visit_expr_closure(&mut self, closure: &'a syn::ExprClosure) {
        let outer = self.test.take();
        visit::visit_expr_closure(self, closure);
        self.test = outer;
    }

    fn visit_expr_return(&mut self, value: &'a syn::ExprReturn) {
        if let Some(test) = self.test.as_ref().filter(|_| is_silent(value.expr.as_deref())) {
            self.found.push((test.clone(), value.return_token.span.start().line));
        }
        visit::visit_expr_return(self, value);
    }
}
