//! Loaded objects: finding a libc function by name, and the code segment around an address.
//!
//! The symbol table is read where the loader mapped it (elf(5), "GNU hash ELF sections" of the glibc sources). `dlsym` would
//! cost a lock and a relocation per name, may itself be wrapped by a preload library, and `dladdr`, the only public way to the size
//! of a symbol, searches the whole table each time (15 µs a name).

use crate::PatchError;
use crate::arch::{is_entry_like, possible_calls, size_if_calls_system};
use libc::{Elf64_Phdr, Elf64_Sym, PF_R, PF_X, PT_DYNAMIC, PT_LOAD, dl_phdr_info};
use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::sync::OnceLock;

/// Entries of the dynamic section that locate the symbol table (elf.h).
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const DT_VERSYM: i64 = 0x6fff_fff0;
/// Symbol types (elf.h).
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;
/// A version index with this bit is not the default version of its symbol (`name@V`, not `name@@V`).
const VERSYM_HIDDEN: u16 = 0x8000;

/// A function to patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The first byte of its code.
    pub entry: *const u8,
    /// How many bytes of code belong to it, if known. Else [`Patcher::install`](crate::Patcher::install) looks for its end.
    pub size_bytes: Option<usize>,
}

impl Target {
    /// A function of which only the entry is known.
    #[must_use]
    pub fn at(entry: *const u8) -> Self {
        Target { entry, size_bytes: None }
    }
}

/// How many functions one name may have. glibc has names with three versions, of which two are the same code.
const VERSIONS_MAX: usize = 8;

/// The different functions that libc has under one name, the default version first, then from the newest to the oldest.
///
/// It is an array and not a vector because some hundred names are looked up in every process that starts. More than eight
/// there are not; the oldest ones would be left out.
#[derive(Debug, Clone, Copy)]
pub struct Versions {
    targets: [Target; VERSIONS_MAX],
    /// For each of them what orders them: whether it is not the default version, and how old it is.
    ranks: [(bool, u16); VERSIONS_MAX],
    count: usize,
}

impl Versions {
    const NONE: Self = Versions {
        targets: [Target { entry: std::ptr::null(), size_bytes: None }; VERSIONS_MAX],
        ranks: [(false, 0); VERSIONS_MAX],
        count: 0,
    };

    /// Puts a version in its place. Of the same code under several versions the first one counts.
    fn insert(&mut self, target: Target, version: u16) {
        // Version indices ascend with the age of libc: its linker script lists them in that order.
        let rank = (version & VERSYM_HIDDEN != 0, u16::MAX - version);
        let known = self.iter().position(|other| *other == target);
        if known.is_some_and(|known| self.ranks[known] <= rank) {
            return;
        }
        let end = known.unwrap_or(self.count.min(VERSIONS_MAX - 1));
        let place = self.ranks[..self.count].iter().position(|other| *other > rank).unwrap_or(end);
        if known.is_none() && self.count == VERSIONS_MAX && place == end && self.ranks[end] < rank {
            return;
        }
        self.targets.copy_within(place..end, place + 1);
        self.ranks.copy_within(place..end, place + 1);
        self.targets[place] = target;
        self.ranks[place] = rank;
        if known.is_none() {
            self.count = (self.count + 1).min(VERSIONS_MAX);
        }
    }
}

impl IntoIterator for Versions {
    type Item = Target;
    type IntoIter = std::iter::Take<std::array::IntoIter<Target, VERSIONS_MAX>>;

    fn into_iter(self) -> Self::IntoIter {
        self.targets.into_iter().take(self.count)
    }
}

impl std::ops::Deref for Versions {
    type Target = [Target];

    fn deref(&self) -> &[Target] {
        &self.targets[..self.count]
    }
}

/// The function that libc exports under `name`: its default version (GLIBC_PRIVATE included), or else the newest of the old.
///
/// The answer always lies in libc itself, never in a PLT or in another preload library.
///
/// # Errors
/// [`PatchError::NoLibc`], [`PatchError::NoSuchSymbol`], or [`PatchError::IndirectFunction`] when the symbol is a resolver.
pub fn resolve(name: &str) -> Result<Target, PatchError> {
    resolve_versions(name).map(|versions| versions[0])
}

/// Every different function that libc exports under `name`, the default version first.
///
/// Old programs keep calling the version that they were linked with: `posix_spawn@GLIBC_2.2.5`, for one, is other code than
/// `posix_spawn@@GLIBC_2.15`. The answer is never empty.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_versions(name: &str) -> Result<Versions, PatchError> {
    libc()?.functions(name)
}

