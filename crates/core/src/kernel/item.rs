//! Items and the tracking set: an attempt's state for each segment that it touched.
//!
//! An item is found by its segment's address in O(1) (`address_index`).

use crate::kernel::object::Object;
use crate::kernel::protocol::Protocol;
use crate::memory::address_index::AddressIndex;
use crate::memory::arena::Arena;
use crate::memory::cell::Cell;
use crate::memory::pin::Pin;
use crate::memory::structure::KeySpan;
use hotrow_sync::atomic::AtomicU64;
use hotrow_sync::memory;
use hotrow_sync::profile;
use hotrow_sync::work::{Work, charge, charge_times};
use std::alloc::Layout;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// The number of an item within its attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ItemId(pub(crate) u32);

impl ItemId {
    /// The attempt's first item.
    pub(crate) const FIRST: Self = Self(0);

    /// Makes the number of the item at a position in the order of first touch. Protocols get theirs from
    /// [`Items::entries`] and [`Items::ids`].
    ///
    /// # Safety
    ///
    /// The attempt for which the number is used has such an item, and it is the caller's own object's, or the caller is
    /// a protocol. (Or the number is used for no attempt.)
    pub unsafe fn from_position(position: usize) -> Self {
        Self(position as u32)
    }

    /// The item's position in the order of first touch.
    #[inline(always)]
    pub fn position(self) -> usize {
        self.0 as usize
    }
}

/// Facts about an item, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags(pub(crate) u16);

impl Flags {
    /// The segment was read, and the mark holds the state that was read.
    pub const READ: Flags = Flags(1);
    /// The segment will be written: the payload is the pending write.
    pub const WRITE: Flags = Flags(2);
    /// The payload holds a predicate to be checked at commit.
    pub const PREDICATE: Flags = Flags(4);
    /// The protocol holds the segment's lock for this attempt.
    pub const LOCKED: Flags = Flags(8);
    /// The attempt made the segment: its lock was held from the start, and no other attempt has seen a value.
    pub const INSERTED: Flags = Flags(16);
    /// The object's `cleanup` must be called.
    pub const CLEANUP: Flags = Flags(32);
    /// The next holder of the segment's lock relies on finding this attempt's insertions, so the lock is released only
    /// after they are installed.
    pub const RELEASE_AFTER_INSERTS: Flags = Flags(512);
    /// The item has a payload: a pending write or a predicate.
    pub(crate) const PAYLOAD: Flags = Flags(4096);
    /// The pending write has been installed. Noted where not all are installed in one round, and where
    /// `debug_assertions` are on.
    pub(crate) const INSTALLED: Flags = Flags(2048);
    /// The innermost part of the body that can be undone alone has made the pending write, or has saved it before it
    /// changes it: see `savepoint.rs`.
    pub(crate) const SAFE: Flags = Flags(8192);

    /// The value to be replaced belongs to a version that is kept for snapshots.
    pub(crate) const KEPT: Flags = Flags(16384);

    /// The flags that a protocol sets and clears. The others tell the type of an item's payload.
    const OF_PROTOCOLS: Flags = Flags(Self::READ.0 | Self::LOCKED.0);
}

// INVARIANT 8: Each flag of an item is a bit of its own; a protocol changes only `READ` and `LOCKED`.
const _: () = {
    let flags = [
        Flags::READ,
        Flags::WRITE,
        Flags::PREDICATE,
        Flags::LOCKED,
        Flags::INSERTED,
        Flags::CLEANUP,
        Flags::RELEASE_AFTER_INSERTS,
        Flags::PAYLOAD,
        Flags::INSTALLED,
        Flags::SAFE,
        Flags::KEPT,
        Flags::DEFERRED,
        Flags::DEFERRED_WRITE,
        Flags::HELD_BACK,
        Flags::ADOPTED,
    ];
    let (mut seen, mut at) = (0, 0);
    while at < flags.len() {
        assert!(flags[at].0.is_power_of_two() && seen & flags[at].0 == 0, "each flag is a bit of its own");
        seen |= flags[at].0;
        at += 1;
    }
};

