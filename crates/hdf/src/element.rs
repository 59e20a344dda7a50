//! The types of elements, and what HDF5 calls them.

use std::ffi::CString;
use std::fmt;

use drepl::definition::Scalar;

use hdf5_metno_sys::h5t::{
    H5T_C_S1, H5T_IEEE_F32LE, H5T_IEEE_F64LE, H5T_STD_I8LE, H5T_STD_I16LE, H5T_STD_I32LE,
    H5T_STD_I64LE, H5T_STD_U8LE, H5T_STD_U16LE, H5T_STD_U32LE, H5T_STD_U64LE,
};
use hdf5_metno_sys::h5t::{
    H5T_CSET_ASCII, H5T_STR_NULLPAD, H5T_class_t, H5T_sign_t, H5Tarray_create2, H5Tclose, H5Tcopy,
    H5Tcreate, H5Tget_array_dims2, H5Tget_array_ndims, H5Tget_class, H5Tget_member_name,
    H5Tget_member_offset, H5Tget_member_type, H5Tget_nmembers, H5Tget_sign, H5Tget_size,
    H5Tget_super, H5Tinsert, H5Tis_variable_str, H5Tset_cset, H5Tset_size, H5Tset_strpad,
};

use crate::library::{Failure, Id, Library};

/// The type of one element of a dataset. Its bytes have no padding but what the offsets leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Element {
    /// One number, little-endian.
    Number(Scalar),
    /// This many bytes of text, ended or filled by NUL.
    Text(u64),
    /// Members at offsets.
    Compound {
        /// In the order of their offsets; they do not overlap.
        members: Vec<Member>,
        /// The bytes from one element to the next.
        size: u64,
    },
    /// A block of elements inside an element.
    Array {
        /// The lengths, the slowest first; none is 0.
        shape: Vec<u64>,
        /// What is in each place.
        element: Box<Element>,
    },
}

/// A member of a compound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Unique in its compound.
    pub name: String,
    /// The byte of the element at which it begins.
    pub offset: u64,
    /// What it holds.
    pub element: Element,
}

impl Element {
    /// The bytes of one element.
    pub fn size(&self) -> u64 {
        match self {
            Element::Number(scalar) => scalar.size(),
            Element::Text(size) | Element::Compound { size, .. } => *size,
            Element::Array { shape, element } => shape.iter().product::<u64>() * element.size(),
        }
    }

    /// Whether the bytes of both mean the same here: a view holds text as an array of bytes.
    pub(crate) fn is_alike(&self, other: &Element) -> bool {
        match (self, other) {
            (Element::Text(size), Element::Array { shape, element })
            | (Element::Array { shape, element }, Element::Text(size)) => {
                let is_bytes = **element == Element::Number(Scalar::Uint8);
                is_bytes && shape.iter().product::<u64>() == *size
            }
            (
                Element::Compound { members: ours, .. },
                Element::Compound { members: others, .. },
            ) => {
                ours.len() == others.len()
                    && ours.iter().zip(others).all(|(one, other)| {
                        one.name == other.name
                            && one.offset == other.offset
                            && one.element.is_alike(&other.element)
                    })
            }
            (
                Element::Array { shape, element },
                Element::Array { shape: other_shape, element: other },
            ) => shape == other_shape && element.is_alike(other),
            (ours, other) => ours == other,
        }
    }

