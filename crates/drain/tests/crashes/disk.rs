//! The files of a log in memory: what was written stays when the process that wrote it is gone.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use hostlog::media::{Media, MediaFile};

type Bytes = Arc<Mutex<Vec<u8>>>;

#[derive(Default)]
pub(crate) struct Disk {
    files: Mutex<BTreeMap<String, Bytes>>,
    locked: Arc<AtomicBool>,
}

struct Lock(Arc<AtomicBool>);

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

struct File(Bytes);

impl Media for Disk {
    fn place(&self) -> PathBuf {
        "/memory".into()
    }

    fn lock(&self) -> io::Result<Box<dyn Send + Sync>> {
        if self.locked.swap(true, Ordering::SeqCst) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(Lock(Arc::clone(&self.locked))))
    }

    fn segments(&self) -> io::Result<Vec<String>> {
        Ok(self
            .files
            .lock()
            .unwrap()
            .keys()
            .filter(|name| name.ends_with(".seg"))
            .cloned()
            .collect())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn MediaFile>> {
        let bytes = Bytes::default();
        self.files.lock().unwrap().insert(name.to_owned(), Arc::clone(&bytes));
        Ok(Box::new(File(bytes)))
    }

    fn open(&self, name: &str, _write: bool) -> io::Result<Box<dyn MediaFile>> {
        let files = self.files.lock().unwrap();
        let bytes = files.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(File(Arc::clone(bytes))))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let removed = self.files.lock().unwrap().remove(name);
        removed.map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let bytes = Arc::new(Mutex::new(bytes.to_vec()));
        self.files.lock().unwrap().insert(name.to_owned(), bytes);
        Ok(())
    }
}

impl MediaFile for File {
    fn write_at(&self, parts: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        let mut bytes = self.0.lock().unwrap();
        let mut at = offset as usize;
        for part in parts {
            let end = at + part.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[at..end].copy_from_slice(part);
            at = end;
        }
        Ok(())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = self.0.lock().unwrap();
        let from = bytes.get(offset as usize..).and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().len() as u64)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
