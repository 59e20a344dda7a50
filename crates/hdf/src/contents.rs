//! Datasets in an open file: made, compared with a schema, found.

use std::ffi::{CStr, c_char, c_void};
use std::path::Path;

use hdf5_metno_sys::h5::{H5_index_t, H5_iter_order_t, herr_t};
use hdf5_metno_sys::h5d::{
    H5D_alloc_time_t, H5D_fill_time_t, H5D_layout_t, H5Dclose, H5Dcreate2, H5Dget_create_plist,
    H5Dget_offset, H5Dget_space, H5Dget_type, H5Dopen2,
};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5o::{H5O_INFO_BASIC, H5O_info2_t, H5O_type_t, H5Ovisit3};
use hdf5_metno_sys::h5p::{
    H5P_CLS_DATASET_CREATE, H5P_CLS_LINK_CREATE, H5P_DEFAULT, H5Pclose, H5Pcreate, H5Pget_chunk,
    H5Pget_layout, H5Pset_alloc_time, H5Pset_chunk, H5Pset_create_intermediate_group,
    H5Pset_deflate, H5Pset_fill_time, H5Pset_shuffle,
};
use hdf5_metno_sys::h5s::{H5Sclose, H5Sget_simple_extent_dims, H5Sget_simple_extent_ndims};
use hdf5_metno_sys::h5t::{H5Tclose, H5Tequal};

use crate::element::{Element, Refusal, c_name};
use crate::error::{Error, Result};
use crate::file::space;
use crate::library::{Failure, Id, Library};
use crate::schema::{Dataset, Storage};

/// Datasets that a view can hold, and the paths of the others with the reason.
type Listing = (Vec<Dataset>, Vec<(String, String)>);

type Tried<T> = std::result::Result<T, Failure>;

/// Makes a dataset and the groups on the way to it.
pub(crate) fn create(library: &Library, file: &Id, dataset: &Dataset) -> Tried<()> {
    let name = c_name(&dataset.path)?;
    let kind = dataset.element.to_library(library)?;
    let space = space(library, &dataset.shape)?;
    // SAFETY: both classes exist once the library is open; the lists are ours.
    let (links, properties) = unsafe {
        let links = library.id(H5Pcreate(*H5P_CLS_LINK_CREATE), H5Pclose)?;
        library.check(H5Pset_create_intermediate_group(links.get(), 1))?;
        (links, library.id(H5Pcreate(*H5P_CLS_DATASET_CREATE), H5Pclose)?)
    };
    match &dataset.storage {
        // SAFETY: the list is ours. Allocated at once, so that its place in the file is known; not
        // filled, since a new part of a file reads as zero anyway.
        Storage::Contiguous => unsafe {
            library.check(H5Pset_alloc_time(
                properties.get(),
                H5D_alloc_time_t::H5D_ALLOC_TIME_EARLY,
            ))?;
            library
                .check(H5Pset_fill_time(properties.get(), H5D_fill_time_t::H5D_FILL_TIME_NEVER))?;
        },
        Storage::Chunked { chunk, deflate } => {
            // SAFETY: the list is ours, `chunk` has as many lengths as are announced.
            unsafe {
                let rank = chunk.len() as i32;
                library.check(H5Pset_chunk(properties.get(), rank, chunk.as_ptr()))?;
                if let Some(level) = deflate {
                    // Bytes of equal weight together: numbers compress two to three times better.
                    library.check(H5Pset_shuffle(properties.get()))?;
                    library.check(H5Pset_deflate(properties.get(), u32::from(*level)))?;
                }
            }
        }
    }
    // SAFETY: the name is ended by NUL, all ids are open.
    let made = unsafe {
        H5Dcreate2(
            file.get(),
            name.as_ptr(),
            kind.get(),
            space.get(),
            links.get(),
            properties.get(),
            H5P_DEFAULT,
        )
    };
    library.id(made, H5Dclose).map(drop)
}

/// Where in the file a dataset lies in one piece with the very bytes of `element`, if it does.
pub(crate) fn piece(library: &Library, dataset: &Id, element: &Element) -> Tried<Option<u64>> {
    // SAFETY: the dataset is open, the list is ours to close.
    let properties = library.id(unsafe { H5Dget_create_plist(dataset.get()) }, H5Pclose)?;
    // SAFETY: the list is open.
    if unsafe { H5Pget_layout(properties.get()) } != H5D_layout_t::H5D_CONTIGUOUS {
        return Ok(None);
    }
    // SAFETY: the dataset is open, the type is ours to close.
    let stored = library.id(unsafe { H5Dget_type(dataset.get()) }, H5Tclose)?;
    let wanted = element.to_library(library)?;
    // SAFETY: both types are open.
    if library.check(unsafe { H5Tequal(stored.get(), wanted.get()) })? == 0 {
        return Ok(None);
    }
    // SAFETY: the dataset is open. An undefined address means that nothing is allocated.
    let offset = unsafe { H5Dget_offset(dataset.get()) };
    Ok((offset != u64::MAX).then_some(offset))
}

