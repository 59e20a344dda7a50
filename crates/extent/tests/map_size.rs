//! What a million extents take: bytes, by an allocator that counts, and work, by a value that counts how
//! often it is looked at and by how much is moved.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use extent::{ByteRange, Cut, ExtentMap};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static ASKED: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call goes to the system's allocator as it came; the counters are beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        ASKED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are handed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Eight bytes, as the log's positions are. Pieces never continue each other.
#[derive(Clone, Copy)]
struct Position(u32, u32);

impl Cut for Position {
    fn cut(self, by: u64) -> Self {
        Self(self.0, self.1.wrapping_add(by as u32))
    }

    fn continued_by(&self, _: u64, _: &Self) -> bool {
        false
    }
}

const EXTENTS: u64 = 1_000_000;

fn measured(name: &str, starts: impl Iterator<Item = u64>) {
    let (live, asked) = (LIVE.load(Ordering::Relaxed), ASKED.load(Ordering::Relaxed));
    let mut map = ExtentMap::new();
    for start in starts {
        map.insert(ByteRange::at(start, 64), Position(1, start as u32), |_, _| ());
    }
    assert_eq!(map.len() as u64, EXTENTS);
    let bytes = (LIVE.load(Ordering::Relaxed) - live) as u64;
    let asked = (ASKED.load(Ordering::Relaxed) - asked) as u64;
    println!(
        "{name}: {} bytes an extent, {} allocated on the way",
        bytes / EXTENTS,
        asked / EXTENTS
    );
    assert!(bytes <= 48 * EXTENTS, "{name}: {bytes} bytes");
    // Growing by small steps must not mean copying without end.
    assert!(asked <= 400 * EXTENTS, "{name}: {asked} bytes were allocated");
    let pieces = map.overlay(ByteRange::new(0, 128 * EXTENTS)).count() as u64;
    assert!((EXTENTS..=2 * EXTENTS).contains(&pieces));
    let before = LIVE.load(Ordering::Relaxed);
    map.truncate(64, |_, _| ());
    assert!(before - LIVE.load(Ordering::Relaxed) > bytes as usize / 2, "memory is given back");
}

/// One test, so that nobody else allocates meanwhile.
#[test]
fn a_million_extents_take_48_bytes_each_at_most_and_little_work() {
    measured("ascending", (0..EXTENTS).map(|i| i * 128));
    measured("descending", (0..EXTENTS).rev().map(|i| i * 128));
    let (mut at, mut seen) = (0_u64, 0);
    measured(
        "scattered",
        std::iter::from_fn(|| {
            while seen < EXTENTS {
                // A full period of 2^20, scattered by exchanging the halves of its bits.
                at = (at * 1_664_525 + 1_013_904_223) & ((1 << 20) - 1);
                let place = at >> 10 | (at & 1023) << 10;
                if place < EXTENTS {
                    seen += 1;
                    return Some(place * 128);
                }
            }
            None
        }),
    );
    // As ranks that write blocks in turn: sixteen ascending rows at once.
    let rows = 16;
    measured("in turn", (0..EXTENTS).map(|i| ((i % rows) * (EXTENTS / rows) + i / rows) * 128));
}
