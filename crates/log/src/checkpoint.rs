//! Checkpoints: all rows as of an epoch, in a file of its own.
//!
//! # Order of steps
//!
//! The file is written under a temporary name, synced and renamed, and the directory is synced. Only then are older
//! checkpoints and segments deleted. So after a crash between any two steps either the old checkpoint is there with all
//! segments since, or the new one.

use crate::entry::{self, Change};
use crate::files::CheckpointState;
use crate::layout::{
    CHECKPOINT_MAGIC, TEMPORARY, begin_header, checkpoint_name, put_u64, seal_header, segment_name,
};
use crate::recovery::checkpoint::{
    BLOCK_HEADER, BlockHeader, CHECKPOINT_HEADER, END_BYTES, END_MAGIC, ROWS_MAGIC,
};
use crate::shared::{Claim, Shared};
use crate::storage::write_all;
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
    /// Bytes that the log had written when the checkpoint was begun.
    log_bytes: u64,
}

impl Log {
    /// Begins a checkpoint. The rows given to the writer must be exactly those that the commits of epochs below `epoch`
    /// leave, so they are read from a snapshot. Commits go on meanwhile.
    ///
    /// Once it is [finished](CheckpointWriter::finish), recovery skips the log's records of smaller epochs, and segments
    /// that hold only such ones are deleted. The next batch begins a new segment, so that all that is older can go.
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
        // Relaxed, both: a request for some time soon, and a counter.
        shared.rotate.store(true, Ordering::Relaxed);
        let log_bytes = shared.counts.bytes.load(Ordering::Relaxed);
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
            log_bytes,
        };
        writer.create()?;
        Ok(writer)
    }
}

impl CheckpointWriter {
    fn create(&mut self) -> Result<(), CheckpointError> {
        let created = self.claim.storage().create(&self.temporary);
        created.map_err(|error| CheckpointError::io("create", &self.temporary, 0, error))?;
        let mut header = [0; CHECKPOINT_HEADER];
        begin_header(&mut header, CHECKPOINT_MAGIC);
        put_u64(&mut header, 16, self.number);
        put_u64(&mut header, 24, self.epoch);
        seal_header(&mut header);
        self.append(&header)
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
        let (first, last) = self.segments();
        self.block.resize(BLOCK_HEADER + END_BYTES, 0);
        put_u64(&mut self.block, BLOCK_HEADER, self.rows);
        put_u64(&mut self.block, BLOCK_HEADER + 8, first);
        put_u64(&mut self.block, BLOCK_HEADER + 16, last);
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
        self.replace(first);
        Ok(self.offset)
    }

    /// The first segment that may hold later records, and the last one there is.
    fn segments(&self) -> (u64, u64) {
        let files = lock(&self.shared.files);
        // The last one is being written, so it may get later records even if it has none.
        let last = files.segments.back().map_or(1, |segment| segment.number);
        let first = files.segments.iter().find(|segment| segment.bound > self.epoch);
        (first.map_or(last, |segment| segment.number), last)
    }

    /// Notes the finished checkpoint, and deletes what is not needed any more.
    fn replace(&self, first: u64) {
        {
            let mut files = lock(&self.shared.files);
            let files = &mut *files;
            let state = CheckpointState { number: self.number, epoch: self.epoch, bytes: self.offset };
            if let Some(old) = files.checkpoint.replace(state) {
                files.obsolete.push(checkpoint_name(old.number));
            }
            files.obsolete.append(&mut files.obsolete_later);
            while files.segments.front().is_some_and(|segment| segment.number < first) {
                files.obsolete.extend(files.segments.pop_front().map(|old| segment_name(old.number)));
            }
        }
        // Relaxed: for reports.
        self.shared.counts.bytes_before_checkpoint.store(self.log_bytes, Ordering::Relaxed);
        self.shared.delete_obsolete();
        self.shared.note_space();
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
        // If it was finished, there is no such file any more. What cannot be deleted is so when the log is opened again.
        let _ = self.claim.storage().delete(&self.temporary);
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
