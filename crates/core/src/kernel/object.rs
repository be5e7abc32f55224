//! Objects: the part that a datatype plays in a commit.

use crate::kernel::abort::Abort;
use crate::kernel::item::{Flags, Item, ItemId, Payload};
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::protocol::Protocol;

use crate::memory::arena::Arena;
use crate::memory::cell::{Cell, Value};
use crate::memory::identity::ObjectMeta;
use crate::memory::pin::Pin;
use crate::memory::structure::{KeySpan, StructureVersion};
use crate::memory::versions::{Keeper, Redo};
use std::any::Any;
use std::ptr::NonNull;

/// The effect of a write on its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// It exists as before, with another value.
    Update,
    /// It exists as before; its value was changed in a way that commutes with the other writes of this kind directly before and
    /// behind it.
    Commute,
    /// It exists now.
    Insert,
    /// It exists no longer.
    Delete,
}

/// An addition would leave the range of the number to which it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfRange;

/// The commit-time operations of a transactional datatype (sto §3.2, `TObject`).
///
/// Locking, validation and versions are the protocol's, on the segment's header. The datatype only knows its values: it
/// installs a write, undoes an early change, checks a predicate. (STO puts lock, check and unlock into the datatype,
/// which ties each datatype to one protocol.)
///
/// # Safety
///
/// The engine calls these functions with items that the datatype itself made, so an implementation may
/// rely on the types behind `segment` and `payload` being those it stored. In turn:
///
/// - `install` and `undo` must consume the payload of an item with a pending write (exactly one of them is
///   called, once);
/// - the object and all its segments must stay in memory as long as any attempt may hold items for them:
///   they are freed through the epoch only ([`EpochBox`](crate::EpochBox), [`Pin::retire`]);
/// - each operation must work with the access that it got by [entering](crate::Transaction::enter) with the object's
///   [`ObjectMeta`].
pub unsafe trait Object<P: Protocol>: Send + Sync {
    /// The object's identity.
    fn meta(&self) -> &ObjectMeta;

    /// Describes the key of a segment, as text for errors and reports.
    ///
    /// # Safety
    ///
    /// `segment` is one of this object's, and still in memory.
    unsafe fn describe(&self, segment: NonNull<P::Header>) -> String;

    /// A number that distinguishes a segment from the object's others: an index, a hash of the key, anything if there
    /// is only one. The same in each run, unlike addresses, so that simulations are repeatable.
    ///
    /// # Safety
    ///
    /// As for [`describe`](Self::describe).
    unsafe fn identify(&self, segment: NonNull<P::Header>) -> u64;

    /// Appends bytes that name a segment among the object's permanently: another segment that takes its place later (a
    /// record inserted again) has the same name. If the object has an order, names compare as its keys do.
    ///
    /// # Safety
    ///
    /// As for [`describe`](Self::describe).
    unsafe fn name(&self, segment: NonNull<P::Header>, bytes: &mut Vec<u8>) {
        // SAFETY: the caller's promise.
        bytes.extend_from_slice(&unsafe { self.identify(segment) }.to_be_bytes());
    }

    /// The position of a segment in the order in which commits acquire; always the same for the same segment. Two
    /// segments may have the same. It runs no users' code.
    ///
    /// # Safety
    ///
    /// As for [`describe`](Self::describe).
    #[inline]
    unsafe fn rank(&self, segment: NonNull<P::Header>) -> u64 {
        // SAFETY: the caller's promise.
        self.meta().rank_of(unsafe { self.identify(segment) } as u32)
    }

    /// The effect of an item's pending write on its key; `None` if it changes nothing that others can see. Changes at the commit
    /// without conditions [commute](WriteKind::Commute).
    fn effect(&self, _item: &Item<P>) -> Option<WriteKind> {
        Some(WriteKind::Update)
    }

    /// Describes a bucket or leaf, as text for errors and reports.
    ///
    /// # Safety
    ///
    /// `node` was observed by this object under the pin.
    unsafe fn describe_structure(&self, _node: NonNull<StructureVersion>, _pin: &Pin) -> String {
        String::from("range or absence")
    }

