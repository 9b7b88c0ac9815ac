//! As in `bacula-fd/build.rs`, for the programs here that are plugin hosts.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=exported_symbols");
    for name in include_str!("exported_symbols").lines() {
        println!("cargo::rustc-link-arg-tests=-Wl,--export-dynamic-symbol={name}");
        println!("cargo::rustc-link-arg-examples=-Wl,--export-dynamic-symbol={name}");
    }
}
