//! Savepoints: a part of a body can be undone alone.
//!
//! # What is undone
//!
//! A part that fails leaves no pending write: each item has the one again that it had when the part began, or none. A row
//! that the part has inserted counts as inserted and deleted. The rest stays: what the part has read is validated with
//! all other reads, because the body may go on as it does only because of what it has seen there. Locks are held to the end
//! of the attempt, too (strict two-phase locking).
//!
//! # How
//!
//! Pending writes change in two places only. An item is [marked](crate::kernel::item::Items::mark_write) as written for the first
//! time: a part undoes all items that were so marked since it began, which are the last ones in the list of writes. The other
//! place is an operation that is about to change a pending write: if it was made before the innermost part began, the object
//! [saves](crate::Object::save) a copy of it first. Flag `SAFE` marks the items for which neither is to be done any more.
//!
//! The parts are nested transactions (closed nesting), with savepoints as in SQL. `or_else` is that of Harris, Marlow,
//! Peyton Jones and Herlihy, "Composable Memory Transactions", PPoPP 2005, but answers to errors, too.
//!
//! A savepoint costs a copy of each earlier pending write that its part changes, and a walk over the writes of the part around
//! it.
//!
//! Where operations are [deferred](crate::features::deferred), those recorded so far run before the first part begins, and all later ones
//! run at once. So the attempt is wild (drp §4.2) from then on.

use crate::features::state::State;
use crate::kernel::abort::Abort;
use crate::kernel::attempt::Attempt;
use crate::kernel::item::{Flags, Item, ItemId, Items};
use crate::kernel::object::{SavedWrite, Saver};
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::Moments;
use crate::kernel::transaction::Transaction;
use crate::memory::pin::Pin;
use crate::memory::thread_mark;
use crate::memory::users_code::contained;

/// The parts of the body that are running, and what they have saved.
pub(crate) struct Savepoints {
    /// The innermost part is the last one.
    parts: Vec<Part>,
    saved: Vec<(ItemId, SavedWrite)>,
    /// True if the attempt has ever opened one.
    pub(crate) any: bool,
}

/// A running part: the number of writes, of saved writes, and of hooks when it began.
#[derive(Clone, Copy)]
struct Part {
    writes: usize,
    saved: usize,
    hooks: usize,
}

impl Savepoints {
    pub(crate) fn new() -> Self {
        Self { parts: Vec::new(), saved: Vec::new(), any: false }
    }

    /// True if a part is running.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Forgets the parts of an attempt that was undone as a whole.
    #[inline]
    pub(crate) fn clear(&mut self, pin: Option<&Pin>) {
        if self.any {
            self.any = false;
            self.parts.clear();
            for (_, saved) in self.saved.drain(..) {
                // Without a pin the attempt was leaked, and its payloads with it.
                if let Some(pin) = pin {
                    saved.discard(pin);
                }
            }
        }
    }
}

/// Marks the items of the innermost part as `SAFE`, or no longer.
fn mark_safe<P: Protocol>(items: &mut Items<P>, points: &Savepoints, safe: bool) {
    if let Some(part) = points.parts.last() {
        let mark = |item: &mut Item<P>| {
            if safe { item.mark_as(Flags::SAFE) } else { item.unmark(Flags::SAFE) }
        };
        items.writes_mut().skip(part.writes).for_each(|(_, item)| mark(item));
        points.saved[part.saved..].iter().for_each(|(id, _)| mark(items.get_mut(*id)));
    }
    items.mark_new_writes(safe && points.is_open());
}

impl<P: Protocol> Attempt<P> {
    fn open_part(&mut self) {
        self.hears.add(Moments::FORGETTING);
        let Self { items, features: State { savepoints, hooks, .. }, .. } = self;
        mark_safe(items, savepoints, false);
        debug_assert!(!items.iter().any(|item| item.is(Flags::SAFE)), "each is of the innermost part");
        let part = Part { writes: items.writes().len(), saved: savepoints.saved.len(), hooks: hooks.len() };
        savepoints.parts.push(part);
        savepoints.any = true;
        mark_safe(items, savepoints, true);
    }

    /// Ends a part whose changes stay.
    fn keep_part(&mut self) {
        let Self { items, features: State { savepoints, .. }, pin, .. } = self;
        mark_safe(items, savepoints, false);
        let Some(part) = savepoints.parts.pop() else { return };
        let inner = savepoints.saved.split_off(part.saved);
        mark_safe(items, savepoints, true);
        for (id, saved) in inner {
            // The part around it has an earlier copy, or has made the write itself, or there is no part around it.
            if savepoints.is_open() && !items.get(id).is(Flags::SAFE) {
                items.get_mut(id).mark_as(Flags::SAFE);
                savepoints.saved.push((id, saved));
            } else if let Some(pin) = pin {
                saved.discard(pin);
            }
        }
    }

    /// Ends a part whose changes are undone.
    fn undo_part(&mut self) {
        let Self { items, features: State { savepoints, hooks, .. }, pin, .. } = self;
        mark_safe(items, savepoints, false);
        let (Some(part), Some(pin)) = (savepoints.parts.pop(), pin.as_ref()) else { return };
        hooks.undo_part(part.hooks);
        for (id, saved) in savepoints.saved.drain(part.saved..).rev() {
            restore(items.get_mut(id), Some(saved), pin);
        }
        items.undo_writes(part.writes, |item| restore(item, None, pin));
        mark_safe(items, savepoints, true);
    }

