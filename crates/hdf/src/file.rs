//! An HDF5 file, read and written by offsets into the row of bytes of its schema.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use hdf5_metno_sys::h5d::{H5Dclose, H5Dopen2, H5Dread, H5Dwrite};
use hdf5_metno_sys::h5f::{
    H5F_ACC_EXCL, H5F_ACC_RDONLY, H5F_ACC_RDWR, H5F_scope_t, H5Fclose, H5Fcreate, H5Fflush, H5Fopen,
};
use hdf5_metno_sys::h5p::{
    H5P_CLS_FILE_ACCESS, H5P_DEFAULT, H5Pclose, H5Pcreate, H5Pset_alignment, H5Pset_file_locking,
};
use hdf5_metno_sys::h5s::{H5S_seloper_t, H5Sclose, H5Screate_simple, H5Sselect_hyperslab};

use crate::contents;
use crate::element::c_name;
use crate::error::{Error, Result};
use crate::library::{Failure, Id, Library};
use crate::schema::{Dataset, Schema};
use crate::slab::{Slab, slabs};

/// Contiguous datasets of at least this many bytes begin at a page.
const ALIGNED: u64 = 64 * 1024;
const PAGE: u64 = 4096;

/// An open HDF5 file. Two of them on one file, one of which writes, would not see each other's
/// chunks: whoever opens it to write must be alone.
#[derive(Debug)]
pub struct HdfFile {
    path: PathBuf,
    schema: Schema,
    /// For every dataset of the schema, where its bytes are.
    places: Vec<Place>,
    file: File,
    /// Kept open while the library holds a part of the content.
    library: Option<Id>,
}

/// Where the bytes of a dataset are.
#[derive(Debug)]
enum Place {
    /// In one piece, at this byte of the file, as the row has them.
    Piece(u64),
    /// Behind the library, which decompresses and converts.
    Library(Id),
}

impl HdfFile {
    /// Makes a new file with the datasets of a schema, all zero.
    ///
    /// # Errors
    /// When there is a file of that name, when the schema cannot be expressed, when the disk is
    /// full.
    pub fn create(path: &Path, schema: &Schema) -> Result<Self> {
        let library = Library::enter();
        let told = told(path, "create the file");
        let access = access(&library).map_err(&told)?;
        let name = c_path(path).map_err(&told)?;
        // SAFETY: the path is ended by NUL; both property lists are valid.
        let id = unsafe { H5Fcreate(name.as_ptr(), H5F_ACC_EXCL, H5P_DEFAULT, access.get()) };
        let id = library.id(id, H5Fclose).map_err(told)?;
        for dataset in schema.datasets() {
            contents::create(&library, &id, dataset)
                .map_err(self::told(path, &format!("create the dataset {}", dataset.path)))?;
        }
        // Closed and opened again, so that what was written is on its way and what is used from now
        // on is what is in the file.
        drop(id);
        drop(library);
        Self::open(path, schema, true)
    }

    /// Opens a file that holds the datasets of a schema. It may hold others too.
    ///
    /// # Errors
    /// When it is no HDF5 file, or a dataset is missing, or is of another shape or type.
    pub fn open(path: &Path, schema: &Schema, writable: bool) -> Result<Self> {
        let system = |action| move |source| Error::System { path: path.to_owned(), action, source };
        let file = OpenOptions::new()
            .read(true)
            .write(writable)
            .open(path)
            .map_err(system("open the file"))?;
        let library = Library::enter();
        let id = open_file(&library, path, writable)?;
        let (mut places, mut datasets) = (Vec::new(), Vec::new());
        for dataset in schema.datasets() {
            let tried = format!("open the dataset {}", dataset.path);
            let name = c_name(&dataset.path).map_err(told(path, &tried))?;
            // SAFETY: the name is ended by NUL, the file is open.
            let opened = unsafe { H5Dopen2(id.get(), name.as_ptr(), H5P_DEFAULT) };
            let opened = library.id(opened, H5Dclose).map_err(told(path, &tried))?;
            let found = contents::compare(&library, path, &opened, dataset)?;
            let piece = contents::piece(&library, &opened, &found.element);
            let piece = piece.map_err(told(path, &tried))?;
            places.push(match piece {
                Some(offset) => Place::Piece(offset),
                None => Place::Library(opened),
            });
            datasets.push(Dataset { start: dataset.start, ..found });
        }
        let held = places.iter().any(|place| matches!(place, Place::Library(_)));
        let kept = held.then_some(id);
        drop(library);
        let schema = Schema::new(datasets)?;
        Ok(Self { path: path.to_owned(), schema, places, file, library: kept })
    }