    /// Checks a pending write in its final state: the body has ended, and all its operations have run. Called before the
    /// protocol's commit, for all pending writes of an attempt that
    /// [wants it](crate::ObjectAccess::want_check).
    ///
    /// It may run users' code. A panic ends the transaction as a deferred operation's does.
    ///
    /// # Errors
    ///
    /// A rollback, which counts only if the attempt has seen one consistent state.
    ///
    /// # Safety
    ///
    /// The item has a pending write of this object.
    unsafe fn check(&self, _item: &Item<P>) -> Result<(), Abort> {
        Ok(())
    }

    /// Makes what must be done once of the item's pending changes, and finds out if others can be made. Called at commit while the segment is
    /// locked, before anything is logged or installed, for attempts that change something at the commit. It may run users' code; a panic
    /// ends the transaction as a deferred operation's does.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`], a rollback.
    ///
    /// # Safety
    ///
    /// The item has a pending write of this object, and the caller holds the segment's lock.
    unsafe fn settle(&self, _item: ItemId, _tx: &mut ObjectAccess<'_, P>) -> Result<(), OutOfRange> {
        Ok(())
    }

    /// True if [`settle`](Self::settle) would succeed. Asked within a [region](crate::region), of a write that [may be installed
    /// there](Self::installs_in_regions).
    ///
    /// # Safety
    ///
    /// As for [`settle`](Self::settle).
    unsafe fn changes_fit(&self, _item: &Item<P>, _pin: &Pin) -> bool {
        true
    }

    /// Makes a pending write the segment's value. Called at commit while the segment is locked.
    ///
    /// # Safety
    ///
    /// The item has a pending write of this object, and the caller holds the segment's lock.
    unsafe fn install(&self, item: &mut Item<P>, pin: &Pin);

    /// True if the item's pending write may be installed in a [region](crate::region), which may be cut off at any instruction and
    /// begun again: [`install`](Self::install) then changes nothing but words of `hotrow_sync::atomic` and what the pending value owns,
    /// which it moves into a cell; it retires only through the pin, and runs no users' code. The answer says no more than is true
    /// of this write.
    fn installs_in_regions(&self, _item: &Item<P>) -> bool {
        false
    }