/// A function that libc does not export: the one that `caller` calls directly and that makes the system call `number`.
///
/// glibc keeps a few low-level functions to itself, such as `__openat_nocancel`, which serves nftw, scandirat and fchmodat but none of
/// the exported functions. It is recognised by what it does: code of libc that `caller` calls and that holds the sequence which
/// makes the system call.
///
/// # Errors
/// As [`resolve`] for `caller`; [`PatchError::NoSuchSymbol`] when it calls no such function.
pub fn resolve_callee(caller: &str, number: libc::c_long) -> Result<Target, PatchError> {
    let number = u32::try_from(number).map_err(|_| PatchError::NoSuchSymbol)?;
    let caller = resolve(caller)?;
    let code = &libc()?.code;
    let bytes = |address: usize, size_bytes: usize| {
        let segment = code.iter().find(|segment| segment.contains(&address))?;
        // SAFETY: within a readable segment of libc, which stays loaded.
        Some(unsafe {
            std::slice::from_raw_parts(address as *const u8, size_bytes.min(segment.end - address))
        })
    };
    let entry = caller.entry as usize;
    let body = bytes(entry, caller.size_bytes.unwrap_or(0)).unwrap_or_default();
    possible_calls(body, entry)
        .filter(|callee| is_entry_like(*callee))
        .find_map(|callee| {
            let size_bytes = size_if_calls_system(bytes(callee, usize::MAX)?, callee, number)?;
            Some(Target { entry: callee as *const u8, size_bytes: Some(size_bytes) })
        })
        .ok_or(PatchError::NoSuchSymbol)
}

fn libc() -> Result<&'static Object, PatchError> {
    static LIBC: OnceLock<Option<Object>> = OnceLock::new();
    let libc =
        LIBC.get_or_init(|| Object::find(|name| name.rsplit('/').next() == Some("libc.so.6")));
    libc.as_ref().ok_or(PatchError::NoLibc)
}

/// The readable and executable segment of a loaded object around `address`.
pub(crate) fn code_around(address: usize) -> Option<Range<usize>> {
    let mut found = None;
    for_each_object(|object| {
        // SAFETY: `object` describes a loaded object for the time of this call (see for_each_object).
        let headers = unsafe { program_headers(object) };
        found = code_segments(object, headers).find(|segment| segment.contains(&address));
        found.is_some()
    });
    found
}

/// Where the parts of a loaded object's symbol table lie. They stay as long as the object is loaded: libc, for ever.
#[derive(Debug)]
struct Object {
    base: usize,
    symbols: usize,
    strings: usize,
    hash: usize,
    versions: Option<usize>,
    code: Vec<Range<usize>>,
}

impl Object {
    /// The first loaded object, in load order, whose file name satisfies `is_wanted`.
    fn find(is_wanted: impl Fn(&str) -> bool) -> Option<Self> {
        let mut found = None;
        for_each_object(|object| {
            if object.dlpi_name.is_null() {
                return false;
            }
            // SAFETY: dl_iterate_phdr(3): a null-terminated string that lives as long as the object is loaded.
            let name = unsafe { CStr::from_ptr(object.dlpi_name) };
            if name.to_str().is_ok_and(&is_wanted) {
                // SAFETY: `object` describes a loaded object for the time of this call.
                found = unsafe { Object::from_headers(object) };
            }
            found.is_some()
        });
        found
    }

    /// # Safety
    /// `object` must describe an object that is loaded.
    unsafe fn from_headers(object: &dl_phdr_info) -> Option<Self> {
        // SAFETY: as promised by the caller.
        let headers = unsafe { program_headers(object) };
        let base = object.dlpi_addr as usize;
        let dynamic = headers.iter().find(|header| header.p_type == PT_DYNAMIC)?;
        let mut entry = (base + dynamic.p_vaddr as usize) as *const [i64; 2];
        let (mut symbols, mut strings, mut hash, mut versions) = (None, None, None, None);
        loop {
            // SAFETY: the dynamic section is an array of (tag, value) pairs that ends with a DT_NULL tag (elf(5)).
            let [tag, value] = unsafe { entry.read() };
            // glibc adds the base to these pointers in place, other loaders (and the vDSO) do not.
            let pointer =
                if (value as usize) < base { base + value as usize } else { value as usize };
            match tag {
                0 => break,
                DT_SYMTAB => symbols = Some(pointer),
                DT_STRTAB => strings = Some(pointer),
                DT_GNU_HASH => hash = Some(pointer),
                DT_VERSYM => versions = Some(pointer),
                _ => {}
            }
            // SAFETY: DT_NULL has not been seen, so another entry follows.
            entry = unsafe { entry.add(1) };
        }
        let code = code_segments(object, headers).collect();
        Some(Object { base, symbols: symbols?, strings: strings?, hash: hash?, versions, code })
    }

