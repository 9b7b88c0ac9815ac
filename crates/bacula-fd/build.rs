//! Exports what the distribution's libraries expect of the program that loads them (reference 07
//! §3.9; `fd-plugins/src/library/guest/exports.rs`).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../fd-plugins/exported_symbols");
    if std::env::var_os("CARGO_FEATURE_PORTABLE").is_some() {
        // The linker of portable programs exports all that is visible or nothing. The C in them is
        // compiled to be invisible (`packaging/build`).
        println!("cargo::rustc-link-arg-bin=bacula-fd=-rdynamic");
        return;
    }
    for name in include_str!("../fd-plugins/exported_symbols").lines() {
        println!("cargo::rustc-link-arg-bin=bacula-fd=-Wl,--export-dynamic-symbol={name}");
    }
}
