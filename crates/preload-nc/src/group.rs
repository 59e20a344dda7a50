//! The ranks that open a file together.

use exchange::{Fault, Group};
use mpi::{Comm, Mpi};

/// A communicator of our own, of the processes of the program's.
pub(crate) struct Ranks {
    mpi: &'static Mpi,
    comm: Comm,
    rank: u32,
    size: u32,
}

impl Ranks {
    /// The ranks of a program's communicator. Collective.
    ///
    /// # Safety
    /// A communicator of the MPI library of this process.
    pub(crate) unsafe fn of(comm: usize) -> Result<Ranks, Fault> {
        let failed = |why: String| Fault::Group { file: String::new(), why };
        let mpi = Mpi::find().map_err(|error| failed(error.to_string()))?;
        // SAFETY: the caller's promise.
        let comm = unsafe { mpi.comm(comm) };
        let comm = mpi.duplicate(comm).map_err(|error| failed(error.to_string()))?;
        // Errors are ours to tell, the program's handler has been inherited.
        let numbers = mpi.return_errors(comm).and_then(|()| Ok((mpi.rank(comm)?, mpi.size(comm)?)));
        let (rank, size) = numbers.map_err(|error| failed(error.to_string()))?;
        Ok(Ranks { mpi, comm, rank, size })
    }

    /// The greatest of everybody's numbers. Collective.
    pub(crate) fn greatest(&self, mine: u64) -> Result<u64, Fault> {
        if self.size == 1 {
            return Ok(mine);
        }
        let all = self.gather(&mine.to_ne_bytes())?;
        let numbers = all.chunks_exact(8).map(|one| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(one);
            u64::from_ne_bytes(bytes)
        });
        Ok(numbers.fold(mine, u64::max))
    }

    /// Gives the communicator back. Collective.
    pub(crate) fn free(&self) {
        self.mpi.free_comm(self.comm);
    }

    /// Records of one length.
    fn gather(&self, mine: &[u8]) -> Result<Vec<u8>, Fault> {
        self.mpi
            .gather_all(self.comm, mine)
            .map_err(|error| Fault::Group { file: String::new(), why: error.to_string() })
    }
}

impl Group for Ranks {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn gather_all(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
        if self.size == 1 {
            return Ok(vec![mine.to_vec()]);
        }
        let length = |bytes: &[u8]| {
            let mut eight = [0; 8];
            eight.copy_from_slice(bytes);
            u64::from_ne_bytes(eight) as usize
        };
        let lengths = self.gather(&(mine.len() as u64).to_ne_bytes())?;
        let lengths: Vec<usize> = lengths.chunks_exact(8).map(length).collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        if longest == 0 {
            return Ok(vec![Vec::new(); lengths.len()]);
        }
        let mut padded = mine.to_vec();
        padded.resize(longest, 0);
        let all = self.gather(&padded)?;
        let parts = all.chunks_exact(longest).zip(&lengths);
        Ok(parts.map(|(part, length)| part[..*length].to_vec()).collect())
    }
}
