//! The files of one replica.
//!
//! A replica is a file, or, where views in it have data of variable size, a directory with files
//! `0`, `1`, … in it (§III-B.4). A new one is made under the name with `.new` behind it and renamed
//! when it is complete and durable, so that a file with the replica's own name is never half made.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use drepl::Definition;
use drepl::definition::{Length, Part, Replica, Storage, Type, ViewVariable};
use hdf::Schema;
use layout::Placement;

use crate::error::{Error, Result};
use crate::file::{File, Identity, Surroundings};
use crate::hdf5;

/// Where a replica is, and what it is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) is_directory: bool,
    /// The datasets of a replica that is an HDF5 file.
    pub(crate) schema: Option<Schema>,
}

/// The open files of a replica, in order.
pub(crate) struct Files {
    list: Vec<File>,
}

/// What was found where a replica should be.
pub(crate) enum Found {
    /// Nothing.
    Missing,
    /// Its files, locked.
    Files(Files),
}

impl Place {
    pub(crate) fn of(
        definition: &Definition,
        replica: &Replica,
        directory: &Path,
        placement: &Placement,
    ) -> Result<Self> {
        let schema = match replica.storage {
            Storage::Raw => None,
            Storage::Hdf5 => Some(hdf5::schema(definition, replica, placement)?),
        };
        Ok(Self {
            name: replica.name.clone(),
            path: directory.join(&replica.name),
            is_directory: is_variable(definition, replica),
            schema,
        })
    }

    fn unfinished(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".new");
        name.into()
    }

    fn file(&self, base: &Path, number: usize) -> PathBuf {
        if self.is_directory { base.join(number.to_string()) } else { base.to_path_buf() }
    }

    /// Opens and locks what there is.
    ///
    /// # Errors
    /// [`Error::InUse`]; [`Error::NotAFile`]; when there are fewer files than there should be.
    pub(crate) fn open(&self, count: usize, around: &Surroundings) -> Result<Found> {
        let wanted = if self.is_directory { "directory" } else { "regular file" };
        let wrong = |path: &Path| Error::NotAFile {
            replica: self.name.clone(),
            path: path.to_path_buf(),
            wanted,
        };
        match rustix::fs::stat(&self.path) {
            Ok(found) => {
                use rustix::fs::FileType::{Directory, RegularFile};
                let kind = rustix::fs::FileType::from_raw_mode(found.st_mode);
                if kind != if self.is_directory { Directory } else { RegularFile } {
                    return Err(wrong(&self.path));
                }
            }
            Err(rustix::io::Errno::NOENT) => return Ok(Found::Missing),
            Err(errno) => return Err(Error::file("stat", &self.path, errno)),
        }
        let mut list = Vec::with_capacity(count);
        for number in 0..count {
            let path = self.file(&self.path, number);
            let missing = || Error::file("open", &path, rustix::io::Errno::NOENT);
            let file = File::open(&path, around)?.ok_or_else(missing)?;
            if !file.is_regular()? {
                return Err(wrong(&path));
            }
            file.lock()?;
            list.push(match &self.schema {
                Some(schema) => file.into_hdf5(schema)?,
                None => file,
            });
        }
        Ok(Found::Files(Files { list }))
    }

    /// Begins to make the replica anew: files of these sizes, all zeros, under another name.
    pub(crate) fn begin(&self, sizes: &[u64], around: &Surroundings) -> Result<Files> {
        let base = self.unfinished();
        self.discard(around)?;
        if self.is_directory {
            let mode = rustix::fs::Mode::from_raw_mode(0o777);
            around.change("mkdir", &base, || rustix::fs::mkdir(&base, mode))?;
        }
        let mut list = Vec::with_capacity(sizes.len());
        for (number, size) in sizes.iter().enumerate() {
            let path = self.file(&base, number);
            list.push(match &self.schema {
                Some(schema) => {
                    let file = File::create_hdf5(&path, schema, around)?;
                    file.lock()?;
                    file
                }
                None => {
                    let file = File::create(&path, around)?;
                    file.lock()?;
                    file.set_size(*size)?;
                    file
                }
            });
        }
        Ok(Files { list })
    }

    /// Gives what was begun the replica's name, in place of what had it.
    pub(crate) fn finish(&self, files: Files, around: &Surroundings) -> Result<Files> {
        files.sync()?;
        let base = self.unfinished();
        if self.is_directory {
            around.sync_directory(&base)?;
            // rename(2) replaces empty directories only.
            remove_tree(&self.path, around)?;
        }
        around.change("rename", &self.path, || rustix::fs::rename(&base, &self.path))?;
        if let Some(parent) = self.path.parent() {
            around.sync_directory(parent)?;
        }
        let list = files.list.into_iter().enumerate();
        let list = list.map(|(number, file)| file.renamed(&self.file(&self.path, number)));
        Ok(Files { list: list.collect() })
    }

    /// Removes what was begun and not finished.
    pub(crate) fn discard(&self, around: &Surroundings) -> Result<()> {
        let base = self.unfinished();
        if self.is_directory { remove_tree(&base, around) } else { remove(&base, around) }
    }
}

