//! An attempt that watches what it reads.

use super::registry::{Owed, Seen, Told};
use super::{Waiter, Waiting};
use crate::kernel::attempt::Attempt;
use crate::kernel::item::{Flags, Item, ItemId};
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::object_access::Stop;
use crate::kernel::profile::Isolation;
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::Moments;
use crate::memory::structure::{Observed, StructureChange};
use hotrow_sync::hashing::KeyHashing;
use hotrow_sync::work::{Work, charge};
use hotrow_sync::{Arc, Mutex, lock};
use std::collections::HashMap;

/// The entries of a transaction in the registry.
pub(crate) struct Watch {
    waiting: Arc<Waiting>,
    waiter: Arc<Waiter>,
    entered: Vec<Entered>,
    /// The place of an address in `entered`.
    places: HashMap<usize, usize, KeyHashing>,
    /// The changes that it was told of and has not passed on.
    owed: Vec<Owed>,
    /// The number of times that all had been woken when its attempt began.
    times_all_woken: u64,
}

/// An entry, and the looks at its address that depend on it.
struct Entered {
    address: usize,
    number: u64,
    /// The looks whose results depend on the value itself.
    exact: u32,
    /// The looks at which an object has kept the facts that matter, as its predicate.
    by_facts: u32,
}

impl Watch {
    pub(crate) fn new(waiting: &Arc<Waiting>) -> Self {
        waiting.begin_watching();
        let (waiter, places, times_all_woken) =
            (Arc::default(), HashMap::default(), waiting.times_all_woken());
        Self {
            waiting: waiting.clone(),
            waiter,
            entered: Vec::new(),
            places,
            owed: Vec::new(),
            times_all_woken,
        }
    }

    /// Watches what is at an address, which is loaded afterwards.
    fn enter(&mut self, address: usize, is_exact: bool) {
        charge(Work::Item);
        let Self { waiting, waiter, entered, places, .. } = self;
        let place = *places.entry(address).or_insert_with(|| {
            let number = waiting.enter(address, waiter);
            entered.push(Entered { address, number, exact: 0, by_facts: 0 });
            entered.len() - 1
        });
        let entry = &mut entered[place];
        *(if is_exact { &mut entry.exact } else { &mut entry.by_facts }) += 1;
    }

    /// Takes the last exact look at an address back.
    fn forget(&mut self, address: usize) {
        if let Some(place) = self.places.get(&address) {
            let exact = &mut self.entered[*place].exact;
            *exact = exact.saturating_sub(1);
        }
    }

    /// Takes the entries out all of whose looks were [taken back](Self::forget).
    fn leave_what_matters_not(&mut self) {
        let Self { waiting, entered, owed, .. } = self;
        entered.retain(|entry| {
            let matters = entry.exact + entry.by_facts != 0;
            if !matters {
                owed.extend(waiting.take_out(entry.address, entry.number));
            }
            matters
        });
    }

    /// Takes all entries out, and forgets changes. Those that it was told of are still to be passed on.
    pub(crate) fn start_over(&mut self) {
        for Entered { address, number, .. } in self.entered.drain(..) {
            self.owed.extend(self.waiting.take_out(address, number));
        }
        self.places.clear();
        self.waiter.begin();
        self.times_all_woken = self.waiting.times_all_woken();
    }

    /// True if nothing was read that can change.
    pub(crate) fn is_empty(&self) -> bool {
        self.entered.is_empty()
    }

    pub(crate) fn waiter(&self) -> &Arc<Waiter> {
        &self.waiter
    }
}

impl Drop for Watch {
    /// Passes on what it was told of, whatever has ended the transaction.
    fn drop(&mut self) {
        self.start_over();
        self.waiting.end_watching();
        for owed in self.owed.drain(..) {
            let mut told = Told::nobody(&self.waiting);
            told.of_owed(owed, &self.waiter, |_| false);
        }
    }
}

impl<P: Protocol> Attempt<P> {
    /// Makes the transaction's further attempts watch what they read, or no longer.
    pub(crate) fn set_watch(&mut self, watch: Option<Box<Watch>>) {
        if watch.is_some() {
            // What is deferred is read too late to be watched.
            self.features.operations.has_lost = true;
        }
        self.features.watch = watch;
        self.note_or_not();
    }

