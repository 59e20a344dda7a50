//! Why a function was left as it is.

/// Why a function was not patched. Whatever the reason, the function itself is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// This crate cannot patch code of the processor it was built for.
    #[error("patching is not implemented for {}", std::env::consts::ARCH)]
    UnsupportedArchitecture,

    /// The mapped libc exports no function of this name, in any version.
    #[error("libc exports no such function")]
    NoSuchSymbol,

    /// No `libc.so.6` with a GNU hash table is mapped: a static program, or another C library.
    #[error("no glibc is mapped in this process")]
    NoLibc,

    /// The symbol names a resolver that picks an implementation (STT_GNU_IFUNC), not the function itself.
    #[error("the symbol is an indirect function (IFUNC); its entry is not the function's")]
    IndirectFunction,

    /// The address is a stub of a procedure linkage table, not the function behind it.
    #[error("the address is a PLT stub, not a function")]
    PltStub,

    /// The address lies in no readable, executable segment of a loaded object.
    #[error("the address is not in the code of any loaded object")]
    NotCode,

    /// The function begins with a jump or a breakpoint: somebody else (another hook, a debugger) was here first.
    #[error("the entry already is a jump or a breakpoint (first bytes {first_bytes:02x?})")]
    AlreadyPatched {
        /// What is there.
        first_bytes: [u8; 5],
    },

    /// The function is already patched, by this patcher, to another replacement.
    #[error("the same entry already leads to another replacement, installed as {first_name}")]
    OtherReplacement {
        /// The name the entry was first installed under.
        first_name: &'static str,
    },

    /// The function ends before the jump would.
    #[error("the function has {size_bytes} bytes, the jump needs {needed_bytes}")]
    TooShort {
        /// Bytes from the entry to the end of the function.
        size_bytes: usize,
        /// Bytes that patching overwrites at least.
        needed_bytes: usize,
    },

    /// The end of the function was not found, so it is unknown whether a branch leads back to its entry.
    #[error("no end of the function within {searched_bytes} bytes")]
    NoEnd {
        /// How far it was decoded.
        searched_bytes: usize,
    },

    /// Bytes at the entry are no instruction.
    #[error("no valid instruction at offset {offset}")]
    Undecodable {
        /// Bytes from the entry.
        offset: usize,
    },

    /// An instruction at the entry cannot run elsewhere: a call would leave a return address that unwinders do not know, and
    /// one that reads the overwritten bytes would read something else.
    #[error("the instruction at offset {offset} cannot be moved: {reason}")]
    Unmovable {
        /// Bytes from the entry.
        offset: usize,
        /// What is the matter with it.
        reason: &'static str,
    },

    /// A branch in the function leads to bytes that the jump overwrites.
    #[error("a branch at offset {from_offset} leads back into the entry, to offset {to_offset}")]
    EntryIsBranchTarget {
        /// The branch, in bytes from the entry.
        from_offset: usize,
        /// Where it leads, in bytes from the entry.
        to_offset: usize,
    },

    /// An operand or branch of the moved instructions cannot reach its target from the trampoline.
    #[error("a moved instruction cannot reach its operand from the trampoline")]
    OutOfReach,

    /// There is no free memory within ±2 GiB of the function.
    #[error("no free memory within reach of the function")]
    NoMemoryNear,

    /// The bytes at the entry changed between install and commit.
    #[error("the entry changed between install and commit")]
    Changed,

    /// A security policy (SELinux, PR_SET_MDWE, seccomp, sealed mappings) does not let memory become executable, or be replaced.
    #[error("the system forbids patched code ({step}: {errno})")]
    Forbidden {
        /// The system call that was refused.
        step: &'static str,
        /// EACCES or EPERM.
        errno: Errno,
    },

    /// A system call failed for another reason, such as lack of memory.
    #[error("{step} failed: {errno}")]
    System {
        /// The system call.
        step: &'static str,
        /// Its error.
        errno: Errno,
    },
}

impl PatchError {
    /// Whether the system, not the function, stands in the way: no other function can be patched in this process either.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        matches!(self, PatchError::Forbidden { .. })
    }

    pub(crate) fn from_system(step: &'static str, errno: rustix::io::Errno) -> Self {
        let number = Errno(errno.raw_os_error());
        match errno {
            rustix::io::Errno::ACCESS | rustix::io::Errno::PERM => {
                PatchError::Forbidden { step, errno: number }
            }
            _ => PatchError::System { step, errno: number },
        }
    }
}

/// An error number of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

impl std::fmt::Display for Errno {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::io::Error::from_raw_os_error(self.0).fmt(formatter)
    }
}
