//! Links the unwinder into `sluice` instead of letting it load `libgcc_s.so.1`.
//!
//! That library's constructor asks the processor what it can do (`cpuid`), which within a virtual machine
//! costs a seventh of a millisecond at every `sluice run`. Where gcc has no static form of it, all stays as
//! it was. The preload library must not do the same: when a thread is cancelled, the program's unwinder
//! passes through its frames, and two copies of an unwinder do not know each other's state.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let Ok(output) = Command::new(compiler).arg("-print-file-name=libgcc_eh.a").output() else {
        return;
    };
    // A compiler that has no such file answers the bare name.
    let archive = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from).filter(|_| archive.is_absolute())
    else {
        return;
    };
    // rustc asks for `-lgcc_s`; the linker takes a script of that name in its place.
    let script = "INPUT ( -lgcc_eh -lgcc )\n";
    if fs::write(out.join("libgcc_s.so"), script).is_ok() {
        println!("cargo:rustc-link-arg-bins=-L{}", out.display());
    }
}
