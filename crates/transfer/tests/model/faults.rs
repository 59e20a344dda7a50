//! What is returned, and what the file holds, when something goes wrong on the way.

use rustix::io::Errno;
use sieve::aggregate::{Aggregate, Decision, Nonsense, Step};
use sieve::{FileView, Profile, Tuple, Warmth};
use transfer::{Engine, Error, Locking};

use crate::memory::Memory;
use crate::random::Random;

const ALL: [&str; 6] = ["naive", "romio", "simple_pm", "extent", "scanfile", "adaptive"];

fn engine(name: &str) -> Engine {
    Engine::by_name(name, Profile::default()).expect("it exists")
}

fn bytes(len: usize) -> Vec<u8> {
    let mut random = Random::new(len as u64);
    (0..len).map(|_| 1 + random.below(255) as u8).collect()
}

/// Answers whatever it was made with.
struct Always(Decision);

impl Aggregate for Always {
    fn name(&self) -> &str {
        "always"
    }

    fn decide(&mut self, _: &Step) -> Decision {
        self.0
    }
}

#[test]
fn a_full_disk_ends_a_write_after_what_fitted() {
    let view = FileView::strided(10, 8, 24).unwrap();
    let data = bytes(800);
    for name in ALL {
        for full_at in [11, 17, 18, 30, 1000, 1003, 2222] {
            let content = vec![7; 500];
            let file = Memory::plain(content.clone(), Warmth::Warm);
            file.full_at.set(full_at);
            let mut buffer = vec![0; 4096];
            let mut engine = engine(name);
            let done = engine.write(&file, &view, &mut buffer, 0, &data).unwrap();
            // All bytes of the view before the full place, and not one more.
            let fitted = (0..800).take_while(|n| 10 + n / 8 * 32 + n % 8 < full_at).count();
            assert_eq!(done, fitted as u64, "{name}, full at {full_at}");
            for (place, byte) in file.content().iter().enumerate() {
                let (block, within) = (place.wrapping_sub(10) / 32, place.wrapping_sub(10) % 32);
                let old = content.get(place).copied().unwrap_or(0);
                let wanted = place >= 10 && within < 8 && block * 8 + within < fitted;
                let expected = if wanted { data[block * 8 + within] } else { old };
                assert_eq!(*byte, expected, "{name}, full at {full_at}, at {place}");
            }
            file.assert_unlocked();
            // Going on from there says why.
            let rest = engine.write(&file, &view, &mut buffer, done, &data[fitted..]);
            assert_eq!(rest.unwrap_err().to_errno(), Errno::NOSPC, "{name}");
        }
    }
}

#[test]
fn an_unreadable_place_ends_a_read_before_it() {
    let view = FileView::strided(10, 8, 24).unwrap();
    let content = bytes(4000);
    for warmth in [Warmth::Warm, Warmth::Cold] {
        for name in ALL {
            for broken_at in [10, 12, 18, 777, 1000] {
                let file = Memory::plain(content.clone(), warmth);
                file.broken_at.set(broken_at);
                let (mut buffer, mut out) = (vec![0; 1024], vec![0; 800]);
                let mut engine = engine(name);
                let sound = (0..800).take_while(|n| 10 + n / 8 * 32 + n % 8 < broken_at).count();
                let done = engine.read(&file, &view, &mut buffer, 0, &mut out);
                if sound == 0 {
                    assert_eq!(done.unwrap_err().to_errno(), Errno::IO, "{name}");
                    continue;
                }
                assert_eq!(done, Ok(sound as u64), "{name}, broken at {broken_at}");
                let rest = engine.read(&file, &view, &mut buffer, sound as u64, &mut out);
                assert_eq!(rest.unwrap_err().to_errno(), Errno::IO, "{name}");
            }
        }
    }
}

