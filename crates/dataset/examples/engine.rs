//! The engine for a caller that is not Rust: what `./dev bench layout` measures beside loops written
//! by hand, in one process and on the same memory.
//!
//! Not an interface for programs: a caller that passes a bad address ends the process, and errors
//! are printed.
#![warn(unsafe_op_in_unsafe_fn)]

use std::alloc::{GlobalAlloc, Layout as Block, System};
use std::ffi::{CStr, c_char};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use dataset::{Dataset, Options};
use drepl::MemoryLoader;
use layout::{Conversion, Layout, Lengths};

/// Counts the bytes that are in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is done by the system's allocator, as it was asked for.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, block: Block) -> *mut u8 {
        IN_USE.fetch_add(block.size(), Ordering::Relaxed);
        // SAFETY: as our caller promises.
        unsafe { System.alloc(block) }
    }

    unsafe fn dealloc(&self, at: *mut u8, block: Block) {
        IN_USE.fetch_sub(block.size(), Ordering::Relaxed);
        // SAFETY: as our caller promises.
        unsafe { System.dealloc(at, block) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How one view is made from another, both in memory.
pub struct Map {
    conversion: Conversion,
    near_bytes: u64,
    far_bytes: u64,
    in_use: usize,
}

/// # Safety
/// `text` is a string that ends with 0.
unsafe fn text_of<'a>(text: *const c_char) -> &'a str {
    // SAFETY: as our caller promises.
    unsafe { CStr::from_ptr(text) }.to_str().expect("UTF-8")
}

/// Compiles a definition and maps its view `near` to its view `far`; null if that fails.
///
/// # Safety
/// Both strings end with 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_map(
    text: *const c_char,
    near: *const c_char,
    far: *const c_char,
) -> *mut Map {
    // SAFETY: as our caller promises.
    let (text, near, far) = unsafe { (text_of(text), text_of(near), text_of(far)) };
    let compiled = match drepl::compile("bench", &mut MemoryLoader::new("bench", text)) {
        Ok(compiled) => compiled,
        Err(wrong) => {
            eprintln!("{}", wrong.render(false));
            return std::ptr::null_mut();
        }
    };
    let mapped = || -> layout::Result<Map> {
        let layout = Layout::new(&compiled.definition)?;
        let named = |name: &str| {
            let found = compiled.definition.views.iter().position(|view| view.name == name);
            found.unwrap_or(usize::MAX)
        };
        let near = layout.view(named(near), &Lengths::new())?;
        let far = layout.view(named(far), &Lengths::new())?;
        let before = IN_USE.load(Ordering::Relaxed);
        let conversion = Conversion::read(&near, &[&far])?;
        let in_use = IN_USE.load(Ordering::Relaxed) - before;
        Ok(Map { conversion, near_bytes: near.size(), far_bytes: far.size(), in_use })
    };
    match mapped() {
        Ok(map) => Box::into_raw(Box::new(map)),
        Err(error) => {
            eprintln!("{error}");
            std::ptr::null_mut()
        }
    }
}

/// The memory that a map takes, in bytes.
///
/// # Safety
/// `map` is one that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_map_in_use(map: *const Map) -> usize {
    // SAFETY: as our caller promises.
    unsafe { &*map }.in_use
}

/// # Safety
/// `map` is one that is not freed, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_map_free(map: *mut Map) {
    // SAFETY: made by `engine_map`, as our caller promises.
    drop(unsafe { Box::from_raw(map) });
}

/// Makes all of the near view.
///
/// # Safety
/// `map` is one that is not freed; `near` and `far` are as long as the views, and are apart.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_read(map: *const Map, near: *mut u8, far: *const u8) {
    // SAFETY: as our caller promises.
    let (map, near, far) = unsafe {
        let map = &*map;
        let near = std::slice::from_raw_parts_mut(near, map.near_bytes as usize);
        (map, near, std::slice::from_raw_parts(far, map.far_bytes as usize))
    };
    map.conversion.read_from(0..map.near_bytes, |_, _| far, near);
}

