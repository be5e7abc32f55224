//! The registry of an engine's waiters, and who is woken by a change.

use super::Waiter;
use crate::features::region::UNFIT;
use crate::kernel::engine::Engine;
use crate::kernel::protocol::Protocol;
use crate::memory::identity::ObjectMeta;
use crate::memory::structure::StructureVersion;
use crossbeam_utils::CachePadded;
use hotrow_sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use hotrow_sync::memory::place;
use hotrow_sync::{Arc, Mutex, lock, region};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::ptr::NonNull;

/// Segments that begin in the same `GRAIN` bytes share a list.
const GRAIN: usize = 16;
/// Number of lists.
const LISTS: usize = if cfg!(any(test, loom)) { 2 } else { 4_096 / GRAIN };

/// The registry.
pub(crate) struct Waiting {
    /// The number of transactions that watch. Each commit that writes reads it; it changes only when a transaction begins to
    /// watch, or ends.
    watchers: CachePadded<AtomicU32>,
    lists: Box<[List]>,
    /// The number of transactions that are parked and were not told. Below zero for a moment, so to speak, where one is told before it
    /// has counted itself.
    parked: AtomicU32,
    /// The number of times that all were woken.
    times_all_woken: AtomicU64,
}

/// The entries of some addresses.
#[derive(Default)]
struct List {
    /// The number of entries.
    length: AtomicU32,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    /// By address, and then in the order in which they were made.
    by_age: BTreeMap<(usize, u64), Entry>,
    /// The number of entries so far.
    made: u64,
}

struct Entry {
    waiter: Arc<Waiter>,
    seen: Option<Arc<Seen>>,
    /// The waiter was told of a change, and owes it to all entries whose number is below this one; 0 if it was not told.
    told_below: u64,
}

/// The facts that a waiting transaction has found at an address, by which others judge if it would find the same again.
pub(crate) struct Seen {
    /// The number of the object that made it.
    pub(super) object: u32,
    pub(super) facts: Mutex<Box<dyn Any + Send>>,
}

/// A change at an address that a transaction was told of and passes on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owed {
    pub(super) address: usize,
    below: u64,
}

/// Transactions that are chosen to be woken. They are told when it is dropped, and nothing must be held then.
#[must_use]
pub(crate) struct Told<'a> {
    waiting: &'a Waiting,
    waiters: Vec<Arc<Waiter>>,
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        for waiter in self.waiters.drain(..) {
            waiter.tell(|| {
                self.waiting.parked.fetch_sub(1, Ordering::SeqCst);
            });
        }
    }
}

impl<'a> Told<'a> {
    pub(crate) fn nobody(waiting: &'a Waiting) -> Self {
        Self { waiting, waiters: Vec::new() }
    }

    /// Chooses one of those that watch an address at which something has changed just now. `is_same` judges by what a waiter
    /// has seen there; `own` is a waiter that is not meant.
    pub(super) fn of_change(
        &mut self,
        address: usize,
        own: Option<&Arc<Waiter>>,
        is_same: impl FnMut(&Seen) -> bool,
    ) {
        self.choose(address, None, own, is_same);
    }

    /// Chooses one of those to which a change is owed.
    pub(super) fn of_owed(&mut self, owed: Owed, own: &Arc<Waiter>, is_same: impl FnMut(&Seen) -> bool) {
        self.choose(owed.address, Some(owed.below), Some(own), is_same);
    }

    /// Looks for the first entry with a number below this one (of a new change: of all) whose waiter needs the change.
    ///
    /// One that was told of an earlier change passes this one on, too, when it ends. If it is an owed one, that is enough. A new one
    /// wakes another waiter besides, so that as many can go on at a time as there are changes. An owed one wakes two if nobody judges if
    /// they need it: all may, and so the last one hears of it after few steps.
    fn choose(
        &mut self,
        address: usize,
        owed_below: Option<u64>,
        own: Option<&Arc<Waiter>>,
        mut is_same: impl FnMut(&Seen) -> bool,
    ) {
        let list = self.waiting.list(address);
        if list.length.load(Ordering::SeqCst) == 0 {
            return;
        }
        let is_owed = owed_below.is_some();
        let below = owed_below.unwrap_or_else(|| lock(&list.entries).made);
        let (mut from, mut left) = (0, if is_owed { 2 } else { 1 });
        while from < below && left > 0 {
            let mut entries = lock(&list.entries);
            let mut behind = entries.by_age.range_mut((address, from)..(address, below));
            let Some((&(_, number), entry)) = behind.next() else { return };
            from = number + 1;
            if own.is_some_and(|own| Arc::ptr_eq(own, &entry.waiter)) {
                continue;
            }
            let seen = if entry.told_below == 0 { entry.seen.clone() } else { None };
            if let Some(seen) = &seen {
                // It may run users' code.
                drop(entries);
                if is_same(seen) {
                    continue;
                }
                entries = lock(&list.entries);
            }
            // It may be gone meanwhile, and has looked again then, or been told by somebody else.
            let Some(entry) = entries.by_age.get_mut(&(address, number)) else { continue };
            let was_told = entry.told_below != 0;
            entry.told_below = entry.told_below.max(below);
            if !was_told {
                self.waiters.push(entry.waiter.clone());
            }
            left = match () {
                () if was_told && !is_owed => left,
                () if was_told || seen.is_some() => 0,
                () => left - 1,
            };
        }
    }
}

