//! Memory of programs: what lies in theirs until it is fetched, our copies of it, and other processes'.

use std::io;

use hyperslab::{Copies, Memory, Slab};
use matching::{Request, Variable};
use nctypes::{Conversion, Type};

use crate::wire::Source;

/// Elements of one side of some [`Copies`], by their order.
#[derive(Debug, Clone)]
pub(crate) struct Walk {
    first: i64,
    run: u64,
    /// Turns and distance, outermost first.
    loops: Vec<(u64, i64)>,
}

impl Walk {
    pub(crate) fn sources(copies: &Copies) -> Self {
        let loops = copies.loops().iter().map(|one| (one.count, one.source)).collect();
        Self { first: copies.first().source, run: copies.first().length, loops }
    }

    pub(crate) fn destinations(copies: &Copies) -> Self {
        let loops = copies.loops().iter().map(|one| (one.count, one.destination)).collect();
        Self { first: copies.first().destination, run: copies.first().length, loops }
    }

    /// What another process has told; none if its elements are not `elements`.
    pub(crate) fn told(source: &Source, elements: u64) -> Option<Self> {
        let turns = source.loops.iter().try_fold(source.run, |all, (n, _)| all.checked_mul(*n))?;
        (turns == elements && source.run > 0).then(|| Self {
            first: 0,
            run: source.run,
            loops: source.loops.clone(),
        })
    }

    /// As the other process needs it.
    pub(crate) fn tell(&self, address: usize, size: usize) -> Source {
        let offset = self.first.wrapping_mul(size as i64);
        let address = (address as u64).wrapping_add_signed(offset);
        Source { address, run: self.run, loops: self.loops.clone() }
    }

    /// Elements of a run.
    pub(crate) fn run(&self) -> u64 {
        self.run
    }

    /// The least and the greatest offset; none if there is no element, or if a number does not hold them.
    fn extent(&self) -> Option<(i64, i64)> {
        let (mut low, mut high) = (self.first, self.first);
        high = high.checked_add(i64::try_from(self.run).ok()?.checked_sub(1)?)?;
        for (count, step) in &self.loops {
            let far = i64::try_from(count - 1).ok()?.checked_mul(*step)?;
            low = low.checked_add(far.min(0))?;
            high = high.checked_add(far.max(0))?;
        }
        Some((low, high))
    }

    /// Calls `piece` with offset and length of each run of the elements from `begin` to `end` until it answers false.
    pub(crate) fn pieces(&self, begin: u64, end: u64, mut piece: impl FnMut(i64, u64) -> bool) {
        let mut position = begin;
        while position < end {
            let (mut turn, within) = (position / self.run, position % self.run);
            let mut offset = self.first;
            for (count, step) in self.loops.iter().rev() {
                offset += (turn % count) as i64 * step;
                turn /= count;
            }
            // The innermost loop is gone through without dividing anew.
            let (turns, step) = self.loops.last().copied().unwrap_or((1, 0));
            let mut left = turns - position / self.run % turns;
            let mut within = within;
            while left > 0 && position < end {
                let length = (self.run - within).min(end - position);
                if !piece(offset + within as i64, length) {
                    return;
                }
                position += length;
                within = 0;
                offset += step;
                left -= 1;
            }
        }
    }
}

/// Whether all elements of a request lie within so many bytes.
pub(crate) fn fits(request: &Request, bytes: usize) -> bool {
    if request.slab.is_empty() {
        return true;
    }
    let copies = Copies::gather(&request.slab, (&request.slab, &request.memory));
    let extent = copies.and_then(|copies| Walk::sources(&copies).extent());
    extent.is_some_and(|(low, high)| {
        let end = (high as u64).checked_add(1).and_then(|n| n.checked_mul(size(request) as u64));
        low >= 0 && end.is_some_and(|end| end <= bytes as u64)
    })
}

fn size(request: &Request) -> usize {
    request.type_.size_bytes()
}

/// Memory of our own.
pub(crate) type Buffer = Vec<u8>;

