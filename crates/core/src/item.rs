//! Items and the tracking set: an attempt's state for each segment that it touched.
//!
//! An item is found by its segment's address in O(1) (`address_map`).

use crate::address_map::AddressMap;
use crate::object::Object;
use crate::protocol::Protocol;
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
    /// The pending write has been installed. Noted where writes are installed [one by one](crate::OneByOne), and where
    /// `debug_assertions` are on.
    pub(crate) const INSTALLED: Flags = Flags(2048);

    /// The flags that a protocol sets and clears. The others tell the type of an item's payload.
    const OF_PROTOCOLS: Flags = Flags(Self::READ.0 | Self::LOCKED.0);
}

/// The flags of all rooms have bits of their own.
const _: () = {
    let flags = [
        Flags::READ,
        Flags::WRITE,
        Flags::PREDICATE,
        Flags::LOCKED,
        Flags::INSERTED,
        Flags::CLEANUP,
        Flags::RELEASE_AFTER_INSERTS,
        Flags::INSTALLED,
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

/// An attempt's state for one segment (sto §3.2, `TItem`).
pub struct Item<P: Protocol> {
    pub(crate) segment: NonNull<P::Header>,
    pub(crate) object: NonNull<dyn Object<P>>,
    pub(crate) payload: *mut u8,
    /// The trace of the protocol's read: a version, a lock mode.
    pub mark: P::Mark,
    pub(crate) flags: u16,
    pub(crate) tag: u16,
    /// Number of its intentions that have not run yet.
    pub(crate) intentions: u32,
}

impl<P: Protocol> Item<P> {
    /// True if any of `flags` is set.
    #[inline(always)]
    pub fn is_any(&self, flags: &[Flags]) -> bool {
        flags.iter().any(|flag| self.is(*flag))
    }

    /// The segment's position in the order in which commits acquire: see [`Object::rank`].
    #[inline]
    pub fn rank(&self) -> u64 {
        // SAFETY: the item's segment is its object's, and in memory until the attempt ends.
        unsafe { self.object().rank(self.segment) }
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
        self.mark_as(Flags(flags.0 & Flags::OF_PROTOCOLS.0));
    }

    /// Clears `READ` or `LOCKED`.
    #[inline(always)]
    pub fn clear(&mut self, flags: Flags) {
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
        self.segment
    }

    /// The segment's header.
    #[inline(always)]
    pub fn header(&self) -> &P::Header {
        // SAFETY: the maker of the item promised that the segment lives until the attempt ends (`Transaction::read` and
        // its siblings).
        unsafe { self.segment.as_ref() }
    }

    /// The address of the pending write or the predicate; null if there is neither.
    #[inline(always)]
    pub fn payload(&self) -> *mut u8 {
        self.payload
    }

    /// Copies the item for another attempt, which owns it from now on.
    pub(crate) fn detached(&self) -> Self {
        let Self { segment, object, payload, mark, flags, tag, .. } = *self;
        Self { segment, object, payload, mark, flags, tag, intentions: 0 }
    }

    pub(crate) fn object(&self) -> &dyn Object<P> {
        // SAFETY: as for the segment.
        unsafe { self.object.as_ref() }
    }
}

/// An attempt's items, in the order of first touch.
pub struct Items<P: Protocol> {
    items: Vec<Item<P>>,
    writes: Vec<ItemId>,
    map: AddressMap,
    predicates: u32,
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
        Self { items: Vec::new(), writes: Vec::new(), map: AddressMap::new(slots), predicates: 0 }
    }

    /// Forgets all items.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.writes.clear();
        self.predicates = 0;
        self.map.clear();
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
    #[inline(always)]
    pub(crate) fn find(&self, segment: NonNull<P::Header>) -> Option<ItemId> {
        self.at(segment.addr().get())
    }

    /// Returns the item of the segment at an address, if that segment was touched.
    #[inline(always)]
    pub fn at(&self, segment: usize) -> Option<ItemId> {
        let items = &self.items;
        self.map.find(segment, |index| items[index].segment.addr().get()).map(ItemId)
    }

    /// True if there is an item of this number, and it is this segment's.
    #[inline(always)]
    pub(crate) fn is_at(&self, id: ItemId, segment: NonNull<P::Header>) -> bool {
        self.items.get(id.0 as usize).is_some_and(|item| item.segment == segment)
    }

    /// Returns the item of a segment, a new one if the segment was not touched yet.
    #[inline(always)]
    pub(crate) fn find_or_add(
        &mut self,
        segment: NonNull<P::Header>,
        object: NonNull<dyn Object<P>>,
    ) -> ItemId {
        let Self { items, map, .. } = self;
        let found = map.find_or_enter(segment.addr().get(), |index| items[index].segment.addr().get());
        match found {
            Ok(index) => ItemId(index),
            Err(index) => {
                let (payload, mark) = (std::ptr::null_mut(), P::Mark::default());
                items.push(Item { segment, object, payload, mark, flags: 0, tag: 0, intentions: 0 });
                ItemId(index)
            }
        }
    }

    #[inline]
    pub(crate) fn set_payload(&mut self, id: ItemId, payload: *mut u8) {
        self.items[id.0 as usize].payload = payload;
    }

    /// Marks an item as written. True the first time.
    #[inline]
    pub(crate) fn mark_write(&mut self, id: ItemId) -> bool {
        let item = &mut self.items[id.0 as usize];
        let first = !item.is(Flags::WRITE);
        if first {
            item.mark_as(Flags::WRITE);
            self.writes.push(id);
        }
        first
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
        let id =
            items.find_or_add(NonNull::from(&segment), NonNull::from(&object as &dyn Object<Unprotected>));
        assert!(items.mark_write(id));
        assert!(!items.mark_write(id));
        assert_eq!(items.writes(), &[id]);
    }
}