    /// The same in HDF5.
    pub(crate) fn to_library(&self, library: &Library) -> Result<Id, Failure> {
        match self {
            Element::Number(scalar) => scalar_to_library(*scalar, library),
            Element::Text(size) => {
                // SAFETY: the predefined type exists once the library is open, the copy is ours.
                let text = library.id(unsafe { H5Tcopy(*H5T_C_S1) }, H5Tclose)?;
                // SAFETY: as above; all three change our copy only.
                unsafe {
                    library.check(H5Tset_size(text.get(), *size as usize))?;
                    library.check(H5Tset_strpad(text.get(), H5T_STR_NULLPAD))?;
                    library.check(H5Tset_cset(text.get(), H5T_CSET_ASCII))?;
                }
                Ok(text)
            }
            Element::Compound { members, size } => {
                // SAFETY: no pointers.
                let compound = unsafe { H5Tcreate(H5T_class_t::H5T_COMPOUND, *size as usize) };
                let compound = library.id(compound, H5Tclose)?;
                for member in members {
                    let name = c_name(&member.name)?;
                    let kind = member.element.to_library(library)?;
                    // SAFETY: the name is ended by NUL and outlives the call, which copies it.
                    let inserted = unsafe {
                        H5Tinsert(compound.get(), name.as_ptr(), member.offset as usize, kind.get())
                    };
                    library.check(inserted)?;
                }
                Ok(compound)
            }
            Element::Array { shape, element } => {
                let kind = element.to_library(library)?;
                // SAFETY: `shape` holds as many lengths as are announced.
                let array =
                    unsafe { H5Tarray_create2(kind.get(), shape.len() as u32, shape.as_ptr()) };
                library.id(array, H5Tclose)
            }
        }
    }

    /// What a type of HDF5 is here, packed: members follow each other without gaps, numbers are
    /// little-endian.
    pub(crate) fn of_library(library: &Library, kind: &Id) -> Result<Element, Refusal> {
        // SAFETY: `kind` is an open type, here and below.
        let class = unsafe { H5Tget_class(kind.get()) };
        // SAFETY: as above.
        let size = unsafe { H5Tget_size(kind.get()) } as u64;
        match class {
            H5T_class_t::H5T_INTEGER => {
                // SAFETY: as above.
                let signed = unsafe { H5Tget_sign(kind.get()) } == H5T_sign_t::H5T_SGN_2;
                integer(size, signed)
                    .map(Element::Number)
                    .ok_or_else(|| Refusal::Unsupported(format!("{size}-byte integers")))
            }
            H5T_class_t::H5T_FLOAT => match size {
                4 => Ok(Element::Number(Scalar::Float32)),
                8 => Ok(Element::Number(Scalar::Float64)),
                _ => Err(Refusal::Unsupported(format!("{size}-byte floating-point numbers"))),
            },
            H5T_class_t::H5T_STRING => {
                // SAFETY: as above.
                match unsafe { H5Tis_variable_str(kind.get()) } {
                    0 => Ok(Element::Text(size)),
                    _ => Err(Refusal::Unsupported("strings of variable length".to_owned())),
                }
            }
            // An enumeration is its numbers; the names stay in the file.
            H5T_class_t::H5T_ENUM => {
                // SAFETY: as above; the base type is ours to close.
                let base = library.id(unsafe { H5Tget_super(kind.get()) }, H5Tclose)?;
                Element::of_library(library, &base)
            }
            H5T_class_t::H5T_ARRAY => {
                // SAFETY: as above; the base type is ours to close.
                let base = library.id(unsafe { H5Tget_super(kind.get()) }, H5Tclose)?;
                let element = Element::of_library(library, &base)?;
                // SAFETY: as above.
                let rank = library.check(unsafe { H5Tget_array_ndims(kind.get()) })?;
                let mut shape = vec![0; rank as usize];
                // SAFETY: the buffer has room for `rank` lengths.
                let told = unsafe { H5Tget_array_dims2(kind.get(), shape.as_mut_ptr()) };
                library.check(told)?;
                Ok(Element::Array { shape, element: Box::new(element) })
            }
            H5T_class_t::H5T_COMPOUND => compound_of_library(library, kind),
            H5T_class_t::H5T_BITFIELD => Err(Refusal::Unsupported("bit fields".to_owned())),
            H5T_class_t::H5T_OPAQUE => Err(Refusal::Unsupported("opaque data".to_owned())),
            H5T_class_t::H5T_REFERENCE => Err(Refusal::Unsupported("references".to_owned())),
            H5T_class_t::H5T_VLEN => {
                Err(Refusal::Unsupported("sequences of variable length".to_owned()))
            }
            H5T_class_t::H5T_TIME => Err(Refusal::Unsupported("times".to_owned())),
            H5T_class_t::H5T_NO_CLASS | H5T_class_t::H5T_NCLASSES => {
                Err(Refusal::Unsupported("a type of an unknown class".to_owned()))
            }
        }
    }
}

