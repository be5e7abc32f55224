//! Checkpoints: all rows as of an epoch, in a file of its own.
//!
//! # Order of steps
//!
//! The file is written under a temporary name, synced and renamed, and the directory is synced. Then the catalog is written, which
//! lists it. Only then are older checkpoints and segments deleted. So after a crash between any two steps either the old checkpoint is
//! there with all segments since, or the new one.
//!
//! The segment that was being written when the checkpoint began is superfluous, too, once the logger has begun a new one. It does so at
//! once, even if there is nothing to write, and whichever of the two comes later, the new segment or the checkpoint, takes it out.

use crate::catalog::FilesChange;
use crate::entry::{self, Change};
use crate::files::CheckpointState;
use crate::layout::{CATALOG, TEMPORARY, checkpoint_name, put_u64};
use crate::recovery::checkpoint::{
    BLOCK_HEADER, BlockHeader, CheckpointHeader, END_BYTES, END_MAGIC, ROWS_MAGIC,
};
use crate::shared::{Claim, Shared};
use crate::storage::{create_new, write_all};
use crate::{CheckpointError, Log};
use hotrow_sync::atomic::Ordering;
use hotrow_sync::lock;
use std::sync::Arc;

/// Bytes after which a block is written.
const BLOCK_BYTES: usize = if cfg!(debug_assertions) { 4 << 10 } else { 256 << 10 };

/// Writer of a checkpoint. Dropped unfinished, it leaves everything as it was.
pub struct CheckpointWriter {
    shared: Arc<Shared>,
    claim: Arc<Claim>,
    number: u64,
    epoch: u64,
    temporary: String,
    /// Bytes of the file so far.
    offset: u64,
    rows: u64,
    /// The block being made, with room for its header.
    block: Vec<u8>,
    is_finished: bool,
}

impl Log {
    /// Begins a new segment. Segments that were begun before it have no records of epochs that begin later, so a checkpoint of such an epoch
    /// replaces all of them. Waits for the logger, if it has a thread.
    pub fn begin_segment(&self) {
        self.shared().ask_for_segment();
        self.shared().wait_for_segment();
    }

    /// Begins a checkpoint. The rows given to the writer must be exactly those that the commits of epochs below `epoch`
    /// leave, so they are read from a snapshot. Commits go on meanwhile.
    ///
    /// Once it is [finished](CheckpointWriter::finish), recovery skips the log's records of smaller epochs, and segments
    /// that hold only such ones are deleted. The logger begins a new segment, so that all that is older can go.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Busy`] if another one is being written, [`CheckpointError::TooOld`], the log's failure, errors of
    /// the storage.
    pub fn begin_checkpoint(&self, epoch: u64) -> Result<CheckpointWriter, CheckpointError> {
        let shared = Arc::clone(self.shared());
        shared.check()?;
        let claim = shared.claim()?;
        let number = {
            let mut files = lock(&shared.files);
            if files.checkpoint_running {
                return Err(CheckpointError::Busy);
            }
            let oldest = files.checkpoint.map_or(0, |newest| newest.epoch + 1).max(files.epoch_min);
            if epoch < oldest {
                return Err(CheckpointError::TooOld { epoch, oldest });
            }
            files.checkpoint_running = true;
            files.next_checkpoint += 1;
            files.next_checkpoint - 1
        };
        // Workers that wait for room wait for this checkpoint now.
        shared.progress.notify_all();
        shared.ask_for_segment();
        let temporary = format!("{}{TEMPORARY}", checkpoint_name(number));
        // From here on its drop takes everything back.
        let mut writer = CheckpointWriter {
            shared,
            claim,
            number,
            epoch,
            temporary,
            offset: 0,
            rows: 0,
            block: vec![0; BLOCK_HEADER],
            is_finished: false,
        };
        writer.create()?;
        Ok(writer)
    }
}

impl Shared {
    /// Asks the logger to begin a new segment.
    fn ask_for_segment(&self) {
        // Release: pairs with the acquire of the logger.
        self.rotate.store(true, Ordering::Release);
        self.wake_logger();
    }

    /// Waits until the logger has begun the segment that was asked for, if it has a thread.
    fn wait_for_segment(&self) {
        // Relaxed: if it is not seen yet, the log becomes small a little later.
        if self.logger_thread.load(Ordering::Relaxed) != 0 {
            // Acquire: pairs with the release of the logger.
            self.progress.wait_until(|| !self.rotate.load(Ordering::Acquire) || self.check().is_err());
        }
    }
}

impl CheckpointWriter {
    fn create(&mut self) -> Result<(), CheckpointError> {
        let created = create_new(&**self.claim.storage(), &self.temporary);
        created.map_err(|error| CheckpointError::io("create", &self.temporary, 0, error))?;
        let header = CheckpointHeader {
            number: self.number,
            epoch: self.epoch,
            identity: self.shared.identity,
            // Acquire: pairs with the release of the change.
            generation: self.shared.generation.load(Ordering::Acquire),
        };
        self.append(&header.encode())
    }

