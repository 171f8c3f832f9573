//! Passes the compiler's version and the profile to the benchmarks, which save them with the results.

use std::path::Path;
use std::process::Command;

fn main() {
    let rustc = std::env::var_os("RUSTC").expect("Cargo sets RUSTC for build scripts");
    let output = Command::new(rustc).arg("--version").output().expect("rustc runs");
    let version = String::from_utf8(output.stdout).expect("rustc prints UTF-8");
    println!("cargo:rustc-env=RUSTC_VERSION={}", version.trim());
    // target/PROFILE/build/PACKAGE/out. Cargo's variable `PROFILE` is `release` for every profile that inherits from it.
    let out = std::env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR for build scripts");
    let profile = Path::new(&out).ancestors().nth(3).and_then(|directory| directory.file_name());
    let profile = profile.and_then(|name| name.to_str()).expect("a profile's name is a word");
    println!("cargo:rustc-env=PROFILE_NAME={profile}");
    // Cargo always runs this again for another compiler. No file needs to be watched.
    println!("cargo:rerun-if-changed=build.rs");
}