fn compound_of_library(library: &Library, kind: &Id) -> Result<Element, Refusal> {
    // SAFETY: `kind` is an open compound type.
    let count = library.check(unsafe { H5Tget_nmembers(kind.get()) })?;
    let mut found = Vec::new();
    for index in 0..count as u32 {
        // SAFETY: `index` is below the number of members; the name is the library's to free.
        let name = library.text(unsafe { H5Tget_member_name(kind.get(), index) })?;
        // SAFETY: as above.
        let offset = unsafe { H5Tget_member_offset(kind.get(), index) };
        // SAFETY: as above; the type is ours to close.
        let member = library.id(unsafe { H5Tget_member_type(kind.get(), index) }, H5Tclose)?;
        let element = Element::of_library(library, &member)?;
        found.push((offset, name, element));
    }
    found.sort_by_key(|(offset, ..)| *offset);
    let mut size = 0;
    let mut members = Vec::new();
    for (_, name, element) in found {
        let offset = size;
        size += element.size();
        members.push(Member { name, offset, element });
    }
    Ok(Element::Compound { members, size })
}

/// The integer of this size.
fn integer(size: u64, signed: bool) -> Option<Scalar> {
    Some(match (size, signed) {
        (1, true) => Scalar::Int8,
        (2, true) => Scalar::Int16,
        (4, true) => Scalar::Int32,
        (8, true) => Scalar::Int64,
        (1, false) => Scalar::Uint8,
        (2, false) => Scalar::Uint16,
        (4, false) => Scalar::Uint32,
        (8, false) => Scalar::Uint64,
        _ => return None,
    })
}

fn scalar_to_library(scalar: Scalar, library: &Library) -> Result<Id, Failure> {
    // SAFETY: the predefined types exist once the library is open, which `library` proves.
    let predefined = unsafe {
        match scalar {
            Scalar::Int8 => H5Tcopy(*H5T_STD_I8LE),
            Scalar::Int16 => H5Tcopy(*H5T_STD_I16LE),
            Scalar::Int32 => H5Tcopy(*H5T_STD_I32LE),
            Scalar::Int64 => H5Tcopy(*H5T_STD_I64LE),
            Scalar::Uint8 => H5Tcopy(*H5T_STD_U8LE),
            Scalar::Uint16 => H5Tcopy(*H5T_STD_U16LE),
            Scalar::Uint32 => H5Tcopy(*H5T_STD_U32LE),
            Scalar::Uint64 => H5Tcopy(*H5T_STD_U64LE),
            Scalar::Float32 => H5Tcopy(*H5T_IEEE_F32LE),
            Scalar::Float64 => H5Tcopy(*H5T_IEEE_F64LE),
        }
    };
    library.id(predefined, H5Tclose)
}

/// Why a type of HDF5 has no place here.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// No view can hold it; what it is, in words.
    Unsupported(String),
    /// The library failed.
    Failed(Failure),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Refusal::Failed(failure)
    }
}

/// A name as the library takes it.
pub(crate) fn c_name(name: &str) -> Result<CString, Failure> {
    CString::new(name).map_err(|_| Failure::new(format!("{name:?} holds a NUL")))
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Number(scalar) => f.write_str(scalar.name()),
            Element::Text(size) => write!(f, "text of {size} bytes"),
            Element::Compound { members, size } => {
                write!(f, "{{")?;
                for (index, member) in members.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(f, "{comma}{} {} at {}", member.name, member.element, member.offset)?;
                }
                write!(f, "}} of {size} bytes")
            }
            Element::Array { shape, element } => write!(f, "{shape:?}{element}"),
        }
    }
}