impl Waiting {
    pub(crate) fn new() -> Arc<Self> {
        let lists = (0..LISTS).map(|_| List::default()).collect();
        let (watchers, times_all_woken) = (CachePadded::new(AtomicU32::new(0)), AtomicU64::new(0));
        Arc::new(Self { watchers, lists, parked: AtomicU32::new(0), times_all_woken })
    }

    /// Wakes all that wait, and has those that are about to wait begin again: for a change that nobody watches.
    pub(crate) fn wake_all(&self) {
        // A watcher that does not see it was entered before, by the lists' mutexes, and is found here. Pairs with the load in
        // `times_all_woken`.
        self.times_all_woken.fetch_add(1, Ordering::SeqCst);
        for list in &self.lists {
            let waiters = lock(&list.entries).by_age.values().map(|entry| entry.waiter.clone()).collect();
            drop(Told { waiting: self, waiters });
        }
    }

    /// The number of times that all were woken.
    pub(super) fn times_all_woken(&self) -> u64 {
        self.times_all_woken.load(Ordering::SeqCst)
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

    /// Counts a transaction as parked until it is told, or the guard is dropped. `None` if it was told.
    pub(crate) fn park<'a>(&'a self, waiter: &'a Waiter) -> Option<Parked<'a>> {
        let parks = waiter.begin_parking();
        parks.then(|| {
            self.parked.fetch_add(1, Ordering::SeqCst);
            Parked { waiting: self, waiter }
        })
    }

    /// The number of transactions that are parked, and will stay so unless somebody else goes on.
    pub(crate) fn parked(&self) -> usize {
        self.parked.load(Ordering::SeqCst).cast_signed().max(0) as usize
    }

    fn list(&self, address: usize) -> &List {
        &self.lists[place(address) / GRAIN % LISTS]
    }

    /// Enters that a waiter watches what is at an address. What is loaded there afterwards is not changed without its being told.
    /// Returns the entry's number.
    pub(super) fn enter(&self, address: usize, waiter: &Arc<Waiter>) -> u64 {
        let list = self.list(address);
        let mut entries = lock(&list.entries);
        let number = entries.made;
        entries.made += 1;
        let entry = Entry { waiter: waiter.clone(), seen: None, told_below: 0 };
        entries.by_age.insert((address, number), entry);
        list.length.store(entries.by_age.len() as u32, Ordering::SeqCst);
        drop(entries);
        // Orders the count and the entry before the load of the value. Pairs with the commit's lock, which is sequentially
        // consistent, and with the fence in `has_watchers_now`.
        fence(Ordering::SeqCst);
        number
    }

    /// Lets others judge by what a waiter has seen if they need tell it.
    pub(super) fn set_seen(&self, address: usize, number: u64, seen: Arc<Seen>) {
        if let Some(entry) = lock(&self.list(address).entries).by_age.get_mut(&(address, number)) {
            entry.seen = Some(seen);
        }
    }

    /// Takes an entry out. Returns the change that its waiter was told of, if it was.
    pub(super) fn take_out(&self, address: usize, number: u64) -> Option<Owed> {
        let list = self.list(address);
        let mut entries = lock(&list.entries);
        let entry = entries.by_age.remove(&(address, number));
        list.length.store(entries.by_age.len() as u32, Ordering::SeqCst);
        drop(entries);
        let below = entry.map_or(0, |entry| entry.told_below);
        (below != 0).then_some(Owed { address, below })
    }
}

/// A parked transaction.
pub(crate) struct Parked<'a> {
    waiting: &'a Waiting,
    waiter: &'a Waiter,
}

