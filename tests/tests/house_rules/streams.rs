//! Stream numbers: their meaning is in one table, so no other code compares them with literals.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ExprBinary, ExprCall, ExprMatch, File, Macro};

use crate::sources::{Outcome, in_sources};

/// The file with the table.
const TABLE: &str = "crates/fd-records/src/vocabulary/stream.rs";

/// The lines on which the number of a stream is compared with others, and on which a stream is made
/// of a literal.
fn bare_numbers(file: &File) -> Vec<usize> {
    #[derive(Default)]
    struct Places(Vec<usize>);
    impl<'a> Visit<'a> for Places {
        fn visit_expr_match(&mut self, found: &'a ExprMatch) {
            if is_number(&found.expr) {
                self.0.push(found.span().start().line);
            }
            visit::visit_expr_match(self, found);
        }

        fn visit_expr_binary(&mut self, found: &'a ExprBinary) {
            let compares = matches!(
                found.op,
                BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_)
            );
            if compares && (is_number(&found.left) || is_number(&found.right)) {
                self.0.push(found.span().start().line);
            }
            visit::visit_expr_binary(self, found);
        }

        fn visit_expr_call(&mut self, call: &'a ExprCall) {
            let makes = matches!(&*call.func, Expr::Path(path) if ends_with_stream_new(&path.path));
            if makes && call.args.iter().any(|argument| matches!(argument, Expr::Lit(_))) {
                self.0.push(call.span().start().line);
            }
            visit::visit_expr_call(self, call);
        }

        fn visit_macro(&mut self, call: &'a Macro) {
            let tokens: String = call.tokens.to_string().split_whitespace().collect();
            let is_asked = ["stream.number(),", "stream.kind().number(),", "stream().number(),"];
            if call.path.is_ident("matches") && is_asked.iter().any(|question| tokens.contains(question)) {
                self.0.push(call.span().start().line);
            }
            visit::visit_macro(self, call);
        }
    }
    let mut places = Places::default();
    places.visit_file(file);
    places.0
}

/// `….stream.number()`, `stream.kind().number()` and their like.
fn is_number(value: &Expr) -> bool {
    let Expr::MethodCall(call) = value else { return false };
    call.method == "number" && names_stream(&call.receiver)
}

fn names_stream(value: &Expr) -> bool {
    match value {
        Expr::Path(path) => path.path.segments.last().is_some_and(|name| name.ident.to_string().contains("stream")),
        Expr::Field(field) => matches!(&field.member, syn::Member::Named(name) if name.to_string().contains("stream")),
        Expr::MethodCall(call) => {
            call.method == "kind" && names_stream(&call.receiver) || call.method.to_string().contains("stream")
        }
        _ => false,
    }
}

fn ends_with_stream_new(path: &syn::Path) -> bool {
    let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    names.ends_with(&["Stream".to_owned(), "new".to_owned()])
}

#[test]
fn stream_numbers_have_their_meaning_in_one_table() -> Outcome<()> {
    let problems = in_sources(|sources| {
        let mut problems = Vec::new();
        for source in sources.crates().flat_map(|member| &member.sources) {
            if source.path.ends_with(TABLE) {
                continue;
            }
            for line in bare_numbers(&source.code) {
                problems.push(format!("{}:{line}: ask the stream for its class or layout", source.path.display()));
            }
        }
        Ok(problems)
    })?;
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
    Ok(())
}

#[test]
fn bare_stream_numbers_are_found_in_each_form() -> Outcome<()> {
    let bad = [
        "fn f(stream: Stream) -> bool { stream.number() == 2 }",
        "fn f(head: Head) -> bool { match head.stream.kind().number() { 2 => true, _ => false } }",
        "fn f(stream: Stream) -> bool { matches!(stream.kind().number(), 1 | 5) }",
        "fn f() -> Stream { fd_records::Stream::new(2) }",
        "fn f(kind: DigestKind) -> bool { 3 == kind.stream().number() }",
    ];
    for code in bad {
        assert_eq!(bare_numbers(&syn::parse_str(code)?), [1], "{code}");
    }
    let good = "fn f(stream: Stream, n: u32) -> bool { stream == Stream::new(n) && stream.class() == StreamClass::FinderInfo }";
    assert!(bare_numbers(&syn::parse_str(good)?).is_empty());
    Ok(())
}
