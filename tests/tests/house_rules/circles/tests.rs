//! The rule on small invented crates.

use super::*;
use crate::sources::without_tests;

/// The circles of an invented crate: its modules' names and texts; each is a file of that name.
fn found(modules: &[(&str, &str)]) -> Vec<String> {
    let mut tree = Tree::default();
    for (name, text) in modules {
        let module = std::iter::once("lib").chain(name.split("::").filter(|word| *word != "lib"));
        let code = syn::parse_file(text).map(|mut file| {
            without_tests(&mut file);
            file
        });
        assert!(code.is_ok(), "{text}");
        if let Ok(code) = code {
            tree.add(Path::new(name), &module.map(str::to_owned).collect::<Vec<_>>(), &code);
        }
    }
    let arrows = tree.circles().into_iter().flat_map(|circle| circle.arrows);
    arrows
        .map(|(user, used, names)| {
            let names: Vec<_> = names.into_iter().collect();
            format!("{} -> {}: {}", user.display(), used.display(), names.join(" "))
        })
        .collect()
}

#[test]
fn a_circle_is_found_with_the_names_that_tie_it() {
    let left = ("a", "use crate::b::{One, two as other}; pub struct A; fn f() { other(); }");
    let right = ("b", "pub struct One(super::a::A); pub fn two() {}");
    let expected = ["a -> b: One two", "b -> a: A"];
    assert_eq!(found(&[("lib", "mod a; mod b;"), left, right]), expected);
    // One way only.
    assert!(found(&[("lib", "mod a; mod b;"), left, ("b", "pub struct One; pub fn two() {}")]).is_empty());
    // A longer way round.
    let three = [("a", "use crate::b::B; pub struct A;"), ("b", "use crate::c::C; pub struct B;")];
    let circle = found(&[three[0], three[1], ("c", "pub struct C(crate::a::A);"), ("d", "use crate::a::A;")]);
    assert_eq!(circle.len(), 3, "{circle:?}");
}

#[test]
fn a_parent_that_declares_and_re_exports_is_no_part_of_a_circle() {
    let child = ("p::child", "use super::Other; pub struct Child(Other);");
    let other = ("p::other", "pub struct Other;");
    assert!(
        found(&[("p", "mod child; mod other; pub use child::Child; pub(crate) use other::*;"), child, other])
            .is_empty()
    );
    // A re-export is the file behind it, also through a glob and a new name.
    let back = ("p::other", "pub struct Other; use super::Renamed;");
    let circle = found(&[("p", "pub use child::Child as Renamed; pub use self::other::*;"), child, back]);
    assert_eq!(circle, ["p::child -> p::other: Other", "p::other -> p::child: Child"]);
}

#[test]
fn a_child_that_uses_its_parent_while_that_uses_it_is_a_circle() {
    let circle = found(&[
        ("p", "mod child; pub struct Parent; fn f() { child::make(); }"),
        ("p::child", "use super::Parent; pub fn make() -> Parent { Parent }"),
    ]);
    assert_eq!(circle, ["p -> p::child: make", "p::child -> p: Parent"]);
}

#[test]
fn paths_in_code_types_and_macros_count() {
    let user = |text| ("a", text);
    let back = ("b", "use crate::a::A; pub struct B; pub fn make() {} pub const LEN: usize = 1; pub trait T {}");
    for text in [
        "pub struct A; fn f(b: &super::b::B) {}",
        "pub struct A; fn f() { crate::b::make() }",
        "pub struct A; impl crate::b::T for A {}",
        "pub struct A; fn f() { println!(\"{}\", crate::b::LEN) }",
        "use crate::b; pub struct A; fn f() { g(b::LEN) }",
        "use crate::b as other; pub struct A; fn f() { vec![other::make()]; }",
        "use crate::b::{self}; pub struct A(b::B);",
        "use super::b::*; pub struct A; fn f() -> [u8; LEN] {}",
        "pub struct A; mod inner { fn f() { super::super::b::make() } }",
        "pub struct A; fn f() { use crate::b::make; make() }",
    ] {
        assert_eq!(found(&[user(text), back]).len(), 2, "{text}");
    }
    for text in [
        "use other::b::B; pub struct A;",
        "pub struct A; fn f(make: u8) { make; x.make(); }",
        "pub struct A; #[cfg(test)] mod tests { use crate::b::B; } #[test] fn f() { crate::b::make() }",
        "use super::b::*; pub struct A; fn f() { let make = 1; make }",
        "use crate::b; pub struct A;",
    ] {
        assert!(found(&[user(text), back]).is_empty(), "{text}");
    }
}

#[test]
fn a_macro_ties_files_with_and_without_a_path() {
    let user = ("a", "pub struct A; fn f() { say!(1) }");
    let circle = found(&[("lib", "macro_rules! say { () => { $crate::a::A } }"), user]);
    assert_eq!(circle, ["a -> lib: say!", "lib -> a: A"]);
    let user = ("a", "use crate::b::say; pub struct A; fn f() { say!(1) }");
    let circle = found(&[user, ("b", "macro_rules! say { () => {} } pub(crate) use say; fn f(a: crate::a::A) {}")]);
    assert_eq!(circle.len(), 2, "{circle:?}");
}

#[test]
fn a_method_counts_as_the_file_of_its_impl_block() {
    let more = ("b", "use crate::a::A; impl A { pub fn more(&self) {} }");
    for text in [
        "pub struct A; impl A { fn f(&self) { self.more() } }",
        "pub struct A; impl A { fn f(&self) { Self::more(self) } }",
        "pub struct A; fn f(a: &A) { A::more(a) }",
        "pub struct A; impl Drop for A { fn drop(&mut self) { self.more() } }",
    ] {
        assert_eq!(found(&[("a", text), more]), ["a -> b: A::more", "b -> a: A"], "{text}");
    }
    let own = "pub struct A; struct B; impl B { fn more(&self) {} fn f(&self) { self.more() } }";
    assert!(found(&[("a", own), more]).is_empty());
}
