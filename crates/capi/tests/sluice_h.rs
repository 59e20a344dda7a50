//! `sluice.h` as programs have it: the examples in C, C++ and Fortran, by pkg-config and by CMake, with the shared and
//! the static library; and what is wrong said so.

#[path = "house/house.rs"]
mod house;

use std::process::Command;
use std::sync::Arc;

use house::{Installed, here, output, run, service};
use store::mem::MemStore;

const C_SAYS: &str = "values 500 to 502: 62.5 62.625 62.75\nbytes: 4000\nlisted: from-c.dat\n\
                      stat: 4000 bytes, mode 100644\n";
const CPP_SAYS: &str = "the same again: yes, sum 4999950000\ngone: yes\n";

#[test]
fn the_examples_run_in_c_cxx_and_fortran() {
    let installed = Installed::new();
    let (_running, uri) = service(installed.directory.path(), Arc::new(MemStore::new()));
    let example = |name: &str| here().join("examples").join(name);
    let strict = ["-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Werror"];
    let c = installed.build("cc", &[example("tour.c")], &strict, "tour_c");
    assert_eq!(run(installed.command(&c).arg(&uri)), C_SAYS);
    let strict = ["-std=c++11", "-Wall", "-Wextra", "-Werror"];
    let cpp = installed.build("c++", &[example("tour.cpp")], &strict, "tour_cpp");
    assert_eq!(run(installed.command(&cpp).arg(&uri)), CPP_SAYS);
    let sources = [installed.path("include/sluice.f90"), example("tour.f90")];
    let fortran = installed.build("gfortran", &sources, &["-Wall", "-std=f2008"], "tour_f90");
    let says =
        "values 501 to 503:   62.625   62.750   62.875\nbytes: 8000\nstat: 8000\nsays why: T\n";
    assert_eq!(run(installed.command(&fortran).arg(&uri)), says);
}

#[test]
fn cmake_finds_the_shared_and_the_static_library() {
    let installed = Installed::new();
    let (_running, uri) = service(installed.directory.path(), Arc::new(MemStore::new()));
    let build = installed.path("build");
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(here().join("examples")).arg("-B").arg(&build);
    run(cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", installed.path("").display())));
    run(Command::new("cmake").arg("--build").arg(&build));
    assert_eq!(run(installed.command(&build.join("tour_c")).arg(&uri)), C_SAYS);
    // The static one needs nothing beside itself.
    assert_eq!(run(Command::new(build.join("tour_cpp")).arg(&uri)), CPP_SAYS);
}

#[test]
fn a_prefix_of_the_configuration_leads_to_the_service() {
    let installed = Installed::new();
    let (_running, uri) = service(installed.directory.path(), Arc::new(MemStore::new()));
    let config = format!("[routes]\n\"/far\" = \"{uri}\"\n");
    std::fs::write(installed.path("sluice.toml"), config).expect("written");
    let tour = [here().join("examples/tour.c")];
    let tour = installed.build("cc", &tour, &["-std=gnu11"], "tour");
    assert_eq!(run(installed.command(&tour).arg("/far")), C_SAYS);
    let near = output(installed.command(&tour).arg("/near"));
    let said = String::from_utf8_lossy(&near.stderr).into_owned();
    assert!(
        said.contains("`/near/from-c.dat` is neither a URI nor below a mapped prefix"),
        "{said}"
    );
    std::fs::write(installed.path("sluice.toml"), "[route]\n").expect("written");
    let said = output(installed.command(&tour).arg("/far"));
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.contains("sluice.toml") && said.contains("routes"), "{said}");
}

#[test]
fn bad_input_is_an_error_and_no_crash() {
    let installed = Installed::new();
    let (_running, uri) = service(installed.directory.path(), Arc::new(MemStore::new()));
    let source = [here().join("tests/programs/bad_files.c")];
    let strict = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-nonnull", "-pthread"];
    let program = installed.build("cc", &source, &strict, "bad_files");
    assert_eq!(run(installed.command(&program).arg(&uri)), "ok\n");
}

#[test]
fn the_header_is_strict_c99_and_cxx() {
    for (language, standard) in [("c", "-std=c99"), ("c++", "-std=c++11")] {
        let mut cc = Command::new("cc");
        cc.args(["-x", language, standard, "-pedantic-errors", "-Wall", "-Wextra", "-Werror"]);
        run(cc.arg("-fsyntax-only").arg(here().join("include/sluice.h")));
    }
}