    /// All functions called `name`.
    fn functions(&self, name: &str) -> Result<Versions, PatchError> {
        let mut found = Versions::NONE;
        let mut is_indirect = false;
        self.for_each_named(name, |symbol, version| {
            let (kind, entry) = (symbol.st_info & 0xf, self.base + symbol.st_value as usize);
            is_indirect |= kind == STT_GNU_IFUNC;
            if kind == STT_FUNC
                && symbol.st_shndx != 0
                && self.code.iter().any(|code| code.contains(&entry))
            {
                let size_bytes = (symbol.st_size != 0).then_some(symbol.st_size as usize);
                found.insert(Target { entry: entry as *const u8, size_bytes }, version);
            }
        });
        match (found.is_empty(), is_indirect) {
            (false, _) => Ok(found),
            (true, true) => Err(PatchError::IndirectFunction),
            (true, false) => Err(PatchError::NoSuchSymbol),
        }
    }

    /// Calls `each` with every defined or undefined symbol called `name` and its entry in DT_VERSYM.
    fn for_each_named(&self, name: &str, mut each: impl FnMut(&Elf64_Sym, u16)) {
        let word = |index: usize| {
            // SAFETY: within the hash table, whose parts have the lengths that its first words say.
            unsafe { (self.hash as *const u32).add(index).read() }
        };
        let (bucket_count, first_symbol, bloom_words) =
            (word(0) as usize, word(1) as usize, word(2) as usize);
        if bucket_count == 0 {
            return;
        }
        let buckets = 4 + 2 * bloom_words;
        let chains = buckets + bucket_count;
        let wanted = gnu_hash(name.as_bytes());
        let mut index = word(buckets + wanted as usize % bucket_count) as usize;
        if index < first_symbol {
            return;
        }
        loop {
            let hash = word(chains + index - first_symbol);
            if hash | 1 == wanted | 1 {
                // SAFETY: the hash table only names symbols of the symbol table, and those only strings of the string table.
                let symbol = unsafe { &*(self.symbols as *const Elf64_Sym).add(index) };
                let symbol_name = (self.strings + symbol.st_name as usize) as *const u8;
                // SAFETY: as above; strings end with a null byte, behind which this does not read.
                let letter = |at: usize| unsafe { symbol_name.add(at).read() };
                let is_wanted = name.bytes().enumerate().all(|(at, byte)| letter(at) == byte)
                    && letter(name.len()) == 0;
                if is_wanted {
                    let version = self.versions.map_or(0, |versions| {
                        // SAFETY: DT_VERSYM has one half-word for every symbol.
                        unsafe { (versions as *const u16).add(index).read() }
                    });
                    each(symbol, version);
                }
            }
            if hash & 1 == 1 {
                return; // the last of its chain
            }
            index += 1;
        }
    }
}

/// The hash of a symbol name in DT_GNU_HASH.
fn gnu_hash(name: &[u8]) -> u32 {
    name.iter().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)))
}

/// Segments from which code is executed and can be read.
fn code_segments(
    object: &dl_phdr_info,
    headers: &[Elf64_Phdr],
) -> impl Iterator<Item = Range<usize>> {
    let base = object.dlpi_addr as usize;
    headers
        .iter()
        .filter(|header| header.p_type == PT_LOAD && header.p_flags & (PF_R | PF_X) == PF_R | PF_X)
        .map(move |header| {
            base + header.p_vaddr as usize..base + (header.p_vaddr + header.p_filesz) as usize
        })
}

/// # Safety
/// `object` must describe an object that is loaded.
unsafe fn program_headers(object: &dl_phdr_info) -> &[Elf64_Phdr] {
    if object.dlpi_phdr.is_null() {
        return &[];
    }
    // SAFETY: dl_iterate_phdr(3): dlpi_phnum headers, mapped as long as the object is loaded.
    unsafe { std::slice::from_raw_parts(object.dlpi_phdr, usize::from(object.dlpi_phnum)) }
}

