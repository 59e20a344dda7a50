#!/bin/sh
# install.sh LIBRARIES PREFIX: puts the C library that was built into LIBRARIES (target/release) below PREFIX, with
# headers, and what pkg-config and CMake want.
set -eu
libraries=${1:?"where libsluice_c.so was built"} prefix=${2:?"where to install"}
here=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml")
mkdir -p "$prefix/include" "$prefix/lib/pkgconfig" "$prefix/lib/cmake/sluice"
cp "$here"/include/* "$prefix/include"
cp "$libraries/libsluice_c.so" "$libraries/libsluice_c.a" "$prefix/lib"
for file in "$here"/packaging/*.pc; do
    sed "s/@VERSION@/$version/" "$file" >"$prefix/lib/pkgconfig/$(basename "$file")"
done
sed "s/@VERSION@/$version/" "$here/packaging/sluice-config.cmake" >"$prefix/lib/cmake/sluice/sluice-config.cmake"