    /// Saves the pending write of an item that is about to change, if a part began after it was made.
    #[cold]
    #[inline(never)]
    pub(crate) fn save(&mut self, id: ItemId) {
        let Self { items, features: State { savepoints, .. }, arena, .. } = self;
        let item = items.get(id);
        if !item.is(Flags::WRITE) {
            return;
        }
        // SAFETY: the item has a pending write of its object. (Users' code makes the copy, and may panic: then nothing has
        // changed yet.)
        let saved = unsafe { item.object().save(item, &Saver { item, arena }) };
        savepoints.saved.push((id, saved));
        items.get_mut(id).mark_as(Flags::SAFE);
    }
}

/// Gives an item back the pending write that it had when the part began, if it had one.
fn restore<P: Protocol>(item: &mut Item<P>, saved: Option<SavedWrite>, pin: &Pin) {
    let touched = item.touched;
    // SAFETY: the item has a pending write of its object, and what was saved is of this item.
    contained(|| unsafe { touched.object().restore(item, saved, pin) });
}

/// A part of the body in progress. When it is dropped, the part ends: its code has returned, failed, or panicked.
struct RunningPart<'t, 'w, P: Protocol> {
    access: &'t mut ObjectAccess<'w, P>,
    /// The number of parts that were running before it.
    around: usize,
    /// True if the body had made an error of its own before it.
    noted: bool,
    /// True if an operation had failed between changes that belong together before it.
    is_half_changed: bool,
    succeeded: bool,
}

impl<P: Protocol> Drop for RunningPart<'_, '_, P> {
    fn drop(&mut self) {
        if !self.succeeded {
            thread_mark::set_rollback(self.noted);
        }
        // An attempt that has lost is undone as a whole.
        if !self.access.is_stopped() {
            if !self.succeeded {
                self.access.attempt.hears.set(Moments::HALF_CHANGED, self.is_half_changed);
            }
            // More than one only if the part has exchanged its transaction for another one.
            self.access.end_marks(self.around, self.succeeded);
        }
    }
}

impl<P: Protocol> Transaction<'_, P> {
    /// Runs a part of the body that can fail alone (a nested transaction): if it returns an error, or panics and the body
    /// catches that, all that it has written is undone, and the body may go on. Parts may be nested.
    ///
    /// The reads of an undone part are still validated at the commit, and its locks are held until then. A part that changes
    /// an earlier write of the body copies it once. Deferred operations that wait run before the part, and no operation
    /// behind it is deferred. A condition of a deferred operation that does not hold ends the whole transaction, also within
    /// a part.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on: pass it up with `?`. The part's own error is inside.
    pub fn savepoint<R, E>(
        &mut self,
        part: impl FnOnce(&mut Self) -> Result<R, E>,
    ) -> Result<Result<R, E>, Abort> {
        let around = self.0.begin_part()?;
        let noted = thread_mark::is_rolling_back();
        let is_half_changed = self.0.attempt.hears(Moments::HALF_CHANGED);
        let mut running =
            RunningPart { access: &mut self.0, around, noted, is_half_changed, succeeded: false };
        let result = part(running.access);
        if running.access.is_stopped() {
            return Err(Abort::INTERNAL);
        }
        running.succeeded = result.is_ok();
        Ok(result)
    }

    /// Runs the second part if the first one fails, or waits for a change ([`retry`](Self::retry)); the first one is then undone.
    /// Both may pass up any error, as bodies do. If the second one waits, the transaction waits for a change of what either has
    /// read, for as long as the second one says.
    ///
    /// # Errors
    ///
    /// The error of the second part; or [`Abort`] when the attempt cannot go on.
    pub fn or_else<R, E: From<Abort>>(
        &mut self,
        first: impl FnOnce(&mut Self) -> Result<R, E>,
        second: impl FnOnce(&mut Self) -> Result<R, E>,
    ) -> Result<R, E> {
        let attempt = &self.0.attempt;
        let (around, is_half_changed) =
            (attempt.features.savepoints.parts.len(), attempt.hears(Moments::HALF_CHANGED));
        match self.savepoint(first) {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(_)) => second(self),
            Err(_) if self.0.go_on_after_retry(around, is_half_changed) => second(self),
            Err(abort) => Err(abort.into()),
        }
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Opens a part, and returns the number of parts around it.
    fn begin_part(&mut self) -> Result<usize, Abort> {
        if self.is_stopped() {
            return Err(Abort::INTERNAL);
        }
        self.deferral_mut().settle()?;
        if self.attempt.can_defer() && self.attempt.features.intentions.are_waiting() {
            // Within an intention, before which others are to run.
            return Err(self.start_over(None));
        }
        self.attempt.features.operations.run_at_once = true;
        // What would block waits from here on: the part could take the refusal for an error of its own.
        self.attempt.features.graph.nonblocking = false;
        self.attempt.open_part();
        Ok(self.attempt.features.savepoints.parts.len() - 1)
    }

    /// Opens a part that no closure ends, between two statements of a [session](crate::Session).
    pub(crate) fn open_mark(&mut self) -> Result<(), Abort> {
        self.begin_part().map(drop)
    }

    /// Ends all parts but the first `around`. Their changes stay, or are undone.
    pub(crate) fn end_marks(&mut self, around: usize, keeps: bool) {
        while self.attempt.features.savepoints.parts.len() > around {
            if keeps { self.attempt.keep_part() } else { self.attempt.undo_part() }
        }
    }

    /// Saves an item's pending write, which is about to change in another way than by an operation here that announces a
    /// write.
    #[inline]
    pub fn save(&mut self, id: ItemId) {
        if self.attempt.features.savepoints.is_open() && !self.attempt.items.get(id).is(Flags::SAFE) {
            self.attempt.save(id);
        }
    }
}
