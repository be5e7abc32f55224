//! The engine: one protocol, its shared state, and its workers.

use crate::kernel::abort::{Abort, Error, Misuse};
use crate::kernel::capabilities::RangeLocks as _;
use crate::kernel::policy::{RetryPolicy, StarvationGate};
use crate::kernel::profile::Profile;
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::{Slots, WorkerSlot};
use crate::kernel::statistics::NamedCounts;
use crate::kernel::statistics::{Counters, Statistics};
use crate::kernel::thread_mark::in_transaction;
use crate::kernel::transaction::Transaction;
use crate::kernel::worker::Worker;
use crate::memory::identity::EngineId;
use crate::memory::identity::ObjectMeta;
use crate::memory::retained::{self, Limit, RetainedMemory};
use hotrow_sync::atomic::{Ordering, unfollowed::AtomicU64};
use hotrow_sync::profile::name_memory;
use hotrow_sync::{Arc, Mutex, local, lock};
use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::panic::Location;

/// An engine: a protocol chosen once, and everything its transactions share.
///
/// Cloning gives another handle to the same engine. Objects and tables belong to one engine; using them in
/// a transaction of another is [`Misuse::ForeignObject`].
pub struct Engine<P: Protocol> {
    pub(crate) shared: Arc<Shared<P>>,
}

impl<P: Protocol> Clone for Engine<P> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<P: Protocol> fmt::Debug for Engine<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("protocol", &self.shared.name).finish_non_exhaustive()
    }
}

/// The state that all workers of an engine share.
pub(crate) struct Shared<P: Protocol> {
    pub(crate) id: EngineId,
    pub(crate) protocol: P,
    pub(crate) name: String,
    pub(crate) opaque: bool,
    workers_max: u32,
    pub(crate) policy: RetryPolicy,
    pub(crate) gate: StarvationGate,
    pub(crate) limit: Limit,
    /// What features share.
    pub(crate) features: <P as Slots>::Shared,
    registry: Mutex<Registry<P>>,
}

/// All workers so far, as slots that new workers take over.
struct Registry<P: Protocol> {
    slots: Vec<Arc<WorkerSlot<P>>>,
    free: Vec<u32>,
}

impl<P: Protocol> Default for Engine<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Protocol> Engine<P> {
    /// Makes an engine with the default retry policy.
    pub fn new() -> Self {
        Self::with_policy(RetryPolicy::default())
    }

    /// Makes an engine of the protocol's first variant, with this retry policy.
    pub fn with_policy(policy: RetryPolicy) -> Self {
        let first = P::VARIANTS.first().and_then(|variant| P::options(variant.name));
        Self::with_options(&first.expect("a protocol has a variant, and knows its name"), policy)
    }

    /// Makes an engine of the variant that `name` stands for. `None` if the protocol has no variant of this name.
    pub fn named(name: &str, policy: RetryPolicy) -> Option<Self> {
        P::options(name).map(|options| Self::with_options(&options, policy))
    }

    /// Makes an engine of the variant that has these options.
    pub fn with_options(options: &P::Options, policy: RetryPolicy) -> Self {
        Self::with_features(options, policy, Default::default())
    }

    pub(crate) fn with_features(
        options: &P::Options,
        policy: RetryPolicy,
        features: <P as Slots>::Shared,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: only uniqueness matters.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let id = EngineId(number | u64::from(ObjectMeta::count() as u16) << 48);
        let registry = Mutex::new(Registry { slots: Vec::new(), free: Vec::new() });
        let (protocol, name, opaque) = (P::new(options), P::name(options), P::is_opaque(options));
        let (gate, limit) = (StarvationGate::default(), Limit::new(id));
        let shared = Arc::new(Shared {
            id,
            protocol,
            name,
            opaque,
            workers_max: P::workers_max(options),
            policy,
            gate,
            limit,
            features,
            registry,
        });
        name_memory(&shared.protocol, || format!("words that all workers of {} share", shared.name));
        name_memory(&shared.gate, || String::from("the gate of the oldest"));
        Self { shared }
    }