/// Something that was written, of a variable's type, until everybody has it.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) variable: Variable,
    pub(crate) type_: Type,
    pub(crate) slab: Slab,
    memory: Memory,
    /// Where the program has it, or we have.
    address: usize,
    own: Option<Buffer>,
    /// How many lanes may still ask for it.
    pub(crate) lanes: u32,
    /// How often it is being fetched or waits to be sent.
    pub(crate) busy: u32,
}

impl Piece {
    /// What lies in the program's memory.
    ///
    /// # Safety
    /// It stays there, and is not changed, until it is [copied](Self::copy) or dropped, and nobody fetches it any more.
    pub(crate) unsafe fn of_program(request: &Request, address: *const u8) -> Self {
        Self {
            variable: request.variable,
            type_: request.type_,
            slab: request.slab.clone(),
            memory: request.memory.clone(),
            address: address as usize,
            own: None,
            lanes: 0,
            busy: 0,
        }
    }

    /// What lies in memory of our own already.
    pub(crate) fn of_buffer(
        variable: Variable,
        type_: Type,
        slab: Slab,
        buffer: Buffer,
    ) -> Option<Self> {
        let (memory, address) = (Memory::dense(&slab).ok()?, buffer.as_ptr() as usize);
        let own = Some(buffer);
        Some(Self { variable, type_, slab, memory, address, own, lanes: 0, busy: 0 })
    }

    /// Whether it lies in the program's memory.
    pub(crate) fn is_program(&self) -> bool {
        self.own.is_none() && !self.slab.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.slab.elements() as usize * self.type_.size_bytes()
    }

    /// Copies it to memory of our own; `buffer` is empty and large enough, or grows.
    pub(crate) fn copy(&mut self, mut buffer: Buffer) {
        let (elements, size) = (self.slab.elements() as u64, self.type_.size_bytes());
        if let Some(copies) = Copies::gather(&self.slab, (&self.slab, &self.memory)) {
            self.gather(&Walk::sources(&copies), 0, elements, &mut buffer);
        }
        debug_assert_eq!(buffer.len(), elements as usize * size);
        self.own_it(buffer);
    }

    /// Replaces it by its values as ones of another type; how many do not fit is the answer.
    pub(crate) fn convert(
        &mut self,
        type_: Type,
        conversion: &Conversion,
        mut buffer: Buffer,
    ) -> u64 {
        let elements = self.slab.elements() as u64;
        let mut ranged = 0;
        let (mut between, mut done) = (Vec::new(), 0);
        if let Some(copies) = Copies::gather(&self.slab, (&self.slab, &self.memory)) {
            let walk = Walk::sources(&copies);
            while done < elements {
                let end = (done + CONVERTED).min(elements);
                between.clear();
                self.gather(&walk, done, end, &mut between);
                let begin = buffer.len();
                buffer.resize(begin + (end - done) as usize * type_.size_bytes(), 0);
                ranged += conversion.apply(&between, &mut buffer[begin..]).written;
                done = end;
            }
        }
        self.type_ = type_;
        self.own_it(buffer);
        ranged
    }

    fn own_it(&mut self, buffer: Buffer) {
        self.address = buffer.as_ptr() as usize;
        self.own = Some(buffer);
        if let Ok(dense) = Memory::dense(&self.slab) {
            self.memory = dense;
        }
    }

    /// Where a part of it lies.
    pub(crate) fn walk(&self, part: &Slab) -> Option<Walk> {
        let copies = Copies::gather(part, (&self.slab, &self.memory))?;
        Some(Walk::sources(&copies))
    }

    /// How another process finds it.
    pub(crate) fn tell(&self, walk: &Walk) -> Source {
        walk.tell(self.address, self.type_.size_bytes())
    }

    /// Appends elements of a walk over this piece.
    pub(crate) fn gather(&self, walk: &Walk, begin: u64, end: u64, out: &mut Vec<u8>) {
        let size = self.type_.size_bytes();
        out.reserve((end - begin) as usize * size);
        walk.pieces(begin, end, |offset, length| {
            let from = (self.address as *const u8).wrapping_offset(offset as isize * size as isize);
            // SAFETY: the elements of a part of the slab lie in the memory that was given for the slab: that was checked when
            // the program called (`fits`), it promises that they stay, and a buffer of our own is as long as the slab.
            unsafe {
                let bytes = std::slice::from_raw_parts(from, length as usize * size);
                out.extend_from_slice(bytes);
            }
            true
        });
    }

