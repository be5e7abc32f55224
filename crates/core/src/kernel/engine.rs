//! The engine: one protocol, its shared state, and its workers.

use crate::kernel::abort::Misuse;
use crate::kernel::capabilities::RangeLocks as _;
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::{Slots, WorkerSlot};
use crate::kernel::statistics::NamedCounts;
use crate::kernel::statistics::{Counters, Statistics};
use crate::kernel::worker::Worker;
use crate::memory::identity::EngineId;
use crate::memory::identity::ObjectMeta;
use hotrow_sync::atomic::{Ordering, unfollowed::AtomicU64};
use hotrow_sync::profile::name_memory;
use hotrow_sync::{Arc, Mutex, lock};
use std::fmt;
use std::ops::Range;

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
    /// What features share.
    pub(crate) features: <P as Slots>::Shared,
    registry: Mutex<Registry<P>>,
}

/// All workers so far, as slots that new workers take over.
struct Registry<P: Protocol> {
    slots: Vec<Arc<WorkerSlot<P>>>,
    free: Vec<u32>,
}

impl<P: Protocol> Engine<P> {
    /// Makes an engine. `features` makes what they share.
    pub(crate) fn with_features(
        options: &P::Options,
        features: impl FnOnce(EngineId) -> <P as Slots>::Shared,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: only uniqueness matters.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let id = EngineId(number | u64::from(ObjectMeta::count() as u16) << 48);
        let registry = Mutex::new(Registry { slots: Vec::new(), free: Vec::new() });
        let (protocol, name, opaque) = (P::new(options), P::name(options), P::is_opaque(options));
        let shared = Arc::new(Shared {
            id,
            protocol,
            name,
            opaque,
            workers_max: P::workers_max(options),
            features: features(id),
            registry,
        });
        name_memory(&shared.protocol, || format!("words that all workers of {} share", shared.name));
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

    /// Registers a worker with a free number of these.
    #[inline(never)]
    pub(crate) fn register(&self, numbers: Range<u32>) -> Result<Worker<P>, Misuse> {
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
