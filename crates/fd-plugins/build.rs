//! As in `bacula-fd/build.rs`, for the programs here that are plugin hosts.

fn main() {
    const EXPORTED: [&str; 9] = [
        "r_first",
        "r_last",
        "res_head",
        "res_all",
        "resources",
        "_Z13dump_resourceiP3RESPFvPvPKczES1_",
        "_Z13free_resourceP3RESi",
        "_Z13save_resourceP6CONFIGiP8RES_ITEMi",
        "_Z10open_bpipePciPKcPS_",
    ];
    println!("cargo::rerun-if-changed=build.rs");
    for name in EXPORTED {
        println!("cargo::rustc-link-arg-tests=-Wl,--export-dynamic-symbol={name}");
        println!("cargo::rustc-link-arg-examples=-Wl,--export-dynamic-symbol={name}");
    }
}
