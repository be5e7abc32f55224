//! A directory by its descriptor.

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, flock, open, openat, renameat, unlinkat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::Path;

/// A directory that is open: its descriptor, by which its files are reached.
#[derive(Debug)]
pub(super) struct Handle(File);

impl Handle {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(open(path, flags, Mode::empty())?.into()))
    }

    /// Locks the directory itself until all copies of the descriptor are closed.
    pub(super) fn lock(&self) -> io::Result<()> {
        // An interrupted call is repeated; it does not wait.
        loop {
            match flock(&self.0, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::INTR) => {}
                locked => return Ok(locked?),
            }
        }
    }

    fn open_file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let mode = Mode::from_raw_mode(0o666);
        Ok(openat(&self.0, name, flags | OFlags::CLOEXEC, mode)?.into())
    }

    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        self.open_file(name, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)
    }

    pub(super) fn open_to_write(&self, name: &str) -> io::Result<File> {
        self.open_file(name, OFlags::WRONLY)
    }

    pub(super) fn open_to_read(&self, name: &str) -> io::Result<File> {
        self.open_file(name, OFlags::RDONLY)
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.0, from, &self.0, to)?)
    }

    pub(super) fn delete(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// The names of all files. A name that is not Unicode is not one of a file of the log.
    pub(super) fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        // Reads by a descriptor of its own, which begins at the first name.
        for entry in Dir::read_from(&self.0)? {
            match entry?.file_name().to_str() {
                Ok("." | "..") | Err(_) => {}
                Ok(name) => names.push(name.to_owned()),
            }
        }
        Ok(names)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }
}

/// Makes the names in a directory durable.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
