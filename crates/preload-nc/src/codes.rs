//! Error codes and constants of netCDF and PnetCDF.
//!
//! # Source
//! pnetcdf.h of PnetCDF 1.12.3.

use std::ffi::c_int;

pub(crate) const NC_NOERR: c_int = 0;
pub(crate) const NC_EINVAL: c_int = -36;
pub(crate) const NC_EPERM: c_int = -37;
pub(crate) const NC_ENOTINDEFINE: c_int = -38;
pub(crate) const NC_EINDEFINE: c_int = -39;
pub(crate) const NC_EINVALCOORDS: c_int = -40;
pub(crate) const NC_ENOTVAR: c_int = -49;
pub(crate) const NC_EGLOBAL: c_int = -50;
pub(crate) const NC_ECHAR: c_int = -56;
pub(crate) const NC_EEDGE: c_int = -57;
pub(crate) const NC_ESTRIDE: c_int = -58;
pub(crate) const NC_ERANGE: c_int = -60;
pub(crate) const NC_ENOTINDEP: c_int = -202;
pub(crate) const NC_EINDEP: c_int = -203;
pub(crate) const NC_EFILE: c_int = -204;
pub(crate) const NC_EMULTITYPES: c_int = -208;
pub(crate) const NC_EIOMISMATCH: c_int = -209;
pub(crate) const NC_ENEGATIVECNT: c_int = -210;
pub(crate) const NC_EUNSPTETYPE: c_int = -211;
pub(crate) const NC_EINVAL_REQUEST: c_int = -212;
pub(crate) const NC_ENOTSUPPORT: c_int = -214;
pub(crate) const NC_ENULLBUF: c_int = -215;
pub(crate) const NC_EPREVATTACHBUF: c_int = -216;
pub(crate) const NC_ENULLABUF: c_int = -217;
pub(crate) const NC_EPENDINGBPUT: c_int = -218;
pub(crate) const NC_EINSUFFBUF: c_int = -219;
pub(crate) const NC_ENULLSTART: c_int = -226;
pub(crate) const NC_ENOTRECVAR: c_int = -233;
pub(crate) const NC_ENOTFILL: c_int = -234;
pub(crate) const NC_EPENDING: c_int = -236;

pub(crate) const NC_GLOBAL: c_int = -1;
/// A request that is none, or is done with.
pub(crate) const NC_REQ_NULL: c_int = -1;
/// Instead of a number of requests: all, all reads, all writes.
pub(crate) const NC_REQ_ALL: c_int = -1;
pub(crate) const NC_GET_REQ_ALL: c_int = -2;
pub(crate) const NC_PUT_REQ_ALL: c_int = -3;

/// Of the modes of create and open.
pub(crate) const NC_WRITE: c_int = 0x0001;
pub(crate) const NC_NOCLOBBER: c_int = 0x0004;
pub(crate) const NC_NETCDF4: c_int = 0x1000;

/// Of the fill mode.
pub(crate) const NC_FILL: c_int = 0;
pub(crate) const NC_NOFILL: c_int = 0x100;

/// A name and its NUL.
pub(crate) const NC_MAX_NAME: usize = 256;
/// `NC_FORMAT_CDF5`.
pub(crate) const NC_FORMAT_CDF5: c_int = 5;
