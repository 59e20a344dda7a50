//! What a private header file defines, as the matchers need it.

use std::ffi::{CStr, c_int};

use exchange::{Format, Length, Type, VariableSpec};

use crate::codes::{NC_FORMAT_CDF5, NC_MAX_NAME, NC_NOERR};
use crate::failure::Code;
use crate::library;

/// The variables of a file, and its format.
#[derive(Debug, Clone)]
pub(crate) struct Definition {
    pub(crate) format: Format,
    pub(crate) variables: Vec<VariableSpec>,
    /// The dimension of records.
    pub(crate) unlimited: Option<c_int>,
}

impl Default for Definition {
    fn default() -> Self {
        Definition { format: Format::Classic, variables: Vec::new(), unlimited: None }
    }
}

/// The attribute that says what stands where nobody wrote.
pub(crate) const FILL_VALUE: &CStr = c"_FillValue";

impl Definition {
    /// Asks PnetCDF. `fills` says which variables are filled even without an attribute that says with what.
    pub(crate) fn of(ncid: c_int, fills: impl Fn(usize) -> bool) -> Result<Definition, Code> {
        let (mut format, mut ndims, mut nvars, mut natts, mut unlimited) = (0, 0, 0, 0, -1);
        // SAFETY: an open file and integers to fill.
        check(unsafe { library::inq_format(ncid, &mut format) })?;
        // SAFETY: likewise.
        check(unsafe { library::inq(ncid, &mut ndims, &mut nvars, &mut natts, &mut unlimited) })?;
        let unlimited = (unlimited >= 0).then_some(unlimited);
        let format = if format == NC_FORMAT_CDF5 { Format::Data64 } else { Format::Classic };
        let variables = (0..nvars)
            .map(|varid| variable(ncid, varid, unlimited, fills(varid as usize)))
            .collect::<Result<_, _>>()?;
        Ok(Definition { format, variables, unlimited })
    }
}

fn variable(
    ncid: c_int,
    varid: c_int,
    unlimited: Option<c_int>,
    is_filled: bool,
) -> Result<VariableSpec, Code> {
    let mut name = [0u8; NC_MAX_NAME + 1];
    let (mut xtype, mut ndims, mut natts) = (0, 0, 0);
    let nowhere = std::ptr::null_mut();
    // SAFETY: an open file, room for the longest name, and integers to fill; NULL is not filled.
    check(unsafe {
        library::inq_var(
            ncid,
            varid,
            name.as_mut_ptr().cast(),
            &mut xtype,
            &mut ndims,
            nowhere,
            &mut natts,
        )
    })?;
    let mut dimids = vec![0; usize::try_from(ndims).unwrap_or(0)];
    // SAFETY: as above, and room for as many numbers as there are dimensions.
    check(unsafe {
        library::inq_var(
            ncid,
            varid,
            std::ptr::null_mut(),
            nowhere,
            nowhere,
            dimids.as_mut_ptr(),
            nowhere,
        )
    })?;
    let shape = dimids.into_iter().map(|dimid| {
        if Some(dimid) == unlimited {
            return Ok(Length::Records);
        }
        let mut length = 0;
        // SAFETY: as above.
        check(unsafe { library::inq_dimlen(ncid, dimid, &mut length) })?;
        Ok(Length::Fixed(u64::try_from(length).unwrap_or(0)))
    });
    let shape = shape.collect::<Result<_, Code>>()?;
    let name = CStr::from_bytes_until_nul(&name).map(CStr::to_string_lossy).unwrap_or_default();
    let type_ = Type::from_number(xtype).ok_or(Code(crate::codes::NC_EFILE))?;
    let fill = fill_value(ncid, varid, type_).or(is_filled.then(|| type_.fill()));
    Ok(VariableSpec { name: name.into_owned(), type_, shape, fill })
}

/// The value of the attribute that says what stands where nobody wrote.
fn fill_value(ncid: c_int, varid: c_int, type_: Type) -> Option<[u8; 8]> {
    let (mut xtype, mut length) = (0, 0);
    // SAFETY: an open file, a name, and numbers to fill.
    let found =
        unsafe { library::inq_att(ncid, varid, FILL_VALUE.as_ptr(), &mut xtype, &mut length) };
    if found != NC_NOERR || xtype != type_.number() || length != 1 {
        return None;
    }
    let mut value = [0u8; 8];
    // SAFETY: room for one value of any type, of which there is one.
    let got =
        unsafe { library::get_att(ncid, varid, FILL_VALUE.as_ptr(), value.as_mut_ptr().cast()) };
    (got == NC_NOERR).then_some(value)
}

/// A code of PnetCDF's as a result.
pub(crate) fn check(code: c_int) -> Result<(), Code> {
    if code == NC_NOERR { Ok(()) } else { Err(Code(code)) }
}
