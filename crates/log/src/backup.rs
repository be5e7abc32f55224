//! Backups of a running log.

use crate::catalog;
use crate::layout::{CATALOG, checkpoint_name, segment_name};
use crate::shared::{Claimed, Shared};
use crate::storage::{Storage, read_full, with_retries, write_all};
use crate::{BackupError, Log};
use hotrow_sync::lock;

/// Bytes that are copied at once.
const CHUNK: usize = 1 << 20;

/// Keeps the log's files from being deleted.
struct KeptFiles<'a>(&'a Shared);

impl Drop for KeptFiles<'_> {
    fn drop(&mut self) {
        lock(&self.0.files).backups -= 1;
        self.0.delete_obsolete();
    }
}

impl Log {
    /// Copies the newest checkpoint, the segments since and the catalog to empty storage. Commits go on meanwhile.
    ///
    /// The copy recovers to all commits of some epoch and earlier ones; all that was appended before the call is among
    /// them. It is complete only if the call succeeds: the catalog is written last, and without it the copy cannot be
    /// opened. [`verify`](crate::verify) checks a copy.
    ///
    /// # Errors
    ///
    /// [`BackupError::NotEmpty`], the log's failure, errors of either storage.
    pub fn backup(&self, to: &dyn Storage) -> Result<(), BackupError> {
        let write = |file: &str, offset, error| BackupError::Write { file: file.to_owned(), offset, error };
        let _claimed = Claimed::new(to).map_err(|error| write("", 0, error))?;
        if let Some(name) = to.list().map_err(|error| write("", 0, error))?.into_iter().next() {
            return Err(BackupError::NotEmpty(name));
        }
        self.flush()?;
        let shared = &**self.shared();
        let claim = shared.claim()?;
        let (checkpoint, segments) = {
            let mut files = lock(&shared.files);
            files.backups += 1;
            (files.checkpoint, files.segments.clone())
        };
        let _kept = KeptFiles(shared);
        let mut copies = Vec::new();
        copies.extend(checkpoint.map(|newest| (checkpoint_name(newest.number), newest.bytes)));
        // The last one up to what is durable; the logger may be writing behind it.
        copies.extend(segments.iter().map(|segment| (segment_name(segment.number), segment.bytes)));
        let mut buffer = vec![0; CHUNK];
        for (name, bytes) in copies {
            to.create(&name).map_err(|error| write(&name, 0, error))?;
            let mut offset = 0;
            while offset < bytes {
                let chunk = &mut buffer[..CHUNK.min((bytes - offset) as usize)];
                let read = read_full(&**claim.storage(), &name, offset, chunk);
                let failed = |error| BackupError::Read { file: name.clone(), offset, error };
                if read.map_err(failed)? < chunk.len() {
                    return Err(failed(std::io::ErrorKind::UnexpectedEof.into()));
                }
                write_all(to, &name, offset, chunk).map_err(|error| write(&name, offset, error))?;
                offset += chunk.len() as u64;
            }
            to.sync(&name).map_err(|error| write(&name, bytes, error))?;
        }
        with_retries(|| to.sync_directory()).map_err(|error| write("", 0, error))?;
        // After the segments were chosen, so that it has every structure that they name.
        let entries = lock(&shared.catalog).clone();
        catalog::store(to, &entries).map_err(|(_, error)| write(CATALOG, 0, error))
    }
}
