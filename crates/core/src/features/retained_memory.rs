//! The memory that an engine's transactions retain: reports, collection, limit.

use crate::kernel::engine::Engine;
use crate::kernel::protocol::Protocol;
use crate::memory::retained::{self, RetainedMemory};

impl<P: Protocol> Engine<P> {
    /// Reports the bytes that the process retains now (replaced or removed, and not freed yet), this engine's limit,
    /// and the open transactions and walks that retain them, of all engines, the oldest first.
    ///
    /// The times for which they have been open, and the bytes that they retain, are lower bounds: they count from when
    /// a call of this function, or a thread that collected garbage, first saw them. The call visits each worker and
    /// each thread of the process.
    pub fn retained_memory(&self) -> RetainedMemory {
        self.shared.features.limit.report()
    }

    /// Frees what was replaced or removed and nobody can see any more, at once, and returns the bytes that the process still retains.
    ///
    /// That happens by and by as transactions make more of it, and when a transaction, a walk or a snapshot ends that has retained much. So
    /// the call is for a program that has deleted much and then rests. It cannot free what an open transaction or snapshot may still see,
    /// nor the last few values (64 at most) that each other thread has not handed over. It takes a time in proportion to what it frees, and
    /// runs the `Drop` of values.
    pub fn collect(&self) -> u64 {
        self.shared.features.snapshots.collect();
        retained::collect();
        retained::retained_bytes()
    }

    /// Limits the bytes that the process may retain while transactions of this engine go on; `None`, the default, for
    /// no limit. The limit may be changed at any time.
    ///
    /// While more is retained, a transaction that may write (its [`Profile`](crate::Profile) does not say that it only reads) waits
    /// before it begins, for up to 100 milliseconds or the retry policy's deadline. It collects garbage meanwhile. If
    /// that does not help, it fails with [`Error::MemoryLimit`](crate::Error::MemoryLimit), which names the oldest open transaction. If that one
    /// is of an engine with such a limit, and retains half of the limit or more, it is told to end: its next operation
    /// or its commit fails, it is rolled back, and its error is the same. A transaction that only waits for its user
    /// hears of it only when it goes on; that of an idle [`Session`](crate::Session) ends at once.
    ///
    /// The limit is not exact: each thread may gather a mebibyte more before it collects, and transactions in progress
    /// go on. Choose it well above the memory of the rows written in a few milliseconds: several mebibytes for each
    /// thread. In a simulation it has no effect.
    pub fn set_retained_bytes_max(&self, bytes_max: Option<u64>) {
        self.shared.features.limit.set(bytes_max);
    }
}
