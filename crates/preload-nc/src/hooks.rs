//! Every other function of PnetCDF that is not simply let through.
//!
//! Definitions and attributes are PnetCDF's business: such a call goes on to the private header file, and what it changes is
//! noted here. `pass` makes the call as the program made it.

use std::ffi::{c_char, c_int, c_void};

use crate::access::{self, Mode};
use mpi::Next;

use crate::symbol::c_name;
use crate::{calls, codes, failure, files, process};

/// A handle passed by value.
type Word = usize;

/// A function about an open file.
macro_rules! of_file {
    ($(
        $name:ident($ncid:ident $(, $arg:ident: $ty:ty)*) |$file:ident, $pass:ident| $body:expr;
    )+) => { $(
        const _: () = {
            #[unsafe(export_name = concat!("ncmpi_", stringify!($name)))]
            unsafe extern "C-unwind" fn hook($ncid: c_int $(, $arg: $ty)*) -> c_int {
                static NEXT: Next = Next::of_any(c_name!("ncmpi_", stringify!($name)));
                let $pass = || {
                    let address = NEXT.address();
                    if address.is_null() {
                        return codes::NC_ENOTSUPPORT;
                    }
                    // SAFETY: the next definition of this name has the signature of pnetcdf.h, which the declaration repeats,
                    // with handles as words.
                    let next = unsafe {
                        std::mem::transmute::<
                            *const c_void,
                            unsafe extern "C-unwind" fn(c_int $(, $ty)*) -> c_int,
                        >(address)
                    };
                    // SAFETY: the program's own arguments.
                    unsafe { next($ncid $(, $arg)*) }
                };
                match files::find($ncid) {
                    None => $pass(),
                    // SAFETY: the program's own arguments.
                    #[allow(unused_unsafe, reason = "some need it")]
                    Some($file) => unsafe { $body },
                }
            }
        };
    )+
        /// Their names.
        #[cfg(test)]
        const OF_FILES: &[&str] = &[$(concat!("ncmpi_", stringify!($name))),+];
    };
}

of_file! {
    enddef(ncid) |file, pass| calls::enddef(&file, pass);
    _enddef(ncid, header_free: i64, align: i64, free: i64, record_align: i64)
        |file, pass| calls::enddef(&file, pass);
    redef(ncid) |file, pass| calls::redef(&file, pass);
    begin_indep_data(ncid) |file, pass| calls::begin_independent(&file, pass);
    end_indep_data(ncid) |file, pass| calls::end_independent(&file, pass);
    sync(ncid) |file, _pass| calls::synchronise(&file, true);
    flush(ncid) |file, _pass| calls::synchronise(&file, false);
    sync_numrecs(ncid) |file, _pass| calls::sync_records(&file);
    set_fill(ncid, mode: c_int, old: *mut c_int) |file, _pass| calls::set_fill(&file, mode, old);
    def_var(
        ncid, name: *const c_char, xtype: c_int, ndims: c_int, dimids: *const c_int, varid: *mut c_int
    ) |file, pass| calls::def_var(&file, pass);
    def_var_fill(ncid, varid: c_int, no_fill: c_int, value: *const c_void)
        |file, _pass| calls::def_var_fill(&file, varid, no_fill, value);
    inq_var_fill(ncid, varid: c_int, no_fill: *mut c_int, value: *mut c_void)
        |file, pass| calls::inq_var_fill(&file, varid, no_fill, pass);
    fill_var_rec(ncid, varid: c_int, record: i64)
        |file, _pass| calls::fill_var_rec(&file, varid, record);
    inq_dim(ncid, dimid: c_int, name: *mut c_char, length: *mut i64)
        |file, pass| calls::inq_dim(&file, dimid, length, pass);
    inq_dimlen(ncid, dimid: c_int, length: *mut i64)
        |file, pass| calls::inq_dim(&file, dimid, length, pass);
    inq_path(ncid, length: *mut c_int, path: *mut c_char)
        |file, _pass| calls::inq_path(&file, length, path);
    inq_put_size(ncid, size: *mut i64) |file, _pass| calls::inq_size(&file, size, |file| file.put_bytes);
    inq_get_size(ncid, size: *mut i64) |file, _pass| calls::inq_size(&file, size, |file| file.got_bytes);
    inq_nreqs(ncid, number: *mut c_int) |file, _pass| calls::inq_requests(&file, number);
    buffer_attach(ncid, bytes: i64) |file, _pass| calls::attach(&file, bytes);
    buffer_detach(ncid) |file, _pass| calls::detach(&file);
    inq_buffer_usage(ncid, bytes: *mut i64)
        |file, _pass| calls::inq_buffer(&file, bytes, |requests| requests.usage());
    inq_buffer_size(ncid, bytes: *mut i64)
        |file, _pass| calls::inq_buffer(&file, bytes, |requests| requests.size());
    wait(ncid, count: c_int, requests: *mut c_int, statuses: *mut c_int)
        |file, _pass| access::wait(&file, Mode::Independent, count, requests, statuses);
    wait_all(ncid, count: c_int, requests: *mut c_int, statuses: *mut c_int)
        |file, _pass| access::wait(&file, Mode::Collective, count, requests, statuses);
    cancel(ncid, count: c_int, requests: *mut c_int, statuses: *mut c_int)
        |file, _pass| access::cancel(&file, count, requests, statuses);
}