/// Reads `count` numbers of 4 bytes at random places of the near view, of which nothing is in memory:
/// the seconds that clipping and moving take for one. `far` are as many bytes as one element of the
/// far view needs at most.
///
/// # Safety
/// `map` is one that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_clip_random(map: *const Map, count: usize) -> f64 {
    // SAFETY: as our caller promises.
    let map = unsafe { &*map };
    let (mut near, far) = ([0_u8; 4], [1_u8; 64]);
    let words = map.near_bytes / 4;
    let begin = seconds();
    for place in places(words).take(count) {
        for slab in map.conversion.clip(place * 4..place * 4 + 4) {
            slab.read(&far, slab.far_span().start, &mut near, place * 4);
        }
    }
    assert_eq!(near, [1; 4]);
    (seconds() - begin) / count as f64
}

/// Time that this thread was given: the machine may be busy with something else.
fn seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Numbers below `below`, in no order.
fn places(below: u64) -> impl Iterator<Item = u64> {
    (1..).map(move |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % below)
}

/// Opens a dataset; null if that fails.
///
/// # Safety
/// `path` ends with 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_open(path: *const c_char) -> *mut Dataset {
    // SAFETY: as our caller promises.
    let path = unsafe { text_of(path) };
    match Dataset::open(Path::new(path), &Options::default()) {
        Ok(dataset) => Box::into_raw(Box::new(dataset)),
        Err(error) => {
            eprintln!("{path}: {error}");
            std::ptr::null_mut()
        }
    }
}

/// # Safety
/// `dataset` is one that is open, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_close(dataset: *mut Dataset) {
    // SAFETY: made by `engine_open`, as our caller promises.
    drop(unsafe { Box::from_raw(dataset) });
}

/// The number of the view of a name, or -1.
///
/// # Safety
/// `dataset` is one that is open; `name` ends with 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_view(dataset: *const Dataset, name: *const c_char) -> isize {
    // SAFETY: as our caller promises.
    let (dataset, name) = unsafe { (&*dataset, text_of(name)) };
    dataset.view(name).map_or(-1, |view| view as isize)
}

/// Writes `len` bytes of a view, the same piece again and again, as a program does that makes its data
/// in a buffer. Returns how many bytes were written.
///
/// # Safety
/// `dataset` is one that is open; `data` are `piece` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_write(
    dataset: *const Dataset,
    view: usize,
    data: *const u8,
    len: usize,
    piece: usize,
) -> usize {
    // SAFETY: as our caller promises.
    let (dataset, data) = unsafe { (&*dataset, std::slice::from_raw_parts(data, piece)) };
    let mut at = 0;
    while at < len {
        match dataset.write(view, at as u64, &data[at % piece..piece.min(at % piece + len - at)]) {
            Ok(0) => break,
            Ok(written) => at += written,
            Err(error) => {
                eprintln!("{error}");
                break;
            }
        }
    }
    at
}

/// Reads `count` numbers of 4 bytes at random places of a view: the seconds for one, or a negative
/// number when it fails. The sum of what was read goes to `sum`.
///
/// # Safety
/// `dataset` is one that is open; `sum` is a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_read_random(
    dataset: *const Dataset,
    view: usize,
    count: usize,
    sum: *mut u64,
) -> f64 {
    // SAFETY: as our caller promises.
    let dataset = unsafe { &*dataset };
    let words = dataset.size(view) / 4;
    let (mut bytes, mut all) = ([0; 4], 0_u64);
    let begin = seconds();
    for place in places(words).take(count) {
        match dataset.read(view, place * 4, &mut bytes) {
            Ok(4) => all = all.wrapping_add(u64::from(u32::from_le_bytes(bytes))),
            other => {
                eprintln!("{other:?}");
                return -1.0;
            }
        }
    }
    let took = (seconds() - begin) / count as f64;
    // SAFETY: as our caller promises.
    unsafe { *sum = all };
    took
}