#[test]
fn a_hole_that_cannot_be_read_is_in_nobodys_way() {
    let view = FileView::strided(10, 8, 24).unwrap();
    let content = bytes(4000);
    for name in ALL {
        let file = Memory::plain(content.clone(), Warmth::Warm);
        // Between the blocks at 74 and at 106.
        file.broken_at.set(84);
        file.sound_from.set(100);
        let (mut buffer, mut out) = (vec![0; 1024], vec![0; 800]);
        let done = engine(name).read(&file, &view, &mut buffer, 0, &mut out);
        assert_eq!(done, Ok(800), "{name}");
        let at = |n: usize| 10 + n / 8 * 32 + n % 8;
        assert!(out.iter().enumerate().all(|(n, byte)| *byte == content[at(n)]), "{name}");
        let done = engine(name).write(&file, &view, &mut buffer, 0, &[0xCC; 800]);
        assert_eq!(done, Ok(800), "{name}");
        let mut expected = content.clone();
        (0..800).for_each(|n| expected[at(n)] = 0xCC);
        assert!(*file.content() == expected, "{name}: bytes differ");
        file.assert_unlocked();
    }
}

#[test]
fn a_file_that_shrinks_while_it_is_read_just_ends() {
    let view = FileView::strided(0, 8, 24).unwrap();
    for warmth in [Warmth::Warm, Warmth::Cold] {
        for name in ALL {
            let content = bytes(32_000);
            let file = Memory::plain(content.clone(), warmth);
            file.shrink.set(Some((2, 400)));
            let (mut buffer, mut out) = (vec![0; 512], vec![0; 8000]);
            let done = engine(name).read(&file, &view, &mut buffer, 0, &mut out).unwrap() as usize;
            assert!((16..=8000).contains(&done), "{name}: {done}");
            for (n, byte) in out[..done].iter().enumerate() {
                assert_eq!(*byte, content[n / 8 * 32 + n % 8], "{name} at {n}");
            }
        }
    }
}

#[test]
fn answers_without_meaning_are_refused_by_name() {
    let view = FileView::from_tuples(
        0,
        [(8, 4), (6, 0), (9, 1000)].map(|(size, hole)| Tuple { size, hole }),
    );
    let view = view.unwrap();
    let sound = Decision { join: false, bytes: 1, hole_after: 0, hole_before_next: 0 };
    let nonsense = [
        (Decision { bytes: 0, ..sound }, Nonsense::NoProgress),
        (Decision { bytes: 9, ..sound }, Nonsense::TooManyBytes { bytes: 9, max: 8 }),
        (
            Decision { bytes: 8, hole_after: 5, ..sound },
            Nonsense::TooMuchHole { after: 5, before_next: 0, hole: 4 },
        ),
        (
            Decision { bytes: 8, hole_after: u64::MAX, hole_before_next: 2, ..sound },
            Nonsense::TooMuchHole { after: u64::MAX, before_next: 2, hole: 4 },
        ),
    ];
    let file = Memory::plain(bytes(5000), Warmth::Warm);
    for (decision, nonsense) in nonsense {
        let mut engine = Engine::with_function(Always(decision));
        let function = "always".to_owned();
        let expected = Error::Plan(sieve::Error::Aggregate { function, tuple: 0, nonsense });
        let (mut buffer, mut out) = (vec![0; 100], vec![0; 40]);
        let read = engine.read(&file, &view, &mut buffer, 0, &mut out);
        assert_eq!(read, Err(expected.clone()));
        assert_eq!(engine.write(&file, &view, &mut buffer, 0, &out), Err(expected.clone()));
        assert_eq!(expected.to_errno(), Errno::INVAL);
    }
    // More of the hole than the buffer holds: after two tuples of data, at the third.
    let mut engine = Engine::with_function(Always(Decision { bytes: 9, hole_after: 500, ..sound }));
    let (mut buffer, mut out) = (vec![0; 100], vec![0; 9]);
    let error = engine.read(&file, &view, &mut buffer, 14, &mut out).unwrap_err();
    let room = Nonsense::NoRoom { bytes: 500, room: 91 };
    assert!(error.to_string().contains(&room.to_string()), "{error}");
}