    /// The schema of all datasets of a file that a view can hold, one after the other in the order
    /// of their paths, each at a multiple of 8; and the paths of the others with the reason.
    ///
    /// # Errors
    /// When it is no HDF5 file.
    pub fn inspect(path: &Path) -> Result<(Schema, Vec<(String, String)>)> {
        let library = Library::enter();
        let id = open_file(&library, path, false)?;
        let (found, refused) =
            contents::list(&library, &id).map_err(told(path, "list its datasets"))?;
        drop(id);
        Ok((Schema::new(found)?, refused))
    }

    /// What it holds.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Fills `buffer` from `offset` of the row on; bytes that belong to no dataset are zero.
    ///
    /// # Errors
    /// When a read fails, or the file ends too early.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        let end = offset + buffer.len() as u64;
        let mut filled = offset;
        for (dataset, place) in self.overlapping(offset, end) {
            let (from, to) = (dataset.start.max(offset), dataset.end().min(end));
            buffer[(filled - offset) as usize..(from - offset) as usize].fill(0);
            let wanted = &mut buffer[(from - offset) as usize..(to - offset) as usize];
            match place {
                Place::Piece(at) => self
                    .file
                    .read_exact_at(wanted, at + (from - dataset.start))
                    .map_err(self.failed("read"))?,
                Place::Library(id) => {
                    self.read_elements(dataset, id, from - dataset.start, wanted)?
                }
            }
            filled = to;
        }
        buffer[(filled - offset) as usize..].fill(0);
        Ok(())
    }

    /// Writes `data` from `offset` of the row on; bytes that belong to no dataset are dropped.
    ///
    /// # Errors
    /// When a write fails.
    pub fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let end = offset + data.len() as u64;
        for (dataset, place) in self.overlapping(offset, end) {
            let (from, to) = (dataset.start.max(offset), dataset.end().min(end));
            let given = &data[(from - offset) as usize..(to - offset) as usize];
            match place {
                Place::Piece(at) => self
                    .file
                    .write_all_at(given, at + (from - dataset.start))
                    .map_err(self.failed("write"))?,
                Place::Library(id) => {
                    self.write_elements(dataset, id, from - dataset.start, given)?
                }
            }
        }
        Ok(())
    }

    /// Brings what was written to the disk.
    ///
    /// # Errors
    /// When it could not be; nothing is known then of what is there.
    pub fn sync(&self) -> Result<()> {
        if let Some(id) = &self.library {
            let library = Library::enter();
            // SAFETY: the file is open.
            let flushed = unsafe { H5Fflush(id.get(), H5F_scope_t::H5F_SCOPE_GLOBAL) };
            library.check(flushed).map_err(told(&self.path, "flush the file"))?;
        }
        self.file.sync_data().map_err(self.failed("sync"))
    }

    /// Whether every byte is written past the library: the file's structure is then never changed,
    /// and a process that dies leaves it whole.
    pub fn is_plain(&self) -> bool {
        self.library.is_none()
    }

    fn overlapping(&self, from: u64, to: u64) -> impl Iterator<Item = (&Dataset, &Place)> {
        let datasets = self.schema.datasets();
        let first = datasets.partition_point(|dataset| dataset.end() <= from);
        datasets[first..]
            .iter()
            .zip(&self.places[first..])
            .take_while(move |(dataset, _)| dataset.start < to)
            .filter(|(dataset, _)| dataset.size() > 0)
    }

    fn read_elements(&self, dataset: &Dataset, id: &Id, at: u64, wanted: &mut [u8]) -> Result<()> {
        let size = dataset.element.size();
        let (first, skipped) = (at / size, (at % size) as usize);
        let count = (at + wanted.len() as u64).div_ceil(size) - first;
        if skipped == 0 && wanted.len() as u64 == count * size {
            return self.move_elements(dataset, id, first, count, Elements::Read(wanted));
        }
        let mut whole = vec![0; (count * size) as usize];
        self.move_elements(dataset, id, first, count, Elements::Read(&mut whole))?;
        wanted.copy_from_slice(&whole[skipped..skipped + wanted.len()]);
        Ok(())
    }

    fn write_elements(&self, dataset: &Dataset, id: &Id, at: u64, given: &[u8]) -> Result<()> {
        let size = dataset.element.size();
        let (first, skipped) = (at / size, (at % size) as usize);
        let count = (at + given.len() as u64).div_ceil(size) - first;
        if skipped == 0 && given.len() as u64 == count * size {
            return self.move_elements(dataset, id, first, count, Elements::Write(given));
        }
        let mut whole = vec![0; (count * size) as usize];
        self.move_elements(dataset, id, first, count, Elements::Read(&mut whole))?;
        whole[skipped..skipped + given.len()].copy_from_slice(given);
        self.move_elements(dataset, id, first, count, Elements::Write(&whole))
    }

    /// Reads or writes whole elements, box by box.
    fn move_elements(
        &self,
        dataset: &Dataset,
        id: &Id,
        first: u64,
        count: u64,
        mut elements: Elements<'_>,
    ) -> Result<()> {
        let library = Library::enter();
        let failed = |action: &str| told(&self.path, &format!("{action} {}", dataset.path));
        let kind = dataset.element.to_library(&library).map_err(failed("describe"))?;
        let mut done = 0;
        for slab in slabs(&dataset.shape, first, count) {
            let bytes = (slab.elements() * dataset.element.size()) as usize;
            elements
                .transfer(&library, id, &kind, &dataset.shape, &slab, done..done + bytes)
                .map_err(failed(elements.action()))?;
            done += bytes;
        }
        Ok(())
    }

    fn failed(&self, action: &'static str) -> impl Fn(std::io::Error) -> Error + '_ {
        move |source| Error::System { path: self.path.clone(), action, source }
    }
}