    /// Hands what the item's pending write is going to replace over to snapshots, by a call of [`Keeper::keep_cell`] or
    /// [`Keeper::keep`]. The object's reads [on a snapshot](crate::SnapshotAccess::read_on_snapshot) get it. Called at commit, before
    /// [`install`](Self::install), if a snapshot may need it. It runs no users' code but [`Value::heap_bytes`](crate::Value).
    ///
    /// An object that keeps nothing must refuse to be read on snapshots
    /// ([`SnapshotAccess::no_snapshots`](crate::SnapshotAccess::no_snapshots)).
    ///
    /// # Safety
    ///
    /// As for [`install`](Self::install).
    unsafe fn keep(&self, item: &Item<P>, keeper: &mut Keeper<'_>);

    /// Appends the entries of the item's pending write to a log's record. Called at commit, before [`install`](Self::install),
    /// if the engine has a log; an object that is not durable appends nothing. It may run users' code; after a panic the
    /// transaction is rolled back.
    ///
    /// # Errors
    ///
    /// The reason for which the write cannot be logged: the transaction is refused.
    ///
    /// # Safety
    ///
    /// As for [`install`](Self::install).
    unsafe fn log(&self, _item: &Item<P>, _pin: &Pin, _entries: &mut Vec<u8>) -> Result<(), String> {
        Ok(())
    }

    /// Makes the item's pending changes to a version that was kept for snapshots, too. The item belongs to a later
    /// [piece](crate::Pieces) of a transaction, and a commit that comes after the transaction has changed the segment before. Pending
    /// writes of other kinds never meet that: they would conflict.
    ///
    /// # Safety
    ///
    /// As for [`install`](Self::install).
    unsafe fn redo(&self, _item: &Item<P>, _redo: Redo<'_>) {
        debug_assert!(false, "only rows are changed in pieces");
    }

    /// Drops a pending write, and makes the attempt's early insertions unreachable for others. Called when an attempt
    /// aborts, before the protocol releases its locks. Without insertions it is what [`restore`](Self::restore) does with nothing saved.
    ///
    /// # Safety
    ///
    /// The item has a pending write of this object. Its segment is locked only if the protocol locked it.
    unsafe fn undo(&self, item: &mut Item<P>, pin: &Pin) {
        // SAFETY: the caller's promise.
        unsafe { self.restore(item, None, pin) };
    }

    /// Saves an item's pending write, because a part of the body is about to change it that may be undone alone.
    ///
    /// # Safety
    ///
    /// The item has a pending write of this object.
    unsafe fn save(&self, item: &Item<P>, saver: &Saver<'_, P>) -> SavedWrite;

    /// Drops the pending write of an item, and gives it back the one that was [saved](Self::save) before; `None` if it had
    /// none. Without one, a row that the attempt has inserted must count as deleted again. The item's predicate stays.
    ///
    /// # Safety
    ///
    /// The item has a pending write of this object. It was changed since it was saved.
    unsafe fn restore(&self, item: &mut Item<P>, saved: Option<SavedWrite>, pin: &Pin);

    /// Cleans up after a commit or an abort, when nothing is locked any more: unlink, retire, rebalance.
    /// Called for items that asked for it ([`ObjectAccess::want_cleanup`](crate::ObjectAccess::want_cleanup))
    /// and for segments that the attempt made.
    ///
    /// # Safety
    ///
    /// The item had a pending write of this object, which was installed or undone.
    unsafe fn cleanup(&self, _item: &mut Item<P>, _committed: bool, _pin: &Pin) {}

    /// True if the item's predicate holds of the segment's current value (sto §3.5).
    ///
    /// The protocol makes sure that the value does not change during the call, or calls it again.
    ///
    /// # Safety
    ///
    /// The item has a predicate of this object.
    unsafe fn predicate_holds(&self, _item: &Item<P>) -> bool {
        true
    }

    /// Copies the facts on which an attempt depends that has a predicate of the item's segment and is going to wait for a change.
    /// Others judge by them if it would find the same again. `None`: nobody can judge, so that it looks again at every change.
    ///
    /// # Safety
    ///
    /// The item has a predicate of this object.
    unsafe fn facts(&self, _item: &Item<P>) -> Option<Box<dyn Any + Send>> {
        None
    }

    /// True if an attempt that has seen these [facts](Self::facts) of a segment, and waits, would find the same again. The value may
    /// change meanwhile; then the commit that changes it asks again.
    ///
    /// # Safety
    ///
    /// The segment is one of this object's, and in memory.
    unsafe fn facts_hold(&self, _segment: NonNull<P::Header>, _facts: &dyn Any) -> bool {
        false
    }

    /// Looks again at the part of a bucket or leaf that was observed, because the node has changed since. True if no key
    /// has come or gone there that a commit has made present or absent, and none is about to. Changes that the attempt
    /// has made itself do not count; `is_own` tells the segments that it has made. Users' code that it runs is contained: a
    /// panic counts as a change.
    ///
    /// True means that the fact observed has held from the observation until the call began.
    ///
    /// # Safety
    ///
    /// `seen` is what this object has [kept](crate::StructureAccess::keep_seen) for an observation under the pin.
    unsafe fn still_holds(
        &self,
        _seen: NonNull<u8>,
        _is_own: &dyn Fn(NonNull<P::Header>) -> bool,
        _pin: &Pin,
    ) -> bool {
        false
    }

    /// Where the key of a segment lies, for protocols that look for conflicts of keys that come and go.
    ///
    /// # Safety
    ///
    /// The segment is one of this object's, and in memory.
    unsafe fn span(&self, _segment: NonNull<P::Header>) -> KeySpan {
        KeySpan::ALL
    }

    /// Where the part of a bucket or leaf lies that was observed.
    ///
    /// # Safety
    ///
    /// As for [`still_holds`](Self::still_holds).
    unsafe fn span_seen(&self, _seen: NonNull<u8>) -> KeySpan {
        KeySpan::ALL
    }
}

/// An item's pending write as it was when a part of the body began, with the item's tag.
///
/// An object makes it in [`Object::save`](crate::Object::save), and gets it back in
/// [`Object::restore`](crate::Object::restore).
#[must_use]
pub struct SavedWrite {
    payload: Option<Payload>,
    discard: unsafe fn(Payload, &Pin),
    flags: u16,
    tag: u16,
}

/// Makes [`SavedWrite`]s in the attempt's memory.
pub struct Saver<'a, P: Protocol> {
    pub(crate) item: &'a Item<P>,
    pub(crate) arena: &'a Arena,
}

impl<P: Protocol> Saver<'_, P> {
    /// Saves a pending write that has no payload.
    pub fn nothing(&self) -> SavedWrite {
        self.saved(None, |_, _| ())
    }

