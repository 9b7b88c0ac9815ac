//! Exports what the distribution's libraries expect of the program that loads them (reference 07
//! §3.9; `fd-plugins/src/library/guest/exports.rs`).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../fd-plugins/exported_symbols");
    for name in include_str!("../fd-plugins/exported_symbols").lines() {
        println!("cargo::rustc-link-arg-bin=bacula-fd=-Wl,--export-dynamic-symbol={name}");
    }
}
