//! Counts of retired and freed bytes, kept by each thread for itself.
//!
//! A count is written by one thread, with a load and a store, and any thread may read it for the sum. A thread takes a
//! tally when it first counts something and gives it back when it ends. The next thread goes on counting in it, so that
//! sums never fall. A thread that is ending may still free something afterwards: it counts in [`ENDING`], which such
//! threads share.

use crossbeam_utils::CachePadded;
use hotrow_sync::atomic::instrument::{AtomicU64, Ordering};
use hotrow_sync::instrument::{Mutex, lock};
use std::cell::Cell;

/// One thread's counts.
#[derive(Debug)]
struct Tally {
    retired: AtomicU64,
    freed: AtomicU64,
}

impl Tally {
    const fn new() -> Self {
        Self { retired: AtomicU64::new(0), freed: AtomicU64::new(0) }
    }

    #[inline]
    fn add(&self, counter: &AtomicU64, bytes: u64) {
        // Relaxed: counts order nothing.
        if std::ptr::eq(self, &*ENDING) {
            counter.fetch_add(bytes, Ordering::Relaxed);
        } else {
            counter.store(counter.load(Ordering::Relaxed).wrapping_add(bytes), Ordering::Relaxed);
        }
    }
}

/// The tally of threads that have given theirs back.
static ENDING: CachePadded<Tally> = CachePadded::new(Tally::new());

/// All tallies but [`ENDING`].
static TALLIES: Mutex<Tallies> = Mutex::new(Tallies { all: Vec::new(), free: Vec::new() });

struct Tallies {
    all: Vec<&'static Tally>,
    free: Vec<&'static Tally>,
}

/// Gives the thread's tally back when the thread ends.
struct Return(Cell<Option<&'static Tally>>);

impl Drop for Return {
    fn drop(&mut self) {
        MINE.with(|mine| mine.set(Some(&ENDING)));
        if let Some(tally) = self.0.take() {
            lock(&TALLIES).free.push(tally);
        }
    }
}

// Not `local!`: the cores of a simulation are one thread, and their counts are no part of the simulation.
thread_local! {
    /// A word without a destructor, so it is there to the very end of the thread.
    static MINE: Cell<Option<&'static Tally>> = const { Cell::new(None) };
    static RETURN: Return = const { Return(Cell::new(None)) };
}

#[inline]
fn mine() -> &'static Tally {
    // Not `with`, which is not inlined.
    MINE.try_with(Cell::get).ok().flatten().unwrap_or_else(take)
}

#[cold]
fn take() -> &'static Tally {
    let tally = RETURN.try_with(|to_return| {
        let mut tallies = lock(&TALLIES);
        let tally = tallies.free.pop().unwrap_or_else(|| {
            let tally: &'static Tally = Box::leak(Box::new(CachePadded::new(Tally::new())));
            tallies.all.push(tally);
            tally
        });
        to_return.0.set(Some(tally));
        tally
    });
    let tally = tally.unwrap_or(&ENDING);
    MINE.with(|mine| mine.set(Some(tally)));
    tally
}

/// Counts bytes that were retired.
#[inline]
pub(crate) fn count_retired(bytes: usize) {
    let tally = mine();
    tally.add(&tally.retired, bytes as u64);
}

/// Counts bytes that were freed, having been retired before.
#[inline]
pub(crate) fn count_freed(bytes: usize) {
    let tally = mine();
    tally.add(&tally.freed, bytes as u64);
}

/// The bytes that the thread has freed. If the number changes, the thread has freed something meanwhile.
pub(crate) fn freed_here() -> u64 {
    mine().freed.load(Ordering::Relaxed)
}

/// Sums over all threads, past and present.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Totals {
    pub(crate) retired: u64,
    pub(crate) freed: u64,
}

impl Totals {
    /// Bytes that were retired and are not freed.
    pub(crate) fn retained(self) -> u64 {
        self.retired.saturating_sub(self.freed)
    }
}

/// Returns the present sums. Parts of concurrent counts of other threads may be missing.
pub(crate) fn totals() -> Totals {
    let tallies = lock(&TALLIES);
    let sum = |of: fn(&Tally) -> &AtomicU64| {
        let all = tallies.all.iter().copied().chain([&*ENDING]);
        // Relaxed: counts order nothing.
        all.map(|tally| of(tally).load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
    };
    // Freed bytes first: bytes that are retired and freed meanwhile then count as retained, so that the difference is
    // never negative.
    let freed = sum(|tally| &tally.freed);
    Totals { retired: sum(|tally| &tally.retired), freed }
}