/// A segment and its object, which both stay in memory until the attempt ends.
pub struct TouchedSegment<P: Protocol> {
    segment: NonNull<P::Header>,
    object: NonNull<dyn Object<P>>,
}

impl<P: Protocol> Clone for TouchedSegment<P> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<P: Protocol> Copy for TouchedSegment<P> {}

impl<P: Protocol> TouchedSegment<P> {
    /// # Safety
    ///
    /// The segment is the object's, and both stay in memory until the attempt ends.
    #[inline(always)]
    pub(crate) unsafe fn new(segment: NonNull<P::Header>, object: NonNull<dyn Object<P>>) -> Self {
        Self { segment, object }
    }

    #[inline(always)]
    pub(crate) fn into_parts(self) -> (NonNull<P::Header>, NonNull<dyn Object<P>>) {
        (self.segment, self.object)
    }

    /// Tells the profile of a simulation that the segment will be accessed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn announce(&self) {
        let meta = self.object().meta();
        profile::enter_object(std::ptr::from_ref(meta).addr(), || meta.name().to_owned());
        // SAFETY: the segment is the object's, and in memory.
        profile::touch(self.address(), || unsafe { self.object().describe(self.segment) });
    }

    /// The segment's header.
    #[inline(always)]
    pub fn header(&self) -> &P::Header {
        // SAFETY: in memory until the attempt ends, promised the maker.
        unsafe { self.segment.as_ref() }
    }

    /// The segment's position in the order in which commits acquire: see [`Object::rank`].
    #[inline]
    pub fn rank(&self) -> u64 {
        // SAFETY: the segment is the object's, and in memory until the attempt ends.
        unsafe { self.object().rank(self.segment) }
    }

    /// Where the segment's key lies: see [`Object::span`].
    #[inline]
    pub fn span(&self) -> KeySpan {
        // SAFETY: as above.
        unsafe { self.object().span(self.segment) }
    }

    /// Where the segment has the epoch of its newest commit, if it has it.
    #[inline]
    pub(crate) fn newest_commit(&self) -> Option<&AtomicU64> {
        // SAFETY: the segment is the object's, and in memory until the attempt ends.
        unsafe { self.object().meta().newest_commit(self.segment) }
    }

    /// The segment's address.
    #[inline(always)]
    pub fn address(&self) -> usize {
        self.segment.addr().get()
    }

    #[inline(always)]
    pub(crate) fn segment(&self) -> NonNull<P::Header> {
        self.segment
    }

    #[inline(always)]
    pub(crate) fn object(&self) -> &dyn Object<P> {
        // SAFETY: as for the header.
        unsafe { self.object.as_ref() }
    }
}

/// An attempt's state for one segment (sto §3.2, `TItem`).
pub struct Item<P: Protocol> {
    pub(crate) touched: TouchedSegment<P>,
    pub(crate) payload: Payload,
    /// The trace of the protocol's read: a version, a lock mode.
    pub mark: P::Mark,
    pub(crate) flags: u16,
    pub(crate) tag: u16,
    /// Number of its intentions that have not run yet.
    pub(crate) intentions: u32,
}

impl<P: Protocol> Item<P> {
    #[inline(always)]
    fn new(touched: TouchedSegment<P>) -> Self {
        let (payload, mark) = (Payload::NONE, P::Mark::default());
        Self { touched, payload, mark, flags: 0, tag: 0, intentions: 0 }
    }

    /// True if any of `flags` is set.
    #[inline(always)]
    pub fn is_any(&self, flags: &[Flags]) -> bool {
        flags.iter().any(|flag| self.is(*flag))
    }

    /// The segment's position in the order in which commits acquire: see [`Object::rank`].
    #[inline]
    pub fn rank(&self) -> u64 {
        self.touched.rank()
    }

    /// Where the segment's key lies: see [`Object::span`].
    #[inline]
    pub fn span(&self) -> KeySpan {
        self.touched.span()
    }

    /// The place of the segment's object among its engine's: see [`ObjectMeta::place`](crate::ObjectMeta::place).
    #[inline]
    pub fn place(&self) -> u16 {
        self.object().meta().place()
    }