    /// Our own memory, to be used again.
    pub(crate) fn into_buffer(self) -> Option<Buffer> {
        self.own
    }
}

/// Values that are converted at once.
const CONVERTED: u64 = 1 << 14;

/// Where the program wants something.
#[derive(Debug)]
pub(crate) struct Target {
    address: usize,
    size: usize,
}

impl Target {
    /// # Safety
    /// The elements of the request lie there; nobody else looks at them as long as this is used.
    pub(crate) unsafe fn new(request: &Request, address: *mut u8) -> Self {
        Self { address: address as usize, size: request.type_.size_bytes() }
    }

    fn at(&self, offset: i64) -> *mut u8 {
        (self.address as *mut u8).wrapping_offset(offset as isize * self.size as isize)
    }

    /// Puts values where the elements from `begin` belong; how many did not fit is the answer.
    pub(crate) fn scatter(
        &mut self,
        walk: &Walk,
        conversion: &Conversion,
        begin: u64,
        values: &[u8],
        size: usize,
    ) -> u64 {
        let count = (values.len() / size) as u64;
        let mut ranged = 0;
        let mut converted = Vec::new();
        let values = if conversion.is_plain() {
            values
        } else {
            converted.resize(count as usize * self.size, 0);
            ranged = conversion.apply(values, &mut converted).read;
            &converted
        };
        let mut values = values;
        walk.pieces(begin, begin + count, |offset, length| {
            let (now, rest) = values.split_at(length as usize * self.size);
            // SAFETY: destinations are elements of the request, which lie in memory that the program lets us write
            // (`fits`, `Target::new`); the values are ours or another process's copy.
            unsafe { std::ptr::copy_nonoverlapping(now.as_ptr(), self.at(offset), now.len()) };
            values = rest;
            true
        });
        ranged
    }

    /// Puts one value at each element; how many did not fit is the answer.
    pub(crate) fn fill(
        &mut self,
        walk: &Walk,
        elements: u64,
        value: &[u8],
        conversion: &Conversion,
    ) -> u64 {
        let mut one = vec![0; self.size];
        // Fill values have room for the longest type.
        let value = &value[..conversion.source().size_bytes()];
        let outside = conversion.apply(value, &mut one).read;
        walk.pieces(0, elements, |offset, length| {
            for number in 0..length as i64 {
                // SAFETY: as in `scatter`.
                unsafe {
                    std::ptr::copy_nonoverlapping(one.as_ptr(), self.at(offset + number), one.len())
                };
            }
            true
        });
        outside * elements
    }

    /// Lets `fetch` put other memory's elements from `begin` on straight where they belong: so many as one call takes, or all up to `end`.
    /// Answers how many elements there are now.
    pub(crate) fn pull(
        &mut self,
        pid: u32,
        from: (u64, &Walk),
        to: &Walk,
        (begin, end): (u64, u64),
    ) -> io::Result<u64> {
        let (address, source) = from;
        let size = self.size as i64;
        let remote = vectors(source, begin, end, size, |offset| {
            address.wrapping_add_signed(offset * size) as usize
        });
        let local = vectors(to, begin, end, size, |offset| self.at(offset) as usize);
        // SAFETY: what is written to are elements of the request, as in `scatter`; the other process's memory is read by the
        // kernel, which checks it (process_vm_readv(2)).
        let read = unsafe {
            libc::process_vm_readv(
                pid as libc::pid_t,
                local.as_ptr(),
                local.len() as libc::c_ulong,
                remote.as_ptr(),
                remote.len() as libc::c_ulong,
                0,
            )
        };
        whole(read, self.size)
    }
}

/// So many pieces take one call (`UIO_MAXIOV` is 1024).
const VECTORS: usize = 512;

