//! An attempt that watches what it reads.

use super::{Waiter, Waiting};
use crate::attempt::Attempt;
use crate::item::{Flags, ItemId};
use crate::profile::Isolation;
use crate::protocol::Protocol;
use crate::structure::{Observed, StructureChange};
use crate::transaction::ObjectAccess;
use hotrow_sync::Arc;
use hotrow_sync::work::{Work, charge};
use std::collections::HashSet;

/// The entries of a transaction in the registry.
pub(crate) struct Watch {
    waiting: Arc<Waiting>,
    waiter: Arc<Waiter>,
    entered: Vec<usize>,
    known: HashSet<usize>,
}

impl Watch {
    pub(crate) fn new(waiting: &Arc<Waiting>) -> Self {
        waiting.begin_watching();
        Self { waiting: waiting.clone(), waiter: Arc::default(), entered: Vec::new(), known: HashSet::new() }
    }

    /// Watches what is at an address, which is loaded afterwards.
    fn enter(&mut self, address: usize) {
        charge(Work::Item);
        if self.known.insert(address) {
            self.waiting.enter(address, &self.waiter);
            self.entered.push(address);
        }
    }

    /// Takes all entries out, and forgets changes.
    pub(crate) fn start_over(&mut self) {
        for address in self.entered.drain(..) {
            self.waiting.take_out(address, &self.waiter);
        }
        self.known.clear();
        self.waiter.begin();
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
    fn drop(&mut self) {
        self.start_over();
        self.waiting.end_watching();
    }
}

impl<P: Protocol> Attempt<P> {
    /// Makes the transaction's further attempts watch what they read, or no longer.
    pub(crate) fn set_watch(&mut self, watch: Option<Box<Watch>>) {
        if watch.is_some() {
            // What is deferred is read too late to be watched.
            self.operations.has_lost = true;
        }
        self.watch = watch;
        self.note_or_not();
    }

    /// Takes the watch out, and watches no longer.
    pub(crate) fn take_watch(&mut self) -> Option<Box<Watch>> {
        let watch = self.watch.take();
        self.note_or_not();
        watch
    }

    /// True if reads take the path of those that are noted: in a history, or to be watched.
    #[inline(always)]
    pub(crate) fn is_noted(&self) -> bool {
        self.is_noted
    }

    /// Called when the log or the watch has come or gone, and when the profile has changed.
    pub(crate) fn note_or_not(&mut self) {
        self.is_noted = self.log.is_some() || self.watch.is_some();
        self.reads_otherwise = self.is_noted || self.profile.isolation != Isolation::Serializable;
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Watches an item's segment, if the attempt watches.
    pub(crate) fn watch_item(&mut self, id: ItemId) {
        let item = self.attempt.items.get(id);
        if !item.is(Flags::INSERTED) {
            self.watch_segment(item.segment().addr().get());
        }
    }

    /// Watches a segment that is read next, if the attempt watches.
    pub(crate) fn watch_segment(&mut self, address: usize) {
        if let Some(watch) = &mut self.attempt.watch {
            watch.enter(address);
        }
    }

    /// Watches a bucket or leaf that was looked at, if the attempt watches. False if it has changed since.
    #[cold]
    pub(crate) fn watch_node(&mut self, observed: Observed) -> bool {
        let Some(watch) = &mut self.attempt.watch else { return true };
        watch.enter(observed.node.addr().get());
        // SAFETY: observed under the attempt's pinned epoch, so it is in memory until the attempt ends.
        unsafe { observed.node.as_ref() }.unchanged(observed.version)
    }

    /// Notes a bucket or leaf that the attempt has changed, so that those that watch it are told when the attempt ends.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_changed_node(&mut self, change: StructureChange) {
        let (StructureChange::Bumped { node, .. } | StructureChange::Split { from: node, .. }) = change;
        let address = node.addr().get();
        if self.attempt.graph.is_thief {
            // The owner does not learn of it. Those that are told find the new record, and wait for its lock.
            self.waiting().tell(std::iter::once(address));
        } else {
            self.attempt.changed_nodes.push(address);
        }
    }

    /// Takes the addresses out at which the attempt, which has committed, has changed anything.
    #[cold]
    #[inline(never)]
    pub(crate) fn take_changed(&mut self) -> Vec<usize> {
        let attempt = &mut *self.attempt;
        attempt.wakes = false;
        let items = &attempt.items;
        let written = items.writes().iter().map(|id| items.get(*id).segment().addr().get());
        let mut changed = std::mem::take(&mut attempt.changed_nodes);
        changed.extend(written);
        changed
    }
}
