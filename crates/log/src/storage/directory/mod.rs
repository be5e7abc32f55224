//! Files in a directory of the file system.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(not(unix), path = "portable.rs")]
mod handle;

use super::Storage;
use crate::layout::FileName;
use handle::Handle;
use hotrow_sync::atomic::{AtomicBool, Ordering};
use hotrow_sync::process::Process;
use hotrow_sync::{Mutex, lock};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory of the file system, used by one process at a time.
///
/// The directory is held by a handle. Files are reached through it, so neither a change of the working directory nor another directory
/// that gets its name leads elsewhere. The handle is also what is locked, so there is no file whose deletion would end the lock. A fork
/// of the process has the handle, but may not change files.
///
/// A file stays open from its first write to its sync at least, so that the handle that has written it is the one that syncs
/// it. Others are closed when a new file is created, so that the number of open files does not grow with the log.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Locked until it is closed, by the drop of this value or the end of the process and its forks.
    handle: Handle,
    /// The process that has opened the directory.
    process: Process,
    written: Mutex<HashMap<String, Written>>,
    claimed: AtomicBool,
}

impl Directory {
    /// Takes a directory for this process alone, and creates it if it is missing, with those above it.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] if another process, or another `Directory` of this one, has it; [`io::ErrorKind::InvalidInput`] if
    /// the path is empty; errors of the file system. The message names the path.
    pub fn new(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = absolute(path.as_ref())?;
        make_directories(&path, &mut handle::sync_directory)?;
        Self::claim(path)
    }

    /// As [`new`](Self::new), but only for a directory that holds files of a log. Creates and changes nothing, so it may be on a
    /// medium that can only be read.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new); [`io::ErrorKind::NotFound`] if there is no such directory, or no log in it.
    pub fn existing(path: impl AsRef<Path>) -> io::Result<Self> {
        let directory = Self::claim(absolute(path.as_ref())?)?;
        let names = directory.list().map_err(|error| named(&directory.path, &error))?;
        if names.iter().any(|name| FileName::parse(name).is_some()) {
            return Ok(directory);
        }
        let message = format!("{} has no log of a database", directory.path.display());
        Err(io::Error::new(io::ErrorKind::NotFound, message))
    }

    fn claim(path: PathBuf) -> io::Result<Self> {
        let handle = Handle::open(&path).map_err(|error| named(&path, &error))?;
        handle.lock().map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => {
                let path = path.display();
                let message = format!(
                    "{path} is in use: close the database that this process or another has open there"
                );
                io::Error::new(io::ErrorKind::WouldBlock, message)
            }
            _ => named(&path, &error),
        })?;
        let (process, written) = (Process::current(), Mutex::new(HashMap::new()));
        Ok(Self { path, handle, process, written, claimed: AtomicBool::new(false) })
    }

    /// The path of the directory when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An error in a fork of the process that has opened the directory.
    fn check_process(&self) -> io::Result<()> {
        if self.process.owns_files() {
            return Ok(());
        }
        let message = format!("{} belongs to the process of which this one is a fork", self.path.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    }

    /// The handle for writes and syncs.
    fn for_writing(&self, name: &str) -> io::Result<Arc<File>> {
        self.check_process()?;
        let mut written = lock(&self.written);
        if let Some(open) = written.get(name) {
            return Ok(Arc::clone(&open.file));
        }
        let file = Arc::new(self.handle.open_to_write(name)?);
        written.insert(name.to_owned(), Written { file: Arc::clone(&file), is_synced: true });
        Ok(file)
    }

    fn set_synced(&self, name: &str, is_synced: bool) {
        if let Some(open) = lock(&self.written).get_mut(name) {
            open.is_synced = is_synced;
        }
    }
}

/// A file that is open for writes.
#[derive(Debug)]
struct Written {
    file: Arc<File>,
    /// True if nothing was written since the last sync.
    is_synced: bool,
}

/// The error with the path in its message.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn absolute(path: &Path) -> io::Result<PathBuf> {
    if path.as_os_str().is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path of the database's directory is empty",
        ));
    }
    std::path::absolute(path).map_err(|error| named(path, &error))
}

/// Creates a directory and those above it that are missing. The name of each survives a loss of power: its parent is synced.
fn make_directories(path: &Path, sync: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let Some(parent) = path.parent() else { return Ok(()) };
    make_directories(parent, sync)?;
    match fs::create_dir(path) {
        // Somebody else has just made it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
        created => created.map_err(|error| named(path, &error))?,
    }
    sync(parent).map_err(|error| named(parent, &error))
}

#[cfg(unix)]
fn read_at(file: &File, offset: u64, into: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, offset)
}

#[cfg(unix)]
fn write_at(file: &File, offset: u64, bytes: &[u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::write_at(file, bytes, offset)
}

// On Windows these move the handle's position, which nothing uses.
#[cfg(windows)]
fn read_at(file: &File, offset: u64, into: &mut [u8]) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, into, offset)
}

#[cfg(windows)]
fn write_at(file: &File, offset: u64, bytes: &[u8]) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_write(file, bytes, offset)
}

impl Storage for Directory {
    fn lock(&self) -> io::Result<()> {
        self.check_process()?;
        // Acquire: pairs with the release in `unlock`, so that the next log sees all that the last one has done.
        match self.claimed.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(_) => {
                let message = format!("{} is in use by another log of this process", self.path.display());
                Err(io::Error::new(io::ErrorKind::WouldBlock, message))
            }
        }
    }

    fn unlock(&self) {
        // Release: pairs with the acquire in `lock`.
        self.claimed.store(false, Ordering::Release);
    }

    fn create(&self, name: &str) -> io::Result<()> {
        self.check_process()?;
        let mut written = lock(&self.written);
        written.retain(|other, open| !open.is_synced && other != name);
        let file = self.handle.create(name)?;
        written.insert(name.to_owned(), Written { file: Arc::new(file), is_synced: false });
        Ok(())
    }

    fn write(&self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let file = self.for_writing(name)?;
        self.set_synced(name, false);
        write_at(&file, offset, bytes)
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        // The length is among the metadata that `sync_data` makes durable, as the data cannot be read without it.
        self.for_writing(name)?.sync_data()?;
        self.set_synced(name, true);
        Ok(())
    }

    fn read(&self, name: &str, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        read_at(&self.handle.open_to_read(name)?, offset, into)
    }

    fn length(&self, name: &str) -> io::Result<u64> {
        Ok(self.handle.open_to_read(name)?.metadata()?.len())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.check_process()?;
        let mut written = lock(&self.written);
        self.handle.rename(from, to)?;
        written.remove(to);
        if let Some(open) = written.remove(from) {
            written.insert(to.to_owned(), open);
        }
        Ok(())
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.check_process()?;
        lock(&self.written).remove(name);
        self.handle.delete(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.handle.list()
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.check_process()?;
        self.handle.sync()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_each_new_directory_is_synced() {
        let root = std::env::temp_dir().join(format!("hotrow-new-directories-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let mut synced = Vec::new();
        let mut sync = |path: &Path| {
            synced.push(path.to_owned());
            Ok(())
        };
        make_directories(&root.join("a/b/c"), &mut sync).unwrap();
        make_directories(&root.join("a/b/c"), &mut sync).unwrap();
        make_directories(&root.join("a/d"), &mut sync).unwrap();
        let parent = |path: &str| root.join(path);
        let above = root.parent().unwrap().to_owned();
        assert_eq!(synced, [above, root.clone(), parent("a"), parent("a/b"), parent("a")]);
        assert!(root.join("a/b/c").is_dir());
        fs::remove_dir_all(&root).unwrap();
    }
}
