//! Hints.

use std::ffi::CStr;

use crate::calls::check;
use crate::handle::Room;
use crate::{Info, Mpi, MpiError};

impl Mpi {
    /// The value of a hint; `None` where it is not set.
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`], if the library's error handler returns.
    pub fn hint(&self, info: Info, key: &CStr) -> Result<Option<String>, MpiError> {
        let numbers = self.constants.numbers;
        if info == self.constants.info_null || key.to_bytes().len() > numbers.info_key_bytes_max {
            return Ok(None);
        }
        let longest = numbers.info_value_bytes_max;
        let mut value = vec![0u8; longest + 1];
        let mut is_set = 0;
        // SAFETY: a handle of this library, a NUL-terminated key, and room for `longest` bytes and NUL
        // (MPI-4.1 §10: valuelen does not count the NUL).
        check!("MPI_Info_get", unsafe {
            (self.calls.info_get)(
                info.word(),
                key.as_ptr(),
                longest as i32,
                value.as_mut_ptr().cast(),
                &mut is_set,
            )
        })?;
        if is_set == 0 {
            return Ok(None);
        }
        value.truncate(value.iter().position(|&byte| byte == 0).unwrap_or(longest));
        Ok(Some(String::from_utf8_lossy(&value).into_owned()))
    }

    /// Gives hints back.
    pub fn free_info(&self, info: Info) {
        let mut room = Room::holding(info.word());
        // SAFETY: a handle of this library; the library writes INFO_NULL into the room.
        unsafe { (self.calls.info_free)(room.address()) };
    }
}