impl Drop for HdfFile {
    fn drop(&mut self) {
        if self.library.is_some() {
            let _turn = Library::enter();
            self.places.clear();
            self.library = None;
        }
    }
}

/// Memory on one side of a transfer.
enum Elements<'a> {
    Read(&'a mut [u8]),
    Write(&'a [u8]),
}

impl Elements<'_> {
    fn action(&self) -> &'static str {
        match self {
            Elements::Read(_) => "read",
            Elements::Write(_) => "write",
        }
    }

    /// Moves one box of elements between the file and the bytes `range` of memory.
    fn transfer(
        &mut self,
        library: &Library,
        dataset: &Id,
        kind: &Id,
        shape: &[u64],
        slab: &Slab,
        range: std::ops::Range<usize>,
    ) -> std::result::Result<(), Failure> {
        let in_file = space(library, shape)?;
        let in_memory = space(library, &slab.count)?;
        if !shape.is_empty() {
            // SAFETY: start and count have one entry for every dimension of the space.
            let selected = unsafe {
                H5Sselect_hyperslab(
                    in_file.get(),
                    H5S_seloper_t::H5S_SELECT_SET,
                    slab.start.as_ptr(),
                    std::ptr::null(),
                    slab.count.as_ptr(),
                    std::ptr::null(),
                )
            };
            library.check(selected)?;
        }
        let (dataset, kind) = (dataset.get(), kind.get());
        let (in_memory, in_file) = (in_memory.get(), in_file.get());
        // SAFETY: the memory space holds as many elements of `kind` as `range` has bytes for.
        let moved = unsafe {
            match self {
                Elements::Read(memory) => {
                    let to = memory[range].as_mut_ptr().cast();
                    H5Dread(dataset, kind, in_memory, in_file, H5P_DEFAULT, to)
                }
                Elements::Write(memory) => {
                    let from = memory[range].as_ptr().cast();
                    H5Dwrite(dataset, kind, in_memory, in_file, H5P_DEFAULT, from)
                }
            }
        };
        library.check(moved).map(|_| ())
    }
}

/// The space of an array; of rank 0 for a single element.
pub(crate) fn space(library: &Library, shape: &[u64]) -> std::result::Result<Id, Failure> {
    // SAFETY: `shape` has as many lengths as are announced; no maximum is given.
    let space = unsafe { H5Screate_simple(shape.len() as i32, shape.as_ptr(), std::ptr::null()) };
    library.id(space, H5Sclose)
}

/// How files are opened: large datasets at pages; without the library's own locks, since whoever
/// opens a replica has locked it.
fn access(library: &Library) -> std::result::Result<Id, Failure> {
    // SAFETY: the class exists once the library is open.
    let access = library.id(unsafe { H5Pcreate(*H5P_CLS_FILE_ACCESS) }, H5Pclose)?;
    // SAFETY: the list is ours.
    unsafe {
        library.check(H5Pset_alignment(access.get(), ALIGNED, PAGE))?;
        library.check(H5Pset_file_locking(access.get(), 0, 1))?;
    }
    Ok(access)
}

fn open_file(library: &Library, path: &Path, writable: bool) -> Result<Id> {
    let told = told(path, "open the file");
    let access = access(library).map_err(&told)?;
    let name = c_path(path).map_err(&told)?;
    let flags = if writable { H5F_ACC_RDWR } else { H5F_ACC_RDONLY };
    // SAFETY: the path is ended by NUL, the property list is valid.
    library.id(unsafe { H5Fopen(name.as_ptr(), flags, access.get()) }, H5Fclose).map_err(told)
}

fn c_path(path: &Path) -> std::result::Result<CString, Failure> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Failure::new("its name holds a NUL".to_owned()))
}

/// Says of which file, and at what, the library failed.
fn told(path: &Path, action: &str) -> impl Fn(Failure) -> Error + use<> {
    let (path, action) = (path.to_owned(), action.to_owned());
    move |failure| Error::Library {
        path: path.clone(),
        action: action.clone(),
        reason: failure.into_words(),
    }
}
