//! Retained memory: values that were replaced or removed and are not freed yet.
//!
//! Values are freed by epoch ([`Pin`](crate::Pin)), so all values retired since the oldest open transaction of the
//! *process* began stay in memory. (An epoch for each engine would not help the engine with the long transaction, and a thread that uses two
//! engines would pay for two pins.) This module measures that memory, names the transaction that retains it, and limits
//! it.
//!
//! # Counting
//!
//! Each thread counts the bytes that it retires and those that it frees (`tally`); the retained bytes are the
//! difference of the sums.
//!
//! # Holders
//!
//! Each worker has a [`Holder`] in a registry of the process: one word, with a serial number that is new for each
//! attempt and a bit that is set while the attempt is open. The worker stores it twice an attempt and reads no clock. A
//! thread that *looks* at the registry notes the time at which it saw each word first, and the number of bytes retired
//! by then. So a report of a holder is a lower bound: it has been open *at least* that long and retains *at least* that
//! many bytes. Threads look after they have asked for a collection, at most every 5 milliseconds if no limit is set, so
//! that some thread looks wherever garbage is made.
//!
//! # The end of a holder
//!
//! While some open transaction is seen to retain [`KEPT_MIN`](holders) bytes or more, those that end look at the registry once more, and one
//! that has retained so much collects: otherwise all that waited for it would stay until somebody makes more garbage.
//!
//! # The limit
//!
//! An engine may have a limit ([`Engine::set_retained_bytes_max`](crate::Engine::set_retained_bytes_max)). It is
//! compared with all bytes that the process retains, because the epoch is the process's, and binds the transactions of
//! that engine:
//!
//! - A transaction that may write does not begin while more is retained. It collects garbage, waits for up to 100
//!   milliseconds without holding locks, and then fails with [`Error::MemoryLimit`](crate::Error::MemoryLimit).
//! - The process's oldest open transaction is told to end, if it retains half of the limit or more and its engine has a
//!   limit that is exceeded. It hears of that at its next operation or at its commit, is rolled back, and fails with
//!   the same error. It is not retried, because it would take as long the next time.
//!
//! The half keeps short transactions from being blamed for garbage that no thread has collected yet. If the oldest is
//! another engine's without such a limit, none is told, and the error names it.
//!
//! The transaction of a [session](crate::Session) may be told to end by a call, too (`Holder::cancel`). It hears of that in
//! the same way, and besides while it waits for a lock ([`WaitLimit`](crate::WaitLimit)). A session that is told to end while
//! it idles ends at once.
//!
//! A thread looks only when it asks for a collection, and counts the bytes of retired values only when it unpins. So
//! the limit may be exceeded by a mebibyte for each thread, and by what the transactions in progress retire.
//!
//! In a simulation no thread looks, and no limit holds: its cores are one thread, which pins and collects as one. The
//! same is true of models.

mod holders;
mod limit;
mod tally;

pub(crate) use holders::{
    Holder, NOBODY, Told, after_holder, is_anybody_noticed, is_anybody_told, is_worth_yielding, make_session,
    register, release, replace, told_cause, told_error, was_seen_to_retain, watch,
};
pub(crate) use limit::Limit;
pub use limit::MemoryLimit;
pub(crate) use tally::{count_freed, count_retired, freed_here};

use crate::memory::identity::EngineId;
use crate::memory::identity::WorkerId;
use crate::memory::pin::collect_all;
use crate::memory::users_code::contained;
use std::fmt;
use std::time::Duration;

/// The memory that the process retains, and its holders: see
/// [`Engine::retained_memory`](crate::Engine::retained_memory).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetainedMemory {
    /// Bytes of values, rows and index nodes that were replaced or removed and are not freed yet.
    pub bytes: u64,
    /// The engine's limit, if it has one.
    pub bytes_max: Option<u64>,
    /// The open transactions and walks of the whole process, the oldest first.
    pub holders: Vec<MemoryHolder>,
}

impl RetainedMemory {
    /// The oldest open transaction or walk, which retains the most.
    pub fn oldest(&self) -> Option<&MemoryHolder> {
        self.holders.first()
    }
}

/// An open transaction, or a walk over a table. Values retired while it is open cannot be freed before it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryHolder {
    /// Its engine.
    pub engine: EngineId,
    /// Its kind.
    pub kind: HolderKind,
    /// The name of the thread that began it; the thread's identifier if it has no name.
    pub thread: String,
    /// A lower bound of the time for which it has been open: since a thread looked for the first time.
    pub open_for: Duration,
    /// A lower bound of the bytes that it retains: those that all threads have retired since then.
    pub kept_bytes: u64,
}

/// A kind of [`MemoryHolder`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HolderKind {
    /// A transaction.
    Transaction {
        /// The worker that runs it.
        worker: WorkerId,
        /// The number of aborted attempts of it before this one, modulo 8,388,608.
        attempt: u32,
        /// The name of its engine's protocol.
        protocol: String,
    },
    /// The transaction of a [`Session`](crate::Session).
    Session {
        /// The session's name.
        name: String,
        /// The worker that runs it.
        worker: WorkerId,
        /// The name of its engine's protocol.
        protocol: String,
    },
    /// A walk over a table outside of transactions.
    Walk {
        /// The table's name.
        object: String,
    },
}

impl fmt::Display for MemoryHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            HolderKind::Transaction { worker, attempt, protocol } => {
                let worker = worker.number();
                write!(f, "attempt {} of worker {worker} ({protocol})", attempt + 1)?;
            }
            HolderKind::Session { name, protocol, .. } => write!(f, "session {name} ({protocol})")?,
            HolderKind::Walk { object } => write!(f, "a walk over {object}")?,
        }
        let Self { thread, open_for, kept_bytes, .. } = self;
        write!(f, " on thread {thread}, open for at least {open_for:?}, keeps at least {kept_bytes} bytes")
    }
}

/// Returns the bytes that the process retains: those of values, rows and index nodes that were replaced or removed and
/// are not freed yet.
pub fn retained_bytes() -> u64 {
    tally::totals().retained()
}

/// Collects garbage as long as that frees something. It may run users' code.
#[cold]
pub(crate) fn collect() {
    let mut freed = tally::totals().freed;
    loop {
        contained(collect_all);
        let now = tally::totals().freed;
        if now == freed {
            return;
        }
        freed = now;
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
