//! Groups: segments that stand for rows whose keys are not known yet.
//!
//! A deferred insertion lines up for the group of its row (an order belongs to its district), so that it meets every
//! operation on the whole group there. A group is a segment without a value; groups whose numbers are equal modulo
//! [`GROUPS`] share one. A group of a [queue](crate::queue) has a second segment, for its head, and its last key is kept.

use crate::key::{Image, Key};
use crossbeam_utils::CachePadded;
use hotrow_core::{EngineId, Item, Keeper, Object, ObjectMeta, Pin, Protocol, SavedWrite, Saver};
use hotrow_sync::OnceLock;
use hotrow_sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::ptr::NonNull;

/// The number of group segments in a table that has groups.
pub(crate) const GROUPS: usize = if cfg!(test) { 4 } else { 1_024 };
/// The number of the first tail. Heads have the lower numbers, so that they come first in lock order.
pub(crate) const HEADS: u32 = GROUPS as u32;

type Segments<P> = OnceLock<Box<[CachePadded<<P as Protocol>::Header>]>>;

/// The groups of a table.
pub(crate) struct Groups<P: Protocol> {
    pub(crate) meta: ObjectMeta,
    /// Made on first use. Each has a cache line of its own, because many transactions lock groups.
    heads: Segments<P>,
    tails: Segments<P>,
    /// The number of rows loaded or inserted at once, instead of by a deferred insertion at its turn at a tail.
    outsiders: CachePadded<AtomicU64>,
}

impl<P: Protocol> Groups<P> {
    pub(crate) fn new(engine: EngineId, table: &str) -> Self {
        Self {
            meta: ObjectMeta::new(engine, format!("{table}.groups")),
            heads: OnceLock::new(),
            tails: OnceLock::new(),
            outsiders: CachePadded::default(),
        }
    }

    /// Returns the number of such rows. Called at a turn at a tail.
    pub(crate) fn outsiders(&self) -> u64 {
        // Relaxed: an operation that lines up is counted at its turn at the tail, and the tail's ticket lock (*line*)
        // orders it.
        self.outsiders.load(Ordering::Relaxed)
    }

    pub(crate) fn count_outsider(&self) {
        // Relaxed: see `outsiders`.
        self.outsiders.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the segment of a group's tail, where rows are inserted.
    pub(crate) fn tail(&self, group: u64) -> NonNull<P::Header> {
        Self::segment(&self.tails, group)
    }

    /// Returns the segment of a group's head, where rows are taken.
    pub(crate) fn head(&self, group: u64) -> NonNull<P::Header> {
        Self::segment(&self.heads, group)
    }

    fn segment(segments: &Segments<P>, group: u64) -> NonNull<P::Header> {
        let segments = segments.get_or_init(|| (0..GROUPS).map(|_| CachePadded::default()).collect());
        NonNull::from(&*segments[group as usize % GROUPS])
    }

    /// The number of a segment among these.
    fn number(segments: &Segments<P>, segment: NonNull<P::Header>) -> Option<u32> {
        let base = segments.get()?.as_ptr().addr();
        let number = segment.addr().get().checked_sub(base)? / size_of::<CachePadded<P::Header>>();
        (number < GROUPS).then_some(number as u32)
    }
}

// SAFETY: all items are for the groups' segments, which live as long as the table's shared state; their writes have
// no payload.
unsafe impl<P: Protocol> Object<P> for Groups<P> {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    unsafe fn describe(&self, segment: NonNull<P::Header>) -> String {
        match Self::number(&self.heads, segment) {
            Some(number) => format!("head of group {number}"),
            None => format!("group {}", Self::number(&self.tails, segment).unwrap_or_default()),
        }
    }

    unsafe fn identify(&self, segment: NonNull<P::Header>) -> u64 {
        let tail = || HEADS + Self::number(&self.tails, segment).unwrap_or_default();
        u64::from(Self::number(&self.heads, segment).unwrap_or_else(tail))
    }

    /// Counts an operation that is not deferred: it is a write that changes nothing, and its turn has come.
    unsafe fn install(&self, _: &mut Item<P>, _: &Pin) {
        self.count_outsider();
    }

    /// Groups have no value.
    unsafe fn keep(&self, _: &Item<P>, _: &mut Keeper<'_>) {}

    unsafe fn save(&self, _: &Item<P>, saver: &Saver<'_, P>) -> SavedWrite {
        saver.nothing()
    }

    unsafe fn restore(&self, item: &mut Item<P>, saved: Option<SavedWrite>, _: &Pin) {
        if let Some(saved) = saved {
            // SAFETY: the caller's promise; groups' writes have no payload.
            unsafe { item.put_back(saved) };
        }
    }
}

/// The last key inserted into a group, of the groups that share a tail. Only an operation at its turn at the tail
/// accesses it, so all accesses are relaxed: the tail's ticket lock (*line*) orders them.
pub(crate) struct LastKey<I: Image> {
    /// The number of the group plus one; 0 if no key is known.
    group: AtomicU64,
    image: I::Slot,
    /// The value of [`Groups::outsiders`] when the key was set.
    outsiders: AtomicU64,
}

impl<I: Image> LastKey<I> {
    /// True if it is known, and surely before another key of the group.
    pub(crate) fn is_before<P: Protocol>(
        &self,
        key: &impl Key<Image = I>,
        group: u64,
        groups: &Groups<P>,
    ) -> bool {
        let group = group.wrapping_add(1);
        group != 0
            && self.group.load(Ordering::Relaxed) == group
            && self.outsiders.load(Ordering::Relaxed) == groups.outsiders()
            && I::is_surely_below(&self.image, &key.image())
    }

    pub(crate) fn set<P: Protocol>(&self, key: &impl Key<Image = I>, group: u64, groups: &Groups<P>) {
        self.group.store(group.wrapping_add(1), Ordering::Relaxed);
        self.outsiders.store(groups.outsiders(), Ordering::Relaxed);
        I::store(&key.image(), &AtomicU8::new(0), &self.image);
    }
}

/// The queues that a table's groups are.
pub(crate) struct Queues<K: Key> {
    group_of: Box<dyn Fn(&K) -> u64 + Send + Sync>,
    /// The last key of each group, where it is known.
    last_keys: OnceLock<Box<[CachePadded<LastKey<K::Image>>]>>,
}

impl<K: Key> Queues<K> {
    /// `group_of` returns the number of a row's group.
    pub(crate) fn new(group_of: impl Fn(&K) -> u64 + Send + Sync + 'static) -> Self {
        Self { group_of: Box::new(group_of), last_keys: OnceLock::new() }
    }

    /// The group of a row.
    #[inline]
    pub(crate) fn group_of(&self, key: &K) -> u64 {
        (self.group_of)(key)
    }

    /// The last key of a group.
    pub(crate) fn last_key(&self, group: u64) -> &LastKey<K::Image> {
        let unknown = || LastKey {
            group: AtomicU64::new(0),
            image: <K::Image as Image>::Slot::default(),
            outsiders: AtomicU64::new(0),
        };
        let keys = self.last_keys.get_or_init(|| (0..GROUPS).map(|_| CachePadded::new(unknown())).collect());
        &keys[group as usize % GROUPS]
    }
}
