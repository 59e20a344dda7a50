//! Reading and writing.

use p9::{Errno, OpenFlags};

use super::Factory;
use super::helpers::{
    BOTH, READ, WRITE, at, create, directory, errno, file, read, read_open, root,
};

pub(super) fn reads_are_short_only_at_the_end(make: Factory<'_>) {
    let root = root(make);
    let content: Vec<u8> = (0..200_003_u32).map(|n| (n % 251) as u8).collect();
    let node = file(&root, "file", &content);
    let open = node.open(READ).unwrap();
    for (offset, len) in [(0, 1), (0, 200_003), (1, 65_536), (65_535, 2), (131_071, 68_932)] {
        let mut buffer = vec![0; len];
        assert_eq!(open.read_at(&mut buffer, offset as u64).unwrap(), len);
        assert_eq!(buffer, content[offset..offset + len]);
    }
    let mut buffer = [0; 10];
    assert_eq!(open.read_at(&mut buffer, 200_000).unwrap(), 3);
    assert_eq!(open.read_at(&mut buffer, 200_003).unwrap(), 0);
    assert_eq!(open.read_at(&mut buffer, 1 << 40).unwrap(), 0);
    assert_eq!(open.read_at(&mut [], 0).unwrap(), 0);
}

pub(super) fn what_was_never_written_reads_as_zeros(make: Factory<'_>) {
    let root = root(make);
    let (_, open) = create(&root, "file");
    let far = 5 << 20;
    open.write_at(b"end", far).unwrap();
    open.write_at(b"middle", 100_000).unwrap();
    let all = read_open(&open);
    assert_eq!(all.len() as u64, far + 3);
    assert!(all[..100_000].iter().all(|byte| *byte == 0));
    assert_eq!(&all[100_000..100_006], b"middle");
    assert!(all[100_006..far as usize].iter().all(|byte| *byte == 0));
    assert_eq!(&all[far as usize..], b"end");
    // Writing nothing leaves the size alone.
    assert_eq!(open.write_at(b"", 1 << 30).unwrap(), 0);
    assert_eq!(open.attributes().unwrap().size, far + 3);
}

pub(super) fn large_unaligned_writes_come_back(make: Factory<'_>) {
    let root = root(make);
    let (_, open) = create(&root, "file");
    let content: Vec<u8> = (0..3_333_333_u32).map(|n| (n ^ (n >> 11)) as u8).collect();
    assert_eq!(open.write_at(&content, 77_777).unwrap(), content.len());
    let mut back = vec![0; content.len()];
    assert_eq!(open.read_at(&mut back, 77_777).unwrap(), content.len());
    assert!(back == content);
    open.write_at(&[0xaa; 70_000], 1_000_000).unwrap();
    assert_eq!(open.read_at(&mut back, 77_777).unwrap(), content.len());
    let changed = 1_000_000 - 77_777..1_070_000 - 77_777;
    assert!(back[changed.clone()].iter().all(|byte| *byte == 0xaa));
    assert!(back[..changed.start] == content[..changed.start]);
    assert!(back[changed.end..] == content[changed.end..]);
}

pub(super) fn appending_ignores_the_offset(make: Factory<'_>) {
    let root = root(make);
    let node = file(&root, "file", b"one ");
    let open = node.open(WRITE | OpenFlags::APPEND).unwrap();
    assert_eq!(open.write_at(b"two ", 0).unwrap(), 4);
    node.open(WRITE).unwrap().write_at(b"three ", 8).unwrap();
    assert_eq!(open.write_at(b"four", 2).unwrap(), 4);
    assert_eq!(read(&node), b"one two three four");
}

pub(super) fn appends_of_many_threads_stay_whole(make: Factory<'_>) {
    let root = root(make);
    let node = file(&root, "file", b"");
    std::thread::scope(|scope| {
        for writer in 0..8_u8 {
            let open = node.open(WRITE | OpenFlags::APPEND).unwrap();
            scope.spawn(move || {
                for _ in 0..50 {
                    assert_eq!(open.write_at(&[writer; 97], 0).unwrap(), 97);
                }
            });
        }
    });
    let all = read(&node);
    assert_eq!(all.len(), 8 * 50 * 97);
    for record in all.chunks(97) {
        assert!(record.iter().all(|byte| *byte == record[0]), "a record is torn");
    }
}