fn remove(path: &Path, around: &Surroundings) -> Result<()> {
    match around.change("unlink", path, || rustix::fs::unlink(path)) {
        Err(error) if error.to_errno() == p9::Errno::ENOENT => Ok(()),
        other => other,
    }
}

/// Removes a directory of numbered files; anything else in it stays, and keeps the directory.
fn remove_tree(path: &Path, around: &Surroundings) -> Result<()> {
    let mut number = 0_u32;
    loop {
        let file = path.join(number.to_string());
        match around.change("unlink", &file, || rustix::fs::unlink(&file)) {
            Ok(()) => number += 1,
            Err(error) if error.to_errno() == p9::Errno::ENOENT => break,
            Err(error) => return Err(error),
        }
    }
    match around.change("rmdir", path, || rustix::fs::rmdir(path)) {
        Err(error) if error.to_errno() == p9::Errno::ENOENT => Ok(()),
        other => other,
    }
}

impl Files {
    pub(crate) fn get(&self, number: usize) -> &File {
        &self.list[number]
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &File> {
        self.list.iter()
    }

    /// Why they are not to be found under their names any more, if they are not.
    pub(crate) fn lost(&self) -> Option<Error> {
        self.list.iter().find_map(|file| {
            let (operation, errno) = match (rustix::fs::stat(file.path()), file.identity()) {
                (Ok(found), Ok(own)) if (found.st_dev, found.st_ino) == (own.device, own.inode) => {
                    return None;
                }
                (Ok(_), _) => ("stat (another file has taken its place)", rustix::io::Errno::STALE),
                // Whether a directory can be searched says nothing about what is in it.
                (Err(rustix::io::Errno::NOENT), _) => ("stat", rustix::io::Errno::NOENT),
                (Err(_), _) => return None,
            };
            Some(Error::file(operation, file.path(), errno))
        })
    }

    /// Makes everything durable.
    pub(crate) fn sync(&self) -> Result<()> {
        self.list.iter().try_for_each(File::sync)
    }

    /// Checks the sizes.
    pub(crate) fn check(&self, replica: &str, sizes: &[u64]) -> Result<()> {
        for (file, declared) in self.list.iter().zip(sizes) {
            let found = file.size()?;
            if found != *declared {
                return Err(Error::Size {
                    replica: replica.to_owned(),
                    path: file.path().to_path_buf(),
                    found,
                    declared: *declared,
                });
            }
        }
        Ok(())
    }

    /// When they were written last.
    pub(crate) fn modified(&self) -> Result<p9::Time> {
        let mut newest = p9::Time::default();
        for file in &self.list {
            newest = newest.max(file.modified()?);
        }
        Ok(newest)
    }

    /// Makes them longer or shorter.
    pub(crate) fn resize(&self, sizes: &[u64]) -> Result<()> {
        self.list.iter().zip(sizes).try_for_each(|(file, size)| {
            if file.size()? == *size { Ok(()) } else { file.set_size(*size) }
        })
    }

    pub(crate) fn identities(&self) -> Result<BTreeSet<Identity>> {
        self.list.iter().map(File::identity).collect()
    }
}

/// Whether a replica has data of variable size, and so is a directory.
fn is_variable(definition: &Definition, replica: &Replica) -> bool {
    let stored = |kind: &Type| match kind {
        Type::Array(array) => array.lengths.iter().any(is_stored),
        Type::Scalar(_) | Type::Text { .. } | Type::Struct(_) => false,
    };
    let shown = replica.views.iter().flat_map(|stored| &definition.views[stored.view].variables);
    let mut shown = shown.map(|variable| is_variable_part(definition, variable));
    let all = || definition.variables.iter().any(|variable| stored(&variable.kind));
    shown.any(|is_variable| is_variable) || replica.complete && all()
}

/// Whether the size of a variable of a view depends on a length that is stored.
pub(crate) fn is_variable_part(definition: &Definition, variable: &ViewVariable) -> bool {
    match (inner(&variable.part), &definition.variables[variable.source].kind) {
        (Part::Slice(slice), _) => slice.lengths.iter().any(is_stored),
        (_, Type::Array(array)) => array.lengths.iter().any(is_stored),
        _ => false,
    }
}

/// What a record is around.
fn inner(part: &Part) -> &Part {
    match part {
        Part::Record { part, .. } => inner(part),
        other => other,
    }
}

fn is_stored(length: &Length) -> bool {
    matches!(length, Length::Stored(_))
}
