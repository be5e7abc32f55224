//! The rows of a durable structure, as a checkpoint writes them.

use crate::error::CheckpointError;
use hotrow_core::{Protocol, Snapshot, SnapshotReader};

/// The bytes of rows or values that are written at once.
pub(crate) const CHUNK_BYTES: usize = 1 << 18;

/// Writes the entries of rows.
pub(crate) type Sink<'s> = &'s mut dyn FnMut(&mut Vec<u8>) -> Result<(), CheckpointError>;

/// A table whose rows a checkpoint writes.
pub(crate) trait PutRows<P: Protocol>: Send + Sync {
    /// Writes the rows that a snapshot sees.
    fn put_rows(
        &self,
        reader: &mut SnapshotReader<P>,
        snapshot: &Snapshot<P>,
        sink: Sink<'_>,
    ) -> Result<(), CheckpointError>;
}