    /// The engine's number.
    pub fn id(&self) -> EngineId {
        self.shared.id
    }

    /// The protocol's name, or more precisely its variant's.
    pub fn protocol(&self) -> &str {
        &self.shared.name
    }

    /// True if its attempts see one consistent state, even if they are going to be aborted: see
    /// [`Variants::is_opaque`](crate::Variants::is_opaque).
    pub fn is_opaque(&self) -> bool {
        self.shared.opaque
    }

    /// The maximum number of workers at a time.
    pub fn workers_max(&self) -> u32 {
        self.shared.workers_max
    }

    /// True if the serial order of its transactions agrees with real time: see [`Variants::STRICT`](crate::Variants::STRICT).
    pub fn is_strict(&self) -> bool {
        self.shared.protocol.is_strict()
    }

    /// True if its transactions run at the same time: see [`Variants::CONCURRENT`](crate::Variants::CONCURRENT).
    pub fn is_concurrent(&self) -> bool {
        self.shared.protocol.is_concurrent()
    }

    /// True if its protocol locks [ranges](Protocol::RangeLocks).
    #[inline]
    pub fn locks_ranges(&self) -> bool {
        P::RangeLocks::of(&self.shared.protocol).is_some()
    }

    /// Registers a worker, with which a thread runs transactions. Keep one per thread. If the protocol admits no more, it is the one
    /// that [`transact`](Self::transact) keeps for the calling thread.
    ///
    /// # Errors
    ///
    /// [`Misuse::TooManyWorkers`] when the protocol admits no more at a time.
    pub fn worker(&self) -> Result<Worker<P>, Misuse> {
        let refused = match self.register(0..self.workers_max()) {
            Err(refused @ Misuse::TooManyWorkers { .. }) => refused,
            made => return made,
        };
        ThreadWorkers::kept(self).map(|worker| *worker).ok_or(refused)
    }

    /// Registers a worker that only reads on snapshots, beside the only one that the protocol admits if it admits no more.
    pub(crate) fn worker_for_snapshots(&self) -> Result<Worker<P>, Misuse> {
        match self.workers_max() {
            1 => self.register(1..u32::MAX),
            workers_max => self.register(0..workers_max),
        }
    }

    /// Registers a worker with a free number of these.
    #[inline(never)]
    fn register(&self, numbers: Range<u32>) -> Result<Worker<P>, Misuse> {
        let mut registry = lock(&self.shared.registry);
        let slot = loop {
            if let Some(at) = registry.free.iter().rposition(|number| numbers.contains(number)) {
                let number = registry.free.remove(at);
                break registry.slots[number as usize].clone();
            }
            let number = registry.slots.len() as u32;
            if number >= numbers.end {
                let (protocol, workers_max) = (self.shared.name.clone(), self.workers_max());
                return Err(Misuse::TooManyWorkers { protocol, workers_max });
            }
            let slot = Arc::new(WorkerSlot {
                number,
                counters: Counters::default(),
                features: P::place(&self.shared.features),
                local: Mutex::new(Some(P::Local::default())),
            });
            registry.slots.push(slot);
            registry.free.push(number);
        };
        drop(registry);
        let local = lock(&slot.local).take().unwrap_or_default();
        Ok(Worker::new(self.shared.clone(), slot, local))
    }

    /// Runs a transaction on the calling thread's own worker, which is registered at first use and kept
    /// until the thread ends. See [`Worker::transact`].
    ///
    /// # Errors
    ///
    /// As [`Worker::transact`], and [`Misuse::TooManyWorkers`].
    #[track_caller]
    pub fn transact<R>(
        &self,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, Abort>,
    ) -> Result<R, Error> {
        self.try_transact(body)
    }

    /// As [`transact`](Self::transact), with an error type of the user's own. See [`Worker::try_transact`].
    ///
    /// # Errors
    ///
    /// As [`Worker::try_transact`], and [`Misuse::TooManyWorkers`].
    #[track_caller]
    pub fn try_transact<R, E: From<Abort>>(
        &self,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, E>,
    ) -> Result<R, Error<E>> {
        let place = Location::caller();
        self.with_worker(|worker| worker.called_from(place).try_transact(body))
    }

