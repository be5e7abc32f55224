//! Files in a directory of the file system.

use super::Storage;
use crate::layout::FileName;
use hotrow_sync::atomic::{AtomicBool, Ordering};
use hotrow_sync::{Mutex, lock};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file whose lock says that a process uses the directory. It is empty and stays.
const LOCK_FILE: &str = "lock";

/// A directory of the file system, used by one process at a time.
///
/// A file stays open from its first write to its sync at least, so that the handle that has written it is the one that syncs
/// it. Others are closed when a new file is created, so that the number of open files does not grow with the log.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    written: Mutex<HashMap<String, Written>>,
    claimed: AtomicBool,
    /// Locked until it is closed, by the drop of this value or the end of the process.
    _lock: File,
}

impl Directory {
    /// Takes a directory for this process alone, and creates it if it is missing.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] if another process, or another `Directory` of this one, has it; errors of the file
    /// system. The message names the path.
    pub fn new(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        if !path.is_dir() {
            fs::create_dir_all(path).map_err(|error| named(path, &error))?;
            // The directory's own name must survive, too.
            if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                sync_directory(parent).map_err(|error| named(parent, &error))?;
            }
        }
        Self::claim(path.to_owned())
    }

    /// As [`new`](Self::new), but only for a directory that holds files of a log. Creates nothing where there is none.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new); [`io::ErrorKind::NotFound`] if there is no such directory, or no log in it.
    pub fn existing(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().to_owned();
        let entries = fs::read_dir(&path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = entries.map_err(|error| named(&path, &error))?;
        let is_of_log = |name: &str| FileName::parse(name).is_some();
        if !entries.iter().any(|entry| entry.file_name().to_str().is_some_and(is_of_log)) {
            let message = format!("{} has no log of a database", path.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
        Self::claim(path)
    }

    fn claim(path: PathBuf) -> io::Result<Self> {
        let file = path.join(LOCK_FILE);
        let lock = OpenOptions::new().write(true).create(true).truncate(false).open(&file);
        let lock = lock.map_err(|error| named(&file, &error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = format!(
                    "{} is in use: a database of this process or of another has it open",
                    path.display()
                );
                return Err(io::Error::new(io::ErrorKind::WouldBlock, message));
            }
            Err(TryLockError::Error(error)) => return Err(named(&file, &error)),
        }
        let written = Mutex::new(HashMap::new());
        Ok(Self { path, written, claimed: AtomicBool::new(false), _lock: lock })
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The handle for writes and syncs.
    fn for_writing(&self, name: &str) -> io::Result<Arc<File>> {
        let mut written = lock(&self.written);
        if let Some(open) = written.get(name) {
            return Ok(Arc::clone(&open.file));
        }
        let file = Arc::new(OpenOptions::new().write(true).open(self.path.join(name))?);
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

#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Other systems cannot sync a directory; their file systems journal names by themselves.
#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
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
        let mut written = lock(&self.written);
        written.retain(|other, open| !open.is_synced && other != name);
        let file = File::create(self.path.join(name))?;
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
        read_at(&File::open(self.path.join(name))?, offset, into)
    }

    fn length(&self, name: &str) -> io::Result<u64> {
        Ok(fs::metadata(self.path.join(name))?.len())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut written = lock(&self.written);
        fs::rename(self.path.join(from), self.path.join(to))?;
        written.remove(to);
        if let Some(open) = written.remove(from) {
            written.insert(to.to_owned(), open);
        }
        Ok(())
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        lock(&self.written).remove(name);
        fs::remove_file(self.path.join(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            // A name that is not Unicode is not a file of the log.
            let Ok(name) = entry?.file_name().into_string() else { continue };
            if name != LOCK_FILE {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn sync_directory(&self) -> io::Result<()> {
        sync_directory(&self.path)
    }
}