/// A dataset as the file has it, which begins at 0 of the row; refuses one that is not as expected.
/// Where dimensions end and elements that are arrays begin is the file's business.
pub(crate) fn compare(
    library: &Library,
    path: &Path,
    opened: &Id,
    expected: &Dataset,
) -> Result<Dataset> {
    let found = describe(library, opened, &expected.path).map_err(|refusal| match refusal {
        Refusal::Unsupported(kind) => {
            Error::Unsupported { path: path.to_owned(), dataset: expected.path.clone(), kind }
        }
        Refusal::Failed(failure) => Error::Library {
            path: path.to_owned(),
            action: format!("describe {}", expected.path),
            reason: failure.into_words(),
        },
    })?;
    let ((shape, element), (expected_shape, expected_element)) = (found.flat(), expected.flat());
    if shape != expected_shape || !element.is_alike(&expected_element) {
        return Err(Error::Differs {
            path: path.to_owned(),
            dataset: expected.path.clone(),
            found: found.describe(),
            expected: expected.describe(),
        });
    }
    Ok(found)
}

/// What a dataset is; it begins at 0 of the row.
fn describe(library: &Library, opened: &Id, path: &str) -> std::result::Result<Dataset, Refusal> {
    // SAFETY: the dataset is open, type, space and list are ours to close.
    let (kind, space, properties) = unsafe {
        (
            library.id(H5Dget_type(opened.get()), H5Tclose)?,
            library.id(H5Dget_space(opened.get()), H5Sclose)?,
            library.id(H5Dget_create_plist(opened.get()), H5Pclose)?,
        )
    };
    let element = Element::of_library(library, &kind)?;
    // SAFETY: the space is open.
    let rank = library.check(unsafe { H5Sget_simple_extent_ndims(space.get()) })?;
    let mut shape = vec![0; rank as usize];
    // SAFETY: the buffer has room for `rank` lengths; the maxima are not asked for.
    library.check(unsafe {
        H5Sget_simple_extent_dims(space.get(), shape.as_mut_ptr(), std::ptr::null_mut())
    })?;
    // SAFETY: the list is open.
    let chunked = unsafe { H5Pget_layout(properties.get()) } == H5D_layout_t::H5D_CHUNKED;
    let storage = if chunked {
        let mut chunk = vec![0; shape.len()];
        // SAFETY: the buffer has room for `rank` lengths.
        library.check(unsafe { H5Pget_chunk(properties.get(), rank, chunk.as_mut_ptr()) })?;
        Storage::Chunked { chunk, deflate: None }
    } else {
        Storage::Contiguous
    };
    Ok(Dataset { path: path.to_owned(), start: 0, element, shape, storage })
}

/// Datasets that a view can hold, each at a multiple of 8, and the paths of the others with the
/// reason.
pub(crate) fn list(library: &Library, file: &Id) -> Tried<Listing> {
    let mut paths: Vec<String> = Vec::new();
    // SAFETY: `seen` gets the pointer to `paths`, which outlives the visit.
    let visited = unsafe {
        H5Ovisit3(
            file.get(),
            H5_index_t::H5_INDEX_NAME,
            H5_iter_order_t::H5_ITER_INC,
            Some(seen),
            (&raw mut paths).cast(),
            H5O_INFO_BASIC,
        )
    };
    library.check(visited)?;
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    let mut start: u64 = 0;
    for path in paths {
        let name = c_name(&path)?;
        // SAFETY: the name is ended by NUL, the file is open.
        let opened = unsafe { H5Dopen2(file.get(), name.as_ptr(), H5P_DEFAULT) };
        match describe(library, &library.id(opened, H5Dclose)?, &path) {
            Ok(dataset) => {
                let dataset = Dataset { start: start.next_multiple_of(8), ..dataset };
                start = dataset.end();
                found.push(dataset);
            }
            Err(Refusal::Unsupported(kind)) => refused.push((path, kind)),
            Err(Refusal::Failed(failure)) => return Err(failure),
        }
    }
    Ok((found, refused))
}

extern "C" fn seen(
    _object: hid_t,
    name: *const c_char,
    info: *const H5O_info2_t,
    paths: *mut c_void,
) -> herr_t {
    // SAFETY: the library gives a valid entry and a name ended by NUL, and `paths` is what `list`
    // handed in.
    let (name, info, paths) =
        unsafe { (CStr::from_ptr(name), &*info, &mut *paths.cast::<Vec<String>>()) };
    if info.type_ == H5O_type_t::H5O_TYPE_DATASET {
        paths.push(format!("/{}", name.to_string_lossy()));
    }
    0
}