    /// As [`transact`](Self::transact), for a transaction that declares facts about itself: that it only reads, say, or reads on a
    /// snapshot. The profile must be true in all attempts. See [`Worker::try_transact_as`].
    ///
    /// # Errors
    ///
    /// As [`Worker::try_transact_as`], and [`Misuse::TooManyWorkers`].
    #[track_caller]
    pub fn transact_as<R>(
        &self,
        profile: Profile,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, Abort>,
    ) -> Result<R, Error> {
        self.try_transact_as(profile, body)
    }

    /// As [`transact_as`](Self::transact_as), with an error type of the user's own.
    ///
    /// # Errors
    ///
    /// As [`transact_as`](Self::transact_as).
    #[track_caller]
    pub fn try_transact_as<R, E: From<Abort>>(
        &self,
        profile: Profile,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, E>,
    ) -> Result<R, Error<E>> {
        let place = Location::caller();
        self.with_worker(|worker| worker.called_from(place).try_transact_as(profile, body))
    }

    /// Calls a function with the calling thread's own worker, which is registered at first use and kept until the thread
    /// ends.
    ///
    /// # Errors
    ///
    /// Those of the function; [`Misuse::TooManyWorkers`], and [`Misuse::Nested`] within a transaction.
    #[inline]
    pub fn with_worker<R, E>(
        &self,
        run: impl FnOnce(&mut Worker<P>) -> Result<R, Error<E>>,
    ) -> Result<R, Error<E>> {
        let mut taken = ThreadWorkers::take(self)?;
        let result = run(&mut taken.worker);
        taken.put_back(self.shared.id);
        result
    }

    /// Reports the bytes that the process retains now (replaced or removed, and not freed yet), this engine's limit,
    /// and the open transactions and walks that retain them, of all engines, the oldest first.
    ///
    /// The times for which they have been open, and the bytes that they retain, are lower bounds: they count from when
    /// a call of this function, or a thread that collected garbage, first saw them. The call visits each worker and
    /// each thread of the process.
    pub fn retained_memory(&self) -> RetainedMemory {
        self.shared.limit.report()
    }

    /// Frees what was replaced or removed and nobody can see any more, at once, and returns the bytes that the process still retains.
    ///
    /// That happens by and by as transactions make more of it, and when a transaction, a walk or a snapshot ends that has retained much. So
    /// the call is for a program that has deleted much and then rests. It cannot free what an open transaction or snapshot may still see,
    /// nor the last few values (64 at most) that each other thread has not handed over. It takes a time in proportion to what it frees, and
    /// runs the `Drop` of values.
    pub fn collect(&self) -> u64 {
        P::collecting(&self.shared.features);
        retained::collect();
        retained::retained_bytes()
    }

    /// Limits the bytes that the process may retain while transactions of this engine go on; `None`, the default, for
    /// no limit. The limit may be changed at any time.
    ///
    /// While more is retained, a transaction that may write (its [`Profile`] does not say that it only reads) waits
    /// before it begins, for up to 100 milliseconds or the retry policy's deadline. It collects garbage meanwhile. If
    /// that does not help, it fails with [`Error::MemoryLimit`], which names the oldest open transaction. If that one
    /// is of an engine with such a limit, and retains half of the limit or more, it is told to end: its next operation
    /// or its commit fails, it is rolled back, and its error is the same. A transaction that only waits for its user
    /// hears of it only when it goes on; that of an idle [`Session`](crate::Session) ends at once.
    ///
    /// The limit is not exact: each thread may gather a mebibyte more before it collects, and transactions in progress
    /// go on. Choose it well above the memory of the rows written in a few milliseconds: several mebibytes for each
    /// thread. In a simulation it has no effect.
    pub fn set_retained_bytes_max(&self, bytes_max: Option<u64>) {
        self.shared.limit.set(bytes_max);
    }