#[test]
fn buffers_of_no_and_of_one_byte() {
    let view = FileView::strided(3, 4, 5).unwrap();
    let content = bytes(2000);
    let wanted: Vec<u8> = (0..100).map(|n| content[3 + n / 4 * 9 + n % 4]).collect();
    for name in ALL {
        for size in [0, 1] {
            let file = Memory::plain(content.clone(), Warmth::Warm);
            let (mut buffer, mut out) = (vec![0; size], vec![0; 100]);
            let done = engine(name).read(&file, &view, &mut buffer, 0, &mut out);
            if size == 0 && !["naive", "adaptive"].contains(&name) {
                let function = name.to_owned();
                assert_eq!(done, Err(Error::Plan(sieve::Error::NoBuffer { function })));
                let written = engine(name).write(&file, &view, &mut buffer, 0, &out);
                assert_eq!(written.unwrap_err().to_errno(), Errno::INVAL);
                continue;
            }
            assert_eq!((done, &out), (Ok(100), &wanted), "{name}, buffer of {size}");
            let fresh = vec![9; 100];
            assert_eq!(engine(name).write(&file, &view, &mut buffer, 0, &fresh), Ok(100));
            let changed = file.content().iter().zip(&content).filter(|(a, b)| a != b).count();
            assert!(changed <= 100);
            assert_eq!(file.locks_taken.get(), 0, "{name}: no window, no lock");
        }
    }
}

#[test]
fn single_tuples_are_written_without_reading_and_without_a_lock() {
    // Holes too large for every buffer, so that each group has one tuple.
    let view = FileView::strided(0, 100, 100_000).unwrap();
    for name in ALL {
        let file = Memory::plain(Vec::new(), Warmth::Warm);
        let mut buffer = vec![0; 4096];
        assert_eq!(engine(name).write(&file, &view, &mut buffer, 50, &[5; 1000]), Ok(1000));
        assert_eq!((file.reads.get(), file.locks_taken.get()), (0, 0), "{name}");
    }
}

#[test]
fn a_single_writer_needs_no_locks_and_all_locking_locks_single_blocks() {
    let view = FileView::strided(0, 8, 8).unwrap();
    let write = |locking: Locking, name: &str| {
        let file = Memory::plain(Vec::new(), Warmth::Warm);
        let mut engine = engine(name).locking(locking);
        assert_eq!(engine.write(&file, &view, &mut [0; 4096], 0, &[5; 1000]), Ok(1000));
        file.assert_unlocked();
        file.locks_taken.get()
    };
    assert_eq!(write(Locking::SingleWriter, "romio"), 0);
    assert_eq!(write(Locking::Windows, "romio"), 1);
    assert_eq!(write(Locking::Windows, "naive"), 0);
    assert!(write(Locking::All, "naive") > 0);
}

#[test]
fn without_locks_nothing_is_written_back_that_was_not_asked_for() {
    let view = FileView::strided(0, 8, 8).unwrap();
    for errno in [Errno::NOLCK, Errno::INVAL, Errno::NOSYS] {
        let file = Memory::plain(bytes(3000), Warmth::Warm);
        file.lock_errno.set(Some(errno));
        let done = engine("romio").write(&file, &view, &mut [0; 4096], 0, &[5; 1000]);
        assert_eq!((done, file.reads.get(), file.writes.get()), (Ok(1000), 0, 125));
    }
    let file = Memory::plain(bytes(3000), Warmth::Warm);
    file.lock_errno.set(Some(Errno::ACCESS));
    let refused = engine("romio").write(&file, &view, &mut [0; 4096], 0, &[5; 1000]);
    assert_eq!(refused, Err(Error::Lock { offset: 0, len: 1992, errno: Errno::ACCESS }));
}

#[test]
fn a_file_for_writing_only_is_written_block_by_block() {
    let view = FileView::strided(0, 8, 8).unwrap();
    let file = Memory::plain(Vec::new(), Warmth::Warm);
    file.readable.set(false);
    let adaptive = engine("adaptive").write(&file, &view, &mut [0; 4096], 0, &[5; 1000]);
    assert_eq!((adaptive, file.reads.get()), (Ok(1000), 0));
    let romio = engine("romio").write(&file, &view, &mut [0; 4096], 0, &[5; 1000]);
    assert_eq!(romio, Err(Error::NotReadable));
}