    /// True if all of `flags` are set.
    #[inline(always)]
    pub fn is(&self, flags: Flags) -> bool {
        self.flags & flags.0 == flags.0
    }

    /// Sets `READ` or `LOCKED`, which are the protocol's. The others are the transaction's, and do not change.
    #[inline(always)]
    pub fn set(&mut self, flags: Flags) {
        if flags.0 & Flags::LOCKED.0 != 0 {
            profile::hold(self.touched.address());
        }
        self.mark_as(Flags(flags.0 & Flags::OF_PROTOCOLS.0));
    }

    /// Clears `READ` or `LOCKED`.
    #[inline(always)]
    pub fn clear(&mut self, flags: Flags) {
        if flags.0 & Flags::LOCKED.0 != 0 {
            profile::release(self.touched.address());
        }
        self.unmark(Flags(flags.0 & Flags::OF_PROTOCOLS.0));
    }

    /// Sets any flags.
    #[inline(always)]
    pub(crate) fn mark_as(&mut self, flags: Flags) {
        self.flags |= flags.0;
    }

    /// Clears any flags.
    #[inline(always)]
    pub(crate) fn unmark(&mut self, flags: Flags) {
        self.flags &= !flags.0;
    }

    /// The datatype's own mark.
    #[inline(always)]
    pub fn tag(&self) -> u16 {
        self.tag
    }

    /// The segment's address: that of its header, followed by the datatype's own data.
    #[inline(always)]
    pub fn segment(&self) -> NonNull<P::Header> {
        self.touched.segment()
    }

    /// The segment's header.
    #[inline(always)]
    pub fn header(&self) -> &P::Header {
        self.touched.header()
    }

    /// True if there is a pending write with a payload, or a predicate.
    #[inline(always)]
    pub fn has_payload(&self) -> bool {
        self.is(Flags::PAYLOAD)
    }

    /// The address of the pending write or the predicate. It is valid as long as the reference to the item.
    ///
    /// # Safety
    ///
    /// The item [has a payload](Self::has_payload), of type `T`.
    #[inline(always)]
    pub unsafe fn payload<T>(&self) -> *const T {
        // SAFETY: the caller's promise.
        unsafe { self.payload.address::<P, T>() }
    }

    /// As [`payload`](Self::payload), to be changed.
    ///
    /// # Safety
    ///
    /// As for [`payload`](Self::payload), or the payload is of that size and will be written now.
    #[inline(always)]
    pub unsafe fn payload_mut<T>(&mut self) -> *mut T {
        if Payload::is_in_item::<P, T>() {
            self.payload.0.as_mut_ptr().cast()
        } else {
            // SAFETY: the caller's promise.
            unsafe { self.payload::<T>() }.cast_mut()
        }
    }

    /// Copies the item for another attempt, which owns it from now on.
    pub(crate) fn detached(&self) -> Self {
        let Self { touched, payload, mark, flags, tag, .. } = *self;
        Self { touched, payload, mark, flags, tag, intentions: 0 }
    }

