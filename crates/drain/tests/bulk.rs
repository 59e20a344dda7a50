//! What is large goes a way of its own.

use std::sync::Arc;

use drain::{Bound, Drain, Kept, Options, Owner, Until};
use hostlog::media::Media;
use hostlog::media::simulated::SimulatedDisk;
use hostlog::{Change, Description, FileId, Log, Operation, Sequence, Write};
use p9::OpenFlags;
use store::mem::MemStore;
use store::{Node, Store};

struct Nobody;

impl Owner for Nobody {
    fn bound(&self) -> Vec<Bound> {
        Vec::new()
    }

    fn drainable(&self) -> Option<Sequence> {
        None
    }

    fn drained(
        &self,
        _through: Sequence,
        _node: &dyn Fn(FileId) -> Option<Arc<dyn Node>>,
    ) -> drain::Result<Kept> {
        Ok(Kept::default())
    }

    fn state(&self, _kept: &Kept, _bound: &[Bound]) -> Vec<u8> {
        Vec::new()
    }
}

fn content(store: &MemStore, name: &str) -> Vec<u8> {
    let node = store.root().unwrap().walk(&[name.as_bytes()]).unwrap().end.unwrap();
    let open = node.open(OpenFlags::empty()).unwrap();
    let mut bytes = vec![0; open.attributes().unwrap().size as usize];
    assert_eq!(open.read_at(&mut bytes, 0).unwrap(), bytes.len());
    bytes
}

#[test]
fn the_bytes_of_large_files_go_the_way_for_them_and_all_else_the_other() {
    let media: Arc<dyn Media> = Arc::new(SimulatedDisk::new(1));
    let options =
        hostlog::Options { segment_bytes: 1 << 20, size_max_bytes: 32 << 20, ready_segments: 2 };
    let log = Arc::new(Log::create(media.clone(), &Description::default(), options).unwrap());
    let (main, bulk) = (Arc::new(MemStore::new()), Arc::new(MemStore::new()));
    // As these are not one place, it shows which way was taken.
    for name in ["large", "small"] {
        bulk.root().unwrap().create(name.as_bytes(), OpenFlags::WRITE_ONLY, 0o644).unwrap();
    }
    for (file, name, len) in [(1, "large", 3 << 20), (2, "small", 1000), (3, "unseen", 2 << 20)] {
        let change = Change { stream: 1, file: FileId(file), member: None, namespace: true };
        log.change(&change, &Operation::Create { path: name.into(), mode: 0o644 }).unwrap();
        let bytes = vec![file as u8; len];
        let mut done = 0;
        while done < len {
            let write = Write {
                stream: 1,
                file: FileId(file),
                member: None,
                offset: done as u64,
                bytes: &bytes[done..],
            };
            done += log.write(&write).unwrap().len() as usize;
        }
        log.commit(1, FileId(file)).unwrap();
    }
    let target: Arc<dyn Store> = main.clone();
    let drain = Drain::new(log, media, target, Arc::new(Nobody), Options::default()).unwrap();
    let mut drain = drain.with_bulk(bulk.clone());
    drain.run(Until::Drained, |error| panic!("{error}")).unwrap();
    assert!(content(&bulk, "large") == vec![1; 3 << 20] && content(&main, "large").is_empty());
    assert!(content(&main, "small") == [2; 1000] && content(&bulk, "small").is_empty());
    assert!(content(&main, "unseen") == vec![3; 2 << 20], "what cannot be opened there");
}