    /// Forgets what the transaction has watched, if it watches.
    pub(crate) fn start_watch_over(&mut self) {
        if let Some(watch) = self.features.watch.as_deref_mut() {
            watch.start_over();
        }
    }

    /// Takes the watch out, and watches no longer.
    pub(crate) fn take_watch(&mut self) -> Option<Box<Watch>> {
        let watch = self.features.watch.take();
        self.note_or_not();
        watch
    }

    /// Called when the log or the watch has come or gone, and when the profile has changed.
    #[inline(always)]
    pub(crate) fn note_or_not(&mut self) {
        let is_noted = self.features.log.is_some() || self.features.watch.is_some();
        self.hears.set(Moments::READ, is_noted);
        self.hears.set(Moments::READ_APART, is_noted || self.profile.isolation != Isolation::Serializable);
    }
}

impl<'w, P: Protocol> ObjectAccess<'w, P> {
    /// The engine's waiters.
    #[inline(always)]
    pub(crate) fn waiting(&self) -> &'w Waiting {
        &self.slot.features.waiting
    }

    /// Watches an item's segment, if the attempt watches. `is_exact`: the body gets what is loaded; otherwise, the facts on which
    /// it depends are the item's predicate.
    pub(crate) fn watch_item(&mut self, id: ItemId, is_exact: bool) {
        let item = self.attempt.items.get(id);
        if !item.is(Flags::INSERTED) {
            self.watch_segment(item.segment().addr().get(), is_exact);
        }
    }

    /// Watches a segment that is read next, if the attempt watches.
    pub(crate) fn watch_segment(&mut self, address: usize, is_exact: bool) {
        if let Some(watch) = &mut self.attempt.features.watch {
            watch.enter(address, is_exact);
        }
    }

    /// Takes the last read of an item's value back, for waiting only: what the operation has found elsewhere says as much.
    pub fn read_matters_not_to_wait(&mut self, id: ItemId) {
        let address = self.attempt.items.get(id).segment().addr().get();
        if let Some(watch) = &mut self.attempt.features.watch {
            watch.forget(address);
        }
    }

    /// True if the attempt watches what it depends on. It then looks at segments by the operations here only, and never past them
    /// because the commit will check what was seen: a transaction that waits does not come to its commit.
    #[inline]
    pub fn is_watching(&self) -> bool {
        self.attempt.features.watch.is_some()
    }

    /// Watches a bucket or leaf that was looked at, if the attempt watches. False if it has changed since.
    #[cold]
    pub(crate) fn watch_node(&mut self, observed: Observed) -> bool {
        let Some(watch) = &mut self.attempt.features.watch else { return true };
        watch.enter(observed.node.addr().get(), true);
        // SAFETY: observed under the attempt's pinned epoch, so it is in memory until the attempt ends.
        unsafe { observed.node.as_ref() }.unchanged(observed.version)
    }

    /// Watches the buckets or leaves into which the attempt has inserted, because it depends on their not having had the key. It is
    /// in time: nobody else can insert the key before the attempt ends.
    #[inline(never)]
    pub(crate) fn watch_insertion(&mut self, change: StructureChange) {
        let Some(watch) = &mut self.attempt.features.watch else { return };
        let (StructureChange::Bumped { node, .. } | StructureChange::Split { from: node, .. }) = change;
        watch.enter(node.addr().get(), true);
        if let StructureChange::Split { node, .. } = change {
            watch.enter(node.addr().get(), true);
        }
    }

    /// Notes a bucket or leaf that the attempt has changed, if somebody watches any.
    #[inline(always)]
    pub(crate) fn note_change_of_node(&mut self, change: StructureChange) {
        if self.waiting().has_watchers() {
            self.note_changed_node(change);
        }
    }

    /// Notes a bucket or leaf that the attempt has changed, so that those that watch it are told when the attempt ends.
    #[cold]
    #[inline(never)]
    fn note_changed_node(&mut self, change: StructureChange) {
        let (address, is_split) = match change {
            StructureChange::Bumped { node, .. } => (node.addr().get(), false),
            StructureChange::Split { from, .. } => (from.addr().get(), true),
        };
        if self.attempt.features.graph.is_thief {
            // The owner does not learn of it. Those that are told find the new record, and wait for its lock.
            Told::nobody(self.waiting()).of_change(address, None, |_| false);
        } else {
            self.attempt.features.changed_nodes.push((address, is_split));
        }
    }

    /// True if the attempt is rolled back to wait for a change.
    pub(crate) fn waits_for_change(&self) -> bool {
        matches!(self.attempt.stop, Some(Stop::Retry { .. })) && self.is_watching()
    }

    /// Chooses those that are to be told when an attempt is closed that was rolled back, if there may be any.
    #[inline]
    pub(crate) fn choose_after_rollback_if_any(&mut self) -> Option<Told<'w>> {
        let waits = self.waits_for_change();
        (waits || !self.attempt.features.changed_nodes.is_empty()).then(|| self.choose_after_rollback(waits))
    }

    /// Chooses those that are to be told when the attempt is closed, which has committed: for what it has written, for the nodes
    /// that it has changed, and for the changes that it was told of itself.
    #[cold]
    #[inline(never)]
    pub(crate) fn choose_after_commit(&mut self) -> Told<'w> {
        let mut told = Told::nobody(self.waiting());
        let attempt = &mut *self.attempt;
        attempt.features.wakes = false;
        for (address, _) in attempt.features.changed_nodes.drain(..) {
            told.of_change(address, None, |_| false);
        }
        for id in attempt.items.writes() {
            let item = attempt.items.get(*id);
            told.of_change(item.segment().addr().get(), None, |seen| finds_the_same(item, seen));
        }
        attempt.start_watch_over();
        self.choose_for_owed(&mut told);
        told
    }

    /// As [`choose_after_commit`](Self::choose_after_commit), for an attempt that is rolled back. Nobody can see what it has inserted and
    /// taken out again; but where it has split a node, what others watch may be elsewhere.
    #[cold]
    #[inline(never)]
    fn choose_after_rollback(&mut self, waits: bool) -> Told<'w> {
        let mut told = Told::nobody(self.waiting());
        let attempt = &mut *self.attempt;
        let own = attempt.features.watch.as_ref().map(|watch| watch.waiter().clone());
        for (address, is_split) in attempt.features.changed_nodes.drain(..) {
            if is_split {
                told.of_change(address, own.as_ref(), |_| false);
            }
        }
        if waits {
            self.choose_for_owed(&mut told);
        }
        told
    }

    /// Passes on the changes that it was told of. Where the attempt has touched the segment, it can judge if others would find the
    /// same again.
    fn choose_for_owed(&mut self, told: &mut Told<'_>) {
        let attempt = &mut *self.attempt;
        let Some(watch) = &mut attempt.features.watch else { return };
        for owed in watch.owed.drain(..) {
            let item = attempt.items.at(owed.address).map(|id| attempt.items.get(id));
            told.of_owed(owed, &watch.waiter, |seen| item.is_some_and(|item| finds_the_same(item, seen)));
        }
    }

    /// Lets others judge by what the attempt has seen, which is about to wait, if they need wake it.
    #[cold]
    #[inline(never)]
    pub(crate) fn show_what_it_has_seen(&mut self) {
        let attempt = &mut *self.attempt;
        let Some(watch) = &mut attempt.features.watch else { return };
        watch.leave_what_matters_not();
        if watch.times_all_woken != watch.waiting.times_all_woken() {
            watch.waiter.tell(|| ());
        }
        for Entered { address, number, .. } in watch.entered.iter().filter(|entered| entered.exact == 0) {
            let Some(id) = attempt.items.at(*address) else { continue };
            let item = attempt.items.get(id);
            if !item.is(Flags::PREDICATE) {
                continue;
            }
            // SAFETY: the item has a predicate of its object, which is in memory until the attempt ends.
            if let Some(facts) = unsafe { item.object().facts(item) } {
                let (object, facts) = (item.object().meta().number(), Mutex::new(facts));
                watch.waiting.set_seen(*address, *number, Arc::new(Seen { object, facts }));
            }
        }
    }
}

/// True if a transaction that has seen this of an item's segment, and waits, would find the same again.
fn finds_the_same<P: Protocol>(item: &Item<P>, seen: &Seen) -> bool {
    let object = item.object();
    // SAFETY: the facts are this object's, and so is the item's segment; both are in memory until the attempt ends.
    object.meta().number() == seen.object
        && unsafe { object.facts_hold(item.segment(), &**lock(&seen.facts)) }
}
