//! The registry of an engine's waiters.

use super::Waiter;
use crate::region::UNFIT;
use crate::structure::StructureVersion;
use crossbeam_utils::CachePadded;
use hotrow_sync::atomic::{AtomicU32, Ordering, fence};
use hotrow_sync::{Arc, Mutex, lock, region};
use std::fmt;
use std::ptr::NonNull;

/// Segments whose addresses lie in the same `GRAIN` bytes of a page share a list. Only the place within a page counts, so that
/// the list is the same in each run of a simulation.
const GRAIN: usize = 16;
/// Number of lists: one for each place within a page.
const LISTS: usize = if cfg!(any(test, loom)) { 2 } else { 4_096 / GRAIN };

/// The registry.
pub(crate) struct Waiting {
    /// The number of transactions that watch. Each commit that writes reads it; it changes only when a transaction begins to
    /// watch, or ends.
    watchers: CachePadded<AtomicU32>,
    lists: Box<[List]>,
    /// The number of transactions that are parked.
    parked: AtomicU32,
}

/// The entries of some addresses.
#[derive(Default)]
struct List {
    /// The number of entries.
    length: AtomicU32,
    entries: Mutex<Vec<(usize, Arc<Waiter>)>>,
}

impl Waiting {
    pub(crate) fn new() -> Arc<Self> {
        let lists = (0..LISTS).map(|_| List::default()).collect();
        Arc::new(Self { watchers: CachePadded::new(AtomicU32::new(0)), lists, parked: AtomicU32::new(0) })
    }

    /// True if any transaction watches. A commit calls it when it has locked what it will write.
    #[inline(always)]
    pub(crate) fn has_watchers(&self) -> bool {
        // Sequentially consistent: after the commit's locks, and before or after a watcher's count; see the module's head. On
        // x86-64 it is a plain load.
        self.watchers.load(Ordering::SeqCst) != 0
    }

    /// As [`has_watchers`](Self::has_watchers), when all is installed.
    #[cold]
    pub(crate) fn has_watchers_now(&self) -> bool {
        // Orders the installation before the load. Pairs with the fence in `enter`.
        fence(Ordering::SeqCst);
        self.has_watchers()
    }

    /// Counts a transaction that begins to watch.
    pub(crate) fn begin_watching(&self) {
        self.watchers.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes a transaction out of the count, whose entries were taken out before.
    pub(crate) fn end_watching(&self) {
        self.watchers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Counts a transaction as parked until the guard is dropped.
    pub(crate) fn park(&self) -> Parked<'_> {
        self.parked.fetch_add(1, Ordering::SeqCst);
        Parked(self)
    }

    /// The number of transactions that are parked.
    pub(crate) fn parked(&self) -> usize {
        self.parked.load(Ordering::SeqCst) as usize
    }

    fn list(&self, address: usize) -> &List {
        &self.lists[address / GRAIN % LISTS]
    }

    /// Enters that a waiter watches what is at an address. What is loaded there afterwards is not changed without its being told.
    pub(crate) fn enter(&self, address: usize, waiter: &Arc<Waiter>) {
        let list = self.list(address);
        let mut entries = lock(&list.entries);
        entries.push((address, waiter.clone()));
        list.length.store(entries.len() as u32, Ordering::SeqCst);
        drop(entries);
        // Orders the count and the entry before the load of the value. Pairs with the commit's lock, which is sequentially
        // consistent, and with the fence in `has_watchers_now`.
        fence(Ordering::SeqCst);
    }

    /// Takes a waiter's entry out.
    pub(crate) fn take_out(&self, address: usize, waiter: &Arc<Waiter>) {
        let list = self.list(address);
        let mut entries = lock(&list.entries);
        let is_its = |(at, other): &(usize, Arc<Waiter>)| *at == address && Arc::ptr_eq(other, waiter);
        if let Some(position) = entries.iter().position(is_its) {
            entries.swap_remove(position);
            list.length.store(entries.len() as u32, Ordering::SeqCst);
        }
    }

    /// Tells those that watch what is at one of these addresses that it has changed. Nothing is held.
    #[cold]
    pub(crate) fn tell(&self, addresses: impl Iterator<Item = usize>) {
        let mut told: Vec<Arc<Waiter>> = Vec::new();
        for address in addresses {
            let list = self.list(address);
            if list.length.load(Ordering::SeqCst) == 0 {
                continue;
            }
            let entries = lock(&list.entries);
            told.extend(entries.iter().filter(|(at, _)| *at == address).map(|(_, waiter)| waiter.clone()));
        }
        told.iter().for_each(|waiter| waiter.tell());
    }
}

/// A parked transaction.
pub(crate) struct Parked<'a>(&'a Waiting);

impl Drop for Parked<'_> {
    fn drop(&mut self) {
        self.0.parked.fetch_sub(1, Ordering::SeqCst);
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: for display.
        f.debug_struct("Waiting").field("watchers", &self.watchers.load(Ordering::Relaxed)).finish()
    }
}

/// The way of an index to the transactions that wait for a change of its buckets and leaves. The default is one of nobody's.
#[derive(Debug, Clone, Default)]
pub struct WatchedNodes(pub(super) Option<Arc<Waiting>>);

impl WatchedNodes {
    pub(crate) fn of(waiting: &Arc<Waiting>) -> Self {
        Self(Some(waiting.clone()))
    }

    /// Tells those that watch a node that it is retired, or was changed outside of transactions. The node's latch is released.
    #[inline]
    pub fn changed(&self, node: NonNull<StructureVersion>) {
        if let Some(waiting) = &self.0
            && waiting.has_watchers_now()
        {
            // Waking is no matter of a region's.
            region::abort::<UNFIT>();
            waiting.tell(std::iter::once(node.addr().get()));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn those_are_told_that_watch_the_address_and_no_others_of_its_list() {
        let waiting = Waiting::new();
        let (near, far) = (Arc::new(Waiter::default()), Arc::new(Waiter::default()));
        waiting.begin_watching();
        waiting.enter(64, &near);
        waiting.enter(64 + LISTS * GRAIN, &far);
        assert!(waiting.has_watchers());
        waiting.tell([64].into_iter());
        assert!(near.is_changed() && !far.is_changed());
        waiting.take_out(64 + LISTS * GRAIN, &far);
        waiting.tell([64 + LISTS * GRAIN].into_iter());
        assert!(!far.is_changed());
        waiting.take_out(64, &near);
        waiting.end_watching();
        assert!(!waiting.has_watchers());
        assert!(waiting.lists.iter().all(|list| lock(&list.entries).is_empty()));
    }
}