    /// Epoch of the checkpoint: it has the commits of smaller epochs.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Adds rows: entries of whole rows, as [`entry::put`] makes them. Of a row that is given twice the later value counts.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Malformed`], errors of the storage. The writer can only be dropped then.
    pub fn put(&mut self, entries: &[u8]) -> Result<(), CheckpointError> {
        let mut reader = entry::read(entries);
        loop {
            let start = reader.offset();
            match reader.next() {
                None => return Ok(()),
                Some(Ok(entry)) if matches!(entry.change, Change::Put(_)) => {}
                Some(Ok(_)) => {
                    let reason = format!("the entry at byte {start} is not that of a whole row");
                    return Err(CheckpointError::Malformed(reason));
                }
                Some(Err(fault)) => return Err(CheckpointError::Malformed(fault.to_string())),
            }
            self.block.extend_from_slice(&entries[start..reader.offset()]);
            self.rows += 1;
            if self.block.len() >= BLOCK_BYTES {
                self.write_block(ROWS_MAGIC)?;
            }
        }
    }

    /// Makes the checkpoint durable, and deletes what it replaces. Returns its bytes.
    ///
    /// # Errors
    ///
    /// The log's failure, errors of the storage. If the last step failed, the checkpoint may count or not when the log is
    /// opened the next time; both are right.
    pub fn finish(mut self) -> Result<u64, CheckpointError> {
        self.shared.check()?;
        if self.block.len() > BLOCK_HEADER {
            self.write_block(ROWS_MAGIC)?;
        }
        self.block.resize(BLOCK_HEADER + END_BYTES, 0);
        put_u64(&mut self.block, BLOCK_HEADER, self.rows);
        self.write_block(END_MAGIC)?;
        let storage = self.claim.storage();
        let failed = |operation| {
            let (file, offset) = (&self.temporary, self.offset);
            move |error| CheckpointError::io(operation, file, offset, error)
        };
        storage.sync(&self.temporary).map_err(failed("sync"))?;
        let name = checkpoint_name(self.number);
        let renamed = storage.rename(&self.temporary, &name).and_then(|()| storage.sync_directory());
        if renamed.is_err() {
            // It may be there now. A later checkpoint replaces it.
            lock(&self.shared.files).obsolete_later.push(name.clone());
        }
        renamed.map_err(failed("rename"))?;
        // So that the log is small when the caller goes on.
        self.shared.wait_for_segment();
        let checkpoint = CheckpointState { number: self.number, epoch: self.epoch, bytes: self.offset };
        let change = FilesChange { checkpoint: Some(checkpoint), ..FilesChange::default() };
        let entered = self.shared.change_catalog(&**storage, change, |_| ());
        if entered.is_err() {
            lock(&self.shared.files).obsolete_later.push(name);
        }
        entered.map_err(|(operation, error)| CheckpointError::io(operation, CATALOG, 0, error))?;
        // Relaxed: for reports.
        self.shared.counts.checkpoints.fetch_add(1, Ordering::Relaxed);
        self.is_finished = true;
        self.shared.delete_obsolete();
        self.shared.note_space();
        Ok(self.offset)
    }

    /// Writes the block with its header, and begins the next one.
    fn write_block(&mut self, magic: u32) -> Result<(), CheckpointError> {
        let payload = &self.block[BLOCK_HEADER..];
        let bytes = u32::try_from(payload.len());
        let header = BlockHeader {
            magic,
            bytes: bytes.map_err(|_| CheckpointError::Malformed("a row has more than 4 GiB".into()))?,
            offset: self.offset,
            epoch: self.epoch,
            checksum: crc32c::crc32c(payload),
        };
        self.block[..BLOCK_HEADER].copy_from_slice(&header.encode());
        let block = std::mem::take(&mut self.block);
        let written = self.append(&block);
        self.block = block;
        self.block.truncate(BLOCK_HEADER);
        written
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), CheckpointError> {
        let written = write_all(&**self.claim.storage(), &self.temporary, self.offset, bytes);
        written.map_err(|error| CheckpointError::io("write", &self.temporary, self.offset, error))?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

impl Drop for CheckpointWriter {
    fn drop(&mut self) {
        if !self.is_finished {
            // What cannot be deleted is so when the log is opened again.
            let _ = self.claim.storage().delete(&self.temporary);
            // Relaxed: a counter for reports.
            self.shared.counts.checkpoints_failed.fetch_add(1, Ordering::Relaxed);
        }
        lock(&self.shared.files).checkpoint_running = false;
        self.shared.progress.notify_all();
    }
}

impl Shared {
    /// Deletes the files that are not needed, unless a backup may be reading them.
    pub(crate) fn delete_obsolete(&self) {
        let Ok(claim) = self.claim() else { return };
        let obsolete = {
            let mut files = lock(&self.files);
            if files.backups > 0 {
                return;
            }
            std::mem::take(&mut files.obsolete)
        };
        let mut left = Vec::new();
        for name in obsolete {
            match claim.storage().delete(&name) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(_) => left.push(name),
            }
        }
        // The next checkpoint tries again, and so does the next opening.
        lock(&self.files).obsolete.append(&mut left);
    }
}

impl std::fmt::Debug for CheckpointWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CheckpointWriter")
            .field("epoch", &self.epoch)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}