    /// Counts over all workers, past and present.
    pub fn statistics(&self) -> Statistics {
        let mut sum = Statistics::default();
        let named = P::named_counters(&self.shared.protocol);
        sum.counters = NamedCounts::of(&named);
        for slot in &lock(&self.shared.registry).slots {
            sum.add(&slot.counters.read(&named));
        }
        sum
    }
}

impl<P: Protocol> Shared<P> {
    /// The maximum number of workers at a time.
    pub(crate) fn workers_max(&self) -> u32 {
        self.workers_max
    }

    /// The highest number of workers at a time so far.
    pub(crate) fn workers(&self) -> u32 {
        lock(&self.registry).slots.len() as u32
    }

    /// Visits the state of features for the workers of each number.
    pub(crate) fn each_place(&self, mut visit: impl FnMut(&<P as Slots>::Place)) {
        for slot in &lock(&self.registry).slots {
            visit(&slot.features);
        }
    }

    pub(crate) fn give_back(&self, slot: &WorkerSlot<P>, local: P::Local) {
        *lock(&slot.local) = Some(local);
        lock(&self.registry).free.push(slot.number);
    }
}

/// The workers that `Engine::transact` keeps for the current thread, one per engine.
struct ThreadWorkers;

local! {
    static WORKERS: RefCell<Vec<(EngineId, Box<dyn Any>)>> = RefCell::new(Vec::new());
}

/// Maximum number of engines whose workers a thread keeps; the one used least recently goes first.
const THREAD_WORKERS_MAX: usize = 8;

/// A worker that was taken out of its thread's list. Dropped, because a function has panicked with it, it is given up.
struct TakenWorker<P: Protocol> {
    worker: ManuallyDrop<Box<Worker<P>>>,
}

impl<P: Protocol> TakenWorker<P> {
    #[inline]
    fn put_back(self, id: EngineId) {
        let mut taken = ManuallyDrop::new(self);
        // SAFETY: `taken` is not used again, nor dropped.
        ThreadWorkers::put_back(id, unsafe { ManuallyDrop::take(&mut taken.worker) });
    }
}

impl<P: Protocol> Drop for TakenWorker<P> {
    /// Is never inlined, so that programs do not compile how a worker is dropped.
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        // SAFETY: dropped here only; `put_back` forgets what it has taken.
        unsafe { ManuallyDrop::drop(&mut self.worker) };
    }
}

impl ThreadWorkers {
    /// Calls a function with the thread's list. `None` once the thread is ending and the list is gone (a transaction
    /// run by the `Drop` of another thread-local value).
    fn with<R>(work: impl FnOnce(&mut Vec<(EngineId, Box<dyn Any>)>) -> R) -> Option<R> {
        WORKERS.try_with(|workers| work(&mut workers.borrow_mut()))
    }

    #[inline(never)]
    fn take<P: Protocol>(engine: &Engine<P>) -> Result<TakenWorker<P>, Misuse> {
        let worker = match Self::kept(engine) {
            Some(worker) => worker,
            None if in_transaction() => return Err(Misuse::Nested),
            None => Box::new(engine.register(0..engine.workers_max())?),
        };
        Ok(TakenWorker { worker: ManuallyDrop::new(worker) })
    }

    /// Takes the worker that is kept for an engine, and is idle.
    fn kept<P: Protocol>(engine: &Engine<P>) -> Option<Box<Worker<P>>> {
        let kept = Self::with(|workers| {
            let at = workers.iter().position(|(id, _)| *id == engine.shared.id)?;
            Some(workers.remove(at).1)
        });
        kept.flatten().and_then(|worker| worker.downcast::<Worker<P>>().ok())
    }

    #[inline(never)]
    fn put_back<P: Protocol>(id: EngineId, worker: Box<Worker<P>>) {
        let evicted = Self::with(|workers| {
            let evicted = (workers.len() >= THREAD_WORKERS_MAX).then(|| workers.remove(0));
            workers.push((id, worker));
            evicted
        });
        // Dropped outside the borrow: dropping a worker may run users' code (the `Drop` of values that the epoch
        // frees).
        drop(evicted);
    }
}