pub(super) fn threads_write_their_own_ranges(make: Factory<'_>) {
    const PIECE: usize = 10_007;
    let root = root(make);
    let (node, open) = create(&root, "file");
    std::thread::scope(|scope| {
        for writer in 0..6_u8 {
            let open = &open;
            scope.spawn(move || {
                for round in 0..20 {
                    let offset = (round * 6 + usize::from(writer)) * PIECE;
                    assert_eq!(open.write_at(&[writer + 1; PIECE], offset as u64).unwrap(), PIECE);
                }
            });
        }
    });
    for (n, piece) in read(&node).chunks(PIECE).enumerate() {
        assert!(piece.iter().all(|byte| usize::from(*byte) == n % 6 + 1));
    }
}

pub(super) fn truncate_on_opening_empties(make: Factory<'_>) {
    let root = root(make);
    let node = file(&root, "file", b"content");
    // What is about creating means nothing to opening.
    node.open(WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE).unwrap();
    assert_eq!(read(&node), b"content");
    let open = node.open(BOTH | OpenFlags::TRUNCATE).unwrap();
    assert_eq!(read_open(&open), b"");
    open.write_at(b"new", 0).unwrap();
    assert_eq!(read(&node), b"new");
    root.create(b"file", WRITE | OpenFlags::TRUNCATE, 0o600).unwrap();
    assert_eq!(read(&node), b"");
}

pub(super) fn access_is_what_was_asked_for_at_opening(make: Factory<'_>) {
    let root = root(make);
    let node = file(&root, "file", b"content");
    let mut buffer = [0; 4];
    let reading = node.open(READ).unwrap();
    assert_eq!(errno(reading.write_at(b"x", 0)), Errno::EBADF);
    let writing = node.open(WRITE).unwrap();
    assert_eq!(errno(writing.read_at(&mut buffer, 0)), Errno::EBADF);
    assert_eq!(reading.read_at(&mut buffer, 0).unwrap(), 4);
    assert_eq!(writing.write_at(b"C", 0).unwrap(), 1);
    assert_eq!(read(&node), b"Content");
    for flags in [OpenFlags::SYNC, OpenFlags::DSYNC, OpenFlags::NONBLOCK] {
        let open = node.open(BOTH | flags).unwrap();
        assert_eq!(open.write_at(b"c", 0).unwrap(), 1);
        assert_eq!(open.read_at(&mut buffer, 0).unwrap(), 4);
    }
}

pub(super) fn what_cannot_be_opened_says_why(make: Factory<'_>) {
    let root = root(make);
    let dir = directory(&root, "dir");
    let node = file(&root, "file", b"");
    root.make_symlink(b"link", b"file").unwrap();
    for flags in [WRITE, BOTH, OpenFlags::TRUNCATE] {
        assert_eq!(errno(dir.open(flags)), Errno::EISDIR);
    }
    assert_eq!(errno(node.open(OpenFlags::DIRECTORY)), Errno::ENOTDIR);
    assert_eq!(errno(at(&root, "link").open(READ)), Errno::ELOOP);
    assert_eq!(errno(node.open(OpenFlags::from_bits_retain(3))), Errno::EINVAL);
    assert_eq!(errno(root.create(b"dir", BOTH, 0o644)), Errno::EISDIR);
    assert_eq!(errno(node.create(b"x", BOTH, 0o644)), Errno::ENOTDIR);
    assert_eq!(errno(root.create(b"dir", BOTH | OpenFlags::EXCLUSIVE, 0o644)), Errno::EEXIST);
    let listing = dir.open(READ).unwrap();
    assert_eq!(errno(listing.read_at(&mut [0; 4], 0)), Errno::EISDIR);
    assert_eq!(errno(listing.write_at(b"x", 0)), Errno::EBADF);
}