    /// Gives the item a payload, in the arena if it does not fit in the item.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn set_payload<'a, T>(&'a mut self, payload: T, arena: &'a Arena) -> &'a mut T {
        self.mark_as(Flags::PAYLOAD);
        self.payload = Payload::of::<P, T>(payload, arena);
        // SAFETY: made of a `T` just now, and nobody else's.
        unsafe { &mut *self.payload_mut::<T>() }
    }

    /// Gives the item a payload that is in the arena already.
    ///
    /// # Safety
    ///
    /// The place is in the attempt's arena, holds a `T`, and is nobody else's. A `T` does not fit in an item.
    #[inline(always)]
    pub(crate) unsafe fn set_payload_at<T>(&mut self, place: *mut T) -> &mut T {
        assert!(size_of::<T>() > size_of::<Payload>(), "a small payload is in the item");
        self.mark_as(Flags::PAYLOAD);
        self.payload = Payload(MaybeUninit::new(place.cast()));
        // SAFETY: the caller's promise.
        unsafe { &mut *place }
    }

    /// Installs the pending write.
    ///
    /// # Safety
    ///
    /// [`Steps::prepare`](crate::Steps::prepare) has returned `Ok`. The item has a pending write that has not been installed.
    #[inline]
    pub(crate) unsafe fn install(&mut self, pin: &Pin) {
        charge(Work::Install);
        let touched = self.touched;
        if P::ALLOWS_STEALING && self.is(Flags::ADOPTED) && self.has_payload() {
            memory::read(self.payload.shared::<P>());
        }
        // SAFETY: the object outlives the attempt; the write was not consumed yet, and the lock is held: the caller's
        // promise.
        unsafe { touched.object().install(self, pin) };
    }

    /// Installs a pending value in a cell, for [`Object::install`]. The value that it replaces is retired, or was [kept for
    /// snapshots](crate::Keeper::keep_cell).
    ///
    /// # Safety
    ///
    /// As for [`Cell::install`]. If a copy of a cell was kept for this item, it was of this one.
    #[inline]
    pub unsafe fn install_in<T, C: Cell<T>>(&mut self, cell: &C, pending: C::Pending, pin: &Pin) {
        // SAFETY: the caller's promise.
        unsafe {
            if !C::COPIES && self.is(Flags::KEPT) {
                self.unmark(Flags::KEPT);
                cell.replace(pending, pin);
            } else {
                cell.install(pending, pin);
            }
        }
    }

    /// True if the item's pending write changes something that others can see: see [`Object::effect`].
    #[inline]
    pub fn has_effect(&self) -> bool {
        self.object().effect(self).is_some()
    }

    pub(crate) fn object(&self) -> &dyn Object<P> {
        self.touched.object()
    }
}

/// A pending write or a predicate: a small one itself, in a word of the item, or a pointer into the attempt's arena.
#[derive(Clone, Copy)]
pub(crate) struct Payload(MaybeUninit<*mut u8>);

impl Payload {
    /// No payload.
    pub(crate) const NONE: Self = Self(MaybeUninit::new(std::ptr::null_mut()));

    /// True if a payload of this type lies in the item. Thieves share payloads with the owner, so theirs never do.
    #[inline(always)]
    const fn is_in_item<P: Protocol, T>() -> bool {
        !P::ALLOWS_STEALING && size_of::<T>() <= size_of::<Self>() && align_of::<T>() <= align_of::<Self>()
    }

    /// Makes a payload, in the arena if it does not fit in an item.
    #[inline(always)]
    pub(crate) fn of<P: Protocol, T>(value: T, arena: &Arena) -> Self {
        let mut payload = Self(MaybeUninit::uninit());
        let place = match Self::is_in_item::<P, T>() {
            true => payload.0.as_mut_ptr().cast::<T>(),
            false => {
                charge_times(Work::Fill, || size_of::<T>().div_ceil(64));
                payload.0.write(arena.allocate(Layout::new::<T>())).cast()
            }
        };
        // SAFETY: the word, or the room in the arena, is large enough and aligned, and nobody else's.
        unsafe { place.write(value) };
        payload
    }

    /// Returns the address of the value.
    ///
    /// # Safety
    ///
    /// The payload was made of a `T`.
    #[inline(always)]
    pub(crate) unsafe fn address<P: Protocol, T>(&self) -> *const T {
        if Self::is_in_item::<P, T>() {
            self.0.as_ptr().cast()
        } else {
            // SAFETY: a payload that is not in the item is a pointer.
            unsafe { self.0.assume_init() }.cast()
        }
    }

    /// The address in the arena, under a protocol that allows stealing.
    pub(crate) fn shared<P: Protocol>(self) -> *mut u8 {
        debug_assert!(P::ALLOWS_STEALING);
        // SAFETY: initialised with null, and under such a protocol only pointers are written.
        unsafe { self.0.assume_init() }
    }
}

/// An attempt's items, in the order of first touch.
pub struct Items<P: Protocol> {
    items: Vec<Item<P>>,
    writes: Vec<ItemId>,
    index: AddressIndex,
    predicates: u32,
    /// The flags of an item that is written for the first time.
    new_write: u16,
}

