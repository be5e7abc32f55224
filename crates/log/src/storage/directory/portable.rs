//! A directory by its absolute path, where there is no access by descriptors.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The file whose lock stands for the directory's. Systems without access by descriptors do not let an open file be deleted.
const LOCK_FILE: &str = "lock";

/// A directory, and the file in it that is locked.
#[derive(Debug)]
pub(super) struct Handle {
    path: PathBuf,
    lock: File,
}

impl Handle {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let lock = OpenOptions::new().write(true).create(true).truncate(false).open(path.join(LOCK_FILE))?;
        Ok(Self { path: path.to_owned(), lock })
    }

    pub(super) fn lock(&self) -> io::Result<()> {
        self.lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
            TryLockError::Error(error) => error,
        })
    }

    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        File::create(self.path.join(name))
    }

    pub(super) fn open_to_write(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.path.join(name))
    }

    pub(super) fn open_to_read(&self, name: &str) -> io::Result<File> {
        File::open(self.path.join(name))
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    pub(super) fn delete(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    /// The names of all files. A name that is not Unicode is not one of a file of the log.
    pub(super) fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let Ok(name) = entry?.file_name().into_string() else { continue };
            if name != LOCK_FILE {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// These systems cannot sync a directory; their file systems journal names by themselves.
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// As [`Handle::sync`].
pub(super) fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}
