//! Open files: what the library knows of them.

use std::ffi::c_int;

use crate::calls::check;
use crate::handle::{Handle, Room};
use crate::{Datatype, File, Group, Info, Mpi, MpiError};

/// What part of a file a process sees (MPI-4.1 §14.3).
#[derive(Debug)]
pub struct View {
    /// Bytes from the start of the file to where the view begins.
    pub displacement: i64,
    /// The unit of offsets. To be given back with [`Mpi::release`].
    pub etype: Datatype,
    /// The pattern that repeats from the displacement on. To be given back with [`Mpi::release`].
    pub filetype: Datatype,
    /// How data is represented: `native`, `internal`, `external32` or one of the program's own.
    pub datarep: String,
}

impl Mpi {
    /// The view of the calling process.
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`], as of every function here.
    pub fn view(&self, file: File) -> Result<View, MpiError> {
        let mut displacement = 0;
        let (mut etype, mut filetype) = (Room::new(), Room::new());
        let mut datarep = vec![0u8; self.constants.numbers.datarep_bytes_max + 1];
        // SAFETY: a handle of this library, and room for what it fills.
        check!("MPI_File_get_view", unsafe {
            (self.calls.file_view)(
                file.word(),
                &mut displacement,
                etype.address(),
                filetype.address(),
                datarep.as_mut_ptr().cast(),
            )
        })?;
        datarep.truncate(datarep.iter().position(|&byte| byte == 0).unwrap_or(datarep.len()));
        Ok(View {
            displacement,
            etype: etype.handle(),
            filetype: filetype.handle(),
            datarep: String::from_utf8_lossy(&datarep).into_owned(),
        })
    }

    /// The hints in force. To be given back with [`Mpi::free_info`].
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`].
    pub fn file_info(&self, file: File) -> Result<Info, MpiError> {
        let mut info = Room::new();
        // SAFETY: a handle of this library, and room for another.
        check!("MPI_File_get_info", unsafe {
            (self.calls.file_info)(file.word(), info.address())
        })?;
        Ok(Info::from_word(info.handle::<Info>().word()))
    }

    /// How the file was opened: bits of [`crate::abi::Mode`].
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`].
    pub fn amode(&self, file: File) -> Result<c_int, MpiError> {
        let mut amode = 0;
        // SAFETY: a handle of this library, and an integer to fill.
        check!("MPI_File_get_amode", unsafe { (self.calls.file_amode)(file.word(), &mut amode) })?;
        Ok(amode)
    }

    /// The processes that opened the file. To be given back with [`Mpi::free_group`].
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`].
    pub fn file_group(&self, file: File) -> Result<Group, MpiError> {
        let mut group = Room::new();
        // SAFETY: a handle of this library, and room for another.
        check!("MPI_File_get_group", unsafe {
            (self.calls.file_group)(file.word(), group.address())
        })?;
        Ok(group.handle())
    }

    /// Bytes in the file.
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`].
    pub fn file_size(&self, file: File) -> Result<i64, MpiError> {
        let mut size = 0;
        // SAFETY: a handle of this library, and an integer to fill.
        check!("MPI_File_get_size", unsafe { (self.calls.file_size)(file.word(), &mut size) })?;
        Ok(size)
    }

    /// Whether conflicting accesses of other processes are to be serialised.
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`].
    pub fn atomicity(&self, file: File) -> Result<bool, MpiError> {
        let mut atomic = 0;
        // SAFETY: as above.
        check!("MPI_File_get_atomicity", unsafe {
            (self.calls.file_atomicity)(file.word(), &mut atomic)
        })?;
        Ok(atomic != 0)
    }

    /// The individual file pointer, in etypes of the view.
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`].
    pub fn position(&self, file: File) -> Result<i64, MpiError> {
        let mut position = 0;
        // SAFETY: as above.
        check!("MPI_File_get_position", unsafe {
            (self.calls.file_position)(file.word(), &mut position)
        })?;
        Ok(position)
    }

    /// Sets the individual file pointer, in etypes of the view, and makes sure of it: Intel MPI 2021.18
    /// gives the standard interface's MPI_SEEK_SET, CUR and END each another's meaning.
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`]; [`MpiError::Contradicted`] if the pointer cannot be set.
    pub fn set_position(&self, file: File, position: i64) -> Result<(), MpiError> {
        let numbers = self.constants.numbers;
        for whence in [numbers.seek_set, numbers.seek_cur, numbers.seek_end] {
            // SAFETY: a handle of this library.
            check!("MPI_File_seek", unsafe {
                (self.calls.file_seek)(file.word(), position, whence)
            })?;
            if self.position(file)? == position {
                return Ok(());
            }
        }
        Err(MpiError::Contradicted)
    }

    /// Calls the error handler of a file, as the library does when one of its own calls fails. It may
    /// end the program, or throw.
    pub fn raise(&self, file: File, code: c_int) {
        // SAFETY: a handle of this library.
        unsafe { (self.calls.file_call_errhandler)(file.word(), code) };
    }
}
