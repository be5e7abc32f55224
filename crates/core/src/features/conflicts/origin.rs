//! The names of transactions in reports, and the one that each worker runs.

use crate::kernel::capabilities::{Rival, Which};
use crate::kernel::protocol::Protocol;
use crate::kernel::worker::Worker;
use crate::memory::identity::Origin;
use crossbeam_utils::CachePadded;
use hotrow_sync::atomic::instrument::{AtomicBool, AtomicU64, Ordering};
use hotrow_sync::{Arc, Mutex, lock};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;

/// Number of origins that are told apart. Later ones are not named.
const ORIGINS_MAX: usize = (1 << ORIGIN_BITS) - 1;

/// Bits for the number of an origin.
const ORIGIN_BITS: u32 = 12;

/// Number of a worker's commits whose origin is known: for each remainder the last one whose number has it.
const COMMITS: usize = 64;

/// The origins of an engine's transactions, by number. Number 0 is none.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    is_on: AtomicBool,
    known: Mutex<Vec<Origin>>,
    /// By the numbers of workers.
    activities: Mutex<Vec<Arc<CachePadded<Activity>>>>,
}

impl Origins {
    /// True if transactions say what they are.
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        // Relaxed: whoever learns of it late is named late.
        self.is_on.load(Ordering::Relaxed)
    }

    pub(crate) fn turn(&self, on: bool) {
        self.is_on.store(on, Ordering::Relaxed);
    }

    /// The number of an origin; 0 if there are too many.
    #[cold]
    pub(super) fn number(&self, origin: Origin) -> u32 {
        let mut known = lock(&self.known);
        if let Some(at) = known.iter().position(|other| *other == origin) {
            return at as u32 + 1;
        }
        if known.len() >= ORIGINS_MAX {
            return 0;
        }
        known.push(origin);
        known.len() as u32
    }

    pub(crate) fn origin(&self, number: u32) -> Option<Origin> {
        lock(&self.known).get((number as usize).checked_sub(1)?).copied()
    }

    /// Adds the next worker.
    pub(crate) fn add_worker(&self) -> Arc<CachePadded<Activity>> {
        let activity = Arc::default();
        lock(&self.activities).push(Arc::clone(&activity));
        activity
    }

    /// The number of the transaction with which a worker wins; 0 if it is unknown.
    pub(crate) fn of_rival(&self, rival: Rival) -> u32 {
        let activities = lock(&self.activities);
        let Some(activity) = activities.get(rival.worker.number() as usize) else { return 0 };
        let (running, last) = activity.read();
        match rival.which {
            Which::Running if running != 0 => running,
            Which::Running | Which::Last => last,
            Which::Commit(number) => activity.committed(number),
        }
    }
}

/// The numbers that one worker has asked for. Most workers run few kinds of transactions.
#[derive(Debug, Default)]
pub(crate) struct KnownOrigins(Vec<(Origin, u32)>);

impl KnownOrigins {
    #[inline]
    pub(crate) fn number(&mut self, origin: Origin, origins: &Origins) -> u32 {
        if let Some(at) = self.0.iter().position(|(known, _)| is_same(*known, origin)) {
            return self.0[at].1;
        }
        let number = origins.number(origin);
        if self.0.len() < ORIGINS_MAX {
            self.0.push((origin, number));
        }
        number
    }
}

/// True if two origins lie at one address, which is quickly seen. The same origin may have several.
#[inline]
fn is_same(one: Origin, other: Origin) -> bool {
    match (one, other) {
        (Origin::Name(one), Origin::Name(other)) => std::ptr::eq(one, other),
        (Origin::Place(one), Origin::Place(other)) => std::ptr::eq(one, other),
        _ => false,
    }
}

/// The transaction that a worker runs, and those that it has committed last, by the numbers of their origins. Only the worker writes.
#[derive(Debug)]
pub(crate) struct Activity {
    /// The running one, and the last one that has committed.
    now: AtomicU64,
    /// The last commits: the number of each, and its origin's. A rival finds one at once, and takes no other line from the worker.
    commits: [AtomicU64; COMMITS],
}

impl Default for Activity {
    fn default() -> Self {
        let commits = std::array::from_fn(|_| AtomicU64::new(0));
        Self { now: AtomicU64::new(0), commits }
    }
}

