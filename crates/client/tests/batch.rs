//! Many ranges at once: all of them right, in few turns, also when the connection breaks between.

mod fake;

use client::{At, Handle, ReadPart, Repeat, WritePart};
use fake::Fake;
use p9::{Errno, OpenFlags};
use proptest::prelude::*;

const FILE: &str = "base/file";
const READ: u8 = 116;
const WRITE: u8 = 118;

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index * 7 + index / 251) as u8).collect()
}

/// A fake with a file of `len` bytes, and the file open.
fn scene(len: usize, msize: Option<u32>) -> (Fake, Handle) {
    let fake = Fake::new(&[FILE]).with_faults(|faults| faults.msize_max = msize);
    fake.replace(FILE, &content(len));
    let session = fake.session();
    let opened = session.open(At::root(FILE.as_bytes()), OpenFlags::READ_WRITE, 0).expect("open");
    (fake, opened.handle)
}

#[test]
fn a_batch_of_small_ranges_is_one_turn() {
    let (fake, handle) = scene(100_000, None);
    let mut buffers = vec![[0_u8; 10]; 60];
    let mut parts: Vec<_> = buffers
        .iter_mut()
        .enumerate()
        .map(|(index, buffer)| ReadPart::new(index as u64 * 1000, buffer))
        .collect();
    fake.reset();
    handle.read_batch(&mut parts).expect("read");
    assert!(parts.iter().all(|part| part.done == 10 && part.refusal.is_none()));
    assert_eq!((fake.bursts(), fake.count("Read")), (1, 60));
    let expected = content(100_000);
    for (index, buffer) in buffers.iter().enumerate() {
        assert_eq!(buffer, &expected[index * 1000..index * 1000 + 10]);
    }
}

#[test]
fn a_range_beyond_the_end_is_short_and_the_others_are_whole() {
    let (_fake, handle) = scene(1000, Some(4096));
    let (mut inside, mut across, mut beyond) = ([0; 100], [0; 9000], [0; 10]);
    let mut parts = [
        ReadPart::new(900, &mut across),
        ReadPart::new(5000, &mut beyond),
        ReadPart::new(0, &mut inside),
    ];
    handle.read_batch(&mut parts).expect("read");
    assert_eq!(parts.each_ref().map(|part| part.done), [100, 0, 100]);
    assert_eq!(across[..100], content(1000)[900..]);
    assert_eq!(inside[..], content(1000)[..100]);
}

#[test]
fn a_refusal_stays_with_its_range() {
    let fake = Fake::new(&["base/dir/file"]);
    let session = fake.session();
    let opened = session.open(At::root(b"base/dir"), OpenFlags::empty(), 0).expect("open");
    let mut target = [0; 10];
    let mut parts = [ReadPart::new(0, &mut target)];
    opened.handle.read_batch(&mut parts).expect("the connection is whole");
    assert_eq!((parts[0].done, parts[0].refusal), (0, Some(Errno::EISDIR)));
}

#[test]
fn nothing_to_do_is_done_without_asking() {
    let (fake, handle) = scene(10, None);
    fake.reset();
    handle.read_batch(&mut []).expect("read");
    let mut parts = [ReadPart::new(0, &mut []), ReadPart::new(u64::MAX, &mut [])];
    handle.read_batch(&mut parts).expect("read");
    handle.write_batch(Repeat::Safe, &mut [WritePart::new(3, &[])]).expect("write");
    assert_eq!(fake.bursts(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_break_anywhere_changes_nothing(
        gaps in prop::collection::vec((0_usize..3000, 1_usize..12_000), 1..12),
        nth in 1_usize..30,
        before in any::<bool>(),
        writes in any::<bool>(),
    ) {
        let len = gaps.iter().map(|(gap, len)| gap + len).sum::<usize>();
        // Messages that hold less than most ranges.
        let (fake, handle) = scene(len, Some(4096 + 24));
        let kind = if writes { WRITE } else { READ };
        fake.set(|faults| {
            faults.drop_before = before.then_some((kind, nth));
            faults.drop_after = (!before).then_some((kind, nth));
        });
        let mut expected = content(len);
        let (mut at, mut ranges) = (0, Vec::new());
        for (gap, len) in gaps {
            ranges.push(at + gap..at + gap + len);
            at += gap + len;
        }
        if writes {
            let data: Vec<u8> = expected.iter().map(|byte| !byte).collect();
            let mut parts: Vec<_> = ranges
                .iter()
                .map(|range| WritePart::new(range.start as u64, &data[range.clone()]))
                .collect();
            handle.write_batch(Repeat::Safe, &mut parts).expect("write");
            prop_assert!(parts.iter().all(|part| part.done == part.data.len()));
            for range in ranges {
                expected[range.clone()].copy_from_slice(&data[range]);
            }
            prop_assert_eq!(fake.content(FILE).expect("there"), expected);
        } else {
            let mut buffers: Vec<_> = ranges.iter().map(|range| vec![0; range.len()]).collect();
            let mut parts: Vec<_> = ranges
                .iter()
                .zip(&mut buffers)
                .map(|(range, buffer)| ReadPart::new(range.start as u64, buffer))
                .collect();
            handle.read_batch(&mut parts).expect("read");
            prop_assert!(parts.iter().all(|part| part.done == part.target.len()));
            for (range, buffer) in ranges.into_iter().zip(buffers) {
                prop_assert_eq!(&expected[range], buffer);
            }
        }
    }
}