/// Calls `visit` with each loaded object until it answers true.
fn for_each_object(mut visit: impl FnMut(&dl_phdr_info) -> bool) {
    unsafe extern "C" fn call<F: FnMut(&dl_phdr_info) -> bool>(
        object: *mut dl_phdr_info,
        _size_bytes: usize,
        visit: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid description, and the pointer that dl_iterate_phdr was given: `visit` below.
        let (visit, object) = unsafe { (&mut *visit.cast::<F>(), &*object) };
        c_int::from(visit(object))
    }
    fn callback<F: FnMut(&dl_phdr_info) -> bool>(
        _: &F,
    ) -> unsafe extern "C" fn(*mut dl_phdr_info, usize, *mut c_void) -> c_int {
        call::<F>
    }
    let function = callback(&visit);
    // SAFETY: dl_iterate_phdr(3) calls `function` with `visit`, whose type it was made for, and keeps neither.
    unsafe { libc::dl_iterate_phdr(Some(function), (&raw mut visit).cast()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_stand_in_order_whatever_order_they_come_in() {
        let target = |number: usize| Target { entry: number as *const u8, size_bytes: None };
        let ordered = |versions: &[(usize, u16)]| {
            let mut all = Versions::NONE;
            versions.iter().for_each(|(number, version)| all.insert(target(*number), *version));
            all.iter().map(|target| target.entry as usize).collect::<Vec<_>>()
        };
        let old = |version: u16| version | VERSYM_HIDDEN;
        assert_eq!(ordered(&[(1, old(2)), (2, 9), (3, old(5))]), [2, 3, 1]);
        assert_eq!(ordered(&[(3, old(5)), (1, old(2)), (2, 9)]), [2, 3, 1]);
        assert_eq!(ordered(&[(1, old(2)), (1, 9), (3, old(5))]), [1, 3], "the same code twice");
        assert_eq!(ordered(&[(1, 9), (3, old(5)), (1, old(2))]), [1, 3]);
        let many: Vec<_> = (1..=10).map(|number| (number, old(number as u16))).collect();
        assert_eq!(ordered(&many), [10, 9, 8, 7, 6, 5, 4, 3], "the oldest are left out");
    }

    fn by_dlsym(name: &CStr, version: Option<&CStr>) -> *const u8 {
        // SAFETY: dlopen(3) of a library that is loaded, dlsym(3) and dlvsym(3) with valid strings.
        unsafe {
            let libc = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
            match version {
                None => libc::dlsym(libc, name.as_ptr()).cast(),
                Some(version) => libc::dlvsym(libc, name.as_ptr(), version.as_ptr()).cast(),
            }
        }
    }

    #[test]
    fn names_are_found_where_dlsym_finds_them() {
        for name in [
            c"read",
            c"open64",
            c"fstat64",
            c"posix_spawn",
            c"realpath",
            c"fcntl64",
            c"_exit",
            c"fgets",
            c"opendir",
        ] {
            assert_eq!(
                resolve(name.to_str().unwrap()).unwrap().entry,
                by_dlsym(name, None),
                "{name:?}"
            );
        }
        let private = by_dlsym(c"__read_nocancel", Some(c"GLIBC_PRIVATE"));
        assert_eq!(resolve("__read_nocancel").unwrap().entry, private);
    }

    #[test]
    fn old_versions_come_after_the_default() {
        let versions = resolve_versions("realpath").unwrap();
        let old = by_dlsym(c"realpath", Some(c"GLIBC_2.2.5"));
        assert_eq!(
            versions.iter().map(|version| version.entry).collect::<Vec<_>>(),
            [by_dlsym(c"realpath", None), old]
        );
        assert!(versions.iter().all(|version| version.size_bytes.is_some()));
        assert_eq!(
            resolve_versions("aio_read64").unwrap().len(),
            1,
            "two versions of the same code are one function"
        );
    }

    #[test]
    fn what_is_no_function_of_libc_is_refused() {
        assert_eq!(resolve("no_such_function_anywhere"), Err(PatchError::NoSuchSymbol));
        assert_eq!(resolve("stdout"), Err(PatchError::NoSuchSymbol), "a variable");
        assert_eq!(resolve("strlen"), Err(PatchError::IndirectFunction));
        assert_eq!(resolve("dl_iterate_phdr_of_ld_so"), Err(PatchError::NoSuchSymbol));
    }

    #[test]
    fn a_hidden_function_is_found_by_what_it_does() {
        let openat = resolve_callee("fchmodat", libc::SYS_openat).unwrap();
        assert_ne!(openat.entry, resolve("openat").unwrap().entry);
        assert!((100..400).contains(&openat.size_bytes.unwrap()), "{openat:?}");
        // SAFETY: a function of glibc 2.36 with the signature of openat, called as openat would be.
        let fd = unsafe {
            type Openat = unsafe extern "C" fn(i32, *const libc::c_char, i32, ...) -> i32;
            let openat = std::mem::transmute::<*const u8, Openat>(openat.entry);
            openat(libc::AT_FDCWD, c"/dev/null".as_ptr(), libc::O_RDONLY)
        };
        assert!(fd >= 0);
        // SAFETY: closes what was opened here.
        assert_eq!(unsafe { libc::close(fd) }, 0);
        assert_eq!(resolve_callee("fchmodat", libc::SYS_mount), Err(PatchError::NoSuchSymbol));
        assert_eq!(
            resolve_callee("no_such_function", libc::SYS_openat),
            Err(PatchError::NoSuchSymbol)
        );
    }

    #[test]
    fn code_is_told_from_data() {
        let read = resolve("read").unwrap().entry as usize;
        assert!(code_around(read).is_some_and(|segment| segment.contains(&read)));
        let local = 0u8;
        assert_eq!(code_around(&raw const local as usize), None);
    }
}