/// A function about a name, or about nothing: the body decides.
macro_rules! others {
    ($(
        $name:literal($($arg:ident: $ty:ty),*) -> $result:ty, else $missing:expr; |$pass:ident| $body:expr;
    )+) => { $(
        const _: () = {
            #[unsafe(export_name = $name)]
            unsafe extern "C-unwind" fn hook($($arg: $ty),*) -> $result {
                static NEXT: Next = Next::of_any(c_name!($name));
                let $pass = || {
                    let address = NEXT.address();
                    if address.is_null() {
                        return $missing;
                    }
                    // SAFETY: the next definition of this name has this signature, with handles as words.
                    let next = unsafe {
                        std::mem::transmute::<
                            *const c_void,
                            unsafe extern "C-unwind" fn($($ty),*) -> $result,
                        >(address)
                    };
                    // SAFETY: the program's own arguments.
                    unsafe { next($($arg),*) }
                };
                // SAFETY: as above.
                #[allow(unused_unsafe, reason = "some need it")]
                unsafe { $body }
            }
        };
    )+
        /// Their names.
        #[cfg(test)]
        const OTHERS: &[&str] = &[$($name),+];
    };
}

others! {
    "ncmpi_create"(comm: Word, path: *const c_char, mode: c_int, info: Word, ncid: *mut c_int)
        -> c_int, else codes::NC_ENOTSUPPORT;
        |pass| calls::create(comm, path, mode, info, ncid, pass);
    "ncmpi_open"(comm: Word, path: *const c_char, mode: c_int, info: Word, ncid: *mut c_int)
        -> c_int, else codes::NC_ENOTSUPPORT;
        |pass| calls::open(comm, path, mode, info, ncid, pass);
    "ncmpi_close"(ncid: c_int) -> c_int, else codes::NC_ENOTSUPPORT; |pass| calls::close(ncid, pass);
    "ncmpi_abort"(ncid: c_int) -> c_int, else codes::NC_ENOTSUPPORT; |pass| calls::abort(ncid, pass);
    "ncmpi_delete"(path: *const c_char, info: Word) -> c_int, else codes::NC_ENOTSUPPORT;
        |pass| calls::delete(path, pass);
    "ncmpi_inq_file_format"(path: *const c_char, format: *mut c_int)
        -> c_int, else codes::NC_ENOTSUPPORT;
        |pass| calls::inq_file_format(path, pass);
    "ncmpi_strerror"(code: c_int) -> *const c_char, else c"no PnetCDF in this process".as_ptr();
        |pass| failure::sentence(code).unwrap_or_else(pass);
    "MPI_Finalize"() -> c_int, else 1; |pass| { process::leave(); pass() };
    "PMPI_Finalize"() -> c_int, else 1; |pass| { process::leave(); pass() };
}

/// The functions that are let through also for coupled files, and why that is right.
#[cfg(test)]
const LET_THROUGH: &[(&str, &[&str])] = &[
    (
        "definitions: the private header file has them",
        &[
            "def_dim",
            "rename_dim",
            "rename_var",
            "inq",
            "inq_format",
            "inq_version",
            "inq_ndims",
            "inq_nvars",
            "inq_num_rec_vars",
            "inq_num_fix_vars",
            "inq_natts",
            "inq_unlimdim",
            "inq_dimid",
            "inq_dimname",
            "inq_var",
            "inq_varid",
            "inq_varname",
            "inq_vartype",
            "inq_varndims",
            "inq_vardimid",
            "inq_varnatts",
        ],
    ),
    (
        "attributes: likewise",
        &[
            "put_att",
            "get_att",
            "inq_att",
            "inq_attid",
            "inq_atttype",
            "inq_attlen",
            "inq_attname",
            "copy_att",
            "rename_att",
            "del_att",
        ],
    ),
    (
        "the layout that the file would have; the private header file has the same",
        &["inq_varoffset", "inq_header_size", "inq_header_extent", "inq_recsize", "inq_striping"],
    ),
    ("hints of the private header file", &["inq_file_info", "get_file_info"]),
    (
        "about no file",
        &[
            "strerrno",
            "inq_libvers",
            "set_default_format",
            "inq_default_format",
            "inq_malloc_size",
            "inq_malloc_max_size",
            "inq_malloc_list",
            "inq_files_opened",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{LET_THROUGH, OF_FILES, OTHERS};
    use crate::families;

    /// What libpnetcdf.so of 1.12.3 exports, as `nm -D --defined-only` lists it.
    const EXPORTED: &str = include_str!("../exported-1.12.3.txt");

    #[test]
    fn every_function_of_pnetcdf_is_looked_at() {
        const TYPES: [&str; 12] = [
            "text",
            "schar",
            "uchar",
            "short",
            "ushort",
            "int",
            "uint",
            "long",
            "float",
            "double",
            "longlong",
            "ulonglong",
        ];
        let mut known = BTreeSet::new();
        let mut add = |name: String| assert!(known.insert(name.clone()), "{name} is listed twice");
        families::names().into_iter().for_each(&mut add);
        OF_FILES.iter().chain(OTHERS).filter(|name| name.starts_with("ncmpi")).for_each(|name| {
            add((*name).to_owned());
        });
        LET_THROUGH
            .iter()
            .flat_map(|(_, names)| *names)
            .for_each(|name| add(format!("ncmpi_{name}")));
        for verb in ["put", "get"] {
            TYPES.iter().for_each(|of| add(format!("ncmpi_{verb}_att_{of}")));
        }
        let exported: BTreeSet<String> = EXPORTED.lines().map(str::to_owned).collect();
        let missing: Vec<_> = exported.difference(&known).collect();
        let unknown: Vec<_> = known.difference(&exported).collect();
        assert!(
            missing.is_empty() && unknown.is_empty(),
            "missing {missing:?}, unknown {unknown:?}"
        );
    }
}
