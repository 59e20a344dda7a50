//! Throwing a log away.

use std::io;

use crate::error::{Error, Result};
use crate::media::Media;
use crate::names::{CHECKPOINT, LOCK, MANIFEST};

/// Removes a log with all that it holds, drained or not. The directory and the file that is locked stay.
///
/// # Errors
/// `Busy`, `Missing`, `System`.
pub fn discard(media: &dyn Media) -> Result<()> {
    let place = media.place();
    let system = |operation, name: &str, source| Error::system(operation, &place, name, source);
    // A version or a description that cannot be read is no reason to keep it.
    match media.open(MANIFEST, false) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Error::Missing { place });
        }
        Err(error) => return Err(system("opening", MANIFEST, error)),
        Ok(_) => {}
    }
    let _lock = media.lock().map_err(|source| match source.kind() {
        io::ErrorKind::WouldBlock => Error::Busy { place: place.clone() },
        _ => system("locking", LOCK, source),
    })?;
    // With it goes the log; the rest is litter that a new one would remove.
    media.remove(MANIFEST).map_err(|e| system("removing", MANIFEST, e))?;
    let segments = media.segments().map_err(|e| system("listing", "segments", e))?;
    for name in segments.iter().map(String::as_str).chain([CHECKPOINT]) {
        match media.remove(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(system("removing", name, error));
            }
            _ => {}
        }
    }
    Ok(())
}
