//! An engine's limit.

use super::holders::{PRESSURE, report, set_limit};
use super::{MemoryHolder, RetainedMemory, collect};
use crate::memory::identity::EngineId;
use hotrow_sync::atomic::instrument::{AtomicU64, Ordering};
use hotrow_sync::{clock, thread};
use std::fmt;
use std::time::Duration;

pub(super) const NO_LIMIT: u64 = u64::MAX;

/// The longest wait of a transaction that begins while too much is retained.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// The first pause between two collections of a waiting transaction; each next one is twice as long, up to the longest.
const PAUSE_MIN: Duration = Duration::from_micros(50);
const PAUSE_MAX: Duration = Duration::from_millis(1);

/// An error: more memory is retained than the engine's limit. See
/// [`Engine::set_retained_bytes_max`](crate::Engine::set_retained_bytes_max).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLimit {
    /// The bytes that the process retained.
    pub retained_bytes: u64,
    /// The engine's limit, in bytes.
    pub retained_bytes_max: u64,
    /// True if the failed transaction was itself the oldest, and was told to end. Otherwise it could not begin.
    pub was_told: bool,
    /// The oldest open transaction or walk of the process, which retains the most. It is the failed transaction if that
    /// was told to end.
    pub oldest: Option<MemoryHolder>,
}

impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { retained_bytes, retained_bytes_max, was_told, oldest } = self;
        write!(f, "{retained_bytes} bytes are retained, the limit is {retained_bytes_max}")?;
        match oldest {
            Some(oldest) if *was_told => write!(f, "; this transaction had to end: {oldest}"),
            Some(oldest) => write!(f, "; {oldest}"),
            None => Ok(()),
        }
    }
}

/// The bytes that may be retained while transactions of an engine begin.
#[derive(Debug)]
pub(crate) struct Limit {
    engine: EngineId,
    bytes_max: AtomicU64,
}

impl Limit {
    pub(crate) fn new(engine: EngineId) -> Self {
        Self { engine, bytes_max: AtomicU64::new(NO_LIMIT) }
    }

    /// Sets the limit; `None` for no limit.
    pub(crate) fn set(&self, bytes_max: Option<u64>) {
        let bytes_max = bytes_max.unwrap_or(NO_LIMIT);
        // Relaxed: no other memory depends on it.
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
        set_limit(self.engine, bytes_max);
    }

    fn get(&self) -> Option<u64> {
        Some(self.bytes_max.load(Ordering::Relaxed)).filter(|bytes_max| *bytes_max != NO_LIMIT)
    }

    /// Lets a transaction begin, or waits until it may. One that only reads need not wait.
    #[inline(always)]
    pub(crate) fn pass(&self, only_reads: bool, deadline: Option<Duration>) -> Result<(), Box<MemoryLimit>> {
        // Relaxed: a thread that sees it late begins one more transaction.
        if PRESSURE.is_over.load(Ordering::Relaxed) { self.wait(only_reads, deadline) } else { Ok(()) }
    }

    /// True if a transaction that begins now may have to wait.
    #[inline]
    pub(crate) fn may_wait(&self) -> bool {
        // Relaxed: as in `pass`.
        PRESSURE.is_over.load(Ordering::Relaxed)
    }

    #[cold]
    #[inline(never)]
    fn wait(&self, only_reads: bool, deadline: Option<Duration>) -> Result<(), Box<MemoryLimit>> {
        let Some(bytes_max) = self.get() else { return Ok(()) };
        if only_reads || thread::is_simulated() {
            return Ok(());
        }
        let begin = clock::now();
        let wait_max = deadline.map_or(WAIT_MAX, |deadline| deadline.min(WAIT_MAX));
        let mut pause = PAUSE_MIN;
        loop {
            collect();
            let (retained, holders) = report();
            if retained <= bytes_max {
                return Ok(());
            }
            if begin.elapsed() >= wait_max {
                let (retained_bytes, oldest) = (retained, holders.into_iter().next());
                return Err(Box::new(MemoryLimit {
                    retained_bytes,
                    retained_bytes_max: bytes_max,
                    was_told: false,
                    oldest,
                }));
            }
            thread::sleep(pause);
            pause = (2 * pause).min(PAUSE_MAX);
        }
    }

    pub(crate) fn report(&self) -> RetainedMemory {
        let (bytes, holders) = report();
        RetainedMemory { bytes, bytes_max: self.get(), holders }
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        if self.get().is_some() {
            set_limit(self.engine, NO_LIMIT);
        }
    }
}