/// The address of the segment of each item, for the index.
#[inline(always)]
fn address_in<P: Protocol>(items: &[Item<P>]) -> impl Fn(usize) -> usize + Copy {
    |index| {
        debug_assert!(index < items.len());
        // SAFETY: the index asks for positions of items only: an item is added for each address entered, and both are
        // cleared together.
        unsafe { items.get_unchecked(index) }.touched.address()
    }
}

const SLOTS_MIN: usize = if cfg!(test) { 4 } else { 256 };

impl<P: Protocol> Items<P> {
    pub(crate) fn new() -> Self {
        Self::with(SLOTS_MIN)
    }

    /// Makes a set for few items.
    pub(crate) fn small() -> Self {
        Self::with(4)
    }

    fn with(slots: usize) -> Self {
        let index = AddressIndex::new(slots);
        Self { items: Vec::new(), writes: Vec::new(), index, predicates: 0, new_write: Flags::WRITE.0 }
    }

    /// Forgets all items.
    #[inline]
    pub(crate) fn clear(&mut self) {
        // The attempt may have ended within a part.
        self.mark_new_writes(false);
        if !self.items.is_empty() {
            self.index.clear();
            self.items.clear();
            self.writes.clear();
            self.predicates = 0;
        }
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// True if no segment was touched.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The items to be written, in the order of their first write.
    #[inline(always)]
    pub fn writes(&self) -> &[ItemId] {
        &self.writes
    }

    /// True if any item holds a predicate.
    #[inline(always)]
    pub fn has_predicates(&self) -> bool {
        self.predicates != 0
    }

    /// The numbers of all items, in the order of first touch.
    #[inline]
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = ItemId> + use<P> {
        (0..self.items.len() as u32).map(ItemId)
    }

    /// All items with their numbers, in the order of first touch.
    #[inline(always)]
    pub fn entries(&self) -> impl Iterator<Item = (ItemId, &Item<P>)> {
        self.first_entries(self.items.len())
    }

    /// The first `count` items with their numbers.
    #[inline(always)]
    pub fn first_entries(&self, count: usize) -> impl Iterator<Item = (ItemId, &Item<P>)> {
        self.items[..count].iter().enumerate().map(|(position, item)| (ItemId(position as u32), item))
    }

    /// All items, in the order of first touch.
    #[inline]
    pub fn iter(&self) -> std::slice::Iter<'_, Item<P>> {
        self.items.iter()
    }

    /// Returns an item.
    #[inline(always)]
    pub fn get(&self, id: ItemId) -> &Item<P> {
        &self.items[id.0 as usize]
    }

    /// Returns an item, to be changed.
    #[inline(always)]
    pub fn get_mut(&mut self, id: ItemId) -> &mut Item<P> {
        &mut self.items[id.0 as usize]
    }

