//! Finding the MPI library among what the dynamic linker has loaded.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::NonNull;

use crate::FindError;
use crate::abi::Abi;

/// The symbol by which a library is known to be MPI: no tool that stands before MPI defines the
/// profiling name of a function that it has no reason to replace. (`libsluice_world.so` defines
/// `PMPI_Init`.)
const EVIDENCE: &CStr = c"PMPI_Initialized";

/// MPI_MAX_LIBRARY_VERSION_STRING is 256 (Open MPI) or 8192 (MPICH, standard interface).
const VERSION_BYTES_MAX: usize = 8192;

/// A loaded MPI library. It stays loaded.
#[derive(Debug)]
pub struct Library {
    path: String,
    handle: NonNull<c_void>,
}

// SAFETY: a handle of dlopen(3) may be used by every thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// The MPI library, wherever it is visible: from everywhere (a linked program), or only to the
    /// object that loaded it (Python's extension modules are opened with `RTLD_LOCAL`).
    #[must_use]
    pub fn find() -> Option<Library> {
        // SAFETY: dlsym(3) with a NUL-terminated name.
        let global = unsafe { libc::dlsym(libc::RTLD_DEFAULT, EVIDENCE.as_ptr()) };
        if let Some(library) = NonNull::new(global).and_then(Self::containing) {
            return Some(library);
        }
        let candidates = loaded_objects().into_iter().filter_map(|path| Self::reopen(&path));
        let mut found = candidates.filter_map(|object| Self::containing(object.symbol(EVIDENCE)?));
        found.next()
    }

    /// Where an object defines a symbol that is visible only to whoever loaded it; the object that holds the address
    /// `but` is not meant.
    #[must_use]
    pub fn hidden(symbol: &CStr, but: *const c_void) -> Option<NonNull<c_void>> {
        let own = NonNull::new(but.cast_mut()).and_then(Self::containing);
        let own = own.map(|library| library.handle);
        loaded_objects().into_iter().filter_map(|path| Self::reopen(&path)).find_map(|object| {
            let address = object.symbol(symbol)?;
            (Self::containing(address)?.handle != own?).then_some(address)
        })
    }

    /// Loads an MPI library into a process that has none, visible to all: what the library loads in its
    /// turn (Open MPI's components) refers to its symbols.
    ///
    /// # Errors
    ///
    /// [`FindError::NotLoaded`] with the dynamic linker's reason.
    pub fn load(name: &CStr) -> Result<Library, FindError> {
        // SAFETY: dlopen(3) with a NUL-terminated name. Constructors of an MPI library only prepare it.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        let path = name.to_string_lossy().into_owned();
        match NonNull::new(handle) {
            Some(handle) => Ok(Library { path, handle }),
            None => Err(FindError::NotLoaded { path, reason: last_error() }),
        }
    }

    /// The object that holds an address.
    fn containing(address: NonNull<c_void>) -> Option<Library> {
        let mut about = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: `about` is room for a Dl_info; dladdr(3) fills it when it returns non-zero.
        let about = unsafe {
            if libc::dladdr(address.as_ptr(), about.as_mut_ptr()) == 0 {
                return None;
            }
            about.assume_init()
        };
        if about.dli_fname.is_null() {
            return None;
        }
        // SAFETY: the name of a loaded object is a string that lives as long as the object.
        Self::reopen(unsafe { CStr::from_ptr(about.dli_fname) })
    }

    /// A handle of an object that is loaded already, and would not be loaded otherwise.
    fn reopen(path: &CStr) -> Option<Library> {
        // SAFETY: with RTLD_NOLOAD no code of the object runs.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        let path = path.to_string_lossy().into_owned();
        Some(Library { path, handle: NonNull::new(handle)? })
    }

    /// The file that it was loaded from.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The address of a symbol that this library, or one that it is linked with, defines. Tools and
    /// preloaded libraries before it are not considered.
    #[must_use]
    pub fn symbol(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: a live handle and a NUL-terminated name.
        NonNull::new(unsafe { libc::dlsym(self.handle.as_ptr(), name.as_ptr()) })
    }

    /// The address of data that the library defines. Looked up the way the program's own references
    /// are: where an executable holds a copy of the library's data (R_X86_64_COPY), the copy is meant.
    #[must_use]
    pub fn data(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: dlsym(3) with a NUL-terminated name.
        let global = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        NonNull::new(global).or_else(|| self.symbol(name))
    }

    /// What the library says of itself. May be asked before MPI_Init (MPI-4.1 §9.1.1).
    pub(crate) fn version(&self) -> Result<String, FindError> {
        const NAME: &CStr = c"PMPI_Get_library_version";
        type Version = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
        let address = self.symbol(NAME).ok_or_else(|| self.missing(NAME))?;
        // SAFETY: the signature of the function of this name (MPI-4.1 §9.1.1).
        let version = unsafe { std::mem::transmute::<*mut c_void, Version>(address.as_ptr()) };
        let mut text = vec![0u8; VERSION_BYTES_MAX + 1];
        let mut length = 0;
        // SAFETY: room for the longest text of any of the interfaces.
        unsafe { version(text.as_mut_ptr().cast(), &mut length) };
        text.truncate(text.iter().position(|&byte| byte == 0).unwrap_or(0));
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Which binary interface it has. Only evidence counts: under a wrong table every call would
    /// corrupt memory.
    pub(crate) fn abi(&self, version: &str) -> Result<Abi, FindError> {
        // The standard interface first: a library that offers both may bring the symbols of its own
        // implementation along.
        if self.standard_version().is_some_and(|major| major == 1) {
            return Ok(Abi::Standard);
        }
        if self.symbol(c"ompi_mpi_comm_world").is_some() {
            return Ok(Abi::OpenMpi);
        }
        // The partners of the MPICH ABI initiative (https://www.mpich.org/abi/).
        const NAMES: [&str; 4] = ["MPICH", "Intel(R) MPI", "MVAPICH", "ParaStation"];
        if NAMES.iter().any(|name| version.contains(name)) {
            return Ok(Abi::Mpich);
        }
        Err(FindError::UnknownInterface {
            path: self.path.clone(),
            version: version.lines().next().unwrap_or_default().to_owned(),
        })
    }

    /// The major version of the standard interface (MPI-5.0 §20.2); −1 in a library that has another.
    fn standard_version(&self) -> Option<c_int> {
        type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
        let address = self.symbol(c"PMPI_Abi_get_version")?;
        // SAFETY: the signature of the function of this name (MPI-5.0 §20.2).
        let version = unsafe { std::mem::transmute::<*mut c_void, Version>(address.as_ptr()) };
        let (mut major, mut minor) = (-1, -1);
        // SAFETY: two integers to fill; may be called before MPI_Init.
        (unsafe { version(&mut major, &mut minor) } == 0).then_some(major)
    }

    pub(crate) fn missing(&self, symbol: &CStr) -> FindError {
        FindError::MissingSymbol {
            path: self.path.clone(),
            symbol: symbol.to_string_lossy().into_owned(),
        }
    }
}

/// What the dynamic linker says of its last failure in this thread.
fn last_error() -> String {
    // SAFETY: dlerror(3) returns NULL or a string that lives until this thread's next call of it.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            return "no reason given".to_owned();
        }
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}

/// The names of all loaded objects but the program itself.
fn loaded_objects() -> Vec<CString> {
    unsafe extern "C" fn collect(
        object: *mut libc::dl_phdr_info,
        _size: usize,
        names: *mut c_void,
    ) -> c_int {
        // SAFETY: dl_iterate_phdr(3) passes a valid structure, and the pointer that it was given.
        let (object, names) = unsafe { (&*object, &mut *names.cast::<Vec<CString>>()) };
        if !object.dlpi_name.is_null() {
            // SAFETY: a NUL-terminated name.
            let name = unsafe { CStr::from_ptr(object.dlpi_name) };
            // The program's own name is empty; dlopen(3) would not find the vDSO's.
            if !name.is_empty() {
                names.push(name.to_owned());
            }
        }
        0
    }
    let mut names: Vec<CString> = Vec::new();
    // SAFETY: `collect` does not unwind, and `names` lives through the call. The objects are opened
    // afterwards, because the linker's lock is held while it iterates.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut names).cast()) };
    names
}