pub(super) fn create_opens_what_exists_unless_exclusive(make: Factory<'_>) {
    let root = root(make);
    let one = file(&root, "file", b"content");
    let again = root.create(b"file", BOTH | OpenFlags::EXCLUSIVE, 0o644);
    assert_eq!(errno(again), Errno::EEXIST);
    let (two, open) = root.create(b"file", BOTH, 0o600).unwrap();
    assert_eq!(two.qid().path, one.qid().path);
    assert_eq!(read_open(&open), b"content");
    assert_eq!(two.attributes().unwrap().mode & 0o777, 0o644, "the mode is for new files");
    let (new, _) = root.create(b"new", BOTH, 0o640).unwrap();
    let attributes = new.attributes().unwrap();
    assert!(attributes.is_regular());
    assert_eq!(attributes.mode & 0o777, 0o640);
    assert_eq!(at(&root, "new").qid().path, new.qid().path);
    // Everybody wants to be the one who makes it; one is.
    let made: usize = std::thread::scope(|scope| {
        let exclusive = || root.create(b"race", BOTH | OpenFlags::EXCLUSIVE, 0o644).is_ok();
        let tries: Vec<_> = (0..8).map(|_| scope.spawn(exclusive)).collect();
        tries.into_iter().map(|t| usize::from(t.join().unwrap())).sum()
    });
    assert_eq!(made, 1);
}

pub(super) fn a_file_is_writable_by_its_creator_whatever_its_mode(make: Factory<'_>) {
    let root = root(make);
    let (node, open) = root.create(b"file", BOTH | OpenFlags::EXCLUSIVE, 0o000).unwrap();
    assert_eq!(node.attributes().unwrap().mode & 0o7777, 0);
    assert_eq!(open.write_at(b"content", 0).unwrap(), 7);
    assert_eq!(read_open(&open), b"content");
}

pub(super) fn an_opening_outlives_rename_and_removal(make: Factory<'_>) {
    let root = root(make);
    let dir = directory(&root, "dir");
    let (_, open) = create(&root, "file");
    open.write_at(b"one", 0).unwrap();
    root.rename(b"file", dir.as_ref(), b"moved").unwrap();
    open.write_at(b"two", 3).unwrap();
    assert_eq!(read(&at(&dir, "moved")), b"onetwo");
    dir.remove(b"moved", false).unwrap();
    open.write_at(b"three", 6).unwrap();
    assert_eq!(read_open(&open), b"onetwothree");
    open.sync(false).unwrap();
    // A new file of that name is another.
    let new = file(&dir, "moved", b"new");
    open.write_at(b"ONE", 0).unwrap();
    assert_eq!(read(&new), b"new");
    // A node outlives them too.
    dir.rename(b"moved", root.as_ref(), b"again").unwrap();
    root.remove(b"again", false).unwrap();
    assert_eq!(read(&new), b"new");
}

pub(super) fn offsets_beyond_every_file_are_errors(make: Factory<'_>) {
    let root = root(make);
    let (_, open) = create(&root, "file");
    for offset in [u64::MAX, 1 << 63] {
        assert_eq!(errno(open.write_at(b"x", offset)), Errno::EINVAL);
        assert_eq!(errno(open.read_at(&mut [0; 4], offset)), Errno::EINVAL);
    }
    let at_the_end = errno(open.write_at(b"x", i64::MAX as u64));
    assert!(matches!(at_the_end, Errno::EFBIG | Errno::EINVAL | Errno::EOVERFLOW));
    assert_eq!(open.attributes().unwrap().size, 0);
}

pub(super) fn sync_is_possible_for_files_and_directories(make: Factory<'_>) {
    let root = root(make);
    let (_, open) = create(&root, "file");
    open.write_at(b"content", 0).unwrap();
    open.sync(true).unwrap();
    open.sync(false).unwrap();
    let listing = root.open(READ).unwrap();
    listing.sync(false).unwrap();
    assert_eq!(read_open(&open), b"content");
}