impl Activity {
    #[inline(always)]
    pub(crate) fn begin(&self, number: u32) {
        // Relaxed, as all here: a report may name the transaction before.
        let last = self.now.load(Ordering::Relaxed) & u64::from(u32::MAX);
        self.now.store(u64::from(number) << 32 | last, Ordering::Relaxed);
    }

    /// The running transaction commits, and is about to install.
    #[inline]
    pub(crate) fn commits(&self, number: u64) {
        let running = self.now.load(Ordering::Relaxed) >> 32;
        self.commits[number as usize % COMMITS].store(number << ORIGIN_BITS | running, Ordering::Relaxed);
    }

    /// The origin of one of the last commits; 0 if it is not among them.
    fn committed(&self, number: u64) -> u32 {
        let entry = self.commits[number as usize % COMMITS].load(Ordering::Relaxed);
        if entry >> ORIGIN_BITS == number << ORIGIN_BITS >> ORIGIN_BITS {
            entry as u32 & ORIGINS_MAX as u32
        } else {
            0
        }
    }

    /// The transaction that has begun is over.
    #[inline(always)]
    pub(crate) fn end(&self, has_committed: bool) {
        let word = self.now.load(Ordering::Relaxed);
        self.now
            .store(if has_committed { word >> 32 } else { word & u64::from(u32::MAX) }, Ordering::Relaxed);
    }

    /// The number of the running transaction, and of the last one that has committed; 0 for none.
    pub(crate) fn read(&self) -> (u32, u32) {
        let word = self.now.load(Ordering::Relaxed);
        ((word >> 32) as u32, word as u32)
    }
}

impl<P: Protocol> Worker<P> {
    /// Names the transactions that are run with the worker returned, for [reports of conflicts](crate::Engine::report_both_sides):
    /// `worker.named("audit").transact(…)`. Without a name, the place of the call stands for it.
    pub fn named(&mut self, name: &'static str) -> Named<'_, P> {
        Named::new(self, Origin::Name(name))
    }

    /// Names the transactions that are run with the worker returned by the place of a call, unless they have a name: for callers
    /// that call on behalf of others.
    pub fn called_from(&mut self, place: &'static Location<'static>) -> Named<'_, P> {
        let origin = self.features.origin.unwrap_or(Origin::Place(place));
        Named::new(self, origin)
    }

    /// Says which transaction begins, if transactions say what they are.
    #[inline(always)]
    pub(crate) fn begin_activity(&mut self, place: &'static Location<'static>) {
        let is_reported = self.shared.features.origins.is_on();
        if is_reported {
            let origin = self.features.origin.unwrap_or(Origin::Place(place));
            let number = self.features.known_origins.number(origin, &self.shared.features.origins);
            self.slot.features.activity.begin(number);
        }
        self.features.is_reported = is_reported;
    }

    /// Says that the transaction is over.
    #[inline(always)]
    pub(crate) fn end_activity(&mut self, has_committed: bool) {
        if self.features.is_reported {
            self.slot.features.activity.end(has_committed);
        }
    }
}

/// A worker whose transactions have a name in reports of conflicts: see [`Worker::named`].
pub struct Named<'w, P: Protocol> {
    worker: &'w mut Worker<P>,
    before: Option<Origin>,
}

impl<'w, P: Protocol> Named<'w, P> {
    pub(crate) fn new(worker: &'w mut Worker<P>, origin: Origin) -> Self {
        let before = worker.features.origin.replace(origin);
        Self { worker, before }
    }
}

impl<P: Protocol> Deref for Named<'_, P> {
    type Target = Worker<P>;
    fn deref(&self) -> &Worker<P> {
        self.worker
    }
}

impl<P: Protocol> DerefMut for Named<'_, P> {
    fn deref_mut(&mut self) -> &mut Worker<P> {
        self.worker
    }
}

impl<P: Protocol> Drop for Named<'_, P> {
    fn drop(&mut self) {
        self.worker.features.origin = self.before;
    }
}

impl<P: Protocol> fmt::Debug for Named<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Named").field("origin", &self.worker.features.origin).finish_non_exhaustive()
    }
}