    /// Saves a payload of plain data.
    pub fn plain<T: Copy + 'static>(&self, payload: &T) -> SavedWrite {
        self.saved(Some(Payload::of::<P, T>(*payload, self.arena)), |_, _| ())
    }

    /// Saves a value as a payload that can be installed: a [`Cell::Pending`] of its type.
    pub fn value<T: Value>(&self, value: &T) -> SavedWrite {
        /// # Safety
        ///
        /// The payload holds a pending `T`, which is used nowhere else.
        unsafe fn discard<P: Protocol, T: Value>(payload: Payload, pin: &Pin) {
            // SAFETY: the caller's promise.
            T::Cell::discard(unsafe { payload.address::<P, <T::Cell as Cell<T>>::Pending>().read() }, pin);
        }
        let pending = T::Cell::pend(value.clone());
        self.saved(Some(Payload::of::<P, _>(pending, self.arena)), discard::<P, T>)
    }

    /// Saves a copy of a payload, which may own memory.
    pub fn cloned<T: Clone + Send + 'static>(&self, payload: &T) -> SavedWrite {
        /// # Safety
        ///
        /// The payload holds a `T`, which is used nowhere else.
        unsafe fn discard<P: Protocol, T: Send + 'static>(payload: Payload, pin: &Pin) {
            // SAFETY: the caller's promise.
            pin.drop_later(unsafe { payload.address::<P, T>().read() });
        }
        self.saved(Some(Payload::of::<P, T>(payload.clone(), self.arena)), discard::<P, T>)
    }

    fn saved(&self, payload: Option<Payload>, discard: unsafe fn(Payload, &Pin)) -> SavedWrite {
        SavedWrite { payload, discard, flags: self.item.flags & Flags::CLEANUP.0, tag: self.item.tag }
    }
}

impl SavedWrite {
    /// Drops it.
    pub(crate) fn discard(self, pin: &Pin) {
        if let Some(payload) = self.payload {
            // SAFETY: made together with its function, and consumed here.
            unsafe { (self.discard)(payload, pin) };
        }
    }

    /// Returns the payload.
    ///
    /// # Safety
    ///
    /// It was saved with a payload of this type, under this protocol.
    pub unsafe fn take<P: Protocol, T>(self) -> T {
        // SAFETY: the caller's promise.
        unsafe { self.payload.expect("saved with a payload").address::<P, T>().read() }
    }
}

impl<P: Protocol> Item<P> {
    /// Takes the payload out of the item, which has none afterwards; `None` if it had none.
    ///
    /// # Safety
    ///
    /// The payload, if there is one, is of type `T`.
    #[inline]
    pub unsafe fn take_payload<T>(&mut self) -> Option<T> {
        if !self.has_payload() {
            return None;
        }
        self.unmark(Flags::PAYLOAD);
        // SAFETY: there is a payload, of this type by the caller's promise, and it is not used again.
        Some(unsafe { self.payload::<T>().read() })
    }

    /// Gives the item a saved write again.
    ///
    /// # Safety
    ///
    /// The write was saved of this item, which has no payload now.
    pub unsafe fn put_back(&mut self, saved: SavedWrite) {
        // INVARIANT 9: An item's payload is used only as its flags and its tag say.
        debug_assert!(!self.has_payload(), "the later payload was taken out");
        let SavedWrite { payload, flags, tag, .. } = saved;
        self.unmark(Flags::CLEANUP);
        self.mark_as(Flags(flags));
        self.tag = tag;
        if let Some(payload) = payload {
            self.mark_as(Flags::PAYLOAD);
            self.payload = payload;
        }
    }

    /// Sets the datatype's own mark.
    ///
    /// # Safety
    ///
    /// The item is the caller's object's, and that object's functions can work with this tag and the item's payload.
    pub unsafe fn set_tag(&mut self, tag: u16) {
        self.tag = tag;
    }
}