impl Drop for Parked<'_> {
    fn drop(&mut self) {
        if self.waiter.end_parking() {
            self.waiting.parked.fetch_sub(1, Ordering::SeqCst);
        }
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

    /// Tells those that watch a node that it is retired. The node's latch is released.
    #[inline]
    pub fn changed(&self, node: NonNull<StructureVersion>) {
        if let Some(waiting) = &self.0
            && waiting.has_watchers_now()
        {
            // Waking is no matter of a region's.
            region::abort::<UNFIT>();
            Told::nobody(waiting).of_change(node.addr().get(), None, |_| false);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn told(waiting: &Waiting, address: usize) {
        Told::nobody(waiting).of_change(address, None, |_| false);
    }

    #[test]
    fn those_are_told_that_watch_the_address_and_no_others_of_its_list() {
        let waiting = Waiting::new();
        let (near, far) = (Arc::new(Waiter::default()), Arc::new(Waiter::default()));
        let far_away = 64 + LISTS * GRAIN;
        waiting.begin_watching();
        let numbers = [waiting.enter(64, &near), waiting.enter(far_away, &far)];
        assert!(waiting.has_watchers());
        told(&waiting, 64);
        assert!(near.is_changed() && !far.is_changed());
        assert!(waiting.take_out(far_away, numbers[1]).is_none());
        told(&waiting, far_away);
        assert!(!far.is_changed());
        assert!(waiting.take_out(64, numbers[0]).is_some(), "it was told, and passes that on");
        waiting.end_watching();
        assert!(!waiting.has_watchers());
        assert!(waiting.lists.iter().all(|list| lock(&list.entries).by_age.is_empty()));
    }

    #[test]
    fn a_change_wakes_one_that_needs_it_and_is_passed_on_to_those_that_were_there_before_it() {
        let waiting = Waiting::new();
        let waiters: Vec<_> = (0..4).map(|_| Arc::new(Waiter::default())).collect();
        let numbers: Vec<_> = waiters.iter().map(|waiter| waiting.enter(64, waiter)).collect();
        let woken = || waiters.iter().map(|waiter| waiter.is_changed()).collect::<Vec<_>>();
        let facts = || Mutex::new(Box::new(7u64) as Box<dyn Any + Send>);
        waiting.set_seen(64, numbers[0], Arc::new(Seen { object: 3, facts: facts() }));
        Told::nobody(&waiting).of_change(64, None, |seen| seen.object == 3);
        assert_eq!(woken(), [false, true, false, false], "the first one would find the same again");
        told(&waiting, 64);
        assert_eq!(woken(), [true, true, false, false], "another change, of which nobody judges");
        // The second one looks again, and finds that it must wait on: it has seen the changes.
        let owed = waiting.take_out(64, numbers[1]).unwrap();
        waiters[1].begin();
        waiting.enter(64, &waiters[1]);
        let late = Arc::new(Waiter::default());
        waiting.enter(64, &late);
        Told::nobody(&waiting).of_owed(owed, &waiters[1], |_| false);
        assert_eq!(woken(), [true, false, false, false], "the first one passes it on when it ends");
        let owed = waiting.take_out(64, numbers[0]).unwrap();
        Told::nobody(&waiting).of_owed(owed, &waiters[0], |_| false);
        assert_eq!(woken(), [true, false, true, true], "two of whom nobody judges");
        for last in [2, 3] {
            let owed = waiting.take_out(64, numbers[last]).unwrap();
            Told::nobody(&waiting).of_owed(owed, &waiters[last], |_| false);
        }
        assert!(!late.is_changed() && !waiters[1].is_changed(), "they have come after the changes");
    }
}

impl<P: Protocol> Engine<P> {
    /// The engine's waiters, for indexes: a bucket or leaf that is retired wakes those that watch it.
    pub fn watched_nodes(&self) -> WatchedNodes {
        WatchedNodes::of(&self.shared.features.waiting)
    }

    /// Closes objects of the engine: operations that begin later end their transactions with [`Misuse::Dropped`](crate::Misuse::Dropped). Transactions that wait
    /// begin again, and so learn of it. Operations in progress go on, and their transactions may commit.
    pub fn close_objects<'m>(&self, objects: impl IntoIterator<Item = &'m ObjectMeta>) {
        objects.into_iter().for_each(ObjectMeta::close);
        self.shared.features.waiting.wake_all();
    }
}
