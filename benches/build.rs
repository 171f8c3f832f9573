//! Passes the compiler's version to the benchmarks, which save it with the results.

use std::process::Command;

fn main() {
    let rustc = std::env::var_os("RUSTC").expect("Cargo sets RUSTC for build scripts");
    let output = Command::new(rustc).arg("--version").output().expect("rustc runs");
    let version = String::from_utf8(output.stdout).expect("rustc prints UTF-8");
    println!("cargo:rustc-env=RUSTC_VERSION={}", version.trim());
    // Cargo always runs this again for another compiler. No file needs to be watched.
    println!("cargo:rerun-if-changed=build.rs");
}
