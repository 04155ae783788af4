//! Linking of the program: at a fixed address where that is known to work. A
//! position-independent program of this size has 33,900 addresses that the loader writes
//! anew at every start, which is a sixth of the processor's time of a small run
//! (`results/proofs.md`).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |key: &str| std::env::var(format!("CARGO_CFG_TARGET_{key}")).unwrap_or_default();
    if target("OS") == "linux"
        && target("ENV") == "gnu"
        && target("FEATURE").split(',').all(|f| f != "crt-static")
    {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