    /// Returns the item of a segment, if the segment was touched.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn find(&self, segment: NonNull<P::Header>) -> Option<ItemId> {
        self.at(segment.addr().get())
    }

    /// Returns the item of the segment at an address, if that segment was touched.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn at(&self, segment: usize) -> Option<ItemId> {
        charge(Work::Item);
        self.index.find(segment, self.items.len(), address_in(&self.items)).map(ItemId)
    }

    /// True if there is an item of this number, and it is this segment's.
    #[inline(always)]
    pub(crate) fn is_at(&self, id: ItemId, segment: NonNull<P::Header>) -> bool {
        self.items.get(id.0 as usize).is_some_and(|item| item.segment() == segment)
    }

    /// True if a segment was touched.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn has(&self, touched: &TouchedSegment<P>) -> bool {
        self.index.find(touched.address(), self.items.len(), address_in(&self.items)).is_some()
    }

    /// Adds an item for a segment that was read, and has none.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn add_read(&mut self, touched: TouchedSegment<P>, mark: P::Mark) -> ItemId {
        let id = self.find_or_add(touched);
        let item = self.get_mut(id);
        item.mark = mark;
        item.mark_as(Flags::READ);
        id
    }

    /// Returns the item of a segment, a new one if the segment was not touched yet.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn find_or_add(&mut self, touched: TouchedSegment<P>) -> ItemId {
        charge(Work::Item);
        if self.items.len() < self.items.capacity() && self.index.enter_new(touched.address()) {
            // Within the capacity.
            return self.add(touched);
        }
        let (segment, object) = touched.into_parts();
        self.find_or_add_slowly(segment, object)
    }

    /// Out of line, so that the others call nothing. Takes the segment in parts: as a whole it would be in memory for the others, too.
    #[inline(never)]
    fn find_or_add_slowly(&mut self, segment: NonNull<P::Header>, object: NonNull<dyn Object<P>>) -> ItemId {
        let touched = TouchedSegment { segment, object };
        let Self { items, index, .. } = self;
        match index.find_or_enter(touched.address(), items.len(), address_in(items)) {
            Some(position) => ItemId(position),
            None => self.add(touched),
        }
    }

    /// Adds the item of a segment that was entered in the index just now.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn add(&mut self, touched: TouchedSegment<P>) -> ItemId {
        self.items.push(Item::new(touched));
        ItemId(self.items.len() as u32 - 1)
    }

    /// Returns the item that was written as the `at`th.
    #[inline(always)]
    pub(crate) fn write_mut(&mut self, at: usize) -> &mut Item<P> {
        let id = self.writes[at];
        // SAFETY: the numbers are those of items.
        unsafe { self.items.get_unchecked_mut(id.position()) }
    }

    /// The items to be written, in the order of their first write, to be changed.
    #[inline(always)]
    pub fn writes_mut(&mut self) -> impl Iterator<Item = (ItemId, &mut Item<P>)> {
        let items = self.items.as_mut_ptr();
        // SAFETY: the numbers are those of items, and each is there once.
        self.writes.iter().map(move |id| (*id, unsafe { &mut *items.add(id.position()) }))
    }

    /// True if this holds for one of the items to be written.
    #[inline(always)]
    pub(crate) fn any_write(&self, holds: impl Fn(&Item<P>) -> bool) -> bool {
        // SAFETY: the numbers are those of items.
        self.writes.iter().any(|id| holds(unsafe { self.items.get_unchecked(id.position()) }))
    }

    /// Marks an item as written.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn mark_write(&mut self, id: ItemId) -> &mut Item<P> {
        let item = &mut self.items[id.0 as usize];
        if !item.is(Flags::WRITE) {
            item.mark_as(Flags(self.new_write));
            self.writes.push(id);
        }
        item
    }

    /// Sets whether items that are written for the first time are [safe](Flags::SAFE).
    pub(crate) fn mark_new_writes(&mut self, safe: bool) {
        self.new_write = if safe { Flags::WRITE.0 | Flags::SAFE.0 } else { Flags::WRITE.0 };
    }

    /// Undoes the first write of each item behind the first `kept` writes. `undo` drops the pending write. The segments
    /// that the attempt has made stay written.
    pub(crate) fn undo_writes(&mut self, kept: usize, mut undo: impl FnMut(&mut Item<P>)) {
        let mut undone = self.writes.split_off(kept);
        for id in undone.iter().rev() {
            let item = &mut self.items[id.position()];
            undo(item);
            if !item.is(Flags::INSERTED) {
                item.unmark(Flags(Flags::WRITE.0 | Flags::CLEANUP.0 | Flags::RELEASE_AFTER_INSERTS.0));
                item.tag = 0;
            }
        }
        undone.retain(|id| self.items[id.position()].is(Flags::WRITE));
        self.writes.append(&mut undone);
    }

    #[inline]
    pub(crate) fn mark_predicate(&mut self, id: ItemId) {
        let item = &mut self.items[id.0 as usize];
        if !item.is(Flags::PREDICATE) {
            item.mark_as(Flags::PREDICATE);
            self.predicates += 1;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::testing::{Silent, Unprotected};

    #[test]
    fn a_second_write_of_an_item_is_the_same_write() {
        let segment = 0u64;
        let object = Silent::default();
        let mut items = Items::<Unprotected>::new();
        // SAFETY: nothing looks into the segment, and both outlive the items.
        let touched = unsafe {
            TouchedSegment::new(NonNull::from(&segment), NonNull::from(&object as &dyn Object<Unprotected>))
        };
        let id = items.find_or_add(touched);
        items.mark_write(id);
        items.mark_write(id);
        assert_eq!(items.writes(), &[id]);
    }
}
