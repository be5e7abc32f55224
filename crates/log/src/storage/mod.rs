//! Storage of the log: a set of named files.
//!
//! [`Directory`] keeps them in a directory of the file system. [`Faulty`] keeps them in memory and does to them what
//! devices and file systems do at their worst.

mod directory;
mod faulty;

pub use directory::Directory;
pub use faulty::{Fault, Faults, Faulty};

use std::io;

/// Named files, as the log needs them.
///
/// # What the log relies on
///
/// - Bytes of a file that were written before a successful [`sync`](Self::sync) of it survive a loss of power
///   unchanged. Bytes written since may be there, partly there or garbage, or what they replaced. A write never changes a
///   sector (512 bytes) of which it writes no byte.
/// - The names that were valid before a successful [`sync_directory`](Self::sync_directory) survive. Each later
///   creation, renaming or deletion survives whole or not at all.
/// - A failed `write` may have written any part. After a failed `sync` nothing is known of what was not synced before,
///   and a later success says nothing about it. The log never uses such a file again, except for reading it.
///
/// Methods may be called from several threads at once; the log never has two calls at once that change one file.
pub trait Storage: Send + Sync + 'static {
    /// Claims the storage for one log.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] if another log has it.
    fn lock(&self) -> io::Result<()>;

    /// Ends the claim of [`lock`](Self::lock).
    fn unlock(&self);

    /// Creates an empty file. Empties it if it exists.
    ///
    /// # Errors
    ///
    /// Those of the storage.
    fn create(&self, name: &str) -> io::Result<()>;

    /// Writes a part of `bytes` from `offset` on, at least one byte unless there are none. Returns how many bytes were written.
    ///
    /// The offset is the end of the file or lies before it, where the log writes only over zeros that it has written ahead, and in a
    /// file of a segment that is not needed any more.
    ///
    /// # Errors
    ///
    /// Those of the storage; [`io::ErrorKind::StorageFull`] if there is no room. [`io::ErrorKind::Interrupted`] means
    /// that nothing was written.
    fn write(&self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<usize>;

    /// Makes the content of a file durable.
    ///
    /// # Errors
    ///
    /// Those of the storage.
    fn sync(&self, name: &str) -> io::Result<()>;

    /// Reads a part of a file from `offset`. Returns how many bytes were read: 0 at the file's end or if `into` is empty.
    ///
    /// # Errors
    ///
    /// Those of the storage; [`io::ErrorKind::NotFound`] if there is no such file.
    fn read(&self, name: &str, offset: u64, into: &mut [u8]) -> io::Result<usize>;

    /// The number of bytes of a file.
    ///
    /// # Errors
    ///
    /// Those of the storage; [`io::ErrorKind::NotFound`] if there is no such file.
    fn length(&self, name: &str) -> io::Result<u64>;

    /// Gives a file another name. A file that had that name is deleted in the same step.
    ///
    /// # Errors
    ///
    /// Those of the storage.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Deletes a file.
    ///
    /// # Errors
    ///
    /// Those of the storage; [`io::ErrorKind::NotFound`] if there is no such file.
    fn delete(&self, name: &str) -> io::Result<()>;

    /// The names of all files, in any order.
    ///
    /// # Errors
    ///
    /// Those of the storage.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes the names of the files durable.
    ///
    /// # Errors
    ///
    /// Those of the storage.
    fn sync_directory(&self) -> io::Result<()>;
}

/// Creates an empty file under a name that no other file has on the device, either. Otherwise a loss of power could leave the older file
/// under this name, and with a later renaming in the place of the new one.
pub(crate) fn create_new(storage: &dyn Storage, name: &str) -> io::Result<()> {
    match storage.delete(name) {
        Ok(()) => storage.sync_directory()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    storage.create(name)
}

/// Writes all of `bytes`, however many steps the storage makes of it.
pub(crate) fn write_all(
    storage: &dyn Storage,
    name: &str,
    mut offset: u64,
    mut bytes: &[u8],
) -> io::Result<()> {
    while !bytes.is_empty() {
        match storage.write(name, offset, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                offset += written as u64;
                bytes = bytes.get(written..).unwrap_or_default();
            }
            // Nothing was written, so this is no retry of a failed write.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The number of times that something harmless (a read, a look at the names) is tried.
const ATTEMPTS: u32 = 4;

/// Calls `operation` until it succeeds, a few times at most. For operations that change nothing.
pub(crate) fn with_retries<T>(mut operation: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut attempt = 1;
    loop {
        match operation() {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::WouldBlock) => {
                return Err(error);
            }
            Err(_) if attempt < ATTEMPTS => attempt += 1,
            result => return result,
        }
    }
}

/// Bytes that are copied at once.
const COPIED_BYTES: usize = if cfg!(debug_assertions) { 8 << 10 } else { 1 << 20 };

/// The side on which a copy failed.
pub(crate) enum CopyFault {
    Read,
    Write,
}

/// The error of a copy.
pub(crate) struct CopyError {
    pub(crate) at: CopyFault,
    pub(crate) offset: u64,
    pub(crate) error: io::Error,
}

/// Copies the first bytes of a file to a new one, and syncs it. `edit` may change the first piece.
pub(crate) fn copy(
    from: &dyn Storage,
    name: &str,
    to: &dyn Storage,
    new_name: &str,
    bytes: u64,
    edit: &mut dyn FnMut(&mut [u8]),
) -> Result<(), CopyError> {
    let failed = |at, offset, error| CopyError { at, offset, error };
    let write_failed = |offset| move |error| failed(CopyFault::Write, offset, error);
    create_new(to, new_name).map_err(write_failed(0))?;
    let mut buffer = vec![0; COPIED_BYTES.min(usize::try_from(bytes).unwrap_or(usize::MAX))];
    let mut offset = 0;
    while offset < bytes {
        let piece = &mut buffer[..COPIED_BYTES.min((bytes - offset) as usize)];
        let read = read_full(from, name, offset, piece);
        let read = read.map_err(|error| failed(CopyFault::Read, offset, error))?;
        if read < piece.len() {
            return Err(failed(CopyFault::Read, offset, io::ErrorKind::UnexpectedEof.into()));
        }
        if offset == 0 {
            edit(piece);
        }
        write_all(to, new_name, offset, piece).map_err(write_failed(offset))?;
        offset += piece.len() as u64;
    }
    to.sync(new_name).map_err(write_failed(bytes))
}

/// Reads until `into` is full or the file ends. Returns how many bytes were read. Retries errors.
pub(crate) fn read_full(
    storage: &dyn Storage,
    name: &str,
    offset: u64,
    into: &mut [u8],
) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        let read = with_retries(|| storage.read(name, offset + filled as u64, &mut into[filled..]))?;
        if read == 0 {
            break;
        }
        filled = (filled + read).min(into.len());
    }
    Ok(filled)
}
