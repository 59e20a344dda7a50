//! Part files: what is copied before it is complete.

use crate::place::{Meta, Outcome, Place, Reader, Writer};

const SUFFIX: &[u8] = b".sluice-part";
/// Longest name on every usual file system (`NAME_MAX`).
const NAME_BYTES_MAX: usize = 255;
/// How much before the end of a part file is copied again. An interruption may leave holes within what was written
/// behind; this is more than the default of `--write-behind-bytes` twice over.
pub(super) const RECOPIED_BYTES: u64 = 64 << 20;
/// How much before that must agree with the source.
pub(super) const COMPARED_BYTES: usize = 1 << 20;

/// The part file's name for a destination's name and a source of this size and age: a changed source begins anew.
pub(super) fn name(name: &[u8], source: &Meta) -> Vec<u8> {
    let mut hash = Fnv::new();
    hash.add(name);
    hash.add(&source.size.to_le_bytes());
    hash.add(&source.mtime.seconds.to_le_bytes());
    hash.add(&source.mtime.nanoseconds.to_le_bytes());
    let tail = format!(".{:016x}", hash.0).into_bytes();
    let kept = name.len().min(NAME_BYTES_MAX - 1 - tail.len() - SUFFIX.len());
    [b".", &name[..kept], &tail, SUFFIX].concat()
}

/// True for names that [`name`] makes.
pub(super) fn is_part_name(name: &[u8]) -> bool {
    name.starts_with(b".") && name.ends_with(SUFFIX)
}

/// Whether `part` is a part file of the destination `name`, from whatever source. Of a name that is too long for its
/// part file's, nobody can tell.
fn is_part_of(part: &[u8], name: &[u8]) -> bool {
    let hash = part.strip_prefix(b".").and_then(|rest| rest.strip_prefix(name));
    let hash = hash.and_then(|rest| rest.strip_prefix(b".")?.strip_suffix(SUFFIX));
    hash.is_some_and(|hash| hash.len() == 16 && hash.iter().all(u8::is_ascii_hexdigit))
}

/// Part files that lay in a directory before anything was copied there.
pub(super) struct Leftovers(Vec<Vec<u8>>);

impl Leftovers {
    /// Of a directory that is new.
    pub(super) fn none() -> Self {
        Self(Vec::new())
    }

    /// Of a directory. One that cannot be listed has none that could be removed.
    pub(super) fn of(directory: &Place) -> Self {
        let names = directory.list().unwrap_or_default();
        Self(names.into_iter().filter(|name| is_part_name(name)).collect())
    }

    /// Removes what copies of changed or other sources left for `to`, which is complete now.
    pub(super) fn sweep(&self, to: &Place) {
        let (Some(directory), Some(name)) = (to.parent(), to.file_name()) else {
            return;
        };
        for part in self.0.iter().filter(|part| is_part_of(part, &name)) {
            // Best effort: this copy is done, with the leftover or without.
            let _ = directory.child(part).remove_file();
        }
    }
}

/// From where an interrupted copy goes on: the part must be a beginning of the source, as far as its end can tell.
pub(super) fn resume_at(reader: &Reader, part: &Writer, source_size: u64) -> Outcome<u64> {
    let len = part.stat()?.size;
    if len > source_size {
        return Ok(0);
    }
    let at = len.saturating_sub(RECOPIED_BYTES);
    // A short part is compared where it ends; it costs less than copying it.
    let at = if at == 0 { len } else { at };
    let count = at.min(if at == len { RECOPIED_BYTES } else { COMPARED_BYTES as u64 });
    let same = same_bytes(reader, part, at - count, count)?;
    Ok(if same { at } else { 0 })
}

fn same_bytes(reader: &Reader, part: &Writer, mut at: u64, mut count: u64) -> Outcome<bool> {
    let (mut here, mut there) = (vec![0; COMPARED_BYTES], vec![0; COMPARED_BYTES]);
    while count > 0 {
        let len = count.min(COMPARED_BYTES as u64) as usize;
        let (here, there) = (&mut here[..len], &mut there[..len]);
        if reader.fill_at(here, at)? != len || part.fill_at(there, at)? != len || here != there {
            return Ok(false);
        }
        at += len as u64;
        count -= len as u64;
    }
    Ok(true)
}

/// FNV-1a: names of part files must be the same in every build and on every machine.
///
/// # Source
/// Fowler, Noll, Vo; draft-eastlake-fnv.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    fn meta(size: usize) -> Meta {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![0; size]).unwrap();
        Place::Local(file.path().to_path_buf()).stat(true).unwrap()
    }

    #[test]
    fn names_are_valid_and_tell_sources_apart() {
        let source = meta(3);
        let other = Meta { size: 4, ..source };
        assert_ne!(name(b"a", &source), name(b"a", &other));
        let (long, longer) = (vec![b'x'; 255], [vec![b'x'; 254], vec![b'y']].concat());
        assert_eq!(name(&long, &source).len(), 255);
        assert_ne!(name(&long, &source), name(&longer, &source));
        assert!(is_part_name(&name(b"a", &source)) && !is_part_name(b"a.sluice-part"));
    }

    #[test]
    fn a_part_belongs_to_one_name() {
        let source = meta(3);
        for of in [&b"a"[..], b"a.b", b"a.0123456789abcdef", b".hidden", &[0xff]] {
            let part = name(of, &source);
            assert!(is_part_of(&part, of) && is_part_of(&part, of));
            for other in [&b""[..], b"b", b"a.", b"a.0"] {
                assert!(
                    !is_part_of(&part, other),
                    "{} {}",
                    of.escape_ascii(),
                    other.escape_ascii()
                );
            }
        }
        assert!(!is_part_of(&name(b"a.0123456789abcdef", &source), b"a"));
    }

    #[test]
    fn a_part_is_trusted_only_if_its_end_agrees() {
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| Place::Local(dir.path().join(name));
        let bytes: Vec<u8> = (0..3_000_000u32).map(|i| (i / 7) as u8).collect();
        std::fs::write(dir.path().join("source"), &bytes).unwrap();
        let resumed = |part: &[u8]| {
            std::fs::write(dir.path().join("part"), part).unwrap();
            let reader = place("source").open().unwrap();
            resume_at(&reader, &place("part").create(0o600).unwrap(), bytes.len() as u64).unwrap()
        };
        assert_eq!(resumed(&bytes[..2_000_000]), 2_000_000);
        assert_eq!(resumed(&bytes), 3_000_000);
        assert_eq!(resumed(b""), 0);
        let mut wrong = bytes[..2_000_000].to_vec();
        wrong[1_999_999] ^= 1;
        assert_eq!(resumed(&wrong), 0);
        assert_eq!(resumed(&[&bytes[..], b"more"].concat()), 0);
    }
}
