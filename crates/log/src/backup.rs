//! Backups of a running log.

use crate::catalog::Catalog;
use crate::layout::{CATALOG, SEGMENT_HEADER, SegmentHeader, checkpoint_name, segment_name};
use crate::logger::new_identity;
use crate::recovery::checkpoint::{CHECKPOINT_HEADER, CheckpointHeader};
use crate::shared::{Claimed, Shared};
use crate::storage::{CopyFault, Storage, copy, with_retries};
use crate::{BackupError, Log};
use hotrow_sync::lock;

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
    /// them. It is a database of its own, with another identity. Its catalog says first that it is not finished, and is written again at
    /// the end, so a copy that was interrupted is refused. [`verify`](crate::verify) checks a copy.
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
        let mut copied =
            Catalog { identity: new_identity(), is_unfinished_backup: true, ..Catalog::default() };
        let store = |catalog: &Catalog| catalog.store(to).map_err(|(_, error)| write(CATALOG, 0, error));
        store(&copied)?;
        self.flush()?;
        let shared = &**self.shared();
        let claim = shared.claim()?;
        let (catalog, checkpoint, segments) = {
            let catalog = lock(&shared.catalog);
            let mut files = lock(&shared.files);
            files.backups += 1;
            (catalog.clone(), files.checkpoint, files.segments.clone())
        };
        let _kept = KeptFiles(shared);
        let mut copies = Vec::new();
        copies.extend(checkpoint.map(|newest| (checkpoint_name(newest.number), newest.bytes, true)));
        // The last one up to what is durable; the logger may be writing behind it.
        copies.extend(segments.iter().map(|segment| (segment_name(segment.number), segment.bytes, false)));
        for (name, bytes, is_checkpoint) in copies {
            let mut edit = |piece: &mut [u8]| set_identity(piece, is_checkpoint, copied.identity);
            copy(&**claim.storage(), &name, to, &name, bytes, &mut edit).map_err(|error| match error.at {
                CopyFault::Read => {
                    BackupError::Read { file: name.clone(), offset: error.offset, error: error.error }
                }
                CopyFault::Write => write(&name, error.offset, error.error),
            })?;
        }
        with_retries(|| to.sync_directory()).map_err(|error| write("", 0, error))?;
        copied = Catalog { identity: copied.identity, ..catalog };
        copied.last_bytes = segments.back().map_or(0, |last| last.bytes);
        store(&copied)
    }
}

/// Gives the header at the beginning of a file another identity.
fn set_identity(piece: &mut [u8], is_checkpoint: bool, identity: u128) {
    if is_checkpoint {
        if let Some((header, _)) = piece.split_first_chunk_mut::<CHECKPOINT_HEADER>()
            && let Ok(old) = CheckpointHeader::decode(header)
        {
            *header = CheckpointHeader { identity, ..old }.encode();
        }
    } else if let Some((header, _)) = piece.split_first_chunk_mut::<SEGMENT_HEADER>()
        && let Ok(old) = SegmentHeader::decode(header)
    {
        *header = SegmentHeader { identity, ..old }.encode();
    }
}