fn vectors(
    walk: &Walk,
    begin: u64,
    end: u64,
    size: i64,
    mut address: impl FnMut(i64) -> usize,
) -> Vec<libc::iovec> {
    let mut list: Vec<libc::iovec> = Vec::new();
    walk.pieces(begin, end, |offset, length| {
        let iov_len = length as usize * size as usize;
        list.push(libc::iovec { iov_base: address(offset) as *mut _, iov_len });
        list.len() < VECTORS
    });
    list
}

fn whole(read: isize, size: usize) -> io::Result<u64> {
    match usize::try_from(read) {
        Err(_) => Err(io::Error::last_os_error()),
        // What ends within an element begins anew at it.
        Ok(bytes) if bytes >= size => Ok((bytes / size) as u64),
        Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Appends elements of another process's memory, at most from `begin` to `end`; how many is the answer.
pub(crate) fn fetch(
    pid: u32,
    (address, source): (u64, &Walk),
    (begin, end): (u64, u64),
    size: usize,
    out: &mut Vec<u8>,
) -> io::Result<u64> {
    let remote = vectors(source, begin, end, size as i64, |offset| {
        address.wrapping_add_signed(offset * size as i64) as usize
    });
    let length = (end - begin) as usize * size;
    out.clear();
    out.reserve(length);
    let local = libc::iovec { iov_base: out.as_mut_ptr().cast(), iov_len: length };
    // SAFETY: as many bytes were reserved; process_vm_readv(2) writes at most these and says how many.
    let read = unsafe {
        let count = remote.len() as libc::c_ulong;
        libc::process_vm_readv(pid as libc::pid_t, &local, 1, remote.as_ptr(), count, 0)
    };
    let elements = whole(read, size)?;
    // SAFETY: the kernel has written these.
    unsafe { out.set_len(elements as usize * size) };
    Ok(elements)
}

/// Whether bytes at an address of another process are these: then it is the one that has told so, and its memory can be read.
pub(crate) fn probe(pid: u32, address: u64, expected: &[u8; 16]) -> bool {
    let walk = Walk { first: 0, run: 16, loops: Vec::new() };
    let mut found = Vec::new();
    fetch(pid, (address, &walk), (0, 16), 1, &mut found).is_ok_and(|_| found == expected)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_process_can_be_told_from_another() {
        let secret = [7u8; 16];
        let at = secret.as_ptr() as u64;
        let pid = std::process::id();
        assert!(probe(pid, at, &secret));
        assert!(!probe(pid, at, &[8; 16]));
        assert!(!probe(pid, 8, &secret));
    }

    proptest! {
        /// However a walk is cut, its elements are those of the runs.
        #[test]
        fn walks_are_runs(
            counts in prop::collection::vec((1u64..4, 1u64..4, 0u64..3), 1..4), cut in any::<u64>()
        ) {
            let (mut start, mut count, mut stride, mut lengths) = (vec![], vec![], vec![], vec![]);
            for (n, step, from) in counts {
                start.push(from);
                count.push(n);
                stride.push(step);
                lengths.push(from + n * step);
            }
            let whole = Slab::all(&lengths);
            let part = Slab::strided(&start, &count, &stride).unwrap();
            let memory = Memory::dense(&whole).unwrap();
            let copies = Copies::gather(&part, (&whole, &memory)).unwrap();
            let wanted: Vec<i64> = copies
                .runs()
                .flat_map(|run| run.source..run.source + run.length as i64)
                .collect();
            let walk = Walk::sources(&copies);
            let elements = wanted.len() as u64;
            let cut = cut % (elements + 1);
            let mut found = Vec::new();
            for (begin, end) in [(0, cut), (cut, elements)] {
                walk.pieces(begin, end, |offset, length| {
                    found.extend(offset..offset + length as i64);
                    true
                });
            }
            prop_assert_eq!(&found, &wanted);
            let extent = (*wanted.iter().min().unwrap(), *wanted.iter().max().unwrap());
            prop_assert_eq!(walk.extent(), Some(extent));
        }
    }
}
