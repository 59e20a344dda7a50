//! Which file is found at which path of the target, as far as the log has said.

use std::collections::{BTreeMap, HashMap};

use hostlog::FileId;

/// Paths of files, as of some record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Names {
    by_path: BTreeMap<Vec<u8>, FileId>,
    /// Every file that was named, also when its last name is gone.
    by_file: HashMap<FileId, Vec<Vec<u8>>>,
}

impl Names {
    /// `file` is what is at `path` from now on.
    pub(crate) fn bind(&mut self, file: FileId, path: &[u8]) {
        self.unbind(path);
        self.by_path.insert(path.to_vec(), file);
        self.by_file.entry(file).or_default().push(path.to_vec());
    }

    /// Nothing that is known is at `path` any more.
    pub(crate) fn unbind(&mut self, path: &[u8]) {
        if let Some(file) = self.by_path.remove(path)
            && let Some(paths) = self.by_file.get_mut(&file)
        {
            paths.retain(|other| other != path);
        }
    }

    /// Both paths are the same file from now on, whichever it is.
    pub(crate) fn link(&mut self, existing: &[u8], path: &[u8]) {
        if let Some(file) = self.at(existing) {
            self.bind(file, path);
        }
    }

    /// A file or directory with all that is in it has another path from now on.
    pub(crate) fn rename(&mut self, from: &[u8], to: &[u8]) {
        // Two names of one file: rename(2) does nothing then.
        if from == to || self.at(from).is_some_and(|file| self.at(to) == Some(file)) {
            return;
        }
        self.unbind(to);
        let below = [from, b"/"].concat();
        let within =
            self.by_path.range(below.clone()..).take_while(|(path, _)| path.starts_with(&below));
        let mut moved: Vec<(Vec<u8>, FileId)> =
            within.map(|(path, file)| (path.clone(), *file)).collect();
        moved.extend(self.at(from).map(|file| (from.to_vec(), file)));
        for (path, file) in moved {
            self.unbind(&path);
            self.bind(file, &[to, &path[from.len()..]].concat());
        }
    }

    /// The file at a path.
    pub(crate) fn at(&self, path: &[u8]) -> Option<FileId> {
        self.by_path.get(path).copied()
    }

    /// Whether the log has said where the file is, or was.
    pub(crate) fn knows(&self, file: FileId) -> bool {
        self.by_file.contains_key(&file)
    }

    /// A path of the file; `None` when it has lost its last one.
    pub(crate) fn path_of(&self, file: FileId) -> Option<&[u8]> {
        self.by_file.get(&file)?.first().map(Vec::as_slice)
    }

    /// Lets go of all files but these.
    pub(crate) fn retain(&mut self, keeps: impl Fn(FileId) -> bool) {
        self.by_file.retain(|file, _| keeps(*file));
        self.by_path.retain(|_, file| self.by_file.contains_key(file));
    }

    /// All files with their paths, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (FileId, &[Vec<u8>])> {
        let mut files: Vec<_> =
            self.by_file.iter().map(|(file, paths)| (*file, &paths[..])).collect();
        files.sort_unstable_by_key(|(file, _)| *file);
        files.into_iter()
    }

    /// A file that has no name, or none yet.
    pub(crate) fn know(&mut self, file: FileId) {
        self.by_file.entry(file).or_default();
    }
}

#[cfg(test)]
mod tests {
    use hostlog::FileId;

    use super::Names;

    fn paths(names: &Names) -> Vec<(u64, Vec<&str>)> {
        let text = |path: &'_ Vec<u8>| -> String { String::from_utf8(path.clone()).unwrap() };
        let all = names.iter().map(|(file, paths)| {
            let mut paths: Vec<&str> = paths.iter().map(|path| &*text(path).leak()).collect();
            paths.sort_unstable();
            (file.0, paths)
        });
        all.collect()
    }

    #[test]
    fn names_follow_their_files() {
        let mut names = Names::default();
        names.bind(FileId(1), b"d/a");
        names.bind(FileId(2), b"d/e/b");
        names.bind(FileId(3), b"d2");
        names.link(b"d/a", b"also");
        names.rename(b"d", b"f");
        assert_eq!(paths(&names), [(1, vec!["also", "f/a"]), (2, vec!["f/e/b"]), (3, vec!["d2"])]);
        // Another name of the same file: nothing happens.
        names.rename(b"also", b"f/a");
        // A file that is replaced loses its name, and is known nevertheless.
        names.rename(b"d2", b"f/e/b");
        assert_eq!(paths(&names), [(1, vec!["also", "f/a"]), (2, vec![]), (3, vec!["f/e/b"])]);
        assert!(names.knows(FileId(2)) && names.path_of(FileId(2)).is_none());
        names.unbind(b"also");
        names.unbind(b"nobody");
        assert_eq!(names.path_of(FileId(1)), Some(&b"f/a"[..]));
        names.retain(|file| file == FileId(3));
        assert_eq!(paths(&names), [(3, vec!["f/e/b"])]);
        assert_eq!(names.at(b"f/a"), None);
    }
}
