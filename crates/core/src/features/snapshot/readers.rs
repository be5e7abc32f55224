//! The open snapshots: a slot for each, with its number.

use super::moment::Moment;
use hotrow_sync::atomic::{AtomicU64, Ordering};
use hotrow_sync::instrument::{Mutex, lock};
use hotrow_sync::{Arc, OnceLock, thread};
use std::array;
use std::panic::Location;

/// The number of slots in the first chunk. Each further chunk has as many as all before it and these.
const FIRST: usize = if cfg!(test) { 2 } else { 32 };

/// The number of chunks, enough for more snapshots than memory can hold.
const CHUNKS: usize = 32;

/// The number that a slot has between its claim and its first snapshot. It keeps nothing.
const CLAIMED: u64 = u64::MAX;

/// The slots of an engine. A free one is found without a lock.
pub(crate) struct Readers {
    chunks: [OnceLock<Box<[Arc<Slot>]>>; CHUNKS],
}

pub(crate) struct Slot {
    /// The number of the open snapshot; 0 if the slot is free.
    number: AtomicU64,
    holder: Mutex<Option<ReaderHolder>>,
}

/// The owner of an open snapshot, for reports.
#[derive(Debug, Clone)]
pub(crate) struct ReaderHolder {
    pub(crate) opened: Moment,
    pub(crate) thread: String,
    pub(crate) place: &'static Location<'static>,
}

/// An open snapshot's slot.
pub(crate) struct ReaderSlot(Arc<Slot>);

impl Readers {
    pub(crate) fn new() -> Self {
        Self { chunks: array::from_fn(|_| OnceLock::new()) }
    }

    /// Shows a number in a free slot. The caller makes sure that the number's versions are kept.
    pub(crate) fn claim(&self, number: u64) -> ReaderSlot {
        for (at, chunk) in self.chunks.iter().enumerate() {
            let slots = chunk.get_or_init(|| (0..FIRST << at).map(|_| Arc::new(Slot::new())).collect());
            for slot in slots {
                // Relaxed: a slot that is taken by now is not claimed.
                let is_free = slot.number.load(Ordering::Relaxed) == 0;
                if is_free
                    && slot.number.compare_exchange(0, CLAIMED, Ordering::SeqCst, Ordering::Relaxed).is_ok()
                {
                    // SeqCst: before the look of `Snapshots::open` that follows, and seen by `numbers` after it.
                    slot.number.store(number, Ordering::SeqCst);
                    return ReaderSlot(slot.clone());
                }
            }
        }
        unreachable!("memory has no room for so many snapshots")
    }

    fn slots(&self) -> impl Iterator<Item = &Arc<Slot>> {
        self.chunks.iter().map_while(OnceLock::get).flatten()
    }

    /// The numbers of the open snapshots.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let numbers = self.slots().map(|slot| slot.number.load(Ordering::SeqCst));
        numbers.filter(|number| !matches!(*number, 0 | CLAIMED)).collect()
    }

    /// True if no snapshot is open.
    pub(crate) fn are_none(&self) -> bool {
        self.slots().all(|slot| matches!(slot.number.load(Ordering::SeqCst), 0 | CLAIMED))
    }

    /// The open snapshots with their numbers and owners.
    pub(crate) fn report(&self) -> Vec<(u64, ReaderHolder)> {
        let open = self.slots().filter_map(|slot| {
            let number = slot.number.load(Ordering::Relaxed);
            let holder = lock(&slot.holder).clone()?;
            (!matches!(number, 0 | CLAIMED)).then_some((number, holder))
        });
        open.collect()
    }
}

impl Slot {
    fn new() -> Self {
        Self { number: AtomicU64::new(0), holder: Mutex::new(None) }
    }
}

impl ReaderSlot {
    /// Names the owner.
    pub(crate) fn name(&self, place: &'static Location<'static>) {
        let holder = ReaderHolder { opened: Moment::now(), thread: thread::name(), place };
        *lock(&self.0.holder) = Some(holder);
    }
}

impl Drop for ReaderSlot {
    fn drop(&mut self) {
        *lock(&self.0.holder) = None;
        // Release: what the snapshot has read was read before a sweep that misses it frees anything.
        self.0.number.store(0, Ordering::Release);
    }
}
